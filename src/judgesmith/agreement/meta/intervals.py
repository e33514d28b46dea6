"""Intervals of agreements, from resampled documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesmith.agreement.coefficients import is_sum
from judgesmith.agreement.correlation import (
    CorrelationSum,
    Level,
    Vector,
    correlate,
)
from judgesmith.agreement.meta.inputs import Aspect, EvaluationOptions
from judgesmith.agreement.resampling import (
    Agreement,
    Measure,
    Range,
    defined,
    for_other_systems,
    limits,
    too_few_systems,
    too_often,
)


@dataclass
class Cell:
    """A coefficient and its resamples; `agreement` is what its interval is computed from."""

    value: float
    n: int
    skipped: int
    failed: int
    rows: int
    reason: str | None
    low: float = math.nan
    high: float = math.nan
    interval: str = ""
    drawn: Vector | None = None
    key: Any = None
    agreement: Agreement | None = None

    def row(self) -> dict[str, Any]:
        """Return the cell as a row of a data frame."""
        names = (
            "value",
            "low",
            "high",
            "n",
            "skipped",
            "failed",
            "rows",
            "interval",
            "reason",
        )
        return {name: getattr(self, name) for name in names}

    def bound(self, agreement: Agreement, options: EvaluationOptions) -> None:
        """Take the interval of the resamples of what was measured, or the reason why it has none."""
        self.agreement = agreement
        self.reason = agreement.reason
        if agreement.reason is None:
            self.limit(
                agreement.resample(options.rounds_of(agreement.rows), options.seed)[0][
                    0
                ],
                options,
            )

    def widen(
        self,
        left_out: Sequence[float],
        within: Range,
        level: Level,
        options: EvaluationOptions,
    ) -> None:
        """Widen the interval to cover other systems, by the values without each system."""
        self.low, self.high = for_other_systems(
            (self.low, self.high),
            self.value,
            left_out,
            within,
            options.confidence,
            larger=level == "within",
        )
        self.interval = f"{self.interval}, other systems"
        self.drawn = None
        if math.isnan(self.low):
            self.reason = too_few_systems(len(left_out))

    def limit(self, drawn: Vector, options: EvaluationOptions) -> None:
        """Take the interval of these resamples."""
        assert self.agreement is not None
        usable = defined(drawn)
        if usable is None:
            self.reason = too_often(int(np.isnan(drawn).sum()), len(drawn))
            return
        self.drawn = drawn
        of = self.agreement
        self.low, self.high = limits(
            usable, of.values[0], of.documents, of.within, options.confidence
        )
        self.interval = "newcombe" if of.within.sizes else "fisher"
        if self.high - self.low < 1e-9:
            self.reason = "the same in every resample: an interval of no width does not mean certainty"


def bound(
    cell: Cell,
    aspect: Aspect,
    x: Vector,
    level: Level,
    coefficient: str,
    options: EvaluationOptions,
) -> None:
    """Give the cell of a judge its interval, or the reason why it has none."""
    usable = ~np.isnan(x)
    cell.key = aspect.rows.tobytes() + (
        b"" if is_sum(coefficient) else usable.tobytes()
    )
    measure = Measure(
        aspect.y,
        documents=aspect.units,
        systems=aspect.sys,
        level=level,
        coefficient=coefficient,
    )
    cell.bound(Agreement.of([x], measure), options)
    if options.new_systems and not math.isnan(cell.low):
        if aspect.sys is not None:
            without = [aspect.sys != system for system in range(aspect.systems)]
        else:
            without = []
        left_out = [_value(aspect, x, rows, level, coefficient) for rows in without]
        cell.widen(left_out, Range.of(coefficient), level, options)


def _value(
    aspect: Aspect,
    x: Vector,
    rows: npt.NDArray[np.bool_],
    level: Level,
    coefficient: str,
) -> float:
    doc, sys = (
        None if codes is None else codes[rows] for codes in (aspect.doc, aspect.sys)
    )
    if is_sum(coefficient):
        return CorrelationSum(level)(x[rows], aspect.y[rows], doc, sys).q
    return correlate(
        x[rows],
        aspect.y[rows],
        coefficient=coefficient,
        level=level,
        documents=doc,
        systems=sys,
    ).value
