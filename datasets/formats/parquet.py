"""Parquet, read and written a portion at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesmith.datasets.bounds import refuse_unpacked
from judgesmith.datasets.formats import Format, Rows, formats
from judgesmith.datasets.tables import Record
from judgesmith.errors import LabelsError, OptionError
from judgesmith.rows import text_batch

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows that are read at once, and those that are written at once.
_READ = 1024
IN_MEMORY = 4096


@formats.register
class Parquet(Format):
    """Typed columns."""

    name = "parquet"
    about = "Parquet"
    suffixes = (".parquet",)
    extra = "tables"
    modules = ("pyarrow", "pyarrow.parquet")
    written = True
    typed = True

    def records(self, path: Path, notes: list[str]) -> Iterator[Record]:
        pa = self.require(path)
        try:
            with pa.parquet.ParquetFile(path) as file:
                groups = range(file.metadata.num_row_groups)
                unpacked = sum(
                    file.metadata.row_group(group).total_byte_size for group in groups
                )
                refuse_unpacked(path.name, path.stat().st_size, unpacked)
                for batch in file.iter_batches(batch_size=_READ):
                    yield from text_batch(batch).to_pylist()
        except pa.ArrowException as error:
            raise LabelsError(
                f"{path.name}: not a readable Parquet file ({error}); write it again"
            ) from None
        except OptionError as error:
            raise LabelsError(f"{path.name}, {error}") from None

    def count(self, path: Path) -> int | None:
        return int(self.require(path).parquet.read_metadata(path).num_rows)

    def write(self, rows: Rows, path: Path) -> None:
        """Write rows.

        A column has the type that all of its cells fit, else text; lists and objects are JSON.

        Raises:
            OSError: If the file cannot be written.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([])
        for portion in _portions(rows()):
            schema = _joined(schema, _table(portion).schema)
        fields = [
            pa.field(one.name, pa.string() if pa.types.is_null(one.type) else one.type)
            for one in schema
        ]
        with pq.ParquetWriter(path, pa.schema(fields)) as writer:
            for portion in _portions(rows()):
                writer.write_table(_table(portion, writer.schema))


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
    except (pa.ArrowException, TypeError, OverflowError):
        # Numbers beside words, or beyond 64 bits.
        texts = [None if cell is None else _as_text(cell) for cell in plain]
        return pa.array(texts, pa.string())


def _as_text(cell: Any) -> str:
    """Return a text as it is, anything else as JSON; half a surrogate pair, which no table can hold, is escaped."""
    if not isinstance(cell, str):
        cell = json.dumps(cell, ensure_ascii=False, default=str)
    return str(cell.encode("utf-8", "backslashreplace").decode())


def _joined(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    for name in other.names:
        field = other.field(name)
        try:
            one = pa.unify_schemas(
                [one, pa.schema([field])], promote_options="permissive"
            )
        except pa.ArrowException:
            place = one.get_field_index(name)
            one = one.set(place, pa.field(name, pa.string()))
    return one
