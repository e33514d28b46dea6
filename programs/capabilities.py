"""What some judges can do and others cannot.

Callers ask for a capability (`isinstance(judge, InfersTask)`); a judge has it by having its methods. What a judge fits
after a search is `refining.Refinable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

from .active_critic.task import Inference, Labelled, TaskInference
from .models.lm import LanguageModel


@runtime_checkable
class InfersTask(Protocol):
    """A judge that learns from labelled rows what is judged and by which criteria."""

    def infers(self) -> bool:
        """Whether something is left to be inferred, since neither the user nor its options say it."""

    async def infer(
        self,
        rows: Sequence[Labelled],
        lm: LanguageModel,
        inference: TaskInference,
        progress: Callable[[str], None] | None = None,
    ) -> Inference:
        """Read labelled rows, in their order, and fill `knowledge`; what the user gave stays. Raises OptionError where
        the model gave nothing that can be read and the method needs it."""

    def without_inferred(self) -> Self | None:
        """A copy whose prompts leave out what was inferred; None where that is not to be tried."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of answers that compiling tries: the values of some options."""

    values: Mapping[str, Any]


@runtime_checkable
class HasForms(Protocol):
    """A judge with several forms of answers, of which compiling takes the one that agrees best."""

    def forms(self, *, logprobs: bool) -> list[Form]:
        """The forms to be tried, the preferred one first (equal Q keeps it). logprobs: whether the model gives
        log-probabilities. Raises OptionError for a form that needs them and cannot have them."""

    def dearer(self) -> Mapping[str, Any]:
        """What is tried on top of the best form at more calls a row, and taken where it agrees clearly better; nothing
        where there is no such thing."""

    def settle(self, **form: Any) -> None:
        """Fix the form of answers: `Form.values`."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a search may choose of a judge beside its demonstrations: a name and its values, the judge's own first.

    when: other choices' names, each with the values under which this one has an effect. It is to be made only where
    every one of these choices that was made has such a value.
    """

    name: str
    values: tuple[Any, ...]
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def open(self, made: Mapping[str, Any]) -> bool:
        """Whether there is something to choose after these choices."""
        return all(name not in made or made[name] in values for name, values in self.when.items())


@runtime_checkable
class HasChoices(Protocol):
    """A judge of which a search may choose more than demonstrations."""

    def search_space(self, *, variants: Sequence[str] = ()) -> list[Choice]:
        """The choices in the order in which they are to be made. variants: those that are to be tried beside the
        judge's own, where the method has such."""

    def with_choices(self, made: Mapping[str, Any]) -> Self:
        """A copy without demonstrations, with the values that a search took of its `search_space`, by name."""

    def most_calls_per_row(self, *, variants: Sequence[str] = ()) -> int:
        """`calls_per_row` at most, whatever is chosen."""
