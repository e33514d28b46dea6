"""`judgesmith discern`: what a judge made of good texts and their perturbations, as tested numbers; no printing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.discernment import (
    OUR_WEIGHTS,
    Discernment,
    Form,
    Summary,
    combine,
    discernment,
    expert_weights,
    score_of,
    summarise,
)
from judgesmith.agreement.significance import holm
from judgesmith.datasets.perturbations.attacks import CONTROL
from judgesmith.datasets.perturbations.base import Origin
from judgesmith.datasets.perturbations.dhp import TASKS, origin_of
from judgesmith.datasets.perturbations.registry import Degree, Perturbation
from judgesmith.rooms.discerning.judging import Subject
from judgesmith.rooms.discerning.options import DiscernOptions
from judgesmith.rooms.discerning.pairs import Book, ask_key

Scores = NDArray[np.float64]

# Statistics ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """Test of a judge on one perturbation.

    test: of a rise for attacks, of a drop for all else. p_holm: of the normalised p over the perturbations of its kind
    and origin. left: texts that could not be perturbed. fewest: pairs with which a perfect judge would pass Holm's
    first step; with fewer nothing can be said. origin: "paper", "stand-in" or "ours".
    """

    name: str
    kind: str
    level: str
    method: str
    origin: Origin
    test: Discernment
    left: int
    p_holm: float = math.nan
    fewest: int = 5

    @property
    def enough(self) -> bool:
        """True if there are enough pairs for a significant result."""
        return not math.isnan(self.test.p) and self.test.n >= self.fewest

    @property
    def sees(self) -> str:
        """Reaction: "yes" (significant among all perturbations), "alone" (only if tested alone), "no" or "unknown"."""
        if not self.enough:
            return "unknown"
        if self.p_holm <= 0.05:
            return "yes"
        return "alone" if self.test.d_normalised >= 1 else "no"

    def to_dict(self) -> dict[str, Any]:
        """Return plain types; NaN if undefined."""
        t = self.test
        return {
            "perturbation": self.name,
            "kind": self.kind,
            "level": self.level,
            "method": self.method,
            "origin": self.origin,
            "n": t.n,
            "left_out": self.left,
            "failed": max(x.left_out for x in t.tests),
            "d": t.d,
            "d_low": t.low,
            "d_high": t.high,
            "p": t.p,
            "p_holm": self.p_holm,
            "p_floor": t.tests[0].floor,
            "d_normalised": t.d_normalised,
            "d_paper": t.d_paper,
            "d_expert": t.d_expert,
            "fewest": self.fewest,
            "effect": t.effect,
            "effect_low": t.effect_low,
            "effect_high": t.effect_high,
            "mean_change": t.drop,
            "share_changed": t.dropped,
            "sees": self.sees,
            "p_by_metric": [x.p for x in t.tests],
            "reason": next((x.reason for x in t.tests if x.reason), None),
        }


#: What the perturbations of an origin are called.
HEADINGS: Mapping[Origin, str] = {
    "paper": "the paper's perturbations",
    "stand-in": "stand-ins by rules for the paper's model-made perturbations",
    "ours": "perturbations of our own",
}


@dataclass(frozen=True)
class Overall:
    """D_avg and D_min over the harmful perturbations of one origin with enough texts, by each way to combine metrics.

    expert: None if no weight fits. names: of these perturbations.
    """

    normalised: Summary
    paper: Summary
    expert: Summary | None
    names: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types; NaN if undefined."""
        several = {
            "normalised": self.normalised,
            "paper": self.paper,
            "expert": self.expert,
        }
        return {
            name: summary and asdict(summary) | {"worst": summary.worst or None}
            for name, summary in several.items()
        } | {"rests_on": list(self.names)}


