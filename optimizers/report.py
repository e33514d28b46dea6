"""What compiling plans, tries and reports: plain values, written to tables and artifacts elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ..agreement.objectives import Objective
from ..errors import OptionError
from ..programs.active_critic.task import Inference
from ..programs.capabilities import Form
from ..programs.judge import Judge
from ..programs.refining import Refinement
from ..signatures.values import Usage
from ..tables import Cell, Column, Table, facts
from .augmentation import AugmentationTrial
from .examples import Agreement, Vector
from .search.base import SearchRecord


@dataclass(frozen=True, slots=True)
class Budget:
    """What compiling may spend, in calls and in US dollars; None: no limit. Calls of an earlier, interrupted run count,
    so that a resumed run ends where an uninterrupted one would. Raises OptionError unless both are positive.

    >>> print(Budget(max_calls=2000, max_cost=1.5))
    2,000 calls and $1.5
    """

    max_calls: int | None = None
    max_cost: float | None = None

    def __post_init__(self) -> None:
        if (self.max_calls is not None and self.max_calls < 1) or (self.max_cost is not None and self.max_cost <= 0):
            raise OptionError("a budget must be positive")

    def __str__(self) -> str:
        calls = [] if self.max_calls is None else [f"{self.max_calls:,} calls"]
        return " and ".join(calls + ([] if self.max_cost is None else [f"${self.max_cost:g}"])) or "nothing"


@dataclass(frozen=True, slots=True)
class Plan:
    """What compiling would do and spend, before anything is spent. objective: what is maximised. calls are an upper
    bound without repeats of unreadable answers, heldout_calls those of them that judge held-out rows; tokens, seconds
    and cost are estimates, cost None where the price is unknown. notes: what will not be tried, and why."""

    rows: int
    train: int
    heldout: int
    folds: int
    calls: int
    heldout_calls: int
    steps: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    objective: Objective
    seconds: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FormTrial:
    """One form of prompts and answers, tried zero-shot on the training rows. knowledge: with the inferred task and
    criteria in the prompt, or without."""

    form: Form
    knowledge: bool
    agreement: Agreement
    disqualified: str | None = None

    def preference(self) -> tuple[bool, float]:
        """Whether it can be chosen, then the objective, rounded so that `max` keeps the earlier trial where two are
        equal."""
        return self.disqualified is None, round(self.agreement.value, 9)


@dataclass(frozen=True, slots=True)
class Fitted:
    """One pass of task inference, form and search over some training rows. refined: whether the mean of several
    candidates, and what was fitted to the chosen program's answers, took the place of the plain way, in their order.
    augmentation: whether perturbed copies helped, where that was tried."""

    judge: Judge
    zero_shot: Judge
    record: SearchRecord
    inference: Inference | None
    forms: tuple[FormTrial, ...]
    refined: tuple[Refinement, ...] = ()
    augmentation: AugmentationTrial | None = None

    @property
    def percents(self) -> Vector:
        """The judge's raw scores of the training rows, each judged without its document in the prompt, or by weights
        that were fitted without its fold."""
        return self.refined[-1].percents if self.refined else self.record.scored.percents

    def tried(self) -> list[str]:
        """The results of what was tried beside the search, a sentence each."""
        said = [] if self.augmentation is None else [self.augmentation.reason]
        return said + [f"{r.name}: {outcome}" for r in self.refined if (outcome := r.reason or r.changed)]


@dataclass(frozen=True, slots=True, repr=False)
class CompileReport:
    """What `compile` found. heldout and zero_shot are by the run's objective on the same rows, which the search never
    saw; difference is compiled minus zero-shot with its interval and two-sided p (paired bootstrap over groups).
    surface: of length, overlap and repetition alone, on the same rows. readings: name, weight and Q on training rows
    (out of fold) of what the judge is made of, where it weighs readings. decisions: how far its categories, its pass
    and fail, or its preferences agree with people's on the held-out rows; None for labels that are scores. sureness:
    how wide the judge's intervals are on the held-out rows, and the share of these rows that intervals learnt without
    them hold (None where none were). record: of the search that the judge comes from."""

    heldout: Agreement
    zero_shot: Agreement
    difference: tuple[float, float, float, float]
    surface: Agreement
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
    readings: tuple[dict[str, Any], ...] = ()
    decisions: dict[str, Any] | None = None
    sureness: dict[str, Any] | None = None
    stopped: str | None = None
    heldout_predictions: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    record: SearchRecord | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        value, low, high, _ = self.difference
        return (
            f"CompileReport({self.heldout}; {value:+.2f} [{low:.2f}, {high:.2f}] against zero-shot; "
            f"{self.usage.calls:,} calls)"
        )

    def _repr_html_(self) -> str:
        """For notebooks: the compiled judge beside zero-shot and the baseline without a model, and the notes."""
        value, low, high, p = self.difference
        lines = (("no model: surface", self.surface), ("zero-shot", self.zero_shot), ("compiled", self.heldout))
        how = f"{self.folds}-fold cross-validation" if self.folds else "held out, never seen by the search"
        table = Table(
            ("judge", Column(self.heldout.by.label, ".2f"), Column("rows", "d"), Column("failed", "d")),
            f"Agreement with people on {self.heldout_rows} rows ({how})",
        )
        for name, found in lines:
            table.add(name, Cell(found.value, found.low, found.high), found.reached.n, found.reached.failed)
        beside: list[tuple[str, Any]] = [
            ("compiled less zero-shot", f"{value:+.2f} [{low:.2f}, {high:.2f}], p = {p:.3f}")
        ]
        beside += [("chosen", self.selected.get("candidate")), ("calls", f"{self.usage.calls:,}")]
        beside += [("note", note) for note in self.notes]
        return table.notebook() + facts(beside)

    def to_dict(self) -> dict[str, Any]:
        value, low, high, p = self.difference
        return {
            "objective": self.heldout.by.name,
            "heldout": self.heldout.to_dict(),
            "zero_shot": self.zero_shot.to_dict(),
            "difference": {
                "value": json_number(value),
                "low": json_number(low),
                "high": json_number(high),
                "p": json_number(p),
            },
            "surface": self.surface.to_dict(),
            "readings": list(self.readings),
            **({} if self.decisions is None else {"decisions": self.decisions}),
            "sureness": self.sureness,
            "cross_validated": self.folds > 0,
            "folds": self.folds,
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
            "calls": self.usage.calls,
            "cached_calls": self.usage.cached,
            "tokens": self.usage.tokens,
            "prompt_tokens": self.usage.prompt_tokens,
            "completion_tokens": self.usage.completion_tokens,
            "prefix_tokens": self.usage.prefix_tokens,
            "seconds": round(self.seconds, 1),
        }


def json_number(value: float) -> float | None:
    """Six digits, and null for NaN."""
    return None if math.isnan(value) else round(float(value), 6)
