"""The calls that compiling would make: those of its stages, which add up, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from judgesmith.datasets.records import Labels
from judgesmith.optimizers.search.base import DemonstrationSearch
from judgesmith.programs.active_critic.task import TaskInference
from judgesmith.programs.capabilities import (
    HasForms,
    InfersTask,
    inquiry_of,
    stops_early,
)
from judgesmith.programs.judge import Judge
from judgesmith.programs.refining import fitted_always

#: Calls at most to find out what a model can do.
PROBES = 5


@dataclass(frozen=True, slots=True)
class Spending:
    """Calls at most by what they do, and steps of the progress bar."""

    scoring: int = 0
    inferring: int = 0
    """Of task inference."""
    proposing: int = 0
    """Of a model that writes what a search tries."""
    writing: int = 0
    """Of references, once a document, whatever the number of passes."""
    steps: int = 0
    passes: int = 0
    """Over the rows of a fit, or of a held-out side."""

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.scoring + other.scoring,
            self.inferring + other.inferring,
            self.proposing + other.proposing,
            self.writing + other.writing,
            self.steps + other.steps,
            self.passes + other.passes,
        )

    @property
    def calls(self) -> int:
        """Return the sum of all calls."""
        return self.scoring + self.inferring + self.proposing + self.writing

    def tokens(self, row: int, shown: int, batch: int) -> tuple[int, int]:
        """Return the approximate tokens of prompts and of answers.

        Args:
            row: Tokens of a row's texts.
            shown: Number of demonstrations in a prompt.
            batch: Number of rows in a step of task inference.
        """
        prompt = self.scoring * (row * (1 + shown) + 250)
        prompt += self.inferring * (row * batch + 300) + self.proposing * (
            row * 8 + 1500
        )
        return prompt, self.scoring * 45 + self.inferring * 150 + self.proposing * 300


@dataclass(frozen=True, slots=True)
class Stages:
    """The spending of the stages of a run."""

    judge: Judge
    search: DemonstrationSearch
    inference: TaskInference
    sizes: Sequence[int]
    """Training rows of each fit."""
    heldout: int
    taught: bool
    """Whether answers are written that demonstrations show, in a pass of their own."""
    refine: bool

    @property
    def rows(self) -> int:
        """Training rows of all fits."""
        return sum(self.sizes)

    @property
    def learns(self) -> bool:
        """Return True if task or criteria are inferred."""
        return inquiry_of(self.judge.method) is not None

    def tried(self, *, dearer: bool) -> int:
        """Return the forms of answers that are tried in a pass each, beside a dearer one; 0 where none is chosen."""
        method = self.judge.method
        forms = 0
        if isinstance(method, HasForms):
            forms = len(method.forms(logprobs=True))
        if (
            isinstance(method, InfersTask)
            and self.refine
            and self.learns
            and method.without_inferred() is not None
        ):
            forms += 1
        return forms if forms + int(dearer) > 1 else 0

    def inferring(self) -> Spending:
        """Return what task inference takes."""
        if self.learns:
            calls = sum(self.inference.calls(size) for size in self.sizes)
        else:
            calls = 0
        return Spending(inferring=calls, steps=calls)

    def trials(self, dearest: Judge | None) -> Spending:
        """Return the spending of the choice of a form.

        Args:
            dearest: The judge in a form of more calls a row, if one is tried.
        """
        tried = self.tried(dearer=dearest is not None)
        calls = tried * self.judge.method.cost().calls_per_row
        passes = tried
        if dearest is not None:
            calls = calls + dearest.method.cost().calls_per_row
            passes = passes + 1
        return Spending(
            scoring=self.rows * calls,
            steps=self.rows * passes,
            passes=len(self.sizes) * passes,
        )

    def searching(self, judge: Judge) -> Spending:
        """Return the spending of the search.

        Args:
            judge: The judge in its dearest form.
        """
        passes = self.search.evaluations() + int(self.taught)
        fits = self.rows if fitted_always(judge.method) else 0
        proposed = sum(self.search.proposals(self.judge, size) for size in self.sizes)
        scoring = self.rows * passes * self.search.calls_per_row(judge)
        return Spending(
            scoring=scoring,
            proposing=proposed,
            steps=self.rows * passes + fits,
            passes=len(self.sizes) * passes,
        )

    def measuring(self, judge: Judge) -> Spending:
        """Return the spending on held-out rows, by the zero-shot judge and by the compiled one.

        Args:
            judge: The judge in its dearest form.
        """
        calls = judge.method.cost().calls_per_row + self.search.calls_per_row(judge)
        passes = 2 * len(self.sizes) if self.heldout else 0
        return Spending(
            scoring=self.heldout * calls, steps=2 * self.heldout, passes=passes
        )

    def writing(self, labels: Labels) -> Spending:
        """Return what texts take that are written once a document."""
        documents = len({row.doc_id for row in labels.rows})
        return Spending(writing=self.judge.method.cost().calls_per_document * documents)

    def least(self, dearest: Judge | None) -> int:
        """Return the fewest calls that still give a judge.

        They are trials and zero-shot in each fit's equal share of a budget, and held-out rows judged twice.
        """
        judge = dearest or self.judge
        zero_shot = self.rows * self.search.calls_per_row(judge)
        fits = self.inferring().calls + self.trials(dearest).calls + zero_shot
        share = math.ceil(fits / self.rows * max(self.sizes))
        return PROBES + share * len(self.sizes) + 2 * self.measuring(judge).calls


def taught(search: DemonstrationSearch, judge: Judge, *, teacher: bool) -> bool:
    """Return True if a pass of its own writes what demonstrations show.

    The pass is the teacher's, or the judge's whole answers if scoring otherwise stops early.
    """
    return search.evaluations() > 1 and (teacher or stops_early(judge.method))
