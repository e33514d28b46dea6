"""Random search for demonstrations by DSPy's own class, under a metric of the whole set.

`dspy.BootstrapFewShotWithRandomSearch` draws, bootstraps, evaluates and compares; its metric is `Agreement`, whose mean
over rows is the agreement of the set. What stands around it is this package's: a candidate is judged on all rows at
once, from the budget of the run, with no row's own document in its prompt. What a prompt shows of a row is for the
judge to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import dspy
import numpy as np
from dspy.teleprompt import BootstrapFewShotWithRandomSearch
from pydantic import field_validator

from judgesmith.agreement.metric import Agreement
from judgesmith.agreement.objectives import Reached
from judgesmith.errors import CallError, OptionError
from judgesmith.optimizers.examples import Scored, score_rows
from judgesmith.optimizers.registry import optimizers
from judgesmith.optimizers.search.base import (
    BootstrapOptions,
    CandidateOptions,
    Demonstrations,
    DemonstrationSearch,
    Proposal,
    RacingOptions,
    RowKind,
    SearchContext,
    SureOptions,
    Trial,
    bounded,
)
from judgesmith.optimizers.search.prompts import Ended, quiet_dspy
from judgesmith.parts import option
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import row_context
from judgesmith.programs.models.lm import language_model
from judgesmith.programs.pipeline import as_prediction
from judgesmith.programs.prompting.saved import MOST_DEMOS
from judgesmith.signatures.values import Verdict

#: The candidates that come before the random ones, by DSPy's numbers.
NAMES = {-3: "zero-shot", -2: "labels only", -1: "bootstrapped"}
#: DSPy's name of an option -> ours.
RENAMED = {"num_candidate_programs": "candidates"}
Metric = Callable[..., Any]
Shown = tuple[tuple[int, bool], ...]
"""Demonstrations of a candidate: row of the pool, and whether it shows the teacher's answer."""


class NumberedJudge(dspy.Module):  # type: ignore[misc]
    """A judge as DSPy's class sees it: it takes a row's number, and its demonstrations are numbers of rows.

    teaches: whether it is the teacher, whose answers may become demonstrations.
    """

    def __init__(self, table: Table, *, teaches: bool = False) -> None:
        super().__init__()
        self.judge = dspy.Predict("row -> percent")
        self.table = table
        self.teaches = teaches
        # A teacher that is not compiled would be shown other rows' labels by DSPy.
        self._compiled = teaches

    def forward(self, row: int) -> dspy.Prediction:
        """Return the verdict on a row, traced if it is the teacher's."""
        if not self.teaches:
            return as_prediction(self.table.verdict(shown_by(self), row))
        verdict = self.table.taught(row)
        answer = dspy.Prediction(percent=verdict.percent)
        dspy.settings.trace.append((self.judge, {"row": row}, answer))
        return as_prediction(verdict)


def shown_by(program: NumberedJudge) -> Shown:
    """Return the demonstrations that DSPy gave a program."""
    return tuple(
        (int(demo.row), bool(demo.get("augmented"))) for demo in program.judge.demos
    )


class Measured(Agreement):
    """Agreement of a candidate's rows: it was judged as a whole, so that it is known beforehand."""

    def __init__(self, table: Table) -> None:
        super().__init__(
            table.search.objective,
            score_of="percent",
            human_of="score",
            group_of="document",
            scale=(0, 100),
        )
        self.table = table

    def value_of(self, pairs: Iterable[tuple[Any, Any]]) -> Reached:
        """Return the agreement of the candidate that DSPy evaluates."""
        return self.table.trial.candidate.agreement.reached


