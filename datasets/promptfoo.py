"""Tables of promptfoo: outputs under "[provider] prompt", each behind the verdict of its assertions."""

from __future__ import annotations

import re

_COLUMN = re.compile(r"\[[^\[\]]+\] .+", re.DOTALL)
_VERDICT = re.compile(r"\[(PASS|FAIL|ERROR)\](?:\s*\(-?[\d.]+\))?\s*")
#: Between why an assertion failed and the output.
_REASON_END = "\n---\n"


def holds_outputs(name: str) -> bool:
    """Return True if a column's name is that of outputs: a provider in brackets, and its prompt."""
    return _COLUMN.fullmatch(name) is not None


def output_of(cell: str) -> str:
    """Return the output of a cell, without its verdict; "" for an error in place of one."""
    verdict = _VERDICT.match(cell)
    if verdict is None:
        return cell
    rest = cell[verdict.end() :]
    return "" if verdict[1] == "ERROR" else rest.rpartition(_REASON_END)[2]
