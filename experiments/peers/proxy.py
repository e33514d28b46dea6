"""What stands between a peer and the model: counts calls and tokens, and ends a search whose calls are used up.

Every peer asks the same model through it, whatever model name it sends. A search has `max_calls`; held-out judging has
an allowance of its own, so that a search which spends everything can still be judged.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self
from zlib import crc32

import httpx

Phase = Literal["search", "judging"]
#: Neither "rate" nor "quota" nor 429: clients wait and ask again after those.
USED_UP = "the calls of this comparison are used up"


@dataclass(slots=True)
class Counted:
    """What one phase used. `calls` were sent on (`n` answers are `n` calls), `failed` of them came back with an error,
    `refused` were not sent on; `unknown` answers did not say their tokens."""

    calls: int = 0
    failed: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class Upstream:
    """The model behind: an OpenAI-style address that ends in /v1, the name that it knows, and its key."""

    base: str
    model: str
    key: str | None = None


class CountingProxy:
    """An OpenAI-style endpoint on loopback, as a context manager: `base` and `key` are what a peer is given.

    Args:
        max_calls: calls that a search may send.
        judging_calls: calls that judging the held-out rows may send.
        longest_answer: tokens of an answer at most; what a peer leaves open is set to it, so that no call runs on.

    While held-out rows are judged, a temperature that a peer leaves open is 0; in a search it is the model's own.
    """

    def __init__(
        self, upstream: Upstream, *, max_calls: int, judging_calls: int, longest_answer: int, timeout: float = 600.0
    ) -> None:
        self.key = secrets.token_urlsafe(16)
        self.counted: dict[Phase, Counted] = {"search": Counted(), "judging": Counted()}
        self.phase: Phase = "search"
        self._limits: dict[Phase, int] = {"search": max_calls, "judging": judging_calls}
        self._upstream = upstream
        self._longest_answer = longest_answer
        self._lock = threading.Lock()
        self._client = httpx.Client(trust_env=False, timeout=timeout)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._client.close()

    def answer(self, body: dict[str, Any]) -> tuple[int, bytes]:
        """(HTTP status, JSON) for one chat completion."""
        if body.get("stream"):
            return 400, _error("answers in pieces (stream) are not counted here; ask for whole ones")
        answers = body.get("n") or 1
        if not isinstance(answers, int) or answers < 1:
            return 400, _error(f"n={answers!r} is not a number of answers")
        with self._lock:
            phase, counted = self.phase, self.counted[self.phase]
            if counted.calls + answers > self._limits[phase]:
                counted.refused += 1
                return 403, _error(USED_UP, "calls_used_up")
            counted.calls += answers
        status, payload = self._send(self._settled(body, phase))
        usage = _usage(payload) if status == 200 else None
        with self._lock:
            if status != 200:
                counted.failed += answers
            elif usage is None:
                counted.unknown += answers
            else:
                counted.prompt_tokens += usage[0]
                counted.completion_tokens += usage[1]
        return status, payload

    def _settled(self, body: dict[str, Any], phase: Phase) -> dict[str, Any]:
        """The request as the model gets it: its own name for itself, an answer of bounded length."""
        asked = [v for k in ("max_tokens", "max_completion_tokens") if isinstance(v := body.get(k), int) and v > 0]
        settled = {k: v for k, v in body.items() if k != "max_completion_tokens"}
        settled |= {"model": self._upstream.model, "max_tokens": min([*asked, self._longest_answer])}
        if phase == "judging" and settled.get("temperature") is None:
            settled["temperature"] = 0.0
        return settled

    def _send(self, body: dict[str, Any]) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self._upstream.key}"} if self._upstream.key else {}
        try:
            # A request without `usage` in its answer cannot be counted; no stream, so it is always asked for.
            answer = self._client.post(self._upstream.base + "/chat/completions", json=body, headers=headers)
        except (httpx.HTTPError, ValueError, RuntimeError) as error:  # closed meanwhile: RuntimeError
            return 400, _error(f"no answer from the model: {type(error).__name__}")
        # A server error is asked again by every client, each in its own way; here each peer hears it once.
        return (answer.status_code if answer.status_code < 500 else 400), answer.content


def _usage(payload: bytes) -> tuple[int, int] | None:
    try:
        usage = json.loads(payload)["usage"]
        return int(usage["prompt_tokens"]), int(usage.get("completion_tokens") or 0)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _error(message: str, code: str = "refused") -> bytes:
    return json.dumps({"error": {"message": message, "type": "comparison", "code": code}}).encode()


def hashed_words(text: str, dimensions: int) -> list[float]:
    """A text as counts of its words, each at the place that its hash names, of length 1 (all 0 without words).

    A stand-in for an embedding model: texts that share words are near each other.
    """
    counts = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()):
        counts[crc32(word.encode("utf-8", "surrogatepass")) % dimensions] += 1.0
    length = sum(c * c for c in counts) ** 0.5
    return [c / length for c in counts] if length else counts


def _embeddings(body: dict[str, Any]) -> bytes:
    given = body.get("input")
    texts = given if isinstance(given, list) else [given]
    dimensions = body.get("dimensions") or 512
    data = [
        {"object": "embedding", "index": i, "embedding": hashed_words(str(text), dimensions)}
        for i, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 0, "total_tokens": 0}
    return json.dumps({"object": "list", "model": "hashed-words", "data": data, "usage": usage}).encode()


def _handler(proxy: CountingProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(200, b'{"object":"list","data":[{"id":"judge-model","object":"model"}]}')

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != f"Bearer {proxy.key}":
                return self._reply(401, _error("another comparison's key"))
            if self.path.endswith("/judging"):
                proxy.phase = "judging"
                return self._reply(200, b"{}")
            try:
                body = json.loads(raw)
            except ValueError:
                body = None
            if not isinstance(body, dict):
                return self._reply(400, _error("the request is no JSON object"))
            if self.path.endswith("/chat/completions"):
                return self._reply(*proxy.answer(body))
            if self.path.endswith("/embeddings"):
                return self._reply(200, _embeddings(body))
            return self._reply(404, _error(f"nothing answers at {self.path[:100]}"))

        def _reply(self, status: int, payload: bytes) -> None:
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)
            except ConnectionError:
                self.close_connection = True  # the peer gave up or was ended

        def log_message(self, format: str, *args: object) -> None: ...

    return Handler
