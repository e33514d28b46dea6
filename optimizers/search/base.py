"""The common part of all searches for demonstrations: building, judging, choosing and recording candidates.

A search tries programs that differ in their demonstrations (and perhaps in their prompts' texts) and keeps one, by an
objective (Q, or what suits the kind of labels) over the whole validation vector: each row judged without its own group
among the demonstrations, failures imputed and counted, undefined correlations never winning, and the model alone kept
unless it is clearly beaten.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, assert_never

import dspy
import numpy as np
from dspy.teleprompt import Teleprompter
from numpy.typing import NDArray

from judgesmith.agreement.correlation import Level
from judgesmith.agreement.metric import AgreementValue
from judgesmith.agreement.objectives import Objective, Q, objectives
from judgesmith.errors import BudgetError, OptionError
from judgesmith.optimizers.examples import (
    Scored,
    Vector,
    agreement,
    as_rated,
    clearly,
    difference,
    groups,
    humans,
    item_of,
    refuse_overlap,
    room_for,
    rows_of,
    score_rows,
)
from judgesmith.optimizers.fitting.folds import folds
from judgesmith.optimizers.search.racing import CHANCE, Rows, blocks, chance
from judgesmith.optimizers.search.selection import Contest
from judgesmith.parts import Options, option, read_options
from judgesmith.programs.capabilities import (
    leave_out,
    set_brief,
    silent_members,
    stops_early,
)
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import row_context
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.outcome import Calibration
from judgesmith.programs.pipeline import teach
from judgesmith.programs.progress import Progress, Silent
from judgesmith.programs.prompting.saved import MOST_DEMOS
from judgesmith.signatures.values import Scale, Verdict

Anchor = Literal["auto", "gold", "predicted"]
#: What one demonstration shows, and what those of a candidate do.
RowKind = Literal["labels", "predicted", "gold"]
DemoKind = Literal["none", "mixed"] | RowKind
#: What candidates of the random search try, in words.
_IN_WORDS = {
    "zero-shot": "model alone",
    "labels only": "rated examples",
    "bootstrapped": "answered examples",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program that was tried: its demonstrations and how it did by the search's objective."""

    name: str
    kind: DemoKind
    demos: int
    agreement: AgreementValue
    disqualified: str | None = None
    """Why it could not be chosen."""
    rows: int | None = None
    """How many rows it was judged on."""
    dropped: str | None = None
    """Why those are not all of them; its value is then that of these rows, a hint at most, and it is never chosen."""
    form: Mapping[str, Any] = field(default_factory=dict)
    """What its prompts change of the student's ("use_task", "use_criteria", "criteria", "instructions", …)."""

    @property
    def parts(self) -> tuple[int, int]:
        """Return the distance from the model alone: demonstrations, then changes of form."""
        return self.demos, len(self.form)

    def to_dict(self) -> dict[str, Any]:
        """Return the candidate as JSON values."""
        return {
            "candidate": self.name,
            "kind": self.kind,
            "demos": self.demos,
            **({"form": dict(self.form)} if self.form else {}),
            **self.agreement.to_dict(),
            "disqualified": self.disqualified,
            "rows": self.rows,
            "dropped": self.dropped,
        }


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate that was judged. judged: the numbers of the rows that `scored` is of, None for all."""

    candidate: Candidate
    program: Judge
    scored: Scored
    judged: Rows | None = None


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """Everything that a search tried, the model alone first, and what it chose."""

    tried: tuple[Trial, ...] = field(repr=False)
    chosen: Trial = field(repr=False)
    reason: str | None = None
    """Why it chose this one, where that is not simply the best."""
    stopped: str | None = None
    """Why it ended early, if it did."""
    left_out: Vector | None = None
    """Each row's score by the candidate that the rows of the other folds (whole groups) choose: what was chosen on a
    row agrees with it too well for its errors to tell those to come. None where nothing can be chosen again."""
    corrected: float | None = None
    """The chosen one's value corrected for having been chosen: that of these scores, each candidate's brought to the
    chosen one's mean and spread. None where it is undefined."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Members of the judge that no candidate asks, since they scored no row alone, and why."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Return all candidates, in the order they were tried."""
        return tuple(trial.candidate for trial in self.tried)

    @property
    def selected(self) -> Candidate:
        """Return the chosen candidate."""
        return self.chosen.candidate

    @property
    def scored(self) -> Scored:
        """Return the chosen program's scores of the validation rows, each judged without its group in the prompt."""
        return self.chosen.scored

    @property
    def zero_shot(self) -> Scored:
        """Return the model alone's scores of the validation rows."""
        return self.tried[0].scored


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate before it is judged. picked: numbers of the rows that are its demonstrations, in their order."""

    name: str
    kind: DemoKind
    picked: Sequence[int]
    program: Judge
    form: Mapping[str, Any] = field(default_factory=dict)
    answers: Sequence[Verdict] = ()
    """The teacher's answers on the pool, where demonstrations show some."""


