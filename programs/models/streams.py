"""Read a body that is not one JSON object: an event stream that nobody asked for, or a completion with marks around it.

Lines may begin with `data:`, comments stand between them, and `[DONE]` at the end. The objects are one whole
completion, or pieces of one that are put together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from judgesmith.programs.answers.reply import UNFINISHED

#: What belongs to the stream at the beginning of a line, not to the objects in it.
_FRAME = re.compile(r"^(?:data:[ \t]*|(?:event|id|retry):[^\n]*|:[^\n]*)", re.MULTILINE)
_DONE = "[DONE]"


def streamed(payload: bytes) -> dict[str, Any] | None:
    """Return the completion that a body holds in events or beside other marks; None for another body.

    Pieces without an end (no reason, no `[DONE]`) have the reason `unfinished`.
    """
    text = _FRAME.sub("", payload.decode("utf-8", "replace"))
    try:
        return _together(list(_objects(text)), _DONE in text)
    except (AttributeError, KeyError, IndexError, TypeError):
        return None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a text one after the other, up to what is none."""
    decoder = json.JSONDecoder()
    place = 0
    while (begin := text.find("{", place)) >= 0:
        if text[place:begin].replace(_DONE, "").strip():
            return
        try:
            found, place = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return
        yield found


def _together(events: list[dict[str, Any]], done: bool) -> dict[str, Any] | None:
    """Return an error among events, else a whole completion, else one made of the pieces."""
    if not events:
        return None
    failed = [event for event in events if event.get("error")]
    whole = [event for event in events if _choice(event).get("message")]
    if found := failed or whole:
        return found[-1]
    pieces = [_choice(event) for event in events]
    reasons = [reason for piece in pieces if (reason := piece.get("finish_reason"))]
    counted = [usage for event in events if (usage := event.get("usage"))]
    listed = [
        token
        for piece in pieces
        for token in (piece.get("logprobs") or {}).get("content") or ()
    ]
    deltas = [piece.get("delta") or {"content": piece.get("text")} for piece in pieces]
    choice = {
        "message": _message(deltas),
        "finish_reason": reasons[-1] if reasons else None if done else UNFINISHED,
        "logprobs": {"content": listed},
    }
    return {"choices": [choice], "usage": counted[-1] if counted else None}


def _choice(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an event's part of the first answer; empty for events of others."""
    choices = event.get("choices") or ()
    firsts = (choice for choice in choices if choice.get("index") in (0, None))
    return next(firsts, {})


def _message(deltas: list[dict[str, Any]]) -> dict[str, Any]:
    """Put the pieces of a message together: its texts, and the arguments of the tools that it calls."""
    message: dict[str, Any] = {}
    for name in sorted({name for delta in deltas for name in delta}):
        texts = [text for delta in deltas if isinstance(text := delta.get(name), str)]
        message[name] = "".join(texts)
    calls: dict[int, str] = {}
    for delta in deltas:
        for call in delta.get("tool_calls") or ():
            number = call.get("index") or 0
            arguments = (call.get("function") or {}).get("arguments") or ""
            calls[number] = calls.get(number, "") + arguments
    message["tool_calls"] = [
        {"function": {"arguments": arguments}} for arguments in calls.values()
    ]
    return message
