"""Rows to label for estimating a judge's agreement with people.

On these rows the judge agrees with a second judge, who stands in for people, as it does on all rows. Source: Unell,
Dullerud et al. 2026, Metric Match (arXiv:2606.15029).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from judgesmith.agreement.correlation import Vector, rowwise, vector
from judgesmith.errors import OptionError

#: Subsets that are drawn at random, the best of which is taken, and how many are compared at a time.
TRIES = 2000
AT_ONCE = 200
#: The coefficients that a subset is to reproduce.
MATCHED = ("pearson", "spearman", "kendall")
#: With fewer rows a correlation says nothing.
FEWEST = 4


def matched_rows(
    judge: npt.ArrayLike,
    stand_in: npt.ArrayLike,
    n: int,
    *,
    free: npt.ArrayLike | None = None,
    seed: int = 0,
) -> list[int]:
    """Return the places of `n` rows on which two judges agree as on all rows.

    Pearson, Spearman and Kendall correlations are compared (mean distance), over `TRIES` random subsets.

    Args:
        judge: the scores whose agreement is to be estimated, one per row.
        stand_in: another judge's scores, in place of people's; rows with NaN are not taken.
        n: rows to take.
        free: mask of the rows that may be taken; all by default.
        seed: seed of the subsets.

    Returns:
        Places from 0, in their order.

    Raises:
        OptionError: If scores do not fit each other, are constant, or are fewer than `n`.

    >>> matched_rows([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], 5)
    [0, 1, 2, 3, 4]
    """
    x = vector(judge, "judge", missing=True)
    y = vector(stand_in, "stand-in", missing=True)
    if len(x) != len(y):
        raise OptionError(
            f"the judge has {len(x)} scores and its stand-in {len(y)}; give one per row each"
        )
    scored = ~(np.isnan(x) | np.isnan(y))
    able = np.flatnonzero(
        scored if free is None else scored & np.asarray(free, dtype=np.bool_)
    )
    if not FEWEST <= n <= len(able):
        raise OptionError(
            f"n is {n}; take {FEWEST} rows or more, and at most the {len(able)} that both judges scored"
        )
    whole = _coefficients(x[None, scored], y[None, scored])[0]
    if np.isnan(whole).all():
        raise OptionError(
            "the judges' scores are constant: there is no agreement to match"
        )
    rng = np.random.default_rng(seed)
    best = able[:n]
    least = np.inf
    for _ in range(0, TRIES, AT_ONCE):
        drawn = rng.permuted(np.tile(able, (AT_ONCE, 1)), axis=1)[:, :n]
        apart = np.abs(_coefficients(x[drawn], y[drawn]) - whole).mean(axis=1)
        apart[np.isnan(apart)] = np.inf
        if apart.min() < least:
            least = float(apart.min())
            best = drawn[int(apart.argmin())]
    return sorted(best.tolist())


def _coefficients(x: Vector, y: Vector) -> Vector:
    return rowwise(x, y, MATCHED)
