"""How far raters differ in how high they rate, and how far scores agree with single raters.

Severity is not quality: a judge that is told nothing of raters cannot follow it, and agreement within raters leaves it
out. Source: one-way analysis of variance (Shrout and Fleiss 1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from judgesmith.agreement.correlation import Codes, Vector, correlate

#: The fewest rows of a rater for agreement within raters.
FEWEST = 10
#: Raters differ where they explain more than this share of the variance of single ratings.
DIFFERENT = 0.1
#: One rater stands out with this many times the labels of all the others together.
MOST = 2.0


def by_person(
    ratings: Sequence[Sequence[float]], raters: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], Vector]:
    """Return the raters' names, and their ratings with shape (rows, raters), NaN where there is none.

    Args:
        ratings: the single ratings of each row.
        raters: who gave them, in the same order; a row without names is left empty.
    """
    names = tuple(dict.fromkeys(name for row in raters for name in row))
    place = {name: k for k, name in enumerate(names)}
    table = np.full((len(ratings), len(names)), np.nan)
    for i, (values, who) in enumerate(zip(ratings, raters, strict=True)):
        if len(values) == len(who):
            for name, value in zip(who, values, strict=True):
                table[i, place[name]] = value
    return names, table


def gave_most(counts: Codes) -> bool:
    """Return whether one rater gave most labels, by how many each gave: at least two thirds, of two or more raters.

    >>> gave_most(np.array([39, 38])), gave_most(np.array([60, 9, 8]))
    (False, True)
    """
    most = int(counts.max(initial=0))
    return len(counts) > 1 and most >= MOST * (int(counts.sum()) - most)


def between_raters(table: Vector) -> float:
    """Return the raters' share of the variance of single ratings (ICC of a one-way analysis), NaN for fewer than two.

    >>> between_raters(np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, 4.0], [np.nan, 5.0]]))
    0.8947368421052632
    """
    sizes = []
    means = []
    squares = []
    for column in table.T:
        ratings = column[~np.isnan(column)]
        if len(ratings) > 1:
            sizes.append(float(len(ratings)))
            means.append(ratings.mean())
            squares.append(float(((ratings - ratings.mean()) ** 2).sum()))
    if len(sizes) < 2:
        return math.nan
    return _share_between(np.array(sizes), np.array(means), sum(squares))


def _share_between(sizes: Vector, means: Vector, squares: float) -> float:
    """Return the share of the variance between groups, of their sizes, means and sum of squares inside."""
    n = sizes.sum()
    k = len(sizes)
    inside = squares / (n - k)
    outside = float((sizes * (means - (sizes @ means) / n) ** 2).sum()) / (k - 1)
    usual = (n - (sizes**2).sum() / n) / (k - 1)
    total = outside + (usual - 1) * inside
    return float((outside - inside) / total) if total > 0 else math.nan


def within_raters(
    scores: Vector, table: Vector, fewest: int = FEWEST
) -> tuple[float, int]:
    """Return Spearman's correlation of scores with single raters, averaged by their rows, and how many raters it is of.

    Args:
        scores: of the rows.
        table: ratings, shape (rows, raters).
        fewest: rows that a rater needs to count.
    """
    sizes = list[int]()
    values = list[float]()
    for column in table.T:
        both = ~np.isnan(column) & ~np.isnan(scores)
        value = correlate(
            scores[both], column[both], coefficient="spearman", level="pooled"
        ).value
        if both.sum() >= fewest and not math.isnan(value):
            sizes = [*sizes, int(both.sum())]
            values = [*values, value]
    mean = float(np.average(values, weights=sizes)) if values else math.nan
    return mean, len(values)
