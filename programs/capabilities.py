"""Protocols: what some methods of judging can do and others cannot.

A method has a capability by having its members. Callers ask for it by the functions here: of a method that is composed
of others, these answer for all of them. What is fitted after a search is `refining.Refinable`.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Protocol,
    Self,
    runtime_checkable,
)

from judgesmith.parts import Options
from judgesmith.programs.active_critic.task import Inference, Inquiry
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.signatures.values import Item, Opinion, Passes, Verdict

if TYPE_CHECKING:
    from judgesmith.programs.readings.bindings.columns import Column


#: Rows that are read together, so that what they begin with is read once.
TOGETHER = 16


@runtime_checkable
class Composed(Protocol):
    """A method that judges by other methods."""

    def members(self) -> Sequence[Any]:
        """Return these methods."""


def members_of(method: Any) -> Sequence[Any]:
    """Return the methods that a method judges by: of one that is not composed, itself."""
    return method.members() if isinstance(method, Composed) else (method,)


@runtime_checkable
class Learns(Protocol):
    """A method with something that compiling fits beside its options."""

    #: What is fitted, as a saved judge holds it: by key, None where nothing was fitted.
    Fitted: ClassVar[type[Options]]

    def fitted(self) -> dict[str, Any]:
        """Return what was fitted, by the keys of `Fitted`, as JSON numbers; nothing where nothing was."""

    def load_fitted(self, name: str, data: Any) -> None:
        """Take fitted data: JSON values as `fitted` gives them.

        Raises:
            OptionError: For data that does not fit.
        """


def fitted_of(method: Any) -> dict[str, Any]:
    """Return what was fitted to a method, {} where it learns nothing."""
    return method.fitted() if isinstance(method, Learns) else {}


@runtime_checkable
class UsesModels(Protocol):
    """A method that uses models beside the judge's own."""

    def models(self) -> tuple[str, ...]:
        """Return their names, to be fetched or shown."""

    def connect(self, connection: Connection | None) -> None:
        """Take the way to reach them; never from an artifact."""


def models_of(method: Any) -> tuple[str, ...]:
    """Return the names of the models that a method uses beside the judge's own."""
    every = [member.models() for member in _users(method)]
    return tuple(dict.fromkeys(chain.from_iterable(every)))


def connect_models(method: Any, connection: Connection | None) -> None:
    """Give a method the way to reach the models that it uses beside the judge's own."""
    for member in _users(method):
        member.connect(connection)


@runtime_checkable
class HearsSeveral(Protocol):
    """A method that hears members, and whose verdicts hold their opinions by name."""

    #: The members that it asks no more.
    silent: tuple[str, ...]


