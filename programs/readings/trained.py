"""The trained reader: a small model that learnt from public ratings of many tasks to say how good an output is.

SmolLM2-135M under low-rank weights (`trained/judgesmith-135m.gguf`), and a linear head on the states of one of its
layers (`trained/judgesmith-135m.json`): their mean over the output, and the state where a score would stand. Its score
is one more reading, for judges that have no label of their own yet. Data, licences, figures:
experiments/results/reader.md. Saved judges name the reading and not the weights: others need another name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.programs.readings.bindings.opening import StatesReader, open_adapted
from judgesmith.programs.readings.experience import read_experience
from judgesmith.programs.readings.head import LinearHead, Readings
from judgesmith.programs.readings.passages import INSTRUCTIONS, Piece, Text

NAME = "judgesmith-135m"
BASE = "local/smollm2-135m"
#: The layer whose states are read, and the most tokens of a source, a context, a reference and an output that are read,
#: as in training; longer texts lose their middle.
LAYER = 22
SOURCE = 200
CONTEXT = 120
REFERENCE = 90
OUTPUT = 180
#: Characters of an output up to which it is read as in training, a longer one is read whole; and of the two ends of
#: other texts, which have more tokens than are read.
AS_TRAINED = 3000
#: What an output of a task is called.
_TASKS = {
    "summarization": "a summary",
    "simplification": "a simpler sentence",
    "data-to-text": "saying data in words",
    "dialogue": "the next turn of a dialogue",
    "story": "a story",
    "translation": "a translation",
    "question-answering": "an answer to a question",
}


@dataclass(frozen=True, slots=True)
class Trained:
    """The trained reader's score of an output: 50 is usual, 20 a standard deviation.

    shares: the share of each text that it did not read in full.
    """

    score: float
    shares: Mapping[str, float]


def trained_score(text: Text, aspect: str) -> Trained:
    """Return the trained reader's score of an output.

    Up to 3,000 characters are read as in training: a text of more tokens than `OUTPUT` loses its middle. A longer
    output is read whole, in windows of as many tokens, each beside the same beginning; their states count by their
    tokens.

    Raises:
        ModelError: If the model cannot be opened.
        MissingExtraError: Without the extra that reads it.
    """
    reader = open_trained()
    before, after, shares = _prompt(reader, text, aspect)
    tokens = reader.tokens(Piece(text.judged))
    outputs = [
        tokens[first : first + OUTPUT] for first in range(0, len(tokens), OUTPUT)
    ]
    if len(text.judged) <= AS_TRAINED:
        outputs = [_cut(tokens, OUTPUT)]
        if len(tokens) > OUTPUT:
            shares |= {"output": len(outputs[0]) / len(tokens)}
    # Of several windows the beginning's states are not needed again.
    start = len(before) if len(outputs) > 1 else 0
    counts = list[int]()
    means = list[Any]()
    ends = list[Any]()
    for output in outputs:
        states = reader.states([*before, *output, *after], LAYER, start=start)
        states = states[len(before) - start :]
        counts.append(len(output))
        means.append(states[: len(output)].mean(axis=0))
        ends.append(states[-1])
    blocks = {"output": _averaged(means, counts), "end": _averaged(ends, counts)}
    table = Readings((), np.zeros((1, 0)), (0,), blocks)
    return Trained(float(_head()(table)[0]), shares)


def _averaged(states: Sequence[Any], counts: Sequence[int]) -> Any:
    """The states of windows as those of one row, weighted by their tokens."""
    mean = states[0]
    if len(states) > 1:
        mean = np.average(states, axis=0, weights=counts)
    return mean[None]


def open_trained() -> StatesReader:
    """Return the model under its trained weights; it is fetched first if it is not here. Raises as `trained_score`."""
    return open_adapted(BASE, _folder() / f"{NAME}.gguf", LAYER)


@cache
def _head() -> LinearHead:
    return read_experience(_folder() / f"{NAME}.json").head((), ("output", "end"))


def _folder() -> Path:
    return Path(str(files(__package__) / "trained"))


def _prompt(
    reader: StatesReader, text: Text, aspect: str
) -> tuple[list[int], list[int], dict[str, float]]:
    """The tokens before the output and after it, and the share of each text that was cut."""
    job = next(
        (task for task, asks in INSTRUCTIONS.items() if asks == text.instruction), ""
    )
    kind = _TASKS.get(job, "an answer to an instruction")
    before = _tokens(
        reader, f"Is this {kind} good? Aspect: {aspect[:200].replace('_', ' ')}.\n"
    )
    shares = {}
    parts = (
        ("Source", text.source, SOURCE),
        ("Context", text.context, CONTEXT),
        ("Reference", text.reference, REFERENCE),
    )
    for name, part, most in parts:
        if part:
            if len(part) <= 2 * AS_TRAINED:
                ends = part
            else:
                ends = part[:AS_TRAINED] + part[-AS_TRAINED:]
            tokens = _tokens(reader, ends)
            shown = _cut(tokens, most)
            if len(shown) < len(tokens):
                shares[name.lower()] = len(shown) / len(tokens) * len(ends) / len(part)
            before += [*_tokens(reader, f"{name}: "), *shown, *_tokens(reader, "\n")]
    before += _tokens(reader, "Output: ")
    return before, _tokens(reader, "\nScore:"), shares


def _tokens(reader: StatesReader, text: str) -> list[int]:
    return reader.tokens(Piece(text))


def _cut(tokens: list[int], most: int) -> list[int]:
    if len(tokens) <= most:
        return tokens
    return tokens[: most // 2] + tokens[most // 2 - most :]
