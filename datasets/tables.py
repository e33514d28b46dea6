"""Tables of rows: a file that was opened, a DataFrame, a table that Arrow reads, or dicts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from judgesmith.errors import LabelsError
from judgesmith.rows import arrow_records, arrow_table

if TYPE_CHECKING:
    import pandas as pd

    Source: TypeAlias = str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any]]

Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """Records as they are read. notes grows until the last is. decimal_comma: numbers have one, as `;` separates."""

    origin: str
    records: Iterator[Record]
    has_header: bool = False
    notes: list[str] = field(default_factory=list)
    decimal_comma: bool = False


def is_table(source: Any) -> bool:
    """Return True for a DataFrame, or a table that Arrow reads."""
    return hasattr(source, "__arrow_c_stream__") or (
        hasattr(source, "to_dict") and hasattr(source, "columns")
    )


def table_records(source: Any, origin: str = "<table>") -> Iterator[Record]:
    """Yield the records of a DataFrame, of a table that Arrow reads, or of an iterable of mappings.

    Arrow reads tables of polars, pyarrow and DuckDB.

    Raises:
        LabelsError: For anything else, and for a row that is no object.
    """
    # Who passes a DataFrame has imported pandas. No one else should wait for it.
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        source = _frame_records(source, origin)
    elif (reader := arrow_table(source)) is not None:
        source = arrow_records(reader)
    elif isinstance(source, (str, bytes, Mapping)) or not isinstance(source, Iterable):
        raise LabelsError(
            f"{origin}: rows are needed (a list of objects), not {type(source).__name__}"
        )
    for number, record in enumerate(source, 1):
        if not isinstance(record, Mapping):
            raise LabelsError(
                f"{origin}, row {number}: an object is needed, not {type(record).__name__}"
            )
        yield {str(name): value for name, value in record.items()}


def _frame_records(frame: pd.DataFrame, origin: str) -> Iterator[Record]:
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise LabelsError(
            f"{origin}: two columns have the same name; rename one ({', '.join(names)})"
        )
    for cells in frame.itertuples(index=False, name=None):
        yield dict(zip(names, cells, strict=True))
