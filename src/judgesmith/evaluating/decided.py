"""Pass and fail as a team reads them: who passed what, what a judge misses, pass rates of systems, and where judge and
people differ, in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..agreement.correlation import Codes, Vector, id_codes
from ..agreement.decisions import counted, nearest_places
from ..agreement.meta.agreement import share_of
from ..agreement.meta.inputs import EvaluationOptions
from ..agreement.resampling import Estimate, interval_of
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
    made, documents = [], id_codes(data.documents, len(data.rows), "documents")
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


def _figures(ours: Vector, people: Vector, documents: Codes, how: EvaluationOptions) -> list[Estimate]:
    """In the order of FIGURES, with intervals over documents, as the agreement with people has them."""
    a, b, ones = ours.astype(np.intp), people.astype(np.intp), np.ones(len(people), dtype=np.intp)
    of_both = ("accuracy", "balanced-accuracy", "precision", "recall", "f1")
    asked = [*((name, a, b) for name in of_both), ("accuracy", a, ones), ("accuracy", b, ones)]
    return [estimate(name, x, y, documents, how) for name, x, y in asked]


def estimate(name: str, x: Codes, y: Codes, documents: Codes, how: EvaluationOptions) -> Estimate:
    """A measure of decisions with its interval; NaN where there are none. name: as `--coefficient` has it."""
    if not counted(name, x, y).any():
        return Estimate(math.nan)
    agreement = share_of(name, x, y, documents)
    if not how.rounds:
        return Estimate(agreement.values[0])
    found = interval_of(agreement, rounds=how.rounds, confidence=how.confidence, seed=how.seed)
    return Estimate(found.value, found.low, found.high)
