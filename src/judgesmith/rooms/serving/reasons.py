"""Reasons for missing scores, as a code and a few words of our own.

A provider's message may quote a key, an address or a row; neither clients nor the log get it.
"""

from __future__ import annotations

import os
import re
from typing import Any

_KNOWN = tuple(
    (code, re.compile(rf"(?:\S+: |the model does not answer: )*(?:{pattern})"), reason)
    for code, pattern, reason in (
        (
            "not_tried",
            "the model has not been tried yet",
            "the model has not been tried yet",
        ),
        ("empty", "the output is empty", "the output is empty"),
        (
            "model_key",
            "the key was refused|there is no key",
            "the key was refused by the model's server",
        ),
        (
            "model_quota",
            "the quota or credit of this key is used up",
            "the quota of the model's key is used up",
        ),
        (
            "model_busy",
            r"\S+ wants to be asked again",
            "the model's server wants to be left alone for a while",
        ),
        (
            "model_unknown",
            r"not found at the server|\S+ has moved",
            "the model was not found at its server",
        ),
        ("model_timeout", "no answer within", "the model did not answer in time"),
        (
            "model_unreachable",
            r"the connection failed|\S+ does not answer|the server did not answer",
            "the model's server cannot be reached",
        ),
        (
            "model_error",
            r"(?:the server answered )?HTTP (?P<status>\d{3})",
            "the model's server answered HTTP {}",
        ),
        (
            "model_error",
            "the server answers with an error",
            "the model's server answered with an error",
        ),
        (
            "refused",
            "the model refused|the provider's content filter",
            "the model or its provider refused to answer",
        ),
        (
            "no_answer",
            "cut off while thinking|only thoughts came|the model called a tool",
            "the model gave no answer",
        ),
        (
            "unreadable",
            r"no score |several of |the score |\d+ different scores|the answer ",
            "the model's answer cannot be read",
        ),
        ("too_long", "the prompt has ", "the row is too long for the model"),
        (
            "not_sent",
            "a text of this row cannot be sent",
            "a text of this row cannot be sent",
        ),
        (
            "other_run",
            r"\S+(?: \S+){0,4} (?:was written by|belongs to|was scored with)|\S+ has row ",
            "its results belong to another run",
        ),
    )
)


def debugging() -> bool:
    """Return whether the log may hold texts of rows and of providers."""
    return bool(os.environ.get("JUDGESMITH_DEBUG"))


def brief(failure: str) -> tuple[str, str]:
    """Return the code and the words for what a judge or a model says is wrong."""
    for code, pattern, reason in _KNOWN:
        if match := pattern.match(failure):
            return code, reason.format(match.groupdict().get("status"))
    return "no_score", "the row has no score"


def for_client(verdict: Any) -> Any:
    """Return a verdict's JSON for a client: each `failure`, annotators' too, in our words with its code."""
    if isinstance(verdict, list):
        return [for_client(one) for one in verdict]
    if not isinstance(verdict, dict):
        return verdict
    result = {
        name: for_client(value) for name, value in verdict.items() if name != "raw"
    }
    if verdict.get("failure") is not None:
        result["failure_code"], result["failure"] = brief(verdict["failure"])
    return result


def logged(failure: str | None) -> str | None:
    """Return a failure in the log: its code, or all of it where that was asked for."""
    return failure if failure is None or debugging() else brief(failure)[0]
