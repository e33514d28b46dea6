"""A judge's way to one human rater, and the test of whether it may replace one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.correlation import Vector, id_codes, impute, vector
from judgesmith.agreement.resampling import Agreement, Estimate, Range, limits
from judgesmith.agreement.significance import (
    BY_CHANCE,
    against_others,
    false_discovery,
    raters_agree,
)
from judgesmith.errors import LabelsError, OptionError

#: Why nothing measures a judge.
NO_AGREEMENT = "the raters do not agree beyond chance"


def _checked(
    judge: npt.ArrayLike, ratings: npt.ArrayLike
) -> tuple[Vector, npt.NDArray[np.float64]]:
    """Return the judge's scores, and the ratings of shape (rows, raters) beside them. Raises LabelsError."""
    scores = vector(judge, "judge", missing=True)
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(scores):
        raise LabelsError(
            f"ratings: expected {len(scores)} rows of raters, got shape {table.shape}"
        )
    return scores, table


@dataclass(frozen=True)
class Way(Estimate):
    """A judge's way to one human rater, with its interval; `reason` says why there is none."""

    reason: str | None = None


def way_to_rater(
    judge: npt.ArrayLike,
    ratings: npt.ArrayLike,
    *,
    documents: Iterable[Hashable] | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Way:
    """Compute how far a judge is on the way from guessing (0) to one human rater (1, and beyond).

    The unit compares data sets, whereas Q depends on how well people agree. Q with the mean of the other raters on the
    same rows is computed for each rater in turn, and for the judge; the result is the judge's mean over its raters'
    mean. 95 % intervals held the truth in 96 to 98 % of 200 simulated samples of 4 to 60 documents.

    Args:
        judge: one score per row, on any scale; NaN where it failed (imputed, as in Q).
        ratings: shape (rows, raters); NaN where a rater gave none.
        documents: document of each row; None: every row is a document of its own.
        rounds: resamples of documents; 0 for no interval.
        confidence: level of the interval, between 0 and 1.
        seed: seed of the resamples.

    Returns:
        The value with its interval; all NaN, with the reason, if raters do not agree beyond chance.

    Raises:
        LabelsError: If ratings are not a table with one line per score.

    >>> way_to_rater([1, 2, 3, 4, 5, 6], [[1, 2], [2, 2], [3, 4], [4, 3], [5, 5], [6, 6]], rounds=0).value > 1
    True
    """
    (way,) = ways_to_rater(
        [judge],
        ratings,
        documents=documents,
        rounds=rounds,
        confidence=confidence,
        seed=seed,
    )
    return way


def ways_to_rater(
    judges: Sequence[npt.ArrayLike],
    ratings: npt.ArrayLike,
    *,
    documents: Iterable[Hashable] | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[Way]:
    """Compute the way of each judge as `way_to_rater` does; how people agree is computed once for all of them."""
    checked = [_checked(judge, ratings) for judge in judges]
    if not checked:
        return []
    first, table = checked[0]
    if documents is None:
        codes = np.arange(len(first))
    else:
        codes = id_codes(documents, len(first), "documents")
    count = int(codes.max(initial=-1)) + 1
    sides = against_others(table)

    def agreement(each: Iterable[Vector]) -> Agreement:
        sets = [
            (scores, rest, codes[rows], None)
            for scores, (rows, _, rest) in zip(each, sides, strict=True)
        ]
        return Agreement.of_mean(sets, count, "pooled", "sum")

    people = agreement(own for _, own, _ in sides)
    drawn = rounds > 0 and people.reason is None
    below = people.resample(rounds, seed)[0][0] if drawn else None
    result = []
    for scores, _ in checked:
        x = np.zeros(len(scores)) if np.isnan(scores).all() else impute(scores)
        ours = agreement(x[rows] for rows, _, _ in sides)
        way = _way(ours.values[0], people.values[0])
        if below is not None and ours.reason is None and not math.isnan(way.value):
            above = ours.resample(rounds, seed)[0][0]
            way = _bounded(way, above, below, count, confidence)
        result.append(way)
    return result


def _way(ours: float, people: float) -> Way:
    if math.isnan(people) or people <= 0:
        return Way(math.nan, reason=NO_AGREEMENT)
    return Way((0.0 if math.isnan(ours) else ours) / people)


def _bounded(
    way: Way, above: Vector, below: Vector, documents: int, confidence: float
) -> Way:
    """Return the way with its interval. above, below: agreement of the judge and of people in the same resamples."""
    if np.quantile(below, (1 - confidence) / 2) <= 0:
        return Way(math.nan, reason=NO_AGREEMENT)
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # of a few draws, in which raters do not agree at all
        drawn = above / below
    ends = Range(-math.inf, math.inf)
    return Way(way.value, *limits(drawn, way.value, documents, ends, confidence))


#: With fewer rows a rater's t-test is not to be trusted, and the rater is left out.
FEWEST_OF_RATER = 30


@dataclass(frozen=True, slots=True)
class Replacement:
    """Result of the alternative annotator test.

    winning: the share of raters whom the judge beats (omega). advantage: the mean probability that it is at least as
    near to the others as a rater is (rho). p: of each rater, corrected for their number; NaN for one with too few rows.
    passes: whether the judge may replace them. reason: why there is no test.
    """

    winning: float
    advantage: float
    p: tuple[float, ...]
    passes: bool
    reason: str | None = None


def alternative_annotator_test(
    judge: npt.ArrayLike,
    ratings: npt.ArrayLike,
    *,
    epsilon: float = 0.15,
    nominal: bool = False,
    level: float = 0.05,
    fewest: int = FEWEST_OF_RATER,
    as_published: bool = False,
    seed: int = 0,
) -> Replacement:
    """Test whether a judge may replace the raters: for each one, whether it is nearer to the others than that rater.

    The judge passes if it beats half of the raters. Where raters scatter, a constant near their mean does that, too. So
    there is no test of raters who do not agree beyond chance (`raters_agree`), nor of a judge that is a constant.
    Source: Calderon, Reichart and Dror 2025, ACL, https://aclanthology.org/2025.acl-long.782.

    Args:
        judge: one score per row on the raters' scale; NaN where it failed, which counts as lost.
        ratings: shape (rows, raters); NaN where a rater gave none.
        epsilon: how much worse than a rater the cheaper judge may be; the paper takes 0.2 for experts, 0.15 for skilled
            raters, 0.1 for crowd workers.
        nominal: scores are categories; nearness is the share of equal ones, else the root mean squared distance.
        level: level of Benjamini and Yekutieli's procedure over raters.
        fewest: rows that a rater needs to be tested.
        as_published: test raters who may agree by chance, and a constant, too.
        seed: seed of the test of the raters' agreement.

    Returns:
        Winning rate, advantage and the p-values, one per rater.

    Raises:
        LabelsError: If ratings are not a table with one line per score.
        OptionError: If `epsilon` is outside [0, 1).

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(60, 1))
    >>> alternative_annotator_test(truth[:, 0], truth + rng.normal(size=(60, 3))).passes
    True
    """
    x, table = _checked(judge, ratings)
    if not 0 <= epsilon < 1:
        raise OptionError(f"epsilon: {epsilon} is not in [0, 1); pass for example 0.15")
    sides = [_beside(x, table, rater, nominal) for rater in range(table.shape[1])]
    tested = [len(judged) >= fewest for judged, _ in sides]
    if sum(tested) < 2:
        why = (
            f"the test needs two raters with {fewest} rows each that others rated, too"
        )
        return _untested(len(sides), why)
    if not as_published:
        scored = x[~np.isnan(x)]
        if len(scored) and np.ptp(scored) == 0:
            return _untested(len(sides), "a constant")
        if raters_agree(table, nominal=nominal, seed=seed) > BY_CHANCE:
            return _untested(len(sides), NO_AGREEMENT)
    raw = [
        _not_worse(human - judged, epsilon) if ok else math.nan
        for (judged, human), ok in zip(sides, tested, strict=True)
    ]
    p = false_discovery(raw, dependent=True)
    winning = float(np.mean(p[tested] < level))
    advantage = float(
        np.mean(
            [judged.mean() for (judged, _), ok in zip(sides, tested, strict=True) if ok]
        )
    )
    return Replacement(winning, advantage, tuple(p.tolist()), winning >= 0.5)


def _untested(raters: int, why: str) -> Replacement:
    return Replacement(math.nan, math.nan, (math.nan,) * raters, False, why)


def nearest_constant(ratings: npt.ArrayLike, *, nominal: bool = False) -> float:
    """Return the score that a judge without a look at the texts would best give always: one that people gave.

    It is the most frequent category, or else the score nearest to people's mean.
    """
    given, counts = np.unique(
        np.asarray(ratings, dtype=np.float64).ravel(), return_counts=True
    )
    counts = counts[~np.isnan(given)]
    given = given[~np.isnan(given)]
    if nominal:
        return float(given[counts.argmax()])
    mean = float(np.average(given, weights=counts))
    return float(given[np.abs(given - mean).argmin()])


def _beside(
    x: Vector, table: Vector, rater: int, nominal: bool
) -> tuple[Vector, Vector]:
    """Return, per row, whether the judge is as near to the other raters as this one, and the reverse."""
    others = np.delete(table, rater, axis=1)
    rows = ~np.isnan(table[:, rater]) & ~np.isnan(others).all(axis=1)
    near = [
        _nearness(side[rows], others[rows], nominal) for side in (x, table[:, rater])
    ]
    judged = np.where(np.isnan(near[0]), -math.inf, near[0])
    return (judged >= near[1]).astype(float), (near[1] >= judged).astype(float)


def _nearness(own: Vector, others: Vector, nominal: bool) -> Vector:
    """Return the nearness of each row's score to the other raters'; NaN without one."""
    here = np.nan_to_num(own)[:, None]
    unlike = (others != here).astype(float) if nominal else (others - here) ** 2
    apart = np.nanmean(np.where(np.isnan(others), np.nan, unlike), axis=1)
    nearness: Vector = np.where(
        np.isnan(own), np.nan, -apart if nominal else -np.sqrt(apart)
    )
    return nearness


def _not_worse(apart: Vector, epsilon: float) -> float:
    """Return p of the judge losing by epsilon or more.

    apart: 1 where the rater alone is nearer, -1 where the judge is.
    """
    if np.ptp(apart) == 0:
        return 0.0 if apart[0] < epsilon else 1.0
    return float(scipy.stats.ttest_1samp(apart, epsilon, alternative="less").pvalue)
