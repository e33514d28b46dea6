"""A small OpenAI-style server on loopback, for measurements: one fixed answer after a fixed wait.

Run as a program it prints its address and serves until its standard input closes, so that it never outlives the
process that started it. Prompts in DSPy's own chat form get their answer in that form.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

PLAIN = "Explanation: Fine.\nScore: 4"
CHAT = "[[ ## explanation ## ]]\nFine.\n\n[[ ## score ## ]]\n4\n\n[[ ## completed ## ]]"
#: What a 20-way `top_logprobs` looks like where the score's digit stands, and elsewhere.
DIGITS = (("4", -0.4), ("3", -1.4), ("5", -2.6), ("2", -4.1), ("1", -6.5), ("**", -9.0), (" 4", -9.5), ("four", -11.0))
OTHERS = tuple((word, -0.2 - 2.0 * place) for place, word in enumerate(("Fine", "Good", "The", "It", "Clear", "Poor")))


def completion(text: str, *, logprobs: bool) -> dict[str, Any]:
    """A chat completion as OpenAI's, with log-probabilities for its few tokens if they were asked for."""
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    if logprobs:
        head, score, tail = text.partition("4")
        pieces = [*(piece for piece in head.splitlines(keepends=True)), score, *([tail] if tail else [])]
        choice["logprobs"] = {
            "content": [
                {
                    "token": piece,
                    "logprob": -0.4,
                    "top_logprobs": [{"token": t, "logprob": p} for t, p in (DIGITS if piece == "4" else OTHERS)],
                }
                for piece in pieces
            ]
        }
    return {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 1,
        "model": "loopback",
        "choices": [choice],
        "usage": {"prompt_tokens": 700, "completion_tokens": 8, "total_tokens": 708},
    }


class Log:
    """A file that says when each row was asked for and answered, line by line, so that it survives a kill. A row is the
    first "Report N" of its prompt with N below a million; see `bench.scoring.rows`."""

    ROW = re.compile(rb"Report (\d{1,6}):")

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, what: str, body: bytes) -> None:
        found = self.ROW.search(body)
        if found is not None:
            os.write(self.file, f"{what} {found[1].decode()} {time.time()}\n".encode())


def application(latency: float, rate: float = 0.0, log: Log | None = None) -> web.Application:
    """latency: seconds from a request to its answer; rate: answers a second at most, requests beyond it wait in line
    (0: any number)."""
    free = 0.0  # when the next request can be taken
    made = {
        (text, logprobs): orjson.dumps(completion(text, logprobs=logprobs))
        for text in (PLAIN, CHAT)
        for logprobs in (False, True)
    }

    async def chat(request: web.Request) -> web.Response:
        nonlocal free
        body = await request.read()
        if log is not None:
            log.write("asked", body)
        wait = latency
        if rate:
            now = time.monotonic()
            free = max(free + 1 / rate, now)
            wait += free - now
        if wait:
            await asyncio.sleep(wait)
        answer = made[CHAT if b"[[ ## " in body else PLAIN, b'"logprobs":true' in body.replace(b": ", b":")]
        if log is not None:
            log.write("answered", body)
        return web.Response(body=answer, content_type="application/json")

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", chat)
    return app


async def serve(app: web.Application, port: int = 0) -> None:
    """Print the address, serve until standard input closes. port: 0 for a free one."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(f"http://{host}:{port}/v1", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


class Endpoint:
    """A server in a process of its own, a script that calls `serve`: its address, and the process, which can be killed
    and started again at the same address."""

    def __init__(self, script: str, *arguments: str) -> None:
        self._command = [sys.executable, str(Path(script).resolve()), *arguments]
        self._start()

    def _start(self, *more: str) -> None:
        command = [*self._command, *more]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError("the loopback server did not start")

    def start_again(self) -> None:
        """After `kill`."""
        self._start("--port", self.address.partition("://")[2].partition(":")[2].partition("/")[0])

    def kill(self) -> None:
        """As kill -9 does."""
        self.process.kill()
        self._forget()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._forget()

    def _forget(self) -> None:
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def serving(script: str, *arguments: str) -> Iterator[str]:
    """The address of an Endpoint that ends with the block."""
    endpoint = Endpoint(script, *arguments)
    try:
        yield endpoint.address
    finally:
        endpoint.close()


def loopback(*, latency_ms: float) -> AbstractContextManager[str]:
    """The address of this server in a process of its own, which ends with the block."""
    return serving(__file__, "--latency-ms", str(latency_ms))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--rate", type=float, default=0.0, help="answers a second at most; 0: any number")
    parser.add_argument("--log", type=Path, help="a file that says when each row was asked for and answered")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    log = None if given.log is None else Log(given.log)
    asyncio.run(serve(application(given.latency_ms / 1000, given.rate, log), given.port))
