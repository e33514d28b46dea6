"""Several aspects compiled together: the same documents held out for all of them, one budget, one judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..datasets.records import OVERALL, Labels, Row
from ..datasets.splits import MIN_SIDE, Split
from ..errors import BudgetError, JudgesmithError, LabelsError
from ..programs.judge import Judge
from ..programs.models.lm import LanguageModel
from ..programs.progress import Progress, Silent, Within
from ..programs.several_aspects import AspectsJudge
from ..signatures.values import Scale, Usage
from .compiling import FEW_LABELS, FOLDS, Compiler
from .report import CompileReport, Plan

Parts = tuple[Split | None, list[Split]]


@dataclass(frozen=True, slots=True)
class AspectsReport:
    """What compiling several aspects found: the report of each by its name, with what all of them took. seconds: of the
    whole run."""

    aspects: dict[str, CompileReport]
    seconds: float

    @property
    def usage(self) -> Usage:
        return sum((report.usage for report in self.aspects.values()), Usage())

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of all aspects, with the names of the aspects where they are not for all."""
        said: dict[str, list[str]] = {}
        for name, report in self.aspects.items():
            for note in report.notes:
                said.setdefault(note, []).append(name)
        every = len(self.aspects)
        return tuple(note if len(who) == every else f"{', '.join(who)}: {note}" for note, who in said.items())

    def to_dict(self) -> dict[str, Any]:
        told = {name: report.to_dict() for name, report in self.aspects.items()}
        summed = ("calls", "cached_calls", "tokens", "prompt_tokens", "completion_tokens", "prefix_tokens")
        return {
            "aspects": told,
            "notes": list(self.notes),
            **{name: sum(report[name] for report in told.values()) for name in summed},
            "seconds": round(self.seconds, 1),
        }


@dataclass(frozen=True, slots=True)
class AspectsCompiler:
    """A compile run over several aspects. compilers: one for each aspect, by its name; what they say of calls and
    dollars holds for all aspects together, and how rows are held out is that of the first.

    Rows are split once, as for the first aspect alone: the rows of a document stand on one side for every aspect, so
    that no judge learns from a text that another is measured on. Where one aspect has too few labels for a held-out
    part, all are cross-validated.
    """

    compilers: Mapping[str, Compiler]
    progress: Progress | None = None

    def plan(
        self, judge: Judge, labels: Mapping[str, Labels], lm: LanguageModel | str | None, *, teacher: bool = False
    ) -> dict[str, Plan]:
        """What each aspect would take at most. No model is called."""
        compilers, labels = self._sided(labels)
        return {
            name: naming(name, lambda n: compilers[n].plan(judge.by_aspect[n], labels[n], lm, teacher=teacher))
            for name in compilers
        }

    def run(self, judge: Judge, labels: Mapping[str, Labels], lm: LanguageModel) -> tuple[AspectsJudge, AspectsReport]:
        """The compiled judge and its report. Raises what `Compiler.run` raises, with the aspect's name."""
        started, spent = time.monotonic(), (lm.meter.logical, lm.meter.cost)
        compilers, labels = self._sided(labels)
        for name, compiler in compilers.items():
            naming(name, lambda n, c=compiler: c.refuse(judge.by_aspect[n], labels[n], lm))  # type: ignore[misc]
        made: dict[str, Judge] = {}
        reports: dict[str, CompileReport] = {}
        for left, (name, compiler) in zip(range(len(compilers), 0, -1), compilers.items(), strict=True):
            shared = _share(compiler, lm, spent, left)
            made[name], reports[name] = naming(
                name,
                lambda n, c=shared: c.run(judge.by_aspect[n], labels[n], lm),  # type: ignore[misc]
            )
        together = AspectsJudge(made, lm=lm)
        together.provenance = _provenance(made, len(_together(labels)))
        return together, AspectsReport(reports, time.monotonic() - started)

    def _sided(self, labels: Mapping[str, Labels]) -> tuple[dict[str, Compiler], dict[str, Labels]]:
        """The compilers with the rows that each is to learn from and to be measured on, and the labels with the groups
        that these have. Raises LabelsError."""
        first = next(iter(self.compilers.values()))
        given = {name: c.heldout for name, c in self.compilers.items() if c.heldout is not None}
        whole, folds = _together(labels), first.options.cv
        scarce = min(labels, key=lambda name: len(labels[name]))
        if len(labels[scarce]) < FEW_LABELS and folds is None and not given:
            folds = max(2, min(FOLDS, len(set(whole.groups))))
            why = f"{len(labels[scarce])} labels of {scarce!r} are too few for a held-out part of their own"
            labels = {name: replace(one, warnings=(*one.warnings, why)) for name, one in labels.items()}
        options = first.options.model_copy(update={"cv": folds})
        split, parts = replace(first, options=options, heldout=_together(given) if given else None).splits(whole)
        made: dict[str, Compiler] = {}
        for name, compiler in self.compilers.items():
            heldout = given.get(name, labels[name])
            found = [_side(part, labels[name], heldout) for part in ([split] if split else parts)]
            _refuse_sides(name, found, one=split is not None)
            sided: Parts = (found[0], []) if split else (None, [part for part in found if len(part.heldout)])
            title = Within(self.progress or Silent(), name)
            cv = compiler.options.model_copy(update={"cv": folds})
            made[name] = replace(compiler, options=cv, parts=sided, progress=title)
        every = [row for part in ([split] if split else parts) for row in (*part.train.rows, *part.heldout.rows)]
        groups = {row.id: row.group for row in every}
        return made, {name: _grouped(one, groups) for name, one in labels.items()}


