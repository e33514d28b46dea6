"""Marked spans in three notations, checked against their texts."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_lines import write
from tables import table

from judgesmith.datasets.spans import SEVERITIES, Span, _token_places, read_spans
from judgesmith.errors import LabelsError


@pytest.fixture
def spans_file(tmp_path: Path):
    return lambda *records: write(tmp_path / "set.spans.jsonl", records)


TEXT = "The pub's food is  cheap (£5)."


def test_places_in_characters(spans_file) -> None:
    path = spans_file(
        {
            "id": "a",
            "output": TEXT,
            "errors": [
                {
                    "start": 4,
                    "end": 9,
                    "text": "pub's",
                    "severity": "Major",
                    "category": "Style",
                    "explanation": "why",
                },
                {"start": None, "end": None, "text": "the area", "severity": 5},
                {"start": 3, "end": 3},
            ],
        },
        {"id": 7, "errors": [{"text": "an omission needs no text"}]},
    )
    (marked,) = read_spans(path).people.values()
    placed, omission, nowhere = marked["a"]
    assert placed == Span("pub's", 4, 9, 4.0, "Style", "why", "exact")
    assert (omission.text, omission.start, omission.severity, omission.how) == (
        "the area",
        None,
        5.0,
        "omission",
    )
    assert (nowhere.start, nowhere.end, nowhere.how) == (None, None, "omission")
    assert marked["7"][0].how == "omission"


def test_places_in_tokens(spans_file) -> None:
    tokens = "The pub 's food is cheap ( £ 5 ) ."
    errors = [
        {"start": 2, "end": 3, "tokens": "pub 's", "type": "NAME", "comment": "no"},
        {"start": 6, "end": 10, "tokens": "cheap ( £ 5 )"},
    ]
    path = spans_file({"id": "a", "tokenized": tokens, "errors": errors})
    (marked,) = read_spans(path, {"a": TEXT}).people.values()
    first, second = marked["a"]
    assert (TEXT[first.start : first.end], first.category, first.explanation) == (
        "pub's",
        "NAME",
        "no",
    )
    assert math.isnan(first.severity)
    assert second.text == TEXT[second.start : second.end] == "cheap (£5)"
    without = read_spans(path)
    assert (without.people, without.unplaced, without.ids) == ({}, ("a",), frozenset())


def test_places_in_the_text_itself(spans_file) -> None:
    errors = [
        {"target": "The <v>pub's</v> food is  <v>cheap</v> (£5).", "severity": "minor"},
        {"target": TEXT, "severity": "Major", "category": "Accuracy/Omission"},
        {"target": TEXT, "severity": "No-error", "category": "No-error"},
    ]
    (marked,) = read_spans(
        spans_file({"id": "a", "errors": errors}), {"a": TEXT}
    ).people.values()
    assert [(s.text, s.start, s.end, s.severity, s.how) for s in marked["a"]] == [
        ("pub's", 4, 9, 2.0, "exact"),
        ("cheap", 19, 24, 2.0, "exact"),
        ("", None, None, 4.0, "omission"),
    ]


def test_severities_by_name_and_number(spans_file) -> None:
    names = [
        "Neutral",
        "minor",
        "MODERATE",
        " major ",
        "Critical",
        1,
        2.5,
        "3",
        None,
        "",
    ]
    errors = [{"start": 0, "end": 1, "severity": severity} for severity in names]
    (marked,) = read_spans(
        spans_file({"id": "a", "output": TEXT, "errors": errors})
    ).people.values()
    severities = [span.severity for span in marked["a"]]
    assert severities[:8] == [1, 2, 3, 4, 5, 1, 2.5, 3]
    assert all(map(math.isnan, severities[8:]))
    # The linear credit over 1..5 is the half of WMT between its two severities.
    assert 1 - abs(SEVERITIES["minor"] - SEVERITIES["major"]) / 4 == 0.5


def test_several_people(spans_file) -> None:
    one = [{"start": 0, "end": 3}]
    path = spans_file(
        {"id": "a", "output": TEXT, "annotator": "x", "errors": one},
        {"id": "a", "output": TEXT, "annotator": "y", "errors": []},
        {"id": "b", "output": TEXT, "annotator": "y", "errors": one},
    )
    spans = read_spans(path)
    assert {person: sorted(marked) for person, marked in spans.people.items()} == {
        "x": ["a"],
        "y": ["a", "b"],
    }
    assert spans.people["y"]["a"] == ()  # read, and nothing found
    assert spans.ids == {"a", "b"}


@pytest.mark.parametrize(
    ("record", "words"),
    table(__file__, "wrong_spans"),
)
def test_a_wrong_record_is_refused_with_its_place(
    spans_file, record: dict[str, object], words: str
) -> None:
    path = spans_file({"id": "first", "output": "x", "errors": []}, record)
    with pytest.raises(LabelsError, match=words) as raised:
        read_spans(path, {"a": TEXT})
    assert str(raised.value).startswith("set.spans.jsonl, record 2: ")


def test_a_file_that_is_no_set_of_spans_is_refused(spans_file, tmp_path: Path) -> None:
    record = {"id": "a", "output": TEXT, "errors": []}
    with pytest.raises(LabelsError, match="'a' is marked twice"):
        read_spans(spans_file(record, record))
    with pytest.raises(LabelsError):
        read_spans(spans_file())
    with pytest.raises(LabelsError, match="there is no such file"):
        read_spans(tmp_path / "no.jsonl")


@pytest.mark.parametrize(
    ("tokens", "text", "words"),
    [
        (
            "D.J Archer won",
            "D.J. Archer won",
            ["D.J", "Archer", "won"],
        ),  # a mark that only the text has
        ("He said : `` no ''", 'He said: "no"', ["He", "said", ":", '"', "no", '"']),
        ("a ... b", "a b", ["a", "", "b"]),  # and one that only the tokens have
        ("x", "", None),
        ("", "x", None),
        ("one", "two", None),
    ],
)
def test_tokens_are_found_in_their_text(
    tokens: str, text: str, words: list[str] | None
) -> None:
    places = _token_places(tokens.split(), text)
    assert (None if places is None else [text[s:e] for s, e in places]) == words


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text("abc.,'é", min_size=1, max_size=5), max_size=8), st.data())
def test_every_token_of_a_retokenised_text_is_found(
    words: list[str], data: st.DataObject
) -> None:
    """However spaces are put between the tokens, each is found where it stands."""
    text, places = "", []
    for word in words:
        text += data.draw(st.sampled_from(["", " ", "  ", "\n"]))
        places.append((len(text), len(text) + len(word)))
        text += word
    assert _token_places(words, text) == places
