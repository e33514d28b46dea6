"""A page for this machine's own browser, as `label` serves it.

Only the page with the token gets through. The token stands in the address after `#`, which browsers do not send; the
page sends it in a header, which a page of another origin cannot do without a permission that this server never gives.
"""

from __future__ import annotations

import hmac
import json
import re
import signal
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from judgesmith.errors import OptionError
from judgesmith.running.origin import LOOPBACK, foreign

Scope = MutableMapping[str, Any]
App = Callable[..., Awaitable[None]]

HOST = "127.0.0.1"
LONGEST_BODY = 1_048_576
#: The page's own files; there is nothing in them, so that they need no token.
OPEN = ("/", "/page.js", "/page.css")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Gate:
    """ASGI middleware that lets through only requests of the page itself."""

    def __init__(self, app: App, token: str, port: int) -> None:
        self.app = app
        self.token = token.encode()
        self.hosts = {f"{name}:{port}" for name in LOOPBACK}
        self.headers = [
            (name.lower().encode(), value.encode()) for name, value in HEADERS.items()
        ]

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Pass on requests with the token, and refuse all others."""
        if scope["type"] != "http":
            return  # no WebSockets, and nothing to start or stop

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self.headers]
            await send(message)

        if (refused := self._refused(scope)) is None:
            await self.app(scope, receive, sending)
            return
        body = json.dumps({"error": refused[1]}).encode()
        about = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        await sending(
            {"type": "http.response.start", "status": refused[0], "headers": about}
        )
        await sending({"type": "http.response.body", "body": body})

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        if problem := foreign(scope["headers"], self.hosts, page=scope["path"] == "/"):
            return problem
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        if scope["path"] in OPEN and scope["method"] == "GET":
            return None
        if not hmac.compare_digest(
            headers.get("x-token", "").encode("latin-1"), self.token
        ):
            return (
                401,
                "the token is wrong; open the whole address that the command printed",
            )
        if scope["method"] not in ("GET", "POST"):
            return 405, "only GET and POST"
        if scope["method"] == "POST" and "origin" not in headers:
            return 403, "a request without an origin is refused"
        if (
            scope["method"] == "POST"
            and headers.get("content-type") != "application/json"
        ):
            return 415, "send JSON"
        length = headers.get("content-length", "")
        if scope["method"] == "POST" and (
            not re.fullmatch("[0-9]{1,18}", length) or "transfer-encoding" in headers
        ):
            return 411, "a request without its length is refused"
        if scope["method"] == "POST" and int(length) > LONGEST_BODY:
            return 413, f"a request has at most {LONGEST_BODY} bytes"
        return None


def listening(port: int, *others: int) -> socket.socket:
    """Return a socket of this machine alone at the first free port of these; 0 is any free one.

    Raises:
        OptionError: If none is free.
    """
    for place in (port, *others):
        try:
            return socket.create_server((HOST, place))
        except OSError as error:
            problem = error.strerror or error
    raise OptionError(
        f"--port {port}: cannot listen there ({problem}); take another, or 0 for any free one"
    )


def serve(
    app: App, made: socket.socket, token: str, started: Callable[[str], None]
) -> None:
    """Serve an application until Ctrl-C or SIGTERM. started: called with the address of its page."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=2,
        ws="none",
    )
    before = {
        number: signal.signal(number, _ends)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        started(f"http://{HOST}:{made.getsockname()[1]}/#{token}")
        uvicorn.Server(config).run(sockets=[made])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ends(*_: Any) -> None:
    """Ctrl-C is how a session is ended: uvicorn stops at it, and raises it once more when it has stopped."""
