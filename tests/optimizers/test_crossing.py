"""One number with one interval from runs of folds: wider than each run's, never beyond the range, in step with p."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rated import rated

from judgesmith.agreement.differences import Difference
from judgesmith.agreement.objectives import Q
from judgesmith.agreement.resampling import SHARE, Estimate, Range
from judgesmith.optimizers.crossing import (
    ONE,
    SEVERAL,
    crossed,
    crossed_agreement,
    crossed_difference,
    on_one_scale,
)
from judgesmith.optimizers.examples import agreement


def half(estimate: Estimate) -> float:
    return (math.atanh(estimate.high / 3) - math.atanh(estimate.low / 3)) / 2


def test_one_run_is_widened_by_its_factor_and_several_by_theirs_and_their_spread() -> (
    None
):
    run = Estimate(
        1.5, 3 * math.tanh(math.atanh(0.5) - 0.2), 3 * math.tanh(math.atanh(0.5) + 0.2)
    )
    assert half(crossed([run], Range.of("q"))) == pytest.approx(0.2 * ONE)
    assert half(crossed([run] * 5, Range.of("q"))) == pytest.approx(0.2 * SEVERAL)
    others = [
        Estimate(3 * math.tanh(z), 3 * math.tanh(z - 0.2), 3 * math.tanh(z + 0.2))
        for z in (0.5, 0.6, 0.7)
    ]
    made = crossed(others, Range.of("q"))
    # spread of .5, .6, .7: .1; half² = .2² + (2 · .1)²
    assert half(made) == pytest.approx(SEVERAL * math.sqrt(0.08), abs=1e-6)
    assert made.value == pytest.approx(np.mean([one.value for one in others]))


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6), st.floats(0, 3))
def test_an_interval_holds_its_value_and_stays_in_the_range(
    values: list[float], around: float
) -> None:
    runs = [
        Estimate(value, max(-3.0, value - around), min(3.0, value + around))
        for value in values
    ]
    made = crossed(runs, Range.of("q"))
    assert -3 <= made.low <= made.value <= made.high <= 3
    shares = [
        replace(
            run,
            **{name: (getattr(run, name) + 3) / 6 for name in ("value", "low", "high")},
        )
        for run in runs
    ]
    share = crossed(shares, SHARE)
    assert share.value == pytest.approx((made.value + 3) / 6)
    assert share.low == pytest.approx((made.low + 3) / 6, abs=1e-6)


def test_runs_without_an_interval_are_left_out_unless_they_are_most() -> None:
    known, unknown = Estimate(1.0, 0.5, 1.5), Estimate(1.0)
    assert math.isfinite(crossed([known, known, unknown], Range.of("q")).low)
    assert math.isnan(crossed([known, unknown, unknown], Range.of("q")).low)
    assert math.isnan(crossed([unknown], Range.of("q")).high)
    endless = crossed([Estimate(5.0, 4.0, 7.0)], Range(-math.inf, math.inf))
    assert (endless.low, endless.high) == pytest.approx((5 - 1.5 * ONE, 5 + 1.5 * ONE))


def test_the_parts_of_q_still_add_up() -> None:
    rng = np.random.default_rng(0)
    rows = rated(human := rng.integers(0, 100, 40).astype(float))
    runs = [
        agreement(human + rng.normal(0, 40, 40), rows, objective=Q(), seed=0)
        for _ in range(5)
    ]
    made = crossed_agreement(runs)
    o = made.objective
    assert (
        made.value
        == pytest.approx(o.q)
        == pytest.approx(o.pearson + o.spearman + o.kendall)
    )
    assert made.low < min(run.value for run in runs)
    assert "Q=" in str(made)
    assert made.reached.n == 40
    flat = agreement(np.full(40, 50.0), rows, objective=Q(), seed=0)
    assert crossed_agreement([flat] * 5).reason == flat.reason
    assert crossed_agreement([flat, *runs]).reason is None


@pytest.mark.parametrize("value", [0.1, 0.5, -0.7, 2.0])
def test_p_says_what_the_interval_says(value: float) -> None:
    how = {"rounds": 100, "undefined": 0, "documents": 20, "error": 0.2, "freedom": 19}
    runs = [
        Difference(value + shift, value - 0.4, value + 0.4, 0.5, **how)
        for shift in (-0.1, 0, 0.1)
    ]  # type: ignore[arg-type]
    for some in (runs, runs[:1]):
        made = crossed_difference(some)
        assert made.low < made.value < made.high
        assert made.error > 0.2 * SEVERAL
        assert (made.p < 0.05) == (made.low > 0 or made.high < 0)
    assert crossed_difference(runs[:1]).error == pytest.approx(0.2 * ONE)
    assert math.isnan(
        crossed_difference(
            [replace(runs[0], low=math.nan, high=math.nan, p=math.nan)]
        ).p
    )
    same = replace(runs[0], value=0.0, low=0.0, high=0.0, p=1.0, error=0.0)
    assert crossed_difference([same] * 5).p == 1.0


def test_folds_are_put_on_one_scale() -> None:
    # The second fold's judge learnt lower labels, twice as far apart; both order their held-out rows alike.
    first = (np.array([40.0, 60.0]), np.array([50.0, 60.0]))
    second = (np.array([0.0, 40.0]), np.array([20.0, 40.0, math.nan]))
    made = on_one_scale([first, second])
    assert made[:2] == pytest.approx([35, 50])
    assert made[2:4] == pytest.approx([35, 50])
    assert math.isnan(made[4])
