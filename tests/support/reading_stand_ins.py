"""A reader and a server that need no model: what reading is tested with."""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from misbehaving_server import Say

from judgesmith.programs.readings.passages import PLAIN_TURNS, JinjaChat, Passage, Piece
from judgesmith.programs.readings.reader import Ability, TokenReading


class Copyist:
    """A reader for which a word is likely where it stood before: log p = -1, else -3."""

    name, ability = "copyist", Ability()

    def __init__(self) -> None:
        self.chat = JinjaChat(PLAIN_TURNS)
        self.asked: list[str] = []

    def size(self, pieces: Sequence[Piece]) -> int:
        """Words, each with the space before it."""
        return sum(len(piece.text.split()) for piece in pieces)

    def read(self, passage: Passage, *, layers: Any = ()) -> TokenReading:
        before = "".join(piece.text for piece in passage.pieces[: passage.target])
        self.asked.append(before)
        words = passage.pieces[passage.target].text.split()
        logp = np.array(
            [-1.0 if word in before.split() else -3.0 for word in words],
            dtype=np.float32,
        )
        return TokenReading(logp, logp, logp)


def echoing(number: int, body: dict[str, Any]) -> Say:
    """A served model whose tokens are words, each as unlikely as it is long: log p is -.1 a letter."""
    if not body.get("echo"):
        return Say(status=404)
    words = list(re.finditer(r"\s*\S+|\s+$", body["prompt"]))
    marks = {
        "tokens": [*(word[0] for word in words), "4"],
        "text_offset": [*(word.start() for word in words), len(body["prompt"])],
        "token_logprobs": [
            None,
            *(-len(word[0].strip()) / 10 for word in words[1:]),
            -9.0,
        ],
    }
    return Say(
        body=json.dumps({"choices": [{"text": "4", "logprobs": marks}]}).encode()
    )
