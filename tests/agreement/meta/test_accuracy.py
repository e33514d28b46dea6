"""Pairwise accuracy: epsilon and shares by hand and by brute force, cross-fitting, resamples."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rated import table

from judgesmith.agreement.meta.accuracy import accuracy, fitted_epsilon
from judgesmith.agreement.meta.evaluation import meta_evaluate
from judgesmith.agreement.meta.inputs import Aspect, EvaluationOptions
from judgesmith.agreement.meta.intervals import Cell
from judgesmith.agreement.resampling import drawn_again

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def measured(
    x: Any,
    y: Any,
    doc: Any = None,
    level: str = "sample",
    sys: Any = None,
    **options: Any,
) -> Cell:
    """Accuracy of a judge; without documents, all rows are of one."""
    codes = (
        np.zeros(len(x), dtype=np.intp)
        if doc is None
        else np.unique(list(doc), return_inverse=True)[1]
    )
    aspect = Aspect(
        "",
        np.array(y, float),
        {"j": np.array(x, float)},
        np.ones(len(x), dtype=bool),
        codes,
        sys,
    )
    cross = options.pop("cross", False)
    return accuracy(
        aspect, "j", level, EvaluationOptions(**({"rounds": 0} | options)), cross=cross
    )  # type: ignore[arg-type]


def epsilon(x: Any, y: Any, doc: Any = None) -> float:
    return fitted_epsilon(
        np.array(x, float),
        np.array(y, float),
        np.zeros(len(x), np.intp) if doc is None else doc,
    )


def brute_accuracy(x: Any, y: Any, groups: Any, epsilon: float) -> float:
    """acc_eq as papers define it: mean over groups of the share of pairs ordered or tied alike."""
    shares = []
    for group in dict.fromkeys(groups):
        pairs = itertools.combinations(
            [i for i, g in enumerate(groups) if g == group], 2
        )
        right = [
            y[i] == y[j]
            if abs(x[i] - x[j]) <= epsilon
            else (x[i] - x[j]) * (y[i] - y[j]) > 0
            for i, j in pairs
        ]
        if right:
            shares.append(np.mean(right))
    return float(np.mean(shares))


def test_gaps_that_rounding_parts_are_tied_together() -> None:
    # gaps .1 and .2 - .1, .3 - .2 differ in the last digit, so no epsilon may tell them apart. People: ab tied, bc not:
    # at epsilon 0 ab is lost (2/3), at .1 ab is won and bc lost (2/3), at .2 all are tied (1/3)
    x, y = [0.1, 0.2, 0.3], [1, 1, 2]
    assert x[2] - x[1] != x[1] - x[0]
    for order in itertools.permutations(range(3)):
        mixed = [x[i] for i in order], [y[i] for i in order]
        assert epsilon(*mixed) == 0
        assert measured(*mixed).value == pytest.approx(2 / 3)


def test_the_mean_over_documents() -> None:
    # document a: 3 pairs, all alike; document b: 1 pair, the other way round; c has one row -> (1 + 0) / 2
    cell = measured([1, 2, 3, 1, 2, 7], [1, 2, 3, 2, 1, 7], "aaabbc")
    assert (cell.value, cell.n, cell.skipped) == (pytest.approx(0.5), 2, 1)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_equals_trying_every_epsilon(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 25))
    doc = np.array([*rng.integers(0, 3, n - 4).tolist(), 0, 0, 1, 1])
    x, y = rng.integers(0, 8, n).astype(float), rng.integers(0, 4, n).astype(float)
    tried = {
        e: brute_accuracy(x, y, doc, e) for e in range(8)
    }  # whole numbers: no other gap occurs
    assert measured(x, y, doc).value == pytest.approx(max(tried.values()))
    assert epsilon(x, y, doc) == min(
        e for e, value in tried.items() if value >= max(tried.values()) - 1e-12
    )


def test_without_pairs_and_with_failures() -> None:
    for x in ([1], [], [1, math.nan]):
        cell = measured(x, x)
        assert math.isnan(cell.value)
        assert cell.reason == "no two rows to compare"
    cell = measured([1, math.nan, 3], [1, 9, 2])
    assert (cell.value, cell.failed) == (1, 1)
    assert "too many pairs" in (
        measured(range(5000), range(5000), level="pooled").reason or ""
    )


def test_cross_fitted_by_brute_force() -> None:
    x, y, doc, _ = table(8, 4)
    half = np.random.default_rng(3).permutation(8) % 2
    tried = sorted({0.0, *(round(abs(a - b), 10) for a in x for b in x)})
    sides = []
    for side in (0, 1):
        other, mine = half[doc] != side, half[doc] == side
        scores = [
            brute_accuracy(x[other], y[other], doc[other], e + 1e-9) for e in tried
        ]
        best = (
            tried[int(np.flatnonzero(np.array(scores) >= max(scores) - 1e-12)[0])]
            + 1e-9
        )
        sides.append(brute_accuracy(x[mine], y[mine], doc[mine], best))
    # four documents on either side, none without pairs
    assert measured(x, y, doc, seed=3, cross=True).value == pytest.approx(
        np.mean(sides)
    )


def test_systems_by_hand() -> None:
    # Means of the judge 1 2 4 3, of people 1 2 3 4: one of six pairs the other way round.
    judge, people = [0, 2, 1, 3, 4, 4, 3, 3], [1, 1, 2, 2, 3, 3, 4, 4]
    found = meta_evaluate(
        {"j": judge},
        people,
        systems=list("aabbccdd"),
        coefficients=("acc_eq",),
        rounds=50,
    )
    cell = found.cell("j", "overall", "system", "acc_eq")
    assert cell["value"] == pytest.approx(5 / 6)
    assert cell["n"] == 4
    assert not (
        (found.agreement["level"] == "system")
        & (found.agreement["coefficient"] == "acc_eq_cross")
    ).any()


@pytest.mark.parametrize("level", ["pooled", "sample", "system"])
def test_resamples_equal_the_rows_written_out(level: str) -> None:
    """Documents drawn, done slowly: all pairs of drawn rows, but not of a row with its own copies."""
    x, y, doc, sys = table(6, 4)
    cell = measured(x, y, doc, level, sys, rounds=15, seed=1)
    tied = epsilon(x, y, doc if level == "sample" else None)
    assert cell.drawn is not None
    assert 0 <= cell.low < cell.value <= cell.high <= 1
    for value, t in zip(cell.drawn, drawn_again(np.asarray, 6, 15, 1), strict=True):
        if level == "system":
            means = [
                [
                    (t[doc] * v)[sys == s].sum() / t[doc][sys == s].sum()
                    for s in range(4)
                ]
                for v in (x, y)
            ]
            units, w, groups, eps = (
                (np.array(means[0]), np.array(means[1])),
                np.ones(4),
                np.zeros(4),
                1e-9,
            )
        else:
            w = t[doc] if level == "pooled" else np.ones(len(x))
            units, groups, eps = (
                (x, y),
                doc if level == "sample" else np.zeros(len(x)),
                tied,
            )
        shares, weights = [], []
        for group in np.unique(groups):
            right = total = 0.0
            for i, j in itertools.combinations(np.flatnonzero(groups == group), 2):
                dx, dy = units[0][i] - units[0][j], units[1][i] - units[1][j]
                dy = 0.0 if abs(dy) < 1e-9 else dy
                total += w[i] * w[j]
                right += w[i] * w[j] * (dy == 0 if abs(dx) <= eps else dx * dy > 0)
            if total:
                shares.append(right / total)
                weights.append(t[int(group)] if level == "sample" else 1)
        slow = np.average(shares, weights=weights) if sum(weights) else math.nan
        assert value == pytest.approx(slow, nan_ok=True)
