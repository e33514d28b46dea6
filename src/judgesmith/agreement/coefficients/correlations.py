"""Pearson, Spearman, Kendall and their sum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.coefficients import (
    Codes,
    Correlation,
    Sum,
    Vector,
    coefficients,
    less_means,
)
from judgesmith.agreement.correlation import midranks, surplus, untied
from judgesmith.agreement.resampling import (
    Drawn,
    DrawnWithin,
    Side,
    WeightedRows,
    WithinSystems,
)

_CUBE = 64  # rows up to which all pairs of all vectors are compared at once
_SQUARE = 300  # rows up to which comparing all pairs of a vector is faster than scipy's O(n log n)
_CELLS = 4_000_000  # pairs compared at a time


@coefficients.register
class Pearson(Correlation):
    """Pearson's correlation."""

    name = "pearson"
    title = "Pearson r"
    about = "Correlation of scores (r)."

    def of(self, x: Vector, y: Vector) -> Vector:
        """Return r of each row."""
        return _cosine(_once(_centred, x), _once(_centred, y))

    def within(self, x: Vector, y: Vector, sys: Codes) -> float:
        """Return r of scores less the mean of their system."""
        return float(_cosine(less_means(x, sys)[None], less_means(y, sys)[None])[0])

    def weighted(self, rows: WeightedRows, drawn: Drawn) -> Vector:
        """Return r of resampled rows."""
        w = drawn.w
        total = drawn.total
        x = rows.x.centred(w, total)
        y = rows.y.centred(w, total)
        wx = w * x
        covariance = np.einsum("ij,ij->i", wx, y)
        variance = np.einsum("ij,ij->i", wx, x)
        spread = np.einsum("ij,ij,ij->i", w, y, y)
        return np.asarray(covariance / np.sqrt(variance) / np.sqrt(spread))

    def weighted_within(self, rows: WithinSystems, drawn: DrawnWithin) -> Vector:
        """Return r of resampled scores less the mean of their system."""

        def centred(side: Side) -> Vector:
            scores = np.broadcast_to(side.scaled, drawn.w.shape)
            return rows.centred(scores, drawn.w, drawn.total)

        return _weighted_cosine(centred(rows.x), centred(rows.y), drawn.w)


@coefficients.register
class Spearman(Correlation):
    """Spearman's rank correlation."""

    name = "spearman"
    title = "Spearman ρ"
    about = "Correlation of ranks (rho)."

    def of(self, x: Vector, y: Vector) -> Vector:
        """Return rho of each row; equal values share the mean of their ranks."""
        return _cosine(_once(_centred_ranks, x), _once(_centred_ranks, y))

    def within(self, x: Vector, y: Vector, sys: Codes) -> float:
        """Return Pearson's r of pooled ranks less the mean rank of their system."""
        ranks = (less_means(midranks(side), sys)[None] for side in (x, y))
        return float(_cosine(*ranks)[0])

    def weighted(self, rows: WeightedRows, drawn: Drawn) -> Vector:
        """Return rho of resampled rows."""
        x = rows.x.ranks(drawn.gx, drawn.total)
        y = rows.y.ranks(drawn.gy, drawn.total)
        covariance = np.einsum(
            "ij,ij,ij->i", drawn.w, x[:, rows.x.code], y[:, rows.y.code]
        )
        vx = np.einsum("ij,ij,ij->i", drawn.gx, x, x)
        vy = np.einsum("ij,ij,ij->i", drawn.gy, y, y)
        return np.asarray(covariance / np.sqrt(vx) / np.sqrt(vy))

    def weighted_within(self, rows: WithinSystems, drawn: DrawnWithin) -> Vector:
        """Return r of the pooled ranks of resampled rows, less the mean rank of their system."""
        w = drawn.w

        def centred(side: Side) -> Vector:
            ranks = side.ranks(side.weights(w), w.sum(axis=1))[:, side.code]
            return rows.centred(ranks, w, drawn.total)

        return _weighted_cosine(centred(rows.x), centred(rows.y), w)


@coefficients.register
class Kendall(Correlation):
    """Kendall's tau-b, corrected for ties. Source: Kendall 1945."""

    name = "kendall"
    title = "Kendall τ-b"
    about = "Pairs in the same order less pairs in opposite orders, corrected for ties (tau-b)."

    def of(self, x: Vector, y: Vector) -> Vector:
        """Return tau-b of each row."""
        return _kendall_rows(x, y)

    def within(self, x: Vector, y: Vector, sys: Codes) -> float:
        """Return tau-b over the pairs of rows of one system."""
        return float(surplus(x, y, sys) / np.sqrt(untied(x, sys) * untied(y, sys)))

    def weighted(self, rows: WeightedRows, drawn: Drawn) -> Vector:
        """Return tau-b of resampled rows; above 3,000 rows by a call of scipy for each resample."""
        found, x_untied, y_untied = _pairs_drawn(rows, drawn)
        return np.asarray(found / np.sqrt(x_untied * y_untied))

    def weighted_within(self, rows: WithinSystems, drawn: DrawnWithin) -> Vector:
        """Return tau-b over the pairs of resampled rows of one system."""
        x_untied, y_untied = drawn.ties
        return np.asarray(rows.surplus(drawn.w) / np.sqrt(x_untied * y_untied))


