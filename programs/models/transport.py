"""Send requests to a model: to an OpenAI-style server over our own connection, by LiteLLM, or by a DSPy LM object.

Ollama's client is in `through_ollama`. All of them give the same `Reply` and raise the same two errors: `ModelError`
when no call can succeed (key refused, unknown model), `Unanswered` when this one did not, with the facts for another
try.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Protocol

import aiohttp
import orjson

from judgesmith.errors import ModelError
from judgesmith.programs.answers.reply import Reply, reply_of
from judgesmith.programs.models.engine import at_exit
from judgesmith.programs.models.masking import masked
from judgesmith.programs.models.names import ONE_HOST
from judgesmith.programs.models.parameters import Parameters
from judgesmith.programs.models.reaching import check_trusted, proxy_for
from judgesmith.programs.models.refusals import (
    Denied,
    Fault,
    fault_of,
    is_spent,
    passes,
    reset_after,
    spent,
)
from judgesmith.programs.models.refusals import Unanswered as Unanswered
from judgesmith.programs.models.refusals import refuse as refuse
from judgesmith.programs.models.refusals import retry_after as retry_after
from judgesmith.programs.models.streams import streamed

Message = dict[str, str]
#: A part of an answer: a text that is fixed, and the texts of which one comes next.
Choice = tuple[str, tuple[str, ...]]

#: Bytes of an answer at most. The longest that a judge asks for, 20 log-probabilities to each token, take a tenth.
LARGEST_ANSWER = 16 * 1024 * 1024
#: Bytes of UTF-8 to a token: hardly a text has fewer (English has 4 to 5). And tokens of a template around messages.
DENSE = 3
TEMPLATE = 256
#: Bytes of a refusal that are looked at.
_SHOWN = 20_000


@dataclass(frozen=True, slots=True)
class Request:
    """A judge's request to a model.

    `grammar` is GBNF, only for models that were seen to take one. `choices` gives the same for an answer whose parts
    are each one of few texts; none for free text. `beginning` is the number of messages at the beginning that other
    rows' requests have, too, so that a provider may keep what it computed of them.
    """

    messages: Sequence[Message]
    max_tokens: int
    temperature: float = 0.0
    top_logprobs: int = 0
    grammar: str | None = None
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    sample: int = 0
    choices: tuple[Choice, ...] = ()
    beginning: int = 0

    def options(self) -> dict[str, Any]:
        """Return everything but its messages and the options of a few servers, in OpenAI's form."""
        options: dict[str, Any] = {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        if self.top_logprobs:
            options |= {"logprobs": True, "top_logprobs": self.top_logprobs}
        if self.schema and not self.grammar:
            form = {"name": "answer", "strict": True, "schema": dict(self.schema)}
            options["response_format"] = {"type": "json_schema", "json_schema": form}
        return options


def quoted(text: str) -> str:
    """Return a text as a literal of GBNF."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class Transport(Protocol):
    """A way to send requests to a model."""

    async def send(self, request: Request) -> Reply:
        """Send a request and return its reply."""


def read_reply(data: Any) -> Reply:
    """Return a completion as a Reply.

    Raises:
        Unanswered: For anything else.
    """
    try:
        return reply_of(data)
    except ValueError as error:
        fault = fault_of(data)
        problem = f"the server says: {fault.message}" if fault else str(error)
        raise Unanswered(
            f"the answer is not a chat completion ({problem})", again=True
        ) from None


class OpenAIStyle:
    """POST {base}/chat/completions over one pooled aiohttp session. Lives on the engine's loop."""

    def __init__(
        self, base: str, model: str, *, key: str | None, timeout: float, label: str
    ) -> None:
        self.url = base.rstrip("/") + "/chat/completions"
        self.model = model
        self.label = label
        self.parameters = Parameters()
        # Compressed, a short answer can unpack to any length.
        self._key = key
        self._headers = {
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
        }
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._timeout = aiohttp.ClientTimeout(
            total=timeout, sock_connect=min(timeout, 10.0)
        )
        self._session: aiohttp.ClientSession | None = None
        self._proxy: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def body(self, request: Request) -> dict[str, Any]:
        """Return the request as JSON values."""
        return self._body(request, self.parameters.fitted(request.options()))

    def _body(self, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
        body = {"model": self.model, "messages": list(request.messages), **options}
        return body | {"grammar": request.grammar} if request.grammar else body

    async def send(self, request: Request) -> Reply:
        """Send a request over a connection that stays open."""
        reply, without = await self.parameters.asked(
            request.options(), partial(self._sent, request)
        )
        return replace(reply, without=without) if without else reply

    async def _sent(self, request: Request, options: Mapping[str, Any]) -> Reply:
        loop = asyncio.get_running_loop()
        if (
            self._session is None or self._loop is not loop
        ):  # another loop: this process was forked
            self._loop = loop
            self._proxy = proxy_for(self.url)
            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300)
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=self._timeout,
                cookie_jar=aiohttp.DummyCookieJar(),  # one row's answer has no say in the next one's
                auto_decompress=False,
            )
            at_exit(self.close)
        body = orjson.dumps(self._body(request, options))
        try:
            # A redirect would turn the POST into a GET, or carry prompts to a server that the user did not name.
            sent = self._session.post(
                self.url,
                data=body,
                headers=self._headers,
                allow_redirects=False,
                proxy=self._proxy,
            )
            async with sent as response:
                payload = await _bounded(response)
        except TimeoutError:
            raise Unanswered(
                f"no answer within {self._timeout.total:g} s", again=True, reached=False
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            check_trusted(self.label, error)
            problem = (
                masked(" ".join(str(error).split()), self._key)[:300]
                or type(error).__name__
            )
            raise Unanswered(
                f"the connection failed: {problem}", again=True, reached=False
            ) from None
        data = _json(payload)
        fault = fault_of(data)
        status = response.status
        if not 200 <= status < 300:
            kind = fault.kind if fault else ""
            problem = f"HTTP {status}: {_excerpt(payload, fault, self._key)}"
            refuse(
                self.label,
                self.url,
                status,
                problem,
                response.headers,
                kind=kind,
                body=payload[:_SHOWN].decode("utf-8", "replace"),
                about=fault.about if fault else "",
            )
        if data is None:
            raise Unanswered(
                f"the answer is no JSON: {_excerpt(payload, None, self._key)}",
                again=True,
            )
        if fault is not None:
            problem = (
                f"the server answers with an error: {masked(fault.message, self._key)}"
            )
            refuse(
                self.label,
                self.url,
                fault.status or 500,
                problem,
                response.headers,
                kind=fault.kind,
                body=payload[:_SHOWN].decode("utf-8", "replace"),
                about=fault.about,
            )
        return read_reply(data)

    async def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None


#: Ends of names of environment variables that hold addresses.
_ADDRESS = re.compile(r"(?:BASE|URL|URI|ENDPOINT|HOST|DOMAIN|GATEWAY|PROXY)$")


@cache
def takes_marks(model: str) -> bool:
    """Return True for a model that keeps the beginning of a prompt up to a mark. Others need none, or keep nothing."""
    from litellm.utils import supports_prompt_caching

    return "claude" in model and supports_prompt_caching(model)


def marked_messages(model: str, request: Request) -> list[dict[str, Any]]:
    """Return the messages of a request, for Claude with Anthropic's mark at the end of their beginning.

    Up to the mark Claude keeps its reading of a prompt for five minutes, from about 1,000 tokens on: the next rows pay
    a tenth for it, the first one a quarter more. Other providers keep beginnings without being asked.
    """
    messages: list[dict[str, Any]] = [dict(message) for message in request.messages]
    if request.beginning and takes_marks(model):
        last = messages[request.beginning - 1]
        part = {"type": "text", "text": last["content"]}
        last["content"] = [part | {"cache_control": {"type": "ephemeral"}}]
    return messages


class ThroughLiteLLM:
    """Any other provider, by LiteLLM's own client. Our retries replace LiteLLM's."""

    def __init__(
        self,
        model: str,
        *,
        timeout: float,
        key: str | None = None,
        api_base: str | None = None,
    ) -> None:
        self.model = model
        self.parameters = Parameters()
        self._options: dict[str, Any] = {
            "timeout": timeout,
            "num_retries": 0,
            "drop_params": True,
        }
        if key:
            self._options["api_key"] = key
        if api_base:
            self._options["api_base"] = api_base

    @property
    def marks(self) -> bool:
        """Return True if the end of the beginning that requests share is marked, for the provider to keep it."""
        return takes_marks(self.model)

    @property
    def place(self) -> str | None:
        """Return a mark that tells the server from every other: the given address, or "" for the provider's own host.

        None if that is not known: for a provider without one host, or if LiteLLM's settings or an environment variable
        that begins with the provider's name may name another address.
        """
        import litellm  # reads a .env file into the environment

        if address := self._options.get("api_base"):
            return str(address)
        provider, slash, _ = self.model.partition("/")
        if not slash:
            provider = "anthropic" if self.model.startswith("claude") else "openai"
        name = provider.split("_")[0].upper()
        variables = (
            variable.upper() for variable, value in os.environ.items() if value
        )
        moved = any(
            variable.startswith(name) and _ADDRESS.search(variable)
            for variable in variables
        )
        return None if provider not in ONE_HOST or moved or litellm.api_base else ""

    async def send(self, request: Request) -> Reply:
        """Send a request by LiteLLM."""
        reply, without = await self.parameters.asked(
            request.options(), partial(self._sent, request)
        )
        return replace(reply, without=without) if without else reply

    async def _sent(self, request: Request, wanted: Mapping[str, Any]) -> Reply:
        import litellm
        from litellm import exceptions as failures
        from openai import OpenAIError

        litellm.suppress_debug_info = True
        options = {**self._options, **wanted}
        messages: list[Any] = marked_messages(self.model, request)
        try:
            response = await litellm.acompletion(
                model=self.model, messages=messages, **options
            )
            data = response.model_dump(warnings=False)
        except failures.AuthenticationError as error:
            raise ModelError(f"{self.model}: {first_line(error)}") from None
        except (failures.PermissionDeniedError, failures.NotFoundError) as error:
            _spent(self.model, error)
            raise Denied(
                f"{self.model}: {first_line(error)}", first_line(error)
            ) from None
        except failures.BadRequestError as error:
            _spent(self.model, error)
            raise Unanswered(first_line(error), again=False) from None
        except (TimeoutError, failures.APIConnectionError, failures.Timeout) as error:
            _no_key(self.model, error)
            check_trusted(self.model, error)
            raise Unanswered(first_line(error), again=True, reached=False) from None
        except (
            OpenAIError
        ) as error:  # LiteLLM's exceptions have no nearer base in common
            _no_key(self.model, error)
            check_trusted(self.model, error)
            _spent(self.model, error)
            status = getattr(error, "status_code", None) or 500
            raise Unanswered(
                first_line(error), again=passes(status), after=_wait(error)
            ) from None
        except Exception as error:  # what its providers' own readers make of an answer that they do not expect
            raise Unanswered(
                f"{type(error).__name__}: {first_line(error)}", again=False
            ) from None
        return read_reply(data)


class ThroughDSPy:
    """A `dspy.BaseLM` object that the caller made: its own engine, retries and endpoint."""

    def __init__(self, lm: Any) -> None:
        self.lm = lm

    async def send(self, request: Request) -> Reply:
        """Send a request by the caller's own LM object, in a thread if it has no asynchronous form."""
        import dspy

        call_options: dict[str, Any] = {
            "messages": list(request.messages),
            **request.options(),
        }
        if request.sample:
            call_options["rollout_id"] = request.sample
        kind = type(self.lm)
        base = dspy.BaseLM
        waits = (
            isinstance(self.lm, base)
            and kind.acall is base.acall
            and kind.aforward is base.aforward
        )
        try:
            with dspy.track_usage() as used:
                if waits:
                    call = asyncio.to_thread(self.lm, **call_options)
                else:
                    call = self.lm.acall(**call_options)
                first = (await call)[0]
            output: dict[str, Any] = (
                {"text": first} if isinstance(first, str) else dict(first)
            )
            logprobs = output.get("logprobs") or {}
            if hasattr(logprobs, "model_dump"):
                logprobs = logprobs.model_dump()
        except Exception as error:
            raise Unanswered(first_line(error), again=False) from None
        choice = {"message": {"content": output.get("text")}, "logprobs": logprobs}
        return read_reply(
            {
                "choices": [choice],
                "usage": next(iter(used.get_total_tokens().values()), {}),
            }
        )


#: What providers' clients say where no key is set; LiteLLM takes some of them for failures of the connection.
_KEYLESS = re.compile(
    r"missing (?:credentials|[\w ]*api[ _]?key)|api[_ ]?key[\w ]* (?:must be set|is not set)",
    re.I,
)


def _no_key(model: str, error: BaseException) -> None:
    """Raises ModelError where a failure is one of a key that is not there: no later try can succeed."""
    if _KEYLESS.search(str(error)):
        raise ModelError(
            f"{model}: there is no key for it ({first_line(error)}); set the provider's key in the environment"
        ) from None


def _spent(model: str, error: Any) -> None:
    """Raises ModelError where a provider's failure is one of a quota or credit that is used up."""
    status = getattr(error, "status_code", None) or 500
    text = first_line(error)
    # LiteLLM puts the provider's own words behind its own, and its code into them.
    words = text.rpartition("Exception - ")[2]
    kind = f"{getattr(error, 'code', '')} {getattr(error, 'type', '')} {words if status == 429 else ''}"
    if is_spent(status, kind, words, _told_wait(error)):
        raise ModelError(spent(model, text)) from None


def _told_wait(error: Any) -> float | None:
    """Return the seconds until the next try, as a provider tells them in its failure."""
    headers = getattr(error, "litellm_response_headers", None) or {}
    return retry_after(headers, str(error))


def _wait(error: Any) -> float | None:
    """Return the same, or the seconds until its counter of requests begins again."""
    told = _told_wait(error)
    headers = getattr(error, "litellm_response_headers", None) or {}
    return reset_after(headers) if told is None else told


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    """The body. Raises Unanswered for one that is too long, as soon as that is known."""
    payload = bytearray()
    async for piece in response.content.iter_any():
        payload += piece
        if len(payload) > LARGEST_ANSWER:
            response.close()  # or the rest of it would still be received
            problem = f"HTTP {response.status}: the answer is longer than {LARGEST_ANSWER >> 20} MiB"
            raise Unanswered(problem, again=False)
    return bytes(payload)


def _json(payload: bytes) -> Any:
    """Return a body's JSON; None for another body. Some servers write NaN and Infinity, which JSON does not know."""
    payload = payload.removeprefix(b"\xef\xbb\xbf")
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError:
        pass
    try:
        data = json.loads(payload)
    except (ValueError, RecursionError):
        return streamed(payload)
    return data if isinstance(data, dict) else None


def _excerpt(payload: bytes, fault: Fault | None, key: str | None) -> str:
    if fault:
        text = fault.message
    else:
        text = " ".join(payload[:2000].decode("utf-8", "replace").split())
    return masked(text, key)[:300]


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, with keys masked, at most 300 characters."""
    lines = str(error).strip().splitlines()
    return masked(lines[0] if lines else type(error).__name__)[:300]
