"""A small OpenAI-style server on loopback, for measurements: one fixed answer after a fixed wait.

Run as a program it prints its address and serves until its standard input closes, so that it never outlives the
process that started it. Prompts in DSPy's own chat form get their answer in that form.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import orjson

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
PLAIN = "Explanation: Fine.\nScore: 4"
CHAT = "[[ ## explanation ## ]]\nFine.\n\n[[ ## score ## ]]\n4\n\n[[ ## completed ## ]]"
#: What a 20-way `top_logprobs` looks like where the score's digit stands, and elsewhere.
DIGITS = (
    ("4", -0.4),
    ("3", -1.4),
    ("5", -2.6),
    ("2", -4.1),
    ("1", -6.5),
    ("**", -9.0),
    (" 4", -9.5),
    ("four", -11.0),
)
OTHERS = tuple(
    (word, -0.2 - 2.0 * place)
    for place, word in enumerate(("Fine", "Good", "The", "It", "Clear", "Poor"))
)


def completion(text: str, *, logprobs: bool) -> dict[str, Any]:
    """Return a chat completion in OpenAI's form, with log-probabilities for its few tokens on request."""
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    if logprobs:
        head, score, tail = text.partition("4")
        pieces = [
            *(piece for piece in head.splitlines(keepends=True)),
            score,
            *([tail] if tail else []),
        ]
        choice["logprobs"] = {
            "content": [
                {
                    "token": piece,
                    "logprob": -0.4,
                    "top_logprobs": [
                        {"token": t, "logprob": p}
                        for t, p in (DIGITS if piece == "4" else OTHERS)
                    ],
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


class Model:
    """The server's answer, sent `latency` seconds after a request; every `hanging`-th is never sent (0: all are)."""

    def __init__(self, latency: float, hanging: int = 0) -> None:
        self.latency = latency
        self.hanging = hanging
        self.asked = 0
        self._made = {
            (text, logprobs): _response(
                "200 OK", orjson.dumps(completion(text, logprobs=logprobs))
            )
            for text in (PLAIN, CHAT)
            for logprobs in (False, True)
        }

    def answer(self, body: bytes) -> bytes:
        """Return a response, headers and all."""
        return self._made[
            CHAT if b"[[ ## " in body else PLAIN,
            b'"logprobs":true' in body.replace(b": ", b":"),
        ]


def _response(status: str, body: bytes = b"") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Client(asyncio.Protocol):
    """One connection.

    It reads only the HTTP that model clients send, each body with its length: aiohttp's server took a quarter of a
    millisecond a call from the cores that were measured.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answer each request that has arrived in full."""
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
            self.model.asked += 1
            if not self.model.hanging or self.model.asked % self.model.hanging:
                asyncio.get_running_loop().call_later(
                    self.model.latency, self._answer, body
                )

    def _answer(self, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(self.model.answer(body))


async def serve(model: Model) -> None:
    """Print the address of a free port and answer there until standard input closes."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Client(model), "127.0.0.1", 0, backlog=1024
    )
    host, port = server.sockets[0].getsockname()[:2]
    print(f"http://{host}:{port}/v1", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


@contextmanager
def loopback(*, latency_ms: float, hanging: int = 0) -> Iterator[str]:
    """Yield the address of this server in a process of its own, which ends with the block."""
    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        str(latency_ms),
        str(hanging),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise RuntimeError("the loopback server did not start")
        try:
            yield address
        finally:
            process.stdin.close()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()


if __name__ == "__main__":
    asyncio.run(serve(Model(float(sys.argv[1]) / 1000, int(sys.argv[2]))))
