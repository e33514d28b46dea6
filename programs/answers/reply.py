"""What came: the text of a completion, what ended it, and its tokens, whatever JSON a server wrote.

Senseless parts beside the text (counts of tokens, log-probabilities) are left out and named.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any, Literal

Ending = Literal["whole", "limit", "filter", "cut"]

#: Tokens that a server can say one call took; more would be a lie that eats up a budget.
MOST_TOKENS = 10**9
#: Rounding makes the logarithm of a certain token's probability this much larger than 0.
ROUNDING = 0.01
#: What this package says of an event stream that breaks off.
UNFINISHED = "unfinished"
#: Why there is no text.
CUT_THINKING = "cut off while thinking"
ONLY_THOUGHTS = "only thoughts came, and no answer after them"
CALLED = "the model called a tool instead of answering"


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """One generated token, and with it the most likely tokens at its place, with their natural-log probabilities."""

    text: str
    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer.

    tokens: None if the model gave no log-probabilities. prefix_tokens, written_tokens: those of the prompt that the
    server took from its prefix cache, and that it put there. discount: the share of the price that it was spared.
    absent: the reason for a missing text, if it is known; the text is then that of a tool call, if there was one. odd:
    parts beside the answer that were left out. without: parameters that the model refused, and was asked without.
    """

    text: str
    tokens: tuple[TokenChoice, ...] | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prefix_tokens: int = 0
    finish: str = ""
    discount: float = 0.0
    absent: str = ""
    odd: tuple[str, ...] = field(default=(), compare=False)
    written_tokens: int = 0
    without: tuple[str, ...] = ()

    @property
    def ending(self) -> Ending:
        """Return what ended it: only a "whole" answer is one, whoever reads it."""
        return ending(self.finish)


class UnknownForm(ValueError):
    """A chat completion whose text is in a form that nothing here reads; the server would use it again."""


def reply_of(data: Any) -> Reply:
    """Return an OpenAI-style chat completion as a Reply.

    Raises:
        UnknownForm: For a completion whose text is in an unknown form.
        ValueError: For anything but a completion.
    """
    try:
        choice = _first(data["choices"])
        message = (
            choice.get("message") or choice.get("delta") or {"content": choice["text"]}
        )
        content = message.get("content")
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}"[:200]) from None
    try:
        text, refusal = _content(content)
    except (TypeError, ValueError, AttributeError):
        shown = " ".join(repr(content).split())[:120]
        raise UnknownForm(f"its text is in a form that is not known: {shown}") from None
    odd: list[str] = []
    usage = _object(data.get("usage"), "usage", odd)
    prompt = _object(usage.get("prompt_tokens_details"), "details of usage", odd)
    completion = _object(
        usage.get("completion_tokens_details"), "details of usage", odd
    )
    finish = _finish(data, choice)
    absent = ""
    if not text.strip():
        thought = _count(completion.get("reasoning_tokens"), []) > 0
        absent = _absence(message, refusal, finish, thought)
    return Reply(
        text=_arguments(message) if absent == CALLED else text,
        tokens=_tokens(choice.get("logprobs"), odd),
        prompt_tokens=_count(usage.get("prompt_tokens"), odd),
        completion_tokens=_count(usage.get("completion_tokens"), odd),
        prefix_tokens=_count(_cached(usage, prompt), odd),
        finish=finish,
        written_tokens=_count(prompt.get("cache_creation_tokens"), odd),
        absent=absent,
        odd=tuple(dict.fromkeys(odd)),
    )


def _object(value: Any, name: str, odd: list[str]) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    if value is not None:
        odd.append(f"{name} {str(value)[:40]!r}")
    return {}


def _first(choices: Any) -> Any:
    """Return the answer number 0: servers need not list it first."""
    for choice in choices:
        if isinstance(choice, dict) and choice.get("index") == 0:
            return choice
    return choices[0]


# --- its text ---------------------------------------------------------------------------------------------------------


