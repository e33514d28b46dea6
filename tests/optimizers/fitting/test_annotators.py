"""Weights of an ensemble's annotators, from what they said."""

import math

import dspy
import numpy as np
import pytest

from judgesmith.optimizers.fitting.annotators import ensemble_score, opinion_matrix, subsets, weigh, weighted_mean
from judgesmith.signatures.values import Opinion, Verdict


def rows(human):
    return [
        dspy.Example(source="", output=f"o{i}", score=h, group=f"g{i}", document=f"g{i}", system=None)
        for i, h in enumerate(human)
    ]


def made(seed=0, n=60):
    """Human scores, a good annotator, and two that guess."""
    rng = np.random.default_rng(seed)
    human = rng.uniform(0, 100, n)
    good = np.clip(human + rng.normal(0, 8, n), 0, 100)
    return human, np.stack([rng.uniform(0, 100, n), good, rng.uniform(0, 100, n)], axis=1)


def test_the_mean_is_over_those_that_gave_a_score():
    nan = math.nan
    opinions = np.array([[10.0, 20.0, 60.0], [nan, 20.0, 60.0], [nan, nan, 60.0], [nan, nan, nan]])
    # Row 1: (1 * 10 + 2 * 20 + 1 * 60) / 4; row 2: (2 * 20 + 60) / 3
    assert weighted_mean(opinions, [1, 2, 1])[:3].tolist() == pytest.approx([27.5, 100 / 3, 60.0])
    assert np.isnan(weighted_mean(opinions, [1, 2, 1])[3])
    assert np.isnan(weighted_mean(opinions, [1, 1, 0])[2])  # only one that weighs nothing is left
    assert ensemble_score(opinions, [1, 1, 0])[2] == opinions[2, 2]  # which the ensemble then listens to
    assert np.isnan(ensemble_score(opinions, [1, 1, 0])[3])


def test_annotators_that_guess_are_weighed_down():
    human, opinions = made()
    found = weigh(opinions, rows(human), seed=0)
    assert found.reason is None
    assert sum(found.weights) == pytest.approx(1.0)
    assert found.weights[1] == max(found.weights) >= 0.6
    assert found.found.q > found.equal.q + 0.3
    assert weigh(opinions, rows(human), seed=0).weights == found.weights  # the same seed, the same weights


def test_equal_weights_stay_where_nothing_clearly_beats_them():
    rng = np.random.default_rng(3)
    human = rng.uniform(0, 100, 60)
    alike = human[:, None] + rng.normal(0, 30, (60, 3))
    found = weigh(alike, rows(human), seed=0, sure=0.98)
    assert found.weights == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert "do not clearly beat equal ones" in found.reason
    assert found.found is found.equal


def test_every_subset_is_measured():
    human, opinions = made()
    found = subsets(opinions, ["a", "b", "c"], rows(human))
    assert [s.members for s in found] == [
        ("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c"),
    ]  # fmt: skip
    assert max(found, key=lambda s: s.found.q).members == ("b",)


def test_opinions_of_verdicts():
    verdicts = [
        Verdict(1.0, opinions={"a": Opinion(10.0), "b": Opinion(math.nan, failure="no")}),
        Verdict.failed("every annotator failed"),
    ]
    found = opinion_matrix(verdicts, ["a", "b"])
    assert found.shape == (2, 2)
    assert found[0, 0] == 10.0
    assert np.isnan(found).sum() == 3
