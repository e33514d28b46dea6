"""Choosing among heads inside the training labels, by what each gives rows whose group it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from ...programs.readings.head import LinearHead, Matrix, Readings, Vector
from .heads import Fitted, Recipe, folds, mean_of, numbered

__all__ = ["Choice", "Trial", "agreement", "choose", "nested"]

RESAMPLES = 200  # of groups, for the error of a lead
SOFTNESS = 5.0  # twice the standard error of Q times the root of the number of rows: 0.8 for 40 labels
LEAST_SHARE = 0.001


def agreement(predicted: Vector, human: Vector) -> float:
    """Q = r + rho + tau-b, in [-3, 3]; 0 where either side is constant. Source: Active-Critic, eq. 3."""
    if np.ptp(predicted) <= 1e-12 * max(1.0, float(np.abs(predicted).max(initial=0))) or np.ptp(human) == 0:
        return 0.0
    parts = (f(predicted, human)[0] for f in (scipy.stats.pearsonr, scipy.stats.spearmanr, scipy.stats.kendalltau))
    return float(sum(parts))


@dataclass(frozen=True)
class Trial:
    """One candidate in a choice. q: agreement of its out-of-fold scores with people's. lead: over the first
    candidate's Q. error: the lead's standard error. head: fitted to all rows."""

    name: str
    q: float
    lead: float
    error: float
    scores: Vector
    head: LinearHead


@dataclass(frozen=True)
class Choice:
    """What was chosen: the fitted head, its Q on left-out rows, the share that each candidate has in it, and how all
    did on left-out rows."""

    head: LinearHead
    q: float
    shares: Mapping[str, float]
    trials: tuple[Trial, ...]


def choose(recipes: Sequence[Recipe], table: Readings, scores: Vector, *, seed: int = 0) -> Choice:
    """The mean of all recipes, each with a share that falls off exponentially with its distance from the best one.

    Distances are those of Q on left-out rows, in units of twice Q's own standard error for that many labels: what
    chance could have put in another order counts nearly alike, so that the choice itself costs little, and what is
    certainly worse counts for nothing. On benchmark sets this was ahead of the best recipe and of the mean of the best
    three (see RESULTS.md). The head's scores are on the scale of `scores`.

    recipes: the first is what the judge would be without labels, from which every lead is counted. Heads whose weight
    is below a thousandth are left out.
    """
    fits = [recipe(table, scores) for recipe in recipes]
    trials = _trials([recipe.name for recipe in recipes], fits, scores, table.groups, seed)
    distances = max(trial.q for trial in trials) - np.array([trial.q for trial in trials])
    shares = np.exp(-distances / (SOFTNESS / np.sqrt(len(table))))
    kept = np.flatnonzero(shares >= LEAST_SHARE * shares.sum())
    together = mean_of([fits[i] for i in kept], shares[kept])
    total = shares[kept].sum()
    named = {trials[i].name: float(shares[i] / total) for i in kept}
    return Choice(_on_scale(together, table, scores), agreement(together.left_out, scores), named, trials)


def nested(chooser: Callable[[Readings, Vector], Choice], table: Readings, scores: Vector, *, seed: int = 0) -> Vector:
    """Every row's score by a head that was chosen and fitted without the row's fold: what `chooser` is worth.

    Folds are put on one scale, by the mean and the spread that each head has on the rows it was fitted to. Otherwise
    the mean label without a fold, which is low where the fold's labels are high, would look like scores that are wrong
    on purpose, and heads that spread widely by chance would count for more.
    """
    found, spreads = np.zeros(len(table)), []
    for rows in folds(table.groups, seed=seed + 1):
        rest = np.setdiff1d(np.arange(len(table)), rows)
        head = chooser(table.rows(rest), scores[rest]).head
        own = head(table.rows(rest))
        spreads.append(float(np.std(own)))
        if spreads[-1] > 0:
            found[rows] = (head(table.rows(rows)) - own.mean()) / spreads[-1]
    return np.asarray(scores.mean() + found * np.mean(spreads))


def _trials(
    names: Sequence[str], fits: Sequence[Fitted], scores: Vector, groups: Sequence[Hashable], seed: int
) -> tuple[Trial, ...]:
    qs = [agreement(fit.left_out, scores) for fit in fits]
    errors = _errors_of_leads(np.stack([fit.left_out for fit in fits]), scores, groups, seed)
    return tuple(
        Trial(name, q, q - qs[0], float(error), fit.left_out, fit.head)
        for name, q, error, fit in zip(names, qs, errors, fits, strict=True)
    )


def _errors_of_leads(predicted: Matrix, scores: Vector, groups: Sequence[Hashable], seed: int) -> Vector:
    """Standard errors of each candidate's lead in Q over the first one, by resampling whole groups.

    Only Pearson's r is resampled, and its error multiplied: on benchmark sets Q is about 2.7 r.
    """
    rng = np.random.default_rng([seed, 7])
    of_row = numbered(groups)
    count = int(of_row.max()) + 1
    counts = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES)[:, of_row].astype(float)
    total = counts.sum(axis=1, keepdims=True)

    def centred(x: Matrix) -> Matrix:
        return np.asarray(x - (counts @ x[:, None] / total))

    y = centred(scores)
    leads = []
    for one in predicted:
        x = centred(one)
        sizes = np.sqrt((counts * x**2).sum(axis=1) * (counts * y**2).sum(axis=1))
        leads.append((counts * x * y).sum(axis=1) / np.where(sizes > 0, sizes, np.inf))
    return np.asarray(2.7 * np.std(np.stack(leads) - leads[0], axis=1))


def _on_scale(fit: Fitted, table: Readings, scores: Vector) -> LinearHead:
    """The head with the slope and the mean that its scores of left-out rows ask for; never turned round."""
    x = fit.left_out - fit.left_out.mean()
    size = float(x @ x)
    slope = float(x @ (scores - scores.mean())) / size if size > 0 else 0.0
    slope = max(slope, 1e-3 * float(np.std(scores)))  # a head that seems to know nothing keeps its order all the same
    return fit.head.scaled(slope, float(scores.mean()) - slope * float(fit.head(table).mean()))
