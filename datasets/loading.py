"""Files and tables into rows. Everything that can be wrong with the data is reported here, before a model is called."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import math
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import LabelsError, OptionError
from .duplicates import merge
from .exports import recognised
from .marks import KINDS, Kind, Marks, named_scale, reversed_scale
from .records import LARGEST_SCORE, OVERALL, Columns, Labels, Row, by_reason, infer_scale
from .sheet import Sheet, names_of
from .spreadsheets import SHEETS, sheet_records, unguarded, unique

if TYPE_CHECKING:
    import pandas as pd

    Source: TypeAlias = str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any]]

Record: TypeAlias = dict[str, Any]

_FORMATS = {".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_FORMATS |= dict.fromkeys(SHEETS, "sheet")
_SCORED = {"judge_score", "judge_id", "judge"}  # columns of a CSV that `judgesmith score` wrote
#: Before the aspects whose mean is the score.
MEAN = "mean:"
_SHOWN = 5  # problems in one message
_MOST_CATEGORIES = 20
_HEAD = 1000  # records that decide which columns a streamed file has


def read_labels(
    source: Source,
    *,
    aspect: str | None = None,
    scale: tuple[float, float] | None = None,
    columns: Mapping[str, str] | None = None,
    min_rows: int = 8,
    limit: int | None = None,
    kind: Kind | None = None,
    categories: Sequence[str] = (),
) -> Labels:
    """Read and check rows with human scores, pass/fail, categories or preferences.

    source: a path (.csv, .tsv, .json, .jsonl, .parquet, text formats also with .gz; .xlsx and other spreadsheets with
        the extra `tables`), a DataFrame, or dicts. The format with a `scores` object {aspect:
        score}, flat columns, one row a rater, two outputs with a winner, chats, and the exports of Argilla, Label
        Studio, MLflow, Langfuse and Phoenix are understood.
    aspect: which score; None takes the only one, or "overall". `mean:A,B,…` is the mean of several on one scale, as an
        overall score, for the rows that have them all.
    scale: (worst, best) with worst < best; None takes what the column's name or the marks say (4/5, stars, words), else
        infers a common scale from the scores and warns.
    columns: role -> column where the names do not say it; roles: id, source, output, context, reference, system,
        doc_id, group, score, scores, messages, rater, output_a, output_b, winner.
    limit: read the first `limit` rows only.
    kind: score, category, binary or preference; None infers it from the marks.
    categories: the words of the categories, worst first, where they are of no known scale.
    Rows without a rating are left out and counted (`Labels.account`). Raises LabelsError with file, row, column and
    what to do (up to 5 problems at once); OptionError for a bad argument.
    """
    _check_arguments(scale, kind)
    parts = aspects_of_mean(aspect)
    if parts and kind not in (None, "score"):
        raise OptionError(
            f"--aspect {aspect} is a mean of scores, so it cannot be combined with --kind {kind}; leave one out"
        )
    table = open_table(source)
    records = list(itertools.islice(table.records, limit))
    if not records:
        raise LabelsError(f"{table.origin}: there are no rows in it, at least {min_rows} are needed")
    read = [
        _labels(table, Sheet.of(table.origin, records, columns or {}, kind), part, scale, columns or {}, min_rows, kind,
                categories)
        for part in parts or (aspect,)
    ]  # fmt: skip
    labels = _mean_of(read, min_rows) if parts else read[0]
    if len(set(labels.scores.tolist())) == 1:
        where = labels.account.columns["score"] if labels.account else labels.aspect
        raise LabelsError(
            f"{labels.origin}, column {where!r}: all {len(labels)} scores are {labels.scores[0]:g}, so there is nothing"
            " to agree with; add rows with other scores"
        )
    return labels


def _labels(
    table: _Table,
    sheet: Sheet,
    aspect: str | None,
    scale: tuple[float, float] | None,
    columns: Mapping[str, str],
    min_rows: int,
    kind: Kind | None,
    categories: Sequence[str],
) -> Labels:
    """The labels of one aspect, perhaps all the same."""
    rows, roles, aspect = _rows_of(sheet, table, aspect, columns, categories)
    marks = roles.marks.get(aspect, Marks())
    given, where = (
        (scale, None) if scale is not None else _told_scale(roles, aspect, marks, sheet.origin, bool(sheet.pairs))
    )

    problems = _text_problems(rows, roles, table.origin) + sheet.problems
    problems += _score_problems(rows, aspect, given, roles, table.origin)
    if len(rows) < min_rows and not sheet.problems:
        problems.append(_too_few(sheet, len(rows), min_rows))
    if problems:
        _fail(problems, table.has_header)

    warnings = [*table.notes, *sheet.notes(roles), *_warnings(roles, sheet.records, table.origin)]
    values = np.array([value for row in rows for value in _values(row, aspect)])
    low, high = given or infer_scale(values, len(rows))
    if given is None:
        warnings.append(
            f"{table.origin}: the scale was inferred as {low:g}..{high:g} from scores between"
            f" {values.min():g} and {values.max():g}; pass --scale LOW HIGH if that is wrong"
        )
    merged = merge(rows)
    warnings += merged.warnings(rows, table.origin)
    kind, names, levels = ("preference", (), ()) if sheet.pairs else _kind(marks, kind, scale, values, table.origin)
    return Labels(
        merged.applied(rows), aspect, (float(low), float(high)), given is not None, table.origin, tuple(warnings),
        kind, names, levels, sheet.account(roles, aspect, where),
    )  # fmt: skip


def aspects_of_mean(aspect: str | None) -> tuple[str, ...]:
    """The aspects that `mean:A,B,…` names; none for any other aspect. Raises OptionError for fewer than two."""
    if aspect is None or not aspect.startswith(MEAN):
        return ()
    parts = tuple(dict.fromkeys(part.strip() for part in aspect.removeprefix(MEAN).split(",") if part.strip()))
    if len(parts) < 2:
        raise OptionError(f"--aspect {aspect}: a mean needs two aspects or more, for example {MEAN}coherence,fluency")
    return parts


def _mean_of(read: Sequence[Labels], min_rows: int) -> Labels:
    """The same rows, read for each of several aspects, with the mean of these as their overall score. Raises
    LabelsError where the aspects are on different scales, or too few rows have them all."""
    first = read[0]
    if len({one.scale for one in read}) > 1:
        text = ", ".join(f"{one.aspect} on {one.scale[0]:g}..{one.scale[1]:g}" for one in read)
        raise LabelsError(
            f"{first.origin}: the aspects of a mean share a scale, and these do not: {text}; pass --scale LOW HIGH if "
            "they were inferred wrongly, or leave some out"
        )
    names = ", ".join(one.aspect for one in read)
    scores = [{row.id: row.scores[one.aspect] for row in one.rows} for one in read]
    rows = tuple(
        replace(row, scores={**row.scores, OVERALL: math.fsum(of[row.id] for of in scores) / len(scores)})
        for row in first.rows
        if all(row.id in of for of in scores)
    )
    if len(rows) < min_rows:
        raise LabelsError(
            f"{first.origin}: {len(rows)} rows have all of {names}, at least {min_rows} are needed; rate more rows, or "
            "leave aspects out"
        )
    warnings = dict.fromkeys(warning for one in read for warning in one.warnings)
    left = f"; {len(first) - len(rows)} rows that lack one were left out" if len(rows) < len(first) else ""
    note = f"{first.origin}: the overall score is the mean of {names}{left}"
    columns = ", ".join(dict.fromkeys(one.account.columns["score"] for one in read if one.account))
    kept = {row.line for row in rows}
    lacking = [(row.line, f"it lacks one of {names}") for row in first.rows if row.line not in kept]
    account = first.account and replace(
        first.account,
        labelled=first.account.labelled - len(lacking),
        skipped=tuple(sorted([*first.account.skipped, *lacking])),
        columns={**first.account.columns, "score": columns},
    )
    return replace(
        first, rows=rows, aspect=OVERALL, warnings=(note, *warnings), kind="score", categories=(), levels=(),
        scale_given=all(one.scale_given for one in read), account=account,
    )  # fmt: skip


def _check_arguments(scale: tuple[float, float] | None, kind: str | None) -> None:
    if scale is not None and not (len(scale) == 2 and -LARGEST_SCORE <= scale[0] < scale[1] <= LARGEST_SCORE):
        raise OptionError(
            f"--scale needs two finite numbers, the lower first, within ±{LARGEST_SCORE:g}; got "
            f"{' '.join(map(str, scale))}"
        )
    if kind is not None and kind not in KINDS:
        raise OptionError(f"--kind {kind}: it is one of {', '.join(KINDS)}")


def _rows_of(
    sheet: Sheet, table: _Table, aspect: str | None, chosen: Mapping[str, str] | None, categories: Sequence[str]
) -> tuple[list[Row], Columns, str]:
    """The labelled rows, the columns' roles and the aspect."""
    if not sheet.records and not sheet.problems:
        raise LabelsError(f"{sheet.origin}: no row is a label ({_reasons(sheet)}); at least some must be rated")
    if sheet.pairs is not None:
        kept = {role: name for role, name in (chosen or {}).items() if name in sheet.names}
        chosen = {**kept, "output": "output", "score": "score"}
    if not sheet.records:
        _fail(sheet.problems, table.has_header)
    roles = Columns.find(sheet.names, sheet.origin, chosen=chosen, aspect=aspect).reading(sheet.records, categories)
    for name, found in roles.marks.items():
        if found.unknown and name in (aspect or name, OVERALL):
            raise LabelsError(
                f"{sheet.origin}, column {roles.column_of(name)!r}: the ratings are words of no known scale; give "
                f'them in their order, worst first: --categories "{",".join(found.unknown)}"'
            )
    parsed = [roles.row(record, line) for record, line in zip(sheet.records, sheet.lines, strict=True)]
    aspect = _choose_aspect(parsed, aspect, sheet.origin)
    return sheet.rows(parsed, roles, aspect), roles, aspect


