"""A judge whose model answers some rows and talks nonsense of others."""

from pathlib import Path
from typing import Any

import pytest

from judgesmith.programs.models.lm import Connection
from judgesmith.testing.fake import Ask


@pytest.fixture
def saved(server: Any, judge_file: Path) -> dict[str, Any]:
    """Arguments of an adapter. An output "good N" gets the score N, any other no score."""

    def answer(ask: Ask) -> str:
        if ask.step == "probe":
            return "4"
        word, _, number = ask.judged.partition(" ")
        return (
            f"Explanation: It says {number}.\nScore: {number}"
            if word == "good"
            else "I would rather not."
        )

    server.answer = answer
    return {
        "judge": judge_file,
        "connection": Connection(server.base, cache=False),
        "name": "truth",
    }
