"""The rules as a screen of scoring, which looks at many rows at once.

Rows that come in the same turn of the event loop are looked at together, since the look costs the same for one short
text and for ten.
"""

from __future__ import annotations

import asyncio

from judgesmith.programs.models import engine
from judgesmith.programs.prompting.suspicion import Suspicion
from judgesmith.rooms.injections.rules import SHOWN, guarded, harmless, plain_texts
from judgesmith.signatures.values import Item


class _Batch:
    """Rows that wait for the next turn of one event loop."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, asyncio.Future[bool]]] = []
        self._least = 1.0

    def harmless(self, text: str, least: float) -> asyncio.Future[bool]:
        """Return what awaits whether nothing in a text, nor in those beside it, addresses a judge."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bool] = loop.create_future()
        self._waiting.append((text, answer))
        self._least = min(self._least, least)
        if len(self._waiting) == 1:
            loop.call_soon(self._look)
        return answer

    def _look(self) -> None:
        waiting = self._waiting
        self._waiting = []
        least = self._least
        self._least = 1.0
        clean = False  # should the look fail, each row is looked at alone and fails by itself
        try:
            clean = harmless([text for text, _ in waiting], least)
        finally:
            for _, answer in waiting:
                if not answer.done():  # its caller may have been cancelled
                    answer.set_result(clean)


_batch = engine.PerLoop(_Batch)


class Rules:
    """Exact patterns of prompts, and a small model of the words of attacks; see `rules`."""

    name = "rules"
    about = "patterns of prompts, and a linear model of the words of attacks in 15 languages"

    def guarded(self, item: Item, least: float) -> tuple[Item, Suspicion | None]:
        """Return a row without the sentences that address a judge, and the suspicion."""
        return guarded(item, least)

    async def screened(self, item: Item, least: float) -> tuple[Item, Suspicion | None]:
        """Return the same on the engine's loop: short rows together, long ones in a thread."""
        text = plain_texts(item)
        if text is not None and await _batch().harmless(text, least):
            return item, None
        size = sum(len(getattr(item, name) or "") for name in SHOWN)
        return await engine.apart(size, guarded, item, least)
