"""Weights of several scores of each row: criteria, annotators.

Weights fitted to a few rows are easily fitted to their noise. So they are measured on rows that they were not fitted
to, in folds of whole groups, and take the judge's place only where they clearly beat it there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Self

import dspy
import numpy as np
import optuna
import scipy
from numpy.typing import NDArray

from judgesmith.agreement.objectives import Objective
from judgesmith.optimizers.examples import (
    agreement,
    clearly,
    difference,
    documents,
    groups,
    humans,
    item_of,
    raters,
    rows_of,
)
from judgesmith.optimizers.fitting.folds import fold_numbers
from judgesmith.optimizers.fitting.readings import ahead, fit_head, on_levels
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.progress import Progress, Silent
from judgesmith.programs.prompting.predict import called
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import Readings
from judgesmith.programs.refining import (
    Fit,
    HeadFit,
    Matrix,
    Refinable,
    Refinement,
    Vector,
    weighted_mean,
)
from judgesmith.signatures.values import Item, Verdict

#: In units of the columns' mean sum of squares; of equally good ones the strongest is taken.
PENALTIES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
#: With fewer groups or scored rows ridge weights say nothing.
FEWEST_GROUPS = 5
FEWEST_ROWS = 10


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna's chatter does not belong on a user's screen."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)


def fit_weights(
    scores: Matrix,
    human: Vector,
    *,
    penalty: float,
    within: Sequence[str] | None = None,
) -> Vector | None:
    """Fit non-negative weights of the columns that, with an intercept, come closest to `human`.

    A better score of a part never lowers the whole. Rows without any score are left out; in others a missing score
    counts as the mean of the rest.

    Args:
        scores: Scores of the parts, shape (rows, parts), NaN where missing.
        human: Human scores, shape (rows,).
        penalty: Ridge penalty, times the mean sum of squares of the (centred) columns.
        within: Documents within which alone rows are compared.

    Returns:
        Weights, shape (parts,), or None if no column rises with `human`.
    """
    usable = np.isfinite(scores).any(axis=1)
    count = scores.shape[1]
    x = scores[usable]
    y = human[usable]
    if not len(y):
        return None
    x = np.where(np.isfinite(x), x, np.nanmean(x, axis=1)[:, None])
    _, place = np.unique(
        np.zeros(len(y)) if within is None else np.asarray(within)[usable],
        return_inverse=True,
    )
    sizes = np.bincount(place)
    centred = (
        x
        - np.stack([np.bincount(place, column) / sizes for column in x.T], axis=1)[
            place
        ]
    )
    wanted = y - (np.bincount(place, y) / sizes)[place]
    # |x w - y|² + λ |w|² is an ordinary least squares problem with rows √λ·I that ought to be 0
    strength = penalty * float((centred**2).sum()) / count
    centred = np.vstack([centred, math.sqrt(strength) * np.eye(count)])
    wanted = np.append(wanted, np.zeros(count))
    weights: Vector = scipy.optimize.nnls(centred, wanted)[0]
    return weights if weights.sum() > 1e-9 else None


def ridge_weights(
    training: Training, scores: Matrix, *, own: bool, parts: str, plain: str
) -> Fit:
    """See `programs.refining.TrainingRows`.

    Inside the folds the penalty is chosen by folds again. The mean with the judge's own score is one of z-scores: of
    two scores the one with more spread would decide alone.
    """
    judged = training.percents

    def stays(reason: str, weights: Vector | None = None) -> Fit:
        return Fit(
            (),
            training.value(judged),
            None if weights is None else training.value(weights),
            reason,
        )

    usable = np.asarray(np.isfinite(scores).any(axis=1))
    rows = int(usable.sum())
    count = len(
        {g for g, ok in zip(training.groups, usable.tolist(), strict=True) if ok}
    )
    if rows < FEWEST_ROWS or count < FEWEST_GROUPS:
        return stays(f"{rows} rows of {count} documents are too few to fit weights to")
    alone, mixed = ridge_out_of_fold(training, scores, own=own)
    both = mixed is not None and round(training.value(mixed), 9) > round(
        training.value(alone), 9
    )
    best = mixed if both and mixed is not None else alone
    weights, penalty, share = _ridge(training, scores, own=own)
    if training.defined(best) and not training.defined(
        judged
    ):  # constant scores have no resamples to be beaten in
        wins = training.value(best) > training.objective.chance
    else:
        wins = training.clearly_better(best, judged)
    if not (wins and weights.any()):
        reason = (
            f"weights of the {parts}{f' beside {plain}' if both else ''} ({training.label} {training.value(best):.2f} "
            f"on rows they were not fitted to) do not clearly beat {plain} ({training.value(judged):.2f})"
        )
        return stays(reason, best)
    return Fit(
        tuple(
            round(w, 6) for w in weights.tolist()
        ),  # six digits are what a saved judge keeps
        training.value(judged),
        training.value(best),
        own=round(min(share, 0.999999), 6) if both else 0.0,
        penalty=penalty,
    )


def ridge_out_of_fold(
    training: Training, scores: Matrix, *, own: bool
) -> tuple[Vector, Vector | None]:
    """Score each fold by weights that were fitted, penalty included, to the other folds.

    Returns:
        The scores by the weights alone, and those mixed with the judge's own score (None without `own`).
    """
    folds = training.folds()
    alone, mixed = (np.full(len(scores), math.nan) for _ in range(2))
    for fold in np.unique(folds):
        weights, _, share = _ridge(
            training.part(folds != fold), scores[folds != fold], own=own
        )
        predicted = weighted_mean(scores, weights)
        out = folds == fold
        alone[out] = _standardised(predicted)[out]
        mixed[out] = _standardised(share * training.percents + (1 - share) * predicted)[
            out
        ]
    return alone, mixed if own else None


def _ridge(
    training: Training, scores: Matrix, *, own: bool
) -> tuple[Vector, float, float]:
    """Return weights that sum to 1 (all 0 if none can be fitted), their penalty, and the own score's share.

    The share is one in the mean of z-scores, which is a weighted mean of the scores, by 1 / spread, but for a constant.
    """
    folds = training.folds()
    tried = np.full((len(PENALTIES), len(scores)), math.nan)
    for fold in np.unique(folds):
        rest = training.part(folds != fold)
        out = folds == fold
        for number, penalty in enumerate(PENALTIES):
            weights = _shares(rest, scores[folds != fold], penalty)
            tried[number, out] = _standardised(weighted_mean(scores, weights))[out]
    penalty = PENALTIES[
        int(np.argmax([round(training.value(percents), 9) for percents in tried]))
    ]
    weights = _shares(training, scores, penalty)
    share = 0.0
    if own:
        fitted = _spread(weighted_mean(scores, weights))
        judged = _spread(training.percents)
        share = fitted / (fitted + judged) if fitted + judged > 0 else 0.5
    return weights, penalty, share


def _shares(training: Training, scores: Matrix, penalty: float) -> Vector:
    fitted = fit_weights(
        scores, training.human, penalty=penalty, within=training.within
    )
    return np.zeros(scores.shape[1]) if fitted is None else fitted / fitted.sum()


def _spread(percents: Vector) -> float:
    finite = percents[np.isfinite(percents)]
    return float(np.std(finite)) if len(finite) else 0.0


def _standardised(percents: Vector) -> Vector:
    """Mean 0 and spread 1 over all rows, so that scores by the weights of different folds can be pooled.

    No human score goes into this.
    """
    sd = _spread(percents)
    standardised: Vector = (
        np.full(len(percents), math.nan)
        if sd < 1e-9
        else (percents - np.nanmean(percents)) / sd
    )
    return standardised


# The rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Training:
    """The training rows of a compile run with the tools that a judge's refiners may use on them.

    See `programs.refining.TrainingRows`. sure: the share of paired resamples in which what is fitted must win.
    """

    examples: Sequence[dspy.Example]
    verdicts: Sequence[Verdict]
    percents: Vector
    objective: Objective
    seed: int = 0
    progress: Progress = field(default_factory=Silent)
    sure: float = 0.7
    model: LanguageModel | None = None

    @property
    def lm(self) -> LanguageModel:
        """Return the judge's model, else DSPy's."""
        return called(self.model)

    @property
    def items(self) -> list[Item]:
        """Return the texts of each row."""
        return [item_of(e) for e in self.examples]

    @property
    def human(self) -> Vector:
        """Return the human scores in percent, shape (rows,)."""
        return humans(self.examples)

    @property
    def groups(self) -> list[str]:
        """Return the group of each row."""
        return groups(self.examples)

    @property
    def within(self) -> list[str] | None:
        """Return the document of each row if the objective compares rows within documents only, else None."""
        return documents(self.examples) if self.objective.within else None

    @property
    def label(self) -> str:
        """Return the name of the objective, for messages."""
        return self.objective.label

    def part(self, places: NDArray[np.bool_]) -> Self:
        """Return some of the rows, without their verdicts."""
        some = [
            example for example, keep in zip(self.examples, places, strict=True) if keep
        ]
        return replace(self, examples=some, verdicts=(), percents=self.percents[places])

    def folds(self) -> NDArray[np.intp]:
        """Return the fold of each row."""
        return fold_numbers(self.groups, seed=self.seed)

    def value(self, percents: Vector) -> float:
        """Return the objective's value for these scores of the rows."""
        return self.objective.reached(percents, rows_of(self.examples)).value

    def defined(self, percents: Vector) -> bool:
        """Return True if these scores have an agreement at all; constant ones have none."""
        return (
            agreement(
                percents, self.examples, objective=self.objective, seed=0, rounds=0
            ).reason
            is None
        )

    def clearly_better(self, one: Vector, other: Vector) -> bool:
        """Return True if `one` beats `other` in at least the share `sure` of paired resamples."""
        gap = difference(
            one,
            other,
            self.examples,
            objective=self.objective,
            seed=self.seed,
            rounds=1000,
        )
        return clearly(gap, self.sure)

    ridge_weights = ridge_weights

    def fit_head(
        self,
        table: Readings,
        readable: NDArray[np.bool_],
        experience: Experience,
        own: str,
        *,
        strong: bool,
    ) -> HeadFit:
        """Fit a head to the labelled rows, and compare it with the own score on rows that it did without."""
        rows = self.part(readable)
        within = self.objective.within
        fit = fit_head(
            replace(table, raters=raters(rows.examples)),
            rows.human,
            experience,
            own,
            strong=strong,
            within=within,
            seed=self.seed,
        )
        by = self.objective
        seen = rows_of(rows.examples)
        if strong and table.names == (own,) and not table.states:
            return replace(fit, ahead=False)  # nothing is mixed with the own score
        if strong:
            fit = on_levels(fit, table, rows.percents, seen, by)
        taken = ahead(fit.left_out, rows.percents, seen, by, strong=strong)
        return replace(fit, ahead=taken)


def refine(program: Judge, training: Training) -> list[Refinement]:
    """Run every refiner of the judge, each on the scores that the one before left; empty for judges without any."""
    done: list[Refinement] = []
    method = program.method
    for refiner in method.refiners() if isinstance(method, Refinable) else ():
        done.append(refiner(training))
        training = replace(training, percents=done[-1].percents)
    return done
