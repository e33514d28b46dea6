"""The pass rate of all rows, by the judge's verdicts of all and people's labels of some."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.rates import rate, strata
from judgesmith.errors import LabelsError
from judgesmith.evaluating.decided import Decided
from judgesmith.evaluating.sources import Judged

#: The column in which `judgesmith label` writes it.
CHANCE = "label_chance"


@dataclass(frozen=True, slots=True)
class PassRate:
    """The share of all rows that people would pass."""

    judge: str
    aspect: str
    value: float
    low: float
    high: float
    naive: float
    """The share that the judge passes, uncorrected."""
    labels: int
    rows: int

    def __str__(self) -> str:
        ends = f"[{100 * self.low:.0f}, {100 * self.high:.0f}]"
        return (
            f"Of all {self.rows} answers, people would pass {100 * self.value:.0f}% {ends}, by {self.labels} labels "
            f"and {self.judge}'s verdicts (it passes {100 * self.naive:.0f}%). The labels have to be a random part."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        ends = {"value": self.value, "low": self.low, "high": self.high}
        about = {"judge": self.judge, "aspect": self.aspect, "judge_passes": self.naive}
        return about | ends | {"labels": self.labels, "rows": self.rows}


def chances_of(data: Judged, column: str | None) -> Vector | None:
    """Return the probability with which each row was drawn for labelling; None where all are alike.

    column: where it stands; None: where `judgesmith label` wrote it, if it did.

    Raises:
        LabelsError: If there is no such column, or a labelled row has no number in (0, 1].
    """
    chances = data.chances(column)
    if chances is None:
        return None
    rated = np.zeros(len(chances), dtype=bool)
    for ratings in data.human.values():
        rated |= ~np.isnan(ratings)
    wrong = rated & ~((chances > 0) & (chances <= 1))
    if wrong.any():
        row = data.rows[int(wrong.argmax())]
        raise LabelsError(
            f"{data.origin}, row {row.line}, column {column or CHANCE!r}: a row with a human rating needs a "
            "probability in (0, 1]"
        )
    if column is not None and rated.all():
        raise LabelsError(
            f"{data.origin}: every row has a human rating, so --probability {column} says nothing of rows that were "
            "not drawn; give the file of all rows, labelled or not"
        )
    if np.ptp(chances[rated]) > 0:
        data.unequal = column or CHANCE
    return chances


def pass_rates(
    decided: Sequence[Decided],
    chances: Vector | None = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> Iterator[PassRate]:
    """Yield the pass rate by each judge of pass and fail, in strata of its verdicts.

    chances: the probability with which each row was drawn for labelling; None: all alike.
    """
    for one in decided:
        labelled = ~np.isnan(one.people)
        if len(one.names) != 2 or not labelled.any():
            continue
        weights = np.ones(len(one.people))
        if chances is not None:
            weights[labelled] = 1 / chances[labelled]
        rng = np.random.default_rng(seed)
        found = rate(strata(one.judge), one.people, weights, one.documents, rng)
        low, high = found.interval(confidence)
        judged = one.judge[~np.isnan(one.judge)]
        naive = float(judged.mean()) if len(judged) else math.nan
        yield PassRate(
            one.name,
            one.aspect,
            found.mean,
            low,
            high,
            naive,
            int(labelled.sum()),
            len(one.people),
        )
