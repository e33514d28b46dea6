"""Decisions as a team reads them: pass and fail, or more categories.

The confusion of people and judge, the judge's misses, the agreement of a judge that always gives one answer, pass rates
of systems, and rows where judge and people differ, with both reasons.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from judgesmith.agreement.coefficients import decision_of
from judgesmith.agreement.correlation import Codes, Vector, id_codes
from judgesmith.agreement.decisions import nearest_places
from judgesmith.agreement.meta.agreement import share_of
from judgesmith.agreement.meta.inputs import EvaluationOptions
from judgesmith.agreement.resampling import Estimate, interval_of
from judgesmith.datasets.marks import Marks
from judgesmith.datasets.row import Row
from judgesmith.evaluating.sources import Judged
from judgesmith.tables import (
    Column,
    Table,
    counted,
    p_in_words,
    percent,
    shortened,
)

#: What the two sides have in common, of pass and fail, and of more categories.
OF_TWO = {
    "recall": "TNR (recall for fail)",
    "tpr": "TPR (recall for pass)",
    "kappa": "Cohen's kappa",
    "agreement": "agreement",
    "balanced": "balanced accuracy",
    "precision": "precision for fail",
    "f1": "F1 for fail",
    "judge": "pass rate, judge",
    "people": "pass rate, people",
}
OF_SEVERAL = {
    "agreement": "agreement",
    "weighted": "weighted kappa",
    "kappa": "Cohen's kappa",
}
#: The measures of these, as `--coefficient` has them; weighted kappa has quadratic weights.
_MEASURES = {
    "agreement": "accuracy",
    "balanced": "balanced-accuracy",
    "precision": "precision",
    "recall": "recall",
    "tpr": "tpr",
    "f1": "f1",
    "kappa": "cohen-kappa",
    "weighted": "kappa",
}
#: What a comparison of two outputs says, a side from the other's point of view the worse.
PREFERRED = ("B", "tie", "A")
#: Numbers that are no shares.
_KAPPAS = ("kappa", "weighted", "between_kappa")
#: Rows on which judge and people differ that a page lists, and that a terminal does; characters of a reason there.
LISTED = 200
SHOWN = 5
REASON = 60


@dataclass(frozen=True)
class Decided:
    """A judge's decisions beside people's, of one aspect.

    people, judge: the number of each row's category from 0, the worst (fail) first, NaN where there is none. names: the
    categories' names. figures: by the keys of OF_TWO or OF_SEVERAL; `constant`: the agreement of a judge that always
    answers `commonest`; `between` and `between_kappa`: that of two people, where rows have several ratings; `same`: of
    preferences, the share of people's that the judge has, too. scores: 0 and 1 are the worst and the best category.
    reasons: people's and the judge's reasons for each row.
    """

    name: str
    aspect: str
    names: tuple[str, ...]
    people: Vector
    judge: Vector
    scores: Vector
    figures: dict[str, Estimate]
    systems: dict[str, tuple[Estimate, Estimate, int]]
    ids: Sequence[str]
    commonest: str = ""
    reasons: tuple[Sequence[str], Sequence[str]] = field(default=((), ()))
    documents: Codes = field(default_factory=lambda: np.array([], dtype=np.intp))

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the figures."""
        return OF_TWO if len(self.names) == 2 else OF_SEVERAL

    def counts(self) -> list[list[int]]:
        """Return a row for each category of people's. Columns: the judge's categories, and where it has no decision."""
        sides = [self.judge == place for place in range(len(self.names))]
        sides.append(np.isnan(self.judge))
        rows = []
        for place in range(len(self.names)):
            people = self.people == place
            rows.append([int((people & side).sum()) for side in sides])
        return rows

    def worst(self) -> list[dict[str, Any]]:
        """Return the rows on which they differ, those furthest apart first: by the categories, then by the scores."""
        most = len(self.names) - 1
        apart = np.nan_to_num(np.abs(self.judge - self.people), nan=0.0)
        near = np.nan_to_num(np.abs(self.scores - self.people / most), nan=-1.0)
        rows = [int(i) for i in np.lexsort((-near, -apart)) if apart[i] > 0]
        return [self._row(i) for i in rows]

    def _row(self, i: int) -> dict[str, Any]:
        reasons = dict(
            zip(
                ("people_reason", "judge_reason"),
                (side[i : i + 1] for side in self.reasons),
                strict=True,
            )
        )
        return {
            "id": self.ids[i],
            "people": self.names[int(self.people[i])],
            "judge": self.names[int(self.judge[i])],
            "score": round(float(self.scores[i]), 4)
            if not math.isnan(self.scores[i])
            else None,
        } | {name: text[0] for name, text in reasons.items() if text and text[0]}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; None if undefined."""

        def plain(e: Estimate) -> list[float | None]:
            return [
                None if value != value else value for value in (e.value, e.low, e.high)
            ]

        figures = {name: plain(e) for name, e in self.figures.items()}
        systems = {
            name: {"judge": plain(j), "people": plain(p), "rows": n}
            for name, (j, p, n) in self.systems.items()
        }
        about: dict[str, Any] = {
            "judge": self.name,
            "aspect": self.aspect,
            "names": list(self.names),
            "counts": self.counts(),
        }
        about |= {"figures": figures, "commonest": self.commonest}
        return about | {"systems": systems, "worst": self.worst()}

    def note(self) -> list[str]:
        """Return a note if the judge agrees no better than one that reads nothing, by McNemar's exact test.

        Where documents have several rows, each counts once, by the side that is right on more of them.
        """
        own = self.figures["agreement"]
        constant = self.figures["constant"].value
        right, wrong, p = self.against_constant()
        if math.isnan(own.value) or (right > wrong and p < 0.05):
            return []
        return [
            f"{self.name}, {self.aspect}: its agreement, {_shown('agreement', own)}, is not surely above that of a "
            f"judge that always says {self.commonest!r}, {percent(constant)} (right where that is wrong: {right}; "
            f"wrong where that is right: {wrong}; {p_in_words(p)}); kappa and the recall of the rarer answer say more "
            "here"
        ]

    def in_words(self) -> dict[str, str]:
        """Return every figure with its interval, in words."""
        return {name: _shown(name, figure) for name, figure in self.figures.items()}

    def against_constant(self) -> tuple[int, int, float]:
        """Return on how many documents the judge is right where the commonest answer is wrong, the reverse, and p."""
        both = ~np.isnan(self.people) & ~np.isnan(self.judge)
        people = self.people[both]
        judge = self.judge[both]
        always = people == self.names.index(self.commonest)
        ahead = np.bincount(
            self.documents[both], (judge == people).astype(float) - always
        )
        right = int((ahead > 0).sum())
        wrong = int((ahead < 0).sum())
        if not right:
            return right, wrong, 1.0
        return right, wrong, float(scipy.stats.binomtest(right, right + wrong).pvalue)

    def tables(self, listed: int = SHOWN) -> Iterator[tuple[str, Table]]:
        """(introduction, table). listed: rows on which both differ, at most."""
        table = Table(
            [
                "people",
                *(Column(f"judge: {n}", "d") for n in self.names),
                Column("no decision", "d"),
            ],
            f"{self.name}, {self.aspect}: people against judge",
        )
        for own, counts in zip(self.names, self.counts(), strict=True):
            table.add(f"people: {own}", *counts)
        figures = "; ".join(
            f"{title} {_shown(key, self.figures[key])}"
            for key, title in self.titles.items()
        )
        usual = len(self.names) > 2 or self.names == ("fail", "pass")
        if usual:
            called = ""
        else:
            called = f" Fail is {self.names[0]!r}, pass is {self.names[1]!r}."
        constant = f" Always {self.commonest!r} would agree on {percent(self.figures['constant'].value)}."
        yield (
            f"{figures[0].upper()}{figures[1:]}.{called}{constant}",
            table,
        )
        rates = Table(["system", Column("rows", "d"), "judge", "people"], "Pass rates")
        for name, (judge, people, rows) in self.systems.items():
            rates.add(name, rows, _shown("judge", judge), _shown("people", people))
        yield "", rates
        yield self._differing(listed)

    def _differing(self, listed: int) -> tuple[str, Table]:
        worst = self.worst()
        shown = worst[:listed]
        titles = {"people_reason": "people's reason", "judge_reason": "judge's reason"}
        for key in list(titles):
            if not any(key in row for row in shown):
                del titles[key]
        table = Table(
            ["row", "people", "judge (score)", *titles.values()],
            "Where they differ most",
        )
        width = REASON if listed == SHOWN else 10 * REASON
        for row in shown:
            score = "" if row["score"] is None else f" ({row['score']:.2f})"
            reasons = [shortened(row.get(key, ""), width) for key in titles]
            table.add(row["id"], row["people"], row["judge"] + score, *reasons)
        rest = len(worst) - len(shown)
        about = ""
        if rest:
            about = f"--json has {counted(rest, 'more row')} on which they differ."
        return about, table


def _shown(key: str, e: Estimate) -> str:
    if key not in _KAPPAS:
        return percent(e.value) + (
            "" if e.low != e.low else f" [{100 * e.low:.0f}, {100 * e.high:.0f}]"
        )
    value = "–" if math.isnan(e.value) else f"{e.value:.2f}"
    return value + ("" if e.low != e.low else f" [{e.low:.2f}, {e.high:.2f}]")


def decisions(data: Judged, options: EvaluationOptions) -> list[Decided]:
    """Return decisions of every judge and aspect with categories.

    A judge needs decisions of its own, or scores on people's scale.
    """
    documents = id_codes(data.documents, len(data.rows), "documents")
    pairs = itertools.product(data.human, data.judges)
    compared = {
        aspect: _sides(data)
        for aspect, kind in data.kinds.items()
        if kind == "preference"
    }
    candidates = (
        _of_comparisons(data, judge, aspect, compared[aspect], documents, options)
        if aspect in compared
        else _decided(data, judge, aspect, documents, options)
        for aspect, judge in pairs
    )
    return [one for one in candidates if one is not None]


def _sides(data: Judged) -> list[tuple[int, int]]:
    """Return the places of both outputs of every comparison; none where an output stands in several."""
    ids = {row.id: i for i, row in enumerate(data.rows)}
    firsts = [name.removesuffix("-a") for name in ids if name.endswith("-a")]
    both = [
        (ids[f"{stem}-a"], ids[f"{stem}-b"]) for stem in firsts if f"{stem}-b" in ids
    ]
    return both if 2 * len(both) == len(data.rows) else []


def _of_comparisons(
    data: Judged,
    judge: str,
    aspect: str,
    sides: Sequence[tuple[int, int]],
    documents: Codes,
    options: EvaluationOptions,
) -> Decided | None:
    """Return people's and a judge's preferences between two outputs, a row for each comparison."""
    scores = data.judges[judge].get(aspect)
    if not sides or scores is None or np.isnan(scores).all():
        return None
    first, second = np.array(sides).T
    ours = np.sign(scores[first] - scores[second]) + 1
    ratings = data.human[aspect]
    people = np.sign(ratings[first] - ratings[second]) + 1
    both = ~np.isnan(people) & ~np.isnan(ours)
    if not both.any():
        return None
    codes = np.unique(documents[first][both], return_inverse=True)[1]
    figures, commonest = _figures(
        ours[both], people[both], codes, len(PREFERRED) - 1, options
    )
    apart = both & (people != PREFERRED.index("tie"))
    if apart.any():
        codes = np.unique(documents[first][apart], return_inverse=True)[1]
        chosen = ours[apart].astype(np.intp)
        wanted = people[apart].astype(np.intp)
        figures["same"] = estimate("accuracy", chosen, wanted, codes, options)
    rows = [data.rows[i] for i in first]
    reasons = data.reasons.get(judge)
    return Decided(
        judge,
        aspect,
        PREFERRED,
        people,
        ours,
        ours / 2,
        figures,
        {},
        [row.id.removesuffix("-a") for row in rows],
        PREFERRED[commonest],
        (_reasons(rows, aspect), [reasons[i] for i in first] if reasons else []),
        documents[first],
    )


def _reasons(rows: Sequence[Row], aspect: str) -> list[str]:
    """Return people's reasons for each row."""
    return [" / ".join(row.why(aspect)) for row in rows]


