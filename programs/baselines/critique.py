"""Baselines that explain, then rate: ExplainEval, Themis and Auto-J, as prompts to any model.

Themis and Auto-J are models that were trained to answer so. Here the form of their answers is asked of the judge's own
model, in prompts of ours: what is compared is the form, not their weights.

Sources: "Exploring Prompting Large Language Models as Explainable Metrics" (Mahmoudi 2023); "Themis: A Reference-free
NLG Evaluation Language Model with Flexibility and Interpretability" (Hu et al. 2024); "Generative Judge for Evaluating
Alignment" (Li et al. 2023).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import dspy

from ...signatures.judging import AnalyseThenRate, ExplainRating, ReviewResponse
from ...signatures.values import Item, Scale, Verdict
from ..aspects import Aspect
from ..models.lm import LanguageModel
from ..models.transport import Message
from ..one_aspect import OneAspectJudge
from ..prompting.forms import Form, Line, number
from ..prompting.layouts import HUNDRED, OverallLayout, number_rule
from ..prompting.predict import Answer, JudgePredict, material
from ..registry import judges

_TOKENS = 400  # of an answer
_SENTENCES = 'sentence (" " sentence){0,3}'


class CritiqueLayout(OverallLayout):
    """An explanation on one line, then a number on a scale of whole numbers. wanted: what the explanation holds."""

    def __init__(self, scale: Scale, wanted: str) -> None:
        super().__init__("before", "said")
        self.scale = scale
        self.wanted = wanted

    def form(self, inputs: Mapping[str, Any]) -> Form:
        return Form(Line("Explanation", f"{self.wanted}, on one line", _SENTENCES), number(self.scale))

    def rules(self, inputs: Mapping[str, Any]) -> str:
        return (
            f"Judge {inputs.get('aspect') or 'the quality'} of the output. Answer with two lines:\n"
            f"{self.form(inputs).shown()}\nwhere {number_rule(self.scale)}."
        )

    def max_tokens(self, inputs: Mapping[str, Any]) -> int:
        return _TOKENS


class CritiqueJudge(OneAspectJudge):
    """Base: one call that explains and rates. A subclass names its signature, its scale and what the explanation
    holds."""

    signature: ClassVar[type[dspy.Signature]]
    rated: ClassVar[Scale] = HUNDRED
    wanted: ClassVar[str]

    def __init__(self, aspect: str | Aspect = "overall", **given: Any) -> None:
        super().__init__(aspect, **given)
        self.scorer = JudgePredict(self.signature, CritiqueLayout(self.rated, self.wanted))

    @property
    def brief(self) -> bool:
        return False

    def _inputs(self, item: Item) -> dict[str, Any]:
        known = self.knowledge
        return {"task": known.description, "criteria": known.criteria, "aspect": self.aspect, **material(item)}

    async def ajudge(self, item: Item, lm: LanguageModel) -> Verdict:
        answer: Answer = await self.scorer.ask(lm, self._inputs(item))
        values = answer.read.values
        return answer.verdict(values["score"], explanation=values["explanation"])

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        return {"scorer": self.scorer.messages(self._inputs(item))}


@judges.register
class ExplainEval(CritiqueJudge):
    """ExplainEval's form: the reasons, then a number from 0 to 100."""

    kind: ClassVar[str] = "explain-eval"
    about: ClassVar[str] = "the reasons for a score, then the score from 0 to 100 (ExplainEval's form)"
    paper: ClassVar[str] = "Exploring Prompting Large Language Models as Explainable Metrics (Mahmoudi 2023)"
    signature: ClassVar[type[dspy.Signature]] = ExplainRating
    wanted: ClassVar[str] = "the reasons for the score, in one to three sentences"


@judges.register
class Themis(CritiqueJudge):
    """Themis' form: an analysis in one respect, then a rating from 1 to 5. It sees no reference."""

    kind: ClassVar[str] = "themis"
    about: ClassVar[str] = "an analysis of one aspect, then a rating from 1 to 5, without references (Themis' form)"
    paper: ClassVar[str] = "Themis: A Reference-free NLG Evaluation Language Model (Hu et al. 2024)"
    signature: ClassVar[type[dspy.Signature]] = AnalyseThenRate
    rated: ClassVar[Scale] = Scale(1, 5)
    wanted: ClassVar[str] = "the analysis, in two to four sentences that point at words of the output"

    def _inputs(self, item: Item) -> dict[str, Any]:
        return super()._inputs(item) | {"reference": None}


@judges.register
class AutoJ(CritiqueJudge):
    """Auto-J's form: a review, then a rating from 1 to 10."""

    kind: ClassVar[str] = "auto-j"
    about: ClassVar[str] = "a review, then a rating from 1 to 10 (Auto-J's form)"
    paper: ClassVar[str] = "Generative Judge for Evaluating Alignment (Li et al. 2023)"
    signature: ClassVar[type[dspy.Signature]] = ReviewResponse
    rated: ClassVar[Scale] = Scale(1, 10)
    wanted: ClassVar[str] = "the review, in two to four sentences: what is good, what is missing, what would improve it"
