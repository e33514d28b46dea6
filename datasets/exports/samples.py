"""Parts of samples as tools of evaluation write them. A part of another form is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class UnreadableError(ValueError):
    """What a tool writes, but no text that could be judged."""


def verdict(score: Any, reason: Any = None) -> dict[str, Any] | None:
    """Return a judge's verdict; None where it failed.

    Raises:
        ValueError: For a score that is no number and no word.
    """
    if score is None or score != score:
        return None
    if not isinstance(score, int | float | str):
        raise ValueError(f"a score is {shown(score)}")
    return {"score": score} | ({"reason": reason} if reason else {})


def items(value: Any, name: str) -> list[Any]:
    """Return a list, which nothing is empty. Raises ValueError for anything else."""
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{name} is {shown(value)}")
    return value or []


def object_of(value: Any, name: str) -> Mapping[str, Any]:
    """Return an object, which nothing is empty. Raises ValueError for anything else."""
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{name} is {shown(value)}")
    return value or {}


def objects_of(value: Any, name: str) -> list[Mapping[str, Any]]:
    """Return a list of objects, which nothing is empty. Raises ValueError for anything else."""
    return [object_of(item, f"one of {name}") for item in items(value, name)]


def are_objects(value: Any) -> bool:
    """Return True for a list of objects that is not empty."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, Mapping) for item in value)
    )


def text(value: Any) -> str:
    """Return a text as it is, texts below each other, anything else as JSON; nothing is empty."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def content(value: Any) -> str:
    """Return a text, or the texts among the parts of one; pictures and thoughts are none."""
    if not isinstance(value, list):
        return text(value)
    parts = (part.get("text") if isinstance(part, Mapping) else part for part in value)
    return "\n".join(map(text, parts))


def shown(value: Any) -> str:
    """Return the beginning of a value as JSON, for messages."""
    whole = json.dumps(value, ensure_ascii=False)
    return whole if len(whole) <= 60 else f"{whole[:60]}…"
