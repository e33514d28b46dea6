"""`judgesmith discern`: what a judge made of good texts and their perturbations, as tested numbers; no printing."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...datasets.perturbations.attacks import CONTROL
from ...datasets.perturbations.registry import Pair, Perturbation
from ...errors import OptionError
from ...optimizers.agreement.discernment import (
    OUR_WEIGHTS,
    Discernment,
    Summary,
    discernment,
    expert_weights,
    summarise,
)
from ...optimizers.agreement.significance import holm
from .options import DiscernOptions
from .pairs import Book, Contender, ask_key

# Statistics ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """What a judge made of one perturbation. test: of a rise for attacks, of a drop for all else. p_holm: over the
    perturbations of its kind. left: texts that could not be perturbed. fewest: pairs with which a perfect judge would
    pass Holm's first step; with fewer nothing can be said."""

    judge: str
    name: str
    kind: str
    level: str
    method: str
    paper: bool
    test: Discernment
    left: int
    p_holm: float = math.nan
    fewest: int = 5

    @property
    def enough(self) -> bool:
        return not math.isnan(self.test.p) and self.test.n >= self.fewest

    @property
    def sees(self) -> str:
        """ "yes" (significant among all perturbations), "alone" (only by itself), "no", or "unknown"."""
        if not self.enough:
            return "unknown"
        if self.p_holm <= 0.05:
            return "yes"
        return "alone" if self.test.d >= 1 else "no"

    def to_dict(self) -> dict[str, Any]:
        t = self.test
        first = t.tests[0]
        return {
            "judge": self.judge, "perturbation": self.name, "kind": self.kind, "level": self.level,
            "method": self.method, "paper": self.paper, "n": t.n, "left_out": self.left,
            "failed": max(x.left_out for x in t.tests), "d": _plain(t.d), "d_low": _plain(t.low),
            "d_high": _plain(t.high), "p": _plain(t.p), "p_holm": _plain(self.p_holm), "p_floor": _plain(first.floor),
            "d_normalised": _plain(t.d_normalised), "d_paper": _plain(t.d_paper), "d_expert": _plain(t.d_expert),
            "fewest": self.fewest,
            "effect": _plain(t.effect), "effect_low": _plain(t.effect_low), "effect_high": _plain(t.effect_high),
            "mean_change": _plain(t.drop), "share_changed": _plain(t.dropped), "sees": self.sees,
            "p_by_metric": [_plain(x.p) for x in t.tests],
            "reason": next((x.reason for x in t.tests if x.reason), None),
        }  # fmt: skip


@dataclass(frozen=True)
class JudgeResult:
    """One judge: its lines, and over its harmful perturbations with enough texts D_avg and D_min by each way to combine
    metrics (expert: None where no weight fits). false_alarms: share of the harmless changes that lowered the score."""

    judge: str
    metrics: tuple[str, ...]
    lines: tuple[Line, ...]
    summary: Summary
    paper: Summary
    expert: Summary | None
    false_alarms: float
    failed: int

    def of(self, kind: str) -> list[Line]:
        return [line for line in self.lines if line.kind == kind]

    def conclusion(self) -> str:
        """One line: what the judge is blind to, what it alarms for without need, and what it gives in to."""
        said = []
        harmful = self.of("damage")
        blind = [line.name for line in harmful if line.sees == "no"]
        doubtful = [line.name for line in harmful if line.sees == "alone"]
        unknown = [line.name for line in harmful if line.sees == "unknown" and line.test.n]
        if harmful:
            seen = sum(line.sees == "yes" for line in harmful)
            said.append(
                f"blind to {', '.join(blind)}" if blind else "blind to none of these" if seen else "sees nothing surely"
            )
        if doubtful:
            said.append(f"doubtful (not after Holm): {', '.join(doubtful)}")
        if unknown:
            said.append(f"too few texts to tell: {', '.join(unknown)}")
        alarmed = [line.name for line in self.of("invariance") if line.sees == "yes"]
        if alarmed:
            said.append(f"lowers its score without need for {', '.join(alarmed)}")
        fooled = [line.name for line in self.of("attack") if line.sees == "yes"]
        if CONTROL in fooled:  # then nothing is known about the attacks
            said.append("raises its score for any further sentence, so also for attacks")
        elif fooled:
            said.append(f"gives in to {', '.join(fooled)}")
        return f"{self.judge}: {'; '.join(said) or 'nothing was measured'}."

    def to_dict(self) -> dict[str, Any]:
        def shown(summary: Summary | None) -> dict[str, Any] | None:
            if summary is None:
                return None
            return {"d_avg": _plain(summary.d_avg), "d_min": _plain(summary.d_min), "worst": summary.worst or None,
                    "undefined": summary.undefined}  # fmt: skip

        return {
            "judge": self.judge, "metrics": list(self.metrics), "normalised": shown(self.summary),
            "paper": shown(self.paper), "expert": shown(self.expert), "false_alarms": _plain(self.false_alarms),
            "failed": self.failed, "conclusion": self.conclusion(),
            "perturbations": [line.to_dict() for line in self.lines],
        }  # fmt: skip


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def analyse(
    contender: Contender,
    book: Book,
    perturbations: Mapping[str, Perturbation],
    how: DiscernOptions,
    weights: Mapping[str, Mapping[str, float]] | None = None,
) -> JudgeResult:
    """The tests of one judge. weights: an expert's table."""
    values = metric_values(contender, book, how)
    groups: dict[str, list[Pair]] = {}
    for pair in book.pairs:
        groups.setdefault(pair.name, []).append(pair)
    left = Counter(one.name for one in book.left)
    places = {name: i for i, name in enumerate(perturbations)}
    names = sorted(
        dict.fromkeys([*groups, *left]),
        key=lambda name: (places.get(name.partition(":")[0], len(places)), name.endswith("major")),
    )
    metrics = tuple(values)
    lines = []
    for name in names:
        perturbation = perturbations[name.partition(":")[0]]
        pairs = groups.get(name, [])
        before, after = (
            np.array([[by_key.get(ask_key(p, text), math.nan) for p, text in side] for by_key in values.values()])
            for side in ([(p, p.original) for p in pairs], [(p, p.perturbed) for p in pairs])
        )
        attack = perturbation.kind == "attack"
        if attack:
            before, after = after, before
        chosen = expert_weights(weights or OUR_WEIGHTS, name, metrics) if len(metrics) > 1 else None
        found = discernment(before, after, form=how.form, rounds=how.rounds, seed=how.seed)
        if chosen is not None:
            found = replace(found, d_expert=discernment(before, after, weights=chosen).d_expert)
        lines.append(
            Line(contender.name, name, perturbation.kind, perturbation.level, perturbation.method,
                 bool(perturbation.paper), found, left[name])
        )  # fmt: skip
    return _result(contender, metrics, lines, book, values)


