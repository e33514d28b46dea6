"""Conversations and retrieved passages as text: one rendering, in files, in Python and in prompts.

Turns are what chat APIs and their logs have: objects with a speaker (`role`, `from`, `speaker`, `author`) and what was
said (`content`, `value`, `text`), perhaps with calls of tools. A turn begins at the beginning of a line, and further
lines of what was said are indented, so that no text can pass for another turn.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SPEAKERS = ("role", "from", "speaker", "author", "type")
_SAID = ("content", "value", "text", "message", "parts")
_NAMES = {
    "human": "User", "user": "User", "customer": "User", "assistant": "Assistant", "ai": "Assistant",
    "gpt": "Assistant", "bot": "Assistant", "model": "Assistant", "chatbot": "Assistant", "system": "System",
    "developer": "System", "tool": "Tool", "function": "Tool", "tool_result": "Tool",
}  # fmt: skip
#: How a rendered turn begins.
_RENDERED = re.compile(rf"((?:{'|'.join(dict.fromkeys(_NAMES.values()))})(?: [^\n:]{{1,60}})?):(?: |$)")
#: What an object may have beside its turns and still be nothing but a conversation: the request to a chat API.
_REQUEST = (
    "messages conversation turns model temperature top_p max_tokens stream tools tool_choice seed stop n user id "
    "response_format metadata"
)
_OF_REQUESTS = frozenset(_REQUEST.split())
_PASSAGE = ("page_content", "text", "content", "passage", "chunk", "document", "snippet", "body")
_HEADING = ("title", "source", "url", "doc_id", "id", "name")
#: Longer cells are not tried as Python literals.
_LONGEST_LITERAL = 1_000_000


@dataclass(frozen=True, slots=True)
class Judged:
    """A conversation cut at the turn that is judged: the last one of the assistant, else the last one.

    before: the turns before it; output: what it says; after: how many turns follow it, which are not judged.
    """

    before: str
    output: str
    after: int


def is_turn(value: Any) -> bool:
    """Whether this is one turn: an object with a speaker, and something said or a tool called."""
    if not isinstance(value, Mapping) or not isinstance(_first(value, _SPEAKERS), str):
        return False
    return any(key in value for key in _SAID) or bool(value.get("tool_calls")) or bool(value.get("function_call"))


def turns_of(value: Any) -> list[Mapping[str, Any]] | None:
    """The turns in a cell: a list of them, text that holds one (JSON, or as pandas writes lists into a CSV file), or
    the request to a chat API; None for anything else."""
    value = parsed(value)
    if isinstance(value, Mapping) and set(value) <= _OF_REQUESTS:
        value = next((value[key] for key in ("messages", "conversation", "turns") if key in value), None)
    elif isinstance(value, Mapping) and isinstance(value.get("choices"), list):  # the answer of a chat API
        value = [choice.get("message") for choice in value["choices"][:1] if isinstance(choice, Mapping)]
    if isinstance(value, Sequence) and not isinstance(value, str) and value and all(map(is_turn, value)):
        return list(value)
    return None


def parsed(value: Any) -> Any:
    """Text that is JSON, or a Python literal with its lists and objects, as these; anything else as it is."""
    if hasattr(value, "tolist") and not isinstance(value, str):  # numpy's arrays, which Parquet files come with
        value = value.tolist()
    if not isinstance(value, str):
        return value
    start = value[:64].lstrip()[:2]
    if start[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    # `str` of a list of objects, which is what pandas writes into a CSV file.
    if (start in ("[{", "{'") or value.strip().startswith("['")) and len(value) <= _LONGEST_LITERAL:
        try:
            return ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            pass
    return value


def rendered(value: Any) -> str | None:
    """A conversation, or one turn's words, as the text that prompts show; None for what is neither."""
    value = parsed(value)
    if isinstance(value, str):
        return None
    if is_turn(value):
        return said(value)
    turns = turns_of(value)
    if turns is None:
        return None
    if isinstance(value, Mapping) and "choices" in value:  # an answer, not a conversation
        return said(turns[0])
    return "\n".join(map(_shown, turns))