def _decided(
    data: Judged, judge: str, aspect: str, documents: Codes, options: EvaluationOptions
) -> Decided | None:
    own = data.decided.get(judge, {}).get(aspect)
    raw = data.judges[judge].get(aspect, np.array([np.nan]))
    marks = data.marks.get(aspect) or (Marks() if own is None else data.words[aspect])
    levels = marks.levels
    preference = data.kinds.get(aspect) == "preference"
    if len(levels) < 2 or preference or np.isnan(raw).all():
        return None
    scores = (raw - levels[0]) / np.ptp(levels)
    if own is None and not 0 <= np.nanmin(scores) <= np.nanmax(scores) <= 1:
        return None
    most = len(levels) - 1
    people = places(data.human[aspect], levels)
    ours = own
    if ours is None:
        ours = places(raw, levels)
    elif most > 1:
        scores = ours / most
    both = ~np.isnan(people) & ~np.isnan(ours)
    figures, commonest = _figures(
        ours[both], people[both], documents[both], most, options
    )
    if aspect in data.ratings:
        figures |= _between(
            data.ratings[aspect][both], levels, documents[both], options
        )
    systems: dict[str, tuple[Estimate, Estimate, int]] = {}
    for name in dict.fromkeys(data.systems or ()) if most == 1 else ():
        rows = both & (np.array(data.systems, dtype=object) == name)
        if rows.any():
            systems[name] = (
                _passing(ours[rows], documents[rows], options),
                _passing(people[rows], documents[rows], options),
                int(rows.sum()),
            )
    return Decided(
        judge,
        aspect,
        marks.names,
        people,
        ours,
        scores,
        figures,
        systems,
        [row.id for row in data.rows],
        marks.names[commonest],
        (_reasons(data.rows, aspect), data.reasons.get(judge, [])),
        documents,
    )


