"""Texts of unknown origin on their way to people: nothing in them acts on what shows them."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO, cast

from judgesmith.tables import ON_A_TERMINAL, clean, one_line, shown

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
    """A text stream that writes only characters that `shown` lets through.

    A renderer of its own escapes, which has cleaned its text, writes to `beneath`.
    """

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    def write(self, words: str) -> int:
        """Write a text, with harmful characters replaced."""
        self.beneath.write(shown(words))
        return len(words)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


@contextmanager
def shown_streams() -> Iterator[None]:
    """Let `shown` filter all output to stdout and stderr, that of other libraries, too.

    Characters outside the stream's encoding are escaped.
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
    """Return `value` with None for NaN and infinities, at any depth: JSON has no such numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list | tuple) else value


def json_text(value: Any) -> str:
    r"""Return JSON in one line, with `\u` escapes for characters that a terminal would obey or hide."""
    text = json.dumps(finite(value), ensure_ascii=False, allow_nan=False)
    return ON_A_TERMINAL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]
