"""Beginnings of prompts that a provider keeps: one request goes first, and those that share its beginning after it.

Claude keeps a beginning from the first answer on. Requests that are sent before then pay a quarter more for it each,
and those that come later a tenth.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import orjson

from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.transport import DENSE, Request

#: Seconds since its last use for which a beginning is taken to be there. Claude keeps it for 300.
KEPT = 240.0
#: Bytes of the shortest beginning that a model of Claude keeps: 1,024 tokens.
LEAST = 1024 * DENSE
#: Beginnings that are remembered.
MOST = 4096

#: A reply, its seconds, and how often its request was sent.
Sent = tuple[Reply, float, int]


class KeptBeginnings:
    """The beginnings that a provider keeps for a model, on one event loop.

    Args:
        patience: Seconds for which a request waits at most for the one that goes first.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._until: dict[bytes, float] = {}
        self._first: dict[bytes, asyncio.Event] = {}

    async def sent(self, request: Request, send: Callable[[], Awaitable[Sent]]) -> Sent:
        """Return what `send` returns, called once the beginning of the request is kept.

        Others wait for the first request with their beginning, whether it is answered or fails. None waits for a
        beginning that the provider did not keep.
        """
        key = _key(request)
        if key is None:
            return await send()
        first = self._first.get(key)
        if first is None and self._until.get(key, 0.0) < time.monotonic():
            return await self._goes_first(key, send)
        if first is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience):
                    await first.wait()
        answer = await send()
        self._note(key, answer[0])
        return answer

    async def _goes_first(
        self, key: bytes, send: Callable[[], Awaitable[Sent]]
    ) -> Sent:
        self._first[key] = ended = asyncio.Event()
        try:
            answer = await send()
            self._note(key, answer[0])
            return answer
        finally:
            del self._first[key]
            ended.set()

    def _note(self, key: bytes, reply: Reply) -> None:
        kept = reply.prefix_tokens + reply.written_tokens > 0
        if len(self._until) >= MOST:
            self._until.clear()
        self._until[key] = time.monotonic() + KEPT if kept else math.inf


def _key(request: Request) -> bytes | None:
    """Return what tells the beginning of a request from others; None where it is too short to be kept."""
    shared = list(request.messages[: request.beginning])
    if sum(len(message["content"]) for message in shared) * 4 < LEAST:
        return None
    key = orjson.dumps([shared, request.schema])
    return key if len(key) >= LEAST else None
