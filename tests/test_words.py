"""One word for one thing: in pages, in help and in all that code prints. docs/words.yaml has the table."""

import re
from pathlib import Path

import pytest
from scripts import script

pytestmark = pytest.mark.text

ROOT = Path(__file__).resolve().parents[1]
words = script("words")
#: Results say what was compared when it was, under the names of then.
PAGES = [path for path in words.pages() if "results" not in path.parts]
CODE = [
    path
    for path in words.sources()
    if "bench" not in path.parts and "testing" not in path.parts
]
FIRST = [
    path
    for path in PAGES
    if path.relative_to(ROOT).as_posix().startswith(tuple(words.FIRST))
]


def test_every_term_is_in_the_table_once_and_means_something() -> None:
    table = words._TABLES["terms"]
    assert len(table) >= 8
    assert all(about["means"] and about["instead"] for about in table.values())


def test_a_page_calls_a_thing_by_its_one_name() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word!r}: {instead}"
        for path in PAGES
        if path.name != "CHANGELOG.md"
        for line, word, instead in words.named_otherwise(path.read_text("utf-8"))
    ]
    assert found == []


def test_what_is_printed_calls_a_thing_by_its_one_name() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word!r}: {instead}"
        for path in CODE
        for line, word, instead in words.named_otherwise_in_code(
            path.read_text("utf-8")
        )
    ]
    assert found == []


@pytest.mark.parametrize("page", FIRST, ids=lambda path: path.stem)
def test_a_first_page_needs_no_term_of_the_house(page: Path) -> None:
    text = re.sub(r"\[[^\]]*\]\([^)]*\)", "", page.read_text("utf-8"))  # links explain
    found = list(words.wrong(text, {rf"\b{term}\b": "" for term in words.HOUSE}))
    assert found == []


@pytest.mark.parametrize(
    "text", ["better than zero-shot", "The *surface* line", "p = 0.000"]
)
def test_another_name_would_be_found(text: str) -> None:
    assert list(words.named_otherwise(text))
    assert list(words.named_otherwise_in_code(f"print({text!r})"))


def test_names_of_options_and_quotations_are_left_alone() -> None:
    text = "`--optimizer zero-shot`, or the *own words* of a user"
    assert list(words.named_otherwise(text)) == []