def _content(content: Any) -> tuple[str, str]:
    """A message's text, and the refusal in it. Raises ValueError for what is neither a text nor parts."""
    if content is None or isinstance(content, str):
        return _whole(content or ""), ""
    # Some servers parse an answer that is JSON.
    if type(content) in (int, float) or _is_parsed(content):
        return _whole(json.dumps(content, ensure_ascii=False)), ""
    parts = [content] if isinstance(content, dict) else content
    if not isinstance(parts, list):
        raise ValueError(f"{type(content).__name__} instead of text")
    texts = list[str]()
    refusals = list[str]()
    for part in parts:
        part = {"text": part} if isinstance(part, str) else part
        if part.get("type") in (None, "text", "output_text"):
            texts.append(_whole(part.get("text") or ""))
        elif part.get("type") == "refusal":
            refusals.append(_whole(part.get("refusal") or ""))
    return "".join(texts), " ".join(refusals)


def _is_parsed(content: Any) -> bool:
    return isinstance(content, dict) and not {"type", "text"} & set(content)


_SURROGATE = re.compile("[\ud800-\udfff]")


def without_surrogates(text: str) -> str:
    """Return a text with U+FFFD for lone surrogates, which can neither be sent nor kept."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _whole(text: Any) -> str:
    """The text without lone surrogates. Raises ValueError for what is no text."""
    if not isinstance(text, str):
        raise ValueError(f"{type(text).__name__} instead of text")
    return without_surrogates(text)


#: Fields of a message that hold thoughts.
_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")


def _absence(
    message: Mapping[str, Any], refusal: str, finish: str, thought: bool
) -> str:
    """Why an answer has no text; "" where nothing says. thought: whether tokens were spent on thoughts."""
    refused = message.get("refusal")
    refusal = refused if isinstance(refused, str) and refused else refusal
    if refusal:
        return f"the model refused: {' '.join(_whole(refusal).split())[:200]}"
    ended = ending(finish)
    if ended == "filter":
        return "the provider's content filter stopped the answer"
    if message.get("tool_calls") or message.get("function_call"):
        return CALLED
    if thought or any(message.get(name) for name in _THOUGHTS):
        return ONLY_THOUGHTS if ended == "whole" else CUT_THINKING
    return ""


def _arguments(message: Mapping[str, Any]) -> str:
    """Return the arguments of the one tool that a message calls, as JSON; "" for several, and for none."""
    calls = message.get("tool_calls")
    calls = calls if isinstance(calls, list) else [message]
    call = calls[0] if len(calls) == 1 and isinstance(calls[0], dict) else {}
    function = call.get("function") or call.get("function_call") or {}
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return _whole(arguments) if isinstance(arguments, str) else ""


# --- what ended it ----------------------------------------------------------------------------------------------------

# Lists of what cuts an answer off would never end. So only what is known to be its own end makes it whole, and words
# that are not known count as a cut.

#: The model ended the answer, or called a tool with it. A server that names no reason is believed to have sent all.
_ENDED = re.compile(
    r"stop(?:ped|sequences?|string|token|word)?|eos(?:token)?|eot|end(?:token|turn|of(?:turn|text|message|sequence))?|"
    r"complete(?:d)?|completion|done|finish(?:ed)?|normal|success|ok|tool(?:calls?|use)?|functioncalls?|none|null"
)
#: The limit of tokens ended it: what stands before its last word is whole.
_LIMIT = re.compile(
    r"(?:max)?length(?:limit)?|max(?:new|output)?tokens?(?:reached)?|tokenlimit|modellength|"
    r"(?:model)?context(?:length|window)(?:exceeded)?"
)
#: A provider's filter ended it, or a model's own rules.
_FILTER = re.compile(
    r"contentfilter(?:ed)?|safety|refusal|prohibitedcontent|blocklist|recitation|sensitive|spii"
)


@lru_cache(maxsize=64)
def ending(finish: str) -> Ending:
    """Return what a server's word for the end of an answer means; "cut" for every word that is not known.

    >>> [ending(word) for word in ("", "FINISH_REASON_STOP", "MAX_TOKENS", "SAFETY", "abort")]
    ['whole', 'whole', 'limit', 'filter', 'cut']
    """
    word = re.sub(r"[^a-z]", "", finish.lower()).removeprefix("finishreason")
    if not finish or _ENDED.fullmatch(word):
        return "whole"
    if _LIMIT.fullmatch(word):
        return "limit"
    return "filter" if _FILTER.fullmatch(word) else "cut"


def _finish(data: Mapping[str, Any], choice: Mapping[str, Any]) -> str:
    """Return the server's word for what ended an answer; "" if it gives none with a whole one."""
    for name in ("finish_reason", "native_finish_reason", "finishReason"):
        reason = choice.get(name)
        reason = reason.get("type") if isinstance(reason, dict) else reason
        if reason is not None and reason != "":
            return _whole(str(reason))[:40]
    piece = str(data.get("object")).endswith(".chunk") or "delta" in choice
    return UNFINISHED if piece and not choice.get("message") else ""