def silent_members(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """Return the members of a method that scored none of some rows, and why; none where no member scored any."""
    heard: dict[str, list[Opinion]] = {}
    for verdict in verdicts:
        for name, opinion in verdict.opinions.items():
            heard.setdefault(name, []).append(opinion)
    silent = dict[str, str]()
    for name, opinions in heard.items():
        if all(math.isnan(opinion.percent) for opinion in opinions):
            why = opinions[0].failure or "no score"
            silent[name] = f"it scored none of {len(opinions)} rows ({why})"
    return silent if len(silent) < len(heard) else {}


def ask_all(method: Any) -> None:
    """Let a method ask all of its members, those too that an earlier compilation left out."""
    for member in members_of(method):
        if isinstance(member, HearsSeveral):
            member.silent = ()


def leave_out(method: Any, names: Iterable[str]) -> None:
    """Let a method ask these of its members no more."""
    for member in members_of(method):
        if isinstance(member, HearsSeveral):
            member.silent = (*member.silent, *names)


def _users(method: Any) -> list[UsesModels]:
    return [member for member in members_of(method) if isinstance(member, UsesModels)]


@runtime_checkable
class ReadsRows(Protocol):
    """A method whose model reads rows without being asked: likelihoods, states, and columns of the user's file."""

    def reads(self) -> tuple[str, ...]:
        """Return those of `models` that answer no call: their weights are read in this process."""

    def passes(self, item: Item) -> Passes:
        """Return what its model reads of a row beside the calls, about. No model is opened."""

    def read_as(self, item: Item) -> Hashable:
        """Return what tells its reading of a row from another method's: equal ones need one pass."""

    def columns(self) -> tuple[Column, ...]:
        """Return the columns of a row that it weighs."""

    def without_model(self) -> bool:
        """Prepare to judge without any model; return whether it can."""

    def take_columns(self, columns: Sequence[Column]) -> None:
        """Weigh its columns on these scales."""

    def begin(self, lm: Callable[[], LanguageModel]) -> None:
        """Prepare to score without labels, by experience.

        Args:
            lm: Looks the judge's model up.

        Raises:
            ModelError: For an unusable model.
        """


def read_by(method: Any) -> tuple[str, ...]:
    """Return the names of the models whose weights a method reads in this process."""
    every = [reader.reads() for reader in _readers(method)]
    return tuple(dict.fromkeys(chain.from_iterable(every)))


def _readers(method: Any) -> list[ReadsRows]:
    return [member for member in members_of(method) if isinstance(member, ReadsRows)]


def without_model(method: Any) -> bool:
    """Prepare a method to judge without any model; return whether it can."""
    free = [
        isinstance(member, ReadsRows) and member.without_model()
        for member in members_of(method)
    ]
    return all(free)


def passes_of(method: Any, item: Item) -> Passes:
    """Return what a method's model reads of a row beside the calls: once for members that read the same."""
    passes = {reader.read_as(item): reader.passes(item) for reader in _readers(method)}
    return sum(passes.values(), Passes())


def passes_over(method: Any, rows: Iterable[Item]) -> Passes:
    """Return what a method's model reads of rows, about; what rows together begin with is read once."""
    total = Passes()
    for row, again in with_source_again(rows):
        passes = passes_of(method, row)
        if again and passes.count == 1:
            passes = passes_of(method, replace(row, source="", context=None))
        total += passes
    return total


def with_source_again(rows: Iterable[Item]) -> Iterator[tuple[Item, bool]]:
    """Yield rows, each with whether one of the few before it has the same source and context."""
    before = deque[tuple[str, str | None]](maxlen=TOGETHER)
    for row in rows:
        yield row, (row.source, row.context) in before
        before.append((row.source, row.context))


def weigh_columns(method: Any, columns: Sequence[Column]) -> None:
    """Let a method weigh its columns on these scales; each member takes its own."""
    for reader in _readers(method):
        own = {column.name for column in reader.columns()}
        reader.take_columns([column for column in columns if column.name in own])


def begin(method: Any, lm: Callable[[], LanguageModel]) -> None:
    """Prepare a method to score without labels, where experience says how; see `ReadsRows.begin`."""
    for reader in _readers(method):
        reader.begin(lm)


def answering(method: Any, own: str) -> tuple[str, ...]:
    """Return the names of the models that answer a method's calls, the judge's own first."""
    read = read_by(method)
    return tuple(
        dict.fromkeys([own, *(name for name in models_of(method) if name not in read)])
    )


@runtime_checkable
class RanksDocuments(Protocol):
    """A method that ranks the outputs of a document: a score depends on the other outputs."""

    async def rank(
        self, items: Sequence[Item], lm: LanguageModel, slots: asyncio.Semaphore
    ) -> list[Verdict]:
        """Return verdicts on the outputs of one document.

        Args:
            items: The outputs.
            lm: The model.
            slots: Limits the comparisons under way at once.
        """


def ranks_documents(method: Any) -> bool:
    """Return whether a method is `RanksDocuments`, without the look at a protocol, which takes a row's time."""
    return hasattr(type(method), "rank")


@runtime_checkable
class HasFiles(Protocol):
    """A method with files beside the saved judge."""

    def located(self, path: Path) -> None:
        """Take the file that the judge was loaded from or saved to."""


def locate(method: Any, path: Path) -> None:
    """Tell a method the file that its judge was loaded from or saved to, if it has files beside it."""
    for member in members_of(method):
        if isinstance(member, HasFiles):
            member.located(path)


@runtime_checkable
class StopsEarly(Protocol):
    """A method that can leave out explanations which do not change the score, for searches."""

    def set_brief(self, on: bool) -> None:
        """Switch such explanations off or on."""

    def stops_early(self) -> bool:
        """Return whether brief answers leave out what a demonstration would show."""


def set_brief(method: Any, on: bool) -> None:
    """Leave out of a method's answers what does not change the score, where it can do so."""
    if isinstance(method, StopsEarly):
        method.set_brief(on)


def stops_early(method: Any) -> bool:
    """Return whether brief answers of a method leave out what a demonstration would show."""
    return isinstance(method, StopsEarly) and method.stops_early()


@runtime_checkable
class InfersTask(Protocol):
    """A method that learns from labelled rows what is judged and by which criteria."""

    def inquiry(self) -> Inquiry | None:
        """Return what is left to be inferred; None where the user or the options state it all."""

    def learn(self, inferred: Inference, lm: LanguageModel) -> None:
        """Fill `knowledge` by what was inferred; the user's own words stay.

        Raises:
            OptionError: If the model gave nothing readable and the method needs it.
        """

    def without_inferred(self) -> Self | None:
        """Return a copy whose prompts leave out the inferred words; None if that is not to be tried."""


def inquiry_of(method: Any) -> Inquiry | None:
    """Return what a method is still to infer from labels; None for nothing."""
    return method.inquiry() if isinstance(method, InfersTask) else None


#: What is said of the values of an option that compiling tries; of others the option's name and value.
_IN_WORDS = {
    "explain": {
        "before": "explained before the score",
        "after": "explained after the score",
        "none": "without explanation",
    },
    "reading": {"said": "the stated number", "expected": "the expected digit"},
    "variant": {"fine": "each criterion scored first (variant fine)"},
}


def options_in_words(values: Mapping[str, Any]) -> str:
    """Return options with their values, as messages name them.

    >>> options_in_words({"explain": "before", "material": "context"})
    'explained before the score, material context'
    """
    return ", ".join(
        _IN_WORDS.get(name, {}).get(str(value), f"{name} {value}")
        for name, value in values.items()
    )


@dataclass(frozen=True, slots=True)
class Form:
    """A form of answers that compiling tries: the values of some options."""

    values: Mapping[str, Any]


@runtime_checkable
class HasForms(Protocol):
    """A method with several forms of answers, of which compiling takes the one that agrees best."""

    def forms(self, *, logprobs: bool, model: str = "the model") -> list[Form]:
        """Return the forms to be tried, the preferred one first (equal Q keeps it).

        Args:
            logprobs: True if the model gives log-probabilities.
            model: The model's name, for messages.

        Raises:
            OptionError: For a form that needs them and cannot have them.
        """

    def dearer(self) -> Mapping[str, Any]:
        """Return options to try on top of the best form at more calls a row; empty by default.

        They are kept only if they agree clearly better.
        """

    def settle(self, **form: Any) -> None:
        """Fix the form of answers: `Form.values`."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice that a search may make beside demonstrations: a name and its values, the judge's own first.

    when: other choices' names, each with the values under which this one has an effect. It is to be made only where
    every one of these choices that was made has such a value.
    """

    name: str
    values: tuple[Any, ...]
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def open(self, taken: Mapping[str, Any]) -> bool:
        """Return True if there is something to choose after these choices."""
        return all(
            name not in taken or taken[name] in values
            for name, values in self.when.items()
        )


class Choices(Protocol):
    """What a search may choose of one method beside its demonstrations."""

    def space(self) -> list[Choice]:
        """Return the choices in the order in which they are to be made."""

    def chosen(self, values: Mapping[str, Any]) -> Any:
        """Return a copy of the method without demonstrations, with the values that a search took, by name."""

    def most_calls_per_row(self) -> int:
        """Return `Cost.calls_per_row` at most, whatever is chosen."""


@runtime_checkable
class HasChoices(Protocol):
    """A method of which a search may choose more than demonstrations."""

    def choices(self, *, variants: Sequence[str] = ()) -> Choices:
        """Return what may be chosen of it as it is now.

        Args:
            variants: Variants to try beside the judge's own, if the method has such.
        """
