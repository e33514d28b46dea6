"""Demonstrations without a search: some labelled rows as they are, or none.

Judged and recorded like what a search finds, so that a search can be compared with them.
"""

from __future__ import annotations

from typing import Any

import dspy
import numpy as np

from judgesmith.optimizers.registry import optimizers
from judgesmith.optimizers.search.base import (
    Demonstrations,
    DemonstrationSearch,
    Proposal,
    SearchContext,
    SureOptions,
    bounded,
)
from judgesmith.parts import option
from judgesmith.programs.prompting.saved import MOST_DEMOS

#: Demonstrations where nothing else is asked for.
DEMOS = 16


@optimizers.register
class LabeledFewShot(DemonstrationSearch):
    """DSPy's `LabeledFewShot`: labelled rows as demonstrations, one set, drawn by `seed`.

    k: as `max_demos`, by DSPy's name.

    They stay unless the model alone came out higher on the validation rows, or they are disqualified (`max_failed`): a
    `sure` above 0 asks for more than that, as in the searches.
    """

    name = "labeled-few-shot"
    about = "one set of labelled rows as demonstrations, without a search"
    uses_teacher = adaptive = False

    class Options(SureOptions):
        sure: float = option(
            0.0,
            "Share of paired resamples in which the demonstrations must beat the prompt without them to stay.",
            ge=0,
            lt=1,
        )
        max_demos: int | None = option(
            None,
            "Demonstrations in the prompt; none: 16, at most half of the rows and what the model reads.",
            ge=1,
            le=MOST_DEMOS,
        )

    def __init__(self, k: int | None = None, **options: Any) -> None:
        super().__init__(**options if k is None else options | {"max_demos": k})

    def evaluations(self) -> int:
        """Return 2: the model alone, and the one set."""
        return 2

    def shown(self, rows: int, room: int | None = None) -> int:
        """Return the demonstrations in a prompt, on average of the model alone and the set."""
        return self._size(rows, room) // 2

    def _size(self, rows: int, room: int | None) -> int:
        return bounded(DEMOS, rows, room) if self.max_demos is None else self.max_demos

    def explore(self, context: SearchContext) -> None:
        """Judge the set of demonstrations that DSPy's optimizer draws."""
        order = np.random.default_rng([self.seed, 1]).permutation(len(context.pool))
        train = [dspy.Example(row=int(i)).with_inputs("row") for i in order]
        size = self._size(len(context.pool), context.room)
        drawn = dspy.LabeledFewShot(k=size).compile(
            dspy.Predict("row -> percent"), trainset=train
        )
        picked = [demo.row for demo in drawn.demos]
        program = Demonstrations(context, self, None).shown_by(
            context.base, picked, "labels"
        )
        self.judge(context, Proposal("labeled few-shot", "labels", picked, program))


@optimizers.register
class NoSearch(DemonstrationSearch):
    """The judge as it is, without demonstrations."""

    name = "zero-shot"
    aliases = ("none",)
    about = "no search: the judge as it is, without demonstrations"
    searches = uses_teacher = adaptive = False

    def evaluations(self) -> int:
        """Return 1: the model alone."""
        return 1

    def explore(self, context: SearchContext) -> None:
        """There is nothing to try."""
