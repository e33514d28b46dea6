"""How well people agree among themselves: the ceiling of a judge."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...errors import LabelsError
from ..correlation import LARGEST, Coefficient, Level, Vector
from ..resampling import RowSet
from ..significance import against_others, krippendorff_alpha, rater_ceiling
from .inputs import MANY, Aspect, How, Units
from .intervals import Cell, Flags, batches, bound_mean


def ceilings(
    ratings: Mapping[str, npt.ArrayLike],
    aspects: Sequence[Aspect],
    levels: Sequence[Level],
    names: Sequence[str],
    how: How,
) -> list[dict[str, Any]]:
    """Per aspect, level and coefficient: a rater with the mean of the others, averaged over the raters, with the same
    interval as a judge has."""
    found = []
    for aspect in aspects:
        if aspect.name not in ratings:
            continue
        table = _table(aspect, ratings[aspect.name])
        raters = int(np.count_nonzero(~np.isnan(table), axis=1).max(initial=0))
        if raters < 2:
            continue
        alpha = krippendorff_alpha(table)
        units, sets = _sets(aspect, table)
        for level, name in itertools.product(levels, names):
            if name.startswith("accuracy"):
                continue
            coefficient = cast(Coefficient, "sum" if name == "q" else name)
            cell = _ceiling(aspect, table, units, sets, level, coefficient, how)
            found.append(
                {
                    "aspect": aspect.name,
                    "level": level,
                    "coefficient": name,
                    "value": cell.value,
                    "low": cell.low,
                    "high": cell.high,
                    "raters": raters,
                    "alpha": alpha,
                    "reason": cell.reason,
                }
            )
    return found


def _table(aspect: Aspect, ratings: npt.ArrayLike) -> Vector:
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(aspect.rows):
        raise LabelsError(f"ratings of {aspect.name!r}: expected {len(aspect.rows)} rows of raters, got {table.shape}")
    if (np.abs(table) > LARGEST).any():
        raise LabelsError(f"ratings of {aspect.name!r}: a rating is infinite; correct it, or leave it empty")
    return np.asarray(table[aspect.rows])


def _sets(aspect: Aspect, table: Vector) -> tuple[Units, list[RowSet]]:
    """The documents and systems that two raters saw, and per rater the rows with the mean of the others'."""
    seen = np.count_nonzero(~np.isnan(table), axis=1) > 1
    units = aspect.only(seen)
    place = np.cumsum(seen) - 1
    sets: list[RowSet] = []
    for rows, own, others in against_others(table):
        where = place[rows]
        sets.append((own, others, units.doc[where], None if units.sys is None else units.sys[where]))
    return units, sets


def _ceiling(
    aspect: Aspect,
    table: Vector,
    units: Units,
    sets: Sequence[RowSet],
    level: Level,
    coefficient: Coefficient,
    how: How,
) -> Cell:
    def value(rows: Flags) -> Any:
        doc, sys = (None if codes is None else codes[rows] for codes in (aspect.doc, aspect.sys))
        return rater_ceiling(table[rows], coefficient=coefficient, level=level, documents=doc, systems=sys)

    whole = value(np.ones(len(table), dtype=np.bool_))
    cell = Cell(whole.value, units.rows, 0, 0, len(table), whole.reason)
    if how.rounds and not math.isnan(cell.value):
        if how.over == "documents" and (units.rows if level == "pooled" else units.documents) > MANY:
            batches(cell, aspect, level, coefficient, lambda rows: float(value(rows).value), how)
        else:
            bound_mean(cell, sets, units, level, coefficient, how)
    return cell
