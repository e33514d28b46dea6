"""Fit a judge to some rows: infer the task, choose a form of answers, search, fit weights, and map scores.

Nothing here sees a held-out row. `fit` is the whole, and what it needs of a run is a frozen `Job`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.objectives import Objective
from judgesmith.datasets.records import TOGETHER, Labels
from judgesmith.datasets.row import OVERALL as OVERALL_SCORE
from judgesmith.errors import OptionError
from judgesmith.optimizers.examples import (
    Scored,
    Vector,
    agreement,
    clearly,
    difference,
    examples_of,
    groups,
    item_of,
    scale_of,
    score_rows,
)
from judgesmith.optimizers.fitting.folds import folds
from judgesmith.optimizers.fitting.outcome import cheapest, fit_decision, fit_preference
from judgesmith.optimizers.fitting.weights import Training, refine
from judgesmith.optimizers.options import CompileOptions, Compiler
from judgesmith.optimizers.planning import dearer
from judgesmith.optimizers.report import Fitted, FormTrial, Plan
from judgesmith.optimizers.search.base import (
    SearchRecord,
    Trial,
    candidate_in_words,
    unfit,
)
from judgesmith.parts import nearest
from judgesmith.programs.active_critic.task import Inference, Inquiry, Labelled
from judgesmith.programs.aspects import OVERALL
from judgesmith.programs.capabilities import (
    Form,
    HasForms,
    InfersTask,
    ask_all,
    leave_out,
    options_in_words,
    set_brief,
)
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine
from judgesmith.programs.models.as_dspy import value_of
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.outcome import Calibration, Outcome
from judgesmith.programs.progress import Progress
from judgesmith.programs.refining import Refinement, fitted_always
from judgesmith.signatures.values import Verdict


@dataclass(frozen=True, slots=True)
class Job:
    """What the fits of a run have in common. Nothing in it changes; a fit that learns more returns it."""

    compiler: Compiler
    judge: Judge
    """The judge to be compiled, which is not changed."""
    lm: LanguageModel
    plan: Plan
    silent: Mapping[str, str] = field(default_factory=dict)
    """Members of the judge that an earlier fit found to score no row, and why: no later fit asks them."""
    inferred: dict[str, Inference] = field(default_factory=dict)
    """What was inferred from the labels of all aspects, by their fingerprint: a cache that the aspects share."""

    def after(self, fitted: Fitted) -> Job:
        """Return the run with what a fit found out for the next one."""
        return replace(self, silent=fitted.silent)

    @property
    def options(self) -> CompileOptions:
        """Return the options of the run."""
        return self.compiler.options

    @property
    def objective(self) -> Objective:
        """Return what is maximised."""
        return self.plan.objective

    @property
    def progress(self) -> Progress:
        """Return the watcher of the run."""
        return self.compiler.progress


def fit(job: Job, train: Labels, shown: Labels | None = None) -> Fitted:
    """Run task inference, choice of form and search on these rows alone.

    Args:
        job: The run.
        train: The rows to learn from.
        shown: The rows, with the labels of all aspects, that the task is inferred from by several judges.
    """
    search = job.compiler.search_by(job.objective)
    by = job.objective
    examples = examples_of(train, job.judge)
    student = unlearnt(job, train)
    inference = learn_task(job, student, shown or train)
    settled = settle(job, student, examples, inferred=inference is not None)
    student = settled.judge
    # What is settled for the model is saved, too, and not settled again for another one.
    engine.run(student.method.prepare(student.lm))
    program = search.compile(student, teacher=job.compiler.teacher, trainset=examples)
    record = search.record
    assert record is not None
    leave_out(student.method, record.silent)
    refined = list[Refinement]()
    if fitted_always(program.method) or (search.searches and job.options.refine):
        refined = refine(program, _training(job, examples, record))
    left_out = None
    if not job.plan.parts.crossed:
        left_out = scores_left_out(record, settled.forms, refined, examples, by, job)
    fitted = Fitted(
        program,
        student.with_(outcome=_plain_outcome(record.zero_shot.percents, train)),
        record,
        inference,
        settled.forms,
        tuple(refined),
        job.plan.dearer or settled.remark,
        left_out,
        silent={**job.silent, **record.silent},
    )
    decide(fitted, train, job.options)
    return fitted if job.options.take is None else taken(job, fitted, train)


def unlearnt(job: Job, labels: Labels) -> Judge:
    """Return a copy of the judge that has met these rows, and has learnt nothing."""
    judge = job.judge
    calibration = judge.outcome.calibration
    student = judge.with_(outcome=Outcome(scale_of(labels), calibration))
    student.provenance = {}
    student.set_lm(job.lm)
    items = [item_of(example) for example in examples_of(labels, judge)]
    aspect = "" if labels.aspect in OVERALL else labels.aspect
    student.method.meet(aspect, items, job.lm)
    ask_all(student.method)
    leave_out(student.method, job.silent)
    return student


# The task -------------------------------------------------------------------------------------------------------------


def learn_task(job: Job, student: Judge, labels: Labels) -> Inference | None:
    """Let a judge learn task and criteria from rows, where it infers them; None where nothing is left to infer."""
    method = student.method
    inquiry = method.inquiry() if isinstance(method, InfersTask) else None
    if not isinstance(method, InfersTask) or inquiry is None:
        return None
    key = labels.fingerprint()
    inference = job.inferred.get(key)
    if inference is None:
        inference = _inferred(job, inquiry, labels)
    if labels.aspect == TOGETHER:
        job.inferred[key] = inference
    method.learn(inference, job.lm)
    return inference


def _inferred(job: Job, inquiry: Inquiry, labels: Labels) -> Inference:
    examples = examples_of(labels)
    several = labels.aspect == TOGETHER
    order = np.random.default_rng([job.options.seed, 77]).permutation(len(examples))
    shown = list[Labelled]()
    for place in order:
        row = labels.rows[place]
        example = examples[place]
        labelled = Labelled(
            example.source or "",
            example.output,
            round(example.score, 1),
            row.id,
            row.why(OVERALL_SCORE if several else labels.aspect),
            dict(row.scores) if several else {},
        )
        shown.append(labelled)
    inference = job.compiler.inferring
    job.progress.stage("task inference", inference.calls(len(shown)))
    call = inference.acall(
        shown,
        aspect=inquiry.aspect,
        described=inquiry.described,
        lm=job.lm,
        progress=job.progress.step,
    )
    return value_of(engine.run(call), Inference)


# The form of answers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settled:
    """A judge in the form of answers that agrees best without examples, and what was tried."""

    judge: Judge
    forms: tuple[FormTrial, ...] = ()
    remark: str | None = None
    """How a form of more calls a row did, where one was tried."""


def settle(
    job: Job, student: Judge, examples: Sequence[dspy.Example], *, inferred: bool
) -> Settled:
    """Choose the form of answers by agreement without examples on the training rows.

    A form that takes more calls a row is kept only if it is clearly better, by the search's rule for candidates.

    Args:
        job: The run.
        student: The judge, which knows its task.
        examples: The training rows.
        inferred: Whether that task was inferred, so that the judge is tried without it, too.
    """
    method = student.method
    if not isinstance(method, HasForms):
        return Settled(student)
    able = engine.run(student.lm.capabilities())
    forms = method.forms(logprobs=able.logprobs, model=student.lm.name)
    bare = without_inferred(student, job.options) if inferred else None
    more = {} if job.plan.dearer else dearer(student, job.lm.name)
    if len(forms) < 2 and bare is None and not more:
        for form in forms:
            method.settle(**form.values)
        return Settled(student)
    trials = [_try_form(job, student, examples, form) for form in forms]
    if bare is not None:
        # What a weak model infers can mislead it: the same form is tried without.
        first = max(trials, key=FormTrial.preference).form
        trials.append(_try_form(job, bare, examples, first, knowledge=False))
    best = max(trials, key=FormTrial.preference)
    remark = None
    if more:
        trial, remark = _try_more(job, student, examples, best, more)
        trials.append(trial)
        if trial.disqualified is None:
            best = trial
    chosen = student if bare is None or best.knowledge else bare
    _settled(chosen, best.form)
    return Settled(chosen, tuple(trials), remark)


def without_inferred(student: Judge, options: CompileOptions) -> Judge | None:
    """Return a copy whose prompts leave out what was inferred; None if that is not to be tried."""
    method = student.method
    if not options.refine or not isinstance(method, InfersTask):
        return None
    plain = method.without_inferred()
    return None if plain is None else student.with_(method=plain)


def _try_form(
    job: Job,
    student: Judge,
    examples: Sequence[dspy.Example],
    form: Form,
    *,
    knowledge: bool = True,
) -> FormTrial:
    trial = student.with_()
    _settled(trial, form)
    set_brief(trial.method, True)
    words = options_in_words(form.values) + (
        "" if knowledge else ", without inferred task"
    )
    job.progress.stage(f"without examples: {words}", len(examples))
    scored = score_rows(trial, examples, job.progress)
    seed = job.options.seed
    reached = agreement(
        scored.percents, examples, objective=job.objective, seed=seed, rounds=500
    )
    wrong = unfit(scored, reached, job.compiler.search.max_failed)
    return FormTrial(form, knowledge, reached, scored.percents, wrong)


def _try_more(
    job: Job,
    student: Judge,
    examples: Sequence[dspy.Example],
    best: FormTrial,
    more: Mapping[str, Any],
) -> tuple[FormTrial, str]:
    """Try options that take more calls a row on top of the best form; return the trial, and a remark on it."""
    trial = _try_form(job, student, examples, Form({**best.form.values, **more}))
    gap = difference(
        trial.percents,
        best.percents,
        examples,
        objective=job.objective,
        seed=job.options.seed,
        rounds=1000,
    )
    better = clearly(gap, job.compiler.search.sure)
    if not (trial.disqualified or best.disqualified or better):
        trial = replace(trial, disqualified="it is not clearly better")
    fate = "kept"
    if trial.disqualified is not None:
        fate = f"left out, since {trial.disqualified}"
    remark = (
        f"{options_in_words(more)} was tried without examples, at more calls a row: {job.objective.label} "
        f"{trial.agreement.value:.2f} against {best.agreement.value:.2f} on the training rows; {fate}"
    )
    return trial, remark


def _settled(judge: Judge, form: Form) -> None:
    """Fix the form of a judge's answers."""
    if isinstance(judge.method, HasForms):
        judge.method.settle(**form.values)


