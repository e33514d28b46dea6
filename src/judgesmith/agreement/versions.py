"""Is version B better than version A, where a judge scored both and people rated some versions?

People's mean of a version follows the judge's mean along a straight line, with a departure of its own for every
version (Fay-Herriot's model for small areas). Ratings of earlier versions say where the line runs and how far versions
depart from it. What people rated of A and B themselves is weighed with the line by its own error.

Two numbers belong to every verdict. The first is the probability of a wrong sign for versions that differ as the
earlier ones do. The second is a test in the other direction, the judge's mean by people's. Its size holds however
little the new versions differ, which matters as two commits differ less than two products.

Source: Fay and Herriot 1979 (JASA 74). The departures' spread is averaged over, under Jeffreys' prior for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.correlation import Vector, vector
from judgesmith.errors import LabelsError

Matrix = npt.NDArray[np.float64]
#: With fewer rated versions no line is drawn for a verdict without labels.
FEWEST_EARLIER = 8
#: The fewest rated documents of a version that counts.
FEWEST_DOCUMENTS = 5
#: With fewer rated versions no line is drawn to shrink labelled means.
FEWEST_SHRUNK = 5
#: A version whose departure is rarer than this, all tested together, is an outlier: then the line says nothing of
#: versions without labels.
OUTLIER = 0.01
#: The same where every version has labels, which correct it.
FAR_OUT = 0.001
#: A version's mean whose variance is so many times that of the median one. Then most ratings are the same, at the end
#: of the scale, and errors of means are not normal.
UNEQUAL = 25.0
#: Values of the departures' spread that are averaged over.
_GRID = 60
#: The largest of them, in spreads of the residuals.
_REACH = 12.0


@dataclass(frozen=True, slots=True)
class Version:
    """One version's means.

    judge: mean score by the judge. human: mean rating by people, NaN without one. variance: of `human`, as far as it
    is not common to all versions (difficult documents are).
    """

    judge: float
    human: float = math.nan
    variance: float = math.nan

    @property
    def rated(self) -> bool:
        """True if people rated it."""
        return not math.isnan(self.human)


@dataclass(frozen=True, slots=True)
class Belief:
    """What is known of a difference: a mixture of normal distributions.

    means, deviations, weights: of its parts; the weights sum to 1.
    """

    means: Vector
    deviations: Vector
    weights: Vector

    @property
    def mean(self) -> float:
        """The expected difference."""
        return float(self.weights @ self.means)

    @property
    def deviation(self) -> float:
        """Its standard deviation."""
        square = self.weights @ (self.deviations**2 + (self.means - self.mean) ** 2)
        return float(math.sqrt(square))

    def below(self, value: float) -> float:
        """Return the probability that the difference is at most `value`."""
        z = (value - self.means) / self.deviations
        return float(self.weights @ scipy.special.ndtr(z))

    @property
    def wrong(self) -> float:
        """The probability that the difference has the other sign than its mean, in [0, 1]."""
        z = self.means / self.deviations
        sign = -1.0 if self.mean > 0 else 1.0
        return float(self.weights @ scipy.special.ndtr(sign * z))

    def wider(self, stretch: float, variance: float = 0.0) -> Belief:
        """Return it with a further variance, and all of it so many times as wide around its mean."""
        means = self.mean + stretch * (self.means - self.mean)
        deviations = stretch * np.sqrt(self.deviations**2 + variance)
        return Belief(means, deviations, self.weights)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval that leaves equal probabilities on both sides."""
        tail = (1 - confidence) / 2
        reach = 1.0 + np.abs(scipy.special.ndtri(tail / len(self.means)))
        low = float((self.means - reach * self.deviations).min())
        high = float((self.means + reach * self.deviations).max())
        ends = []
        for share in (tail, 1 - tail):
            at = scipy.optimize.brentq(lambda x, s=share: self.below(x) - s, low, high)
            ends.append(float(at))
        return ends[0], ends[1]


