"""Choices that a search may make of Active-Critic: its variant, and whether task and criteria are in the prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from judgesmith.programs.active_critic.task import TaskKnowledge
from judgesmith.programs.capabilities import Choice, HasForms
from judgesmith.programs.method import Method

#: Up to this number, a search decides for each criterion whether it is in the prompt; longer lists stay whole.
MOST_CRITERIA = 12
#: The method.
Critic = TypeVar("Critic", bound=Method)


class CriticChoices(Generic[Critic]):
    """The choices of one critic; see `capabilities.Choices`.

    Args:
        critic: The method, which stays as it is.
        own: Its variant, or the one that it begins with.
        others: The variants to try beside its own.
    """

    def __init__(self, critic: Critic, own: str, others: Sequence[str]) -> None:
        self._critic = critic
        self._own = own
        criteria = critic.options.use_criteria
        self._others = [
            name for name in others if name != own and (name != "fine" or criteria)
        ]

    def most_calls_per_row(self) -> int:
        """Return the calls a row at most, whatever variant a search takes."""
        critics = (self._critic, *map(self._as_variant, self._others))
        return max(critic.cost().calls_per_row for critic in critics)

    def space(self) -> list[Choice]:
        """Return the choices: variant, task and criteria in the prompt or not, and which of the criteria."""
        options = self._critic.options
        knowledge = self._critic.knowledge
        space = list[Choice]()
        # Without a task and criteria the variants have one prompt.
        tried = [self._own, *(self._others if knowledge.criteria else [])]
        if len(tried) > 1:
            space.append(Choice("variant", tuple(tried)))
        informed = tuple(name for name in tried if name != "vanilla")
        if not informed:
            return space
        when = {"variant": informed}
        if options.use_task and knowledge.description:
            space.append(Choice("use_task", (True, False), when))
        if not options.use_criteria or not knowledge.criteria:
            return space
        if "coarse" in informed:
            space.append(
                Choice("use_criteria", (True, False), {"variant": ("coarse",)})
            )
        if 1 < len(knowledge.criteria) <= MOST_CRITERIA:
            shown = when | {"use_criteria": (True,)}
            names = (f"criterion {i}" for i in range(1, len(knowledge.criteria) + 1))
            space += [Choice(name, (True, False), shown) for name in names]
        return space

    def chosen(self, values: Mapping[str, Any]) -> Critic:
        """Return a copy with these choices. If all criteria are left out one by one, the first of them stays."""
        variant = values.get("variant", self._critic.options.variant)
        if variant == self._critic.options.variant:
            critic = self._critic.with_()
        else:
            critic = self._as_variant(variant)
        uses = ("use_task", "use_criteria")
        critic.choose(**{name: values[name] for name in uses if name in values})
        knowledge = critic.knowledge
        criteria = [
            criterion
            for number, criterion in enumerate(knowledge.criteria, start=1)
            if values.get(f"criterion {number}", True)
        ]
        if len(criteria) < len(knowledge.criteria):
            critic.knowledge = TaskKnowledge(
                knowledge.description, criteria or knowledge.criteria[:1]
            )
        return critic

    def _as_variant(self, variant: str) -> Critic:
        """Return the same method as another variant, without demonstrations.

        Parts that only the fine variant has are dropped.
        """
        combine = self._critic.options.combine if variant == "fine" else "os-e"
        critic = self._critic.with_(variant=variant, combine=combine)
        if isinstance(critic, HasForms):
            critic.settle(variant=variant)  # weights that were fitted go
        for predictor in critic.predictors():
            predictor.demos = []
        return critic