def best_form(
    forms: Sequence[FormTrial],
    examples: Sequence[dspy.Example],
    inside: NDArray[np.intp],
    by: Objective,
    seed: int,
) -> FormTrial | None:
    """Return the form that some rows choose; None without any.

    Args:
        forms: All that were tried, with their scores of all rows.
        examples: All rows.
        inside: The numbers of the rows that choose.
        by: What is maximised.
        seed: The run's seed.
    """
    rest = [examples[place] for place in inside.tolist()]
    again = list[FormTrial]()
    for form in forms:
        percents = form.percents[inside]
        reached = agreement(percents, rest, objective=by, seed=seed, rounds=0)
        again.append(replace(form, agreement=reached))
    if not again:
        return None
    return forms[max(range(len(again)), key=lambda place: again[place].preference())]


# Scores ---------------------------------------------------------------------------------------------------------------


def _training(
    job: Job, examples: Sequence[dspy.Example], record: SearchRecord
) -> Training:
    """Return the rows with the chosen candidate's scores, as refiners see them."""
    return Training(
        examples,
        record.scored.verdicts,
        record.scored.percents,
        job.objective,
        job.options.seed,
        job.progress,
        model=job.lm,
    )


def _plain_outcome(percents: Vector, train: Labels) -> Outcome:
    """Return the outcome of a judge that is only calibrated."""
    scale = scale_of(train)
    return Outcome(scale, Calibration.fit(percents, train.scores, scale))