def metric_values(contender: Contender, book: Book, how: DiscernOptions) -> dict[str, dict[str, float]]:
    """metric -> text's key -> mean score over the repeats."""
    several: dict[str, dict[str, list[float]]] = {}
    by_mark = {mark: metric for metric, mark in contender.marks.items()}
    for (mark, key, k), record in book.scores.items():
        if mark not in by_mark or k >= how.repeat:
            continue
        named = record.get("criteria") or {} if how.criteria else {by_mark[mark]: record.get("score")}
        for metric, score in named.items():
            if score is not None:
                several.setdefault(metric, {}).setdefault(key, []).append(float(score))
    if how.criteria and not several:
        raise OptionError(f"{contender.name} gives no scores for criteria; leave --criteria out")
    metrics = several if how.criteria else {metric: several.get(metric, {}) for metric in contender.marks}
    return {m: {key: math.fsum(s) / len(s) for key, s in by_key.items()} for m, by_key in metrics.items()}


def _result(
    contender: Contender,
    metrics: tuple[str, ...],
    lines: Sequence[Line],
    book: Book,
    values: Mapping[str, Mapping[str, float]],
) -> JudgeResult:
    adjusted = list(lines)
    for kind in ("damage", "invariance", "attack"):
        places = [i for i, line in enumerate(adjusted) if line.kind == kind]
        # The least p of n pairs is 2**-n; what cannot pass is no part of the family.
        fewest = 1
        while 0.5**fewest > 0.05 / max(1, sum(adjusted[i].test.n >= fewest for i in places)):
            fewest += 1
        tested = [adjusted[i].test.p if adjusted[i].test.n >= fewest else math.nan for i in places]
        for i, p in zip(places, holm(tested) if places else [], strict=True):
            adjusted[i] = replace(adjusted[i], p_holm=float(p), fewest=fewest)
    harmful = [line for line in adjusted if line.kind == "damage" and line.enough]
    levels = {line.name: line.level for line in harmful}

    def over(which: str) -> Summary:
        return summarise({line.name: getattr(line.test, which) for line in harmful}, levels)

    expert = over("d_expert")
    harmless = [line.test for line in adjusted if line.kind == "invariance" and line.test.n]
    texts = sum(t.n for t in harmless)
    alarms = math.fsum(t.dropped * t.n for t in harmless) / texts if texts else math.nan
    asked = {ask_key(p, text) for p in book.pairs for text in (p.original, p.perturbed)}
    failed = sum(any(key not in by_key for by_key in values.values()) for key in asked)
    return JudgeResult(
        contender.name, metrics, tuple(adjusted), over("d_normalised"), over("d_paper"),
        expert if expert.undefined < len(harmful) else None, alarms, failed,
    )  # fmt: skip


def read_weights(path: Path) -> dict[str, dict[str, float]]:
    """An expert's weights: JSON {perturbation: {metric: weight}}, or CSV with the perturbation in the first column and
    a column for each metric, or with the columns perturbation, metric, weight. Raises OptionError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"--weights {path}: {error}") from None
    table: dict[str, dict[str, float]] = {}

    def put(perturbation: str, metric: str, cell: Any, where: str) -> None:
        try:
            weight = float(cell)
        except (TypeError, ValueError):
            weight = math.nan
        if isinstance(cell, bool) or not (math.isfinite(weight) and weight >= 0):
            raise OptionError(f"--weights {path.name}, {where}: {cell!r} is no weight; give a number of at least 0")
        table.setdefault(perturbation.strip(), {})[metric.strip()] = weight

    if path.suffix.lower() == ".json":
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise OptionError(f"--weights {path.name}: no JSON ({error})") from None
        if not isinstance(data, dict) or not all(isinstance(row, dict) for row in data.values()):
            raise OptionError(f"--weights {path.name}: expected {{perturbation: {{metric: weight}}}}")
        for name, row in data.items():
            for metric, cell in row.items():
                put(name, metric, cell, f"{name!r}, {metric!r}")
    else:
        rows = list(csv.DictReader(io.StringIO(text)))
        for number, cells in enumerate(rows, 2):
            first, *others = [str(name) for name in cells if name is not None]
            if {"metric", "weight"} <= set(others):
                put(cells[first] or "", cells["metric"] or "", cells["weight"], f"line {number}")
                continue
            for metric in others:
                if (cells[metric] or "").strip():
                    put(cells[first] or "", metric, cells[metric], f"line {number}, {metric!r}")
    if not table:
        raise OptionError(f"--weights {path.name}: no weight in it")
    return table
