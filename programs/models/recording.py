"""What a judge would send, recorded: a model that answers nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from ...errors import JudgesmithError
from . import engine
from .lm import Capabilities, Connection, LanguageModel
from .transport import Message, Reply, Request, Unanswered


class _Recorder:
    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Reply:
        self.requests.append(request)
        raise Unanswered("this call was only recorded", again=False)


def recorded(call: Callable[[LanguageModel], Awaitable[Any]]) -> dict[str, list[Message]]:
    """The messages of the first request that `call` sends, as `{"first call": messages}`; {} where it sends none."""
    recorder = _Recorder()
    lm = LanguageModel("recorded/model", recorder, identity="", connection=Connection(cache=False, attempts=1))
    lm.assume(Capabilities())

    async def run() -> None:
        with suppress(JudgesmithError):
            await call(lm)

    engine.run(run())
    return {"first call": list(recorder.requests[0].messages)} if recorder.requests else {}
