"""`judgesmith discern` with several judges: which of them discerns more on the same texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from ..agreement.correlation import Vector
from ..agreement.discernment_comparison import Gap, compare_discernment
from ..agreement.significance import holm
from .options import DiscernOptions
from .pairs import Book, Contender
from .run import JudgeResult, Scores, scores_of


@dataclass(frozen=True)
class Comparison:
    """Judge `a` less judge `b`, over the paper's perturbations where both have some (`of_paper`), else over all.
    p_holm: over the pairs of judges; by_name_holm: over these and all perturbations."""

    a: str
    b: str
    gap: Gap
    of_paper: bool = False
    p_holm: float = math.nan
    by_name_holm: Mapping[str, float] = field(default_factory=dict)

    def differing(self) -> list[tuple[str, float, float]]:
        """(perturbation, difference of the effects, p after Holm) where they surely differ."""
        return [(name, self.gap.by_name[name][0], p) for name, p in self.by_name_holm.items() if p <= 0.05]

    def to_dict(self) -> dict[str, Any]:
        g = self.gap
        return {
            "a": self.a, "b": self.b, "texts": g.texts, "effect": g.value, "low": g.low, "high": g.high, "p": g.p,
            "p_holm": self.p_holm, "d_avg": g.d, "reason": g.reason, "over": "paper" if self.of_paper else "all",
            "perturbations": [
                {"perturbation": name, "effect": value, "p": p, "p_holm": self.by_name_holm.get(name)}
                for name, (value, p) in g.by_name.items()
            ],
        }  # fmt: skip


def compare(
    contenders: Sequence[Contender],
    results: Sequence[JudgeResult],
    book: Book,
    how: DiscernOptions,
) -> list[Comparison]:
    """Every two judges, on the perturbations that both have enough texts for."""
    scores = [_scores(contender, book, how) for contender in contenders]
    result = []
    for i, j in combinations(range(len(results)), 2):
        enough = [{line.name: line for line in results[k].of("degradation") if line.enough} for k in (i, j)]
        lines = [line for name, line in enough[0].items() if name in enough[1]]
        of_paper = [line for line in lines if line.origin == "paper"]
        gaps = [
            compare_discernment(
                scores[i], scores[j], {line.name: line.level for line in some}, rounds=how.rounds, seed=how.seed
            )
            for some in ((lines, of_paper) if 0 < len(of_paper) < len(lines) else (lines,))
        ]
        gap = replace(gaps[-1], by_name=gaps[0].by_name)
        result.append(Comparison(results[i].judge, results[j].judge, gap, bool(of_paper)))
    return _adjusted(result)


def _adjusted(found: Sequence[Comparison]) -> list[Comparison]:
    if not found:
        return []
    overall = holm([one.gap.p for one in found])
    places = [(k, name) for k, one in enumerate(found) for name in one.gap.by_name]
    single = holm([found[k].gap.by_name[name][1] for k, name in places]).tolist() if places else []
    by_name: list[dict[str, float]] = [{} for _ in found]
    for (k, name), p in zip(places, single, strict=True):
        by_name[k][name] = p
    return [
        replace(one, p_holm=float(p), by_name_holm=names) for one, p, names in zip(found, overall, by_name, strict=True)
    ]


def _scores(contender: Contender, book: Book, how: DiscernOptions) -> dict[str, tuple[Vector, Vector]]:
    """Scores before and after by perturbation, metrics × all texts; NaN where a text has no pair or no score."""
    _, scores = scores_of(contender, book, how)
    columns = {group: k for k, group in enumerate(dict.fromkeys(pair.group for pair in book.pairs))}
    result: dict[str, Scores] = {}
    for k, pair in enumerate(book.pairs):
        if pair.kind == "degradation":
            table = result.setdefault(pair.name, np.full((2, scores.shape[1], len(columns)), np.nan))
            table[:, :, columns[pair.group]] = scores[:, :, k]
    return {name: (before, after) for name, (before, after) in result.items()}
