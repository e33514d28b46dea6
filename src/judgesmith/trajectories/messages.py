"""Messages of chat APIs and their logs as turns: OpenAI, Anthropic, Bedrock, Gemini, LangChain, OpenTelemetry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, assert_never

from judgesmith.trajectories.value import MARK, SPEAKERS, Turn

Message: TypeAlias = Mapping[str, Any]
_SPEAKER = ("role", "from", "speaker", "author", "type")
_SAID = ("content", "value", "text", "message", "parts", "refusal")
_ARGUMENTS = ("arguments", "input", "args", "parameters")
_CALLS = ("tool_use", "tool_call", "function_call", "server_tool_use")
_RESULTS = ("tool_result", "tool_call_response", "function_call_output")
_THOUGHTS = ("reasoning", "thinking")
#: Levels of lists and objects that are shown at most.
DEEPEST = 200
#: Blocks of a message whose only key says what they hold, as Bedrock and Gemini have them, and their types elsewhere.
_BLOCKS = {
    "toolUse": "tool_use",
    "functionCall": "function_call",
    "function_call": "function_call",
    "toolResult": "tool_result",
    "functionResponse": "tool_result",
    "function_response": "tool_result",
    "reasoningContent": "reasoning",
    "cachePoint": "",
    "text": "text",
    "json": "json",
    "image": "image",
    "document": "document",
    "video": "video",
    "audio": "audio",
    "inlineData": "file",
    "inline_data": "file",
    "fileData": "file",
    "file_data": "file",
}


def is_turn(value: Any) -> bool:
    """Return whether this is one message: an object with a speaker, and something said or a tool called."""
    if not isinstance(value, Mapping) or not isinstance(first(value, _SPEAKER), str):
        return False
    called = value.get("type") in (*_CALLS, *_RESULTS) or first(
        value, ("tool_calls", "function_call")
    )
    return bool(called) or any(key in value for key in _SAID)


def is_thought(item: Any) -> bool:
    """Return whether this item of an answer is what a model thought and did not say."""
    return (
        isinstance(item, Mapping)
        and item.get("type") in _THOUGHTS
        and "role" not in item
    )


def read(messages: Sequence[Message]) -> Iterator[tuple[str, list[Turn]]]:
    """Yield the speaker of each message, and its turns, at least one. A result has its call's name and number."""
    called: dict[str, Turn] = {}
    for message in messages:
        speaker = _speaker(message)
        turns = list[Turn]()
        calls = 0
        words: list[
            str
        ] = []  # of one after another, put together once: a message may have many parts
        parts = list(_parts(message, speaker))
        several = sum(turn.kind == "call" for _, turn in parts) > 1
        for key, turn in parts:
            if turn.kind == "speech" and turns and turns[-1].kind == "speech":
                words.append(turn.text)
                continue
            _end(turns, words)
            match turn.kind:
                case "call":
                    calls += 1
                    turn = replace(turn, number=str(calls) if several else "")
                    called[key] = turn
                case "result":
                    if call := called.get(key):
                        turn = replace(turn, name=call.name, number=call.number)
                case "speech":
                    pass
                case _:
                    assert_never(turn.kind)
            turns.append(turn)
        _end(turns, words)
        yield speaker, turns or [Turn("speech", speaker, "", _named(message))]


def _end(turns: list[Turn], words: list[str]) -> None:
    """Give the last turn the words that follow its own."""
    if words:
        turns[-1] = replace(turns[-1], text="\n".join((turns[-1].text, *words)))
        words.clear()


def spoken(turns: Sequence[Turn]) -> str:
    """Return the words of one message; with calls of tools, the whole message as text."""
    if len(turns) == 1 and turns[0].kind != "call":
        return turns[0].text
    return "\n".join(map(str, turns))


def first(value: Message, keys: Sequence[str]) -> Any:
    """Return the value of the first of these keys that is there; numpy's arrays, as in Parquet files, as lists."""
    for key in keys:
        inner = value.get(key)
        if inner is not None:
            return inner.tolist() if hasattr(inner, "tolist") else inner
    return None


def _parts(message: Message, speaker: str) -> Iterator[tuple[str, Turn]]:
    """Yield the turns of a message, each with the id of its call."""
    content = first(message, _SAID)
    content = message.get("refusal") if content in (None, "", []) else content
    inside = [_block(part) for part in content] if isinstance(content, list) else []
    if _type(message) in (*_CALLS, *_RESULTS) and "role" not in message:
        yield _part(message, speaker, "")
    elif speaker == "Tool" and not any(_type(part) in _RESULTS for part in inside):
        yield _result(message)
    elif inside:
        parts = (_part(part, speaker, _named(message)) for part in inside)
        yield from (
            (key, turn) for key, turn in parts if turn.text or turn.kind != "speech"
        )
    elif content not in (None, "", []):
        yield "", Turn("speech", speaker, _words(content), _named(message))
    calls = first(message, ("tool_calls",)) or [message.get("function_call")]
    calls = calls if isinstance(calls, list) else []
    yield from (_call(one, speaker) for one in calls if isinstance(one, Mapping))


