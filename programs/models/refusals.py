"""Classify a server's refusal: for this request, for a while, or for every request to come.

A server refuses by an HTTP status or, inside an answer with status 200, in words and codes of its own.
"""

from __future__ import annotations

import email.utils
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from judgesmith.errors import ModelError
from judgesmith.programs.models.masking import masked


class Unanswered(Exception):
    """One request failed.

    `again` says whether a later try can succeed, `after` when (seconds), if the server said, `reached` whether the
    server answered anything at all, `about` the parameter that it refuses, with its code, `unread` whether an answer
    came in a form that is not known.
    """

    def __init__(
        self,
        reason: str,
        *,
        again: bool,
        after: float | None = None,
        reached: bool = True,
        about: str = "",
        unread: bool = False,
    ) -> None:
        super().__init__(reason)
        self.again = again
        self.unread = unread
        self.after = after
        self.reached = reached
        self.about = about


class Denied(ModelError):
    """A request was answered with 403 or 404.

    The cause is the key or the model's name or, if these have served before, the request itself. what: the server's
    words.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in a server's own words.

    kind: its code and type. status: the HTTP status that it stands for, None if nothing states it. about: the
    parameter that it names.
    """

    message: str
    kind: str = ""
    status: int | None = None
    about: str = ""


#: Codes in words, and the statuses that they stand for.
_STATUSES = (
    (r"rate.?limit|too.many.requests|resource.exhausted|throttl", 429),
    (r"invalid.api.key|authentication|unauthori[sz]ed|unauthenticated", 401),
    (r"permission|forbidden", 403),
    (r"not.found", 404),
    (r"context.length|invalid.request|bad.request", 400),
    (r"overloaded|unavailable", 503),
)
#: Codes and types of a quota, a credit or a balance that is used up.
_SPENT_KINDS = re.compile(
    r"insufficient_?(?:user_)?(?:quota|balance|credits?|funds)|exceeded_current_quota|quota_?(?:exhausted|used_up)|"
    r"billing_(?:not_active|hard_limit)|(?:credits?|balance)_(?:exhausted|depleted|too_low)|payment_?required|arrearage|"
    r"free_?tier_?only|account_overdue|\b1113\b",
    re.IGNORECASE,
)
#: The same in sentences. Providers word a limit for a minute alike, but say when to come again.
_SPENT_WORDS = re.compile(
    r"insufficient (?:account )?(?:balance|credits?|funds|quota)|credit balance is too low|out of credits|"
    r"\bno (?:more |remaining )?credits|used (?:up )?all (?:of )?(?:its |your )?(?:available |included )?credits|"
    r"exceeded your (?:monthly )?(?:included |current )?(?:credits|quota)|monthly (?:included credits|spending limit)|"
    r"billing (?:hard )?limit|requires more credits|余额不足|欠费",
    re.IGNORECASE,
)
_COME_AGAIN = re.compile(
    r"\b(?:re)?try (?:again )?in \d|per.?minute|per.?second", re.IGNORECASE
)
_CREDIT_AT_400 = re.compile(
    r"(?:HTTP \d+: )?Your credit balance is too low", re.IGNORECASE
)


def fault_of(data: Any) -> Fault | None:
    """Return the error that an answer holds instead of a completion; None without a known one."""
    if not isinstance(data, dict):
        return None
    error = data.get("error")
    choices = data.get("choices")
    if (
        not error
        and isinstance(choices, list)
        and choices
        and isinstance(choices[0], dict)
    ):
        error = choices[0].get("error")
    if not error:
        failed = data.get("success") is False or bool(
            _status(data.get("code"), data.get("status"))
        )
        if choices or not (
            failed or _filtered(data) or isinstance(data.get("detail"), str | list)
        ):
            return None
        error = data
    if isinstance(error, str):
        return Fault(
            _one_line(error), status=_status(data.get("code"), data.get("status"))
        )
    if not isinstance(error, dict):
        return Fault(_one_line(error))
    kind = " ".join(
        str(error[name])
        for name in ("code", "type", "status")
        if isinstance(error.get(name), str | int)
    )
    message = next(
        (
            str(error[name])
            for name in ("message", "msg", "detail", "error")
            if error.get(name)
        ),
        "",
    )
    if not message and _filtered(error):
        message = "the provider's content filter stopped the prompt"
        kind = "bad_request"
    codes = (
        error.get("code"),
        error.get("status"),
        data.get("code"),
        data.get("status"),
    )
    return Fault(
        _one_line(message) or "an error without a message",
        kind,
        _status(*codes) or _worded(kind),
        str(error.get("param") or "")[:40],
    )


