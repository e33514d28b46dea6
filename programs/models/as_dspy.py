"""What DSPy sees of our calls: callbacks, histories, tracked usage.

A call that nobody traces costs a look at DSPy's settings.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

import dspy
from dspy.clients.base_lm import record_history
from dspy.predict.parameter import Parameter
from dspy.utils.callback import with_callbacks

from ...signatures.values import Usage
from .transport import Message, Reply, Request

#: Tokens that an answer to a stock DSPy module has at most, by default.
TOKENS = 1000


def without_system(messages: list[Message]) -> list[Message]:
    """For models whose chat template has no system role: its text leads the first user turn."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return messages
    system, first, *rest = messages
    return [
        {"role": "user", "content": f"{system['content']}\n\n{first['content']}"},
        *rest,
    ]


def plain_text(content: Any) -> str:
    """A message's text; of several parts, those that are text."""
    if isinstance(content, str):
        return content
    return "\n".join(
        str(part.get("text", "")) for part in content or () if isinstance(part, Mapping)
    )


def schema_of(form: Any) -> Mapping[str, Any] | None:
    """The JSON schema of a response format, as DSPy's adapters give it: a pydantic model, or OpenAI's own form."""
    if isinstance(form, type) and hasattr(form, "model_json_schema"):
        declared: Mapping[str, Any] = form.model_json_schema()
        return declared
    if isinstance(form, Mapping) and isinstance(form.get("json_schema"), Mapping):
        schema: Mapping[str, Any] | None = form["json_schema"].get("schema")
        return schema
    return None


def listeners(instance: Any) -> bool:
    """Whether this object has callbacks, of its own or of DSPy's settings."""
    return bool(dspy.settings.get("callbacks") or getattr(instance, "callbacks", None))


def heard(module: Any) -> bool:
    """Whether anybody can see the calls of a module: by callbacks, tracked usage or a history."""
    settings = dspy.settings
    return not settings.disable_history or settings.track_usage or listeners(module)


if TYPE_CHECKING:

    class Module:
        """What is used of `dspy.Module`, which has no types: without them every attribute would pass."""

        callbacks: list[Any]
        history: list[Any]
        candidate_programs: list[Any]
        _compiled: bool

        def __call__(self, *args: Any, **named: Any) -> dspy.Prediction: ...
        async def acall(self, *args: Any, **named: Any) -> dspy.Prediction: ...
        async def aforward(self, *args: Any, **named: Any) -> dspy.Prediction: ...
        def predictors(self) -> list[Any]: ...
        def named_predictors(self) -> list[tuple[str, Any]]: ...
        def named_parameters(self) -> list[tuple[str, Any]]: ...
        def deepcopy(self) -> Self: ...
        def reset_copy(self) -> Self: ...
        def dump_state(self, json_mode: bool = True) -> dict[str, Any]: ...
        def load_state(
            self, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool = False
        ) -> Any: ...
else:
    Module = dspy.Module


class Quiet(Module):
    """A module whose `acall` is DSPy's where anybody can see the call, by callbacks, tracked usage or a history, and
    `aforward` itself where nobody can: rows that are judged by the thousand switch `dspy.settings.disable_history` on.

    Attributes are looked up as of any object: DSPy's look-up, which warns of `forward` called directly, took a tenth of
    a row's time.
    """

    __getattribute__ = object.__getattribute__

    async def acall(self, *args: Any, **named: Any) -> dspy.Prediction:
        """DSPy's asynchronous call, without its bookkeeping where nobody can see it."""
        if heard(self):
            return await super().acall(*args, **named)
        return await self.aforward(*args, **named)

    def named_parameters(self) -> list[tuple[str, Any]]:
        """DSPy's, which looks through the history of calls, too: thousands of entries at every use of `judge.lm`."""
        if isinstance(self, Parameter):
            return list(super().named_parameters())
        bare = object.__new__(type(self))
        bare.__dict__.update(
            {name: value for name, value in vars(self).items() if name != "history"}
        )
        return list(super(Quiet, bare).named_parameters())


class Named(Protocol):
    """A model by the name that histories show."""

    name: str


async def shown(
    model: Named,
    request: Request,
    call: Callable[[], Awaitable[tuple[Reply, Usage, float | None]]],
) -> tuple[Reply, Usage, float | None]:
    """`call()`, seen by DSPy's callbacks and usage tracker and kept in the histories of the model and of the modules
    that called it. Its third value is the price.
    """
    if listeners(model):
        result: list[tuple[Reply, Usage, float | None]] = []

        async def acall(
            self: Any, prompt: Any = None, messages: Any = None, **kwargs: Any
        ) -> list[str]:
            result.append(await call())
            return [result[0][0].text]

        await with_callbacks(acall)(
            model, messages=list(request.messages), **request.options()
        )
        (outcome,) = result
    else:
        outcome = await call()
    settings = dspy.settings
    if settings.disable_history and not settings.usage_tracker:
        return outcome
    reply, usage, cost = outcome
    counted = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.tokens,
    }
    if usage.calls and settings.usage_tracker:
        settings.usage_tracker.add_usage(model.name, counted)
    if not settings.disable_history:
        entry = {
            "prompt": None,
            "messages": list(request.messages),
            "kwargs": request.options(),
            "response": None,
            "outputs": [reply.text],
            "usage": counted if usage.calls else {},
            "cost": cost if usage.calls else None,
            "timestamp": datetime.datetime.now().isoformat(),
            "uuid": uuid.uuid4().hex,
            "model": model.name,
            "response_model": model.name,
            "model_type": "chat",
        }
        record_history(model, entry)
    return outcome
