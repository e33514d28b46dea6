"""Plans, trials and reports of compiling: plain values, written to tables and artifacts elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from judgesmith.agreement.metric import AgreementValue
from judgesmith.agreement.objectives import Objective
from judgesmith.datasets.records import Labels
from judgesmith.datasets.splits import Split
from judgesmith.optimizers.examples import Vector
from judgesmith.optimizers.levels import COMPARED, Levels
from judgesmith.optimizers.search.base import SearchRecord, candidate_in_words
from judgesmith.programs.active_critic.task import Inference
from judgesmith.programs.capabilities import Form
from judgesmith.programs.judge import Judge
from judgesmith.programs.outcome import Calibration, CalibrationFit
from judgesmith.programs.refining import Refinement
from judgesmith.signatures.values import Usage, json_number
from judgesmith.tables import (
    Cell,
    Column,
    Table,
    facts,
    interval,
    p_in_words,
)


@dataclass(frozen=True, slots=True)
class Parts:
    """The split of the labels: one training and one held-out side, or the folds of cross-validation (at least two).

    Folds are in one run or several, while the judge itself is compiled from all rows. free: whether folds need no call
    that the fit to all rows has not made. again: whether they choose again among its candidates, as it scored them.
    shown: the rows that the fit to all rows infers the task from, as `Split.shown`.
    """

    runs: tuple[tuple[Split, ...], ...]
    crossed: bool = False
    free: bool = False
    again: bool = False
    shown: Labels | None = None

    @property
    def splits(self) -> tuple[Split, ...]:
        """Those of all runs."""
        return tuple(chain.from_iterable(self.runs))

    @property
    def folds(self) -> int:
        """Folds of a run, 0 without cross-validation."""
        return len(self.runs[0]) if self.crossed else 0

    def fits(self, rows: int) -> list[int]:
        """Return the number of training rows of each fit.

        Args:
            rows: The number of all labels.
        """
        return [len(split.train) for split in self.splits] + (
            [rows] if self.crossed else []
        )

    @property
    def heldout(self) -> int:
        """Held-out rows, each as often as it is judged."""
        return sum(len(split.heldout) for split in self.splits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of a compile run, before anything is spent."""

    rows: int
    train: int
    heldout: int
    folds: int
    runs: int
    calls: int
    """An upper bound, without repeats of unreadable answers."""
    heldout_calls: int
    """Those of them that judge held-out rows."""
    row_calls: int
    """Calls that one output costs at most, whatever is chosen."""
    steps: int
    passes: int
    """Passes over rows, one after another."""
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    """An estimate in US dollars, as tokens and seconds are; None where the price is unknown."""
    objective: Objective
    """What is maximised."""
    parts: Parts = field(repr=False)
    seconds: float | None = None
    asked: float = 0.0
    """Tokens whose reading takes as long as the calls do, where a model of this machine answers them."""
    read: float = 0.0
    """What models of this machine read beside the calls, once for all aspects (`Passes.work`)."""
    readers: tuple[str, ...] = ()
    """Models of this machine that read rows beside the calls."""
    batches: int | None = None
    """Providers' batches at most, one after another; None where each call is sent by itself."""
    notes: tuple[str, ...] = ()
    """What will not be tried, and why."""
    dearer: str | None = None
    """The note on a form that takes more calls a row, where the budget forbids it."""
    aspects: Mapping[str, Plan] = field(default_factory=dict, repr=False)
    """Of each aspect, where several are compiled together."""


@dataclass(frozen=True, slots=True)
class FormTrial:
    """One form of prompts and answers, tried without examples on the training rows.

    knowledge: with the inferred task and criteria in the prompt, or without.
    """

    form: Form
    knowledge: bool
    agreement: AgreementValue
    percents: Vector = field(repr=False, compare=False)
    disqualified: str | None = None

    def preference(self) -> tuple[bool, float]:
        """Return a sort key: whether it can be chosen, then the objective.

        The objective is rounded so that `max` keeps the earlier of two equal trials.
        """
        return self.disqualified is None, round(self.agreement.value, 9)