def decide(fitted: Fitted, train: Labels, options: CompileOptions) -> None:
    """Fit how the judge's raw scores become scores of the labels' scale, categories and preferences."""
    percents = fitted.percents
    scale = scale_of(train)
    decision = fit_decision(percents, train)
    if options.cost_of_missed_fail != 1 and decision is not None:
        decision = cheapest(decision, percents, train, options.cost_of_missed_fail)
    calibration = fitted.mapped(percents, train.scores, scale)
    preference = fit_preference(percents, train)
    fitted.judge.outcome = Outcome(scale, calibration, decision, preference)


def scores_left_out(
    record: SearchRecord,
    forms: Sequence[FormTrial],
    refined: Sequence[Refinement],
    examples: Sequence[dspy.Example],
    by: Objective,
    job: Job,
) -> Vector | None:
    """Return `Fitted.left_out`: form and candidate are chosen again without each fold of the training rows."""
    if len(forms) < 2 and len(record.tried) < 2:
        return None
    if any(r.changed for r in refined) or record.left_out is None:
        return np.full(len(examples), math.nan)
    scores = record.left_out.copy()
    seed = job.options.seed
    settled = max(forms, key=FormTrial.preference, default=None)
    if settled is None:
        return scores
    for out in folds(groups(examples), seed=seed):
        inside = np.setdiff1d(np.arange(len(examples)), out)
        best = best_form(forms, examples, inside, by, seed)
        if best is not None and best is not settled:
            scores[out] = best.percents[out]
    return scores


