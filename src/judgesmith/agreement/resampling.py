"""Bootstrap intervals of an agreement, with whole documents drawn again.

Rows of one document share its source and are no independent evidence, so documents are drawn with replacement and not
rows. A resample is a vector of how often each document was drawn; coefficients are computed from such weights for
thousands of resamples at once, by matrix products, and equal the coefficients of the rows written out that often. Every
bootstrap of this library is drawn here (`drawn_again`) and cut here (`limits`, on the scale of a `Range`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, lru_cache
from itertools import compress
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.correlation import (
    FLAT,
    Codes,
    Coefficient,
    Level,
    Vector,
    impute,
    level_codes,
    mean_defined,
    pair,
    parts_of,
    rowwise,
    surplus,
    tidy,
    within_documents,
)
from judgesmith.errors import OptionError

RowSet = tuple[
    Vector, Vector, Codes, Codes | None
]  # predicted, human, documents and systems of the same rows
Statistic = Callable[
    [Vector], Vector
]  # counts (rounds, documents) -> coefficients (rounds, parts), NaN if undefined

#: Rows up to which a single value of Kendall is taken from a sign matrix, too.
SIGNS_AT_ONCE = 300
PAIRS_AT_ONCE = 3000  # rows up to which Kendall keeps a sign matrix (4 bytes a cell); beyond, one scipy call a resample
_CELLS = 1_000_000  # weights at a time: about ten arrays of this size are alive, 80 MB
_WITHIN = -1 + 1e-9, 1 - 1e-9  # where the scale of atanh is cut
FEWEST_SYSTEMS = 3  # fewer say nothing of others
_PERFECT = float(np.arctanh(1 - 2e-9))


@dataclass(frozen=True)
class Range:
    """Range of a statistic; its middle is the value at chance.

    sizes: the rows or pairs that a share of decisions is counted on, or the failed and the passed rows that AUC and
    balanced accuracy compare.
    """

    low: float = -1.0
    high: float = 1.0
    sizes: tuple[int, ...] = ()

    @property
    def middle(self) -> float:
        """The value at chance."""
        return (self.low + self.high) / 2


Q, SHARE = Range(-3.0, 3.0), Range(0.0, 1.0)


@dataclass(frozen=True)
class Bounded:
    """A statistic that knows where it lies."""

    statistic: Statistic
    within: Range = SHARE

    def __call__(self, counts: Vector) -> Vector:
        """Return the statistic of counts, shape (rounds, units)."""
        return self.statistic(counts)


@dataclass(frozen=True, eq=False)
class Measure:
    """Measure of agreement: human ratings, and the coefficient and level to compute.

    human: one score per row. documents, systems: ids, one per row; documents=None: every row is a document of its own.
    """

    human: npt.ArrayLike
    _: KW_ONLY
    documents: Iterable[Hashable] | None
    systems: Iterable[Hashable] | None = None
    level: Level = "pooled"
    coefficient: Coefficient = "sum"

    @property
    def total(self) -> bool:
        """True if several coefficients are added up."""
        return self.coefficient == "sum"

    def only(self, rows: npt.NDArray[np.bool_]) -> Measure:
        """Return the same, of some rows."""
        documents, systems = (
            None if ids is None else _some(ids, rows)
            for ids in (self.documents, self.systems)
        )
        return replace(
            self,
            human=np.asarray(self.human, dtype=np.float64)[rows],
            documents=documents,
            systems=systems,
        )

    def by_row(self) -> Measure:
        """Return the same, with every row a document of its own."""
        return replace(self, documents=None)


@dataclass(frozen=True)
class Interval:
    """A confidence interval of an agreement.

    low, high: NaN with a `reason` if there is none. value: the agreement itself. rounds: resamples drawn.
    undefined: resamples in which a coefficient was undefined; it counts 0 in a sum, and a single one is left out.
    documents: how many were resampled.
    """

    low: float
    high: float
    value: float
    rounds: int
    undefined: int
    documents: int
    reason: str | None = None


def _some(ids: Iterable[Hashable], rows: npt.NDArray[np.bool_]) -> list[Hashable]:
    return [name for name, chosen in zip(ids, rows.tolist(), strict=True) if chosen]


# What the user calls -------------------------------------------------------------------------------------------------


def bootstrap_q(
    predicted: npt.ArrayLike,
    measure: Measure,
    *,
    rounds: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Return the interval of an agreement over resampled documents.

    coefficient "sum" is the Q of `CorrelationSum`, failed rows imputed once, before resampling; a single coefficient is
    that of `correlate`, failed rows left out. Pooled Kendall above 3,000 rows takes a scipy call per resample.

    The interval (atanh scale, Student's t widening) held the truth in 93-99 % of simulated samples of 25 to 400 normal
    rows. With fewer than about 10 documents it is not to be trusted. Perfect agreement gives an interval of no width.
    At level "system" it is the interval for these systems on other documents, and too narrow (75-90 % in a simulation
    of 12 systems on 20 to 100 documents): where a judge's errors correlate with the human ones, means agree too well.
    Sources: Hesterberg 2015 (widening), Deutsch et al. 2021 (resampled inputs).
    """
    return interval_of(
        Agreement.of([predicted], measure),
        rounds=rounds,
        confidence=confidence,
        seed=seed,
    )


