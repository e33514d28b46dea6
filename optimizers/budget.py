"""How the budget of a run is shared out over its passes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..programs.models import engine
from ..programs.models.lm import LanguageModel
from .report import Budget, Plan


class BudgetShare:
    """Shares a budget out over the passes of a run. Held-out rows are paid for first (`heldout`: the calls of each
    part's, by the compiled judge and by the zero-shot one) and for two answers each, since an unreadable one is asked
    for again: what a search found must be reportable. What is left goes to the searches in equal parts: one with folds
    must not eat the next one's."""

    def __init__(self, budget: Budget, lm: LanguageModel, plan: Plan, heldout: Sequence[int]) -> None:
        meter = self.meter = lm.meter
        self.calls = None if budget.max_calls is None else meter.logical + budget.max_calls
        self.cost = None if budget.max_cost is None else meter.cost + budget.max_cost
        self.unit = (plan.cost or 0.0) / plan.calls
        self.heldout = [calls * 2 for calls in heldout]
        self.fits = len(heldout) + (len(heldout) > 1)  # after folds comes a fit on all rows
        self._set(0, 1)

    def for_fit(self) -> None:
        self._set(sum(self.heldout), max(1, self.fits))
        self.fits -= 1

    def for_heldout(self) -> None:
        self._set(sum(self.heldout[1:]), 1)
        del self.heldout[0]

    def _set(self, reserve: int, share: int) -> None:
        # A candidate that ran out of budget leaves calls that are only being cancelled; they must not spend what is
        # set free here. The engine's loop takes things in turn, so that after this they have been stopped.
        engine.run(asyncio.sleep(0))
        meter = self.meter
        if self.calls is not None:
            meter.max_calls = meter.logical + max(0, self.calls - reserve - meter.logical) // share
        if self.cost is not None:
            meter.max_cost = meter.cost + max(0.0, self.cost - reserve * self.unit - meter.cost) / share
