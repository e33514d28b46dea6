"""Several servers of one model as one: the least loaded is asked, one that is down is left out and tried again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from .transport import Reply, Request, Transport, Unanswered

#: Seconds that a server which gave no answer is left out: at first, and at most (each time twice as long).
LEFT_OUT, LONGEST = 1.0, 30.0


@dataclass
class Endpoint:
    """One server: calls that it has now, failures in a row, and until when it is left out (monotonic seconds)."""

    transport: Transport
    under_way: int = 0
    failures: int = 0
    until: float = 0.0

    async def send(self, request: Request) -> Reply:
        self.under_way += 1
        try:
            reply = await self.transport.send(request)
        except Unanswered as error:
            if not error.reached:
                self.failures += 1
                self.until = time.monotonic() + min(LONGEST, LEFT_OUT * 2.0 ** min(self.failures - 1, 10))
            raise
        finally:
            self.under_way -= 1
        self.failures, self.until = 0, 0.0
        return reply


class Fleet:
    """A transport over several others. A call that one server gives no answer to goes to the next one at once; only
    where none answers it is Unanswered."""

    def __init__(self, transports: Sequence[Transport]) -> None:
        self.endpoints = [Endpoint(transport) for transport in transports]
        self._turn = 0

    async def send(self, request: Request) -> Reply:
        tried: set[int] = set()
        while True:
            place = self._next(tried)
            tried.add(place)
            try:
                return await self.endpoints[place].send(request)
            except Unanswered as error:
                if error.reached or len(tried) == len(self.endpoints):
                    raise

    def _next(self, tried: set[int]) -> int:
        """The least loaded server that is not left out; where all are, the one whose time is up first."""
        now, count = time.monotonic(), len(self.endpoints)
        self._turn = (self._turn + 1) % count  # of equally loaded ones each has its turn
        untried = [i for i in range(count) if i not in tried]
        up = [i for i in untried if self.endpoints[i].until <= now]
        if up:
            return min(up, key=lambda i: (self.endpoints[i].under_way, (i - self._turn) % count))
        return min(untried, key=lambda i: self.endpoints[i].until)
