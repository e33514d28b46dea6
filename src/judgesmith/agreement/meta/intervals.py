"""Intervals of agreements: what is drawn again, and how the limits come from the draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from ...errors import OptionError
from ..correlation import (
    Codes,
    Coefficient,
    CorrelationSum,
    Level,
    Vector,
    correlate,
    parts_of,
    rowwise,
    tidy,
    within_documents,
)
from ..resampling import Agreement, Measure, RowSet, WeightedRows, limits
from .inputs import MANY, Aspect, How, Units

BATCHES = 50
_CELLS = 1_000_000  # weights at a time

Flags = npt.NDArray[np.bool_]


@dataclass
class Cell:
    """A coefficient and its resamples; `agreement` is what its interval is computed from."""

    value: float
    n: int
    skipped: int
    failed: int
    rows: int
    reason: str | None
    low: float = math.nan
    high: float = math.nan
    interval: str = ""
    drawn: Vector | None = None
    key: Any = None
    agreement: Agreement | None = None

    def row(self) -> dict[str, Any]:
        names = ("value", "low", "high", "n", "skipped", "failed", "rows", "interval", "reason")
        return {name: getattr(self, name) for name in names}


def bound(cell: Cell, aspect: Aspect, x: Vector, level: Level, coefficient: Coefficient, how: How) -> None:
    """Give the cell of a judge its interval, or the reason why it has none."""
    y, doc, sys = aspect.y, aspect.units, aspect.sys
    usable = ~np.isnan(x)
    units = aspect.only(usable)
    if how.over != "documents" or units.documents < 2:
        cell.reason = too_few(units, how)
        if cell.reason is None:
            _bound_drawn(cell, [(x[usable], y[usable], units.doc, units.sys)], units, level, coefficient, how)
            cell.key = (how.over, usable.tobytes())
        return
    if (len(y) if level == "pooled" else units.documents) > MANY:
        batches(cell, aspect, level, coefficient, lambda rows: _value(aspect, x, rows, level, coefficient), how)
        return
    cell.agreement = Agreement.of([x], Measure(y, documents=doc, systems=sys, level=level, coefficient=coefficient))
    if cell.agreement.reason:
        cell.reason = cell.agreement.reason
        return
    cell.key = aspect.rows.tobytes() + (b"" if coefficient == "sum" else usable.tobytes())
    limit(cell, cell.agreement.resample(how.rounds, how.seed)[0][0], how)


def bound_mean(
    cell: Cell, sets: Sequence[RowSet], units: Units, level: Level, coefficient: Coefficient, how: How
) -> None:
    """Give the mean agreement of several sets of the same documents and systems its interval."""
    cell.reason = too_few(units, how)
    if cell.reason is not None:
        return
    if how.over != "documents":
        _bound_drawn(cell, sets, units, level, coefficient, how)
        return
    cell.agreement = Agreement.of_mean(sets, units.documents, level, coefficient, cell.value)
    cell.reason = cell.agreement.reason
    if cell.reason is None:
        limit(cell, cell.agreement.resample(how.rounds, how.seed)[0][0], how)


def _bound_drawn(
    cell: Cell, sets: Sequence[RowSet], units: Units, level: Level, coefficient: Coefficient, how: How
) -> None:
    drawn = mean_defined([drawn_systems(rows, units, level, coefficient, how) for rows in sets])
    number = units.systems if how.over == "systems" else min(units.systems, units.documents)
    cell.agreement = Agreement([], [cell.value], number, units.rows, coefficient == "sum", None)
    limit(cell, drawn, how)


def too_few(units: Units, how: How) -> str | None:
    """Why there is nothing to draw again. Raises OptionError if systems are to be drawn and there are none."""
    if how.over == "documents":
        return "one document cannot be resampled: no interval" if units.documents < 2 else None
    if units.sys is None:
        raise OptionError("systems are to be resampled, but no system is named; take over='documents'")
    if units.systems < 3 or (how.over == "both" and units.documents < 2):
        return f"{units.systems} systems and {units.documents} documents are too few to be resampled"
    return None


def limit(cell: Cell, drawn: Vector, how: How) -> None:
    assert cell.agreement is not None
    defined = drawn[~np.isnan(drawn)]
    if len(defined) < how.rounds / 2:
        cell.reason = f"undefined in {len(drawn) - len(defined)} of {how.rounds} resamples: scores too often constant"
        return
    cell.drawn, cell.interval = drawn, how.interval
    cell.low, cell.high = limits(defined, cell.agreement, how.confidence, how.interval)
    no_width(cell)


def no_width(cell: Cell) -> None:
    if cell.high - cell.low < 1e-9:
        cell.reason = "the same in every resample: an interval of no width does not mean certainty"


def mean_defined(draws: Sequence[Vector]) -> Vector:
    """Mean of several vectors of resamples, of those that are defined; NaN where none is."""
    table = np.stack(draws)
    defined = np.count_nonzero(~np.isnan(table), axis=0).astype(np.float64)
    defined[defined == 0] = np.nan
    return np.asarray(np.nansum(table, axis=0) / defined)


# What is drawn -------------------------------------------------------------------------------------------------------


def draw(units: Units, how: How) -> tuple[Vector, Codes | None]:
    """How often each document is drawn, (rounds, documents), and which systems are, (rounds, systems) or None for
    each once. Source: Deutsch et al. 2021 (boot-inputs, boot-systems, boot-both: drawn independently)."""
    rng = np.random.default_rng(how.seed)
    times = np.ones((how.rounds, units.documents))
    if how.over != "systems":
        share = np.full(units.documents, 1 / units.documents)
        times = rng.multinomial(units.documents, share, size=how.rounds).astype(np.float64)
    if how.over == "documents":
        return times, None
    return times, rng.integers(units.systems, size=(how.rounds, units.systems))


def drawn_systems(rows: RowSet, units: Units, level: Level, coefficient: Coefficient, how: How) -> Vector:
    """Agreement in resamples of the systems, or of systems and documents -> (rounds,), NaN where undefined."""
    x, y, doc, sys = rows
    assert sys is not None
    names = parts_of(coefficient)
    times_doc, picked = draw(units, how)
    assert picked is not None
    if level == "pooled":
        parts = _drawn_pooled(x, y, doc, sys, times_doc, picked, names)
    elif level == "system":
        parts = _drawn_means(x, y, doc, sys, times_doc, picked, names)
    else:
        parts = _drawn_within(x, y, doc, sys, times_doc, picked, names)
    return np.asarray(np.nansum(parts, axis=1) if coefficient == "sum" else parts[:, 0])


def _drawn_pooled(
    x: Vector, y: Vector, doc: Codes, sys: Codes, times_doc: Vector, picked: Codes, names: Sequence[str]
) -> Vector:
    weighted = WeightedRows(x, y, np.arange(len(x)), names)
    step = max(1, _CELLS // len(x))
    parts = []
    for start in range(0, len(picked), step):
        weights = times_of(picked[start : start + step])[:, sys] * times_doc[start : start + step][:, doc]
        alive = weights.sum(axis=1) > 0
        value = np.full((len(weights), len(names)), np.nan)
        value[alive] = weighted(weights[alive])
        parts.append(value)
    return np.concatenate(parts)


def times_of(picked: Codes) -> Vector:
    """How often each system was drawn: (rounds, systems) of names -> (rounds, systems) of counts."""
    systems = picked.shape[1]
    return np.stack([np.bincount(row, minlength=systems) for row in picked]).astype(np.float64)


def means_of_systems(x: Vector, y: Vector, doc: Codes, sys: Codes, times_doc: Vector, systems: int) -> list[Vector]:
    """Means of x and of y per system when documents count that often -> (rounds, systems) each, NaN without rows."""
    shape = (times_doc.shape[1], systems)
    cell = doc * systems + sys
    sums = [np.bincount(cell, weights=w, minlength=shape[0] * systems).reshape(shape) for w in (x, y, np.ones(len(x)))]
    sum_x, sum_y, rows = (times_doc @ table for table in sums)
    rows[rows == 0] = np.nan
    return [tidy(s / rows) for s in (sum_x, sum_y)]


def _drawn_means(
    x: Vector, y: Vector, doc: Codes, sys: Codes, times_doc: Vector, picked: Codes, names: Sequence[str]
) -> Vector:
    means = means_of_systems(x, y, doc, sys, times_doc, picked.shape[1])
    mean_x, mean_y = (np.take_along_axis(m, picked, axis=1) for m in means)
    whole = ~np.isnan(mean_x).any(axis=1)
    value = np.full((len(picked), len(names)), np.nan)
    for column, name in enumerate(names):
        value[whole, column] = rowwise(mean_x[whole], mean_y[whole], name)
        for i in np.flatnonzero(~whole):  # a system of which no document was drawn is left out
            some = ~np.isnan(mean_x[i])
            value[i, column] = rowwise(mean_x[i][None, some], mean_y[i][None, some], name)[0]
    return value


def _drawn_within(
    x: Vector, y: Vector, doc: Codes, sys: Codes, times_doc: Vector, picked: Codes, names: Sequence[str]
) -> Vector:
    documents, systems = times_doc.shape[1], picked.shape[1]
    order = np.argsort(sys, kind="stable")
    rows_of_system = np.split(order, np.cumsum(np.bincount(sys, minlength=systems))[:-1])
    step = max(1, _CELLS // len(x))
    parts = []
    for start in range(0, len(picked), step):
        chosen = picked[start : start + step]
        drawn = [np.concatenate([rows_of_system[s] for s in row]) for row in chosen]
        code = np.concatenate([doc[r] + documents * i for i, r in enumerate(drawn)])
        every = np.concatenate(drawn)
        table = within_documents(x[every], y[every], code, documents * len(chosen), names)
        table = table.reshape(len(chosen), documents, len(names))
        times = times_doc[start : start + step][:, :, None] * ~np.isnan(table)
        total = times.sum(axis=1)
        total[total == 0] = np.nan
        parts.append(np.nansum(times * np.nan_to_num(table), axis=1) / total)
    return np.concatenate(parts)


# Many rows -----------------------------------------------------------------------------------------------------------


def batches(
    cell: Cell, aspect: Aspect, level: Level, coefficient: Coefficient, value: Callable[[Flags], float], how: How
) -> None:
    """Interval from the spread over batches of documents, which many rows make as good as resamples and which cost one
    pass: sd over 50 batches / sqrt(50) on the scale of atanh, Student's t. Source: batch means, Schmeiser 1982."""
    documents = np.unique(aspect.units, return_inverse=True)[1]
    place = np.random.default_rng(how.seed).permutation(int(documents.max()) + 1) % BATCHES
    bound = 3.0 if coefficient == "sum" else 1.0
    values = [value(place[documents] == number) for number in range(BATCHES)]
    defined = np.array([v for v in values if not math.isnan(v)])
    if len(defined) < BATCHES / 2:
        cell.reason = f"undefined in {BATCHES - len(defined)} of {BATCHES} batches: scores too often constant"
        return
    z = np.arctanh(np.clip(np.append(defined, cell.value) / bound, -1 + 1e-9, 1 - 1e-9))
    tail = (1 + how.confidence) / 2
    half = float(z[:-1].std(ddof=1) / np.sqrt(len(defined)) * scipy.stats.t.ppf(tail, len(defined) - 1))
    cell.low, cell.high = float(np.tanh(z[-1] - half) * bound), float(np.tanh(z[-1] + half) * bound)
    cell.interval = "batches"


def _value(aspect: Aspect, x: Vector, rows: Flags, level: Level, coefficient: Coefficient) -> float:
    doc, sys = (None if codes is None else codes[rows] for codes in (aspect.doc, aspect.sys))
    if coefficient == "sum":
        return CorrelationSum(level)(x[rows], aspect.y[rows], doc, sys).q
    return correlate(x[rows], aspect.y[rows], coefficient=coefficient, level=level, documents=doc, systems=sys).value
