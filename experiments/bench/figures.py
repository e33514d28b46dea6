"""What a bench found: printed for people or machines, and kept as tables that pages of results show."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: The tables that `python docs/tables.py` writes into experiments/results/*.md.
DATA = ROOT / "experiments/results/data"


def show(found: Mapping[str, Any], *, as_json: bool) -> None:
    """One JSON object, or a line for each figure."""
    print(json.dumps(found) if as_json else "\n".join(f"{name:16} {value}" for name, value in found.items()))


def cell_text(value: Any, form: str) -> str:
    """A cell in its column's format, for a terminal; – where there is no value."""
    if value is None or isinstance(value, str):
        return value or "–"
    parts = value if isinstance(value, Sequence) else [value]
    return (form or "{}").format(*parts) if all(part is not None for part in parts) else "–"


def show_table(columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> None:
    """The table that `save` would keep, in columns of a terminal."""
    cells = [list(columns), *([cell_text(v, f) for v, f in zip(row, columns.values(), strict=True)] for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    for line in cells:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def add_save(parser: argparse.ArgumentParser) -> None:
    """`--save [FOLDER]`."""
    parser.add_argument(
        "--save", nargs="?", const=DATA, type=Path, metavar="FOLDER",
        help="keep the tables as JSON here; without FOLDER in experiments/results/data, whose tables pages show",
    )  # fmt: skip


def command(words: Sequence[str] | None = None) -> str:
    """This process's command, or another one, without --save and without folders of this machine."""
    if words is None:
        script = Path(sys.argv[0]).resolve()
        words = ["python", str(script.relative_to(ROOT)) if script.is_relative_to(ROOT) else script.name, *sys.argv[1:]]
        words = words[: words.index("--save")] if "--save" in words else words
    return shlex.join(Path(word).name if Path(word).is_absolute() else word for word in words)


def save(
    folder: Path | None,
    name: str,
    columns: Mapping[str, str],
    rows: Sequence[Sequence[Any]],
    *,
    commands: Sequence[str] = (),
    **about: str | int,
) -> None:
    """Write `folder/name.json`; nothing without a folder.

    columns: titles with the format of their numbers, such as "{:.2f} [{:.2f}, {:.2f}]". rows: a cell a column, which is
    a text, a number, the numbers of one format, or None where there is none; NaN is None. commands: what was run, this
    process's own by default. about: model, seed, notes.
    """
    if folder is None:
        return
    if wrong := [row for row in rows if len(row) != len(columns)]:
        raise ValueError(f"{name}: a row of {len(wrong[0])} cells for {len(columns)} columns")
    head = {
        "commands": list(commands) or [command()],
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {one: version(one) for one in ("judgesmith", "numpy", "scipy")},
        **about,
        "columns": dict(columns),
    }
    lines = ",\n  ".join(json.dumps(_plain(row), ensure_ascii=False, allow_nan=False) for row in rows)
    text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(f'{text},\n "rows": [\n  {lines}\n ]\n}}\n', encoding="utf-8")


def _plain(value: Any) -> Any:
    """Lists, texts, None and Python's numbers of six digits."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, Sequence):
        return [_plain(part) for part in value]
    number = float(value)
    if math.isnan(number):
        return None
    return int(number) if number.is_integer() and not isinstance(value, float) else float(f"{number:.6g}")
