"""Ratings as people write them, read as a column."""

from typing import Any

import pytest
from tables import cases

from judgesmith.datasets.marks import Marks, named_scale, reversed_scale, unrated
from judgesmith.datasets.preferences import Pairs
from judgesmith.errors import OptionError
from judgesmith.wording import folded

CASES = cases(__file__)


def read(cells: list[Any], **more: Any) -> tuple[str, list[float | None]]:
    marks = Marks.of(cells, **more)
    return marks.kind, [marks.number(cell) for cell in cells if not unrated(cell)]


@pytest.mark.parametrize(("cells", "kind", "numbers"), CASES["columns"])
def test_columns(cells: list[Any], kind: str, numbers: list[float | None]) -> None:
    assert read(cells) == (kind, numbers)


def test_a_word_that_does_not_fit_is_said_with_those_that_do() -> None:
    marks = Marks.of(["pass", "fail", "pss"])
    with pytest.raises(ValueError, match=r"'pss' is not one of fail, pass"):
        marks.number("pss")
    with pytest.raises(ValueError, match="is a date"):
        Marks.of(["4/5", "3/5"]).number("4-May")
    with pytest.raises(ValueError, match="'7/10' is not one of"):
        Marks.of(["4/5", "3/5", "7/10"]).number(
            "7/10"
        )  # another scale than most cells have


def test_words_of_no_known_scale() -> None:
    assert Marks.of(["gut", "mies", "gut"]).unknown == ("gut", "mies")
    marks = Marks.of(["gut", "mies"], ["mies", "gut"])
    assert (marks.kind, marks.number("Gut"), marks.names) == (
        "binary",
        1.0,
        ("mies", "gut"),
    )
    for wrong in (["gut"], ["gut", "GUT"]):
        with pytest.raises(OptionError, match="--categories"):
            Marks.of(["gut"], wrong)


@pytest.mark.parametrize("cell", [0, 0.0, False, "0", "no", "bad"])
def test_what_is_one(cell: Any) -> None:
    assert not unrated(cell)


def test_words_are_folded() -> None:
    assert [folded(x) for x in ("  Very_Good! ", True, 4.0, 4.5, "👍🏽")] == [
        "very good",
        "true",
        "4",
        "4.5",
        "👍",
    ]


@pytest.mark.parametrize(("name", "bare", "scale"), CASES["named"])
def test_scales_in_names(name: str, bare: str, scale: list[float] | None) -> None:
    assert named_scale(name) == (bare, scale and tuple(scale))


def test_a_scale_that_is_upside_down() -> None:
    assert reversed_scale("Rank (1 = best, 5 = worst)")
    assert not reversed_scale("Rating (1 = worst, 5 = best)")


@pytest.mark.parametrize(("names", "outputs"), CASES["comparisons"])
def test_comparisons_are_found(names: list[str], outputs: list[str] | None) -> None:
    pairs = Pairs.find(names, {})
    assert (pairs and list(pairs.outputs)) == outputs


@pytest.mark.parametrize(("said", "won"), CASES["winners"])
def test_winners(said: Any, won: float | None) -> None:
    pairs = Pairs.find(["response_a", "response_b", "model_a", "model_b", "winner"], {})
    assert (
        pairs is not None
        and pairs.won({"winner": said, "model_a": "m-1", "model_b": "m-2"}) == won
    )
    with pytest.raises(ValueError, match="names neither output; write A, B or tie"):
        pairs.won({"winner": "perhaps"})
