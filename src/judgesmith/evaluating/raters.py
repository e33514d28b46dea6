"""People one by one: may a judge replace a rater, does it agree within raters, and can each rater be relied on?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Vector, correlate
from judgesmith.agreement.raters import (
    DIFFERENT,
    beside_others,
    between_raters,
    by_person,
    gave_most,
)
from judgesmith.agreement.raters import within_raters as within_raters_of
from judgesmith.agreement.replacement import (
    Replacement,
    alternative_annotator_test,
    nearest_constant,
)
from judgesmith.datasets.marks import Marks
from judgesmith.evaluating.decided import places
from judgesmith.evaluating.sources import Judged
from judgesmith.tables import Column, Table


@dataclass(frozen=True)
class Persons:
    """The ratings of an aspect by person: shape (rows, persons), NaN where there is none."""

    aspect: str
    names: tuple[str, ...]
    table: Vector

    def between(self) -> float:
        """The share of the variance of single ratings that lies between persons (ICC of a one-way analysis)."""
        return between_raters(self.table)


def persons(data: Judged) -> list[Persons]:
    """Return the raters of each aspect whose ratings all have a name, and that two or more people rated."""
    result = []
    for aspect in data.human:
        rated = [row if aspect in row.scores else None for row in data.rows]
        ratings = [() if row is None else row.single(aspect) for row in rated]
        raters = [() if row is None else row.raters.get(aspect, ()) for row in rated]
        named = list(map(len, ratings)) == list(map(len, raters))
        names, table = by_person(ratings, raters)
        if named and len(names) > 1:
            result.append(Persons(aspect, names, table))
    return result


def replacements(
    data: Judged, people: Sequence[Persons], epsilon: float
) -> list[dict[str, Any]]:
    """The alternative annotator test of every judge that is on people's scale, or decides as they do."""
    rows = []
    for one in people:
        marks = data.marks.get(one.aspect)
        table = one.table
        if marks is not None and marks.levels:
            columns = [places(column, marks.levels) for column in one.table.T]
            table = np.column_stack(columns)
        for judge, by_aspect in data.judges.items():
            own = data.decided.get(judge, {}).get(one.aspect)
            scores = by_aspect.get(one.aspect)
            if scores is None or np.isnan(scores).all():
                continue
            ours = scores
            if marks is not None and marks.levels:
                ours = places(scores, marks.levels) if own is None else own
            if (
                marks is None
                and judge not in data.on_scale
                and not _inside(scores, data.scales.get(one.aspect))
            ):
                why = "the judge is not on people's scale"
                test = Replacement(math.nan, math.nan, (), False, why)
            else:
                test = alternative_annotator_test(
                    ours, table, epsilon=epsilon, nominal=marks is not None
                )
            rows.append(_row(judge, one, epsilon, test))
        if any(row["aspect"] == one.aspect and not row["reason"] for row in rows):
            rows.append(_constant(one, table, marks, epsilon))
    return rows


def _row(judge: str, one: Persons, epsilon: float, test: Replacement) -> dict[str, Any]:
    about = {"judge": judge, "aspect": one.aspect, "raters": len(one.names)}
    p = dict(zip(one.names, test.p, strict=False))
    return about | {"epsilon": epsilon, "constant": False} | asdict(test) | {"p": p}


def _constant(
    one: Persons, table: Vector, marks: Marks | None, epsilon: float
) -> dict[str, Any]:
    """Return the test of a judge that reads no text and gives the best constant."""
    nominal = marks is not None
    always = nearest_constant(table, nominal=nominal)
    named = marks is not None and marks.levels
    shown = marks.names[int(always)] if marks is not None and named else f"{always:g}"
    test = alternative_annotator_test(
        np.full(len(table), always),
        table,
        epsilon=epsilon,
        nominal=nominal,
        as_published=True,
    )
    return _row(f"always {shown}", one, epsilon, test) | {"constant": True}


def _inside(scores: Vector, scale: tuple[float, float] | None) -> bool:
    return scale is not None and bool(
        scale[0] <= np.nanmin(scores) and np.nanmax(scores) <= scale[1]
    )


def within_raters(data: Judged, people: Sequence[Persons]) -> list[dict[str, Any]]:
    """Return Spearman's correlation within single raters, averaged by their rows, and with the mean rating.

    Raters differ in severity, which is not quality: agreement within raters leaves it out.
    """
    rows = []
    for one in people:
        between = one.between()
        if not between > DIFFERENT:
            continue
        for judge, by_aspect in data.judges.items():
            scores = by_aspect.get(one.aspect)
            if scores is None:
                continue
            within, raters = within_raters_of(scores, one.table)
            pooled = correlate(
                scores, data.human[one.aspect], coefficient="spearman", level="pooled"
            ).value
            about = {
                "judge": judge,
                "aspect": one.aspect,
                "raters": raters,
                "between": between,
            }
            rows.append(about | {"pooled": pooled, "within": within})
    return rows


def warnings(people: Sequence[Persons]) -> Iterator[str]:
    """Yield warnings about raters who gave most labels, and about those who may answer at random."""
    for one in people:
        counts = (~np.isnan(one.table)).sum(axis=0)
        most = int(counts.argmax())
        if gave_most(counts):
            yield (
                f"{one.aspect}: {one.names[most]} gave {counts[most]} of {counts.sum()} labels; agreement is mostly "
                "with this one person"
            )
        for name, own in zip(one.names, beside_others(one.table), strict=True):
            if doubt := own.doubt(name):
                yield f"{one.aspect}: {doubt}"


def _verdict(row: Mapping[str, Any], constant: Mapping[str, Any] | None) -> str:
    """Return the outcome of a test in words."""
    if row["reason"]:
        return f"–, {row['reason']}"
    if not row["passes"]:
        return "no"
    if constant is not None and constant["passes"] and not row["constant"]:
        return "yes, but so would a constant"
    return "yes"


def tables(
    replaced: Sequence[dict[str, Any]], inside: Sequence[dict[str, Any]]
) -> Iterator[tuple[str, Table]]:
    """Yield (introduction, table)."""
    columns = (
        Column("raters beaten", ".0%"),
        Column("as near as a rater", ".0%"),
        "may replace",
    )
    table = Table(["judge", "aspect", *columns], "May it replace a rater?")
    constants = {row["aspect"]: row for row in replaced if row["constant"]}
    for row in replaced:
        verdict = _verdict(row, constants.get(row["aspect"]))
        kind = "human" if row["constant"] else ""
        numbers_of = (row["winning"], row["advantage"])
        table.add(row["judge"], row["aspect"], *numbers_of, verdict, kind=kind)
    epsilon = replaced[0]["epsilon"] if replaced else math.nan
    beside = " “always” reads no text, for comparison." if constants else ""
    yield (
        f"Alternative annotator test, epsilon {epsilon:g}: yes where the judge beats half of the raters.{beside}",
        table,
    )
    numbers = (
        Column("within raters", ".3f"),
        Column("with the mean", ".3f"),
        Column("between raters", ".0%"),
    )
    table = Table(["judge", "aspect", *numbers], "Within raters (Spearman)")
    for row in inside:
        table.add(
            row["judge"], row["aspect"], row["within"], row["pooled"], row["between"]
        )
    yield (
        "Raters differ in how high they rate (last column: their share of the variance); a judge need not.",
        table,
    )
