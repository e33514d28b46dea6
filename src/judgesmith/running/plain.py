"""Texts of unknown origin on their way to people: nothing in them acts on what shows them."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO, cast

from ..tables import ON_A_TERMINAL, clean, one_line, shown

__all__ = [
    "ShownStream",
    "clean",
    "finite",
    "json_text",
    "one_line",
    "shown",
    "shown_streams",
]


class ShownStream:
    """A text stream to which only what `shown` lets through is written.

    What renders its own escapes, and has cleaned what it shows, writes to `beneath`.
    """

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    def write(self, words: str) -> int:
        self.beneath.write(shown(words))
        return len(words)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


@contextmanager
def shown_streams() -> Iterator[None]:
    """Everything that is written to stdout and stderr, by other libraries, too, is `shown`; what the stream's encoding
    does not have is escaped.
    """
    before = sys.stdout, sys.stderr
    for stream in before:
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = (cast(TextIO, ShownStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def finite(value: Any) -> Any:
    """`value` with None for NaN and infinities, at any depth: JSON has no such numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list | tuple) else value


def json_text(value: Any) -> str:
    """JSON in one line, with `\\u` escapes for what a terminal would obey or hide."""
    made = json.dumps(finite(value), ensure_ascii=False, allow_nan=False)
    return ON_A_TERMINAL.sub(_escaped, made)


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]
