"""The way to one human rater."""

import math

import numpy as np
import pytest

from judgesmith.agreement.replacement import way_to_rater


def test_the_way_to_a_rater_is_nothing_for_a_guess_and_the_whole_for_a_rater() -> None:
    rng = np.random.default_rng(0)
    truth, noise = rng.normal(size=1500), rng.normal(size=(1500, 5))
    ratings = truth[:, None] + noise[:, :4]
    for judge, share in ((truth + noise[:, 4], 1.0), (noise[:, 4], 0.0), (-truth, None), (truth, None)):
        found = way_to_rater(judge, ratings, rounds=200)
        assert found.low < found.value < found.high
        assert found.value == pytest.approx(share, abs=0.08) if share is not None else abs(found.value) > 1.05
    assert way_to_rater([1, 1, 1, 1], [[1, 2], [2, 3], [3, 4], [4, 6]]).value == 0.0
    assert math.isnan(way_to_rater([1, 2, 3, 4], [[1, 4], [2, 3], [3, 2], [4, 1]]).value)  # raters who disagree
