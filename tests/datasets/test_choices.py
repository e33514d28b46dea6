"""A choice between two outputs in the words that people have for it."""

import pytest

from judgesmith.datasets.preferences import Pairs

PAIRS = Pairs(("response_a", "response_b"), "winner", ("model_a", "model_b"))
ROW = {"response_a": "x", "response_b": "y", "model_a": "gpt-4", "model_b": "llama"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("A", "B"),
        ("[[A]]", "[[B]]"),
        ("(a)", "(b)"),
        ("Response A", "Response B"),
        ("the first one", "the second one"),
        ("slightly A", "slightly B"),
        ("much better: A", "much better: B"),
        ("A is a bit better", "B is a bit better"),
        ("A wins", "B won"),
        ("A>>B", "A<<B"),
        ("B < A", "[[B>A]]"),
        ("gpt-4", "llama"),
        ("Left is better", "right is much better"),
    ],
)
def test_words_that_name_the_better_output(first: str, second: str) -> None:
    assert (PAIRS.share(first, ROW), PAIRS.share(second, ROW)) == (1.0, 0.0)


@pytest.mark.parametrize(
    "cell", ["tie", "A=B", "[[B=A]]", "neither", "both good", "C", "[[C]]"]
)
def test_words_for_a_tie(cell: str) -> None:
    assert PAIRS.share(cell, ROW) == 0.5


@pytest.mark.parametrize(
    "cell",
    [
        "worse: A",
        "not B",
        "A loses",
        "A/B",
        "A and B",
        "A is better than B",
        "A>A",
        "it isn't B",
        "I don’t like A",
        "better than B",
        "preferred over A",
        "superior to B",
        "dispreferred: A",
        "anything except B",
        "neither A",
        "tie (A)",
    ],
)
def test_words_that_may_name_the_worse_output_are_refused(cell: str) -> None:
    with pytest.raises(ValueError, match="names neither output"):
        PAIRS.share(cell, ROW)
