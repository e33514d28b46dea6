"""Span agreement by hand: every count is over the characters of a text of ten letters."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from without_nan import without_nan

from judgesmith.agreement.spans import (
    SpanAgreement,
    human_span_agreement,
    span_agreement,
)
from judgesmith.datasets.spans import Span
from judgesmith.errors import OptionError
from judgesmith.signatures.values import ErrorSpan

TEXT = "abcdefghij"
LENGTHS = {"a": 10, "b": 10, "c": 10}
MINOR, MAJOR = 2.0, 4.0


def at(start: int, end: int, severity: float = MINOR) -> Span:
    return Span(TEXT[start:end], start, end, severity, how="exact")


def lost(text: str = "nowhere") -> ErrorSpan:
    return ErrorSpan(text, "", MINOR, how="ungrounded")


OMISSION = Span("", how="omission")


def values(found: SpanAgreement, which: str = "micro") -> tuple[float, float, float]:
    scores = getattr(found, which)
    return scores.precision.value, scores.recall.value, scores.f1.value


def test_one_text_by_hand() -> None:
    #           0123456789
    # judge     xxxx......   4
    # people    ..xxxxxx..   6, shared 2
    found = span_agreement({"a": [at(0, 4)]}, {"a": [at(2, 8)]}, LENGTHS)
    assert values(found) == pytest.approx((2 / 4, 2 / 6, 2 * 2 / (4 + 6)))
    assert values(found, "macro") == pytest.approx(values(found))
    assert (found.touching.value, found.found.value) == (1.0, 1.0)


def test_micro_adds_characters_and_macro_averages_texts() -> None:
    # a: judge 2, people 8, shared 2: 1, 1/4, 2*2/10 = .4; b: judge 4, people 1, shared 1: 1/4, 1, 2/5 = .4
    found = span_agreement(
        {"a": [at(0, 2)], "b": [at(0, 4)]}, {"a": [at(0, 8)], "b": [at(0, 1)]}, LENGTHS
    )
    assert values(found) == pytest.approx((3 / 6, 3 / 9, 2 * 3 / (6 + 9)))
    assert values(found, "macro") == pytest.approx(
        ((1 + 1 / 4) / 2, (1 / 4 + 1) / 2, 0.4)
    )


def test_empty_sides() -> None:
    # a: neither marks: 1, 1, 1. b: only people: precision 1 (no false alarm), recall 0, F1 0. c: only the judge.
    gold = {"a": [], "b": [at(0, 5)], "c": []}
    found = span_agreement({"a": [], "b": [], "c": [at(0, 3)]}, gold, LENGTHS)
    assert values(found) == (0.0, 0.0, 0.0)
    assert values(found, "macro") == pytest.approx(
        ((1 + 1 + 0) / 3, (1 + 0 + 1) / 3, 1 / 3)
    )
    assert found.clean == 1


def test_nothing_marked_at_all_is_agreement_and_said() -> None:
    found = span_agreement({"a": [], "b": []}, {"a": [], "b": []}, LENGTHS)
    for which in ("micro", "macro", "weighted"):
        assert values(found, which) == (1.0, 1.0, 1.0)
    assert math.isnan(found.touching.value)
    assert found.notes == (
        "neither side marked a place, which counts as full agreement",
    )


def test_severities_are_worth_more_the_nearer_they_are() -> None:
    # People: 0..4 minor, 4..8 major. Judge: all 8 major. Minor against major is worth 1 - 2/4 = 1/2.
    gold = {"a": [at(0, 4, MINOR), at(4, 8, MAJOR)]}
    found = span_agreement({"a": [at(0, 8, MAJOR)]}, gold, LENGTHS)
    assert values(found) == (1.0, 1.0, 1.0)
    assert values(found, "weighted") == pytest.approx((6 / 8, 6 / 8, 2 * 6 / 16))
    # 1 against 5 is worth nothing, 5 against 5 all, 3 against 4 three quarters.
    for a, b, worth in ((1.0, 5.0, 0.0), (5.0, 5.0, 1.0), (3.0, 4.0, 0.75)):
        found = span_agreement({"a": [at(0, 8, a)]}, {"a": [at(0, 8, b)]}, LENGTHS)
        assert values(found, "weighted") == pytest.approx((worth,) * 3)


def test_overlapping_spans_count_a_character_once_and_the_most_severe_has_it() -> None:
    # Judge: 0..6 minor and 2..4 major cover 6 characters. People: 2..4 major, so that the shared 2 are worth 1 each.
    found = span_agreement(
        {"a": [at(0, 6, MINOR), at(2, 4, MAJOR)]}, {"a": [at(2, 4, MAJOR)]}, LENGTHS
    )
    assert values(found) == pytest.approx((2 / 6, 1.0, 2 * 2 / 8))
    assert values(found, "weighted") == pytest.approx((2 / 6, 1.0, 2 * 2 / 8))
    assert found.predicted == 2


def test_without_severities_on_a_side_there_are_no_weighted_values() -> None:
    bare = replace(at(0, 4), severity=math.nan)
    for judge, people, who in (
        ([bare], [at(0, 4)], "the judge"),
        ([at(0, 4)], [bare], "people"),
    ):
        found = span_agreement({"a": judge}, {"a": people}, LENGTHS)
        assert values(found) == (1.0, 1.0, 1.0)
        assert all(map(math.isnan, values(found, "weighted")))
        assert f"no severity-weighted values: {who} gave no severities" in found.notes


def test_shared_characters_of_unknown_severity_are_left_out_of_the_weighted_values() -> (
    None
):
    # Shared: 0..4 (the judge gave no severity) and 4..8 (both minor). Weighted: 4 shared, judge 8-4, people 10-4.
    judge = [replace(at(0, 4), severity=math.nan), at(4, 8)]
    found = span_agreement({"a": judge}, {"a": [at(0, 10)]}, LENGTHS)
    assert values(found, "weighted") == pytest.approx((4 / 4, 4 / 6, 2 * 4 / 10))
    assert found.unrated == 4
    # A known severity wins over an unknown one on the same character.
    found = span_agreement(
        {"a": [replace(at(0, 10), severity=math.nan), at(0, 10)]},
        {"a": [at(0, 10)]},
        LENGTHS,
    )
    assert found.unrated == 0


def test_omissions_are_left_out_and_counted() -> None:
    found = span_agreement(
        {"a": [at(0, 2), OMISSION]}, {"a": [at(0, 2), OMISSION, OMISSION]}, LENGTHS
    )
    assert values(found) == (1.0, 1.0, 1.0)
    assert (found.predicted_omissions, found.gold_omissions, found.ungrounded) == (
        1,
        2,
        0,
    )


def test_what_was_not_found_is_left_out_and_counted() -> None:
    found = span_agreement(
        {"a": [at(0, 2), lost(), lost("")]}, {"a": [at(0, 2)]}, LENGTHS
    )
    assert found.ungrounded == 2
    assert values(found) == (1.0, 1.0, 1.0)
    assert (
        "2 errors of the judge were not found in the text; they are left out"
        in found.notes
    )


@pytest.mark.parametrize(
    "place", [(-1, 4), (5, 11), (3, 3), (4, 2), (None, 4), (0, None)]
)
def test_places_outside_the_text_are_not_found(
    place: tuple[int | None, int | None],
) -> None:
    wrong = ErrorSpan("x", "", MINOR, start=place[0], end=place[1], how="exact")
    found = span_agreement({"a": [wrong]}, {"a": [at(0, 4)]}, LENGTHS)
    assert (found.predicted, found.ungrounded) == (0, 1)


def test_failed_texts_are_left_out_and_counted() -> None:
    found = span_agreement(
        {"a": [at(0, 4)], "z": []}, {"a": [at(0, 4)], "b": [at(0, 4)]}, LENGTHS
    )
    assert (found.texts, found.unpredicted) == (1, 1)
    assert values(found) == (1.0, 1.0, 1.0)


# Several people ------------------------------------------------------------------------------------------------------


def test_a_texts_counts_are_the_mean_over_its_people() -> None:
    # a: against the first 4 shared of judge 4, people 4; against the second 0 of 4 and 2. Means: 2, 4, 3.
    # b was read by the second only: 1 shared, judge 1, people 1.
    first, second = {"a": [at(0, 4)]}, {"a": [at(8, 10)], "b": [at(0, 1)]}
    found = span_agreement({"a": [at(0, 4)], "b": [at(0, 1)]}, [first, second], LENGTHS)
    assert values(found) == pytest.approx(
        ((2 + 1) / (4 + 1), (2 + 1) / (3 + 1), 2 * 3 / (5 + 4))
    )
    # The text's own F1 is (1 + 0) / 2.
    assert values(found, "macro")[2] == pytest.approx((0.5 + 1) / 2)
    assert (found.people, found.predicted, found.gold) == (2, 2, 3)


def test_people_against_each_other() -> None:
    # Two people: 4 and 2 characters, 2 shared, in both directions: 4 shared of 6 and 6.
    found = human_span_agreement(
        [{"a": [at(0, 4)]}, {"a": [at(0, 2)], "b": [at(0, 9)]}], LENGTHS
    )
    assert found is not None
    assert values(found) == pytest.approx((4 / 6, 4 / 6, 4 / 6))
    assert (found.texts, found.people, found.gold) == (1, 2, 2)


def test_nobody_to_agree_with() -> None:
    assert human_span_agreement([{"a": [at(0, 4)]}], LENGTHS) is None
    assert human_span_agreement([{"a": []}, {"b": []}], LENGTHS) is None


# Intervals, refusals, output -----------------------------------------------------------------------------------------


def many(
    texts: int = 40,
) -> tuple[
    dict[str, list[Span]], dict[str, list[Span]], dict[str, int], dict[str, int]
]:
    ids = [f"t{n}" for n in range(texts)]
    judge = {i: [at(n % 5, n % 5 + 3)] for n, i in enumerate(ids)}
    people = {i: [at(n % 3, n % 3 + 4)] for n, i in enumerate(ids)}
    return judge, people, dict.fromkeys(ids, 10), {i: n // 4 for n, i in enumerate(ids)}


def test_intervals_hold_the_value_and_come_from_documents() -> None:
    judge, people, lengths, documents = many()
    found = span_agreement(judge, people, lengths, documents)
    assert (found.texts, found.documents) == (40, 10)
    for scores in (found.micro, found.macro, found.weighted):
        for estimate in (scores.precision, scores.recall, scores.f1):
            assert estimate.low <= estimate.value <= estimate.high
    assert found.micro.f1.low < found.micro.f1.high
    alone = span_agreement(judge, people, lengths)
    assert (alone.documents, alone.micro.f1.value) == (40, found.micro.f1.value)
    assert span_agreement(judge, people, lengths, documents) == found  # the same seed
    few = [
        span_agreement(judge, people, lengths, rounds=99, seed=seed).macro.f1
        for seed in (0, 1)
    ]
    assert few[0].value == few[1].value
    assert few[0] != few[1]
    assert math.isnan(
        span_agreement(judge, people, lengths, documents, rounds=0).micro.f1.low
    )


def test_the_signature_says_what_the_number_rests_on() -> None:
    judge, people, lengths, documents = many()
    del judge["t0"]
    found = span_agreement(judge, people, lengths, documents, seed=3)
    f1 = found.micro.f1
    assert found.signature == (
        f"F1={f1.value:.2f} [{f1.low:.2f}, {f1.high:.2f}] characters|micro|texts:39|documents:10|people:1"
        "|unpredicted:1|seed:3"
    )


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(OptionError, match="give both the same ids"):
        span_agreement({"x": []}, {"y": []}, LENGTHS)
    with pytest.raises(OptionError, match="'z' has no length"):
        span_agreement({"z": []}, {"z": []}, LENGTHS)
    with pytest.raises(OptionError, match="'a' has no document"):
        span_agreement({"a": []}, {"a": []}, LENGTHS, {"b": 1})


# Invariants ----------------------------------------------------------------------------------------------------------

SPAN = st.builds(
    lambda start, size, severity: at(start, min(start + size, 10), severity),
    st.integers(0, 9),
    st.integers(1, 10),
    st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0]),
)
MARKS = st.fixed_dictionaries({i: st.lists(SPAN, max_size=4) for i in LENGTHS})


@settings(deadline=None, max_examples=80)
@given(MARKS, MARKS)
def test_sides_change_places(
    judge: dict[str, list[Span]], people: dict[str, list[Span]]
) -> None:
    one = span_agreement(judge, people, LENGTHS, rounds=0)
    other = span_agreement(people, judge, LENGTHS, rounds=0)
    for which in ("micro", "macro", "weighted"):
        p, r, f1 = values(one, which)
        if not math.isnan(f1):
            assert values(other, which) == pytest.approx((r, p, f1))
            assert 0 <= f1 <= 1
            assert f1 <= values(one, which.replace("weighted", "micro"))[2] + 1e-9
    assert without_nan(one.touching) == without_nan(other.found) or math.isnan(
        one.touching.value
    )


@settings(deadline=None, max_examples=60)
@given(MARKS, MARKS, st.randoms(use_true_random=False))
def test_order_and_cutting_of_spans_make_no_difference(judge, people, random) -> None:
    cut = {}
    for identity, spans in judge.items():
        letters = [
            at(place, place + 1, span.severity)
            for span in spans
            for place in range(span.start, span.end)
        ]
        random.shuffle(letters)
        cut[identity] = letters
    one, other = (span_agreement(j, people, LENGTHS, rounds=0) for j in (judge, cut))
    assert without_nan((one.micro, one.macro)) == without_nan(
        (other.micro, other.macro)
    )
    assert values(one, "weighted") == pytest.approx(
        values(other, "weighted"), nan_ok=True
    )
