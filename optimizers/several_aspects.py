"""Several aspects compiled together: the same documents held out for all of them, one budget, one judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

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

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AspectsReport:
    """What compiling several aspects found: the report of each by its name, and the seconds of the whole run."""

    aspects: dict[str, CompileReport]
    seconds: float

    @property
    def usage(self) -> Usage:
        return sum((report.usage for report in self.aspects.values()), Usage())

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of all aspects, with the names of the aspects where they are not for all."""
        names: dict[str, list[str]] = {}
        for name, report in self.aspects.items():
            for note in report.notes:
                names.setdefault(note, []).append(name)
        every = len(self.aspects)
        return tuple(note if len(of) == every else f"{', '.join(of)}: {note}" for note, of in names.items())

    def to_dict(self) -> dict[str, Any]:
        aspects = {name: report.to_dict() for name, report in self.aspects.items()}
        summed = ("calls", "cached_calls", "tokens", "prompt_tokens", "completion_tokens", "prefix_tokens")
        return {
            "aspects": aspects,
            "notes": list(self.notes),
            **{name: sum(report[name] for report in aspects.values()) for name in summed},
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
        compilers, labels = self._split(labels)
        return for_each(compilers, lambda n: compilers[n].plan(judge.by_aspect[n], labels[n], lm, teacher=teacher))

    def run(self, judge: Judge, labels: Mapping[str, Labels], lm: LanguageModel) -> tuple[AspectsJudge, AspectsReport]:
        """The compiled judge and its report. Raises what `Compiler.run` raises, with the aspect's name."""
        started, spent = time.monotonic(), (lm.meter.logical, lm.meter.cost)
        compilers, labels = self._split(labels)
        for_each(compilers, lambda n: compilers[n].refuse(judge.by_aspect[n], labels[n], lm))
        left = dict(zip(compilers, range(len(compilers), 0, -1), strict=True))
        results = for_each(
            compilers,
            lambda n: _share(compilers[n], lm, spent, left[n]).run(judge.by_aspect[n], labels[n], lm),
        )
        made = {name: compiled for name, (compiled, _) in results.items()}
        together = AspectsJudge(made, lm=lm)
        together.provenance = _provenance(made, len(_together(labels)))
        return together, AspectsReport(
            {name: report for name, (_, report) in results.items()}, time.monotonic() - started
        )

    def _split(self, labels: Mapping[str, Labels]) -> tuple[dict[str, Compiler], dict[str, Labels]]:
        """The compilers with the rows that each is to learn from and to be measured on, and the labels with the groups
        that these have. Raises LabelsError."""
        first = next(iter(self.compilers.values()))
        apart = {name: c.heldout for name, c in self.compilers.items() if c.heldout is not None}
        whole, folds = _together(labels), first.options.cv
        scarce = min(labels, key=lambda name: len(labels[name]))
        if len(labels[scarce]) < FEW_LABELS and folds is None and not apart:
            folds = max(2, min(FOLDS, len(set(whole.groups))))
            why = f"{len(labels[scarce])} labels of {scarce!r} are too few for a held-out part of their own"
            labels = {name: replace(one, warnings=(*one.warnings, why)) for name, one in labels.items()}
        options = first.options.model_copy(update={"cv": folds})
        parts = replace(first, options=options, heldout=_together(apart) if apart else None).splits(whole)
        compilers: dict[str, Compiler] = {}
        for name, compiler in self.compilers.items():
            splits = [_of_aspect(split, labels[name], apart.get(name, labels[name])) for split in parts.splits]
            _refuse_sides(name, splits, crossed=parts.crossed)
            compilers[name] = replace(
                compiler,
                options=compiler.options.model_copy(update={"cv": folds}),
                parts=replace(parts, splits=tuple(split for split in splits if len(split.heldout))),
                progress=Within(self.progress or Silent(), name),
            )
        groups = {row.id: row.group for split in parts.splits for row in (*split.train.rows, *split.heldout.rows)}
        return compilers, {name: _grouped(one, groups) for name, one in labels.items()}


def for_each(names: Iterable[str], do: Callable[[str], T]) -> dict[str, T]:
    """What `do` gives for each aspect; an error that it raises names the aspect."""
    results: dict[str, T] = {}
    for name in names:

        def named(message: str, name: str = name) -> str:
            return message if repr(name) in message else f"aspect {name!r}: {message}"

        try:
            results[name] = do(name)
        except LabelsError as error:
            raise LabelsError(*map(named, error.problems)) from None
        except JudgesmithError as error:
            raise type(error)(named(str(error))) from None
    return results


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


def _of_aspect(split: Split, labels: Labels, heldout: Labels) -> Split:
    """The rows of one aspect's labels on the sides where a split of all rows has them."""
    sides = []
    for part, known in ((labels, split.train), (heldout, split.heldout)):
        groups = {row.id: row.group for row in known.rows}
        sides.append(_grouped(replace(part, rows=tuple(row for row in part.rows if row.id in groups)), groups))
    return Split(*sides)


def _grouped(labels: Labels, groups: Mapping[str, str]) -> Labels:
    return replace(labels, rows=tuple(replace(row, group=groups[row.id]) for row in labels.rows))


def _refuse_sides(name: str, splits: list[Split], *, crossed: bool) -> None:
    """Raises LabelsError where the rows that an aspect has on a side say nothing."""
    for split in splits:
        for what, side in (("learnt from", split.train), ("held out", split.heldout))[: 1 if crossed else 2]:
            scores = len(set(side.scores.tolist()))
            if len(side) < MIN_SIDE or scores < 2:
                raise LabelsError(
                    f"aspect {name!r}: of the documents that are {what} for all aspects, {len(side)} rows with "
                    f"{scores} different scores are labelled; rate more rows for it, leave it out, or cross-validate "
                    "(--cv)"
                )


def _share(compiler: Compiler, lm: LanguageModel, before: tuple[int, float], left: int) -> Compiler:
    """A compiler with an equal share of what is left of the budget for this and the following aspects. Raises
    BudgetError where nothing is."""
    calls, cost = compiler.options.max_calls, compiler.options.max_cost
    if calls is not None:
        calls = (calls - (lm.meter.logical - before[0])) // left
    if cost is not None:
        cost = (cost - (lm.meter.cost - before[1])) / left
    if (calls is not None and calls < 1) or (cost is not None and cost <= 0):
        raise BudgetError("the budget was used up before all aspects were compiled; raise it, or leave aspects out")
    return replace(compiler, options=compiler.options.model_copy(update={"max_calls": calls, "max_cost": cost}))


def _provenance(made: Mapping[str, Judge], rows: int) -> dict[str, Any]:
    """Where the whole comes from: its parts say the rest."""
    each = [judge.provenance for judge in made.values()]
    first = each[0]
    return {
        **{name: first[name] for name in ("created", "versions", "seed")},
        "labels": {"origin": first["labels"]["origin"], "aspects": list(made), "rows": rows},
        "cost": {name: sum(one["cost"][name] for one in each) for name in first["cost"]},
        **{name: sorted({mark for one in each for mark in one[name]}) for name in ("seen", "seen_texts")},
    }


__all__ = ["AspectsCompiler", "AspectsReport", "for_each"]
