"""Active-Critic's search for demonstrations: random sets, judged by a set-level objective, without a leak.

DSPy's `BootstrapFewShotWithRandomSearch` averages a per-example metric and validates on rows whose own labels stand in
the prompt. `CorrelationRandomSearch` keeps its place and its idea (zero-shot, labels only, bootstrapped, then random
candidates) and changes what it measures: Q over the whole validation vector, each row judged without its own group
among the demonstrations, failures imputed and counted, undefined correlations never winning.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Sequence
from typing import Any

import dspy
import numpy as np
from dspy.teleprompt import BootstrapFewShotWithRandomSearch

from ...agreement.fields import Field
from ...errors import BudgetError, OptionError
from ...programs.judge import Judge
from ...programs.models.lm import LanguageModel
from ...signatures.values import Verdict
from ..registry import optimizers
from .base import (
    BootstrapOptions,
    CandidateOptions,
    DemoKind,
    DemonstrationSearch,
    Proposal,
    RacingOptions,
    SearchContext,
    SureOptions,
    spread,
    with_demos,
)
from .programs import Fields, as_judge

logger = logging.getLogger(__name__)


@optimizers.register
class CorrelationRandomSearch(DemonstrationSearch, BootstrapFewShotWithRandomSearch):  # type: ignore[misc]
    """Random search over demonstration sets under Q = r + rho + tau-b (Active-Critic §4.2, eq. 3–4).

    candidates: random sets tried beside zero-shot, labels only and bootstrapped. A teacher writes the bootstrapped
    answers, if it is not the judge's own model. The other options: `BootstrapOptions`, `SureOptions`, `RacingOptions`.
    """

    name = "random-search"
    about = "random sets of demonstrations: labels only, and with bootstrapped explanations"
    paper = "Active-Critic, §4.2"

    class Options(RacingOptions, SureOptions, BootstrapOptions, CandidateOptions):
        pass

    def __init__(
        self,
        *,
        score_of: Field | None = None,
        human_of: Field = "score",
        group_of: Field | None = None,
        **given: Any,
    ) -> None:
        """score_of: compile a DSPy program that is not a judge; how a prediction's score is read, a field's name or a
        function. human_of, group_of: how an example's human score is read, and what rows have in common that may not
        stand in each other's prompt (by default each row is for itself, and those of nearly the same text together).
        """
        DemonstrationSearch.__init__(self, **given)
        self._fields = None if score_of is None else Fields(score_of, human_of, group_of)
        with contextlib.redirect_stdout(io.StringIO()):  # DSPy prints its settings
            BootstrapFewShotWithRandomSearch.__init__(
                self,
                metric=None,
                max_bootstrapped_demos=self.max_demos,
                max_labeled_demos=self.max_demos,
                num_candidate_programs=self.candidates,
            )
        self._restrict: Sequence[int] | None = None

    def evaluations(self) -> int:
        return int(self.candidates) + 3 if self.candidates else 1

    def compile(
        self,
        student: Any,
        *,
        teacher: LanguageModel | None = None,
        trainset: Sequence[dspy.Example],
        valset: Sequence[dspy.Example] | None = None,
        restrict: Sequence[int] | None = None,
        labeled_sample: bool = True,
    ) -> Any:
        """As `DemonstrationSearch.compile`. restrict: candidate numbers to try (-3 zero-shot, -2 labels only, -1
        bootstrapped, 0… random); zero-shot is always measured.

        With `score_of`, student is any `dspy.Module`, the rows are its own examples, and the program is returned.
        Raises OptionError where it gave no score on any row, or where `score_of` is missing.
        """
        self._restrict = restrict
        if self._fields is None:
            if not isinstance(student, Judge):
                raise OptionError(
                    f"{type(student).__name__} is not a judge: say how its score is read, "
                    "CorrelationRandomSearch(score_of='score', human_of='score', group_of='document')"
                )
            return super().compile(student, teacher=teacher, trainset=trainset, valset=valset)
        judge, train, others = as_judge(student, self._fields, trainset, valset)
        found: Any = super().compile(judge, teacher=teacher, trainset=train, valset=others)
        assert self.record is not None
        verdicts = self.record.zero_shot.verdicts
        if all(verdict.failure for verdict in verdicts):
            raise OptionError(f"the program gave no score on any row: {verdicts[0].failure}")
        program = found.finished()
        program.candidate_programs = found.candidate_programs
        return program

    def explore(self, context: SearchContext) -> str | None:
        waiting: list[Proposal] = []
        ran_out = False
        try:
            for number in range(-2, self.candidates):
                if self.candidates == 0 or (self._restrict is not None and number not in self._restrict):
                    continue
                # What needs no answers is tried before they are paid for.
                answers = None if number == -2 else context.answers()
                name, kind, demos = self._draw(number, context, answers)
                if not demos:
                    continue
                proposal = Proposal(name, kind, demos, with_demos(context.base, demos, context.pool, answers, kind))
                if self.racing is None:
                    self.judge(context, [proposal])
                else:
                    waiting.append(proposal)
        except BudgetError:
            ran_out = True
        if waiting and not ran_out:
            ran_out = self.judge(context, waiting)
        if not ran_out:
            return None
        stopped = self._ran_out(context)
        logger.warning("%s", stopped)
        return stopped

    def _draw(
        self, number: int, context: SearchContext, answers: Sequence[Verdict] | None
    ) -> tuple[str, DemoKind, list[int]]:
        """Name, kind and row indices of a candidate. Deterministic in (seed, number)."""
        pool, kinds = context.pool, self._kinds(context.base, answers)
        if number == -2:
            kind: DemoKind = "labels"
        elif number == -1:
            if kinds == ["labels"]:
                return "bootstrapped", "labels", []
            kind = kinds[0]
        else:
            kind = kinds[number % len(kinds)]
        rng = np.random.default_rng([self.seed, number + 3])
        size = int(rng.integers(1, self.max_demos + 1)) if number >= 0 else self.max_demos
        allowed = self._allowed(kind, pool, answers)
        picked = spread(pool, allowed, size, rng)
        name = {-2: "labels only", -1: "bootstrapped"}.get(number, f"random {number}")
        return name, kind, picked
