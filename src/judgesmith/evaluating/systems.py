"""Which systems people's labels tell apart, with the judge's means beside them, for `check --level system`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.estimation import Estimates, estimate
from judgesmith.errors import LabelsError
from judgesmith.evaluating.options import EvaluateOptions
from judgesmith.evaluating.sources import Judged
from judgesmith.tables import counted


@dataclass(frozen=True, slots=True)
class Systems:
    """Means of systems on people's scale by labels and a judge.

    alone: pairs of systems that the labels tell apart without the judge.
    """

    judge: str
    aspect: str
    estimates: Estimates
    alone: int

    @property
    def told(self) -> int:
        """Pairs of systems that are told apart, after Holm over all pairs."""
        return _told(self.estimates)

    def __str__(self) -> str:
        best = self.estimates.systems[0]
        rank = f"{best.rank_low}"
        if best.rank_high != best.rank_low:
            rank += f" to {best.rank_high}"
        line = ""
        if self.estimates.on_line:
            line = ", drawn to the line of people's means by the judge's"
        pairs = counted(len(self.estimates.differences), "pair")
        return (
            f"Of {pairs} of systems, people's labels alone tell {self.alone} apart in {self.aspect}, and {self.told} "
            f"with {self.judge}'s scores{line}. The highest mean is {best.system}'s, {best.mean:.2f} "
            f"[{best.low:.2f}, {best.high:.2f}], rank {rank}. `judgesmith estimate` lists them."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        about = {
            "judge": self.judge,
            "aspect": self.aspect,
            "alone": self.alone,
            "told": self.told,
        }
        return about | self.estimates.to_dict()


def systems_told(
    data: Judged, chances: Vector | None, options: EvaluateOptions
) -> Iterator[Systems]:
    """Yield the systems of each judge and aspect, if the level of systems was asked for and they are named.

    chances: the probability with which each row was drawn for labelling; None: all alike.
    """
    if data.systems is None or "system" not in (options.levels or ()):
        return
    about: dict[str, Any] = {
        "systems": data.systems,
        "documents": data.documents,
        "probabilities": chances,
        "confidence": options.confidence,
        "seed": options.seed,
    }
    for aspect, human in data.human.items():
        alone: int | None = None
        for judge, by_aspect in data.judges.items():
            scores = by_aspect.get(aspect)
            if scores is None or np.isnan(scores).all():
                continue
            try:
                found = estimate(scores, human, **about)
                if alone is None:
                    alone = _told(estimate(np.zeros(len(human)), human, **about))
            except LabelsError:
                continue
            if found.differences and not math.isnan(found.systems[0].low):
                yield Systems(judge, aspect, found, alone)


def _told(estimates: Estimates) -> int:
    return sum(d.p < 1 - estimates.confidence for d in estimates.differences)
