"""Small files of spreadsheets."""

import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_KIND}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_KIND}.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">'
    '<sheets><sheet name="Ratings" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="r1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}


def workbook(path: Path, rows: list[list[object]], merged: list[str]) -> Path:
    """A file of Excel with these rows from A1, and ranges such as A2:A4 merged."""
    lines = []
    for number, row in enumerate(rows, 1):
        cells = ""
        for letter, cell in zip("ABCDEFGH", row, strict=False):
            if isinstance(cell, str) and cell:
                cells += f'<c r="{letter}{number}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
            elif not isinstance(cell, str):
                cells += f'<c r="{letter}{number}"><v>{cell}</v></c>'
        lines.append(f'<row r="{number}">{cells}</row>')
    ranges = "".join(f'<mergeCell ref="{one}"/>' for one in merged)
    merging = f"<mergeCells>{ranges}</mergeCells>" if merged else ""
    data = f"<sheetData>{''.join(lines)}</sheetData>"
    parts = _PARTS | {
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}">{data}{merging}</worksheet>'
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return path


ANSWERS = (
    "Sand it first.|Use two thin coats.|Ask somebody else.|"
    "Wait for a dry day.|Never mind it.|Paint over the rust."
)
DOORS = ["How do I paint a door?", "", "", "Can I paint a fence in winter?", "", ""]
ROWS = [
    [door, answer, n % 5 + 1]
    for n, (door, answer) in enumerate(zip(DOORS, ANSWERS.split("|"), strict=True))
]