@dataclass(frozen=True)
class JudgeResult:
    """A judge's lines, with D_avg and D_min by the origin of its perturbations, which are never mixed.

    unmeasured: perturbations of the paper's task that its D_avg does not rest on. false_alarms: share of the harmless
    changes that lowered the score.
    """

    judge: str
    metrics: tuple[str, ...]
    lines: tuple[Line, ...]
    overall: Mapping[Origin, Overall]
    unmeasured: tuple[str, ...]
    form: Form
    false_alarms: float
    failed: int

    def of(self, kind: str, origin: Origin | None = None) -> list[Line]:
        """Return the lines of a kind, or of a kind and an origin."""
        return [
            line
            for line in self.lines
            if line.kind == kind and origin in (None, line.origin)
        ]

    def coverage(self) -> str:
        """Return the number of the paper's perturbations that D_avg rests on, with the missing ones."""
        count = len(self.overall["paper"].names)
        of = f"{count} of the paper's {count + len(self.unmeasured)} perturbations of this task"
        return of + (
            f" (without {', '.join(self.unmeasured)})" if self.unmeasured else ""
        )

    def named(self, kind: str, sees: str) -> list[str]:
        """Return the perturbations of a kind with that reaction, of those that some text allowed."""
        return [
            line.name for line in self.of(kind) if line.sees == sees and line.test.n
        ]

    def reactions(self) -> tuple[str, list[str]]:
        """Return the share of perturbations detected, and lists of those missed, of false alarms and of attacks."""
        seen = self.named("degradation", "yes")
        fooled = self.named("attack", "yes")
        harmful = [line for line in self.of("degradation") if line.test.n]
        # A judge that is fooled by the control rewards any further sentence, and nothing is known about the attacks.
        if CONTROL in fooled:
            gives_in = "raises its score for any further sentence, so also for"
        else:
            gives_in = "gives in to"
        named = {
            "blind to": self.named("degradation", "no"),
            "doubtful (not after Holm):": self.named("degradation", "alone"),
            "too few texts to tell:": self.named("degradation", "unknown"),
            "lowers its score without need for": self.named("invariance", "yes"),
            gives_in: fooled,
        }
        if harmful:
            head = f"{self.judge} sees {len(seen)} of {len(harmful)} perturbations"
        else:
            head = self.judge
        return head, [
            f"{title} {', '.join(names)}" for title, names in named.items() if names
        ]

    def conclusion(self) -> str:
        """Return the judge's reactions in a sentence."""
        head, named = self.reactions()
        return f"{'; '.join([head, *named])}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain types; NaN for what is undefined."""
        of_paper, *others = (self.overall[origin].to_dict() for origin in HEADINGS)
        return {
            "judge": self.judge,
            "metrics": list(self.metrics),
            **of_paper,
            "unmeasured": list(self.unmeasured),
            "stand_ins": others[0],
            "ours": others[1],
            "false_alarms": self.false_alarms,
            "failed": self.failed,
            "conclusion": self.conclusion(),
            "perturbations": [line.to_dict() for line in self.lines],
        }


def analyse(
    subject: Subject,
    book: Book,
    perturbations: Mapping[str, Perturbation],
    options: DiscernOptions,
    weights: Mapping[str, Mapping[str, float]] | None = None,
    task: str = "summarization",
) -> JudgeResult:
    """Test the judge on every perturbation.

    weights: an expert's table. task: of `dhp.TASKS`, decides which perturbations are the paper's.
    """
    metrics, scores = scores_of(subject, book, options)
    groups: dict[str, list[int]] = {}
    for k, pair in enumerate(book.pairs):
        groups.setdefault(pair.name, []).append(k)
    left = Counter(one.name for one in book.left)
    lines = []
    for name in _in_order([*groups, *left], perturbations):
        plain, _, degree = name.partition(":")
        perturbation = perturbations[plain]
        before, after = scores[:, :, groups.get(name, [])]
        if perturbation.kind == "attack":
            before, after = after, before
        test = discernment(
            before, after, form=options.form, rounds=options.rounds, seed=options.seed
        )
        chosen = _expert(name, perturbation, metrics, options, weights or OUR_WEIGHTS)
        if chosen is not None:
            values = [one.p for one in test.tests]
            test = replace(test, d_expert=score_of(combine(values, chosen)))
        lines.append(
            Line(
                name,
                perturbation.kind,
                perturbation.level,
                perturbation.method,
                origin_of(perturbation, cast(Degree, degree or "only"), task),
                test,
                left[name],
            )
        )
    lines = _adjusted(lines)
    overall = {origin: _overall_of(lines, origin) for origin in HEADINGS}
    unmeasured = [name for name in _of_task(task) if name not in overall["paper"].names]
    return JudgeResult(
        subject.name,
        metrics,
        tuple(lines),
        overall,
        tuple(unmeasured),
        options.form,
        _alarms(lines),
        _failures(book, scores),
    )


def _in_order(
    names: Iterable[str], perturbations: Mapping[str, Perturbation]
) -> list[str]:
    """Return names of perturbations with their degrees in the order of the registry, major ones last."""
    places = {name: i for i, name in enumerate(perturbations)}
    return sorted(
        dict.fromkeys(names),
        key=lambda name: (
            places.get(name.partition(":")[0], len(places)),
            name.endswith("major"),
        ),
    )


def _expert(
    name: str,
    perturbation: Perturbation,
    metrics: Sequence[str],
    options: DiscernOptions,
    weights: Mapping[str, Mapping[str, float]],
) -> list[float] | None:
    """Return an expert's weights of the metrics; None if there are none."""
    if len(metrics) == len(options.metrics) == 1:
        return [1.0]  # a task of one metric leaves nothing to weigh
    if len(metrics) < 2:
        return None
    # A stand-in has the weights of what it stands for, unless it has its own.
    own = expert_weights(weights, name, metrics)
    return own or expert_weights(weights, perturbation.stands_for, metrics) or None