def _told_scale(
    roles: Columns, aspect: str, marks: Marks, origin: str, pairs: bool
) -> tuple[tuple[float, float] | None, str | None]:
    """The scale that the column's name or the marks themselves say, and where it stands; None where nothing does."""
    column = roles.column_of(aspect) or ""
    if reversed_scale(column):
        raise LabelsError(
            f"{origin}, column {column!r}: its name says that the lowest score is the best, but higher scores must be "
            "better; reverse them and rename the column"
        )
    if pairs:
        return (0.0, 1.0), "the share of comparisons won"
    named = named_scale(column)[1]
    if named is not None and not marks.levels:
        return named, "the column's name"
    return (marks.scale, "the ratings") if marks.values or marks.scale == (-1.0, 1.0) else (None, None)


def _kind(
    marks: Marks, asked: Kind | None, scale: tuple[float, float] | None, values: NDArray[np.float64], origin: str
) -> tuple[Kind, tuple[str, ...], tuple[float, ...]]:
    """The kind of the labels, and the names and scores of their categories."""
    kind = asked or marks.kind
    if asked is None and scale is not None and marks.kind == "binary" and not marks.values and scale != marks.scale:
        kind = "score"  # numbers on a longer scale, of which only two were given so far
    if kind == "score":
        return kind, (), ()
    names, levels = marks.names, marks.levels
    if not names:
        levels = tuple(sorted({float(value) for value in values}))
        names = tuple(f"{level:g}" for level in levels)
    if kind == "binary" and len(levels) != 2:
        raise OptionError(f"--kind binary: {origin} has the ratings {', '.join(names[:12])}; two are needed")
    if len(levels) > _MOST_CATEGORIES:
        raise OptionError(f"--kind category: {origin} has {len(levels)} different ratings; take --kind score")
    return kind, names, levels


