"""Agreement, and what a way of fitting gives rows whose group it has not seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...agreement.correlation import CorrelationSum
from ...programs.readings.head import LinearHead, Readings, Vector
from .folds import folds


def agreement(predicted: Vector, human: Vector) -> float:
    """Q = r + rho + tau-b, in [-3, 3]; 0 where either side is constant."""
    return CorrelationSum()(predicted, human).q


def nested(fit: Callable[[Readings, Vector], LinearHead], table: Readings, scores: Vector, *, seed: int = 0) -> Vector:
    """Every row's score by a head that was fitted without the row's fold: what `fit` is worth.

    Folds are put on one scale, by the mean and the spread that each head has on the rows it was fitted to. Otherwise
    the mean label without a fold, which is low where the fold's labels are high, would look like scores that are wrong
    on purpose, and heads that spread widely by chance would count for more.
    """
    result, spreads = np.zeros(len(table)), []
    for rows in folds(table.groups, seed=seed + 1):
        rest = np.setdiff1d(np.arange(len(table)), rows)
        head = fit(table.rows(rest), scores[rest])
        own = head(table.rows(rest))
        spreads.append(float(np.std(own)))
        if spreads[-1] > 0:
            result[rows] = (head(table.rows(rows)) - own.mean()) / spreads[-1]
    return np.asarray(scores.mean() + result * np.mean(spreads))
