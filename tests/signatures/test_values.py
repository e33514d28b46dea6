"""Scales, verdicts and items: what they mean and what they refuse."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.errors import OptionError
from judgesmith.signatures.values import (
    Criterion,
    CriterionScore,
    ErrorSpan,
    Scale,
    Usage,
    Verdict,
)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (5, 1),
        (1, 1),
        (math.nan, 5),
        (0, math.inf),
        (-math.inf, 0),
        (-1e308, 1e308),
        (0, 1e13),
        (-1e13, 0),
    ],
)
def test_a_scale_without_an_extent_is_refused(low: float, high: float) -> None:
    with pytest.raises(OptionError, match="low < high"):
        Scale(low, high)


def test_percent_is_the_share_of_the_way_up_the_scale() -> None:
    scale = Scale(1, 5)
    assert [scale.to_percent(x) for x in (1, 2, 3, 4, 5)] == [0, 25, 50, 75, 100]
    assert scale.from_percent(75) == 4
    assert str(scale) == "1..5"


finite = st.floats(-1e6, 1e6)


@given(finite, st.floats(1e-3, 1e6), st.floats(0, 100))
def test_from_percent_and_back_is_the_same(
    low: float, extent: float, percent: float
) -> None:
    scale = Scale(low, low + extent)
    # Beside a large `low`, a small extent keeps few digits: the tolerance is that loss.
    tolerance = 1e-6 + abs(low) / extent * 1e-12
    assert scale.to_percent(scale.from_percent(percent)) == pytest.approx(
        percent, abs=tolerance
    )


@given(st.floats(), st.floats(), st.floats(0, 100))
def test_a_score_on_any_scale_is_finite(
    low: float, high: float, percent: float
) -> None:
    try:
        scale = Scale(low, high)
    except OptionError:
        return
    assert math.isfinite(scale.from_percent(percent))
    assert scale.to_percent(low) == 0
    assert math.isfinite(scale.to_percent(high))


def test_usage_adds_and_subtracts_field_by_field() -> None:
    one, two = Usage(1, 2, 3, 4, 5, 6.0, 7), Usage(10, 20, 30, 40, 50, 60.0, 70)
    assert one + two == Usage(11, 22, 33, 44, 55, 66.0, 77)
    assert (one + two) - one == two
    assert two.tokens == 30 + 40


def test_a_verdict_as_json_keeps_offsets_and_hides_the_raw_texts_unless_asked() -> None:
    verdict = Verdict(
        3.5,
        "fine",
        62.5,
        {
            "Fluency": CriterionScore(75.0, "reads well"),
            "Style": CriterionScore(math.nan),
        },
        (ErrorSpan("teh", "a typo", 2.0, 4, 7), ErrorSpan("", "no ending", math.nan)),
        raw=("Score: 4",),
    )
    plain = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))
    assert plain["criteria"] == {
        "Fluency": {"score": 75.0, "explanation": "reads well"},
        "Style": {"score": None, "explanation": ""},
    }
    assert [(e["start"], e["end"]) for e in plain["errors"]] == [(4, 7), (None, None)]
    written = json.loads(verdict.model_dump_json())
    assert (
        written["errors"][1]["severity"]
        is written["criteria"]["Style"]["score"]
        is written["spread"]
        is None
    )
    for one in (verdict, Verdict.failed("no answer")):
        again = Verdict.model_validate_json(one.model_dump_json())
        assert again.to_dict(raw=True) == one.to_dict(raw=True)
        assert math.isnan(again.score) == math.isnan(one.score)
    assert "raw" not in plain
    assert verdict.to_dict(raw=True)["raw"] == ["Score: 4"]


def test_values_are_immutable() -> None:
    with pytest.raises(AttributeError):
        Criterion("Fluency", "reads well").name = "Style"  # type: ignore[misc]
