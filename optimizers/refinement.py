"""What is fitted to the chosen program's own answers on its training rows, without a further call.

A refiner looks at one kind of judge: it may change the program (never its prompts), says what its scores on the
training rows are then, and keeps the plain way unless the other clearly wins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dspy

from ..programs.judge import Judge
from ..programs.openlgauge import OpeNLGauge
from .correlation import Level
from .ensemble import opinion_matrix, weigh, weighted_mean
from .examples import Vector
from .search import SearchRecord


@dataclass(frozen=True, slots=True)
class Refinement:
    """What was fitted. name: its key in an artifact's provenance, and its place in a note. percents: the program's
    scores on the training rows as they are now. details: JSON values. reason: why the plain way stays, where it does.
    """

    name: str
    percents: Vector
    details: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None


#: (program, record, training rows, level, seed) -> what was fitted, None for a judge that is not the refiner's.
#: The record's `scored` holds the program's verdicts on those rows, each judged without its group in the prompt.
Refiner = Callable[[Judge, SearchRecord, Sequence[dspy.Example], Level, int], Refinement | None]


def refine(
    program: Judge, record: SearchRecord, examples: Sequence[dspy.Example], *, level: Level, seed: int
) -> Refinement | None:
    """Fit what there is to fit for this kind of judge, in place; None where there is nothing."""
    for refiner in REFINERS:
        found = refiner(program, record, examples, level, seed)
        if found is not None:
            return found
    return None


def annotator_weights(
    program: Judge, record: SearchRecord, examples: Sequence[dspy.Example], level: Level, seed: int
) -> Refinement | None:
    """Weights for the annotators of an ensemble."""
    if not isinstance(program, OpeNLGauge) or len(program.members) < 2:
        return None
    opinions = opinion_matrix(record.scored.verdicts, [m.name for m in program.members])
    found = weigh(opinions, examples, level=level, seed=seed)
    if found.reason is not None:
        return Refinement("ensemble", record.scored.percents, found.to_dict(), found.reason)
    program.members = tuple(replace(m, weight=round(w, 6)) for m, w in zip(program.members, found.weights, strict=True))
    return Refinement("ensemble", weighted_mean(opinions, found.weights), found.to_dict())


REFINERS: tuple[Refiner, ...] = (annotator_weights,)