def naming(name: str, do: Callable[[str], Any]) -> Any:
    """What `do` gives for an aspect; an error that it raises says the aspect."""
    try:
        return do(name)
    except LabelsError as error:
        raise LabelsError(*(_named(name, problem) for problem in error.problems)) from None
    except JudgesmithError as error:
        raise type(error)(_named(name, str(error))) from None


def _named(name: str, message: str) -> str:
    return message if repr(name) in message else f"aspect {name!r}: {message}"


def _together(labels: Mapping[str, Labels]) -> Labels:
    """All rows that are rated for one aspect at least, each with the place of its score on the scale of the first
    aspect that it is rated for, in percent. Raises LabelsError where one id is of two rows."""
    rows: dict[str, Row] = {}
    for one in labels.values():
        scale = Scale(*one.scale)
        for row, score in zip(one.rows, one.scores.tolist(), strict=True):
            known = rows.setdefault(row.id, replace(row, scores={OVERALL: scale.to_percent(score)}, ratings={}))
            if (known.source, known.output) != (row.source, row.output):
                raise LabelsError(
                    f"{one.origin}: id {row.id!r} is one row among the labels of one aspect, and another among those "
                    "of another; give every row its own id"
                )
    origin = next(iter(labels.values())).origin
    return Labels(tuple(rows.values()), OVERALL, (0.0, 100.0), origin=origin)


def _side(split: Split, labels: Labels, heldout: Labels) -> Split:
    """The rows of one aspect's labels on the sides where a split of all rows has them."""
    sides = []
    for part, known in ((labels, split.train), (heldout, split.heldout)):
        groups = {row.id: row.group for row in known.rows}
        there = replace(part, rows=tuple(row for row in part.rows if row.id in groups))
        sides.append(_grouped(there, groups))
    return Split(*sides)


def _grouped(labels: Labels, groups: Mapping[str, str]) -> Labels:
    return replace(labels, rows=tuple(replace(row, group=groups[row.id]) for row in labels.rows))


def _refuse_sides(name: str, parts: list[Split], *, one: bool) -> None:
    """Raises LabelsError where the rows that an aspect has on a side say nothing."""
    advice = "rate more rows for it, leave it out, or cross-validate (--cv)"
    for split in parts:
        for what, side in (("learnt from", split.train), ("held out", split.heldout))[: 2 if one else 1]:
            if len(side) < MIN_SIDE or len(set(side.scores.tolist())) < 2:
                raise LabelsError(
                    f"aspect {name!r}: of the documents that are {what} for all aspects, {len(side)} rows with "
                    f"{len(set(side.scores.tolist()))} different scores are labelled; {advice}"
                )


def _share(compiler: Compiler, lm: LanguageModel, before: tuple[int, float], left: int) -> Compiler:
    """A compiler with an equal share of what is left of the budget for this and the following aspects. Raises
    BudgetError where nothing is."""
    options = compiler.options
    calls, cost = options.max_calls, options.max_cost
    if calls is not None:
        calls = (calls - (lm.meter.logical - before[0])) // left
    if cost is not None:
        cost = (cost - (lm.meter.cost - before[1])) / left
    if (calls is not None and calls < 1) or (cost is not None and cost <= 0):
        raise BudgetError("the budget was used up before all aspects were compiled; raise it, or leave aspects out")
    return replace(compiler, options=options.model_copy(update={"max_calls": calls, "max_cost": cost}))


def _provenance(made: Mapping[str, Judge], rows: int) -> dict[str, Any]:
    """Where the whole comes from: its parts say the rest."""
    each = [judge.provenance for judge in made.values()]
    first = each[0]
    cost = {name: sum(one["cost"][name] for one in each) for name in first["cost"]}
    seen = {name: sorted({mark for one in each for mark in one[name]}) for name in ("seen", "seen_texts")}
    return {
        "created": first["created"],
        "versions": first["versions"],
        "labels": {"origin": first["labels"]["origin"], "aspects": list(made), "rows": rows},
        "seed": first["seed"],
        "cost": cost,
        **seen,
    }


__all__ = ["AspectsCompiler", "AspectsReport", "naming"]
