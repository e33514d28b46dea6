"""Pass and fail as a team reads them: who passed what, what a judge misses, pass rates of systems, and where judge and
people differ, in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..agreement.correlation import Vector
from ..agreement.decisions import accuracy_when_drawn, balanced_when_drawn, f1_when_drawn, nearest_places
from ..agreement.meta.inputs import EvaluationOptions
from ..agreement.resampling import Agreement, Estimate, interval_of
from ..tables import Column, Table, percent
from .sources import Judged

#: What the two sides have in common, in the order of `_figures`.
FIGURES = {
    "agreement": "agreement",
    "balanced": "balanced accuracy",
    "precision": "precision for fail",
    "recall": "recall for fail",
    "f1": "F1 for fail",
    "judge": "pass rate, judge",
    "people": "pass rate, people",
}


@dataclass(frozen=True)
class Decided:
    """A judge's decisions beside people's, of one aspect. people, judge: 1 for pass and 0 for fail, NaN where there is
    none. names: what people call fail and pass. figures: by the keys of FIGURES. scores: in [0, 1]."""

    name: str
    aspect: str
    names: tuple[str, ...]
    people: Vector
    judge: Vector
    scores: Vector
    figures: dict[str, Estimate]
    systems: dict[str, tuple[Estimate, Estimate, int]]
    ids: Sequence[str]

    def counts(self) -> list[list[int]]:
        """Rows: people fail, people pass. Columns: the judge fails them, passes them, has no decision."""
        sides = [self.judge == 0, self.judge == 1, np.isnan(self.judge)]
        return [[int(((self.people == own) & side).sum()) for side in sides] for own in (0, 1)]

    def worst(self) -> list[dict[str, Any]]:
        """The rows on which they differ, those whose score is furthest on the other side first."""
        apart = np.nan_to_num(np.abs(self.scores - self.people), nan=-1.0)
        rows = [i for i in np.argsort(-apart, kind="stable") if self.people[i] + self.judge[i] == 1]
        return [
            {
                "id": self.ids[i],
                "people": self.names[int(self.people[i])],
                "judge": self.names[int(self.judge[i])],
                "score": round(float(self.scores[i]), 4),
            }
            for i in rows
        ]

    def to_dict(self) -> dict[str, Any]:
        def plain(e: Estimate) -> list[float | None]:
            return [None if value != value else value for value in (e.value, e.low, e.high)]

        figures = {name: plain(e) for name, e in self.figures.items()}
        systems = {name: {"judge": plain(j), "people": plain(p), "rows": n} for name, (j, p, n) in self.systems.items()}
        about = {"judge": self.name, "aspect": self.aspect, "names": list(self.names), "counts": self.counts()}
        return about | {"figures": figures, "systems": systems, "worst": self.worst()[:20]}

    def tables(self) -> Iterator[tuple[str, Table]]:
        """(introduction, table)."""
        made = Table(
            ["people", *(Column(f"judge: {n}", "d") for n in self.names), Column("no decision", "d")],
            f"{self.name}, {self.aspect}: people against judge",
        )
        for own, counts in zip(self.names, self.counts(), strict=True):
            made.add(f"people: {own}", *counts)
        said = "; ".join(f"{FIGURES[key]} {_percent(self.figures[key])}" for key in FIGURES if key != "agreement")
        called = "" if self.names == ("fail", "pass") else f" Fail is {self.names[0]!r}, pass is {self.names[1]!r}."
        yield f"Agreement {_percent(self.figures['agreement'])}; {said}.{called}", made
        rates = Table(["system", Column("rows", "d"), "judge", "people"], "Pass rates")
        for name, (judge, people, rows) in self.systems.items():
            rates.add(name, rows, _percent(judge), _percent(people))
        yield "", rates
        differ = Table(["row", "people", "judge (score)"], "Where they differ most")
        for one in self.worst()[:5]:
            differ.add(one["id"], one["people"], f"{one['judge']} ({one['score']:.2f})")
        yield "", differ


def _percent(e: Estimate) -> str:
    return percent(e.value) + ("" if e.low != e.low else f" [{100 * e.low:.0f}, {100 * e.high:.0f}]")


def decisions(data: Judged, how: EvaluationOptions) -> list[Decided]:
    """Of every judge and every aspect with pass and fail, where the judge decides, too, or is on people's scale."""
    made, documents = [], np.array(data.documents, dtype=object)
    binary = [aspect for aspect, kind in data.kinds.items() if kind == "binary"]
    for aspect, (judge, by_aspect) in itertools.product(binary, data.judges.items()):
        marks, given = data.marks[aspect], by_aspect.get(aspect, np.array([np.nan]))
        scores, own = (given - marks.levels[0]) / np.ptp(marks.levels), data.decided.get(judge, {}).get(aspect)
        if np.isnan(given).all() or (own is None and not 0 <= np.nanmin(scores) <= np.nanmax(scores) <= 1):
            continue
        people, ours = places(data.human[aspect], marks.levels), places(given, marks.levels) if own is None else own
        both, systems = ~np.isnan(people) & ~np.isnan(ours), dict[str, tuple[Estimate, Estimate, int]]()
        for name in dict.fromkeys(data.systems or ()):
            if (rows := both & (np.array(data.systems, dtype=object) == name)).any():
                *_, judged, rated = _figures(ours[rows], people[rows], documents[rows], how)
                systems[name] = judged, rated, int(rows.sum())
        figures = dict(zip(FIGURES, _figures(ours[both], people[both], documents[both], how), strict=True))
        ids = [row.id for row in data.rows]
        made.append(Decided(judge, aspect, marks.names, people, ours, scores, figures, systems, ids))
    return made


def places(scores: Vector, levels: Sequence[float]) -> Vector:
    """The number of each score's category, from 0; NaN where there is no score."""
    made = np.full(len(scores), np.nan)
    known = ~np.isnan(scores)
    made[known] = nearest_places(scores[known], levels)
    return made


def _figures(ours: Vector, people: Vector, documents: Any, how: EvaluationOptions) -> list[Estimate]:
    """In the order of FIGURES, with intervals over documents, as the agreement with people has them."""
    a, b = ours.astype(np.intp), people.astype(np.intp)
    every, ones = np.ones(len(a), dtype=np.bool_), np.ones(len(a), dtype=np.intp)
    asked = [
        (accuracy_when_drawn, a, b, every),
        (balanced_when_drawn, a, b, every),
        (accuracy_when_drawn, a, b, a == 0),
        (accuracy_when_drawn, a, b, b == 0),
        (f1_when_drawn, a, b, every),
        (accuracy_when_drawn, a, ones, every),
        (accuracy_when_drawn, b, ones, every),
    ]
    return [estimate(measure, x[rows], y[rows], documents[rows], how) for measure, x, y, rows in asked]


def estimate(measure: Any, x: Any, y: Any, documents: Any, how: EvaluationOptions) -> Estimate:
    """A measure of decisions with its interval; NaN where there are none."""
    names = {name: place for place, name in enumerate(dict.fromkeys(documents.tolist()))}
    units = np.array([names[name] for name in documents.tolist()], dtype=np.intp)
    if not len(x):
        return Estimate(math.nan)
    agreement = Agreement.of_share(measure(x, y, units), len(names), len(x))
    if not how.rounds:
        return Estimate(agreement.values[0])
    found = interval_of(agreement, rounds=how.rounds, confidence=how.confidence, seed=how.seed)
    return Estimate(found.value, found.low, found.high)
