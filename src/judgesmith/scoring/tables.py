"""Scored rows as tables: CSV for spreadsheets, Parquet for what computes on them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesmith.datasets.spreadsheets import guarded
from judgesmith.errors import OptionError
from judgesmith.extras import from_extra
from judgesmith.programs.atomic import written_whole
from judgesmith.running.journal import read_journal
from judgesmith.running.plain import json_text

if TYPE_CHECKING:
    import pyarrow as pa

Records = Callable[[], Iterable[Mapping[str, Any]]]
#: Rows of a Parquet file that are in memory at once.
IN_MEMORY = 4096
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


def require_parquet(file: Path) -> None:
    """Raises MissingExtraError where Parquet cannot be written."""
    from_extra("tables", f"{file.name}: Parquet", "pyarrow.parquet")


def write_table(scored: Path, output: Path) -> None:
    """Write scored rows (JSON lines) as a .csv or .parquet table, whole or not at all.

    Raises:
        OptionError: If it cannot be written.
    """
    write = _write_parquet if output.suffix.lower() == ".parquet" else _write_csv
    try:
        with written_whole(output) as beside:
            write(scored, beside)
    except OSError as error:
        raise OptionError(
            f"{output} cannot be written: {error.strerror or error}; the rows are kept in {scored.name}, the same "
            "command resumes from there"
        ) from None


def _write_csv(scored: Path, file: Path) -> None:
    own: dict[str, None] = {}
    ours = dict.fromkeys(COLUMNS)
    for _, record in read_journal(scored):
        own |= dict.fromkeys(map(_cell, _own(record)))
        ours |= dict.fromkeys(map(_cell, _ours(record)))
    # The mark at the beginning tells Excel that this is UTF-8.
    with file.open(
        "w", encoding="utf-8-sig", newline="", errors="backslashreplace"
    ) as opened:
        table = csv.DictWriter(
            opened,
            [*(name for name in own if name not in ours), *ours],
            quoting=csv.QUOTE_ALL,
        )
        table.writeheader()
        for _, record in read_journal(scored):
            table.writerow(
                {
                    _cell(name): _cell(value)
                    for name, value in (_own(record) | _ours(record)).items()
                }
            )


def _write_parquet(scored: Path, file: Path) -> None:
    def records() -> Iterator[dict[str, Any]]:
        for _, record in read_journal(scored):
            yield _own(record) | _typed(record)

    parquet_file(records, file)


def parquet_file(records: Records, file: Path) -> None:
    """Write records as Parquet.

    A column has the type that all of its cells fit, else text; lists and objects are JSON. records: gives them at each
    call, from the first.

    Raises:
        OSError: If the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([])
    for rows in _portions(records()):
        schema = _joined(schema, _table(rows).schema)
    fields = [
        pa.field(f.name, pa.string() if pa.types.is_null(f.type) else f.type)
        for f in schema
    ]
    with pq.ParquetWriter(file, pa.schema(fields)) as writer:
        for rows in _portions(records()):
            writer.write_table(_table(rows, writer.schema))


def _portions(
    records: Iterable[Mapping[str, Any]],
) -> Iterator[list[Mapping[str, Any]]]:
    rest = iter(records)
    while rows := list(islice(rest, IN_MEMORY)):
        yield rows


def _table(
    rows: Sequence[Mapping[str, Any]], schema: pa.Schema | None = None
) -> pa.Table:
    import pyarrow as pa

    kinds: dict[str, pa.DataType | None] = {}
    if schema is None:
        for row in rows:
            kinds.update(dict.fromkeys(row))
    else:
        kinds = {field.name: field.type for field in schema}
    columns = {}
    for name, kind in kinds.items():
        columns[name] = _array([row.get(name) for row in rows], kind)
    return pa.table(columns)


def _array(cells: Sequence[Any], kind: pa.DataType | None) -> pa.Array:
    import pyarrow as pa

    plain = [
        _as_text(cell) if isinstance(cell, str | list | dict) else cell
        for cell in cells
    ]
    try:
        return pa.array(plain, kind)
    except (
        pa.ArrowException,
        TypeError,
        OverflowError,
    ):  # numbers beside words, or beyond 64 bits
        return pa.array(
            [None if cell is None else _as_text(cell) for cell in plain], pa.string()
        )


def _as_text(cell: Any) -> str:
    """Return a text as it is, anything else as JSON; half a surrogate pair, which no table can hold, is escaped."""
    if isinstance(cell, str):
        text = cell
    else:
        text = json.dumps(cell, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode()


def _joined(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    for name in other.names:
        field = other.field(name)
        place = one.get_field_index(name)
        try:
            one = pa.unify_schemas(
                [one, pa.schema([field])], promote_options="permissive"
            )
        except pa.ArrowException:
            one = one.set(place, pa.field(name, pa.string()))
    return one


def _own(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input's columns, without the scores by aspect that an earlier run wrote behind its own columns."""
    names = list(record)
    behind = names[names.index("judge_id") :] if "judge_id" in record else []
    dropped = {name for name in behind if name.startswith(_BY_ASPECT)}
    dropped.update(("verdict", "judge", "asked", "seen", "resembles"))
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
        for part in ("columns", "contract")
        if part in verdict
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


def _cell(value: Any) -> Any:
    """Return a value as the cell of a CSV file: objects as JSON, and nothing that a spreadsheet would run."""
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    return guarded(value)
