"""Language models by name: `openai/…` and every other LiteLLM name, `ollama_chat/…`, `local/NAME`, `gguf:PATH`.

A `LanguageModel` adds to a transport what every judge needs: a disk cache with single flight (`once`), tries and places
(`sending`), a meter with a budget (`meter`, `price`), and a probe of what the model can do (`probing`). What a name
means, its `Provider` says (`provider`, `providers/`).
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

import dspy

from judgesmith.errors import CallError, ModelError, OptionError
from judgesmith.programs.answers.reply import Reply, TokenChoice, without_surrogates
from judgesmith.programs.answers.thoughts import spoken
from judgesmith.programs.models import engine, row_context
from judgesmith.programs.models.as_dspy import (
    TOKENS,
    heard,
    plain_text,
    schema_of,
    shown,
    without_system,
)
from judgesmith.programs.models.cache import CallCache
from judgesmith.programs.models.connection import Capabilities
from judgesmith.programs.models.connection import Connection as Connection
from judgesmith.programs.models.connection import Sampling as Sampling
from judgesmith.programs.models.engine import PerLoop
from judgesmith.programs.models.failures import Failures
from judgesmith.programs.models.names import qualified
from judgesmith.programs.models.once import Readable, ask_once
from judgesmith.programs.models.price import Meter, check_priced, listed_context, price
from judgesmith.programs.models.probing import declared, probe
from judgesmith.programs.models.provider import Reached, is_local, provider_of
from judgesmith.programs.models.sending import PLAIN, Sender, Traffic
from judgesmith.programs.models.through_dspy import ThroughDSPy
from judgesmith.programs.models.transport import Request, Transport
from judgesmith.signatures.values import Usage


class LanguageModel(dspy.BaseLM):  # type: ignore[misc]
    """A model that judges call.

    Make one with `language_model(name)`. It is a `dspy.BaseLM`, so that stock DSPy modules take it, too:
    `dspy.Predict(…)(…, lm=lm)`; cache, retries, limits and budget hold on that way as well.

    name: what artifacts record. identity: what distinguishes its answers from another's (server, file hash), or a
    function that gives it at every call, None where it is not known and answers are not kept; part of the cache key,
    never saved. weights: the model's file, where it runs inside this process. All coroutines run on the engine's loop.
    """

    def __init__(
        self,
        name: str,
        transport: Transport,
        *,
        identity: str | Callable[[], str | None],
        sampling: Sampling | None = None,
        connection: Connection | None = None,
        default_concurrency: int = 16,
        knows_grammar: bool = False,
        cache: CallCache | None = None,
    ) -> None:
        sampling = sampling or Sampling()
        super().__init__(
            model=name,
            temperature=sampling.temperature,
            max_tokens=sampling.max_tokens,
            cache=False,
        )
        self.name = name
        self.sampling = sampling
        self.connection = connection or Connection()
        self.concurrency = self.connection.concurrency or default_concurrency
        self.embedded = is_local(name)
        self.weights: Path | None = None
        self.digest = ""
        """SHA-256 of the model's file, and of an adapter's, where it runs inside this process."""
        self.computed_by = ""
        """What computes a model inside this process: `llama.cpp`, or what chooses answers (`openvino bf16 128`)."""
        self.one_by_one = False
        """Whether short answers come sooner one after the other.

        Each of llama.cpp's slots computes a shared beginning for itself."""
        self.longest: int | None = None
        """Tokens of prompt and answer that it takes, where its server says so."""
        self.meter = Meter()
        self.failures: Failures | None = None
        """What the run that is under way could not use, if it asks nothing twice."""
        if cache is None and self.connection.cache:
            cache = CallCache()
        self._cache = cache
        self._identity = identity
        self._knows_grammar = knows_grammar
        self._capabilities: Capabilities | None = None
        self._traffic = PerLoop(lambda: Traffic(self.connection, self.concurrency))
        self._sender = self._sending(transport)

    @classmethod
    def of(
        cls,
        reached: Reached,
        sampling: Sampling | None = None,
        connection: Connection | None = None,
    ) -> Self:
        """Return the model that a provider has opened."""
        connection = connection or Connection()
        if not reached.kept:
            connection = replace(connection, cache=False)
        provider = provider_of(reached.name)
        lm = cls(
            reached.name,
            reached.transport,
            identity=reached.identity,
            sampling=sampling,
            connection=connection,
            default_concurrency=reached.concurrency,
            knows_grammar=provider.grammars,
        )
        lm.weights = reached.weights
        lm.digest = reached.digest
        lm.computed_by = reached.computed_by
        lm.one_by_one = reached.one_by_one
        lm.longest = reached.longest
        lm._capabilities = reached.able
        if reached.able is None and not provider.probed:
            lm._capabilities = Capabilities()
        return lm

    def _sending(self, transport: Transport, *, patient: bool = False) -> Sender:
        once = self.embedded or patient
        attempts = self.connection.attempts
        return Sender(self.name, transport, attempts, self._traffic, once)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a connection is shared, never copied with a program

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ModelError(
            f"{self.name} is a connection and cannot be pickled; save the judge or the program as JSON, "
            "save('judge.json'), and give the model again where it is loaded"
        )

    def __repr__(self) -> str:
        return f"LanguageModel({self.name!r})"

    def finetune(self, *_: Any, **__: Any) -> Any:
        """Refuse: DSPy would train on prompts of its own form, which no judge sends."""
        raise OptionError(
            f"{self.name}: BootstrapFinetune trains a model on DSPy's own prompts, and judges ask in others; "
            "`judgesmith distill` trains a small model from a judge"
        )

    @property
    def dspy(self) -> Any:
        """Return the model as DSPy's modules take it: the caller's own object, if it was made of one."""
        transport = self.transport
        return transport.lm if isinstance(transport, ThroughDSPy) else self

    @property
    def transport(self) -> Transport:
        """Return the way by which its requests are sent."""
        return self._sender.transport

    @property
    def known_capabilities(self) -> Capabilities:
        """Return its capabilities, as far as it was probed."""
        return self._capabilities or Capabilities()

    def assume(self, able: Capabilities) -> None:
        """Take its capabilities as known instead of probing them."""
        self._capabilities = able

    @property
    def fingerprint(self) -> str:
        """Return what tells the model from others: the SHA-256 of its file, or its name with the provider's."""
        return self.digest or qualified(self.name)

    @property
    def keeps_answers(self) -> bool:
        """Return True if the cache answers repeated requests."""
        return self._cache is not None and self.identity is not None

    @property
    def identity(self) -> str | None:
        """Return a mark that tells its answers from another model's of the same name; None if it is not known.

        It is part of the cache key, and never saved.
        """
        return self._identity if isinstance(self._identity, str) else self._identity()

    def at(self, temperature: float) -> Self:
        """Return the same model, connection and meter with another temperature.

        Raises:
            OptionError: Outside 0 to 2.
        """
        if temperature == self.sampling.temperature:
            return self
        copied = copy.copy(self)
        copied.sampling = replace(self.sampling, temperature=temperature)
        copied.kwargs = {**self.kwargs, "temperature": temperature}
        return copied

    def metered(self) -> Self:
        """Return the same model and connection, limits and all, with a meter of its own."""
        copied = copy.copy(self)
        copied.meter = Meter()
        return copied

    def pay_with(self, lm: LanguageModel) -> None:
        """Share the budget and the bill of another model, and what its run asks no second time.

        Raises:
            OptionError: If that has a limit of cost and the price of this model is unknown.
        """
        self.meter = lm.meter
        self.failures = lm.failures
        if self.meter.max_cost is not None:
            check_priced(self.name)

    def through(
        self, wrap: Callable[[Transport], Transport], *, patient: bool = False
    ) -> Self:
        """Return the same model, cache and meter, with its transport wrapped by `wrap`.

        patient: True if calls may take hours, and none is sent again because it takes long.
        """
        copied = copy.copy(self)
        transport = wrap(self.transport)
        copied._sender = self._sending(transport, patient=patient)
        return copied

    # -- as DSPy's modules call it

    def launch(self, launch_kwargs: Any = None) -> None:
        """Nothing: whoever runs a server starts it."""

    kill = launch

    @property
    def supports_response_schema(self) -> bool:
        """Return True if the model follows a JSON schema."""
        return self.known_capabilities.json_schema

    @property
    def supported_params(self) -> set[str]:
        """Return the parameters that DSPy's adapters ask about."""
        able = self.known_capabilities
        parameters = set[str]()
        if able.json_schema:
            parameters.add("response_format")
        if able.logprobs:
            parameters |= {"logprobs", "top_logprobs"}
        return parameters

    def __call__(
        self, prompt: str | None = None, *, messages: Any = None, **options: Any
    ) -> list[Any]:
        """Answer a prompt or messages as a `dspy.LM` does."""
        return engine.run(self.acall(prompt, messages=messages, **options))

    async def acall(
        self, prompt: str | None = None, *, messages: Any = None, **options: Any
    ) -> list[Any]:
        """Answer a prompt or messages as a `dspy.LM` does, for asynchronous callers."""
        return await engine.on_loop(
            self._answered(
                messages or [{"role": "user", "content": prompt or ""}], options
            )
        )

    async def _answered(
        self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> list[Any]:
        able = await self.capabilities()
        settings = {**self.kwargs, **options}
        sent = [
            {"role": str(m["role"]), "content": plain_text(m["content"])}
            for m in messages
        ]
        most = settings.get("max_tokens") or TOKENS
        logprobs = settings.get("logprobs") and able.logprobs
        form = settings.get("response_format") if able.json_schema else None
        request = Request(
            sent if able.system_prompt else without_system(sent),
            min(most, self.sampling.max_tokens or most),
            temperature=float(settings.get("temperature") or 0.0),
            top_logprobs=int(settings.get("top_logprobs") or 5) if logprobs else 0,
            schema=schema_of(form),
            sample=int(settings.get("rollout_id") or 0),
        )
        reply = spoken(await self.complete(request))
        if reply.absent:
            raise CallError(f"{self.name}: {reply.absent}")
        if reply.tokens is None:
            return [reply.text]
        listed = list(map(_as_openai, reply.tokens))
        return [{"text": reply.text, "logprobs": {"content": listed}}]

    def dump_state(self) -> dict[str, Any]:
        """Return the state of a `dspy.LM` of this name, which every DSPy program can load."""
        return {
            "model": self.model,
            "model_type": "chat",
            **{k: v for k, v in self.kwargs.items() if v is not None},
        }

    # -- calling

    async def complete(
        self, request: Request, readable: Readable = lambda _: True
    ) -> Reply:
        """Answer a request, from the cache if it was answered before.

        Unreadable replies are never kept on disk, and never taken from there: the next request gets a new answer, but
        within a run that asks nothing twice (`failures`). DSPy's callbacks, history and usage show the call.

        Args:
            request: The request.
            readable: True if the caller can use a reply; called at least once with the returned one.

        Raises:
            CallError: If it failed for good.
            ModelError: If no call can succeed.
            BudgetError: Over the budget.
        """
        reply, _ = await engine.on_loop(self.answered(request, readable))
        return reply

    async def answered(
        self, request: Request, readable: Readable = lambda _: True
    ) -> tuple[Reply, Usage]:
        """Answer a request as `complete` does, on the engine's loop; return the reply with what it took."""
        row_context.check(request.messages)
        # DSPy shows its own objects' calls itself.
        by_dspy = isinstance(self._sender.transport, ThroughDSPy)
        if by_dspy or not heard(self, "usage_tracker"):
            reply, used, _ = await self._complete(request, readable)
        else:
            call = partial(self._complete, request, readable)
            reply, used, _ = await shown(self, request, call)
        row_context.count(reply, used)
        return reply, used

    async def _complete(
        self, request: Request, readable: Readable
    ) -> tuple[Reply, Usage, float | None]:
        """`complete` without callbacks; with what the call used and what it cost, None where no price is known."""
        self.meter.admit()
        request = _sendable(request)
        if self._cache is None or not self.keeps_answers:
            reply, usage = await self._sender.ask(request, self.meter)
            readable(reply)
        else:
            reply, usage = await ask_once(
                lambda: self._sender.ask(request, self.meter),
                lambda: self._key(request),
                cache=self._cache,
                failures=self.failures or Failures(),
                under_way=self._traffic().under_way,
                readable=readable,
            )
        cost = price(self.name, reply)
        self.meter.count(reply, usage, cost)
        return reply, usage, cost

    def _key(self, request: Request) -> bytes:
        request_key: dict[str, Any] = {
            "v": 1,
            "model": self.name,
            "identity": self.identity,
            "messages": list(request.messages),
            "sampling": [
                request.temperature,
                request.max_tokens,
                request.top_logprobs,
                request.sample,
            ],
            "form": [request.grammar, request.schema],
        }
        return CallCache.key(request_key)

    # -- what it can do

    async def answers(self) -> None:
        """Request one token, past the cache.

        Raises:
            CallError: If the call failed.
            ModelError: If no call can succeed.
        """
        await self._sender.ask(PLAIN, self.meter)

    @property
    def context(self) -> int | None:
        """Return the tokens that it reads at once; None where that is not known."""
        return self.longest or listed_context(self.name)

    async def capabilities(self) -> Capabilities:
        """Probe the model once; the result is cached with its calls.

        A `dspy.BaseLM` of the caller's own has the capabilities that it declares (`supported_params`,
        `supports_response_schema`): it may follow a script, whose answers are not ours to use up. A plain `dspy.LM` is
        probed, out of sight of DSPy's history, usage and callbacks.

        Raises:
            ModelError: If it never answers.
        """
        transport = self.transport
        if self._capabilities is None and isinstance(transport, ThroughDSPy):
            self._capabilities = declared(transport.lm)
        if self._capabilities is None:
            return await engine.on_loop(self._probed())
        return self._capabilities

    async def _probed(self) -> Capabilities:
        if self._capabilities is None:
            traffic = self._traffic()
            if traffic.probing is None:
                with dspy.context(
                    disable_history=True,
                    callbacks=[],
                    usage_tracker=None,
                    caller_modules=None,
                ):
                    traffic.probing = asyncio.ensure_future(self._probe())
            try:
                self._capabilities = await asyncio.shield(traffic.probing)
            except Exception:
                traffic.probing = None
                raise
        return self._capabilities

    async def _probe(self) -> Capabilities:
        async def complete(request: Request, readable: Readable) -> Reply:
            reply, *_ = await self._complete(request, readable)
            return reply

        return await probe(complete, self.transport, grammar=self._knows_grammar)


def _sendable(request: Request) -> Request:
    """Return a request whose texts can be sent, as those with half a character, of broken JSON lines, cannot."""
    if all(message["content"].isascii() for message in request.messages):
        return request
    whole = [
        message | {"content": without_surrogates(message["content"])}
        for message in request.messages
    ]
    return request if whole == request.messages else replace(request, messages=whole)


def _as_openai(token: TokenChoice) -> dict[str, Any]:
    """A token with the likeliest ones at its place, in OpenAI's form."""
    likeliest = [{"token": text, "logprob": p} for text, p in token.alternatives]
    return {"token": token.text, "top_logprobs": likeliest}


def language_model(
    lm: str | LanguageModel | Any,
    *,
    sampling: Sampling | None = None,
    connection: Connection | None = None,
) -> LanguageModel:
    """Return a LanguageModel for a name, for a `dspy.LM` object, or for one itself.

    Names: any DSPy/LiteLLM name (`openai/…`, `anthropic/…`), `ollama_chat/…`, `local/NAME`, `gguf:PATH`,
    `decision:NAME` and `zeroshot:NAME` (which answer typed questions), `none` and `recorded:FILE#COLUMN` (answers in a
    file). Keys come from `connection` or the provider's environment variable.

    Raises:
        ModelError: If the model cannot be used.
        OptionError: If no provider is called like that.
    """
    if isinstance(lm, LanguageModel):
        return lm
    connection = connection or Connection()
    if isinstance(lm, str):
        name = lm.strip()
        reached = provider_of(name).open(name, connection)
        return LanguageModel.of(reached, sampling, connection)
    if not isinstance(getattr(lm, "model", None), str) or not callable(
        getattr(lm, "acall", None)
    ):
        raise OptionError(
            f"an LM is a name or a dspy.LM object; got {type(lm).__name__}"
        )
    return _foreign(lm, sampling, connection)


@lru_cache(8)
def _foreign(
    lm: Any, sampling: Sampling | None, connection: Connection
) -> LanguageModel:
    """A `dspy.LM` object's LanguageModel, the same one each time, so that it is probed once."""
    # A foreign object does its own caching: two of them with one name may be different servers.
    connection = replace(connection, cache=False)
    return LanguageModel(
        lm.model,
        ThroughDSPy(lm),
        identity="dspy",
        sampling=sampling,
        connection=connection,
    )


def with_adapter(lm: LanguageModel, adapter: Path) -> LanguageModel:
    """Return the same model inside this process with low-rank weights (LoRA, a GGUF file) added to its own.

    Calls count on the same meter.

    Raises:
        ModelError: For a model that does not run in this process, and for weights that do not fit it.
    """
    from judgesmith.programs.models.providers.in_process import opened

    if not lm.embedded or lm.weights is None:
        raise ModelError(
            f"{lm.name} does not run in this process, so no weights can be added to it here"
        )
    reached = opened(f"gguf:{lm.weights}", lm.name, lm.connection, adapter)
    adapted = LanguageModel.of(reached, lm.sampling, lm.connection)
    adapted.meter = lm.meter
    return adapted
