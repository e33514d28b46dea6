"""The two scoring steps of Active-Critic (§4.2): McS-E over several criteria, OS-E for the overall score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack, cast

import dspy

from ...errors import OptionError
from ...signatures.scoring import ScoreCriteria, ScoreOverall
from ...signatures.values import Criterion, CriterionScore, Item, Verdict
from ..models.lm import LanguageModel
from ..prompting.evaluator import Call, Evaluator
from ..prompting.layouts import CriteriaLayout, Explain, OverallLayout, Reading
from ..prompting.predict import Answer, JudgePredict, answer_of


@dataclass(frozen=True, slots=True)
class Known:
    """What a prompt says of the task: its description, its criteria, and the aspect that is scored ("" for overall
    quality)."""

    task: str = ""
    criteria: tuple[Criterion, ...] = ()
    aspect: str = ""


def material(item: Item) -> dict[str, Any]:
    return {"source": item.source, "context": item.context, "reference": item.reference, "output": item.output}


class MultiCriteriaScorer(Evaluator):
    """McS-E: one call scores an output on every criterion, each with an explanation before its score or after all."""

    def __init__(self, explain: Explain, reading: Reading) -> None:
        super().__init__()
        self.predict = JudgePredict(ScoreCriteria, CriteriaLayout(explain, reading))

    def inputs(self, item: Item, known: Known) -> dict[str, Any]:
        return {"task": known.task, "criteria": known.criteria, **material(item)}

    async def ascore(self, item: Item, known: Known, lm: LanguageModel) -> Answer:
        """Raises Unreadable or CallError."""
        said = {"criteria": known.criteria, "task": known.task}
        return cast(Answer, answer_of(await self.acall(**material(item), **said, lm=lm)))

    async def aforward(
        self,
        source: str = "",
        output: str = "",
        *,
        context: str | None = None,
        reference: str | None = None,
        criteria: Sequence[Criterion] = (),
        task: str = "",
        **call: Unpack[Call],
    ) -> dspy.Prediction:
        """`criteria_scores`: by name a score in [0, 100] with its explanation. Raises Unreadable or CallError."""
        if not criteria:
            raise OptionError("McS-E scores criteria: pass criteria=[Criterion(name, definition), …]")
        item, known = Item(output, source, context, reference), Known(task, tuple(criteria))
        return await self.predict.acall(**self.inputs(item, known), **call)


class OverallScorer(Evaluator):
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
        """Raises Unreadable or CallError."""
        said = {"criteria": known.criteria, "task": known.task, "aspect": known.aspect}
        return cast(Answer, answer_of(await self.acall(**material(item), **said, criteria_scores=scores, lm=lm)))

    async def aforward(
        self,
        source: str = "",
        output: str = "",
        *,
        context: str | None = None,
        reference: str | None = None,
        criteria: Sequence[Criterion] = (),
        criteria_scores: Mapping[str, CriterionScore] | None = None,
        task: str = "",
        aspect: str = "",
        **call: Unpack[Call],
    ) -> dspy.Prediction:
        """`score` in [0, 100] and `explanation`. criteria_scores: as McS-E gave them. Raises Unreadable or
        CallError."""
        item, known = Item(output, source, context, reference), Known(task, tuple(criteria), aspect)
        return await self.predict.acall(**self.inputs(item, known, criteria_scores), **call)


def bare_verdict(answer: Answer) -> Verdict:
    """The verdict of one short answer that holds a score alone."""
    return Verdict(
        score=math.nan,
        percent=answer.read.values["score"],
        repaired=answer.read.repaired,
        notes=answer.read.notes,
        usage=answer.usage,
        raw=answer.raw,
    )


def mean_score(scores: Mapping[str, CriterionScore]) -> float:
    """The mean of the readable criterion scores in [0, 100]; NaN where there is none."""
    usable = [c.score for c in scores.values() if not math.isnan(c.score)]
    return sum(usable) / len(usable) if usable else math.nan
