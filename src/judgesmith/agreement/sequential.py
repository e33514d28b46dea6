"""Is a share, or a coefficient, at least a bar? Labels come one by one, and the answer holds whenever they stop.

A judge finds a share of the answers that people fail. Is it 80 % or more? A test of a fixed number of labels may be
looked at once. These may be looked at after every label, and stop as soon as it is decided: what lies below the bar
passes with probability `alpha` at most, what is `hoped` or more fails with probability `beta` at most, however often
and whenever one looks (Ville 1939).

- `ShareTest`: a share of rows. Exact for labels drawn at random. Of the labels that a fixed number needs, it takes
  about 60 % where the share is as hoped, and less than half where it lies well above or below the bar.
- `StrataTest`: the same where the judge's verdict of every row is known. The verdicts cut the rows into strata, so that
  labels are asked for where they tell most (`planned`). Exact, too; it takes a fifth to two thirds of the labels of
  `ShareTest` in a random order (`experiments/results/audits.md`).
- `CoefficientTest`: correlations, kappa and others. It is no share of rows, so this one is asymptotic: a coefficient
  moves as a random walk does once its error is known. Its errors are measured, not proven (the same page).

Sources: Wald 1945, Sequential tests of statistical hypotheses; Waudby-Smith and Ramdas 2024 (arXiv:2010.09686), whose
bets allow values between 0 and 1, and rows that were drawn with unequal probabilities; Waudby-Smith, Arbour, Sinha,
Kennedy and Ramdas 2024 (Annals of Statistics 52) for asymptotic evidence of estimates; Neyman 1934 for the shares of
strata.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.errors import OptionError

Vector = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Decision = Literal["passed", "failed", "open"]
#: How often a share at the bar passes at most, unless a test says otherwise.
ALPHA = 0.05
#: The largest number of labels that a plan goes to.
MOST = 20_000


@dataclass(frozen=True, slots=True)
class Look:
    """What the labels so far say."""

    decision: Decision
    labels: int
    """Labels so far."""
    sufficed: int | None
    """Labels after which it was decided; None while it is open."""
    more: int | None
    """Labels that are still needed on average if the share is as found so far; None where it is decided or unknown."""
    share: float
    """The share so far, in [0, 1]; NaN without labels."""


@dataclass(frozen=True, slots=True)
class ShareTest:
    """A test of a share against a bar that may be looked at after every label.

    >>> test = ShareTest(bar=0.8, hoped=0.9)
    >>> test.look([1.0] * 26)     # (0.9 / 0.8) ** 26 = 21.4 > 1 / 0.05
    Look(decision='passed', labels=26, sufficed=26, more=None, share=1.0)
    """

    bar: float
    hoped: float
    alpha: float = ALPHA
    beta: float = 0.1

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            OptionError: Unless 0 < bar < hoped < 1, and both errors are in (0, 1).
        """
        _check(self, 0.0, 1.0)

    def evidence(
        self, values: npt.ArrayLike, weights: npt.ArrayLike | None = None
    ) -> tuple[Vector, Vector]:
        """Return the logarithms of the evidence for and against, after each label -> both of shape (n,).

        Args:
            values: What was found of each label in the order in which they came, in [0, 1]: 1 if the judge was right,
                or the mean of a document's rows.
            weights: In (0, 1], one over the probability with which each row was drawn, as a share of the largest such
                number of all rows; None: all were drawn alike.

        Raises:
            OptionError: If a weight is outside (0, 1].
        """
        x = np.asarray(values, dtype=np.float64)
        w = np.ones(len(x)) if weights is None else np.asarray(weights, np.float64)
        if not ((w > 0) & (w <= 1)).all():
            raise OptionError("weights of a sequential test lie in (0, 1]")
        apart = self.hoped - self.bar
        gain = apart / (self.bar * (1 - self.bar))
        loss = apart / (self.hoped * (1 - self.hoped))
        above = np.log1p(gain * w * (x - self.bar))
        below = np.log1p(-loss * w * (x - self.hoped))
        return np.cumsum(above), np.cumsum(below)

    def look(
        self,
        values: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
    ) -> Look:
        """Return the decision after these labels, in the order in which they came. Arguments: as of `evidence`."""
        above, below = self.evidence(values, weights)
        return _look(above, below, _mean(values, weights), self.alpha, self.beta)

    def expected(self, true: float) -> int:
        """Return about how many labels it takes to a decision where the share is `true` (Wald's approximation).

        Exact at neither end: the last label overshoots the bound, which makes it some 5 % more.
        """
        rises = math.log(self.hoped / self.bar)
        falls = math.log((1 - self.hoped) / (1 - self.bar))
        drift = true * rises + (1 - true) * falls
        bounds = -math.log(self.alpha), -math.log(self.beta)
        if drift == 0:
            spread = true * rises**2 + (1 - true) * falls**2
            return math.ceil(bounds[0] * bounds[1] / spread)
        return math.ceil((bounds[0] if drift > 0 else bounds[1]) / abs(drift))

    def fixed(self) -> int:
        """Return the labels that a test of a fixed number needs for the same two errors, by exact binomials."""
        return labels_for(self.bar, self.hoped, self.alpha, 1 - self.beta)


