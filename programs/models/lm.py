"""Language models by name: `openai/…` and every other LiteLLM name, `ollama_chat/…`, `local/NAME`, `gguf:PATH`.

A `LanguageModel` adds to a transport what every judge needs: a disk cache with single flight, retries that honour
Retry-After, a limit on calls in flight and per minute, a meter with a budget, and a probe of what the model can do.
"""

from __future__ import annotations

import asyncio
import copy
import importlib.util
import logging
import math
import os
import random
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

import dspy
import orjson

from judgesmith.errors import (
    BudgetError,
    CallError,
    ModelError,
    OptionError,
    OutageError,
)
from judgesmith.parts import plugin
from judgesmith.programs.answers.reply import Reply, TokenChoice, without_surrogates
from judgesmith.programs.answers.thoughts import spoken
from judgesmith.programs.models import engine, row_context
from judgesmith.programs.models.as_dspy import (
    TOKENS,
    plain_text,
    schema_of,
    shown,
    without_system,
)
from judgesmith.programs.models.beginnings_kept import KeptBeginnings
from judgesmith.programs.models.cache import CallCache
from judgesmith.programs.models.engine import PerLoop
from judgesmith.programs.models.failures import Failures
from judgesmith.programs.models.hanging import Pace, Sends, Usual
from judgesmith.programs.models.names import qualified
from judgesmith.programs.models.ollama import check_ollama, is_ollama, ollama_host
from judgesmith.programs.models.refusals import Denied
from judgesmith.programs.models.transport import (
    OpenAIStyle,
    Request,
    ThroughDSPy,
    ThroughLiteLLM,
    Transport,
    Unanswered,
)
from judgesmith.programs.models.window import is_short_count
from judgesmith.signatures.values import Usage

#: Providers that are reached by our own connection when an address is given; all speak the OpenAI form.
OPENAI_STYLE = (
    "openai",
    "hosted_vllm",
    "vllm",
    "lm_studio",
    "llamafile",
    "openai_like",
    "custom_openai",
)
#: Seconds for which a server's wish to be asked later is kept to, and from which on it is said.
LONGEST_WAIT = 120.0
LONG_WAIT = 20.0
#: The model of a judge that needs none, and before the file whose verdicts one repeats: see the entry points of
#: `judgesmith.models`.
NO_MODEL = "none"
RECORDED = "recorded:"
#: How names of models begin that answer typed questions: on a server, and in this process.
DECISIONS = ("decision:", "zeroshot:")
#: Calls in a row without an answer of any kind, retries included, after which the server is taken to be down.
OUTAGE_AFTER = 10
#: LiteLLM's table of prices, beside its own modules.
PRICES = "model_prices_and_context_window_backup.json"


#: A question without anybody's text in it.
PLAIN = Request([{"role": "user", "content": "2 + 2 ="}], 1)
#: What a server does and its user should hear of, also where this package's log is kept quiet.
_LOG = logging.getLogger("judgesmith.servers")
_LOG.setLevel(logging.WARNING)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sampling:
    """Options for drawing answers.

    temperature: 0 to 2. max_tokens: a cap on the tokens of an answer; None leaves that to the judge. Raises OptionError
    for values outside these limits.
    """

    temperature: float = 0.0
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature <= 2.0:
            raise OptionError(f"temperature {self.temperature:g} is outside 0..2")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise OptionError(f"max tokens must be positive; got {self.max_tokens}")


