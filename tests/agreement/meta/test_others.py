"""Errors on the scale, systems' ranks and the length: golden values by hand, then properties."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judgesmith.agreement.meta.evaluation import meta_evaluate
from judgesmith.agreement.meta.inputs import EvaluationOptions
from judgesmith.agreement.meta.others import calibration_curve, errors, length_bias
from judgesmith.errors import OptionError

SCORES = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=4, max_size=40
)


def measured(
    predicted: Any, human: Any, documents: Any = None, rounds: int = 0, seed: int = 0
) -> dict[str, float]:
    x, y = np.array(predicted, float), np.array(human, float)
    units = np.arange(len(x)) if documents is None else documents
    return errors(x, y, units, EvaluationOptions(rounds=rounds, seed=seed))


def lengthened(x: Any, y: Any, lengths: Any) -> dict[str, float]:
    return length_bias(
        np.array(x, float),
        np.array(y, float),
        np.array(lengths, float),
        np.ones(len(x), dtype=bool),
    )


def test_error_on_the_scale_by_hand() -> None:
    # predicted - human = 1, -1, 2; the failed row counts nowhere
    found = measured([3, 1, 5, math.nan], [2, 2, 3, 1])
    assert found["mae"] == pytest.approx(4 / 3)
    assert found["bias"] == pytest.approx(2 / 3)
    assert found["rmse"] == pytest.approx(math.sqrt((1 + 1 + 4) / 3))
    assert math.isnan(found["mae_low"])  # no interval was asked for


def test_a_judge_without_a_score_has_no_error() -> None:
    frame = meta_evaluate(
        {"j": [math.nan] * 4}, [1, 2, 3, 4], scale=(1, 4), rounds=0
    ).scale
    assert math.isnan(frame.loc[0, "mae"])
    assert (
        frame.loc[0, "n"],
        frame.loc[0, "failed"],
    ) == (0, 4)
    assert frame.loc[0, "reason"] == "no row has a prediction"


def test_documents_are_drawn_whole() -> None:
    # Two documents of 50 equal rows each are two observations, not 100: an interval that knows it is far wider.
    predicted, human = np.repeat([1.0, 3.0], 50), np.repeat([1.0, 1.0], 50)
    rows = measured(predicted, human, rounds=500)
    whole = measured(predicted, human, documents=np.repeat([0, 1], 50), rounds=500)
    # from no resample of the first document to only it, 0 to 2; about 1, with t(.975, 1) / z(.975) and sqrt(2 / 1)
    assert (whole["mae_low"], whole["mae_high"]) == (
        0.0,
        pytest.approx(1 + 12.7062 / 1.959964 * math.sqrt(2), rel=1e-4),
    )
    assert rows["mae_high"] - rows["mae_low"] < 0.5


@given(SCORES, st.integers(1, 12))
def test_bins_part_the_rows_and_never_equal_predictions(
    pairs: list[tuple[int, int]], bins: int
) -> None:
    predicted, human = (
        np.array(side, dtype=float) for side in zip(*pairs, strict=True)
    )
    curve = calibration_curve(predicted, human, bins)
    assert sum(part["n"] for part in curve) == len(pairs)
    assert len(curve) <= bins
    assert all(one["high"] < two["low"] for one, two in itertools.pairwise(curve))
    assert sum(part["n"] * part["human"] for part in curve) == pytest.approx(
        human.sum()
    )


def test_calibration_by_hand() -> None:
    low, high = calibration_curve(
        np.array([1, 1, 4, 5, math.nan]), np.array([2.0, 4, 4, 5, 1]), 2
    )
    assert (low["n"], low["predicted"], low["human"]) == (2, 1.0, 3.0)
    assert (high["low"], high["high"], high["predicted"], high["human"]) == (
        4.0,
        5.0,
        4.5,
        4.5,
    )


def test_length_is_told_from_quality() -> None:
    rng = np.random.default_rng(0)
    human, words = rng.normal(size=4000), rng.normal(size=4000)
    vain = lengthened(human + words, human, words)
    fair = lengthened(human + rng.normal(size=4000), human, words)
    assert vain["bias"] > 0.8
    assert abs(fair["bias"]) < 0.05
    assert (
        vain["agreement"] > 0.95 > vain["judge_length"]
    )  # without the length, little is left to disagree on


def test_partial_correlation_equals_that_of_residuals() -> None:
    rng = np.random.default_rng(1)
    x, y, z = rng.normal(size=(3, 50)) + rng.normal(size=50)
    ranks = [stats.rankdata(v) for v in (x, y, z)]
    rest = [r - np.polyval(np.polyfit(ranks[2], r, 1), ranks[2]) for r in ranks[:2]]
    assert lengthened(x, y, z)["agreement"] == pytest.approx(
        float(stats.pearsonr(*rest).statistic)
    )


def test_lengths_belong_to_rows() -> None:
    with pytest.raises(OptionError, match="3 rows and human 4"):
        meta_evaluate({"j": [1, 2, 3, 4]}, [1, 2, 3, 4], lengths=[1, 2, 3], rounds=0)
