"""No cell of a CSV file that is written for people is a formula, and what was written is read again."""

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbooks import DOORS, ROWS, workbook

from judgesmith.datasets.loading import iter_rows, read_labels
from judgesmith.datasets.spreadsheets import guarded, unguarded
from judgesmith.errors import LabelsError

texts = st.text() | st.text("'\"=+-@\t\r\n ;|\u2028＝0.5eE", max_size=9)


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


@pytest.mark.parametrize("end", [";", "\t", "\n", "\r\n", "|", "\u2028", "\x0b"])
@pytest.mark.parametrize("before", ["", " ", '"', "'", '" ', "\xa0"])
@pytest.mark.parametrize("start", "=+-@＝")
def test_no_formula_stands_where_another_program_ends_a_cell(
    end: str, before: str, start: str
) -> None:
    text = f"A summary{end}{before}{start}1+cmd|' /C calc'!A0{end}of the text"
    file = io.StringIO()
    table = csv.writer(file, quoting=csv.QUOTE_ALL)
    table.writerow(["id", guarded(text), guarded(f"{start}A2"), 3.5])
    for delimiter in ";\t|,":
        lines = re.split("[\r\n\x0b\u2028]+", file.getvalue())
        for cells in csv.reader(lines, delimiter=delimiter):
            for cell in cells:
                assert cell.strip('"\x00 \xa0')[:1] not in set("=+-@＝") or not cell
    assert unguarded(guarded(text)) == text


def test_guarding_takes_time_that_grows_with_the_length() -> None:
    for text in ("\n" * 200_000, "; " * 200_000, ";" + "'" * 200_000, '\t"' * 100_000):
        assert unguarded(guarded(text)) == text


# -- merged cells and dates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("title", [False, True])
def test_merged_cells_have_the_text_of_all(title: bool, tmp_path: Path) -> None:
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
    path = workbook(tmp_path / "l.xlsx", [["source", "output", "score"], *ROWS], [])
    labels = read_labels(path, min_rows=6)
    assert (
        "l.xlsx: 4 of 6 rows have no source and are judged without one"
        in labels.warnings
    )


def test_dates_of_a_spreadsheet_are_named(tmp_path: Path) -> None:
    rows: list[list[object]] = [[*row[:2], "2026-05-04"] for row in ROWS]
    with pytest.raises(
        LabelsError,
        match=r"row 1, .*is a date, perhaps a rating such as 4/5.* \(6 such cells: rows 1, 2",
    ):
        read_labels(
            workbook(tmp_path / "l.xlsx", [["source", "output", "score"], *rows], []),
            min_rows=6,
        )
