"""From labels to a compiled judge: split, task inference, the form of answers, the search, calibration, held-out
agreement. What is reported comes from rows that none of these steps saw.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dspy
import numpy as np

from ..datasets.records import Labels
from ..datasets.splits import Split, assert_disjoint, group_folds, holdout_split
from ..errors import BudgetError, LabelsError, OptionError
from ..programs.active_critic.critic import ActiveCritic
from ..programs.active_critic.task import Inference, Labelled, TaskInference
from ..programs.calibration import Calibration
from ..programs.ensemble import Committee
from ..programs.judge import Judge
from ..programs.models import engine
from ..programs.models.lm import Connection, LanguageModel, Sampling, language_model, price
from ..programs.models.transport import Reply
from ..programs.prompting.layouts import Explain, Reading
from ..signatures.values import Scale
from .agreement.correlation import Level
from .augmentation import people_only, try_augmentation, with_copies
from .by_name import OptimizerName, optimizer_by_name
from .examples import agreement, examples_of, score_rows
from .findings import Findings, Measured
from .fitting.ensemble import form_committee, refuse_committee
from .fitting.refinement import refine
from .progress import Progress, Silent
from .report import Budget, CompileReport, Fitted, FormTrial, Plan
from .search.base import DemonstrationSearch, unfit
from .search.few_shot import NoSearch
from .search.random import CorrelationRandomSearch

#: Below so many labels a single held-out part is too small to say anything; agreement is cross-validated.
FEW_LABELS = 30
#: Names of a score that say nothing of what is scored.
OVERALL = ("overall", "score", "rating", "quality", "label", "human", "human_score", "gold")
FOLDS = 4
#: Calls at most to find out what a model can do.
PROBES = 5


class _Purse:
    """Shares a budget out over the passes of a run. Held-out rows are paid for first (`heldout`: the calls of each
    part's, by the compiled judge and by the zero-shot one) and for two answers each, since an unreadable one is asked
    for again: what a search found must be reportable. What is left goes to the searches in equal parts: one with folds
    must not eat the next one's."""

    def __init__(self, budget: Budget, lm: LanguageModel, plan: Plan, heldout: Sequence[int]) -> None:
        meter = self.meter = lm.meter
        self.calls = None if budget.max_calls is None else meter.logical + budget.max_calls
        self.cost = None if budget.max_cost is None else meter.cost + budget.max_cost
        self.unit = (plan.cost or 0.0) / plan.calls
        self.heldout = [calls * 2 for calls in heldout]
        self.fits = len(heldout) + (len(heldout) > 1)  # after folds comes a fit on all rows
        self._set(0, 1)

    def for_fit(self) -> None:
        self._set(sum(self.heldout), max(1, self.fits))
        self.fits -= 1

    def for_heldout(self) -> None:
        self._set(sum(self.heldout[1:]), 1)
        del self.heldout[0]

    def _set(self, reserve: int, share: int) -> None:
        # A candidate that ran out of budget leaves calls that are only being cancelled; they must not spend what is
        # set free here. The engine's loop takes things in turn, so that after this they have been stopped.
        engine.run(asyncio.sleep(0))
        meter = self.meter
        if self.calls is not None:
            meter.max_calls = meter.logical + max(0, self.calls - reserve - meter.logical) // share
        if self.cost is not None:
            meter.max_cost = meter.cost + max(0.0, self.cost - reserve * self.unit - meter.cost) / share


@dataclass(frozen=True, slots=True)
class Compiler:
    """The settings of one compile run; `compile()` is its front door.

    heldout: the share of rows held out, or labels to hold out instead. cv: no part is held out, agreement is
    cross-validated with so many folds of whole groups (None: only with fewer than 30 labels). inference: how task
    inference reads. search: the optimizer, or None for no search (the ablation). level: what Q is measured at.
    augment: damaged copies of good outputs become further rows of the search, if they help on labels that were left
    out. ensemble_top: the mean of so many of the best candidates (2 to 8) is the judge, if it clearly beats a single
    one on training rows that neither was chosen by (see `committee`).
    """

    heldout: float | Labels = 0.25
    search: DemonstrationSearch | None = field(default_factory=CorrelationRandomSearch)
    inference: TaskInference = field(default_factory=TaskInference)
    level: Level = "pooled"
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    teacher: LanguageModel | None = None
    augment: bool = False
    progress: Progress = field(default_factory=Silent)
    cv: int | None = None
    ensemble_top: int | None = None

    # -- what it will do

    @property
    def _optimizer(self) -> DemonstrationSearch:
        return self.search or NoSearch()

    @property
    def _seats(self) -> int:
        """How many candidates judge a row at most, once the judge is compiled."""
        return min(self.ensemble_top or 1, self._optimizer.evaluations())

    def _heldout_calls(self, judge: Judge, rows: int) -> int:
        """What so many held-out rows take: the zero-shot judge, and every seat of the compiled one."""
        return rows * (judge.calls_per_row() + self._seats * self._optimizer.calls_per_row(judge))

    def splits(self, labels: Labels) -> tuple[Split | None, list[Split]]:
        """The one split, or the folds: as many as asked for, else where there are too few rows for a split. Raises
        OptionError for folds that cannot be."""
        if self.cv is not None:
            self._refuse_folds(self.cv, len(set(labels.groups)))
            return None, group_folds(labels, k=self.cv, seed=self.seed)
        if isinstance(self.heldout, Labels):
            if self.heldout.scale != labels.scale:
                raise OptionError(
                    f"the labels are on {Scale(*labels.scale)}, those held out on {Scale(*self.heldout.scale)}; "
                    "read both with the same scale=…"
                )
            _refuse_unscored(self.heldout)
            assert_disjoint(labels, self.heldout)
            return Split(labels, self.heldout), []
        if len(labels) < FEW_LABELS:
            return None, group_folds(labels, k=FOLDS, seed=self.seed)
        return holdout_split(labels, share=self.heldout, seed=self.seed), []

    def _refuse_folds(self, folds: int, groups: int) -> None:
        if isinstance(self.heldout, Labels):
            raise OptionError(
                f"cv={folds} measures on the labels themselves, heldout on others; give one of them (--cv or --heldout)"
            )
        if folds < 2:
            raise OptionError(f"cv is {folds}; cross-validation takes 2 folds or more")
        if folds > groups:
            advice = f"take {groups} folds or fewer" if groups > 1 else "add rows of other documents"
            raise OptionError(f"cv is {folds}, but groups (documents) are kept whole and there are {groups}; {advice}")

    def plan(self, judge: Judge, labels: Labels, lm: LanguageModel | str | None, *, teacher: bool = False) -> Plan:
        """Calls, tokens and cost with a model or its name, and perhaps with a teacher. No model is called."""
        if self.ensemble_top is not None:
            refuse_committee(self.ensemble_top, judge, self._optimizer)
        split, folds = self.splits(labels)
        parts = [split] if split is not None else folds
        train = [len(p.train) for p in parts] + ([len(labels)] if folds else [])
        heldout = sum(len(p.heldout) for p in parts)
        rows = [len(r.source) + len(r.output) + len(r.context or "") + len(r.reference or "") for r in labels.rows]
        row_tokens = int(np.mean(rows) / 3.5) + 20
        per_row = self._optimizer.calls_per_row(judge)
        passes = self._optimizer.evaluations()
        # The search's own zero-shot pass repeats one of the trials: answered from the disk, but counted in a budget.
        forms = len(self._forms(judge, logprobs=True))
        bare = self._needs_inference(judge) and self._may_leave_out(judge)
        extra = forms + bare if forms > 1 or bare else 0
        infer = sum(self.inference.calls(n) for n in train) if self._needs_inference(judge) else 0
        taught = 1 if passes > 1 and (teacher or self.teacher is not None) else 0
        fits = 4 if self.augment else 1  # on as many rows: four on halves, half as many again in two, and the last
        judged = sum(train) * (passes + extra + taught) * fits
        scoring = judged * per_row
        if self.augment:  # what the four are measured on
            scoring, infer = scoring + 2 * self._seats * sum(train) * per_row, infer * 3
        judging = self._heldout_calls(judge, heldout)
        scoring += judging
        demos = self._optimizer.max_demos if passes > 1 else 0
        proposed = sum(self._optimizer.proposals(judge, n) for n in train) * fits
        prompt = scoring * (row_tokens * (1 + demos // 2) + 250) + infer * (
            row_tokens * self.inference.batch_size + 300
        )
        prompt += proposed * (row_tokens * 8 + 1500)
        completion = scoring * 45 + infer * 150 + proposed * 300
        # References are written once a document, whatever the number of passes.
        written = judge.calls_per_document() * len({r.doc_id for r in labels.rows})
        calls = scoring + infer + proposed + written + PROBES
        steps = judged + 2 * heldout + infer
        name = lm if lm is None or isinstance(lm, str) else lm.name
        cost = None if name is None else price(name, Reply("", None, prompt, completion))
        return Plan(len(labels), sum(train), heldout, len(folds), calls, judging, steps, prompt, completion, cost)

    def _needs_inference(self, judge: Judge) -> bool:
        if not isinstance(judge, ActiveCritic) or judge.variant == "vanilla":
            return False
        needs_task = judge.use_task and not judge.knowledge.description
        return needs_task or (judge.use_criteria and not judge.knowledge.criteria)

    def _forms(self, judge: Judge, *, logprobs: bool) -> list[tuple[Explain, Reading]]:
        """The forms of answers to be tried, the preferred one first (equal Q keeps it)."""
        if not isinstance(judge, ActiveCritic):
            return []
        explains: list[Explain] = ["before", "after"] if judge.explain == "auto" else [judge.explain]
        readings: list[Reading] = ["expected", "said"] if judge.reading == "auto" else [judge.reading]
        if judge.reading == "auto" and not logprobs:
            readings = ["said"]
        forms: list[tuple[Explain, Reading]] = [(e, r) for r in readings for e in explains]
        # Four passes would be one too many: the expectation is tried with both places of the explanation, the number
        # said only with the paper's.
        return forms[:3] if len(forms) == 4 else forms

    # -- doing it

    def fit(self, judge: Judge, train: Labels, lm: LanguageModel) -> Fitted:
        """Task inference, form and search on these rows alone, with damaged copies of them if these help."""
        if not self.augment:
            return self._fit(judge, train, lm, None)
        copies, trial = try_augmentation(
            lambda rows, extra: self._fit(judge, rows, lm, extra).judge,
            train,
            level=self.level,
            seed=self.seed,
            progress=self.progress,
        )
        return replace(self._fit(judge, train, lm, copies.labels if copies else None), augmentation=trial)

    def _fit(self, judge: Judge, train: Labels, lm: LanguageModel, copies: Labels | None) -> Fitted:
        examples = examples_of(train)
        student = judge.copy_for(_language_model=lm, scale=Scale(*train.scale), provenance={})
        student.meet("" if train.aspect in OVERALL else train.aspect, [row.output for row in train.rows])
        inferred = None
        if self._needs_inference(student):
            inferred = self._infer(student, examples, lm)
        forms = self._choose_form(student, examples, lm, inferred is not None)
        search = self._optimizer
        search.level, search.seed, search.progress = self.level, self.seed, self.progress
        program = search.compile(student, teacher=self.teacher, trainset=with_copies(train, copies))
        assert search.record is not None
        record = people_only(search.record, len(examples))
        committee = refined = None
        if self.ensemble_top is not None:
            several, committee = form_committee(
                record, examples, self.ensemble_top, search.choose, level=self.level, seed=self.seed
            )
            program = several or program
        if search.searches and not isinstance(program, Committee):  # what is fitted is fitted to one program's answers
            refined = refine(program, record, examples, level=self.level, seed=self.seed)
        found = refined or committee
        percents = record.scored.percents if found is None else found.percents
        program.calibration = Calibration.fit(percents, train.scores, Scale(*train.scale))
        zero_shot = student.copy_for(
            calibration=Calibration.fit(record.zero_shot.percents, train.scores, Scale(*train.scale))
        )
        return Fitted(program, zero_shot, record, inferred, forms, refined, committee=committee)

    def _infer(self, student: Judge, examples: Sequence[dspy.Example], lm: LanguageModel) -> Inference:
        assert isinstance(student, ActiveCritic)
        order = np.random.default_rng([self.seed, 77]).permutation(len(examples))
        shown = [Labelled(examples[i].source or "", examples[i].output, round(examples[i].score, 1)) for i in order]
        self.progress.stage("task inference", self.inference.calls(len(shown)))
        inferred = engine.run(self.inference.infer(shown, lm, aspect=student.aspect, progress=self.progress.step))
        knowledge = student.knowledge
        knowledge.description = knowledge.description or inferred.description
        knowledge.criteria = knowledge.criteria or inferred.criteria
        if student.variant == "fine" and not knowledge.criteria:
            raise OptionError(
                f"{lm.name} named no criteria that could be read ({'; '.join(inferred.notes) or 'empty answers'}); "
                "give them with criteria=… (--criteria FILE), or take a stronger model"
            )
        return inferred

    @staticmethod
    def _may_leave_out(judge: Judge) -> bool:
        """Whether the prompt is tried without what was inferred, too."""
        return isinstance(judge, ActiveCritic) and judge.variant == "coarse" and judge.use_task and judge.use_criteria

    def _choose_form(
        self, student: Judge, examples: Sequence[dspy.Example], lm: LanguageModel, inferred: bool
    ) -> tuple[FormTrial, ...]:
        if not isinstance(student, ActiveCritic):
            return ()
        able = engine.run(lm.capabilities())
        if student.reading == "expected" and not able.logprobs:
            raise OptionError(f"{lm.name} gives no log-probabilities; use reading 'said' or 'auto'")
        forms = self._forms(student, logprobs=able.logprobs)
        with_and_without = inferred and self._may_leave_out(student)
        if len(forms) == 1 and not with_and_without:
            student.settle(explain=forms[0][0], reading=forms[0][1])
            return ()
        trials = [self._try_form(student, examples, form, knowledge=True) for form in forms]
        best = max(trials, key=FormTrial.preference)
        if with_and_without:
            # What a weak model infers can mislead it: the same form is tried without.
            trials.append(self._try_form(student, examples, (best.explain, best.reading), knowledge=False))
        best = max(trials, key=FormTrial.preference)
        student.settle(explain=best.explain, reading=best.reading)
        student.use_task = student.use_task and best.knowledge
        student.use_criteria = student.use_criteria and (best.knowledge or student.variant == "fine")
        return tuple(trials)

    def _try_form(
        self, student: ActiveCritic, examples: Sequence[dspy.Example], form: tuple[Explain, Reading], *, knowledge: bool
    ) -> FormTrial:
        explain, reading = form
        trial = student.copy_for(
            use_task=student.use_task and knowledge, use_criteria=student.use_criteria and knowledge
        )
        trial.settle(explain=explain, reading=reading)
        trial.set_brief(True)
        without = "" if knowledge else ", without inferred task"
        self.progress.stage(f"zero-shot, {reading} score, explanation {explain} it{without}", len(examples))
        scored = score_rows(trial, examples, self.progress)
        found = agreement(scored.percents, examples, level=self.level, seed=self.seed, rounds=500)
        return FormTrial(explain, reading, knowledge, found, unfit(scored, found, self._optimizer.max_failed))

    def run(self, judge: Judge, labels: Labels, lm: LanguageModel) -> tuple[Judge, CompileReport]:
        """The compiled judge and its report."""
        if judge.kind == "":
            raise OptionError("this judge has no kind and could not be saved")
        if isinstance(judge, Committee):
            raise OptionError("a committee is what compiling makes; give one of its members, and ensemble_top=…")
        _refuse_unscored(labels)
        if self.budget.max_cost is not None:
            for model in (lm, self.teacher or lm):
                if price(model.name, Reply("")) is None:
                    raise OptionError(
                        f"the price of {model.name} is unknown, so a cost can not be kept; use --max-calls"
                    )
        split, folds = self.splits(labels)
        parts = [split] if split is not None else folds
        plan = self.plan(judge, labels, lm)
        meter = lm.meter
        started, before = time.monotonic(), meter.usage
        heldout = [self._heldout_calls(judge, len(p.heldout)) for p in parts]
        purse = _Purse(self.budget, lm, plan, heldout)
        taught = None if self.teacher is None else self.teacher.meter
        try:
            if self.teacher is not None:
                self.teacher.meter = meter  # its calls are paid for from the same budget
            engine.run(lm.capabilities())
            # A model is probed once a process: that is no part of what these labels cost.
            logical = meter.logical, meter.logical_tokens
            results = [self._one_part(judge, part, lm, purse) for part in parts]
            purse.for_fit()
            final = results[0].fitted if split is not None else self.fit(judge, labels, lm)
        except BudgetError:
            raise BudgetError(
                f"the budget of {self.budget} was used up before there was a judge to report on; all that compiling "
                f"these labels would do takes up to {plan.calls:,} calls"
            ) from None
        finally:
            meter.max_calls = meter.max_cost = None
            if self.teacher is not None and taught is not None:
                self.teacher.meter = taught
        found = Findings(labels, results, final, self.level, self.seed, asked=self.cv is not None)
        report = found.report(meter.usage - before, time.monotonic() - started)
        prompt, completion = (b - a for a, b in zip(logical[1], meter.logical_tokens, strict=True))
        final.judge.provenance = found.provenance(
            report,
            optimizer=self._optimizer.settings() | {"teacher": self.teacher.name if self.teacher else None},
            capabilities=engine.run(lm.capabilities()),
            cost={"calls": meter.logical - logical[0], "prompt_tokens": prompt, "completion_tokens": completion},
        )
        return final.judge, report

    def _one_part(self, judge: Judge, part: Split, lm: LanguageModel, purse: _Purse) -> Measured:
        purse.for_fit()
        fitted = self.fit(judge, part.train, lm)
        purse.for_heldout()
        heldout = examples_of(part.heldout)
        self.progress.stage("held-out rows, compiled", len(heldout))
        compiled = score_rows(fitted.judge, heldout, self.progress)
        self.progress.stage("held-out rows, zero-shot", len(heldout))
        plain = score_rows(fitted.zero_shot, heldout, self.progress)
        return Measured(fitted, part, compiled, plain)


def _refuse_unscored(labels: Labels) -> None:
    there = np.isfinite(labels.scores)
    if not there.all():
        row = labels.rows[int(np.argmin(there))]
        raise LabelsError(f"{labels.origin}: row {row.line} has no score for {labels.aspect!r}; remove it")


def compile(
    judge: Judge,
    labels: Labels,
    *,
    lm: str | LanguageModel | Any,
    teacher: str | LanguageModel | Any | None = None,
    heldout: float | Labels = 0.25,
    cv: int | None = None,
    optimizer: DemonstrationSearch | OptimizerName = "random-search",
    inference: TaskInference | None = None,
    augment: bool = False,
    ensemble_top: int | None = None,
    level: Level = "pooled",
    seed: int = 0,
    budget: Budget | None = None,
    sampling: Sampling | None = None,
    connection: Connection | None = None,
    progress: Progress | None = None,
) -> Judge:
    """Compile a judge from labels: `js.compile(js.ActiveCritic(variant="fine"), labels, lm="ollama_chat/llama3.1:8b")`.

    heldout: share of rows (whole groups) that the search never sees, or other labels to hold out. cv: agreement is
    cross-validated instead with so many folds of whole groups, each judged by a judge compiled without it, and the
    judge itself is compiled from all labels (as many calls as `cv` searches over all of them); None: 4 folds with
    fewer than 30 labels and no others to hold out. optimizer: a `DemonstrationSearch` such as
    `CorrelationRandomSearch`, or a name: random-search, optuna, mipro, gepa, simba, labeled-few-shot, knn, zepo, none.
    level: pooled, sample or system. The same seed, labels and cache give the same judge; level and seed hold for the
    optimizer, too, whatever its own. augment: damaged copies of good outputs as further rows of the search, if they
    help. ensemble_top: not one candidate of the search but the mean of so many of the best (2 to 8), if that clearly
    helps on training rows; scoring then takes as many times the calls.

    Returns the compiled judge; its `report` (CompileReport) says how far it agrees with people, its `provenance` goes
    into the artifact. Raises LabelsError, LeakError, ModelError, BudgetError, OptionError.
    """
    model = language_model(lm, sampling=sampling, connection=connection)
    settings = Compiler(
        heldout=heldout,
        cv=cv,
        search=optimizer_by_name(optimizer) if isinstance(optimizer, str) else optimizer,
        inference=inference or TaskInference(),
        augment=augment,
        ensemble_top=ensemble_top,
        level=level,
        seed=seed,
        budget=budget or Budget(),
        teacher=None if teacher is None else language_model(teacher, connection=connection),
        progress=progress or Silent(),
    )
    made, report = settings.run(judge, labels, model)
    made.report = report
    return made


__all__ = ["Budget", "CompileReport", "Compiler", "Plan", "compile"]
