"""Active-Critic's search for demonstrations: random sets, judged by a set-level objective, without a leak.

DSPy's `BootstrapFewShotWithRandomSearch` averages a per-example metric and validates on rows whose own labels stand in
the prompt. `CorrelationRandomSearch` keeps its idea (zero-shot, labels only, bootstrapped, then random candidates) and
changes what it measures: Q over the whole validation vector, each row judged without its own group among the
demonstrations, failures imputed and counted, undefined correlations never winning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dspy
import numpy as np

from ...agreement.fields import Field
from ...errors import OptionError
from ...programs.judge import Judge
from ...programs.models.lm import LanguageModel
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
)
from .programs import Fields, as_judge

#: The candidates that come before the random ones, by their numbers.
LABELS_ONLY, BOOTSTRAPPED = -2, -1


@optimizers.register
class CorrelationRandomSearch(DemonstrationSearch):
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
        **options: Any,
    ) -> None:
        """score_of: compile a DSPy program that is not a judge; how a prediction's score is read, a field's name or a
        function. human_of, group_of: how an example's human score is read, and what rows have in common that may not
        stand in each other's prompt (by default each row is for itself, and those of nearly the same text together).
        """
        super().__init__(**options)
        self._fields = None if score_of is None else Fields(score_of, human_of, group_of)
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
        best: Any = super().compile(judge, teacher=teacher, trainset=train, valset=others)
        assert self.record is not None
        verdicts = self.record.zero_shot.verdicts
        if all(verdict.failure for verdict in verdicts):
            raise OptionError(f"the program gave no score on any row: {verdicts[0].failure}")
        return best.finished()

    def explore(self, context: SearchContext) -> None:
        for number in range(LABELS_ONLY, self.candidates) if self.candidates else ():
            if self._restrict is None or number in self._restrict:
                proposal = self._proposal(number, context)
                if proposal is not None:
                    self.judge(context, proposal)

    def _proposal(self, number: int, context: SearchContext) -> Proposal | None:
        """A candidate, if there are demonstrations for it. Deterministic in (seed, number)."""
        # What needs no answers is tried before they are paid for.
        shown = Demonstrations(context, self, None if number == LABELS_ONLY else context.answers())
        kinds, rng = shown.kinds, np.random.default_rng([self.seed, number + 3])
        if number == BOOTSTRAPPED and kinds == ["labels"]:
            return None
        kind = kinds[max(number, 0) % len(kinds)]
        size = int(rng.integers(1, self.max_demos + 1)) if number >= 0 else self.max_demos
        picked = shown.spread(kind, size, rng)
        name = {LABELS_ONLY: "labels only", BOOTSTRAPPED: "bootstrapped"}.get(number, f"random {number}")
        return Proposal(name, kind, picked, shown.shown_by(context.base, picked, kind)) if picked else None
