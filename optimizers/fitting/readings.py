"""What a judge's readings weigh, learnt from its training rows; and the baseline of rows without any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import dspy
import numpy as np

from ...errors import OptionError
from ...programs.readings.head import Readings
from ...programs.readings.judge import DIRECT
from ...programs.readings.kinds import RowReadings, surface
from ...programs.refining import HeadFit
from ...signatures.values import Item
from ..examples import Vector, groups, humans, item_of
from .candidates import candidates
from .heads import Ridge
from .validation import Choice, agreement, choose, nested

__all__ = ["fit_head", "surface_percents", "weigh"]

#: Q that the model's own score has to gain, to be asked for.
WORTH_A_CALL = 0.05


def fit_head(table: Readings, human: Vector, *, seed: int) -> HeadFit:
    """Choose and fit a head to all rows, and measure the choice on rows that it did without."""
    choice = weigh(table, human, seed=seed)
    held = nested(partial(weigh, seed=seed), table, human, seed=seed)
    trials = [
        {"name": t.name, "weight": round(choice.shares.get(t.name, 0.0), 6), "q": round(t.q, 6)} for t in choice.trials
    ]
    return HeadFit(choice.head, held, agreement(held, human), choice.trials[0].q, tuple(trials))


def weigh(table: Readings, scores: Vector, *, seed: int = 0) -> Choice:
    """The head that compiling chooses for a table with the direct score among its readings. It does without that score,
    which costs a call for every row, unless it gains `WORTH_A_CALL` on rows that were left out. The first of the trials
    is the direct score alone."""
    every = choose(candidates(table, DIRECT), table, scores, seed=seed)
    free = choose(candidates(table, None), table, scores, seed=seed)
    return every if every.q > free.q + WORTH_A_CALL else replace(free, trials=every.trials)


def surface_percents(train: Sequence[dspy.Example], heldout: Sequence[dspy.Example]) -> Vector:
    """Scores of the held-out rows by length, overlap and repetition alone, as the training rows weigh them: what a
    judge has to beat. NaN where the training rows are of one group."""
    rows, known = (_surface_table(part) for part in (heldout, train))
    try:
        fitted = Ridge("surface", known.names)(known, humans(train))
    except OptionError:
        return np.full(len(heldout), np.nan)
    return fitted.head(rows)


def _surface_table(examples: Sequence[dspy.Example]) -> Readings:
    counted = [_surface(item_of(e)) for e in examples]
    names = tuple(counted[0].numbers)
    values = np.array([[row.numbers[name] for name in names] for row in counted])
    return Readings(names, values, tuple(groups(examples)))


def _surface(item: Item) -> RowReadings:
    given = "\n\n".join(part for part in (item.context, item.source) if part)
    return RowReadings({f"surface.{name}": value for name, value in surface(given, item.output).items()}, {})
