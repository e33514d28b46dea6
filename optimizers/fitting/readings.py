"""Fit weights of a judge's readings to its training rows, on top of experience.

And the baseline of rows without any model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import dspy
import numpy as np

from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.agreement.differences import Difference, difference_within
from judgesmith.agreement.objectives import Objective, Q, Rows
from judgesmith.errors import OptionError
from judgesmith.optimizers.examples import Vector, clearly, groups, humans, item_of
from judgesmith.optimizers.fitting.folds import folds
from judgesmith.optimizers.fitting.gaussian import Fitted, gaussian
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import LinearHead, Readings, Steps
from judgesmith.programs.readings.judge import DIRECT
from judgesmith.programs.readings.kinds import surface
from judgesmith.programs.refining import HeadFit
from judgesmith.trajectories.value import judged_in

#: Q that the own score has to gain to be asked for, and what chance adds to that with one label (with n: by √n).
WORTH_A_CALL = 0.05
CHANCE = 0.5


#: The rows from which on a mixture replaces a strong judge's own score wherever it is ahead. The share of paired
#: resamples in which it has to be with fewer rows, and in which a weak judge's score has to be to stand alone
#: (experiments/results/strong.md).
ENOUGH = 16
SURE_OF_FEW = 0.95
SURE_OF_WEAK = 0.98
ROUNDS = 500
#: Up to so many different scores, of people and of a strong judge, a mixture may be put back on people's levels.
FEW_LEVELS = 8


def ahead(
    mixed: Vector, own: Vector, rows: Rows, objective: Objective, *, strong: bool
) -> bool:
    """Return True if a mixture is to replace the own score alone.

    They are compared by what ties do not move (`Objective.compared`), since a judge of few levels is ahead by its ties.
    What is gained there has to be more than what the objective, which people are shown, loses.

    Args:
        mixed: Scores of the rows by what was fitted without their groups.
        own: The judge's own scores of the rows.
        rows: The rows with their human scores.
        objective: The measure of agreement.
        strong: True if the own score has the first word and stays where no mixture is ahead.
    """
    if not strong:
        return not clearly(lead(own, mixed, rows, objective), SURE_OF_WEAK)
    if len(mixed) < ENOUGH:
        return clearly(lead(mixed, own, rows, objective), SURE_OF_FEW)
    first, second = objective.compared([mixed, own], rows).values
    gain = first - second
    lost = objective.reached(own, rows).value - objective.reached(mixed, rows).value
    return gain > 0 and gain > lost


def on_levels(
    fit: HeadFit, table: Readings, own: Vector, rows: Rows, objective: Objective
) -> HeadFit:
    """Return a fit whose scores are put back on people's levels, where that raises the objective; else the fit itself.

    An objective that counts ties may fall where people and a strong judge have few levels, and the mixture many.
    """
    if np.std(fit.percents) <= 0:
        return fit
    head, left_out = stepped(fit.head, fit.left_out, table, own, rows, objective)
    if head is fit.head:
        return fit
    held = Steps.of(fit.percents, rows.human)(fit.percents)
    q = agreement(held, rows.human)
    return replace(fit, head=head, percents=held, q=q, left_out=left_out)


def stepped(
    head: LinearHead,
    left_out: Vector,
    table: Readings,
    own: Vector,
    rows: Rows,
    objective: Objective,
) -> tuple[LinearHead, Vector]:
    """Return a head on people's levels, and what it gives rows left out, where that raises the objective."""
    human = rows.human
    few = max(len(np.unique(of)) for of in (own, human)) <= FEW_LEVELS
    if not few or min(np.std(left_out), np.std(human)) <= 0:
        return head, left_out
    levelled = Steps.of(left_out, human)(left_out)
    before = objective.reached(left_out, rows).value
    if objective.reached(levelled, rows).value <= before:
        return head, left_out
    return replace(head, steps=Steps.of(head(table), human)), levelled


def beside(table: Readings, scores: Vector, own: str) -> tuple[LinearHead, bool]:
    """Return the head that compiling fits beside a strong judge, and whether it takes it; else the judge judges alone.

    Args:
        table: The judge's score and other readings of the rows.
        scores: Their human scores, shape (rows,), in percent.
        own: The reading that is the judge's score.
    """
    known = weigh(table, scores, Experience(), own=own, first=True)
    alone = np.nan_to_num(table.columns([own])[:, 0])
    names = [str(group) for group in table.groups]
    rows = Rows(scores, names, names)
    head, left_out = stepped(known.head, known.left_out, table, alone, rows, Q())
    return head, ahead(left_out, alone, rows, Q(), strong=True)


def lead(one: Vector, other: Vector, rows: Rows, objective: Objective) -> Difference:
    """Return the lead of some scores over others, by paired resampling."""
    return difference_within(objective.compared([one, other], rows), rounds=ROUNDS)