def _check(
    test: ShareTest | StrataTest | CoefficientTest, low: float, high: float
) -> None:
    if not low < test.bar < test.hoped < high:
        raise OptionError(
            f"a sequential test needs {low:g} < bar < hoped < {high:g}; it got bar {test.bar:g}, hoped {test.hoped:g}"
        )
    if not (0 < test.alpha < 1 and 0 < test.beta < 1):
        raise OptionError(
            f"errors of a sequential test lie between 0 and 1; they are {test.alpha:g} and {test.beta:g}"
        )


def _look(
    above: Vector, below: Vector, share: float, alpha: float, beta: float
) -> Look:
    """Return what the evidence for and against says, after each label -> both of shape (n,)."""
    n = len(above)
    if not n:
        return Look("open", 0, None, None, share)
    passing = _first(above, -math.log(alpha))
    failing = _first(below, -math.log(beta))
    if passing is None and failing is None:
        found = float(above[-1]), float(below[-1])
        return Look("open", n, None, _more(found, (alpha, beta), n), share)
    if failing is None or (passing is not None and passing < failing):
        return Look("passed", n, passing, None, share)
    return Look("failed", n, failing, None, share)


def _more(
    found: tuple[float, float], errors: tuple[float, float], labels: int
) -> int | None:
    """Return the labels to the nearer decision if the next ones are like those so far.

    found: the evidence for and against. errors: of passing and failing.
    """
    more = []
    for evidence, error in zip(found, errors, strict=True):
        if evidence > 0:
            more.append(-math.log(error) / (evidence / labels) - labels)
    return max(1, math.ceil(min(more))) if more else None


def _first(evidence: Vector, bound: float) -> int | None:
    """Return the number of labels at which the evidence first reached the bound."""
    reached = np.flatnonzero(evidence >= bound)
    return int(reached[0]) + 1 if len(reached) else None


def _mean(values: npt.ArrayLike, weights: npt.ArrayLike | None) -> float:
    x = np.asarray(values, dtype=np.float64)
    if not len(x):
        return math.nan
    w = np.ones(len(x)) if weights is None else np.asarray(weights, np.float64)
    return float(np.average(x, weights=w))


# Strata of verdicts --------------------------------------------------------------------------------------------------

#: Shares of rows that verdicts tell something of: fails found, passes passed, fails that people fail, rows decided as
#: people do, and rows that people pass.
Share = Literal["tnr", "tpr", "precision", "accuracy", "rate"]
#: The labels that what is expected of a stratum counts as.
_PRIOR = 2.0
#: The part of the labels that is drawn as the rows are, whatever is planned.
_ANYWHERE = 0.1
#: The rates of a judge that is planned for, where the bar is lower.
_USUAL = 0.75
#: The largest loss of one bet.
_BOLDEST = 0.9
#: Newton's steps to a distribution at the bar, and the farthest that it may be.
_STEPS = 12
_MOST_TILT = 20.0


def outcome(share: Share, judge: bool, people: bool) -> float:
    """Return whether the judge is right by a share: 1, 0, or NaN where the row does not count.

    judge, people: True for pass.
    """
    match share:
        case "tnr":
            return math.nan if people else float(not judge)
        case "tpr":
            return float(judge) if people else math.nan
        case "precision":
            return math.nan if judge else float(not people)
        case "accuracy":
            return float(judge == people)
        case "rate":
            return float(people)
        case never:
            assert_never(never)


