"""Tables on a terminal: as wide as it is, without a broken word, or lists."""

from __future__ import annotations

import doctest
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from judgesmith import tables
from judgesmith.running.console import ShownConsole
from judgesmith.tables import Cell, Column, Table

NAME = "gpt-4o-mini-2024-07-18-with-rubric"


def lines_of(table: Table, width: int) -> list[str]:
    file = io.StringIO()
    table.show(ShownConsole(width=width, file=file, highlight=False))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def agreement() -> Table:
    numbers = [Column(name, ".3f", ".2f") for name in ("Pearson r", "Kendall τ-b")]
    table = Table(["judge", "aspect", Column("n", "s"), *numbers], "Agreement, pooled")
    table.add(NAME, "overall", "37 rows", Cell(0.541, 0.16, 0.78), Cell(0.5, 0.1, 0.7))
    table.add("people", "overall", "2 raters", Cell(0.9, 0.8, 0.95), kind="human")
    return table


def test_the_width_of_columns_is_as_the_docstring_says() -> None:
    assert doctest.testmod(tables).failed == 0


def test_a_table_that_fits_has_a_line_for_each_row() -> None:
    # 34 + 7 + 8 + 18 + 18 characters, and 2 for each gap
    text = lines_of(agreement(), 95)
    assert f" {NAME}  overall   37 rows  0.541 [0.16, 0.78]  0.500 [0.10, 0.70]" in text


def test_intervals_go_below_their_values_before_a_table_is_a_list() -> None:
    text = lines_of(agreement(), 94)
    row = next(place for place, line in enumerate(text) if NAME in line)
    assert text[row].split() == [NAME, "overall", "37", "0.541", "0.500"]
    assert text[row + 1].split() == ["rows", "[0.16,", "0.78]", "[0.10,", "0.70]"]


def test_a_table_that_does_not_fit_is_a_list_of_its_rows() -> None:
    assert lines_of(agreement(), 60) == [
        "Agreement, pooled",
        NAME,
        "  aspect: overall",
        "  n: 37 rows",
        "  Pearson r: 0.541 [0.16, 0.78]",
        "  Kendall τ-b: 0.500 [0.10, 0.70]",
        "people",
        "  aspect: overall",
        "  n: 2 raters",
        "  Pearson r: 0.900 [0.80, 0.95]",
        "",
    ]


def test_sections_and_names_without_titles_stand_in_a_list_too() -> None:
    table = Table(["", ""], header=False)
    table.add("model", "a/" + 60 * "b")
    table.section("later")
    table.add("scale", "1 to 5")
    assert lines_of(table, 40) == [
        "model",
        "  a/" + 36 * "b",
        "  " + 24 * "b",
        "",
        "later",
        "scale",
        "  1 to 5",
        "",
    ]


words = st.text(st.characters(codec="utf-8", categories=["L", "N"]), max_size=12)
texts = st.lists(words, max_size=6).map(" ".join)


@given(
    st.lists(st.tuples(texts, texts, st.floats(-9, 9)), min_size=1, max_size=4),
    st.integers(20, 100),
)
def test_no_line_is_too_long_and_no_word_broken(
    rows: list[tuple[str, str, float]], width: int
) -> None:
    table = Table(["name", "what", Column("agreement", ".2f")], "Some rows")
    for name, what, value in rows:
        table.add(name, what, Cell(value, value - 1, value + 1))
    lines = lines_of(table, width)
    assert max(map(cell_len, lines)) <= width
    said = set(re.split(r"\s+", " ".join(lines)))
    for name, what, value in rows:
        short = (word for word in (*name.split(), *what.split()) if cell_len(word) < 12)
        assert {*short, f"{value:.2f}", f"[{value - 1:.2f},"} <= said


@pytest.mark.parametrize("width", [40, 200])
def test_text_of_a_cell_is_one_line_and_acts_on_nothing(width: int) -> None:
    table = Table(["judge", "agreement", "reason"])
    table.add("a\nb\x1b[2J", "[red]x", "why " * 12)
    text = "\n".join(lines_of(table, width))
    assert "a b\ufffd[2J" in text
    assert "[red]x" in text
