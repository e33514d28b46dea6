"""What a judge's readings weigh, learnt from its training rows: the heads that are tried on every table, from simple to
complex, and the choice. And the baseline of rows without any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import dspy
import numpy as np

from ...errors import OptionError
from ...programs.readings.head import Readings
from ...programs.readings.judge import DIRECT
from ...programs.readings.kinds import surface
from ...programs.refining import HeadFit
from ..examples import Vector, groups, humans, item_of
from .heads import Directed, Once, Recipe, Ridge, StateRidge, Together
from .validation import Choice, agreement, choose, nested

#: Q that the model's own score has to gain, to be asked for.
WORTH_A_CALL = 0.05


def middle_layers(blocks: Sequence[str]) -> tuple[str, ...]:
    """The three blocks of token means around the middle of the model, which know most of a text's quality."""
    layers = sorted(int(block.rpartition("mean")[2]) for block in blocks)
    wanted = sorted(layers, key=lambda layer: abs(layer - max(layers) / 2))[:3]
    return tuple(f"assistant.mean{layer}" for layer in sorted(wanted))


def candidates(table: Readings, zero_shot: str | None) -> tuple[Recipe, ...]:
    """Recipes for a table, those first that need no label.

    zero_shot: the reading that is the judge's own score, None for a head that does without that call. The names of
    readings are assistant.NUMBER (`assistant.mean`), surface.NUMBER and PLUGIN.NUMBER; states are assistant.meanLAYER.
    """
    likely = tuple(n for n in table.names if n == "assistant.mean")
    own = (zero_shot,) if zero_shot else ()
    result: list[Recipe] = [Directed("zero-shot", own)] if own else []
    result += [Directed("assistant.mean", likely)] if likely else []
    if likely and own:
        result.append(Directed("zero-shot and likelihood", own + likely))
    numbers = tuple(n for n in table.names if n.startswith("assistant."))
    surface = tuple(n for n in table.names if n.startswith("surface."))
    others = tuple(n for n in table.names if n not in (*numbers, *surface, DIRECT))
    likelihood = Once(Ridge("likelihoods", numbers))
    every = Once(Ridge("all numbers", (*own, *numbers, *surface, *others)))
    result += [Ridge("surface", surface)] if surface else []
    result += [Once(Ridge("plug-ins", others))] if others else []
    result += [likelihood] if numbers else []
    result += [every] if numbers or surface else []
    if table.states:
        states = Once(StateRidge("assistant layers", middle_layers(tuple(table.states))))
        result.append(states)
        if zero_shot:
            result.append(Together("zero-shot and layers", (result[0], states)))
        if likely:
            result.append(Together("likelihood and layers", (Directed("", likely), states)))
        if numbers:
            result.append(Together("likelihoods and layers", (likelihood, states)))
        if numbers or surface:
            result.append(Together("everything and layers", (every, states)))
    return tuple(result)


def fit_head(table: Readings, human: Vector, *, seed: int) -> HeadFit:
    """Choose and fit a head to all rows, and measure the choice on rows that it did without."""
    choice = weigh(table, human)
    held = nested(weigh, table, human, seed=seed)
    trials = [
        {"name": t.name, "weight": round(choice.shares.get(t.name, 0.0), 6), "q": round(t.q, 6)} for t in choice.trials
    ]
    return HeadFit(choice.head, held, agreement(held, human), choice.trials[0].q, tuple(trials))


def weigh(table: Readings, scores: Vector) -> Choice:
    """The head that compiling chooses for a table with the direct score among its readings. It does without that score,
    which costs a call for every row, unless it gains `WORTH_A_CALL` on rows that were left out. The first of the trials
    is the direct score alone."""
    every = choose(candidates(table, DIRECT), table, scores)
    free = choose(candidates(table, None), table, scores)
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
    counted = [
        surface("\n\n".join(part for part in (item.context, item.source) if part), item.output)
        for item in map(item_of, examples)
    ]
    names = tuple(f"surface.{name}" for name in counted[0])
    values = np.array([list(row.values()) for row in counted])
    return Readings(names, values, tuple(groups(examples)))
