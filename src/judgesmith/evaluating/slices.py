"""Agreement by slices of the rows: where is a judge worse than on the rest, beyond chance over all slices?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from judgesmith.agreement.coefficients import (
    Correlation,
    coefficient_of,
    decision_of,
    title_of,
    unasked,
)
from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.meta.evaluation import meta_evaluate
from judgesmith.agreement.meta.inputs import EvaluationOptions
from judgesmith.agreement.significance import false_discovery, holm
from judgesmith.datasets.marks import unrated
from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.sources import Judged, inside, some
from judgesmith.tables import Cell, Column, Table

#: Fewer rows are no slice, and more slices are no slices but a number.
FEWEST = 8
MOST = 50
#: So many slices come without being asked.
MOST_UNASKED = 24
#: What `--slices` says where nothing is to be split, and no column has that name.
NONE = "none"


@dataclass(frozen=True)
class Slice:
    """A judge's agreement on the rows with one value of a column, and its difference from the other rows.

    p: two-sided. holm, bh: corrected for all slices of the judge (Holm; Benjamini and Hochberg).
    """

    judge: str
    aspect: str
    column: str
    value: str
    n: int
    coefficient: str
    agreement: Cell
    difference: float
    p: float
    holm: float = math.nan
    bh: float = math.nan
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        about = {
            name: getattr(self, name)
            for name in ("judge", "aspect", "column", "value", "n", "coefficient")
        }
        ends = {
            "agreement": self.agreement.value,
            "low": self.agreement.low,
            "high": self.agreement.high,
        }
        numbers = ends | {
            name: getattr(self, name) for name in ("difference", "p", "holm", "bh")
        }
        return (
            about
            | {name: None if _absent(v) else v for name, v in numbers.items()}
            | {"reason": self.reason}
        )


def _absent(value: float | None) -> bool:
    return value is None or math.isnan(value)


def slices(
    data: Judged, columns: Sequence[str], options: EvaluationOptions
) -> list[Slice]:
    """Return a slice of each judge and aspect for each value of these columns.

    Raises:
        OptionError: If there is no such column.
        LabelsError: If a column has too many values.
    """
    free = options.model_copy(update={"levels": ("pooled",), "compare": False})
    result: list[Slice] = []
    for column in columns:
        values = _values(data, column)
        for (judge, by_aspect), aspect in itertools.product(
            data.judges.items(), data.human
        ):
            if aspect in by_aspect and data.kinds.get(aspect) != "preference":
                found = [
                    _slice(data, judge, aspect, column, (values, value), free)
                    for value in _distinct(values)
                ]
                result += _corrected(found)
    return result


def slice_columns(data: Judged, asked: Sequence[str]) -> tuple[str, ...]:
    """Return the columns to split the agreement by: those that the user names, else the one of languages."""
    if tuple(asked) == (NONE,) and all(NONE not in row.columns for row in data.rows):
        return ()
    languages = data.reading.languages
    if asked or len(languages) != 1:
        return tuple(asked)
    values = _distinct(_values(data, languages[0]))
    several = len(values) * len(data.judges) * len(data.human)
    return languages if several <= MOST_UNASKED else ()


def _values(data: Judged, column: str) -> list[str]:
    cells = [
        row.system if column == "system" else inside(row.columns, column)
        for row in data.rows
    ]
    if all(map(unrated, cells)):
        names = dict.fromkeys(name for row in data.rows for name in row.columns)
        raise OptionError(
            f"--slices {column}: no row has it; the columns are {some(names)}"
        )
    values = ["" if unrated(cell) else str(cell) for cell in cells]
    if len(set(values)) > MOST:
        raise LabelsError(
            f"--slices {column}: it has {len(set(values))} values; at most {MOST} are slices"
        )
    return values


def _distinct(values: Sequence[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value]


def _slice(
    data: Judged,
    judge: str,
    aspect: str,
    column: str,
    where: tuple[Sequence[str], str],
    options: EvaluationOptions,
) -> Slice:
    """where: the values of the column, and the one of the slice. options: of one level, without comparisons."""
    values, value = where
    here = np.array(values, dtype=object) == value
    kind = data.kinds.get(aspect, "score")
    name = next(
        (one for one in unasked(kind) if decision_of(one).fits == "categories"),
        options.compared_by,
    )
    sides = [
        _agreement(data, judge, aspect, rows, name, options) for rows in (here, ~here)
    ]
    (own, n, reason), (rest, _, other) = sides
    difference, p = _apart(own, rest, name, options)
    return Slice(
        judge,
        aspect,
        column,
        value,
        n,
        name,
        own,
        difference,
        p,
        reason=reason or other,
    )


def _agreement(
    data: Judged,
    judge: str,
    aspect: str,
    rows: Vector,
    name: str,
    options: EvaluationOptions,
) -> tuple[Cell, int, str | None]:
    rated = rows & ~np.isnan(data.human[aspect])
    n = int(rated.sum())
    marks = data.marks.get(aspect)
    if n < FEWEST:
        return Cell(None), n, f"{n} rows are too few"
    own = data.decided.get(judge, {}).get(aspect)
    options = options.model_copy(update={"coefficients": (options.compared_by,)})
    try:
        result = meta_evaluate(
            {judge: data.judges[judge][aspect][rated]},
            {aspect: data.human[aspect][rated]},
            documents=list(itertools.compress(data.documents, rated)),
            kinds={} if marks is None else {aspect: data.kinds[aspect]},
            categories={} if marks is None else {aspect: marks.levels},
            decided={} if own is None else {judge: {aspect: own[rated]}},
            scale=data.scales,
            on_scale=data.on_scale & {judge} if data.on_scale else None,
            options=options,
        )
    except LabelsError as error:
        return Cell(None), n, str(error)
    one = result.cell(judge, aspect, coefficient_of(name).levels[0], name)
    return (
        Cell(float(one["value"]), float(one["low"]), float(one["high"])),
        n,
        one["reason"] or None,
    )


def _apart(
    own: Cell, rest: Cell, name: str, options: EvaluationOptions
) -> tuple[float, float]:
    """Return a slice less the rest, and p by the standard errors of both intervals, correlations as Fisher's z."""
    values = (own.value, own.low, own.high, rest.value, rest.low, rest.high)
    numbers = [math.nan if value is None else float(value) for value in values]
    difference = numbers[0] - numbers[3]
    if issubclass(coefficient_of(name), Correlation):
        numbers = [math.atanh(min(max(value, -0.999), 0.999)) for value in numbers]
    width = 2 * scipy.stats.norm.ppf((1 + options.confidence) / 2)
    error = math.hypot(*((numbers[k + 2] - numbers[k + 1]) / width for k in (0, 3)))
    if math.isnan(error) or error <= 0:
        return difference, math.nan
    return difference, float(
        2 * scipy.stats.norm.sf(abs(numbers[0] - numbers[3]) / error)
    )


