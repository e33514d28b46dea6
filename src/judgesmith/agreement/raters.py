"""How far raters differ in how high they rate, and how far scores agree with single raters.

Severity is not quality: a judge that is told nothing of raters cannot follow it, and agreement within raters leaves it
out. Source: one-way analysis of variance (Shrout and Fleiss 1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from judgesmith.agreement.correlation import Codes, Vector, correlate
from judgesmith.agreement.resampling import drawn_again, percentiles
from judgesmith.agreement.significance import against_others, krippendorff_alpha

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


@dataclass(frozen=True, slots=True)
class Beside:
    """A rater beside the mean of the others, on the rows that both rated.

    n: these rows. mean, others: of this rater, and of the others' means. low, high: 95 % interval over rows of how much
    higher this rater rates; NaN for fewer than two rows. r: Pearson's; NaN without variance. usual: the median r of the
    others among themselves.
    """

    n: int
    mean: float
    others: float
    low: float
    high: float
    r: float
    usual: float
    flat: bool
    """Whether all labels are the same where the others' differ."""

    @property
    def lead(self) -> float:
        """How much higher this rater rates than the others; below 0 for a strict one."""
        return self.mean - self.others

    def doubt(self, name: str) -> str | None:
        """Return a sentence on labels that say nothing of the rows; None for all others."""
        if self.n < FEWEST:
            return None
        if self.flat:
            return f"{name} gave {self.n} rows the same label, {self.mean:g}"
        high = math.tanh(
            math.atanh(min(self.r, 1 - 1e-9)) + 1.96 / math.sqrt(max(self.n - 3, 1))
        )
        if high < self.usual and self.r < 0.5 * self.usual:
            return (
                f"{name} agrees with the other raters by r = {self.r:.2f} (n = {self.n}, others {self.usual:.2f}), as "
                "if answering at random; look at these labels, or leave them out"
            )
        return None


def beside_others(table: Vector) -> list[Beside]:
    """Return each rater of a table, shape (rows, raters), NaN where there is no rating, beside the others.

    >>> strict, lenient = beside_others(np.array([[1.0, 2.0], [2.0, 3.0], [4.0, 5.0]]))
    >>> strict.lead, lenient.lead, round(strict.r, 6)
    (-1.0, 1.0, 1.0)
    """
    found = []
    for place, (rows, own, others) in enumerate(against_others(table)):
        n = int(rows.sum())
        low = high = math.nan
        if n > 1:
            lead = own - others
            margin = float(stdtrit(n - 1, 0.975) * lead.std(ddof=1) / math.sqrt(n))
            low, high = float(lead.mean()) - margin, float(lead.mean()) + margin
        varied = n > 1 and np.ptp(others) > 0
        found.append(
            Beside(
                n,
                float(own.mean()) if n else math.nan,
                float(others.mean()) if n else math.nan,
                low,
                high,
                _pearson(own, others),
                _usual(np.delete(table, place, axis=1)),
                bool(varied and np.ptp(own) == 0),
            )
        )
    return found


def _usual(table: Vector) -> float:
    """Return the median correlation of raters with the rest of them."""
    values = [
        _pearson(own, others)
        for rows, own, others in against_others(table)
        if rows.sum() > 3
    ]
    defined = [value for value in values if not math.isnan(value)]
    return float(np.median(defined)) if defined else math.nan


def _pearson(x: Vector, y: Vector) -> float:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def alpha_interval(
    table: Vector, *, rounds: int = 1000, seed: int = 0
) -> tuple[float, float, float]:
    """Return Krippendorff's alpha for interval data, as `krippendorff_alpha` has it, and its 95 % interval over rows.

    Args:
        table: Shape (rows, raters), NaN where there is no rating.
        rounds: Resamples of the rows.
        seed: Seed of these.
    """
    table = table[np.count_nonzero(~np.isnan(table), axis=1) > 1]
    value = krippendorff_alpha(table) if len(table) else math.nan
    if math.isnan(value) or len(table) < 2:
        return value, math.nan, math.nan
    count = np.count_nonzero(~np.isnan(table), axis=1).astype(np.float64)
    table = table - np.nanmean(table)
    total = np.nansum(table, axis=1)
    squares = np.nansum(table**2, axis=1)
    apart = 2 * count * (squares - total**2 / count) / (count - 1)

    def alpha(counts: Vector) -> Vector:
        """Return alpha of rows that count so often, by sums over rows."""
        n = counts @ count
        spread = 2 * (counts @ squares - (counts @ total) ** 2 / n) / (n - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(spread > 1e-12, 1 - (counts @ apart) / n / spread, np.nan)

    return value, *percentiles(drawn_again(alpha, len(table), rounds, seed), 0.95)


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
