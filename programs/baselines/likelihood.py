"""GPTScore: how likely a language model finds a text as the answer to an instruction.

Source: "GPTScore: Evaluate as You Desire" (Fu et al. 2023). Prompts are ours.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from judgesmith import parts
from judgesmith.errors import OptionError
from judgesmith.parts import option
from judgesmith.programs.aspects import known_aspect
from judgesmith.programs.baselines.compared import Against, PairMetric
from judgesmith.programs.baselines.metrics import PREFIX
from judgesmith.programs.models.lm import language_model
from judgesmith.programs.models.ollama import is_ollama
from judgesmith.programs.models.provider import is_local
from judgesmith.programs.readings.bindings.opening import open_reader
from judgesmith.programs.readings.passages import INSTRUCTIONS, Text
from judgesmith.programs.readings.reader import Reader
from judgesmith.programs.readings.windows import read_windows, windows
from judgesmith.programs.registry import metrics

LM_VARIABLE = "JUDGESMITH_LM"
MODEL = (
    "The model that reads: local/NAME, gguf:PATH, ollama/NAME, or a served one that tells how likely a prompt's tokens "
    f"are; none takes {LM_VARIABLE}."
)


def reader_of(model: str | None, metric: str) -> Reader:
    """Return the reader of a model by its name.

    Raises:
        OptionError: Without a name.
        ModelError: For a model that cannot be read.
    """
    name = model or os.environ.get(LM_VARIABLE)
    if not name:
        raise OptionError(
            f"{metric} reads with a language model: write {metric}:local/qwen2.5-0.5b, or set {LM_VARIABLE}"
        )
    lm: Any = None if is_local(name) or is_ollama(name) else language_model(name)
    return open_reader(name if lm is None else "", lm).reader


@metrics.register
class GptScore(PairMetric):
    """GPTScore: the output as the assistant's answer to an instruction that names the aspect.

    Values are the mean log-probability of its tokens, in nats, at most 0; percent is 100 times the geometric mean of
    their probabilities. Texts that the model does not hold at once are read in windows (`readings.windows`). See
    `Options`.
    """

    name = "gptscore"
    about = "mean log-probability of the output as the answer to an instruction that names an aspect"
    paper = "GPTScore: Evaluate as You Desire (Fu et al. 2023)"
    empty = "an empty output has no likelihood"

    class Options(parts.Options):
        model: str | None = option(None, MODEL, min_length=1)
        aspect: str = option(
            "",
            "TASK/ASPECT of the aspect library, which the instruction asks for; none: the instruction alone.",
        )
        instruction: str = option(
            "",
            "What the judged systems were asked to do; empty: the task's, where the aspect has one.",
            max_length=2000,
        )
        against: Against = option(
            "source", "What the output answers: the source, or the best reference."
        )

    def ready(self) -> None:
        """Load the model, and look up the aspect."""
        self._reader  # noqa: B018
        self.asked  # noqa: B018

    @cached_property
    def _reader(self) -> Reader:
        return reader_of(self.chosen.model, f"{PREFIX}{self.name}")  # type: ignore[attr-defined]

    @cached_property
    def asked(self) -> str:
        """Return the instruction, with the aspect's definition.

        Raises:
            OptionError: For an unknown aspect.
        """
        chosen = self.chosen
        assert isinstance(chosen, GptScore.Options)
        if not chosen.aspect:
            return chosen.instruction or INSTRUCTIONS["general"]
        aspect, task = known_aspect(chosen.aspect)
        instruction = chosen.instruction or INSTRUCTIONS.get(
            task.name if task else "", INSTRUCTIONS["general"]
        )
        return f"{instruction} The result has to be excellent in {aspect.name}: {aspect.definition}"

    def value(self, output: str, other: str) -> float:
        """Return the mean log-probability of the output's tokens after the other text, in nats."""
        read = windows(Text(other, output, instruction=self.asked), self._reader)
        return float(np.mean(read_windows(self._reader, read.each).logp))

    def partly(self, output: str, others: Sequence[str]) -> dict[str, float]:
        """Return the share of the other text that fits the model's context."""
        against = str(self.chosen.against)  # type: ignore[attr-defined]
        context = self._reader.ability.context
        if not output or not context:
            return {}
        share = min(
            windows(Text(other, output, instruction=self.asked), self._reader).source
            for other in others
        )
        return {against: round(share, 4)} if share < 1 else {}

    def percent(self, value: float) -> float:
        """Return the mean probability of a token, in percent."""
        return min(100.0, 100.0 * math.exp(value))
