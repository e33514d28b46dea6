"""How a request reaches a model: an OpenAI-style server over our own connection, LiteLLM, or a DSPy LM object.

All three give the same `Reply` and raise the same two errors: `ModelError` when no call can succeed (key refused,
unknown model), `Unanswered` when this one did not, with what is needed to decide about trying again.
"""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp
import orjson

from ..errors import ModelError
from .engine import at_exit

Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """One generated token and the most likely tokens at its place with their natural-log probabilities."""

    text: str
    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer. `tokens` is None where the model gave no log-probabilities."""

    text: str
    tokens: tuple[TokenChoice, ...] | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prefix_tokens: int = 0
    finish: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """What a judge asks of a model. `grammar` is GBNF, only for models that were seen to take one."""

    messages: Sequence[Message]
    max_tokens: int
    temperature: float = 0.0
    top_logprobs: int = 0
    grammar: str | None = None
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    sample: int = 0


class Unanswered(Exception):
    """One request failed. `again` says whether a later try can succeed, `after` when (seconds), if the server said,
    `reached` whether the server answered anything at all."""

    def __init__(self, reason: str, *, again: bool, after: float | None = None, reached: bool = True) -> None:
        super().__init__(reason)
        self.again = again
        self.after = after
        self.reached = reached


class Transport(Protocol):
    async def send(self, request: Request) -> Reply: ...

    async def close(self) -> None: ...


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a `Retry-After` header asks for, given as a number or as a date; None where there is none."""
    value = headers.get("Retry-After") or headers.get("retry-after")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def read_reply(data: Any) -> Reply:
    """An OpenAI-style chat completion as a Reply. Raises Unanswered when it is not one."""
    try:
        choice = data["choices"][0]
        text = choice["message"]["content"] or ""
        if not isinstance(text, str):  # parts, as some servers give them
            text = "".join(part["text"] for part in text if part.get("type") == "text")
        usage = data.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        tokens = None
        listed = (choice.get("logprobs") or {}).get("content")
        if listed:
            tokens = tuple(
                TokenChoice(
                    t["token"],
                    tuple(
                        (a["token"], float(a["logprob"]))
                        for a in t.get("top_logprobs") or ()
                        if a["logprob"] is not None  # minus infinity, which JSON cannot write
                    ),
                )
                for t in listed
            )
        return Reply(
            text=text,
            tokens=tokens,
            prompt_tokens=int(usage.get("prompt_tokens") or 0),
            completion_tokens=int(usage.get("completion_tokens") or 0),
            prefix_tokens=int(details.get("cached_tokens") or 0),
            finish=str(choice.get("finish_reason") or ""),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise Unanswered(f"the answer is no chat completion ({type(error).__name__}: {error})", again=True) from None


class OpenAIStyle:
    """POST {base}/chat/completions over one pooled aiohttp session. Lives on the engine's loop."""

    def __init__(self, base: str, model: str, *, key: str | None, timeout: float, label: str) -> None:
        self.url = base.rstrip("/") + "/chat/completions"
        self.model = model
        self.label = label
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, 10.0))
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(request.messages),
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
        }
        if request.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        if request.grammar:
            body["grammar"] = request.grammar
        elif request.schema:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": dict(request.schema)},
            }
        return body

    async def send(self, request: Request) -> Reply:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:  # another loop: this process was forked
            self._loop = loop
            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300)
            self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout)
            at_exit(self.close)
        try:
            body = orjson.dumps(self.body(request))
        except orjson.JSONEncodeError as error:  # a lone surrogate, as broken JSON lines have
            raise Unanswered(f"a text of this row cannot be sent ({error})", again=False) from None
        try:
            # A redirect would turn the POST into a GET, or carry prompts to a server that nobody named.
            async with self._session.post(
                self.url, data=body, headers=self._headers, allow_redirects=False
            ) as response:
                payload = await response.read()
                if response.status != 200:
                    self._refuse(response.status, payload, response.headers)
        except TimeoutError:
            raise Unanswered(f"no answer within {self._timeout.total:g} s", again=True, reached=False) from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unanswered(
                f"the connection failed: {str(error) or type(error).__name__}", again=True, reached=False
            ) from None
        try:
            data = orjson.loads(payload)
        except orjson.JSONDecodeError:
            raise Unanswered(f"the answer is no JSON: {_excerpt(payload)}", again=True) from None
        return read_reply(data)

    def _refuse(self, status: int, payload: bytes, headers: Mapping[str, str]) -> None:
        what = f"HTTP {status}: {_excerpt(payload)}"
        if status in (401, 403):
            raise ModelError(f"{self.label}: the key was refused ({what}); set the key in the environment")
        if status in (301, 302, 303, 307, 308):
            there = headers.get("Location") or "another address"
            raise ModelError(f"{self.label}: {self.url} has moved to {there}; mend --api-base")
        if status == 404:
            raise ModelError(f"{self.label}: not found at the server ({what}); check the name and --api-base")
        raise Unanswered(what, again=_passes(status), after=retry_after(headers))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