@dataclass(slots=True)
class SearchContext:
    """The judge, rows and budget that a search works on."""

    base: Judge
    """The student without demonstrations."""
    rows: list[dspy.Example]
    """The rows that candidates are measured on."""
    pool: list[dspy.Example]
    """The rows that demonstrations are taken from."""
    answers: Callable[[], tuple[Verdict, ...]]
    """The teacher's (by default the student's own) verdicts on the pool, for bootstrapped demonstrations."""
    teacher: LanguageModel | None = None
    """The model that writes what a search has written, if it is not the judge's own."""
    tried: list[Trial] = field(default_factory=list)

    @property
    def room(self) -> int | None:
        """Return the demonstrations that a prompt of the judge's model holds; None where that is not known."""
        return room_for(self.base.lm, map(item_of, self.pool))

    def spare(self, proposal: Proposal) -> list[dict[str, Any]]:
        """Return the rows of the pool in the forms of a candidate's demonstrations, to stand in for left-out ones."""
        if not proposal.picked:
            return []
        judge = proposal.program
        forms = set[tuple[bool, bool]]()
        for predictor in judge.method.taught():
            for demo in predictor.demos:
                forms.add((bool(demo.get("augmented")), bool(demo.get("gold"))))
        rows: list[dict[str, Any]] = []
        for augmented, gold in sorted(forms):
            answered = augmented and bool(proposal.answers)
            for place, row in enumerate(self.pool):
                verdict = proposal.answers[place] if answered else None
                if verdict is None or verdict.failure is None:
                    predicted = verdict is not None and not gold
                    rows.append(demonstration(judge, row, verdict, predicted=predicted))
        return rows


class SearchOptions(Options):
    """Options of every optimizer."""

    max_failed: float = option(
        0.1,
        "Share of failed rows above which a candidate (or a form of answers) cannot be chosen.",
        ge=0,
        lt=1,
    )


class SureOptions(SearchOptions):
    """Option of searches that replace the model alone only if clearly better."""

    sure: float = option(
        0.85,
        "Share of paired resamples in which a candidate must beat one with fewer demonstrations. Of K candidates it is "
        "the Kth root of this. 0: keep the best one.",
        ge=0,
        lt=1,
    )


class CandidateOptions(Options):
    """Option of searches whose size is a number of candidates."""

    candidates: int = option(
        8,
        "Size of the search; with the same number, the optimizers score the rows about equally often.",
        ge=0,
    )


class DemoOptions(Options):
    """Option of searches that show demonstrations."""

    max_demos: int = option(
        16,
        "Demonstrations in a prompt at most (Active-Critic: 3 for long texts, 8 for short).",
        ge=1,
        le=MOST_DEMOS,
    )


class BootstrapOptions(DemoOptions):
    """Options of searches that bootstrap demonstrations from answers."""

    anchor: Anchor = option(
        "auto",
        "Score that bootstrapped demonstrations show: the human's (gold), the model's (predicted), or each in turn.",
    )
    accept: float = option(
        0.5,
        "Share of rows, closest to the human score, whose bootstrapped answers may become demonstrations.",
        gt=0,
        le=1,
    )


class RacingOptions(Options):
    """Option of searches that can drop candidates early."""

    racing: bool = option(
        False,
        "Judge candidates on growing blocks of rows and drop those that fall behind: about three fifths of the calls.",
    )