def _corrected(tested: Sequence[Slice]) -> list[Slice]:
    p = [one.p for one in tested]
    return [
        replace(one, holm=h, bh=b)
        for one, h, b in zip(tested, holm(p), false_discovery(p), strict=True)
    ]


def tables(parts: Sequence[Slice]) -> Iterator[tuple[str, Table]]:
    """Yield (introduction, table), one for each column."""
    for column in dict.fromkeys(one.column for one in parts):
        here = [one for one in parts if one.column == column]
        numbers = [
            Column("rows", "d"),
            Column("agreement", ".3f"),
            Column("less the rest", "+.3f"),
        ]
        tests = [Column("p", "p"), Column("p Holm", "p"), Column("p BH", "p")]
        several = [
            name
            for name in ("judge", "aspect")
            if len({getattr(one, name) for one in here}) > 1
        ]
        table = Table(
            [*several, column, *numbers, *tests],
            f"By {column}: {title_of(here[0].coefficient)}",
        )
        for one in here:
            table.add(
                *(getattr(one, name) for name in several),
                one.value,
                one.n,
                one.agreement,
                one.difference,
                one.p,
                one.holm,
                one.bh,
            )
        few = ""
        if any(one.n < FEWEST for one in here):
            few = f" Fewer than {FEWEST} rows have no agreement."
        yield (
            "Each slice against all other rows, p by the errors of both intervals; Holm and Benjamini-Hochberg over "
            f"the slices of a judge and aspect.{few}",
            table,
        )
