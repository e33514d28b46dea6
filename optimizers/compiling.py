"""Compile a judge from the labels of one aspect: `compile_labels`, top to bottom.

Labels are split (`planning`), a judge is fitted to each side that is learnt from (`learning`) and measured on the other
(here), and what was found is written up (`findings`). The reported agreement comes from rows that no fit saw.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.resampling import FEWEST_SYSTEMS
from judgesmith.datasets.records import Labels
from judgesmith.datasets.splits import Split
from judgesmith.errors import BudgetError, LabelsError, OptionError
from judgesmith.optimizers.budget import Budget, BudgetShare
from judgesmith.optimizers.examples import (
    Scored,
    examples_of,
    in_words,
    scale_of,
    score_rows,
    teachable,
    without_addressing,
)
from judgesmith.optimizers.findings import (
    contract_of,
    origin_of,
    provenance_of,
    report_on,
)
from judgesmith.optimizers.learning import Job, fit, fitted_again, unlearnt
from judgesmith.optimizers.measuring import Findings, Measured
from judgesmith.optimizers.options import Compiler
from judgesmith.optimizers.planning import plan
from judgesmith.optimizers.report import CompileReport, Fitted, Plan
from judgesmith.optimizers.seen import marks
from judgesmith.programs import artifact
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine
from judgesmith.programs.models.failures import Failures
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.price import Meter, check_priced
from judgesmith.programs.outcome import Decision, Outcome
from judgesmith.programs.progress import Silent
from judgesmith.programs.sharing import shared
from judgesmith.signatures.values import Usage

#: The measured parts of each run of folds, or the one held-out part.
Runs = Sequence[Sequence[Measured]]


@dataclass(frozen=True, slots=True)
class Found:
    """The fit and the measurements of one run, before it is written up."""

    compiler: Compiler
    labels: Labels
    plan: Plan
    final: Fitted
    runs: Runs
    lm: LanguageModel
    usage: Usage
    """Of this run, as seconds are."""
    seconds: float
    cost: dict[str, int]
    """Calls and tokens, as they would be without a cache."""


@dataclass
class AspectCompiler:
    """One compile run for one aspect, as `several.SeveralCompiler` is one for several.

    Args:
        compiler: How the aspect is compiled.
        judges: The one judge, before anything is learnt, by the aspect's name or "".
        labels: The labels, by the same.
    """

    compiler: Compiler
    judges: Mapping[str, Judge]
    labels: Mapping[str, Labels]

    @property
    def _one(self) -> tuple[Compiler, Judge, Labels]:
        (judge,) = self.judges.values()
        (labels,) = self.labels.values()
        return self.compiler, judge, labels

    def plan(self, lm: LanguageModel | str | None, *, teacher: bool = False) -> Plan:
        """Return calls, tokens and cost."""
        return plan(*self._one, lm, teacher=teacher)

    def described(self, plan: Plan) -> dict[str, Any]:
        """Return the labels as they were understood, and what they would be compiled by."""
        compiler, judge, labels = self._one
        objective = plan.objective
        by = {"level": objective.level, "objective": objective.name}
        return (
            {"objective": objective.name}
            | labels.understood()
            | {"plan_notes": list(plan.notes), "method": judge.method.settings()}
            | {"optimizer": compiler.search.settings() | by}
        )

    def run(
        self, lm: LanguageModel, plan: Plan | None = None
    ) -> tuple[Judge, CompileReport]:
        """Return the judge and its report. The plan is made again: an opened model says more of itself."""
        return compile_labels(*self._one, lm)


def compile_labels(
    compiler: Compiler, judge: Judge, labels: Labels, lm: LanguageModel
) -> tuple[Judge, CompileReport]:
    """Compile a judge from labels of one aspect; return it with its report.

    Raises:
        LabelsError: For labels that cannot be learnt from.
        BudgetError: If the budget ends before there is a judge.
        OptionError: For options that do not fit the judge or the labels.
    """
    labels = teachable(labels).regrouped(compiler.options.template_share)
    judge, labels = without_addressing(*in_words(judge, labels))
    refuse(compiler, judge, labels, lm)
    planned = plan(compiler, judge, labels, lm)
    return written_up(find(Job(compiler, judge, lm, planned), labels))


def refuse(compiler: Compiler, judge: Judge, labels: Labels, lm: LanguageModel) -> None:
    """Check the request for everything that is known to fail, before any call is made.

    Raises:
        OptionError: For options that do not fit the judge or the labels.
        LabelsError: For labels that cannot be learnt from.
        ArtifactError: For a judge that could not be saved.
    """
    if judge.method.kind == "":
        raise OptionError("this judge has no kind and could not be saved")
    for part in (labels, *([compiler.heldout] if compiler.heldout else [])):
        _refuse_unscored(part)
        examples_of(part, judge)
    compiler.objective(labels)
    systems = {row.system for row in labels.rows}
    too_few = None in systems or len(systems) < FEWEST_SYSTEMS
    if compiler.options.new_systems and too_few:
        raise OptionError(
            f"new_systems needs rows of {FEWEST_SYSTEMS} named systems at least (column system)"
        )
    if compiler.options.max_cost is not None:
        check_priced(lm.name, (compiler.teacher or lm).name)
    _refuse_unsavable(judge, labels, lm)


def _refuse_unscored(labels: Labels) -> None:
    scored = np.isfinite(labels.scores)
    if not scored.all():
        row = labels.rows[int(np.argmin(scored))]
        raise LabelsError(
            f"{labels.origin}: row {row.line} has no score for {labels.aspect!r}; remove it"
        )


def _refuse_unsavable(judge: Judge, labels: Labels, lm: LanguageModel) -> None:
    """Check that the compiled judge can be saved, as far as that is known before compiling.

    Checked are its words and options, the labels' scale, categories and columns, and the marks of their rows.

    Raises:
        ArtifactError: For content that an artifact cannot hold.
    """
    decision = None
    if labels.levels:
        names = labels.categories
        cuts = (50.0,) * (len(names) - 1)
        decision = Decision(names, cuts, labels.kind == "binary")
    outcome = replace(
        judge.outcome, scale=scale_of(labels), calibration=None, decision=decision
    )
    to_come = judge.with_(outcome=outcome)
    to_come.provenance = {
        "labels": origin_of(labels),
        "contract": contract_of(labels, lm),
        **marks(labels.rows),
    }
    artifact.refuse_unsavable(to_come)


# Fitting and measuring ------------------------------------------------------------------------------------------------


def find(job: Job, labels: Labels) -> Found:
    """Fit a judge to each side that is learnt from, and measure it on the other.

    Raises:
        BudgetError: If the budget ends before there is a judge.
    """
    meter = job.lm.meter
    started = time.monotonic()
    before = meter.usage
    budget = Budget(job.options.max_calls, job.options.max_cost)
    share = BudgetShare(budget, job.lm, job.plan)
    try:
        # Each fold scores rows that another one has read.
        with _paid_from(job), shared():
            engine.run(job.lm.capabilities())
            # A model is probed once a process: that is no part of what these labels cost.
            calls = meter.logical
            tokens = meter.logical_tokens
            final, runs = _fitted_and_measured(job, labels, share)
    except BudgetError:
        raise BudgetError(
            f"the budget of {budget} was used up before there was a judge to report on; all that compiling "
            f"these labels would do takes up to {job.plan.calls:,} calls"
        ) from None
    prompt, completion = np.subtract(meter.logical_tokens, tokens).tolist()
    cost = {
        "calls": meter.logical - calls,
        "prompt_tokens": prompt,
        "completion_tokens": completion,
    }
    usage = meter.usage - before
    seconds = time.monotonic() - started
    return Found(
        job.compiler, labels, job.plan, final, runs, job.lm, usage, seconds, cost
    )


def _fitted_and_measured(
    job: Job, labels: Labels, share: BudgetShare
) -> tuple[Fitted, Runs]:
    """Return the fit that the judge comes from, and the measured parts, in the way that the plan says."""
    parts = job.plan.parts
    if parts.crossed and job.judge.method.columns():
        # Folds that each took a signal's ends would differ in its scale.
        job = replace(job, judge=unlearnt(job, labels))
    if parts.again:
        share.for_fit()
        final = fit(job, labels, parts.shown)
        return final, _choosing_again(job, final, labels)
    if parts.free:
        share.for_fit()
        final = fit(job, labels, parts.shown)
        return final, _folds_for_free(job.after(final), len(parts.splits))
    runs = list[list[Measured]]()
    for run in parts.runs:
        runs.append([])
        for split in run:
            share.for_fit()
            fitted = fit(job, split.train, split.shown)
            job = job.after(fitted)
            share.for_heldout()
            runs[-1].append(_measured(job, fitted, split))
    if not parts.crossed:
        return runs[0][0].fitted, runs
    share.for_fit()
    return fit(job, labels, parts.shown), runs


def _measured(job: Job, fitted: Fitted, split: Split) -> Measured:
    """Score the held-out rows by the fitted judge and by the model alone."""
    heldout = examples_of(split.heldout, fitted.judge)
    progress = job.progress
    progress.stage("held-out rows, compiled", len(heldout))
    compiled = score_rows(fitted.judge, heldout, progress)
    progress.stage("held-out rows, the model alone", len(heldout))
    zero_shot = score_rows(fitted.zero_shot, heldout, progress)
    return Measured(fitted, split, compiled, zero_shot)


def _folds_for_free(job: Job, count: int) -> Runs:
    """Fit and measure folds whose calls the fit to all rows has already made.

    The cache answers the folds' calls, and they are not counted again.
    """
    shown = job.progress
    shown.stage(f"{count} folds, no model calls", count)
    job = replace(job, compiler=replace(job.compiler, progress=Silent()))
    runs = list[list[Measured]]()
    with _uncounted(job.lm):
        for run in job.plan.parts.runs:
            runs.append([])
            for split in run:
                fitted = fit(job, split.train, split.shown)
                job = job.after(fitted)
                runs[-1].append(_measured(job, fitted, split))
                shown.step()
    return runs


def _choosing_again(job: Job, final: Fitted, labels: Labels) -> Runs:
    """Choose form and candidate again without each fold, and measure them on it, as the fit to all rows did.

    Every candidate has scored every row without its document in the prompt, so that nothing is asked.
    """
    examples = examples_of(labels, job.judge)
    places = _places(labels)
    runs = list[list[Measured]]()
    for run in job.plan.parts.runs:
        runs.append([])
        for split in run:
            inside = places(split.train)
            outside = places(split.heldout)
            fitted, trial = fitted_again(job, final, split.train, examples, inside)
            compiled = _mapped(trial.scored, outside, fitted.judge.outcome)
            plain = final.record.zero_shot
            zero_shot = _mapped(plain, outside, fitted.zero_shot.outcome)
            runs[-1].append(Measured(fitted, split, compiled, zero_shot))
    return runs


def _places(labels: Labels) -> Callable[[Labels], NDArray[np.intp]]:
    """Return a function from some of these rows to their places."""
    of_row: dict[tuple[str, str, str], list[int]] = {}
    for place, row in enumerate(labels.rows):
        of_row.setdefault((row.id, row.source, row.output), []).append(place)

    def places(part: Labels) -> NDArray[np.intp]:
        left = {key: iter(same) for key, same in of_row.items()}
        found = [next(left[row.id, row.source, row.output]) for row in part.rows]
        return np.array(found, np.intp)

    return places


def _mapped(scored: Scored, places: NDArray[np.intp], outcome: Outcome) -> Scored:
    """Return the verdicts of some rows with what an outcome makes of their raw scores."""
    some = [scored.verdicts[place] for place in places.tolist()]
    return Scored.of([v if v.failure else outcome(v) for v in some])


@contextmanager
def _paid_from(job: Job) -> Iterator[None]:
    """The teacher's calls are paid for from the model's budget, which ends with the run.

    What either could not answer is not asked again until then.
    """
    lm = job.lm
    teacher = job.compiler.teacher
    own = None if teacher is None else teacher.meter
    lm.failures = Failures()
    try:
        if teacher is not None:
            teacher.meter = lm.meter
            teacher.failures = lm.failures
        yield
    finally:
        lm.meter.max_calls = lm.meter.max_cost = lm.failures = None
        if teacher is not None and own is not None:
            teacher.meter = own
            teacher.failures = None


@contextmanager
def _uncounted(lm: LanguageModel) -> Iterator[None]:
    """Calls that repeat others are not counted again, and what was not answered before is not asked."""
    counted = lm.meter
    lm.meter = Meter()
    lm.failures = replace(lm.failures or Failures(), closed=True)
    try:
        yield
    finally:
        counted.usage += replace(lm.meter.usage, cached=0)
        lm.meter = counted


# Writing up -----------------------------------------------------------------------------------------------------------


def written_up(found: Found) -> tuple[Judge, CompileReport]:
    """Return the judge that was found, with how far it agrees with people."""
    compiler = found.compiler
    objective = found.plan.objective
    findings = Findings(
        found.labels,
        found.runs,
        found.final,
        objective,
        compiler.options.seed,
        new_systems=compiler.options.new_systems,
        again=found.plan.parts.again,
    )
    report = report_on(findings, found.usage, found.seconds)
    judge = found.final.judge
    teacher = compiler.teacher
    judge.outcome = replace(judge.outcome, sureness=findings.sureness)
    optimizer = compiler.search_by(objective).settings()
    judge.provenance = provenance_of(
        findings,
        report,
        optimizer=optimizer | {"teacher": teacher and teacher.name},
        lm=found.lm,
        cost=found.cost,
    )
    return judge, report
