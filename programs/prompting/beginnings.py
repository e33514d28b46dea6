"""The beginnings of prompts, which rows share: made once, and again when something changes that they were made of."""

from __future__ import annotations

from collections import ChainMap, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from judgesmith.programs.models.transport import Message

#: Beginnings of a predictor that are kept: one for each choice of demonstrations.
KEPT = 4
_BY_IDENTITY: Any = object.__hash__


class Inputs(Mapping[str, Any]):
    """Inputs of a prompt that remember which of them were read."""

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self._inputs = inputs
        self.read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        self.read[name] = self._inputs.get(name)
        return self._inputs[name]

    def __iter__(self) -> Iterator[str]:
        self.read.update(self._inputs)
        return iter(self._inputs)

    def __len__(self) -> int:
        return len(self._inputs)


def with_wanted(
    inputs: Mapping[str, Any], wanted: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return inputs with what a signature says of its output fields as `wanted`."""
    return ChainMap({"wanted": wanted}, inputs)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Beginning:
    made_of: tuple[Any, ...]
    read: Mapping[str, Any]
    messages: list[Message]

    def serves(self, made_of: tuple[Any, ...], inputs: Mapping[str, Any]) -> bool:
        if self.made_of != made_of:
            return False
        return {name: inputs.get(name) for name in self.read} == self.read


class Beginnings:
    """The latest beginnings of one predictor's prompts. A copy begins with none."""

    def __init__(self) -> None:
        self._recent: deque[_Beginning] = deque(maxlen=KEPT)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()

    def _kept(
        self, parts: tuple[Any, ...], inputs: Mapping[str, Any]
    ) -> _Beginning | None:
        for beginning in self._recent:
            if beginning.serves(parts, inputs):
                return beginning
        return None

    def of(
        self,
        made_of: Sequence[Any],
        demos: Sequence[Mapping[str, Any]],
        inputs: Mapping[str, Any],
        make: Callable[[Mapping[str, Any]], list[Message]],
    ) -> list[Message]:
        """Return `make(inputs)`, or its earlier result for the same demonstrations and the inputs that it read.

        Args:
            made_of: Other things that the messages depend on.
            demos: The demonstrations in them.
            inputs: The fields of a prompt.
            make: Writes the messages.
        """
        listed = [_fixed(p) if type(p) in (dict, list) else p for p in made_of]
        for demo in demos:
            listed.append(tuple(demo))
            listed += demo.values()
        # What is kept holds no list or dictionary: values that equal it as they are cannot have changed in place.
        parts = tuple(listed)
        kept = self._kept(parts, inputs)
        if kept is None:
            parts = tuple(map(_fixed, listed))
            kept = self._kept(parts, inputs)
        if kept is not None:
            return [message.copy() for message in kept.messages]
        seen = Inputs(inputs)
        messages = make(seen)
        if _is_fixed((*parts, *seen.read.values())):
            self._recent.append(_Beginning(parts, seen.read, messages))
        return [message.copy() for message in messages]


def _fixed(value: Any) -> Any:
    """Return a list or a dictionary as a tuple, and everything else as it is."""
    if type(value) is dict:
        return tuple(value.items())
    return tuple(value) if type(value) is list else value


def _is_fixed(values: tuple[Any, ...]) -> bool:
    """Return True if none of the values can change in place.

    All are values, and not objects that are told apart by their identity.
    """
    objects = [
        value
        for value in values
        if type(value).__hash__ is _BY_IDENTITY and value is not None
    ]
    try:
        hash(values)
    except TypeError:
        return False
    return all(isinstance(part, type) for part in objects)
