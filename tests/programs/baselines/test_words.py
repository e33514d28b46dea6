"""METEOR and SARI: values by hand and from the papers' own examples."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.errors import OptionError
from judgesmith.programs.baselines.words import Meteor, Sari, aligned, meteor, sari
from judgesmith.programs.metrics import reference_metric

pytest.importorskip("nltk")
pytest.importorskip("sacrebleu")

WORDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=8)


def test_meteor_by_hand() -> None:
    # It is a guide to action | ensures that the military | commands | party: 12 matches of 18 and 16 words, 4 chunks.
    # P = 12/18, R = 12/16, P*R / (.9 P + .1 R) = .5 / .675; penalty .5 * (4/12)^3
    output = "It is a guide to action which ensures that the military always obeys the commands of the party"
    reference = "It is a guide to action that ensures that the military will forever heed Party commands"
    assert reference_metric("metric/meteor").score(output, reference).score == pytest.approx(
        0.5 / 0.675 * (1 - 0.5 / 27)
    )


def test_a_stem_matches_where_the_word_does_not() -> None:
    # "repairs" and "repaired" have one stem: 3 of 3 words match in one chunk, penalty .5 * (1/3)^3
    assert Meteor().score("he repairs bridges", "he repaired bridges").score == pytest.approx(1 - 0.5 / 27)


def test_a_broken_order_costs() -> None:
    reference = "the cat sat on the mat"
    # on the mat | sat | the cat: 3 chunks of 6 words, penalty .5 * (3/6)^3
    assert Meteor().score("on the mat sat the cat", reference).score == pytest.approx(1 - 0.5 / 8)
    assert Meteor().score(reference, reference).score == pytest.approx(1 - 0.5 / 216)  # one chunk of 6 words


def test_meteor_against_the_source() -> None:
    verdict = reference_metric("metric/meteor:source").score("a b c", "x", source="a b c")
    assert verdict.score == pytest.approx(1 - 0.5 / 27)
    with pytest.raises(OptionError, match="against"):
        reference_metric("metric/meteor:nothing")


@given(WORDS, WORDS)
def test_an_alignment_matches_as_many_words_as_there_are(output: list[str], reference: list[str]) -> None:
    pairs = aligned(output, reference, (str,))
    assert len(pairs) == sum(min(output.count(word), reference.count(word)) for word in set(output))
    assert all(output[i] == reference[j] for i, j in pairs)
    assert all(len({pair[side] for pair in pairs}) == len(pairs) for side in (0, 1))
    assert 0 <= meteor(pairs, len(output), len(reference)) <= 1


@pytest.mark.parametrize(
    ("output", "published"),
    [
        ("About 95 you now get in .", 0.2683),
        ("About 95 species are now agreed .", 0.5890),
        ("About 95 species are currently agreed .", 0.5072),
    ],
)
def test_the_example_of_saris_authors(output: str, published: float) -> None:
    references = [
        "About 95 species are currently known .",
        "About 95 species are now accepted .",
        "95 species are now accepted .",
    ]
    verdict = Sari().score(output, references, source="About 95 species are currently accepted .")
    assert verdict.score == pytest.approx(published, abs=5e-5)
    assert verdict.percent == pytest.approx(100 * published, abs=5e-3)


def test_sari_by_hand() -> None:
    # Of the words a b c, a c are kept, as the reference does, and b is deleted, as it does; nothing is added: 1, 1, 0
    # for n = 1. Pairs: ab and bc are deleted, rightly; nothing is kept; "a c" is added, rightly: 0, 1, 1.
    # Threes: abc is deleted, rightly: 0, 1, 0. Fours: none.
    assert sari("abc", "ac", ["ac"]) == pytest.approx(((1 + 1 + 0) + (0 + 1 + 1) + (0 + 1 + 0)) / 12)


@given(WORDS, WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_sari_lies_between_0_and_1(source: list[str], output: list[str], references: list[list[str]]) -> None:
    assert 0 <= sari(source, output, references) <= 1 + 1e-9


def test_a_row_without_a_source_has_no_sari() -> None:
    rows: list[Any] = [{"output": "a", "reference": "a"}, {"output": "a", "source": "a"}]
    verdicts = list(Sari().score_many(rows))
    assert [v.failure for v in verdicts] == ["no source to compare with", "no reference to compare with"]
    assert all(math.isnan(v.score) for v in verdicts)