class ThroughLiteLLM:
    """Any other provider, by LiteLLM's own client. Our retries replace LiteLLM's."""

    def __init__(self, model: str, *, timeout: float, key: str | None = None, api_base: str | None = None) -> None:
        self.model = model
        self._options: dict[str, Any] = {"timeout": timeout, "num_retries": 0, "drop_params": True}
        if key:
            self._options["api_key"] = key
        if api_base:
            self._options["api_base"] = api_base

    async def send(self, request: Request) -> Reply:
        import litellm
        from litellm import exceptions as failures
        from openai import OpenAIError

        litellm.suppress_debug_info = True
        options = dict(self._options)
        if request.top_logprobs:
            options |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        if request.schema:
            options["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": dict(request.schema)},
            }
        try:
            response = await litellm.acompletion(
                model=self.model,
                messages=list(request.messages),
                temperature=request.temperature,
                max_tokens=request.max_tokens,
                **options,
            )
        except (failures.AuthenticationError, failures.PermissionDeniedError, failures.NotFoundError) as error:
            raise ModelError(f"{self.model}: {_first_line(error)}") from None
        except failures.BadRequestError as error:
            if "LLM Provider NOT provided" in str(error):
                raise ModelError(
                    f"{self.model!r} names no provider; write PROVIDER/MODEL, for example openai/gpt-4o-mini, "
                    "ollama_chat/llama3.1:8b or local/qwen2.5-0.5b"
                ) from None
            raise Unanswered(_first_line(error), again=False) from None
        except (TimeoutError, failures.APIConnectionError, failures.Timeout) as error:
            raise Unanswered(_first_line(error), again=True, reached=False) from None
        except OpenAIError as error:  # LiteLLM's exceptions have no nearer base in common
            status = getattr(error, "status_code", None) or 500
            headers = getattr(error, "litellm_response_headers", None) or {}
            raise Unanswered(_first_line(error), again=_passes(status), after=retry_after(headers)) from None
        return read_reply(response.model_dump())

    async def close(self) -> None:
        return None


class ThroughDSPy:
    """A `dspy.BaseLM` object that the caller made: its own engine, retries and endpoint."""

    def __init__(self, lm: Any) -> None:
        self.lm = lm

    async def send(self, request: Request) -> Reply:
        options: dict[str, Any] = {"temperature": request.temperature, "max_tokens": request.max_tokens}
        if request.top_logprobs:
            options |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        if request.sample:
            options["rollout_id"] = request.sample
        try:
            outputs = await self.lm.acall(messages=list(request.messages), **options)
        except Exception as error:
            raise Unanswered(_first_line(error), again=False) from None
        output = outputs[0]
        message = {"message": {"content": output if isinstance(output, str) else output.get("text")}}
        if isinstance(output, dict) and output.get("logprobs"):
            logprobs = output["logprobs"]
            message["logprobs"] = logprobs if isinstance(logprobs, dict) else logprobs.model_dump()
        usage = self.lm.history[-1].get("usage") if getattr(self.lm, "history", None) else None
        return read_reply({"choices": [message], "usage": usage or {}})

    async def close(self) -> None:
        return None


def _passes(status: int) -> bool:
    """Whether a failure with this HTTP status may pass by itself."""
    return status in (408, 409, 425, 429) or status >= 500


def _excerpt(payload: bytes) -> str:
    text = payload[:400].decode("utf-8", "replace").strip()
    try:
        error = orjson.loads(payload).get("error")
        text = error.get("message") or text if isinstance(error, dict) else str(error or text)
    except (orjson.JSONDecodeError, AttributeError):
        pass
    return " ".join(str(text).split())[:300]


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:300]
