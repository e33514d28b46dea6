"""Divide JSON lines where they end: at newlines alone, since a text may hold any other sign that ends a line."""

from __future__ import annotations

from collections.abc import Iterator


def json_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (number from 1, line) of each line that is not blank.

    U+2028, U+2029 and U+0085 stand inside texts, where `str.splitlines` would divide them.
    """
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield number, line
