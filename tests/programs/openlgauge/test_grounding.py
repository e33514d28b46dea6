"""Where the words stand that a model says it copied: as they are, up to typography, nearly, or nowhere."""

import math
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tables import table

from judgesmith.programs.openlgauge.grounding import (
    GAP,
    Grounded,
    fold,
    ground,
    ground_errors,
)
from judgesmith.programs.openlgauge.reading import FoundError

FARM = (
    "The goats sleep in the barn. At 5 – 6 o'clock the farmer opens the “old” barn.\n\n"
    "His neighbour’s dog, a naïve one, barks: “No way,” it says. The barn wasn't built in 1889."
)


def shown(found: list[Grounded], text: str) -> str | None:
    return text[found[0].start : found[0].end] if found else None


@pytest.mark.parametrize(
    ("location", "words", "how"),
    table(__file__, "as_models_write"),
)
def test_words_are_found_as_models_write_them(
    location: str, words: str | None, how: str | None
) -> None:
    found = ground(location, FARM)
    assert (shown(found, FARM), found[0].how if found else None) == (words, how)


@pytest.mark.parametrize(
    ("location", "text", "words"),
    [
        ("ﬁne straße", "In a FINE STRASSE, yes", "FINE STRASSE"),
        ("STRASSE", "die kleine Straße da", "Straße"),
        ("ＡＢＣ１２", "see abc12 there", "abc12"),
        ("十二只羊", "他有十二只山羊。", "十二只山羊"),
        ("שלום עולם", "אמר: שָׁלוֹם עוֹלָם!", "שָׁלוֹם עוֹלָם"),
        ("مرحبا بالعالم", "قال مَرْحَبًا بِالعَالَمِ", "مَرْحَبًا بِالعَالَمِ"),
        ("नमस्ते दुनिया", "कहा, नमस्ते दुनिया।", "नमस्ते दुनिया"),
        (
            "👩\u200d👩\u200d👧 FAMILY",
            "the 👩\u200d👩\u200d👧 family",
            "👩\u200d👩\u200d👧 family",
        ),
        ("❤ you", "I ❤️ you", "❤️ you"),
        ("cafés", "two cafés", "cafés"),
        ("soft hyphen", "a soft hy\xadphen", "soft hy\xadphen"),
        ("113-107", "won 113 - 107 at home", "113 - 107"),
        ("\ud800x", "a \ud800x b", "\ud800x"),
    ],
)
def test_every_script_and_every_code_point(
    location: str, text: str, words: str
) -> None:
    assert shown(ground(location, text), text) == words


def test_a_word_inside_another_is_only_taken_as_it_is() -> None:
    assert (
        shown(ground("Art", "the party and the art"), "the party and the art") == "art"
    )
    assert ground("Art", "the party") == []
    assert ground("art", "the party") == [Grounded(5, 8, "exact")]
    # Whole words first, wherever they stand.
    assert ground("art", "the party and the art") == [Grounded(18, 21, "exact")]


SHIPS = "The boat left. Then the boat sank.\nA third boat came.\n\nThe last boat stayed; no boat returned."
BOATS = [4, 24, 43, 64, 80]  # where "boat" stands


def test_an_ellipsis_takes_the_closest_head_and_stays_within_reach() -> None:
    text = "the cat ran. the cat sat on the mat."
    assert shown(ground("the cat … the mat", text), text) == "the cat sat on the mat"
    assert ground("on the mat … the cat", text) == []  # in the wrong order
    far = "the cat sat {} on the mat"
    reached = far.format("x" * (GAP - 10))
    assert shown(ground("the cat … on the mat", reached), reached) == reached
    assert ground("the cat … on the mat", far.format("x" * (GAP + 1))) == []


def test_the_threshold_decides_about_changed_words() -> None:
    text = "abcdefghij klmnopqrst"
    # Two of 20 letters are other ones: 2 * 18 / 40 = 90 %; six of 20: 2 * 14 / 40 = 70 %, under 75.
    assert [
        round(place.similarity) for place in ground("xbcdefghij klmnopqrsx", text)
    ] == [90]
    assert ground("xxxdefghij klmnopqxxx", text) == []
    # "goal" and "goat": 2·3/8 = 75, under the threshold for few letters.
    assert ground("goal", "a goat is here") == ground("tin", "a tan cat") == []


# --- errors -----------------------------------------------------------------------------------------------------------


