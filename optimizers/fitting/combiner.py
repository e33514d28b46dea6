"""How the fine variant's scores are best combined: OS-E's own, fitted weights of the criteria, or the mean of both.

The weights are a non-negative ridge regression of human ratings on the criterion scores: a better score on a
criterion never lowers the whole, and with a growing penalty the weights go towards each criterion's covariance with
people, whatever the others say. Weights fitted to a few rows are easily fitted to their noise, so all ways are compared
on rows that they were not fitted to, and the plain way stays unless another clearly beats it there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import dspy
import numpy as np
import scipy
from numpy.typing import NDArray

from ...agreement.objectives import Objective, Q, Rows
from ...programs.active_critic.combination import Combination
from ...signatures.values import Verdict
from ..examples import (
    Agreement,
    Vector,
    agreement,
    clearly,
    difference,
    documents,
    folds_of,
    groups,
    humans,
    percents_of,
    systems,
)
from .annotators import weighted_mean

Matrix = NDArray[np.float64]
#: "plain" is what the judge does already: OS-E, or the mean of the criteria where there is no OS-E.
Way = Literal["plain", "fitted", "both"]

#: In units of the criteria's mean sum of squares; the first that is best by the objective is taken, the strongest
#: first.
PENALTIES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
FOLDS = 5
#: With fewer groups or scored rows weights say nothing.
FEWEST_GROUPS, FEWEST_ROWS = 5, 10


@dataclass(frozen=True, slots=True)
class Combining:
    """What was chosen, and the agreement of each way on rows that it was not fitted to. combination: None where the
    plain way stays (`reason` says why); penalty: that of the fit to all rows."""

    way: Way
    combination: Combination | None
    penalty: float | None
    found: dict[Way, Agreement]
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "chosen": self.way,
            "weights": None if self.combination is None else dict(self.combination.criteria),
            "overall": None if self.combination is None else self.combination.overall,
            "penalty": self.penalty,
            "q": {way: found.to_dict()["value"] for way, found in self.found.items()},
            "reason": self.reason,
        }


def criterion_matrix(verdicts: Sequence[Verdict], names: Sequence[str]) -> Matrix:
    """Rows × criteria: percents, NaN where a criterion has no score."""
    return np.array(
        [[v.criteria[name].score if name in v.criteria else math.nan for name in names] for v in verdicts], dtype=float
    ).reshape(len(verdicts), len(names))


def _scored(scores: Matrix) -> NDArray[np.bool_]:
    """Which rows have a score at all."""
    return np.asarray(np.isfinite(scores).any(axis=1))


def fit_weights(scores: Matrix, human: Vector, penalty: float, within: Sequence[str] | None = None) -> Vector:
    """Non-negative ridge weights that sum to 1, shape (criteria,); all 0 where no criterion rises with `human`.

    penalty: times the mean sum of squares of the (centred) criteria. within: documents within which alone rows are
    compared. A missing score is filled in by the mean of the row's others; rows without any are left out.
    """
    usable = _scored(scores)
    x, y = scores[usable], human[usable]
    if not len(y):
        return np.zeros(scores.shape[1])
    x = np.where(np.isfinite(x), x, np.nanmean(x, axis=1, keepdims=True))
    places = np.zeros(len(y)) if within is None else np.array(within, dtype=str)[usable]
    for place in np.unique(places):
        rows = places == place
        x[rows] -= x[rows].mean(axis=0)
        y[rows] -= y[rows].mean()
    # |x w − y|² + λ |w|² is an ordinary least squares problem with rows √λ·I that ought to be 0.
    strength = penalty * float((x**2).sum()) / x.shape[1]
    count = x.shape[1]
    held = np.vstack([x, math.sqrt(strength) * np.eye(count)])
    found: Vector = scipy.optimize.nnls(held, np.append(y, np.zeros(count)))[0]
    total = float(found.sum())
    return found / total if total > 1e-9 else np.zeros(count)


@dataclass(frozen=True, slots=True)
class _Rows:
    """What the fits and their agreement need of the training rows. overall: OS-E's percents, None without OS-E."""

    scores: Matrix
    human: Vector
    overall: Vector | None
    group: list[str]
    document: list[str]
    system: list[str] | None
    objective: Objective
    seed: int

    def part(self, kept: NDArray[np.bool_]) -> _Rows:
        def some(names: list[str]) -> list[str]:
            return [name for name, there in zip(names, kept, strict=True) if there]

        return _Rows(
            self.scores[kept],
            self.human[kept],
            None if self.overall is None else self.overall[kept],
            some(self.group),
            some(self.document),
            None if self.system is None else some(self.system),
            self.objective,
            self.seed,
        )

    def folds(self) -> NDArray[np.intp]:
        return folds_of(self.group, min(FOLDS, len(set(self.group))), self.seed)

    def weights(self, penalty: float) -> Vector:
        return fit_weights(self.scores, self.human, penalty, within=self.document if self.objective.within else None)

    def value(self, percents: Vector) -> float:
        told = Rows(self.human, self.document, self.group, self.system)
        return self.objective.reached(percents, told).value


