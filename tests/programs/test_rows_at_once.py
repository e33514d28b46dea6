"""Rows under way: the model's limit holds for calls, and where it binds the next prompts are ready."""

import asyncio
from typing import Any

import pytest

from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.transport import Request
from judgesmith.programs.prompting.predict import JudgePredict
from judgesmith.testing.scripted import MakeScripted

#: Seconds until a test gives up waiting for calls that do not come.
PATIENCE = 20.0


class Gate:
    """Holds the first calls until as many are under way, and prompts written, as are expected."""

    def __init__(self, calls: int, prompts: int) -> None:
        self.calls, self.prompts = calls, prompts
        self.written = self.under_way = self.most = self.ready = 0

    async def passed(self) -> None:
        """Wait in line."""
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        async with asyncio.timeout(PATIENCE):
            while not self.ready and (self.most, self.written) != (
                self.calls,
                self.prompts,
            ):
                await asyncio.sleep(0.005)
        self.ready = self.ready or self.written
        await asyncio.sleep(0)
        self.under_way -= 1


@pytest.mark.parametrize(
    ("limit", "concurrency", "calls", "prompts"),
    [
        pytest.param(8, None, 8, 10, id="the model's limit"),
        pytest.param(8, 8, 8, 10, id="as many rows as calls"),
        pytest.param(8, 12, 8, 14, id="more rows than calls"),
        pytest.param(8, 5, 5, 5, id="fewer rows than calls"),
        pytest.param(1, None, 1, 1, id="one call at a time"),
    ],
)
def test_prompts_are_ready_where_calls_are_limited(
    limit: int,
    concurrency: int | None,
    calls: int,
    prompts: int,
    scripted: MakeScripted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate(calls, prompts)
    lm, transport = scripted(
        lambda _: "Explanation: Fine.\nScore: 40",
        concurrency=limit,
    )
    write, send = JudgePredict.messages, transport.send

    def counted(self: JudgePredict, *arguments: Any, **named: Any) -> Any:
        gate.written += 1
        return write(self, *arguments, **named)

    async def gated(request: Request) -> Reply:
        await gate.passed()
        return await send(request)

    judge = Judge(ActiveCritic("vanilla", explain="before", reading="said"), lm=lm)
    judge.score(source="A notice.", output="The first text.")
    monkeypatch.setattr(JudgePredict, "messages", counted)
    monkeypatch.setattr(transport, "send", gated)
    rows = [{"source": "A notice.", "output": f"Text {n}."} for n in range(40)]
    verdicts = judge.score_many(rows, concurrency=concurrency, progress=False)
    assert [verdict.score for verdict in verdicts] == [40.0] * 40
    assert gate.most == calls
    assert gate.ready == prompts