@dataclass(frozen=True, slots=True)
class Strata:
    """The rows that the judge fails and those that it passes, in this order.

    rows: how many there are. drawn: their shares in what is drawn for labelling, as long as there are any. fails: the
    share in each that people are expected to fail, before a label is there.
    """

    rows: tuple[float, float]
    drawn: tuple[float, float]
    fails: tuple[float, float]

    @property
    def sizes(self) -> tuple[float, float]:
        """Their shares in all rows."""
        failed, passed = self.rows
        return failed / (failed + passed), passed / (failed + passed)


def planned(
    share: Share, rows: tuple[float, float], bar: float, hoped: float
) -> Strata:
    """Return strata with the shares in which they should be drawn to decide a bar (Neyman's allocation).

    For TPR most labels go to what the judge fails, for TNR to what it passes, for precision nearly all to what it
    fails. A tenth of the labels is drawn as the rows are.

    Args:
        share: What the bar is for.
        rows: The rows that the judge fails and those that it passes, some of each.
        bar: The bar, in (0, 1).
        hoped: What a good judge has, above the bar.

    >>> [round(share, 2) for share in planned("tpr", (30, 70), 0.8, 0.9).drawn]
    [0.75, 0.25]
    """
    failed = rows[0] / (rows[0] + rows[1])
    sizes = failed, 1 - failed
    rate = max(_USUAL, (bar + hoped) / 2)
    base = float(np.clip((failed - (1 - rate)) / (2 * rate - 1), 0.03, 0.97))
    of_failed = float(np.clip(base * rate / sizes[0], 0.05, 0.95))
    of_passed = float(np.clip(base * (1 - rate) / sizes[1], 0.03, 0.95))
    fails = of_failed, of_passed
    spread = []
    for stratum, size in enumerate(sizes):
        gains = _gains(share, stratum, bar)
        chances = np.array([fails[stratum], 1 - fails[stratum]])
        variance = float(chances @ gains**2 - (chances @ gains) ** 2)
        spread.append(size * math.sqrt(max(variance, 1e-6)))
    first = spread[0] / sum(spread)
    first = _ANYWHERE * failed + (1 - _ANYWHERE) * first
    return Strata(rows, (first, 1 - first), fails)


def _gains(share: Share, stratum: int, bar: float) -> Vector:
    """Return what a row of a stratum adds to the share above the bar, where people fail it and where they pass it."""
    found = []
    for people in (False, True):
        right = outcome(share, bool(stratum), people)
        found.append(0.0 if math.isnan(right) else right - bar)
    return np.array(found)