def independent_variances(errors: npt.ArrayLike) -> Vector:
    """Return the part of each mean's variance that versions do not share.

    Two of them sum to the variance of the difference of the two means, as nearly as such sums can. Half of each is the
    mean of all, as few documents tell little about one version.

    Args:
        errors: each document's share in the error of each version's mean -> (versions, documents), 3 versions or more.

    >>> independent_variances([[1, -1, 0, 0], [1, -1, 0, 0], [1, -1, 1, -1]]).round(3).tolist()
    [0.333, 0.333, 1.333]
    """
    table = np.asarray(errors, dtype=np.float64)
    common = table @ table.T
    own = np.diag(common)
    apart = own[:, None] + own[None, :] - 2 * common
    count = len(table)
    sums = apart.sum(axis=1)
    mean = sums.sum() / (2 * count * (count - 1))
    single = (sums - sums.sum() / (2 * (count - 1))) / (count - 2)
    return np.asarray((mean + np.maximum(single, 0.0)) / 2)


def line_through(
    versions: Sequence[Version], variances: npt.ArrayLike
) -> tuple[Line | None, str]:
    """Return the line that labelled means can be drawn to, or why there is none ("" where nobody expects one).

    Args:
        versions: those that people rated.
        variances: of each mean by its own labels alone.
    """
    if len(versions) < FEWEST_SHRUNK or len({one.judge for one in versions}) < 2:
        return None, ""
    own = np.asarray(variances, dtype=np.float64)
    middle = np.median(own)
    if middle < 1e-12 or own.max() > UNEQUAL * middle:
        return (
            None,
            "most versions' ratings hardly vary, so that their means' errors are not known well; each is taken by its "
            "own labels",
        )
    line = Line(versions)
    if line.outlier() < FAR_OUT:
        return (
            None,
            "versions do not lie on one line of people's means by the judge's; each is taken by its own labels",
        )
    return line, ""


def stretch(labelled: int) -> float:
    """Return how much wider an interval is than a normal one, as versions' variances are known of so many documents.

    Half of each variance is the mean of all versions', so that it has about twice the degrees of freedom of one.

    >>> round(stretch(5), 3), round(stretch(20), 3)
    (1.177, 1.033)
    """
    df = 2 * (labelled - 1)
    return float(scipy.special.stdtrit(df, 0.975) / scipy.special.ndtri(0.975))


