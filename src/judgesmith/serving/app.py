"""The routes of a server of judges, and the gate before them: key, size of the body, counting, one line of log."""

from __future__ import annotations

import asyncio
import hmac
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

import orjson
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import ValidationError

from .. import __version__
from ..signatures.values import Verdict
from .forms import ManyIn, RowIn, ScoreIn, unreadable
from .jobs import Jobs
from .service import Refused, Served, Service

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: What needs no key: probes of an orchestrator know none.
OPEN = ("/healthz", "/readyz")
SCORE = "/v1/score"
JOBS = "/v1/jobs"
NDJSON = "application/x-ndjson"


def answer(row: RowIn, served: Served, verdict: Verdict | Refused) -> dict[str, Any]:
    """A verdict as it is sent: the verdict's own JSON with `judge`, `usage` and the row's id."""
    data: dict[str, Any] = {} if row.id is None else {"id": row.id}
    if isinstance(verdict, Refused):
        return data | {"error": error(verdict), "judge": served.mark}
    usage = verdict.usage
    counted = {name: getattr(usage, name) for name in ("calls", "cached", "prompt_tokens", "completion_tokens")}
    return data | verdict.to_dict() | {"judge": served.mark, "usage": counted}


def error(refused: Refused) -> dict[str, Any]:
    return {"code": refused.code, "message": str(refused), "retry_after": refused.after}


def refusal(refused: Refused) -> JSONResponse:
    headers = {} if refused.after is None else {"Retry-After": str(refused.after)}
    return JSONResponse({"error": error(refused)}, refused.status, headers)


def application(service: Service, jobs: Jobs, *, keys: tuple[str, ...] = (), log: bool = True) -> Callable[..., Any]:
    """The ASGI application of a service. keys: one of them has to come with each request, where there are any."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        jobs.start()
        yield
        await asyncio.to_thread(jobs.stop)
        await service.close()

    app = FastAPI(
        title="judgesmith", version=__version__, description="Scores by compiled judges.", lifespan=lifespan,
        docs_url=None, redoc_url=None,  # both load scripts from elsewhere; /openapi.json is there
    )  # fmt: skip
    _routes_of_state(app, service)
    _routes_of_scores(app, service)
    _routes_of_jobs(app, jobs)

    @app.exception_handler(Refused)
    async def refused(_: Request, problem: Refused) -> Response:
        return refusal(problem)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, problem: RequestValidationError) -> Response:
        return refusal(unreadable(problem))

    return Gate(app, service, keys, log)


def _routes_of_state(app: FastAPI, service: Service) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Whether the process lives."""
        return {"status": "ok", "version": __version__}

    @app.get("/readyz")
    async def readyz() -> Response:
        """Whether every judge's model answers, and the server is not stopping."""
        problems = {s.name: s.problem for s in service.judges.values() if s.problem is not None}
        ready = not problems and not service.stopping
        return JSONResponse({"ready": ready, "stopping": service.stopping, "problems": problems}, 200 if ready else 503)

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Prometheus' text format."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/v1/judges")
    async def judges() -> list[dict[str, Any]]:
        """The judges of this server."""
        return [served.about() for served in service.judges.values()]


def _routes_of_scores(app: FastAPI, service: Service) -> None:
    @app.post(SCORE, responses={200: {"model": Verdict}})
    async def score(row: ScoreIn, request: Request) -> Response:
        """The verdict on one output. A row that the judge has no score for has `score` null and says why in `failure`:
        it is no low score."""
        return await score_one(service, row, request.scope)

    @app.post("/v1/score/many", responses={200: {"content": {NDJSON: {}}}})
    async def score_many(many: ManyIn, request: Request) -> Response:
        """Verdicts on many outputs, a line of JSON each, in their order, as soon as they are there. A row that could
        not be judged has `error` in its line; send it again after `retry_after` seconds."""
        served = service.find(many.judge)
        service.accept(served, len(many.rows))
        request.scope["judgesmith"] |= {"judge": served.name, "rows": len(many.rows)}

        async def lines() -> AsyncIterator[bytes]:
            left = len(many.rows)
            try:
                verdicts = service.score_many(served, [row.item() for row in many.rows])
                place = 0
                async for verdict in verdicts:
                    yield orjson.dumps({"index": place} | answer(many.rows[place], served, verdict)) + b"\n"
                    place, left = place + 1, left - 1
                    service.release(1)
            finally:
                service.release(left)

        return StreamingResponse(lines(), media_type=NDJSON)