# --- its tokens -------------------------------------------------------------------------------------------------------


def _count(number: Any, odd: list[str]) -> int:
    """Tokens as a server counts them; 0 where it does not say, or says what cannot be."""
    if number is None:
        return 0
    if (
        type(number) not in (int, float)
        or not 0 <= number <= MOST_TOKENS
        or number != int(number)
    ):
        odd.append(f"count of tokens {str(number)[:40]!r}")
        return 0
    return int(number)


def _cached(usage: Mapping[str, Any], details: Mapping[str, Any]) -> Any:
    """Return the tokens of a prompt from the provider's cache: in OpenAI's place, in DeepSeek's or in Moonshot's."""
    counted = details.get("cached_tokens")
    if counted is None:
        counted = usage.get("prompt_cache_hit_tokens")
    return usage.get("cached_tokens") if counted is None else counted


def _tokens(logprobs: Any, odd: list[str]) -> tuple[TokenChoice, ...] | None:
    """The tokens of an answer with their log-probabilities; None where there are none, or none that make sense."""
    if not logprobs:
        return None
    try:
        listed = logprobs.get("content")
        if not listed:
            return None
        return _plain_tokens(listed) or tuple([_token(token, odd) for token in listed])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        odd.append(f"log-probabilities {str(logprobs)[:40]!r}")
        return None


def _token(listed: Any, odd: list[str]) -> TokenChoice:
    """A token with the likeliest ones at its place, and itself with its own probability where it is not among them.

    One number that is no log-probability makes all at its place worthless.
    """
    alternatives: list[tuple[str, float]] = []
    likeliest = listed.get("top_logprobs") or ()
    unlisted = likeliest and all(
        alternative.get("token") != listed["token"] for alternative in likeliest
    )
    if unlisted and listed.get("logprob") is not None:
        likeliest = (*likeliest, listed)
    for alternative in likeliest:
        logprob = alternative["logprob"]
        if logprob is None:  # minus infinity, which JSON cannot write
            continue
        # The latter is true of NaN.
        if type(logprob) not in (int, float) or not logprob <= ROUNDING:
            odd.append(f"log-probability {str(logprob)[:40]!r}")
            return TokenChoice(_whole(listed["token"]), ())
        if logprob > -math.inf:
            text = _whole(alternative["token"])
            alternatives.append((text, min(float(logprob), 0.0)))
    return TokenChoice(_whole(listed["token"]), tuple(alternatives))


_CHOICE = itemgetter("token", "logprob")


def _plain_tokens(listed: Sequence[Any]) -> tuple[TokenChoice, ...] | None:
    """Return the tokens of an answer if all of them are plain; otherwise None.

    They nearly always are: ASCII with log-probabilities, the chosen one among the likeliest. Others have to be looked
    at one by one, and there are hundreds in an answer with up to twenty likely ones each, so that these are looked at
    together.
    """
    try:
        places = [tuple(map(_CHOICE, token["top_logprobs"])) for token in listed]
        chosen = list(map(_CHOICE, listed))
        texts, logprobs = zip(*chain(chosen, *places), strict=True)
        if not "".join(texts).isascii() or set(map(type, logprobs)) != {float}:
            return None
    except (KeyError, TypeError, ValueError):
        return None
    # The sum is finite where every one of them is, and only then has their maximum a meaning.
    if not math.isfinite(sum(logprobs)) or max(logprobs) > 0.0 or not all(places):
        return None
    return tuple(map(_with_chosen, chosen, places))


def _with_chosen(
    chosen: tuple[str, float], likeliest: tuple[tuple[str, float], ...]
) -> TokenChoice:
    """Return a token with the likeliest ones at its place, and itself where it is not among them."""
    text = chosen[0]
    # The first one is the chosen one wherever a model was asked for its likeliest answer.
    listed = likeliest[0][0] == text or text in [other for other, _ in likeliest]
    return TokenChoice(text, likeliest if listed else (*likeliest, chosen))
