"""The calls of a `LanguageModel` as DSPy shows them: callbacks, history, usage. Where nobody listens, `shown` costs a
look at DSPy's settings.
"""

from __future__ import annotations

import datetime
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import dspy
from dspy.clients.base_lm import GLOBAL_HISTORY, record_history
from dspy.dsp.utils.settings import thread_local_overrides
from dspy.predict.parameter import Parameter
from dspy.utils.callback import with_callbacks

from ...signatures.values import Usage
from .transport import Message, Reply, Request

if TYPE_CHECKING:
    from .lm import LanguageModel

#: Tokens that an answer to a stock DSPy module has at most, by default.
TOKENS = 1000
#: Calls of models by name that DSPy's history keeps at most: scoring a million rows must not fill the memory with
#: prompts. DSPy's own models keep 10,000.
REMEMBERED = 500

#: The entries that were made here, each with the histories that hold it.
_remembered: deque[tuple[dict[str, Any], list[list[Any]]]] = deque()


def without_system(messages: list[Message]) -> list[Message]:
    """For models whose chat template has no system role: its text leads the first user turn."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return messages
    system, first, *rest = messages
    return [{"role": "user", "content": f"{system['content']}\n\n{first['content']}"}, *rest]


def plain_text(content: Any) -> str:
    """A message's text; of several parts, those that are text."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or () if isinstance(part, Mapping))


def schema_of(form: Any) -> Mapping[str, Any] | None:
    """The JSON schema of a response format, as DSPy's adapters give it: a pydantic model, or OpenAI's own form."""
    if isinstance(form, type) and hasattr(form, "model_json_schema"):
        found: Mapping[str, Any] = form.model_json_schema()
        return found
    if isinstance(form, Mapping) and isinstance(form.get("json_schema"), Mapping):
        given: Mapping[str, Any] | None = form["json_schema"].get("schema")
        return given
    return None


# What DSPy shows of a call --------------------------------------------------------------------------------------------


def listeners(instance: Any) -> bool:
    """Whether anybody hears callbacks of this object."""
    return bool(dspy.settings.get("callbacks") or getattr(instance, "callbacks", None))


class Quiet(dspy.Module):  # type: ignore[misc]
    """A module whose `acall` is DSPy's, without its cost where there are no callbacks and usage is not tracked: a
    judge's row is three or four such calls, and DSPy's context manager and wrapper took a fifth of a row's time.
    Histories are kept all the same. Attributes are looked up as of any object: DSPy's look-up, which warns of `forward`
    called directly, took a tenth."""

    __getattribute__ = object.__getattribute__

    async def acall(self, *args: Any, **named: Any) -> dspy.Prediction:
        """DSPy's asynchronous call, without its bookkeeping where neither callbacks nor usage tracking are on."""
        settings = dspy.settings
        if listeners(self) or settings.track_usage:
            return await super().acall(*args, **named)
        callers = [*(settings.caller_modules or ()), self]
        token = thread_local_overrides.set({**thread_local_overrides.get(), "caller_modules": callers})
        try:
            return await self.aforward(*args, **named)
        finally:
            thread_local_overrides.reset(token)

    def named_parameters(self) -> list[tuple[str, Any]]:
        """DSPy's, which looks through the history of calls, too: hundreds of entries at every use of `judge.lm`."""
        if isinstance(self, Parameter):
            return list(super().named_parameters())
        bare = object.__new__(type(self))
        bare.__dict__.update({name: value for name, value in vars(self).items() if name != "history"})
        return list(super(Quiet, bare).named_parameters())


async def shown(
    model: LanguageModel, request: Request, call: Callable[[], Awaitable[tuple[Reply, Usage, float | None]]]
) -> tuple[Reply, Usage, float | None]:
    """`call()`, as DSPy shows calls of models: callbacks, usage, and the histories of the model and of all modules that
    it was called by. Its third value is the price."""
    if listeners(model):
        result: list[tuple[Reply, Usage, float | None]] = []

        async def acall(self: Any, prompt: Any = None, messages: Any = None, **kwargs: Any) -> list[str]:
            result.append(await call())
            return [result[0][0].text]

        await with_callbacks(acall)(model, messages=list(request.messages), **_options(request))
        (outcome,) = result
    else:
        outcome = await call()
    reply, usage, cost = outcome
    counted = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.tokens,
    }
    if usage.calls and (tracker := dspy.settings.usage_tracker):
        tracker.add_usage(model.name, counted)
    if not dspy.settings.disable_history:
        entry = {
            "prompt": None,
            "messages": list(request.messages),
            "kwargs": _options(request),
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
        _remember(model, entry)
    return outcome


def _options(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = {"temperature": request.temperature, "max_tokens": request.max_tokens}
    if request.top_logprobs:
        found |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    return found


def _remember(model: LanguageModel, entry: dict[str, Any]) -> None:
    record_history(model, entry)
    owners = (model, *(dspy.settings.caller_modules or ()))
    _remembered.append((entry, [GLOBAL_HISTORY, *(owner.history for owner in owners)]))
    if len(_remembered) > REMEMBERED:
        oldest, histories = _remembered.popleft()
        for history in histories:
            place = next((i for i, one in enumerate(history) if one is oldest), None)  # the first, nearly always
            if place is not None:
                del history[place]
