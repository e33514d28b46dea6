"""Is it worse than before? The same inputs, scored before and now, with the level shared over all looks.

A gate that asks at every commit whether a mean is above a bar fails by chance, again and again, and does not see what
got worse above the bar. This test compares each input with itself, so that what the inputs differ in leaves the
difference. In `looks` commits that change nothing it alarms with probability `alpha` at most (Bonferroni: for any
dependence of the looks, which share their baseline).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr, stdtrit

from judgesmith.agreement.correlation import id_codes, vector
from judgesmith.errors import LabelsError
from judgesmith.tables import p_in_words

#: The share of commits that are worse by the size that is named which the test finds.
FOUND = 0.9
#: The looks that a gate's error is shared over by default.
LOOKS = 50
#: The error that they share.
ALPHA = 0.05


def level_of_look(alpha: float, looks: int, tests: int = 1) -> float:
    """Return the p-value at which each of the tests of one look alarms.

    In `looks` looks, any test alarms falsely with probability `alpha` at most.
    """
    return alpha / looks / max(1, tests)


@dataclass(frozen=True, slots=True)
class Paired:
    """A mean now less the same mean before."""

    difference: float
    """Above 0: better than before."""
    low: float
    high: float
    """The 95 % interval of the difference; NaN for a single document."""
    p: float
    """One-sided: of being worse by chance. 1 where nothing changed."""
    level: float
    """The p below which it is worse."""
    n: int
    """Inputs that both runs scored."""
    documents: int
    finds: float
    """The size of a loss that is found in 90 % of cases; NaN where nothing changed, so that nothing says how much the
    scores vary."""

    @property
    def worse(self) -> bool:
        """Return True if it is worse than before, by more than chance."""
        return self.p < self.level

    def __str__(self) -> str:
        ends = "" if math.isnan(self.low) else f" [{self.low:+.3f}, {self.high:+.3f}]"
        told = f"{self.difference:+.3f}{ends} on {self.n} inputs"
        if self.p < 1:
            told += f", {p_in_words(self.p)} (level {self.level:.2g})"
        if not math.isnan(self.finds):
            told += (
                f"; a loss of {self.finds:.3f} would be found in {FOUND:.0%} of cases"
            )
        return told


def paired(
    now: npt.ArrayLike,
    then: npt.ArrayLike,
    documents: Iterable[Hashable] | None = None,
    *,
    alpha: float = ALPHA,
    looks: int = LOOKS,
) -> Paired:
    """Return whether values are lower than the same inputs' values before, by Student's t over documents.

    Args:
        now: One value for each input, in the same order as `then`; NaN where there is none.
        then: The values before.
        documents: The document of each input, as inputs of one are no independent evidence; None: each is one.
        alpha: The probability of a false alarm in all looks together.
        looks: How often the question is asked.

    Raises:
        LabelsError: If no input has both values.
    """
    a = vector(now, "now", missing=True)
    b = vector(then, "then", missing=True)
    codes = np.arange(len(a))
    if documents is not None:
        codes = id_codes(list(documents), len(a), "documents")
    both = ~np.isnan(a) & ~np.isnan(b)
    if len(a) != len(b) or not both.any():
        raise LabelsError(
            "no input has a score now and before; compare runs of the same inputs"
        )
    change = a[both] - b[both]
    code = np.unique(codes[both], return_inverse=True)[1]
    count = int(code.max()) + 1
    n = len(change)
    mean = float(change.mean())
    level = level_of_look(alpha, looks)
    sums = np.bincount(code, change)
    if not sums.any() or count < 2:
        return Paired(mean, math.nan, math.nan, 1.0, level, n, count, math.nan)
    errors = np.bincount(code, change - mean)
    error = math.sqrt(count / (count - 1) * float(errors @ errors)) / n
    freedom = count - 1
    # However equal the changes are: m documents that changed fall on one side by chance in 1 of 2 ** m cases.
    p = 0.5 ** int(np.count_nonzero(sums))
    if error > 0:
        p = max(p, float(stdtr(freedom, mean / error)))
    half = float(stdtrit(freedom, 0.975)) * error
    finds = float(stdtrit(freedom, 1 - level) + ndtri(FOUND)) * error
    p = p if mean < 0 else max(p, 0.5)
    return Paired(mean, mean - half, mean + half, p, level, n, count, finds)