def _too_few(sheet: Sheet, count: int, least: int) -> str:
    if not sheet.skipped:
        return f"{sheet.origin}: {count} rows, at least {least} are needed; add rows"
    return (
        f"{sheet.origin}: {count} of {sheet.total} rows are labels ({_reasons(sheet)}), at least {least} are needed;"
        " rate more rows"
    )


def _reasons(sheet: Sheet) -> str:
    found = by_reason(sorted(sheet.skipped.items()))
    return "; ".join(f"{reason}: {rows_in_words(lines)}" for reason, lines in found.items()) or "all of them"


def rows_in_words(lines: Sequence[int]) -> str:
    """`row 3`, `rows 3, 7, 9` or `12 rows, the first 3`."""
    if len(lines) > 6:
        return f"{len(lines)} rows, the first {lines[0]}"
    return f"row{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"


def iter_rows(source: Source, *, columns: Mapping[str, str] | None = None) -> Iterator[tuple[Row, Record]]:
    """Stream (row, original record) pairs; CSV, TSV, JSONL and Parquet are never held in memory as a whole.

    Scores are optional here and kept where they can be read. An empty output is a row with output "". Groups are
    those of the file: rows are not compared with each other. Raises LabelsError, with the line of malformed text.
    """
    return _iter_rows(open_table(source), columns)


