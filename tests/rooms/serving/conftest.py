"""A server of judges in a process of its own, and a service in this one."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection
from judgesmith.running.opening import open_judge

KEY = "a-key-of-sixteen-characters"
Ask = Callable[[httpx.AsyncClient], Awaitable[Any]]


class Running:
    """A server's process, its address, and what it wrote to stderr."""

    def __init__(self, process: Any) -> None:
        self.process, self.lines = process, []
        found = None
        while found is None:
            line = process.stderr.readline()
            assert line, "the server did not start"
            self.lines.append(line)
            found = re.search(
                r"at (http://\S+)(?: \(Authorization: (Bearer [\w-]{32});)?", line
            )
        threading.Thread(
            target=lambda: self.lines.extend(process.stderr), daemon=True
        ).start()
        self.key = {"Authorization": found[2]} if found[2] else {}
        self.http = httpx.Client(base_url=found[1], timeout=60, headers=self.key)

    def score(self, output: str, **more: Any) -> httpx.Response:
        return self.http.post(
            "/v1/score", json={"source": "s", "output": output} | more
        )

    def ready(self, until: Any) -> "Running":
        until(lambda: self.http.get("/readyz").status_code == 200)
        return self


@pytest.fixture
def running(
    spawn: Any, judge_file: Path, server: Any, fake: Any, until: Any
) -> Iterator[Callable[..., Running]]:
    """running("--queue", 4): a server of the saved judge, which is ready."""
    server.answer = fake.judging(lambda ask: int(ask.mark[1:]) % 101)
    made = []

    def start(
        *arguments: object,
        ready: bool = True,
        base: str = server.base,
        code: str | None = None,
    ) -> Running:
        process = spawn(
            "serve", judge_file, "--port", 0, "--api-base", base, *arguments, code=code
        )
        made.append(Running(process))
        return made[-1].ready(until) if ready else made[-1]

    yield start
    for at in made:
        at.http.close()


@pytest.fixture
def held(server: Any, fake: Any) -> Callable[[int], threading.Event]:
    """held(20): from now on the model answers row 20 and those after it when the event is set, the others at once."""

    def hold(first: int) -> threading.Event:
        go = threading.Event()

        async def score(ask: Any) -> str:
            while int(ask.mark[1:]) >= first and not go.is_set():
                await asyncio.sleep(0.01)
            return f"Explanation: Good.\nScore: {int(ask.mark[1:]) % 101}"

        server.answer = lambda ask: (
            score(ask) if ask.step == "score" else fake.sensible(ask)
        )
        return go

    return hold


@pytest.fixture
def asking(
    server: Any, fake: Any, judge_file: Path, tmp_path: Path
) -> Callable[..., Any]:
    """asking(coroutine): what it gives, called with a client of a service in this process whose model answers."""
    from judgesmith.rooms.serving.app import application
    from judgesmith.rooms.serving.gate import Hosts
    from judgesmith.rooms.serving.service import Bounds, Service

    server.answer = fake.judging(lambda ask: 7)

    def run(
        ask: Ask,
        problem: str | None = None,
        keys: tuple[str, ...] = (KEY,),
        log: bool = False,
        **bounds: Any,
    ) -> Any:
        judge = open_judge(
            judge_file, None, Connection(server.base, cache=False, attempts=1)
        )
        service = Service({"judge": judge}, Bounds(**bounds))
        service.judges["judge"].problem = problem
        app = application(service, keys=keys, hosts=Hosts(8000), log=log)

        async def asked() -> Any:
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            sent = {"Authorization": f"Bearer {KEY}"}
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1:8000", headers=sent
            ) as http:
                return await ask(http)

        return engine.run(asked())

    return run
