"""DSPy's own random search for demonstrations, with two changes: its metric is one of the whole set, and no row is
judged with its own document in the prompt.

The loop, its bootstrapping, its labelled demonstrations and its evaluation are those of DSPy's
`BootstrapFewShotWithRandomSearch`. What it sees of a judge is a program with one predictor (`Numbered`), whose
demonstrations are numbers of rows; what a prompt shows of a row is for the judge to say (`Judge.teach`), and which rows
it may show is checked on every call. The score that DSPy averages is `Agreement`'s, whose mean is that of the set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import dspy
import numpy as np
from dspy.teleprompt import BootstrapFewShotWithRandomSearch

from ...agreement.metric import Agreement
from ...errors import CallError, OptionError
from ...parts import option
from ...programs.judge import Judge, as_prediction
from ...programs.models import row_context
from ...programs.models.lm import language_model
from ...programs.prompting.saved import MOST_DEMOS
from ...signatures.values import Verdict
from ..examples import Scored, score_rows
from ..registry import optimizers
from .base import (
    BootstrapOptions,
    CandidateOptions,
    Demonstrations,
    DemonstrationSearch,
    Proposal,
    RacingOptions,
    SearchContext,
    SureOptions,
    Trial,
)
from .prompts import Ended, quiet_dspy

#: The candidates that come before the random ones, by DSPy's numbers.
NAMES = {-3: "zero-shot", -2: "labels only", -1: "bootstrapped"}
#: DSPy's name of an option -> ours.
RENAMED = {"num_candidate_programs": "candidates"}
Metric = Callable[..., Any]


class Numbered(dspy.Module):  # type: ignore[misc]
    """A judge as DSPy's loop sees it: given the number of a row, its score; its demonstrations are numbers of rows.

    teaches: whether it is the teacher, whose answers become demonstrations.
    """

    def __init__(self, table: Table, *, teaches: bool = False) -> None:
        super().__init__()
        self.judge = dspy.Predict("row -> percent")
        self.table = table
        self.teaches = self._compiled = teaches  # DSPy would show a teacher that is not compiled others' labels

    def forward(self, row: int) -> dspy.Prediction:
        if not self.teaches:
            return as_prediction(self.table.verdict(self.judge.demos, row))
        verdict = self.table.taught(row)
        dspy.settings.trace.append((self.judge, {"row": row}, dspy.Prediction(percent=verdict.percent)))
        return as_prediction(verdict)


@dataclass
class Table:
    """What DSPy's loop asks, answered by the search: whole candidates are judged at once, under its rules."""

    search: CorrelationRandomSearch
    context: SearchContext
    numbers: list[int]
    """The candidates that the loop will try, by DSPy's numbers."""
    known: dict[tuple[tuple[int, bool], ...], Trial] = field(default_factory=dict)
    """By the rows that are shown: (number, whether it is the teacher's answer)."""

    def __post_init__(self) -> None:
        self.known[()] = self.context.tried[0]
        self.answers = list[Verdict]()
        self.number = -3
        self.lm = dspy.settings.lm

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def verdict(self, demos: Sequence[Any], row: int) -> Verdict:
        """What the candidate with these demonstrations says of a row. Raises Ended."""
        if row == 0:  # each evaluation begins with the first row
            self.number = self.numbers.pop(0)
        shown = tuple((int(demo.row), bool(demo.get("augmented"))) for demo in demos)
        if shown not in self.known:
            before = len(self.context.tried)
            with self._outside_dspy():
                self.search.judge(self.context, self._proposal(shown))
            self.known[shown] = self.context.tried[before]
        trial = self.known[shown]
        place = row if trial.judged is None else int(np.searchsorted(trial.judged, row))
        if trial.judged is not None and row not in trial.judged:
            return Verdict.failed("the candidate was dropped before this row")
        return trial.scored.verdicts[place]

    def taught(self, row: int) -> Verdict:
        """The teacher's answer on a row of the pool; in later rounds of DSPy's a new one, drawn at random."""
        number = dspy.settings.lm.number
        with self._outside_dspy():
            self.answers = self.answers or list(self.context.answers())
            if number:
                program = self.context.base.copy_for()
                program.set_lm((self.context.teacher or program.lm).at(1 + number / 1000))
                (self.answers[row],) = score_rows(program, [self.context.pool[row]], self.search.progress).verdicts
        return self.answers[row]

    @contextmanager
    def _outside_dspy(self) -> Iterator[None]:
        """With the caller's model; what ends a search is no failed row. Raises Ended."""
        try:
            with dspy.context(lm=self.lm):
                yield
        except Exception as error:
            raise Ended(error) from error

    def accepts(self, row: int, trace: Any) -> Any:
        """Whether the teacher's answer on a row may be shown: by the metric that was given, else where it is among
        those that came closest to human ratings."""
        if self.search.metric is not None:
            return self.search.metric(self.context.pool[row], as_prediction(self.answers[row]), trace)
        return row in Demonstrations(self.context, self.search, self.answers).allowed("predicted")

    def _proposal(self, shown: tuple[tuple[int, bool], ...]) -> Proposal:
        demonstrations = Demonstrations(self.context, self.search, self.answers or None)
        # With the human's score a bare number is a label; with the model's it is an answer that came close to people's.
        anchors = demonstrations.kinds[: 1 if self.search.anchor != "auto" else None]
        anchors = [kind for kind in anchors if kind != "labels"] or ["labels"]
        anchor = anchors[max(self.number, 0) % len(anchors)]
        kinds = [anchor if augmented else "labels" for _, augmented in shown]
        rows = [row for row, _ in shown]
        kind = kinds[0] if len(set(kinds)) == 1 else "mixed"
        name = NAMES.get(self.number, f"random {self.number}")
        return Proposal(name, kind, rows, demonstrations.shown_by(self.context.base, rows, kinds))


