"""The trained reader: a small model that learnt from public ratings of many tasks to say how good an output is.

SmolLM2-135M under low-rank weights (`trained/judgesmith-135m.gguf`), and a linear head on the states of one of its
layers (`trained/judgesmith-135m.json`): their mean over the output, and the state where a score would stand. Its score
is one more reading, for judges that have no label of their own yet. Data, licences, figures:
experiments/results/reader.md. Saved judges name the reading and not the weights: others need another name.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from .bindings.embedded_reader import EmbeddedReader
from .bindings.opening import open_adapted
from .experience import read_experience
from .head import LinearHead, Readings
from .passages import INSTRUCTIONS, LONGEST, Piece, Text

NAME, BASE = "judgesmith-135m", "local/smollm2-135m"
#: The layer whose states are read, and the most tokens of a source, a context, a reference and an output that are read,
#: as in training; longer texts lose their middle.
LAYER, SOURCE, CONTEXT, REFERENCE, OUTPUT = 22, 200, 120, 90, 180
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


def trained_score(text: Text, aspect: str) -> float:
    """How good the trained reader finds an output, as its experience counts: 50 is usual, 20 a standard deviation.
    Raises: ModelError, MissingExtraError where it cannot be opened."""
    reader = open_trained()
    before, output, after = _prompt(reader, text, aspect)
    states = reader.states([*before, *output, *after], LAYER)
    means = {"output": states[len(before) : len(before) + len(output)].mean(axis=0), "end": states[-1]}
    table = Readings((), np.zeros((1, 0)), (0,), {block: of[None] for block, of in means.items()})
    return float(_head()(table)[0])


def open_trained() -> EmbeddedReader:
    """The model under its trained weights; fetches the model first if it is not here. Raises as `trained_score`."""
    return open_adapted(BASE, _folder() / f"{NAME}.gguf")


@cache
def _head() -> LinearHead:
    return read_experience(_folder() / f"{NAME}.json").head((), ("output", "end"))


def _folder() -> Path:
    return Path(str(files(__package__) / "trained"))


def _prompt(reader: EmbeddedReader, text: Text, aspect: str) -> tuple[list[int], list[int], list[int]]:
    """The tokens before the output, of it, and after it."""
    asked = next((task for task, asks in INSTRUCTIONS.items() if asks == text.instruction), "")
    what = _TASKS.get(asked, "an answer to an instruction")
    before = _tokens(reader, f"Is this {what} good? Aspect: {aspect[:200].replace('_', ' ')}.\n")
    parts = (
        ("Source", text.source, SOURCE),
        ("Context", text.context, CONTEXT),
        ("Reference", text.reference, REFERENCE),
    )
    for name, part, most in parts:
        if part:
            before += [*_tokens(reader, f"{name}: "), *_cut(_tokens(reader, part), most), *_tokens(reader, "\n")]
    before += _tokens(reader, "Output: ")
    return before, _cut(_tokens(reader, text.made), OUTPUT), _tokens(reader, "\nScore:")


def _tokens(reader: EmbeddedReader, text: str) -> list[int]:
    """A text's tokens; of a very long text only those of its two ends, which are more than are read."""
    return reader.tokens(Piece(text if len(text) <= 2 * LONGEST else text[:LONGEST] + text[-LONGEST:]))


def _cut(tokens: list[int], most: int) -> list[int]:
    return tokens if len(tokens) <= most else tokens[: most // 2] + tokens[most // 2 - most :]
