"""What of an output stands in its source, context and reference."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.programs.readings.facts import (
    details_in,
    facts,
    found_in,
    names_in,
    numbers_in,
    sentence_numbers,
    sentences_of,
    values_in,
    values_said,
)
from judgesmith.programs.readings.kinds import read_row
from judgesmith.programs.readings.passages import Text
from judgesmith.programs.readings.spellings import one_spelling

ARTICLE = "Ada Lovelace met Charles Babbage in June 1833. She did not build the engine. It had 1,000 wheels."


def test_sequences_of_words_that_a_source_has() -> None:
    made, source = (
        ["the", "cat", "sat", "on", "the", "cat"],
        ["the", "cat", "sat", "down"],
    )
    assert found_in(made, source, 1) == pytest.approx(5 / 6)  # all but "on"
    assert found_in(made, source, 2) == pytest.approx(
        3 / 5
    )  # the cat, cat sat, the cat; not sat on, on the
    assert found_in(made, source, 3) == pytest.approx(1 / 4)  # the cat sat
    assert math.isnan(found_in(["one"], source, 2))
    assert math.isnan(found_in(made, [], 1))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "In 1833 he had seven of 1,200 wheels at 7.50 each.",
            {"1833", "7", "1200", "7.5"},
        ),
        ("Seven, 007 and 7.0 are one number; 7,5 is another.", {"7", "7.5"}),
        ("none", set()),
    ],
)
def test_numbers_have_one_form(text: str, found: set[str]) -> None:
    assert numbers_in(one_spelling(text)) == found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It had 1,200 wheels.", "It had 1200 wheels."),
        ("It had 1,200 wheels.", "It had 1 , 200 wheels."),
        ("It had 1,200 wheels.", "It had 1\u202f200 wheels."),
        ("It had 1,200 wheels.", "It had one thousand two hundred wheels."),
        ("It had 1,200 wheels.", "It had 1.2 thousand wheels."),
        ("She was 21 of 95.", "She was twenty-one of ninety five."),
        ("305 people", "three hundred and five people"),
        ("2000005 people", "two million and five people"),
        ("It cost $1.5 million.", "It cost 1,500,000 dollars."),
        ("£ 53million", "53 million pounds"),
        ("It rose 5%.", "It rose 5 per cent."),
        ("It rose 5 %.", "It rose 5 percent."),
        ("On Jan. 5th", "On January 5"),
        ("On 5 Sept 1833", "On 5 September 1833"),
        ("She didn't, can't and won't.", "She did not, can not and will not."),
        ("She did n’t and cannot.", "She did not and can not."),
    ],
)
def test_two_spellings_of_one_thing_count_alike(one: str, other: str) -> None:
    assert one_spelling(one) == one_spelling(other)
    assert facts(Text(one, other)) == pytest.approx(facts(Text(one, one)), nan_ok=True)


@pytest.mark.parametrize(
    "text",
    [
        "One of them, or no one, often won a tenner.",
        "between 12,34 and 113-107 (32-18)",
        "Mar and Dec may march; the $ is a dollar.",
        "100, 200, 300",
        "v1.200.300 at 1.2.3.4",
    ],
)
def test_what_has_one_spelling_stays(text: str) -> None:
    assert one_spelling(text).replace("dollars", "$") == text


def test_numbers_side_by_side_stay_apart() -> None:
    assert (
        one_spelling("between five and six, ten or two") == "between 5 and 6, 10 or 2"
    )


def test_names_are_capitals_where_no_sentence_begins() -> None:
    assert names_in("Yesterday Ada's friend met O'Brien. Then I left Berlin.") == {
        "ada",
        "o",
        "brien",
        "berlin",
    }
    assert details_in("He left in May, on monday; he may be 12.") == {
        "may",
        "monday",
        "12",
    }


@pytest.mark.parametrize(
    ("output", "worse", "key"),
    [
        ("Then Ada met Babbage.", "Then Ada met Faraday.", "details"),
        ("The engine had 1000 wheels.", "The engine had 1500 wheels.", "details"),
        ("They met in June.", "They met in July.", "details"),
        ("She did not build the engine.", "She did build the engine.", "negations"),
        ("She never built the engine.", "She built the engine.", "negations"),
        (
            "Ada met Charles Babbage. It had wheels.",
            "Ada met Charles Babbage. Dragons ruled London.",
            "weakest",
        ),
        ("It had 1,000 wheels.", "Horses drew the carriage.", "supported"),
        ("She did not build it.", "She built it not.", "triples"),
    ],
)
def test_a_changed_fact_is_read(output: str, worse: str, key: str) -> None:
    right, wrong = (facts(Text(ARTICLE, text))[key] for text in (output, worse))
    assert right > wrong


def test_each_sentence_stands_beside_its_own_in_the_source() -> None:
    made = sentences_of("Lovelace met Babbage. She did build the engine.")
    found = sentence_numbers(made, sentences_of(ARTICLE))
    assert found == {"supported": 1.0, "weakest": 1.0, "negations": 0.0}
    mixed = sentences_of("Lovelace built wheels.")  # no sentence has them all
    assert (
        found["supported"]
        > sentence_numbers(mixed, sentences_of(ARTICLE))["supported"]
        == pytest.approx(1 / 3)
    )


@pytest.mark.parametrize(
    ("source", "values"),
    [
        (
            "inform(name='The Vaults',area=centre)",
            [("name", "The Vaults"), ("area", "centre")],
        ),
        (
            "name[The Vaults], familyFriendly[no]",
            [("name", "The Vaults"), ("familyFriendly", "no")],
        ),
        (
            "Ada | born | 1815\nAda | field | maths",
            [("born", "Ada"), ("born", "1815"), ("field", "Ada"), ("field", "maths")],
        ),
        (
            "team | points\nBulls | 99",
            [("", "team"), ("", "points"), ("", "Bulls"), ("", "99")],
        ),
        (
            '{"name": "Ada", "awards": [1, null]}',
            [("name", "Ada"), ("awards", "1"), ("awards", "")],
        ),
        ("A sentence with a = b in it, and much else beside that.", []),
        ("{not json", []),
        ("", []),
    ],
)
def test_values_of_tables_and_meaning_representations(
    source: str, values: list[tuple[str, str]]
) -> None:
    assert values_in(source) == values


def test_values_that_an_output_says() -> None:
    source = (
        "name[The Vaults], priceRange[moderate], familyFriendly[no], area[riverside]"
    )
    said = "The Vaults is moderately priced and not family friendly"
    assert (
        values_said(source, said.casefold().split()) == 0.75
    )  # all but the area; yes and no by the attribute
    assert math.isnan(values_said("Prose has no values.", ["prose"]))


def test_context_and_reference_are_read_where_a_row_has_them() -> None:
    bare, full = (
        facts(Text("Hi.", "Cats purr.", *more))
        for more in ((), ("Cats eat.", "", "Cats purr loudly."))
    )
    assert math.isnan(bare["context"])
    assert math.isnan(bare["of_reference"])
    assert full["context"] == 0.5
    assert full["of_reference"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("reference", "share"),
    [
        ("NYC/New York", 1.0),  # all words of the second answer; 2 of 3 of both
        ('New York City | "NYC"', 2 / 3),  # 2 of 3, and 0 of 1
        ("Boston\nNew Haven", 0.5),  # none, and 1 of 2
        ("1/2 of New York", 3 / 5),  # a slash between digits: 5 words, of, New, York
        # Eleven words are longer than an answer, so that all twelve count together.
        ("York/" + "new " * 11, 1.0),
    ],
)
def test_of_several_right_answers_the_nearest_counts(
    reference: str, share: float
) -> None:
    output = "It is the capital of New York."
    found = facts(Text("", output, reference=reference))["of_reference"]
    assert found == pytest.approx(share)


@given(
    st.text(max_size=200),
    st.text(max_size=200),
    st.text(max_size=100),
    st.text(max_size=100),
)
def test_facts_of_anything_are_shares(
    source: str, output: str, context: str, reference: str
) -> None:
    found = facts(Text(source, output, context, "", reference))
    assert all(math.isnan(value) or 0 <= value <= 1 for value in found.values())


@pytest.mark.parametrize(
    "part", [".", "a ", "1,", "a=b,", "|", "a[", "='", "not ", "A'", "word one. "]
)
def test_time_is_linear(part: str) -> None:
    """A form that is searched again from every character takes minutes for these, and not seconds."""
    text = part * (60_000 // len(part))
    started = time.process_time()
    facts(Text(text, text))
    assert time.process_time() - started < 15


def test_they_are_counts_that_need_no_model() -> None:
    text = Text(ARTICLE, "It had 1000 wheels.")
    assert read_row(None, text, layers=0, counted=True).numbers["facts.details"] == 1.0
    assert not read_row(None, text, layers=0, counted=False).numbers
