"""Calls that hang: one that takes much longer than nearly all others is sent once more, and the first answer counts."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Pace:
    """Calls that start at least `seconds` apart.

    They go one after another: with a full minute's allowance at once, twice as many would fit into the first minute.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = 0.0

    async def acquire(self) -> None:
        """Return when the next call may start."""
        now = time.monotonic()
        start = max(now, self._next)
        self._next = start + self._seconds
        await asyncio.sleep(start - now)


class Usual:
    """The time that the last calls took, so that one which hangs is told from one which is slow.

    A request is sent again after `TIMES` the time within which 19 of 20 had their answers, but for few and `AGAIN` of
    all calls at most: where a whole server is slow, more requests would make it slower.
    """

    TIMES = 3.0
    LEAST = 0.25
    FEW = 5
    AGAIN = 0.05

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=64)
        self._calls = self._again = 0
        self._limit = math.inf

    def took(self, seconds: float) -> None:
        """Record the seconds of a call; now and then set the limit from the last ones."""
        self._seconds.append(seconds)
        self._calls += 1
        if self._calls % 16 == 0:
            most = sorted(self._seconds)[int(0.95 * len(self._seconds))]
            self._limit = max(self.LEAST, self.TIMES * most)

    def again(self) -> bool:
        """Return True if a request may be sent again, which is counted."""
        if self._again >= self.FEW + self.AGAIN * self._calls:
            return False
        self._again += 1
        return True

    @property
    def patience(self) -> float | None:
        """Seconds after which a request is sent again; None as long as too few calls were seen."""
        return None if self._limit == math.inf else self._limit


class Sends(Generic[T]):
    """One call, with further sends of it, each after twice as long, while it hangs; the first answer counts.

    A send that hangs leaves its place to others. One that does not takes no task of its own.

    Args:
        send: Sends the request.
        usual: How long calls take.
        places: Of calls under way.
        pace: At which calls are sent.
        most: How often it is sent at most.
    """

    def __init__(
        self,
        send: Callable[[], Coroutine[Any, Any, T]],
        usual: Usual,
        places: asyncio.Semaphore,
        pace: Pace | None,
        most: int,
    ) -> None:
        self._send = send
        self._usual = usual
        self._places = places
        self._pace = pace
        self._most = most
        self.count = 1
        self._first: asyncio.Future[T] | None = None
        self._others: asyncio.Task[T] | None = None
        self._waits = True

    async def answer(self) -> T:
        """Return the first answer. The error of the last send is raised if all fail."""
        await self._places.acquire()
        try:
            patience = self._usual.patience
            if patience is None:
                return await self._send()
            return await self._watched(patience)
        finally:
            if self._others is None:
                self._places.release()
            else:
                self._others.cancel()

    async def _watched(self, patience: float) -> T:
        loop = asyncio.get_running_loop()
        timeout = asyncio.timeout(None)
        watch = loop.call_later(patience, self._hangs, loop, patience, timeout)
        try:
            async with timeout:
                return await self._send()
        except TimeoutError:
            if not timeout.expired():
                raise
        except Exception as error:
            if self._first is None:
                raise
            self._first.set_exception(error)
            self._first.exception()  # looked at, should nobody wait for it
        finally:
            self._waits = False
            watch.cancel()
        assert self._others is not None
        return await self._others

    def _hangs(
        self,
        loop: asyncio.AbstractEventLoop,
        patience: float,
        timeout: asyncio.Timeout,
    ) -> None:
        """Give the place of the first send to others and send once more, where that may be."""
        if not self._usual.again():
            return
        self._places.release()
        self._first = loop.create_future()
        self._others = loop.create_task(self._again(self._first, patience))

        def answered(_: asyncio.Task[T]) -> None:
            if self._waits:
                timeout.reschedule(loop.time())

        self._others.add_done_callback(answered)

    async def _again(self, first: asyncio.Future[T], patience: float) -> T:
        calls: list[asyncio.Future[T]] = [first]
        try:
            while True:
                if self._pace is not None:
                    await self._pace.acquire()
                async with self._places:
                    calls.append(asyncio.ensure_future(self._send()))
                    self.count = len(calls)
                    answered = await _first_of(calls, patience * 2 ** (len(calls) - 1))
                    if not answered and (
                        len(calls) >= self._most or not self._usual.again()
                    ):
                        answered = await _first_of(calls, None)
                if answered:
                    return answered[0].result()
        finally:
            for call in calls[1:]:
                call.cancel()


async def _first_of(
    calls: Sequence[asyncio.Future[T]], timeout: float | None
) -> list[asyncio.Future[T]]:
    """Return the first of these that has an answer, else the last one to fail; none where calls are left in time."""
    until = None if timeout is None else time.monotonic() + timeout
    waiting = set(calls)
    while True:
        left = None if until is None else until - time.monotonic()
        done, waiting = await asyncio.wait(
            waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED
        )
        answered = [call for call in done if call.exception() is None]
        if answered or (done and not waiting):
            return answered or list(done)
        if not done:
            return []
