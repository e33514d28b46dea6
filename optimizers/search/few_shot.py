"""Demonstrations without a search: some labelled rows as they are, or none. Judged and recorded like what a search
finds, so that a search can be compared with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...parts import option
from ..registry import optimizers
from .base import (
    Demonstrations,
    DemonstrationSearch,
    DemoOptions,
    Proposal,
    SearchContext,
    SureOptions,
)


@optimizers.register
class LabeledFewShot(DemonstrationSearch):
    """Labelled rows as demonstrations, one set, drawn by `seed`, no two of one group.

    They stay unless zero-shot came out higher on the validation rows, or they are disqualified (`max_failed`): a `sure`
    above 0 asks for more than that, as in the searches.
    """

    name = "labeled-few-shot"
    about = "one set of labelled rows as demonstrations, without a search"
    uses_teacher = False

    class Options(SureOptions, DemoOptions):
        stratified: bool = option(True, "Rows are spread over the range of human scores; no: any rows.")
        sure: float = option(
            0.0, "Share of paired resamples in which the demonstrations must beat zero-shot to stay.", ge=0, lt=1
        )

    def __init__(self, max_demos: int = 4, **options: Any) -> None:
        super().__init__(max_demos=max_demos, **options)

    def evaluations(self) -> int:
        return 2

    def explore(self, context: SearchContext) -> None:
        rng, labelled = np.random.default_rng([self.seed, 1]), Demonstrations(context, self, None)
        if self.stratified:
            picked = labelled.spread("labels", self.max_demos, rng)
        else:
            first = {context.pool[i].group: int(i) for i in rng.permutation(len(context.pool))}
            picked = list(first.values())[: self.max_demos]
        program = labelled.shown_by(context.base, picked, "labels")
        self.judge(context, Proposal("labeled few-shot", "labels", picked, program))


@optimizers.register
class NoSearch(DemonstrationSearch):
    """The judge as it is, without demonstrations."""

    name = "none"
    about = "no search: the judge as it is, without demonstrations"
    searches = uses_teacher = False

    def evaluations(self) -> int:
        return 1

    def explore(self, context: SearchContext) -> None:
        """There is nothing to try."""
