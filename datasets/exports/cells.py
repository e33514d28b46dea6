"""Cells of exports, in which everything may be missing, or be JSON as a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judgesmith.conversation import parsed


def is_there(value: Any) -> bool:
    """Return False for nothing, an empty text, list or object, and NaN."""
    if isinstance(value, list | Mapping):
        return bool(value)
    return value is not None and value == value and value != ""


def single(value: Any) -> Any:
    """Return the item of a list of one; None for NaN."""
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    return value if is_there(value) else None


def first(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first cell of these that says something; None without one."""
    cells = (record.get(name) for name in names)
    return next(filter(is_there, cells), None)


def an_object(value: Any) -> Mapping[str, Any]:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def parsed_object(value: Any) -> Mapping[str, Any]:
    """Return an object, which may be JSON; an empty one for anything else."""
    return an_object(parsed(value))


def listed(value: Any) -> list[Any]:
    """Return a list, which may be JSON; of any other value one with it, of nothing an empty one."""
    value = parsed(value)
    if isinstance(value, list | tuple):
        return list(value)
    return [value] if is_there(value) else []


def objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a list, which may be JSON."""
    return [item for item in listed(value) if isinstance(item, Mapping)]


def in_time(items: Sequence[Mapping[str, Any]], *keys: str) -> list[Mapping[str, Any]]:
    """Return the items from the first to the last, by the first of these keys that all of them have."""
    for key in keys:
        if all(is_there(item.get(key)) for item in items):
            return sorted(items, key=lambda item: _moment(item[key]))
    return list(items)


def _moment(value: Any) -> tuple[float, str]:
    return (float(value), "") if isinstance(value, int | float) else (0.0, str(value))
