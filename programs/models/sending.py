"""Sending a request until it is answered: places, pace, further tries, and what a server's failures mean.

A refusal that would come again is told from one that passes, and a server that is down from a row that is at fault.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial

from judgesmith.errors import CallError, ModelError, OutageError
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.beginnings_kept import KeptBeginnings
from judgesmith.programs.models.connection import Capabilities, Connection
from judgesmith.programs.models.engine import PerLoop
from judgesmith.programs.models.hanging import Pace, Sends, Usual
from judgesmith.programs.models.price import Meter
from judgesmith.programs.models.providers.litellm import ThroughLiteLLM
from judgesmith.programs.models.refusals import Denied
from judgesmith.programs.models.transport import Request, Transport, Unanswered
from judgesmith.programs.models.window import is_short_count
from judgesmith.signatures.values import Usage

#: Seconds for which a server's wish to be asked later is kept to, and from which on it is said.
LONGEST_WAIT = 120.0
LONG_WAIT = 20.0
#: Calls in a row without an answer of any kind, retries included, after which the server is taken to be down.
OUTAGE_AFTER = 10
#: A question without anybody's text in it.
PLAIN = Request([{"role": "user", "content": "2 + 2 ="}], 1)
#: What a server does and its user should hear of, also where this package's log is kept quiet.
_LOG = logging.getLogger("judgesmith.servers")
_LOG.setLevel(logging.WARNING)


class Unreachable(CallError):
    """No answer of any kind came: no server there, no connection, or no answer in time."""


class Odd(CallError):
    """An answer came, in a form that is not known. The server is up, and a later run would get the same."""

    lasting = True


class Traffic:
    """The calls under way to a model on one event loop."""

    def __init__(self, connection: Connection, concurrency: int) -> None:
        self.under_way: dict[bytes, asyncio.Future[Reply]] = {}
        self.probing: asyncio.Task[Capabilities] | None = None
        self.slots = asyncio.Semaphore(concurrency)
        self.pace = Pace(60 / connection.rpm) if connection.rpm else None
        self.usual = Usual()
        """The time that calls take."""
        self.kept = KeptBeginnings(connection.timeout)
        self.unreached = 0
        """Calls in a row that got no answer."""
        self.served = False
        """Whether a call has had an answer, so that key and name are right."""
        self.most_counted = 0
        """The most tokens of a prompt that the server counted."""
        self.warned: set[str] = set()

    def warn(self, topic: str, text: str) -> None:
        """Log a warning, once for each topic."""
        if topic not in self.warned:
            self.warned.add(topic)
            _LOG.warning(text)


@dataclass(frozen=True, slots=True)
class Sender:
    """A model's transport, with what was seen of it and the tries that a call has.

    once: True if no request is sent again because it takes long.
    """

    name: str
    transport: Transport
    attempts: int
    traffic: PerLoop[Traffic]
    once: bool = False

    async def ask(self, request: Request, meter: Meter) -> tuple[Reply, Usage]:
        """Return the answer to a request with what it took. What a failed call took is counted by the meter.

        Raises:
            CallError: If it failed for good.
            ModelError: If no call can succeed.
        """
        traffic = self.traffic()
        tries = 0
        try:
            while True:
                tries += 1
                try:
                    reply, seconds, sends = await self._in_turn(traffic, request)
                    tries += sends - 1
                    break
                except Unanswered as error:
                    if not error.again or tries >= self.attempts:
                        raise
                    await asyncio.sleep(self._patience(traffic, error, tries))
        except Denied as error:
            meter.usage += Usage(calls=tries, retries=tries - 1)
            if not await self._serves(traffic):
                raise
            raise _lasting(f"{self.name}: {error.reason}") from None
        except Unanswered as error:
            meter.usage += Usage(calls=tries, retries=tries - 1)
            raise self._failure(traffic, error, tries) from None
        traffic.unreached = 0
        traffic.served = True
        self._check_all_read(traffic, request, reply)
        for odd in reply.odd:
            traffic.warn(
                "odd",
                f"{self.name}: the server gave {odd} beside an answer; such values are left out",
            )
        return reply, Usage(
            calls=tries,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            prefix_tokens=reply.prefix_tokens,
            seconds=seconds,
            retries=tries - 1,
        )

    def _failure(
        self, traffic: Traffic, error: Unanswered, tries: int
    ) -> CallError | OutageError:
        """Return the error of a call that got no answer, for the row or for the whole run."""
        text = f" after {tries} tries" if tries > 1 else ""
        said = f"{self.name}: {error}{text}"
        if error.reached:
            traffic.unreached = 0
            if error.unread:
                return Odd(said)
            return CallError(said) if error.again else _lasting(said)
        traffic.unreached += 1
        if traffic.unreached < OUTAGE_AFTER:
            return Unreachable(said)
        return OutageError(
            f"{self.name} does not answer any more: {traffic.unreached} calls in a row got no answer, the last "
            f"one: {error}{text}. Start the server again and repeat the command: it goes on from here"
        )

    def _check_all_read(self, traffic: Traffic, request: Request, reply: Reply) -> None:
        """Check the server's count of a prompt's tokens against the prompt.

        Servers that leave out of it what they have from a cache have counted more before.

        Raises:
            CallError: If the server cannot have read all of it.
        """
        counted = reply.prompt_tokens + reply.prefix_tokens + reply.written_tokens
        traffic.most_counted = max(traffic.most_counted, counted)
        if not is_short_count(counted, request.messages):
            return
        if is_short_count(traffic.most_counted, request.messages):
            size = sum(len(message["content"]) for message in request.messages)
            raise _lasting(
                f"{self.name}: the server read only a part of the prompt: it counted {counted:,} tokens for "
                f"{size:,} characters. Start it with a longer context, or shorten the row's texts"
            )

    def _in_turn(
        self, traffic: Traffic, request: Request
    ) -> Awaitable[tuple[Reply, float, int]]:
        """Return what awaits `_sent`, once the beginning of the request is kept."""
        if isinstance(self.transport, ThroughLiteLLM) and self.transport.marks:
            send = partial(self._sent, traffic, request)
            return traffic.kept.sent(request, send)
        return self._sent(traffic, request)

    async def _sent(
        self, traffic: Traffic, request: Request
    ) -> tuple[Reply, float, int]:
        """Return a reply, its seconds, and how often the request was sent for it, at the model's pace.

        Raises what the transport raises.
        """
        if traffic.pace is not None:
            await traffic.pace.acquire()
        if self.once or self.attempts == 1:
            async with traffic.slots:
                return *await self._timed(traffic, request), 1
        sends = Sends(
            partial(self._timed, traffic, request),
            traffic.usual,
            traffic.slots,
            traffic.pace,
            self.attempts,
        )
        return *await sends.answer(), sends.count

    async def _timed(self, traffic: Traffic, request: Request) -> tuple[Reply, float]:
        started = time.monotonic()
        reply = await self.transport.send(request)
        seconds = time.monotonic() - started
        traffic.usual.took(seconds)
        return reply, seconds

    def _patience(self, traffic: Traffic, error: Unanswered, tries: int) -> float:
        """Seconds until the next try.

        Raises OutageError where the server wants to be left alone for longer than a run can wait.
        """
        wait = _patience(error, tries)
        if (error.after or 0.0) > LONGEST_WAIT:
            raise OutageError(
                f"{self.name} wants to be asked again in {_duration(wait)} ({error}). What is finished is kept: repeat "
                "the command then, it goes on from here"
            )
        if wait >= LONG_WAIT:
            traffic.warn(
                f"wait {wait:.0f}",
                f"{self.name}: waiting for {_duration(wait)}, as it asks ({error})",
            )
        return wait

    async def _serves(self, traffic: Traffic) -> bool:
        """Return True if key and model name are right: a call has had an answer, or a plain question has one now."""
        if not traffic.served:
            try:
                async with traffic.slots:
                    await self.transport.send(PLAIN)
                traffic.served = True
            except (ModelError, Unanswered):
                return False
        return True


def _lasting(text: str) -> CallError:
    """Return the error of a request that the server refused, and would refuse again."""
    error = CallError(text)
    error.lasting = True
    return error


def _patience(error: Unanswered, tries: int) -> float:
    """Seconds that the server asked for, else exponential back-off with jitter (at most 0.5 s, growing to 30 s)."""
    if error.after is not None:
        return error.after
    return random.uniform(0, min(30.0, 2.0 ** (tries - 2)))


def _duration(seconds: float) -> str:
    """Seconds in words: "90 s", "12 minutes", "3.0 hours"."""
    if seconds < 600:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
