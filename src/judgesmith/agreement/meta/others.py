"""Agreement that a correlation cannot see: on the scale, about length, in systems' ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..correlation import Vector
from ..scale import calibration_curve, length_bias, rank_systems, scale_agreement
from .inputs import MANY, Aspect, How, Scores, scores_of


def _stages(
    judges: Mapping[str, Scores], before: Mapping[str, Scores], aspect: Aspect
) -> list[tuple[str, str, Vector]]:
    result = []
    for judge in judges:
        if judge in aspect.x:
            result.append((judge, "", aspect.x[judge]))
            raw = before.get(judge)
            raw = raw.get(aspect.name) if isinstance(raw, Mapping) else raw
            if raw is not None:
                result.append((judge, "uncalibrated", scores_of(f"judge {judge!r}", raw)[aspect.rows]))
    return result


def _off_scale(
    judge: str, x: Vector, limits: tuple[float, float] | None, on_scale: Collection[str] | None
) -> str | None:
    if on_scale is not None and judge not in on_scale:
        return "not known to score on the human ratings' scale"
    x = x[~np.isnan(x)]
    if not len(x):
        return "no row has a prediction"
    if limits is None:
        return "the scale of human ratings is not known"
    low, high = limits
    slack = 1e-9 * max(abs(low), abs(high))
    if x.min() < low - slack or x.max() > high + slack:
        return f"scores from {x.min():.4g} to {x.max():.4g} are not on the human ratings' scale {low:g}..{high:g}"
    return None


def scales(
    judges: Mapping[str, Scores],
    before: Mapping[str, Scores],
    aspects: Sequence[Aspect],
    limits: Mapping[str, tuple[float, float] | None],
    on_scale: Collection[str] | None,
    how: How,
) -> list[dict[str, Any]]:
    """Errors on people's scale, each with its limits, or why there are none."""
    result = []
    for aspect in aspects:
        drawing = {"rounds": how.rounds if len(aspect.y) <= MANY else min(how.rounds, 200)}
        for judge, stage, x in _stages(judges, before, aspect):
            row: dict[str, Any] = {"judge": judge, "aspect": aspect.name, "stage": stage}
            reason = _off_scale(judge, x, limits[aspect.name], on_scale)
            if reason is not None:
                row |= {"n": int((~np.isnan(x)).sum()), "failed": int(np.isnan(x).sum()), "reason": reason}
            else:
                found = scale_agreement(
                    x, aspect.y, documents=aspect.units, confidence=how.confidence, seed=how.seed, **drawing
                )
                row |= dataclasses.asdict(found)
                for name in ("mae", "bias", "rmse"):
                    estimate = row[name]
                    row |= {name: estimate["value"], f"{name}_low": estimate["low"], f"{name}_high": estimate["high"]}
            result.append(row)
    return result


def calibrations(
    judges: Mapping[str, Scores],
    before: Mapping[str, Scores],
    aspects: Sequence[Aspect],
    on_scale: Collection[str] | None,
) -> list[dict[str, Any]]:
    return [
        {"judge": judge, "aspect": aspect.name, "stage": stage, "bin": number} | dataclasses.asdict(part)
        for aspect in aspects
        for judge, stage, x in _stages(judges, before, aspect)
        if on_scale is None or judge in on_scale
        for number, part in enumerate(calibration_curve(x, aspect.y))
    ]


def assumed_on_scale(rows: Sequence[Mapping[str, Any]], on_scale: Collection[str] | None) -> list[str]:
    """The note that names the judges whose scale was not given."""
    names = dict.fromkeys(str(row["judge"]) for row in rows if on_scale is None and row.get("reason") is None)
    if not names:
        return []
    return [
        f"taken to be on the human ratings' scale, since their scores lie inside it: {', '.join(names)}; the error "
        "on the scale is meaningless for a metric with a scale of its own"
    ]


def length_biases(
    judges: Mapping[str, Scores], aspects: Sequence[Aspect], lengths: npt.ArrayLike | None
) -> list[dict[str, Any]]:
    if lengths is None:
        return []
    every = scores_of("lengths", lengths)
    return [
        {"judge": judge, "aspect": aspect.name} | dataclasses.asdict(length_bias(x, aspect.y, every[aspect.rows]))
        for aspect in aspects
        for judge, _, x in _stages(judges, {}, aspect)
    ]


def system_ranks(
    judges: Mapping[str, Scores], aspects: Sequence[Aspect], systems: Iterable[Hashable] | None
) -> list[dict[str, Any]]:
    if systems is None:
        return []
    names = np.array([str(s) for s in systems], dtype=object)
    return [
        {"aspect": aspect.name, "judge": judge} | dataclasses.asdict(place)
        for aspect in aspects
        for judge, _, x in _stages(judges, {}, aspect)
        for place in rank_systems(x, aspect.y, names[aspect.rows])
    ]
