"""Effects of the order in which outputs are shown: by hand, under the null, and where a judge has a taste for it."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from judgesmith.agreement.order_effects import first_preference, order_effect
from judgesmith.errors import OptionError

pytestmark = pytest.mark.filterwarnings("error")


def shown(documents: int = 60, outputs: int = 4, favour: float = 0.0, seed: int = 0) -> dict[str, Any]:
    """Outputs in random order; `favour` is what the judge adds for the first position."""
    rng = np.random.default_rng(seed)
    position = np.concatenate([rng.permutation(outputs) for _ in range(documents)]) + 1
    human = rng.normal(size=documents * outputs)
    predicted = human + rng.normal(size=len(human)) + favour * (position == 1)
    doc = np.repeat(np.arange(documents), outputs)
    return {"predicted": predicted, "human": human, "positions": position, "documents": doc}


def test_differences_by_hand():
    # Ranks of the judge 4 3 | 2 1 and of people 3 4 | 1 2, standardised by mean 2.5 and sd sqrt(1.25) and less their
    # document's mean: +.5 -.5 | +.5 -.5 and -.5 +.5 | -.5 +.5 over sqrt(1.25). People's do not vary within a position,
    # so nothing is known of how far they go with the judge's, and the judge's stand as they are.
    found = order_effect([9, 8, 2, 1], [3, 4, 1, 2], [1, 2, 1, 2], documents="aabb", rounds=0)
    first, second = found.positions
    assert (first.position, first.n, second.position) == ("1", 2, "2")
    assert first.difference.value == pytest.approx(0.5 / math.sqrt(1.25))
    assert second.difference.value == pytest.approx(-0.5 / math.sqrt(1.25))
    assert first.human == pytest.approx(-0.5 / math.sqrt(1.25))
    assert math.isnan(found.p)  # no rounds


def test_the_p_value_is_the_share_of_all_shuffles():
    # Two documents of two: 4 shuffles, of which two (none, both) are as extreme as the observed +1 -1 | +1 -1.
    found = order_effect([9, 8, 2, 1], [3, 4, 1, 2], [1, 2, 1, 2], documents="aabb", rounds=4000)
    assert found.p == pytest.approx(0.5, abs=0.04)


def test_a_taste_for_the_first_is_found_and_its_size_is_right():
    found = order_effect(**shown(400, favour=0.8))
    first, *others = found.positions
    assert found.p < 0.01
    assert first.difference.low > 0.2 and all(other.difference.high < 0 for other in others)
    # .8 of 4 outputs beside their mean: .8 (1 - 1/4) = .6, in sd of the judge's scores, sqrt(2 + .12) = 1.46: .41
    assert first.difference.value == pytest.approx(0.41, abs=0.08)


def test_false_alarms_without_a_taste():
    # 400 simulations, standard error .011
    alarms = [order_effect(**shown(20, seed=s), rounds=99, seed=s).p <= 0.05 for s in range(400)]
    assert 0.02 <= np.mean(alarms) <= 0.08


def test_better_outputs_at_a_position_are_people_s_own_doing():
    data = shown(300)
    better = 1.0 * (data["positions"] == 1)
    data["human"] += better
    data["predicted"] += better
    found = order_effect(**data)
    assert found.positions[0].human > 0.4  # people see it …
    assert abs(found.positions[0].difference.value) < 0.15  # … and the judge hardly differs


def test_positions_that_are_the_systems_have_no_test():
    data = shown(30)
    found = order_effect(**data, systems=[f"s{p}" for p in data["positions"]], rounds=50)
    assert math.isnan(found.p) and "every system keeps one position" in (found.reason or "")
    assert len(found.positions) == 4
    assert order_effect(**data, systems=["s"] * 120, rounds=50).reason is None  # one system is no such thing


def test_without_repeated_documents_all_rows_are_shuffled():
    data = shown(200, outputs=2, favour=1.0)
    data["documents"] = None
    assert order_effect(**data, rounds=200).p < 0.05


def test_rows_without_position_or_score_are_left_out():
    data = shown(20)
    data["predicted"][0] = np.nan
    positions = [str(p) for p in data["positions"]]
    positions[4], positions[5] = None, " "  # type: ignore[call-overload]
    data["positions"] = positions
    found = order_effect(**data, rounds=20)
    assert (found.n, found.failed) == (77, 1)
    assert sum(effect.n for effect in found.positions) == 77


@pytest.mark.parametrize(
    ("positions", "says"),
    [
        ([None] * 80, "no row has a position"),
        ([1] * 80, "at different positions"),
        (range(80), "80 different positions"),
    ],
)
def test_positions_that_say_nothing(positions, says):
    found = order_effect(**(shown(20) | {"positions": positions}), rounds=20)
    assert found.positions == () and says in (found.reason or "")


def test_constant_scores_have_no_order():
    found = order_effect(**(shown(20) | {"predicted": [3.0] * 80}), rounds=20)
    assert found.reason == "the predictions are constant"


def test_lengths_must_fit():
    with pytest.raises(OptionError, match="positions has 3 entries for 80 rows"):
        order_effect(**(shown(20) | {"positions": [1, 2, 3]}))


def test_numbers_stand_in_their_order():
    found = order_effect(**(shown(20, outputs=12)), rounds=0)
    assert [effect.position for effect in found.positions] == [str(i) for i in range(1, 13)]  # not 1, 10, 11, …


# Pairs ---------------------------------------------------------------------------------------------------------------


def test_preference_by_hand():
    # Judge: first, first, tie, first -> 3 of 3 decided; people: first, second, first, tie -> 2 of 3.
    # One pair is decided in opposite ways, for the first: sign test of 1 of 1 is 1.
    found = first_preference(
        [2, 1, 2, 1, 1, 1, 2, 1], [2, 1, 1, 2, 2, 1, 1, 1], ["A", "B"] * 4, [0, 0, 1, 1, 2, 2, 3, 3]
    )
    assert found is not None
    assert (found.first, found.n, found.ties) == ("A", 4, 1)
    assert (found.judge.value, found.human.value) == (1.0, pytest.approx(2 / 3))
    assert found.p == pytest.approx(0.25) and found.p_people == 1  # 2 / 2**3
    assert found.judge.low == pytest.approx(0.025 ** (1 / 3))  # Clopper-Pearson: low**3 = .025


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_order_of_the_rows_does_not_matter(seed):
    data = shown(15, outputs=2, seed=seed % 1000)
    rows = list(range(30))
    random.Random(seed).shuffle(rows)
    mixed = {name: np.asarray(values)[rows] for name, values in data.items()}
    assert first_preference(**mixed) == first_preference(**data)
    one, other = (order_effect(**d, rounds=0).positions[0].difference.value for d in (data, mixed))
    assert one == pytest.approx(other)


def test_the_share_is_a_binomial():
    found = first_preference(**shown(300, outputs=2, favour=1.5))
    assert found is not None and found.p < 0.001 and found.p_people < 0.001
    won = round(found.judge.value * 300)
    assert found.judge.high == pytest.approx(stats.beta.ppf(0.975, won + 1, 300 - won))
    assert found.human.value == pytest.approx(0.5, abs=0.1)


def test_what_is_no_pair():
    data = shown(20, outputs=3)
    assert first_preference(**data) is None  # three positions
    data["positions"] = np.where(data["positions"] == 1, 1, 2)
    assert first_preference(**data) is None  # two outputs at one position
    one = shown(20, outputs=2) | {"predicted": [math.nan] * 40}
    assert first_preference(**one) is None
