"""Agreement on the scale, of systems and with the length: golden values by hand, then properties."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judgesmith.agreement.scale import (
    calibration_curve,
    length_bias,
    rank_systems,
    scale_agreement,
)
from judgesmith.errors import OptionError

SCORES = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=4, max_size=40)


def test_error_on_the_scale_by_hand() -> None:
    # predicted - human = 1, -1, 2; the failed row counts nowhere
    found = scale_agreement([3, 1, 5, None], [2, 2, 3, 1])
    assert found.mae.value == pytest.approx(4 / 3)
    assert found.bias.value == pytest.approx(2 / 3)
    assert found.rmse.value == pytest.approx(math.sqrt((1 + 1 + 4) / 3))
    assert (found.n, found.failed) == (3, 1)
    assert math.isnan(found.mae.low)  # no interval was asked for


def test_a_judge_without_a_score_has_no_error() -> None:
    found = scale_agreement([None, None], [2, 3])
    assert math.isnan(found.mae.value) and found.n == 0 and found.failed == 2
    assert found.reason == "no row has a prediction"


def test_the_interval_of_the_error_holds_the_truth_as_often_as_it_says() -> None:
    held = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        human = rng.normal(size=60)
        found = scale_agreement(human + rng.normal(size=60), human, rounds=300, seed=seed)
        held += found.mae.low <= math.sqrt(2 / math.pi) <= found.mae.high  # E|N(0, 1)|
    assert 0.90 <= held / 300 <= 0.98


def test_documents_are_drawn_whole() -> None:
    # Two documents of 50 equal rows each are two observations, not 100: an interval that knows it is far wider.
    predicted, human = np.repeat([1.0, 3.0], 50), np.repeat([1.0, 1.0], 50)
    rows = scale_agreement(predicted, human, rounds=500)
    whole = scale_agreement(predicted, human, documents=np.repeat([0, 1], 50), rounds=500)
    assert (whole.mae.low, whole.mae.high) == (0.0, 2.0)
    assert rows.mae.high - rows.mae.low < 0.5


@given(SCORES, st.floats(-3, 3))
def test_a_shift_is_all_bias(pairs: list[tuple[int, int]], shift: float) -> None:
    predicted, human = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    before, after = scale_agreement(predicted, human), scale_agreement(predicted + shift, human)
    assert after.bias.value == pytest.approx(before.bias.value + shift, abs=1e-9)
    assert abs(after.bias.value) <= after.mae.value + 1e-9 <= after.rmse.value + 2e-9


@given(SCORES, st.integers(1, 12))
def test_bins_part_the_rows_and_never_equal_predictions(pairs: list[tuple[int, int]], bins: int) -> None:
    predicted, human = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    curve = calibration_curve(predicted, human, bins=bins)
    assert sum(part.n for part in curve) == len(pairs) and len(curve) <= bins
    assert all(one.high < two.low for one, two in itertools.pairwise(curve))
    assert sum(part.n * part.human for part in curve) == pytest.approx(human.sum())


def test_calibration_by_hand() -> None:
    low, high = calibration_curve([1, 1, 4, 5, math.nan], [2, 4, 4, 5, 1], bins=2)
    assert (low.n, low.predicted, low.human) == (2, 1.0, 3.0)
    assert (high.low, high.high, high.predicted, high.human) == (4.0, 5.0, 4.5, 4.5)


def test_length_is_told_from_quality() -> None:
    rng = np.random.default_rng(0)
    human, words = rng.normal(size=4000), rng.normal(size=4000)
    vain = length_bias(human + words, human, words)
    fair = length_bias(human + rng.normal(size=4000), human, words)
    assert vain.bias > 0.8 and abs(fair.bias) < 0.05
    assert vain.agreement > 0.95 > vain.judge_length  # without the length, little is left to disagree on


def test_partial_correlation_equals_that_of_residuals() -> None:
    rng = np.random.default_rng(1)
    x, y, z = rng.normal(size=(3, 50)) + rng.normal(size=50)
    ranks = [stats.rankdata(v) for v in (x, y, z)]
    rest = [r - np.polyval(np.polyfit(ranks[2], r, 1), ranks[2]) for r in ranks[:2]]
    assert length_bias(x, y, z).agreement == pytest.approx(float(stats.pearsonr(*rest).statistic))


def test_equal_lengths_bias_nobody() -> None:
    found = length_bias([1, 2, 3, 4], [1, 2, 4, 3], [5, 5, 5, 5])
    assert math.isnan(found.judge_length) and math.isnan(found.bias)


def test_lengths_belong_to_rows() -> None:
    with pytest.raises(OptionError, match="3 rows and predicted 4"):
        length_bias([1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3])


def test_systems_in_people_s_order() -> None:
    # rows with a prediction: people b 4.5, c 1.5, a 1 (its other row failed); judge a 3, b 2, c 1
    ranks = rank_systems([3, None, 2, 2, 1, 1], [1, 2, 4, 5, 1, 2], ["a", "a", "b", "b", "c", "c"])
    assert [(r.system, r.rows, r.human_rank, r.predicted_rank) for r in ranks] == [
        ("b", 2, 1.0, 2.0),
        ("c", 2, 2.0, 3.0),
        ("a", 1, 3.0, 1.0),
    ]
