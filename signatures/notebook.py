"""What notebooks show of an object: tables in which no text is markup."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

#: Control characters and what turns the direction of a line.
_ACTS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def facts(rows: Iterable[tuple[str, Any]]) -> str:
    """Names beside values as an HTML table; values are escaped texts."""
    cells = "".join(f'<tr><th style="text-align:left">{_told(name)}</th>{_cell(value)}</tr>' for name, value in rows)
    return _boxed(f"<table>{cells}</table>")


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """Rows below their header as an HTML table; the first cell of a row is its name."""
    above = f'<caption style="text-align:left">{_told(caption)}</caption>' if caption else ""
    titles = "".join(f"<th>{_told(title)}</th>" for title in head)
    body = "".join(
        f'<tr><th style="text-align:left">{_told(row[0])}</th>{"".join(map(_cell, row[1:]))}</tr>' for row in rows
    )
    return _boxed(f"<table>{above}<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>")


def shortened(text: str, most: int = 60) -> str:
    """A text on one line; `most`: its characters at most."""
    text = " ".join(_ACTS.sub("\ufffd", text).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _told(value: Any) -> str:
    return html.escape(_ACTS.sub("\ufffd", str(value)))


def _boxed(table: str) -> str:
    """A wide table scrolls by itself, not with the page around it."""
    return f'<div style="overflow-x:auto" tabindex="0">{table}</div>'


def _cell(value: Any) -> str:
    return f'<td style="text-align:left">{_told(value)}</td>'
