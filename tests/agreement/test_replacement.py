"""The way to one human rater, and the test of replacing one."""

import math
from typing import Any

import numpy as np
import pytest
import scipy

from judgesmith.agreement.replacement import (
    alternative_annotator_test,
    nearest_constant,
    way_to_rater,
    ways_to_rater,
)
from judgesmith.agreement.significance import raters_agree
from judgesmith.errors import LabelsError, OptionError


def test_the_way_to_a_rater_is_nothing_for_a_guess_and_the_whole_for_a_rater() -> None:
    rng = np.random.default_rng(0)
    truth, noise = rng.normal(size=1500), rng.normal(size=(1500, 5))
    ratings = truth[:, None] + noise[:, :4]
    for judge, share in (
        (truth + noise[:, 4], 1.0),
        (noise[:, 4], 0.0),
        (-truth, None),
        (truth, None),
    ):
        found = way_to_rater(judge, ratings, rounds=200)
        assert found.low < found.value < found.high
        assert (
            found.value == pytest.approx(share, abs=0.08)
            if share is not None
            else abs(found.value) > 1.05
        )
    assert way_to_rater([1, 1, 1, 1], [[1, 2], [2, 3], [3, 4], [4, 6]]).value == 0.0
    assert math.isnan(
        way_to_rater([1, 2, 3, 4], [[1, 4], [2, 3], [3, 2], [4, 1]]).value
    )  # raters who disagree


def test_several_judges_have_the_ways_that_each_has_alone() -> None:
    rng = np.random.default_rng(1)
    ratings = rng.normal(size=(60, 1)) + rng.normal(size=(60, 3)) / 3
    judges = [ratings.mean(axis=1), rng.normal(size=60), np.full(60, np.nan)]
    judges[1][:5] = np.nan
    options: Any = {"documents": np.arange(60) // 3, "rounds": 50, "seed": 2}
    together = ways_to_rater(judges, ratings, **options)
    alone = [way_to_rater(judge, ratings, **options) for judge in judges]
    assert repr(together) == repr(alone)
    assert together[0].low < together[0].value < together[0].high
    assert together[2].value == 0
    assert ways_to_rater([], ratings) == []


# The alternative annotator test --------------------------------------------------------------------------------------


def test_the_judge_is_compared_with_each_rater_on_the_rows_of_the_others() -> None:
    # Rows: A 1 1 2 2, B 1 2 2 1, C 1 2 2 2; the judge 1 2 2 2. Left out: A. The others' scores of each row:
    # (1, 1), (2, 2), (2, 2), (1, 2). Judge equal to 2, 2, 2, 1 of two; A to 2, 0, 2, 1: as near 4 times of 4.
    ratings = np.array([[1, 1, 1], [1, 2, 2], [2, 2, 2], [2, 1, 2]], dtype=float)
    found = alternative_annotator_test(
        [1, 2, 2, 2], ratings, nominal=True, epsilon=0.2, fewest=1, as_published=True
    )
    # B: others (1, 1), (1, 2), (2, 2), (2, 2); judge 2, 1, 2, 2; B 2, 1, 2, 0 → 4 of 4. C: judge and C say the same.
    assert found.advantage == 1.0
    # A alone nearer less the judge alone nearer: 0, -1, 0, 0; mean -.25, sd .5, t = (-.25 - .2) / (.5 / 2) = -1.8
    # B: the same numbers in other places. C: always 0, which is below epsilon: p = 0.
    p = scipy.stats.t.cdf(-1.8, 3)
    # Benjamini and Yekutieli over 0, p, p: times 3 · (1 + 1/2 + 1/3) / rank; both p take the last one's.
    assert found.p == pytest.approx([p * 11 / 6, p * 11 / 6, 0.0])
    assert found.winning == pytest.approx(1 / 3)
    assert not found.passes


def test_numbers_are_near_by_their_distance_and_a_failure_is_lost() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(200, 1))
    ratings = truth + rng.normal(size=(200, 3))
    good = alternative_annotator_test(truth[:, 0], ratings)
    assert good.passes
    assert good.winning == 1
    assert good.advantage > 0.6
    assert not alternative_annotator_test(rng.normal(size=200) * 3, ratings).passes
    failed = alternative_annotator_test(
        np.where(np.arange(200) < 150, np.nan, truth[:, 0]), ratings
    )
    assert failed.advantage < 0.25
    assert not failed.passes


def test_a_test_needs_raters_with_rows() -> None:
    ratings = np.full((40, 2), np.nan)
    ratings[:, 0], ratings[:10, 1] = 1.0, 2.0
    found = alternative_annotator_test(np.ones(40), ratings)
    assert (
        found.reason
        == "the test needs two raters with 30 rows each that others rated, too"
    )
    assert not found.passes
    with pytest.raises(LabelsError, match="4 rows of raters"):
        alternative_annotator_test([1, 2, 3, 4], [[1, 2]])
    with pytest.raises(OptionError, match="not in \\[0, 1\\)"):
        alternative_annotator_test([1], [[1, 2]], epsilon=1.5)


@pytest.mark.parametrize("nominal", [False, True])
def test_raters_who_do_not_agree_measure_nobody(nominal: bool) -> None:
    rng = np.random.default_rng(5)
    noise = rng.integers(1, 6, size=(120, 3)).astype(float)
    assert raters_agree(noise, nominal=nominal) > 0.025
    for judge in (rng.integers(2, 5, size=120), noise.mean(axis=1)):
        found = alternative_annotator_test(judge, noise, nominal=nominal)
        assert found.reason == "the raters do not agree beyond chance"
        assert not found.passes
    as_paper = alternative_annotator_test(np.full(120, 3.0), noise, as_published=True)
    assert as_paper.passes  # a constant near the mean of noise, by distance


def test_a_constant_is_no_judge() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(120, 1))
    ratings = truth + rng.normal(size=(120, 3))
    always = np.where(np.arange(120) < 5, np.nan, 0.2)  # failed rows aside
    assert alternative_annotator_test(always, ratings).reason == "a constant"
    assert nearest_constant([[1, 5], [5, 4], [np.nan, 5]], nominal=True) == 5
    assert nearest_constant([[1, 5], [5, 4], [np.nan, 5]]) == 4  # the mean is 4


def test_raters_agree_by_chance_as_often_as_they_should() -> None:
    rng = np.random.default_rng(2)
    p = []
    for _ in range(200):
        table = rng.integers(1, 4, size=(25, 3)).astype(float)
        table[rng.random(table.shape) < 0.2] = np.nan
        table[:, 0] += 1  # a lenient rater
        p.append(raters_agree(table, rounds=99))
    assert 0.01 <= np.mean(np.array(p) <= 0.05) <= 0.1
    assert raters_agree([[1, np.nan], [2, np.nan]]) == 1.0


def test_a_way_that_is_unknown_has_its_reason() -> None:
    found = way_to_rater([1, 2, 3, 4], [[1, 4], [2, 3], [3, 2], [4, 1]])
    assert found.reason == "the raters do not agree beyond chance"
