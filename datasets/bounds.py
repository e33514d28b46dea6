"""Bounds of packed files: what a few bytes can unpack to, before it is unpacked."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from judgesmith.errors import LabelsError

#: Bytes that any file may unpack to; of more, at most this many times its own size.
_ANYWAY = 64 << 20
_TIMES = 200
#: Cells of one sheet, with the empty ones between: they take memory, too.
_MOST_CELLS = 20_000_000
_CHUNK = 1 << 20
_OVERLAP = 4096

_COLUMN = re.compile(rb'\br="([A-Z]{1,3})\d')
_ROW = re.compile(rb'<(?:\w+:)?row\b[^<>]*?\br="(\d+)"')
#: A formula without its result, as programs write it that do not calculate.
_FORMULA = re.compile(
    rb"<(?:\w+:)?f\b[^<>]*(?:/>|>[^<]*</(?:\w+:)?f>)\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)
#: How often a row or a cell of an OpenDocument sheet stands there.
_ROWS_REPEATED = re.compile(rb'^[^<>]*number-rows-repeated="(\d+)"')
_CELLS = re.compile(
    rb'<table:(?:covered-)?table-cell\b(?:[^<>]*?number-columns-repeated="(\d+)")?'
)


@dataclass
class Scan:
    """What a spreadsheet holds, seen before it is read. formulas: cells without the result of theirs."""

    formulas: int = 0


def refuse_unpacked(origin: str, packed: int, unpacked: int) -> None:
    """Refuse what unpacks to far more than files of ratings do.

    Args:
        origin: The file, or the part of it, for messages.
        packed: Its bytes.
        unpacked: The bytes that it says it unpacks to.

    Raises:
        LabelsError: For such a file.
    """
    if unpacked > _ANYWAY and unpacked > _TIMES * max(1, packed):
        raise LabelsError(
            f"{origin}: it unpacks to {unpacked >> 20} MB, {unpacked // max(1, packed)} times its size, and is not "
            "read; save its rows as CSV"
        )


def scan_sheets(path: Path) -> Scan:
    """Look through the sheets of a packed spreadsheet, and refuse what a reader could not hold.

    Raises:
        LabelsError: For cells too far apart, and for what unpacks to too much.
    """
    scan = Scan()
    if not zipfile.is_zipfile(path):
        return scan  # the older .xls holds 16 million cells at most
    with zipfile.ZipFile(path) as book:
        for part in book.infolist():
            refuse_unpacked(path.name, part.compress_size, part.file_size)
            if re.fullmatch(r"xl/worksheets/[^/]+\.xml", part.filename):
                _scan_sheet(path.name, book, part, scan)
            elif part.filename == "content.xml":
                _refuse_repeated(path.name, book.read(part))
    return scan


def _scan_sheet(
    origin: str, book: zipfile.ZipFile, part: zipfile.ZipInfo, scan: Scan
) -> None:
    columns = set[bytes]()
    last = 0
    for chunk in _chunks(book, part):
        columns.update(_COLUMN.findall(chunk))
        last = max(last, *map(int, _ROW.findall(chunk)), 0)
        if b"<f" in chunk or b":f" in chunk:
            scan.formulas += len(_FORMULA.findall(chunk))
    widest = max(columns, key=_number, default=b"A")
    if last * _number(widest) > _MOST_CELLS:
        raise LabelsError(
            f"{origin}: the cells of a sheet reach to {widest.decode()}{last}; delete the rows and columns that are "
            "far off, or save it as CSV"
        )


def _chunks(book: zipfile.ZipFile, part: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the parts of a sheet, each from the beginning of a row, or of a cell, to that of another."""
    with book.open(part) as sheet:
        left = b""
        while read := sheet.read(_CHUNK):
            whole = left + read
            end = whole.rfind(b"<row")
            end = end if end > 0 else whole.rfind(b"<c ")
            end = end if end > 0 else max(0, len(whole) - _OVERLAP)
            yield whole[:end]
            left = whole[end:]
        yield left


def _number(column: bytes) -> int:
    """Return the number of a column from its letters: 1 for A, 27 for AA."""
    number = 0
    for letter in column:
        number = number * 26 + letter - 64
    return number


def _refuse_repeated(origin: str, content: bytes) -> None:
    """Refuse an OpenDocument sheet whose rows and cells stand for more than a reader could hold.

    Empty ones count only where something is behind them.
    """
    rows = widest = 0
    empty = 0
    for row in content.split(b"<table:table-row")[1:]:
        times = int(match[1]) if (match := _ROWS_REPEATED.match(row)) else 1
        last = max(row.rfind(b"office:value"), row.rfind(b"<text:p"))
        if last < 0:
            empty += times
            continue
        rows = rows + empty + times
        empty = 0
        widest = max(widest, sum(int(n or 1) for n in _CELLS.findall(row, 0, last)))
    if rows * widest > _MOST_CELLS:
        raise LabelsError(
            f"{origin}: the cells of a sheet reach to row {rows} and column {widest}; delete rows and columns that are "
            "copies or far off, or save it as CSV"
        )
