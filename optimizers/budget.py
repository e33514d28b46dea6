"""The budget of compiling, and its shares for the passes of a run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judgesmith.errors import OptionError
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import LanguageModel

if TYPE_CHECKING:
    from judgesmith.optimizers.report import Plan


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that compiling may spend, in calls and in US dollars; None: no limit.

    Calls of an earlier, interrupted run count, so that a resumed run ends where an uninterrupted one would.

    >>> print(Budget(max_calls=2000, max_cost=1.5))
    2,000 calls and $1.5

    Raises:
        OptionError: Unless both are positive.
    """

    max_calls: int | None = None
    max_cost: float | None = None

    def __post_init__(self) -> None:
        if (self.max_calls is not None and self.max_calls < 1) or (
            self.max_cost is not None and self.max_cost <= 0
        ):
            raise OptionError("a budget must be positive")

    def __str__(self) -> str:
        calls = [] if self.max_calls is None else [f"{self.max_calls:,} calls"]
        return (
            " and ".join(
                calls + ([] if self.max_cost is None else [f"${self.max_cost:g}"])
            )
            or "nothing"
        )


class BudgetShare:
    """Shares a budget out over the passes of a run.

    Held-out rows are paid for first (the calls of each part's, by the compiled judge and by the model alone) and for
    two answers each, since an unreadable one is asked for again: what a search found must be reportable.
    What is left goes to the searches in equal parts: one with folds must not eat the next one's.
    """

    def __init__(self, budget: Budget, lm: LanguageModel, plan: Plan) -> None:
        meter = self.meter = lm.meter
        if budget.max_calls is None:
            self.calls = None
        else:
            self.calls = meter.logical + budget.max_calls
        self.cost = None if budget.max_cost is None else meter.cost + budget.max_cost
        self.unit = (plan.cost or 0.0) / max(1, plan.calls)
        paid = () if plan.parts.free else plan.parts.splits
        self.heldout = list[int]()
        for split in paid:
            calls = plan.heldout_calls * len(split.heldout) // plan.heldout
            self.heldout.append(calls * 2)
        self.fits = len(paid)
        if len(paid) > 1:  # after folds comes a fit to all rows
            self.fits += 1
        self._set(0, 1)

    def for_fit(self) -> None:
        """Grant the next fit an equal share of what is left after all held-out rows are paid for."""
        self._set(sum(self.heldout), max(1, self.fits))
        self.fits -= 1

    def for_heldout(self) -> None:
        """Grant the next held-out part its own calls, and keep back those of the later parts."""
        self._set(sum(self.heldout[1:]), 1)
        del self.heldout[0]

    def _set(self, reserve: int, share: int) -> None:
        # A candidate that ran out of budget leaves calls that are only being cancelled; they must not spend what is
        # set free here. The engine's loop takes things in turn, so that after this they have been stopped.
        engine.run(asyncio.sleep(0))
        meter = self.meter
        if self.calls is not None:
            meter.max_calls = (
                meter.logical + max(0, self.calls - reserve - meter.logical) // share
            )
        if self.cost is not None:
            meter.max_cost = (
                meter.cost
                + max(0.0, self.cost - reserve * self.unit - meter.cost) / share
            )