@dataclass
class _Rounds:
    """Stands in for the model whose copies DSPy numbers in later rounds of bootstrapping."""

    number: int = 0

    def copy(self, *, rollout_id: int, **_: Any) -> _Rounds:
        return _Rounds(rollout_id)


@optimizers.register
class CorrelationRandomSearch(DemonstrationSearch):
    """Random search over demonstration sets under Q = r + rho + tau-b (Active-Critic §4.2, eq. 3–4).

    Takes what DSPy's `BootstrapFewShotWithRandomSearch` takes, under DSPy's names: metric, metric_threshold, teacher,
    teacher_settings, max_bootstrapped_demos, max_labeled_demos, max_rounds, num_candidate_programs, num_threads,
    max_errors, stop_at_score; `compile` takes valset, restrict and labeled_sample. Without a metric agreement is
    maximised; a `js.Agreement` says by which objective. Any other metric is one of single rows: its mean then decides,
    as in DSPy, and its value whether a bootstrapped answer may be shown.
    """

    name = "random-search"
    about = "DSPy's random search over labelled and bootstrapped demonstrations, by agreement over the whole set"
    paper = "Active-Critic, §4.2"

    class Options(RacingOptions, SureOptions, BootstrapOptions, CandidateOptions):
        max_bootstrapped_demos: int | None = option(
            None, "Bootstrapped demonstrations at most; none: max_demos.", ge=0, le=MOST_DEMOS
        )
        max_labeled_demos: int | None = option(
            None,
            "Demonstrations at most, where labelled rows fill up the bootstrapped ones; none: max_demos.",
            ge=0,
            le=MOST_DEMOS,
        )
        max_rounds: int = option(1, "Times that the teacher is asked about a row until its answer may be shown.", ge=1)
        stop_at_score: float | None = option(None, "Objective, times 100, at which the search ends.")
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
        self.metric, self.metric_threshold = metric, metric_threshold
        self.num_threads, self.max_errors = num_threads, max_errors
        self.teacher_settings = teacher_settings or {}
        self._restrict: set[int] | None = None
        self._labeled_sample = True
        self._best: Trial | None = None

    def evaluations(self) -> int:
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
        """As `DemonstrationSearch.compile`. restrict: candidate numbers to try (-3 zero-shot, -2 labels only, -1
        bootstrapped, 0… random); zero-shot is always measured. labeled_sample: no: "labels only" are the first rows.
        Raises OptionError for a student that is not a judge, which DSPy's own optimizers compile by `js.Agreement`.
        """
        if not isinstance(student, Judge):
            raise OptionError(
                f"{type(student).__name__} is not a judge; for other programs take DSPy's own optimizers with "
                "metric=js.Agreement(score_of='score') and a valset of other documents"
            )
        self._restrict = None if restrict is None else {*restrict, -3}
        self._labeled_sample, self._best = labeled_sample, None
        if teacher is None and "lm" in self.teacher_settings:
            teacher = language_model(self.teacher_settings["lm"])
        return super().compile(student, teacher=teacher, trainset=trainset, valset=valset)

    def score(self, program: Judge, rows: Sequence[dspy.Example], name: str) -> Scored:
        with row_context.own_documents_shown() if self.leave_out == "nothing" else nullcontext():
            return super().score(program, rows, name)

    def explore(self, context: SearchContext) -> None:
        """DSPy's search, as it stands."""
        if not self.candidates:
            return
        numbers = [n for n in range(-3, self.candidates) if self._restrict is None or n in self._restrict]
        table = Table(self, context, numbers)
        bootstrapped, labelled = (
            self.max_demos if most is None else most for most in (self.max_bootstrapped_demos, self.max_labeled_demos)
        )
        order = np.random.default_rng([self.seed, 3]).permutation(len(context.pool))
        train, rows = (
            [dspy.Example(row=int(i)).with_inputs("row") for i in n] for n in (order, range(len(context.rows)))
        )
        try:
            with quiet_dspy(), dspy.context(lm=_Rounds()):
                loop = BootstrapFewShotWithRandomSearch(
                    metric=self._metric(table),
                    metric_threshold=self.metric_threshold if self.metric else None,
                    max_bootstrapped_demos=0 if context.base.no_bootstrap() else bootstrapped,
                    max_labeled_demos=labelled,
                    max_rounds=self.max_rounds,
                    num_candidate_programs=self.candidates,
                    num_threads=1,  # a candidate is judged as a whole, `num_threads` rows at a time
                    max_errors=self.max_errors,
                    stop_at_score=self.stop_at_score,
                )
                loop.min_num_samples = min(1, loop.max_num_samples)
                best = loop.compile(
                    Numbered(table),
                    teacher=Numbered(table, teaches=True),
                    trainset=train,
                    valset=rows,
                    restrict=self._restrict,
                    labeled_sample=self._labeled_sample,
                )
        except Ended as end:
            raise end.error from None
        if self.metric is not None:
            shown = tuple((int(demo.row), bool(demo.get("augmented"))) for demo in best.judge.demos)
            self._best = table.known[shown]

    def choose(self, tried: Sequence[Trial], rows: Sequence[dspy.Example]) -> tuple[Trial, str | None]:
        if self._best is not None:
            return self._best, "it has the highest mean of the metric that was given"
        return super().choose(tried, rows)

    def _metric(self, table: Table) -> Metric:
        """What DSPy's loop measures by: of a teacher's answer, whether it may be shown; else the row's score."""
        rows, agreement = (
            table.context.rows,
            Agreement(self.objective, score_of="percent", human_of="score", group_of="document", scale=(0, 100)),
        )

        def metric(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> Any:
            if trace is not None:
                return not prediction.failure and table.accepts(example.row, trace)
            if prediction.failure and self.max_errors is not None:
                raise CallError(prediction.failure)
            return (self.metric or agreement)(rows[example.row], prediction)

        return metric
