"""Servers that speak the OpenAI form: OpenAI's own, and a user's, over our own connection."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import aiohttp
import orjson

from judgesmith.errors import OptionError
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.connection import Connection
from judgesmith.programs.models.engine import at_exit
from judgesmith.programs.models.masking import masked
from judgesmith.programs.models.parameters import Parameters
from judgesmith.programs.models.provider import (
    PATH,
    TAGGED,
    Provider,
    Reached,
    providers,
)
from judgesmith.programs.models.providers.litellm import LiteLLM
from judgesmith.programs.models.reaching import (
    check_trusted,
    checked_address,
    proxy_for,
)
from judgesmith.programs.models.refusals import Fault, fault_of, refuse
from judgesmith.programs.models.streams import streamed
from judgesmith.programs.models.transport import Request, Unanswered, read_reply

#: Bytes of an answer at most. The longest that a judge asks for, 20 log-probabilities to each token, take a tenth.
LARGEST_ANSWER = 16 * 1024 * 1024
#: Bytes of a refusal that are looked at.
_SHOWN = 20_000


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


class OpenAIServer(Provider):
    """Base of servers that speak the OpenAI form.

    Where no address is given, the model is LiteLLM's if that knows where it is.
    """

    addresses: ClassVar[tuple[str, ...]]
    """The environment variables that may hold the server's address, the first one first."""
    keys: ClassVar[tuple[str, ...]]
    """The environment variables that may hold the key. No server but OpenAI's namesakes is sent OpenAI's."""
    hosted: ClassVar[bool] = False
    """Whether LiteLLM knows where it is."""

    @classmethod
    def open(cls, name: str, connection: Connection) -> Reached:
        """Open a model at the address that the connection or the environment names.

        Raises:
            OptionError: If there is no address and LiteLLM knows none: it would take a user's own server for OpenAI's.
        """
        model = cls.model_of(name)
        base = cls.base(connection)
        if base is None:
            return LiteLLM.open(name, connection)
        key = connection.api_key or cls.key()
        style = OpenAIStyle(
            base, model, key=key, timeout=connection.timeout, label=name
        )
        return Reached(name=name, transport=style, identity=base)

    @classmethod
    def base(cls, connection: Connection) -> str | None:
        """Return the server's address; None if LiteLLM knows it.

        Raises:
            OptionError: If there is none, or what is given is no address.
        """
        if variable := cls.unplaced(connection.api_base):
            raise OptionError(
                f"{cls.name}… is a server of your own: say where it is with --api-base or {variable}"
            )
        if connection.api_base:
            return checked_address("--api-base", connection.api_base)
        for variable in cls.addresses:
            if base := os.environ.get(variable):
                return checked_address(variable, base)
        return None

    @classmethod
    def key(cls) -> str | None:
        """Return the key in the first variable that is set, were it to nothing."""
        named = [variable for variable in cls.keys if variable in os.environ]
        return os.environ[named[0]] if named else None

    @classmethod
    def unplaced(cls, api_base: str | None) -> str:
        """Return the variable that has to say where the server is."""
        known = cls.hosted or cls.placed(api_base)
        return "" if known else cls.addresses[0]

    @classmethod
    def placed(cls, api_base: str | None) -> bool:
        """Return whether an option or the environment says where the server is."""
        return bool(api_base or any(map(os.environ.get, cls.addresses)))


@providers.register
class OpenAI(OpenAIServer):
    """OpenAI, and any server of its form at `--api-base`."""

    name = "openai/"
    about = "OpenAI, or with --api-base any server of its form."
    addresses = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
    keys = ("OPENAI_API_KEY",)
    hosted = True
    batches = ("openai/",)
    listed = rf"{PATH}(?::[A-Za-z0-9._-]*){{0,5}}"  # ft:MODEL:ORGANISATION::ID


@providers.register
class HostedVllm(OpenAIServer):
    """A server of vLLM."""

    name = "hosted_vllm/"
    about = "A server of vLLM, at HOSTED_VLLM_API_BASE."
    addresses = ("HOSTED_VLLM_API_BASE",)
    keys = ("HOSTED_VLLM_API_KEY",)
    listed = TAGGED


@providers.register
class Vllm(OpenAIServer):
    """A server of vLLM, by another name, which to LiteLLM means weights to load."""

    name = "vllm/"
    about = "A server of vLLM, at VLLM_API_BASE."
    addresses = ("VLLM_API_BASE",)
    keys = ("VLLM_API_KEY",)


@providers.register
class LMStudio(OpenAIServer):
    """A server of LM Studio."""

    name = "lm_studio/"
    about = "A server of LM Studio, at LM_STUDIO_API_BASE."
    addresses = ("LM_STUDIO_API_BASE",)
    keys = ("LM_STUDIO_API_KEY",)
    listed = TAGGED


@providers.register
class Llamafile(OpenAIServer):
    """A llamafile that runs."""

    name = "llamafile/"
    about = "A llamafile on this machine, or at LLAMAFILE_API_BASE."
    addresses = ("LLAMAFILE_API_BASE",)
    keys = ("LLAMAFILE_API_KEY",)
    hosted = True
    listed = TAGGED


@providers.register
class OpenAILike(OpenAIServer):
    """A server of OpenAI's form."""

    name = "openai_like/"
    about = "A server of OpenAI's form, at OPENAI_LIKE_API_BASE."
    addresses = ("OPENAI_LIKE_API_BASE",)
    keys = ("OPENAI_LIKE_API_KEY", "OPENAI_API_KEY")


@providers.register
class CustomOpenAI(OpenAIServer):
    """A server of OpenAI's form, by LiteLLM's name for it."""

    name = "custom_openai/"
    about = "A server of OpenAI's form, at CUSTOM_OPENAI_API_BASE."
    addresses = ("CUSTOM_OPENAI_API_BASE",)
    keys = ("CUSTOM_OPENAI_API_KEY", "OPENAI_API_KEY")
