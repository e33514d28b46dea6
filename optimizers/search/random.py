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

from ...errors import BudgetError, OptionError
from ...programs.judge import Judge
from ...programs.models.lm import LanguageModel
from ...signatures.values import Verdict
from ..agreement.correlation import Level
from ..progress import Progress
from .base import Anchor, DemoKind, DemonstrationSearch, Proposal, SearchContext, spread, with_demos
from .racing import Racing

logger = logging.getLogger(__name__)


class CorrelationRandomSearch(DemonstrationSearch, BootstrapFewShotWithRandomSearch):  # type: ignore[misc]
    """Random search over demonstration sets under Q = r + rho + tau-b (Active-Critic §4.2, eq. 3–4).

    candidates: random sets tried beside zero-shot, labels only and bootstrapped. max_demos: demonstrations in a set at
    most (paper: 3 for long texts, 8 for short). anchor: bootstrapped demonstrations show the human's score ("gold"),
    the teacher's own ("predicted"), or each in turn ("auto"), so that measurement decides. accept: the share of rows,
    closest to the human score after a monotone fit, whose bootstrapped answers may become demonstrations.
    max_failed: the share of failed rows above which a candidate can not be chosen. sure: the share of paired resamples
    in which a candidate must beat those with fewer demonstrations; 0 takes the highest Q as it is. racing: candidates
    are judged on growing blocks of rows and dropped when they fall behind for good (`racing.Racing`). teacher: a model
    that writes the bootstrapped answers, if not the judge's own.
    """

    name = "random-search"

    def __init__(
        self,
        *,
        level: Level = "pooled",
        candidates: int = 8,
        max_demos: int = 4,
        anchor: Anchor = "auto",
        accept: float = 0.5,
        max_failed: float = 0.1,
        sure: float = 0.7,
        racing: bool | Racing = False,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        if candidates < 0 or max_demos < 1:
            raise OptionError(f"candidates must be 0 or more and demos 1 or more; got {candidates} and {max_demos}")
        with contextlib.redirect_stdout(io.StringIO()):  # DSPy prints its settings
            BootstrapFewShotWithRandomSearch.__init__(
                self,
                metric=None,
                max_bootstrapped_demos=max_demos,
                max_labeled_demos=max_demos,
                num_candidate_programs=candidates,
            )
        DemonstrationSearch.__init__(
            self,
            level=level,
            max_demos=max_demos,
            anchor=anchor,
            accept=accept,
            max_failed=max_failed,
            sure=sure,
            racing=racing,
            seed=seed,
            progress=progress,
        )
        self._restrict: Sequence[int] | None = None

    def settings(self) -> dict[str, Any]:
        return self._settings(candidates=self.num_candidate_sets)

    def evaluations(self) -> int:
        return self.num_candidate_sets + 3 if self.num_candidate_sets else 1

    def compile(
        self,
        student: Judge,
        *,
        teacher: LanguageModel | None = None,
        trainset: Sequence[dspy.Example],
        valset: Sequence[dspy.Example] | None = None,
        restrict: Sequence[int] | None = None,
        labeled_sample: bool = True,
    ) -> Judge:
        """As `DemonstrationSearch.compile`. restrict: candidate numbers to try (-3 zero-shot, -2 labels only, -1
        bootstrapped, 0… random); zero-shot is always measured."""
        self._restrict = restrict
        return super().compile(student, teacher=teacher, trainset=trainset, valset=valset)

    def explore(self, context: SearchContext) -> str | None:
        waiting: list[Proposal] = []
        ran_out = False
        try:
            for number in range(-2, self.num_candidate_sets):
                if self.num_candidate_sets == 0 or (self._restrict is not None and number not in self._restrict):
                    continue
                # What needs no answers is tried before they are paid for.
                answers = None if number == -2 else context.answers()
                name, kind, demos = self._draw(number, context.pool, answers)
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
        self, number: int, pool: Sequence[dspy.Example], answers: Sequence[Verdict] | None
    ) -> tuple[str, DemoKind, list[int]]:
        """Name, kind and row indices of a candidate. Deterministic in (seed, number)."""
        kinds = self._kinds(answers)
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
