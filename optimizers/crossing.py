"""Estimate a judge's agreement from folds: every row judged by what was fitted without its document.

Folds are run once, or several times with other folds. A bootstrap of the rows holds what is fitted still, while the
judge that is saved was fitted to other rows than any fold's. So its interval is too narrow, by a factor that hardly
depends on the number of labels, their documents or how strong a judge is (experiments/results/crossing.md): 1.35 for
one run of 4 folds. Several runs show part of that variance, as the spread between them, and leave a factor of 1.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from judgesmith.agreement.differences import Difference
from judgesmith.agreement.metric import AgreementValue
from judgesmith.agreement.resampling import Estimate, Range
from judgesmith.optimizers.examples import Vector

#: Up to this number of labels every row is judged by folds; with more, a held-out part says enough.
FEW_LABELS = 160
#: Folds of a run, and runs where they cost no call.
FOLDS = 4
RUNS = 5
#: What intervals are widened by: of several runs (beside twice the spread between them), and of one.
SEVERAL = 1.1
ONE = 1.35
#: How near to perfect agreement counts as that: on the scale of atanh it is infinitely far.
NEAREST = 0.995


def on_one_scale(folds: Sequence[tuple[Vector, Vector]]) -> Vector:
    """Return the held-out scores of all folds, in the folds' order, standardised by fold.

    The unit is each fold judge's scores of its own training rows. A fold's mean label is low where the others' are
    high, so that unscaled scores would order rows by fold.

    Args:
        folds: For each fold the scores of its training rows and of its held-out rows; NaN where a judge failed.
    """
    units = np.array(
        [(np.nanmean(train), np.nanstd(train) or 1.0) for train, _ in folds]
    )
    mean, spread = units.mean(axis=0)
    parts = zip(folds, units.tolist(), strict=True)
    return np.concatenate(
        [mean + spread * (heldout - m) / s for (_, heldout), (m, s) in parts]
    )


def crossed(runs: Sequence[Estimate], within: Range) -> Estimate:
    """Return the mean of several runs' estimates on the same rows, with one interval.

    It is widened on the scale of atanh, where its width hardly depends on the value; an endless range is taken as it
    is. NaN if most runs have none.
    """
    values, low, high = np.array([(run.value, run.low, run.high) for run in runs]).T
    value = float(values.mean())
    finite = np.isfinite(low) & np.isfinite(high)
    if finite.sum() * 2 < len(runs) or not finite.any():
        return Estimate(value)
    halves = (_apart(high[finite], within) - _apart(low[finite], within)) / 2
    between = float(np.std(_apart(values, within), ddof=1)) if len(runs) > 1 else 0.0
    factor = SEVERAL if len(runs) > 1 else ONE
    half = factor * math.sqrt(float(np.mean(halves**2)) + (2 * between) ** 2)
    centre = float(_apart(np.array([value]), within)[0])
    low_end = _back(centre - half, within)
    high_end = _back(centre + half, within)
    return Estimate(value, min(value, low_end), max(value, high_end))


def _apart(values: Vector, within: Range) -> Vector:
    if not math.isfinite(within.high):
        return values
    shares = (values - within.middle) / (within.high - within.middle)
    return np.asarray(np.arctanh(np.clip(shares, -NEAREST, NEAREST)))


def _back(z: float, within: Range) -> float:
    if not math.isfinite(within.high):
        return max(z, within.low)
    return math.tanh(z) * (within.high - within.middle) + within.middle


def crossed_agreement(runs: Sequence[AgreementValue]) -> AgreementValue:
    """Return the mean agreement of several runs on the same rows, each number with the interval of `crossed`."""
    first = runs[0]
    by = first.by
    measured = crossed(
        [Estimate(run.value, run.low, run.high) for run in runs],
        Range(by.worst, by.chance + by.reach),
    )
    reasons = [run.reason for run in runs if run.reason]
    reached = replace(
        first.reached,
        value=measured.value,
        reason=reasons[0] if len(reasons) * 2 > len(runs) else None,
    )
    means: dict[str, Any] = {}
    for name in ("q", "pearson", "spearman", "kendall"):
        means[name] = _mean([getattr(run.objective, name) for run in runs])
    objective = replace(first.objective, **means)
    return replace(
        first,
        reached=reached,
        low=measured.low,
        high=measured.high,
        objective=objective,
    )


def crossed_difference(runs: Sequence[Difference]) -> Difference:
    """Return the mean difference of two judges over several runs on the same rows.

    One standard error gives its interval and its p, widened as `crossed` widens.
    """
    first = runs[0]
    values = np.array([run.value for run in runs])
    value = float(values.mean())
    errors = np.array([run.error for run in runs if not math.isnan(run.low)])
    if len(errors) * 2 < len(runs) or not len(errors):
        return replace(
            first, value=value, low=math.nan, high=math.nan, p=math.nan, error=math.nan
        )
    reach = float(scipy.stats.t.isf(0.025, first.freedom))
    between = float(np.std(values, ddof=1)) if len(runs) > 1 else 0.0
    factor = SEVERAL if len(runs) > 1 else ONE
    error = factor * math.sqrt(float(np.mean(errors**2)) + (2 * between / reach) ** 2)
    if error > 0:
        p = float(2 * scipy.stats.t.sf(abs(value) / error, first.freedom))
    else:
        p = first.p
    return replace(
        first,
        value=value,
        low=value - reach * error,
        high=value + reach * error,
        p=p,
        error=error,
    )


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if not math.isnan(value)]
    return math.fsum(finite) / len(finite) if finite else math.nan
