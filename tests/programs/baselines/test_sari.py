"""SARI: values by hand and from its paper's own example."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.programs.baselines.sari import Sari, sari

pytest.importorskip("sacrebleu")

WORDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("output", "published"),
    [
        ("About 95 you now get in .", 0.2683),
        ("About 95 species are now agreed .", 0.5890),
        ("About 95 species are currently agreed .", 0.5072),
    ],
)
def test_the_example_of_its_authors(output: str, published: float) -> None:
    references = [
        "About 95 species are currently known .",
        "About 95 species are now accepted .",
        "95 species are now accepted .",
    ]
    verdict = Sari().score(
        output, references, source="About 95 species are currently accepted ."
    )
    assert verdict.score == pytest.approx(published, abs=5e-5)
    assert verdict.percent == pytest.approx(100 * published, abs=5e-3)


def test_a_value_by_hand() -> None:
    # Of the words a b c, a c are kept, as the reference does, and b is deleted, as it does; nothing is added: 1, 1, 0
    # for n = 1. Pairs: ab and bc are deleted, rightly; nothing is kept; "a c" is added, rightly: 0, 1, 1.
    # Threes: abc is deleted, rightly: 0, 1, 0. Fours: none.
    assert sari("abc", "ac", ["ac"]) == pytest.approx(
        ((1 + 1 + 0) + (0 + 1 + 1) + (0 + 1 + 0)) / 12
    )


@given(WORDS, WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_it_lies_between_0_and_1(
    source: list[str], output: list[str], references: list[list[str]]
) -> None:
    assert 0 <= sari(source, output, references) <= 1 + 1e-9


def test_a_row_without_a_source_has_no_sari() -> None:
    rows: list[Any] = [
        {"output": "a", "reference": "a"},
        {"output": "a", "source": "a"},
    ]
    verdicts = list(Sari().score_many(rows))
    assert [v.failure for v in verdicts] == [
        "no source to compare with",
        "no reference to compare with",
    ]
    assert all(math.isnan(v.score) for v in verdicts)
