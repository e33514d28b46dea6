"""Several annotators' errors as one set, a model's merge held against them, and whose score stands apart."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import table

from judgesmith.programs.openlgauge.merging import (
    INVENTED,
    check_merged,
    merge_errors,
    outliers,
)
from judgesmith.signatures.values import ErrorSpan

#        0         1         2         3         4         5         6
#        0123456789012345678901234567890123456789012345678901234567890123
OUTPUT = "The old lighthouse was built in 1889 by twelve monks from Malta."


def span(words: str, why: str, severity: float, annotator: str = "") -> ErrorSpan:
    start = OUTPUT.index(words)
    names = (annotator,) if annotator else ()
    return ErrorSpan(words, why, severity, start, start + len(words), "exact", names)


def omission(what: str, why: str, severity: float) -> ErrorSpan:
    return ErrorSpan(what, why, severity, how="omission")


def error(words: str, why: str, severity: float, how: Any = "exact") -> ErrorSpan:
    return (
        span(words, why, severity)
        if how == "exact"
        else ErrorSpan(words, why, severity, how=how)
    )


def brief(errors: Sequence[ErrorSpan]) -> list[tuple[str, float, tuple[str, ...]]]:
    return [(e.text, e.severity, e.annotators) for e in errors]


# --- outliers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "apart"),
    [
        ([5, 5, 5, 5, 1], [4]),
        ([5, 5, 5, 5, 3], [4]),
        ([5, 5, 5, 5, 4], []),
        ([5, 5, 5, 4, 1], []),
        ([5, 5, 5, 1], []),
        ([], []),
        ([5, 5, 5, 5, 4, 1], [5]),
        ([2, 2, 2, 2, 2], []),
        ([5, math.nan, 5, 5, 5, 1], [5]),
        ([math.nan, math.nan], []),
        ([5, 5, 5, 5, math.inf], []),
        ([4.4, 4.4, 4.4, 4.4, 1.3], [4]),
    ],
)
def test_an_outlier_is_two_deviations_and_one_step_away(
    scores: list[float], apart: list[int]
) -> None:
    assert [i for i, far in enumerate(outliers(scores)) if far] == apart
    assert len(outliers(scores)) == len(scores)


# --- merging ----------------------------------------------------------------------------------------------------------


def test_one_issue_at_about_one_place_becomes_one_error() -> None:
    reported = {
        "gemma": [span("built in 1889", "The year is wrong, the data say 1898.", 3)],
        "qwen": [span("1889", "Wrong year: it should be 1898.", 5)],
        "llama": [
            span("in 1889", "The data give the year 1898 instead.", 4),
            span("from Malta", "Nobody says Malta.", 2),
        ],
    }
    year, malta = merge_errors(reported)
    assert (year.text, year.start, year.end, year.how) == (
        "1889",
        32,
        36,
        "exact",
    )  # the most severe report's
    assert year.severity == 5
    assert year.explanation == "Wrong year: it should be 1898."
    assert year.annotators == ("gemma", "qwen", "llama")
    assert year.notes == ("merged from 3 reports",)
    assert (malta.text, malta.severity, malta.annotators, malta.notes) == (
        "from Malta",
        2,
        ("llama",),
        (),
    )


#: Each entry is one issue as different annotators might explain it.
WORDINGS = table(__file__, "wordings")


def test_the_likeness_of_explanations_tells_issues_apart() -> None:
    def merged(a: str, b: str) -> bool:
        return (
            len(
                merge_errors(
                    {"a": [span("1889", a, 3)], "b": [span("built in 1889", b, 3)]}
                )
            )
            == 1
        )

    one = [
        pair for wordings in WORDINGS for pair in itertools.combinations(wordings, 2)
    ]
    two = [
        (a, b)
        for ours, theirs in itertools.combinations(WORDINGS, 2)
        for a in ours
        for b in theirs
    ]
    assert sum(merged(a, b) for a, b in one) / len(one) >= 0.7
    assert sum(merged(a, b) for a, b in two) / len(two) <= 0.07


@pytest.mark.parametrize(
    ("reported", "merged"),
    [
        (
            {
                "gemma": [["twelve monks", "Their number is eleven in the data.", 3]],
                "qwen": [["twelve monks", "Masons, not a religious order.", 4]],
            },
            [["twelve monks", 4, ["qwen"]], ["twelve monks", 3, ["gemma"]]],
        ),
        (
            {
                "gemma": [["old", "Nothing in the data supports this.", 3]],
                "qwen": [["from Malta", "Nothing in the data supports this.", 3]],
            },
            [["old", 3, ["gemma"]], ["from Malta", 3, ["qwen"]]],
        ),
        (
            {
                "gemma": [
                    ["1889", "The year in the data is 1898.", 3],
                    [
                        "in 1889",
                        "The year is given without the month that the data name.",
                        2,
                    ],
                ]
            },
            [["1889", 3, ["gemma"]], ["in 1889", 2, ["gemma"]]],
        ),
        (
            {
                "gemma": [
                    ["1889", "The year in the data is 1898.", 3],
                    ["1889", "The year in the data is 1898.", 4.0],
                ]
            },
            [["1889", 4, ["gemma"]]],
        ),
        (
            {
                "a": [["built by thirteen nuns", "It was monks.", 3, "ungrounded"]],
                "b": [
                    [
                        "Built by thirteen nuns.",
                        "Monks built it, it was not nuns.",
                        4,
                        "ungrounded",
                    ]
                ],
            },
            [["Built by thirteen nuns.", 4, ["a", "b"]]],
        ),
    ],
)
def test_what_is_one_issue_and_what_is_two(
    reported: dict[str, list[Any]], merged: list[Any]
) -> None:
    errors = {
        name: [error(*one) for one in several] for name, several in reported.items()
    }
    assert brief(merge_errors(errors)) == [
        (text, severity, tuple(names)) for text, severity, names in merged
    ]


def test_omissions_are_one_if_the_same_is_missing() -> None:
    reported = {
        "gemma": [omission("the architect's name", "The architect is not named.", 2)],
        "qwen": [omission("omission", "The name of the architect is missing.", 3)],
        "llama": [
            omission("the height", "Its height in metres is missing.", 1),
            span("old", "The architect.", 1),
        ],
    }
    merged = merge_errors(reported)
    assert [(e.severity, e.annotators, e.how) for e in merged] == [
        (3, ("gemma", "qwen"), "omission"),
        (1, ("llama",), "exact"),
        (1, ("llama",), "omission"),
    ]


def test_a_missing_severity_or_explanation_is_no_obstacle() -> None:
    reported = {
        "gemma": [span("1889", "", math.nan)],
        "qwen": [span("1889", "Wrong year.", 2)],
        "llama": [span("from Malta", "Invented.", math.nan)],
    }
    year, malta = merge_errors(reported)
    assert brief([year]) == [("1889", 2, ("gemma", "qwen"))]
    assert year.explanation == "Wrong year."
    assert (malta.text, malta.explanation, malta.annotators) == (
        "from Malta",
        "Invented.",
        ("llama",),
    )
    assert math.isnan(malta.severity)  # unknown comes last


def test_the_most_severe_are_kept() -> None:
    words = OUTPUT.split()
    reported = {
        "gemma": [span(w, f"Reason {i} {w}.", i % 5 + 1) for i, w in enumerate(words)]
    }
    merged = merge_errors(reported)
    # 12 words, severities 1 2 3 4 5 1 2 3 4 5 1 2: 5 5 4 4 3 3 2 2 by place.
    assert [e.severity for e in merged] == [5, 5, 4, 4, 3, 3, 2, 2]
    assert [e.text for e in merged] == [words[i] for i in (4, 9, 3, 8, 2, 7, 1, 6)]
    assert [e.text for e in merge_errors(reported, most=1)] == [words[4]]
    assert merge_errors({}) == merge_errors({"gemma": []}) == ()


# --- a model's merge --------------------------------------------------------------------------------------------------

REPORTED = {
    "gemma": [
        span("built in 1889", "The year is wrong, the data say 1898.", 3),
        omission("", "No height is given.", 2),
    ],
    "qwen": [
        span("1889", "Wrong year: it should be 1898.", 5),
        span("twelve monks", "There were eleven.", 1),
    ],
}


@pytest.mark.parametrize(
    ("merged", "checked"),
    [
        ([], []),
        (
            [
                ["in 1889", "The year should be 1898 as in the data.", 2],
                ["twelve", "They were eleven.", 4],
            ],
            [["in 1889", 5, ["gemma", "qwen"]], ["twelve", 1, ["qwen"]]],
        ),
        (
            [["the year", "The year is wrong, the data say 1898.", 4, "ungrounded"]],
            [["the year", 5, ["gemma", "qwen"]]],
        ),
        ([["twelve monks", "Bad count.", 3]], [["twelve monks", 1, ["qwen"]]]),
        (
            [
                ["from Malta", "They came from Cyprus.", 4],
                ["", "The height is not given.", 1, "omission"],
            ],
            [["from Malta", 4, []], ["", 2, ["gemma"]]],
        ),
    ],
)
def test_a_models_merge_is_held_against_the_reports(
    merged: list[Any], checked: list[Any]
) -> None:
    found = check_merged([error(*one) for one in merged], REPORTED)
    assert brief(found) == [
        (text, severity, tuple(names)) for text, severity, names in checked
    ]
    assert [INVENTED in error.notes for error in found] == [
        not error.annotators for error in found
    ]


def test_what_was_invented_gives_way_first() -> None:
    merged = [
        span("from Malta", "Cyprus.", 5),
        span("1889", "Wrong year, 1898.", 3),
        span("twelve monks", "Eleven.", 2),
    ]
    assert [e.text for e in check_merged(merged, REPORTED, most=2)] == [
        "1889",
        "twelve monks",
    ]


# --- properties -------------------------------------------------------------------------------------------------------


@st.composite
def spans(draw: st.DrawFn) -> ErrorSpan:
    why = draw(
        st.sampled_from(
            [
                "",
                "The year is wrong.",
                "Wrong year",
                "It was eleven monks",
                "发明的",
                "\ud800 x",
            ]
        )
    )
    severity = draw(st.sampled_from([math.nan, 1.0, 2.0, 3.0, 4.0, 5.0]))
    how = draw(st.sampled_from(["exact", "omission", "ungrounded"]))
    if how != "exact":
        return ErrorSpan(
            draw(st.sampled_from(["", "year", "the year", "x"])), why, severity, how=how
        )
    start = draw(st.integers(0, len(OUTPUT) - 1))
    end = draw(st.integers(start + 1, len(OUTPUT)))
    return ErrorSpan(OUTPUT[start:end], why, severity, start, end, "exact")


REPORTS = st.dictionaries(
    st.sampled_from("abcde"), st.lists(spans(), max_size=4), max_size=4
)


def sound(
    errors: Sequence[ErrorSpan], reported: Mapping[str, Sequence[ErrorSpan]]
) -> None:
    assert len(errors) <= 8
    severities = [-math.inf if math.isnan(e.severity) else e.severity for e in errors]
    assert severities == sorted(severities, reverse=True)
    for error in errors:
        assert set(error.annotators) <= set(reported)
        assert len(set(error.annotators)) == len(error.annotators)
        if error.start is not None:
            assert OUTPUT[error.start : error.end] == error.text != ""
        else:
            assert error.end is None


@settings(deadline=None, max_examples=100)
@given(REPORTS)
def test_merging_keeps_every_severity_and_invents_nothing(
    reported: dict[str, list[ErrorSpan]],
) -> None:
    merged = merge_errors(reported, most=100)
    everything = [e for errors in reported.values() for e in errors]
    assert len(merged) <= len(everything)
    assert {e.text for e in merged} <= {e.text for e in everything}
    assert {str(e.severity) for e in merged} <= {str(e.severity) for e in everything}
    assert {name for e in merged for name in e.annotators} == {
        name for name, errors in reported.items() if errors
    }
    assert max((e.severity for e in merged if e.severity > 0), default=0) == max(
        (e.severity for e in everything if e.severity > 0), default=0
    )
    sound(merge_errors(reported), reported)


@settings(deadline=None, max_examples=60)
@given(REPORTS)
def test_the_order_of_annotators_does_not_matter(
    reported: dict[str, list[ErrorSpan]],
) -> None:
    turned = dict(reversed(reported.items()))

    def key(errors: Sequence[ErrorSpan]) -> list[str]:
        return [
            repr(replace(e, annotators=tuple(sorted(e.annotators)))) for e in errors
        ]

    assert key(merge_errors(reported)) == key(merge_errors(turned))


@settings(deadline=None, max_examples=60)
@given(REPORTS)
def test_the_merge_by_rule_passes_the_check(
    reported: dict[str, list[ErrorSpan]],
) -> None:
    assert all(
        INVENTED not in e.notes for e in check_merged(merge_errors(reported), reported)
    )
