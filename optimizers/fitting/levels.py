"""What each level's comparison is worth for a `PairwiseDirectScorer`, fitted to what its comparisons said already.

The paper gives level i the weight i. Here the weights are non-negative least squares of human ratings on
p_better − p_worse: being better than a level never lowers a score. Ordinal logistic regression and a search of weights
by Q order rows by the same kind of sum, so one fit stands for all of them; bending that sum to the scale is the
calibration's work. Weights fitted to a few rows are easily fitted to their noise, so they are judged on rows that they
were not fitted to, and take the place of those that the judge has only where they clearly beat them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import dspy
import numpy as np
import scipy
from numpy.typing import NDArray

from ...agreement.objectives import Objective, Q
from ...programs.comparing.pairwise import level_percent, vectors
from ...signatures.values import Verdict
from ..examples import Agreement, Vector, agreement, clearly, difference, documents, folds_of, groups, humans

Matrix = NDArray[np.float64]
FOLDS = 5
#: Fewer rows a level, or fewer groups, can say nothing about weights.
ROWS_A_LEVEL, FEWEST_GROUPS = 4, 4


@dataclass(frozen=True, slots=True)
class LevelFit:
    """Weights of the levels, worst first, that sum to 1, and the agreement of scores by weights that were fitted to
    other groups, beside that of the weights the judge had. reason: why these stay, where they do."""

    weights: tuple[float, ...]
    found: Agreement | None
    plain: Agreement
    reason: str | None = None

    def to_dict(self) -> dict[str, object]:
        return {
            "weights": [round(w, 6) for w in self.weights],
            "q": None if self.found is None else self.found.to_dict()["value"],
            "plain_q": self.plain.to_dict()["value"],
            "reason": self.reason,
        }


def lead_matrix(verdicts: Sequence[Verdict], levels: int) -> Matrix:
    """Rows × levels: p_better − p_worse in [-1, 1]; NaN where a comparison is missing, all of a row where it failed."""
    leads = np.full((len(verdicts), levels), math.nan)
    for row, verdict in zip(leads, verdicts, strict=True):
        found = None if verdict.failure else vectors(verdict)
        if found is not None:
            for level, better, worse in zip(found.levels, found.better, found.worse, strict=True):
                row[level - 1] = better - worse
    return leads


def weighted_percents(leads: Matrix, weights: Sequence[float] | Vector) -> Vector:
    """The scores that a judge with these weights gives, in [0, 100], shape (rows,); NaN where the comparisons that
    were made hold no more than half of the weight."""
    return np.array(
        [
            level_percent({n: lead for n, lead in enumerate(row, start=1) if not math.isnan(lead)}, tuple(weights))
            for row in leads.tolist()
        ],
        dtype=float,
    )


def fit_weights(
    leads: Matrix, human: Vector, start: Sequence[float] | Vector, within: Sequence[str] | None = None
) -> tuple[Vector, float] | None:
    """Non-negative weights of the leads and an intercept that come closest to `human` (percent).

    start: weights by which a missing comparison is filled in, as the mean of the row's others. within: documents
    within which alone rows are compared (their means are taken off; the intercept is then 0). None where no weight is
    above 0: no level's comparisons rise with human ratings.
    """
    usable = np.isfinite(leads).any(axis=1)
    x, y = filled(leads[usable], start), human[usable]
    if not len(y):
        return None
    names = np.zeros(len(y)) if within is None else np.asarray(within)[usable]
    _, place = np.unique(names, return_inverse=True)
    sizes = np.bincount(place)
    centre_x = np.stack([np.bincount(place, column) / sizes for column in x.T], axis=1)[place]
    centre_y = (np.bincount(place, y) / sizes)[place]
    weights: Vector = scipy.optimize.nnls(x - centre_x, y - centre_y)[0]
    if weights.sum() <= 1e-9:
        return None
    return weights, 0.0 if within is not None else float(y.mean() - x.mean(axis=0) @ weights)


def filled(leads: Matrix, start: Sequence[float] | Vector) -> Matrix:
    """Missing leads replaced by the weighted mean of the row's others: what leaving a level out of the sum means."""
    there = np.isfinite(leads)
    share = np.where(there, np.asarray(start, dtype=float), 0.0)
    share = np.where(share.sum(axis=1, keepdims=True) > 0, share, there)  # only levels without weight are there
    mean = (np.where(there, leads, 0.0) * share).sum(axis=1) / share.sum(axis=1)
    return np.where(there, leads, mean[:, None])


def out_of_fold(
    leads: Matrix,
    human: Vector,
    names: Sequence[str],
    start: Sequence[float],
    *,
    within: Sequence[str] | None = None,
    seed: int = 0,
) -> Vector | None:
    """Scores of each fold by weights that were fitted to the others, on people's scale, so that folds can be pooled;
    NaN for rows without comparisons. None where a fold's weights cannot be fitted."""
    scores = np.full(len(human), math.nan)
    usable = np.isfinite(leads).any(axis=1)
    fold_of = folds_of(names, min(FOLDS, len(set(names))), seed)
    for fold in np.unique(fold_of):
        rest, out = fold_of != fold, (fold_of == fold) & usable
        others = None if within is None else [d for d, kept in zip(within, rest, strict=True) if kept]
        fitted = fit_weights(leads[rest], human[rest], start, others)
        if fitted is None:
            return None
        weights, intercept = fitted
        scores[out] = filled(leads[out], start) @ weights + intercept
    return scores


def fit_levels(
    verdicts: Sequence[Verdict],
    examples: Sequence[dspy.Example],
    now: Sequence[float],
    *,
    objective: Objective | None = None,
    seed: int = 0,
    sure: float = 0.7,
) -> LevelFit:
    """Weights for the levels, if they clearly beat `now` (those that the judge has, the paper's 1..N) out of fold.

    verdicts: the judge's, each judged without its group in the prompt. Folds are whole groups. sure: the share of
    paired resamples in which the weights must win. The same seed gives the same weights.
    """
    by = objective or Q()
    leads, human, names = lead_matrix(verdicts, len(now)), humans(examples), groups(examples)
    within = documents(examples) if by.within else None
    shares = np.asarray(now, dtype=float) / sum(now)
    plain = weighted_percents(leads, shares)
    measured = agreement(plain, examples, objective=by, seed=seed, rounds=500)

    def stays(reason: str, found: Agreement | None = None) -> LevelFit:
        return LevelFit(tuple(shares.tolist()), found, measured, reason)

    usable = int(np.isfinite(plain).sum())
    if usable < ROWS_A_LEVEL * len(now) or len(set(names)) < FEWEST_GROUPS:
        return stays(f"{usable} judged rows of {len(set(names))} documents are too few to fit weights to")
    scores = out_of_fold(leads, human, names, shares.tolist(), within=within, seed=seed)
    fitted = fit_weights(leads, human, shares, within)
    if scores is None or fitted is None:
        return stays("no level's comparisons rise with human ratings, so there are no weights to take")
    scores[~np.isfinite(plain)] = math.nan  # the judge gives no score there either
    found = agreement(scores, examples, objective=by, seed=seed, rounds=500)
    if not clearly(difference(scores, plain, examples, objective=by, seed=seed, rounds=1000), sure):
        told = f"fitted weights ({by.label} {found.value:.2f} on rows they were not fitted to)"
        return stays(f"{told} do not clearly beat those it has ({measured.value:.2f})", found)
    weights = np.round(fitted[0] / fitted[0].sum(), 6)
    return LevelFit(tuple(weights.tolist()), found, measured)
