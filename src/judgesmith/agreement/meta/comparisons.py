"""Is one judge better than another? Tests between judges, corrected for being many."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..correlation import Coefficient, Level
from ..resampling import Measure
from ..significance import difference_of, holm, paired_bootstrap, permutation_test
from .inputs import MANY, Aspect, How

BOOTSTRAP_NOTE = (
    "at system level the paired bootstrap is too cautious (under 1 % false alarms where 5 % are allowed): it finds few "
    "of the differences that there are; go by the permutation"
)
SYSTEMS_NOTE = (
    "tests over documents speak of these very systems, too: judges as good as each other, but each with favourites "
    "among 16 systems, were called different in 11-18 % (pooled, sample) and 12-50 % (system) of simulated cases"
)
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
        if len(pairs):
            notes += _warnings(aspect, level, how, len(pairs))
        family = [_compare(aspect, a, b, level, how) for a, b in pairs]
        for test in ("p_permutation", "p_bootstrap"):
            for row, p in zip(family, holm([row[test] for row in family]), strict=True):
                row[f"{test}_holm"] = float(p)
        result += family
    return result


def _warnings(aspect: Aspect, level: Level, how: How, pairs: int) -> list[str]:
    """What is known of the false alarms of these tests, by simulation: experiments/results/intervals.md."""
    units = aspect.only(np.ones(len(aspect.y), dtype=np.bool_))
    result: list[str] = []
    if units.systems >= 3:
        result += [BOOTSTRAP_NOTE] if level == "system" else []
        result.append(SYSTEMS_NOTE)
    if units.documents > 1:
        least = difference_of(1.0, np.ones(how.rounds), units.documents, 0, how.confidence).p * pairs
        if least > 0.05:  # every resample on one side of 0 is not enough
            result.append(
                f"no p of the bootstrap falls below {min(1.0, least):.2f} with {pairs} pair{'s' * (pairs > 1)} of "
                f"judges, {units.documents} documents and {how.rounds} rounds; draw more rounds, or go by "
                "the permutation"
            )
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
        "p_bootstrap": drawn.p,
        "reason": drawn.reason or permuted.reason,
    }