def _part(part: Any, speaker: str, name: str) -> tuple[str, Turn]:
    if _type(part) in _CALLS:
        return _call(part, speaker)
    if _type(part) in _RESULTS:
        return _result(part)
    return "", Turn("speech", speaker, _text(part), name)


def _call(call: Message, speaker: str) -> tuple[str, Turn]:
    """Return a call in a message: {"function": {"name", "arguments"}}, or the name and the arguments by themselves."""
    inner = call.get("function")
    held = inner if isinstance(inner, Mapping) else call
    turn = Turn(
        "call",
        speaker,
        _words(first(held, _ARGUMENTS)),
        _tool(held.get("name") or inner) or "unnamed",
    )
    return str(first(call, ("call_id", "id", "toolUseId"))), turn


def _result(result: Message) -> tuple[str, Turn]:
    text = _words(first(result, (*_SAID, "output", "response", "result"))) or _words(
        result.get("error")
    )
    failed = (
        bool(result.get("is_error") or result.get("error"))
        or result.get("status") == "error"
    )
    turn = Turn(
        "result",
        "Tool",
        text,
        _tool(result.get("name") or result.get("function")),
        error=failed,
    )
    return str(
        first(result, ("tool_call_id", "tool_use_id", "call_id", "id", "toolUseId"))
    ), turn


def _block(part: Any) -> Any:
    """Return a part of a message with its type, where only its key says that."""
    if not isinstance(part, Mapping) or "type" in part or "role" in part:
        return part
    present = {key: value for key, value in part.items() if value is not None}
    name = next((key for key in _BLOCKS if key in present), None)
    if present.get("thought") is True:
        return {"type": "thinking"}
    if name is None or set(present) - {
        name,
        "thought",
        "thoughtSignature",
        "thought_signature",
        "videoMetadata",
    }:
        return part
    inner = present[name]
    if not _BLOCKS[name]:  # it holds nothing that was said
        return ""
    if name in ("text", "json"):
        return {
            "type": _BLOCKS[name],
            "text": inner if isinstance(inner, str) else _json(inner),
        }
    return {**(inner if isinstance(inner, Mapping) else {}), "type": _BLOCKS[name]}


def _type(part: Any) -> str:
    return str(part.get("type", "")) if isinstance(part, Mapping) else ""


def _tool(name: Any) -> str:
    """Return a tool's name as one word, as a rendered turn begins with it."""
    return "_".join(name.split())[:60].rstrip(":") if isinstance(name, str) else ""


def _named(message: Message) -> str:
    """Return the speaker's own name, which must not pass for a call, or for a judged turn."""
    name = message.get("name")
    words = name.replace(":", " ").split() if isinstance(name, str) else []
    shown = " ".join(words[words[:1] == ["calls"] :])[:60]
    return shown.replace("(", "") if MARK.strip() in shown else shown


def _speaker(message: Message) -> str:
    if "role" not in message and _type(message) in (*_CALLS, *_RESULTS):
        return "Assistant" if _type(message) in _CALLS else "Tool"
    name = " ".join(str(first(message, _SPEAKER)).split())
    return SPEAKERS.get(name.casefold(), name)


def _words(content: Any) -> str:
    """Return text, or the texts and images of a chat API's list; anything else as JSON."""
    if isinstance(content, list):
        content = [_block(part) for part in content]
        if all(isinstance(part, str) or _type(part) for part in content):
            return "\n".join(filter(None, map(_text, content)))
    if isinstance(content, str):
        return content
    return "" if content is None else _json(content)


def _text(part: Any) -> str:
    if not isinstance(part, Mapping):
        return _words(part) if isinstance(part, str) else _json(part)
    if _type(part) in _THOUGHTS:
        text = None
    else:
        text = first(part, ("text", "content", "refusal"))
    if isinstance(text, str):
        return text
    # an image, say, is only named
    if _type(part):
        return f"[{_type(part)}]"
    return _json(part)


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (
        TypeError,
        ValueError,
        RecursionError,
    ):  # keys that JSON has not, or nested without end
        text = ""
    if text and _within(value, DEEPEST):
        return text
    return f"[{type(value).__name__} that is no JSON]"


def _within(value: Any, depth: int) -> bool:
    """Tell if lists and objects are nested at most this deep: where Python stops differs by its version."""
    level = [value]
    for _ in range(depth):
        inner = [
            list(one.values()) if isinstance(one, Mapping) else one for one in level
        ]
        level = [
            one for part in inner if isinstance(part, list | tuple) for one in part
        ]
        if not level:
            return True
    return False
