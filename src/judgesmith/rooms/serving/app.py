"""The routes of a server of judges, behind their gate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container
from contextlib import asynccontextmanager
from typing import Any

import orjson
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from judgesmith import __version__
from judgesmith.rooms.serving.documented import (
    NDJSON,
    OF_BODIES,
    About,
    Answer,
    AnyLine,
    Documented,
    Health,
    Ready,
    refusals,
)
from judgesmith.rooms.serving.forms import ManyIn, RowIn, ScoreIn, unreadable
from judgesmith.rooms.serving.gate import MANY, SCORE, Gate, Scope, error, refusal
from judgesmith.rooms.serving.reasons import for_client, logged
from judgesmith.rooms.serving.service import Refused, Served, Service
from judgesmith.rooms.serving.tracing import traced
from judgesmith.signatures.values import Verdict

#: One of the server's keys; the gate asks for it.
BEARER = [
    Depends(
        HTTPBearer(
            auto_error=False, description="One of the keys in JUDGESMITH_API_KEY."
        )
    )
]
READING = refusals(*OF_BODIES)


def answer(row: RowIn, served: Served, verdict: Verdict | Refused) -> dict[str, Any]:
    """Return a verdict as it is sent: the verdict's own JSON with `judge`, `usage` and the row's id."""
    data: dict[str, Any] = {} if row.id is None else {"id": row.id}
    if isinstance(verdict, Refused):
        return data | {"error": error(verdict), "judge": served.mark}
    usage = verdict.usage
    counted = {
        name: getattr(usage, name)
        for name in ("calls", "cached", "prompt_tokens", "completion_tokens")
    }
    data |= for_client(verdict.to_dict())
    return data | {"judge": served.mark, "usage": counted}


def application(
    service: Service, *, keys: tuple[str, ...], hosts: Container[str], log: bool = True
) -> Callable[..., Any]:
    """Return the ASGI application of a service.

    keys: one of them has to come with each request. hosts: allowed values of `Host`.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.close()

    app = Documented(
        title="judgesmith",
        version=__version__,
        description="Scores by compiled judges.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,  # both load scripts from elsewhere; /openapi.json is there
        # Newer versions trace by themselves: what passes the gate alone, and with words of requests in their logs.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    for served in service.judges.values():
        app.roles |= served.roles
    _routes_of_state(app, service)
    _routes_of_scores(app, service)

    @app.exception_handler(Refused)
    async def refused(_: Request, problem: Refused) -> Response:
        return refusal(problem)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, problem: RequestValidationError) -> Response:
        return refusal(unreadable(problem))

    @app.exception_handler(HTTPException)
    async def missing(_: Request, problem: HTTPException) -> Response:
        answer = refusal(
            Refused(
                problem.status_code, "no_route", f"{problem.detail}; see /openapi.json"
            )
        )
        answer.headers.update(problem.headers or {})
        return answer

    async def score(row: ScoreIn, scope: Scope) -> Response:
        return await score_one(service, row, scope)

    async def many(rows: ManyIn, scope: Scope) -> Response:
        return await score_each(service, rows, scope)

    return traced(Gate(app, service, keys, hosts, log, score, many))


def _routes_of_state(app: FastAPI, service: Service) -> None:
    probed = refusals(401, *OF_BODIES)

    @app.get("/healthz", responses=probed)
    async def healthz() -> Health:
        """Return whether the process lives."""
        return Health(status="ok", version=__version__)

    @app.get(
        "/readyz", responses=probed | {200: {"model": Ready}, 503: {"model": Ready}}
    )
    async def readyz() -> Response:
        """Return whether every judge's model answers, in all processes, and the server is not stopping."""
        problems = service.problems()
        ready = not problems and not service.stopping
        data = {"ready": ready, "stopping": service.stopping, "problems": problems}
        return JSONResponse(data, 200 if ready else 503)

    text = {"content": {"text/plain": {"schema": {"type": "string"}}}}

    @app.get(
        "/metrics",
        response_class=Response,
        responses=READING | {200: text},
        dependencies=BEARER,
    )
    async def metrics() -> Response:
        """Prometheus' text format."""
        return Response(
            service.metrics.text(),
            media_type="text/plain; version=0.0.4; charset=utf-8",
        )

    @app.get("/v1/judges", responses=READING, dependencies=BEARER)
    async def judges() -> list[About]:
        """Return the judges of this server."""
        return [About(**served.about()) for served in service.judges.values()]


def _routes_of_scores(app: FastAPI, service: Service) -> None:
    @app.post(
        SCORE, responses=refusals() | {200: {"model": Answer}}, dependencies=BEARER
    )
    async def score(row: ScoreIn, request: Request) -> Response:
        """Return the verdict on one output.

        A row that the judge has no score for has `score` null and says why in `failure`: it is no low score.
        """
        return await score_one(service, row, request.scope)

    lines_of_json = {"model": AnyLine, "content": {NDJSON: {}}}

    @app.post(MANY, responses=refusals(504) | {200: lines_of_json}, dependencies=BEARER)
    async def score_many(many: ManyIn, request: Request) -> Response:
        """Return verdicts on many outputs, a line of JSON each, in their order, as soon as they are there.

        A row that could not be judged has `error` in its line; send it again after `retry_after` seconds.
        """
        return await score_each(service, many, request.scope)


async def score_each(service: Service, many: ManyIn, scope: Scope) -> Response:
    """Return the answer to POST /v1/score/many. Raises Refused."""
    served = service.find(many.judge)
    service.accept(served, len(many.rows))
    scope["judgesmith"] |= {"judge": served.name, "rows": len(many.rows)}

    async def lines() -> AsyncIterator[bytes]:
        left = len(many.rows)
        try:
            verdicts = service.score_many(served, [row.item() for row in many.rows])
            place = 0
            async for verdict in verdicts:
                yield (
                    orjson.dumps(
                        {"index": place} | answer(many.rows[place], served, verdict)
                    )
                    + b"\n"
                )
                place = place + 1
                left = left - 1
                service.release(1)
        finally:
            service.release(left)

    return StreamingResponse(lines(), media_type=NDJSON)


async def score_one(service: Service, row: ScoreIn, scope: Scope) -> Response:
    """Return the answer to POST /v1/score. Raises Refused."""
    served = service.find(row.judge)
    service.accept(served, 1)
    try:
        verdict = await service.score(served, row.item(), explain=row.explain)
    finally:
        service.release(1)
    scope["judgesmith"] |= {"judge": served.name, "failure": logged(verdict.failure)}
    return Response(
        orjson.dumps(answer(row, served, verdict)), media_type="application/json"
    )
