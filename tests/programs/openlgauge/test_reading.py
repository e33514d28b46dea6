"""What is read out of the error annotations that models really write, and what is said to be unusable."""

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judgesmith.programs.openlgauge.reading import (
    LABELS,
    Annotation,
    FoundError,
    annotation_form,
    read_annotation,
)

CASES: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "annotation_answers.toml").read_text(encoding="utf-8")
)["case"]


def as_written(error: FoundError) -> list[Any]:
    """An error as the file of cases gives it."""
    place = "omission" if error.location is None else error.location
    return [
        place,
        error.explanation,
        0 if math.isnan(error.severity) else error.severity,
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_hard_answer_is_read(case: dict[str, Any]) -> None:
    answer = case["answer"]
    found = read_annotation(answer, output=case.get("output", ""))
    assert [as_written(error) for error in found.errors] == case["errors"]
    assert found.label == case.get("label")
    assert found.explanation == case.get("explanation", "")
    assert found.no_error == case.get("no_error", False)
    assert (found.label_start is None) == (found.label is None)
    wanted_problems = case.get("problems", [])
    assert len(found.problems) == len(wanted_problems), found.problems
    for said, part in zip(found.problems, wanted_problems, strict=True):
        assert part in said
    assert found.repaired == case.get("repaired", True)


def test_other_labels_are_a_callers() -> None:
    labels = ("very bad", "bad", "good", "very good")
    answer = "Error 1\nLocation: twelve\nExplanation: Eleven.\nSeverity: minor\n\nOverall: very good"
    found = read_annotation(answer, labels=labels)
    assert found.label == "very good"
    assert found.problems == ("very good with 1 error",)
    assert (
        read_annotation("No Error\n\nOverall: Good", labels=("bad", "fine")).label
        is None
    )


def test_the_label_is_where_its_probabilities_are_read() -> None:
    for answer, start in (
        ("No Error\n\nOverall: Good\nReason: Good.", 19),
        ("<think>Overall: Good</think>No Error\nOverall: **good**", 48),
        ('{"errors": [], "overall": "Good"}', 27),
        ("Overall: Poor\n\nOverall: Good", 24),
        ("No Error\n\nOverall score:\n\n**Good**", 28),
    ):
        found = read_annotation(answer)
        assert (found.label, found.label_start) == ("Good", start), answer


@pytest.mark.parametrize(
    ("said", "severity"),
    [
        ("4", 4),
        ("4.5", 4.5),
        ("**4**", 4),
        ("4.", 4),
        ("4/5", 4),
        ("4 out of 5", 4),
        ("critical", 5),
        ("Minor, hardly visible", 2),
        ("4 because 2 of 3 readers are misled", 4),
        ("", None),
        ("N/A", None),
        ("0", None),
        ("7/5", None),
        ("8/10", None),
        ("3-4", None),
        ("3 or 4", None),
        ("Minor to Major", None),
        ("42", None),
        ("-3", None),
        ("<1-5>", None),
        ("9" * 5000, None),
    ],
)
def test_a_severity_is_read_or_left_out(said: str, severity: float | None) -> None:
    (error,) = read_annotation(
        f"Error 1\nLocation: a\nExplanation: b\nSeverity: {said}\n\nOverall: Poor"
    ).errors
    assert (
        math.isnan(error.severity) if severity is None else error.severity == severity
    )


@pytest.mark.parametrize(
    ("line", "places"),
    [
        ("“the barn”", ["the barn"]),
        ("„the barn“ and „the yard“", ["the barn", "the yard"]),
        ("「納屋」、「庭」", ["納屋", "庭"]),
        ('"a"; "b" or "c"', ["a", "b", "c"]),
        ('She said "no" to him', ['She said "no" to him']),
        ('"The boat" ... "at six"', ['"The boat" ... "at six"']),
        ('"the boat" (second sentence)', ['"the boat" (second sentence)']),
        ("Omission: the year", [None]),
        ("missing boys", ["missing boys"]),
        ("N/A", [""]),
        ('","', [","]),
    ],
)
def test_the_places_of_a_line(line: str, places: list[str | None]) -> None:
    errors = read_annotation(
        f"Error 1\nLocation: {line}\nExplanation: Why.\nSeverity: 1"
    ).errors
    assert [error.location for error in errors] == places


def test_the_most_severe_errors_are_kept_in_their_order() -> None:
    blocks = [
        f"Error {i}\nLocation: word {i}\nSeverity: {5 if i == 7 else i % 4 + 1}"
        for i in range(20)
    ]
    found = read_annotation("\n\n".join([*blocks, "Overall: Poor"]), most=3)
    # One has severity 5; the first two of severity 4 (i % 4 = 3) are 3 and 11.
    assert [e.location for e in found.errors] == ["word 3", "word 7", "word 11"]
    assert found.problems[0] == "20 errors, the 3 most severe are kept"


#: Answers to be mutated: the cases themselves.
ANSWERS = st.sampled_from([case["answer"] for case in CASES])
MARKS = [
    "Location:",
    "Severity: ",
    "\nOverall: ",
    "Good",
    "\n\n",
    '"',
    "“",
    "```",
    "<think>",
    "</think>",
    "|",
    "{",
    "…",
]
PIECES = st.one_of(st.text(max_size=8), st.sampled_from(MARKS))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A case's answer with pieces cut out, put in and repeated."""
    answer = draw(ANSWERS)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(answer)))
        end = draw(st.integers(start, min(len(answer), start + 40)))
        answer = (
            answer[:start]
            + draw(PIECES)
            + answer[draw(st.sampled_from([start, end])) :]
        )
    return answer


@settings(deadline=None, max_examples=300)
@given(st.one_of(mutated(), st.text(max_size=200)), st.text(max_size=80))
@example("Overall: " + "Good" * 3, "")
@example("\u00adNo Error\nOverall: \u200bFair", "")
@example("\ud800 Overall: Good \udfff", "\ud800")
def test_whatever_the_answer_is_what_is_read_holds(answer: str, output: str) -> None:
    found = read_annotation(answer, output=output)
    assert found.label in (None, *LABELS)
    if found.label_start is not None:
        assert 0 <= found.label_start < len(answer)
        if found.label is not None:
            assert (
                answer[found.label_start :]
                .casefold()
                .startswith(found.label.casefold())
            )
    assert len(found.errors) <= 8
    assert not (found.no_error and found.errors)
    for error in found.errors:
        assert math.isnan(error.severity) or 1 <= error.severity <= 5
    assert all(0 < len(problem) < 300 for problem in found.problems)
    if not found.errors and found.label is None and not found.no_error:
        assert found.problems
    assert read_annotation(answer, output=output) == found or any(
        math.isnan(e.severity) for e in found.errors
    )


WORDS = st.text("abc de", min_size=1, max_size=20).map(
    lambda text: f"x{' '.join(text.split())}"
)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.builds(
            FoundError, st.none() | WORDS, WORDS, st.sampled_from([1.0, 2.5, 4.0, 5.0])
        ),
        max_size=8,
        unique_by=lambda error: error.location,
    ),
    st.sampled_from(LABELS),
)
def test_any_annotation_in_the_asked_form_is_read_as_it_was(
    errors: list[FoundError], label: str
) -> None:
    found = read_annotation(
        annotation_form(Annotation(tuple(errors), label, explanation="Because."))
    )
    assert [as_written(e) for e in found.errors] == [as_written(e) for e in errors]
    assert (found.label, found.explanation, found.no_error, found.repaired) == (
        label,
        "Because.",
        not errors,
        False,
    )