class DemonstrationSearch(Teleprompter, ABC):  # type: ignore[misc]
    """Base of all searches: `compile(student, trainset=…)` gives a program, `record` says how it came about.

    A subclass declares itself (`name`, `about`, `paper`, `Options`), is registered with `optimizers.register`, and says
    what is tried (`explore`) and how much that is at most (`evaluations`). The constructor takes the names in `Options`
    as keywords; they become attributes. searches: whether anything is chosen at all. uses_teacher: whether a model
    writes anything in it (explanations, proposals), so that a teacher makes a difference. adaptive: whether what is
    tried depends on how earlier candidates did; where it does not, folds can choose again among the same candidates.

    level: of agreement, that Q is measured at. objective: what is maximised, an `Objective` or its name; Q by default.
    seed: decides all that is drawn. In `judgesmith.compile`, those of the whole run hold.
    """

    name: ClassVar[str] = ""
    about: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    Options: ClassVar[type[SearchOptions]] = SearchOptions
    searches: ClassVar[bool] = True
    uses_teacher: ClassVar[bool] = True
    adaptive: ClassVar[bool] = True
    # What holds for a search without such an option.
    sure: float = 0.0
    max_demos: int = 0
    num_threads: int | None = None
    racing: bool = False

    def __init__(
        self,
        *,
        level: Level = "pooled",
        objective: Objective | str | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        **options: Any,
    ) -> None:
        self.options: Any = read_options(
            self.Options, options, f"optimizer {self.name or type(self).__name__}"
        )
        self.__dict__.update(self.options)
        by = objectives.get(objective) if isinstance(objective, str) else Q
        self.objective = objective if isinstance(objective, Objective) else by(level)
        self.seed = seed
        self.progress: Progress = progress or Silent()
        self.record: SearchRecord | None = None

    if TYPE_CHECKING:  # its options

        def __getattr__(self, name: str) -> Any: ...

    def settings(self) -> dict[str, Any]:
        """Return all settings that decide the outcome, as JSON values; `name` is the search's."""
        return {
            "name": self.name,
            "level": self.level,
            "objective": self.objective.name,
            **self.options.settings(),
        }

    @property
    def level(self) -> Level:
        """Return the level of agreement that the objective is measured at: pooled, sample or system."""
        return self.objective.level

    def for_run(self, *, objective: Objective, seed: int, progress: Progress) -> Self:
        """Return a copy with the objective, seed and progress of a whole run; this one stays unchanged."""
        search = copy.copy(self)
        search.objective = objective
        search.seed = seed
        search.progress = progress
        search.record = None
        return search

    # -- what a search says of itself

    @abstractmethod
    def evaluations(self) -> int:
        """Return how many times the validation rows are scored at most."""

    @abstractmethod
    def explore(self, context: SearchContext) -> None:
        """Try candidates (`judge`). A BudgetError ends it early."""

    def calls_per_row(self, judge: Judge) -> int:
        """Return the calls for one output at most, whichever candidate is chosen."""
        return judge.method.cost().calls_per_row

    def proposals(self, judge: Judge, rows: int) -> int:
        """Return the calls beside the scoring of rows at most, for a model that writes what is tried."""
        return 0

    def shown(self, rows: int, room: int | None = None) -> int:
        """Return the demonstrations in a prompt of the search, on average.

        Args:
            rows: Rows to learn from.
            room: Demonstrations that a prompt of the model holds, if that is known.
        """
        most = bounded(self.max_demos, rows, room)
        return most // 2 if self.evaluations() > 1 else 0

    def remarks(self, rows: int, room: int | None = None) -> list[str]:
        """Return sentences on what a search of some rows tries, for a plan; room as in `shown`."""
        return []

    @property
    def chooses_again(self) -> bool:
        """Return True if rows that a choice is made without can choose again among the same candidates."""
        return not (self.adaptive or self.racing)

    # -- the search

    def compile(
        self,
        student: Judge,
        *,
        teacher: Judge | LanguageModel | None = None,
        trainset: Sequence[dspy.Example],
        valset: Sequence[dspy.Example] | None = None,
    ) -> Judge:
        """Return the best of all candidates, as a copy of `student`; `self.record` has the search's course.

        Zero-shot is always measured first.

        Args:
            student: The judge to improve.
            teacher: A model or judge whose answers become demonstrations; by default the student without any.
            trainset: Rows that demonstrations are taken from: examples with their texts and people's score on the
                judge's scale, or the result of `examples_of`.
            valset: Rows that candidates are measured on; by default the training rows, each judged without its own
                group.

        Raises:
            LeakError: If valset shares a group or a text with trainset.
            BudgetError: If not even the model alone fits the budget.
            OptionError: For rows without a score.
        """
        if not isinstance(student, Judge):
            raise OptionError(
                f"{type(self).__name__} compiles judges, and this is a {type(student).__name__}; DSPy's own optimizers "
                "(dspy.LabeledFewShot, …) compile evaluators and programs; js.Judge(method, lm=…) makes a judge"
            )
        pool = list(as_rated(trainset, student.scale))
        rows = list(pool)
        if valset is not None:
            rows = list(as_rated(valset, student.scale))
            refuse_overlap(pool, rows, "valset")
        base = without_demos(student)
        zero_shot = self.score(base, rows, "zero-shot")
        silent = silent_members(zero_shot.verdicts)
        if silent:
            leave_out(base.method, silent)
            if zero_shot.failed:
                zero_shot = self._mended(zero_shot, base, rows)
        # The pool's own bootstrapped answers hold no label of another row: they come from a prompt without any. Where
        # the search's passes stop after the score, the teacher's goes on to the end: its answers are shown.
        own = valset is None and teacher is None and not stops_early(base.method)
        answers = cache(
            lambda: zero_shot.verdicts if own else self._answers(base, pool, teacher)
        )
        context = SearchContext(
            base,
            rows,
            pool,
            answers,
            teacher.lm if isinstance(teacher, Judge) else teacher,
        )
        self._consider(context, Proposal("zero-shot", "none", (), base), zero_shot)
        stopped = None
        try:
            self.explore(context)
        except BudgetError:
            dropped = [trial.candidate.dropped or "" for trial in context.tried]
            whole = sum("budget" not in reason for reason in dropped)
            stopped = f"the budget ran out; {whole} of {self.evaluations()} candidates were tried"
        tried = tuple(context.tried)
        chosen, reason = self.choose(tried, rows)
        record = SearchRecord(tried, chosen, reason, stopped, silent=silent)
        self.record = self.crossed(record, rows)
        chosen.program._compiled = True
        chosen.program.candidate_programs = [
            c.to_dict() for c in self.record.candidates
        ]
        return chosen.program

    def judge(self, context: SearchContext, proposal: Proposal) -> None:
        """Judge a candidate on all rows or, racing, until it falls behind the best so far.

        A row that is one of its demonstrations sees another one in its own place (`row_context.seen`).

        Raises:
            BudgetError: When the budget ends, after the rows judged until then are recorded.
        """
        with row_context.standing_in(context.spare(proposal)):
            self._judge(context, proposal)

    def _judge(self, context: SearchContext, proposal: Proposal) -> None:
        # A part of a document would be ranked otherwise than the whole.
        if not self.racing or context.base.whole_documents:
            self._consider(
                context,
                proposal,
                self.score(proposal.program, context.rows, proposal.name),
            )
            return
        count = len(context.rows)
        verdicts = dict[int, Verdict]()
        dropped = None
        finished = _finished(context.tried)
        leader = finished[_contest(finished).best(_values(finished))]
        for block in blocks(context.rows, self.objective, self.seed):
            try:
                scored = self.score(
                    proposal.program,
                    [context.rows[i] for i in block.tolist()],
                    proposal.name,
                )
            except BudgetError:
                if verdicts:
                    dropped = (
                        f"the budget ran out after {len(verdicts)} of {count} rows"
                    )
                    self._consider(context, proposal, *_raced(verdicts), dropped)
                raise
            verdicts |= zip(block.tolist(), scored.verdicts, strict=True)
            if len(verdicts) == count:
                dropped = None
            else:
                dropped = self._hopeless(leader, *_raced(verdicts), context.rows)
            if dropped:
                self._consider(context, proposal, *_raced(verdicts), dropped)
                return
        self._consider(context, proposal, _raced(verdicts)[0])

    def _hopeless(
        self, leader: Trial, scored: Scored, judged: Rows, rows: Sequence[dspy.Example]
    ) -> str | None:
        """Why a candidate, judged on some rows, need not be judged on the others, if that is so."""
        where = f"after {len(judged)} of {len(rows)} rows"
        if scored.failed > self.max_failed * len(rows):
            return f"{where}: {scored.failed} rows failed already"
        some = [rows[i] for i in judged.tolist()]
        best = leader.scored.percents[judged]
        likely = chance(
            scored.percents, best, some, len(rows), self.objective, self.seed
        )
        if likely < CHANCE:
            return (
                f"{where}: a chance of {likely:.0%} of reaching {leader.candidate.name}"
            )
        return None

    def score(self, program: Judge, rows: Sequence[dspy.Example], name: str) -> Scored:
        """Score rows by a candidate, each without its own group in the prompt.

        Raises:
            BudgetError: When the budget ends before the last row.
            ModelError: When the model cannot be reached or used.
        """
        self.progress.stage(candidate_in_words(name), len(rows))
        return score_rows(brief(program), rows, self.progress, self.num_threads)

    def _mended(
        self, scored: Scored, program: Judge, rows: Sequence[dspy.Example]
    ) -> Scored:
        """Return scores with those of the failed rows by what asks fewer members now."""
        verdicts = list(scored.verdicts)
        failed = np.flatnonzero(np.isnan(scored.percents)).tolist()
        again = self.score(program, [rows[place] for place in failed], "zero-shot")
        for place, verdict in zip(failed, again.verdicts, strict=True):
            verdicts[place] = verdict
        return Scored.of(verdicts)

    def _answers(
        self,
        base: Judge,
        pool: Sequence[dspy.Example],
        teacher: Judge | LanguageModel | None,
    ) -> tuple[Verdict, ...]:
        program = teacher if isinstance(teacher, Judge) else base.with_()
        if isinstance(teacher, LanguageModel):
            program.set_lm(teacher)
        self.progress.stage("answers to show as examples", len(pool))
        return score_rows(program, pool, self.progress).verdicts

    def _consider(
        self,
        context: SearchContext,
        proposal: Proposal,
        scored: Scored,
        judged: Rows | None = None,
        dropped: str | None = None,
    ) -> None:
        if judged is None:
            rows = context.rows
        else:
            rows = [context.rows[i] for i in judged.tolist()]
        reached = agreement(
            scored.percents, rows, objective=self.objective, seed=self.seed, rounds=500
        )
        unfit_ = unfit(scored, reached, self.max_failed)
        demos = len(proposal.picked)
        count = len(scored.percents)
        candidate = Candidate(
            proposal.name,
            proposal.kind,
            demos,
            reached,
            unfit_,
            count,
            dropped,
            proposal.form,
        )
        if dropped is None and all(
            better(candidate, t.candidate) for t in _finished(context.tried)
        ):
            self.progress.best(
                f"{self.objective.label} {reached.value:.2f} ({candidate_in_words(proposal.name)})"
            )
        context.tried.append(Trial(candidate, proposal.program, scored, judged))

    # -- choosing

    def choose(
        self, tried: Sequence[Trial], rows: Sequence[dspy.Example]
    ) -> tuple[Trial, str | None]:
        """Choose a trial by the rule of `Contest`; return it, and the reason if it is not simply the best.

        Clearly better is a higher value of the objective in a share of the paired resamples: `sure` for one candidate,
        and its K-th root for K, so that with nothing to be found the best of them stays below with about that chance.
        """
        finished = _finished(tried)
        contest = _contest(finished)
        values = _values(finished)
        bar = self.sure ** (1 / max(1, len(tried) - 1))

        def beats(one: int, other: int) -> bool:
            percents = finished[one].scored.percents, finished[other].scored.percents
            gap = difference(
                *percents, rows, objective=self.objective, seed=self.seed, rounds=1000
            )
            return clearly(gap, bar)

        best, chosen = (
            finished[contest.chosen(values, by)]
            for by in (None, beats if self.sure else None)
        )
        if chosen is best:
            return best, None
        if chosen.candidate.demos < best.candidate.demos:
            needs = "needs fewer demonstrations"
        else:
            needs = "is simpler"
        return chosen, (
            f"{best.candidate.name} had the highest {self.objective.label} ({best.candidate.agreement.value:.2f}) but "
            f"did not clearly beat {chosen.candidate.name} ({chosen.candidate.agreement.value:.2f}), which {needs}"
        )

    def crossed(
        self, record: SearchRecord, rows: Sequence[dspy.Example]
    ) -> SearchRecord:
        """With `left_out` and `corrected`, where they can be told: what some rows choose is measured on others."""
        if len(set(groups(rows))) < 2:
            return record
        raw = np.full(len(rows), math.nan)
        alike = raw.copy()
        for out in folds(groups(rows), seed=self.seed):
            again = self.chosen_again(record, rows, np.setdiff1d(range(len(rows)), out))
            if again is None:
                return record
            raw[out] = again.scored.percents[out]
            alike[out] = _like(record.scored.percents, again.scored.percents)[out]
        reached = self.objective.reached(alike, rows_of(rows))
        return replace(
            record, left_out=raw, corrected=None if reached.reason else reached.value
        )

    def chosen_again(
        self, record: SearchRecord, rows: Sequence[dspy.Example], inside: Rows
    ) -> Trial | None:
        """Return the candidate that some rows choose; None where something else than their scores chooses.

        Args:
            record: The search.
            rows: All rows.
            inside: The numbers of the rows that choose.
        """
        finished = _finished(record.tried)
        rest = [rows[i] for i in inside.tolist()]
        parts = [self._part(trial, inside, rest) for trial in finished]
        chosen, _ = self.choose(parts, rest)
        for trial, part in zip(finished, parts, strict=True):
            if part is chosen:
                return trial
        return None

    def _part(self, trial: Trial, inside: Rows, rest: Sequence[dspy.Example]) -> Trial:
        scored = Scored((), trial.scored.percents[inside])
        reached = agreement(
            scored.percents, rest, objective=self.objective, seed=self.seed, rounds=0
        )
        return replace(
            trial, candidate=replace(trial.candidate, agreement=reached), scored=scored
        )


