"""`judgesmith discern`: what a judge made of good texts and their perturbations, as tested numbers; no printing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..agreement.discernment import (
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
from ..agreement.significance import holm
from ..datasets.perturbations.attacks import CONTROL
from ..datasets.perturbations.base import Origin
from ..datasets.perturbations.dhp import TASKS, origin_of
from ..datasets.perturbations.registry import Degree, Perturbation
from .judging import Subject
from .options import DiscernOptions
from .pairs import Book, ask_key

Scores = NDArray[np.float64]

# Statistics ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """What the judge made of one perturbation. test: of a rise for attacks, of a drop for all else. p_holm: of the
    normalised p over the perturbations of its kind and origin. left: texts that could not be perturbed. fewest: pairs
    with which a perfect judge would pass Holm's first step; with fewer nothing can be said. origin: "paper", "stand-in"
    or "ours".
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
        return not math.isnan(self.test.p) and self.test.n >= self.fewest

    @property
    def sees(self) -> str:
        """ "yes" (significant among all perturbations), "alone" (only when tested alone), "no", or "unknown"."""
        if not self.enough:
            return "unknown"
        if self.p_holm <= 0.05:
            return "yes"
        return "alone" if self.test.d_normalised >= 1 else "no"

    def to_dict(self) -> dict[str, Any]:
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
    expert: None where no weight fits. names: of these perturbations.
    """

    normalised: Summary
    paper: Summary
    expert: Summary | None
    names: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
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
    """A judge's lines, and D_avg and D_min by the origin of its perturbations, which are never mixed. unmeasured:
    perturbations of the paper's task that its D_avg does not rest on. false_alarms: share of the harmless changes that
    lowered the score.
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
        return [
            line
            for line in self.lines
            if line.kind == kind and origin in (None, line.origin)
        ]

    def coverage(self) -> str:
        """How many of the paper's perturbations D_avg rests on, and which are missing."""
        count = len(self.overall["paper"].names)
        of = f"{count} of the paper's {count + len(self.unmeasured)} perturbations of this task"
        return of + (
            f" (without {', '.join(self.unmeasured)})" if self.unmeasured else ""
        )

    def named(self, kind: str, sees: str) -> list[str]:
        """The perturbations of a kind that are seen so, of those that some text allowed."""
        return [
            line.name for line in self.of(kind) if line.sees == sees and line.test.n
        ]

    def reactions(self) -> tuple[str, list[str]]:
        """How many perturbations the judge sees; and by name what it is blind to, what it alarms for without need, and
        what it gives in to.
        """
        seen, fooled = self.named("degradation", "yes"), self.named("attack", "yes")
        harmful = [line for line in self.of("degradation") if line.test.n]
        # A judge that is fooled by the control rewards any further sentence, and nothing is known about the attacks.
        gives_in = (
            "raises its score for any further sentence, so also for"
            if CONTROL in fooled
            else "gives in to"
        )
        named = {
            "blind to": self.named("degradation", "no"),
            "doubtful (not after Holm):": self.named("degradation", "alone"),
            "too few texts to tell:": self.named("degradation", "unknown"),
            "lowers its score without need for": self.named("invariance", "yes"),
            gives_in: fooled,
        }
        head = (
            f"{self.judge} sees {len(seen)} of {len(harmful)} perturbations"
            if harmful
            else self.judge
        )
        return head, [
            f"{title} {', '.join(names)}" for title, names in named.items() if names
        ]

    def conclusion(self) -> str:
        head, named = self.reactions()
        return f"{'; '.join([head, *named])}."

    def to_dict(self) -> dict[str, Any]:
        """Plain types; NaN for what is undefined."""
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
    how: DiscernOptions,
    weights: Mapping[str, Mapping[str, float]] | None = None,
    task: str = "summarization",
) -> JudgeResult:
    """The tests of the judge. weights: an expert's table. task: of `dhp.TASKS`, decides which perturbations are the
    paper's.
    """
    metrics, scores = scores_of(subject, book, how)
    groups: dict[str, list[int]] = {}
    for k, pair in enumerate(book.pairs):
        groups.setdefault(pair.name, []).append(k)
    left = Counter(one.name for one in book.left)
    places = {name: i for i, name in enumerate(perturbations)}
    names = sorted(
        dict.fromkeys([*groups, *left]),
        key=lambda name: (
            places.get(name.partition(":")[0], len(places)),
            name.endswith("major"),
        ),
    )
    lines = []
    for name in names:
        plain, _, degree = name.partition(":")
        perturbation = perturbations[plain]
        before, after = scores[:, :, groups.get(name, [])]
        if perturbation.kind == "attack":
            before, after = after, before
        test = discernment(
            before, after, form=how.form, rounds=how.rounds, seed=how.seed
        )
        chosen = None
        if (
            len(metrics) == len(how.metrics) == 1
        ):  # a task of one metric leaves nothing to weigh
            chosen = [1.0]
        elif (
            len(metrics) > 1
        ):  # a stand-in has the weights of what it stands for, unless it has its own
            several = (
                expert_weights(weights or OUR_WEIGHTS, one, metrics)
                for one in (name, perturbation.stands_for)
            )
            chosen = next(filter(None, several), None)
        if chosen is not None:
            test = replace(
                test, d_expert=score_of(combine([one.p for one in test.tests], chosen))
            )
        origin = origin_of(perturbation, cast(Degree, degree or "only"), task)
        lines.append(
            Line(
                name,
                perturbation.kind,
                perturbation.level,
                perturbation.method,
                origin,
                test,
                left[name],
            )
        )
    lines = _adjusted(lines)
    overall = {
        origin: _overall(
            [
                x
                for x in lines
                if (x.kind, x.origin) == ("degradation", origin) and x.enough
            ]
        )
        for origin in HEADINGS
    }
    every = [
        name if d == "only" else f"{name}:{d}"
        for name, ds in TASKS[task].perturbations.items()
        for d in ds
    ]
    unmeasured = tuple(name for name in every if name not in overall["paper"].names)
    harmless = [
        line.test for line in lines if line.kind == "invariance" and line.test.n
    ]
    texts = sum(t.n for t in harmless)
    alarms = math.fsum(t.dropped * t.n for t in harmless) / texts if texts else math.nan
    sides: Any = np.isnan(scores).any(axis=1)  # before and after
    failed = {
        ask_key(book.pairs[k], book.pairs[k].original) for k in np.flatnonzero(sides[0])
    }
    failed |= {
        ask_key(book.pairs[k], book.pairs[k].perturbed)
        for k in np.flatnonzero(sides[1])
    }
    return JudgeResult(
        subject.name,
        metrics,
        tuple(lines),
        overall,
        unmeasured,
        how.form,
        alarms,
        len(failed),
    )


