"""A real HTTP server on loopback that speaks OpenAI's protocol and records its requests.

It misbehaves when told to.
"""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from judgesmith.testing.fake import Ask, Asked, Fault


class Server(Asked):
    """An OpenAI-style server in a thread of this process.

    `answered`: the keys of the requests whose answer was sent; `logprobs`: whether it gives log-probabilities (all on
    what it says).
    """

    def __init__(self) -> None:
        super().__init__()
        self.answered: list[str] = []
        self.logprobs = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result(20)

    def forget(self) -> None:
        self.asks.clear()
        self.answered.clear()

    def listed(self, answer: str) -> list[dict[str, Any]]:
        """The tokens of an answer with their log-probabilities; a test may set its own."""
        other = {"token": "x", "logprob": -3.0}
        return [
            {"token": t, "top_logprobs": [{"token": t, "logprob": -0.1}, other]}
            for t in re.findall(r"\d|\D+", answer)
        ]

    def routes(self) -> list[web.RouteDef]:
        """What it answers; a test's own server may have more."""
        return [web.post("/v1/chat/completions", self._chat)]

    async def _begin(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.add_routes(self.routes())
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=256)
        await site.start()
        self.base = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        ask = Ask(await request.json(), len(self.asks))
        self.asks.append(ask)
        answer = self.answer(ask)
        if not isinstance(answer, str | Fault):
            answer = await answer
        if isinstance(answer, Fault):
            if answer.cut:
                response = web.StreamResponse(
                    headers={
                        "Content-Length": "4000",
                        "Content-Type": "application/json",
                    }
                )
                await response.prepare(request)
                await response.write(b'{"choices": [{"message": {"content": "Score: 5')
                assert request.transport is not None
                request.transport.close()
                return response
            return web.Response(
                status=answer.status, text=answer.text, headers=answer.headers
            )
        choice: dict[str, Any] = {
            "message": {"content": answer},
            "finish_reason": "stop",
        }
        if self.logprobs and ask.body.get("logprobs"):
            choice["logprobs"] = {"content": self.listed(answer)}
        usage = {
            "prompt_tokens": len(ask.text) // 4,
            "completion_tokens": len(answer) // 4,
        }
        response = web.json_response({"choices": [choice], "usage": usage})
        await response.prepare(request)
        await response.write_eof()
        self.answered.append(ask.key)
        return response

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@contextmanager
def running_server() -> Iterator[Server]:
    """A server that is closed at the end."""
    made = Server()
    try:
        yield made
    finally:
        made.close()
