"""Conversations, trajectories and retrieved passages as text: one rendering, in files, in Python and in prompts.

Turns are what chat APIs and their logs have (`judgesmith.trajectories.messages`), with calls of tools and their
results: in lists of messages, in requests and answers, in the spans of a trace.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgesmith.trajectories.messages import (
    Message,
    first,
    is_thought,
    is_turn,
    read,
    spoken,
)
from judgesmith.trajectories.value import Trajectory, indented

#: What an object may have beside its turns and still be nothing but a conversation: the request to a chat API.
_REQUEST = (
    "messages conversation turns model modelId temperature top_p top_k max_tokens max_completion_tokens stream tools "
    "max_output_tokens tool_choice seed stop stop_sequences n user id response_format metadata system instructions "
    "frequency_penalty presence_penalty logit_bias logprobs top_logprobs parallel_tool_calls reasoning "
    "reasoning_effort store service_tier stream_options modalities verbosity truncation include background timeout "
    "previous_response_id thinking functions function_call extra_body extra_headers extra_query input "
    "safety_identifier prompt_cache_key "
    "contents config generation_config safety_settings system_instruction tool_config inferenceConfig toolConfig "
    "guardrailConfig additionalModelRequestFields options format keep_alive think betas"
)
_OF_REQUESTS = frozenset(_REQUEST.split())
#: Under which of these a request has its turns, the last two only beside the model's name, and what goes before them.
_TURNS = ("messages", "conversation", "turns")
_TURNS_OF_MODELS = ("input", "contents")
_SYSTEM = ("system", "instructions", "system_instruction")
_PASSAGE = (
    "page_content",
    "text",
    "content",
    "passage",
    "chunk",
    "document",
    "snippet",
    "body",
)
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


def trajectory(value: Any) -> Trajectory:
    """Return the turns of messages, content blocks or spans, also as JSON, or of a text that shows some.

    Without turns for anything else.
    """
    messages = _messages(value)
    if messages is None:
        return Trajectory.read(value) if isinstance(value, str) else Trajectory()
    return Trajectory(tuple(turn for _, turns in read(messages) for turn in turns))


def parsed(value: Any) -> Any:
    """Return text that is JSON, or a Python literal with lists and objects, as these; anything else as it is."""
    if hasattr(value, "tolist") and not isinstance(
        value, str
    ):  # numpy's arrays, which Parquet files come with
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
    if (start in ("[{", "{'") or value.strip().startswith("['")) and len(
        value
    ) <= _LONGEST_LITERAL:
        try:
            return ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            pass
    return value


def rendered(value: Any) -> str | None:
    """Return a conversation, or one turn's words, as the text that prompts show; None for what is neither."""
    value = parsed(value)
    if isinstance(value, str):
        return None
    single = is_turn(value)
    messages = [value] if single else _messages(value)
    if messages is None:
        return None
    if single or (
        len(messages) == 1 and _answer(value) is not None
    ):  # an answer, not a conversation
        return spoken(next(read(messages))[1])
    return trajectory(messages).text()


def turns_in(text: str) -> list[tuple[str, str]]:
    """Return the turns of a rendered conversation, (speaker, words) each; none of another text."""
    return [(turn.head, turn.text.strip()) for turn in Trajectory.read(text).turns]


def judged(value: Any, *, answer: str | None = None) -> Judged | None:
    """Return a conversation with the turn of it to judge; None for no conversation.

    answer: the judged text, if it stands elsewhere: then every turn comes before it, and the last one is left out if it
    is the answer once more.
    """
    messages = _messages(value)
    if messages is None:
        return None
    turns = list(read(messages))

    def before(end: int) -> str:
        return Trajectory(
            tuple(turn for _, several in turns[:end] for turn in several)
        ).text()

    if answer is not None:
        again = (
            turns[-1][0] == "Assistant"
            and spoken(turns[-1][1]).strip() == answer.strip()
        )
        return Judged(before(len(turns) - again), answer, 0)
    ours = [
        i
        for i, (speaker, several) in enumerate(turns)
        if speaker == "Assistant" and spoken(several).strip()
    ]
    last = ours[-1] if ours else len(turns) - 1
    return Judged(before(last), spoken(turns[last][1]), len(turns) - 1 - last)