def _of_task(task: str) -> Iterator[str]:
    """Yield the paper's perturbations of a task, with their degrees."""
    for name, degrees in TASKS[task].perturbations.items():
        for degree in degrees:
            yield name if degree == "only" else f"{name}:{degree}"


def _alarms(lines: Sequence[Line]) -> float:
    """Return the share of harmless changes that lowered the score; NaN without any."""
    texts = 0
    lowered = []
    for line in lines:
        if line.kind == "invariance" and line.test.n:
            texts += line.test.n
            lowered.append(line.test.dropped * line.test.n)
    return math.fsum(lowered) / texts if texts else math.nan


def _failures(book: Book, scores: Scores) -> int:
    """Return the number of texts that lack a score."""
    missing: Any = np.isnan(scores).any(axis=1)
    before, after = missing
    failed = set()
    for k, pair in enumerate(book.pairs):
        if before[k]:
            failed.add(ask_key(pair, pair.original))
        if after[k]:
            failed.add(ask_key(pair, pair.perturbed))
    return len(failed)


def scores_of(
    subject: Subject, book: Book, options: DiscernOptions
) -> tuple[tuple[str, ...], Scores]:
    """Return the judge's metrics and its scores before and after, shape (2, metrics, pairs); NaN where missing.

    A score is the mean over the repeats. Metrics are those of the task (`metrics`) if one scorer gives them all as its
    criteria or aspects, else its scorers.
    """
    by_mark = {mark: metric for metric, mark in subject.marks.items()}
    records = [
        (by_mark[mark], key, record)
        for (mark, key, k), record in book.scores.items()
        if mark in by_mark and k < options.repeat
    ]
    folded = {name.casefold(): name for name in options.metric_names}
    named = set[str]()
    for _, _, record in records:
        named.update(map(str.casefold, record.get("criteria") or {}))
    of_task = list(subject.marks) == ["score"] and folded and named >= folded.keys()
    metrics = tuple(folded.values() if of_task else subject.marks)
    several: dict[tuple[str, str], list[float]] = {}
    for metric, key, record in records:
        parts = {metric: record.get("score")}
        if of_task:
            parts = _criteria_of(record, folded)
        for name, score in parts.items():
            if score is not None:
                several.setdefault((name, key), []).append(float(score))
    table = np.full((2, len(metrics), len(book.pairs)), np.nan)
    for k, pair in enumerate(book.pairs):
        for side, text in enumerate((pair.original, pair.perturbed)):
            key = ask_key(pair, text)
            for m, metric in enumerate(metrics):
                if values := several.get((metric, key)):
                    table[side, m, k] = math.fsum(values) / len(values)
    return metrics, table


def _criteria_of(
    record: Mapping[str, Any], folded: Mapping[str, str]
) -> dict[str, float | None]:
    """Return the scores of a record by the task's metrics."""
    result = {}
    for name, score in (record.get("criteria") or {}).items():
        if name.casefold() in folded:
            result[folded[name.casefold()]] = score
    return result


def _adjusted(lines: Sequence[Line]) -> list[Line]:
    """Return each family (kind and origin) corrected by Holm."""
    adjusted = list(lines)
    families: dict[tuple[str, str], list[int]] = {}
    for i, line in enumerate(lines):
        families.setdefault((line.kind, line.origin), []).append(i)
    for places in families.values():
        tests = [lines[i].test for i in places]
        fewest = _fewest([test.n for test in tests])
        # Whatever form D has: without 1/M, a judge of several metrics would see what it does not.
        tested = [_normalised(test) if test.n >= fewest else math.nan for test in tests]
        for i, p in zip(places, holm(tested), strict=True):
            adjusted[i] = replace(adjusted[i], p_holm=float(p), fewest=fewest)
    return adjusted


def _normalised(test: Discernment) -> float:
    """Return the normalised p of several metrics' tests."""
    return combine([one.p for one in test.tests])


def _fewest(counts: Sequence[int]) -> int:
    """Return the pairs with which a perfect judge would pass Holm's first step.

    The least p of n pairs is 2**-n; what cannot pass is no part of the family.
    """
    fewest = 1
    while 0.5**fewest > 0.05 / max(1, sum(count >= fewest for count in counts)):
        fewest += 1
    return fewest


def _overall_of(lines: Sequence[Line], origin: Origin) -> Overall:
    """Return D_avg and D_min over the harmful perturbations of an origin with enough texts."""
    harmful = ("degradation", origin)
    return _overall([x for x in lines if (x.kind, x.origin) == harmful and x.enough])


def _overall(lines: Sequence[Line]) -> Overall:
    levels = {line.name: line.level for line in lines}

    def over(which: str) -> Summary:
        return summarise(
            {line.name: getattr(line.test, which) for line in lines}, levels
        )

    expert = over("d_expert")
    return Overall(
        over("d_normalised"),
        over("d_paper"),
        expert if expert.undefined < len(lines) else None,
        tuple(levels),
    )
