"""What people and spreadsheet programs put around rows, and cells of CSV files that a spreadsheet would run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from judgesmith.errors import LabelsError

#: A number as a text.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
#: What a spreadsheet takes for a formula's beginning (OWASP, CSV injection), behind apostrophes of ours or of the text.
#: Blanks before it are skipped by some programs.
_FORMULA = re.compile(r"'*[\s\x00]*[=+\-@\t\r\n＝＋－＠]")
#: Where a program of another country, or with other habits, ends a cell, in quotes or not, and a formula may begin.
_SPLITS = r"[;|\t\r\n\x0b\x0c\x85\u2028\u2029]"
_BEHIND = r"(?=(?:[\"'\x00]|[^\S\t\r\n\x0b\x0c\x85\u2028\u2029])*[=+\-@＝＋－＠])"
_INSIDE = re.compile(f"({_SPLITS}){_BEHIND}")
_GUARDED = re.compile(f"({_SPLITS})'{_BEHIND}")


def describing(rows: Sequence[Sequence[Any]]) -> int:
    """Return how many of the rows below a header describe its columns, as Qualtrics has it: texts, then import ids."""
    for number, row in enumerate(rows[:2], 1):
        cells = [cell for cell in row if cell not in ("", None)]
        ids = [cell for cell in cells if str(cell).lstrip().startswith('{"ImportId"')]
        if ids and len(ids) * 2 >= len(cells):
            return number
    return 0


def unique(header: list[str], origin: str) -> list[str]:
    """Return the header itself.

    Raises:
        LabelsError: If two columns have one name.
    """
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice is not None:
        raise LabelsError(
            f"{origin}: column {twice!r} appears twice in the header; rename one of them"
        )
    return header


def guarded(cell: Any) -> Any:
    """Return a cell that no spreadsheet runs, whatever separates its cells.

    A text that begins like a formula gets an apostrophe in front, and one behind each semicolon, bar, tab or line break
    that a formula may follow. Numbers, also those written as text, stay.
    """
    if not isinstance(cell, str) or NUMBER.fullmatch(cell):
        return cell
    cell = _INSIDE.sub(r"\1'", cell)
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unguarded(cell: str) -> str:
    """Return the text that `guarded` was given."""
    cell = cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
    return _GUARDED.sub(r"\1", cell)
