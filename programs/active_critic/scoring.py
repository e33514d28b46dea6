"""The two scoring steps of Active-Critic (§4.2): McS-E over several criteria, OS-E for the overall score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dspy

from ...signatures.scoring import ScoreCriteria, ScoreOverall
from ...signatures.values import Criterion, CriterionScore, Item
from ..models.lm import LanguageModel
from ..prompting.layouts import CriteriaLayout, Explain, OverallLayout, Reading
from ..prompting.predict import Answer, JudgePredict


@dataclass(frozen=True, slots=True)
class Known:
    """What a prompt says of the task: its description, its criteria, and the aspect that is scored ("" for overall
    quality)."""

    task: str = ""
    criteria: tuple[Criterion, ...] = ()
    aspect: str = ""


def material(item: Item) -> dict[str, Any]:
    return {"source": item.source, "context": item.context, "reference": item.reference, "output": item.output}


class MultiCriteriaScorer(dspy.Module):  # type: ignore[misc]
    """McS-E: one call scores an output on every criterion, each with an explanation before its score."""

    def __init__(self, explain: Explain, reading: Reading) -> None:
        super().__init__()
        # Explanations that come after the score exist only at the overall step: here they would cost a long answer
        # and change nothing.
        self.predict = JudgePredict(ScoreCriteria, CriteriaLayout("before" if explain == "before" else "none", reading))

    def inputs(self, item: Item, known: Known) -> dict[str, Any]:
        return {"task": known.task, "criteria": known.criteria, **material(item)}

    async def ascore(self, item: Item, known: Known, lm: LanguageModel) -> Answer:
        return await self.predict.ask(lm, self.inputs(item, known), group=item.group)


class OverallScorer(dspy.Module):  # type: ignore[misc]
    """OS-E: one overall score from the material, and from criterion scores where McS-E came before."""

    def __init__(self, explain: Explain, reading: Reading) -> None:
        super().__init__()
        self.predict = JudgePredict(ScoreOverall, OverallLayout(explain, reading))

    def inputs(self, item: Item, known: Known, scores: Mapping[str, CriterionScore] | None = None) -> dict[str, Any]:
        # Where McS-E came before, the scores speak for the criteria and their definitions are left out (eq. 2).
        return {
            "task": known.task,
            "criteria": () if scores is not None else known.criteria,
            "aspect": known.aspect,
            **material(item),
            "criteria_scores": scores,
        }

    async def ascore(
        self, item: Item, known: Known, lm: LanguageModel, scores: Mapping[str, CriterionScore] | None = None
    ) -> Answer:
        return await self.predict.ask(lm, self.inputs(item, known, scores), group=item.group)


def mean_score(scores: Mapping[str, CriterionScore]) -> float:
    """The mean of the readable criterion scores in [0, 100]; NaN where there is none."""
    usable = [c.score for c in scores.values() if not math.isnan(c.score)]
    return sum(usable) / len(usable) if usable else math.nan
