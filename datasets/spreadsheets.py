"""Texts in CSV files that people open in a spreadsheet, which runs a cell that begins like a formula."""

from __future__ import annotations

import re
from typing import Any

#: What a spreadsheet takes for a formula's beginning (OWASP, CSV injection), behind apostrophes of ours or of the text.
#: Blanks before it are skipped by some programs.
_FORMULA = re.compile(r"'*[\s\x00]*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


def guarded(cell: Any) -> Any:
    """A cell that no spreadsheet runs: a text that begins like a formula gets an apostrophe in front; numbers, also
    those written as text, stay."""
    runs = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if runs else cell


def unguarded(cell: str) -> str:
    """The text that `guarded` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