def candidate_in_words(name: str) -> str:
    """Return a candidate's name as people read it.

    >>> candidate_in_words("random 3")
    'random examples 3'
    """
    number = name.removeprefix("random ")
    return _IN_WORDS.get(name, name if number == name else f"random examples {number}")


def _contest(tried: Sequence[Trial]) -> Contest:
    return Contest(
        [t.candidate.parts for t in tried],
        [t.candidate.disqualified is None for t in tried],
    )


def _values(tried: Sequence[Trial]) -> list[float]:
    return [t.candidate.agreement.value for t in tried]


def _like(wanted: Vector, percents: Vector) -> Vector:
    """Scores with the mean and spread of others; as they are where either has none."""
    if np.isnan(wanted).all() or np.isnan(percents).all():
        return percents
    (middle, spread), (mean, own) = (
        (np.nanmean(x), np.nanstd(x)) for x in (wanted, percents)
    )
    return np.asarray(middle + (percents - mean) * (spread / own if own else 1.0))


def _raced(verdicts: Mapping[int, Verdict]) -> tuple[Scored, Rows]:
    """Verdicts by the numbers of their rows: in the rows' order, and these numbers."""
    judged = sorted(verdicts)
    return Scored.of([verdicts[i] for i in judged]), np.array(judged, dtype=np.intp)