class Line:
    """People's means by the judge's, over rated versions.

    Args:
        versions: those that people rated; at least 4, of different means by the judge.

    Raises:
        LabelsError: If they are fewer, or the judge's means are all equal.
    """

    def __init__(self, versions: Sequence[Version]) -> None:
        rated = [one for one in versions if one.rated]
        if len(rated) < 4:
            raise LabelsError(
                f"people rated {len(rated)} versions; a line needs 4 or more"
            )
        self.judge = vector([one.judge for one in rated], "judge")
        self.human = vector([one.human for one in rated], "human")
        self.variances = vector([one.variance for one in rated], "variances")
        if np.ptp(self.judge) == 0:
            raise LabelsError(
                "the judge's mean is the same for all rated versions; it cannot tell versions apart"
            )
        slope, middle = np.polyfit(self.judge, self.human, 1)
        residuals = self.human - middle - slope * self.judge
        rms = math.sqrt(float(residuals @ residuals) / (len(rated) - 2))
        scale = rms + math.sqrt(float(self.variances.mean())) + 1e-9
        steps = np.linspace(0.0, 1.0, _GRID) ** 2
        self.spreads = _REACH * scale * steps
        self._fit()

    def _fit(self) -> None:
        """Fit the line for every spread of departures, and weigh the spreads by their likelihood."""
        w = 1.0 / (self.variances + self.spreads[:, None] ** 2 + 1e-12)
        total = w.sum(axis=1)
        self._middle = (w @ self.judge) / total
        self._level = (w @ self.human) / total
        away = self.judge - self._middle[:, None]
        self._reach = (w * away**2).sum(axis=1)
        self.slopes = (w * away * self.human).sum(axis=1) / self._reach
        left = self.human - self._level[:, None] - self.slopes[:, None] * away
        misfit = (w * left**2).sum(axis=1)
        log = np.log(w).sum(axis=1) - np.log(total) - np.log(self._reach) - misfit
        square = self.spreads**2
        prior = self.spreads / (square + self.variances.mean() + 1e-12)
        chance = np.exp((log - log.max()) / 2) * prior * np.gradient(self.spreads)
        self.weights = chance / chance.sum()
        self._total = total

    @property
    def spread(self) -> float:
        """The expected spread of versions' departures from the line, on people's scale."""
        return float(self.weights @ self.spreads)

    @property
    def slope(self) -> float:
        """People's points for one point of the judge."""
        return float(self.weights @ self.slopes)

    def difference(
        self,
        a: Version,
        b: Version,
        judge_error: float = 0.0,
        *,
        changed: float = 1.0,
        however_alike: bool = False,
    ) -> Belief:
        """Return what is known of people's mean of `b` less that of `a`.

        Args:
            a: one version. If people rated it, the line must have been fitted to it, too.
            b: another version, in the same way.
            judge_error: standard error of the judge's difference, over documents.
            changed: share of documents whose outputs differ, in [0, 1]. Equal outputs are equally good, so that the
                variance between the two departures is that share of what it would be.
            however_alike: take nothing for granted of how far the two differ. By default they are taken to differ as
                those of the line do, which two commits may not.
        """
        pair = (a, b)
        # Covariance of the two departures.
        shared = np.array([[1.0, 1 - changed], [1 - changed, 1.0]])
        contrast = np.array([-1.0, 1.0])
        return self._belief(pair, contrast, shared, judge_error, however_alike)

    def mean(self, version: Version, judge_error: float = 0.0) -> Belief:
        """Return what is known of people's mean of a version that they rated.

        Args:
            version: it; the line must have been fitted to it, too.
            judge_error: standard error of the judge's mean, over documents.
        """
        one = np.ones((1, 1))
        return self._belief((version,), one[0], one, math.sqrt(2) * judge_error, False)

    def _belief(
        self,
        of: tuple[Version, ...],
        contrast: Vector,
        shared: Matrix,
        judge_error: float,
        however_alike: bool,
    ) -> Belief:
        """Return what is known of a contrast of versions' means."""
        square = self.spreads**2
        stretch = np.ones(len(square))
        if however_alike:
            explained = self.slopes**2 * self._reach / self._total
            stretch = (explained + square) / np.maximum(explained, 1e-12)
            square = square * stretch
        # How far the contrast follows what people rated of each.
        prior = square[:, None, None] * shared
        spread = np.einsum("i,tij,j->t", contrast, prior, contrast)
        base = np.zeros(len(square))
        follows = np.tile(contrast, (len(square), 1))
        rated = [k for k, one in enumerate(of) if one.rated]
        if rated:
            seen = prior[:, rated][:, :, rated]
            seen = seen + np.diag([of[k].variance + 1e-12 for k in rated])
            toward = np.einsum("i,tij->tj", contrast, prior[:, :, rated])
            gain = np.linalg.solve(seen, toward[:, :, None])[:, :, 0]
            spread = spread - (gain * toward).sum(axis=1)
            base = gain @ np.array([of[k].human for k in rated])
            follows[:, rated] -= gain
        away = stretch[:, None] * (
            np.array([one.judge for one in of]) - self._middle[:, None]
        )
        of_level = follows.sum(axis=1)
        of_slope = (follows * away).sum(axis=1)
        means = base + of_level * self._level + of_slope * self.slopes
        noise = (
            (follows**2).sum(axis=1) / 2 * (stretch * self.slopes * judge_error) ** 2
        )
        variance = np.maximum(spread, 0.0) + noise
        variance += of_level**2 / self._total + of_slope**2 / self._reach
        return Belief(means, np.sqrt(variance + 1e-18), self.weights)

    @property
    def downhill(self) -> float:
        """The probability that people's means fall where the judge's rise."""
        z = self.slopes * np.sqrt(self._reach)
        return float(self.weights @ scipy.special.ndtr(-z))

    def outlier(self) -> float:
        """Return P of the largest departure from the line, all versions tested together (Bonferroni)."""
        square = float(self.weights @ self.spreads**2)
        worst = 1.0
        for k in range(len(self.judge)):
            others = np.arange(len(self.judge)) != k
            w = 1.0 / (self.variances[others] + square + 1e-12)
            x = self.judge[others]
            y = self.human[others]
            middle = w @ x / w.sum()
            level = w @ y / w.sum()
            reach = w @ (x - middle) ** 2
            if reach == 0:
                continue
            slope = w @ ((x - middle) * y) / reach
            left = y - level - slope * (x - middle)
            df = len(x) - 2
            inflated = float(w @ left**2) / df
            at = self.judge[k] - middle
            gap = self.human[k] - level - slope * at
            size = inflated * (self.variances[k] + square + 1 / w.sum() + at**2 / reach)
            t = abs(gap) / math.sqrt(size + 1e-18)
            worst = min(worst, 2 * float(scipy.special.stdtr(df, -t)) * len(self.judge))
        return min(1.0, worst)
