"""Files and tables as records: what separates the cells of a text, which row is the header, what a JSON file holds."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from judgesmith.conversation import parsed
from judgesmith.datasets.bounds import refuse_unpacked
from judgesmith.datasets.encoding import binary, encoding_of
from judgesmith.datasets.json_shapes import rows_in
from judgesmith.datasets.promptfoo import holds_outputs, output_of
from judgesmith.datasets.records import is_comment, is_role
from judgesmith.datasets.results import inspect_log, of_lm_eval, results_in
from judgesmith.datasets.spreadsheets import (
    SHEETS,
    describing,
    sheet_records,
    unguarded,
    unique,
)
from judgesmith.errors import LabelsError, OptionError
from judgesmith.extras import from_extra
from judgesmith.rows import arrow_records, arrow_table, text_batch

if TYPE_CHECKING:
    import pandas as pd

    Source: TypeAlias = str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any]]

Record: TypeAlias = dict[str, Any]

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_PACKED = {f"{ending}.gz": kind for ending, kind in _FORMATS.items()}
_FORMATS |= {".parquet": "parquet", ".eval": "eval", **dict.fromkeys(SHEETS, "sheet")}
_SCORED = {
    "judge_score",
    "judge_id",
    "judge",
}  # columns of a CSV that `judgesmith score` wrote
#: Columns of exports that hold objects, which `score` writes into a CSV as JSON.
_OBJECTS = ({"data", "annotations"}, {"fields", "responses"})
_DELIMITERS = ",;\t|"
#: What Excel writes, and reads, in the first line.
_SEP = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_TEXT_FORMULA = re.compile(r'="((?:[^"]|"")*)"')
#: Lines and rows of a text by which its form is found.
_LINES = 200
_ROWS = 20


@dataclass(frozen=True)
class Table:
    """Records as they are read. notes grows until the last is. decimal_comma: numbers have one, as `;` separates."""

    origin: str
    records: Iterator[Record]
    has_header: bool = False
    notes: list[str] = field(default_factory=list)
    decimal_comma: bool = False


def open_table(source: Source) -> Table:
    """Any source as an iterator over records. What can be checked without reading it is checked now."""
    if not isinstance(source, (str, PathLike)):
        return Table("<table>", table_records(source))
    path = Path(source)
    kind = kind_of(path)
    if not path.exists():
        raise LabelsError(f"{path.name}: there is no such file; check the path")
    if not path.is_file():
        raise LabelsError(
            f"{path.name}: this is a folder, not a file; name a file in it"
        )
    if kind is None:
        raise LabelsError(
            f"{path.name}: unknown file type; use one of {', '.join(_FORMATS)}"
        )
    if path.stat().st_size == 0:
        raise LabelsError(f"{path.name}: the file is empty")
    notes: list[str] = []
    if kind == "sheet":
        return Table(
            path.name,
            _guarded(path, sheet_records(path, notes)),
            has_header=True,
            notes=notes,
        )
    if kind == "eval":
        return Table(path.name, _guarded(path, inspect_log(path)))
    if kind == "parquet":
        return Table(path.name, _guarded(path, _parquet_records(path)))
    encoding, note = next(_guarded(path, (encoding_of(file) for file in [path])))
    notes += [note] if note else []
    text = _Text(path, encoding)
    if kind in ("csv", "tsv"):
        form = _Form.of(
            list(itertools.islice(_guarded(path, text.lines()), _LINES)),
            tabs=kind == "tsv",
        )
        if form.above:
            notes.append(
                f"{path.name}: {form.above} line(s) above the header were left out"
            )
        if form.below:
            notes.append(
                f"{path.name}: {form.below} line(s) below the header were left out"
            )
        records = _guarded(path, _csv_records(text, form, notes))
        return Table(path.name, records, True, notes, form.delimiter == ";")
    reader = _json_records if kind == "json" else _jsonl_records
    return Table(path.name, _guarded(path, reader(text)), notes=notes)


def kind_of(path: Path) -> str | None:
    """Return the format that a file's name states; None for an unknown one."""
    return _FORMATS.get(path.suffix.lower()) or _PACKED.get(
        "".join(path.suffixes[-2:]).lower()
    )


