"""What telling systems apart reaches alone: each system's mean label in place of a score, and no text read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from judgesmith.agreement.coefficients import is_sum, of_scores, parts_of, title_of
from judgesmith.agreement.correlation import (
    Codes,
    Level,
    Vector,
    mean_defined,
    rowwise,
    tidy,
    within_documents,
)
from judgesmith.agreement.meta.inputs import MANY, Aspect, EvaluationOptions
from judgesmith.agreement.meta.intervals import Cell
from judgesmith.agreement.resampling import Agreement, Range, drawn_again, mean_drawn

SYSTEM_MEANS = "system means"
#: Parts of the documents; each takes the means of the others.
FOLDS = 4
#: Resamples; each computes the means again.
ROUNDS = 100
_LEVELS = ("pooled", "sample")


def by_system(
    aspects: Sequence[Aspect],
    levels: Sequence[Level],
    names: Sequence[str],
    options: EvaluationOptions,
) -> list[dict[str, Any]]:
    """Return the agreement of the mean label of each row's system on other documents.

    Documents are cut into four parts. Rows take the means of the other parts, and agreement inside each part is
    averaged. The means of all other rows would fall where a row's own label rises, and run against equal systems.
    Of equal systems, simulated: 0.00 ± 0.02 for Pearson (2 systems, 20 documents).

    A judge that only recognises systems reaches it. It cannot order rows of one system, nor be wrong on the systems'
    means.
    """
    reported = [name for name in names if name in of_scores()]
    result = []
    for aspect in aspects:
        if aspect.sys is None or aspect.systems < 2:
            continue
        documents = aspect.only(np.ones(len(aspect.y), dtype=np.bool_)).documents
        if documents < 2:
            continue
        parts = _parts(documents, options.seed)
        for level in filter(_LEVELS.__contains__, levels):
            about = {"aspect": aspect.name, "level": level}
            for name, cell in _cells(aspect, parts, level, reported, options).items():
                result.append(about | {"coefficient": name} | cell.row())
    return result


def _parts(documents: int, seed: int) -> Codes:
    """Return the part of each document."""
    return np.random.default_rng(seed).permutation(documents) % min(FOLDS, documents)


def mean_labels(y: Vector, sys: Codes, weights: Vector) -> Vector:
    """Return the weighted mean label of each row's system, a line for each line of weights; NaN without weight.

    >>> mean_labels(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1]), np.array([[0.0, 1.0, 0.0]])).tolist()
    [[3.0, 3.0, nan]]
    """
    of_system = np.eye(int(sys.max()) + 1)[sys]
    total = weights @ of_system
    total[total == 0] = np.nan
    return np.asarray(tidy((weights * y) @ of_system / total)[:, sys])


class _Means:
    """Agreement of the systems' mean labels when each document counts as often as it was drawn.

    Means are drawn, too: the same labels make the means of one part and the agreement of another.
    """

    def __init__(
        self, aspect: Aspect, parts: Codes, level: Level, names: Sequence[str]
    ) -> None:
        assert aspect.sys is not None
        self.y = aspect.y
        self.sys = aspect.sys
        self.level = level
        self.names = names
        self.units = aspect.only(np.ones(len(aspect.y), dtype=np.bool_))
        self.inside = [parts == part for part in range(int(parts.max()) + 1)]

    def __call__(self, counts: Vector) -> Vector:
        """Return the coefficients of counts, (rounds, documents) -> (rounds, coefficients)."""
        weights = counts[:, self.units.doc]
        x = np.empty_like(weights)
        for documents in self.inside:
            rows = documents[self.units.doc]
            others = np.where(rows, 0.0, weights)
            means = mean_labels(self.y, self.sys, others)
            x[:, rows] = means[:, rows]
        if self.level == "sample":
            values = self._within(counts, x)
        else:
            values = self._pooled(weights, x)
        return mean_defined(values, axis=0)

    def _within(self, counts: Vector, x: Vector) -> Vector:
        """Return the mean over the documents of each part, (parts, rounds, coefficients)."""
        rounds, documents = counts.shape
        known = ~np.isnan(x)
        doc = self.units.doc + documents * np.arange(rounds)[:, None]
        y = np.broadcast_to(self.y, x.shape)[known]
        found = within_documents(x[known], y, doc[known], counts.size, self.names)
        table = found.reshape(rounds, documents, len(self.names))
        means = []
        for inside in self.inside:
            once = zip(np.where(inside, counts, 0.0), table, strict=True)
            means.append([mean_drawn(drawn[None], one)[0] for drawn, one in once])
        return np.array(means)

    def _pooled(self, weights: Vector, x: Vector) -> Vector:
        """Return the coefficients of the rows of each part, (parts, rounds, coefficients)."""
        values = []
        for documents in self.inside:
            rows = documents[self.units.doc]
            values.append(
                [
                    self._repeated(one[rows], self.y[rows], drawn[rows])
                    for one, drawn in zip(x, weights, strict=True)
                ]
            )
        return np.array(values)

    def _repeated(self, x: Vector, y: Vector, weights: Vector) -> Vector:
        times = np.where(np.isnan(x), 0, weights).astype(np.intp)
        x = np.repeat(x, times)
        y = np.repeat(y, times)
        return np.asarray(rowwise(x[None], y[None], self.names)[0])


def _cells(
    aspect: Aspect,
    parts: Codes,
    level: Level,
    names: Sequence[str],
    options: EvaluationOptions,
) -> dict[str, Cell]:
    """Return the cell of each coefficient; all are computed from the same resamples."""
    columns = {name: parts_of(name) for name in names}
    wanted = list(dict.fromkeys(itertools.chain(*columns.values())))
    statistic = _Means(aspect, parts, level, wanted)
    documents = len(parts)
    rows = len(aspect.y)
    whole = statistic(np.ones((1, documents)))
    rounds = min(options.rounds, ROUNDS) if rows <= MANY else 0
    drawn = None
    if rounds:
        drawn = drawn_again(statistic, documents, rounds, options.seed, cells=rows)
    cells = {}
    for name, added in columns.items():
        at = [wanted.index(part) for part in added]
        value = float(whole[0, at].sum())
        total = is_sum(name)
        n = documents if level == "sample" else rows
        cell = cells[name] = Cell(value, n, 0, 0, rows, None)
        if math.isnan(value):
            cell.reason = "the systems' means or the labels are constant in each part"
        elif drawn is not None:
            within = Range.of(name)
            of = Agreement([], [value], documents, rows, total, None, within)
            cell.agreement = of
            cell.limit(of.collapsed(drawn[:, at]), options)
    return cells


def no_better_than_systems(
    rows: Sequence[Mapping[str, Any]],
    baseline: Sequence[Mapping[str, Any]],
    coefficient: str,
) -> list[str]:
    """Return a note for each judge that agrees no better, over all rows, than the systems' mean labels do."""

    def of_all_rows(row: Mapping[str, Any]) -> bool:
        return (row["level"], row["coefficient"]) == ("pooled", coefficient)

    reached = {row["aspect"]: row["value"] for row in baseline if of_all_rows(row)}
    judges: dict[str, list[str]] = {}
    for row in filter(of_all_rows, rows):
        if row["value"] <= reached.get(row["aspect"], math.nan):
            compared = f"{row['aspect']} ({row['value']:.2f} against {reached[row['aspect']]:.2f})"
            judges.setdefault(row["judge"], []).append(compared)
    return [
        f"{judge} agrees no better with people than the mean labels of the systems alone, without reading a text: "
        f"{', '.join(aspects)}, {title_of(coefficient)} over all rows; its order within systems stands beside it"
        for judge, aspects in judges.items()
    ]
