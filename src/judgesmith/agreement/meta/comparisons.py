"""Is one judge better than another? Tests between judges, corrected for being many."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..correlation import Coefficient, Level
from ..resampling import Measure
from ..significance import holm, paired_bootstrap, permutation_test
from .inputs import MANY, Aspect, How

ALL_PAIRS = 8  # judges up to which all pairs are tested, beyond it each against the first


def comparisons(
    judges: Sequence[str], aspects: Sequence[Aspect], levels: Sequence[Level], how: How, notes: list[str]
) -> list[dict[str, Any]]:
    if len(judges) < 2:
        return []
    result: list[dict[str, Any]] = []
    for aspect, level in itertools.product(aspects, levels):
        if len(aspect.y) > MANY:
            notes.append(f"judges are not compared above {MANY:,} rows; every difference that matters is significant")
            continue
        here = [judge for judge in judges if judge in aspect.x]
        pairs = list(itertools.combinations(here, 2))
        if len(here) > ALL_PAIRS:
            pairs = [(here[0], other) for other in here[1:]]
            notes.append(f"{len(here)} judges: each is tested against the first, {here[0]!r}, not every pair")
        family = [_compare(aspect, a, b, level, how) for a, b in pairs]
        corrected = holm([row["p_permutation"] for row in family]).tolist()
        result += [row | {"p_permutation_holm": p} for row, p in zip(family, corrected, strict=True)]
    return result


def _compare(aspect: Aspect, a: str, b: str, level: Level, how: How) -> dict[str, Any]:
    x_a, x_b, y = aspect.x[a], aspect.x[b], aspect.y
    coefficient: Coefficient = "sum" if how.compare_by == "q" else how.compare_by
    documents = aspect.doc if level != "system" else aspect.units
    measure = Measure(y, documents=documents, systems=aspect.sys, level=level, coefficient=coefficient)
    drawing: Any = {"rounds": how.rounds, "seed": how.seed}
    drawn = paired_bootstrap(x_a, x_b, measure, confidence=how.confidence, **drawing)
    permuted = permutation_test(x_a, x_b, measure, **drawing)
    return {
        "a": a,
        "b": b,
        "aspect": aspect.name,
        "level": level,
        "coefficient": how.compare_by,
        "difference": drawn.value,
        "low": drawn.low,
        "high": drawn.high,
        "n": drawn.documents,
        "p_permutation": permuted.p,
        "reason": drawn.reason or permuted.reason,
    }