def _guarded(path: Path, records: Iterator[Any]) -> Iterator[Any]:
    """Errors of the file itself as LabelsError, whenever they turn up while it is streamed."""
    try:
        yield from records
    except UnicodeDecodeError as error:
        raise LabelsError(
            f"{path.name}: the text is not {error.encoding}, as its first bytes say ({error.reason}); save the file as "
            "UTF-8 (Excel: CSV UTF-8)"
        ) from None
    except (OSError, EOFError) as error:
        raise LabelsError(
            f"{path.name}: cannot be read ({getattr(error, 'strerror', None) or error})"
        ) from None


@dataclass(frozen=True, slots=True)
class _Text:
    path: Path
    encoding: str

    @property
    def name(self) -> str:
        return self.path.name

    def open(self) -> TextIO:
        return io.TextIOWrapper(binary(self.path), self.encoding, newline="")

    def lines(self) -> Iterator[str]:
        with self.open() as handle:
            yield from handle


# --- CSV -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Form:
    """What separates cells, whether the first line states it, and the rows above and below the header that are none."""

    delimiter: str
    says: bool
    above: int
    below: int

    @classmethod
    def of(cls, head: Sequence[str], *, tabs: bool) -> _Form:
        """The delimiter is what cuts most rows into equally many cells."""
        stated = _SEP.fullmatch(head[0].strip("\r\n\ufeff ")) if head else None
        lines = head[1:] if stated else head
        if stated:
            delimiter = stated[1]
        elif tabs and "\t" in "".join(lines[:1]):
            delimiter = "\t"
        else:
            delimiter = max(
                _DELIMITERS,
                key=lambda mark: _fit(_cells(lines, mark)),
            )
        rows = _cells(lines, delimiter)
        above = _above(rows)
        below = describing(rows[above + 1 : above + 3])
        return cls(delimiter, stated is not None, above, below)


