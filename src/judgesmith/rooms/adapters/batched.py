"""Batches for work whose requests depend on earlier answers: `judgesmith compile --batch`.

A request waits until no other one comes, and those that wait are sent as one batch. Each pass over the rows is a
batch, and a second call of each row is another. The cache of calls keeps the answers, and OUTPUT.batches.jsonl the
batches that were sent: after an interruption, the same command collects what it did not wait for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesmith.errors import ModelError, OptionError
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.capabilities import models_of
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.models.transport import Request, Transport, Unanswered
from judgesmith.programs.progress import Progress
from judgesmith.rooms.adapters.batches import GO_ON, Desk, Lost

#: Seconds without a further request after which those that wait are sent.
QUIET = 1.0
#: Fewer requests than this are sent at once, at the full price: they are not worth a wait of hours.
FEW = 10


class BatchedModel:
    """A model whose requests go through batches, for a whole run.

    Args:
        judges: The judges that call it.
        name: The model.
        where: Its address and limits.
        output: The output beside which the batches are recorded.

    Raises:
        OptionError: If the model has no batches, or a judge calls a second model.
    """

    def __init__(
        self, judges: Iterable[Judge], name: str, where: Connection, output: Path
    ) -> None:
        for judge in judges:
            if others := models_of(judge.method):
                raise OptionError(
                    f"--batch is for judges of one model; this one ({judge.method.kind}) calls {others[0]}, too"
                )
        self._desk = Desk(name, where, output, again=True)

    @contextmanager
    def over(self, lm: LanguageModel, watch: Progress) -> Iterator[LanguageModel]:
        """Provide the model with its requests sent in batches.

        Args:
            lm: The model, which is asked what it can do before.
            watch: Hears how many requests of a batch are answered.
        """
        ended = threading.Event()

        def sleep(seconds: float) -> None:
            if ended.wait(seconds):
                raise ModelError(f"stopped while a batch was under way; {GO_ON}")

        engine.run(lm.capabilities())
        self._desk.watch = watch
        self._desk.provider.sleep = sleep
        with closing(self._desk.provider):
            try:
                yield lm.through(lambda live: _Together(live, self._desk), patient=True)
            finally:
                ended.set()


@dataclass(slots=True)
class _Waiting:
    """A request, its line of a batch, and its answer to come."""

    request: Request
    line: bytes
    answer: asyncio.Future[Reply]


class _Together:
    """A transport that sends what waits as one batch."""

    def __init__(self, live: Transport, desk: Desk) -> None:
        self._live = live
        self._desk = desk
        self._asked: dict[str, _Waiting] = {}
        self._queue: list[str] = []
        self._turns: asyncio.Task[None] | None = None

    async def send(self, request: Request) -> Reply:
        loop = asyncio.get_running_loop()
        custom_id, body = self._desk.identified(self._live, request)
        if custom_id not in self._asked:
            line = self._desk.provider.line(custom_id, body)
            self._asked[custom_id] = _Waiting(request, line, loop.create_future())
            self._queue.append(custom_id)
        if self._turns is None:
            self._turns = loop.create_task(self._take_turns())
        return await asyncio.shield(self._asked[custom_id].answer)

    async def _take_turns(self) -> None:
        """Send what waits, again and again, until nothing does."""
        try:
            while self._queue:
                count = 0
                while count < len(self._queue):
                    count = len(self._queue)
                    await asyncio.sleep(QUIET)
                turn = {one: self._asked[one] for one in self._queue}
                self._queue.clear()
                await self._take_turn(turn)
        finally:
            self._turns = None

    async def _take_turn(self, turn: Mapping[str, _Waiting]) -> None:
        try:
            if len(turn) < FEW and not self._desk.holds(turn):
                await asyncio.gather(*map(self._at_once, turn.values()))
            else:
                await self._in_batches(turn)
        except Exception as error:
            for waiting in turn.values():
                _fail(waiting, error)
        finally:
            for custom_id in turn:
                del self._asked[custom_id]

    async def _at_once(self, waiting: _Waiting) -> None:
        try:
            waiting.answer.set_result(await self._live.send(waiting.request))
        except Exception as error:
            _fail(waiting, error)

    async def _in_batches(self, turn: Mapping[str, _Waiting]) -> None:
        self._desk.requests = {one: ("", turn[one].line) for one in turn}
        self._desk.answers = {}
        await asyncio.to_thread(self._desk.answer)
        for custom_id, waiting in turn.items():
            answer: Any = self._desk.answers[custom_id]
            if isinstance(answer, Lost):
                _fail(waiting, ModelError(f"{answer}; the same command sends the rest"))
            elif isinstance(answer, str):
                _fail(waiting, Unanswered(answer, again=False))
            else:
                waiting.answer.set_result(answer)


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
        waiting.answer.exception()  # looked at, should nobody wait for it any more
