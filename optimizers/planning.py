"""Plan a compile run before anything is spent: how its labels are split, and the calls that its stages would make."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgesmith.datasets.records import Labels
from judgesmith.datasets.splits import (
    Split,
    assert_disjoint,
    group_folds,
    holdout_split,
)
from judgesmith.errors import LabelsError, OptionError
from judgesmith.optimizers.crossing import FEW_LABELS, FOLDS, RUNS
from judgesmith.optimizers.examples import room_for, row_tokens, scale_of
from judgesmith.optimizers.options import Compiler
from judgesmith.optimizers.report import Parts, Plan
from judgesmith.optimizers.search.base import DemonstrationSearch
from judgesmith.programs.active_critic.task import TaskInference
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.capabilities import (
    HasForms,
    InfersTask,
    answering,
    inquiry_of,
    options_in_words,
    passes_of,
    passes_over,
    read_by,
    stops_early,
    with_source_again,
)
from judgesmith.programs.judge import Judge
from judgesmith.programs.method import Method
from judgesmith.programs.models import pace
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.price import shared_price
from judgesmith.programs.models.provider import is_local
from judgesmith.programs.readings.bindings.opening import offer
from judgesmith.programs.refining import Refinable, fitted_always
from judgesmith.signatures.values import Item, Passes

#: The share that is held out of many labels, and the fewest of which one can be, where a budget forbids folds.
QUARTER = 0.25
FEWEST_HELD_OUT = 30
#: Demonstrations that a plan's sizes are compared with.
FEW_SHOWN = 4
#: Calls at most to find out what a model can do.
PROBES = 5

# How labels are split -------------------------------------------------------------------------------------------------


def split(
    compiler: Compiler,
    labels: Labels,
    *,
    free: bool = False,
    again: bool = False,
    crossed: bool = True,
) -> Parts:
    """Return the single split, or the folds: as many as requested, otherwise if there are too few rows for a split.

    Args:
        compiler: How the labels are compiled.
        labels: All labels of the run.
        free: True if folds cost no call, so that several runs of them are affordable.
        again: True if folds choose again among the candidates of the fit to all rows, which costs none either.
        crossed: True if folds may be chosen without a request.

    Raises:
        OptionError: For more folds than the rows allow.
    """
    o = compiler.options
    labels = labels.regrouped(o.template_share)
    many = len(labels) > FEW_LABELS
    if o.cv is not None:
        _check_folds(compiler, labels, o.cv)
    elif compiler.heldout is not None:
        return Parts(((_against_others(labels, compiler.heldout),),))
    elif o.heldout is not None or (many and (again or not free)) or not crossed:
        share = o.heldout or QUARTER
        return Parts(((holdout_split(labels, share=share, seed=o.seed),),))
    count = RUNS if free and o.cv is None and not many else 1
    runs = []
    for run in range(count):
        seed = o.seed + 1_000_003 * run
        runs.append(tuple(group_folds(labels, k=o.cv or FOLDS, seed=seed)))
    return Parts(tuple(runs), crossed=True, free=free, again=again)


def _against_others(labels: Labels, heldout: Labels) -> Split:
    """Return the split into all labels and others that were given to be held out."""
    if heldout.scale != labels.scale:
        raise OptionError(
            f"the labels are on {scale_of(labels)}, those held out on {scale_of(heldout)}; "
            "read both with the same scale=…"
        )
    assert_disjoint(labels, heldout)
    return Split(labels, heldout)


def _check_folds(compiler: Compiler, labels: Labels, folds: int) -> None:
    groups = len(set(labels.groups))
    if compiler.heldout is not None:
        raise OptionError(
            f"cv={folds} measures on the labels themselves, heldout on others; give one of them (--cv or --heldout)"
        )
    if folds < 2:
        raise OptionError(f"cv is {folds}; cross-validation takes 2 folds or more")
    if folds > groups:
        advice = "add rows of other documents"
        if groups > 1:
            advice = f"take {groups} folds or fewer"
        raise OptionError(
            f"cv is {folds}, but groups (documents) are kept whole and there are {groups}; {advice}"
        )


def folds_are_free(
    compiler: Compiler, judge: Judge, lm: LanguageModel | str | None
) -> bool:
    """Return True if the folds need no call beyond those of the fit to all rows.

    That holds if at most weights are fitted and answers and readings are cached. A budget counts every call.
    """
    method = judge.method
    o = compiler.options
    infers = inquiry_of(method) is not None
    if compiler.search.searches or infers or stops_early(method):
        return False
    calls = method.cost().calls_per_row
    passes = passes_of(method, Item("An output.")).count
    if calls == passes == 0:
        return True
    unlimited = o.max_calls is None and o.max_cost is None
    return unlimited and (not isinstance(lm, LanguageModel) or lm.keeps_answers)


def folds_choose_again(
    compiler: Compiler, judge: Judge, lm: LanguageModel | str | None
) -> bool:
    """Return True if folds can choose among the candidates that the fit to all rows has scored on every row.

    What is tried must not depend on scores, and nothing else be learnt from the labels that stands in a prompt or
    takes part in a score: neither a task nor weights. Folds that are asked for (`cv`) search for themselves.
    """
    method = judge.method
    search = compiler.search
    learns = inquiry_of(method) is not None or bool(dearer(judge, _name_of(lm)))
    # Weights that it has are forgotten first, and fitted again.
    fresh = method.with_()
    if isinstance(fresh, HasForms):
        fresh.settle()
    refined = isinstance(fresh, Refinable) and bool(fresh.refiners())
    fits = fitted_always(method) or (
        refined and search.searches and compiler.options.refine
    )
    others = judge.whole_documents or bool(method.columns())
    wanted = compiler.options.cv is None and search.chooses_again
    return wanted and not (learns or fits or others)


# What a run takes -----------------------------------------------------------------------------------------------------


def plan(
    compiler: Compiler,
    judge: Judge,
    labels: Labels,
    lm: LanguageModel | str | None,
    *,
    teacher: bool = False,
) -> Plan:
    """Estimate calls, tokens and cost with a model or its name, and optionally a teacher. No model is called."""
    return chosen_plan(
        compiler,
        labels,
        lambda parts: plan_of(compiler, parts, judge, labels, lm, teacher=teacher),
        free=folds_are_free(compiler, judge, lm),
        again=folds_choose_again(compiler, judge, lm),
    )


def chosen_plan(
    compiler: Compiler,
    labels: Labels,
    plan_of: Callable[[Parts], Plan],
    *,
    free: bool,
    again: bool,
) -> Plan:
    """Return the plan by folds of these labels, or by a held-out part where a budget forbids folds.

    Args:
        compiler: How the labels are compiled.
        labels: The rows that are split.
        plan_of: Estimates a split of them.
        free: As in `split`.
        again: Whether folds can choose again, where they are not free.
    """
    o = compiler.options
    again = again and not free
    parts = split(compiler, labels, free=free or again, again=again)
    crossed = plan_of(parts)
    if parts.again:
        searched = plan_of(split(compiler, labels))
        return _noting(
            crossed,
            f"agreement is estimated by folds that choose again among the same candidates, at no further call; "
            f"--cv {FOLDS} searches again in each fold, with up to {searched.calls:,} calls",
        )
    asked_for = o.cv is not None or not parts.crossed
    if asked_for or parts.free or len(labels) < FEWEST_HELD_OUT:
        return crossed
    try:
        single = plan_of(split(compiler, labels, crossed=False))
    except LabelsError:  # no such split
        return crossed
    too_many = o.max_calls is not None and crossed.calls > o.max_calls
    too_dear = o.max_cost is not None and (crossed.cost or 0.0) > o.max_cost
    if too_many or too_dear:
        return _noting(
            single,
            f"agreement is estimated on {single.heldout} held-out rows: folds would take up to "
            f"{crossed.calls:,} calls",
        )
    return _noting(
        crossed,
        f"agreement is estimated by folds of all rows; --heldout {QUARTER:g} estimates it on {single.heldout} "
        f"rows, with up to {single.calls:,} calls",
    )


def _noting(plan: Plan, note: str) -> Plan:
    return replace(plan, notes=(*plan.notes, note))


def plan_of(
    compiler: Compiler,
    parts: Parts,
    judge: Judge,
    labels: Labels,
    lm: LanguageModel | str | None,
    *,
    teacher: bool,
) -> Plan:
    """Estimate a run with this split of the labels."""
    search = compiler.search
    inference = compiler.inferring
    name = _name_of(lm)
    every = parts.fits(len(labels))
    sizes = every
    heldout = parts.heldout
    free_steps = 0
    if parts.free:  # only the fit to all rows is paid for
        sizes = [len(labels)]
        heldout = 0
        free_steps = 0 if parts.again else len(parts.splits)
    stages = Stages(
        judge,
        search,
        inference,
        sizes,
        heldout,
        taught(search, judge, teacher=teacher or compiler.teacher is not None),
        compiler.options.refine,
    )
    dearest, untried = _dearest(compiler, judge, name, stages)
    chosen = dearest or judge
    measured = stages.measuring(chosen)
    # The search's own pass of the model alone repeats a trial: answered from the disk, but counted in a budget.
    spent = (
        stages.inferring()
        + stages.trials(dearest)
        + stages.searching(chosen)
        + measured
        + stages.writing(labels)
        + Spending(steps=free_steps)
    )
    learnt = max(sizes)
    room = room_for(lm, labels.rows)
    row = row_tokens(labels.rows)
    batch = inference.batch_size
    prompt, completion = spent.tokens(row, search.shown(learnt, room), batch)
    notes = [] if untried is None else [untried]
    sizes_tried = search.remarks(learnt, room)
    if sizes_tried:
        fewer, _ = spent.tokens(row, FEW_SHOWN, batch)
        notes += [
            *sizes_tried,
            f"that takes about {prompt:,} tokens of prompts; {FEW_SHOWN} demonstrations in each take {fewer:,}",
        ]
    method = judge.method
    rows = [*labels.rows, *(compiler.heldout.rows if compiler.heldout else ())]
    read = passes_over(method, rows)
    asked = 0.0
    if is_local(name or ""):
        shown = row * search.shown(learnt, room)
        fresh = row * _fresh_share(rows) + shown
        written = 0 if method.brief else completion / max(1, spent.calls)
        asked = spent.calls * pace.of_call(row + shown, fresh, written)
    own = chosen.method.cost().calls_per_row
    searched = search.calls_per_row(chosen)
    return Plan(
        rows=len(labels),
        train=sum(every),
        heldout=parts.heldout,
        folds=parts.folds,
        runs=len(parts.runs),
        calls=spent.calls + PROBES if spent.calls else 0,
        heldout_calls=measured.calls,
        row_calls=max(own, searched),
        steps=spent.steps,
        passes=spent.passes,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost=_price(judge, name, Reply("", None, prompt, completion)),
        objective=compiler.objective(labels),
        parts=parts,
        asked=asked,
        read=read.work,
        readers=read_by(method),
        notes=(*notes, *_cautions(compiler, method, len(rows), read, name)),
        dearer=untried,
    )


def _name_of(lm: LanguageModel | str | None) -> str | None:
    return lm.name if isinstance(lm, LanguageModel) else lm


def _dearest(
    compiler: Compiler, judge: Judge, model: str | None, stages: Stages
) -> tuple[Judge | None, str | None]:
    """Return the judge with the options that take more calls a row, None for none, and why it is not tried."""
    more = dearer(judge, model)
    if not more:
        return None, None
    dearest = judge.with_(**more)
    least = stages.least(dearest)
    most = compiler.options.max_calls
    if most is not None and least > most:
        why = f"{options_in_words(more)} is not tried: that takes a budget of {least:,} calls"
        return None, why
    return dearest, None


def dearer(judge: Judge, model: str | None) -> Mapping[str, Any]:
    """Return options to try at more calls a row; none for a model inside this process, which is slow."""
    method = judge.method
    if isinstance(method, HasForms) and not is_local(model or ""):
        return method.dearer()
    return {}


def _price(judge: Judge, model: str | None, reply: Reply) -> float | None:
    """Return what the answers of a run cost; None where it is not known, or no model is named."""
    payers = () if model is None else answering(judge.method, model)
    return shared_price(payers, reply)


def _fresh_share(rows: Sequence[Item]) -> float:
    """Return the share of the rows' tokens that is read where what rows together begin with is read once."""
    again = [item for item, known in with_source_again(rows) if known]
    saved = (
        len(again)
        * row_tokens(replace(item, output="", reference=None) for item in again)
        if again
        else 0
    )
    return max(0.0, 1 - saved / max(1, len(rows) * row_tokens(rows)))


