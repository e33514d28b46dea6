"""Choose answers of which each part is one of few texts, such as `Score: 4` or `Better`.

A model that is read gives them from the probabilities of these texts, several requests at once, and nothing is
generated. Such a reader is a `Chooser`; without one, and for free text, requests go on to the server.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from judgesmith.parts import Registry
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.engine import GIVEN_UP, PerLoop
from judgesmith.programs.models.transport import Request, Transport

#: Requests that are answered at once, and as many again that wait.
AT_ONCE = 16

#: Engines that answer by choosing, by name; a class method `of(path, name)` gives the `Chooser` of a model's file, or
#: None where it cannot read that.
choosers: Registry[type[Any]] = Registry(
    "engine of chosen answers",
    packages=("judgesmith.programs.readings.bindings.chooser",),
    group="judgesmith.choosers",
)


class Chooser(Protocol):
    """Answers from the probabilities of the texts that an answer may have."""

    way: str
    """How it computes; part of what tells its answers from others'."""

    system_prompt: bool
    """Whether the model's chat template takes a system message."""

    def answers(self, requests: Sequence[Request]) -> list[Reply | None]:
        """The answers of requests with `choices`; None for one that it leaves to the server.

        Raises ModelError where it cannot answer any, now or later.
        """
        ...


def chooser_of(path: Path, name: str) -> Chooser | None:
    """The first engine that can read a model's file; None where none can."""
    possible = (engine.of(path, name) for engine in choosers.parts().values())
    return next((chooser for chooser in possible if chooser is not None), None)


@dataclass
class _Queue:
    waiting: deque[tuple[Request, asyncio.Future[Reply | None]]] = field(
        default_factory=deque
    )
    working: asyncio.Task[None] | None = None


class Choosing:
    """A transport to a model in this process: answers are chosen where they can be, else asked of the server."""

    def __init__(self, chooser: Chooser, server: Transport) -> None:
        self._chooser = chooser
        self._server = server
        self._queue = PerLoop(_Queue)

    async def send(self, request: Request) -> Reply:
        """Send a request; choose the answer if it is one of few texts."""
        if request.choices and not request.temperature:
            queue = self._queue()
            loop = asyncio.get_running_loop()
            answer: asyncio.Future[Reply | None] = loop.create_future()
            queue.waiting.append((request, answer))
            if queue.working is None or queue.working.done():
                queue.working = asyncio.create_task(self._work(queue))
            if (chosen := await answer) is not None:
                return chosen
        return await self._server.send(request)

    async def _work(self, queue: _Queue) -> None:
        """Answer what waits, as much at once as can be."""
        while queue.waiting:
            count = min(AT_ONCE, len(queue.waiting))
            some = [queue.waiting.popleft() for _ in range(count)]
            # Who asked may have been cancelled while this waited.
            some = [(request, answer) for request, answer in some if not answer.done()]
            if not some:
                continue
            given_up = threading.Event()
            GIVEN_UP.set(given_up)  # of this task alone

            def left(_: Any, some: Any = some, given_up: Any = given_up) -> None:
                if all(answer.done() for _, answer in some):
                    given_up.set()

            for _, answer in some:
                answer.add_done_callback(left)
            try:
                replies = await asyncio.to_thread(
                    self._chooser.answers, [request for request, _ in some]
                )
            except Exception as error:
                for _, answer in some:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for (_, answer), reply in zip(some, replies, strict=True):
                if not answer.done():
                    answer.set_result(reply)
