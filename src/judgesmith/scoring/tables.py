"""Scored rows as tables, for spreadsheets and for what computes on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from judgesmith.datasets.formats import written_as
from judgesmith.errors import OptionError
from judgesmith.programs.atomic import written_whole
from judgesmith.rows import WRITTEN
from judgesmith.running.journal import read_journal
from judgesmith.running.plain import json_text

#: What a run adds to a judge's verdict, where it has it.
ADDED = ("aspect", "columns", "contract")
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
#: Of each aspect, where the judge has several: judge_score_NAME and so on.
OF_ASPECT = (
    "score",
    "explanation",
    "failure",
    "suspicious",
    "partly",
    "category",
    "low",
    "high",
)
_BY_ASPECT = tuple(f"judge_{part}_" for part in OF_ASPECT)
COLUMNS = (*OF_VERDICT[:4], "judge_seen", "judge_id", "judge", *OF_VERDICT[4:])


def write_table(scored: Path, output: Path) -> None:
    """Write scored rows (JSON lines) as a table, whole or not at all.

    Raises:
        OptionError: If it cannot be written.
    """
    form = written_as(output)
    rows = partial(_typed_rows if form.typed else _plain_rows, scored)
    try:
        with written_whole(output) as beside:
            form.write(rows, beside)
    except OSError as error:
        raise OptionError(
            f"{output} cannot be written: {error.strerror or error}; the rows are kept in {scored.name}, the same "
            "command resumes from there"
        ) from None


def _plain_rows(scored: Path) -> Iterator[dict[str, Any]]:
    """Yield the scored rows, each with all columns: the input's own, then those of the verdict."""
    own: dict[str, None] = {}
    ours = dict.fromkeys(COLUMNS)
    for _, record in read_journal(scored):
        own |= dict.fromkeys(_own(record))
        ours |= dict.fromkeys(_ours(record))
    columns = {name: None for name in own if name not in ours} | ours
    for _, record in read_journal(scored):
        yield columns | _own(record) | _ours(record)


def _typed_rows(scored: Path) -> Iterator[dict[str, Any]]:
    for _, record in read_journal(scored):
        yield _own(record) | _typed(record)


def _own(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input's columns, without the scores by aspect that an earlier run wrote behind its own columns."""
    names = list(record)
    behind = names[names.index("judge_id") :] if "judge_id" in record else []
    dropped = {name for name in behind if name.startswith(_BY_ASPECT)}
    dropped.update(WRITTEN)
    return {name: value for name, value in record.items() if name not in dropped}


def _ours(record: Mapping[str, Any]) -> dict[str, Any]:
    verdict = record["verdict"]
    cells = {
        **verdict,
        **(verdict.get("interval") or {}),
        "repaired": "yes" if verdict["repaired"] else "",
    }
    cells |= {name: verdict[name] or "" for name in ("criteria", "errors")}
    columns = {
        f"judge_{part}": verdict[part]
        for part in ADDED
        if part in verdict and f"judge_{part}" not in OF_VERDICT
    }
    if record.get("resembles"):
        columns["judge_resembles"] = "yes"
    return (
        columns
        | {column: cells.get(column.removeprefix("judge_")) for column in OF_VERDICT}
        | {
            "judge_seen": "yes" if record.get("seen") else "",
            "judge_id": record["id"],
            "judge": record["judge"],
        }
        | _by_aspect(verdict)
    )


def _by_aspect(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of each aspect: its score, and the parts of its verdict that are not empty."""
    cells: dict[str, Any] = {}
    for name, one in (verdict.get("aspects") or {}).items():
        values = {**one, **(one.get("interval") or {})}
        parts = {part: values.get(part) for part in OF_ASPECT}
        cells |= {
            f"judge_{part}_{name}": value
            for part, value in parts.items()
            if part == "score" or value not in (None, "", {})
        }
    return cells


def _typed(record: Mapping[str, Any]) -> dict[str, Any]:
    """`_ours`, with truth values as such and all of the verdict beside."""
    verdict = record["verdict"]
    types = {
        "judge_repaired": bool(verdict["repaired"]),
        "judge_seen": bool(record.get("seen")),
    }
    return _ours(record) | types | {"judge_verdict": json_text(verdict)}