def agreement(predicted: Vector, human: Vector) -> float:
    """Q = r + rho + tau-b, in [-3, 3]; 0 where either side is constant."""
    return CorrelationSum()(predicted, human).q


def nested(
    fit: Callable[[Readings, Vector], LinearHead],
    table: Readings,
    scores: Vector,
    *,
    seed: int = 0,
) -> Vector:
    """Score every row by a head that was fitted without the row's fold, as a measure of what `fit` is worth.

    Folds are put on one scale, by the mean and the spread that each head has on the rows it was fitted to. Otherwise
    the mean label without a fold, which is low where the fold's labels are high, would look like scores that are wrong
    on purpose, and heads that spread widely by chance would count for more.
    """
    result = np.zeros(len(table))
    spreads = []
    for rows in folds(table.groups, seed=seed + 1):
        rest = np.setdiff1d(np.arange(len(table)), rows)
        head = fit(table.rows(rest), scores[rest])
        own = head(table.rows(rest))
        spreads.append(float(np.std(own)))
        if spreads[-1] > 0:
            result[rows] = (head(table.rows(rows)) - own.mean()) / spreads[-1]
    return np.asarray(scores.mean() + result * np.mean(spreads))


def weigh(
    table: Readings,
    scores: Vector,
    experience: Experience,
    *,
    own: str = DIRECT,
    within: bool = False,
    first: bool = False,
) -> Fitted:
    """Return the fit that compiling uses for a table.

    The direct score, which costs a call for every row, is left out unless it clearly gains Q on groups that were left
    out.

    Args:
        table: The readings of the rows.
        scores: Their human scores, shape (rows,).
        experience: The prior from other data sets.
        own: The reading that is the judge's own score.
        within: True if only rows of one document are compared.
        first: True if `own` is a strong judge's score, beside which experience has nothing.
    """
    if first or own != DIRECT or DIRECT not in table.names:
        return gaussian(table, scores, experience, own=own, within=within, first=first)
    tables = table, without_own(table)
    every, free = (
        gaussian(part, scores, experience, own=own, within=within) for part in tables
    )
    gain = agreement(every.left_out, scores) - agreement(free.left_out, scores)
    if gain > WORTH_A_CALL + CHANCE / len(table) ** 0.5 or not tables[1].names:
        return every
    return free


def without_own(table: Readings) -> Readings:
    """Return a table without the model's own score."""
    names = tuple(name for name in table.names if name != DIRECT)
    return replace(table, names=names, values=table.columns(names))


def fit_head(
    table: Readings,
    human: Vector,
    experience: Experience,
    own: str,
    *,
    strong: bool,
    within: bool,
    seed: int,
) -> HeadFit:
    """Fit a head to all rows, and measure it on rows that it did without.

    own, strong: see `programs.refining.TrainingRows`.
    """
    first = strong and not experience.numbers

    def fitted(rows: Readings, y: Vector) -> Fitted:
        return weigh(rows, y, experience, own=own, within=within, first=first)

    chosen = fitted(table, human)
    held = nested(lambda rows, y: fitted(rows, y).head, table, human, seed=seed)
    by_labels = chosen.learnt(table)
    expected = (chosen.head + chosen.learnt.scaled(-1.0))(table)
    moved = float(np.std(by_labels)), float(np.std(expected))
    learnt = moved[0] / max(sum(moved), 1e-9)
    direct = agreement(np.nan_to_num(table.columns([own])[:, 0]), human)
    q = agreement(held, human)
    parts = [_part("own score alone", 0.0, direct)]
    if not first:  # else it is the own score
        left_out = agreement(expected, human)
        parts.append(_part("experience alone", 1 - learnt, left_out))
    parts.append(_part("with the labels", learnt, q))
    return HeadFit(chosen.head, held, q, direct, learnt, tuple(parts), chosen.left_out)


def surface_percents(
    train: Sequence[dspy.Example], heldout: Sequence[dspy.Example]
) -> Vector:
    """Score the held-out rows by length, overlap and repetition alone, as the training rows weigh them.

    A judge has to beat this. NaN if the training rows are of one group.
    """
    rows, train_table = (_surface_table(part) for part in (heldout, train))
    try:
        fitted = gaussian(train_table, humans(train), Experience(), own=None)
    except OptionError:
        return np.full(len(heldout), np.nan)
    return fitted.head(rows)


def _surface_table(examples: Sequence[dspy.Example]) -> Readings:
    counted = []
    for item in map(item_of, examples):
        source = "\n\n".join(filter(None, (item.context, item.source)))
        counted.append(surface(source, judged_in(item.output)))
    names = tuple(f"surface.{name}" for name in counted[0])
    values = np.array([list(row.values()) for row in counted])
    return Readings(names, values, tuple(groups(examples)))


def _part(name: str, weight: float, q: float) -> dict[str, Any]:
    return {"name": name, "weight": round(weight, 6), "q": round(q, 6)}
