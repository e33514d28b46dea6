"""Texts that a model which is asked cannot hold: each way to it sends them whole, and the row fails with the reason."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from misbehaving_server import MakeServer, Say, saying

import judgesmith as js
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.connection import Capabilities
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.rooms.training.distilled.judge import Distilled

#: Characters of a prompt from which on the server refuses it; and the last word of a text that is longer.
MOST, LAST = 40_000, "zanzibar"
SAID = "This model's maximum context length is 8192 tokens. However, your messages resulted in 21000 tokens."
ANSWER = "Explanation: Fine.\nScore: 4"
ROWS = [
    {"source": "A source.", "output": text}
    for text in (
        "One.",
        "The bridge was closed after heavy rain. " * 1200 + LAST,
        "Three.",
    )
]
JUDGES: dict[str, Callable[[LanguageModel], Judge]] = {
    "direct": lambda lm: js.Judge(js.DirectScorer("fluency"), lm=lm),
    "g-eval": lambda lm: js.Judge(js.GEval("fluency"), lm=lm),
    "active-critic": lambda lm: js.Judge(js.ActiveCritic("vanilla"), lm=lm),
    "openlgauge": lambda lm: js.Judge(js.OpeNLGauge("fluency"), lm=lm),
    "distilled": lambda lm: Judge(Distilled("fluency"), lm=lm),
}


def failures(judge: Judge) -> list[str]:
    verdicts = list(judge.score_many(ROWS, progress=False))
    assert all(verdict.partly == {} for verdict in verdicts)
    return [verdict.failure or "" for verdict in verdicts]


@pytest.mark.parametrize("made", JUDGES.values(), ids=JUDGES)
def test_a_server_that_cannot_hold_a_row_fails_that_row_alone(
    serve: MakeServer, made: Callable[[LanguageModel], Judge]
) -> None:
    def answer(number: int, body: dict[str, Any]) -> Say:
        told = {"error": {"message": SAID, "code": "context_length_exceeded"}}
        return (
            Say(400, json.dumps(told).encode())
            if len(json.dumps(body)) > MOST
            else saying(ANSWER)
        )

    server = serve(answer)
    lm = language_model(
        "openai/m",
        connection=Connection(server.base, "key", cache=False, concurrency=1),
    )
    lm.assume(Capabilities())
    judge = made(lm)
    first, second, third = failures(judge)
    assert "HTTP 400: This model's maximum context length is 8192 tokens" in second
    assert "context length" not in first + third
    long = [json.dumps(body) for body in server.bodies if len(json.dumps(body)) > MOST]
    assert 1 <= len(long) <= judge.method.cost().calls_per_row  # not tried again
    assert all(LAST in body for body in long)


def test_a_provider_that_cannot_hold_a_row_fails_that_row_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import litellm
    from litellm.exceptions import ContextWindowExceededError

    async def complete(**asked: Any) -> Any:
        if len(json.dumps(asked["messages"])) > MOST:
            raise ContextWindowExceededError(SAID, "m", "anthropic")
        return litellm.ModelResponse(
            choices=[{"message": {"content": ANSWER}, "finish_reason": "stop"}]
        )

    monkeypatch.setattr(litellm, "acompletion", complete)
    lm = language_model("anthropic/m", connection=Connection(cache=False))
    lm.assume(Capabilities())
    first, second, third = failures(js.Judge(js.DirectScorer("fluency"), lm=lm))
    assert first == third == ""
    assert "maximum context length is 8192 tokens" in second