def _filtered(data: Mapping[str, Any]) -> bool:
    """Return True if Azure's or Gemini's filter of prompts stands in place of the answer."""
    return bool(data.get("prompt_filter_results") or data.get("promptFeedback"))


def _one_line(text: Any) -> str:
    return " ".join(str(text)[:2000].split())[:300]


def _status(*codes: Any) -> int | None:
    return next(_numbers(codes), None)


def _numbers(codes: tuple[Any, ...]) -> Iterator[int]:
    for code in codes:
        is_number = type(code) is int or (
            isinstance(code, str) and re.fullmatch(r"[45]\d\d", code, re.ASCII)
        )
        if is_number and 400 <= int(code) <= 599:
            yield int(code)


def _worded(kind: str) -> int | None:
    return next(
        (
            status
            for words, status in _STATUSES
            if re.search(words, kind, re.IGNORECASE)
        ),
        None,
    )


def is_spent(status: int, kind: str, message: str, after: float | None = None) -> bool:
    """Return True for a refusal because of a used-up quota or credit, which no later try changes.

    Args:
        status: The HTTP status.
        kind: The error's code and type.
        message: The server's words.
        after: Seconds until the server accepts another request, if it states them.
    """
    if status == 402:
        return True
    if status not in (400, 403, 429):  # what else is refused may quote the row's texts
        return False
    if _SPENT_KINDS.search(kind):
        return True
    if status == 400:
        return _CREDIT_AT_400.match(message) is not None
    soon = after is not None or _COME_AGAIN.search(message) is not None
    return not soon and _SPENT_WORDS.search(message) is not None


_UNIT = {"ms": 0.001, "mi": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = r"\d{1,18}(?:\.\d{1,9})?"
_PART = rf"({_NUMBER})\s*(ms|milli\w*|s(?:ec\w*)?|m(?:in\w*)?|h(?:(?:ou)?rs?)?|d(?:ays?)?)(?![a-z])"
_SPAN = rf"(?:{_PART}[\s,]*(?:and\s+)?){{1,4}}"
#: When to come again, in a body's words or under its keys: "try again in 2m3s", "retryDelay": "9s".
_STATED = re.compile(
    rf"""(?:\b(?:(?:re)?try|again|wait(?:ing)?|resets?|available|come\s+back)\b
        (?:\s+(?:again|your|the|this|request|it|for|after|in|at\s+least|about|another|back|please)){{0,5}}\s*:?\s*
      |"?retry[-_\s]?(?:delay|after|in)(?P<unit>[-_]?(?:ms|millis\w*|s|sec\w*))?"?\s*[:=]\s*
        (?:\{{\s*"seconds"\s*:\s*)?"?)
      (?P<span>{_SPAN}|{_NUMBER}(?=["\s,}}.\])]|$))""",
    re.IGNORECASE | re.VERBOSE,
)
#: The longest wait (seconds) that is taken from a limit's counter: there may be one for a minute and one for a day.
_LONGEST_RESET = 120.0


def _seconds(text: str, unit: float = 1.0) -> float | None:
    """Return a time to wait in seconds: "9", "1.5s", "2m3s", "250ms", or a date; None for anything else."""
    text = text.strip()
    if re.fullmatch(_NUMBER, text):
        number = float(text)
        # Seconds since 1970, or milliseconds.
        if number > 1e12:
            return max(0.0, number / 1000 - time.time())
        return max(0.0, number - time.time()) if number > 1e9 else number * unit
    if re.fullmatch(_SPAN, text, re.IGNORECASE):
        parts = re.findall(_PART, text, re.IGNORECASE)
        return sum(float(n) * _UNIT[_short(name.lower())] for n, name in parts)
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError):
        try:
            date = datetime.fromisoformat(text)
        except ValueError:
            return None
    try:
        return max(0.0, date.timestamp() - time.time())
    except (OverflowError, OSError):  # a date that the system cannot count
        return None


