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
from typing import Any, cast

import orjson
from aiohttp import web

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
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


class Model:
    """What the server answers, and when. latency: seconds from a request to its answer; rate: answers a second at most,
    requests beyond it wait in line (0: any number)."""

    def __init__(self, latency: float, rate: float = 0.0, log: Log | None = None) -> None:
        self.latency, self.rate, self.log = latency, rate, log
        self._free = 0.0  # when the next request can be taken
        self._made = {
            (text, logprobs): _response("200 OK", orjson.dumps(completion(text, logprobs=logprobs)))
            for text in (PLAIN, CHAT)
            for logprobs in (False, True)
        }

    def wait(self) -> float:
        """Seconds until a request that comes now is answered."""
        if not self.rate:
            return self.latency
        now = time.monotonic()
        self._free = max(self._free + 1 / self.rate, now)
        return self.latency + self._free - now

    def answer(self, body: bytes) -> bytes:
        """A response, headers and all."""
        return self._made[CHAT if b"[[ ## " in body else PLAIN, b'"logprobs":true' in body.replace(b": ", b":")]


def _response(status: str, body: bytes = b"") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Client(asyncio.Protocol):
    """One connection. It reads only the HTTP that model clients send, each body with its length: aiohttp's server took
    a quarter of a millisecond a call from the cores that were measured."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[:end])
            length = LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._received) < whole:
                return
            body = bytes(self._received[end + 4 : whole])
            del self._received[:whole]
            if not head.startswith(b"POST /v1/chat/completions "):
                self._transport.write(_response("404 Not Found"))
                continue
            if self.model.log is not None:
                self.model.log.write("asked", body)
            asyncio.get_running_loop().call_later(self.model.wait(), self._answer, body)

    def _answer(self, body: bytes) -> None:
        if self._transport.is_closing():
            return
        if self.model.log is not None:
            self.model.log.write("answered", body)
        self._transport.write(self.model.answer(body))


async def _until_closed(host: str, port: int) -> None:
    """Print the address, wait until standard input closes."""
    print(f"http://{host}:{port}/v1", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def answer_all(model: Model, port: int = 0) -> None:
    """Print the address, answer as the model does until standard input closes. port: 0 for a free one."""
    server = await asyncio.get_running_loop().create_server(lambda: Client(model), "127.0.0.1", port, backlog=1024)
    await _until_closed(*server.sockets[0].getsockname()[:2])


async def serve(app: web.Application, port: int = 0) -> None:
    """Print the address, serve until standard input closes. port: 0 for a free one."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024)
    await site.start()
    await _until_closed(*runner.addresses[0][:2])
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
    asyncio.run(answer_all(Model(given.latency_ms / 1000, given.rate, log), given.port))