def test_errors_become_spans() -> None:
    errors = [
        FoundError("the boat", "Which?", 2.0),
        FoundError("THE LAST BOAT", "It was the third.", 4.0),
        FoundError(None, "The year is left out.", 3.0),
        FoundError("a submarine", "Not in the data.", math.nan),
        FoundError("", "Dull.", 1.0),
        FoundError("boat", "Repeated.", 1.0),
    ]
    spans = ground_errors(errors, SHIPS, "gemma")
    assert [(s.text, s.start, s.end, s.how) for s in spans] == [
        ("the boat", 20, 28, "exact"),
        ("The last boat", 55, 68, "normalised"),
        ("omission", None, None, "omission"),
        ("a submarine", None, None, "ungrounded"),
        ("", None, None, "ungrounded"),
        ("boat", 80, 84, "exact"),
    ]
    assert [s.explanation for s in spans] == [e.explanation for e in errors]
    assert all(s.annotators == ("gemma",) for s in spans)
    assert math.isnan(spans[3].severity)
    assert ground_errors(errors[:1], SHIPS)[0].annotators == ()


def test_the_same_words_again_are_the_next_occurrence() -> None:
    spans = ground_errors(
        [FoundError("boat", "A."), FoundError("boat", "B."), FoundError("boat", "C.")],
        SHIPS,
    )
    assert [s.start for s in spans] == BOATS[:3]
    spans = ground_errors(
        [FoundError("no boat returned", "A."), FoundError("boat", "B.")], SHIPS
    )
    assert spans[1].start == BOATS[-1]  # none follows: the last one


# --- properties -------------------------------------------------------------------------------------------------------

#: Texts with what makes offsets hard: marks, ligatures, surrogates, joiners, both directions.
LETTERS = st.one_of(
    st.sampled_from(
        "abc ABC .,'\"…-–“”\n\t\u0301\u200d\ufb01ßİ½漢字שׁم👩🏽\ud800\u00ad（）1"
    ),
    st.characters(),
)
TEXTS = st.text(LETTERS, max_size=60)


@settings(deadline=None, max_examples=200)
@given(TEXTS, st.integers(0, 60), st.integers(1, 60))
@example("aaaa", 1, 2)
@example("e\u0301e", 0, 1)
@example("x  y", 1, 2)
def test_any_part_of_a_text_is_found_exactly(
    text: str, start: int, length: int
) -> None:
    words = text[start : start + length]
    if words:
        found = ground(words, text)
        assert found[0].how == "exact"
        assert all(text[g.start : g.end] == words for g in found)


@settings(deadline=None, max_examples=200)
@given(TEXTS, TEXTS)
def test_offsets_always_hold(location: str, text: str) -> None:
    for g in ground(location, text):
        assert 0 <= g.start < g.end <= len(text)
        assert g.how in ("exact", "normalised", "fuzzy")
        assert 0 < g.similarity <= 100


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.none() | TEXTS, TEXTS), max_size=5), TEXTS)
def test_errors_are_all_kept_and_show_the_output(
    errors: list[tuple[str | None, str]], output: str
) -> None:
    spans = ground_errors(
        [FoundError(place, why, 1.0) for place, why in errors], output
    )
    assert len(spans) == len(errors)
    for span, (place, _) in zip(spans, errors, strict=True):
        if span.start is None or span.end is None:
            assert span.end is None
            assert span.how == ("omission" if place is None else "ungrounded")
        else:
            assert output[span.start : span.end] == span.text != ""


@settings(deadline=None, max_examples=100)
@given(
    st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=40)
)
def test_the_decomposed_form_of_a_text_is_the_same_text(text: str) -> None:
    decomposed = unicodedata.normalize("NFD", text)
    assert ground(decomposed, text) or len(fold(text)[0]) < 4


@pytest.mark.parametrize("length", [30, 1000, 19_000])
def test_long_texts_and_long_locations(length: int) -> None:
    words = [
        f"{a}{b}{c}"
        for a in ("gra", "tel", "mon", "pis")
        for b in ("do", "li", "sa", "ru")
        for c in "nmtkx"
    ]
    text = " ".join(words[(7 * i * i + 3 * i) % 79] + str(i) for i in range(3000))[
        :20_000
    ]
    inside = text[600 : 600 + length]
    changed = inside[: length // 2] + "oops " + inside[length // 2 + 3 :]
    (found,) = ground(changed, text)
    assert found.how == "fuzzy"
    assert abs(found.start - 600) <= 20
    assert abs(found.end - min(600 + length, len(text))) <= 20
