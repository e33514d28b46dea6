"""Several aspects compiled into one judge.

The splits are the same for all, so that no aspect learns from rows that another is measured on, and rows are read once.
Each aspect's score may be corrected by the others', where that agrees better on rows the correction was fitted without.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from judgesmith.datasets.records import TOGETHER, Labels, merge_groups
from judgesmith.datasets.row import Row
from judgesmith.datasets.splits import MIN_SIDE, Split, assert_disjoint
from judgesmith.errors import LabelsError, OptionError
from judgesmith.optimizers.compiling import Found, find, refuse, written_up
from judgesmith.optimizers.examples import (
    Scored,
    Vector,
    examples_of,
    in_words,
    scale_of,
    teachable,
    without_addressing,
)
from judgesmith.optimizers.findings import origin_of
from judgesmith.optimizers.fitting.weights import FEWEST_GROUPS, FEWEST_ROWS, Training
from judgesmith.optimizers.learning import Job, decide
from judgesmith.optimizers.measuring import Measured
from judgesmith.optimizers.options import Compiler
from judgesmith.optimizers.planning import (
    chosen_plan,
    folds_are_free,
    folds_choose_again,
    plan_of,
)
from judgesmith.optimizers.report import (
    AspectsReport,
    CompileReport,
    Fitted,
    Parts,
    Plan,
    notes_by_aspect,
)
from judgesmith.parts import nearest
from judgesmith.programs.active_critic.task import Inference
from judgesmith.programs.contract import RATINGS
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import LinearHead
from judgesmith.programs.readings.kinds import SIGNAL
from judgesmith.programs.refining import Refinement
from judgesmith.programs.several.judge import (
    WHOLE,
    Part,
    SeveralAspects,
    corrected,
    percents_table,
)
from judgesmith.programs.sharing import shared
from judgesmith.signatures.values import Verdict

#: What tells a row from every other, whichever aspect's labels it is read from.
Key = tuple[str, str, str]
#: What the correction by other aspects is called in reports and provenances.
BESIDE = "other aspects"


def key_of(row: Row) -> Key:
    """Return what tells a row from every other one."""
    return row.id, row.source, row.output


def check_distinct(labels: Labels) -> None:
    """Refuse rows that cannot be told apart, of which all but one would be lost.

    Raises:
        LabelsError: If two rows have the same id, source and output.
    """
    seen: dict[Key, Row] = {}
    for row in labels.rows:
        first = seen.setdefault(key_of(row), row)
        if first is not row:
            raise LabelsError(
                f"{labels.origin}: rows {first.line} and {row.line} have the same id ({row.id}), source and output, "
                "by which aspects are joined; give each row an id of its own"
            )


def together(labels: Mapping[str, Labels], share: float) -> dict[str, Labels]:
    """Return the labels of several aspects, their rows in groups that share no text with any other aspect's rows.

    Args:
        labels: by aspect.
        share: as `Labels.template_share`.
    """
    every = {name: of_aspect.regrouped(share) for name, of_aspect in labels.items()}
    rows: dict[Key, Row] = {}
    for of_aspect in every.values():
        for row in of_aspect.rows:
            apart = replace(row, group=row.own_group or row.group)
            rows[key_of(row)] = apart
    group = {key_of(row): row for row in merge_groups(list(rows.values()), share)}
    return {name: _regrouped(of_aspect, group) for name, of_aspect in every.items()}


def _regrouped(labels: Labels, by_key: Mapping[Key, Row]) -> Labels:
    rows = [
        replace(row, group=by_key[key_of(row)].group, own_group=row.own_group)
        for row in labels.rows
    ]
    return replace(labels, rows=tuple(rows))


def union(labels: Mapping[str, Labels]) -> Labels:
    """Return all rows with a label of any aspect: by aspect in percent, and the mean of these."""
    scores: dict[Key, dict[str, float]] = {}
    rows: dict[Key, Row] = {}
    for name, of_aspect in labels.items():
        scale = scale_of(of_aspect)
        for row, score in zip(of_aspect.rows, of_aspect.scores.tolist(), strict=True):
            rows.setdefault(key_of(row), row)
            scores.setdefault(key_of(row), {})[name] = round(scale.to_percent(score), 1)
    first = next(iter(labels.values()))
    return replace(
        first,
        rows=tuple(
            replace(
                row,
                scores=scores[key]
                | {TOGETHER: math.fsum(scores[key].values()) / len(scores[key])},
            )
            for key, row in rows.items()
        ),
        aspect=TOGETHER,
        scale=(0.0, 100.0),
        kind="score",
        categories=(),
        levels=(),
        warnings=(),
    )


def taken(take: str | None, aspects: Sequence[str]) -> dict[str, str]:
    """Return the name of the candidate that is asked for, by aspect.

    Args:
        take: A candidate's name, for all aspects; or ASPECT=NAME, for that one, several with commas.
        aspects: the names of all.

    Raises:
        OptionError: For an unknown aspect.
    """
    if take is None:
        return {}
    if "=" not in take:
        return dict.fromkeys(aspects, take)
    names = {name.casefold(): name for name in aspects}
    chosen = dict[str, str]()
    for part in take.split(","):
        aspect, _, candidate = (text.strip() for text in part.partition("="))
        if aspect.casefold() not in names:
            raise OptionError(
                f"take: there is no aspect {aspect!r}{nearest(aspect, aspects)}; the aspects are {', '.join(aspects)}"
            )
        chosen[names[aspect.casefold()]] = candidate
    return chosen


@dataclass
class SeveralCompiler:
    """One compile run for several aspects.

    Args:
        compiler: how each aspect is compiled.
        judges: by aspect, before anything is learnt.
        labels: by aspect; a row may lack some.
        heldout: by aspect, labels to hold out in place of a share or folds.
        takes: by aspect, the name of the candidate that was asked for.
    """

    compiler: Compiler
    judges: Mapping[str, Judge]
    labels: Mapping[str, Labels]
    heldout: Mapping[str, Labels] = field(default_factory=dict)
    takes: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        if len(self.labels) < 2:
            names = ", ".join(self.labels) or "none"
            raise OptionError(
                f"a judge of several aspects needs two at least, and got {names}; name another one"
            )
        if any(of_aspect.kind == "preference" for of_aspect in self.labels.values()):
            raise OptionError(
                "preferences say which output is better as a whole; compile them without several aspects"
            )
        self.takes = taken(self.compiler.options.take, tuple(self.labels))
        share = self.compiler.options.template_share
        judges = dict[str, Judge]()
        labels = dict[str, Labels]()
        for name, of_aspect in self.labels.items():
            check_distinct(of_aspect)
            worded = in_words(self.judges[name], teachable(of_aspect))
            judges[name], labels[name] = without_addressing(*worded)
        self.judges = judges
        self.labels = together(labels, share)
        for of_aspect in self.heldout.values():
            check_distinct(of_aspect)
        if self.heldout:
            self.heldout = together(self.heldout, share)
            assert_disjoint(self.rows, union(self.heldout))

    @cached_property
    def rows(self) -> Labels:
        """All rows that have a label of any aspect."""
        return union(self.labels)

    # -- what it will do

    def plan(self, lm: LanguageModel | str | None, *, teacher: bool = False) -> Plan:
        """Return calls, tokens and cost of all aspects together; `Plan.aspects` has those of each."""
        if self.heldout:
            return self._plan_of(None, lm, teacher=teacher)
        compiler = self.compiler
        judges = self.judges.values()
        free = all(folds_are_free(compiler, judge, lm) for judge in judges)
        again = all(folds_choose_again(compiler, judge, lm) for judge in judges)
        return chosen_plan(
            compiler,
            self.rows,
            lambda parts: self._plan_of(parts, lm, teacher=teacher),
            free=free,
            again=again,
        )

    def described(self, plan: Plan) -> dict[str, Any]:
        """Return the labels as they were understood, and what they would be compiled by."""
        return {
            "aspects": {name: of.understood() for name, of in self.labels.items()},
            "plan_notes": list(plan.notes),
            "methods": {n: judge.method.settings() for n, judge in self.judges.items()},
        }

    def _plan_of(
        self, parts: Parts | None, lm: LanguageModel | str | None, *, teacher: bool
    ) -> Plan:
        """Return the plan of these splits of all rows, or of the held-out labels."""
        plans = {}
        for name, judge in self.judges.items():
            own = self._restricted(name, parts)
            plans[name] = plan_of(
                self.compiler, own, judge, self.labels[name], lm, teacher=teacher
            )
        shown = parts or Parts(((Split(self.rows, union(self.heldout)),),))
        return _sum_of(plans, shown, len(self.rows))

    def _restricted(self, name: str, parts: Parts | None) -> Parts:
        """Return splits of all rows, each with the rows that have a label of this aspect."""
        labels = self.labels[name]
        if parts is None:
            return Parts(
                ((Split(labels, self.heldout[name], self.rows),),), shown=self.rows
            )
        place = {key_of(row): i for i, row in enumerate(labels.rows)}

        def own(side: Labels) -> Labels:
            return labels.subset(
                place[key_of(row)] for row in side.rows if key_of(row) in place
            )

        runs = []
        for run in parts.runs:
            splits = [
                Split(own(split.train), own(split.heldout), split.train)
                for split in run
            ]
            runs.append(tuple(split for split in splits if len(split.heldout)))
        _check(name, labels, runs, crossed=parts.crossed)
        return replace(parts, runs=tuple(runs), shown=self.rows)

    # -- running

    def run(
        self, lm: LanguageModel, plan: Plan | None = None
    ) -> tuple[Judge, AspectsReport]:
        """Return the judge of all aspects, and how far each agrees with people."""
        plan = plan or self.plan(lm)
        found = dict[str, Found]()
        inferred = dict[str, Inference]()
        spent = 0
        for name, judge in self.judges.items():
            refuse(self._of(name), judge, self.labels[name], lm)
        with shared():
            for name, judge in self.judges.items():
                own = self._of(name, plan, spent)
                job = Job(own, judge, lm, plan.aspects[name], inferred=inferred)
                with self._named(name):
                    found[name] = find(job, self.labels[name])
                spent += found[name].cost["calls"]
            heads = self._correct(found)
        parts = dict[str, Part]()
        reports = dict[str, CompileReport]()
        provenances = dict[str, Mapping[str, Any]]()
        for name, one in found.items():
            compiled, reports[name] = written_up(one)
            parts[name] = Part(compiled.method, compiled.outcome, heads.get(name))
            provenances[name] = compiled.provenance
        several = SeveralAspects.of_parts(parts)
        report = AspectsReport(reports)
        judge = Judge(several, lm=lm, outcome=several.whole())
        judge.provenance = self._provenance(provenances, report)
        return judge, report

    def _of(self, name: str, plan: Plan | None = None, spent: int = 0) -> Compiler:
        """Return the compiler of one aspect, with its share of a budget. spent: calls of the aspects before it."""
        o = self.compiler.options.model_copy(update={"take": self.takes.get(name)})
        if plan is not None and (o.max_calls or o.max_cost):
            names = list(self.judges)
            rest = names[names.index(name) :]
            left = sum(plan.aspects[aspect].calls for aspect in rest)
            share = plan.aspects[name].calls / max(1, left)
            whole = plan.aspects[name].calls / max(1, plan.calls)
            o = o.model_copy(
                update={
                    "max_calls": o.max_calls
                    and max(1, math.floor((o.max_calls - spent) * share)),
                    "max_cost": o.max_cost and o.max_cost * whole,
                }
            )
        return replace(self.compiler, options=o, heldout=self.heldout.get(name))

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Name the aspect whose candidate is not there, where one was asked for."""
        try:
            yield
        except OptionError as error:
            if name not in self.takes:
                raise
            raise OptionError(f"{name}: {error}") from None

    # -- each aspect beside the others

    def _correct(self, found: dict[str, Found]) -> dict[str, LinearHead]:
        """Correct each aspect's scores by the others', where that is ahead on rows that it was fitted without.

        The held-out rows of a fold are corrected by what its training rows say. Return the heads of the final judges.
        """
        folds = {name: _by_fold(one) for name, one in found.items()}
        every = {name: (one.final, one.labels) for name, one in found.items()}
        heads: dict[str, LinearHead] = {}
        corrected_ones: dict[str, Found] = {}
        for name, one in found.items():
            final = one.final
            head = None
            runs = list[list[Measured]]()
            for run in one.runs:
                runs.append([])
                for part in run:
                    measured, head = self._corrected(name, part, folds)
                    final = measured.fitted
                    runs[-1].append(measured)
            if one.plan.parts.crossed:
                final, head = self._beside(name, every)
            if head is not None:
                heads[name] = head
            corrected_ones[name] = replace(one, final=final, runs=runs)
        found.update(corrected_ones)
        return heads

    def _corrected(
        self,
        name: str,
        part: Measured,
        folds: Mapping[str, Mapping[int, Measured]],
    ) -> tuple[Measured, LinearHead | None]:
        """Return what a fold found of an aspect, beside what it found of the others, and the head for that."""
        fits: dict[str, tuple[Fitted, Labels]] = {}
        by_key: dict[str, dict[Key, float]] = {}
        for other, by in folds.items():
            one = by.get(id(part.split.shown))
            if one is not None:
                fits[other] = (one.fitted, one.split.train)
                by_key[other] = _by_row(one.split.heldout, one.compiled.percents)
        fitted, head = self._beside(name, fits)
        if head is None:
            return replace(part, fitted=fitted), None
        rows = _table(name, part.split.heldout, by_key)
        percents = corrected(head, percents_table(rows, part.split.heldout.groups))
        percents = np.where(np.isnan(part.compiled.percents), math.nan, percents)
        outcome = fitted.judge.outcome
        verdicts = list[Verdict]()
        for verdict, percent in zip(
            part.compiled.verdicts, percents.tolist(), strict=True
        ):
            moved = {"percent": percent, "score": outcome.score(percent)}
            verdicts.append(
                verdict if verdict.failure else verdict.model_copy(update=moved)
            )
        return replace(part, fitted=fitted, compiled=Scored.of(verdicts)), head

    def _beside(
        self, name: str, fits: Mapping[str, tuple[Fitted, Labels]]
    ) -> tuple[Fitted, LinearHead | None]:
        """Return a fit with its scores corrected by the other aspects', and the head that does so.

        None, and the fit with the reason, where that is not clearly ahead of the aspect's own scores.
        """
        fitted, train = fits[name]
        if name in self.takes:
            reason = (
                f"{name} stands alone: its candidate was asked for by its name (take)"
            )
            refused = Refinement(BESIDE, fitted.percents, reason=reason)
            return _refined(fitted, refused), None
        own = fitted.percents
        examples = examples_of(train)
        scored = np.isfinite(own)
        groups = {group for group, ok in zip(train.groups, scored, strict=True) if ok}
        others = {
            other: _by_row(rows, fit.percents) for other, (fit, rows) in fits.items()
        }
        if scored.sum() < FEWEST_ROWS or len(groups) < FEWEST_GROUPS:
            reason = f"{scored.sum()} rows of {len(groups)} documents are too few to weigh other aspects"
            return _refined(fitted, Refinement(BESIDE, own, reason=reason)), None
        objective = self.compiler.objective(train)
        seed = self.compiler.options.seed
        training = Training(examples, (), own, objective, seed)
        table = percents_table(_table(name, train, others), train.groups)
        fit = training.fit_head(
            table.rows(np.flatnonzero(scored)),
            scored,
            Experience(),
            f"{SIGNAL}.{name}",
            strong=True,
        )
        compared = f"Q {fit.q:.2f} by weights that were learnt without the rows, {fit.direct:.2f} by itself"
        details = {
            "q": round(fit.q, 6),
            "direct": round(fit.direct, 6),
            "ahead": fit.ahead,
        }
        if not fit.ahead:
            reason = f"{name} stands alone: beside the other aspects it is not clearly ahead ({compared})"
            refinement = Refinement(BESIDE, own, details, reason=reason)
            return _refined(fitted, refinement), None
        percents = np.full(len(own), math.nan)
        percents[scored] = np.clip(fit.percents, 0.0, 100.0)
        changed = f"{name} is corrected by the scores of the other aspects: {compared}"
        refinement = Refinement(BESIDE, percents, details, changed=changed)
        fitted = _refined(fitted, refinement)
        decide(fitted, train, self.compiler.options)
        return fitted, fit.head

    # -- what a file says of it

    def _provenance(
        self, of: Mapping[str, Mapping[str, Any]], report: AspectsReport
    ) -> dict[str, Any]:
        first = next(iter(of.values()))
        all_same = ("versions", "optimizer", "seed", "capabilities")
        whole = {"created", "seen", "seen_texts", *all_same}
        origin = origin_of(self.rows)
        origin |= {"aspect": WHOLE, "train": 0, "heldout": 0}
        cost = dict.fromkeys(("calls", "prompt_tokens", "completion_tokens"), 0)
        seen = set[str]()
        texts = set[str]()
        aspects = dict[str, Any]()
        for name, one in of.items():
            for side in ("train", "heldout"):
                origin[side] = max(origin[side], one["labels"][side])
            for counted in cost:
                cost[counted] += one["cost"][counted]
            seen.update(one["seen"])
            texts.update(one["seen_texts"])
            aspects[name] = {key: one[key] for key in one if key not in whole}
        return {
            "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "contract": _of_texts(first["contract"]),
            "labels": origin,
            **{name: first[name] for name in all_same},
            "heldout": {"signature": report.signature},
            "aspects": aspects,
            "cost": cost,
            "seen": sorted(seen),
            "seen_texts": sorted(texts),
        }


