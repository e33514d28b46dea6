"""The two scoring steps of Active-Critic (§4.2): McS-E over several criteria, and OS-E for the overall score.

A fitted overall score combines them.
"""

from __future__ import annotations

import math
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Annotated, Any, Self

import dspy
from pydantic import Field, StringConstraints, field_validator

from judgesmith.errors import OptionError
from judgesmith.parts import Options, option
from judgesmith.programs.active_critic.task import TaskKnowledge
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.prompting.layouts import (
    CriteriaLayout,
    Explain,
    OverallLayout,
    Reading,
)
from judgesmith.programs.prompting.predict import (
    Answer,
    Evaluator,
    JudgePredict,
    material,
)
from judgesmith.signatures.judging import ScoreCriteria, ScoreOverall
from judgesmith.signatures.values import Criterion, CriterionScore, Item


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The part of a prompt about the task: description, criteria, and the scored aspect ("" for overall quality)."""

    task: str = ""
    criteria: tuple[Criterion, ...] = ()
    aspect: str = ""

    @classmethod
    def of(cls, knowledge: TaskKnowledge, options: Any) -> Self:
        """Return what the prompts show of a method's knowledge, by its variant and ablation."""
        plain = options.variant == "vanilla"
        task = knowledge.description if options.use_task and not plain else ""
        criteria = knowledge.criteria if options.use_criteria and not plain else ()
        return cls(task, criteria, options.aspect)


class MultiCriteriaScorer(Evaluator):
    """McS-E: one call scores an output on every criterion, each with an explanation before its score or after all."""

    def __init__(self, explain: Explain, reading: Reading) -> None:
        super().__init__()
        self.predict = JudgePredict(ScoreCriteria, CriteriaLayout(explain, reading))

    def inputs(self, item: Item, context: TaskContext) -> dict[str, Any]:
        """Return the inputs of the call for a row."""
        return {"task": context.task, "criteria": context.criteria, **material(item)}

    def ascore(
        self, item: Item, context: TaskContext, lm: LanguageModel
    ) -> Coroutine[Any, Any, Answer]:
        """Return what scores a row by every criterion when it is awaited.

        Raises:
            Unreadable: For an answer without scores.
            CallError: For a failed call.
        """
        return self.answered(self.inputs(item, context), lm)

    async def aforward(
        self,
        source: str = "",
        output: str = "",
        *,
        criteria: Sequence[Criterion] = (),
        **call: Any,
    ) -> dspy.Prediction:
        """Return `criteria_scores`, by name a score in [0, 100] with its explanation, and `score`, their mean.

        Args:
            source: The source.
            output: The judged text.
            criteria: The criteria.
            **call: Context, reference, task, group, lm.

        Raises:
            Unreadable: For an answer without scores.
            CallError: For a failed call.
        """
        if not criteria:
            raise OptionError(
                "McS-E scores criteria: pass criteria=[Criterion(name, definition), …]"
            )
        prediction = await self.predict.acall(
            source=source, output=output, criteria=tuple(criteria), **call
        )
        prediction.score = mean_score(prediction.criteria_scores)
        return prediction


class OverallScorer(Evaluator):
    """OS-E: one overall score from the material, and from criterion scores where McS-E came before."""

    def __init__(self, explain: Explain, reading: Reading) -> None:
        super().__init__()
        self.predict = JudgePredict(ScoreOverall, OverallLayout(explain, reading))

    def inputs(
        self,
        item: Item,
        context: TaskContext,
        scores: Mapping[str, CriterionScore] | None = None,
    ) -> dict[str, Any]:
        """Return the inputs of the call for a row, with the criterion scores if they are shown."""
        # Where McS-E came before, the scores speak for the criteria and their definitions are left out (eq. 2).
        criteria = context.criteria if scores is None else ()
        fields = {"task": context.task, "criteria": criteria, "aspect": context.aspect}
        return {**fields, **material(item), "criteria_scores": scores}

    def ascore(
        self,
        item: Item,
        context: TaskContext,
        lm: LanguageModel,
        scores: Mapping[str, CriterionScore] | None = None,
    ) -> Coroutine[Any, Any, Answer]:
        """Return what scores a row overall when it is awaited.

        Raises:
            Unreadable: For an answer without a score.
            CallError: For a failed call.
        """
        return self.answered(self.inputs(item, context, scores), lm)

    async def aforward(
        self, source: str = "", output: str = "", **call: Any
    ) -> dspy.Prediction:
        """Return `score` in [0, 100] and `explanation`.

        Args:
            source: The source.
            output: The judged text.
            **call: Context, reference, task, criteria, aspect, criteria_scores (of McS-E), group, lm.

        Raises:
            Unreadable: For an answer without a score.
            CallError: For a failed call.
        """
        return await self.predict.acall(source=source, output=output, **call)


def mean_score(scores: Mapping[str, CriterionScore]) -> float:
    """Return the mean of the readable criterion scores in [0, 100]; NaN without any."""
    usable = [c.score for c in scores.values() if not math.isnan(c.score)]
    return sum(usable) / len(usable) if usable else math.nan


class Combination(Options):
    """A fitted overall score: the weighted mean of criterion scores, with OS-E's own score where that helps.

    There is no intercept: agreement does not see one, and the calibration learns the user's scale anyway.
    """

    overall: float = option(0.0, "The share of OS-E's score.", ge=0, lt=1)
    criteria: Annotated[
        dict[
            Annotated[str, StringConstraints(min_length=1, max_length=80)],
            Annotated[float, Field(ge=0, le=1)],
        ],
        Field(
            min_length=1, max_length=64, description="Weights of the criteria, by name."
        ),
    ]

    @field_validator("criteria")
    @classmethod
    def _weighty(cls, weights: dict[str, float]) -> dict[str, float]:
        if not any(weights.values()):
            raise OptionError("no criterion has a weight above 0")
        return weights

    def __call__(
        self, scores: Mapping[str, CriterionScore], overall: float = math.nan
    ) -> float:
        """Return the combined percent in [0, 100].

        A criterion without a score leaves its weight to the others, as in a plain mean. NaN if none with a weight has a
        score, or if OS-E's has a weight and is NaN: half of a fitted rule is another rule.
        """
        weights = list[float]()
        percents = list[float]()
        for name, weight in self.criteria.items():
            if weight > 0 and name in scores and not math.isnan(scores[name].score):
                weights.append(weight)
                percents.append(scores[name].score)
        if not percents:
            return math.nan
        percent: float = sum(map(mul, weights, percents)) / sum(weights)
        # The least weights that a float can hold are too coarse for a quotient.
        percent = min(max(percents), max(min(percents), percent))
        if self.overall:
            percent = self.overall * overall + (1 - self.overall) * percent
        return percent if math.isnan(percent) else min(100.0, max(0.0, percent))