def _finished(tried: Sequence[Trial]) -> list[Trial]:
    """The candidates that were judged on all rows."""
    return [t for t in tried if t.candidate.dropped is None]


def unfit(scored: Scored, reached: AgreementValue, max_failed: float) -> str | None:
    """Return the reason why scores cannot be chosen, however well they agree, or None.

    Too many rows failed, or agreement is undefined (constant scores). That it then counts as chance is a convention,
    and must not beat a real agreement a little below it.
    """
    if scored.failed > max_failed * len(scored.percents):
        return f"{scored.failed} of {len(scored.percents)} rows failed"
    return reached.reason


def better(one: Candidate, other: Candidate) -> bool:
    """Return True if `one` is to be preferred.

    The order is: qualified first, then the objective, then fewer demonstrations and changes, then the earlier.
    """
    both = (one, other)
    contest = Contest([c.parts for c in both], [c.disqualified is None for c in both])
    return contest.better([c.agreement.value for c in both], 0, 1)


# Demonstrations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Demonstrations:
    """The demonstrations that a pool offers: rows with the human score, and a teacher's answers.

    Kinds are rows ("labels"), and answers with the human's ("gold") or the model's own score ("predicted"). options: a
    search with `BootstrapOptions`.
    """

    context: SearchContext
    options: Any
    answers: Sequence[Verdict] | None

    @property
    def kinds(self) -> list[RowKind]:
        """Return the kinds that are tried in turn, that of the bootstrapped candidate first."""
        if not self.answers or self.context.base.method.no_bootstrap() is not None:
            return ["labels"]
        # With the human's score a bare number is a label; with the model's it is an answer that came close to people's.
        kinds: dict[Anchor, list[RowKind]] = {
            "auto": ["gold", "labels", "predicted"]
            if any(map(_explained, self.answers))
            else ["predicted", "labels"],
            "gold": ["gold", "labels"],
            "predicted": ["predicted", "labels"],
        }
        return kinds[self.options.anchor]

    def allowed(self, kind: RowKind) -> NDArray[np.intp]:
        """Return the numbers of the rows that may be demonstrations of a kind.

        Of answers, these are the ones closest to the human score, after a monotone fit of the answers to the scores.
        """
        pool = self.context.pool
        answers = self.answers
        if kind == "labels" or answers is None:
            return np.arange(len(pool))
        percents = np.array([v.percent for v in answers], float)
        explained = np.array(list(map(_explained, answers)))
        # Where answers have explanations, one without has nothing to show.
        usable = np.flatnonzero(
            np.isfinite(percents) & (explained | (not explained.any()))
        )
        if len(usable) == 0:
            return usable
        human = humans(pool)
        percents = np.clip(percents, 0, 100)  # of a program's own scale
        fitted = Calibration.fit(percents, human, Scale(0, 100))
        error = np.array([abs(fitted(percents[i]) - human[i]) for i in usable])
        fewest = bounded(self.options.max_demos, len(pool))
        count = max(fewest, round(self.options.accept * len(usable)))
        return np.sort(usable[np.argsort(error, kind="stable")[:count]])

    def shown_by(
        self, base: Judge, picked: Sequence[int], kinds: RowKind | Sequence[RowKind]
    ) -> Judge:
        """Return a copy of the judge with these rows of the pool as demonstrations.

        Args:
            base: The judge to copy.
            picked: Numbers of the rows in the pool.
            kinds: The kind of all of them, or of each.
        """
        judge = without_demos(base)
        every = [kinds] * len(picked) if isinstance(kinds, str) else kinds
        for index, kind in zip(picked, every, strict=True):
            row = self.context.pool[index]
            verdict = self._answer(index, kind)
            predicted = kind == "predicted"
            shown = demonstration(judge, row, verdict, predicted=predicted)
            teach(judge.method, shown)
        return judge

    def _answer(self, index: int, kind: RowKind) -> Verdict | None:
        """Return the teacher's answer that a demonstration of a kind shows; None for the row alone."""
        match kind:
            case "labels":
                return None
            case "predicted" | "gold":
                return None if self.answers is None else self.answers[index]
            case _:
                assert_never(kind)


