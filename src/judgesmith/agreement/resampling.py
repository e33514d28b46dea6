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
from typing import assert_never

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.coefficients import (
    coefficient_of,
    correlation,
    is_sum,
    parts_of,
)
from judgesmith.agreement.correlation import (
    FLAT,
    Codes,
    Level,
    Vector,
    impute,
    imputed_by,
    level_codes,
    mean_defined,
    pair,
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

    @classmethod
    def of(cls, coefficient: str) -> Range:
        """Return the range of a coefficient."""
        declared = coefficient_of(coefficient)
        return cls(declared.low, declared.high)

    @property
    def middle(self) -> float:
        """The value at chance."""
        return (self.low + self.high) / 2


SHARE = Range(0.0, 1.0)


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
    coefficient: str = "sum"

    @property
    def total(self) -> bool:
        """True if several coefficients are added up."""
        return is_sum(self.coefficient)

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
    value = agreement.values[0]
    documents = agreement.documents
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
    def of(
        cls,
        predictions: Sequence[npt.ArrayLike],
        measure: Measure,
        *,
        apart: bool = False,
    ) -> Agreement:
        """Return the agreement of judges with human ratings by a measure.

        Args:
            predictions: scores of each judge; NaN where it failed.
            measure: human ratings, coefficient and level.
            apart: measure each judge on all rows that it scored, and not on those that all scored.

        Raises:
            OptionError: If the measure lacks the documents or systems that its level needs.
        """
        total = measure.total
        level = measure.level
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
        one_lacks = missing.all(axis=0) if apart else missing.any(axis=0)
        usable = np.ones(rows, dtype=np.bool_) if total else ~one_lacks
        if missing.all(axis=1).any() or not usable.any():
            # One judge's Q is 0, as CorrelationSum has it.
            value = 0.0 if total and len(judges) == 1 else np.nan
            why = "a judge failed on every row, or there are none"
            return cls([], [value] * len(judges), 0, 0, total, why)
        codes = np.unique(doc[usable])
        doc = np.searchsorted(codes, doc)
        like = imputed_by(level, doc, sys)
        statistics = []
        values = []
        reason = "one document cannot be resampled" if len(codes) < 2 else None
        for x, y in judges:
            own = ~np.isnan(x) if apart and not total else usable
            filled = impute(x, like) if total else x[own]
            statistic = _statistic(
                filled,
                y[own],
                doc[own],
                len(codes),
                None if sys is None else sys[own],
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
        within = Range.of(measure.coefficient)
        return cls(
            statistics, values, len(codes), int(usable.sum()), total, reason, within
        )

    @classmethod
    def of_mean(
        cls, sets: Sequence[RowSet], documents: int, level: Level, coefficient: str
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
        rows = max((len(rows) for rows, *_ in sets), default=0)
        if not statistics:
            why = "the agreement is undefined: constant scores or too few rows"
            return cls([], [np.nan], documents, rows, False, why)

        def mean_of(values: Sequence[Vector]) -> Vector:
            sums = np.stack([value.sum(axis=1) for value in values], axis=1)
            return mean_defined(sums, axis=1)[:, None]

        def mean(counts: Vector) -> Vector:
            return mean_of([s(counts) for s in statistics])

        reason = "one document cannot be resampled" if documents < 2 else None
        return cls(
            [mean],
            [float(mean_of(list(compress(whole, defined)))[0, 0])],
            documents,
            rows,
            is_sum(coefficient),
            reason,
            Range.of(coefficient),
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
    bounded = math.isfinite(within.high)
    reach = within.high - within.middle
    if bounded:
        z = np.arctanh(np.clip((ends - within.middle) / reach, *_WITHIN))
    else:
        z = ends
    half = (z[1] - z[0]) / 2
    if bounded and (abs(z[0]) < _PERFECT) != (abs(z[1]) < _PERFECT):
        # A limit of perfect agreement is infinitely far: the other one counts.
        half = abs(z[2] - z[0]) if abs(z[0]) < _PERFECT else abs(z[1] - z[2])
    half *= (
        scipy.special.stdtrit(units - 1, (1 + confidence) / 2)
        / normal
        * np.sqrt(units / (units - 1))
    )
    z = np.array([z[2] - half, z[2] + half])
    if bounded:
        low, high = np.tanh(z) * reach + within.middle
    else:
        low, high = np.maximum(z, within.low)
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
    if alone > 0:
        effect = max(1.0, drawn.var() * units / (units - 1) / alone)
    else:
        effect = max(1.0, sum(sizes) / units)
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
    systems = len(left_out)
    reach = within.high - within.middle
    if systems < FEWEST_SYSTEMS:
        return math.nan, math.nan
    z = np.arctanh(
        np.clip((np.array([*ends, value, *left_out]) - within.middle) / reach, *_WITHIN)
    )
    spread = (
        z[3:].var()
        * (systems - 1)
        * float(scipy.special.stdtrit(systems - 1, (1 + confidence) / 2)) ** 2
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
    level: Level,
    names: Sequence[str],
    objective: bool,
) -> Statistic:
    match level:
        case "sample":
            # The values within documents stay as they are, only the mean over documents varies.
            table = within_documents(x, y, doc, documents, names, objective=objective)
            return lambda counts: mean_drawn(counts, table)
        case "system":
            assert sys is not None
            systems = Systems(x, y, doc, documents, sys)
            return lambda counts: rowwise_defined(*systems.means(counts), names)
        case "within":
            assert sys is not None
            return WithinSystems(x, y, doc, sys, names)
        case "pooled":
            return WeightedRows(x, y, doc, names)
        case _:
            assert_never(level)


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
        cell = doc * systems + sys
        shape = (documents, systems)
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


class Side:
    """One vector, its distinct values in order, and what their weights say."""

    def __init__(self, x: Vector) -> None:
        self.raw = x
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
        """Return a mask of the resamples in which all values are equal. g: their weights, (rounds, values)."""
        drawn = g > 0
        low = self.values[drawn.argmax(axis=1)]
        high = self.values[g.shape[1] - 1 - drawn[:, ::-1].argmax(axis=1)]
        return np.asarray(high - low <= FLAT * np.maximum(np.abs(low), np.abs(high)))

    def centred(self, w: Vector, total: Vector) -> Vector:
        """Return scaled values less the mean of each resample."""
        return np.asarray(self.scaled - (w @ self.scaled / total)[:, None])

    def ranks(self, g: Vector, total: Vector) -> Vector:
        """Return the midrank of each distinct value less the mean rank."""
        return np.asarray(np.cumsum(g, axis=1) - g / 2 - (total / 2)[:, None])


def _signs(x: Side, y: Side) -> npt.NDArray[np.float32]:
    """Return 1 for each pair of rows in the same order on both sides, -1 for opposite orders, and 0 for ties."""
    sign = np.sign(x.code[:, None] - x.code, dtype=np.float32, casting="unsafe")
    sign *= np.sign(y.code[:, None] - y.code)
    return np.asarray(sign)


def concordance(w: Vector, signs: npt.NDArray[np.float32]) -> Vector:
    """Return twice the concordant less the discordant pairs of each resample.

    Sums of whole numbers below 2**24 are exact in float32, at half the cost.
    """
    each = (w.astype(np.float32) @ signs).astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", w, each))


@dataclass(frozen=True, slots=True)
class Drawn:
    """Resamples of rows: how often each row was drawn, (rounds, rows), their sum, and each distinct value's weight."""

    w: Vector
    total: Vector
    gx: Vector
    gy: Vector


@dataclass(frozen=True, slots=True)
class DrawnWithin:
    """Resamples of rows, with each system's rows, (rounds, systems), and twice the untied pairs of each side."""

    w: Vector
    total: Vector
    ties: Sequence[Vector]


class WeightedRows:
    """Pooled coefficients when each document counts as often as it was drawn: (rounds, documents) -> (rounds, parts).

    Equal to the plain coefficient of the rows written out that often; NaN where a side is constant.
    """

    def __init__(self, x: Vector, y: Vector, doc: Codes, names: Sequence[str]) -> None:
        self.x = Side(x)
        self.y = Side(y)
        self.doc = doc
        self.names = names

    @cached_property
    def signs(self) -> npt.NDArray[np.float32]:
        """Return `_signs` of both sides."""
        return _signs(self.x, self.y)

    def concordance(self, w: Vector) -> Vector | None:
        """Return twice the concordant less the discordant pairs of each resample; None where a matrix is too large."""
        most = PAIRS_AT_ONCE if len(w) > 1 else SIGNS_AT_ONCE
        return concordance(w, self.signs) if len(self.doc) <= most else None

    def __call__(self, counts: Vector) -> Vector:
        """Return the coefficients of counts, (rounds, documents) -> (rounds, parts)."""
        w = counts[:, self.doc]
        total = w.sum(axis=1)
        gx = self.x.weights(w)
        gy = self.y.weights(w)
        undefined = self.x.flat(gx) | self.y.flat(gy)
        value = np.empty((len(w), len(self.names)))
        drawn = Drawn(w, total, gx, gy)
        with np.errstate(
            divide="ignore", invalid="ignore"
        ):  # only where undefined, which is set to NaN below
            for column, name in enumerate(self.names):
                one = correlation(name)
                found = one.weighted(self, drawn)
                value[:, column] = np.clip(found, one.low, one.high)
        value[undefined] = np.nan
        return value


class WithinSystems:
    """Coefficients of level "within" for drawn documents: pooled, less differences of systems (`within_systems`)."""

    def __init__(
        self, x: Vector, y: Vector, doc: Codes, sys: Codes, names: Sequence[str]
    ) -> None:
        x = tidy(x)
        y = tidy(y)
        self.doc = doc
        self.names = names
        self.sys = np.unique(sys, return_inverse=True)[1]
        self.member = (
            self.sys[:, None] == np.arange(int(self.sys.max(initial=-1)) + 1)
        ).astype(np.float64)
        self.x = Side(x)
        self.y = Side(y)
        # A score of one system is another value than the same score of the next: what is tied with it stays inside.
        places = (self.sys * len(side.values) + side.code for side in (self.x, self.y))
        self.cells = [Side(place.astype(np.float64)) for place in places]

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
                one = correlation(name)
                found = one.weighted_within(self, DrawnWithin(w, total, ties))
                value[:, column] = np.clip(found, one.low, one.high)
        value[undefined] = np.nan
        return value

    def centred(self, scores: Vector, w: Vector, total: Vector) -> Vector:
        """Return values of each resample, (rounds, rows), less the mean of their system."""
        means = ((w * scores) @ self.member) / np.maximum(total, 1.0)
        return np.asarray(scores - means[:, self.sys])

    def surplus(self, w: Vector) -> Vector:
        """Return twice the concordant less the discordant pairs of rows of one system."""
        if len(self.doc) <= (PAIRS_AT_ONCE if len(w) > 1 else SIGNS_AT_ONCE):
            return concordance(w, self.signs)
        x, y = (side.code.astype(np.float64) for side in (self.x, self.y))
        times = w.astype(np.intp)
        found = [
            surplus(np.repeat(x, t), np.repeat(y, t), np.repeat(self.sys, t))
            for t in times
        ]
        return np.rint(found)  # whole numbers
