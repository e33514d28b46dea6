"""Numbers and names read from the examples and predictions of any DSPy program, and results turned into JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from judgesmith.errors import OptionError

#: A field's name, or a function of the example or prediction.
Field = str | Callable[[Any], Any]

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def value_of(field: Field, thing: Any) -> Any:
    """Return the value of a field of an example or prediction.

    Raises:
        OptionError: If there is no such field.
    """
    if not isinstance(field, str):
        return field(thing)
    value = thing.get(field) if hasattr(thing, "get") else getattr(thing, field, None)
    if value is None:
        if hasattr(thing, "keys"):
            names = ", ".join(thing.keys())
        else:
            names = type(thing).__name__
        raise OptionError(
            f"there is no field {field!r}, only {names}; name fields with score_of=, human_of=, group_of="
        )
    return value


def number(field: Field, thing: Any, role: str = "predicted") -> float:
    """Return a finite number; of a predicted text the only one in it, NaN if there is none.

    Raises:
        OptionError: If a human score is not a finite number.
    """
    try:
        value = value_of(field, thing)
        read = _only(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, AttributeError, KeyError):
        read = math.nan
    if role == "human" and not math.isfinite(read):
        raise OptionError(
            f"the human score of a row is not a number: {str(thing)[:120]}"
        )
    return read if math.isfinite(read) else math.nan


def _only(text: str) -> float:
    result = {float(n) for n in _NUMBER.findall(text)}
    return result.pop() if len(result) == 1 else math.nan


def text_of(field: Field, thing: Any) -> str:
    """Return the value of a field as text."""
    return str(value_of(field, thing))


def json_values(value: Any) -> Any:
    """Return plain JSON types at any depth: numbers of at most six decimals, None for NaN and infinity."""
    if isinstance(value, dict):
        return {key: json_values(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(inner) for inner in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
