"""What several judges compute of one output alike is computed once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Memory:
    locks: dict[Hashable, asyncio.Lock] = field(default_factory=dict)
    done: dict[Hashable, Any] = field(default_factory=dict)


_OUTPUT: ContextVar[_Memory | None] = ContextVar("judgesmith_output", default=None)


@contextmanager
def one_output() -> Iterator[None]:
    """While the block lasts, `once` remembers what it gave; the memory ends with the block."""
    token = _OUTPUT.set(_Memory())
    try:
        yield
    finally:
        _OUTPUT.reset(token)


async def once(key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
    """What `make` gives; inside `one_output`, what it gave for this key before. Its errors are not remembered."""
    memory = _OUTPUT.get()
    if memory is None:
        return await make()
    async with memory.locks.setdefault(key, asyncio.Lock()):
        if key not in memory.done:
            memory.done[key] = await make()
        found: T = memory.done[key]
        return found
