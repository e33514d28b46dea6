"""The page of `judgesmith discern --report`."""

from __future__ import annotations

import html
import re

import pytest
from pages import GOOD, HOSTILE, TOWNS, discerned

from judgesmith.rooms.discerning.page import marked, named_unseen


def knows(text: str) -> float:
    return 90.0 if text in GOOD else 20.0


def blind(text: str) -> float:
    return 50.0


def rows_of(page: str) -> list[list[str]]:
    """The texts of the cells of all tables."""
    rows = (
        re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)
        for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    )
    return [
        [html.unescape(re.sub("<[^>]*>", "", cell)) for cell in row] for row in rows
    ]


def test_nothing_of_a_text_becomes_markup() -> None:
    text = discerned(
        lambda text: float(min(100, len(text) // 4)), ["all"], HOSTILE, rounds=30
    )
    assert not re.search(r"<(?:script|img|link|iframe|base|object|form)", text)
    assert "\x1b" not in text
    assert HOSTILE not in text
    assert "&lt;img src=x" in text
    assert "default-src 'none'" in text
    links = re.findall(r' href="#([^"]*)"', text)
    assert links == ["summary", "tables", "examples"]
    assert all(text.count(f' id="{link}"') == 1 for link in links)


def test_tables_say_what_the_judge_sees_and_what_it_does_not_is_counted() -> None:
    # 10 texts that all lose score: D = 10 ln 2 / ln 20 = 2.3138
    for rule, d, sees in ((knows, "2.31", "yes"), (blind, "0.00", "NO")):
        page = html.unescape(discerned(rule, ["character"], "mine", rounds=30))
        (row,) = (row for row in rows_of(page) if row[0] == "typos:minor")
        assert (row[3].split("[")[0], row[9]) == (d, sees)
    assert "mine sees 0 of 4 perturbations." in page
    assert (
        '<li dir="auto">blind to deletions:minor, deletions:major, typos:minor, typos:major</li>'
        in page
    )


def test_what_was_missed_comes_first_with_its_scores() -> None:
    # the judge notices no perturbation of the first half of the texts
    page = discerned(
        lambda text: 50.0 if any(town in text for town in TOWNS[:5]) else knows(text),
        ["irrelevant:minor"],
    )
    rows = [row for row in rows_of(page) if row[-1] in ("missed", "seen")]
    assert rows == [["score", "50.00", "50.00", "missed"]] * 3
    assert "5 of 10 missed" in page
    # a sentence was added, so that nothing is struck
    assert (page.count("<del>"), page.count("<ins>")) == (
        1,
        4,
    )  # one each in what is said of them
    seen = rows_of(discerned(knows, ["irrelevant:minor"]))
    assert [row for row in seen if row[-1] == "seen"] == [
        ["score", "90.00", "20.00", "seen"]
    ] * 3


def test_changes_without_harm_are_shown_only_where_a_judge_reacts() -> None:
    reacts, calm = discerned(knows, ["case"]), discerned(blind, ["case"])
    assert "alarmed" in reacts
    assert "10 of 10 punished" in reacts
    assert 'id="examples"' not in calm


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            "a b c",
            "a c",
            [[["a ", False], ["b ", True], ["c", False]], [["a c", False]]],
        ),
        (
            "one two.",
            "one tow.",
            [
                [["one ", False], ["two", True], [".", False]],
                [["one ", False], ["tow", True], [".", False]],
            ],
        ),
        ("x y", "p q", [[["x y", True]], [["p q", True]]]),
        ("", "new", [[], [["new", True]]]),
    ],
)
def test_changed_words_are_marked(before: str, after: str, expected: object) -> None:
    assert [[list(part) for part in side] for side in marked(before, after)] == expected


def test_long_and_unseen_texts_stay_readable() -> None:
    one, other = marked("word " * 3000 + "end", "word " * 3000 + "END")
    assert one[-1] == ("end", True)
    assert other[-1] == ("END", True)
    assert len(one[0][0]) < 300
    assert "[…]" in one[0][0]
    one, _ = marked("x" * 30_000, "y")
    assert one[-1][0] == " … (10,000 more characters)"
    assert named_unseen("seen\u200b\U000e0041\u2060.") == "seen⟨3 unseen⟩."
    assert named_unseen("می\u200cخواهم") == "می\u200cخواهم"  # this joiner is spelling
    assert marked("same", "same\u200b")[1] == [("same", False), ("⟨1 unseen⟩", True)]
