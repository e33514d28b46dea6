"""How sure a judge's scores are, from what it gave labelled rows that it had not learnt from."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from ...agreement.conformal import conformal_quantile
from ...errors import OptionError
from ...programs.calibration import Calibration
from ...programs.sureness import Sureness
from ...signatures.values import Scale
from ..examples import Vector
from .heads import folds

__all__ = ["COVERAGES", "calibrated_without", "fit_sureness"]

COVERAGES = (0.5, 0.8, 0.9, 0.95)
#: Rows that each stretch of raw scores needs, to have an expected error of its own.
ROWS_A_KNOT = 12
MOST_KNOTS = 5
#: Rows with the mean error that are added to each stretch's: few labels hardly tell one stretch from another.
PRIOR_ROWS = 12
#: The smallest expected error, as a share of the scale.
LEAST = 0.01


def calibrated_without(
    percent: Vector, human: Vector, groups: Sequence[Hashable], scale: Scale, *, seed: int = 0
) -> Vector:
    """Scores on the user's scale of raw percents, mapped row by row as the other groups' rows teach (five folds of
    whole groups); NaN where the percent is, and everywhere for fewer than two groups."""
    scores = np.full(len(percent), np.nan)
    try:
        parts = folds(groups, seed=seed)
    except OptionError:
        return scores
    for rows in parts:
        rest = np.setdiff1d(np.arange(len(percent)), rows)
        mapped = Calibration.fit(percent[rest], human[rest], scale)
        scores[rows] = [mapped(p) if np.isfinite(p) else np.nan for p in percent[rows].tolist()]
    return scores


def fit_sureness(
    percent: Vector, scores: Vector, human: Vector, groups: Sequence[Hashable], scale: Scale
) -> Sureness | None:
    """Intervals for scores to come.

    percent, scores: raw and on the user's scale, of rows that the judge had not learnt from; NaN rows are left out.
    human: human ratings of them; groups: rows that belong together. None where no row is left.
    """
    there = np.isfinite(percent) & np.isfinite(scores) & np.isfinite(human)
    if not there.any():
        return None
    x, off = percent[there], np.abs(scores - human)[there]
    members = [group for group, ok in zip(groups, there, strict=True) if ok]
    floor = LEAST * (scale.high - scale.low)
    knots, errors = _expected(x, np.maximum(off, floor))
    times = off / np.interp(x, knots, errors)
    reach = [conformal_quantile(times, coverage, documents=members) for coverage in COVERAGES]
    return Sureness(
        tuple(knots.round(3).tolist()), tuple(errors.round(6).tolist()), COVERAGES,
        tuple(round(r, 6) + 1e-6 if np.isfinite(r) else None for r in reach), len(x), len(set(members)),
    )  # fmt: skip


def _expected(x: Vector, off: Vector) -> tuple[Vector, Vector]:
    """Mean errors along the raw scores, in equally filled stretches, drawn towards the mean of all."""
    order = np.argsort(x, kind="stable")
    parts = np.array_split(order, max(1, min(MOST_KNOTS, len(x) // ROWS_A_KNOT)))
    centres = np.array([x[part].mean() for part in parts]).round(3)
    sums, rows = (np.array([f(off[part]) for part in parts], dtype=float) for f in (np.sum, len))
    centres, same = np.unique(centres, return_inverse=True)
    sums, rows = np.bincount(same, sums), np.bincount(same, rows)
    return centres, (sums + PRIOR_ROWS * off.mean()) / (rows + PRIOR_ROWS)