@dataclass(frozen=True, slots=True)
class Fitted:
    """One pass of task inference, form and search over some training rows.

    refined: whether what was fitted to the chosen program's answers took the place of the plain way, in their order.
    """

    judge: Judge
    zero_shot: Judge
    record: SearchRecord
    inference: Inference | None
    forms: tuple[FormTrial, ...]
    refined: tuple[Refinement, ...] = ()
    dearer: str | None = None
    """How a form that takes more calls a row did, where there is one."""
    left_out: Vector | None = field(default=None, repr=False)
    """Raw scores of the training rows, each by what the rows of other folds choose, for what is said of errors to come;
    None: they were not chosen on, and are `percents`. NaN where a choice cannot be made again."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Members of the judge that scored no row of the first measurement and were asked no more, and why."""

    @property
    def percents(self) -> Vector:
        """Return the judge's raw scores of the training rows, in [0, 100].

        Each row is judged without its document in the prompt, or by weights that were fitted without its fold. Scores
        are cut to 0..100 as verdicts are.
        """
        if self.refined:
            percents = self.refined[-1].percents
        else:
            percents = self.record.scored.percents
        return np.clip(percents, 0.0, 100.0)

    @property
    def mapped(self) -> CalibrationFit:
        """Return what fits the map to people's scale: where a score judges alone a line, which leaves its agreement."""
        alone = any(refinement.alone for refinement in self.refined)
        return Calibration.line if alone else Calibration.fit

    @property
    def name(self) -> str:
        """Return the judge's name among the results that the fit could have had."""
        return next(
            (r.candidate for r in self.refined if r.changed and r.candidate),
            self.record.selected.name,
        )

    @property
    def way(self) -> str:
        """Return in words whether the judge's score is one alone, or a mixture by fitted weights."""
        fitted = [r.name for r in self.refined if r.changed]
        return f"a mixture ({', '.join(fitted)})" if fitted else "one score alone"

    def tried(self) -> list[str]:
        """Return the results of what was tried beside the search, one sentence each."""
        refined = [
            f"{r.name}: {outcome}"
            for r in self.refined
            if (outcome := r.reason or r.changed)
        ]
        silent = [
            f"{name} was asked no more: {why}" for name, why in self.silent.items()
        ]
        return [*silent, *filter(None, [self.dearer]), *refined]


