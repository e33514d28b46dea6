"""GPTScore and BARTScore: how likely a language model finds a text after another.

Sources: "GPTScore: Evaluate as You Desire" (Fu et al. 2023), "BARTScore: Evaluating Generated Text as Text Generation"
(Yuan et al. 2021). Prompts are ours.
"""

from __future__ import annotations

import math
import os
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ... import parts
from ...errors import OptionError
from ...parts import option
from ..aspects import known_aspect
from ..models.lm import is_local, language_model
from ..models.ollama import is_ollama
from ..readings.bindings.opening import open_reader
from ..readings.passages import INSTRUCTIONS, Text, passage
from ..readings.reader import Reader
from ..registry import metrics
from .compared import Against, PairMetric, needed, opening
from .metrics import PREFIX

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


class LikelihoodMetric(PairMetric):
    """Base: values are the mean log-probability of a text's tokens, in nats, at most 0; percent is 100 times the
    geometric mean of their probabilities."""

    empty = "an empty output has no likelihood"

    def percent(self, value: float) -> float:
        return min(100.0, 100.0 * math.exp(value))


@metrics.register
class BartScore(LikelihoodMetric):
    """BARTScore with a sequence-to-sequence model of transformers, in one of the paper's directions. See `Options`."""

    name = "bartscore"
    about = (
        "mean log-probability of the output after the source, or of either after the other, by BART (weights needed)"
    )
    paper = "BARTScore: Evaluating Generated Text as Text Generation (Yuan et al. 2021)"
    extra = "torch"

    class Options(parts.Options):
        model: str = option(
            "facebook/bart-large-cnn", "A sequence-to-sequence model: its name on the hub, or its folder.", min_length=1
        )
        direction: Direction = option(
            "source-output",
            "Whose likelihood after what: the output's after the source (faithfulness) or after a reference "
            "(precision), a reference's after the output (recall), or f, the mean of the last two.",
        )

        @property
        def against(self) -> Against:
            return "source" if self.direction == "source-output" else "reference"

    def ready(self) -> None:
        self._loaded  # noqa: B018

    @cached_property
    def _loaded(self) -> tuple[Any, Any, Any]:
        return _seq2seq(self.chosen.model)  # type: ignore[attr-defined]

    def value(self, output: str, other: str) -> float:
        direction = self.chosen.direction  # type: ignore[attr-defined]
        pairs = [] if direction == "output-reference" else [(other, output)]
        pairs += [(output, other)] if direction in ("output-reference", "f") else []
        return float(np.mean([self.logp(*pair) for pair in pairs]))

    def logp(self, before: str, target: str) -> float:
        """The mean log-probability of a text's tokens after another, as in the authors' program: over all tokens, the
        marks of beginning and end included."""
        torch, model, tokenizer = self._loaded
        limits = (getattr(model.config, "max_position_embeddings", None), getattr(tokenizer, "model_max_length", None))
        longest = min((int(n) for n in limits if n and n < 100_000), default=512)
        read, labels = (
            tokenizer(text, return_tensors="pt", truncation=True, max_length=longest) for text in (before, target)
        )
        with torch.inference_mode():
            logits = model(
                input_ids=read.input_ids, attention_mask=read.attention_mask, labels=labels.input_ids
            ).logits[0]
        return float(torch.log_softmax(logits.float(), -1).gather(1, labels.input_ids[0].unsqueeze(1)).mean())


@cache
def _seq2seq(name: str) -> tuple[Any, Any, Any]:
    """torch, a model in full floats and its tokenizer, by the name of a folder or by that under which its hub has it:
    taken from transformers' own cache, and fetched where it is not there.

    Raises MissingExtraError without torch and transformers, ModelError where the model cannot be fetched or opened.
    """
    torch, transformers = needed("torch", BartScore), needed("transformers", BartScore)
    folder = Path(name).expanduser()
    place = folder if folder.is_dir() else name

    def opened(**options: Any) -> tuple[Any, Any, Any]:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(place, dtype=torch.float32, **options)
        return torch, model.eval(), tokenizer

    with opening(BartScore, name):
        try:
            return opened(local_files_only=True)
        except OSError:  # it is not here; a damaged file raises whatever its reader likes
            return opened()


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
            return chosen.instruction or INSTRUCTIONS["general"]
        aspect, task = known_aspect(chosen.aspect)
        given = chosen.instruction or INSTRUCTIONS.get(task.name if task else "", INSTRUCTIONS["general"])
        return f"{given} The result has to be excellent in {aspect.name}: {aspect.definition}"

    def value(self, output: str, other: str) -> float:
        text = Text(other, output, instruction=self.asked)
        return float(np.mean(self._reader.read(passage(text, self._reader.chat)).logp))
