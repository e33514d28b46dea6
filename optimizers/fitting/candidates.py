"""The heads that are tried on every table, from simple to complex."""

from __future__ import annotations

from collections.abc import Sequence

from ...programs.readings.head import Readings
from ...programs.readings.judge import DIRECT
from .heads import Directed, Once, Recipe, Ridge, StateRidge, Together

__all__ = ["candidates", "middle_layers"]

#: What the names of questions begin with.
ASKED = ("digit.", "check.")


def middle_layers(blocks: Sequence[str], form: str) -> tuple[str, ...]:
    """The three blocks of token means around the middle of the model, which know most of a text's quality."""
    layers = sorted(int(block.rpartition("mean")[2]) for block in blocks if block.startswith(f"{form}.mean"))
    if not layers:
        return ()
    wanted = sorted(layers, key=lambda layer: abs(layer - max(layers) / 2))[:3]
    return tuple(f"{form}.mean{layer}" for layer in sorted(wanted))


def candidates(table: Readings, zero_shot: str | None) -> tuple[Recipe, ...]:
    """Recipes for a table, those first that need no label.

    zero_shot: the reading that is the judge's own score, None for a head that does without that call. The names of
    readings are FORM.NUMBER (`assistant.mean`), digit.ASPECT, surface.NUMBER; states are FORM.meanLAYER.
    """
    have = set(table.names)
    likely = [f"{form}.mean" for form in ("assistant", "tags", "plain") if f"{form}.mean" in have]
    lifts = [f"{form}.lift" for form in ("assistant", "tags") if f"{form}.lift" in have]
    said = [zero_shot] if zero_shot else []
    found: list[Recipe] = [Directed("zero-shot", {name: 1}) for name in said]
    found += [Directed(name, {name: 1}) for name in (*likely, *lifts)]
    if likely and zero_shot:
        found.append(Directed("zero-shot and likelihood", dict.fromkeys((zero_shot, likely[0]), 1)))
    numbers = tuple(n for n in table.names if n != DIRECT and not n.startswith(("surface.", *ASKED)))
    surface = tuple(n for n in table.names if n.startswith("surface."))
    asked = tuple(n for n in table.names if n.startswith(ASKED))
    likelihood = Once(Ridge("likelihoods", numbers))
    layers = [
        Once(StateRidge(f"{form} layers", blocks))
        for form in ("assistant", "tags")
        if (blocks := middle_layers(tuple(table.states), form))
    ]
    every = Once(Ridge("all numbers", tuple(dict.fromkeys((*said, *numbers, *surface, *asked)))))
    found += [Ridge(name, columns) for name, columns in (("surface", surface), ("questions", asked)) if columns]
    found += [likelihood] if numbers else []
    found += [every] if numbers or surface else []
    found += layers
    if layers:
        states: Recipe = Once(Together("layers", tuple(layers))) if len(layers) > 1 else layers[0]
        if zero_shot:
            found.append(Together("zero-shot and layers", (found[0], states)))
        if likely:
            found.append(Together("likelihood and layers", (Directed("", {likely[0]: 1}), states)))
        if numbers:
            found.append(Together("likelihoods and layers", (likelihood, states)))
        if numbers or surface:
            found.append(Together("everything and layers", (every, states)))
    return tuple(found)
