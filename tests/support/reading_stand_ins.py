"""A reader that needs no model: what the metrics that read are tested with."""

from typing import Any

import numpy as np

from judgesmith.programs.readings.passages import PLAIN_TURNS, JinjaChat, Passage
from judgesmith.programs.readings.reader import Ability, TokenReading


class Copyist:
    """A reader for which a word is likely where it stood before: log p = -1, else -3."""

    name, ability = "copyist", Ability()

    def __init__(self) -> None:
        self.chat = JinjaChat(PLAIN_TURNS)
        self.asked: list[str] = []

    def read(self, passage: Passage, *, layers: Any = ()) -> TokenReading:
        before = "".join(piece.text for piece in passage.pieces[: passage.target])
        self.asked.append(before)
        words = passage.pieces[passage.target].text.split()
        logp = np.array([-1.0 if word in before.split() else -3.0 for word in words], dtype=np.float32)
        return TokenReading(logp, logp, logp)

    def mean(self, before: str, target: str) -> float:
        """The mean of log p over a text's words after another."""
        return sum(-1.0 if word in before.split() else -3.0 for word in target.split()) / len(target.split())
