"""Demonstrations without a search: some labelled rows as they are, those most like each input, or none. Judged and
recorded like what a search finds, so that a search can be compared with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import OptionError
from ...programs.prompting.neighbours import MOST_SHOWN, Neighbours, fits_pool
from ..agreement.correlation import Level
from ..progress import Progress
from .base import DemonstrationSearch, Proposal, SearchContext, spread, with_demos
from .racing import Racing


class LabeledFewShot(DemonstrationSearch):
    """Labelled rows as demonstrations, one set, drawn by `seed`.

    demos: how many at most (one of a group). stratified: spread over the range of human scores; else any rows. They
    stay unless zero-shot came out higher on the validation rows, or they are disqualified (`max_failed`): `sure` asks
    for more than that, as in the searches.
    """

    name = "labeled-few-shot"

    def __init__(
        self,
        demos: int = 4,
        *,
        stratified: bool = True,
        level: Level = "pooled",
        max_failed: float = 0.1,
        sure: float = 0.0,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        if demos < 1:
            raise OptionError(f"demos must be 1 or more; got {demos}")
        super().__init__(level=level, max_demos=demos, max_failed=max_failed, sure=sure, seed=seed, progress=progress)
        self.stratified = stratified

    def settings(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "level": self.level,
            "max_demos": self.max_demos,
            "stratified": self.stratified,
            "max_failed": self.max_failed,
            "sure": self.sure,
        }

    def evaluations(self) -> int:
        return 2

    def explore(self, context: SearchContext) -> str | None:
        rng = np.random.default_rng([self.seed, 1])
        if self.stratified:
            picked = spread(context.pool, range(len(context.pool)), self.max_demos, rng)
        else:
            first = {context.pool[i].group: int(i) for i in rng.permutation(len(context.pool))}
            picked = list(first.values())[: self.max_demos]
        program = with_demos(context.base, picked, context.pool, None, "labels")
        self.judge(context, [Proposal("labeled few-shot", "labels", picked, program)])
        return None


class KnnFewShot(DemonstrationSearch):
    """Each input's own demonstrations: the labelled rows that are most like it
    (`programs.prompting.neighbours`), one of a group.

    Candidates are prompts with 2, 4 and max_demos of them, as far as max_demos allows. A training row is judged without
    its own group among them, as everywhere. The pool is kept in the artifact; of more rows than it may hold, `seed`
    draws some. Prompts share less than with the same demonstrations for all, so that local models take longer.
    """

    name = "knn"

    def __init__(
        self,
        *,
        level: Level = "pooled",
        max_demos: int = 4,
        max_failed: float = 0.1,
        sure: float = 0.7,
        racing: bool | Racing = False,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(
            level=level,
            max_demos=max_demos,
            max_failed=max_failed,
            sure=sure,
            racing=racing,
            seed=seed,
            progress=progress,
        )
        if max_demos > MOST_SHOWN:
            raise OptionError(f"knn shows at most {MOST_SHOWN} demonstrations; got {max_demos}")

    def settings(self) -> dict[str, Any]:
        found = self._settings()
        del found["anchor"], found["accept"]  # for bootstrapped demonstrations; these are people's labels
        return found

    def evaluations(self) -> int:
        return 1 + len(self._sizes())

    def _sizes(self) -> list[int]:
        return sorted({k for k in (2, 4, self.max_demos) if k <= self.max_demos})

    def explore(self, context: SearchContext) -> str | None:
        order = np.random.default_rng([self.seed, 2]).permutation(len(context.pool)).tolist()
        fields = ("source", "output", "context", "reference")
        texts = [[context.pool[i].get(name) or "" for name in fields] for i in order]
        pool = sorted(order[place] for place in fits_pool(texts))
        proposals = []
        for shown in self._sizes():
            program = with_demos(context.base, pool, context.pool, None, "labels")
            for predictor in program.taught():
                predictor.demos = Neighbours(shown, predictor.demos)
            # A candidate counts as many demonstrations as one of its prompts has; which, each input says.
            proposals.append(Proposal(f"{shown} nearest of {len(pool)}", "labels", pool[:shown], program))
        return self._ran_out(context) if self.judge(context, proposals) else None


class NoSearch(DemonstrationSearch):
    """The judge as it is, without demonstrations."""

    name = "none"
    searches = False

    def settings(self) -> dict[str, Any]:
        return {"name": self.name}

    def evaluations(self) -> int:
        return 1

    def explore(self, context: SearchContext) -> str | None:
        return None
