"""Files of Excel and its like, by python-calamine."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgesmith.datasets.bounds import Scan, scan_sheets
from judgesmith.datasets.formats import Format, formats
from judgesmith.datasets.spreadsheets import describing, unique
from judgesmith.datasets.tables import Record, Table
from judgesmith.errors import LabelsError


@formats.register
class Workbook(Format):
    """The first sheet that has rows."""

    name = "workbook"
    about = ".xlsx, .xlsm, .xls, .xlsb, .ods: the first sheet with rows"
    suffixes = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods")

    def open(self, path: Path) -> Table:
        table = super().open(path)
        return Table(table.origin, table.records, has_header=True, notes=table.notes)

    def records(self, path: Path, notes: list[str]) -> Iterator[Record]:
        """Yield the rows by their header: the first row with two cells or more.

        Raises:
            LabelsError: For a file that cannot be read.
            OptionError: If the reader is not installed.
        """
        scan, book = _book(path)
        starts: dict[str, int] = {}
        for name, (_, rows) in book.items():
            first = _start(rows)
            if first is not None:
                starts[name] = first
        if not starts:
            return
        name, start = next(iter(starts.items()))
        if len(starts) > 1:
            others = ", ".join(map(repr, list(starts)[1:6]))
            notes.append(
                f"{path.name}: the sheet {name!r} was read; the others have rows, too, and were not: {others}"
            )
        if start:
            notes.append(f"{path.name}: {start} line(s) above the header were left out")
        if scan.formulas:
            notes.append(
                f"{path.name}: {scan.formulas} cells hold a formula without its result and count as empty; open the "
                "file in a spreadsheet program and save it there"
            )
        sheet, rows = book[name]
        header = unique([str(cell).strip() for cell in rows[start]], path.name)
        filled = _fill(rows, sheet, start, path.name)
        if filled:
            columns = ", ".join(dict.fromkeys(repr(header[place]) for place in filled))
            notes.append(
                f"{path.name}: {len(filled)} cells of merged ones have the text of all, in {columns}"
            )
        below = describing(rows[start + 1 : start + 3])
        if below:
            notes.append(f"{path.name}: {below} line(s) below the header were left out")
        for cells in rows[start + 1 + below :]:
            named = zip(header, cells, strict=False)
            yield {column: _cell(cell) for column, cell in named if column}


def _book(path: Path) -> tuple[Scan, dict[str, tuple[Any, list[list[Any]]]]]:
    """Return what was seen of a file before it was read, and each sheet by its name, with its rows."""
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        scan = scan_sheets(path)
        sheets: dict[str, tuple[Any, list[list[Any]]]] = {}
        with CalamineWorkbook.from_path(str(path)) as book:
            for name in book.sheet_names:
                sheet = book.get_sheet_by_name(name)
                sheets[name] = sheet, sheet.to_python(skip_empty_area=True)
            return scan, sheets
    except (CalamineError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise LabelsError(
            f"{path.name}: not a readable spreadsheet ({error}); save it again, or as CSV"
        ) from None


def _fill(rows: list[list[Any]], sheet: Any, header: int, origin: str) -> list[int]:
    """Give each cell that is merged with those above it, below the header, their value.

    Returns the columns of these cells.
    """
    filled = []
    top, left = sheet.start or (0, 0)
    free = sum(map(len, rows))  # merged cells do not overlap
    # Some formats have none.
    for (first, column), (last, _) in sheet.merged_cell_ranges or ():
        place = column - left
        end = min(last + 1 - top, len(rows))
        free -= max(0, end - (first + 1 - top))
        if free < 0:
            raise LabelsError(
                f"{origin}: its merged cells overlap; save it again, or as CSV"
            )
        if first - top <= header:
            continue
        for row in range(first + 1 - top, end):
            if place < len(rows[row]) and rows[row][place] in ("", None):
                rows[row][place] = rows[first - top][place]
                filled.append(place)
    return filled


def _start(rows: list[list[Any]]) -> int | None:
    """Return the place of the header, None without one."""
    for place, row in enumerate(rows):
        if sum(cell not in ("", None) for cell in row) >= 2:
            return place
    return None


def _cell(cell: Any) -> Any:
    """Numbers as numbers (a spreadsheet has no whole ones), dates as text."""
    if isinstance(cell, (bool, int, float, str)):
        return cell
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)