def _cautions(
    compiler: Compiler, method: Method, rows: int, read: Passes, model: str | None
) -> Iterator[str]:
    """Yield what a plan does not count in calls."""
    if compiler.search.evaluations() > 1:
        why = method.no_bootstrap()
        if why is not None:
            yield f"no bootstrapped demonstrations: {why}"
    if read.count:
        yield (
            f"the model also reads each text once, without a call: {rows:,} rows in {read.count:,} passes, about "
            f"{read.tokens:,} tokens, kept on disk"
        )
        return
    reading = None if model is None else offer(model)
    if reading is not None:
        yield reading


# The calls of each stage ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spending:
    """Calls at most by what they do, and steps of the progress bar."""

    scoring: int = 0
    inferring: int = 0
    """Of task inference."""
    proposing: int = 0
    """Of a model that writes what a search tries."""
    writing: int = 0
    """Of references, once a document, whatever the number of passes."""
    steps: int = 0
    passes: int = 0
    """Over the rows of a fit, or of a held-out side."""

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.scoring + other.scoring,
            self.inferring + other.inferring,
            self.proposing + other.proposing,
            self.writing + other.writing,
            self.steps + other.steps,
            self.passes + other.passes,
        )

    @property
    def calls(self) -> int:
        """Return the sum of all calls."""
        return self.scoring + self.inferring + self.proposing + self.writing

    def tokens(self, row: int, shown: int, batch: int) -> tuple[int, int]:
        """Return the approximate tokens of prompts and of answers.

        Args:
            row: Tokens of a row's texts.
            shown: Number of demonstrations in a prompt.
            batch: Number of rows in a step of task inference.
        """
        prompt = self.scoring * (row * (1 + shown) + 250)
        prompt += self.inferring * (row * batch + 300) + self.proposing * (
            row * 8 + 1500
        )
        return prompt, self.scoring * 45 + self.inferring * 150 + self.proposing * 300


