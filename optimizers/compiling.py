"""Compile a judge from the labels of one aspect.

The steps are: split, task inference, form of answers, search, calibration and held-out agreement. The reported
agreement comes from rows that none of these steps saw.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import dspy
import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator

from judgesmith.agreement.correlation import Level
from judgesmith.agreement.objectives import Objective, chosen_objective, objectives
from judgesmith.agreement.resampling import FEWEST_SYSTEMS
from judgesmith.datasets.duplicates import SHARE
from judgesmith.datasets.records import TOGETHER, Labels
from judgesmith.datasets.row import OVERALL as OVERALL_SCORE
from judgesmith.datasets.splits import (
    Split,
    assert_disjoint,
    group_folds,
    holdout_split,
)
from judgesmith.errors import BudgetError, LabelsError, OptionError
from judgesmith.optimizers.budget import Budget, BudgetShare
from judgesmith.optimizers.crossing import FEW_LABELS, FOLDS, RUNS
from judgesmith.optimizers.examples import (
    Scored,
    Vector,
    agreement,
    clearly,
    difference,
    examples_of,
    groups,
    in_words,
    item_of,
    score_rows,
    teachable,
)
from judgesmith.optimizers.findings import Findings, Measured, contract_of, origin_of
from judgesmith.optimizers.fitting.folds import folds
from judgesmith.optimizers.fitting.outcome import cheapest, fit_decision, fit_preference
from judgesmith.optimizers.fitting.weights import Training, refine
from judgesmith.optimizers.planning import PROBES, Spending, Stages, taught
from judgesmith.optimizers.report import CompileReport, Fitted, FormTrial, Parts, Plan
from judgesmith.optimizers.room import room_for, row_tokens
from judgesmith.optimizers.search.base import (
    DemonstrationSearch,
    SearchRecord,
    Trial,
    unfit,
)
from judgesmith.optimizers.search.few_shot import NoSearch
from judgesmith.optimizers.search.random import CorrelationRandomSearch
from judgesmith.optimizers.seen import marks
from judgesmith.parts import Effect, Options, nearest, option, read_options
from judgesmith.programs import artifact
from judgesmith.programs.active_critic.task import (
    Inference,
    Inquiry,
    Labelled,
    TaskInference,
)
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.aspects import OVERALL
from judgesmith.programs.capabilities import (
    Form,
    HasForms,
    InfersTask,
    answering,
    ask_all,
    inquiry_of,
    leave_out,
    passes_of,
    set_brief,
    stops_early,
)
from judgesmith.programs.judge import Judge
from judgesmith.programs.method import Method
from judgesmith.programs.models import engine
from judgesmith.programs.models.as_dspy import value_of
from judgesmith.programs.models.failures import Failures
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.meter import Meter
from judgesmith.programs.models.price import check_priced, shared_price
from judgesmith.programs.models.provider import is_local
from judgesmith.programs.outcome import Calibration, Decision, Outcome
from judgesmith.programs.progress import Progress, Silent
from judgesmith.programs.readings.bindings.opening import offer
from judgesmith.programs.refining import Refinable, Refinement, fitted_always
from judgesmith.programs.sharing import shared
from judgesmith.signatures.values import Item, Passes, Scale, Usage, Verdict

#: The share that is held out of many labels, and the fewest of which one can be, where a budget forbids folds.
QUARTER = 0.25
FEWEST_HELD_OUT = 30
#: Demonstrations that a plan's sizes are compared with.
FEW_SHOWN = 4
#: Why a teacher is refused.
NO_TEACHER = "no model writes anything in it"


def _checked_name(name: str) -> str:
    objectives.get(name)
    return name


class CompileOptions(Options):
    """Options of compiling itself, beside judge, labels, model and optimizer."""

    level: Level = option(
        "pooled",
        "Level of agreement. pooled: all rows together (the papers' summary level). sample: within documents. "
        "system: of systems' means. within: within systems.",
    )
    objective: Annotated[str, AfterValidator(_checked_name)] | None = option(
        None,
        "Objective to maximise: q, kappa, auc or pairwise. none: q for scores, kappa for categories, auc for pass "
        "and fail, pairwise for preferences.",
    )
    heldout: float | None = option(
        None,
        "Share of documents held out for the reported agreement. none: cross-validation up to 160 labels, or where "
        "folds need no model calls; else 0.25.",
        gt=0,
        lt=1,
    )
    cv: int | None = option(
        None,
        "Number of cross-validation folds (whole documents), instead of a held-out share. The judge itself is "
        "compiled from all rows. none: 4 folds up to 160 labels, repeated five times if that needs no model calls. "
        "Above 160, 4 folds only if they need none.",
    )
    template_share: float = option(
        SHARE,
        "Share of documents above which nearly equal texts are a template, not duplicates. Rows of a template may be "
        "on both sides of a split.",
        gt=0,
        le=1,
        added=True,
    )
    cost_of_missed_fail: float = option(
        1.0,
        "Pass and fail: cost of a fail that is passed, relative to a pass that is failed. Other values than 1 set "
        "the cut-off by the lowest cost on training rows, instead of balanced accuracy.",
        gt=0,
    )
    refine: bool = option(
        True,
        "After the search, also try leaving out the inferred task and fitting weights. Changes that improve "
        "agreement are kept. no: as in the papers.",
    )
    batches: int = option(
        25, "Maximum number of mini-batches for task inference.", ge=1
    )
    batch_size: int = option(
        5, "Number of labelled rows in a mini-batch for task inference.", ge=1
    )
    keep: int = option(5, "Maximum number of task descriptions to merge.", ge=1)
    max_calls: int | None = option(
        None,
        "Maximum number of model calls, retries not counted. At the limit, the best candidate so far is saved. "
        "Default: no limit.",
        ge=1,
    )
    max_cost: float | None = option(
        None,
        "Maximum cost, in US dollars.",
        effect=Effect(
            ways=(),
            refusals={
                "--batch": "cannot stop the requests of --batch, which are sent at once; use --max-calls"
            },
        ),
        gt=0,
    )
    new_systems: bool = option(
        False,
        "Make the intervals of agreement hold for other systems, too. They get wider, and need at least 3 systems.",
        added=True,
    )
    seed: int = option(0, "Random seed for splits and candidates.")
    take: str | None = option(
        None,
        "Name of the candidate to save instead of the best one. With several aspects: for all, or ASPECT=NAME for one.",
        added=True,
    )


@dataclass(frozen=True, slots=True)
class Found:
    """The fit and the measurements of one run, before it is written up.

    usage, seconds: of this run. cost: calls and tokens, as they would be without a cache.
    """

    labels: Labels
    plan: Plan
    final: Fitted
    runs: Sequence[Sequence[Measured]]
    lm: LanguageModel
    usage: Usage
    seconds: float
    cost: dict[str, int]


@dataclass(slots=True, init=False)
class Compiler:
    """One compile run; `compile()` is its front door.

    search: the optimizer, which is not changed; None: no search (the ablation). heldout: labels to hold out in place of
    a share. inference: how task inference reads, instead of what the options say. progress: the watcher. outcome: what
    the last fit came to, whatever was taken instead, and the rows that it learnt from. silent: members of the judge
    that scored no row of the first measurement, and why; no later one asks them.
    """

    search: DemonstrationSearch
    options: CompileOptions
    heldout: Labels | None
    inference: TaskInference
    teacher: LanguageModel | None
    progress: Progress
    outcome: tuple[Fitted, Labels] | None = field(init=False)
    inferred: dict[str, Inference] = field(init=False)
    silent: dict[str, str] = field(init=False)

    def __init__(
        self,
        *,
        search: DemonstrationSearch | Literal["default"] | None = "default",
        options: CompileOptions | None = None,
        heldout: float | Labels | None = None,
        inference: TaskInference | None = None,
        teacher: LanguageModel | None = None,
        progress: Progress | None = None,
        budget: Budget | None = None,
        **settings: Any,
    ) -> None:
        """Set up a compiler from `options`, or from options by their names.

        Args:
            search: The search over demonstrations and instructions; None for none.
            options: All options in one object.
            heldout: Labels to hold out, or the option of that name.
            inference: How task and criteria are inferred.
            teacher: The model that writes the answers shown as demonstrations.
            progress: The watcher of the run.
            budget: Both of the budget's options, `max_calls` and `max_cost`.
            **settings: Options by their names.

        Raises:
            OptionError: For unknown options, and for a teacher that the search has no use for.
        """
        if budget is not None:
            settings |= {"max_calls": budget.max_calls, "max_cost": budget.max_cost}
        if heldout is not None and not isinstance(heldout, Labels):
            settings["heldout"] = heldout
        options = options or CompileOptions()
        o = self.options = read_options(
            type(options), dict(options) | settings, "compile"
        )
        if search == "default":
            self.search = CorrelationRandomSearch()
        else:
            self.search = search or NoSearch()
        if isinstance(heldout, Labels):
            self.heldout = heldout.regrouped(o.template_share)
        else:
            self.heldout = None
        self.inference = inference or TaskInference(
            batches=o.batches, batch_size=o.batch_size, keep=o.keep
        )
        self.teacher = teacher
        self.progress = progress or Silent()
        self.outcome = None
        self.inferred = {}
        self.silent = {}
        if teacher is not None and not self.search.uses_teacher:
            raise OptionError(
                f"teacher does nothing with optimizer {self.search.name}: {NO_TEACHER}"
            )

    def run(
        self, judge: Judge, labels: Labels, lm: LanguageModel
    ) -> tuple[Judge, CompileReport]:
        """Compile a judge; return it with its report.

        The rows are split, a judge is fitted to each training side and measured on the other, and the findings are
        written up.
        """
        labels = teachable(labels).regrouped(self.options.template_share)
        judge, labels = in_words(judge, labels)
        self.refuse(judge, labels, lm)
        return self.written_up(
            self.find(judge, labels, lm, self.plan(judge, labels, lm))
        )

    def find(
        self, judge: Judge, labels: Labels, lm: LanguageModel, plan: Plan
    ) -> Found:
        """Fit a judge to each side that is learnt from, and measure it on the other. plan: of this run."""
        parts = plan.parts
        budget = Budget(self.options.max_calls, self.options.max_cost)
        meter = lm.meter
        paid = () if parts.free else parts.splits
        calls_of = [plan.heldout_calls * len(s.heldout) // plan.heldout for s in paid]
        share = BudgetShare(budget, lm, plan, calls_of)
        started = time.monotonic()
        before = meter.usage
        try:
            # Each fold scores rows that another one has read.
            with self._paid_from(lm), shared():
                engine.run(lm.capabilities())
                # A model is probed once a process: that is no part of what these labels cost.
                calls = meter.logical
                tokens = meter.logical_tokens
                if (
                    parts.crossed and judge.method.columns()
                ):  # folds that each took a signal's ends would differ in its scale
                    judge = self._student(judge, labels, lm)
                if parts.again:
                    share.for_fit()
                    final = self.fit(judge, labels, lm, plan, parts.shown)
                    runs = self._chosen_again(final, judge, labels, plan)
                elif parts.free:
                    share.for_fit()
                    final, runs = self._crossed_for_free(judge, labels, lm, plan)
                else:
                    runs = []
                    for run in parts.runs:
                        measured = [
                            self._one_part(judge, split, lm, plan, share)
                            for split in run
                        ]
                        runs.append(measured)
                    share.for_fit()
                    if parts.crossed:
                        final = self.fit(judge, labels, lm, plan, parts.shown)
                    else:
                        final = runs[0][0].fitted
        except BudgetError:
            raise BudgetError(
                f"the budget of {budget} was used up before there was a judge to report on; all that compiling "
                f"these labels would do takes up to {plan.calls:,} calls"
            ) from None
        prompt, completion = np.subtract(meter.logical_tokens, tokens).tolist()
        return Found(
            labels,
            plan,
            final,
            runs,
            lm,
            usage=meter.usage - before,
            seconds=time.monotonic() - started,
            cost={
                "calls": meter.logical - calls,
                "prompt_tokens": prompt,
                "completion_tokens": completion,
            },
        )

    def written_up(self, found: Found) -> tuple[Judge, CompileReport]:
        """The judge that was found, with how far it agrees with people."""
        final = found.final
        objective = found.plan.objective
        o = self.options
        findings = Findings(
            found.labels,
            found.runs,
            final,
            objective,
            o.seed,
            new_systems=o.new_systems,
            again=found.plan.parts.again,
        )
        report = findings.report(found.usage, found.seconds)
        final.judge.outcome = replace(final.judge.outcome, sureness=findings.sureness)
        final.judge.provenance = findings.provenance(
            report,
            optimizer=self._search(objective).settings()
            | {"teacher": self.teacher and self.teacher.name},
            lm=found.lm,
            cost=found.cost,
        )
        return final.judge, report

    def _one_part(
        self,
        judge: Judge,
        split: Split,
        lm: LanguageModel,
        plan: Plan,
        share: BudgetShare,
    ) -> Measured:
        share.for_fit()
        fitted = self.fit(judge, split.train, lm, plan, split.shown)
        share.for_heldout()
        return self._measured(fitted, split)

    def _crossed_for_free(
        self, judge: Judge, labels: Labels, lm: LanguageModel, plan: Plan
    ) -> tuple[Fitted, list[list[Measured]]]:
        """Fit all rows, then folds, whose calls the first fit has already made.

        The cache answers the folds' calls, and they are not counted again.
        """
        final = self.fit(judge, labels, lm, plan, plan.parts.shown)
        self.progress.stage(
            f"{len(plan.parts.splits)} folds, of which nothing is asked",
            len(plan.parts.splits),
        )
        outcome = self.outcome
        counted = lm.meter
        shown = self.progress
        lm.meter = Meter()
        self.progress = Silent()
        lm.failures = replace(lm.failures or Failures(), closed=True)
        try:
            runs = [list[Measured]() for _ in plan.parts.runs]
            for place, split in (
                (place, split)
                for place, run in enumerate(plan.parts.runs)
                for split in run
            ):
                runs[place].append(
                    self._measured(
                        self.fit(judge, split.train, lm, plan, split.shown), split
                    )
                )
                shown.step()
        finally:
            counted.usage += replace(lm.meter.usage, cached=0)
            lm.meter = counted
            self.progress = shown
            self.outcome = outcome
        return final, runs

    def _chosen_again(
        self, final: Fitted, judge: Judge, labels: Labels, plan: Plan
    ) -> list[list[Measured]]:
        """Choose form and candidate again without each fold, and measure them on it, as the fit to all rows did.

        Every candidate has scored every row without its document in the prompt, so that nothing is asked.
        """
        examples = examples_of(labels, judge)
        search = self._search(plan.objective)
        places = _places(labels)
        runs = list[list[Measured]]()
        for run in plan.parts.runs:
            measured = list[Measured]()
            for split in run:
                inside = np.array(places(split.train), np.intp)
                outside = np.array(places(split.heldout), np.intp)
                fitted, trial = self._fitted_again(
                    final, split.train, examples, search, inside
                )
                compiled = _mapped(trial.scored, outside, fitted.judge.outcome)
                zero_shot = _mapped(
                    final.record.zero_shot, outside, fitted.zero_shot.outcome
                )
                measured.append(Measured(fitted, split, compiled, zero_shot))
            runs.append(measured)
        return runs

    def _fitted_again(
        self,
        final: Fitted,
        train: Labels,
        examples: Sequence[dspy.Example],
        search: DemonstrationSearch,
        inside: NDArray[np.intp],
    ) -> tuple[Fitted, Trial]:
        """Return what some rows choose of a fit to all rows, fitted to them, and its scores of all rows."""
        record = final.record
        rest = [examples[i] for i in inside.tolist()]
        settled = max(final.forms, key=FormTrial.preference, default=None)
        trial = search.chosen_again(record, examples, inside)
        if self.options.take is not None or trial is None:
            trial = record.chosen
        best = self._best_form(final.forms, rest, inside, search.objective)
        if best is not settled and best is not None:
            # The search was made in another form: this one was tried zero-shot alone.
            trial = replace(record.tried[0], scored=Scored.of(_bare(best.percents)))
        scored = Scored((), trial.scored.percents[inside])
        plain = record.zero_shot.percents[inside]
        scale = Scale(*train.scale)
        fitted = replace(
            final,
            judge=trial.program.with_(),
            zero_shot=final.zero_shot.with_(
                outcome=Outcome(scale, Calibration.fit(plain, train.scores, scale))
            ),
            record=replace(
                record,
                chosen=replace(trial, scored=scored),
                left_out=None,
                corrected=None,
            ),
        )
        self.decide(fitted, train)
        return fitted, trial

    def _best_form(
        self,
        forms: Sequence[FormTrial],
        rest: Sequence[dspy.Example],
        inside: NDArray[np.intp],
        by: Objective,
    ) -> FormTrial | None:
        """Return the form that some rows choose; None without any."""
        seed = self.options.seed
        best = None
        for form in forms:
            percents = form.percents[inside]
            reached = agreement(percents, rest, objective=by, seed=seed, rounds=0)
            preference = replace(form, agreement=reached).preference()
            if best is None or preference > best[0]:
                best = preference, form
        return None if best is None else best[1]

    # -- what it will do

    def refuse(self, judge: Judge, labels: Labels, lm: LanguageModel) -> None:
        """Check the request for everything that is known to fail, before any call is made.

        Raises:
            OptionError: For options that do not fit the judge or the labels.
            LabelsError: For labels that cannot be learnt from.
            ArtifactError: For a judge that could not be saved.
        """
        if judge.method.kind == "":
            raise OptionError("this judge has no kind and could not be saved")
        for part in (labels, *([self.heldout] if self.heldout else [])):
            _refuse_unscored(part)
            examples_of(part, judge)
        self.objective(labels)
        systems = {row.system for row in labels.rows}
        if self.options.new_systems and (
            None in systems or len(systems) < FEWEST_SYSTEMS
        ):
            raise OptionError(
                f"new_systems needs rows of {FEWEST_SYSTEMS} named systems at least (column system)"
            )
        if self.options.max_cost is not None:
            check_priced(lm.name, (self.teacher or lm).name)
        _refuse_unsavable(judge, labels, lm)

    def objective(self, labels: Labels) -> Objective:
        """Return the objective that is maximised: the requested one, or the default for this kind of labels.

        Raises:
            OptionError: For an objective that does not fit the labels.
        """
        if self.options.cost_of_missed_fail != 1 and labels.kind != "binary":
            raise OptionError(
                f"--cost-of-missed-fail is for pass and fail, and the labels are of kind {labels.kind}"
            )
        scale = Scale(*labels.scale)
        levels = [scale.to_percent(level) for level in labels.levels]
        return chosen_objective(
            labels.kind, self.options.objective, self.options.level, levels
        )

    def splits(
        self,
        labels: Labels,
        *,
        free: bool = False,
        again: bool = False,
        crossed: bool = True,
    ) -> Parts:
        """Return the single split, or the folds: as many as requested, otherwise if there are too few rows for a split.

        Args:
            labels: All labels of the run.
            free: True if folds cost no call, so that several runs of them are affordable.
            again: True if folds choose again among the candidates of the fit to all rows, which costs none either.
            crossed: True if folds may be chosen without a request.

        Raises:
            OptionError: For more folds than the rows allow.
        """
        labels = labels.regrouped(self.options.template_share)
        folds = self.options.cv
        seed = self.options.seed
        share = self.options.heldout
        many = len(labels) > FEW_LABELS
        if folds is not None:
            self._check_folds(folds, labels)
        elif self.heldout is not None:
            if self.heldout.scale != labels.scale:
                raise OptionError(
                    f"the labels are on {Scale(*labels.scale)}, those held out on {Scale(*self.heldout.scale)}; "
                    "read both with the same scale=…"
                )
            assert_disjoint(labels, self.heldout)
            return Parts(((Split(labels, self.heldout),),))
        elif share is not None or (many and (again or not free)) or not crossed:
            return Parts(((holdout_split(labels, share=share or QUARTER, seed=seed),),))
        count = RUNS if free and folds is None and not many else 1
        seeds = [seed + 1_000_003 * run for run in range(count)]
        runs = [tuple(group_folds(labels, k=folds or FOLDS, seed=one)) for one in seeds]
        return Parts(tuple(runs), crossed=True, free=free, again=again)

    def _check_folds(self, folds: int, labels: Labels) -> None:
        groups = len(set(labels.groups))
        if self.heldout is not None:
            raise OptionError(
                f"cv={folds} measures on the labels themselves, heldout on others; give one of them (--cv or --heldout)"
            )
        if folds < 2:
            raise OptionError(f"cv is {folds}; cross-validation takes 2 folds or more")
        if folds > groups:
            if groups > 1:
                advice = f"take {groups} folds or fewer"
            else:
                advice = "add rows of other documents"
            raise OptionError(
                f"cv is {folds}, but groups (documents) are kept whole and there are {groups}; {advice}"
            )

    def folds_are_free(self, judge: Judge, lm: LanguageModel | str | None) -> bool:
        """Return True if the folds need no call beyond those of the fit to all rows.

        That holds if at most weights are fitted and answers and readings are cached. A budget counts every call.
        """
        method = judge.method
        infers = inquiry_of(method) is not None
        if self.search.searches or infers or stops_early(method):
            return False
        if (
            method.cost().calls_per_row
            == passes_of(method, Item("An output.")).count
            == 0
        ):
            return True
        unlimited = self.options.max_calls is None and self.options.max_cost is None
        return unlimited and (not isinstance(lm, LanguageModel) or lm.keeps_answers)

    def folds_choose_again(self, judge: Judge, lm: LanguageModel | str | None) -> bool:
        """Return True if folds can choose among the candidates that the fit to all rows has scored on every row.

        What is tried must not depend on scores, and nothing else be learnt from the labels that stands in a prompt or
        takes part in a score: neither a task nor weights. Folds that are asked for (`cv`) search for themselves.
        """
        method = judge.method
        name = lm.name if isinstance(lm, LanguageModel) else lm
        learns = inquiry_of(method) is not None or bool(_dearer(judge, name))
        # Weights that it has are forgotten first, and fitted again.
        fresh = method.with_()
        if isinstance(fresh, HasForms):
            fresh.settle()
        refined = isinstance(fresh, Refinable) and bool(fresh.refiners())
        fits = fitted_always(method) or (
            refined and self.search.searches and self.options.refine
        )
        others = judge.whole_documents or bool(method.columns())
        wanted = self.options.cv is None and self.search.chooses_again
        return wanted and not (learns or fits or others)

    def plan(
        self,
        judge: Judge,
        labels: Labels,
        lm: LanguageModel | str | None,
        *,
        teacher: bool = False,
    ) -> Plan:
        """Estimate calls, tokens and cost with a model or its name, and optionally a teacher. No model is called."""
        return self.chosen_plan(
            labels,
            lambda parts: self.plan_of(parts, judge, labels, lm, teacher=teacher),
            free=self.folds_are_free(judge, lm),
            again=self.folds_choose_again(judge, lm),
        )

    def chosen_plan(
        self,
        labels: Labels,
        plan_of: Callable[[Parts], Plan],
        *,
        free: bool,
        again: bool,
    ) -> Plan:
        """Return the plan by folds of these labels, or by a held-out part where a budget forbids folds.

        Args:
            labels: The rows that are split.
            plan_of: Estimates a split of them.
            free: As in `splits`.
            again: Whether folds can choose again, where they are not free.
        """
        again = again and not free
        parts = self.splits(labels, free=free or again, again=again)
        plan = plan_of(parts)
        if parts.again:
            searched = plan_of(self.splits(labels))
            note = (
                f"agreement is estimated by folds that choose again among the same candidates, at no further call; "
                f"--cv {FOLDS} searches again in each fold, with up to {searched.calls:,} calls"
            )
            return replace(plan, notes=(*plan.notes, note))
        if (
            self.options.cv is not None
            or not parts.crossed
            or parts.free
            or len(labels) < FEWEST_HELD_OUT
        ):
            return plan
        try:
            single = plan_of(self.splits(labels, crossed=False))
        except LabelsError:  # no such split
            return plan
        most_calls = self.options.max_calls
        most_cost = self.options.max_cost
        beyond = plan.calls > (most_calls or plan.calls) or (plan.cost or 0.0) > (
            most_cost or math.inf
        )
        if beyond:
            note = (
                f"agreement is estimated on {single.heldout} held-out rows: folds would take up to "
                f"{plan.calls:,} calls"
            )
            return replace(single, notes=(*single.notes, note))
        note = (
            f"agreement is estimated by folds of all rows; --heldout {QUARTER:g} estimates it on {single.heldout} "
            f"rows, with up to {single.calls:,} calls"
        )
        return replace(plan, notes=(*plan.notes, note))

    def plan_of(
        self,
        parts: Parts,
        judge: Judge,
        labels: Labels,
        lm: LanguageModel | str | None,
        *,
        teacher: bool,
    ) -> Plan:
        """Estimate a run with this split of the labels."""
        every = parts.fits(len(labels))
        search = self.search
        name = lm.name if isinstance(lm, LanguageModel) else lm
        # Of folds that ask nothing new only the fit to all rows is paid for.
        sizes = every
        heldout = parts.heldout
        free_steps = 0
        if parts.free:
            sizes = [len(labels)]
            heldout = 0
            free_steps = 0 if parts.again else len(parts.splits)
        shown = taught(search, judge, teacher=teacher or self.teacher is not None)
        stages = Stages(
            judge, search, self.inference, sizes, heldout, shown, self.options.refine
        )
        dearest, untried = self._dearest(judge, name, stages)
        chosen = dearest or judge
        measured = stages.measuring(chosen)
        spent = (
            stages.inferring()
            + stages.trials(dearest)
            + stages.searching(chosen)
            + measured
        )
        # The search's own zero-shot pass repeats one of the trials: answered from the disk, but counted in a budget.
        spent += stages.writing(labels) + Spending(steps=free_steps)
        learnt = max(sizes)
        row = row_tokens(labels.rows)
        batch = self.inference.batch_size
        room = room_for(lm, labels.rows)
        prompt, completion = spent.tokens(row, search.shown(learnt, room), batch)
        sizes_tried = list(search.remarks(learnt, room))
        if sizes_tried:
            fewer, _ = spent.tokens(row, FEW_SHOWN, batch)
            sizes_tried.append(
                f"that takes about {prompt:,} tokens of prompts; {FEW_SHOWN} demonstrations in each take {fewer:,}"
            )
        return Plan(
            rows=len(labels),
            train=sum(every),
            heldout=parts.heldout,
            folds=parts.folds,
            runs=len(parts.runs),
            calls=spent.calls + PROBES if spent.calls else 0,
            heldout_calls=measured.calls,
            row_calls=max(
                chosen.method.cost().calls_per_row, search.calls_per_row(chosen)
            ),
            steps=spent.steps,
            passes=spent.passes,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost=_price(judge, name, Reply("", None, prompt, completion)),
            objective=self.objective(labels),
            parts=parts,
            notes=(
                *filter(None, [untried]),
                *sizes_tried,
                *self._cautions(judge.method, labels, name),
            ),
            dearer=untried,
        )

    def _dearest(
        self, judge: Judge, model: str | None, stages: Stages
    ) -> tuple[Judge | None, str | None]:
        """Return the judge with the options that take more calls a row, None for none, and why it is not tried."""
        more = _dearer(judge, model)
        if not more:
            return None, None
        dearest = judge.with_(**more)
        least = stages.least(dearest)
        if least > (self.options.max_calls or least):
            words = _words(more)
            return (
                None,
                f"{words} is not tried: that takes a budget of {least:,} calls",
            )
        return dearest, None

    def _cautions(
        self, method: Method, labels: Labels, model: str | None
    ) -> Iterator[str]:
        """Yield what a plan does not count in calls."""
        if self.search.evaluations() > 1 and (why := method.no_bootstrap()) is not None:
            yield f"no bootstrapped demonstrations: {why}"
        rows = [*labels.rows, *(self.heldout.rows if self.heldout else ())]
        read = sum((passes_of(method, Item.of(row)) for row in rows), Passes())
        if read.count:
            yield (
                f"texts that are read beside the calls: {len(rows):,} rows in {read.count:,} passes of about "
                f"{read.tokens:,} tokens together; what was read is kept on disk"
            )
        elif model is not None and (reading := offer(model)) is not None:
            yield reading

    # -- its stages

    def fit(
        self,
        judge: Judge,
        train: Labels,
        lm: LanguageModel,
        plan: Plan | None = None,
        shown: Labels | None = None,
    ) -> Fitted:
        """Run task inference, choice of form and search on these rows alone.

        Args:
            judge: The judge to fit.
            train: The rows to learn from.
            lm: The judge's model.
            plan: The run's plan; by default that of these rows.
            shown: The rows, with the labels of all aspects, that the task is inferred from by several judges.
        """
        plan = plan or self.plan(judge, train, lm)
        by = plan.objective
        examples = examples_of(train, judge)
        scale = Scale(*train.scale)
        student = self._student(judge, train, lm)
        inference: Inference | None = None
        learner = student.method
        if isinstance(learner, InfersTask) and (inquiry := learner.inquiry()):
            inference = self._inferred(inquiry, shown or train, lm)
            learner.learn(inference, lm)
        more = {} if plan.dearer else _dearer(student, lm.name)
        student, forms, dearer = self._settle(
            student, examples, by, more, inference is not None
        )
        # What is settled for the model is saved, too, and not settled again for another one.
        engine.run(student.method.prepare(student.lm))
        search = self._search(by)
        program = search.compile(student, teacher=self.teacher, trainset=examples)
        record = search.record
        assert record is not None
        self.silent |= record.silent
        leave_out(student.method, record.silent)
        refined = list[Refinement]()
        if fitted_always(program.method) or (search.searches and self.options.refine):
            scored = record.scored
            seed = self.options.seed
            training = Training(
                examples,
                scored.verdicts,
                scored.percents,
                search.objective,
                seed,
                self.progress,
                model=lm,
            )
            refined = refine(program, training)
        calibration = Calibration.fit(record.zero_shot.percents, train.scores, scale)
        zero_shot = student.with_(outcome=Outcome(scale, calibration))
        if plan.parts.crossed:
            left_out = None
        else:
            left_out = self._left_out(record, forms, refined, examples, by)
        fitted = Fitted(
            program,
            zero_shot,
            record,
            inference,
            forms,
            tuple(refined),
            plan.dearer or dearer,
            left_out,
            silent=dict(self.silent),
        )
        self.decide(fitted, train)
        self.outcome = fitted, train
        if (take := self.options.take) is None:
            return fitted
        by_name = {
            finalist.name: finalist for finalist in self.finalists(fitted, train)
        }
        if take not in by_name:
            fold = plan.parts.crossed and len(train) < plan.rows
            where = " in one of the folds; --heldout 0.25 searches once" if fold else ""
            raise OptionError(
                f"take: there is no candidate {take!r}{nearest(take, by_name)}, but {', '.join(by_name)}{where}"
            )
        return by_name[take]

    def _inferred(
        self, inquiry: Inquiry, train: Labels, lm: LanguageModel
    ) -> Inference:
        """Infer task and criteria from these rows; for several aspects once, since the others take what was found."""
        key = train.fingerprint()
        if (earlier := self.inferred.get(key)) is not None:
            return earlier
        examples = examples_of(train)
        order = np.random.default_rng([self.options.seed, 77]).permutation(
            len(examples)
        )
        pairs = [(train.rows[i], examples[i]) for i in order]
        several = train.aspect == TOGETHER
        shown = [
            Labelled(
                e.source or "",
                e.output,
                round(e.score, 1),
                r.id,
                r.why(OVERALL_SCORE if several else train.aspect),
                dict(r.scores) if several else {},
            )
            for r, e in pairs
        ]
        self.progress.stage("task inference", self.inference.calls(len(shown)))
        call = self.inference.acall(
            shown,
            aspect=inquiry.aspect,
            described=inquiry.described,
            lm=lm,
            progress=self.progress.step,
        )
        inferred = value_of(engine.run(call), Inference)
        if several:
            self.inferred[key] = inferred
        return inferred

    def _student(self, judge: Judge, labels: Labels, lm: LanguageModel) -> Judge:
        """A copy that has met these rows, and has learnt nothing."""
        scale = Scale(*labels.scale)
        student = judge.with_(outcome=Outcome(scale, judge.outcome.calibration))
        student.provenance = {}
        student.set_lm(lm)
        items = list(map(item_of, examples_of(labels, judge)))
        student.method.meet(
            "" if labels.aspect in OVERALL else labels.aspect, items, lm
        )
        ask_all(student.method)
        leave_out(student.method, self.silent)
        return student

    def finalists(self, fitted: Fitted, train: Labels) -> Iterator[Fitted]:
        """Yield the fit and its alternatives: zero-shot and the other candidates that were judged on all rows.

        The best come first, each as the search judged it. None of them was disqualified.
        """
        yield fitted
        zero_shot, *others = (
            trial for trial in fitted.record.tried if trial.candidate.dropped is None
        )
        others.sort(key=lambda trial: -trial.candidate.agreement.value)
        for trial in (replace(zero_shot, program=fitted.zero_shot), *others):
            same = trial.program is fitted.judge or trial.candidate.name == fitted.name
            if not same and trial.candidate.disqualified is None:
                judge = trial.program.with_()
                unknown = np.full(len(train), math.nan)
                why = "this candidate was asked for by its name (take)"
                record = replace(
                    fitted.record,
                    chosen=replace(trial, program=judge),
                    reason=why,
                    corrected=None,
                )
                other = replace(
                    fitted, judge=judge, record=record, refined=(), left_out=unknown
                )
                self.decide(other, train)
                yield other

    def decide(self, fitted: Fitted, train: Labels) -> None:
        """Fit how the judge's raw scores become scores of the labels' scale, categories and preferences."""
        judge = fitted.judge
        percents = fitted.percents
        scale = Scale(*train.scale)
        decision = fit_decision(percents, train)
        if self.options.cost_of_missed_fail != 1 and decision is not None:
            decision = cheapest(
                decision, percents, train, self.options.cost_of_missed_fail
            )
        calibration = Calibration.fit(percents, train.scores, scale)
        preference = fit_preference(percents, train)
        judge.outcome = Outcome(scale, calibration, decision, preference)

    def _left_out(
        self,
        record: SearchRecord,
        forms: Sequence[FormTrial],
        refined: Sequence[Refinement],
        examples: Sequence[dspy.Example],
        by: Objective,
    ) -> Vector | None:
        """`Fitted.left_out`: form and candidate are chosen again without each fold of the training rows."""
        if len(forms) < 2 and len(record.tried) < 2:
            return None
        if any(r.changed for r in refined) or record.left_out is None:
            return np.full(len(examples), math.nan)
        scores = record.left_out.copy()
        settled = max(forms, key=FormTrial.preference, default=None)
        for out in folds(groups(examples), seed=self.options.seed) if settled else ():
            rest = np.setdiff1d(np.arange(len(examples)), out)
            fitted_to = [examples[i] for i in rest.tolist()]
            best = self._best_form(forms, fitted_to, rest, by)
            if best is not None and best is not settled:
                scores[out] = best.percents[out]
        return scores

    def _without_inferred(self, student: Judge) -> Judge | None:
        """A copy whose prompts leave out what was inferred; None if that is not to be tried."""
        method = student.method
        if not self.options.refine or not isinstance(method, InfersTask):
            return None
        plain = method.without_inferred()
        return None if plain is None else student.with_(method=plain)

    def _try_more(
        self,
        student: Judge,
        examples: Sequence[dspy.Example],
        best: FormTrial,
        by: Objective,
        more: Mapping[str, Any],
    ) -> tuple[FormTrial, str]:
        """Try options that take more calls a row on top of the best form; return the trial, and a remark on it."""
        form = Form({**best.form.values, **more})
        trial = self._try_form(student, examples, form, by)
        gap = difference(
            trial.percents,
            best.percents,
            examples,
            objective=by,
            seed=self.options.seed,
            rounds=1000,
        )
        better = clearly(gap, self.search.sure)
        if not (trial.disqualified or best.disqualified or better):
            trial = replace(trial, disqualified="it is not clearly better")
        fate = "kept"
        if trial.disqualified is not None:
            fate = f"left out, since {trial.disqualified}"
        remark = (
            f"{_words(more)} was tried zero-shot, at more calls a row: {by.label} {trial.agreement.value:.2f} "
            f"against {best.agreement.value:.2f} on the training rows; {fate}"
        )
        return trial, remark

    def _settle(
        self,
        student: Judge,
        examples: Sequence[dspy.Example],
        by: Objective,
        more: Mapping[str, Any],
        inferred: bool,
    ) -> tuple[Judge, tuple[FormTrial, ...], str | None]:
        """Return the student in the form that agrees best zero-shot, with the forms tried and a remark on `more`.

        `more`, which takes more calls a row, is kept only if it is clearly better, by the search's rule for candidates.
        """
        method = student.method
        if not isinstance(method, HasForms):
            return student, (), None
        able = engine.run(student.lm.capabilities())
        forms = method.forms(logprobs=able.logprobs, model=student.lm.name)
        bare = self._without_inferred(student) if inferred else None
        if len(forms) < 2 and bare is None and not more:
            for form in forms:
                method.settle(**form.values)
            return student, (), None
        trials = [self._try_form(student, examples, form, by) for form in forms]
        if bare is not None:
            # What a weak model infers can mislead it: the same form is tried without.
            first = max(trials, key=FormTrial.preference).form
            trials.append(self._try_form(bare, examples, first, by, knowledge=False))
        best = max(trials, key=FormTrial.preference)
        outcome = None
        if more:
            trial, outcome = self._try_more(student, examples, best, by, more)
            trials.append(trial)
            if trial.disqualified is None:
                best = trial
        chosen = student if bare is None or best.knowledge else bare
        _settled(chosen, best.form)
        return chosen, tuple(trials), outcome

    def _try_form(
        self,
        student: Judge,
        examples: Sequence[dspy.Example],
        form: Form,
        by: Objective,
        *,
        knowledge: bool = True,
    ) -> FormTrial:
        trial = student.with_()
        _settled(trial, form)
        set_brief(trial.method, True)
        words = _words(form.values) + ("" if knowledge else ", without inferred task")
        self.progress.stage(f"zero-shot, {words}", len(examples))
        scored = score_rows(trial, examples, self.progress)
        reached = agreement(
            scored.percents, examples, objective=by, seed=self.options.seed, rounds=500
        )
        return FormTrial(
            form,
            knowledge,
            reached,
            scored.percents,
            unfit(scored, reached, self.search.max_failed),
        )

    def _search(self, by: Objective) -> DemonstrationSearch:
        """The optimizer of this run: its own objective, level and seed do not hold."""
        return self.search.for_run(
            objective=by, seed=self.options.seed, progress=self.progress
        )

    def _measured(self, fitted: Fitted, split: Split) -> Measured:
        heldout = examples_of(split.heldout, fitted.judge)
        self.progress.stage("held-out rows, compiled", len(heldout))
        compiled = score_rows(fitted.judge, heldout, self.progress)
        self.progress.stage("held-out rows, zero-shot", len(heldout))
        return Measured(
            fitted,
            split,
            compiled,
            score_rows(fitted.zero_shot, heldout, self.progress),
        )

    @contextmanager
    def _paid_from(self, lm: LanguageModel) -> Iterator[None]:
        """The teacher's calls are paid for from the model's budget, which ends with the run.

        What either could not answer is not asked again until then.
        """
        own = None if self.teacher is None else self.teacher.meter
        lm.failures = Failures()
        try:
            if self.teacher is not None:
                self.teacher.meter = lm.meter
                self.teacher.failures = lm.failures
            yield
        finally:
            lm.meter.max_calls = lm.meter.max_cost = lm.failures = None
            if self.teacher is not None and own is not None:
                self.teacher.meter = own
                self.teacher.failures = None


def _dearer(judge: Judge, model: str | None) -> Mapping[str, Any]:
    """Return options to try at more calls a row; none for a model inside this process, which is slow."""
    method = judge.method
    if isinstance(method, HasForms) and not is_local(model or ""):
        return method.dearer()
    return {}


def _places(labels: Labels) -> Callable[[Labels], list[int]]:
    """Return a function from some of these rows to their places."""
    of_row: dict[tuple[str, str, str], list[int]] = {}
    for place, row in enumerate(labels.rows):
        of_row.setdefault((row.id, row.source, row.output), []).append(place)

    def places(part: Labels) -> list[int]:
        taken = dict[tuple[str, str, str], int]()
        found = list[int]()
        for row in part.rows:
            key = row.id, row.source, row.output
            found.append(of_row[key][taken.get(key, 0)])
            taken[key] = taken.get(key, 0) + 1
        return found

    return places


def _bare(percents: Vector) -> list[Verdict]:
    """Return verdicts of which only the raw scores are known."""
    return [
        Verdict.failed("there is no score")
        if math.isnan(percent)
        else Verdict(score=percent, percent=percent)
        for percent in percents.tolist()
    ]


def _mapped(scored: Scored, places: NDArray[np.intp], outcome: Outcome) -> Scored:
    """Return the verdicts of some rows with what an outcome makes of their raw scores."""
    some = [scored.verdicts[place] for place in places.tolist()]
    return Scored.of(
        [verdict if verdict.failure else outcome(verdict) for verdict in some]
    )


def _price(judge: Judge, model: str | None, reply: Reply) -> float | None:
    """Return what the answers of a run cost; None where it is not known, or no model is named."""
    payers = () if model is None else answering(judge.method, model)
    return shared_price(payers, reply)


def _settled(judge: Judge, form: Form) -> None:
    """Fix the form of a judge's answers."""
    if isinstance(judge.method, HasForms):
        judge.method.settle(**form.values)


def _words(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


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
    names = labels.categories
    if labels.levels:
        decision = Decision(names, (50.0,) * (len(names) - 1), labels.kind == "binary")
    else:
        decision = None
    scale = Scale(*labels.scale)
    seen = {
        "labels": origin_of(labels),
        "contract": contract_of(labels, lm),
        **marks(labels.rows),
    }
    to_come = judge.with_(
        outcome=replace(judge.outcome, scale=scale, calibration=None, decision=decision)
    )
    to_come.provenance = seen
    artifact.refuse_unsavable(to_come)


def level_for(labels: Labels) -> Level:
    """Return the default level of agreement: sample for preferences, otherwise pooled.

    Preferences order outputs within documents only.
    """
    return "sample" if labels.kind == "preference" else "pooled"


def default_optimizer(method: type[Method] | Method) -> str:
    """Return the name of the optimizer that a method is compiled by if none is named."""
    return NoSearch.name if fitted_always(method) else CorrelationRandomSearch.name
