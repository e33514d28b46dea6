"""Checks before the routes: origin, key, kind, size and pace of the body; counting, and one line of log."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable, Container, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError

from judgesmith.rooms.serving.clients import Clients
from judgesmith.rooms.serving.forms import ManyIn, ScoreIn, read_body, unreadable
from judgesmith.rooms.serving.reasons import debugging
from judgesmith.rooms.serving.service import Refused, Service
from judgesmith.running.origin import LOOPBACK, foreign

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: What needs no key: probes of an orchestrator know none.
OPEN = ("/healthz", "/readyz")
SCORE = "/v1/score"
MANY = "/v1/score/many"
#: Bytes of a body from which on it is read in a thread, so that other requests do not wait.
LONG = 64 * 1024
#: Seconds that a body has to arrive, and the bytes that have to come in each second after these.
ARRIVAL = 30.0
PACE = 32_768
HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]


@dataclass(frozen=True)
class Hosts:
    """Values of `Host` that a server answers to.

    They are its own address and, with any port, names that a proxy gives it. everywhere: it listens to other machines,
    so that any numeric address can be its own.
    """

    port: int
    names: frozenset[str] = frozenset()
    everywhere: bool = False

    def __contains__(self, host: object) -> bool:
        name, colon, port = str(host).rpartition(":")
        if not colon or not re.fullmatch("[0-9]{1,5}", port):
            name = str(host)
            port = "80"
        # A page's name is no address, whatever the DNS answers.
        numeric = name.replace(".", "").isdecimal() or name.startswith("[")
        if self.everywhere and (numeric or name in LOOPBACK):
            return True
        # As texts: Python makes no number of thousands of digits.
        return name in self.names or (name in LOOPBACK and port == str(self.port))


def error(refused: Refused) -> dict[str, Any]:
    """Return a refusal as JSON."""
    return {"code": refused.code, "message": str(refused), "retry_after": refused.after}


def refusal(refused: Refused) -> JSONResponse:
    """Return a refusal as an HTTP response."""
    headers = {} if refused.after is None else {"Retry-After": str(refused.after)}
    return JSONResponse({"error": error(refused)}, refused.status, headers)


class Gate:
    """ASGI middleware that checks requests.

    score, many: answer POST /v1/score and /v1/score/many past the framework's routing, which costs a fifth of a request
    and reads long bodies in the event loop; their routes document these. The line of JSON on stderr for each request
    holds no text of a row.
    """

    def __init__(
        self,
        app: Callable[..., Any],
        service: Service,
        keys: tuple[str, ...],
        hosts: Container[str],
        log: bool,
        score: Callable[[ScoreIn, Scope], Awaitable[Any]],
        many: Callable[[ManyIn, Scope], Awaitable[Any]],
    ) -> None:
        self.app = app
        self.service = service
        self.hosts = hosts
        self.log = log
        self.score = score
        self.many = many
        self.clients = Clients(keys, service.bounds.key_rows)
        self.arriving = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse a request, and log it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        data: dict[str, Any] = {"status": 500}
        scope["judgesmith"] = data
        started = time.perf_counter()
        begun = False

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                data["status"] = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        body = Body(self, receive)
        try:
            headers = dict(scope["headers"])
            self._check(scope, headers)
            body.announced(headers.get(b"content-length", b"0"))
            direct: dict[str, Any] = (
                {SCORE: self._score, MANY: self._many}
                if scope["method"] == "POST"
                else {}
            )
            await direct.get(scope["path"], self.app)(scope, body.receive, sending)
        except Refused as problem:
            await refusal(problem)(scope, receive, sending)
        except Exception as problem:
            data["problem"] = type(problem).__name__
            if debugging():
                raise
            if begun:  # cut off: the client sees that this was not all
                raise ConnectionAbortedError from None
            await refusal(
                Refused(
                    500,
                    "internal",
                    "this server failed; its log names the kind of error",
                )
            )(scope, receive, sending)
        finally:
            body.end()
            self._write_log(scope, data, time.perf_counter() - started)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Check the origin, key and kind of a request.

        Raises:
            Refused: If another site's page sends it, or it has no key or is no JSON.
        """
        if problem := foreign(scope["headers"], self.hosts):
            raise Refused(
                problem[0], "origin" if problem[0] == 403 else "host", problem[1]
            )
        if scope["path"] not in OPEN:
            place = self.clients.find(headers.get(b"authorization", b""))
            scope["judgesmith.key"] = place
            if name := self.clients.name(place):
                scope["judgesmith"]["key"] = name
        kind = (
            headers.get(b"content-type", b"")
            .decode("latin-1")
            .partition(";")[0]
            .strip()
            .lower()
        )
        if (
            scope["method"] == "POST" and kind != "application/json"
        ):  # which no form of a web page can send
            raise Refused(
                415, "content_type", "send the rows as `Content-Type: application/json`"
            )

    async def _many(self, scope: Scope, receive: Receive, send: Send) -> None:
        rows = await _read(ManyIn, receive, self.service)
        if rows is not None:
            self.clients.take(scope["judgesmith.key"], len(rows.rows))
            await (await self.many(rows, scope))(scope, receive, send)

    async def _score(self, scope: Scope, receive: Receive, send: Send) -> None:
        row = await _read(ScoreIn, receive, self.service)
        if row is None:
            return
        self.clients.take(scope["judgesmith.key"], 1)
        # A client that has gone makes room for others. The row is judged in the request's own task: one for judging and
        # one for listening cost as much as the answer's JSON.
        task = asyncio.current_task()
        gone = asyncio.ensure_future(receive())
        assert task is not None

        def hang_up(_: asyncio.Future[Any]) -> None:
            task.cancel()

        gone.add_done_callback(hang_up)
        try:
            await (await self.score(row, scope))(scope, receive, send)
        except asyncio.CancelledError:
            if not gone.done():
                raise
            task.uncancel()
        finally:
            gone.remove_done_callback(hang_up)
            gone.cancel()

    def _write_log(self, scope: Scope, data: dict[str, Any], seconds: float) -> None:
        # Of few routes, whatever is asked for.
        if scope["path"] in (SCORE, MANY):
            route = scope["path"]
        else:
            route = getattr(scope.get("route"), "path", "other")
        self.service.metrics.of(
            self.service.metrics.requests, route, data["status"]
        ).inc()
        if self.log:
            line = {
                "time": round(time.time(), 3),
                "event": "request",
                "method": scope["method"],
                "route": route,
                "ms": round(1000 * seconds, 1),
            } | data
            sys.stderr.write(orjson.dumps(line).decode() + "\n")


