"""No cell of a CSV file that is written for people is a formula, and what was written is read again."""

import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.datasets import iter_rows, read_labels
from judgesmith.datasets.spreadsheets import guarded, unguarded
from judgesmith.errors import LabelsError

texts = st.text() | st.text("'=+-@\t\r\n ＝0.5eE", max_size=6)


@given(texts)
def test_what_is_guarded_is_read_again(text: str) -> None:
    assert unguarded(guarded(text)) == text


@given(
    st.sampled_from(["=", "+", "-", "@", "\t", "\r", "\n", " =", "＝", "'="]),
    st.text("HYPERLINK|cmd!(", min_size=1),
)
def test_a_formula_is_a_text(start: str, rest: str) -> None:
    assert guarded(start + rest).startswith("'")


@pytest.mark.parametrize(
    "cell",
    ["-3.5", "+1", "-.5e-3", "plain", "a=b", "'quoted'", "", -3.5, 0, None, True],
)
def test_numbers_and_plain_texts_stay(cell: object) -> None:
    assert guarded(cell) == cell


# -- merged cells and dates -------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("title", [False, True])
def test_merged_cells_have_the_text_of_all(title: bool, tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    above: list[list[object]] = [["Ratings of May", "", ""]] if title else []
    first = len(above) + 2
    merged = [
        f"A{first}:A{first + 2}",
        f"A{first + 3}:A{first + 5}",
        *(["A1:C1"] if title else []),
    ]
    path = workbook(
        tmp_path / "l.xlsx", [*above, ["source", "output", "score"], *ROWS], merged
    )
    labels = read_labels(path, min_rows=6)
    assert [row.source for row in labels.rows] == [DOORS[0]] * 3 + [DOORS[3]] * 3
    assert [
        len({row.doc_id for row in rows}) for rows in (labels.rows, labels.rows[:3])
    ] == [2, 1]
    assert (
        "l.xlsx: 4 cells of merged ones have the text of all, in 'source'"
        in labels.warnings
    )
    assert [row.source for row, _ in iter_rows(path)] == [
        row.source for row in labels.rows
    ]


def test_blanks_that_nobody_merged_are_said(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    path = workbook(tmp_path / "l.xlsx", [["source", "output", "score"], *ROWS], [])
    labels = read_labels(path, min_rows=6)
    assert (
        "l.xlsx: 4 of 6 rows have no source and are judged without one"
        in labels.warnings
    )


def test_dates_of_a_spreadsheet_are_named(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    rows: list[list[object]] = [[*row[:2], "2026-05-04"] for row in ROWS]
    with pytest.raises(
        LabelsError,
        match=r"row 1, .*is a date, perhaps a rating such as 4/5.* \(6 such cells: rows 1, 2",
    ):
        read_labels(
            workbook(tmp_path / "l.xlsx", [["source", "output", "score"], *rows], []),
            min_rows=6,
        )
