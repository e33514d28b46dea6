"""Judges compared on the same texts: arithmetic by hand, invariants, and how often equal judges are told apart."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesmith.agreement.discernment import discernment
from judgesmith.agreement.discernment_comparison import compare_discernment
from judgesmith.errors import OptionError

LEVELS = {"typos": "character", "deletions": "character", "shuffle": "sentence"}


def test_a_difference_by_hand() -> None:
    # A drops 1, 2, 3, 4, 5: effect 1. B drops 1, 2, 3, 4, -5: ranks (1 + 2 + 3 + 4 - 5) / 15 = 1/3. Difference 2/3.
    # Jackknife: A adds 1/5 with each text. B's effect without one of 1-4 is (1 + 2 + 3 - 4) / 10 = 0.2, without -5 it
    # is 1; pseudo-values 5/3 - 4 * 0.2 = 0.8667 and 5/3 - 4 = -2.3333, mean 0.22667. Less that, plus 1/3, over 5:
    # 0.19467 and -0.44533. A less B: four times 0.00533 and 0.64533; only 2 of 32 swaps reach their sum, all or none.
    zeros = np.zeros(5)
    a, b = {"typos": ([1, 2, 3, 4, 5], zeros)}, {"typos": ([1, 2, 3, 4, -5], zeros)}
    found = compare_discernment(a, b, LEVELS, swaps=20_000, rounds=0)
    assert (found.value, found.p, found.texts) == (pytest.approx(2 / 3), pytest.approx(2 / 32, abs=0.007), 5)
    assert found.by_name == {"typos": (found.value, found.p)}
    # D of A: p = 1/32. D of B: sums of at least 10 of 15: 10 3, 11 2, 12 2, 13 1, 14 1, 15 1 = 10 of 32 sets
    assert found.d == pytest.approx((math.log(32) - math.log(3.2)) / math.log(20))
    assert math.isnan(found.low)


def test_one_that_sees_and_one_that_does_not() -> None:
    # A drops on all 8 texts alike, B rises: each text adds 1/8 - (-1/8); only the 2 of 2**8 swaps of all or none are
    # as far out, so p is about 2/256
    before = np.full(8, 10.0)
    found = compare_discernment({"typos": (before, before - 3)}, {"typos": (before, before + 90)}, LEVELS, seed=1)
    assert found.value == pytest.approx(2) and found.p == pytest.approx(2 / 256, abs=0.004)
    assert (found.low, found.high) == (pytest.approx(2), pytest.approx(2))


def test_levels_weigh_the_same() -> None:
    before = np.arange(6.0)
    good, blind = (before + 1, before), (before, before)
    a = {"typos": good, "deletions": blind, "shuffle": good}
    b = {"typos": blind, "deletions": blind, "shuffle": blind}
    found = compare_discernment(a, b, LEVELS, rounds=0)
    assert found.value == pytest.approx(((1 + 0) / 2 + 1) / 2)
    assert found.by_name["deletions"] == (0.0, 1.0)


def test_only_pairs_that_both_scored_count() -> None:
    nan = math.nan
    a = {"typos": ([5, 5, 5, 5, 5, nan], [1, 1, 1, 1, 1, 1]), "shuffle": ([5] * 6, [1] * 6)}
    b = {"typos": ([5, 5, 5, 5, nan, 5], [1, 1, 1, 9, 1, 1]), "other": ([1] * 6, [1] * 6)}
    found = compare_discernment(a, b, LEVELS, rounds=20)
    assert (found.texts, list(found.by_name)) == (4, ["typos"]) and math.isnan(found.p) and "at least 5" in found.reason
    none = compare_discernment(a, {"typos": ([nan] * 6, [1] * 6)}, LEVELS)
    assert none.texts == 0 and math.isnan(none.value) and "no pair" in str(none.reason)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OptionError, match="one shape"):
        compare_discernment({"typos": ([1, 2], [1])}, {"typos": ([1], [1])}, LEVELS)
    with pytest.raises(OptionError, match="the same ones"):
        compare_discernment({"typos": ([1, 2], [1, 1])}, {"typos": ([1], [1])}, LEVELS)
    with pytest.raises(OptionError, match="swaps 0"):
        compare_discernment({}, {}, LEVELS, swaps=0)


SCORES = st.lists(st.tuples(*[st.integers(1, 5)] * 4), min_size=6, max_size=15)


@settings(deadline=None, max_examples=30)
@given(SCORES, st.floats(0.5, 20), st.integers(-5, 5))
def test_a_judge_s_scale_does_not_count_and_turning_round_turns(rows: list[tuple[int, ...]], k: float, c: int) -> None:
    one, two, three, four = np.array(rows, dtype=float).T
    plain = compare_discernment({"typos": (one, two)}, {"typos": (three, four)}, LEVELS, swaps=200, rounds=20)
    scaled = compare_discernment(
        {"typos": (one * k + c, two * k + c)}, {"typos": (three, four)}, LEVELS, swaps=200, rounds=20
    )
    turned = compare_discernment({"typos": (three, four)}, {"typos": (one, two)}, LEVELS, swaps=200, rounds=20)
    assert scaled.value == pytest.approx(plain.value) and scaled.p == plain.p
    assert turned.value == pytest.approx(-plain.value) and turned.p == plain.p
    assert plain.value == pytest.approx(discernment(one, two).effect - discernment(three, four).effect)


def equal_judges(rng: np.random.Generator, texts: int) -> tuple[dict[str, tuple[object, object]], ...]:
    """Two judges of one effect, on scales of their own, to which the same texts are hard."""
    hard = rng.normal(size=texts)
    sides: tuple[dict[str, tuple[object, object]], ...] = ({}, {})
    base = rng.normal(size=(2, texts))
    for name in LEVELS:
        for judge, side in enumerate(sides):
            drop = 0.5 + 0.5 * hard + rng.normal(size=texts)
            before, after = base[judge], base[judge] - drop
            side[name] = (before, after) if judge == 0 else (100 + 7 * before, 100 + 7 * after)
    return sides


def test_equal_judges_are_rarely_told_apart_and_unequal_ones_are() -> None:
    rng = np.random.default_rng(5)
    p = [compare_discernment(*equal_judges(rng, 20), LEVELS, swaps=399, rounds=0).p for _ in range(400)]
    assert 0.02 <= np.mean(np.array(p) <= 0.05) <= 0.08  # standard error of .05: about .011
    found = []
    for _ in range(40):
        a, _ = equal_judges(rng, 80)
        guess = {name: (before, before + rng.normal(size=80)) for name, (before, _) in a.items()}  # type: ignore[operator]
        found.append(compare_discernment(a, guess, LEVELS, swaps=399, rounds=100))
    assert np.mean([gap.p <= 0.05 and gap.low > 0 and gap.value > 0 for gap in found]) >= 0.9
