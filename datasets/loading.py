"""Files and tables into rows. Everything that can be wrong with the data is said here, before a model is called."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO, TypeAlias, cast

import numpy as np

from ..errors import LabelsError, OptionError
from .duplicates import merge
from .records import LARGEST_SCORE, OVERALL, Columns, Labels, Row, infer_scale
from .spreadsheets import unguarded

if TYPE_CHECKING:
    import pandas as pd

    Source: TypeAlias = str | PathLike[str] | pd.DataFrame | Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]]

Record: TypeAlias = dict[str, Any]

_FORMATS = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_BOMS = ((b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_SCORED = {"judge_score", "judge_id", "judge"}  # columns of a CSV that `judgesmith score` wrote
_SHOWN = 5  # problems in one message
_HEAD = 1000  # records that decide which columns a streamed file has


def read_labels(
    source: Source,
    *,
    aspect: str | None = None,
    scale: tuple[float, float] | None = None,
    columns: Mapping[str, str] | None = None,
    min_rows: int = 8,
    limit: int | None = None,
) -> Labels:
    """Read and check rows with human scores.

    source: a path (.csv, .tsv, .json, .jsonl, .parquet, text formats also with .gz), a DataFrame, columns as a
        mapping, or dicts. The format with a `scores` object {aspect: score} and flat columns are both understood.
    aspect: which score; None takes the only one, or "overall".
    scale: (worst, best) with worst < best; None infers a common scale from the scores and warns.
    columns: role -> column where the names do not say it; roles: id, source, output, context, reference, system,
        doc_id, group, score, scores.
    limit: read the first `limit` rows only.
    Raises LabelsError with file, row, column and mend (up to 5 problems at once); OptionError for a bad argument.
    """
    if scale is not None and not (len(scale) == 2 and -LARGEST_SCORE <= scale[0] < scale[1] <= LARGEST_SCORE):
        raise OptionError(
            f"--scale needs two finite numbers, the lower first, within ±{LARGEST_SCORE:g}; got "
            f"{' '.join(map(str, scale))}"
        )
    table = open_table(source)
    records = list(itertools.islice(table.records, limit))
    if not records:
        raise LabelsError(f"{table.origin}: there are no rows in it, at least {min_rows} are needed")
    names = list(dict.fromkeys(name for record in records for name in record))
    roles = Columns.find(names, table.origin, chosen=columns, aspect=aspect, decimal_comma=table.decimal_comma)
    parsed = [roles.row(record, line) for line, record in enumerate(records, 1)]
    rows = [row for row, _ in parsed]
    aspect = _choose_aspect(parsed, aspect, table.origin)

    problems = _text_problems(rows, roles, table.origin) + _score_problems(parsed, aspect, scale, roles, table.origin)
    if len(rows) < min_rows:
        problems.append(f"{table.origin}: {len(rows)} rows, at least {min_rows} are needed; add rows")
    elif not problems and len({row.scores[aspect] for row in rows}) == 1:
        problems.append(
            f"{table.origin}, column {roles.column_of(aspect)!r}: all {len(rows)} scores are"
            f" {rows[0].scores[aspect]:g}, so there is nothing to agree with; add rows with other scores"
        )
    if problems:
        _fail(problems, table.has_header)

    warnings = _warnings(rows, roles, records, table.origin)
    given = scale is not None
    if scale is None:
        values = np.array([value for row in rows for value in _values(row, aspect)])
        scale = infer_scale(values, len(rows))
        warnings.append(
            f"{table.origin}: the scale was inferred as {scale[0]:g}..{scale[1]:g} from scores between"
            f" {values.min():g} and {values.max():g}; pass --scale LOW HIGH if that is wrong"
        )
    low, high = scale
    merged = merge(rows)
    warnings += merged.warnings(rows, table.origin)
    return Labels(merged.applied(rows), aspect, (float(low), float(high)), given, table.origin, tuple(warnings))


def iter_rows(source: Source, *, columns: Mapping[str, str] | None = None) -> Iterator[tuple[Row, Record]]:
    """Stream (row, original record) pairs; CSV, TSV, JSONL and Parquet are never held in memory as a whole.

    Scores are optional here and kept where they can be read. An empty output is a row with output "". Groups are
    those of the file: rows are not compared with each other. Raises LabelsError, with the line of malformed text.
    """
    table = open_table(source)
    return _iter_rows(table, columns)


def count_rows(source: Source) -> int | None:
    """How many rows `iter_rows` will yield, for a progress bar; None where counting costs as much as reading."""
    if isinstance(source, Mapping):
        return max((len(column) for column in source.values()), default=0)
    if not isinstance(source, (str, PathLike)):
        return len(source) if isinstance(source, Sized) else None
    path = Path(source)
    kind = _FORMATS.get(path.suffix.lower())
    try:
        if kind == "parquet":
            import pyarrow.parquet as pq

            return int(pq.read_metadata(path).num_rows)
        if kind == "jsonl":
            with _open_text(path) as handle:
                return sum(1 for line in handle if line.strip())
        if kind in ("csv", "tsv"):
            return sum(1 for _ in open_table(path).records)
    except (LabelsError, OSError, ValueError):
        pass  # whatever is wrong is said by the reading itself
    return None


@dataclass(frozen=True)
class _Table:
    origin: str
    records: Iterator[Record]
    has_header: bool = False
    decimal_comma: bool = False


def _iter_rows(table: _Table, columns: Mapping[str, str] | None) -> Iterator[tuple[Row, Record]]:
    head = list(itertools.islice(table.records, _HEAD))
    if not head:
        raise LabelsError(f"{table.origin}: there are no rows in it")
    names = list(dict.fromkeys(name for record in head for name in record))
    roles = Columns.find(names, table.origin, chosen=columns, scores_needed=False, decimal_comma=table.decimal_comma)
    for line, record in enumerate(itertools.chain(head, table.records), 1):
        yield roles.row(record, line)[0], record


def _choose_aspect(parsed: Sequence[tuple[Row, dict[str, str]]], wanted: str | None, origin: str) -> str:
    there = list(dict.fromkeys(name for row, reasons in parsed for name in (*row.scores, *reasons)))
    if wanted is None:
        if OVERALL in there or len(there) == 1:
            return OVERALL if OVERALL in there else there[0]
        if not there:
            raise LabelsError(f"{origin}: no row has a score")
        raise LabelsError(f"{origin}: there are several aspects ({', '.join(there)}); pass --aspect NAME")
    if wanted not in there:
        raise LabelsError(f"{origin}: there is no aspect {wanted!r}; pass --aspect with one of: {', '.join(there)}")
    return wanted


def _values(row: Row, aspect: str) -> tuple[float, ...]:
    """The score and the single ratings, as a mean can lie on the scale when a rating does not."""
    return (row.scores[aspect], *row.ratings.get(aspect, ())) if aspect in row.scores else ()


def _text_problems(rows: Sequence[Row], roles: Columns, origin: str) -> list[str]:
    problems = []
    seen: dict[str, int] = {}
    for row in rows:
        if not row.output:
            problems.append(
                f"{origin}, row {row.line}, column {roles.texts['output']!r}: the output is empty;"
                " fill it in or remove the row"
            )
        first = seen.setdefault(row.id, row.line)
        if first != row.line:
            problems.append(
                f"{origin}, row {row.line}, column {roles.texts.get('id', 'id')!r}: id {row.id!r} is that of row"
                f" {first} already; give every row its own"
            )
    return problems


def _score_problems(
    parsed: Sequence[tuple[Row, dict[str, str]]],
    aspect: str,
    scale: tuple[float, float] | None,
    roles: Columns,
    origin: str,
) -> list[str]:
    column = roles.column_of(aspect)
    low, high = scale or (-np.inf, np.inf)
    off = [value for row, _ in parsed for value in _values(row, aspect) if not low <= value <= high]
    wider = f"--scale {min(low, *off):g} {max(high, *off):g}" if off else ""
    problems = []
    for row, reasons in parsed:
        outside = [value for value in _values(row, aspect) if not low <= value <= high]
        if aspect in reasons:
            problems.append(f"{origin}, row {row.line}, {reasons[aspect]}")
        elif aspect not in row.scores:
            problems.append(
                f"{origin}, row {row.line}, column {column!r}: no score for aspect {aspect!r}; add it or remove the row"
            )
        elif outside:
            problems.append(
                f"{origin}, row {row.line}, column {column!r}: {outside[0]:g} is outside {low:g}..{high:g};"
                f" pass {wider} or mend the row"
            )
    return problems


def _warnings(rows: Sequence[Row], roles: Columns, records: Sequence[Record], origin: str) -> list[str]:
    warnings = []
    empty = [row.line for row in rows if not row.source.strip()]
    if "source" in roles.texts and 0 < len(empty) < len(rows):
        warnings.append(
            f"{origin}, column {roles.texts['source']!r}: the source is empty in {len(empty)} of {len(rows)} rows"
            f" (first: row {empty[0]})"
        )
    seen: dict[tuple[str, str], int] = {}
    pairs = [(seen.setdefault((row.source, row.output), row.line), row.line) for row in rows]
    repeats = [(first, line) for first, line in pairs if first != line]
    if repeats:
        warnings.append(
            f"{origin}: rows that repeat another row's source and output: {len(repeats)} (first: row {repeats[0][1]}"
            f" repeats row {repeats[0][0]}); they are kept and stay on one side of every split"
        )
    for column in sorted({column for column, _ in roles.aspects.values() if column is not None}):
        if any(isinstance(record.get(column), Mapping) for record in records):
            warnings.append(
                f"{origin}, column {column!r}: the keys of its objects were taken as raters and averaged;"
                " if they are aspects, pass --columns scores=" + column
            )
    return warnings


def _fail(problems: Sequence[str], has_header: bool) -> None:
    lines = list(problems[:_SHOWN])
    if len(problems) > _SHOWN:
        lines.append(f"... and {len(problems) - _SHOWN} more problems")
    if has_header and any(", row " in line for line in lines):
        lines.append("(rows are counted from 1 without the header)")
    raise LabelsError("\n".join(lines))


# --- formats ---------------------------------------------------------------------------------------------------------


def open_table(source: Source) -> _Table:
    """Any source as an iterator over records. What can be checked without reading it is checked now."""
    if not isinstance(source, (str, PathLike)):
        return _Table("<table>", _table_records(source))
    path = Path(source)
    zipped = path.suffix.lower() == ".gz"
    kind = _FORMATS.get(Path(path.stem if zipped else path.name).suffix.lower())
    if not path.exists():
        raise LabelsError(f"{path.name}: there is no such file; check the path")
    if not path.is_file():
        raise LabelsError(f"{path.name}: this is a folder, not a file; name a file in it")
    if kind is None or (zipped and kind == "parquet"):
        known = ", ".join(_FORMATS)
        raise LabelsError(f"{path.name}: unknown file type; use one of {known} (text formats also with .gz)")
    if path.stat().st_size == 0:
        raise LabelsError(f"{path.name}: the file is empty")
    if kind in ("csv", "tsv"):
        header = next(_guarded(path, _text_lines(path)), "")
        delimiter = "\t" if kind == "tsv" else _delimiter(header)
        records = _guarded(path, _csv_records(path, delimiter))
        return _Table(path.name, records, has_header=True, decimal_comma=delimiter == ";")
    reader = {"json": _json_records, "jsonl": _jsonl_records, "parquet": _parquet_records}[kind]
    return _Table(path.name, _guarded(path, reader(path)))


def _delimiter(header: str) -> str:
    """The one of , ; and tab that cuts the header into most cells; a comma where none does."""
    return max(",;\t", key=lambda delimiter: len(next(csv.reader([header], delimiter=delimiter), [])))


def _guarded(path: Path, records: Iterator[Any]) -> Iterator[Any]:
    """Errors of the file itself as LabelsError, whenever they turn up while it is streamed."""
    try:
        yield from records
    except UnicodeDecodeError:
        raise _encoding_error(path) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise LabelsError(f"{path.name}: the compressed file is damaged ({error}); make it again") from None
    except OSError as error:
        raise LabelsError(f"{path.name}: cannot be read ({error.strerror})") from None


def _open_bytes(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")


def _open_text(path: Path) -> TextIO:
    """Strict UTF-8, with or without byte order mark, or UTF-16/32 with one."""
    raw = _open_bytes(path)
    start = raw.read(4)
    raw.seek(0)
    encoding = next((name for bom, name in _BOMS if start.startswith(bom)), "utf-8-sig")
    return io.TextIOWrapper(raw, encoding, newline="")


def _encoding_error(path: Path) -> LabelsError:
    with _open_text(path) as handle:
        encoding = handle.encoding
    offset = 0
    with _open_bytes(path) as raw:
        for number, line in enumerate(raw if encoding == "utf-8-sig" else (), 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return LabelsError(
                    f"{path.name}, line {number}: byte {line[error.start]:#04x} at offset {offset + error.start} is no"
                    " UTF-8; save the file as UTF-8"
                )
            offset += len(line)
    return LabelsError(f"{path.name}: the text is damaged {encoding.upper()}; save the file as UTF-8")


def _text_lines(path: Path) -> Iterator[str]:
    with _open_text(path) as handle:
        yield from handle


def _csv_records(path: Path, delimiter: str) -> Iterator[Record]:
    csv.field_size_limit(max(csv.field_size_limit(), 1 << 30))  # the default refuses texts over 128 KiB
    reader = csv.reader(_text_lines(path), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    ours = False
    row = 0
    try:
        for cells in reader:
            if not cells:  # a blank line
                continue
            if ours:  # apostrophes that `score` put before what a spreadsheet would run
                cells = [unguarded(cell) for cell in cells]
            if header is None:
                header = cells
                if ours := set(header) >= _SCORED:
                    header = [unguarded(name) for name in header]
                twice = next((name for name in header if name and header.count(name) > 1), None)
                if twice is not None:
                    raise LabelsError(f"{path.name}: column {twice!r} stands twice in the header; rename one of them")
                continue
            row += 1
            if len(cells) != len(header):
                raise LabelsError(
                    f"{path.name}, row {row} (line {reader.line_num}): {len(cells)} cells, but the header has"
                    f" {len(header)}; put texts with {delimiter!r} or a line break in double quotes"
                )
            yield dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise LabelsError(
            f"{path.name}, line {reader.line_num}: malformed ({error}); a text with double quotes needs them doubled"
            " and quotes around it"
        ) from None


def _malformed(origin: str, line: int, error: Exception) -> LabelsError:
    why = f"{error.msg}, character {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
    return LabelsError(f"{origin}, line {line}: malformed JSON ({why}); mend the line")


def _jsonl_records(path: Path) -> Iterator[Record]:
    for number, line in enumerate(_text_lines(path), 1):
        if line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise _malformed(path.name, number, error) from None
            if not isinstance(record, dict):
                raise LabelsError(f"{path.name}, line {number}: a JSON object is needed, not {type(record).__name__}")
            yield record


def _json_records(path: Path) -> Iterator[Record]:
    with _open_text(path) as handle:
        text = handle.read()
    if not text.strip():
        return
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _malformed(path.name, getattr(error, "lineno", 1), error) from None
    if isinstance(data, dict):
        inner = (data.get(key) for key in ("data", "rows"))
        data = next((v for v in inner if isinstance(v, list) and v and isinstance(v[0], dict)), data)
    yield from _table_records(data, path.name)


def _parquet_records(path: Path) -> Iterator[Record]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                yield from batch.to_pylist()
    except pa.ArrowException as error:
        raise LabelsError(f"{path.name}: no readable Parquet file ({error}); write it again") from None


def _table_records(source: Any, origin: str = "<table>") -> Iterator[Record]:
    """The records of a DataFrame, of a mapping column -> values, or of an iterable of mappings."""
    pandas = sys.modules.get("pandas")  # who passes a DataFrame has imported it; nobody else should wait for it
    if pandas is not None and isinstance(source, pandas.DataFrame):
        names = [str(name) for name in source.columns]
        if len(set(names)) < len(names):
            raise LabelsError(f"{origin}: two columns have the same name; rename one ({', '.join(names)})")
        source = (dict(zip(names, cells, strict=True)) for cells in source.itertuples(index=False, name=None))
    elif isinstance(source, Mapping):
        columns = list(source.values())
        lists = all(isinstance(column, Sized) and not isinstance(column, (str, Mapping)) for column in columns)
        if not lists or len({len(column) for column in columns}) != 1:
            raise LabelsError(
                f"{origin}: an object must hold columns (lists of one length), or a list of rows under 'data' or 'rows'"
            )
        keys = list(source)
        source = (dict(zip(keys, cells, strict=True)) for cells in zip(*columns, strict=True))
    elif isinstance(source, (str, bytes)) or not isinstance(source, Iterable):
        raise LabelsError(f"{origin}: rows are needed (a list of objects), not {type(source).__name__}")
    for number, record in enumerate(source, 1):
        if not isinstance(record, Mapping):
            raise LabelsError(f"{origin}, row {number}: an object is needed, not {type(record).__name__}")
        yield {str(name): value for name, value in record.items()}
