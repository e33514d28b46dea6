"""Criteria that a panel learns from labels, in the place of its aspect's definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from judgesmith.errors import OptionError
from judgesmith.parts import option
from judgesmith.programs.active_critic.task import Inference, Inquiry
from judgesmith.programs.aspects import GENERAL, Aspect, aspects
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.one_aspect import OneAspect
from judgesmith.signatures.values import Criterion


class LearnsCriteria(OneAspect):
    """Base of a method whose option `infer` has the criteria inferred from labels; see `capabilities.InfersTask`."""

    class Options(OneAspect.Options):
        infer: bool = option(
            False,
            "Learn from the labels first by which criteria people judged, as active-critic does, and what the task is "
            "where nothing says it: calls once, none a row. Every member then judges by them.",
            added=True,
        )

    options: Options

    def __init__(
        self,
        aspect: str | Aspect = "overall",
        *,
        criteria: Sequence[Criterion] = (),
        **options: Any,
    ) -> None:
        super().__init__(aspect, criteria=criteria, **options)
        self._stated = tuple(one.name for one in criteria if one.definition)
        self._check_one_source()

    def choose(self, **options: Any) -> None:
        """Change options; see `Method.choose`.

        Raises:
            OptionError: For unknown options, and if stated criteria would be inferred.
        """
        super().choose(**options)
        self._check_one_source()

    def _check_one_source(self) -> None:
        """Raise an OptionError if criteria are stated and to be inferred."""
        if self.options.infer and self._stated:
            raise OptionError(
                f"infer learns the criteria from labels, and criteria={list(self._stated)} states them; give one"
            )

    def inquiry(self) -> Inquiry | None:
        """Return what is to be learnt, until it is."""
        if not self.options.infer:
            return None
        return Inquiry(self.options.aspect, described=not self._described)

    def learn(self, inferred: Inference, lm: LanguageModel) -> None:
        """Judge by what was inferred; where no criterion could be read, the aspect's definition stays."""
        knowledge = self.knowledge
        if inferred.description and not self._described:
            knowledge.description = inferred.description
        knowledge.criteria = inferred.criteria or knowledge.criteria
        self.choose(infer=False)

    @property
    def _described(self) -> bool:
        """Whether the task is described; what the library says of any text describes none."""
        general = self.described(aspects().tasks[GENERAL])
        return self.knowledge.description not in ("", general)

    def without_inferred(self) -> Self | None:
        """Return None: no judge without the inferred words is tried."""
        return None
