"""What every way to a model has in common: the request, and the errors.

The ways themselves are in `providers/`, `through_ollama` and `through_dspy`. All of them give the same `Reply` and
raise the same two errors: `ModelError` when no call can succeed (key refused, unknown model), `Unanswered` when this
one did not, with the facts for another try.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from judgesmith.programs.answers.reply import Reply, UnknownForm, reply_of
from judgesmith.programs.models.masking import masked
from judgesmith.programs.models.refusals import Unanswered as Unanswered
from judgesmith.programs.models.refusals import fault_of

Message = dict[str, str]
#: A part of an answer: a text that is fixed, and the texts of which one comes next.
Choice = tuple[str, tuple[str, ...]]

#: Bytes of UTF-8 to a token: hardly a text has fewer (English has 4 to 5). And tokens of a template around messages.
DENSE = 3
TEMPLATE = 256


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
    except UnknownForm as error:
        raise Unanswered(
            f"the answer cannot be read: {error}", again=False, unread=True
        ) from None
    except ValueError as error:
        fault = fault_of(data)
        problem = f"the server says: {fault.message}" if fault else str(error)
        raise Unanswered(
            f"the answer is not a chat completion ({problem})",
            again=True,
            unread=fault is None,
        ) from None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, with keys masked, at most 300 characters."""
    lines = str(error).strip().splitlines()
    return masked(lines[0] if lines else type(error).__name__)[:300]