@dataclass
class Table:
    """The answers to what DSPy's class asks: candidates are judged as wholes, each set of demonstrations once."""

    search: CorrelationRandomSearch
    context: SearchContext
    trials: dict[Shown, Trial] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)
    """The candidates that are still to be evaluated, by DSPy's numbers."""
    number: int = -3
    answers: list[Verdict] = field(default_factory=list)
    """The teacher's, of the pool."""
    close: frozenset[int] = frozenset()
    """The rows whose answers are among those closest to human ratings."""
    error: Exception | None = None
    """What the metric that was given last raised."""

    def __post_init__(self) -> None:
        self.trial = self.trials[()] = self.context.tried[0]
        self.lm = dspy.settings.lm
        self.agreement = Measured(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def verdict(self, shown: Shown, row: int) -> Verdict:
        """Return the verdict of the candidate with these demonstrations on a row.

        Raises:
            Ended: If the search has to end.
        """
        if row == 0:  # each evaluation begins with the first row
            self.number = self.numbers.pop(0)
        if shown not in self.trials:
            before = len(self.context.tried)
            with self._outside_dspy():
                self.search.judge(self.context, self._proposal(shown))
            self.trials[shown] = self.context.tried[before]
        trial = self.trial = self.trials[shown]
        if trial.judged is None:
            return trial.scored.verdicts[row]
        if row not in trial.judged:
            return Verdict.failed("the candidate was dropped before this row")
        return trial.scored.verdicts[int(np.searchsorted(trial.judged, row))]

    def taught(self, row: int) -> Verdict:
        """Return the teacher's answer on a row of the pool; in later rounds of DSPy's a new one, drawn at random."""
        round_ = int(dspy.settings.lm.kwargs.get("rollout_id") or 0)
        with self._outside_dspy():
            if not self.answers:
                self.answers = list(self.context.answers())
                self._read_answers()
            if round_:
                program = self.context.base.with_()
                teacher = self.context.teacher or program.lm
                program.set_lm(teacher.at(1 + round_ / 1000))
                rows = [self.context.pool[row]]
                (again,) = score_rows(program, rows, self.search.progress).verdicts
                self.answers[row] = again
                self._read_answers()
        return self.answers[row]

    def _read_answers(self) -> None:
        shown = Demonstrations(self.context, self.search, self.answers)
        self.close = frozenset(shown.allowed("predicted").tolist())

    @contextmanager
    def _outside_dspy(self) -> Iterator[None]:
        """With the caller's model; what ends a search is no failed row of DSPy's. Raises Ended."""
        try:
            with dspy.context(lm=self.lm):
                yield
        except Exception as error:
            raise Ended(error) from error

    def metric(
        self, example: dspy.Example, prediction: dspy.Prediction, trace: Any = None
    ) -> Any:
        """Return a row's score; of a teacher's answer, which has a trace, whether it may be shown."""
        given = self.search.metric
        row = example.row
        if trace is not None:
            if prediction.failure:
                return False
            return row in self.close if given is None else self._taught_well(row)
        if prediction.failure and self.search.max_errors is not None:
            self.error = CallError(str(prediction.failure))
            raise self.error
        rated = self.context.rows[row]
        if given is None:
            return self.agreement(rated, prediction)
        return self._given(rated, prediction)

    def _taught_well(self, row: int) -> Any:
        example = self.context.pool[row]
        prediction = as_prediction(self.answers[row])
        taught = self.context.base.method.taught()
        trace = [(predictor, example.inputs(), prediction) for predictor in taught]
        return self._given(example, prediction, trace)

    def _given(self, *call: Any) -> Any:
        assert self.search.metric is not None
        try:
            return self.search.metric(*call)
        except Exception as error:
            self.error = error
            raise

    def _proposal(self, shown: Shown) -> Proposal:
        demonstrations = Demonstrations(self.context, self.search, self.answers or None)
        # With the human's score a bare number is a label; with the model's it is an answer that came close to people's.
        anchors = demonstrations.kinds[: 1 if self.search.anchor != "auto" else None]
        anchors = [kind for kind in anchors if kind != "labels"] or ["labels"]
        anchor = anchors[max(self.number, 0) % len(anchors)]
        kinds: list[RowKind] = []
        for _, augmented in shown:
            kinds.append(anchor if augmented else "labels")
        rows = [row for row, _ in shown]
        kind = kinds[0] if len(set(kinds)) == 1 else "mixed"
        program = demonstrations.shown_by(self.context.base, rows, kinds)
        name = NAMES.get(self.number, f"random {self.number}")
        return Proposal(name, kind, rows, program, answers=self.answers)


@optimizers.register
class CorrelationRandomSearch(DemonstrationSearch, BootstrapFewShotWithRandomSearch):  # type: ignore[misc]
    """Random search over demonstration sets under Q = r + rho + tau-b (Active-Critic §4.2, eq. 3–4).

    It runs `dspy.BootstrapFewShotWithRandomSearch` on the training set, with the agreement of the whole set as its
    metric; a seed other than 0 shuffles the training set first. It takes the same arguments: metric, metric_threshold,
    teacher, teacher_settings, max_bootstrapped_demos, max_labeled_demos, max_rounds, num_candidate_programs,
    num_threads, max_errors, stop_at_score; `compile` takes valset, restrict and labeled_sample. Without a metric
    agreement is maximised; a `js.Agreement` says by which objective. Any other metric is one of single rows: its mean
    then decides, and its value decides which bootstrapped answers are shown.
    """

    name = "random-search"
    about = "DSPy's random search over labelled and bootstrapped demonstrations, by agreement over the whole set"
    paper = "Active-Critic, §4.2"
    adaptive = False

    class Options(RacingOptions, SureOptions, BootstrapOptions, CandidateOptions):
        max_bootstrapped_demos: int | None = option(
            None,
            "Bootstrapped demonstrations at most; none: max_demos.",
            ge=0,
            le=MOST_DEMOS,
        )
        max_labeled_demos: int | None = option(
            None,
            "Demonstrations at most, where labelled rows fill up the bootstrapped ones; none: max_demos.",
            ge=0,
            le=MOST_DEMOS,
        )
        sizes: tuple[int, ...] = option(
            (4, 8, 16),
            "Numbers of demonstrations that sets have in turn, up to max_demos, to half of the rows, and to what the "
            "model reads; none: max_demos alone, as with max_labeled_demos.",
        )
        max_rounds: int = option(
            1,
            "Times that the teacher is asked about a row until its answer may be shown.",
            ge=1,
        )
        stop_at_score: float | None = option(
            None, "Objective, times 100, at which the search ends."
        )

        @field_validator("sizes")
        @classmethod
        def _positive(cls, value: tuple[int, ...]) -> tuple[int, ...]:
            if any(not 1 <= size <= MOST_DEMOS for size in value):
                raise ValueError(f"each of 1 to {MOST_DEMOS}")
            return tuple(sorted(set(value)))

        leave_out: Literal["document", "nothing"] = option(
            "document",
            "What a candidate is not shown while it is measured on a row: the row's own document, or nothing, as with "
            "DSPy's own search (for experiments: what is measured so is too good).",
        )

    def __init__(
        self,
        metric: Metric | None = None,
        *,
        teacher_settings: dict[str, Any] | None = None,
        metric_threshold: float | None = None,
        num_threads: int | None = None,
        max_errors: int | None = None,
        **options: Any,
    ) -> None:
        options = {RENAMED.get(name, name): value for name, value in options.items()}
        if isinstance(metric, Agreement):
            options.setdefault("objective", metric.by)
            metric = None
        super().__init__(**options)
        self.metric = metric
        self.metric_threshold = metric_threshold
        self.num_threads = num_threads
        self.max_errors = max_errors
        self.teacher_settings = teacher_settings or {}
        self._restrict: set[int] | None = None
        self._labeled_sample = True
        self._best: Trial | None = None

    @property
    def chooses_again(self) -> bool:
        """Return True unless the search ends at a score, or a metric of single rows decides."""
        by_rows = self.metric is not None or self.stop_at_score is not None
        return super().chooses_again and not by_rows

    def evaluations(self) -> int:
        """Return DSPy's number of programs, three more than `candidates`; 1 without candidates."""
        return int(self.candidates) + 3 if self.candidates else 1

    def compile(
        self,
        student: Judge,
        *,
        teacher: Any = None,
        trainset: Sequence[dspy.Example],
        valset: Sequence[dspy.Example] | None = None,
        restrict: Sequence[int] | None = None,
        labeled_sample: bool = True,
    ) -> Judge:
        """Compile as `DemonstrationSearch.compile` does, with the arguments of DSPy's own class.

        Args:
            student: The judge to improve.
            teacher: A model or judge whose answers become demonstrations.
            trainset: Rows that demonstrations are taken from.
            valset: Rows that candidates are measured on; by default the training rows.
            restrict: Numbers of the candidates to try (-3 zero-shot, -2 labels only, -1 bootstrapped, 0… random);
                the model alone is always measured.
            labeled_sample: False: "labels only" takes the first rows instead of a sample.

        Raises:
            OptionError: For a student that is not a judge, which DSPy's own optimizers compile by `js.Agreement`.
        """
        if not isinstance(student, Judge):
            raise OptionError(
                f"{type(student).__name__} is not a judge; for other programs take DSPy's own optimizers with "
                "metric=js.Agreement(score_of='score') and a valset of other documents"
            )
        self._restrict = None if restrict is None else {*restrict, -3}
        self._labeled_sample = labeled_sample
        self._best = None
        if teacher is None and "lm" in self.teacher_settings:
            teacher = language_model(self.teacher_settings["lm"])
        return super().compile(
            student, teacher=teacher, trainset=trainset, valset=valset
        )

    def score(self, program: Judge, rows: Sequence[dspy.Example], name: str) -> Scored:
        """Score rows as any search does, with their own documents shown if `leave_out` is "nothing"."""
        with (
            row_context.own_documents_shown()
            if self.leave_out == "nothing"
            else nullcontext()
        ):
            return super().score(program, rows, name)

    def explore(self, context: SearchContext) -> None:
        """Run DSPy's class; its candidate of the model alone is judged already."""
        if not self.candidates:
            return
        table = Table(self, context)
        order = list(range(len(context.pool)))
        if self.seed:
            order = np.random.default_rng([self.seed, 3]).permutation(order).tolist()
        best: NumberedJudge | None = None
        highest = -np.inf
        for size, numbers in self._runs(len(context.pool), context.room):
            table.numbers = list(numbers)
            found = self._run(table, size, numbers, order)
            score = found.candidate_programs[0]["score"]
            if score > highest:
                best = found
                highest = score
            if self.stop_at_score is not None and score >= self.stop_at_score:
                break
        if self.metric is not None and best is not None:
            self._best = table.trials[shown_by(best)]

    def _runs(self, rows: int, room: int | None) -> list[tuple[int, list[int]]]:
        """Return the runs of DSPy's class: the demonstrations in a prompt, and the candidates by DSPy's numbers.

        Each candidate is in one of them: the fixed ones in that of the most demonstrations, the random sets in turn.
        """
        wanted = self.tried_sizes(rows, room)
        numbers: dict[int, list[int]] = {size: [] for size in wanted}
        for number in range(-3, self.candidates):
            if self._restrict is None or number in self._restrict:
                numbers[wanted[max(number, 0) % len(wanted)]].append(number)
        return [(size, some) for size, some in numbers.items() if some]

    def shown(self, rows: int, room: int | None = None) -> int:
        """Return the demonstrations in a prompt of the search, on average."""
        count = sum(size * len(numbers) for size, numbers in self._runs(rows, room))
        return round(count / self.evaluations()) if self.candidates else 0

    def tried_sizes(self, rows: int, room: int | None = None) -> list[int]:
        """Return the numbers of demonstrations that sets of some rows have, the largest first; room as in `shown`."""
        if not self.sizes or self.max_labeled_demos is not None:
            return [int(self.max_demos)]
        wanted = {min(size, self.max_demos) for size in (*self.sizes, self.max_demos)}
        return sorted({bounded(size, rows, room) for size in wanted}, reverse=True)

    def remarks(self, rows: int, room: int | None = None) -> list[str]:
        """Return what a plan says of the sizes that are tried."""
        sizes = self.tried_sizes(rows, room)
        if len(sizes) < 2 or not self.candidates:
            return []
        *others, last = map(str, sorted(sizes))
        return [f"sets of {', '.join(others)} and {last} demonstrations are tried"]

    def _run(
        self, table: Table, size: int, numbers: list[int], order: list[int]
    ) -> NumberedJudge:
        """Run DSPy's class for some of its candidates; return what it chose.

        Raises:
            Exception: What ends a search, and what the given metric raised.
        """
        try:
            # The model's copies tell the rounds of bootstrapping apart; the judge's own one is asked.
            with quiet_dspy(), dspy.context(lm=dspy.BaseLM("rounds", cache=False)):
                found: NumberedJudge = self._loop(table, size).compile(
                    NumberedJudge(table),
                    teacher=NumberedJudge(table, teaches=True),
                    trainset=_numbered(order),
                    valset=_numbered(range(len(table.context.rows))),
                    restrict=numbers,
                    labeled_sample=self._labeled_sample,
                )
                return found
        except Ended as end:
            raise end.error from None
        except Exception:
            if table.error is None:
                raise
            raise table.error from None

    def _loop(self, table: Table, size: int) -> BootstrapFewShotWithRandomSearch:
        """Return DSPy's search with this one's settings."""
        sizes = self.max_bootstrapped_demos, self.max_labeled_demos
        bootstrapped, labelled = (int(size if most is None else most) for most in sizes)
        if table.context.base.method.no_bootstrap():
            bootstrapped = 0
        loop = BootstrapFewShotWithRandomSearch(
            metric=table.metric,
            metric_threshold=None if self.metric is None else self.metric_threshold,
            max_bootstrapped_demos=bootstrapped,
            max_labeled_demos=labelled,
            max_rounds=self.max_rounds,
            num_candidate_programs=self.candidates,
            num_threads=1,  # a candidate is judged as a whole, `num_threads` rows at a time
            max_errors=self.max_errors,
            stop_at_score=self.stop_at_score,
        )
        loop.min_num_samples = min(1, bootstrapped)
        return loop

    def choose(
        self, tried: Sequence[Trial], rows: Sequence[dspy.Example]
    ) -> tuple[Trial, str | None]:
        """Choose by the given metric if there is one, otherwise as any search does."""
        if self._best is not None:
            return self._best, "it has the highest mean of the metric that was given"
        return super().choose(tried, rows)


def _numbered(rows: Sequence[int]) -> list[dspy.Example]:
    return [dspy.Example(row=number).with_inputs("row") for number in rows]