def _short(unit: str) -> str:
    return unit[:2] if unit[:2] in ("ms", "mi") and unit[:3] != "min" else unit[0]


def retry_after(headers: Mapping[str, str], body: str = "") -> float | None:
    """Return the seconds until a server accepts another request, as it states them; None where it does not.

    `retry-after-ms` counts first, then `Retry-After` (a number, a time such as "9s", or a date), then what the body
    says ("try again in 2m3s", `"retryDelay": "9s"`).
    """
    named = {name.lower(): value for name, value in headers.items()}
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = named.get(name, "")
        try:
            wait: float | None = float(value) * factor
        except ValueError:
            wait = _seconds(value)
        if wait is not None and not math.isnan(wait):
            return max(0.0, wait)
    if stated := _STATED.search(body[:20_000]):
        unit = (stated["unit"] or "s").strip("-_").lower()
        return _seconds(stated["span"].strip(" ,"), _UNIT[_short(unit)])
    return None


def reset_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until a limit that is used up is counted again, by headers such as `x-ratelimit-reset`.

    None where no header says it, and for more than two minutes: a limit for a day stands beside one for a minute.
    """
    waits: dict[bool, list[float]] = {True: [], False: []}
    for name, value in headers.items():
        name = name.lower()
        if "ratelimit" not in name:
            continue
        if name == "ratelimit":
            inside = re.search(r"\b(?:reset|t)=(\d+)", value)
            value = inside[1] if inside else ""
        elif "reset" not in name:
            continue
        left = next(
            (
                other
                for beside, other in headers.items()
                if beside.lower() == name.replace("reset", "remaining")
            ),
            "",
        )
        wait = _seconds(value)
        if wait is not None and wait <= _LONGEST_RESET:
            waits[left.strip() in ("0", "0.0")].append(wait)
    return max(waits[True], default=min(waits[False], default=None))


def refuse(
    label: str,
    url: str,
    status: int,
    words: str,
    headers: Mapping[str, str],
    *,
    kind: str = "",
    body: str = "",
    about: str = "",
) -> NoReturn:
    """Raise the error that an HTTP status stands for.

    Args:
        label: The model, for messages.
        url: The address.
        status: The HTTP status.
        words: The server's words.
        headers: The answer's headers.
        kind: The error's code and type, as the server names them.
        body: The whole answer, which may say when to come again.
        about: The parameter that the server refuses.

    Raises:
        ModelError: If no later call can succeed (`Denied` if that may be due to the request alone).
        Unanswered: Otherwise.
    """
    after = retry_after(headers, (body or words) if passes(status) else "")
    if is_spent(status, kind, words, after):
        raise ModelError(spent(label, words))
    if status == 401:
        raise ModelError(
            f"{label}: the key was refused ({words}); set the key in the environment"
        )
    if status == 403:
        raise Denied(
            f"{label}: the key was refused ({words}); set the key in the environment",
            words,
        )
    if status in (301, 302, 303, 307, 308):
        target = (headers.get("Location") or "another address")[:300]
        raise ModelError(
            masked(f"{label}: {url} has moved to {target}; correct --api-base")
        )
    if status == 404:
        raise Denied(
            f"{label}: not found at the server ({words}); check the name and --api-base",
            words,
        )
    again = passes(status)
    if after is None and again:
        after = reset_after(headers)
    raise Unanswered(words, again=again, after=after, about=f"{about} {kind}".strip())


def spent(label: str, reason: str) -> str:
    """Return the message for a used-up quota."""
    return (
        f"{label}: the quota or credit of this key is used up ({reason}); raise it with the provider, or take another "
        "key or model. What is finished is kept: the same command goes on from there"
    )


def passes(status: int) -> bool:
    """Return True if a failure with this HTTP status may pass without a change."""
    return status in (408, 409, 425, 429) or status >= 500
