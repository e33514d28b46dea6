"""The learning curve beside a judge: its form, what is usual, and what labels tell."""

from __future__ import annotations

import numpy as np
import pytest

from judgesmith.optimizers.fitting.curve import (
    SPOKEN,
    Curve,
    Usual,
    curve,
    curve_of_lead,
)
from judgesmith.programs.readings.passages import Text

USUAL = Usual(half=80.0, most=0.1, spread=0.1, odd=0.1, far=1.0)


def rated(
    rows: int, *, by_length: float, seed: int = 0
) -> tuple[np.ndarray, list[Text], np.ndarray, list[str]]:
    """A judge that sees the quality, but not that people reward length."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=rows)
    lengths = rng.integers(5, 60, size=rows)
    texts = [
        Text(f"Source {n}.", " ".join(f"w{n}x{k}" for k in range(lengths[n])))
        for n in range(rows)
    ]
    long = (np.log(lengths) - np.log(lengths).mean()) / np.log(lengths).std()
    human = quality + by_length * long + 0.3 * rng.normal(size=rows)
    return (
        quality + 0.3 * rng.normal(size=rows),
        texts,
        human,
        [str(n) for n in range(rows)],
    )


def test_gains_follow_the_stated_form() -> None:
    found = Curve.of(40, 1.0, (0.1, 0.05), USUAL)
    most = found.most.mean
    assert found.gain(80)[0] == pytest.approx(most / 2)  # 80 / (80 + 80)
    assert found.gain(240)[0] == pytest.approx(0.75 * most)
    gains = [found.gain(labels) for labels in SPOKEN]
    assert all(low < value < high for value, low, high in gains)
    assert [value for value, _, _ in gains] == sorted(value for value, _, _ in gains)


def test_labels_that_tell_nothing_leave_what_is_usual() -> None:
    usual = Curve.of(40, 1.0, (5.0, 100.0), USUAL)
    assert usual.most.mean == pytest.approx(USUAL.mean, abs=0.02)  # .9 · .1 + .1 · 1
    assert not Curve.of(40, 1.0, (0.0, 0.02), USUAL).certain
    assert "cannot tell it from nothing" in str(Curve.of(40, 1.0, (0.0, 0.02), USUAL))


def test_an_odd_judge_is_believed() -> None:
    found = Curve.of(80, 0.2, (2.0, 0.5), USUAL)  # 19 spreads from the usual
    assert found.most.mean > 1
    assert found.certain


def test_a_measured_lead_is_a_point_of_the_curve() -> None:
    wide = Usual(half=80.0, most=0.1, spread=10.0, odd=0.1, far=10.0)
    found = curve_of_lead(60, 40, 1.0, (0.2, 0.01), wide)
    assert found.gain(40)[0] == pytest.approx(0.2, abs=0.01)


def test_a_judge_that_misses_what_people_reward_gains_and_another_does_not() -> None:
    blind = curve(*rated(90, by_length=1.0))
    right = curve(*rated(90, by_length=0.0))
    assert blind is not None
    assert right is not None
    assert blind.gain(100)[0] > 0.3
    assert blind.certain
    assert abs(right.gain(100)[0]) < 0.1


def test_of_many_labels_some_are_used_of_whole_documents() -> None:
    own, texts, human, _ = rated(900, by_length=1.0)
    found = curve(own, texts, human, [str(n // 9) for n in range(900)])
    assert found is not None
    assert found.labels == 405  # 45 documents of 9, the first sum above 400


@pytest.mark.parametrize("rows", [8, 20])
def test_few_labels_have_no_curve(rows: int) -> None:
    assert curve(*rated(rows, by_length=1.0)) is None


def test_a_judge_that_never_changes_has_no_curve() -> None:
    own, texts, human, groups = rated(40, by_length=1.0)
    assert curve(np.ones(40), texts, human, groups) is None
    assert curve(own, texts, human, ["one"] * 40) is None
