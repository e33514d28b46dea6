"""Scored rows as a table for spreadsheets."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..datasets.spreadsheets import guarded
from ..errors import OptionError
from ..running.journal import read_journal

#: Columns of the verdict behind the input's own, and of the row; criteria and errors are JSON in one cell.
OF_VERDICT = (
    "judge_score",
    "judge_explanation",
    "judge_failure",
    "judge_repaired",
    "judge_suspicious",
    "judge_partly",
    "judge_category",
    "judge_low",
    "judge_high",
    "judge_criteria",
    "judge_spread",
    "judge_errors",
    "judge_aspect",
)
COLUMNS = (*OF_VERDICT[:4], "judge_seen", "judge_id", "judge", *OF_VERDICT[4:])


def write_csv(scored: Path, output: Path) -> None:
    """Write scored rows (JSON lines) as a table, whole or not at all. Raises OptionError where it cannot be written."""
    own: dict[str, None] = {}
    ours = dict.fromkeys(COLUMNS)
    for _, record in read_journal(scored):
        own |= dict.fromkeys(map(_cell, _own(record)))
        ours |= dict.fromkeys(map(_cell, _ours(record)))
    beside = output.with_name(f".{output.name}.new")
    try:
        # The mark at the beginning tells Excel that this is UTF-8.
        with beside.open("w", encoding="utf-8-sig", newline="", errors="backslashreplace") as file:
            table = csv.DictWriter(file, [*(name for name in own if name not in ours), *ours])
            table.writeheader()
            for _, record in read_journal(scored):
                table.writerow({_cell(name): _cell(value) for name, value in (_own(record) | _ours(record)).items()})
        beside.replace(output)
    except OSError as error:
        raise OptionError(
            f"{output} cannot be written: {error.strerror or error}; the rows are kept in {scored.name}, the same "
            "command resumes from there"
        ) from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _own(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("verdict", "judge", "asked", "seen")}


def _ours(record: Mapping[str, Any]) -> dict[str, Any]:
    verdict = record["verdict"]
    cells = {**verdict, **(verdict.get("interval") or {}), "repaired": "yes" if verdict["repaired"] else ""}
    cells |= {name: verdict[name] or "" for name in ("criteria", "errors")}
    kept = {"judge_columns": verdict["columns"]} if "columns" in verdict else {}
    return (
        kept
        | {column: cells.get(column.removeprefix("judge_")) for column in OF_VERDICT}
        | {
            "judge_seen": "yes" if record.get("seen") else "",
            "judge_id": record["id"],
            "judge": record["judge"],
        }
    )


def _cell(value: Any) -> Any:
    """A value as the cell of a CSV file: objects as JSON, and nothing that a spreadsheet would run."""
    value = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
    return guarded(value)
