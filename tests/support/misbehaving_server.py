"""A real HTTP server on loopback that answers as badly as a test asks; the fixture `serve` starts them."""

import asyncio
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

COMPLETION: dict[str, Any] = {
    "choices": [
        {
            "message": {"role": "assistant", "content": "Score: 4"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 11, "completion_tokens": 3},
}


@dataclass(frozen=True)
class Say:
    """Answer of the server to one request.

    wait: seconds before it answers. cut: bytes of the body before it hangs up. hang_up, reset: no answer, the
    connection is closed or torn down. raw: these very bytes instead of an answer, as long as somebody reads them.
    """

    status: int = 200
    body: bytes = json.dumps(COMPLETION).encode()
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    cut: int | None = None
    hang_up: bool = False
    reset: bool = False
    raw: Iterable[bytes] | None = None


def saying(text: str, *likely: tuple[str, float]) -> Say:
    """An answer of this text. likely: the tokens that might stand in its place, with their log-probabilities."""
    choice: dict[str, Any] = {"message": {"content": text}, "finish_reason": "stop"}
    if likely:
        top = [{"token": token, "logprob": logprob} for token, logprob in likely]
        choice["logprobs"] = {"content": [{"token": text, "top_logprobs": top}]}
    return Say(body=json.dumps(COMPLETION | {"choices": [choice]}).encode())


class Server:
    """A real HTTP server on loopback. `behave(number, body)` says how it answers request `number` (from 1)."""

    def __init__(self, behave: Callable[[int, dict[str, Any]], Say]) -> None:
        self.behave = behave
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.times: list[float] = []
        self.most_in_flight = 0
        self._now = 0
        self.bytes_sent = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        start = asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=1024)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result(5)
        self.base = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def _connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = re.search(r"content-length: *(\d+)", head, re.IGNORECASE)
                body = (
                    json.loads(await reader.readexactly(int(length[1])))
                    if length
                    else {}
                )
                self.headers.append(head)
                self.bodies.append(body)
                self.times.append(time.monotonic())
                self._now += 1
                self.most_in_flight = max(self.most_in_flight, self._now)
                try:
                    say = self.behave(len(self.bodies), body)
                    if say.wait:
                        await asyncio.sleep(say.wait)
                finally:
                    self._now -= 1
                if say.hang_up:
                    return
                if say.reset:
                    # Closed without lingering, a connection ends in a reset.
                    connection = writer.get_extra_info("socket")
                    connection.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                    return
                if say.raw is not None:
                    for piece in say.raw:
                        writer.write(piece)
                        await writer.drain()
                        self.bytes_sent += len(piece)
                    return
                lines = [f"HTTP/1.1 {say.status} X", "Content-Type: application/json"]
                lines += [f"Content-Length: {len(say.body)}"]
                lines += [f"{name}: {value}" for name, value in say.headers.items()]
                writer.write(
                    "\r\n".join([*lines, "", ""]).encode() + say.body[: say.cut]
                )
                await writer.drain()
                if say.cut is not None:
                    return
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    def close(self) -> None:
        async def down() -> None:
            self._server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(down(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


MakeServer = Callable[..., Server]