def _routes_of_jobs(app: FastAPI, jobs: Jobs) -> None:
    rows = {"requestBody": {"required": True, "content": {NDJSON: {"schema": {"type": "string"}}}}}

    @app.post(JOBS, status_code=202, openapi_extra=rows)
    async def begin(request: Request, judge: str | None = None) -> Response:
        """Rows to be judged in the background, a line of JSON each. Answers with the job's id and where its status and
        results are."""
        about = await jobs.accept(request.stream(), judge)
        request.scope["judgesmith"] |= {"judge": about["judge"], "rows": about["rows"]}
        return JSONResponse(about, 202, {"Location": about["status"]})

    @app.get(JOBS + "/{job}")
    def status(job: str) -> dict[str, Any]:
        """How far a job is. state: queued, running, waiting (`problem` says why; it is retried) or done.
        Of `rows`, `done` have a line in the results: `scored` and `failed`; `failures` has the first reasons."""
        return jobs.status(job)

    @app.get(JOBS + "/{job}/results", responses={200: {"content": {NDJSON: {}}}})
    def results(job: str, start: int = Query(0, ge=0)) -> Response:
        """A line of JSON for each row that is done, in the order of the rows, from row `start` (0: the first); of a job
        that is not done, those that are there."""
        return StreamingResponse(jobs.results(job, start), media_type=NDJSON)

    @app.delete(JOBS + "/{job}", status_code=204)
    def remove(job: str) -> Response:
        """Cancel a job, or forget one that is done: its rows and results are gone."""
        jobs.remove(job)
        return Response(status_code=204)


async def score_one(service: Service, row: ScoreIn, scope: Scope) -> Response:
    """The answer to POST /v1/score. Raises Refused."""
    served = service.find(row.judge)
    service.accept(served, 1)
    try:
        verdict = await service.score(served, row.item())
    finally:
        service.release(1)
    scope["judgesmith"] |= {"judge": served.name, "failure": verdict.failure}
    return Response(orjson.dumps(answer(row, served, verdict)), media_type="application/json")


class Gate:
    """ASGI middleware: the key, the size of the body, counting, and a line of JSON on stderr for each request, which
    holds no text of a row."""

    def __init__(self, app: Callable[..., Any], service: Service, keys: tuple[str, ...], log: bool) -> None:
        self.app, self.service, self.log = app, service, log
        self.keys = tuple(sha256(key.encode()).digest() for key in keys)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        data: dict[str, Any] = {"status": 500}
        scope["judgesmith"] = data
        started = time.perf_counter()
        # Of a job, a row a line, nothing is held in memory.
        left = most = self.service.bounds.job_body if scope["path"] == JOBS else self.service.bounds.body
        too_long = Refused(413, "too_long", f"a body has at most {most} bytes")

        async def receiving() -> MutableMapping[str, Any]:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise too_long
            return message

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                data["status"] = message["status"]
            await send(message)

        try:
            headers = dict(scope["headers"])
            if scope["path"] not in OPEN:
                self._check_key(headers.get(b"authorization", b""))
            length = headers.get(b"content-length", b"0")
            if not length.isdigit() or int(length) > most:
                raise too_long
            # Past the framework's routing, which costs a fifth of a request; its route documents this one.
            direct = scope["method"] == "POST" and scope["path"] == SCORE
            await (self._score if direct else self.app)(scope, receiving, sending)
        except Refused as problem:
            await refusal(problem)(scope, receive, sending)
        finally:
            self._tell(scope, data, time.perf_counter() - started)

    def _check_key(self, bearer: bytes) -> None:
        digest = sha256(bearer[7:].strip() if bearer[:7].lower() == b"bearer " else b"").digest()
        # All are compared: how long it takes tells nothing of which one is right.
        if self.keys and not sum(hmac.compare_digest(digest, key) for key in self.keys):
            raise Refused(401, "key", "send the key as `Authorization: Bearer KEY`")

    async def _score(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        try:
            row = ScoreIn.model_validate_json(bytes(body))
        except ValidationError as problem:
            raise unreadable(problem) from None
        await (await score_one(self.service, row, scope))(scope, receive, send)

    def _tell(self, scope: Scope, data: dict[str, Any], seconds: float) -> None:
        # Of few routes, whatever is asked for.
        route = SCORE if scope["path"] == SCORE else getattr(scope.get("route"), "path", "other")
        self.service.metrics.of(self.service.metrics.requests, route, data["status"]).inc()
        if self.log:
            line = {
                "time": round(time.time(), 3), "event": "request", "method": scope["method"], "route": route,
                "ms": round(1000 * seconds, 1),
            } | data  # fmt: skip
            sys.stderr.write(orjson.dumps(line).decode() + "\n")