def _best_penalty(rows: _Rows) -> float:
    """The penalty whose weights agree best with the people of groups that they were not fitted to."""
    folds = rows.folds()
    scored = np.full((len(PENALTIES), len(rows.human)), math.nan)
    for fold in np.unique(folds):
        rest = rows.part(folds != fold)
        for number, penalty in enumerate(PENALTIES):
            found = _standardised(weighted_mean(rows.scores, rest.weights(penalty)))
            scored[number, folds == fold] = found[folds == fold]
    return PENALTIES[int(np.argmax([round(rows.value(percents), 9) for percents in scored]))]


def _fit(rows: _Rows) -> tuple[Vector, float, float]:
    """Weights, their penalty, and the share of OS-E's score in the mean of both.

    That mean is one of z-scores: of two scores the one with more spread would decide alone. A mean of z-scores is a
    weighted mean of the scores, the weights being 1 / spread, and what is left is a constant.
    """
    penalty = _best_penalty(rows)
    weights = rows.weights(penalty)
    share = 0.0
    if rows.overall is not None:
        fitted, overall = _spread(weighted_mean(rows.scores, weights)), _spread(rows.overall)
        share = fitted / (fitted + overall) if fitted + overall > 0 else 0.5
    return weights, penalty, share


def _spread(percents: Vector) -> float:
    there = percents[np.isfinite(percents)]
    return float(np.std(there)) if len(there) else 0.0


def _standardised(percents: Vector) -> Vector:
    """Mean 0 and spread 1 over all rows, so that scores by the weights of different folds can be pooled. No human
    score goes into this."""
    spread = _spread(percents)
    if spread < 1e-9:
        return np.full(len(percents), math.nan)
    made: Vector = (percents - np.nanmean(percents)) / spread
    return made


def _mix(share: float, overall: Vector, fitted: Vector) -> Vector:
    made: Vector = share * overall + (1 - share) * fitted
    return made


def _out_of_fold(rows: _Rows) -> dict[Way, Vector]:
    """Scores of each fold by what was fitted, penalty included, to the others."""
    folds = rows.folds()
    made: dict[Way, Vector] = {"fitted": np.full(len(rows.human), math.nan)}
    if rows.overall is not None:
        made["both"] = made["fitted"].copy()
    for fold in np.unique(folds):
        weights, _, share = _fit(rows.part(folds != fold))
        fitted = weighted_mean(rows.scores, weights)
        out = folds == fold
        made["fitted"][out] = _standardised(fitted)[out]
        if rows.overall is not None:
            made["both"][out] = _standardised(_mix(share, rows.overall, fitted))[out]
    return made


def choose(
    verdicts: Sequence[Verdict],
    examples: Sequence[dspy.Example],
    names: Sequence[str],
    *,
    overall: bool,
    objective: Objective | None = None,
    seed: int = 0,
    sure: float = 0.7,
) -> Combining:
    """The way of combining that agrees best with people out of fold; the plain one unless another clearly beats it.

    verdicts: the judge's without a combination, each judged without its group in the prompt. names: of the criteria.
    overall: whether its scores are OS-E's; else they are the means of the criteria, and there is nothing to mix with.
    sure: the share of paired resamples of whole groups in which another way must win. Folds are whole groups, inside
    them the penalty is chosen by folds again. The same seed gives the same weights.
    """
    by = objective or Q()
    plain = percents_of(verdicts)
    rows = _Rows(
        criterion_matrix(verdicts, names),
        humans(examples),
        plain if overall else None,
        groups(examples),
        documents(examples),
        systems(examples),
        by,
        seed,
    )
    found: dict[Way, Agreement] = {"plain": agreement(plain, examples, objective=by, seed=seed, rounds=500)}
    scored = rows.part(_scored(rows.scores)).group
    there = len(set(scored))
    if len(scored) < FEWEST_ROWS or there < FEWEST_GROUPS:
        few = f"{len(scored)} rows of {there} documents are too few to fit weights to"
        return Combining("plain", None, None, found, few)
    ways = _out_of_fold(rows)
    for way, percents in ways.items():
        found[way] = agreement(percents, examples, objective=by, seed=seed, rounds=500)
    best = max(ways, key=lambda way: round(found[way].value, 9))
    gap = difference(ways[best], plain, examples, objective=by, seed=seed, rounds=1000)
    # A plain way without any agreement (constant scores) has no resamples to be beaten in.
    undefined = found["plain"].reason is not None and found[best].reason is None
    wins = found[best].value > by.chance if undefined else clearly(gap, sure)
    weights, penalty, share = _fit(rows)
    if not (wins and weights.any()):
        what = {"fitted": "fitted weights of the criteria", "both": "the mean of OS-E and fitted weights"}[best]
        kept = "OS-E" if overall else "the mean of the criteria"
        reason = (
            f"{what} ({by.label} {found[best].value:.2f} on rows they were not fitted to) did not clearly beat {kept} "
            f"({found['plain'].value:.2f})"
        )
        return Combining("plain", None, None, found, reason)
    chosen = Combination(
        # Six digits are what an artifact keeps.
        {name: round(weight, 6) for name, weight in zip(names, weights.tolist(), strict=True)},
        round(min(share, 0.999999), 6) if best == "both" else 0.0,
    )
    return Combining(best, chosen, penalty, found)