def _of_texts(contract: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contract of a judge of several aspects, each of which has its own on human ratings of it."""
    texts = {
        role: name for role, name in contract["columns"].items() if role not in RATINGS
    }
    return {**contract, "columns": texts, "kind": "", "scale": None, "aspect": WHOLE}


def _check(
    name: str, labels: Labels, runs: Sequence[Sequence[Split]], *, crossed: bool
) -> None:
    """Raise LabelsError where the rows with a label of an aspect cannot be split as all rows are."""
    for run in runs:
        sides = [split.train for split in run]
        sides += [] if crossed else [split.heldout for split in run]
        least = 2 if crossed else 1
        fit = all(
            len(side) >= MIN_SIDE and len(np.unique(side.scores)) > 1 for side in sides
        )
        if len(run) < least or not fit:
            raise LabelsError(
                f"{labels.origin}: the {len(labels)} rows with a label of {name!r} cannot be split as the rows of all "
                "aspects are; label more rows for it, or compile without it"
            )


def _by_fold(found: Found) -> dict[int, Measured]:
    """Return what was measured in each fold, by what tells folds apart: their training rows, of all aspects."""
    return {
        id(measured.split.shown): measured for run in found.runs for measured in run
    }


def _by_row(labels: Labels, percents: Vector) -> dict[Key, float]:
    rows = map(key_of, labels.rows)
    return dict(zip(rows, percents.tolist(), strict=True))


def _table(
    name: str, labels: Labels, percents: Mapping[str, Mapping[Key, float]]
) -> list[dict[str, float]]:
    """Return what is known of each row by aspect, the aspect itself first."""
    rows = []
    for row in labels.rows:
        key = key_of(row)
        own = {name: percents[name].get(key, math.nan)}
        rows.append(
            own | {other: of.get(key, math.nan) for other, of in percents.items()}
        )
    return rows


def _refined(fitted: Fitted, refinement: Refinement) -> Fitted:
    left_out = fitted.left_out
    if refinement.changed and left_out is not None:
        left_out = np.full(len(left_out), math.nan)
    return replace(fitted, refined=(*fitted.refined, refinement), left_out=left_out)


#: What the plans of several aspects add up to.
_ADDED = (
    "calls",
    "heldout_calls",
    "row_calls",
    "steps",
    "passes",
    "prompt_tokens",
    "completion_tokens",
    "asked",
)


def _sum_of(plans: Mapping[str, Plan], parts: Parts, rows: int) -> Plan:
    """Return the plans of several aspects as one, over all rows."""
    total: dict[str, Any] = dict.fromkeys(_ADDED, 0)
    cost: float | None = 0.0
    for plan in plans.values():
        for counted in total:
            total[counted] += getattr(plan, counted)
        cost = None if cost is None or plan.cost is None else cost + plan.cost
    return replace(
        next(iter(plans.values())),
        rows=rows,
        train=sum(parts.fits(rows)),
        heldout=parts.heldout,
        folds=parts.folds,
        runs=len(parts.runs),
        parts=parts,
        cost=cost,
        notes=notes_by_aspect({name: plan.notes for name, plan in plans.items()}),
        dearer=None,
        aspects=dict(plans),
        **total,
    )
