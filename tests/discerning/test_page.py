"""The page of `judgesmith discern --report`."""

from __future__ import annotations

import html
import html.parser
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from judgesmith.datasets.perturbations.registry import PERTURBATIONS, Amounts, Text, find_perturbations
from judgesmith.discerning.judging import Subject, judge, missing
from judgesmith.discerning.options import DiscernOptions
from judgesmith.discerning.page import marked, named_unseen, render
from judgesmith.discerning.pairs import Book, make_pairs
from judgesmith.discerning.pairs import Texts as GoodTexts
from judgesmith.discerning.run import analyse
from judgesmith.signatures.values import Verdict

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

HOSTILE = "<script>alert('x')</script>"
TOWNS = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gum", "Hazel", "Ivy", "Juniper", "Kapok", "Larch")
GOOD = [
    f"The ferry to {town} left at {i + 3} in the morning. It carried {i + 40} people and one dog. Nobody in {town} had "
    f"expected it so early. {HOSTILE if i == 2 else 'It'} went back in the evening."
    for i, town in enumerate(TOWNS)
]


class Scores:
    """A judge that scores a text by a rule."""

    def __init__(self, rule: Callable[[str], float]) -> None:
        self.rule = rule

    def score_many(self, rows: Any) -> Iterator[Verdict]:
        for row in rows:
            score = self.rule(row.output)
            yield Verdict(score=score, percent=score, explanation=f"{HOSTILE} \x1b[31m{score:.0f}")


KNOWS, BLIND = Scores(lambda text: 90.0 if text in GOOD else 20.0), Scores(lambda text: 50.0)
#: Sees characters that are gone and nothing else.
COUNTS = Scores(lambda text: float(min(100, len(text) // 4)))


def page_of(rule: Scores, names: Sequence[str], rounds: int = 0) -> str:
    good = tuple(Text(f"r{i}", text, f"Log of {i}", group=f"r{i}") for i, text in enumerate(GOOD))
    texts = GoodTexts(f"{HOSTILE}.jsonl", "output", good, len(good))
    made = make_pairs(find_perturbations(names), texts, seed=0, amounts=Amounts(), language="en")
    book = Book.open(None, {"seed": 0, "amount": "relative", "language": "en"}, lambda: made, overwrite=False)
    subject, how = Subject(HOSTILE, {"score": rule}, {"score": "x"}), DiscernOptions(rounds=rounds)
    judge(subject, missing(subject, book, "output", how), book)
    result = analyse(subject, book, PERTURBATIONS, how)
    return render(subject, result, book, how, origin=f"{HOSTILE}.jsonl", notes=[HOSTILE])


class Page(html.parser.HTMLParser):
    """Tags with attributes, rows of tables as texts, and the texts of <del> and <ins>."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.marked: dict[str, list[str]] = {"del": [], "ins": []}
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag in self.marked:
            self.marked[tag].append("")
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag  # everything is closed where it was opened

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        elif self.open and self.open[-1] in self.marked:
            self.marked[self.open[-1]][-1] += data


@pytest.fixture(scope="module")
def text() -> str:
    return page_of(COUNTS, ["all"], rounds=30)


def test_nothing_of_a_text_becomes_markup(text: str) -> None:
    page = Page(text)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "img", "link", "iframe", "base", "object", "form"}
    assert not any(name.startswith("on") or name == "src" for _, given in page.tags for name in given)
    assert HOSTILE not in text and "\x1b" not in text and "&lt;script&gt;" in text
    assert "http-equiv" in text and "default-src 'none'" in text
    # names in the figure's own vocabulary only; nothing is fetched
    assert not re.search(r'(?:href|url\()=?"?(?!"?#)[^"]*//', text)
    assert page.open == []


def test_ids_are_there_once_and_links_lead_to_them(text: str) -> None:
    page = Page(text)
    ids = [given["id"] for _, given in page.tags if given.get("id")]
    assert len(ids) == len(set(ids))
    links = [given["href"] for tag, given in page.tags if tag == "a"]
    assert len(links) == 3 and {str(link)[1:] for link in links} <= set(ids)


def test_tables_say_what_the_judge_sees() -> None:
    # 12 texts that all lose score: D = 12 ln 2 / ln 20 = 2.7765
    for rule, d, sees in ((KNOWS, "2.78", "yes"), (BLIND, "0.00", "NO")):
        (row,) = (row for row in Page(page_of(rule, ["typos:minor"], 30)).rows if row[0] == "typos:minor")
        assert (row[3].split("[")[0], row[9]) == (d, sees)


def test_what_is_not_seen_is_counted_and_listed() -> None:
    page = html.unescape(page_of(BLIND, ["character"]))
    assert f"{HOSTILE} sees 0 of 4 perturbations." in page
    assert '<li dir="auto">blind to deletions:minor, deletions:major, typos:minor, typos:major</li>' in page


def test_what_was_missed_comes_first_with_its_scores() -> None:
    # the judge notices no perturbation of the first half of the texts
    half = Scores(lambda text: 50.0 if any(town in text for town in TOWNS[:6]) else KNOWS.rule(text))
    page = page_of(half, ["irrelevant:minor"])
    parsed = Page(page)
    rows = [row for row in parsed.rows if row[-1] in ("missed", "seen")]
    assert rows == [["score", "50.00", "50.00", "missed"]] * 3
    assert "6 of 12 missed" in page
    # a sentence was added, so that nothing is struck
    assert parsed.marked["del"] == ["Struck"] and len(parsed.marked["ins"]) == 4
    seen = Page(page_of(KNOWS, ["irrelevant:minor"]))
    assert [row for row in seen.rows if row[-1] == "seen"] == [["score", "90.00", "20.00", "seen"]] * 3


def test_changes_without_harm_are_shown_only_where_a_judge_reacts() -> None:
    reacts, calm = page_of(KNOWS, ["case"]), page_of(BLIND, ["case"])
    assert "alarmed" in reacts and "12 of 12 punished" in reacts
    assert 'id="examples"' not in calm


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a b c", "a c", ([("a ", False), ("b ", True), ("c", False)], [("a c", False)])),
        ("one two.", "one tow.", ([("one ", False), ("two", True), (".", False)],
                                  [("one ", False), ("tow", True), (".", False)])),
        ("x y", "p q", ([("x y", True)], [("p q", True)])),  # the space between belongs to the change
        ("", "new", ([], [("new", True)])),
    ],
)  # fmt: skip
def test_changed_words_are_marked(before: str, after: str, expected: object) -> None:
    assert marked(before, after) == expected


def test_long_and_unseen_texts_stay_readable() -> None:
    one, other = marked("word " * 3000 + "end", "word " * 3000 + "END")
    assert one[-1] == ("end", True) and other[-1] == ("END", True) and len(one[0][0]) < 300 and "[…]" in one[0][0]
    one, _ = marked("x" * 30_000, "y")
    assert one[-1][0] == " … (10,000 more characters)"
    assert named_unseen("seen\u200b\U000e0041\u2060.") == "seen⟨3 unseen⟩."
    assert named_unseen("می\u200cخواهم") == "می\u200cخواهم"  # this joiner is spelling
    assert marked("same", "same\u200b")[1] == [("same", False), ("⟨1 unseen⟩", True)]
