"""Is a share at least a bar? Labels come one by one, and the answer holds whenever they stop.

A judge finds a share of the answers that people fail. Is it 80 % or more? A test of a fixed number of labels may be
looked at once. This one may be looked at after every label, and stops as soon as it is decided: a share below the bar
passes with probability `alpha` at most, a share of `hoped` or more fails with probability `beta` at most, however often
and whenever one looks (Ville 1939). Of the labels that a fixed number needs, it takes about 60 % where the share is as
hoped, and less than half where it lies well above or below the bar (`tests/agreement/test_sequential.py`).

Sources: Wald 1945, Sequential tests of statistical hypotheses; Waudby-Smith and Ramdas 2024 (arXiv:2010.09686), whose
bets allow values between 0 and 1, and rows that were drawn with unequal probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.errors import OptionError

Vector = npt.NDArray[np.float64]
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
        if not 0 < self.bar < self.hoped < 1:
            raise OptionError(
                f"a sequential test needs 0 < bar < hoped share < 1; it got bar {self.bar:g}, hoped {self.hoped:g}"
            )
        if not (0 < self.alpha < 1 and 0 < self.beta < 1):
            raise OptionError(
                f"errors of a sequential test lie between 0 and 1; they are {self.alpha:g} and {self.beta:g}"
            )

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
        n = len(above)
        share = _mean(values, weights)
        passing = _first(above, -math.log(self.alpha))
        failing = _first(below, -math.log(self.beta))
        if passing is None and failing is None:
            return Look("open", n, None, self._more(above, below, n), share)
        if failing is None or (passing is not None and passing < failing):
            return Look("passed", n, passing, None, share)
        return Look("failed", n, failing, None, share)

    def _more(self, above: Vector, below: Vector, n: int) -> int | None:
        """Return the labels to the nearer decision if the next ones are like those so far."""
        if not n:
            return None
        found = []
        for evidence, error in ((above, self.alpha), (below, self.beta)):
            step = float(evidence[-1]) / n
            if step > 0:
                found.append(-math.log(error) / step - n)
        return max(1, math.ceil(min(found))) if found else None

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
