"""No cell of a CSV file that is written for people is a formula, and what was written is read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.datasets.spreadsheets import guarded, unguarded

texts = st.text() | st.text("'=+-@\t\r\n ＝0.5eE", max_size=6)


@given(texts)
def test_what_is_guarded_is_read_again(text: str) -> None:
    assert unguarded(guarded(text)) == text


@given(
    st.sampled_from(["=", "+", "-", "@", "\t", "\r", "\n", " =", "＝", "'="]), st.text("HYPERLINK|cmd!(", min_size=1)
)
def test_a_formula_is_a_text(start: str, rest: str) -> None:
    assert guarded(start + rest).startswith("'")


@pytest.mark.parametrize("cell", ["-3.5", "+1", "-.5e-3", "plain", "a=b", "'quoted'", "", -3.5, 0, None, True])
def test_numbers_and_plain_texts_stay(cell: object) -> None:
    assert guarded(cell) == cell
