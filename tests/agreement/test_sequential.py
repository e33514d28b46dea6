"""Tests that may be looked at after every label: errors by exact recursion, labels beside a fixed number's."""

import math
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.agreement.sequential import (
    CoefficientTest,
    Share,
    ShareTest,
    Strata,
    StrataTest,
    labels_for,
    looks_of,
    planned,
    power,
)
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


# Strata of verdicts -------------------------------------------------------------------------------------------------


def judged(
    rng: np.random.Generator, rows: int, tnr: float, tpr: float
) -> tuple[Any, Any]:
    """Return whether the judge and people pass each row; people fail a quarter, and the judge's rates are exact."""
    people = np.arange(rows) >= rows // 4
    right = np.zeros(rows, dtype=bool)
    for side, rate in ((False, tnr), (True, tpr)):
        own = rng.permutation(np.flatnonzero(people == side))
        right[own[: round(rate * len(own))]] = True
    return people == right, people


MOST = 600


def in_order(rng: np.random.Generator, judge: Any, strata: Strata, labels: int) -> Any:
    """Return rows drawn without replacement, from the strata as often as they say."""
    left = [rng.permutation(np.flatnonzero(judge == side)).tolist() for side in (0, 1)]
    rows = []
    for stratum in rng.choice(2, p=strata.drawn, size=labels):
        own = left[stratum] or left[1 - stratum]
        if own:
            rows.append(own.pop())
    return rows


def passes(
    rng: np.random.Generator, share: Share, bar: float, rates: tuple[float, float]
) -> tuple[float, float, float]:
    """Return how often a judge passes, and the labels in strata and without."""
    passed = []
    labels = []
    alone = []
    for _ in range(120):
        judge, people = judged(rng, 2000, *rates)
        rows = (float((~judge).sum()), float(judge.sum()))
        strata = planned(share, rows, bar, bar + 0.1)
        drawn = in_order(rng, judge, strata, MOST)
        look = StrataTest(share, bar, bar + 0.1, strata).look(
            judge[drawn], people[drawn]
        )
        passed.append(look.decision == "passed")
        labels.append(look.sufficed or MOST)
        some = rng.permutation(2000)[:MOST]
        counted = np.flatnonzero(people[some] == (share == "tpr"))
        right = (judge == people)[some][counted]
        plain = ShareTest(bar, bar + 0.1).look(right)
        alone.append(
            MOST if plain.sufficed is None else counted[plain.sufficed - 1] + 1
        )
    return (
        float(np.mean(passed)),
        float(np.mean(labels)),
        float(np.mean(alone)),
    )


@pytest.mark.parametrize(("share", "least"), [("tnr", 0.95), ("tpr", 0.5)])
def test_strata_keep_the_error_and_save_labels(share: Share, least: float) -> None:
    rng = np.random.default_rng(0)
    at_bar, _, _ = passes(rng, share, 0.8, (0.8, 0.8))
    assert at_bar <= 0.05 + 0.04  # 120 runs: two standard errors are .04
    good, labels, alone = passes(rng, share, 0.8, (0.9, 0.9))
    assert good >= 0.85
    assert labels < least * alone


def test_labels_go_where_a_bar_is_decided() -> None:
    rows = (30.0, 70.0)
    shares = {share: planned(share, rows, 0.8, 0.9).drawn[0] for share in SHARES}
    # what the judge passes holds the fails that it missed, what it fails the passes that it did not pass
    assert shares["tnr"] < 0.3 < shares["tpr"] < shares["precision"]


SHARES: tuple[Share, ...] = ("tnr", "tpr", "precision")


