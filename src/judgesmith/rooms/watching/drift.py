"""Has something changed? Tests whose false alarms are known, for rows that are scored again.

Rows that are scored again are compared with themselves: if nothing has changed, the newest of several runs over one row
is as likely to be any of them, so that its rank among them is uniform, whatever the scores' distribution. The sum of
the ranks over rows has a distribution that can be computed exactly, ties and failures included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.paired import level_of_look

Matrix = npt.NDArray[np.float64]
Alternative = Literal["greater", "two-sided"]


@dataclass(frozen=True, slots=True)
class Finding:
    """name: what was compared. p: in [0, 1], NaN where nothing could be. n: what it rests on. before, now: means."""

    name: str
    p: float
    n: int
    before: float
    now: float


def rank_p(runs: Matrix, alternative: Alternative, newest: int = 1) -> float:
    """Return P of the newest runs' ranks among all runs over the same rows, exact.

    runs: shape (runs, rows), the newest ones last, without NaN. Under the hypothesis that the runs over a row are
    exchangeable and rows independent, the newest runs' midranks are any of the row's midranks with equal probability.
    The doubled smaller tail, where both count. NaN without a run to compare with, or a row.
    """
    count, rows = runs.shape
    if count <= newest or not rows:
        return float("nan")
    # Rounded, so that sums of the same differences in another order are equal. Doubled midranks are whole numbers.
    ranks = (
        np.rint(2 * scipy.stats.rankdata(np.round(runs, 9), axis=0)).astype(np.intp) - 2
    )
    spread = np.ones(1)
    for row, times in zip(
        *np.unique(np.sort(ranks, axis=0).T, axis=0, return_counts=True), strict=True
    ):
        spread = np.convolve(spread, _power(_sums(row, newest), int(times)))
    total = int(ranks[count - newest :].sum())
    upper = float(spread[total:].sum())
    lower = float(spread[: total + 1].sum())
    return min(1.0, upper if alternative == "greater" else 2 * min(upper, lower))


def _power(spread: Vector, times: int) -> Vector:
    """Return the distribution of the sum of `times` independent values of this distribution."""
    power = np.ones(1)
    while times:
        if times % 2:
            power = np.convolve(power, spread)
        spread = np.convolve(spread, spread) if times > 1 else spread
        times = times // 2
    return power


def _sums(ranks: npt.NDArray[np.intp], picked: int) -> Vector:
    """Return the probabilities of the sums of `picked` of the ranks, each choice equally likely."""
    table = np.zeros((picked + 1, picked * 2 * (len(ranks) - 1) + 1))
    table[0, 0] = 1
    for rank in ranks:
        table[1:, rank:] += table[:-1, : table.shape[1] - rank].copy()
    return np.asarray(table[picked] / table[picked].sum())


def distances(runs: Matrix) -> Matrix:
    """Return each run's summed distance of a row's value from the other runs' values; shape as of runs."""
    return np.asarray(np.abs(runs[:, None] - runs[None]).sum(axis=1))


def same_rows(name: str, runs: Matrix) -> list[Finding]:
    """Test the newest run (last) against the others over the same rows.

    One test is for values that moved up or down, one for values that are further from the others than these are from
    each other, in any direction. Rows that any run has no value of are left out.
    """
    present = _whole(runs)
    far = distances(present) / max(1, len(present) - 1)
    differ = Finding(
        f"{name} differ from those before",
        rank_p(far, "greater"),
        present.shape[1],
        *_before_and_now(far, 1),
    )
    return [moved(f"{name} moved", runs), differ]


def moved(name: str, runs: Matrix, newest: int = 1) -> Finding:
    """Return whether the values of the newest runs (last) are higher or lower than those before."""
    present = _whole(runs)
    return Finding(
        name,
        rank_p(present, "two-sided", newest),
        present.shape[1],
        *_before_and_now(present, newest),
    )


def _whole(runs: Matrix) -> Matrix:
    """Return the rows that every run has a value of."""
    return runs[:, ~np.isnan(runs).any(axis=0)]


def _before_and_now(runs: Matrix, newest: int) -> tuple[float, float]:
    if not runs.size:
        return float("nan"), float("nan")
    return float(runs[:-newest].mean()), float(runs[-newest:].mean())


def more_failures(name: str, runs: Matrix) -> Finding:
    """Return whether the newest run fails on more rows than those before it. runs: 1 where a row failed, else 0."""
    return Finding(
        name,
        rank_p(runs, "greater"),
        runs.shape[1],
        float(runs[:-1].mean()),
        float(runs[-1].mean()),
    )


def threshold(tests: Sequence[Finding], alpha: float, looks: int) -> float:
    """Return the p-value at which each of the tests of one look alarms.

    In `looks` looks, any test alarms falsely with probability `alpha` at most (Bonferroni: for any dependence of the
    looks, which share their baseline).
    """
    return level_of_look(alpha, looks, sum(not math.isnan(test.p) for test in tests))
