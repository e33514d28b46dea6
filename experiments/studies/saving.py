"""A table of results as JSON: what `python docs/tables.py` writes into experiments/results/*.md."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judgesmith.tables import Table


def save(
    folder: Path | None,
    name: str,
    columns: Mapping[str, str],
    rows: Sequence[Sequence[Any]],
    *,
    commands: Sequence[str],
    **about: str | int,
) -> None:
    """Write `folder/name.json`; nothing without a folder.

    Args:
        folder: The folder.
        name: The table's name.
        columns: Titles with the format of their numbers, such as "{:.2f} [{:.2f}, {:.2f}]".
        rows: A cell a column, which is a text, a number, the numbers of one format, or None for none; NaN is None.
        commands: The commands that were run.
        **about: Further facts: model, seed, notes.
    """
    if folder is None:
        return
    if wrong := [row for row in rows if len(row) != len(columns)]:
        raise ValueError(
            f"{name}: a row of {len(wrong[0])} cells for {len(columns)} columns"
        )
    head = {
        "commands": list(commands),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {one: version(one) for one in ("judgesmith", "numpy", "scipy")},
        **about,
        "columns": dict(columns),
    }
    lines = ",\n  ".join(
        json.dumps(_plain(row), ensure_ascii=False, allow_nan=False) for row in rows
    )
    text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(
        f'{text},\n "rows": [\n  {lines}\n ]\n}}\n', encoding="utf-8"
    )


#: Columns and rows.
Saved = tuple[Mapping[str, str], Sequence[Sequence[Any]]]


def save_all(
    folder: Path, tables: Mapping[str, Saved], command: str, **about: str | int
) -> None:
    """Write tables of one command: columns and rows by name."""
    for name, (columns, rows) in tables.items():
        save(folder, name, columns, rows, commands=[command], **about)


def shown(
    title: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]
) -> Table:
    """Return columns and rows, as they are saved, for a terminal."""
    from judgesmith.tables import Table

    table = Table(list(columns), title)
    for row in rows:
        table.add(*map(_cell, row, columns.values()))
    return table


def _cell(value: Any, form: str) -> str:
    if value is None:
        return "–"
    parts = value if isinstance(value, list) else [value]
    return form.format(*parts) if form else str(value)


def _plain(value: Any) -> Any:
    """Lists, texts, None and Python's numbers of six digits."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, Sequence):
        return [_plain(part) for part in value]
    number = float(value)
    if math.isnan(number):
        return None
    if number.is_integer() and not isinstance(value, float):
        return int(number)
    return float(f"{number:.6g}")
