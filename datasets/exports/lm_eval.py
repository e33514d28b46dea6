"""lm-eval: the samples that it logs, a line each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from judgesmith.datasets.exports import JUDGES, Record, Results, exports
from judgesmith.datasets.exports.samples import (
    UnreadableError,
    items,
    object_of,
    shown,
    text,
    verdict,
)
from judgesmith.datasets.marks import word_set

#: Keys that every sample has.
_KEYS = frozenset({"doc_id", "arguments", "resps", "filtered_resps"})
#: Keys of a sample that are no metrics.
_NO_METRICS = word_set(
    "doc_id doc target arguments resps filtered_resps filter metrics doc_hash prompt_hash target_hash"
)
#: Metrics that are the likelihood of the whole text.
_OF_LIKELIHOOD = word_set("word_perplexity byte_perplexity bits_per_byte perplexity")


@exports.register
class LmEval(Results):
    """Samples of tasks that generate, or that choose by likelihood."""

    name = "lm-eval"
    title = "lm-eval"
    about = "lm-eval, logged samples"

    def belongs(self, record: Mapping[str, Any]) -> bool:
        return record.keys() >= _KEYS

    def row(self, sample: Mapping[str, Any]) -> Record:
        question = _question(sample["arguments"])
        names = items(sample.get("metrics"), "metrics") or [
            name for name in sample if name not in _NO_METRICS
        ]
        if not _OF_LIKELIHOOD.isdisjoint(map(str, names)):
            raise UnreadableError(
                "the record has the likelihood of a text and no answer; judge a task that generates, or a choice"
            )
        judges = {
            str(name): verdict(sample[name])
            for name in names
            if isinstance(name, str) and isinstance(sample.get(name), int | float)
        }
        answers = items(sample["filtered_resps"], "filtered_resps")
        return {
            "id": str(sample["doc_id"]),
            "source": text(question),
            "output": _output(answers, sample.get("doc")),
            "reference": text(sample.get("target")),
            JUDGES: judges,
        }


def _question(arguments: Any) -> Any:
    if isinstance(arguments, Mapping):
        return object_of(arguments.get("gen_args_0"), "gen_args_0").get("arg_0")
    request = next(iter(items(arguments, "arguments")), None)
    return next(iter(items(request, "the first of arguments")), None)


def _output(answers: Sequence[Any], doc: Any) -> str:
    """Return a model's text, or for a choice by likelihood the choice."""
    likely = [_likelihood(answer) for answer in answers]
    if not answers or None in likely:
        return _generated(answers)
    place = max(range(len(likely)), key=lambda k: likely[k] or 0.0)
    choices = doc.get("choices") if isinstance(doc, Mapping) else None
    choices = choices.get("text") if isinstance(choices, Mapping) else choices
    if isinstance(choices, list) and place < len(choices):
        return text(choices[place])
    return f"choice {place + 1}"


def _generated(answers: Sequence[Any]) -> str:
    texts: list[Any] = []
    for part in answers:
        if isinstance(part, list):
            texts += part or [[]]
        else:
            texts.append(part)
    if len(texts) > 1 and all(isinstance(answer, str) for answer in texts):
        raise UnreadableError(
            f"filtered_resps holds {len(texts)} answers; keep one a row, as the filter take_first does"
        )
    if len(texts) != 1 or not isinstance(texts[0], str):
        raise ValueError(f"filtered_resps is {shown(answers)}")
    return texts[0]


def _likelihood(answer: Any) -> float | None:
    """The log-likelihood of a choice, which stands before whether it is the most likely one; None for anything else."""
    if not isinstance(answer, list) or len(answer) != 2:
        return None
    if str(answer[1]) not in ("True", "False"):
        return None
    try:
        probability = float(answer[0])
    except (TypeError, ValueError):
        return None
    return None if math.isnan(probability) else probability
