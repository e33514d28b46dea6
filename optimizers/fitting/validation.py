"""Choosing among heads inside the training labels, by what each gives rows whose group it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...agreement.correlation import CorrelationSum
from ...programs.readings.head import LinearHead, Readings, Vector
from .heads import Fitted, Recipe, folds, mean_of

SOFTNESS = 5.0  # twice the standard error of Q times the root of the number of rows: 0.8 for 40 labels
LEAST_SHARE = 0.001


def agreement(predicted: Vector, human: Vector) -> float:
    """Q = r + rho + tau-b, in [-3, 3]; 0 where either side is constant."""
    return CorrelationSum()(predicted, human).q


@dataclass(frozen=True)
class Trial:
    """One candidate in a choice. q: agreement of its out-of-fold scores with people's. head: fitted to all rows."""

    name: str
    q: float
    head: LinearHead


@dataclass(frozen=True)
class Choice:
    """What was chosen: the fitted head, its Q on left-out rows, the share that each candidate has in it, and how all
    did on left-out rows."""

    head: LinearHead
    q: float
    shares: Mapping[str, float]
    trials: tuple[Trial, ...]


def choose(recipes: Sequence[Recipe], table: Readings, scores: Vector) -> Choice:
    """The mean of all recipes, each with a share that falls off exponentially with its distance from the best one.

    Distances are those of Q on left-out rows, in units of twice Q's own standard error for that many labels: what
    chance could have put in another order counts nearly alike, so that the choice itself costs little, and what is
    certainly worse counts for nothing. On benchmark sets this was ahead of the best recipe and of the mean of the best
    three (see RESULTS.md). The head's scores are on the scale of `scores`.

    recipes: the first is what the judge would be without labels. Heads whose weight is below a thousandth are left out.
    """
    fits = [recipe(table, scores) for recipe in recipes]
    qs = np.array([agreement(fit.left_out, scores) for fit in fits])
    distances = qs.max() - qs
    shares = np.exp(-distances / (SOFTNESS / np.sqrt(len(table))))
    kept = np.flatnonzero(shares >= LEAST_SHARE * shares.sum())
    together = mean_of([fits[i] for i in kept], shares[kept])
    total = shares[kept].sum()
    named = {recipes[i].name: float(shares[i] / total) for i in kept.tolist()}
    trials = tuple(Trial(r.name, q, fit.head) for r, q, fit in zip(recipes, qs.tolist(), fits, strict=True))
    return Choice(_on_scale(together, table, scores), agreement(together.left_out, scores), named, trials)


def nested(chooser: Callable[[Readings, Vector], Choice], table: Readings, scores: Vector, *, seed: int = 0) -> Vector:
    """Every row's score by a head that was chosen and fitted without the row's fold: what `chooser` is worth.

    Folds are put on one scale, by the mean and the spread that each head has on the rows it was fitted to. Otherwise
    the mean label without a fold, which is low where the fold's labels are high, would look like scores that are wrong
    on purpose, and heads that spread widely by chance would count for more.
    """
    result, spreads = np.zeros(len(table)), []
    for rows in folds(table.groups, seed=seed + 1):
        rest = np.setdiff1d(np.arange(len(table)), rows)
        head = chooser(table.rows(rest), scores[rest]).head
        own = head(table.rows(rest))
        spreads.append(float(np.std(own)))
        if spreads[-1] > 0:
            result[rows] = (head(table.rows(rows)) - own.mean()) / spreads[-1]
    return np.asarray(scores.mean() + result * np.mean(spreads))


def _on_scale(fit: Fitted, table: Readings, scores: Vector) -> LinearHead:
    """The head with the slope and the mean that its scores of left-out rows ask for; never turned round."""
    x = fit.left_out - fit.left_out.mean()
    size = float(x @ x)
    slope = float(x @ (scores - scores.mean())) / size if size > 0 else 0.0
    slope = max(slope, 1e-3 * float(np.std(scores)))  # a head that seems to know nothing keeps its order all the same
    return fit.head.scaled(slope, float(scores.mean()) - slope * float(fit.head(table).mean()))
