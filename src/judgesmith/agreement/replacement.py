"""How far a judge is on the way to one human rater."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from ..errors import LabelsError
from .correlation import id_codes, impute, vector
from .resampling import Agreement, Estimate, Range, limits
from .significance import against_others


def way_to_rater(
    judge: npt.ArrayLike,
    ratings: npt.ArrayLike,
    *,
    documents: Iterable[Hashable] | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """How far a judge is on the way from guessing (0) to one human rater (1, and beyond): the unit that compares sets,
    where Q depends on how well people agree.

    Of each rater in turn, and of the judge, Q with the mean of the other raters on the same rows is taken; the judge's
    mean over its raters' mean. judge: one score a row, on any scale, NaN where it failed (imputed, as in Q). ratings:
    shape (rows, raters), NaN where there is none. The interval is of resampled documents (95 % ones held the truth in
    96 to 98 % of 200 simulated samples of 4 to 60 documents); all is NaN where raters do not agree beyond chance.

    >>> way_to_rater([1, 2, 3, 4, 5, 6], [[1, 2], [2, 2], [3, 4], [4, 3], [5, 5], [6, 6]], rounds=0).value > 1
    True
    """
    x, table = vector(judge, "judge", missing=True), np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(x):
        raise LabelsError(f"ratings have shape {table.shape}; {len(x)} rows of raters are needed")
    codes = np.arange(len(x)) if documents is None else id_codes(documents, len(x), "documents")
    x, count = impute(x) if not np.isnan(x).all() else np.zeros(len(x)), int(codes.max(initial=-1)) + 1
    sides = against_others(table)
    people = Agreement.of_mean([(own, rest, codes[rows], None) for rows, own, rest in sides], count, "pooled", "sum")
    ours = Agreement.of_mean([(x[rows], rest, codes[rows], None) for rows, _, rest in sides], count, "pooled", "sum")
    if math.isnan(people.values[0]) or people.values[0] <= 0:
        return Estimate(math.nan)
    value = (0.0 if math.isnan(ours.values[0]) else ours.values[0]) / people.values[0]
    if not rounds or people.reason or ours.reason:
        return Estimate(value)
    above, below = (side.resample(rounds, seed)[0][0] for side in (ours, people))
    if np.quantile(below, (1 - confidence) / 2) <= 0:
        return Estimate(math.nan)
    with np.errstate(divide="ignore", invalid="ignore"):  # of a few draws, in which raters do not agree at all
        drawn = above / below
    return Estimate(value, *limits(drawn, value, count, Range(-math.inf, math.inf), confidence))
