"""The two sides of a trace, the same for exports, `sync` and scorers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judgesmith.conversation import parsed, rendered


@dataclass(frozen=True, slots=True)
class Side:
    """The input or the output of a trace.

    parts: names of several that could each be meant, of which `value` has all.
    """

    value: Any
    context: Any = None
    parts: tuple[str, ...] = ()


def trace_input(value: Any) -> Side:
    """Return the input of a trace.

    It is a conversation if there is one, the part called `source`, or the only one; passages beside it are context.
    """
    value = parsed(value)
    if not isinstance(value, Mapping) or rendered(value) is not None:
        return Side(value)
    context = value.get("context") if len(value) > 1 else None
    if context is not None:
        value = {name: part for name, part in value.items() if name != "context"}
    return _side(value, "source", context)


def trace_output(value: Any) -> Side:
    """Return the output of a trace: an answer or a conversation, the part called `output`, or the only one."""
    value = parsed(value)
    if not isinstance(value, Mapping) or rendered(value) is not None:
        return Side(value)
    return _side(value, "output", None)


def _side(value: Mapping[str, Any], usual: str, context: Any) -> Side:
    if usual in value:
        return Side(value[usual], context)
    if len(value) == 1:
        return Side(next(iter(value.values())), context)
    return Side(dict(value) or None, context, tuple(map(str, value)))
