"""A small OpenAI-style server on loopback, for measurements: one fixed answer after a fixed wait.

Run as a program it prints its address and serves until its standard input closes, so that it never outlives the
process that started it. Prompts in DSPy's own chat form get their answer in that form.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
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


def application(latency: float) -> web.Application:
    """latency: seconds from a request to its answer."""
    made = {
        (text, logprobs): orjson.dumps(completion(text, logprobs=logprobs))
        for text in (PLAIN, CHAT)
        for logprobs in (False, True)
    }

    async def chat(request: web.Request) -> web.Response:
        body = await request.read()
        if latency:
            await asyncio.sleep(latency)
        answer = made[CHAT if b"[[ ## " in body else PLAIN, b'"logprobs":true' in body.replace(b": ", b":")]
        return web.Response(body=answer, content_type="application/json")

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", chat)
    return app


async def serve(app: web.Application) -> None:
    """Print the address, serve until standard input closes."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(f"http://{host}:{port}/v1", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


@contextmanager
def serving(script: str, *arguments: str) -> Iterator[str]:
    """The address of a server in a process of its own, which ends with the block: a script that calls `serve`."""
    command = [sys.executable, str(Path(script).resolve()), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:
                raise RuntimeError("the loopback server did not start")
            yield address
        finally:
            process.stdin.close()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()


def loopback(*, latency_ms: float) -> AbstractContextManager[str]:
    """The address of this server in a process of its own, which ends with the block."""
    return serving(__file__, "--latency-ms", str(latency_ms))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=50.0)
    asyncio.run(serve(application(parser.parse_args().latency_ms / 1000)))
