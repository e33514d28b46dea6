"""Is it worse than before? One test on the same inputs, its level shared over all looks."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.agreement.paired import level_of_look, paired
from judgesmith.errors import LabelsError


def test_the_arithmetic_of_a_paired_difference() -> None:
    found = paired([1, 2, 3, 2], [2, 3, 3, 4], looks=1)
    # changes -1 -1 0 -2: mean -1, sd .8165, error .4082; t(3) at .975: 3.182
    assert found.difference == -1
    assert found.low == pytest.approx(-1 - 3.1824 * 0.408248, abs=1e-4)
    assert (found.n, found.documents, found.level) == (4, 4, 0.05)
    # Three changes on one side come in 1 of 8 cases, however large t is: -2.449, p .046
    assert found.p == 0.125
    assert not found.worse


def test_fifty_commits_that_change_nothing_hardly_ever_alarm_and_a_loss_is_found() -> (
    None
):
    rng = np.random.default_rng(0)
    alarms = found = 0
    runs = 80
    for _ in range(runs):
        quality = rng.normal(3.5, 1, 100)

        def scores(quality: np.ndarray, less: float = 0) -> np.ndarray:
            return np.clip(np.round(quality - less + rng.normal(0, 0.4, 100)), 1, 5)

        then = scores(quality)
        alarms += any(paired(scores(quality), then).worse for _ in range(50))
        now = paired(scores(quality, 0.3), then)
        found += now.worse
    assert alarms <= 8  # 5 % of 80 is 4
    assert found >= 50
    assert 0.2 < now.finds < 0.4


def test_rows_of_one_document_are_no_independent_evidence() -> None:
    rng = np.random.default_rng(1)
    moves = np.repeat(rng.normal(-0.2, 0.5, 10), 10)
    alone = paired(moves, np.zeros(100), looks=1)
    together = paired(moves, np.zeros(100), np.repeat(np.arange(10), 10), looks=1)
    assert together.p > 3 * alone.p
    assert together.documents == 10
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_unchanged_scores_are_not_worse_and_say_nothing_of_a_size() -> None:
    found = paired([3, 4, 5], [3, 4, 5])
    assert (found.difference, found.p, found.worse) == (0, 1, False)
    assert math.isnan(found.finds)
    assert str(found) == "+0.000 on 3 inputs"


def test_two_inputs_that_fell_alike_prove_nothing() -> None:
    assert not paired([1, 1], [5, 5], looks=1).worse
    assert paired([1] * 12, [5] * 12, looks=50).worse  # 2 ** -12 < .001


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=40)
)
def test_what_is_no_lower_is_never_worse(pairs: list[tuple[int, int]]) -> None:
    now, then = np.array(pairs).T
    found = paired(now, then)
    assert 0 <= found.p <= 1
    if now.mean() >= then.mean():
        assert not found.worse


def test_the_level_of_a_look_shares_the_error() -> None:
    assert level_of_look(0.05, 50) == pytest.approx(0.001)
    assert level_of_look(0.05, 50, 2) == pytest.approx(0.0005)


def test_runs_of_other_inputs_are_refused() -> None:
    with pytest.raises(LabelsError, match="same inputs"):
        paired([1, math.nan], [math.nan, 2])