def count_rows(path: str | PathLike[str]) -> int | None:
    """How many rows `iter_rows` will yield, for a progress bar; None where counting costs as much as reading."""
    path = Path(path)
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
        pass  # reading it raises what is wrong
    return None


@dataclass(frozen=True)
class _Table:
    """notes grows while the records are read."""

    origin: str
    records: Iterator[Record]
    has_header: bool = False
    notes: list[str] = field(default_factory=list)


def _iter_rows(table: _Table, columns: Mapping[str, str] | None) -> Iterator[tuple[Row, Record]]:
    head = list(itertools.islice(table.records, _HEAD))
    if not head:
        raise LabelsError(f"{table.origin}: there are no rows in it")
    export = recognised(head, table.origin)
    plain = head if export is None else [export.record(record) for record in head]
    roles = Columns.find(names_of(plain), table.origin, chosen=columns, scores_needed=False).reading(plain)
    for line, record in enumerate(itertools.chain(head, table.records), 1):
        yield roles.row(record if export is None else export.record(record), line)[0], record


def _choose_aspect(parsed: Sequence[tuple[Row, dict[str, str]]], wanted: str | None, origin: str) -> str:
    present = list(dict.fromkeys(name for row, reasons in parsed for name in (*row.scores, *reasons)))
    if wanted is None:
        if OVERALL in present or len(present) == 1:
            return OVERALL if OVERALL in present else present[0]
        if not present:
            raise LabelsError(f"{origin}: no row has a score; rate some, or name the column with --columns score=NAME")
        raise LabelsError(f"{origin}: there are several aspects ({', '.join(present)}); pass --aspect NAME")
    if wanted not in present:
        raise LabelsError(f"{origin}: there is no aspect {wanted!r}; pass --aspect with one of: {', '.join(present)}")
    return wanted


def _values(row: Row, aspect: str) -> tuple[float, ...]:
    """The score and the single ratings, as a mean can lie on the scale when a rating does not."""
    return (row.scores[aspect], *row.ratings.get(aspect, ())) if aspect in row.scores else ()


def _text_problems(rows: Sequence[Row], roles: Columns, origin: str) -> list[str]:
    problems = []
    column = roles.texts.get("output", roles.texts.get("messages"))
    seen: dict[str, int] = {}
    for row in rows:
        if not row.output:
            problems.append(
                f"{origin}, row {row.line}, column {column!r}: the output is empty; fill it in or remove the row"
            )
        first = seen.setdefault(row.id, row.line)
        if first != row.line:
            problems.append(
                f"{origin}, row {row.line}, column {roles.texts.get('id', 'id')!r}: id {row.id!r} is that of row"
                f" {first} already; give every row its own"
            )
    return problems


