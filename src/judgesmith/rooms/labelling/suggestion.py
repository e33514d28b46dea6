"""Choice of the rows to label next.

Rows are taken one after the other: from documents and systems that have fewest labels, and there the row whose readings
are farthest from those of every row that has a label or was taken (farthest-first traversal, in ranks, so that no wild
value counts more than its place), a little nearer where readings contradict each other. Rows that resemble no other are
taken last: what is learnt from them holds for nothing else.

Sources: Gonzalez 1985 and Sener and Savarese 2018 for the traversal; Wu 2019 (Information Sciences 474) for passive
sampling in regression.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.correlation import Codes, Vector, id_codes, vector
from judgesmith.errors import OptionError

#: Neighbours that a row is compared with, to know whether it resembles others, and the share that are taken last.
NEIGHBOURS = 5
ODD = 0.05
#: What the disagreement of readings counts beside the distance.
CONTRADICTION = 0.5
#: With fewer labels the readings' directions cannot be told.
FEWEST_LABELS = 8


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A row to label.

    row: its place, from 0. predicted: its rank among all rows by the mean of the readings, 0 to 1. disagreement:
    standard deviation of the readings' ranks. why: in words.
    """

    row: int
    predicted: float
    disagreement: float
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, with a column that marks the row as suggested, which compiling heeds."""
        record = {
            "predicted": round(self.predicted, 4),
            "disagreement": round(self.disagreement, 4),
            "why": self.why,
        }
        return record | {"chosen_by": "suggest"}


def suggest(
    readings: Mapping[str, npt.ArrayLike],
    n: int,
    *,
    human: npt.ArrayLike | None = None,
    documents: Iterable[Hashable] | None = None,
    systems: Iterable[Hashable] | None = None,
) -> list[Suggestion]:
    """Return the next `n` rows to label, the most useful first; fewer if there are no more.

    The choice is not random: estimates of how good systems are (`estimate`) need rows drawn at random instead.

    Args:
        readings: name -> a number for each row (judges' scores, metrics, likelihoods, counts), NaN where there is none.
        n: rows to return, at most.
        human: human ratings; rows with NaN have none yet and may be suggested. None: all rows may.
        documents: document of each row.
        systems: system of each row.

    Returns:
        One `Suggestion` per row.

    Raises:
        OptionError: If readings are not numbers, or have other lengths.

    >>> [s.row for s in suggest({"judge": [1, 2, 3, 4, 5]}, 2, human=[3, np.nan, np.nan, np.nan, np.nan])]
    [4, 2]
    """
    if n < 1:
        raise OptionError(f"n: {n} is below 1; ask for one row or more")
    columns = [vector(values, name, missing=True) for name, values in readings.items()]
    if not columns or len({len(c) for c in columns}) > 1:
        raise OptionError("give one reading at least, with a number for each row")
    rows = len(columns[0])
    if human is None:
        scores = np.full(rows, np.nan)
    else:
        scores = vector(human, "human", missing=True)
    if len(scores) != rows:
        raise OptionError(
            f"human ratings: {len(scores)} for {rows} rows; give one per row, NaN where there is none"
        )
    if documents is None:
        doc = np.arange(rows)
    else:
        doc = id_codes(documents, rows, "documents")
    if systems is None:
        sys = np.zeros(rows, dtype=np.intp)
    else:
        sys = id_codes(systems, rows, "systems")
    ranks = _ranks(columns, scores)
    return _Choice(ranks, ~np.isnan(scores), doc, sys).take(n)


def _ranks(columns: list[Vector], scores: Vector) -> Vector:
    """Return ranks in 0..1, in the direction of human ratings if enough are known; the middle where missing."""
    rated = ~np.isnan(scores)
    ranks = []
    for column in columns:
        present = ~np.isnan(column)
        rank = np.full(len(column), 0.5)
        if present.sum() > 1:
            rank[present] = (scipy.stats.rankdata(column[present]) - 1) / (
                present.sum() - 1
            )
        both = present & rated
        if (
            both.sum() >= FEWEST_LABELS
            and np.ptp(rank[both]) > 0
            and np.ptp(scores[both]) > 0
        ) and scipy.stats.spearmanr(rank[both], scores[both])[0] < 0:
            rank = 1 - rank
        ranks.append(rank)
    return np.stack(ranks, axis=1)


class _Choice:
    """One choice of rows, taken one after the other."""

    def __init__(
        self, ranks: Vector, labelled: npt.NDArray[np.bool_], doc: Codes, sys: Codes
    ) -> None:
        self.ranks = ranks
        self.open = ~labelled
        self.doc = doc
        self.sys = sys
        self.predicted = ranks.mean(axis=1)
        self.disagreement = ranks.std(axis=1)
        self.of_doc = np.bincount(doc[labelled], minlength=int(doc.max(initial=-1)) + 1)
        self.of_sys = np.bincount(sys[labelled], minlength=int(sys.max(initial=-1)) + 1)
        self.odd = _odd(ranks)
        self.distance = np.full(len(ranks), np.inf)
        for row in np.flatnonzero(labelled):
            self._near(int(row))

    def take(self, n: int) -> list[Suggestion]:
        chosen: list[Suggestion] = []
        while len(chosen) < n and self.open.any():
            row = self._next()
            chosen.append(
                Suggestion(
                    row,
                    float(self.predicted[row]),
                    float(self.disagreement[row]),
                    self._why(row),
                )
            )
            self.open[row] = False
            self.of_doc[self.doc[row]] += 1
            self.of_sys[self.sys[row]] += 1
            self._near(row)
        return chosen

    def _near(self, row: int) -> None:
        away = np.sqrt(np.mean((self.ranks - self.ranks[row]) ** 2, axis=1))
        self.distance = np.minimum(self.distance, away)

    def _next(self) -> int:
        rows = np.flatnonzero(self.open)
        for count in (self.odd, self.of_doc[self.doc], self.of_sys[self.sys]):
            rows = rows[count[rows] == count[rows].min()]
        if np.isinf(
            self.distance[rows[0]]
        ):  # nothing is labelled: from the middle outwards
            gain = -np.abs(self.predicted[rows] - np.median(self.predicted))
        else:
            gain = self.distance[rows] + CONTRADICTION * self.disagreement[rows]
        return int(rows[int(np.argmax(gain))])

    def _why(self, row: int) -> str:
        rank = self.predicted[row]
        height = "middling"
        if rank < 1 / 3:
            height = "low"
        elif rank > 2 / 3:
            height = "high"
        reasons = [f"{height} predicted score (rank {rank:.2f})"]
        before = int(self.of_doc[self.doc[row]])
        reasons.append(
            "a document without labels"
            if not before
            else f"a document with {before} labels"
        )
        if len(self.of_sys) > 1:
            reasons.append(f"a system with {int(self.of_sys[self.sys[row]])} labels")
        if self.disagreement[row] > np.quantile(self.disagreement, 0.75):
            reasons.append("the judge's signals contradict each other")
        if self.odd[row]:
            reasons.append("resembles no other row")
        return ", ".join(reasons)


def _odd(ranks: Vector) -> npt.NDArray[np.bool_]:
    """Return rows that lie farther from their nearest others than almost all rows do."""
    if len(ranks) <= 4 * NEIGHBOURS or ranks.shape[1] < 2:
        return np.zeros(len(ranks), dtype=np.bool_)
    away = np.asarray(scipy.spatial.cKDTree(ranks).query(ranks, k=NEIGHBOURS + 1)[0])[
        :, -1
    ]
    return np.asarray(away > np.quantile(away, 1 - ODD))