@dataclass(frozen=True, slots=True)
class Connection:
    """Address and limits of a model. Never saved in an artifact.

    api_base, api_key: the server's address and key; None takes them from the provider's environment variables.
    timeout: seconds for one call. attempts: tries of one call, the first included. concurrency: calls under way at
    once; None takes what suits the model. rpm: requests a minute at most. cache: whether answers are kept on disk and
    taken from there. Raises OptionError for values that are not positive.
    """

    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 120.0
    attempts: int = 5
    concurrency: int | None = None
    rpm: float | None = None
    cache: bool = True

    def __post_init__(self) -> None:
        for name in ("timeout", "attempts", "concurrency", "rpm"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise OptionError(f"{name} must be positive; got {value}")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities that a model showed when it was probed.

    without: parameters of requests that it refused, and is asked without.
    """

    logprobs: bool = False
    json_schema: bool = False
    system_prompt: bool = True
    grammar: bool = False
    without: tuple[str, ...] = ()


@dataclass(slots=True)
class Meter:
    """Counts what a model was used for.

    `logical` and `cost` count calls whether or not the disk answered them, so that a resumed run stops at the same
    place as one that was never interrupted; `paid` is what calls that were sent cost, None from the first one on whose
    price is unknown.
    """

    usage: Usage = field(default_factory=Usage)
    logical: int = 0
    logical_tokens: tuple[int, int] = (0, 0)
    cost: float = 0.0
    paid: float | None = 0.0
    max_calls: int | None = None
    max_cost: float | None = None

    def admit(self) -> None:
        """Count a call that is about to be made.

        Raises:
            BudgetError: If the limit of calls or of cost is reached.
        """
        if self.max_calls is not None and self.logical >= self.max_calls:
            raise BudgetError(f"the budget of {self.max_calls} calls is used up")
        if self.max_cost is not None and self.cost >= self.max_cost:
            raise BudgetError(f"the budget of ${self.max_cost:g} is used up")
        self.logical += 1


class Unreachable(CallError):
    """No answer of any kind came: no server there, no connection, or no answer in time."""


class _Traffic:
    """The calls under way to a model on one event loop.

    `usual`: how long calls take. `unreached`: calls in a row that got no answer. `served`: whether a call has had an
    answer, so that key and name are right. `most_counted`: the most tokens of a prompt that the server counted.
    `said`: what has been logged.
    """

    def __init__(self, connection: Connection, concurrency: int) -> None:
        self.under_way: dict[bytes, asyncio.Future[Reply]] = {}
        self.probing: asyncio.Task[Capabilities] | None = None
        self.slots = asyncio.Semaphore(concurrency)
        self.pace = Pace(60 / connection.rpm) if connection.rpm else None
        self.usual = Usual()
        self.kept = KeptBeginnings(connection.timeout)
        self.unreached = 0
        self.served = False
        self.most_counted = 0
        self.warned: set[str] = set()

    def warn(self, topic: str, text: str) -> None:
        """Log a warning, once for each topic."""
        if topic not in self.warned:
            self.warned.add(topic)
            _LOG.warning(text)


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
        self.weights: Path | None = None
        #: SHA-256 of the model's file, and of an adapter's, where it runs inside this process.
        self.digest = ""
        self._identity = identity
        self.sampling = sampling
        self.connection = connection or Connection()
        self.concurrency = self.connection.concurrency or default_concurrency
        self.meter = Meter()
        self._transport = transport
        self._patient = False
        self._knows_grammar = knows_grammar
        self.embedded = is_local(name)
        #: Whether short answers come sooner one after the other: each of llama.cpp's slots computes a shared beginning
        #: for itself.
        self.one_by_one = False
        #: Computes a model inside this process: `llama.cpp`, or what chooses answers (`openvino bf16 128`); else "".
        self.computed_by = ""
        if cache is None and self.connection.cache:
            cache = CallCache()
        self._cache = cache
        #: What the run that is under way could not use, if it asks nothing twice.
        self.failures: Failures | None = None
        self._capabilities: Capabilities | None = None
        self._traffic = PerLoop(lambda: _Traffic(self.connection, self.concurrency))

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
        return self._transport.lm if isinstance(self._transport, ThroughDSPy) else self

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
            check_priced(self)

    def through(
        self, wrap: Callable[[Transport], Transport], *, patient: bool = False
    ) -> Self:
        """Return the same model, cache and meter, with its transport wrapped by `wrap`.

        patient: True if calls may take hours, and none is sent again because it takes long.
        """
        copied = copy.copy(self)
        copied._transport = wrap(self._transport)
        copied._patient = patient
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
        able = {"response_format"} if self.known_capabilities.json_schema else set()
        if self.known_capabilities.logprobs:
            return able | {"logprobs", "top_logprobs"}
        return able

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
        self,
        request: Request,
        *,
        meter: Callable[[Usage], None] | None = None,
        readable: Callable[[Reply], bool] = lambda _: True,
    ) -> Reply:
        """Answer a request, from the cache if it was answered before.

        Unreadable replies are never kept on disk, and never taken from there: the next request gets a new answer, but
        within a run that asks nothing twice (`failures`). DSPy's callbacks, history and usage show the call.

        Args:
            request: The request.
            meter: Called with the cost of this call.
            readable: True if the caller can use a reply; called at least once with the returned one.

        Raises:
            CallError: If it failed for good.
            ModelError: If no call can succeed.
            BudgetError: Over the budget.
        """
        return await engine.on_loop(self._shown(request, meter, readable))

    async def _shown(
        self,
        request: Request,
        meter: Callable[[Usage], None] | None,
        readable: Callable[[Reply], bool],
    ) -> Reply:
        row_context.check(request.messages)

        async def call() -> tuple[Reply, Usage, float | None]:
            reply, used, cost = await self._complete(request, readable)
            if meter is not None:
                meter(used)
            row_context.count(reply, used)
            return reply, used, cost

        if isinstance(
            self._transport, ThroughDSPy
        ):  # DSPy shows its own objects' calls itself
            return (await call())[0]
        return (await shown(self, request, call))[0]

    async def _complete(
        self, request: Request, readable: Callable[[Reply], bool]
    ) -> tuple[Reply, Usage, float | None]:
        """`complete` without callbacks; with what the call used and what it cost, None where no price is known."""
        self.meter.admit()
        request = _sendable(request)
        if self._cache is None or not self.keeps_answers:
            reply, usage = await self._ask(request)
            readable(reply)
        else:
            reply, usage = await self._ask_once(self._cache, request, readable)
        self.meter.usage += usage
        sent, got = self.meter.logical_tokens
        self.meter.logical_tokens = (
            sent + reply.prompt_tokens,
            got + reply.completion_tokens,
        )
        cost = price(self.name, reply)
        self.meter.cost += cost or 0.0
        if usage.calls:
            paid = self.meter.paid
            self.meter.paid = None if cost is None or paid is None else paid + cost
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

    async def _ask_once(
        self, cache: CallCache, request: Request, readable: Callable[[Reply], bool]
    ) -> tuple[Reply, Usage]:
        """From the disk if it is there.

        Single flight: equal requests at the same time are sent once, and share even an answer that cannot be read.
        """
        key = self._key(request)
        under_way = self._traffic().under_way
        reply = _thaw(cache.get(key))
        if reply is not None and readable(reply):
            return reply, Usage(cached=1)
        failures = self.failures or Failures()
        if (reply := failures.earlier(key)) is not None:
            readable(reply)
            return reply, Usage(cached=1)
        while (first := under_way.get(key)) is not None:
            try:
                reply = await asyncio.shield(first)
            except asyncio.CancelledError:
                if (
                    not first.cancelled()
                ):  # we were cancelled, not the call that we wait for
                    raise
            else:
                readable(reply)
                return reply, Usage(cached=1)
        promise: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        under_way[key] = promise
        try:
            reply, usage = await self._ask(request)
            # The environment may name another server by now.
            if not readable(reply):
                failures.keep(key, reply)
            elif self._key(request) == key:
                cache.put(key, _freeze(reply))
            promise.set_result(reply)
            return reply, usage
        except Exception as error:
            if isinstance(error, CallError):
                failures.keep(key, error)
            promise.set_exception(error)
            promise.exception()  # looked at, so that asyncio does not complain when no other caller waited
            raise
        except BaseException:
            promise.cancel()  # whoever waits asks for itself
            raise
        finally:
            del under_way[key]

    async def _ask(self, request: Request) -> tuple[Reply, Usage]:
        traffic = self._traffic()
        tries = 0
        try:
            while True:
                tries += 1
                try:
                    reply, seconds, sends = await self._in_turn(traffic, request)
                    tries += sends - 1
                    break
                except Unanswered as error:
                    if not error.again or tries >= self.connection.attempts:
                        raise
                    await asyncio.sleep(self._patience(error, tries))
        except Denied as error:
            self.meter.usage += Usage(calls=tries, retries=tries - 1)
            if not await self._serves(traffic):
                raise
            raise _lasting(f"{self.name}: {error.reason}") from None
        except Unanswered as error:
            self.meter.usage += Usage(calls=tries, retries=tries - 1)
            text = f" after {tries} tries" if tries > 1 else ""
            if error.reached:
                traffic.unreached = 0
                kind = CallError if error.again else _lasting
                raise kind(f"{self.name}: {error}{text}") from None
            traffic.unreached += 1
            if traffic.unreached >= OUTAGE_AFTER:
                raise OutageError(
                    f"{self.name} does not answer any more: {traffic.unreached} calls in a row got no answer, the last "
                    f"one: {error}{text}. Start the server again and repeat the command: it goes on from here"
                ) from None
            raise Unreachable(f"{self.name}: {error}{text}") from None
        traffic.unreached = 0
        traffic.served = True
        self._check_all_read(traffic, request, reply)
        for odd in reply.odd:
            traffic.warn(
                "odd",
                f"{self.name}: the server gave {odd} beside an answer; such values are left out",
            )
        return reply, Usage(
            calls=tries,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            prefix_tokens=reply.prefix_tokens,
            seconds=seconds,
            retries=tries - 1,
        )

    def _check_all_read(
        self, traffic: _Traffic, request: Request, reply: Reply
    ) -> None:
        """Check the server's count of a prompt's tokens against the prompt.

        Servers that leave out of it what they have from a cache have counted more before.

        Raises:
            CallError: If the server cannot have read all of it.
        """
        counted = reply.prompt_tokens + reply.prefix_tokens + reply.written_tokens
        traffic.most_counted = max(traffic.most_counted, counted)
        if not is_short_count(counted, request.messages):
            return
        if is_short_count(traffic.most_counted, request.messages):
            size = sum(len(message["content"]) for message in request.messages)
            raise _lasting(
                f"{self.name}: the server read only a part of the prompt: it counted {counted:,} tokens for "
                f"{size:,} characters. Start it with a longer context, or shorten the row's texts"
            )

    async def _in_turn(
        self, traffic: _Traffic, request: Request
    ) -> tuple[Reply, float, int]:
        """Return what `_sent` does, at the model's pace and once the beginning of the request is kept."""

        async def send() -> tuple[Reply, float, int]:
            if traffic.pace is not None:
                await traffic.pace.acquire()
            return await self._sent(traffic, request)

        if isinstance(self._transport, ThroughLiteLLM) and self._transport.marks:
            return await traffic.kept.sent(request, send)
        return await send()

    async def _sent(
        self, traffic: _Traffic, request: Request
    ) -> tuple[Reply, float, int]:
        """Return a reply, its seconds, and how often the request was sent for it. Raises what the transport raises."""
        if self.embedded or self._patient or self.connection.attempts == 1:
            async with traffic.slots:
                return *await self._timed(traffic, request), 1
        sends = Sends(
            partial(self._timed, traffic, request),
            traffic.usual,
            traffic.slots,
            traffic.pace,
            self.connection.attempts,
        )
        return *await sends.answer(), sends.count

    async def _timed(self, traffic: _Traffic, request: Request) -> tuple[Reply, float]:
        started = time.monotonic()
        reply = await self._transport.send(request)
        seconds = time.monotonic() - started
        traffic.usual.took(seconds)
        return reply, seconds

    def _patience(self, error: Unanswered, tries: int) -> float:
        """Seconds until the next try.

        Raises OutageError where the server wants to be left alone for longer than a run can wait.
        """
        wait = _patience(error, tries)
        if (error.after or 0.0) > LONGEST_WAIT:
            raise OutageError(
                f"{self.name} wants to be asked again in {_duration(wait)} ({error}). What is finished is kept: repeat "
                "the command then, it goes on from here"
            )
        if wait >= LONG_WAIT:
            self._traffic().warn(
                f"wait {wait:.0f}",
                f"{self.name}: waiting for {_duration(wait)}, as it asks ({error})",
            )
        return wait

    async def _serves(self, traffic: _Traffic) -> bool:
        """Return True if key and model name are right: a call has had an answer, or a plain question has one now."""
        if not traffic.served:
            try:
                async with traffic.slots:
                    await self._transport.send(PLAIN)
                traffic.served = True
            except (ModelError, Unanswered):
                return False
        return True

    # -- what it can do

    async def answers(self) -> None:
        """Request one token, past the cache.

        Raises:
            CallError: If the call failed.
            ModelError: If no call can succeed.
        """
        await self._ask(PLAIN)

    async def capabilities(self) -> Capabilities:
        """Probe the model once; the result is cached with its calls.

        A `dspy.BaseLM` of the caller's own has the capabilities that it declares (`supported_params`,
        `supports_response_schema`): it may follow a script, whose answers are not ours to use up. A plain `dspy.LM` is
        probed, out of sight of DSPy's history, usage and callbacks.

        Raises:
            ModelError: If it never answers.
        """
        if self._capabilities is None and isinstance(self._transport, ThroughDSPy):
            lm: Any = self._transport.lm
            if type(lm) is not dspy.LM or not isinstance(
                getattr(lm, "_engine_spec", "auto"), str
            ):
                schema = getattr(lm, "supports_response_schema", False) is True
                self._capabilities = Capabilities(
                    "logprobs" in getattr(lm, "supported_params", ()), schema
                )
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
        plain = [
            {"role": "system", "content": "Answer with one digit."},
            {"role": "user", "content": "2 + 2 ="},
        ]
        merged = [{"role": "user", "content": "Answer with one digit.\n\n2 + 2 ="}]
        refusal: CallError | None = None

        def sane(
            reply: Reply,
        ) -> bool:  # garbage says nothing of the next process's server
            return "4" in reply.text

        for messages, top in ((plain, 5), (plain, 0), (merged, 5), (merged, 0)):
            try:
                reply, *_ = await self._complete(
                    Request(messages, 4, top_logprobs=top), sane
                )
                break
            except Unreachable as error:
                raise OutageError(
                    f"{error}; check that the server runs, and its address"
                ) from None
            except CallError as error:
                refusal = error
        else:
            assert refusal is not None
            kind = ModelError if refusal.lasting else OutageError
            raise kind(f"the model does not answer: {refusal}")
        self._remember(reply.without)
        system = messages is plain
        logprobs = reply.tokens is not None and any(
            len(t.alternatives) > 1 for t in reply.tokens
        )
        shape = {
            "type": "object",
            "properties": {"digit": {"type": "integer", "enum": [1, 2, 3, 4]}},
            "required": ["digit"],
            "additionalProperties": False,
        }
        try:
            answer, *_ = await self._complete(Request(messages, 24, schema=shape), sane)
            data = orjson.loads(answer.text)
            schema = isinstance(data, dict) and data.get("digit") in (1, 2, 3, 4)
        except (CallError, orjson.JSONDecodeError):
            schema = False
        return Capabilities(
            logprobs, schema, system, self._knows_grammar, reply.without
        )

    def _remember(self, without: Sequence[str]) -> None:
        """Ask without what the model refused in an earlier process, whose answers came from the disk."""
        if parameters := getattr(self._transport, "parameters", None):
            parameters.refused |= frozenset(without)


def _sendable(request: Request) -> Request:
    """Return a request whose texts can be sent, as those with half a character, of broken JSON lines, cannot."""
    if all(message["content"].isascii() for message in request.messages):
        return request
    whole = [
        message | {"content": without_surrogates(message["content"])}
        for message in request.messages
    ]
    return request if whole == request.messages else replace(request, messages=whole)


def _lasting(text: str) -> CallError:
    """Return the error of a request that the server refused, and would refuse again."""
    error = CallError(text)
    error.lasting = True
    return error


def _patience(error: Unanswered, tries: int) -> float:
    """Seconds that the server asked for, else exponential back-off with jitter (at most 0.5 s, growing to 30 s)."""
    if error.after is not None:
        return error.after
    return random.uniform(0, min(30.0, 2.0 ** (tries - 2)))


def _duration(seconds: float) -> str:
    """Seconds in words: "90 s", "12 minutes", "3.0 hours"."""
    if seconds < 600:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def _as_openai(token: TokenChoice) -> dict[str, Any]:
    """A token with the likeliest ones at its place, in OpenAI's form."""
    likeliest = [{"token": text, "logprob": p} for text, p in token.alternatives]
    return {"token": token.text, "top_logprobs": likeliest}


def _freeze(reply: Reply) -> dict[str, Any]:
    frozen: dict[str, Any] = {
        "text": reply.text,
        "usage": [
            reply.prompt_tokens,
            reply.completion_tokens,
            reply.prefix_tokens,
            reply.written_tokens,
        ],
        "finish": reply.finish,
    }
    if reply.absent:
        frozen["absent"] = reply.absent
    if reply.without:
        frozen["without"] = list(reply.without)
    if reply.discount:
        frozen["discount"] = reply.discount
    if reply.tokens is not None:
        frozen["tokens"] = [
            [token.text, list(map(list, token.alternatives))] for token in reply.tokens
        ]
    return frozen


def _thaw(stored: Any) -> Reply | None:
    """A stored reply; None where there is none or it is damaged."""
    try:
        tokens = stored.get("tokens")
        prompt, completion, prefix, *written = stored["usage"]
        return Reply(
            stored["text"],
            None if tokens is None else tuple(map(_thawed, tokens)),
            prompt,
            completion,
            prefix,
            stored["finish"],
            discount=float(stored.get("discount") or 0.0),
            absent=str(stored.get("absent") or ""),
            written_tokens=sum(written),  # earlier versions kept none
            without=tuple(stored.get("without") or ()),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _thawed(token: Any) -> TokenChoice:
    """A stored token. Raises TypeError, ValueError for a damaged one."""
    text, alternatives = token
    return TokenChoice(
        text, tuple((alternative, logp) for alternative, logp in alternatives)
    )


def check_priced(*models: LanguageModel) -> None:
    """Check that the price of every model is known, without which no limit of cost can be kept.

    Raises:
        OptionError: For a model whose price is unknown.
    """
    for model in models:
        if price(model.name, Reply("")) is None:
            raise OptionError(
                f"the price of {model.name} is unknown, so a cost cannot be kept to; use --max-calls"
            )


def price(name: str, reply: Reply) -> float | None:
    """Dollars for one call by LiteLLM's price table; 0 for models on this machine; None where the price is unknown."""
    if is_local(name) or is_ollama(name) or is_absent(name):
        return 0.0
    rates = _rates(name)
    if rates is None:
        return None
    kept = reply.prefix_tokens
    written = reply.written_tokens
    plain = max(0, reply.prompt_tokens - kept - written)
    prompt = plain * rates.prompt + kept * rates.kept + written * rates.written
    return (prompt + reply.completion_tokens * rates.completion) * (
        1.0 - reply.discount
    )


def shared_price(names: Sequence[str], reply: Reply) -> float | None:
    """Return the dollars for calls that these models share in equal parts; None where a price is unknown."""
    prices = [price(name, reply) for name in names] or [None]
    if None in prices:
        return None
    return math.fsum(amount for amount in prices if amount) / len(prices)


class Rates(NamedTuple):
    """Dollars for a token.

    kept, written: for one of the prompt that the provider took from its prefix cache, and that it put there.
    """

    prompt: float
    completion: float
    kept: float
    written: float


def context_of(lm: LanguageModel | str) -> int | None:
    """Return the tokens that a model reads at once; None where that is not known."""
    if isinstance(lm, LanguageModel):
        longest = getattr(lm._transport, "longest", None)
        if isinstance(longest, int):
            return longest
    name = lm if isinstance(lm, str) else lm.name
    if is_local(name):
        from judgesmith.programs.models.local import CONTEXT

        return CONTEXT
    most = (_listed(name) or {}).get("max_input_tokens")
    return most if isinstance(most, int) else None


@cache
def _listed(name: str) -> dict[str, Any] | None:
    # LiteLLM's prices. Unless it is loaded anyway they are read from the file that comes with it: importing the library
    # takes seconds, and a model behind our own connection needs nothing else of it.
    if "litellm" in sys.modules:
        table = sys.modules["litellm"].model_cost
    else:
        folder = importlib.util.find_spec("litellm").submodule_search_locations[0]  # type: ignore[union-attr,index]
        table = orjson.loads(Path(folder, PRICES).read_bytes())
    entry: Any = table.get(name) or table.get(name.partition("/")[2])
    return entry if isinstance(entry, dict) else None


@cache
def _rates(name: str) -> Rates | None:
    entry = _listed(name)
    if entry is None or "input_cost_per_token" not in entry:
        return None
    prompt = entry["input_cost_per_token"]
    return Rates(
        prompt,
        entry.get("output_cost_per_token") or 0.0,
        entry.get("cache_read_input_token_cost") or prompt,
        entry.get("cache_creation_input_token_cost") or prompt,
    )


def is_absent(name: str) -> bool:
    """Return True for a name without a model behind it: its answers are in a file, or it has none."""
    return name == NO_MODEL or name.startswith(RECORDED)


def is_local(name: str) -> bool:
    """Return True for a model that runs in this process."""
    return name.startswith(("local/", "gguf:"))


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
    """
    if isinstance(lm, LanguageModel):
        return lm
    connection = connection or Connection()
    if not isinstance(lm, str):
        if isinstance(ours := getattr(lm, "of", None), LanguageModel):
            return ours
        name = getattr(lm, "model", None)
        if not isinstance(name, str) or not callable(getattr(lm, "acall", None)):
            raise OptionError(
                f"an LM is a name or a dspy.LM object; got {type(lm).__name__}"
            )
        return _foreign(name, lm, sampling, connection)
    name = lm.strip()
    if is_local(name):
        return _embedded(name, sampling, connection)
    if is_absent(name):
        gone: Transport = plugin("models", name.partition(":")[0])(name)
        lm = LanguageModel(
            name,
            gone,
            identity="",
            sampling=sampling,
            connection=replace(connection, cache=False),
        )
        lm.assume(Capabilities())
        return lm
    if name.startswith(DECISIONS):
        return _deciding(name, sampling, connection)
    provider, slash, model = name.partition("/")
    if not provider or (slash and not model):
        raise OptionError(
            f"{lm!r} names no model; write PROVIDER/MODEL, for example openai/gpt-4o-mini, ollama_chat/llama3.1:8b or "
            "local/qwen2.5-0.5b"
        )
    if is_ollama(name):
        from judgesmith.programs.models.through_ollama import ThroughOllama

        host = _checked("the address of Ollama", ollama_host(connection.api_base))
        through = ThroughOllama(
            host, model, check_ollama(model, host), timeout=connection.timeout
        )
        return LanguageModel(
            name, through, identity=host, sampling=sampling, connection=connection
        )
    base: str | None
    if provider in OPENAI_STYLE and (base := _address(provider, connection)):
        key = connection.api_key or os.environ.get(f"{provider.upper()}_API_KEY")
        if (
            key is None and "openai" in provider
        ):  # other servers have no business with OpenAI's key
            key = os.environ.get("OPENAI_API_KEY")
    else:
        address = connection.api_base and _checked("--api-base", connection.api_base)
        transport = ThroughLiteLLM(
            name, timeout=connection.timeout, key=connection.api_key, api_base=address
        )
        return LanguageModel(
            name,
            transport,
            identity=lambda: transport.place,
            sampling=sampling,
            connection=connection,
        )
    style = OpenAIStyle(base, model, key=key, timeout=connection.timeout, label=name)
    return LanguageModel(
        name, style, identity=base, sampling=sampling, connection=connection
    )


@lru_cache(8)
def _foreign(
    name: str, lm: Any, sampling: Sampling | None, connection: Connection
) -> LanguageModel:
    """A `dspy.LM` object's LanguageModel, the same one each time, so that it is probed once."""
    # A foreign object does its own caching: two of them with one name may be different servers.
    connection = replace(connection, cache=False)
    return LanguageModel(
        name, ThroughDSPy(lm), identity="dspy", sampling=sampling, connection=connection
    )


def _deciding(
    name: str, sampling: Sampling | None, connection: Connection
) -> LanguageModel:
    """Return a model that answers typed questions. Raises OptionError for a name without one."""
    from judgesmith.programs.models.decisions import ADDRESS, KEY, Served, ZeroShot

    kind, _, model = name.partition(":")
    if not model:
        raise OptionError(f"{name} names no model; write {kind}:NAME")
    base = connection.api_base or os.environ.get(ADDRESS, "")
    place = _checked("--api-base", base).rstrip("/") if base else ""
    key = connection.api_key or os.environ.get(KEY, "")
    through: Transport = Served(model, place, key, connection.timeout)
    if not name.startswith(DECISIONS[0]):
        # Nothing tells whether the weights behind a folder's name are still the same.
        through = ZeroShot(model)
        connection = replace(connection, cache=False)
    result = LanguageModel(
        name,
        through,
        identity=place,
        sampling=sampling,
        connection=connection,
    )
    result.assume(Capabilities())
    return result


def _address(provider: str, connection: Connection) -> str | None:
    """Return the address of the provider's server; None if LiteLLM knows it.

    Raises OptionError for anything but an address, or if there is none: LiteLLM would take the user's own server for
    OpenAI's.
    """
    names = [f"{provider.upper()}_API_BASE"]
    if provider == "openai":
        names.insert(0, "OPENAI_BASE_URL")
    variables = [
        ("--api-base", connection.api_base),
        *((name, os.environ.get(name)) for name in names),
    ]
    where, base = next(((where, base) for where, base in variables if base), ("", ""))
    if not base:
        if provider in ("openai", "llamafile"):
            return None
        raise OptionError(
            f"{provider}/… is a server of your own: say where it is with --api-base or {names[0]}"
        )
    return _checked(where, base)


def _checked(where: str, base: str) -> str:
    """Return an address in its usual form.

    Raises:
        OptionError: It is no address, or holds what would be sent in place of the key: a name, a password, or a query
            such as `?api_key=…`. None of these is repeated.
    """
    base = base.strip()
    before, at, host = base.rpartition("@")
    if at and "/" in before:
        raise OptionError(
            f"{where} holds a user name or a password (before @{host.partition('/')[0]}); leave it out, give the key "
            "by its environment variable, and put other credentials into a proxy"
        )
    try:
        parts = urlsplit(base)
        usable = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
        )
    except ValueError:  # a port that is not a number, half an IPv6 address
        usable = False
    if not usable or not base.isprintable() or " " in base:
        raise OptionError(
            f"{where} {base!r} is not an http(s) address; for example http://127.0.0.1:8000/v1"
        )
    for sign, name in (("?", "a query"), ("#", "a fragment")):
        if sign in base:
            raise OptionError(
                f"{where} {base.partition(sign)[0]}{sign}… has {name}, to which no path can be added; leave it out, "
                "and give a key by its environment variable"
            )
    return base.rstrip("/")


def with_adapter(lm: LanguageModel, adapter: Path) -> LanguageModel:
    """Return the same model inside this process with low-rank weights (LoRA, a GGUF file) added to its own.

    Calls count on the same meter.

    Raises:
        ModelError: For a model that does not run in this process, and for weights that do not fit it.
    """
    if not lm.embedded or lm.weights is None:
        raise ModelError(
            f"{lm.name} does not run in this process, so no weights can be added to it here"
        )
    adapted = _embedded(f"gguf:{lm.weights}", lm.sampling, lm.connection, adapter)
    adapted.name = lm.name
    adapted.meter = lm.meter
    return adapted


def _embedded(
    name: str,
    sampling: Sampling | None,
    connection: Connection,
    adapter: Path | None = None,
) -> LanguageModel:
    from judgesmith.programs.models.begun import Begun
    from judgesmith.programs.models.choosing import AT_ONCE, Choosing, chooser_of
    from judgesmith.programs.models.local import (
        LLAMA_CPP,
        Lazily,
        SharedMemory,
        embedded,
        identified,
    )

    path, digest, model_id = identified(name, adapter)

    def served() -> Transport:
        endpoint = embedded(name, adapter)
        style = OpenAIStyle(
            endpoint.base_url + "/v1",
            endpoint.model_id,
            key=endpoint.api_key,
            timeout=max(connection.timeout, 600.0),
            label=name,
        )
        return Begun(SharedMemory(style, endpoint))

    # An artifact names the model, not a path of this machine.
    if name.startswith("local/"):
        shown = name
    else:
        shown = "gguf:" + re.split(r"[\\/]", name)[-1]
    settings: dict[str, Any] = {
        "sampling": sampling,
        "connection": connection,
        "knows_grammar": True,
    }
    chooser = None if adapter else chooser_of(path, shown)
    if chooser is None:
        settings |= {"identity": model_id, "default_concurrency": 4}
        lm = LanguageModel(shown, served(), **settings)
        lm.one_by_one = True
        lm.computed_by = LLAMA_CPP
    else:
        settings |= {
            "identity": f"{model_id} {chooser.way}",
            "default_concurrency": AT_ONCE,
        }
        lm = LanguageModel(shown, Choosing(chooser, Lazily(served)), **settings)
        lm.computed_by = chooser.way
        lm.assume(Capabilities(True, True, chooser.system_prompt, True))
    lm.weights = path
    lm.digest = digest
    return lm
