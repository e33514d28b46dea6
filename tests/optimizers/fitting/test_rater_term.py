"""What strict and mild raters have in common is fitted apart, and no part of a score."""

import numpy as np
import pytest

from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.agreement.raters import between_raters, by_person, within_raters
from judgesmith.optimizers.fitting.gaussian import gaussian, same_rater
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import Readings


def drawn(
    seed: int, severity: float
) -> tuple[Readings, np.ndarray, Readings, np.ndarray]:
    """Labels of 40 rows by 8 raters, and 200 rows with their quality, which has no severity in it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(240, 8))
    quality = x[:, 0] + x[:, 1] + 0.7 * rng.normal(size=240)
    rater = rng.permutation(np.arange(40) % 8)
    labels = quality[:40] + severity * rng.normal(size=8)[rater]
    names, groups = tuple(f"r.{i}" for i in range(8)), tuple(range(240))
    who = tuple((f"p{one}",) for one in rater)
    train = Readings(names, x[:40], groups[:40], raters=who)
    return train, labels, Readings(names, x[40:], groups[40:]), quality[40:]


def q(train: Readings, labels: np.ndarray, rows: Readings, human: np.ndarray) -> float:
    head = gaussian(train, labels, Experience(), own=None).head
    return float(CorrelationSum()(head(rows), human).q)


@pytest.mark.parametrize(
    ("severity", "least", "most"), [(1.5, 0.07, 1.0), (0.0, -0.02, 0.02)]
)
def test_the_term_helps_where_raters_differ_and_costs_little_where_they_do_not(
    severity: float, least: float, most: float
) -> None:
    gains = []
    for seed in range(12):
        train, labels, rows, human = drawn(seed, severity)
        plain = Readings(train.names, train.values, train.groups)
        gains.append(q(train, labels, rows, human) - q(plain, labels, rows, human))
    assert least < float(np.mean(gains)) < most


def test_pairs_of_rows_share_their_raters() -> None:
    shared = same_rater([("a",), ("a", "b"), ("b",), ()])
    assert shared is not None
    # a alone and half of a and b: 1/2; a and b twice: 1/4 + 1/4
    assert shared.tolist() == [
        [1, 0.5, 0, 0],
        [0.5, 0.5, 0.5, 0],
        [0, 0.5, 1, 0],
        [0, 0, 0, 0],
    ]
    assert same_rater([("a",), ("a",)]) is None  # one person is the level of all
    assert same_rater([("a",), ("b",)]) is None  # and another for each row is noise
    assert same_rater([]) is None


def test_a_head_knows_no_rater_and_rows_keep_theirs() -> None:
    train, labels, rows, _ = drawn(0, 1.0)
    head = gaussian(train, labels, Experience(), own=None).head
    assert set(head.weights) == set(train.names)
    assert train.rows([3, 1]).raters == (train.raters[3], train.raters[1])
    assert rows.raters == ()


def test_raters_differ_by_their_share_of_the_variance() -> None:
    names, table = by_person([[1.0], [2.0], [4.0], [5.0]], [["a"], ["a"], ["b"], ["b"]])
    assert names == ("a", "b")
    # inside (.5 + .5) / 2, between 2 * 1.5² * 2 / 1: (9 - .5) / (9 + .5)
    assert between_raters(table) == pytest.approx(8.5 / 9.5)
    scores = np.array([1.0, 2.0, 1.0, 2.0])
    assert within_raters(scores, table, fewest=2) == (pytest.approx(1.0), 2)