@dataclass(frozen=True, slots=True)
class StrataTest:
    """A test of a share against a bar, where the judge's verdicts of all rows are known.

    Of each label it takes how far the row lies from what was expected of its stratum, and of the strata what is
    expected of them (control variates). All expectations and bets rest on the labels before, so that the errors are
    exact for rows drawn at random in each stratum. Arguments: as of `ShareTest`.
    """

    share: Share
    bar: float
    hoped: float
    strata: Strata
    alpha: float = ALPHA
    beta: float = 0.1

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            OptionError: Unless 0 < bar < hoped < 1, and both errors are in (0, 1).
        """
        _check(self, 0.0, 1.0)

    def look(self, judge: npt.ArrayLike, people: npt.ArrayLike) -> Look:
        """Return the decision after these labels, in the order in which they came.

        Args:
            judge: Whether the judge passes each row.
            people: Whether people do.
        """
        ours = np.asarray(judge, dtype=np.bool_)
        theirs = np.asarray(people, dtype=np.bool_)
        above = self._evidence(self.bar, 1, ours, theirs)
        below = self._evidence(self.hoped, -1, ours, theirs)
        return _look(above, below, self._found(ours, theirs), self.alpha, self.beta)

    def _found(self, judge: Flags, people: Flags) -> float:
        """Return the share so far, strata weighed by their sizes; NaN where no row counts."""
        right = 0.0
        counts = 0.0
        for stratum, size in enumerate(self.strata.sizes):
            own = [
                outcome(self.share, verdict, truth)
                for verdict, truth in zip(judge, people, strict=True)
                if verdict == stratum
            ]
            counted = [one for one in own if not math.isnan(one)]
            if own:
                right += size * sum(counted) / len(own)
                counts += size * len(counted) / len(own)
        return right / counts if counts else math.nan

    def _evidence(self, bar: float, sign: int, judge: Flags, people: Flags) -> Vector:
        """Return the logarithms of what the bets gain, summed up to each label -> (n,).

        sign: 1 bets that the share is above the bar, -1 that it is below.
        """
        of = np.stack([~judge, judge], axis=1).astype(np.float64)
        fails = of * ~people[:, None]
        seen = np.cumsum(of, axis=0) - of  # before each label
        failed = np.cumsum(fails, axis=0) - fails
        expected = (failed + _PRIOR * np.array(self.strata.fails)) / (seen + _PRIOR)
        drawn = np.tile(self.strata.drawn, (len(judge), 1))
        whole = seen >= np.array(self.strata.rows)  # known then, and none is left
        expected[whole] = failed[whole] / seen[whole]
        drawn[whole] = 0.0
        drawn /= drawn.sum(axis=1, keepdims=True)
        sizes = np.array(self.strata.sizes)
        chances = np.stack([expected, 1 - expected], axis=2)
        gains = sign * np.stack([_gains(self.share, s, bar) for s in (0, 1)])
        middle = (chances * gains).sum(axis=2)
        every = middle @ sizes
        weights = np.divide(sizes, drawn, out=np.zeros_like(drawn), where=drawn > 0)
        values = weights[:, :, None] * (gains - middle[:, :, None])
        values += every[:, None, None]
        square = _square_at_bar(values, drawn[:, :, None] * chances)
        counted = np.stack([_counted(self.share, s) for s in (0, 1)])
        step = (chances * counted).sum(axis=2) @ sizes * (self.hoped - self.bar)
        worst = np.where(drawn[:, :, None] > 0, values, 0.0).min(axis=(1, 2))
        stake = step / np.maximum(square, 1e-9)
        stake = np.minimum(stake, _BOLDEST / np.maximum(-worst, 1e-9))
        own = values[np.arange(len(judge)), judge.astype(int), people.astype(int)]
        return np.cumsum(np.log1p(stake * own))


def _square_at_bar(values: Vector, chances: Vector) -> Vector:
    """Return the mean squares of values where their mean is 0, -> (n,).

    Of all distributions with that mean it takes the one nearest to what is expected (an exponential tilt). A bet of a
    gain over that square is Kelly's where there are two outcomes.

    Args:
        values: what may come, (n, strata, 2).
        chances: how likely it is expected to be, of the same shape.
    """
    tilt = np.zeros(len(values))
    for _ in range(_STEPS):
        likely = chances * np.exp(-tilt[:, None, None] * values)
        likely /= likely.sum(axis=(1, 2), keepdims=True)
        mean = (likely * values).sum(axis=(1, 2))
        square = (likely * values**2).sum(axis=(1, 2))
        slope = np.maximum(square - mean**2, 1e-9)
        tilt = np.clip(tilt + np.clip(mean / slope, -1, 1), -_MOST_TILT, _MOST_TILT)
    return np.asarray(square)


def _counted(share: Share, stratum: int) -> Vector:
    """Return 1 where a row of a stratum counts, if people fail it and if they pass it."""
    right = [outcome(share, bool(stratum), people) for people in (False, True)]
    return np.array([float(not math.isnan(one)) for one in right])


# Coefficients --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CoefficientTest:
    """An asymptotic test of a coefficient against a bar, which may be looked at after every label.

    On the scale of atanh a coefficient moves around its true value as a random walk does, of which the jackknife tells
    the step. Against that walk the evidence is Wald's, mixed with that for a judge far above (or below) what it is for.
    Before `FIRST` labels nothing is decided, as the jackknife tells too little; errors are those measured in
    `experiments/results/audits.md`.

    low, high: the range of the coefficient.
    """

    bar: float
    hoped: float
    low: float = -1.0
    high: float = 1.0
    alpha: float = ALPHA
    beta: float = 0.1

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            OptionError: Unless low < bar < hoped < high, and both errors are in (0, 1).
        """
        _check(self, self.low, self.high)

    def evidence(self, value: float, left_out: npt.ArrayLike) -> tuple[float, float]:
        """Return the logarithms of the evidence for and against, of a coefficient of all labels so far.

        Args:
            value: The coefficient.
            left_out: The coefficient without each label (or document) in turn.

        Returns:
            0 for both where a value is undefined, or nothing varies.
        """
        others = self._stretched(np.asarray(left_out, dtype=np.float64))
        n = len(others)
        middle = float(self._stretched(np.array([value]))[0])
        square = float(((others - others.mean()) ** 2).sum()) * (n - 1) / n
        if not square > 1e-12 or math.isnan(middle):
            return 0.0, 0.0
        better = (self.hoped + self.high) / 2
        worse = max(self.bar - 2 * (self.hoped - self.bar), (self.bar + self.low) / 2)
        marks = self._stretched(np.array([self.bar, self.hoped, better, worse]))
        bar, hoped, better, worse = marks.tolist()
        sure = (n - 3) / n / square
        above = _mixed(sure, middle - bar, (hoped - bar, better - bar))
        below = _mixed(sure, hoped - middle, (hoped - bar, hoped - worse))
        return above, below

    def _stretched(self, values: Vector) -> Vector:
        middle = (self.low + self.high) / 2
        reach = self.high - middle
        return np.asarray(np.arctanh(np.clip((values - middle) / reach, *_WITHIN)))

    def look(
        self, looks: Sequence[tuple[int, float, npt.ArrayLike]], labels: int
    ) -> Look:
        """Return the decision after these labels.

        Args:
            looks: The labels at each look, from the first one, with the arguments of `evidence`.
            labels: All labels so far.
        """
        share = looks[-1][1] if looks else math.nan
        above = below = 0.0
        for count, value, left_out in looks:
            above, below = self.evidence(value, left_out)
            if above >= -math.log(self.alpha):
                return Look("passed", labels, count, None, share)
            if below >= -math.log(self.beta):
                return Look("failed", labels, count, None, share)
        more = _more((above, below), (self.alpha, self.beta), labels)
        return Look("open", labels, None, more, share)


