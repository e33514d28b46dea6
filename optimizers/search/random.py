"""Random search for demonstrations under a metric of the whole set, as DSPy's own class draws them.

The loop of DSPy's `BootstrapFewShotWithRandomSearch` averages a metric over rows; agreement is no such mean. Here the
same candidates (zero-shot, labels only, bootstrapped, then random sets by number) are judged as wholes. No row is
judged with its own document in the prompt. What a prompt shows of a row is for the judge to say (`Judge.teach`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import dspy
import numpy as np
from dspy.teleprompt import BootstrapFewShotWithRandomSearch

from judgesmith.agreement.metric import Agreement
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
    SearchContext,
    SureOptions,
    Trial,
)
from judgesmith.parts import option
from judgesmith.programs.dspy_judge import as_prediction
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import row_context
from judgesmith.programs.models.lm import language_model
from judgesmith.programs.prompting.saved import MOST_DEMOS
from judgesmith.signatures.values import Verdict

#: The candidates that come before the random ones, by DSPy's numbers.
NAMES = {-3: "zero-shot", -2: "labels only", -1: "bootstrapped"}
#: DSPy's name of an option -> ours.
RENAMED = {"num_candidate_programs": "candidates"}
Metric = Callable[..., Any]
Shown = tuple[tuple[int, bool], ...]
"""Demonstrations of a candidate: row of the pool, and whether it shows the teacher's answer."""


def labels_only(rows: Sequence[int], most: int, *, sample: bool = True) -> Shown:
    """Draw labelled rows as DSPy's `LabeledFewShot` does.

    >>> labels_only([4, 2, 0], 2, sample=False)
    ((4, False), (2, False))
    """
    count = min(most, len(rows))
    drawn = random.Random(0).sample(list(rows), count) if sample else rows[:count]
    return tuple((row, False) for row in drawn)


def filled_up(rows: Sequence[int], bootstrapped: Sequence[int], most: int) -> Shown:
    """Fill bootstrapped rows up with labelled ones to `most`, as DSPy's `BootstrapFewShot` does."""
    rest = [row for row in rows if row not in bootstrapped]
    random.Random(0).shuffle(rest)
    count = max(0, min(most - len(bootstrapped), len(rest)))
    labelled = random.Random(0).sample(rest, count)
    return (*((row, True) for row in bootstrapped), *((row, False) for row in labelled))


def random_order(rows: Sequence[int], number: int, most: int) -> tuple[list[int], int]:
    """Return the order of the rows for a numbered candidate, and how many it bootstraps, as DSPy draws them."""
    order = list(rows)
    random.Random(number).shuffle(order)
    return order, random.Random(number).randint(min(1, most), most)


@dataclass
class Teacher:
    """Answers of the teacher that may become demonstrations."""

    search: CorrelationRandomSearch
    context: SearchContext
    answers: list[Verdict] = field(default_factory=list)

    def bootstrap(self, order: Sequence[int], most: int) -> list[int]:
        """Return the first `most` rows whose answers are accepted."""
        accepted: list[int] = []
        for row in order:
            if len(accepted) >= most:
                break
            if any(
                self._accepts(row, round_) for round_ in range(self.search.max_rounds)
            ):
                accepted.append(row)
        return accepted

    def _accepts(self, row: int, round_: int) -> bool:
        """Accept by the given metric, else where the answer is among those closest to human ratings."""
        self.answers = self.answers or list(self.context.answers())
        if round_:
            self.answers[row] = self._again(row, round_)
        verdict = self.answers[row]
        if verdict.failure:
            return False
        if self.search.metric is None:
            return row in Demonstrations(
                self.context, self.search, self.answers
            ).allowed("predicted")
        example, prediction = self.context.pool[row], as_prediction(verdict)
        trace = [
            (predictor, example.inputs(), prediction)
            for predictor in self.context.base.method.taught()
        ]
        value = self.search.measured(example, prediction, trace)
        threshold = self.search.metric_threshold
        return bool(value >= threshold if threshold else value)

    def _again(self, row: int, round_: int) -> Verdict:
        """Draw another answer at temperature 1; each round is cached apart."""
        program = self.context.base.with_()
        program.set_lm((self.context.teacher or program.lm).at(1 + round_ / 1000))
        (verdict,) = score_rows(
            program, [self.context.pool[row]], self.search.progress
        ).verdicts
        return verdict


