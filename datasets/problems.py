"""Problems of a file's rows as sentences: what is wrong, in which rows, and how often."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from judgesmith.datasets.row import numbered
from judgesmith.errors import LabelsError

#: A row (from 1), and "column 'NAME': what is wrong".
Problem: TypeAlias = tuple[int, str]

_SHOWN = 5  # problems in one message
_LISTED = 6  # rows in one message
#: What differs between problems of one kind.
_VARYING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\d.]+""")


def by_column(
    origin: str, problems: Iterable[Problem], ids: Mapping[int, str] | None = None
) -> list[str]:
    """Return one sentence for each kind of problem in a column, with the number of its cells.

    Problems of a kind differ in quoted words and numbers alone. ids: of the rows that have one, by number.
    """
    names = ids or {}
    kinds: dict[tuple[str, str], list[Problem]] = {}
    for line, reason in problems:
        column, _, problem = reason.partition(": ")
        kinds.setdefault((column, _VARYING.sub("", problem)), []).append((line, reason))
    result = []
    for cells in kinds.values():
        line, reason = cells[0]
        such = ""
        if len(cells) > 1:
            rows = ""
            if len(cells) <= _LISTED:
                others = (str(names.get(other, other)) for other, _ in cells)
                rows = f": rows {', '.join(others)}"
            such = f" ({len(cells)} such cells{rows})"
        place = numbered(line, names.get(line))
        result.append(f"{origin}, row {place}, {reason}{such}")
    return result


def refuse(problems: Sequence[str], *, has_header: bool) -> None:
    """Raise LabelsError where there are problems."""
    lines = list(problems[:_SHOWN])
    if len(problems) > _SHOWN:
        lines.append(f"... and {len(problems) - _SHOWN} more problems")
    if has_header and any(", row " in line for line in lines):
        lines.append("(rows are counted from 1 without the header)")
    if lines:
        raise LabelsError(*lines)


def by_reason(skipped: Iterable[tuple[int, str]]) -> dict[str, list[int]]:
    """Return rows that were skipped, `(row, reason)` each, by reason in the order given."""
    result: dict[str, list[int]] = {}
    for row, reason in skipped:
        result.setdefault(reason, []).append(row)
    return result


def reasons_in_words(skipped: Mapping[int, str]) -> str:
    """Return why rows were skipped: "no rating: rows 3, 4; the row is empty: row 7"."""
    reasons = by_reason(sorted(skipped.items()))
    each = (f"{reason}: {rows_in_words(lines)}" for reason, lines in reasons.items())
    return "; ".join(each) or "all of them"


def rows_in_words(rows: Sequence[int | str]) -> str:
    """Return `row 3`, `rows HD-3, HD-7` or `12 rows, the first 3`, for numbers or ids of rows."""
    if len(rows) > _LISTED:
        return f"{len(rows)} rows, the first {rows[0]}"
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows))}"
