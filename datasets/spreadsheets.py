"""Files of Excel and its like as records, and cells of CSV files that a spreadsheet would run."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from judgesmith.datasets.bounds import scan_sheets
from judgesmith.datasets.marks import NUMBER
from judgesmith.errors import LabelsError, OptionError

#: What python-calamine reads.
SHEETS = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods")
#: What a spreadsheet takes for a formula's beginning (OWASP, CSV injection), behind apostrophes of ours or of the text.
#: Blanks before it are skipped by some programs.
_FORMULA = re.compile(r"'*[\s\x00]*[=+\-@\t\r\n＝＋－＠]")
#: Where a program of another country, or with other habits, ends a cell, in quotes or not, and a formula may begin.
_SPLITS = r"[;|\t\r\n\x0b\x0c\x85\u2028\u2029]"
_BEHIND = r"(?=(?:[\"'\x00]|[^\S\t\r\n\x0b\x0c\x85\u2028\u2029])*[=+\-@＝＋－＠])"
_INSIDE = re.compile(f"({_SPLITS}){_BEHIND}")
_GUARDED = re.compile(f"({_SPLITS})'{_BEHIND}")


def sheet_records(path: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the first sheet that has some, by its header: the first row with two cells or more.

    Everything else in the file goes into notes.

    Raises:
        LabelsError: For a file that cannot be read.
        OptionError: If the reader is not installed.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise OptionError(
            f"{path.name}: files of spreadsheets need python-calamine: pip install 'judgesmith[tables]', or save it as "
            "CSV"
        ) from None
    try:
        scan = scan_sheets(path)
        with CalamineWorkbook.from_path(str(path)) as book:
            opened = dict[str, Any]()
            sheets = dict[str, list[list[Any]]]()
            for name in book.sheet_names:
                opened[name] = book.get_sheet_by_name(name)
                sheets[name] = opened[name].to_python(skip_empty_area=True)
    except (CalamineError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise LabelsError(
            f"{path.name}: not a readable spreadsheet ({error}); save it again, or as CSV"
        ) from None
    starts: dict[str, int] = {}
    for name, rows in sheets.items():
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
            f"{path.name}: {scan.formulas} cells hold a formula without its result and count as empty; open the file "
            "in a spreadsheet program and save it there"
        )
    header = unique([str(cell).strip() for cell in sheets[name][start]], path.name)
    filled = _fill(sheets[name], opened[name], start, path.name)
    if filled:
        columns = ", ".join(dict.fromkeys(repr(header[place]) for place in filled))
        notes.append(
            f"{path.name}: {len(filled)} cells of merged ones have the text of all, in {columns}"
        )
    below = describing(sheets[name][start + 1 : start + 3])
    if below:
        notes.append(f"{path.name}: {below} line(s) below the header were left out")
    for cells in sheets[name][start + 1 + below :]:
        named = zip(header, cells, strict=False)
        yield {column: _cell(cell) for column, cell in named if column}


def _fill(rows: list[list[Any]], sheet: Any, header: int, origin: str) -> list[int]:
    """Give each cell that is merged with those above it, below the header, their value.

    Returns the columns of these cells.
    """
    filled = []
    top, left = sheet.start or (0, 0)
    free = sum(map(len, rows))  # merged cells do not overlap
    for (first, column), (last, _) in (
        sheet.merged_cell_ranges or ()
    ):  # none in some formats
        place = column - left
        end = min(last + 1 - top, len(rows))
        free -= max(0, end - (first + 1 - top))
        if free < 0:
            raise LabelsError(
                f"{origin}: its merged cells overlap; save it again, or as CSV"
            )
        for row in range(first + 1 - top, end):
            if (
                first - top > header
                and place < len(rows[row])
                and rows[row][place] in ("", None)
            ):
                rows[row][place] = rows[first - top][place]
                filled.append(place)
    return filled


def describing(rows: Sequence[Sequence[Any]]) -> int:
    """Return how many of the rows below a header describe its columns, as Qualtrics has it: texts, then import ids."""
    for number, row in enumerate(rows[:2], 1):
        cells = [cell for cell in row if cell not in ("", None)]
        ids = [cell for cell in cells if str(cell).lstrip().startswith('{"ImportId"')]
        if ids and len(ids) * 2 >= len(cells):
            return number
    return 0


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


def unique(header: list[str], origin: str) -> list[str]:
    """Return the header itself.

    Raises:
        LabelsError: If two columns have one name.
    """
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice is not None:
        raise LabelsError(
            f"{origin}: column {twice!r} appears twice in the header; rename one of them"
        )
    return header


def guarded(cell: Any) -> Any:
    """Return a cell that no spreadsheet runs, whatever separates its cells.

    A text that begins like a formula gets an apostrophe in front, and one behind each semicolon, bar, tab or line break
    that a formula may follow. Numbers, also those written as text, stay.
    """
    if not isinstance(cell, str) or NUMBER.fullmatch(cell):
        return cell
    cell = _INSIDE.sub(r"\1'", cell)
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unguarded(cell: str) -> str:
    """Return the text that `guarded` was given."""
    cell = cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
    return _GUARDED.sub(r"\1", cell)
