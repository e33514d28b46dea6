"""Ratings as people write them, read as a column."""

from typing import Any

import pytest

from judgesmith.datasets.ends import order_in_name
from judgesmith.datasets.loading import read_labels
from judgesmith.datasets.marks import Marks, named_scale, unrated
from judgesmith.datasets.preferences import Pairs
from judgesmith.errors import LabelsError, OptionError
from judgesmith.wording import folded


def read(cells: list[Any], **more: Any) -> tuple[str, list[float | None]]:
    marks = Marks.of(cells, **more)
    return marks.kind, [marks.number(cell) for cell in cells if not unrated(cell)]


@pytest.mark.parametrize(
    ("cells", "kind", "numbers"),
    [
        (["pass", "FAIL", " Pass "], "binary", [1, 0, 1]),
        ([True, False, "true"], "binary", [1, 0, 1]),
        (["yes", "n", "Y"], "binary", [1, 0, 1]),
        (["👍🏾", "👎", "thumbs_up", "Thumbs down"], "binary", [1, 0, 1, 0]),
        (["up", "down", ""], "binary", [1, 0]),
        (["✅", "❌"], "binary", [1, 0]),
        (["good", "bad"], "binary", [1, 0]),
        (["good", "ok", "bad"], "category", [3, 2, 1]),
        (["good", "excellent", "poor", "fair"], "category", [3, 4, 1, 2]),
        (["good", "very good", "poor", "excellent"], "score", [3, 4, 1, 5]),
        (["★★★★", "★★☆☆☆", "5 stars"], "score", [4, 2, 5]),
        (["4/5", "3 out of 5", "5"], "score", [4, 3, 5]),
        (["5 - Great", "1: awful", "3 (ok)"], "score", [5, 1, 3]),
        ([1, 0, 1], "binary", [None, None, None]),
        ([-1, 1, 1], "binary", [None, None, None]),
        ([1, 2, 5], "score", [None, None, None]),
    ],
)
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


@pytest.mark.parametrize(
    ("name", "bare", "scale"),
    [
        ("Rating (1-5)", "Rating", [1, 5]),
        ("Score [0 – 10]", "Score", [0, 10]),
        ("Helpfulness (1 = bad, 5 = great)", "Helpfulness", [1, 5]),
        ("rating_1_to_7", "rating", [1, 7]),
        ("Score out of 10", "Score", [1, 10]),
        ("quality /100", "quality", [0, 100]),
        ("Rating", "Rating", None),
        ("score_1", "score_1", None),
        ("Answer (model A)", "Answer (model A)", None),
        ("GPT-4", "GPT-4", None),
    ],
)
def test_scales_in_names(name: str, bare: str, scale: list[float] | None) -> None:
    assert named_scale(name) == (bare, scale and tuple(scale))


def order(name: str) -> str | None:
    stated = order_in_name(name, 1, 5)
    return None if stated is None else stated[0]


def test_a_scale_that_is_upside_down() -> None:
    assert order("Rank (1 = best, 5 = worst)") == "falling"
    assert order("Rating (1 = worst, 5 = best)") == "rising"


@pytest.mark.parametrize(
    ("name", "reverses"),
    [
        ("Schulnote (1 = sehr gut)", True),
        ("quality [5 = poor]", True),
        ("Note (1: best)", True),
        ("quality [5 = good]", False),
        ("quality [1 = poor]", False),
        ("quality (3 = good)", False),
    ],
)
def test_one_named_end_says_which_way_a_scale_runs(name: str, reverses: bool) -> None:
    assert (order(name) == "falling") is reverses
    rows = [{"output": f"text {n}", name: 1 + n % 5} for n in range(20)]
    if reverses:
        for scale in (None, (1.0, 5.0)):
            with pytest.raises(LabelsError, match="the lowest score is the best"):
                read_labels(rows, columns={"score": name}, scale=scale)
    else:
        assert len(read_labels(rows, columns={"score": name})) == 20


@pytest.mark.parametrize(
    ("names", "outputs"),
    [
        (
            ["prompt", "response_a", "response_b", "winner"],
            ["response_a", "response_b"],
        ),
        (["Output 1", "Output 2", "Preference"], ["Output 1", "Output 2"]),
        (["chosen", "rejected"], ["chosen", "rejected"]),
        (["output", "score_1", "score_2", "winner"], None),
        (["answer_a", "answer_b", "notes"], None),
    ],
)
def test_comparisons_are_found(names: list[str], outputs: list[str] | None) -> None:
    pairs = Pairs.find(names, {})
    assert (pairs and list(pairs.outputs)) == outputs


