"""Outputs that a model writes, to be judged: systems of several sizes give texts of several qualities.

Source: OpeNLGauge (§5.1).
"""

from __future__ import annotations

from typing import cast

import dspy

from ..errors import CallError
from ..programs.models.lm import LanguageModel
from ..programs.prompting.layouts import TextLayout
from ..programs.prompting.predict import Evaluator, JudgePredict

__all__ = ["OutputWriter"]


class WriteOutput(dspy.Signature):  # type: ignore[misc]
    """Do what the task says with the source. Answer with the result and nothing else."""

    task: str = dspy.InputField(desc="what is to be done")
    source: str = dspy.InputField(desc="what to do it with")
    context: str = dspy.InputField(desc="background to rest on")
    output: str = dspy.OutputField(desc="the result")


class OutputWriter(Evaluator):
    """Writes one output for a source. instruction: what is to be done, as one would ask an assistant."""

    def __init__(self, instruction: str, *, tokens: int = 512) -> None:
        super().__init__()
        self.instruction = instruction
        rule = "Answer with the text alone: no introduction, no quotation marks, no comment."
        self.predict = JudgePredict(WriteOutput, TextLayout("output", rule, tokens=tokens))

    async def write(self, source: str, context: str | None, lm: LanguageModel) -> str:
        """Raises CallError where the model gives nothing."""
        answer = await self.predict.ask(lm, {"task": self.instruction, "source": source, "context": context})
        text = cast(str, answer.read.values["output"]).strip()
        if not text:
            raise CallError(f"{lm.name}: the answer is empty")
        return text
