"""Differences between judges, with one standard error for the interval and the test, so that they always agree.

The interval of a difference d is d ± t · SE, cut to its range; p is the probability that |T| is |d| / SE or more, with
the same SE and the same degrees of freedom. So p is below .05 just where the 95 % interval leaves 0 out.

For these systems, SE comes from resampled documents. For other systems, too, the variances over documents and over
systems are added and that over rows, which both hold, is taken off (two-way clustering). Several differences are tested
together by the largest |T| of all (max-t): their intervals and p-values match as those of one difference do. Sources:
Cameron, Gelbach & Miller 2011 (two-way clustering), Hothorn, Bretz & Westfall 2008 (max-t).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.resampling import (
    FEWEST_SYSTEMS,
    Agreement,
    Measure,
    check,
    too_few_systems,
    too_often,
)

DRAWS = 19_999  # of the largest |T| of several differences: with 20,000 in the denominator .05 is 1,000 of them
_ROUNDING = 1e-12  # a spread below it is rounding
_SAME = "the difference is the same in every resample, which is no certainty"


@dataclass(frozen=True)
class Difference:
    """Agreement of judge A minus that of judge B, with an interval and a two-sided p-value.

    NaN with a `reason` where undefined. documents: resampled; undefined: resamples in which a coefficient was (see
    `Interval`). error: the standard error of both. freedom: its degrees of freedom.
    """

    value: float
    low: float
    high: float
    p: float
    rounds: int
    undefined: int
    documents: int
    reason: str | None = None
    error: float = math.nan
    freedom: int = 0


@dataclass(frozen=True)
class OtherSystems:
    """Agreements that extend a difference to systems other than those in the rows.

    left_out: the judges' agreement without each system, shape (systems, judges). rows: the agreement with every row a
    document of its own; None where its variance counts 0, which makes intervals wider. larger: the larger of the
    variances over documents and systems counts, not their sum: within systems, where each holds the other.
    """

    left_out: Vector
    rows: Agreement | None
    larger: bool = False

    @classmethod
    def of(
        cls,
        predictions: Sequence[npt.ArrayLike],
        measure: Measure,
        *,
        apart: bool = False,
    ) -> OtherSystems:
        """Leave each system of a measure out in turn. apart: see `Agreement.of`."""
        systems = np.array(
            [] if measure.systems is None else list(measure.systems), dtype=object
        )
        names = list(dict.fromkeys(systems.tolist()))
        left_out = [
            Agreement.of(
                [np.asarray(x, float)[rest] for x in predictions],
                measure.only(rest),
                apart=apart,
            ).values
            for rest in (systems != name for name in names)
        ]
        rows: Agreement | None = None
        larger = False
        match measure.level:
            case "pooled":
                rows = Agreement.of(predictions, measure.by_row(), apart=apart)
            case "within":
                larger = True
            case "sample" | "system":
                pass
            case _:
                assert_never(measure.level)
        shape = (len(names), len(predictions))
        return cls(np.reshape(left_out, shape), rows, larger)


# What the user calls -------------------------------------------------------------------------------------------------


def paired_bootstrap(
    predicted_a: npt.ArrayLike,
    predicted_b: npt.ArrayLike,
    measure: Measure,
    *,
    rounds: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
    new_systems: bool = False,
) -> Difference:
    """Test whether judge A agrees better with people than judge B, on the same resamples of documents.

    With a single coefficient both are measured on the rows that both scored; with "sum", failed rows are imputed for
    each. Sources: Koehn 2004 (paired bootstrap), Hesterberg 2015 (Student's t).

    Args:
        predicted_a: one score per row of judge A; NaN where it failed.
        predicted_b: the same of judge B.
        measure: human ratings, coefficient and level.
        rounds: resamples of documents, 1 or more.
        confidence: level of the interval, between 0 and 1.
        seed: seed of the resamples.
        new_systems: extend interval and test to systems other than those in the rows.

    Returns:
        A less B, with its interval and p-value.
    """
    judges = [predicted_a, predicted_b]
    others = OtherSystems.of(judges, measure) if new_systems else None
    agreement = Agreement.of(judges, measure)
    return difference_within(
        agreement, rounds=rounds, confidence=confidence, seed=seed, others=others
    )


def difference_within(
    agreement: Agreement,
    *,
    rounds: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
    others: OtherSystems | None = None,
) -> Difference:
    """Test the difference of two judges as `paired_bootstrap` does, for any measure of agreement."""
    procedure = Procedure(rounds, confidence, seed)
    (difference,) = differences_within(
        agreement, np.array([[1.0, -1.0]]), procedure, others
    )
    return difference


def difference_of(
    value: float,
    drawn: Vector,
    units: int,
    undefined: int,
    confidence: float,
    width: float = math.inf,
) -> Difference:
    """Return the interval and p-value of a difference from its resamples.

    drawn: the difference in each resample, NaN if undefined. units: units drawn each time. width: bound that no
    difference exceeds.
    """
    spread = _Spread(drawn[:, None], units / (units - 1))
    procedure = Procedure(len(drawn), confidence)
    if spread.too_few:
        return _undefined(value, units, too_often(spread.undefined, len(drawn)))
    error = np.sqrt(np.diag(spread.covariance()))
    estimates = _Estimates(np.array([value]), error, np.eye(1), units - 1, width)
    return estimates.differences(procedure, undefined, units)[0]


# Several differences -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Procedure:
    """Settings of the tests of differences.

    families: one over the share of the error that these differences have, by Bonferroni.
    """

    rounds: int = 2000
    confidence: float = 0.95
    seed: int = 0
    families: float = 1.0

    @property
    def level(self) -> float:
        """The probability of any false alarm in one family."""
        return round(1 - self.confidence, 12) / self.families


def differences_within(
    agreement: Agreement,
    contrasts: Vector,
    procedure: Procedure,
    others: OtherSystems | None = None,
) -> list[Difference]:
    """Return differences between the judges of an agreement, tested together.

    contrasts: weights of the judges in each difference, shape (differences, judges), such as 1 and -1. others: where
    they are to speak of other systems; the degrees of freedom are then those of the systems, if these are fewer.
    """
    check(procedure.rounds, procedure.confidence)
    values = contrasts @ np.array(agreement.values)
    reason = agreement.reason
    documents = agreement.documents
    if reason is None and others is not None and len(others.left_out) < FEWEST_SYSTEMS:
        reason = too_few_systems(len(others.left_out))
    if reason is not None:
        return [_undefined(value, documents, reason) for value in values.tolist()]
    spread, undefined = _drawn(agreement, contrasts, procedure)
    if spread.too_few:
        return [
            _undefined(v, documents, too_often(spread.undefined, procedure.rounds))
            for v in values.tolist()
        ]
    together = spread.covariance()
    freedom = documents - 1
    variance = np.diag(together)
    if others is not None:
        without = _Spread(others.left_out @ contrasts.T, len(others.left_out) - 1)
        if without.undefined:
            reason = "the agreement is undefined without one of the systems"
            return [_undefined(value, documents, reason) for value in values.tolist()]
        over_systems = without.covariance()
        if others.larger:
            both = np.zeros_like(variance)
        else:
            both = variance + np.diag(over_systems)
        if others.rows is not None and others.rows.reason is None:
            both = both - np.diag(
                _drawn(others.rows, contrasts, procedure)[0].covariance()
            )
        variance = np.maximum(both, np.maximum(variance, np.diag(over_systems)))
        together = together + over_systems
        freedom = min(freedom, len(others.left_out) - 1)
    width = agreement.within.high - agreement.within.low
    estimates = _Estimates(values, np.sqrt(variance), together, freedom, width)
    return estimates.differences(procedure, undefined, documents)


@dataclass(frozen=True)
class _Spread:
    """Covariance of values over resamples.

    drawn: the values in each resample, (times, values), NaN where undefined. factor: multiplies the variance: n / (n -
    1) of a bootstrap of n units, n - 1 where each of n was left out in turn.
    """

    drawn: Vector
    factor: float

    @property
    def undefined(self) -> int:
        return int(np.isnan(self.drawn).any(axis=1).sum())

    @property
    def too_few(self) -> bool:
        return self.undefined > len(self.drawn) / 2

    def covariance(self) -> Vector:
        defined = self.drawn[~np.isnan(self.drawn).any(axis=1)]
        return np.atleast_2d(self.factor * np.cov(defined, rowvar=False, bias=True))


def _drawn(
    agreement: Agreement, contrasts: Vector, procedure: Procedure
) -> tuple[_Spread, int]:
    """Return resampled differences, and the number of resamples with anything undefined."""
    samples, undefined = agreement.resample(procedure.rounds, procedure.seed)
    units = agreement.documents
    return _Spread(
        np.stack(samples, axis=1) @ contrasts.T, units / (units - 1)
    ), undefined


@dataclass(frozen=True)
class _Estimates:
    """Differences with their standard errors.

    together: how they vary with each other, on any scale. width: bound that no difference exceeds.
    """

    values: Vector
    error: Vector
    together: Vector
    freedom: int
    width: float

    def differences(
        self, procedure: Procedure, undefined: int, documents: int
    ) -> list[Difference]:
        varies = self.error >= _ROUNDING
        values = np.where(np.abs(self.values) < _ROUNDING, 0.0, self.values)
        ratio = np.abs(values[varies]) / self.error[varies]
        p = np.where(values == 0, 1.0, math.nan)
        reach = 0.0
        if varies.any():
            p[varies], reach = largest_of_all(
                ratio, self.together[np.ix_(varies, varies)], self.freedom, procedure
            )
        half = np.where(
            varies, reach * self.error, np.where(values == 0, 0.0, math.nan)
        )
        low = np.maximum(values - half, -self.width)
        high = np.minimum(values + half, self.width)
        numbers = zip(
            values.tolist(),
            low.tolist(),
            high.tolist(),
            p.tolist(),
            self.error.tolist(),
            strict=True,
        )
        return [
            Difference(
                v,
                a,
                b,
                q,
                procedure.rounds,
                undefined,
                documents,
                _SAME if math.isnan(q) else None,
                e,
                self.freedom,
            )
            for v, a, b, q, e in numbers
        ]


def largest_of_all(
    ratio: Vector, together: Vector, freedom: int, procedure: Procedure
) -> tuple[Vector, float]:
    """p-values of |d| / SE of several differences, adjusted for being many, and how many SE their intervals reach.

    together: their covariances on any scale; how the largest |T| is distributed follows from their correlations, with
    multivariate t. It is drawn; Bonferroni's bound, which is exact for one difference, counts where it is smaller.
    """
    count = len(ratio)
    p = np.minimum(
        1.0, procedure.families * count * 2 * scipy.stats.t.sf(ratio, freedom)
    )
    reach = float(scipy.stats.t.isf(procedure.level / (2 * count), freedom))
    if count == 1:
        return p, reach
    scale = np.sqrt(np.diag(together))
    size, axes = np.linalg.eigh(together / np.outer(scale, scale))
    rng = np.random.default_rng([procedure.seed, count])
    normal = (
        rng.standard_normal((DRAWS, count)) @ (axes * np.sqrt(np.maximum(size, 0.0))).T
    )
    largest = np.sort(
        np.abs(normal).max(axis=1) / np.sqrt(rng.chisquare(freedom, DRAWS) / freedom)
    )
    beyond = DRAWS - np.searchsorted(largest, ratio, side="left")
    # p is below the level just where the ratio is above the draw with `most` draws beyond it.
    most = math.ceil(procedure.level * (DRAWS + 1)) - 2
    if most >= 0:
        reach = min(reach, float(largest[DRAWS - 1 - most]))
    return np.minimum(p, procedure.families * (1 + beyond) / (DRAWS + 1)), reach


def _undefined(value: float, documents: int, reason: str) -> Difference:
    return Difference(value, math.nan, math.nan, math.nan, 0, 0, documents, reason)