def turns_in(text: str) -> list[tuple[str, str]]:
    """The turns of a rendered conversation, (speaker, words) each, for pages; none of a text that is not only turns."""
    turns: list[tuple[str, str]] = []
    for line in text.splitlines():
        if match := _RENDERED.match(line):
            turns.append((match[1], line[match.end() :]))
        elif turns and (line.startswith("  ") or not line.strip()):
            turns[-1] = (turns[-1][0], f"{turns[-1][1]}\n{line[2:]}")
        else:
            return []
    return [(speaker, words.strip()) for speaker, words in turns]


def judged(value: Any, *, answer: str | None = None) -> Judged | None:
    """A conversation and which of its turns is judged. answer: the judged text, where it stands elsewhere: then every
    turn comes before it, and the last one is left out if it is the answer once more. None for no conversation."""
    turns = turns_of(value)
    if turns is None:
        return None
    if answer is not None:
        if _speaker(turns[-1]) == "Assistant" and said(turns[-1]).strip() == answer.strip():
            turns = turns[:-1]
        return Judged("\n".join(map(_shown, turns)), answer, 0)
    ours = [i for i, turn in enumerate(turns) if _speaker(turn) == "Assistant" and said(turn).strip()]
    last = ours[-1] if ours else len(turns) - 1
    return Judged("\n".join(map(_shown, turns[:last])), said(turns[last]), len(turns) - 1 - last)


def passages(value: Any) -> str | None:
    """Retrieved passages (a list of texts or of objects with a text), numbered; None for anything else."""
    value = parsed(value)
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return None
    texts = []
    for number, passage in enumerate(value, 1):
        text = _first(passage, _PASSAGE) if isinstance(passage, Mapping) else passage
        if not isinstance(text, str):
            return None
        title = _first(passage, _HEADING) if isinstance(passage, Mapping) else None
        texts.append(f"[{number}]{f' {title}:' if isinstance(title, str) and title else ''} {_indented(text)}")
    return "\n".join(texts)


def said(turn: Mapping[str, Any]) -> str:
    """What a turn says, with the tools that it calls, a line each."""
    lines = [_words(next((turn[key] for key in _SAID if turn.get(key) is not None), ""))]
    calls = turn.get("tool_calls") or ([turn["function_call"]] if turn.get("function_call") else [])
    lines += [_call(call) for call in calls if isinstance(call, Mapping)] if isinstance(calls, Sequence) else []
    return "\n".join(line for line in lines if line)


def _shown(turn: Mapping[str, Any]) -> str:
    speaker = _speaker(turn)
    name = turn.get("name")
    text = f"{speaker} {' '.join(name.split())}" if isinstance(name, str) and name.strip() else speaker
    return f"{text}: {_indented(said(turn))}"


def _speaker(turn: Mapping[str, Any]) -> str:
    given = " ".join(str(_first(turn, _SPEAKERS)).split())
    return _NAMES.get(given.casefold(), given)


def _words(content: Any) -> str:
    """The content of a turn: text, or a list of texts, images and calls, as chat APIs have it."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "\n".join(part for part in map(_part, content) if part)
    return "" if content is None else json.dumps(content, ensure_ascii=False, default=str)


def _part(part: Any) -> str:
    if not isinstance(part, Mapping):
        return _words(part)
    kind = str(part.get("type", ""))
    if kind == "tool_use":
        return _call(part)
    if kind == "tool_result":
        return f"Result of the tool: {_words(part.get('content'))}"
    if isinstance(part.get("text"), str):
        return str(part["text"])
    return f"[{kind}]" if kind else json.dumps(part, ensure_ascii=False, default=str)  # an image, say, is only named


def _call(call: Mapping[str, Any]) -> str:
    inner = call.get("function")
    call = inner if isinstance(inner, Mapping) else call
    given = next((call[key] for key in ("arguments", "input", "args", "parameters") if call.get(key) is not None), "")
    return f"Calls {call.get('name', 'a tool')}({given if isinstance(given, str) else json.dumps(given, default=str)})"


def _indented(text: str) -> str:
    return "\n  ".join(text.splitlines())


def _first(value: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((value[key] for key in keys if value.get(key) is not None), None)