def _score_problems(
    rows: Sequence[Row], aspect: str, scale: tuple[float, float] | None, roles: Columns, origin: str
) -> list[str]:
    column = roles.column_of(aspect)
    low, high = scale or (-np.inf, np.inf)
    outside = [(row.line, off) for row in rows if (off := [x for x in _values(row, aspect) if not low <= x <= high])]
    every = [value for _, off in outside for value in off]
    wider = f"--scale {min([low, *every]):g} {max([high, *every]):g}"
    return [
        f"{origin}, row {line}, column {column!r}: {off[0]:g} is outside {low:g}..{high:g};"
        f" pass {wider} or correct the row"
        for line, off in outside
    ]


def _warnings(roles: Columns, records: Sequence[Record], origin: str) -> list[str]:
    columns = sorted({column for column, _ in roles.aspects.values() if column is not None})
    return [
        f"{origin}, column {column!r}: the keys of its objects were taken as raters and averaged;"
        f" if they are aspects, pass --columns scores={column}"
        for column in columns
        if any(isinstance(record.get(column), Mapping) for record in records)
    ]


def _fail(problems: Sequence[str], has_header: bool) -> None:
    lines = list(problems[:_SHOWN])
    if len(problems) > _SHOWN:
        lines.append(f"... and {len(problems) - _SHOWN} more problems")
    if has_header and any(", row " in line for line in lines):
        lines.append("(rows are counted from 1 without the header)")
    raise LabelsError(*lines)


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
    if kind is None or (zipped and kind in ("parquet", "sheet")):
        known = ", ".join(_FORMATS)
        raise LabelsError(f"{path.name}: unknown file type; use one of {known} (text formats also with .gz)")
    if path.stat().st_size == 0:
        raise LabelsError(f"{path.name}: the file is empty")
    notes: list[str] = []
    if kind == "sheet":
        return _Table(path.name, _guarded(path, sheet_records(path, notes)), has_header=True, notes=notes)
    if kind in ("csv", "tsv"):
        header = next(_guarded(path, _text_lines(path)), "")
        delimiter = "\t" if kind == "tsv" else _delimiter(header)
        records = _guarded(path, _csv_records(path, delimiter))
        return _Table(path.name, records, has_header=True)
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
    """Strict UTF-8, with or without byte order mark, or UTF-16 with one."""
    raw = _open_bytes(path)
    encoding = "utf-16" if raw.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    raw.seek(0)
    return io.TextIOWrapper(raw, encoding, newline="")


def _encoding_error(path: Path) -> LabelsError:
    with _open_bytes(path) as raw:
        sound = itertools.takewhile(_is_utf8, raw)
        number = sum(1 for _ in sound) + 1
    return LabelsError(f"{path.name}, line {number}: the text is not UTF-8; save the file as UTF-8 (Excel: CSV UTF-8)")


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


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
                if ours := set(cells) >= _SCORED:
                    cells = [unguarded(name) for name in cells]
                header = unique(cells, path.name)
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
    return LabelsError(f"{origin}, line {line}: malformed JSON ({why}); correct the line")


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
    yield from _table_records(data, path.name)


def _parquet_records(path: Path) -> Iterator[Record]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                yield from batch.to_pylist()
    except pa.ArrowException as error:
        raise LabelsError(f"{path.name}: not a readable Parquet file ({error}); write it again") from None


def _table_records(source: Any, origin: str = "<table>") -> Iterator[Record]:
    """The records of a DataFrame, or of an iterable of mappings."""
    pandas = sys.modules.get("pandas")  # who passes a DataFrame has imported it; no one else should wait for it
    if pandas is not None and isinstance(source, pandas.DataFrame):
        names = [str(name) for name in source.columns]
        if len(set(names)) < len(names):
            raise LabelsError(f"{origin}: two columns have the same name; rename one ({', '.join(names)})")
        source = (dict(zip(names, cells, strict=True)) for cells in source.itertuples(index=False, name=None))
    elif isinstance(source, (str, bytes, Mapping)) or not isinstance(source, Iterable):
        raise LabelsError(f"{origin}: rows are needed (a list of objects), not {type(source).__name__}")
    for number, record in enumerate(source, 1):
        if not isinstance(record, Mapping):
            raise LabelsError(f"{origin}, row {number}: an object is needed, not {type(record).__name__}")
        yield {str(name): value for name, value in record.items()}
