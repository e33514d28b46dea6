"""May a judge take a rater's place? The alternative annotator test on what `judgesmith evaluate` has read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..agreement.correlation import Vector
from ..agreement.replacement import Replacement, alternative_annotator_test
from ..errors import OptionError
from ..optimizers.fitting.heads import folds
from .sources import Judged

__all__ = ["may_replace", "told"]

FOLDS = 5


def may_replace(data: Judged, epsilon: float) -> dict[tuple[str, str], tuple[Replacement, bool]]:
    """By judge and aspect: the test, and whether the judge's scores had to be mapped to the raters' scale.

    Scores that are known to be on people's scale are taken as they are. Others (metrics, columns) are mapped by a
    straight line that the other documents' rows teach. Raises OptionError where no aspect has several raters.
    """
    if not data.ratings:
        raise OptionError(
            f"--alt-test compares a judge with single raters, and {data.origin} has one score a row; give columns "
            "score_1, score_2, …, or an .annotators.jsonl beside the file"
        )
    found = {}
    for judge, by_aspect in data.judges.items():
        for aspect, scores in by_aspect.items():
            if aspect in data.ratings:
                mapped = judge not in data.on_scale
                said = _mapped(scores, data.human[aspect], data.documents) if mapped else scores
                table = data.ratings[aspect]
                test = alternative_annotator_test(said, table, documents=data.documents, epsilon=epsilon)
                found[judge, aspect] = test, mapped
    return found


def _mapped(scores: Vector, human: Vector, documents: list[str]) -> Vector:
    made = np.full(len(scores), np.nan)
    known = ~np.isnan(scores) & ~np.isnan(human)
    for rows in folds(documents, FOLDS):
        rest = known.copy()
        rest[rows] = False
        if rest.sum() > 2 and np.ptp(scores[rest]) > 0:
            made[rows] = np.polyval(np.polyfit(scores[rest], human[rest], 1), scores[rows])
    return made


def as_json(found: Mapping[tuple[str, str], tuple[Replacement, bool]]) -> list[dict[str, Any]]:
    return [{"judge": j, "aspect": a, "mapped": mapped} | test.to_dict() for (j, a), (test, mapped) in found.items()]


def told(found: Mapping[tuple[str, str], tuple[Replacement, bool]]) -> list[str]:
    """A sentence for each judge and aspect, and its conditions."""
    lines = []
    for (judge, aspect), (test, mapped) in found.items():
        won = sum(one.won for one in test.raters)
        may = "may replace a rater" if test.passed else "may not replace a rater"
        lines.append(
            f"Alternative annotator test, {judge}, {aspect}: {may} (wins against {won} of {len(test.raters)} raters, "
            f"ω {test.omega:.2f}, 0.5 is needed; advantage ρ {test.rho:.2f}; ε {test.epsilon:g})"
            + ("; its scores were mapped to the raters' scale by a line from other documents" if mapped else "")
        )
        lines += [f"  condition not met: {condition}" for condition in test.conditions]
    return lines