@pytest.mark.parametrize(
    ("said", "won"),
    [
        ("A", 1),
        ("b", 0),
        ("tie", 0.5),
        ("both bad", 0.5),
        ("response_b", 0),
        ("m-1", 1),
        ("Output A", 1),
        ("2", 0),
        ("left", 1),
        (None, None),
        ("", None),
    ],
)
def test_winners(said: Any, won: float | None) -> None:
    pairs = Pairs.find(["response_a", "response_b", "model_a", "model_b", "winner"], {})
    assert pairs is not None
    assert pairs.won({"winner": said, "model_a": "m-1", "model_b": "m-2"}) == won
    with pytest.raises(ValueError, match="names neither output; write A, B or tie"):
        pairs.won({"winner": "perhaps"})


@pytest.mark.parametrize(
    "cells",
    [
        ["1 - Very good", "2 - Good", "4 - Bad", "5 - Very bad"],
        ["1 (best)", "2", "5 (worst)"],
        ["1. strongly agree", "3. neutral", "5. strongly disagree"],
        ["1 = excellent", "2 = not bad", "5 = poor"],
        ["0: yes", "1: no"],
    ],
)
def test_words_that_are_better_the_lower_their_numbers(cells: list[str]) -> None:
    rows = [
        {"output": f"text {n}", "rating": cell, "judge_a": n}
        for n, cell in enumerate(cells * 4)
    ]
    with pytest.raises(
        LabelsError, match=r"lower ones are better.*reverse the numbers"
    ):
        read_labels(rows)
    turned = [cell.replace(cell[0], str(6 - int(cell[0])), 1) for cell in cells]
    for row, cell in zip(rows, turned * 4, strict=True):
        row["rating"] = cell
    numbers = [6 - int(cell[0]) for cell in cells]
    assert read_labels(rows).scores.tolist()[: len(cells)] == numbers


@pytest.mark.parametrize(
    "name", ["worst", "flagged", "Has defects", "reported by user"]
)
def test_a_fault_that_is_there_is_not_taken_for_the_better_answer(name: str) -> None:
    rows = [{"output": f"text {n}", name: n % 3 == 0} for n in range(12)]
    with pytest.raises(LabelsError, match=r"names a fault.*--categories"):
        read_labels(rows)
    labels = read_labels(rows, categories=["true", "false"])
    assert labels.scores.tolist() == [float(n % 3 > 0) for n in range(12)]


def test_a_person_who_rated_an_output_twice_is_named() -> None:
    rows: list[dict[str, Any]] = [
        {"output": f"text {n}", "rating": n % 5 + 1, "annotator": "ann"}
        for n in range(12)
    ]
    again = [row | {"annotator": "bob"} for row in rows] + rows[3:5]
    said = "rated one output more than once, and differently"
    assert not any(said in note for note in read_labels(rows + again).warnings)
    changed = [*rows, rows[2] | {"rating": 1}]
    (note,) = [note for note in read_labels(changed).warnings if said in note]
    assert "row 3: " in note


@pytest.mark.parametrize("name", ["max_score", "Maximum points", "Out of", "scaleMax"])
def test_ratings_of_different_maxima_are_not_of_one_scale(name: str) -> None:
    rows: list[dict[str, Any]] = [
        {"output": f"text {n}", "score": n % 5 + 1, name: (5, 10)[n % 2]}
        for n in range(12)
    ]
    with pytest.raises(LabelsError, match=r"up to 5 and up to 10.*one scale"):
        read_labels(rows)
    for n, row in enumerate(rows):
        row[name] = (5, 5.0, "5")[n % 3]
    assert read_labels(rows).scores.tolist() == [n % 5 + 1 for n in range(12)]


@pytest.mark.parametrize(
    "cells", [[0, 1], ["0", "1", "0.5"], [0.0, 1.0, None], ["1", "0", "tie"]]
)
def test_bits_may_name_either_output(cells: list[Any]) -> None:
    rows = [
        {"output_a": f"one {n}", "output_b": f"two {n}", "preference": cell}
        for n, cell in enumerate(cells * 8)
    ]
    with pytest.raises(LabelsError, match="column 'preference': 0 and 1 may be"):
        read_labels(rows)


def test_numbers_of_outputs_with_0_for_a_tie_are_choices() -> None:
    rows = [
        {"output_a": f"one {n}", "output_b": f"two {n}", "preference": n % 3}
        for n in range(12)
    ]
    assert read_labels(rows).scores.tolist()[:6] == [0.5, 0.5, 1.0, 0.0, 0.0, 1.0]


def test_winners_by_the_order_in_which_they_were_shown_are_asked_about() -> None:
    rows = [
        {"output_a": f"one {n}", "output_b": f"two {n}", "winner": "ab"[n % 2]}
        | {"swapped": n % 3 == 0}
        for n in range(12)
    ]
    (note,) = [w for w in read_labels(rows).warnings if "'swapped' is not read" in w]
    assert "undo the order" in note
    plain = [{k: v for k, v in row.items() if k != "swapped"} for row in rows]
    assert not any("undo the order" in w for w in read_labels(plain).warnings)