def _mixed(sure: float, away: float, steps: tuple[float, float]) -> float:
    """Return the logarithm of the evidence that a walk rises by a step, mostly by the first, now and then by the other.

    sure: one over the variance of where the walk is. away: how far that is from the start.
    """
    parts = [sure * (step * away - step**2 / 2) for step in steps]
    weights = np.array([1 - _FAR, _FAR])
    return float(scipy.special.logsumexp(parts, b=weights))


#: The weight of judges that are much better, or worse, than the test is for.
_FAR = 0.2
#: Labels before which a coefficient is not decided.
FIRST = 20
#: From this many labels on, a coefficient is looked at after every fifth.
OFTEN = 100
#: Where the scale of atanh is cut.
_WITHIN = -1 + 1e-9, 1 - 1e-9


def looks_of(labels: int) -> list[int]:
    """Return the numbers of labels at which a coefficient is looked at.

    >>> looks_of(23)
    [20, 21, 22, 23]
    """
    return [
        n for n in range(FIRST, labels + 1) if n <= OFTEN or n % 5 == 0 or n == labels
    ]


# A fixed number of labels --------------------------------------------------------------------------------------------


def power(bar: float, true: float, labels: int, alpha: float = 0.05) -> float:
    """Return how often a share passes a test of a fixed number of labels, by exact binomials.

    >>> round(power(0.8, 0.9, 118), 2)
    0.92
    """
    needed = int(scipy.stats.binom.isf(alpha, labels, bar)) + 1
    return float(scipy.stats.binom.sf(needed - 1, labels, true))


def labels_for(
    bar: float, true: float, alpha: float = 0.05, wanted: float = 0.9
) -> int:
    """Return the least labels from which on a fixed-number test finds `true` with this power, up to `MOST`.

    >>> labels_for(0.8, 0.9)
    118
    """
    normal = scipy.stats.norm.ppf
    reach = normal(1 - alpha) * math.sqrt(bar * (1 - bar))
    reach += normal(wanted) * math.sqrt(true * (1 - true))
    n = max(2, int(0.5 * (reach / (true - bar)) ** 2))
    run = 0
    while n < MOST and run < 4:  # the exact power is jagged: four in a row
        run = run + 1 if power(bar, true, n, alpha) >= wanted else 0
        n += 1
    return n - run
