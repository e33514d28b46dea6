"""The agreement of every judge, aspect, level and coefficient."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..correlation import Coefficient, CorrelationSum, Level, Vector, correlate
from .accuracy import accuracy
from .decided import LEVEL_OF, decided_cell
from .inputs import AVERAGE, Aspect, How
from .intervals import Cell, bound, limit


def agreements(
    judges: Sequence[str],
    aspects: Sequence[Aspect],
    levels: Sequence[Level],
    names: Sequence[str],
    how: How,
    decided: Mapping[str, Sequence[str]],
    notes: list[str],
) -> list[dict[str, Any]]:
    """names: coefficients, at every level; decided: by aspect, measures that have a level of their own."""
    found = []
    of_decisions = list(dict.fromkeys(name for own in decided.values() for name in own))
    wanted = [*itertools.product(levels, names), *((LEVEL_OF[name], name) for name in of_decisions)]
    for judge, (level, name) in itertools.product(judges, wanted):
        if name == "accuracy_cross" and level == "system":
            continue  # there is no epsilon to choose
        cells = []
        for aspect in aspects:
            if judge in aspect.x and (name not in LEVEL_OF or name in decided[aspect.name]):
                own = name in LEVEL_OF
                cell = decided_cell(aspect, judge, name, how, notes) if own else _cell(aspect, judge, level, name, how)
                cells.append(cell)
                found.append({"judge": judge, "aspect": aspect.name, "level": level, "coefficient": name} | cell.row())
        if len(cells) > 1 and len(cells) == len(aspects):
            mean = _average(cells, how)
            found.append({"judge": judge, "aspect": AVERAGE, "level": level, "coefficient": name} | mean.row())
    order = {judge: i for i, judge in enumerate(judges)}
    place = {a.name: i for i, a in enumerate(aspects)}
    return sorted(found, key=lambda r: (order[r["judge"]], place.get(r["aspect"], len(place))))


def _cell(aspect: Aspect, judge: str, level: Level, name: str, how: How) -> Cell:
    x, y, doc, sys = aspect.x[judge], aspect.y, aspect.doc, aspect.sys
    if name.startswith("accuracy"):
        return accuracy(aspect, judge, level, how, cross=name == "accuracy_cross")
    coefficient = cast(Coefficient, "sum" if name == "q" else name)
    plain = correlate(x, y, coefficient=coefficient, level=level, documents=doc, systems=sys)
    cell = Cell(plain.value, plain.n, plain.skipped, plain.failed, len(y), plain.reason)
    if coefficient == "sum" and not np.isnan(x).all():
        objective = CorrelationSum(level)(x, y, doc, sys)
        cell.value, cell.n, cell.reason = objective.q, objective.n, objective.reason
    if how.rounds and not math.isnan(cell.value):
        bound(cell, aspect, x, level, coefficient, how)
    return cell


def _average(cells: Sequence[Cell], how: How) -> Cell:
    """Plain mean over the aspects, as the papers form it, with an interval if all rest on the same rows."""
    value = float(np.mean([c.value for c in cells]))
    mean = Cell(
        value,
        min(c.n for c in cells),
        sum(c.skipped for c in cells),
        max(c.failed for c in cells),
        min(c.rows for c in cells),
        next((c.reason for c in cells if c.reason), None),
    )
    if not how.rounds or math.isnan(value):
        return mean
    if any(c.drawn is None for c in cells) or len({c.key for c in cells}) > 1:
        mean.reason = "no interval: the aspects do not rest on the same resamples"
        return mean
    drawn = np.mean([c.drawn for c in cells if c.drawn is not None], axis=0)
    if (first := cells[0].agreement) is not None:
        functions = [f for c in cells if c.agreement is not None for f in c.agreement.statistics]

        def statistic(counts: Vector) -> Vector:
            return np.asarray(np.mean([f(counts) for f in functions], axis=0))

        mean.agreement = replace(first, statistics=[statistic], values=[value])
    limit(mean, drawn, how)
    return mean
