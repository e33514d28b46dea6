"""Criteria that a panel learns from labels, in the place of its aspect's definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from ...parts import option
from ..active_critic.task import Inference, Labelled, TaskInference
from ..models.lm import LanguageModel
from ..one_aspect import OneAspect
from ..prompting.result import value_of


class LearnsCriteria(OneAspect):
    """Base of a method whose option `infer` has the criteria inferred from labels; see `capabilities.InfersTask`."""

    class Options(OneAspect.Options):
        infer: bool = option(
            False,
            "Learn from the labels first by which criteria people judged, as active-critic does: calls once, none a "
            "row. Every member then judges by them.",
        )

    options: Options

    def infers(self) -> bool:
        """Return True until the criteria that it is to learn are learnt."""
        return self.options.infer

    async def infer(
        self,
        rows: Sequence[Labelled],
        lm: LanguageModel,
        inference: TaskInference,
        progress: Callable[[str], None] | None = None,
    ) -> Inference:
        """Put inferred criteria in the place of the aspect's definition."""
        settings = {
            "aspect": self.options.aspect,
            "progress": progress,
            "described": not self.knowledge.description,
        }
        inferred = value_of(await inference.acall(rows, lm=lm, **settings), Inference)
        self.learn(inferred, lm)
        return inferred

    def learn(self, inferred: Inference, lm: LanguageModel) -> None:
        """Judge by what was inferred; where no criterion could be read, the aspect's definition stays."""
        knowledge = self.knowledge
        knowledge.description = knowledge.description or inferred.description
        knowledge.criteria = inferred.criteria or knowledge.criteria
        self.choose(infer=False)

    def without_inferred(self) -> Self | None:
        """Return None: no judge without the inferred words is tried."""
        return None
