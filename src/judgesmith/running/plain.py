"""Texts of unknown origin on their way to people: nothing in them acts on what shows them."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO, cast

#: Control characters, lone surrogates, and what turns the direction of a line.
_ACTS = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069"
#: What else a terminal obeys or does not show. The joiners U+200C and U+200D stay: Persian, Hindi and emoji need them.
_HIDDEN = (
    r"\r\xad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f"
)
_IN_A_PAGE = re.compile(f"[{_ACTS}]")
_ON_A_TERMINAL = re.compile(f"[{_ACTS}{_HIDDEN}]")


def clean(words: str) -> str:
    """A text for a page or a figure, without characters that do something: they become U+FFFD."""
    return _IN_A_PAGE.sub("\ufffd", words)


def shown(words: str) -> str:
    """A text for a terminal: of control and format characters only line breaks, tabs and joiners stay; the others
    become U+FFFD."""
    return _ON_A_TERMINAL.sub("\ufffd", words.replace("\r\n", "\n"))


def one_line(words: str) -> str:
    return " ".join(shown(words).split())


class ShownStream:
    """A text stream to which only what `shown` lets through is written. What renders its own escapes, and has cleaned
    what it shows, writes to `beneath`."""

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
    does not have is escaped."""
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
    return _ON_A_TERMINAL.sub(_escaped, made)


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
