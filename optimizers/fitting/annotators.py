"""Which annotators of an ensemble to hear, and with what weight, from what they said already: no new calls.

The objective is that of the search, over the whole set of training rows. Equal weights stay unless others
clearly beat them, since weights fitted to a few rows are easily fitted to their noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import dspy
import numpy as np
import optuna
from numpy.typing import NDArray

from ...agreement.objectives import Objective, Q
from ...signatures.values import Verdict
from ..examples import Agreement, Vector, agreement, clearly, difference, told_of

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Weighing:
    """Weights of the annotators, in their order, that sum to 1, with the agreement of their mean and that of equal
    weights. reason: why equal weights stay, where they do."""

    weights: tuple[float, ...]
    found: Agreement
    equal: Agreement
    reason: str | None = None

    def to_dict(self) -> dict[str, object]:
        return {
            "weights": [round(w, 6) for w in self.weights],
            "q": self.found.to_dict()["value"],
            "equal_q": self.equal.to_dict()["value"],
            "reason": self.reason,
        }


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna's chatter does not belong on a user's screen."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)


def opinion_matrix(verdicts: Sequence[Verdict], names: Sequence[str]) -> Matrix:
    """Rows × annotators: percents, NaN where one failed."""
    return np.array(
        [[v.opinions[name].percent if name in v.opinions else math.nan for name in names] for v in verdicts],
        dtype=float,
    )


def weighted_mean(opinions: Matrix, weights: Sequence[float] | Vector) -> Vector:
    """The mean over the annotators that gave a score; NaN where none with a weight did. Shape (rows,)."""
    there = np.isfinite(opinions)
    share = np.where(there, np.asarray(weights, dtype=float), 0.0)
    total = share.sum(axis=1)
    sums = (np.where(there, opinions, 0.0) * share).sum(axis=1)
    mean: Vector = np.divide(sums, total, out=np.full(len(opinions), math.nan), where=total > 0)
    return mean


def ensemble_score(opinions: Matrix, weights: Sequence[float] | Vector) -> Vector:
    """What `OpeNLGauge` with these weights scores: where only annotators that weigh nothing answered, their mean."""
    mean = weighted_mean(opinions, weights)
    alone = np.isnan(mean)
    mean[alone] = weighted_mean(opinions[alone], np.ones(opinions.shape[1]))
    return mean


def weigh(
    opinions: Matrix,
    examples: Sequence[dspy.Example],
    *,
    objective: Objective | None = None,
    seed: int = 0,
    trials: int = 120,
    sure: float = 0.7,
) -> Weighing:
    """Search annotators and weights by TPE (Optuna). opinions: rows × annotators in [0, 100]. sure: the share of paired
    resamples in which the weights must beat equal ones. The same seed gives the same weights."""
    count, by, rows = opinions.shape[1], objective or Q(), told_of(examples)

    def measured(weights: Vector) -> Agreement:
        return agreement(ensemble_score(opinions, weights), examples, objective=by, seed=seed, rounds=500)

    def weights_of(values: dict[str, float]) -> Vector:
        raw = np.array([values[f"weight {i}"] for i in range(count)])
        shares: Vector = raw / raw.sum()
        return shares

    def drawn_value(trial: optuna.Trial) -> float:
        drawn = {f"weight {i}": trial.suggest_int(f"weight {i}", 0, 4) for i in range(count)}
        if not any(drawn.values()):
            raise optuna.TrialPruned
        weights = weights_of({k: float(v) for k, v in drawn.items()})
        return by.reached(ensemble_score(opinions, weights), rows).value

    with quiet_optuna():
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        study.enqueue_trial({f"weight {i}": 1 for i in range(count)})
        for alone in range(count):
            study.enqueue_trial({f"weight {i}": int(i == alone) for i in range(count)})
        study.optimize(drawn_value, n_trials=trials)
    equal = np.full(count, 1.0 / count)
    best = weights_of({k: float(v) for k, v in study.best_params.items()})
    plain, found = measured(equal), measured(best)
    means = ensemble_score(opinions, best), ensemble_score(opinions, equal)
    if not clearly(difference(*means, examples, objective=by, seed=seed, rounds=1000), sure):
        reason = f"the best weights ({by.label} {found.value:.2f}) do not clearly beat equal ones ({plain.value:.2f})"
        return Weighing(tuple(equal), plain, plain, reason)
    return Weighing(tuple(best), found, plain)


@dataclass(frozen=True, slots=True)
class SubsetAgreement:
    """The agreement of the mean of some annotators."""

    members: tuple[str, ...]
    found: Agreement


def subsets(
    opinions: Matrix,
    names: Sequence[str],
    examples: Sequence[dspy.Example],
    *,
    objective: Objective | None = None,
    seed: int = 0,
) -> list[SubsetAgreement]:
    """Every subset of the ensemble, small ones first (OpeNLGauge §7.3). More than 12 annotators have too many."""
    made = []
    for size in range(1, len(names) + 1):
        for chosen in itertools.combinations(range(len(names)), size):
            mean = weighted_mean(opinions[:, chosen], np.ones(size))
            found = agreement(mean, examples, objective=objective or Q(), seed=seed, rounds=300)
            made.append(SubsetAgreement(tuple(names[i] for i in chosen), found))
    return made
