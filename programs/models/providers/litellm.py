"""The models of every provider that LiteLLM knows, by its own client."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from judgesmith.errors import ModelError, OptionError
from judgesmith.parts import nearest
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.connection import Connection
from judgesmith.programs.models.parameters import Parameters
from judgesmith.programs.models.provider import (
    ANY,
    EXAMPLES,
    PATH,
    TAGGED,
    WORD,
    Provider,
    Reached,
    beginning_of,
    beginnings,
    providers,
)
from judgesmith.programs.models.reaching import check_trusted, checked_address
from judgesmith.programs.models.refusals import (
    Denied,
    is_spent,
    passes,
    reset_after,
    retry_after,
    spent,
)
from judgesmith.programs.models.transport import (
    Request,
    Unanswered,
    first_line,
    read_reply,
)
from judgesmith.tables import shortened

_VENDORS = (
    "ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|"
    "mistral|moonshot|moonshotai|nvidia|openai|qwen|writer"
)
#: Providers that each have one host, whose own plain names lead there.
ONE_HOST = (
    "anthropic",
    "cerebras",
    "codestral",
    "cohere",
    "cohere_chat",
    "dashscope",
    "deepinfra",
    "deepseek",
    "fireworks_ai",
    "gemini",
    "github",
    "groq",
    "mistral",
    "moonshot",
    "nvidia_nim",
    "openai",
    "openrouter",
    "perplexity",
    "sambanova",
    "together_ai",
    "xai",
    "zai",
)
#: The form of a model's name that a saved judge may choose, by provider.
FORMS = {
    **dict.fromkeys(ONE_HOST, PATH),
    # LiteLLM sends deployments that are called like models of some others (Mistral's, Cohere's) to OpenAI.
    "azure": rf"(?:o_series/|gpt5_series/)?(?=\S*gpt|o\d){WORD}",
    "bedrock": rf"(?:converse/)?(?:[a-z-]{{2,6}}\.)?(?:{_VENDORS})\.{WORD}(?::\d+k?){{0,2}}",
    "openrouter": TAGGED,
}
#: Names without a provider, which LiteLLM finds in its tables: OpenAI's and Anthropic's.
_BARE = r"(?:gpt-\d|o\d|claude-)[A-Za-z0-9.-]*"
_OPENAI_OR_ANTHROPIC = re.compile(
    r"(?P<openai>gpt-|chatgpt-|o\d)|(?P<anthropic>claude-)"
)
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
            _no_key(self.model, error)
            raise ModelError(f"{self.model}: {said(error)}") from None
        except (failures.PermissionDeniedError, failures.NotFoundError) as error:
            _spent(self.model, error)
            raise Denied(f"{self.model}: {said(error)}", said(error)) from None
        except failures.BadRequestError as error:
            _spent(self.model, error)
            raise Unanswered(said(error), again=False) from None
        except (TimeoutError, failures.APIConnectionError, failures.Timeout) as error:
            _no_key(self.model, error)
            check_trusted(self.model, error)
            raise Unanswered(said(error), again=True, reached=False) from None
        except (
            OpenAIError
        ) as error:  # LiteLLM's exceptions have no nearer base in common
            _no_key(self.model, error)
            check_trusted(self.model, error)
            _spent(self.model, error)
            status = getattr(error, "status_code", None) or 500
            raise Unanswered(
                said(error), again=passes(status), after=_wait(error)
            ) from None
        except Exception as error:  # what its providers' own readers make of an answer that they do not expect
            raise Unanswered(
                f"{type(error).__name__}: {said(error)}", again=False
            ) from None
        return read_reply(data)


#: What providers' clients say where no key is set; LiteLLM takes some of them for failures of the connection.
_KEYLESS = re.compile(
    r"missing (?:credentials|[\w ]*api[ _]?key)|api[_ ]?key[\w ]* (?:must be set|is not set)",
    re.I,
)


#: What LiteLLM puts before a provider's own words: names of exceptions.
_WRAPPED = re.compile(r"^(?:litellm\.)?(?:\w+(?:Error|Exception)(?:: | - ))+")


def said(error: BaseException) -> str:
    """Return the provider's words of a failure, in one line, without LiteLLM's names of exceptions."""
    line = first_line(error)
    return _WRAPPED.sub("", line) or line


def _no_key(model: str, error: BaseException) -> None:
    """Raises ModelError where a failure is one of a key that is not there: no later try can succeed."""
    if not _KEYLESS.search(str(error)):
        return
    import litellm

    missing = litellm.validate_environment(model).get("missing_keys") or []
    # Where LiteLLM misses none, only the provider's own words say which key is meant.
    words = shortened(said(error), 200)
    what = f"set {' and '.join(missing)} in the environment" if missing else words
    raise ModelError(f"{model}: there is no key for it; {what}") from None


def _spent(model: str, error: Any) -> None:
    """Raises ModelError where a provider's failure is one of a quota or credit that is used up."""
    status = getattr(error, "status_code", None) or 500
    text = said(error)
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


@providers.register
class LiteLLM(Provider):
    """Every provider that has no class of its own, as far as LiteLLM knows it."""

    name = ANY
    about = "Any other provider that LiteLLM knows: anthropic/…, gemini/…, bedrock/… and more."
    batches = ("anthropic/",)

    @classmethod
    def open(cls, name: str, connection: Connection) -> Reached:
        """Open a model of a provider that LiteLLM knows.

        Raises:
            OptionError: If it knows none of that name.
        """
        check_known(name)
        base = connection.api_base and checked_address(
            "--api-base", connection.api_base
        )
        transport = ThroughLiteLLM(
            name, timeout=connection.timeout, key=connection.api_key, api_base=base
        )
        return Reached(name=name, transport=transport, identity=lambda: transport.place)

    @classmethod
    def lists(cls, name: str) -> bool:
        """Return True for a plain name of a provider with a host of its own, and for OpenAI's and Anthropic's alone."""
        provider, slash, model = name.partition("/")
        if not slash:
            return re.fullmatch(_BARE, name) is not None
        form = FORMS.get(provider)
        return form is not None and re.fullmatch(form, model) is not None

    @classmethod
    def qualified(cls, name: str) -> str:
        """Return a name with its provider.

        >>> LiteLLM.qualified("claude-3-5-haiku"), LiteLLM.qualified("groq/gemma")
        ('anthropic/claude-3-5-haiku', 'groq/gemma')
        """
        known = None if "/" in name else _OPENAI_OR_ANTHROPIC.match(name)
        return name if known is None else f"{known.lastgroup}/{name}"


def check_known(name: str) -> None:
    """Check that LiteLLM knows the provider of a model.

    Raises:
        OptionError: If it does not; the message has the nearest provider.
    """
    beginning = beginning_of(name)
    provider = beginning.removesuffix("/")
    if not provider or (beginning.endswith("/") and name == beginning):
        raise OptionError(
            f"{name!r} names no model; write PROVIDER/MODEL, for example {EXAMPLES}"
        )
    if beginning.endswith("/") and provider in FORMS:
        return
    import litellm

    litellm.suppress_debug_info = True
    if name in litellm.model_alias_map:
        return
    try:
        litellm.get_llm_provider(name)
    except litellm.exceptions.BadRequestError:
        known = [getattr(one, "value", one) for one in litellm.provider_list]
        others = [*beginnings(), *(f"{one}/" for one in known)]
        raise OptionError(
            f"{name!r}: no provider of models is called {beginning!r}{nearest(beginning, others)}; write "
            f"PROVIDER/MODEL, for example {EXAMPLES} (`judgesmith list models` has the providers)"
        ) from None