Form = TypeVar("Form", bound=BaseModel)


async def _read(form: type[Form], receive: Receive, service: Service) -> Form | None:
    """Return a request's body; None where the client has hung up. Raises Refused."""
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)

    def read() -> Form:
        return form.model_validate(read_body(bytes(body), service))

    try:
        return read() if len(body) < LONG else await asyncio.to_thread(read)
    except ValidationError as problem:
        raise unreadable(problem) from None


class Body:
    """A request's body on its way in.

    It is refused as soon as it is too long or too slow, or if all bodies being read would fill the memory.
    """

    def __init__(self, gate: Gate, receive: Receive) -> None:
        self.gate = gate
        self.raw = receive
        self.most = gate.service.bounds.body
        self.read = 0
        self.whole = False
        self.started = time.monotonic()

    def announced(self, length: bytes) -> None:
        """Refuse a body whose announced length is too long."""
        if not re.fullmatch(b"[0-9]{1,18}", length) or int(length) > self.most:
            raise self._too_long()

    def _too_long(self) -> Refused:
        return Refused(413, "too_long", f"a body has at most {self.most} bytes")

    async def receive(self) -> MutableMapping[str, Any]:
        """Return the next part of the body, or refuse it."""
        if self.whole:  # what comes now is that the client hangs up
            return await self.raw()
        left = self.started + ARRIVAL + self.read / PACE - time.monotonic()
        try:
            async with asyncio.timeout(left):
                message = await self.raw()
        except TimeoutError:
            raise Refused(
                408, "slow", f"the body did not arrive within {ARRIVAL:g} s"
            ) from None
        size = len(message.get("body", b""))
        self.whole = not message.get("more_body", False)
        self.read += size
        self.gate.arriving += size
        if self.read > self.most:
            raise self._too_long()
        if self.gate.arriving > self.gate.service.bounds.arriving:
            raise Refused(
                429, "busy", "too many long requests at once; try again later", 1
            )
        return message

    def end(self) -> None:
        """Release the memory that the body was counted for."""
        self.gate.arriving -= self.read
