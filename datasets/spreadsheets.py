"""Files of Excel and its like as records, the encodings of text files that are no UTF-8, and cells of CSV files that
a spreadsheet would run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import LabelsError, OptionError
from .marks import NUMBER

#: What python-calamine reads.
SHEETS = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods")
#: Encodings that spreadsheets write; of more a detector finds exotic ones in short texts.
_PLAUSIBLE = [
    "cp1252", "mac_roman", "cp1251", "cp932", "gb18030", "big5", "cp949", "utf_16_le", "utf_16_be", "cp1253", "cp1255",
    "cp1256",
]  # fmt: skip
_NAMES = {
    "cp1252": "Windows-1252", "mac_roman": "Mac Roman", "cp1251": "Windows-1251", "cp932": "Shift JIS",
    "cp949": "EUC-KR", "cp1253": "Windows-1253", "cp1255": "Windows-1255", "cp1256": "Windows-1256",
}  # fmt: skip
#: Dashes, quotes and dots of Windows-1252, which are accented letters in Mac Roman.
_MARKS = frozenset(b"\x80\x85\x91\x92\x93\x94\x95\x96\x97\x99")
_SAMPLE = 1 << 20
#: What a spreadsheet takes for a formula's beginning (OWASP, CSV injection), behind apostrophes of ours or of the text.
#: Blanks before it are skipped by some programs.
_FORMULA = re.compile(r"'*[\s\x00]*[=+\-@\t\r\n＝＋－＠]")


def sheet_records(path: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of the first sheet that has some, by its header: the first row with two cells or more. What else there
    is goes into notes. Raises LabelsError, OptionError where the reader is not installed."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise OptionError(
            f"{path.name}: files of spreadsheets need python-calamine: pip install 'judgesmith[tables]', or save it as "
            "CSV"
        ) from None
    try:
        with CalamineWorkbook.from_path(str(path)) as book:
            sheets = {name: book.get_sheet_by_name(name).to_python(skip_empty_area=True) for name in book.sheet_names}
    except (CalamineError, OSError, ValueError) as error:
        raise LabelsError(f"{path.name}: not a readable spreadsheet ({error}); save it again, or as CSV") from None
    starts = {name: start for name, rows in sheets.items() if (start := _start(rows)) is not None}
    if not starts:
        return
    name, start = next(iter(starts.items()))
    if len(starts) > 1:
        others = ", ".join(repr(other) for other in list(starts)[1:6])
        notes.append(f"{path.name}: the sheet {name!r} was read; the others have rows, too, and were not: {others}")
    if start:
        notes.append(f"{path.name}: {start} line(s) above the header were left out")
    header = unique([str(cell).strip() for cell in sheets[name][start]], path.name)
    for cells in sheets[name][start + 1 :]:
        yield {name: _cell(cell) for name, cell in zip(header, cells, strict=False) if name}


def _start(rows: list[list[Any]]) -> int | None:
    """The place of the header."""
    return next((i for i, row in enumerate(rows) if sum(cell not in ("", None) for cell in row) >= 2), None)


def _cell(cell: Any) -> Any:
    """Numbers as numbers (a spreadsheet has no whole ones), dates as text."""
    if isinstance(cell, (bool, int, float, str)):
        return cell
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)


def unique(header: list[str], origin: str) -> list[str]:
    """The header itself. Raises LabelsError where two columns have one name."""
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice is not None:
        raise LabelsError(f"{origin}: column {twice!r} appears twice in the header; rename one of them")
    return header


def detected(content: bytes) -> tuple[str, str] | None:
    """(codec, name for people) of text that is no UTF-8, None where nothing plausible was found."""
    from charset_normalizer import from_bytes

    sample = content[:_SAMPLE]
    best = from_bytes(sample, cp_isolation=_PLAUSIBLE).best()
    codec = "cp1252" if best is None else best.encoding
    if codec == "mac_roman":
        upper = [byte for byte in sample if 0x80 <= byte < 0xA0]
        codec = "cp1252" if sum(byte in _MARKS for byte in upper) * 2 >= len(upper) else codec
    for one in dict.fromkeys((codec, "cp1252")):
        try:
            content.decode(one)
        except UnicodeDecodeError:
            continue
        return one, _NAMES.get(one, one.replace("_", "-").upper())
    return None


def guarded(cell: Any) -> Any:
    """A cell that no spreadsheet runs: a text that begins like a formula gets an apostrophe in front; numbers, also
    those written as text, stay."""
    runs = isinstance(cell, str) and _FORMULA.match(cell) and not NUMBER.fullmatch(cell)
    return f"'{cell}" if runs else cell


def unguarded(cell: str) -> str:
    """The text that `guarded` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
