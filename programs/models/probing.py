"""What a model can do: asked of it once, or declared by a caller's own object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

import dspy
import orjson

from judgesmith.errors import CallError, ModelError, OutageError
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.connection import Capabilities
from judgesmith.programs.models.parameters import Parameters
from judgesmith.programs.models.sending import Odd, Unreachable
from judgesmith.programs.models.transport import Request, Transport

_INSTRUCTION = "Answer with one digit."
_QUESTION = "2 + 2 ="
_PLAIN = [
    {"role": "system", "content": _INSTRUCTION},
    {"role": "user", "content": _QUESTION},
]
_MERGED = [{"role": "user", "content": f"{_INSTRUCTION}\n\n{_QUESTION}"}]
_DIGITS = (1, 2, 3, 4)
_SHAPE = {
    "type": "object",
    "properties": {"digit": {"type": "integer", "enum": list(_DIGITS)}},
    "required": ["digit"],
    "additionalProperties": False,
}

#: Answers a request, from the cache if the reply was readable before.
Complete = Callable[[Request, Callable[[Reply], bool]], Awaitable[Reply]]


@runtime_checkable
class Adapting(Protocol):
    """A transport that leaves out what its model refuses."""

    parameters: Parameters


def declared(lm: Any) -> Capabilities | None:
    """Return what a caller's own `dspy.BaseLM` says that it can do; None for a plain `dspy.LM`, which is probed."""
    spec = getattr(lm, "_engine_spec", "auto")
    if type(lm) is dspy.LM and isinstance(spec, str):
        return None
    schema = getattr(lm, "supports_response_schema", False) is True
    return Capabilities("logprobs" in getattr(lm, "supported_params", ()), schema)


async def probe(
    complete: Complete, transport: Transport, *, grammar: bool
) -> Capabilities:
    """Ask a model for a digit, and for one in a JSON schema.

    Args:
        complete: Answers a request.
        transport: The way to the model, which remembers the parameters that it refused.
        grammar: Whether it takes a grammar, which is not asked.

    Raises:
        ModelError: If it refuses for good.
        OutageError: If it does not answer now.
    """
    reply, messages = await _first(complete)
    # The answer may be from the disk, and the refusal one of an earlier process.
    if isinstance(transport, Adapting):
        transport.parameters.refused |= frozenset(reply.without)
    listed = reply.tokens or ()
    logprobs = any(len(token.alternatives) > 1 for token in listed)
    try:
        answer = await complete(Request(messages, 24, schema=_SHAPE), _sane)
        data = orjson.loads(answer.text)
        schema = isinstance(data, dict) and data.get("digit") in _DIGITS
    except (CallError, orjson.JSONDecodeError):
        schema = False
    return Capabilities(logprobs, schema, messages is _PLAIN, grammar, reply.without)


async def _first(complete: Complete) -> tuple[Reply, list[dict[str, str]]]:
    """Return the first answer, and the form of the question that it is to."""
    refusal: CallError | None = None
    for messages in (_PLAIN, _MERGED):
        for top in (5, 0):
            try:
                request = Request(messages, 4, top_logprobs=top)
                return await complete(request, _sane), messages
            except Unreachable as error:
                raise OutageError(
                    f"{error}; check that the server runs, and its address"
                ) from None
            except CallError as error:
                refusal = error
    assert refusal is not None
    if isinstance(refusal, Odd):
        raise ModelError(
            f"{refusal}. The server is up, but its answers have another form than OpenAI's: see whether the address is "
            "that of its chat completions"
        )
    kind = ModelError if refusal.lasting else OutageError
    raise kind(f"the model does not answer: {refusal}")


def _sane(reply: Reply) -> bool:
    """Return True for an answer with the digit: garbage says nothing of the next process's server."""
    return "4" in reply.text
