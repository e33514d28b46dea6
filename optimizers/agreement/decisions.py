"""How far decisions agree with people's: pass or fail, ordered categories, and which of two outputs is the better."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Places = NDArray[np.intp]


def balanced_accuracy(decided: Places, human: Places) -> float:
    """The mean over people's categories of the share decided as they did; 0.5 is chance for pass and fail. NaN where
    people chose one category only."""
    there = np.unique(human)
    return float(np.mean([(decided[human == one] == one).mean() for one in there])) if len(there) > 1 else np.nan


def auc(scores: Vector, passed: Places | NDArray[np.bool_]) -> float:
    """The probability that an output that people passed scores higher than one that they failed, equal scores counting
    half; NaN where all passed or all failed. Source: Hanley & McNeil 1982."""
    good = passed > 0
    n, m = int(good.sum()), int((~good).sum())
    if not n or not m:
        return float(np.nan)
    return float((scipy.stats.rankdata(scores)[good].sum() - n * (n + 1) / 2) / (n * m))


def weighted_kappa(decided: Places, human: Places, categories: int) -> float:
    """Cohen's kappa with quadratic weights, 1 for equal decisions and 0 as by chance; NaN where both sides choose one
    and the same category throughout. Source: Cohen 1968."""
    observed = np.zeros((categories, categories))
    np.add.at(observed, (decided, human), 1.0)
    apart = (np.arange(categories)[:, None] - np.arange(categories)[None, :]) ** 2.0
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / max(1, len(human))
    chance = float((apart * expected).sum())
    return 1.0 - float((apart * observed).sum()) / chance if chance > 0 else np.nan


def pairwise_accuracy(scores: Vector, human: Vector, documents: Sequence[str]) -> float:
    """Of the pairs of outputs of one document that people did not hold for equal, the share that the scores order as
    they did, equal scores counting half; NaN where there is no such pair."""
    _, document = np.unique(np.asarray(documents), return_inverse=True)
    right = pairs = 0.0
    for one in range(int(document.max(initial=-1)) + 1):
        x, y = scores[document == one], human[document == one]
        first, second = np.triu_indices(len(x), 1)
        there = np.sign(y[first] - y[second])
        ours = np.sign(x[first] - x[second])
        told = there != 0
        right += float((ours == there)[told].sum()) + float((ours == 0)[told].sum()) / 2
        pairs += float(told.sum())
    return right / pairs if pairs else float(np.nan)


def interval(
    measure: Callable[[NDArray[np.intp]], float], groups: Sequence[str], *, rounds: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """The 95 % percentile interval of a measure of some rows (their numbers), resampling whole groups; NaN where most
    resamples leave it undefined."""
    _, place = np.unique(np.asarray(groups), return_inverse=True)
    members = [np.flatnonzero(place == one) for one in range(int(place.max(initial=-1)) + 1)]
    if len(members) < 2:
        return float(np.nan), float(np.nan)
    rng = np.random.default_rng([seed, 18])
    drawn = []
    for _ in range(rounds):
        rows = np.concatenate([members[one] for one in rng.integers(0, len(members), len(members))])
        drawn.append(measure(rows))
    there = np.array([value for value in drawn if not np.isnan(value)])
    if len(there) < rounds / 2:
        return float(np.nan), float(np.nan)
    low, high = np.quantile(there, [0.025, 0.975])
    return float(low), float(high)