def scores_of(
    subject: Subject, book: Book, how: DiscernOptions
) -> tuple[tuple[str, ...], Scores]:
    """The judge's metrics and its scores before and after, mean over the repeats, 2 × metrics × the book's pairs; NaN
    where there is none. Metrics: those of the task (`how.metrics`) where one scorer gives them all as its criteria or
    aspects, else its scorers.
    """
    by_mark = {mark: metric for metric, mark in subject.marks.items()}
    records = [
        (by_mark[mark], key, record)
        for (mark, key, k), record in book.scores.items()
        if mark in by_mark and k < how.repeat
    ]
    folded = {name.casefold(): name for name in how.metric_names}
    given = {
        name.casefold()
        for _, _, record in records
        for name in record.get("criteria") or {}
    }
    of_task = list(subject.marks) == ["score"] and folded and given >= folded.keys()
    metrics = tuple(folded.values() if of_task else subject.marks)
    several: dict[tuple[str, str], list[float]] = {}
    for metric, key, record in records:
        parts = {
            folded.get(name.casefold()): score
            for name, score in (record.get("criteria") or {}).items()
        }
        for name, score in (
            parts if of_task else {metric: record.get("score")}
        ).items():
            if name is not None and score is not None:
                several.setdefault((name, key), []).append(float(score))
    means = {
        place: math.fsum(values) / len(values) for place, values in several.items()
    }
    sides = [
        [ask_key(p, p.original) for p in book.pairs],
        [ask_key(p, p.perturbed) for p in book.pairs],
    ]
    table = [
        [[means.get((metric, key), math.nan) for key in side] for metric in metrics]
        for side in sides
    ]
    return metrics, np.array(table, dtype=np.float64).reshape(
        2, len(metrics), len(book.pairs)
    )


def _adjusted(lines: Sequence[Line]) -> list[Line]:
    """Each family (kind and origin) corrected by Holm."""
    adjusted = list(lines)
    for family in {(line.kind, line.origin): None for line in lines}:
        places = [
            i for i, line in enumerate(adjusted) if (line.kind, line.origin) == family
        ]
        # The least p of n pairs is 2**-n; what cannot pass is no part of the family.
        fewest = 1
        while 0.5**fewest > 0.05 / max(
            1, sum(adjusted[i].test.n >= fewest for i in places)
        ):
            fewest += 1
        # Whatever form D has: without 1/M, a judge of several metrics would see what it does not.
        tests = [adjusted[i].test for i in places]
        tested = [
            combine([x.p for x in t.tests]) if t.n >= fewest else math.nan
            for t in tests
        ]
        for i, p in zip(places, holm(tested), strict=True):
            adjusted[i] = replace(adjusted[i], p_holm=float(p), fewest=fewest)
    return adjusted


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