def test_a_bet_is_as_arithmetic_says() -> None:
    """Strata of equal size, drawn alike; people are expected to fail half of each."""
    strata = Strata((1e9, 1e9), (0.5, 0.5), (0.5, 0.5))
    test = StrataTest("precision", 0.5, 0.9, strata)
    # The judge's fails: right (+.5) or wrong (-.5), nothing is expected: X = 1 * (±.5 - 0) + 0; its passes: 0.
    # E X² = .5 * .25 = .125, step = .4 * .5 = .2, stake = .2 / (.125 + .04) = 1.21 < .9 / .5
    up = 1 + 0.2 / 0.165 * 0.5
    look = test.look([False] * 3, [False] * 3)
    assert look.share == 1
    assert look.decision == "open"
    assert look.more == math.ceil(-math.log(0.05) / (evidence(3) / 3) - 3)
    assert up == pytest.approx(1.606, abs=0.001)


def evidence(labels: int) -> float:
    """Return the evidence of so many right answers, of strata as above."""
    total = 0.0
    for seen in range(labels):
        fails = (seen + 2 * 0.5) / (seen + 2)
        middle = fails * 0.5 - (1 - fails) * 0.5
        every = 0.5 * middle
        values = [0.5 - middle + every, -0.5 - middle + every]
        apart = (
            fails * (values[0] - every) ** 2 + (1 - fails) * (values[1] - every) ** 2
        )
        step = 0.4 * 0.5
        stake = min(step / (0.5 * apart + step**2), 0.9 / -min(*values, every))
        total += math.log1p(stake * values[0])
    return total


def test_a_stratum_of_which_every_row_is_labelled_is_known() -> None:
    strata = Strata((4.0, 6.0), (0.5, 0.5), (0.7, 0.1))
    judge = [False] * 4 + [True] * 6
    people = [False, False, False, True] + [True] * 6
    look = StrataTest("tpr", 0.5, 0.8, strata).look(judge, people)
    assert look.share == pytest.approx(6 / 7)
    assert math.isfinite(look.share)


# Coefficients -------------------------------------------------------------------------------------------------------


def test_evidence_of_a_coefficient_is_walds() -> None:
    test = CoefficientTest(0.4, 0.6)
    left_out = np.tanh(np.arctanh(0.6) + np.array([0.01, -0.01] * 10))
    # jackknife: 19 / 20 * 20 * .0001 = .0019; atanh .6 - atanh .4 = .2695; (20 - 3) / 20 / .0019 = 447
    above, below = test.evidence(0.6, left_out)
    step = math.atanh(0.6) - math.atanh(0.4)
    near = 17 / 20 / 0.0019 * step**2 / 2
    # That it is much better, (.6 + 1) / 2 = .8, has a fifth of the weight, and no evidence here
    assert above == pytest.approx(near + math.log(0.8), rel=1e-3)
    assert below < 0
    look = test.look([(20, 0.6, left_out)], 25)
    assert (look.decision, look.sufficed, look.labels) == ("passed", 20, 25)
    assert test.look([], 12).decision == "open"
    assert test.evidence(0.6, [0.6] * 20) == (0.0, 0.0)  # nothing varies
    with pytest.raises(OptionError, match="needs -1 < bar < hoped < 1"):
        CoefficientTest(0.4, 0.3)


def test_a_correlation_at_the_bar_passes_rarely_however_often_one_looks() -> None:
    rng = np.random.default_rng(0)
    passed = 0
    for _ in range(150):
        x = rng.standard_normal(160)
        y = 0.5 * x + math.sqrt(0.75) * rng.standard_normal(160)
        looks = []
        for n in looks_of(160)[::8]:
            one = np.corrcoef(x[:n], y[:n])[0, 1]
            sums = np.stack([np.ones(n), x[:n], y[:n], x[:n] ** 2, y[:n] ** 2])
            products = x[:n] * y[:n]
            count, of_x, of_y, of_xx, of_yy = sums.sum(axis=1)[:, None] - sums
            of_xy = products.sum() - products
            above = of_xy - of_x * of_y / count
            below = (of_xx - of_x**2 / count) * (of_yy - of_y**2 / count)
            looks.append((n, float(one), above / np.sqrt(below)))
        passed += CoefficientTest(0.5, 0.7).look(looks, 160).decision == "passed"
    assert passed <= 150 * 0.05 + 2 * math.sqrt(150 * 0.05 * 0.95)