# Other results of a fit -----------------------------------------------------------------------------------------------


def taken(job: Job, fitted: Fitted, train: Labels) -> Fitted:
    """Return the fit with the candidate that was asked for by its name, as the search judged it.

    It is one of those that were judged on all rows and not disqualified.

    Raises:
        OptionError: If there is none of that name.
    """
    take = job.options.take
    record = fitted.record
    assert take is not None
    every = (trial.candidate.name for trial in record.tried)
    take = {candidate_in_words(name): name for name in every}.get(take, take)
    if take == fitted.name:
        return fitted
    whole = [t for t in record.tried if t.candidate.dropped is None]
    zero_shot = replace(whole[0], program=fitted.zero_shot)
    others = sorted(whole[1:], key=lambda trial: -trial.candidate.agreement.value)
    by_name = {}
    for trial in (zero_shot, *others):
        same = trial.program is fitted.judge or trial.candidate.name == fitted.name
        if not same and trial.candidate.disqualified is None:
            by_name[trial.candidate.name] = trial
    if take not in by_name:
        in_fold = job.plan.parts.crossed and len(train) < job.plan.rows
        where = " in one of the folds; --heldout 0.25 searches once" if in_fold else ""
        names = [fitted.name, *by_name]
        raise OptionError(
            f"take: there is no candidate {take!r}{nearest(take, names)}, but {', '.join(names)}{where}"
        )
    judge = by_name[take].program.with_()
    asked = replace(
        fitted,
        judge=judge,
        record=replace(
            record,
            chosen=replace(by_name[take], program=judge),
            reason="this candidate was asked for by its name (take)",
            corrected=None,
        ),
        refined=(),
        left_out=np.full(len(train), math.nan),
    )
    decide(asked, train, job.options)
    return asked


def fitted_again(
    job: Job,
    final: Fitted,
    train: Labels,
    examples: Sequence[dspy.Example],
    inside: NDArray[np.intp],
) -> tuple[Fitted, Trial]:
    """Return what some rows choose of a fit to all rows, fitted to them, and its scores of all rows.

    Args:
        job: The run.
        final: The fit to all rows.
        train: The rows that choose.
        examples: All rows.
        inside: The numbers of the rows that choose.
    """
    record = final.record
    search = job.compiler.search_by(job.objective)
    settled = max(final.forms, key=FormTrial.preference, default=None)
    trial = search.chosen_again(record, examples, inside)
    if job.options.take is not None or trial is None:
        trial = record.chosen
    best = best_form(final.forms, examples, inside, job.objective, job.options.seed)
    if best is not None and best is not settled:
        # The search was made in another form: this one was tried without examples.
        trial = replace(record.tried[0], scored=Scored.of(_bare(best.percents)))
    scored = Scored((), trial.scored.percents[inside])
    plain = _plain_outcome(record.zero_shot.percents[inside], train)
    fitted = replace(
        final,
        judge=trial.program.with_(),
        zero_shot=final.zero_shot.with_(outcome=plain),
        record=replace(
            record,
            chosen=replace(trial, scored=scored),
            left_out=None,
            corrected=None,
        ),
    )
    decide(fitted, train, job.options)
    return fitted, trial


def _bare(percents: Vector) -> list[Verdict]:
    """Return verdicts of which only the raw scores are known."""
    verdicts = list[Verdict]()
    for percent in percents.tolist():
        if math.isnan(percent):
            verdicts.append(Verdict.failed("there is no score"))
        else:
            verdicts.append(Verdict(score=percent, percent=percent))
    return verdicts
