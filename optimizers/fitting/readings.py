"""What a judge's readings weigh, learnt from its training rows; and the baseline of rows without any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dspy
import numpy as np

from ...errors import OptionError
from ...programs.progress import Progress
from ...programs.readings.head import LinearHead, Readings
from ...programs.readings.judge import DIRECT, ReadingsJudge, group_of, table_of
from ...programs.readings.panel import RowReadings
from ...programs.readings.surface import surface
from ...signatures.values import Item
from ..examples import Vector, groups, humans, item_of
from .candidates import candidates
from .heads import Ridge
from .validation import Choice, agreement, choose, nested

__all__ = ["Weighed", "surface_percents", "weigh", "weigh_readings"]

#: With fewer rows, or fewer groups, nothing can be weighed.
FEWEST_ROWS, FEWEST_GROUPS = 8, 3
#: Q that the model's own score has to gain, to be asked for.
WORTH_A_CALL = 0.05


@dataclass(frozen=True, slots=True)
class Weighed:
    """percents: each training row's score by a head that was chosen and fitted without its fold; NaN where the row
    could not be read. q: their agreement. choice: of all rows. influence: by group of readings, the standard deviation
    of what it adds to scores, in percent."""

    percents: Vector
    q: float
    choice: Choice
    influence: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        return {
            "q": round(self.q, 6),
            "readings": [
                {"name": t.name, "weight": round(self.choice.shares.get(t.name, 0.0), 6), "q": round(t.q, 6)}
                for t in self.choice.trials
            ],
            "influence": {name: round(value, 4) for name, value in self.influence.items()},
        }


def weigh_readings(
    judge: ReadingsJudge, examples: Sequence[dspy.Example], direct: Vector, *, seed: int, progress: Progress
) -> Weighed | str:
    """Read the training rows, choose a head and give it to the judge; or why that cannot be.

    direct: the judge's own scores of these rows, in percent.
    """
    judge.keeps = True
    progress.stage("readings", len(examples))
    read = judge.read_many([item_of(e) for e in examples], judge.lm, progress.step)
    there = np.array([row is not None for row in read])
    members = [group for group, ok in zip(groups(examples), there, strict=True) if ok]
    if there.sum() < FEWEST_ROWS or len(set(members)) < FEWEST_GROUPS:
        return (
            f"{there.sum()} rows of {len(set(members))} groups could be read, and {FEWEST_ROWS} of {FEWEST_GROUPS} are "
            "the fewest that weights can be learnt from; the direct score stays"
        )
    table = table_of([row for row in read if row is not None], direct[there].tolist(), members)
    scores = humans(examples)[there]
    choice = weigh(table, scores, seed=seed)
    held = nested(partial(weigh, seed=seed), table, scores, seed=seed)
    percents = np.full(len(examples), np.nan)
    percents[there] = held
    judge.take(choice.head, judge.opened(judge.lm).model)
    return Weighed(percents, agreement(held, scores), choice, _influence(choice.head, table))


def weigh(table: Readings, scores: Vector, *, seed: int = 0) -> Choice:
    """The head that compiling chooses for a table with the direct score among its readings. It does without that score,
    which costs a call for every row, unless it gains `WORTH_A_CALL` on rows that were left out. The first of the trials
    is the direct score alone."""
    every = choose(candidates(table, DIRECT), table, scores, seed=seed)
    free = choose(candidates(table, None), table, scores, seed=seed)
    return every if every.q > free.q + WORTH_A_CALL else replace(free, trials=every.trials)


def _influence(head: LinearHead, table: Readings) -> dict[str, float]:
    added: dict[str, Vector] = {}
    for name, values in head.contributions(table).items():
        added[group_of(name)] = added.get(group_of(name), np.zeros(len(table))) + values
    return {name: float(np.std(values)) for name, values in sorted(added.items(), key=lambda p: -float(np.std(p[1])))}


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