@dataclass(frozen=True, slots=True)
class Stages:
    """The spending of the stages of a run."""

    judge: Judge
    search: DemonstrationSearch
    inference: TaskInference
    sizes: Sequence[int]
    """Training rows of each fit."""
    heldout: int
    taught: bool
    """Whether answers are written that demonstrations show, in a pass of their own."""
    refine: bool

    @property
    def rows(self) -> int:
        """Training rows of all fits."""
        return sum(self.sizes)

    @property
    def learns(self) -> bool:
        """Return True if task or criteria are inferred."""
        return inquiry_of(self.judge.method) is not None

    def tried(self, *, dearer: bool) -> int:
        """Return the forms of answers that are tried in a pass each, beside a dearer one; 0 where none is chosen."""
        method = self.judge.method
        forms = 0
        if isinstance(method, HasForms):
            forms = len(method.forms(logprobs=True))
        if (
            isinstance(method, InfersTask)
            and self.refine
            and self.learns
            and method.without_inferred() is not None
        ):
            forms += 1
        return forms if forms + int(dearer) > 1 else 0

    def inferring(self) -> Spending:
        """Return what task inference takes."""
        if self.learns:
            calls = sum(self.inference.calls(size) for size in self.sizes)
        else:
            calls = 0
        return Spending(inferring=calls, steps=calls)

    def trials(self, dearest: Judge | None) -> Spending:
        """Return the spending of the choice of a form.

        Args:
            dearest: The judge in a form of more calls a row, if one is tried.
        """
        tried = self.tried(dearer=dearest is not None)
        calls = tried * self.judge.method.cost().calls_per_row
        passes = tried
        if dearest is not None:
            calls = calls + dearest.method.cost().calls_per_row
            passes = passes + 1
        return Spending(
            scoring=self.rows * calls,
            steps=self.rows * passes,
            passes=len(self.sizes) * passes,
        )

    def searching(self, judge: Judge) -> Spending:
        """Return the spending of the search.

        Args:
            judge: The judge in its dearest form.
        """
        passes = self.search.evaluations() + int(self.taught)
        fits = self.rows if fitted_always(judge.method) else 0
        proposed = sum(self.search.proposals(self.judge, size) for size in self.sizes)
        scoring = self.rows * passes * self.search.calls_per_row(judge)
        return Spending(
            scoring=scoring,
            proposing=proposed,
            steps=self.rows * passes + fits,
            passes=len(self.sizes) * passes,
        )

    def measuring(self, judge: Judge) -> Spending:
        """Return the spending on held-out rows, by the model alone and by the compiled one.

        Args:
            judge: The judge in its dearest form.
        """
        calls = judge.method.cost().calls_per_row + self.search.calls_per_row(judge)
        passes = 2 * len(self.sizes) if self.heldout else 0
        return Spending(
            scoring=self.heldout * calls, steps=2 * self.heldout, passes=passes
        )

    def writing(self, labels: Labels) -> Spending:
        """Return what texts take that are written once a document."""
        documents = len({row.doc_id for row in labels.rows})
        return Spending(writing=self.judge.method.cost().calls_per_document * documents)

    def least(self, dearest: Judge | None) -> int:
        """Return the fewest calls that still give a judge.

        They are trials and the model alone in each fit's equal share of a budget, and held-out rows judged twice.
        """
        judge = dearest or self.judge
        zero_shot = self.rows * self.search.calls_per_row(judge)
        fits = self.inferring().calls + self.trials(dearest).calls + zero_shot
        share = math.ceil(fits / self.rows * max(self.sizes))
        return PROBES + share * len(self.sizes) + 2 * self.measuring(judge).calls


def taught(search: DemonstrationSearch, judge: Judge, *, teacher: bool) -> bool:
    """Return True if a pass of its own writes what demonstrations show.

    The pass is the teacher's, or the judge's whole answers if scoring otherwise stops early.
    """
    return search.evaluations() > 1 and (teacher or stops_early(judge.method))
