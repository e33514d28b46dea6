"""Pass rates from many verdicts and few labels: Jeffreys' posterior in each stratum of verdicts.

Rows are cut into strata by the judge's verdict. Each stratum's pass rate has Jeffreys' posterior from its labels, and
strata are weighed by their shares in all rows. So an interval is there from the first label on, also where all labels
are equal. In 400 simulated samples each, with 5 to 100 labels and pass rates of 50 to 99 %, 95 % intervals held the
truth in 90 to 99 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judgesmith.agreement.correlation import Codes, Vector

DRAWS = 4000


@dataclass(frozen=True)
class Rate:
    """A pass rate in [0, 1]: the estimate, and draws of its posterior in ascending order.

    alone, alone_drawn: the same from labels alone. only: 0 or 1 where all labels are "fail" or "pass", else NaN.
    """

    mean: float
    drawn: Vector
    alone: float
    alone_drawn: Vector
    only: float

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval of the rate, which holds the estimate."""
        return self._ends(self.drawn, self.mean, confidence)

    def interval_alone(self, confidence: float) -> tuple[float, float]:
        """Return the interval from labels alone."""
        return self._ends(self.alone_drawn, self.alone, confidence)

    def _ends(
        self, drawn: Vector, mean: float, confidence: float
    ) -> tuple[float, float]:
        low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
        low = min(float(low), mean)
        high = max(float(high), mean)
        if self.only == 1:
            return low, 1.0
        if self.only == 0:
            return 0.0, high
        return low, high


def strata(judge: Vector) -> Codes:
    """Return the stratum of each row: its verdict, or the half of the judge's range that its score lies in.

    judge: verdicts or scores; NaN where the judge failed, a stratum of its own. Labels have no say: a cut that they
    choose gives intervals that are too narrow.
    """
    result = np.full(len(judge), 2, dtype=np.intp)
    scored = ~np.isnan(judge)
    result[scored] = judge[scored] > (np.nanmin(judge) + np.nanmax(judge)) / 2
    return result


def rate(
    stratum: Codes,
    passed: Vector,
    weights: Vector,
    documents: Codes,
    rng: np.random.Generator,
) -> Rate:
    """Estimate the pass rate of rows of which some are labelled; at least one has to be.

    weights: one over the probability of a row's label. documents: rows of one are no independent evidence, so they
    count as fewer labels (design effect).
    """
    labelled = ~np.isnan(passed)
    y = passed[labelled]
    w = weights[labelled]
    own = stratum[labelled]
    worth = _worth(y, w, own, documents[labelled])
    places = np.unique(stratum)
    of_all = np.array([np.count_nonzero(stratum == q) for q in places], dtype=float)
    shares = rng.dirichlet(of_all + 0.5, size=DRAWS)
    mean = 0.0
    drawn = np.zeros(DRAWS)
    for column, q in enumerate(places):
        here = own == q
        of_passed, of_failed = _counts(y[here], w[here], worth)
        drawn += shares[:, column] * _jeffreys(of_passed, of_failed, rng)
        middle = np.average(y[here], weights=w[here]) if here.any() else 0.5
        mean += of_all[column] / len(stratum) * float(middle)
    alone_drawn = _jeffreys(*_counts(y, w, worth), rng)
    only = float(y[0]) if np.ptp(y) == 0 else np.nan
    alone = float(np.average(y, weights=w))
    if only == only:  # a stratum without labels is as the others
        mean = only
    return Rate(mean, np.sort(drawn), alone, np.sort(alone_drawn), only)


def _jeffreys(passed: float, failed: float, rng: np.random.Generator) -> Vector:
    return rng.beta(passed + 0.5, failed + 0.5, size=DRAWS)


def _counts(y: Vector, weights: Vector, worth: float) -> tuple[float, float]:
    """Return the passed and failed labels, as many as they are worth."""
    if not len(y):
        return 0.0, 0.0
    labels = worth * weights.sum() ** 2 / (weights**2).sum()
    share = float(np.average(y, weights=weights))
    return labels * share, labels * (1 - share)


def _worth(y: Vector, weights: Vector, stratum: Codes, documents: Codes) -> float:
    """Return how many independent labels one label is worth, in (0, 1]: one over the design effect of documents."""
    code = np.unique(documents, return_inverse=True)[1]
    fewest = (code.max() + 1) / len(y)
    if fewest == 1:
        return 1.0
    apart = np.zeros(len(y))
    for q in np.unique(stratum):
        here = stratum == q
        apart[here] = weights[here] * (
            y[here] - np.average(y[here], weights=weights[here])
        )
    alone = float(apart @ apart)
    if alone == 0:
        return float(fewest)
    together = float((np.bincount(code, apart) ** 2).sum())
    return float(np.clip(alone / together if together else 1.0, fewest, 1.0))


def together(rates: Sequence[Rate], correlation: Vector) -> Vector:
    """Return draws of several rates that vary with each other -> (draws, rates).

    correlation: of the rates' errors, as documents in common make them. Each rate keeps its own posterior.
    """
    rng = np.random.default_rng(0)
    size, axes = np.linalg.eigh(correlation)
    normal = rng.standard_normal((DRAWS, len(rates)))
    normal = normal @ (axes * np.sqrt(np.maximum(size, 0.0))).T
    ranks = normal.argsort(axis=0).argsort(axis=0)
    drawn = [one.drawn[ranks[:, column]] for column, one in enumerate(rates)]
    return np.stack(drawn, axis=1)
