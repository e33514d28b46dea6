"""Tests that may be looked at after every label: errors by exact recursion, labels beside a fixed number's."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.agreement.sequential import ShareTest, labels_for, power
from judgesmith.errors import OptionError


def outcomes(test: ShareTest, true: float, most: int = 2000) -> tuple[float, float]:
    """Return the probability of passing, and the mean number of labels, by recursion over the counts."""
    alive, passed, labels = np.ones(1), 0.0, 0.0
    up, down = -math.log(test.alpha), -math.log(test.beta)
    for n in range(1, most):
        labels += alive.sum()
        alive = np.append(alive * (1 - true), 0) + np.insert(alive * true, 0, 0)
        right = np.arange(n + 1)
        above = right * math.log(test.hoped / test.bar)
        above += (n - right) * math.log((1 - test.hoped) / (1 - test.bar))
        passed += alive[above >= up].sum()
        alive[(above >= up) | (above <= -down)] = 0
        if alive.sum() < 1e-9:
            break
    return passed, labels


def test_a_run_of_right_answers_passes_after_as_many_as_arithmetic_says() -> None:
    test = ShareTest(0.8, 0.9)
    # (.9 / .8) ** 25 = 19.0 < 20 = 1 / .05 <= 21.4 = (.9 / .8) ** 26
    assert test.look([1] * 25).decision == "open"
    look = test.look([1] * 30)
    assert (look.decision, look.sufficed, look.labels) == ("passed", 26, 30)
    # Wrong ones double the evidence against each, (1 - .8) / (1 - .9): 2 ** 4 = 16 > 10 = 1 / .1
    assert test.look([0] * 3).decision == "open"
    assert test.look([0] * 4).sufficed == 4


def test_both_errors_hold_at_every_look_and_labels_are_saved() -> None:
    for bar, hoped in ((0.8, 0.9), (0.7, 0.85), (0.5, 0.7), (0.9, 0.95)):
        test = ShareTest(bar, hoped)
        at_bar, _ = outcomes(test, bar)
        below, few = outcomes(test, bar - 0.05)
        as_hoped, labels = outcomes(test, hoped)
        assert below < 0.012
        assert 0.03 < at_bar <= test.alpha
        assert as_hoped >= 1 - test.beta
        same = labels_for(bar, hoped, wanted=as_hoped)
        assert labels < 0.6 * same
        assert few < 0.4 * test.fixed()
        assert outcomes(test, (bar + hoped) / 2)[1] < 0.85 * same


def test_the_decision_at_the_end_of_random_labels_is_the_recursions() -> None:
    rng = np.random.default_rng(0)
    test = ShareTest(0.8, 0.9)
    looks = [test.look(rng.random(600) < 0.8) for _ in range(2000)]
    passed = np.mean([look.decision == "passed" for look in looks])
    labels = np.mean([look.sufficed or 600 for look in looks])
    exact, mean = outcomes(test, 0.8)
    assert passed == pytest.approx(exact, abs=0.015)
    assert labels == pytest.approx(mean, rel=0.06)


def test_rows_drawn_with_unequal_chances_keep_the_error() -> None:
    """All fails and a fifth of the passes are labelled; the share is of all rows."""
    rng = np.random.default_rng(1)
    test = ShareTest(0.8, 0.9)
    false = naive = 0
    for _ in range(600):
        flagged = rng.random(3000) < 0.3  # the judge's fails
        right = np.where(flagged, rng.random(3000) < 0.333, rng.random(3000) < 1.0)
        drawn = flagged | (rng.random(3000) < 0.2)  # .3 * .333 + .7 = .8: at the bar
        weights = np.where(flagged, 0.2, 1.0)[drawn]
        false += test.look(right[drawn], weights).decision == "passed"
        naive += test.look(~right[drawn]).decision == "passed"
    assert false / 600 <= 0.05 + 0.02
    assert naive == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(1, 60))
def test_a_decision_stays_whatever_comes_later(values: list[float], cut: int) -> None:
    test = ShareTest(0.6, 0.8)
    early, late = test.look(values[:cut]), test.look(values)
    if early.decision != "open":
        assert (late.decision, late.sufficed) == (early.decision, early.sufficed)


def test_what_is_still_needed_is_said() -> None:
    test = ShareTest(0.8, 0.9)
    look = test.look([1] * 10)
    assert look.more == 16  # as in the first test
    assert test.look([]).more is None
    assert test.expected(0.9) > test.expected(0.95)


def test_the_power_of_a_fixed_number_is_the_binomials() -> None:
    # 20 labels, bar .8: 20 of 20 come in .8 ** 20 = .0115, 19 or more in .0692
    assert power(0.8, 0.9, 20) == pytest.approx(0.9**20)
    n = labels_for(0.8, 0.9)
    needed = scipy.stats.binom.isf(0.05, n, 0.8) + 1
    assert scipy.stats.binom.sf(needed - 1, n, 0.9) >= 0.9
    assert scipy.stats.binom.sf(needed - 1, n, 0.8) <= 0.05


@pytest.mark.parametrize("bar, hoped", [(0.9, 0.8), (0, 0.5), (0.8, 1.0)])
def test_bars_that_no_test_has_are_refused(bar: float, hoped: float) -> None:
    with pytest.raises(OptionError, match="bar"):
        ShareTest(bar, hoped)


def test_weights_outside_their_range_are_refused() -> None:
    with pytest.raises(OptionError, match="weights"):
        ShareTest(0.8, 0.9).look([1, 0], [1, 5])