def _between(
    ratings: Vector,
    levels: Sequence[float],
    documents: Codes,
    options: EvaluationOptions,
) -> dict[str, Estimate]:
    """Return how far two people agree: every pair of ratings of a row, in both orders.

    ratings: shape (rows, raters), NaN where there is none.
    """
    own = np.column_stack([places(column, levels) for column in ratings.T])
    pairs = list(itertools.permutations(range(own.shape[1]), 2))
    one = np.concatenate([own[:, a] for a, _ in pairs])
    other = np.concatenate([own[:, b] for _, b in pairs])
    codes = np.tile(documents, len(pairs))
    both = ~np.isnan(one) & ~np.isnan(other)
    if not both.any():
        return {}
    first = one[both].astype(np.intp)
    second = other[both].astype(np.intp)
    codes = np.unique(codes[both], return_inverse=True)[1]
    return {
        "between": estimate("accuracy", first, second, codes, options),
        "between_kappa": estimate("cohen-kappa", first, second, codes, options),
    }


def places(scores: Vector, levels: Sequence[float]) -> Vector:
    """Return the number of each score's category, from 0; NaN where there is no score."""
    result = np.full(len(scores), np.nan)
    present = ~np.isnan(scores)
    result[present] = nearest_places(scores[present], levels)
    return result