def interval_of(
    agreement: Agreement, *, rounds: int = 2000, confidence: float = 0.95, seed: int = 0
) -> Interval:
    """Return the interval of one judge's agreement as `bootstrap_q` does, for any measure."""
    check(rounds, confidence)
    value, documents = agreement.values[0], agreement.documents
    if agreement.reason:
        return Interval(np.nan, np.nan, value, 0, 0, documents, agreement.reason)
    samples, undefined = agreement.resample(rounds, seed)
    ends = limits(samples[0], value, documents, agreement.within, confidence)
    reason = too_often(undefined, rounds) if math.isnan(ends[0]) else None
    return Interval(*ends, value, rounds, undefined, documents, reason)


def check(rounds: int, confidence: float) -> None:
    """Check the settings of a bootstrap.

    Raises:
        OptionError: If there are no rounds, or the confidence is not between 0 and 1.
    """
    if rounds < 1:
        raise OptionError(
            f"rounds: {rounds} is below 1; draw 1 resample or more, 1000 or more for an interval"
        )
    if not 0 < confidence < 1:
        raise OptionError(
            f"confidence: {confidence} is not between 0 and 1; pass for example 0.95"
        )


# The kernel ----------------------------------------------------------------------------------------------------------


def drawn_again(
    statistic: Callable[[Vector], Vector],
    units: int,
    rounds: int,
    rng: int | np.random.Generator,
    *,
    cells: int | None = None,
) -> Vector:
    """Return a statistic of how often each unit counts, (rounds, units) -> (rounds, …), in resamples of the units.

    rng: the resamples of a seed are the same, whatever the statistic. cells: numbers that it holds for one resample, by
    default one a unit.
    """
    step = max(1, _CELLS // (cells or units))
    sizes = [min(step, rounds - start) for start in range(0, rounds, step)]
    if isinstance(rng, int) and units * rounds <= _CELLS:
        counts = iter(np.split(_counts(units, rounds, rng), np.cumsum(sizes)[:-1]))
    else:
        counts = _drawn(units, sizes, np.random.default_rng(rng))
    return np.concatenate([statistic(one) for one in counts])


@lru_cache(maxsize=4)
def _counts(units: int, rounds: int, seed: int) -> Vector:
    """Return the resamples of a seed, read-only, which many statistics of the same rows share."""
    (counts,) = _drawn(units, [rounds], np.random.default_rng(seed))
    counts.setflags(write=False)
    return counts


def _drawn(
    units: int, sizes: Iterable[int], rng: np.random.Generator
) -> Iterator[Vector]:
    share = np.full(units, 1 / units)
    return (rng.multinomial(units, share, size=k).astype(np.float64) for k in sizes)


def defined(drawn: Vector) -> Vector | None:
    """Return the resamples in which a statistic is defined; None if fewer than half are: too few for an interval."""
    usable = drawn[~np.isnan(drawn)]
    return None if len(usable) < len(drawn) / 2 else usable


def too_often(undefined: int, rounds: int) -> str:
    """Return the reason for a missing interval: a statistic undefined in most resamples."""
    return f"undefined in {undefined} of {rounds} resamples: scores too often constant, or too few rows"


def too_few_systems(systems: int) -> str:
    """Return the reason for a missing interval over systems: too few of them."""
    return f"no interval for other systems: rows name {systems} of {FEWEST_SYSTEMS} at least"


def percentiles(drawn: Vector, confidence: float) -> tuple[float, float]:
    """Return the percentile interval from resamples, NaN where most of these are undefined."""
    usable = defined(drawn)
    if usable is None:
        return np.nan, np.nan
    low, high = np.quantile(usable, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; low and high are NaN where none was asked for or none is defined."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


def estimates_of(
    statistic: Statistic,
    units: int,
    within: Sequence[Range],
    *,
    rounds: int,
    confidence: float,
    seed: int,
) -> list[Estimate]:
    """Return the parts of a statistic on all units, with intervals from resampled units.

    within: range of each part.
    """
    if rounds < 0 or not 0 < confidence < 1:
        raise OptionError(
            f"rounds {rounds}, confidence {confidence}: pass rounds of 0 or more and a confidence between 0 and 1"
        )
    values = statistic(np.ones((1, units)))[0].tolist()
    if rounds == 0 or units < 2:
        return list(map(Estimate, values))
    columns = drawn_again(statistic, units, rounds, seed).T
    return [
        Estimate(value, *limits(drawn, value, units, where, confidence))
        for value, drawn, where in zip(values, columns, within, strict=True)
    ]


def sums_by(units: Codes, *columns: Vector) -> Vector:
    """Return sums of columns over the rows of each unit, shape (units, columns)."""
    count = int(units.max(initial=-1)) + 1
    return np.stack(
        [np.bincount(units, weights=column, minlength=count) for column in columns],
        axis=1,
    )


# Resampling ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Agreement:
    """The agreement of one or more judges with people, as functions of how often each document is drawn."""

    statistics: Sequence[Statistic]
    values: list[float]
    documents: int
    rows: int
    total: bool  # the sum of several coefficients
    reason: str | None
    within: Range = Range()

    @classmethod
    def of(cls, predictions: Sequence[npt.ArrayLike], measure: Measure) -> Agreement:
        """Return the agreement of judges with human ratings by a measure.

        Raises:
            OptionError: If the measure lacks the documents or systems that its level needs.
        """
        total, level = measure.total, measure.level
        judges = [pair(predicted, measure.human) for predicted in predictions]
        rows = len(judges[0][1])
        if level == "system" and measure.documents is None:
            raise OptionError(
                'level "system" resamples documents: pass documents=… (one id per row)'
            )
        doc, sys = level_codes(level, measure.documents, measure.systems, rows)
        if doc is None:
            doc = np.arange(rows)
        missing = np.array([np.isnan(x) for x, _ in judges])
        usable = np.ones(rows, dtype=np.bool_) if total else ~missing.any(axis=0)
        if missing.all(axis=1).any() or not usable.any():
            # One judge's Q is 0, as CorrelationSum has it.
            value = 0.0 if total and len(judges) == 1 else np.nan
            why = "a judge failed on every row, or there are none"
            return cls([], [value] * len(judges), 0, 0, total, why)
        codes, doc = np.unique(doc[usable], return_inverse=True)
        imputed_by = {"sample": doc, "within": sys}.get(level)
        own = None if sys is None else sys[usable]
        statistics, values = [], []
        reason = "one document cannot be resampled" if len(codes) < 2 else None
        for x, y in judges:
            filled = impute(x, imputed_by) if total else x[usable]
            statistic = _statistic(
                filled,
                y[usable],
                doc,
                len(codes),
                own,
                level,
                parts_of(measure.coefficient),
                total,
            )
            part = statistic(np.ones((1, len(codes))))
            statistics.append(statistic)
            values.append(float(np.nansum(part) if total else part[0, 0]))
            if np.isnan(part).any():
                reason = (
                    reason
                    or "the agreement is undefined: constant scores or too few rows"
                )
        within = Q if total else Range()
        return cls(
            statistics, values, len(codes), int(usable.sum()), total, reason, within
        )

    @classmethod
    def of_mean(
        cls, sets: Sequence[RowSet], documents: int, level: str, coefficient: str
    ) -> Agreement:
        """Return the mean agreement of several sets of rows (one per rater) with documents 0 … documents - 1 in common.

        A set whose agreement is undefined is left out, of a resample only of that.
        """
        names = parts_of(coefficient)
        statistics = [
            _statistic(x, y, doc, documents, sys, level, names, False)
            for x, y, doc, sys in sets
            if len(x)
        ]
        every = np.ones((1, documents))
        whole = [statistic(every) for statistic in statistics]
        defined = [not np.isnan(value).any() for value in whole]
        statistics = list(compress(statistics, defined))
        rows = max(map(len, map(itemgetter(0), sets)), default=0)
        if not statistics:
            why = "the agreement is undefined: constant scores or too few rows"
            return cls([], [np.nan], documents, rows, False, why)

        def mean_of(values: Sequence[Vector]) -> Vector:
            sums = np.stack([value.sum(axis=1) for value in values], axis=1)
            return mean_defined(sums, axis=1)[:, None]

        def mean(counts: Vector) -> Vector:
            return mean_of([s(counts) for s in statistics])

        reason = "one document cannot be resampled" if documents < 2 else None
        total = coefficient == "sum"
        return cls(
            [mean],
            [float(mean_of(list(compress(whole, defined)))[0, 0])],
            documents,
            rows,
            total,
            reason,
            Q if total else Range(),
        )

    @classmethod
    def of_share(cls, statistic: Bounded, documents: int, rows: int) -> Agreement:
        """Return one judge's share of what is decided as people do, or another bounded statistic."""
        value = float(statistic(np.ones((1, documents)))[0, 0])
        reason = "one document cannot be resampled" if documents < 2 else None
        return cls(
            [statistic], [value], documents, rows, False, reason, statistic.within
        )

    def resample(self, rounds: int, seed: int) -> tuple[list[Vector], int]:
        """Return agreements per judge and round (NaN: undefined), and the number of rounds with any undefined."""

        def every(counts: Vector) -> Vector:
            return np.stack(
                [statistic(counts) for statistic in self.statistics], axis=1
            )

        parts = drawn_again(every, self.documents, rounds, seed, cells=self.rows)
        undefined = int(np.isnan(parts).any(axis=(1, 2)).sum())
        return [
            self.collapsed(parts[:, judge]) for judge in range(len(self.statistics))
        ], undefined

    def collapsed(self, parts: Vector) -> Vector:
        """Return one value a round from what a statistic gave; where a total is undefined, it is that of chance."""
        if not self.total:
            return parts[:, 0]
        return np.asarray(
            np.where(np.isnan(parts), self.within.middle, parts).sum(axis=1)
        )


def limits(
    drawn: Vector, value: float, units: int, within: Range, confidence: float
) -> tuple[float, float]:
    """Return the interval of a value from resamples of its units.

    NaN if the value, or most resamples, are undefined, and for a share of no rows, such as F1 where people failed none.
    """
    if 0 in within.sizes:
        return math.nan, math.nan
    ends = np.array([*percentiles(drawn, confidence), value])
    normal = float(scipy.special.ndtri((1 + confidence) / 2))
    if within.sizes and not np.isnan(ends).any():
        return _share_limits(
            drawn[~np.isnan(drawn)], value, units, within.sizes, normal
        )
    # On the scale of atanh (for shares, of the logit) the distribution is nearly symmetric and its width hardly depends
    # on the value; an endless range is taken as it is. Centred on the value, since resamples of few documents are
    # biased towards the middle; widened as Student's t is.
    bounded, reach = math.isfinite(within.high), within.high - within.middle
    z = (
        np.arctanh(np.clip((ends - within.middle) / reach, *_WITHIN))
        if bounded
        else ends
    )
    half = (z[1] - z[0]) / 2
    if bounded and (abs(z[0]) < _PERFECT) != (abs(z[1]) < _PERFECT):
        # A limit of perfect agreement is infinitely far: the other one counts.
        half = abs(z[2] - z[0]) if abs(z[0]) < _PERFECT else abs(z[1] - z[2])
    half *= (
        scipy.stats.t.ppf((1 + confidence) / 2, units - 1)
        / normal
        * np.sqrt(units / (units - 1))
    )
    z = np.array([z[2] - half, z[2] + half])
    low, high = (
        np.tanh(z) * reach + within.middle if bounded else np.maximum(z, within.low)
    )
    return float(low), float(high)


def _share_limits(
    drawn: Vector, value: float, units: int, sizes: tuple[int, ...], normal: float
) -> tuple[float, float]:
    """Return Wilson's interval of a share, or Newcombe's fifth (2006) of an AUC or balanced accuracy."""
    share = np.append(np.linspace(0, 1, 10_001), value)

    def variance(effect: float) -> Vector:
        rows = np.array(sizes) / effect
        more = max(float(rows.mean()) - 1, 0.0) * (
            (1 - share) / (2 - share) + share / (1 + share)
        )
        return np.asarray(
            share * (1 - share) / rows.prod() * (1 + more * (len(sizes) > 1))
        )

    # The documents' design effect on the resamples' variance; rows a document where all resamples are alike.
    alone = variance(1.0)[-1]
    effect = (
        max(1.0, drawn.var() * units / (units - 1) / alone)
        if alone > 0
        else max(1.0, sum(sizes) / units)
    )
    likely = share[np.abs(share - value) <= normal * np.sqrt(variance(effect))]
    return float(likely.min()), float(likely.max())


def for_other_systems(
    ends: tuple[float, float],
    value: float,
    left_out: Sequence[float],
    within: Range,
    confidence: float,
    *,
    larger: bool = False,
) -> tuple[float, float]:
    """Return the interval over documents, widened to cover other systems, too.

    Where the judge favoured some of 6 to 16 systems, intervals over documents held the agreement with systems at large
    in 47 to 92 % of simulated cases at 95 %, these in 95 to 100 % (experiments/results/intervals.md). The result is NaN
    for fewer than 3 systems, or if a value is undefined.

    Args:
        ends: interval over documents, (low, high).
        value: agreement on all rows.
        left_out: agreement without each system; its spread is the jackknife's.
        within: range of the statistic.
        confidence: level of the interval, between 0 and 1.
        larger: take the larger of both spreads, not their sum: within systems, where each holds the other.
    """
    systems, reach = len(left_out), within.high - within.middle
    if systems < FEWEST_SYSTEMS:
        return math.nan, math.nan
    z = np.arctanh(
        np.clip((np.array([*ends, value, *left_out]) - within.middle) / reach, *_WITHIN)
    )
    spread = (
        z[3:].var()
        * (systems - 1)
        * float(scipy.stats.t.ppf((1 + confidence) / 2, systems - 1)) ** 2
    )
    own = (z[:2] - z[2]) ** 2
    far = np.sqrt(np.maximum(own, spread) if larger else own + spread) * [-1, 1]
    low, high = np.tanh(z[2] + far) * reach + within.middle
    return float(low), float(high)


# Agreement under weights ---------------------------------------------------------------------------------------------


def _statistic(
    x: Vector,
    y: Vector,
    doc: Codes,
    documents: int,
    sys: Codes | None,
    level: str,
    names: Sequence[str],
    objective: bool,
) -> Statistic:
    if (
        level == "sample"
    ):  # the values within documents stay as they are, only the mean over documents varies
        table = within_documents(x, y, doc, documents, names, objective=objective)
        return lambda counts: mean_drawn(counts, table)
    if level == "system":
        assert sys is not None
        systems = Systems(x, y, doc, documents, sys)
        return lambda counts: rowwise_defined(*systems.means(counts), names)
    if level == "within":
        assert sys is not None
        return WithinSystems(x, y, doc, sys, names)
    return WeightedRows(x, y, doc, names)


def mean_drawn(counts: Vector, table: Vector) -> Vector:
    """Return means over drawn documents, (rounds, documents) and (documents, parts) -> (rounds, parts).

    Undefined values are left out; NaN if no other is drawn.
    """
    usable = ~np.isnan(table)
    used = counts @ usable.astype(np.float64)
    used[used < 0.5] = np.nan
    return np.asarray(counts @ np.where(usable, table, 0.0) / used)


def rowwise_defined(x: Vector, y: Vector, names: Sequence[str]) -> Vector:
    """Return coefficients of each row of x with the same row of y, (k, n) -> (k, names); NaN in both are left out."""
    whole = ~np.isnan(x).any(axis=1)
    value = np.full((len(x), len(names)), np.nan)
    if whole.any():
        value[whole] = rowwise(x[whole], y[whole], names)
    for i in np.flatnonzero(~whole):
        some = ~np.isnan(x[i])
        value[i] = rowwise(x[i][None, some], y[i][None, some], names)[0]
    return value


class Systems:
    """Systems' means when each document counts as often as it was drawn."""

    def __init__(
        self, x: Vector, y: Vector, doc: Codes, documents: int, sys: Codes
    ) -> None:
        systems = int(sys.max()) + 1
        cell, shape = doc * systems + sys, (documents, systems)
        weights = (x, y, np.ones(len(x)))
        self.sums = [
            np.bincount(cell, weights=w, minlength=documents * systems).reshape(shape)
            for w in weights
        ]

    def means(self, counts: Vector) -> tuple[Vector, Vector]:
        """Return means of x and of y, (rounds, systems); NaN for a system of which no document was drawn."""
        x, y, rows = (counts @ sums for sums in self.sums)
        rows[rows == 0] = np.nan
        return tidy(x / rows), tidy(y / rows)


class _Side:
    """One vector, its distinct values in order, and what their weights say."""

    def __init__(self, x: Vector) -> None:
        self.values, self.code = np.unique(x, return_inverse=True)
        self.order = np.argsort(self.code, kind="stable")
        self.starts = np.searchsorted(
            self.code[self.order], np.arange(len(self.values))
        )
        self.scaled = (x - self.values[0]) / (np.ptp(self.values) or 1.0)

    def weights(self, w: Vector) -> Vector:
        """Return the weight of each distinct value: (rounds, rows) -> (rounds, values)."""
        ordered = np.asarray(w[:, self.order])
        if len(self.starts) == len(self.order):  # no ties: nothing to add up
            return ordered
        return np.asarray(np.add.reduceat(ordered, self.starts, axis=1))

    def flat(self, g: Vector) -> npt.NDArray[np.bool_]:
        drawn = g > 0
        low = self.values[drawn.argmax(axis=1)]
        high = self.values[g.shape[1] - 1 - drawn[:, ::-1].argmax(axis=1)]
        return np.asarray(high - low <= FLAT * np.maximum(np.abs(low), np.abs(high)))

    def centred(self, w: Vector, total: Vector) -> Vector:
        return np.asarray(self.scaled - (w @ self.scaled / total)[:, None])

    def ranks(self, g: Vector, total: Vector) -> Vector:
        """Return the midrank of each distinct value less the mean rank."""
        return np.asarray(np.cumsum(g, axis=1) - g / 2 - (total / 2)[:, None])


def _signs(x: _Side, y: _Side) -> npt.NDArray[np.float32]:
    """Return 1 for each pair of rows in the same order on both sides, -1 for opposite orders, and 0 for ties."""
    sign = np.sign(x.code[:, None] - x.code, dtype=np.float32, casting="unsafe")
    sign *= np.sign(y.code[:, None] - y.code)
    return np.asarray(sign)


def _surplus(w: Vector, signs: npt.NDArray[np.float32]) -> Vector:
    """Return twice the concordant less the discordant pairs of each resample.

    Sums of whole numbers below 2**24 are exact in float32, at half the cost.
    """
    each = (w.astype(np.float32) @ signs).astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", w, each))


class WeightedRows:
    """Pooled coefficients when each document counts as often as it was drawn: (rounds, documents) -> (rounds, parts).

    Equal to the plain coefficient of the rows written out that often; NaN where a side is constant.
    """

    def __init__(self, x: Vector, y: Vector, doc: Codes, names: Sequence[str]) -> None:
        self.x, self.y, self.doc, self.names = _Side(x), _Side(y), doc, names

    @cached_property
    def signs(self) -> npt.NDArray[np.float32]:
        """Return `_signs` of both sides."""
        return _signs(self.x, self.y)

    def __call__(self, counts: Vector) -> Vector:
        """Return the coefficients of counts, (rounds, documents) -> (rounds, parts)."""
        w = counts[:, self.doc]
        total = w.sum(axis=1)
        gx, gy = self.x.weights(w), self.y.weights(w)
        undefined = self.x.flat(gx) | self.y.flat(gy)
        value = np.empty((len(w), len(self.names)))
        with np.errstate(
            divide="ignore", invalid="ignore"
        ):  # only where undefined, which is set to NaN below
            for column, name in enumerate(self.names):
                if name == "pearson":
                    value[:, column] = self._pearson(w, total)
                elif name == "spearman":
                    value[:, column] = self._spearman(w, total, gx, gy)
                else:
                    value[:, column] = self._kendall(w, total, gx, gy)
        value[undefined] = np.nan
        return np.clip(value, -1.0, 1.0)

    def _pearson(self, w: Vector, total: Vector) -> Vector:
        x, y = self.x.centred(w, total), self.y.centred(w, total)
        wx = w * x
        covariance, variance = (
            np.einsum("ij,ij->i", wx, y),
            np.einsum("ij,ij->i", wx, x),
        )
        return np.asarray(
            covariance / np.sqrt(variance) / np.sqrt(np.einsum("ij,ij,ij->i", w, y, y))
        )

    def _spearman(self, w: Vector, total: Vector, gx: Vector, gy: Vector) -> Vector:
        x, y = self.x.ranks(gx, total), self.y.ranks(gy, total)
        covariance = np.einsum("ij,ij,ij->i", w, x[:, self.x.code], y[:, self.y.code])
        vx, vy = np.einsum("ij,ij,ij->i", gx, x, x), np.einsum("ij,ij,ij->i", gy, y, y)
        return np.asarray(covariance / np.sqrt(vx) / np.sqrt(vy))

    def _kendall(self, w: Vector, total: Vector, gx: Vector, gy: Vector) -> Vector:
        if len(self.doc) > PAIRS_AT_ONCE:
            return self._kendall_each(w)
        x_untied, y_untied = (
            total**2 - np.einsum("ij,ij->i", gx, gx),
            total**2 - np.einsum("ij,ij->i", gy, gy),
        )
        pairs = np.sqrt(x_untied * y_untied)
        if len(w) == 1 and len(self.doc) > SIGNS_AT_ONCE:
            surplus = np.rint(self._kendall_each(w) * pairs)  # a whole number
        else:
            surplus = _surplus(w, self.signs)
        return np.asarray(surplus / pairs)

    def _kendall_each(self, w: Vector) -> Vector:
        x, y, times = self.x.code, self.y.code, w.astype(np.intp)
        return np.array(
            [
                scipy.stats.kendalltau(np.repeat(x, t), np.repeat(y, t)).statistic
                for t in times
            ]
        )


class WithinSystems:
    """Coefficients of level "within" for drawn documents: pooled, less differences of systems (`within_systems`)."""

    def __init__(
        self, x: Vector, y: Vector, doc: Codes, sys: Codes, names: Sequence[str]
    ) -> None:
        x, y, self.doc, self.names = tidy(x), tidy(y), doc, names
        self.sys = np.unique(sys, return_inverse=True)[1]
        self.member = (
            self.sys[:, None] == np.arange(int(self.sys.max(initial=-1)) + 1)
        ).astype(np.float64)
        self.x, self.y = _Side(x), _Side(y)
        # A score of one system is another value than the same score of the next: what is tied with it stays inside.
        places = (self.sys * len(side.values) + side.code for side in (self.x, self.y))
        self.cells = [_Side(place.astype(np.float64)) for place in places]

    @cached_property
    def signs(self) -> npt.NDArray[np.float32]:
        """Return `_signs` of both sides, 0 for rows of different systems."""
        same = self.sys[:, None] == self.sys
        return np.asarray(_signs(self.x, self.y) * same)

    def __call__(self, counts: Vector) -> Vector:
        """Return the coefficients of counts, (rounds, documents) -> (rounds, parts)."""
        w = counts[:, self.doc]
        total = w @ self.member
        pairs = (total**2).sum(axis=1)
        ties = [pairs - (side.weights(w) ** 2).sum(axis=1) for side in self.cells]
        undefined = (ties[0] < 0.5) | (ties[1] < 0.5)
        value = np.empty((len(w), len(self.names)))
        with np.errstate(
            divide="ignore", invalid="ignore"
        ):  # only where undefined, which is set to NaN below
            for column, name in enumerate(self.names):
                if name == "kendall":
                    value[:, column] = self._surplus(w) / np.sqrt(ties[0] * ties[1])
                else:
                    x, y = (
                        self._centred(side, w, total, ranked=name == "spearman")
                        for side in (self.x, self.y)
                    )
                    spread = np.einsum("ij,ij,ij->i", w, x, x) * np.einsum(
                        "ij,ij,ij->i", w, y, y
                    )
                    value[:, column] = np.einsum("ij,ij,ij->i", w, x, y) / np.sqrt(
                        spread
                    )
        value[undefined] = np.nan
        return np.clip(value, -1.0, 1.0)

    def _centred(
        self, side: _Side, w: Vector, total: Vector, *, ranked: bool
    ) -> Vector:
        """Return scores or pooled ranks of each resample, less the mean of their system."""
        scores = np.broadcast_to(side.scaled, w.shape)
        if ranked:
            scores = side.ranks(side.weights(w), w.sum(axis=1))[:, side.code]
        means = ((w * scores) @ self.member) / np.maximum(total, 1.0)
        return np.asarray(scores - means[:, self.sys])

    def _surplus(self, w: Vector) -> Vector:
        """Return twice the concordant less the discordant pairs of rows of one system."""
        if len(self.doc) <= (PAIRS_AT_ONCE if len(w) > 1 else SIGNS_AT_ONCE):
            return _surplus(w, self.signs)
        x, y = (side.code.astype(np.float64) for side in (self.x, self.y))
        times = w.astype(np.intp)
        found = [
            surplus(np.repeat(x, t), np.repeat(y, t), np.repeat(self.sys, t))
            for t in times
        ]
        return np.rint(found)  # whole numbers