@coefficients.register
class Somers(Correlation):
    """Somers' d of the scores given people's: tau-b without the root that rewards a judge for its ties.

    A pair that people tell apart and the judge does not counts half, so that breaking ties at random changes nothing on
    average. Source: Somers 1962.
    """

    name = "somers"
    title = "Somers' d"
    about = "Pairs in the same order less pairs in opposite orders, of those that people tell apart (d)."

    def of(self, x: Vector, y: Vector) -> Vector:
        """Return d of each row."""
        root = np.sqrt(_untied_pairs(x) / _untied_pairs(y))
        return np.asarray(_kendall_rows(x, y) * root)

    def within(self, x: Vector, y: Vector, sys: Codes) -> float:
        """Return d over the pairs of rows of one system."""
        return float(surplus(x, y, sys) / untied(y, sys))

    def weighted(self, rows: WeightedRows, drawn: Drawn) -> Vector:
        """Return d of resampled rows."""
        found, _, y_untied = _pairs_drawn(rows, drawn)
        return np.asarray(found / y_untied)

    def weighted_within(self, rows: WithinSystems, drawn: DrawnWithin) -> Vector:
        """Return d over the pairs of resampled rows of one system."""
        return np.asarray(rows.surplus(drawn.w) / drawn.ties[1])


@coefficients.register
class WithoutTies(Sum):
    """Pearson and Somers' d: agreement that ties of the judge neither raise nor lower."""

    name = "pearson-somers"
    title = "r + d"
    about = "Sum of pearson and somers, by which two judges of unequally many ties are compared."
    low = -2.0
    high = 2.0
    parts = ("pearson", "somers")


@coefficients.register
class CorrelationsSum(Sum):
    """Q of Active-Critic, eq. 3."""

    name = "q"
    aliases = ("sum",)
    title = "Q"
    about = "Sum of pearson, spearman and kendall, failed rows imputed."
    low = -3.0
    high = 3.0
    parts = ("pearson", "spearman", "kendall")


# Computations --------------------------------------------------------------------------------------------------------


def _weighted_cosine(x: Vector, y: Vector, w: Vector) -> Vector:
    spread = np.einsum("ij,ij,ij->i", w, x, x) * np.einsum("ij,ij,ij->i", w, y, y)
    return np.asarray(np.einsum("ij,ij,ij->i", w, x, y) / np.sqrt(spread))


def _once(function: Callable[[Vector], Vector], x: Vector) -> Vector:
    """Return `function(x)`, computed once if all rows of x are one broadcast row (human scores in a permutation)."""
    if len(x) > 1 and x.strides[0] == 0:
        return np.broadcast_to(function(x[:1]), x.shape)
    return np.asarray(function(x))


def _centred(x: Vector) -> Vector:
    """Return rows less their mean, scaled to a spread of 1 so that squares of 1e-300 do not vanish."""
    x = x - x.min(axis=1, keepdims=True)
    x = x / x.max(axis=1, keepdims=True)
    return np.asarray(x - x.mean(axis=1, keepdims=True))


def _centred_ranks(x: Vector) -> Vector:
    ranks = midranks(x[0])[None] if len(x) == 1 else scipy.stats.rankdata(x, axis=1)
    return _centred(np.asarray(ranks, dtype=np.float64))


def _cosine(x: Vector, y: Vector) -> Vector:
    squares = np.einsum("ij,ij->i", x, x) * np.einsum("ij,ij->i", y, y)
    return np.asarray(
        np.einsum("ij,ij->i", x, y) / np.sqrt(squares)
    )  # one root: 1.0 where the scores are equal


def _pairs_drawn(rows: WeightedRows, drawn: Drawn) -> tuple[Vector, Vector, Vector]:
    """Return twice the concordant less the discordant pairs of each resample, and twice each side's untied ones."""
    x_untied, y_untied = (
        drawn.total**2 - np.einsum("ij,ij->i", of, of) for of in (drawn.gx, drawn.gy)
    )
    found = rows.concordance(drawn.w)
    if found is None:
        x = rows.x.code
        y = rows.y.code
        taus = [
            scipy.stats.kendalltau(np.repeat(x, t), np.repeat(y, t)).statistic
            for t in drawn.w.astype(np.intp)
        ]
        found = np.rint(taus * np.sqrt(x_untied * y_untied))  # a whole number
    return found, x_untied, y_untied


def _untied_pairs(x: Vector) -> Vector:
    """Return twice the number of pairs that differ in each row of x."""
    one = np.zeros(x.shape[1], dtype=np.intp)
    return np.array([untied(row, one) for row in x])


def _kendall_rows(x: Vector, y: Vector) -> Vector:
    k, n = x.shape
    if n > _CUBE:
        each = _kendall_pairs if n <= _SQUARE else _kendall_sorted
        return np.array([each(a, b) for a, b in zip(x, y, strict=True)])
    value = np.empty(k)
    step = max(1, _CELLS // (n * n))
    for start in range(0, k, step):
        a = x[start : start + step]
        b = y[start : start + step]
        sa = _signs(a)
        sb = _signs(b)
        surplus = np.einsum(
            "kij,kij->k", sa, sb, dtype=np.float64
        )  # 2 (concordant - discordant)
        untied = np.count_nonzero(sa, axis=(1, 2)) * np.count_nonzero(sb, axis=(1, 2))
        value[start : start + step] = surplus / np.sqrt(untied)
    return value


def _kendall_pairs(x: Vector, y: Vector) -> float:
    a = x[:, None] > x
    b = y[:, None] > y
    surplus = np.count_nonzero(a & b) - np.count_nonzero(a & b.T)
    return float(surplus / np.sqrt(np.count_nonzero(a) * np.count_nonzero(b)))


def _kendall_sorted(x: Vector, y: Vector) -> float:
    return float(scipy.stats.kendalltau(x, y).statistic)


def _signs(x: Vector) -> npt.NDArray[np.int8]:
    a = x[:, :, None]
    b = x[:, None, :]
    return (a > b).astype(np.int8) - (a < b).astype(
        np.int8
    )  # an eighth of the memory of sign(a - b)