@dataclass(frozen=True, slots=True, repr=False)
class CompileReport:
    """The agreement of a compiled judge with people, on rows that no search or fit saw."""

    heldout: AgreementValue
    """By the run's objective."""
    zero_shot: AgreementValue
    """Of the judge without demonstrations, on the same rows."""
    difference: tuple[float, float, float, float]
    """Compiled minus the model alone, its interval, and a two-sided p (paired bootstrap over groups)."""
    surface: AgreementValue
    """Of length, overlap and repetition alone, on the same rows."""
    folds: int
    train_rows: int
    heldout_rows: int
    selected: dict[str, Any]
    candidates: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    usage: Usage
    seconds: float
    calibrated_error: float
    uncalibrated_error: float
    levels: Levels = field(default_factory=Levels)
    """Agreement within systems and documents, and that of the systems' mean labels."""
    runs: int = 1
    """How often all rows were judged by folds."""
    readings: tuple[dict[str, Any], ...] = ()
    """Name, weight and Q on training rows (out of fold) of what the judge is made of, where it weighs readings."""
    decisions: dict[str, Any] | None = None
    """How far categories, pass and fail, or preferences agree with people's; None for labels that are scores."""
    sureness: dict[str, Any] | None = None
    """How wide the judge's intervals are on the held-out rows, and how many rows and documents they rest on."""
    way: dict[str, Any] | None = None
    """How far the judge is on the way from guessing (0) to one human rater (1), where the held-out rows have several
    ratings: value, low, high and how many raters."""
    stopped: str | None = None
    drawn_from: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """By criterion, the rows and comments of people that the model says it comes from; empty without comments."""
    heldout_predictions: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    @property
    def source(self) -> str:
        """The rows that agreement is measured on, in words."""
        if not self.folds:
            return "held out, never seen by the search"
        times = f"{self.runs} × " if self.runs > 1 else ""
        return f"{times}{self.folds}-fold cross-validation"

    @property
    def nothing_scored(self) -> bool:
        """True if no held-out row got a score."""
        return self.heldout.reached.failed == self.heldout_rows

    @property
    def against_people(self) -> bool:
        """True if the interval of the held-out agreement lies below what chance reaches."""
        return self.heldout.high < self.heldout.by.chance

    def __repr__(self) -> str:
        value, low, high, _ = self.difference
        lead = f"{value:+.2f} {interval(low, high)}"
        return (
            f"CompileReport({self.heldout}; {lead.rstrip()} against the model alone; "
            f"{self.usage.calls:,} calls)"
        )

    def table(self) -> Table:
        """Return the compiled judge beside the model alone and the baseline without a model."""
        by = self.heldout.by
        names = ["Pearson", "Spearman", "Kendall"]
        if by.name != "q":
            names.insert(0, "Q")
        numbers = [Column(name, ".2f") for name in (by.label, *names)]
        spoken_of = "other documents"
        if self.heldout.new_systems:
            spoken_of = "other documents and systems"
        title = f"Agreement with people on {self.heldout_rows} rows ({self.source}; intervals: {spoken_of})"
        lines = [
            ("length and overlap", self.surface),
            ("model alone", self.zero_shot),
            ("compiled", self.heldout),
        ]
        if self.levels.system_means is not None:
            lines.insert(1, ("systems' mean labels", self.levels.system_means))
        lines += [
            (f"… {COMPARED[level]}", inside)
            for level, inside in self.levels.inside.items()
        ]
        failures = any(agreement.reached.failed for _, agreement in lines)
        failed = [Column("failed", "d")] if failures else []
        table = Table(["judge", *numbers, Column("rows", "d"), *failed], title)
        for name, agreement in lines:
            o = agreement.objective
            reached = agreement.reached
            values = (o.q, o.pearson, o.spearman, o.kendall)[-len(names) :]
            table.add(
                name,
                Cell(agreement.value, agreement.low, agreement.high),
                *values,
                reached.n,
                *([reached.failed] if failures else []),
            )
        return table

    def _repr_html_(self) -> str:
        """For notebooks: the table, the difference, and the notes."""
        value, low, high, p = self.difference
        beside: list[tuple[str, Any]] = [
            (
                "compiled less model alone",
                f"{value:+.2f} {tested(low, high, p)}",
            )
        ]
        beside += [
            ("chosen", candidate_in_words(str(self.selected.get("candidate")))),
            ("calls", f"{self.usage.calls:,}"),
        ]
        beside += [("note", note) for note in self.notes]
        return self.table().notebook() + facts(beside)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values; NaN becomes null."""
        usage = ("tokens", "prompt_tokens", "completion_tokens", "prefix_tokens")
        return {
            "objective": self.heldout.by.name,
            "heldout": self.heldout.to_dict(),
            "zero_shot": self.zero_shot.to_dict(),
            "difference": dict(
                zip(
                    ("value", "low", "high", "p"),
                    map(json_number, self.difference),
                    strict=True,
                )
            ),
            "surface": self.surface.to_dict(),
            **{
                COMPARED[level].replace(" ", "_"): agreement.to_dict()
                for level, agreement in self.levels.inside.items()
            },
            **(
                {}
                if self.levels.system_means is None
                else {"system_means": self.levels.system_means.to_dict()}
            ),
            "readings": list(self.readings),
            **({} if self.decisions is None else {"decisions": self.decisions}),
            "sureness": self.sureness,
            "way": self.way,
            "cross_validated": self.folds > 0,
            "folds": self.folds,
            "runs": self.runs,
            "train_rows": self.train_rows,
            "heldout_rows": self.heldout_rows,
            "selected": self.selected,
            "candidates": list(self.candidates),
            "mean_absolute_error": {
                "calibrated": json_number(self.calibrated_error),
                "uncalibrated": json_number(self.uncalibrated_error),
            },
            "notes": list(self.notes),
            "stopped": self.stopped,
            **({"criteria_from": self.drawn_from} if self.drawn_from else {}),
            "calls": self.usage.calls,
            "cached_calls": self.usage.cached,
            **{name: getattr(self.usage, name) for name in usage},
            "seconds": round(self.seconds, 1),
        }


def tested(low: float, high: float, p: float) -> str:
    """Return the interval of a difference and its p, or why there is none."""
    if math.isnan(low):
        return (
            "(no interval: both gave the same scores, or their agreement is undefined)"
        )
    return f"{interval(low, high)}, {p_in_words(p)}"


def notes_by_aspect(notes: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return notes with the names of their aspects; one that all aspects have stands once, without a name."""
    result: dict[str, None] = {}
    for name, own in notes.items():
        for note in own:
            common = all(note in others for others in notes.values())
            result[note if common else f"{name}: {note}"] = None
    return tuple(result)


