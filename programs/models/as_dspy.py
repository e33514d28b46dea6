"""The view that DSPy has of our calls: callbacks, histories, tracked usage.

A call that nobody traces costs a look at DSPy's settings.
"""

from __future__ import annotations

import datetime
import uuid
from collections import ChainMap
from collections.abc import Awaitable, Callable, Mapping
from operator import is_
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

import dspy
from dspy.clients.base_lm import record_history
from dspy.dsp.utils.settings import main_thread_config, thread_local_overrides
from dspy.predict.parameter import Parameter
from dspy.utils.callback import with_callbacks

from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.transport import Message, Request
from judgesmith.signatures.values import Usage

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
    """Return a message's text; of several parts, those that are text."""
    if isinstance(content, str):
        return content
    return "\n".join(
        str(part.get("text", "")) for part in content or () if isinstance(part, Mapping)
    )


def schema_of(form: Any) -> Mapping[str, Any] | None:
    """Return the JSON schema of a response format that DSPy's adapters give: a pydantic model, or OpenAI's form."""
    if isinstance(form, type) and hasattr(form, "model_json_schema"):
        declared: Mapping[str, Any] = form.model_json_schema()
        return declared
    if isinstance(form, Mapping) and isinstance(form.get("json_schema"), Mapping):
        schema: Mapping[str, Any] | None = form["json_schema"].get("schema")
        return schema
    return None


def setting(name: str) -> Any:
    """Return one of DSPy's settings, as `dspy.settings` does at several times the cost."""
    overrides = thread_local_overrides.get()
    return overrides[name] if name in overrides else main_thread_config[name]


def listeners(instance: Any) -> bool:
    """Return True if this object has callbacks, of its own or of DSPy's settings."""
    return bool(setting("callbacks") or getattr(instance, "callbacks", None))


#: Settings by which DSPy's users see calls.
_SEEN_BY = {"disable_history", "track_usage", "usage_tracker", "callbacks"}


def heard(called: Any, usage: str = "track_usage") -> bool:
    """Return True if anybody can see the calls of a module or a model: by callbacks, tracked usage or a history.

    usage: The setting that says whether usage is tracked; models tell a `usage_tracker`, which modules begin.
    """
    overrides = thread_local_overrides.get()
    settings = overrides
    if not overrides.keys() >= _SEEN_BY:
        settings = ChainMap(overrides, main_thread_config)
    return (
        not settings["disable_history"]
        or bool(settings[usage])
        or bool(settings["callbacks"])
        or bool(getattr(called, "callbacks", None))
    )


if TYPE_CHECKING:

    class Module:
        """The part of `dspy.Module` that is used, with types: without them every attribute would pass."""

        callbacks: list[Any]
        history: list[Any]
        candidate_programs: list[Any]
        _compiled: bool

        def __call__(self, *args: Any, **named: Any) -> dspy.Prediction:
            """Call the module in this thread."""

        async def acall(self, *args: Any, **named: Any) -> dspy.Prediction:
            """Call the module, with callbacks and histories."""

        async def aforward(self, *args: Any, **named: Any) -> dspy.Prediction:
            """Do the module's work."""

        def predictors(self) -> list[Any]:
            """Return the predictors inside."""

        def named_predictors(self) -> list[tuple[str, Any]]:
            """Return the predictors inside, by name."""

        def named_parameters(self) -> list[tuple[str, Any]]:
            """Return the parameters inside, by name."""

        def deepcopy(self) -> Self:
            """Return a deep copy."""

        def reset_copy(self) -> Self:
            """Return a deep copy with all parameters reset."""

        def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
            """Return the state of all parameters."""

        def load_state(
            self, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool = False
        ) -> Any:
            """Take the state of all parameters."""
else:
    Module = dspy.Module


class Quiet(Module):
    """A module that is silent unless somebody can see its calls.

    Its `acall` is DSPy's if callbacks, tracked usage or a history can see the call, and otherwise `aforward` itself:
    rows that are judged by the thousand switch `dspy.settings.disable_history` on.

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


#: Entries of a list or a dictionary in a module, from which on it is gone through each time.
MANY = 64
_trees: WeakKeyDictionary[Any, _Tree] = WeakKeyDictionary()


class _Tree:
    """A module's predictors, and what was in each part of it that may hold one when they were looked up."""

    def __init__(self, module: Any) -> None:
        self.predictors: list[Any] = module.predictors()
        self._small = True
        self._parts: list[tuple[Any, tuple[Any, ...]]] = []
        self._add_module(module)

    def stands(self) -> bool:
        """Return whether every part still holds the same objects."""
        if not self._small:
            return False
        for part, held in self._parts:
            now = _held(part)
            if len(now) != len(held) or not all(map(is_, now, held)):
                return False
        return True

    def _add_module(self, module: Any) -> None:
        for value in self._add(vars(module)):
            if isinstance(value, (list, tuple, dict)):
                value = self._add(value)
            else:
                value = (value,)
            for member in value:
                if isinstance(member, dspy.Module) and not isinstance(
                    member, Parameter
                ):
                    self._add_module(member)

    def _add(self, part: Any) -> tuple[Any, ...]:
        held = _held(part)
        self._small = self._small and len(held) <= MANY
        self._parts.append((part, held))
        return held


def _held(part: Any) -> tuple[Any, ...]:
    """Return what a list, a tuple or a dictionary holds, without the history of a module."""
    if isinstance(part, dict):
        return tuple([v for name, v in part.items() if name != "history"])
    return tuple(part)


def predictors_of(module: Any) -> list[Any]:
    """Return `module.predictors()`, kept until something in the module is replaced.

    DSPy finds them by a walk through everything in the module.
    """
    if isinstance(module, Parameter):  # its tree would hold it for ever
        return list(module.predictors())
    tree = _trees.get(module)
    if tree is None or not tree.stands():
        tree = _trees[module] = _Tree(module)
    return list(tree.predictors)


T = TypeVar("T")


class Result(dspy.Prediction, Generic[T]):  # type: ignore[misc]
    """A prediction whose fields are for DSPy, and whose `value` is what they were made of; no prompt shows it."""

    def __init__(self, value: T, **fields: Any) -> None:
        super().__init__(**fields)
        self._value = value  # a private name is no field of the prediction

    @property
    def value(self) -> T:
        """Return the value that the prediction was made of."""
        return self._value


def value_of(prediction: dspy.Prediction, kind: type[T]) -> T:
    """Return the value that a prediction was made of.

    Raises:
        TypeError: For a value of another kind.
    """
    value = prediction.value if isinstance(prediction, Result) else None
    if not isinstance(value, kind):
        raise TypeError(
            f"the prediction holds a {type(value).__name__}, and no {kind.__name__}"
        )
    return value


class Named(Protocol):
    """A model by the name that histories show."""

    name: str


async def shown(
    model: Named,
    request: Request,
    call: Callable[[], Awaitable[tuple[Reply, Usage, float | None]]],
) -> tuple[Reply, Usage, float | None]:
    """Return `call()`, seen by DSPy's callbacks and usage tracker and kept in histories.

    The histories are those of the model and of the modules that called it. The third value of the call is the price.
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
    tracker = setting("usage_tracker")
    reply, usage, cost = outcome
    counted = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.tokens,
    }
    if usage.calls and tracker:
        tracker.add_usage(model.name, counted)
    if not setting("disable_history"):
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
