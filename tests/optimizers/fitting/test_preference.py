"""Chances of preferences are found again from drawn pairs."""

import math

import numpy as np
import pytest

from judgesmith.datasets.records import Labels, Row
from judgesmith.optimizers.fitting.outcome import fit_preference
from judgesmith.programs.outcome import BradleyTerry


def compared(won: list[float]) -> Labels:
    """One comparison a document: 1 where the first output won, 0 where it lost, 0.5 for a tie."""
    rows = [
        Row(f"{n}{side}", f"{side} of {n}", group=str(n), doc_id=str(n), scores={"preference": score})
        for n, first in enumerate(won)
        for side, score in (("a", first), ("b", 1 - first))
    ]
    return Labels(tuple(rows), "preference", (0, 1), kind="preference")


@pytest.mark.parametrize("truth", [BradleyTerry(15, 0.8), BradleyTerry(40)])
def test_what_drew_the_pairs_is_found_again(truth: BradleyTerry) -> None:
    rng = np.random.default_rng(0)
    percents = rng.uniform(0, 100, (2000, 2))
    won = [rng.choice([1.0, 0.5, 0.0], p=truth.chances(a, b)) for a, b in percents]
    found = fit_preference(percents.ravel(), compared(won))
    assert found is not None
    assert found.width == pytest.approx(truth.width, rel=0.15)
    assert found.tie == pytest.approx(truth.tie, rel=0.2)


def test_pairs_that_are_all_ordered_rightly_give_no_certainty() -> None:
    found = fit_preference([60.0, 40.0] * 8, compared([1.0] * 8))
    assert found is not None and found.tie == 0
    assert 0.7 < found.chances(60, 40)[0] < 0.99


def test_failed_rows_are_left_out_and_scores_have_no_chances() -> None:
    labels = compared([1.0] * 4)
    with_a_failure = [60.0, 40.0, 60.0, 40.0, 60.0, 40.0, math.nan, 40.0]
    assert fit_preference(with_a_failure, labels) == fit_preference([60.0, 40.0] * 3, compared([1.0] * 3))
    assert fit_preference([math.nan] * 8, labels) is None
    assert fit_preference([60.0] * 2, Labels(labels.rows[:2], "preference", (0, 1))) is None
