"""Which rows to label next: spread, documents, what is labelled, rows like no other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.errors import OptionError
from judgesmith.rooms.labelling.suggestion import suggest

NAN = float("nan")


def test_rows_are_spread_over_predicted_scores() -> None:
    found = [s.row for s in suggest({"judge": np.arange(101.0)}, 5)]
    assert found[0] == 50
    assert set(found[1:3]) == {0, 100}
    assert all(20 <= abs(row - 50) <= 30 for row in found[3:])


def test_no_row_with_a_label_is_suggested_and_none_twice() -> None:
    human = np.where(np.arange(30) % 3 == 0, 1.0, NAN)
    found = [s.row for s in suggest({"judge": np.arange(30.0)}, 99, human=human)]
    assert sorted(found) == [i for i in range(30) if i % 3]


def test_documents_and_systems_with_fewest_labels_come_first() -> None:
    documents, systems = np.repeat(range(6), 4), np.tile(list("abcd"), 6)
    human = np.full(24, NAN)
    human[0] = 3.0
    found = suggest(
        {"judge": np.arange(24.0)}, 5, human=human, documents=documents, systems=systems
    )
    assert sorted(documents[s.row] for s in found) == [1, 2, 3, 4, 5]
    assert {systems[s.row] for s in found[:3]} == set("bcd")  # "a" has a label already
    assert "without labels" in found[0].why


def test_rows_like_no_other_come_last() -> None:
    rng = np.random.default_rng(0)
    together = rng.normal(size=60)
    one, other = together + rng.normal(0, 0.05, 60), together.copy()
    one[7], other[7] = (
        99.0,
        -99.0,
    )  # the first says it is the best row, the second that it is the worst
    assert 7 not in [s.row for s in suggest({"one": one, "other": other}, 20)]
    last = suggest({"one": one, "other": other}, 60)
    assert "resembles no other" in next(s for s in last if s.row == 7).why


def test_a_reading_that_runs_the_other_way_is_turned_round() -> None:
    judge = np.arange(40.0)
    human = np.where(np.arange(40) % 4 == 0, judge, NAN)
    found = suggest({"judge": judge, "errors": -judge}, 3, human=human)
    assert max(s.disagreement for s in found) < 0.01
    assert (
        max(s.disagreement for s in suggest({"judge": judge, "errors": -judge}, 3))
        > 0.2
    )


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=40), st.integers(1, 10))
def test_only_the_order_of_a_reading_counts(values: list[float], n: int) -> None:
    x = np.array(values)
    one, other = (
        [s.row for s in suggest({"r": r}, n)]
        for r in (x, np.sign(x) * np.abs(x) / 7 + 3)
    )
    if len(np.unique(np.sign(x) * np.abs(x) / 7 + 3)) == len(
        np.unique(x)
    ):  # unless rounding made some equal
        assert one == other
    assert len(one) == min(n, len(x)) == len(set(one))


def test_wrong_input_is_refused() -> None:
    with pytest.raises(OptionError, match="one reading"):
        suggest({}, 3)
    with pytest.raises(OptionError, match="2 for 3 rows"):
        suggest({"r": [1, 2, 3]}, 2, human=[1, 2])
    with pytest.raises(OptionError, match="n: 0 is below 1"):
        suggest({"r": [1, 2, 3]}, 0)
