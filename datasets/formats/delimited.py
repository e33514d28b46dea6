"""CSV and TSV: what separates the cells of a text, and which row is the header."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from judgesmith.datasets.exports import cell_reader, object_columns
from judgesmith.datasets.formats import (
    Rows,
    Text,
    TextFormat,
    formats,
    readable,
    streamed,
)
from judgesmith.datasets.spreadsheets import describing, guarded, unguarded, unique
from judgesmith.datasets.tables import Record, Table
from judgesmith.errors import LabelsError

#: Columns of a CSV that `judgesmith score` wrote.
_SCORED = {"judge_score", "judge_id", "judge"}
_DELIMITERS = ",;\t|"
#: What Excel writes, and reads, in the first line.
_SEP = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_TEXT_FORMULA = re.compile(r'="((?:[^"]|"")*)"')
#: Lines and rows of a text by which its form is found.
_LINES = 200
_ROWS = 20


class Delimited(TextFormat):
    """Cells with a mark between them."""

    tabs: ClassVar[bool] = False
    """Whether tabs separate cells wherever the first line has some."""

    def table(self, text: Text, notes: list[str]) -> Table:
        with readable(text.path):
            head = list(itertools.islice(text.lines(), _LINES))
        layout = _Layout.of(head, tabs=self.tabs)
        for lines, where in ((layout.above, "above"), (layout.below, "below")):
            if lines:
                notes.append(
                    f"{text.name}: {lines} line(s) {where} the header were left out"
                )
        records = streamed(text.path, _records(text, layout, notes))
        return Table(text.name, records, True, notes, layout.delimiter == ";")

    def rows(self, text: Text, notes: list[str]) -> Iterator[Record]:
        return self.table(text, notes).records

    def count(self, path: Path) -> int | None:
        return sum(1 for _ in self.open(path).records)


@formats.register
class Csv(Delimited):
    """Comma-separated values, and those that semicolons or bars separate."""

    name = "csv"
    about = "CSV, with commas, semicolons, tabs or bars"
    suffixes = (".csv",)
    written = True

    def write(self, rows: Rows, path: Path) -> None:
        """Write rows for spreadsheets: objects as JSON, and nothing that a spreadsheet would run."""
        records = iter(rows())
        first = next(records, {})
        # The mark at the beginning tells Excel that this is UTF-8.
        with path.open(
            "w", encoding="utf-8-sig", newline="", errors="backslashreplace"
        ) as opened:
            table = csv.writer(opened, quoting=csv.QUOTE_ALL)
            table.writerow(map(_written, first))
            for record in itertools.chain([first] if first else [], records):
                table.writerow(map(_written, record.values()))


@formats.register
class Tsv(Delimited):
    """Tab-separated values."""

    name = "tsv"
    about = "tab-separated values"
    suffixes = (".tsv",)
    tabs = True


def _written(value: Any) -> Any:
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    return guarded(value)


@dataclass(frozen=True, slots=True)
class _Layout:
    """What separates cells, whether the first line states it, and the rows above and below the header that are none."""

    delimiter: str
    stated: bool
    above: int
    below: int

    @classmethod
    def of(cls, head: Sequence[str], *, tabs: bool) -> _Layout:
        """The delimiter is what cuts most rows into equally many cells."""
        stated = _SEP.fullmatch(head[0].strip("\r\n\ufeff ")) if head else None
        lines = head[1:] if stated else head
        if stated:
            delimiter = stated[1]
        elif tabs and "\t" in "".join(lines[:1]):
            delimiter = "\t"
        else:
            delimiter = max(_DELIMITERS, key=lambda mark: _fit(_cells(lines, mark)))
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
    from judgesmith.datasets.roles import is_role

    titles: list[str] = []
    for place, row in enumerate(rows):
        cells = [cell for cell in row if cell.strip()]
        if len(cells) > 1:
            return 0 if not titles or any(map(is_role, titles)) else place
        titles += cells
    return 0


def _records(text: Text, layout: _Layout, notes: list[str]) -> Iterator[Record]:
    lines = text.lines()
    if layout.stated:
        next(lines)
    reader = csv.reader(lines, delimiter=layout.delimiter, strict=True)
    header: _Header | None = None
    rows = _Rows()
    below = layout.below
    try:
        for cells in itertools.islice(reader, layout.above, None):
            if not cells:  # a blank line
                continue
            if header is not None and header.ours:
                # Apostrophes that `score` put before what a spreadsheet would run.
                cells = list(map(unguarded, cells))
            if any(cell.startswith('="') for cell in cells):
                cells = list(map(_as_shown, cells))
            if header is None:
                header = _Header.of(cells, text.name)
                continue
            if below:
                below -= 1
                continue
            whole = rows.whole(cells, header.names)
            if whole is None:
                line = reader.line_num + layout.stated
                raise LabelsError(
                    f"{text.name}, row {rows.read} (line {line}): {len(cells)} cells, but the header has "
                    f"{len(header.names)}; put texts with {layout.delimiter!r} or a line break in double quotes"
                )
            yield header.record(whole)
    except csv.Error as error:
        raise LabelsError(
            f"{text.name}, line {reader.line_num + layout.stated}: malformed ({error}); a text with double quotes "
            "needs them doubled and quotes around it"
        ) from None
    if rows.short and header is not None:
        missing = ", ".join(map(repr, header.names[rows.cells :]))
        notes.append(
            f"{text.name}: {rows.short} rows end before {missing}, which was taken as empty there"
        )


@dataclass(frozen=True, slots=True)
class _Header:
    """The columns. ours: `score` wrote the file. readers: how the cells of some columns are read."""

    names: list[str]
    ours: bool
    readers: dict[str, Callable[[str], Any]]

    @classmethod
    def of(cls, cells: Sequence[str], origin: str) -> _Header:
        stripped = [cell.strip() for cell in cells]
        ours = set(stripped) >= _SCORED
        if ours:
            stripped = list(map(unguarded, stripped))
        names = unique(stripped, origin)
        readers: dict[str, Callable[[str], Any]] = {}
        for name in names:
            if (reader := cell_reader(name)) is not None:
                readers[name] = reader
        if ours:
            from judgesmith.conversation import parsed

            readers |= dict.fromkeys(object_columns(names), parsed)
        return cls(names, ours, readers)

    def record(self, cells: Sequence[str]) -> Record:
        record: Record = dict(zip(self.names, cells, strict=True))
        for name, read in self.readers.items():
            record[name] = read(record[name])
        return record


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
        if lacking < 0:
            beyond = cells[lacking:]
            return None if any(cell.strip() for cell in beyond) else cells[:lacking]
        if lacking == 0 and not self.short:
            return cells
        from judgesmith.datasets.roles import is_comment, is_role

        missing = header[len(cells) if lacking > 0 else self.cells :]
        optional = all(not is_role(name) or is_comment(name) for name in missing)
        if lacking == 0:
            return cells if optional else None
        every = self.short == self.read - 1
        alike = self.cells in (0, len(cells))
        if lacking * 3 >= len(header) or not alike or not (optional or every):
            return None
        self.short += 1
        self.cells = len(cells)
        return [*cells, *[""] * lacking]