def passages(value: Any) -> str | None:
    """Return retrieved passages (a list of texts or of objects with a text), numbered; None for anything else."""
    value = parsed(value)
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        return None
    texts = []
    for number, passage in enumerate(value, 1):
        text = first(passage, _PASSAGE) if isinstance(passage, Mapping) else passage
        if not isinstance(text, str):
            return None
        title = first(passage, _HEADING) if isinstance(passage, Mapping) else None
        texts.append(
            f"[{number}]{f' {title}:' if isinstance(title, str) and title else ''} {indented(text)}"
        )
    return "\n".join(texts)


def _messages(value: Any) -> list[Message] | None:
    """Return the messages in a cell; None for anything else.

    They are a list of them, text that holds one (JSON, or as pandas writes lists into a CSV file), the request to a
    chat API or its answer, or spans.
    """
    value = parsed(value)
    if isinstance(value, Mapping) and set(value) <= _OF_REQUESTS:
        value = _request(value)
    elif isinstance(value, Mapping) and (answer := _answer(value)) is not None:
        value = answer
    elif isinstance(value, Mapping) and "attributes" in value:
        value = [value]
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    turns = _in_spans(value) or [one for one in value if not is_thought(one)]
    return turns if turns and all(map(is_turn, turns)) else None


def _request(value: Mapping[str, Any]) -> Any:
    """Return the turns of a request to a chat API, its system prompt before them."""
    keys = (*_TURNS, *_TURNS_OF_MODELS) if {"model", "modelId"} & set(value) else _TURNS
    turns = first(value, keys)
    if isinstance(turns, str):
        turns = [turns]
    if not isinstance(turns, Sequence):
        return None
    system = first(value, _SYSTEM)
    before = [] if system in (None, "", []) else [{"role": "system", "content": system}]
    return before + [
        {"role": "user", "content": turn} if isinstance(turn, str) else turn
        for turn in turns
    ]


def _answer(value: Any) -> list[Any] | None:
    """Return the turns in the answer of a chat API: of OpenAI (also of its responses), Gemini, Bedrock, Ollama."""
    if not isinstance(value, Mapping):
        return None
    if isinstance(choices := value.get("choices"), list):
        return [
            choice.get("message")
            for choice in choices[:1]
            if isinstance(choice, Mapping)
        ]
    if isinstance(candidates := value.get("candidates"), list):
        return [
            {"role": "model", **one["content"]}
            for one in candidates[:1]
            if _holds(one, "content")
        ]
    output: Any = value.get("output")
    if _holds(output, "message"):
        return [output["message"]]
    if isinstance(output, list) and value.get("object") == "response":
        return [item for item in output if not is_thought(item)]
    return [value["message"]] if _holds(value, "message") and "model" in value else None


def _holds(value: Any, key: str) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get(key), Mapping)


def _in_spans(spans: Sequence[Any]) -> list[Any]:
    """Return the messages of the span that has most of them: each call of a model is given all that came before it.

    Source: OpenTelemetry's conventions for generative AI, attributes `gen_ai.input.messages` and the like.
    """
    best: list[Any] = []
    for span in spans:
        attributes = span.get("attributes") if isinstance(span, Mapping) else None
        if isinstance(
            attributes, list
        ):  # OTLP as JSON: [{"key": …, "value": {"stringValue": …}}]
            pairs = [
                one
                for one in attributes
                if isinstance(one, Mapping) and isinstance(one.get("value"), Mapping)
            ]
            attributes = {
                one.get("key"): next(iter(one["value"].values()), None) for one in pairs
            }
        if isinstance(attributes, Mapping):
            names = ("system_instructions", "input.messages", "output.messages")
            system, *sides = (
                parsed(attributes.get(f"gen_ai.{name}")) for name in names
            )
            messages = [{"role": "system", "parts": system}] if system else []
            best = max(
                best,
                [
                    *messages,
                    *(one for side in sides if isinstance(side, list) for one in side),
                ],
                key=len,
            )
    return best
