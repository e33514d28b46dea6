"""Sending requests through a `dspy.BaseLM` object of the caller's."""

from __future__ import annotations

import asyncio
from typing import Any

import dspy

from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.transport import (
    Request,
    Unanswered,
    first_line,
    read_reply,
)


class ThroughDSPy:
    """A `dspy.BaseLM` object that the caller made: its own engine, retries and endpoint."""

    def __init__(self, lm: Any) -> None:
        self.lm = lm

    async def send(self, request: Request) -> Reply:
        """Send a request by the caller's own LM object, in a thread if it has no asynchronous form."""
        options: dict[str, Any] = {
            "messages": list(request.messages),
            **request.options(),
        }
        if request.sample:
            options["rollout_id"] = request.sample
        try:
            with dspy.track_usage() as used:
                if _waits(self.lm):
                    outputs = await asyncio.to_thread(self.lm, **options)
                else:
                    outputs = await self.lm.acall(**options)
                first = outputs[0]
            output = {"text": first} if isinstance(first, str) else dict(first)
            logprobs = output.get("logprobs") or {}
            if hasattr(logprobs, "model_dump"):
                logprobs = logprobs.model_dump()
        except Exception as error:
            raise Unanswered(first_line(error), again=False) from None
        choice = {"message": {"content": output.get("text")}, "logprobs": logprobs}
        usage: dict[str, Any] = next(iter(used.get_total_tokens().values()), {})
        return read_reply({"choices": [choice], "usage": usage})


def _waits(lm: Any) -> bool:
    """Return True for an object without an asynchronous form, whose calls block."""
    if not isinstance(lm, dspy.BaseLM):
        return False
    kind = type(lm)
    base = dspy.BaseLM
    return bool(kind.acall is base.acall and kind.aforward is base.aforward)
