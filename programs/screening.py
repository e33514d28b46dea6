"""The look for sentences that address a judge, at many rows at once.

Rows that come in the same turn of the event loop are looked at together, since the look costs the same for one short
text and for ten.
"""

from __future__ import annotations

import asyncio

from ..signatures.values import Item
from .models import engine
from .prompting.suspicion import (
    LOOKED_INTO,
    SHOWN,
    Suspicion,
    guarded,
    harmless,
    plain_texts,
)


class _Screen:
    """Rows that wait for the next turn of one event loop."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, asyncio.Future[bool]]] = []

    async def harmless(self, text: str) -> bool:
        """Return whether nothing in a text, nor in those beside it, addresses a judge."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bool] = loop.create_future()
        self._waiting.append((text, answer))
        if len(self._waiting) == 1:
            loop.call_soon(self._look)
        return await answer

    def _look(self) -> None:
        waiting, self._waiting = self._waiting, []
        found = False  # should the look fail, each row is looked at alone and fails by itself
        try:
            found = harmless([text for text, _ in waiting], LOOKED_INTO)
        finally:
            for _, answer in waiting:
                if not answer.done():  # its caller may have been cancelled
                    answer.set_result(found)


_screen = engine.PerLoop(_Screen)


async def screened(item: Item) -> tuple[Item, Suspicion | None]:
    """Return what `guarded` returns, on the engine's loop."""
    text = plain_texts(item)
    if text is not None and await _screen().harmless(text):
        return item, None
    size = sum(len(getattr(item, name) or "") for name in SHOWN)
    return await engine.apart(size, guarded, item, LOOKED_INTO)
