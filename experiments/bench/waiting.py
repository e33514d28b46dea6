"""A made-up model on loopback, for measurements: its score is a function of the prompt, and its answer takes a while.

    python experiments/bench/waiting.py LOW HIGH      # milliseconds

It prints its address and serves until its standard input closes. GET /counts says what was asked since the last
GET /counts?reset: calls, different ones, seconds from the first call to the last answer.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from aiohttp import web


class Model:
    """A made-up model with counters of its requests."""

    def __init__(self, low: float, high: float) -> None:
        self.low = low
        self.high = high
        self.reset()

    def reset(self) -> None:
        """Set the counters to zero."""
        self.asked: Counter[str] = Counter()
        self.first = self.last = 0.0
        self.under_way = self.most = 0

    async def chat(self, request: web.Request) -> web.Response:
        """Answer a chat request after a random wait."""
        body = await request.json()
        prompt = "\n".join(str(message["content"]) for message in body["messages"])
        if "2 + 2 =" in prompt:
            return completion("4")
        self.first = self.first or time.time()
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(random.uniform(self.low, self.high) / 1000)
        self.under_way -= 1
        mark = sha256(prompt.encode()).hexdigest()
        self.asked[mark] += 1
        self.last = time.time()
        return completion(f"Explanation: It is so.\nScore: {int(mark, 16) % 101}")

    async def counts(self, request: web.Request) -> web.Response:
        """Return the counters as JSON; reset them on request."""
        calls = sum(self.asked.values())
        data = {
            "calls": calls,
            "different": len(self.asked),
            "most": self.most,
            "seconds": self.last - self.first,
        }
        if "reset" in request.query:
            self.reset()
        return web.json_response(data)


def completion(text: str) -> web.Response:
    """Return a chat completion with this text."""
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text},
    }
    return web.json_response(
        {"choices": [choice], "usage": {"prompt_tokens": 300, "completion_tokens": 12}}
    )


async def serve(model: Model) -> None:
    """Print the address of a free port and answer there until standard input closes."""
    app = web.Application(client_max_size=2**26)
    app.add_routes(
        [web.post("/v1/chat/completions", model.chat), web.get("/counts", model.counts)]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


class Served:
    """A model in a process of its own."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.base = f"{address}/v1"

    def counts(self, *, reset: bool = False) -> dict[str, Any]:
        """Return the model's counters.

        Args:
            reset: True to set them to zero afterwards.
        """
        address = f"{self.address}/counts{'?reset=1' if reset else ''}"
        with urllib.request.urlopen(address) as answer:  # noqa: S310
            counts: dict[str, Any] = json.load(answer)
            return counts


@contextmanager
def waiting(low: float, high: float) -> Iterator[Served]:
    """Yield a model that ends with the block."""
    command = [sys.executable, str(Path(__file__).resolve()), str(low), str(high)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Served(process.stdout.readline().strip())
        finally:
            process.stdin.close()
            process.wait(timeout=30)


if __name__ == "__main__":
    asyncio.run(serve(Model(float(sys.argv[1]), float(sys.argv[2]))))
