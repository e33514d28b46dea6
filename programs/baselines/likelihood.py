"""GPTScore and BARTScore: how likely a language model finds a text after another.

Sources: "GPTScore: Evaluate as You Desire" (Fu et al. 2023), "BARTScore: Evaluating Generated Text as Text Generation"
(Yuan et al. 2021). Prompts are ours.
"""

from __future__ import annotations

import math
import os
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ... import parts
from ...errors import OptionError
from ...parts import option
from ...signatures.values import Verdict
from ..aspects import known_aspect
from ..metrics import PREFIX
from ..models.lm import is_local, language_model
from ..models.ollama import is_ollama
from ..readings.opening import open_reader
from ..readings.passages import Text, instruction, passage
from ..readings.reader import Reader
from ..registry import metrics
from .compared import Against, ComparedMetric
from .weights import Loaded, load

__all__ = ["BartScore", "BartScoreLM", "GptScore", "reader_of"]

LM_VARIABLE = "JUDGESMITH_LM"
MODEL = (
    "The model that reads: local/NAME, gguf:PATH, ollama/NAME, or a served one that tells how likely a prompt's tokens "
    f"are; none takes {LM_VARIABLE}."
)
Direction = Literal["source-output", "reference-output", "output-reference", "f"]


def reader_of(model: str | None, metric: str) -> Reader:
    """The reader of a model by its name. Raises OptionError without one, ModelError for one that cannot be read."""
    name = model or os.environ.get(LM_VARIABLE)
    if not name:
        raise OptionError(
            f"{metric} reads with a language model: write {metric}:local/qwen2.5-0.5b, or set {LM_VARIABLE}"
        )
    lm: Any = None if is_local(name) or is_ollama(name) else language_model(name)
    return open_reader(name if lm is None else "", lm).reader


class LikelihoodMetric(ComparedMetric):
    """Base: values are the mean log-probability of a text's tokens, in nats, at most 0; percent is 100 times the
    geometric mean of their probabilities."""

    def percent(self, value: float) -> float:
        return min(100.0, 100.0 * math.exp(value))

    def empty(self) -> Verdict:
        return Verdict.failed("an empty output has no likelihood")


class _Directed(LikelihoodMetric):
    """Log-probabilities in one of BARTScore's directions."""

    def logp(self, given: str, target: str) -> float:
        """The mean log-probability of a text's tokens after another."""
        raise NotImplementedError

    def value(self, output: str, other: str) -> float:
        direction = self.chosen.direction  # type: ignore[attr-defined]
        if direction in ("source-output", "reference-output"):
            return self.logp(other, output)
        if direction == "output-reference":
            return self.logp(output, other)
        return (self.logp(other, output) + self.logp(output, other)) / 2


def _direction() -> Any:
    return option(
        "source-output",
        "Whose likelihood after what: the output's after the source (faithfulness) or after a reference (precision), a "
        "reference's after the output (recall), or f, the mean of the last two.",
    )


class _ByDirection:
    """Of options: what outputs are compared with follows from the direction."""

    @property
    def against(self) -> Against:
        return "source" if getattr(self, "direction") == "source-output" else "reference"  # noqa: B009  a field there


@metrics.register
class BartScore(_Directed):
    """BARTScore with a sequence-to-sequence model of transformers. See `Options`."""

    name = "bartscore"
    about = (
        "mean log-probability of the output after the source, or of either after the other, by BART (weights needed)"
    )
    paper = "BARTScore: Evaluating Generated Text as Text Generation (Yuan et al. 2021)"
    extra = "torch"

    class Options(_ByDirection, parts.Options):
        model: str = option(
            "facebook/bart-large-cnn", "A sequence-to-sequence model: its name on the hub, or its folder.", min_length=1
        )
        direction: Direction = _direction()

    def ready(self) -> None:
        self._loaded  # noqa: B018

    @cached_property
    def _loaded(self) -> Loaded:
        return load(self.chosen.model, "AutoModelForSeq2SeqLM", f"{PREFIX}{self.name}")  # type: ignore[attr-defined]

    def logp(self, given: str, target: str) -> float:
        """As in the authors' program: over all tokens of the target, its marks of beginning and end included."""
        torch, longest = self._loaded.torch, self._loaded.longest
        tokens = {
            side: self._loaded.tokenizer(text, return_tensors="pt", truncation=True, max_length=longest)
            for side, text in (("given", given), ("target", target))
        }
        labels = tokens["target"].input_ids
        with torch.inference_mode():
            logits = self._loaded.model(
                input_ids=tokens["given"].input_ids, attention_mask=tokens["given"].attention_mask, labels=labels
            ).logits[0]
        found = torch.log_softmax(logits.float(), -1).gather(1, labels[0].unsqueeze(1))
        return float(found.mean())


@metrics.register
class BartScoreLM(_Directed):
    """BARTScore's directions with a model that continues texts: ours, not the paper's metric. Each text is read up to
    3,000 characters."""

    name = "bartscore-lm"
    about = "BARTScore's directions by a causal language model in BART's place (ours)"
    paper = "after BARTScore: Evaluating Generated Text as Text Generation (Yuan et al. 2021)"

    class Options(_ByDirection, parts.Options):
        model: str | None = option(None, MODEL, min_length=1)
        direction: Direction = _direction()

    def ready(self) -> None:
        self._reader  # noqa: B018

    @cached_property
    def _reader(self) -> Reader:
        return reader_of(self.chosen.model, f"{PREFIX}{self.name}")  # type: ignore[attr-defined]

    def logp(self, given: str, target: str) -> float:
        # The form `reverse` reads a row's source after its output.
        read = self._reader.read(passage("reverse", Text(target, given), self._reader.chat))
        return float(np.mean(read.logp))


@metrics.register
class GptScore(LikelihoodMetric):
    """GPTScore: the output as the assistant's answer to an instruction that names the aspect. Each text is read up to
    3,000 characters. See `Options`."""

    name = "gptscore"
    about = "mean log-probability of the output as the answer to an instruction that names an aspect"
    paper = "GPTScore: Evaluate as You Desire (Fu et al. 2023)"

    class Options(parts.Options):
        model: str | None = option(None, MODEL, min_length=1)
        aspect: str = option(
            "", "TASK/ASPECT of the aspect library, which the instruction asks for; none: the instruction alone."
        )
        instruction: str = option(
            "",
            "What the judged systems were asked to do; empty: the task's, where the aspect has one.",
            max_length=2000,
        )
        against: Against = option("source", "What the output answers: the source, or the best reference.")

    def ready(self) -> None:
        self._reader  # noqa: B018
        self.asked  # noqa: B018

    @cached_property
    def _reader(self) -> Reader:
        return reader_of(self.chosen.model, f"{PREFIX}{self.name}")  # type: ignore[attr-defined]

    @cached_property
    def asked(self) -> str:
        """The instruction, with the aspect's definition. Raises OptionError for an unknown aspect."""
        chosen = self.chosen
        assert isinstance(chosen, GptScore.Options)
        if not chosen.aspect:
            return chosen.instruction or instruction("")
        aspect, task = known_aspect(chosen.aspect)
        told = chosen.instruction or instruction(task.name if task else "")
        return f"{told} The result has to be excellent in {aspect.name}: {aspect.definition}"

    def value(self, output: str, other: str) -> float:
        text = Text(other, output, instruction=self.asked)
        return float(np.mean(self._reader.read(passage("assistant", text, self._reader.chat)).logp))