def _cells(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The first rows of a text; a quoted cell that goes on behind its lines ends with them."""
    # The default refuses texts over 128 KiB, and lines that are one cell for a separator that is only tried.
    csv.field_size_limit(max(csv.field_size_limit(), 1 << 30))
    return list(itertools.islice(csv.reader(lines, delimiter=delimiter), _ROWS))


def _fit(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return how many rows have as many cells as most have, two or more, and how many these are."""
    counts = Counter(len(row) for row in rows if len(row) > 1)
    cells, times = max(
        counts.items(), key=lambda item: (item[1], item[0]), default=(1, 0)
    )
    return times, cells


def _above(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of rows above the header: a title has one cell, whose text is no column's name."""
    titles: list[str] = []
    for place, row in enumerate(rows):
        cells = [cell for cell in row if cell.strip()]
        if len(cells) > 1:
            return 0 if not titles or any(map(is_role, titles)) else place
        titles += cells
    return 0


def _csv_records(text: _Text, form: _Form, notes: list[str]) -> Iterator[Record]:
    lines = text.lines()
    if form.says:
        next(lines)
    reader = csv.reader(lines, delimiter=form.delimiter, strict=True)
    header: list[str] | None = None
    ours = False
    rows = _Rows()
    packed = list[str]()
    below = form.below
    outputs: list[str] = []
    try:
        for cells in itertools.islice(reader, form.above, None):
            if not cells:  # a blank line
                continue
            if ours:  # apostrophes that `score` put before what a spreadsheet would run
                cells = list(map(unguarded, cells))
            if any(cell.startswith('="') for cell in cells):
                cells = list(map(_as_shown, cells))
            if header is None:
                cells = list(map(str.strip, cells))
                if ours := set(cells) >= _SCORED:
                    cells = list(map(unguarded, cells))
                header = unique(cells, text.name)
                outputs = [name for name in header if holds_outputs(name)]
                if ours:
                    packed = _packed(header)
                continue
            if below:
                below -= 1
                continue
            whole = rows.whole(cells, header)
            if whole is None:
                raise LabelsError(
                    f"{text.name}, row {rows.read} (line {reader.line_num + form.says}): {len(cells)} cells, but the "
                    f"header has {len(header)}; put texts with {form.delimiter!r} or a line break in double quotes"
                )
            record: Record = dict(zip(header, whole, strict=True))
            for name in outputs:
                record[name] = output_of(record[name])
            yield record | {name: parsed(record[name]) for name in packed}
    except csv.Error as error:
        raise LabelsError(
            f"{text.name}, line {reader.line_num + form.says}: malformed ({error}); a text with double quotes needs "
            "them doubled and quotes around it"
        ) from None
    if rows.short and header is not None:
        missing = ", ".join(map(repr, header[rows.cells :]))
        notes.append(
            f"{text.name}: {rows.short} rows end before {missing}, which was taken as empty there"
        )


def _as_shown(cell: str) -> str:
    """Return the text of a cell that is a formula of nothing but a text, as CSVs for Excel have it: ="5" is 5."""
    match = _TEXT_FORMULA.fullmatch(cell)
    return cell if match is None else match[1].replace('""', '"')


@dataclass(slots=True)
class _Rows:
    """The rows of a CSV so far: how many were read, how many ended early, and with how many cells."""

    read: int = 0
    short: int = 0
    cells: int = 0

    def whole(self, cells: list[str], header: Sequence[str]) -> list[str] | None:
        """A row with as many cells as the header; None where that is not clear.

        Empty cells at the end may be too many. Fewer than a third may be missing, the same ones in each short row: of
        rows that a line break has cut in two more are, or others. What is missing is no text or score, unless no row
        has it.
        """
        self.read += 1
        lacking = len(header) - len(cells)
        every = self.short == self.read - 1
        missing = header[len(cells) if lacking > 0 else self.cells :]
        optional = all(not is_role(name) or is_comment(name) for name in missing)
        if lacking < 0:
            if any(cell.strip() for cell in cells[lacking:]):
                return None
            return cells[:lacking]
        if lacking == 0:
            return cells if optional or not self.short else None
        if (
            lacking * 3 >= len(header)
            or self.cells not in (0, len(cells))
            or not (optional or every)
        ):
            return None
        self.short = self.short + 1
        self.cells = len(cells)
        return [*cells, *[""] * lacking]


# --- JSON ------------------------------------------------------------------------------------------------------------


def _packed(header: Sequence[str]) -> list[str]:
    """Return the columns that hold objects in the tables of an annotation tool; none for another table."""
    return [name for names in _OBJECTS if names <= {*header} for name in names]


def _malformed(
    origin: str, line: int, why: str, advice: str = "correct the line"
) -> LabelsError:
    return LabelsError(f"{origin}, line {line}: malformed JSON ({why}); {advice}")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, character {error.colno}"
    return str(error)


def _jsonl_records(text: _Text) -> Iterator[Record]:
    first = True
    for number, line in enumerate(text.lines(), 1):
        if not line.strip():
            continue
        if first and _goes_on(line):
            yield from _json_records(text)
            return
        first = False
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            record = _without_comma(line)
            if record is None:
                raise _malformed(text.name, number, _reason(error)) from None
        if not isinstance(record, dict):
            raise LabelsError(
                f"{text.name}, line {number}: a JSON object is needed, not {type(record).__name__}"
            )
        yield of_lm_eval(record, f"{text.name}, line {number}")


def _goes_on(line: str) -> bool:
    """Return True if the first line opens one JSON array, or an object on several lines."""
    if line.lstrip().startswith("["):
        return True
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        return error.pos >= len(line.rstrip())
    except (ValueError, RecursionError):
        pass
    return False


def _without_comma(line: str) -> Any:
    """The object of a line that ends with a comma, as one that was copied from an array does; None for any other."""
    try:
        return json.loads(line.rstrip().removesuffix(","))
    except (ValueError, RecursionError):
        return None


def _json_records(text: _Text) -> Iterator[Record]:
    with text.open() as handle:
        content = handle.read()
    if not content.strip():
        return
    try:
        data = json.loads(content)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise _malformed(
                text.name, error.lineno, _reason(error), _advice(content, error.pos)
            ) from None
        data = list(_objects(content, text.name))
    except (ValueError, RecursionError) as error:
        raise _malformed(text.name, 1, str(error)) from None
    if isinstance(data, dict):
        data = results_in(data, text.name) or rows_in(data, text.name)
    elif isinstance(data, list) and data and all(isinstance(row, list) for row in data):
        raise LabelsError(
            f"{text.name}: a list of lists, without names of columns; write a list of objects (pandas: "
            "to_json(orient='records'))"
        )
    yield from table_records(data, text.name)


def _advice(content: str, place: int) -> str:
    """Return advice for an error there. Versions of Python point to a comma too many, or behind it."""
    closing = re.compile(r",?\s*([\]}])").match(content, place)
    if closing is None or not content[: closing.end() - 1].rstrip().endswith(","):
        return "correct the line"
    return f"there is a comma before {closing[1]!r}; take it away"


def _objects(content: str, origin: str) -> Iterator[Any]:
    """JSON values one after the other, as JSON lines are; perhaps with commas between them."""
    decoder = json.JSONDecoder()
    place = 0
    between = re.compile(r"[\s,]*")
    while (place := between.match(content, place).end()) < len(content):  # type: ignore[union-attr]
        try:
            value, place = decoder.raw_decode(content, place)
        except (ValueError, RecursionError) as error:
            line = content.count("\n", 0, getattr(error, "pos", place)) + 1
            raise _malformed(origin, line, _reason(error)) from None
        yield value


# --- tables ----------------------------------------------------------------------------------------------------------


def _parquet_records(path: Path) -> Iterator[Record]:
    pa = from_extra("tables", f"{path.name}: Parquet", "pyarrow", "pyarrow.parquet")
    try:
        with pa.parquet.ParquetFile(path) as file:
            groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
            unpacked = sum(group.total_byte_size for group in groups)
            refuse_unpacked(path.name, path.stat().st_size, unpacked)
            for batch in file.iter_batches(batch_size=1024):
                yield from text_batch(batch).to_pylist()
    except pa.ArrowException as error:
        raise LabelsError(
            f"{path.name}: not a readable Parquet file ({error}); write it again"
        ) from None
    except OptionError as error:
        raise LabelsError(f"{path.name}, {error}") from None


def is_table(source: Any) -> bool:
    """Return True for a DataFrame, or a table that Arrow reads."""
    return hasattr(source, "__arrow_c_stream__") or (
        hasattr(source, "to_dict") and hasattr(source, "columns")
    )


def table_records(source: Any, origin: str = "<table>") -> Iterator[Record]:
    """Yield the records of a DataFrame, of a table that Arrow reads, or of an iterable of mappings.

    Arrow reads tables of polars, pyarrow and DuckDB.
    """
    pandas = sys.modules.get(
        "pandas"
    )  # who passes a DataFrame has imported it; no one else should wait for it
    if pandas is not None and isinstance(source, pandas.DataFrame):
        names = [str(name) for name in source.columns]
        if len(set(names)) < len(names):
            raise LabelsError(
                f"{origin}: two columns have the same name; rename one ({', '.join(names)})"
            )
        source = (
            dict(zip(names, cells, strict=True))
            for cells in source.itertuples(index=False, name=None)
        )
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