@dataclass(frozen=True, slots=True, repr=False)
class AspectsReport:
    """Agreement of a judge of several aspects with people, by aspect, on the same held-out rows."""

    aspects: Mapping[str, CompileReport]

    @property
    def signature(self) -> str:
        """The agreement of each aspect, in one line."""
        return "; ".join(
            f"{name} {report.heldout}" for name, report in self.aspects.items()
        )

    @property
    def usage(self) -> Usage:
        """Calls and tokens of all aspects together."""
        return sum((report.usage for report in self.aspects.values()), Usage())

    @property
    def seconds(self) -> float:
        """Seconds of all aspects together."""
        return sum(report.seconds for report in self.aspects.values())

    @property
    def nothing_scored(self) -> bool:
        """True if there is an aspect of which no held-out row got a score."""
        return any(report.nothing_scored for report in self.aspects.values())

    @property
    def against_people(self) -> bool:
        """True if the judge of an aspect runs against people."""
        return any(report.against_people for report in self.aspects.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all aspects; see `notes_by_aspect`."""
        return notes_by_aspect(
            {name: report.notes for name, report in self.aspects.items()}
        )

    def __repr__(self) -> str:
        return f"AspectsReport({self.signature}; {self.usage.calls:,} calls)"

    def table(self) -> Table:
        """Return the agreement of each aspect, of the model alone, and of the baseline without a model."""
        first = next(iter(self.aspects.values()))
        labels = {report.heldout.by.label for report in self.aspects.values()}
        label = labels.pop() if len(labels) == 1 else "agreement"
        table = Table(
            [
                "aspect",
                Column(label, ".2f"),
                Column("Spearman", ".2f"),
                Column("model alone", ".2f"),
                Column("length and overlap", ".2f"),
                Column("error", ".2f"),
                Column("rows", "d"),
                Column("failed", "d"),
            ],
            f"Agreement with people by aspect ({first.source})",
        )
        for name, report in self.aspects.items():
            reached = report.heldout
            table.add(
                name,
                Cell(reached.value, reached.low, reached.high),
                reached.objective.spearman,
                report.zero_shot.value,
                report.surface.value,
                report.calibrated_error,
                reached.reached.n,
                reached.reached.failed,
            )
        return table

    def _repr_html_(self) -> str:
        """For notebooks: the table and the notes."""
        return self.table().notebook() + facts([("note", note) for note in self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return the reports of all aspects as JSON values."""
        usage = ("tokens", "prompt_tokens", "completion_tokens", "prefix_tokens")
        return {
            "aspects": {
                name: report.to_dict() for name, report in self.aspects.items()
            },
            "notes": list(self.notes),
            "calls": self.usage.calls,
            "cached_calls": self.usage.cached,
            **{name: getattr(self.usage, name) for name in usage},
            "seconds": round(self.seconds, 1),
        }