@optimizers.register
class CorrelationRandomSearch(DemonstrationSearch, BootstrapFewShotWithRandomSearch):  # type: ignore[misc]
    """Random search over demonstration sets under Q = r + rho + tau-b (Active-Critic §4.2, eq. 3–4).

    It is a `dspy.BootstrapFewShotWithRandomSearch`: with seed 0 it draws the candidates of that class on the same
    training set; another seed shuffles the training set first. It takes the same arguments: metric, metric_threshold,
    teacher, teacher_settings, max_bootstrapped_demos, max_labeled_demos, max_rounds, num_candidate_programs,
    num_threads, max_errors, stop_at_score; `compile` takes valset, restrict and labeled_sample. Without a metric
    agreement is maximised; a `js.Agreement` says by which objective. Any other metric is one of single rows: its mean
    then decides, as in DSPy, and its value decides which bootstrapped answers are shown.
    """

    name = "random-search"
    about = "DSPy's random search over labelled and bootstrapped demonstrations, by agreement over the whole set"
    paper = "Active-Critic, §4.2"

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
        max_rounds: int = option(
            1,
            "Times that the teacher is asked about a row until its answer may be shown.",
            ge=1,
        )
        stop_at_score: float | None = option(
            None, "Objective, times 100, at which the search ends."
        )
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
        self.num_candidate_sets, self.min_num_samples = self.candidates, 1
        self.max_num_samples = self._most(self.max_bootstrapped_demos)
        self._restrict: set[int] | None = None
        self._labeled_sample = True
        self._best: Trial | None = None
        self._errors = 0

    def _most(self, demonstrations: int | None) -> int:
        return int(self.max_demos if demonstrations is None else demonstrations)

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
                zero-shot is always measured.
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
        self._labeled_sample, self._best, self._errors = labeled_sample, None, 0
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
        """Judge labels only, bootstrapped and the random sets; equal sets once. Zero-shot is judged before."""
        order = list(range(len(context.pool)))
        if self.seed:
            order = np.random.default_rng([self.seed, 3]).permutation(order).tolist()
        teacher = Teacher(self, context)
        trials: dict[Shown, Trial] = {(): context.tried[0]}
        best, best_value = context.tried[0], self._value(context, context.tried[0])
        for number in range(-2, self.candidates) if self.candidates else ():
            if (
                self.stop_at_score is not None
                and 100 * best_value >= self.stop_at_score
            ):
                break
            if self._restrict is not None and number not in self._restrict:
                continue
            shown = self._drawn(context, teacher, order, number)
            if shown not in trials:
                self.judge(context, self._proposal(context, teacher, shown, number))
                trials[shown] = context.tried[-1]
            value = self._value(context, trials[shown])
            if value > best_value:
                best, best_value = trials[shown], value
        if self.metric is not None:
            self._best = best

    def _drawn(
        self, context: SearchContext, teacher: Teacher, order: list[int], number: int
    ) -> Shown:
        """Return the demonstrations of a numbered candidate."""
        most = self._most(self.max_labeled_demos)
        if number == -2:
            return labels_only(order, most, sample=self._labeled_sample)
        size = 0 if context.base.method.no_bootstrap() else self.max_num_samples
        if number >= 0:
            order, size = random_order(order, number, size)
        return filled_up(order, teacher.bootstrap(order, size), most)

    def _proposal(
        self, context: SearchContext, teacher: Teacher, shown: Shown, number: int
    ) -> Proposal:
        demonstrations = Demonstrations(context, self, teacher.answers or None)
        # With the human's score a bare number is a label; with the model's it is an answer that came close to people's.
        anchors = demonstrations.kinds[: 1 if self.anchor != "auto" else None]
        anchors = [kind for kind in anchors if kind != "labels"] or ["labels"]
        anchor = anchors[max(number, 0) % len(anchors)]
        kinds = [anchor if augmented else "labels" for _, augmented in shown]
        rows = [row for row, _ in shown]
        kind = kinds[0] if len(set(kinds)) == 1 else "mixed"
        program = demonstrations.shown_by(context.base, rows, kinds)
        return Proposal(NAMES.get(number, f"random {number}"), kind, rows, program)

    def _value(self, context: SearchContext, trial: Trial) -> float:
        """Return the objective of a trial, or the mean of the given metric; -inf where it cannot be compared.

        Raises:
            CallError: As many rows failed as `max_errors` allows.
        """
        if trial.candidate.dropped:
            return -np.inf
        if self.max_errors is not None and trial.scored.failed >= self.max_errors:
            raise CallError(
                f"{trial.candidate.name}: {trial.scored.failed} rows failed; max_errors={self.max_errors}"
            )
        if self.metric is None:
            return float(np.nan_to_num(trial.candidate.agreement.value, nan=-np.inf))
        pairs = zip(context.rows, trial.scored.verdicts, strict=True)
        return float(
            np.mean(
                [self.measured(row, as_prediction(verdict)) for row, verdict in pairs]
            )
        )

    def measured(
        self, row: dspy.Example, prediction: dspy.Prediction, trace: Any = None
    ) -> float:
        """Return the given metric of a row, 0 where it raises; the last of `max_errors` errors is raised."""
        assert self.metric is not None
        try:
            return float(self.metric(row, prediction, trace))
        except Exception:
            self._errors += 1
            if self._errors >= (
                dspy.settings.max_errors if self.max_errors is None else self.max_errors
            ):
                raise
            return 0.0

    def choose(
        self, tried: Sequence[Trial], rows: Sequence[dspy.Example]
    ) -> tuple[Trial, str | None]:
        """Choose by the given metric if there is one, otherwise as any search does."""
        if self._best is not None:
            return self._best, "it has the highest mean of the metric that was given"
        return super().choose(tried, rows)
