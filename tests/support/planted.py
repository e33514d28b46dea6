"""A reader inside the process that finds some words likely and others not, and labels that follow from it."""

import hashlib
import random
from collections.abc import Callable, Sequence

import numpy as np

from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.programs.models.transport import Request
from judgesmith.programs.readings.passages import PLAIN_TURNS, JinjaChat, Passage, Piece
from judgesmith.programs.readings.reader import Ability, TokenReading

WORDS = 10  # in every output


class PlantedReader:
    """Words are tokens: those that begin with x are unlikely (-6), others likely (-1).

    States are noise. `reads` counts the passages that it was asked to read.
    """

    name = "planted"

    def __init__(self) -> None:
        self.chat = JinjaChat(PLAIN_TURNS)
        self.ability = Ability(layers=12)
        self.reads = 0

    def size(self, pieces: Sequence[Piece]) -> int:
        """Words, each with the space before it."""
        return sum(len(piece.text.split()) for piece in pieces)

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        self.reads += 1
        target = passage.pieces[passage.target].text
        words = target.split(" ")
        logp = np.array(
            [-6.0 if word.startswith("x") else -1.0 for word in words], dtype=np.float32
        )
        ends = np.cumsum([len(word) + 1 for word in words])
        ends[-1] = len(target)
        digest = hashlib.sha256(target.encode()).digest()
        noise = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        states = {layer: noise.normal(size=6).astype(np.float32) for layer in layers}
        return TokenReading(
            logp, np.ones_like(logp), np.zeros_like(logp), tuple(ends.tolist()), states
        )


def planted_labels(
    documents: int = 24, per_document: int = 3, *, seed: int = 0
) -> Labels:
    """Rows whose score is 90 less 10 for every unlikely word.

    No word comes twice and all outputs are equally long, so that what is counted without a model says nothing.
    """
    draw = random.Random(seed)
    rows: list[Row] = []
    for d in range(documents):
        for _ in range(per_document):
            n, odd = len(rows), draw.randint(0, 7)
            words = [f"{'x' if i < odd else 'w'}{n:03d}{i}" for i in range(WORDS)]
            draw.shuffle(words)
            rows.append(
                Row(
                    id=f"r{n:03d}",
                    source=f"Source d{d:03d} here.",
                    output=" ".join(words),
                    system="s",
                    doc_id=f"d{d:03d}",
                    group=f"d{d:03d}",
                    scores={"overall": 90.0 - 10 * odd},
                    line=n + 1,
                )
            )
    return Labels(tuple(rows), "overall", (0.0, 100.0), origin="labels.jsonl")


def guessing() -> Callable[[Request], str]:
    """A model whose scores have nothing to do with the text, but are the same each time."""

    def answer(request: Request) -> str:
        said = hashlib.sha256(request.messages[-1]["content"].encode()).digest()[0]
        return f"Score: {said * 100 // 255}"

    return answer