def bounded(size: int, rows: int, room: int | None = None) -> int:
    """Return a number of demonstrations that some rows can fill, and a model's prompt can hold.

    Half of the rows are left, so that one of them can stand in for each demonstration that a row may not see.
    """
    return max(1, min(size, rows // 2, size if room is None else room))


def _explained(verdict: Verdict) -> bool:
    """Return True if an answer holds more than a score."""
    return bool(
        verdict.explanation or any(c.explanation for c in verdict.criteria.values())
    )


def brief(judge: Judge) -> Judge:
    """Return a copy whose answers leave out everything that does not change the score."""
    shortened = judge.with_()
    set_brief(shortened.method, True)
    return shortened


def without_demos(judge: Judge) -> Judge:
    """Return a copy without demonstrations."""
    bare = judge.with_()
    for predictor in bare.predictors():
        predictor.demos = []
    return bare


def demonstration(
    judge: Judge, row: dspy.Example, verdict: Verdict | None, *, predicted: bool
) -> dict[str, Any]:
    """Return a row as a demonstration, with the teacher's verdict if one is to be shown.

    Its score is the human's, and its explanation, too, where people gave a reason, unless the verdict's own is wanted.
    """
    percent = verdict.percent if predicted and verdict is not None else row.score
    return {
        **judge.method.demonstration(item_of(row), verdict),
        **({"explanation": row.why} if not predicted and row.get("why") else {}),
        "score": round(float(percent), 6),
        "augmented": verdict is not None,
        "gold": not predicted,
    }