def _figures(
    ours: Vector,
    people: Vector,
    documents: Codes,
    most: int,
    options: EvaluationOptions,
) -> tuple[dict[str, Estimate], int]:
    """Return figures with intervals over documents, as agreement has them, and people's commonest category."""
    a = ours.astype(np.intp)
    b = people.astype(np.intp)
    commonest = int(np.argmax(np.bincount(b, minlength=most + 1)))
    titles = OF_TWO if most == 1 else OF_SEVERAL
    figures = {
        key: estimate(_MEASURES[key], a, b, documents, options)
        for key in titles
        if key in _MEASURES
    }
    if most == 1:
        figures |= {
            "judge": _passing(ours, documents, options),
            "people": _passing(people, documents, options),
        }
    figures["constant"] = estimate(
        "accuracy", np.full(len(b), commonest), b, documents, options
    )
    return figures, commonest


def _passing(side: Vector, documents: Codes, options: EvaluationOptions) -> Estimate:
    return estimate(
        "accuracy",
        side.astype(np.intp),
        np.ones(len(side), dtype=np.intp),
        documents,
        options,
    )


def estimate(
    name: str, x: Codes, y: Codes, documents: Codes, options: EvaluationOptions
) -> Estimate:
    """Return a measure of decisions with its interval; NaN where there are none. name: as `--coefficient` has it."""
    if not decision_of(name).counted(x, y).any():
        return Estimate(math.nan)
    agreement = share_of(name, x, y, documents)
    if not options.rounds or math.isnan(agreement.values[0]):
        return Estimate(agreement.values[0])
    interval = interval_of(
        agreement,
        rounds=options.rounds,
        confidence=options.confidence,
        seed=options.seed,
    )
    return Estimate(interval.value, interval.low, interval.high)
