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
    mean_defined,
    parts_of,
    within_documents,
)
from ..resampling import (
    Agreement,
    Measure,
    RowSet,
    Systems,
    WeightedRows,
    defined,
    drawn_again,
    limits,
    mean_drawn,
    percentiles,
    rowwise_defined,
    too_often,
)
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
    drawn = mean_defined(np.stack([drawn_systems(rows, units, level, coefficient, how) for rows in sets]), axis=0)
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
    """Give a cell the interval of its resamples: that of `how`, or percentiles where no agreement is known."""
    known = defined(drawn)
    if known is None:
        cell.reason = too_often(int(np.isnan(drawn).sum()), how.rounds)
        return
    cell.drawn, cell.interval = drawn, "percentile" if cell.agreement is None else how.interval
    if cell.agreement is None:
        cell.low, cell.high = percentiles(known, how.confidence)
    else:
        cell.low, cell.high = limits(known, cell.agreement, how.confidence, how.interval)
        if how.interval == "fisher" and cell.agreement.bounds is not None:
            cell.interval = "arcsine"
    if cell.high - cell.low < 1e-9:
        cell.reason = "the same in every resample: an interval of no width does not mean certainty"


# What is drawn -------------------------------------------------------------------------------------------------------


def draw(units: Units, how: How) -> tuple[Vector, Codes | None]:
    """How often each document is drawn, (rounds, documents), and which systems are, (rounds, systems) or None for
    each once. Source: Deutsch et al. 2021 (boot-inputs, boot-systems, boot-both: drawn independently)."""
    rng = np.random.default_rng(how.seed)
    if how.over == "systems":
        times = np.ones((how.rounds, units.documents))
    else:
        times = drawn_again(np.asarray, units.documents, how.rounds, rng)
    if how.over == "documents":
        return times, None
    return times, rng.integers(units.systems, size=(how.rounds, units.systems))


def drawn_systems(rows: RowSet, units: Units, level: Level, coefficient: Coefficient, how: How) -> Vector:
    """Agreement in resamples of the systems, or of systems and documents -> (rounds,), NaN where undefined."""
    x, y, doc, sys = rows
    times, picked = draw(units, how)
    assert sys is not None and picked is not None
    names = parts_of(coefficient)
    if level == "pooled":
        weighted = WeightedRows(x, y, np.arange(len(x)), names)

        def parts(t: Vector, p: Codes) -> Vector:
            return weighted(times_of(p)[:, sys] * t[:, doc])
    elif level == "system":
        systems = Systems(x, y, doc, units.documents, sys)

        def parts(t: Vector, p: Codes) -> Vector:
            mean_x, mean_y = (np.take_along_axis(means, p, axis=1) for means in systems.means(t))
            return rowwise_defined(mean_x, mean_y, names)
    else:
        of_system = [np.flatnonzero(sys == s) for s in range(units.systems)]

        def parts(t: Vector, p: Codes) -> Vector:
            drawn = [np.concatenate([of_system[s] for s in row]) for row in p]
            code = np.concatenate([doc[r] + units.documents * i for i, r in enumerate(drawn)])
            every = np.concatenate(drawn)
            table = within_documents(x[every], y[every], code, units.documents * len(p), names)
            return mean_drawn(t, table.reshape(len(p), units.documents, len(names)))

    drawn = in_steps(parts, max(1, _CELLS // len(x)), times, picked)
    return np.asarray(np.nansum(drawn, axis=1) if coefficient == "sum" else drawn[:, 0])


def in_steps(function: Callable[..., Vector], step: int, *arrays: npt.NDArray[Any]) -> Vector:
    """A function of the same rows of several arrays, `step` rows at a time."""
    starts = range(0, len(arrays[0]), step)
    return np.concatenate([function(*(array[start : start + step] for array in arrays)) for start in starts])


def times_of(picked: Codes) -> Vector:
    """How often each system was drawn: (rounds, systems) of names -> (rounds, systems) of counts."""
    systems = picked.shape[1]
    return np.stack([np.bincount(row, minlength=systems) for row in picked]).astype(np.float64)


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
    known = np.array([v for v in values if not math.isnan(v)])
    if len(known) < BATCHES / 2:
        cell.reason = f"undefined in {BATCHES - len(known)} of {BATCHES} batches: scores too often constant"
        return
    z = np.arctanh(np.clip(np.append(known, cell.value) / bound, -1 + 1e-9, 1 - 1e-9))
    tail = (1 + how.confidence) / 2
    half = float(z[:-1].std(ddof=1) / np.sqrt(len(known)) * scipy.stats.t.ppf(tail, len(known) - 1))
    cell.low, cell.high = float(np.tanh(z[-1] - half) * bound), float(np.tanh(z[-1] + half) * bound)
    cell.interval = "batches"


def _value(aspect: Aspect, x: Vector, rows: Flags, level: Level, coefficient: Coefficient) -> float:
    doc, sys = (None if codes is None else codes[rows] for codes in (aspect.doc, aspect.sys))
    if coefficient == "sum":
        return CorrelationSum(level)(x[rows], aspect.y[rows], doc, sys).q
    return correlate(x[rows], aspect.y[rows], coefficient=coefficient, level=level, documents=doc, systems=sys).value
