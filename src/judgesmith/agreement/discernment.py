"""Discernment of perturbed texts (DHP): does a judge score good texts above perturbed ones, and how surely?

Wilcoxon's signed-rank test compares the scores of texts before and after a perturbation, once for each metric of a
judge; the p-values are combined by their harmonic mean and become a discernment score, D = log_0.05 p. D >= 1 is
p <= 0.05. D grows with the number of texts, so an effect size with an interval is given, too.
Source: DHP benchmark, section 3.3.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.correlation import Vector, midranks
from judgesmith.agreement.resampling import Range, drawn_again, limits, percentiles
from judgesmith.errors import OptionError

Form = Literal["normalised", "paper"]

ALPHA = 0.05
#: The smallest p that is distinguished: the smallest floating-point number.
SMALLEST = 1e-300
_EXACT = 50  # pairs up to which the null distribution is counted out, as scipy has it
_FEW = (
    7  # differences other than 0 up to which the normal approximation promises too much
)


@dataclass(frozen=True)
class SignedRank:
    """One-sided Wilcoxon test that scores before are above scores after.

    p: NaN where there is no pair; 1 where no pair differs. n: pairs that were compared; equal: those without a
    difference, which the test drops (Wilcoxon's own way, scipy's default). left_out: pairs with a score missing.
    floor: the smallest p that this many differing pairs can give. effect: matched-pairs rank-biserial correlation, in
    [-1, 1], 1 = every text lost score; 0 where no pair differs. drop: mean of before - after; dropped: share of the n
    pairs.
    """

    p: float
    n: int
    equal: int
    left_out: int
    floor: float
    effect: float
    drop: float
    dropped: float
    reason: str | None = None


def signed_rank(before: npt.ArrayLike, after: npt.ArrayLike) -> SignedRank:
    """Compare two vectors of scores, pair by pair; NaN in either leaves the pair out.

    For up to 50 pairs (or 7 differences) p is counted out over all signs of the ranks, ties included. Above that it is
    the normal approximation, corrected for ties and not for continuity: where scipy.stats.wilcoxon does the same, the
    numbers are the same. Ranks treat differences that are equal but for rounding as equal.

    Raises:
        OptionError: If the vectors have different shapes.
    """
    differences, left_out = _differences(before, after)
    n = len(differences)
    if not n:
        nan = math.nan
        return SignedRank(
            nan, 0, 0, left_out, nan, nan, nan, nan, "no pair has both scores"
        )
    some = differences[differences != 0]
    dropped = float(np.mean(differences > 0))
    drop = float(differences.mean())
    if not len(some):
        return SignedRank(
            1.0, n, n, left_out, 1.0, 0.0, drop, dropped, "all scores are equal"
        )
    exact = n <= _EXACT or len(some) <= _FEW
    p, effect = _test(some, exact)
    if exact:
        floor = 0.5 ** len(some)
    else:
        floor = _test(np.arange(1.0, len(some) + 1), False)[0]
    return SignedRank(
        p, n, n - len(some), left_out, max(floor, SMALLEST), effect, drop, dropped
    )


def _differences(before: npt.ArrayLike, after: npt.ArrayLike) -> tuple[Vector, int]:
    one = np.asarray(before, dtype=np.float64)
    other = np.asarray(after, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise OptionError(
            f"scores before and after must be two vectors of one length; got {one.shape}, {other.shape}"
        )
    missing = ~(np.isfinite(one) & np.isfinite(other))
    # 0.3 - 0.1 and 0.4 - 0.2 are one difference: twelve digits of the larger score count.
    size = np.abs(np.concatenate([one[~missing], other[~missing], [0.0]])).max()
    step = 10.0 ** (math.floor(math.log10(size)) - 11) if size > 0 else 1.0
    rounded = np.round((one - other)[~missing] / step) * step
    return np.asarray(rounded), int(missing.sum())


def _test(some: Vector, exact: bool) -> tuple[float, float]:
    """Return p and rank-biserial correlation of differences that are not 0."""
    ranks = midranks(np.abs(some))
    above = float(ranks[some > 0].sum())
    total = float(ranks.sum())
    if exact:
        p = _counted(ranks, above)
    else:
        spread = math.sqrt(float((ranks**2).sum()) / 4)
        p = float(scipy.special.ndtr(-(above - total / 2) / spread))
    return min(max(p, SMALLEST), 1.0), (2 * above - total) / total


def _counted(ranks: Vector, above: float) -> float:
    """Return P(sum of the ranks with a random sign + is at least `above`), over all signs; midranks are doubled."""
    doubled = np.rint(2 * ranks).astype(np.int64)
    share = np.zeros(int(doubled.sum()) + 1)
    share[0] = 1.0
    reached = 0
    for rank in doubled.tolist():
        moved = share[: reached + 1] * 0.5
        share[: reached + 1] = moved
        reached += rank
        share[rank : reached + 1] += moved
    return float(share[round(2 * above) :].sum())


# Metrics combined ----------------------------------------------------------------------------------------------------


def combine(
    p_values: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    form: Form = "normalised",
) -> float:
    """Return one p of several metrics' by the harmonic mean.

    form "normalised": 1 / sum(w_j / p_j) with weights that sum to 1 (None: equal ones). "paper": 1 / sum(1 / p_j), as
    the DHP paper prints it for equal weights, which is too small by a factor of the number of metrics; with weights the
    forms are the same. NaN is left out and the weights scaled up; NaN if nothing is left.

    Raises:
        OptionError: If weights, p-values or the form are invalid.
    """
    p = np.asarray(p_values, dtype=np.float64)
    w = np.ones(len(p)) if weights is None else np.asarray(weights, dtype=np.float64)
    if p.ndim != 1 or w.shape != p.shape or not len(p):
        raise OptionError(
            f"weights: {w.size} for {p.size} p-values; give one per metric"
        )
    if (w < 0).any() or not np.isfinite(w).all():
        raise OptionError(f"weights: {w.tolist()} are not all numbers of 0 or more")
    if ((p < 0) | (p > 1)).any():
        raise OptionError(f"p-values: {p.tolist()} are not all in 0..1")
    if form not in get_args(Form):
        raise OptionError(f"form {form!r} is not one of {', '.join(get_args(Form))}")
    used = ~np.isnan(p) & (w > 0)
    if not used.any():
        return math.nan
    p = np.maximum(p[used], SMALLEST)
    w = w[used]
    if weights is not None or form == "normalised":
        w = w / w.sum()
    return float(min(1.0, 1.0 / float((w / p).sum())))


def score_of(p: float) -> float:
    """Return D = log_0.05 p: 0 for p = 1, 1 for p = 0.05; at most 230.6, where p underflows; NaN stays NaN."""
    if math.isnan(p):
        return math.nan
    return abs(math.log(max(p, SMALLEST)) / math.log(ALPHA))


# A perturbation ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Discernment:
    """Discernment of one perturbation by a judge.

    d, p: combined in `form`, or by the weights if there are any. d_normalised, d_paper, d_expert: the same by each way
    (d_expert NaN without weights). tests: by metric. effect: rank-biserial correlation, mean over metrics (weighted
    where there are weights). low, high, effect_low, effect_high: intervals over resampled texts (percentiles of D,
    `limits` of the effect), NaN where there are none. n: the fewest pairs of a metric.
    """

    d: float
    p: float
    form: Form
    d_normalised: float
    d_paper: float
    d_expert: float
    tests: tuple[SignedRank, ...]
    effect: float
    low: float = math.nan
    high: float = math.nan
    effect_low: float = math.nan
    effect_high: float = math.nan

    @property
    def n(self) -> int:
        """The fewest pairs of any metric."""
        return min(test.n for test in self.tests)

    @property
    def drop(self) -> float:
        """Mean drop of the scores, mean over the metrics; NaN metrics are left out."""
        return _weighted([test.drop for test in self.tests])

    @property
    def dropped(self) -> float:
        """Share of texts whose score dropped, mean over the metrics."""
        return _weighted([test.dropped for test in self.tests])


def discernment(
    original: npt.ArrayLike,
    perturbed: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    form: Form = "normalised",
    rounds: int = 0,
    confidence: float = 0.95,
    seed: int = 0,
) -> Discernment:
    """Test whether a judge notices a perturbation, by Wilcoxon's signed-rank test of scores before and after.

    Args:
        original: scores of the original texts, shape (metrics, texts), or (texts,) for one metric; NaN where the judge
            failed.
        perturbed: scores of the perturbed texts, in the same shape.
        weights: an expert's weights, one per metric, scaled to sum 1; None: without.
        form: combination of the metrics' p-values.
        rounds: resamples of the texts for intervals; 0 for none.
        confidence: level of the intervals, between 0 and 1.
        seed: seed of the resamples.

    Returns:
        `Discernment`; d = log₀.₀₅ p, 1 or more where the perturbation is noticed (p ≤ 0.05).

    Raises:
        OptionError: If shapes, weights, rounds or confidence do not fit.

    >>> round(discernment([4, 5, 4, 5, 4, 5], [3, 3, 4, 2, 3, 3]).d, 2)  # five drops, one tie: p = 1/32
    1.16

    Source: DHP, §3.
    """
    one, other = (
        np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (original, perturbed)
    )
    if one.shape != other.shape or one.ndim != 2:
        raise OptionError(
            f"scores before and after must have one shape, metrics × texts; got {one.shape}, {other.shape}"
        )
    if rounds < 0 or not 0 < confidence < 1:
        raise OptionError(
            f"rounds {rounds} and confidence {confidence}: rounds are at least 0, confidence in 0..1"
        )
    tests = tuple(signed_rank(a, b) for a, b in zip(one, other, strict=True))
    p_values = [test.p for test in tests]
    normalised = combine(p_values)
    paper = combine(p_values, form="paper")
    expert = math.nan if weights is None else combine(p_values, weights)
    p = combine(p_values, weights, form)
    effect = _weighted([test.effect for test in tests], weights)
    ends = (math.nan,) * 4
    if rounds and one.shape[1] > 1 and not math.isnan(p):
        drawn = _resampled(one, other, weights, form, rounds, seed)
        # D keeps plain percentiles: none of the scales tried held the truth more often (10 texts: 86-88 % for 89 %).
        ends = percentiles(drawn[:, 0], confidence) + limits(
            drawn[:, 1], effect, one.shape[1], Range(), confidence
        )
    d = [score_of(x) for x in (p, normalised, paper, expert)]
    return Discernment(d[0], p, form, d[1], d[2], d[3], tests, effect, *ends)


def _resampled(
    one: Vector,
    other: Vector,
    weights: npt.ArrayLike | None,
    form: Form,
    rounds: int,
    seed: int,
) -> Vector:
    """Return d and effect, shape (rounds, 2), of texts drawn with replacement, the same for all metrics."""
    pairs = np.full(one.shape, np.nan)
    for line, before, after in zip(pairs, one, other, strict=True):
        line[np.isfinite(before) & np.isfinite(after)] = _differences(before, after)[0]

    def measured(times: Vector) -> tuple[float, float]:
        p_values, effects = zip(
            *map(_quick, np.repeat(pairs, times.astype(np.intp), axis=1)), strict=True
        )
        return score_of(combine(p_values, weights, form)), _weighted(effects, weights)

    return drawn_again(
        lambda counts: np.array([measured(times) for times in counts]),
        one.shape[1],
        rounds,
        seed,
    )


def _quick(differences: Vector) -> tuple[float, float]:
    present = differences[~np.isnan(differences)]
    some = present[present != 0]
    if not len(present):
        return math.nan, math.nan
    if len(some):
        return _test(some, len(present) <= _EXACT or len(some) <= _FEW)
    return (1.0, 0.0)


def _weighted(values: Sequence[float], weights: npt.ArrayLike | None = None) -> float:
    """Return the mean of what is not NaN; NaN where nothing is."""
    if weights is None:
        w = np.ones(len(values))
    else:
        w = np.asarray(weights, dtype=np.float64)
    x = np.array(values)
    used = ~np.isnan(x) & (w > 0)
    return float(np.average(x[used], weights=w[used])) if used.any() else math.nan


# All of them ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """d_avg: mean over the levels of each level's mean; d_min: the least, of perturbation `worst`.

    Undefined ones are left out and counted.
    """

    d_avg: float
    d_min: float
    worst: str
    undefined: int


def summarise(scores: Mapping[str, float], levels: Mapping[str, str]) -> Summary:
    """Average D over levels and perturbations.

    Every level weighs the same, and every perturbation within a level.
    """
    present = {name: d for name, d in scores.items() if not math.isnan(d)}
    by_level: dict[str, list[float]] = {}
    for name, d in present.items():
        by_level.setdefault(levels[name], []).append(d)
    if not present:
        return Summary(math.nan, math.nan, "", len(scores))
    worst = min(present, key=lambda name: present[name])
    average = _weighted([_weighted(values) for values in by_level.values()])
    return Summary(average, present[worst], worst, len(scores) - len(present))


#: Which metrics a perturbation should lower, and how much of its weight each has.
OUR_WEIGHTS: Mapping[str, Mapping[str, float]] = tomllib.loads(
    files(__package__).joinpath("weights.toml").read_text(encoding="utf-8")
)


def expert_weights(
    table: Mapping[str, Mapping[str, float]], perturbation: str, metrics: Sequence[str]
) -> list[float] | None:
    """Return the weights of a perturbation (`typos:major`, or else `typos`) for these metrics, scaled to sum 1.

    None if the table has no weight for any of them. Names are compared without regard to case.
    """
    folded = {name.casefold(): row for name, row in table.items()}
    row = (
        folded.get(perturbation.casefold())
        or folded.get(perturbation.partition(":")[0].casefold())
        or {}
    )
    by_metric = {metric.casefold(): weight for metric, weight in row.items()}
    result = [float(by_metric.get(metric.casefold(), 0.0)) for metric in metrics]
    total = math.fsum(result)
    return [weight / total for weight in result] if total > 0 else None
