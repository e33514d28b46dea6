"""How far judges agree with people on the rows that `judgesmith score --defer` does not leave to a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..agreement.correlation import Coefficient, Vector, correlate
from .sources import Judged

MEASURES: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")


def on_the_rest(data: Judged) -> list[dict[str, Any]]:
    """By judge and aspect, pooled: rows left to a person, and each measure on all rows and on the rest, with the mean
    error on people's scale where the judge is on it. Nothing where no row is left to a person."""
    if not data.deferred or len(data.deferred) == len(data.rows):
        return []
    rest = np.array([i not in data.deferred for i in range(len(data.rows))])
    found = []
    for judge, by_aspect in data.judges.items():
        for aspect, scores in by_aspect.items():
            human = data.human[aspect]
            there = ~np.isnan(scores) & ~np.isnan(human)
            entry: dict[str, Any] = {"judge": judge, "aspect": aspect, "left_to_people": len(data.deferred)}
            for name, rows in (("all", there), ("rest", there & rest)):
                entry[name] = _measures(scores[rows], human[rows], judge in data.on_scale)
            found.append(entry)
    return found


def _measures(scores: Vector, human: Vector, on_scale: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"rows": len(scores)}
    for name in MEASURES:
        known = correlate(scores, human, coefficient=name, level="pooled").value if len(scores) > 2 else np.nan
        made[name] = float(known)
    if on_scale:
        made["mean_error"] = float(np.abs(scores - human).mean()) if len(scores) else np.nan
    return made


def told(found: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence for each judge and aspect."""
    lines = []
    for entry in found:
        every, rest = entry["all"], entry["rest"]
        parts = [
            f"{name} {rest[name]:.3f} (all {every[name]:.3f})" for name in (*MEASURES, "mean_error") if name in rest
        ]
        lines.append(
            f"{entry['judge']}, {entry['aspect']}: {entry['left_to_people']} rows are left to people; on the other "
            f"{rest['rows']} {', '.join(parts).replace('mean_error', 'mean error')}"
        )
    return lines
