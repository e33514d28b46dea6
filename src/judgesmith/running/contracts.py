"""The ratings of a file, held against what a judge was compiled from: one question, or both readings in a message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.conversation import parsed
from judgesmith.datasets.marks import Marks, named_scale
from judgesmith.datasets.records import Labels
from judgesmith.datasets.roles import scored_by
from judgesmith.datasets.scales import infer_scale
from judgesmith.datasets.sheet import Outputs
from judgesmith.programs.contract import (
    Contract,
    Question,
    Scale,
    ratings_of,
    speaks_of,
)

#: Where `judgesmith score` writes what its judge was measured on.
OF_ROWS = "contract"


@dataclass(frozen=True, slots=True)
class Held:
    """A judge with its contract, one for each aspect that it scores."""

    judge: str
    contracts: Sequence[Contract]
    scored: bool = False
    """Its scores stand in a file: whoever names other ratings compares these with them, and is told so."""

    def on(self, aspect: str, others: Iterable[str] = ()) -> Contract | None:
        """Return what ratings of an aspect have to keep; None where the judge is compared with another of `others`."""
        for contract in self.contracts:
            if speaks_of(contract.question.aspect, aspect):
                return contract
        for other in others:
            if any(speaks_of(one.question.aspect, other) for one in self.contracts):
                return None
        return next(iter(self.contracts), None)


def held_by(*judges: Path) -> list[Held]:
    """Return the contracts of saved judges that were compiled from labels.

    Raises:
        ArtifactError: If a file is not a judge.
    """
    if not judges:
        return []
    from judgesmith.programs import artifact

    every = [Held(path.name, artifact.read(path).contracts) for path in judges]
    return [held for held in every if held.contracts]


def held_in(file: Outputs) -> list[Held]:
    """Return the contract of the judge that scored a file, by its first scored row; none for another file."""
    for record in file.records:
        told = contract_in(record)
        if not told.get("kind"):
            continue
        verdict = parsed(record.get("verdict"))
        nested = verdict if isinstance(verdict, Mapping) else {}
        aspect = nested.get("aspect") or record.get("judge_aspect") or ""
        rated = told.get("columns")
        columns = {**(rated if isinstance(rated, Mapping) else {}), **scored_by(record)}
        about = {"columns": columns, "aspect": aspect}
        contract = Contract.of({OF_ROWS: {**told, **about}})
        name = str(told.get("judge") or "the judge")
        return [] if contract is None else [Held(name, [contract], scored=True)]
    return []


def contract_in(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what `judgesmith score` wrote of its judge into a row, nothing for another row."""
    told = parsed(record.get(f"judge_{OF_ROWS}"))
    for column in ("judge_verdict", "verdict"):
        verdict = parsed(record.get(column))
        if isinstance(verdict, Mapping):
            told = verdict.get(OF_ROWS)
    return told if isinstance(told, Mapping) else {}


def question_of(labels: Labels, expected: Scale | None) -> Question:
    """Return how labels were read. expected: their scale where it was inferred, if they fit it."""
    roles = {} if labels.account is None else labels.account.roles
    scale = labels.scale
    values = [value for row in labels.rows for value in row.single(labels.aspect)]
    if not labels.scale_given and expected is not None and _fits(values, expected):
        scale = expected
    return Question(ratings_of(roles), labels.kind, scale, labels.aspect)


def _fits(values: Sequence[float], scale: Scale) -> bool:
    return all(scale[0] <= value <= scale[1] for value in values)


@dataclass(frozen=True, slots=True)
class Asked:
    """Ratings of one aspect as they stand in a file, with the scale that the user gave, if any."""

    file: Outputs
    aspect: str
    marks: Marks
    given: Scale | None = None
    others: Sequence[str] = ()
    """The aspects that are compared beside it."""
    chosen: bool = False
    """The user named the ratings."""

    def keep(self, held: Sequence[Held]) -> tuple[Scale | None, list[str]]:
        """Check the ratings against all judges; return the scale to read them on, if it is known, and notes.

        Raises:
            OptionError: For ratings of another question, with both readings.
        """
        scale = self.given
        notes = list[str]()
        for one in held:
            contract = one.on(self.aspect, self.others)
            if contract is None:
                continue
            read = self.question(contract.question.scale)
            note = contract.check(
                read,
                judge=one.judge,
                origin=self.file.origin,
                chosen=self.chosen,
                compared=one.scored and (self.chosen or self.given is not None),
            )
            notes += [] if note is None else [note]
            if note is None and scale is None and read.scale == contract.question.scale:
                scale = read.scale
        return scale, notes

    def question(self, expected: Scale | None) -> Question:
        """Return how the ratings are read. expected: their scale where none is stated, if they fit it."""
        file = self.file
        aspect = self.aspect
        own, raters = file.columns.aspects.get(aspect, (file.columns.objects, ()))
        columns = (*([own] if own else []), *raters)
        if file.compared:
            return Question(columns, "preference", None, aspect)
        values = [value for row in file.rows for value in row.single(aspect)]
        kind = self.marks.kind if self.marks.values else ""
        if not kind and len(set(values)) > 2:
            kind = "score"
        stated = self.given or self._stated(columns, values)
        if stated is None and expected is not None and _fits(values, expected):
            stated = expected
        if stated is None and values:
            stated = infer_scale(np.array(values), len(file.rows))
        return Question(columns, kind, stated, aspect)

    def _stated(self, columns: Sequence[str], values: Sequence[float]) -> Scale | None:
        """Return the scale that a column's name or its words state; none for shares under a name with percent."""
        named = named_scale(columns[0])[1] if columns else None
        if named == (0, 100) and max(values, default=0) <= 1:
            return None
        return named or (self.marks.scale if self.marks.values else None)
