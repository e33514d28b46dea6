"""A written explanation of a score that stands already, by the judge's model: one call, on request (`Judge.explains`).

It says what a reader may look for in the output. How the score came about it cannot say, since it is written after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import CallError
from ..signatures.judging import ExplainScore
from ..signatures.values import Item, Verdict
from .models.lm import LanguageModel
from .models.transport import Reply
from .prompting.answers import bare, without_thoughts
from .prompting.forms import Form, Line
from .prompting.layouts import Read, TextLayout, ended
from .prompting.predict import JudgePredict, material
from .prompting.suspicion import LOOKED_INTO, guarded

if TYPE_CHECKING:
    from .judge import Judge


class WhyLayout(TextLayout):
    """One or two sentences, without a label or quotation marks around them."""

    def __init__(self) -> None:
        super().__init__("explanation", "Answer with one or two short sentences and nothing else.", tokens=160)

    def form(self, inputs: Mapping[str, Any]) -> Form:
        return Form(Line("", "one or two short sentences", 'sentence (" " sentence)?'))

    def read(self, reply: Reply, inputs: Mapping[str, Any]) -> Read:
        text = " ".join(bare(without_thoughts(reply.text)).split())
        return super().read(replace(reply, text=ended(text) if reply.finish == "length" else text), inputs)


async def explained(judge: Judge, item: Item, verdict: Verdict, lm: LanguageModel) -> Verdict:
    """The verdict with the model's explanation below what its own says; as it is where it has no score, or has one that
    a model wrote. Sentences that address a judge are not shown to the model. A failed call leaves a note."""
    if verdict.failure is not None or (verdict.explanation and not judge.tells_by_numbers):
        return verdict
    low, high = judge.scale.low, judge.scale.high
    score = verdict.category or f"{verdict.score:.3g} on a scale from {low:g} (very poor) to {high:g} (excellent)"
    known = {"task": judge.knowledge.description, "criteria": judge.knowledge.criteria, "aspect": judge.judges_aspect}
    predict = JudgePredict(ExplainScore, WhyLayout())
    try:
        answer = await predict.ask(lm, {**known, **material(guarded(item, LOOKED_INTO)[0]), "score": score})
    except CallError as error:
        return verdict.model_copy(update={"notes": (*verdict.notes, f"no written explanation: {error}")})
    written = f"Written by {lm.name} after the score: {answer.read.values['explanation']}"
    more = {"usage": verdict.usage + answer.usage, "raw": (*verdict.raw, *answer.raw)}
    return verdict.model_copy(update={"explanation": f"{verdict.explanation}\n\n{written}".strip(), **more})
