"""A server of judges in a process of its own."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest


class Running:
    """A server's process, its address, and what it wrote to stderr."""

    def __init__(self, process: Any) -> None:
        self.process, self.lines = process, []
        found = None
        while found is None:
            line = process.stderr.readline()
            assert line, "the server did not start"
            self.lines.append(line)
            found = re.search(r"at (http://\S+)", line)
        threading.Thread(target=lambda: self.lines.extend(process.stderr), daemon=True).start()
        self.http = httpx.Client(base_url=found[1], timeout=60)

    def score(self, output: str, **more: Any) -> httpx.Response:
        return self.http.post("/v1/score", json={"source": "s", "output": output} | more)

    def ready(self, until: Any) -> "Running":
        until(lambda: self.http.get("/readyz").status_code == 200)
        return self


@pytest.fixture
def of_process() -> type[Running]:
    """A server that was started another way."""
    return Running


@pytest.fixture
def running(spawn: Any, judge_file: Path, server: Any, fake: Any, until: Any) -> Iterator[Callable[..., Running]]:
    """running("--queue", 4): a server of the saved judge, which is ready."""
    server.answer = fake.judging(lambda ask: int(ask.mark[1:]) % 101)
    made = []

    def start(*arguments: object, ready: bool = True) -> Running:
        process = spawn("serve", judge_file, "--port", 0, "--api-base", server.base, *arguments)
        made.append(Running(process))
        return made[-1].ready(until) if ready else made[-1]

    yield start
    for one in made:
        one.http.close()
