"""What is fitted to the chosen program's own answers on its training rows, without a further call.

A judge names what can be fitted to its answers. A refiner may change the program (never its prompts), says what its
scores on the training rows are then, and keeps the plain way unless the other clearly wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy
import numpy as np

from ...agreement.objectives import Objective
from ...programs.judge import Judge
from ...programs.progress import Progress, Silent
from ..examples import Vector
from ..search.base import SearchRecord
from .annotators import opinion_matrix, weigh, weighted_mean
from .combiner import choose
from .levels import fit_levels, lead_matrix, weighted_percents
from .readings import weigh_readings


@dataclass(frozen=True, slots=True)
class Refinement:
    """What was fitted. name: its key in an artifact's provenance, and its place in a note. percents: the program's
    scores on the training rows as they are now. details: JSON values. reason: why the plain way stays, where it does;
    changed: what took its place, where something did.
    """

    name: str
    percents: Vector
    details: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None
    changed: str | None = None


#: (program, record, training rows, objective, seed, progress) -> what was fitted, for a judge that names the refiner.
#: The record's `scored` holds the program's verdicts on those rows, each judged without its group in the prompt.
Refiner = Callable[[Judge, SearchRecord, Sequence[dspy.Example], Objective, int, Progress], Refinement]


def refine(
    program: Judge,
    record: SearchRecord,
    examples: Sequence[dspy.Example],
    *,
    objective: Objective,
    seed: int,
    progress: Progress | None = None,
) -> Refinement | None:
    """Fit what there is to fit for this judge (`Judge.refiners`), in place; None where there is nothing."""
    for name in program.refiners():
        return REFINERS[name](program, record, examples, objective, seed, progress or Silent())
    return None


def annotator_weights(
    program: Judge, record: SearchRecord, examples: Sequence[dspy.Example], by: Objective, seed: int, _: Progress
) -> Refinement:
    """Weights for the annotators of an ensemble."""
    names = [m.name for m in program.members]
    opinions = opinion_matrix(record.scored.verdicts, names)
    found = weigh(opinions, examples, objective=by, seed=seed)
    if found.reason is not None:
        return Refinement("ensemble", record.scored.percents, found.to_dict(), found.reason)
    saved = program.fitted()["ensemble"]
    program.load_fitted(
        "ensemble", [member | {"weight": round(w, 6)} for member, w in zip(saved, found.weights, strict=True)]
    )
    told = ", ".join(f"{name} {w:.2f}" for name, w in zip(names, found.weights, strict=True))
    changed = (
        f"annotators are weighed ({told}): training {by.label} {found.found.value:.2f} against "
        f"{found.equal.value:.2f} for equal ones"
    )
    return Refinement("ensemble", weighted_mean(opinions, found.weights), found.to_dict(), changed=changed)


def level_weights(
    program: Judge, record: SearchRecord, examples: Sequence[dspy.Example], by: Objective, seed: int, _: Progress
) -> Refinement:
    """Weights for the levels that a pairwise scorer compares with."""
    found = fit_levels(record.scored.verdicts, examples, program.weights(), objective=by, seed=seed)
    if found.reason is not None:
        return Refinement("levels", record.scored.percents, found.to_dict(), found.reason)
    program.choose(level_weights=found.weights)
    percents = weighted_percents(lead_matrix(record.scored.verdicts, program.levels), found.weights)
    told = ", ".join(f"{w:.2f}" for w in found.weights)
    assert found.found is not None
    changed = (
        f"levels are weighed {told}, worst first: {by.label} {found.found.value:.2f} against "
        f"{found.plain.value:.2f} on training rows that the weights were not fitted to"
    )
    return Refinement("levels", percents, found.to_dict(), changed=changed)


def criterion_weights(
    program: Judge, record: SearchRecord, examples: Sequence[dspy.Example], by: Objective, seed: int, _: Progress
) -> Refinement:
    """Weights for the criteria of a fine Active-Critic, in OS-E's place or beside it."""
    overall, verdicts = program.combine == "os-e", record.scored.verdicts
    names = list(dict.fromkeys(c.name for c in program.knowledge.criteria))
    found = choose(verdicts, examples, names, overall=overall, objective=by, seed=seed)
    combination = found.combination
    if combination is None:
        return Refinement("combination", record.scored.percents, found.to_dict(), found.reason)
    program.combine_by(combination)
    ways = {"fitted": "weights of the criteria", "both": "the mean of OS-E and of weights of the criteria"}
    changed = (
        f"scores are combined by {ways[found.way]}: {by.label} {found.found[found.way].value:.2f} against "
        f"{found.found['plain'].value:.2f} on training rows that the weights were not fitted to"
    )
    percents = [combination(v.criteria, math.nan if v.failure else v.percent) for v in verdicts]
    return Refinement("combination", np.array(percents, dtype=float), found.to_dict(), changed=changed)


def reading_weights(
    program: Judge,
    record: SearchRecord,
    examples: Sequence[dspy.Example],
    _: Objective,
    seed: int,
    progress: Progress,
) -> Refinement:
    """Weights for what the model knows of a row, beside its own score: by Q, whatever the objective of a search is."""
    found = weigh_readings(program, examples, record.scored.percents, seed=seed, progress=progress)
    if isinstance(found, str):
        return Refinement("readings", record.scored.percents, {}, found)
    told = ", ".join(f"{name} {points:.1f}" for name, points in found.influence.items())
    changed = (
        f"Q {found.q:.2f} on training rows by weights that were learnt without them, against "
        f"{found.choice.trials[0].q:.2f} for the direct score alone; how far they move a score, in percent "
        f"(standard deviation): {told}"
    )
    return Refinement("readings", found.percents, found.to_dict(), changed=changed)


#: By the name that a judge gives in `refiners`.
REFINERS: Mapping[str, Refiner] = {
    "ensemble": annotator_weights,
    "levels": level_weights,
    "combination": criterion_weights,
    "readings": reading_weights,
}
