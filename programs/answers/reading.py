"""What did the model answer? From a reply to values, or to the problem with it.

An answer in the asked form is read as it is. One with marks around it, or a bare number, is repaired and marked.
Anything else is a problem that says what was wrong: the caller asks once more and then gives up with NaN. Nothing here
guesses.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgesmith.programs.answers.likely import LOWEST_MASS, expectation
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.answers.scores import Stated, stated_scores
from judgesmith.programs.answers.thoughts import (
    after_elements,
    spoken,
    without_markers,
)
from judgesmith.signatures.values import Scale

_LOG = logging.getLogger("judgesmith")


@dataclass(frozen=True, slots=True)
class Read:
    """The values of an answer's fields, or the problem with it."""

    values: dict[str, Any]
    repaired: bool = False
    problem: str | None = None
    notes: tuple[str, ...] = ()
    final: bool = False
    """Asking again would not help."""


def read(
    reply: Reply,
    extract: Callable[[Reply], Read],
    *,
    judged: Iterable[str] = (),
    fields: Collection[str] = (),
    rates: bool = True,
) -> Read:
    """Read an answer: the one place where answers enter.

    Never raises: errors of reading are this answer's problem.

    Args:
        reply: The answer, as it came.
        extract: Reads the form that the prompt asks for, in an answer without thoughts.
        judged: The texts under judgement, whose marks an answer may quote.
        fields: The signature's outputs, as DSPy's own form of an answer names them.
        rates: True for a score, which is looked for in more places than a text.
    """
    try:
        said = spoken(without_markers(reply, fields), judged)
        if said.absent:
            return _called(said, extract, rates)
        answer = extract(said)
        if answer.problem and rates:
            answer = _after_elements(said, extract, answer)
        return _ended(answer, said)
    except Exception as error:
        _LOG.debug("an answer could not be read", exc_info=True)
        problem = f"the answer cannot be read ({type(error).__name__}: {error})"
        return Read({}, problem=problem[:300])


def _called(reply: Reply, extract: Callable[[Reply], Read], rates: bool) -> Read:
    """Read the arguments of a tool's call where these are an answer; else say why there is none."""
    if reply.text and rates:
        called = extract(reply)
        if called.problem is None:
            return _ended(replace(called, repaired=True), reply)
    return Read({}, problem=reply.absent, final=True)


def _after_elements(
    reply: Reply, extract: Callable[[Reply], Read], first: Read
) -> Read:
    """Read what comes after elements in words of the model's own, such as <draft_1>…</draft_1>."""
    rest = after_elements(reply.text)
    if rest is None:
        return first
    last = extract(replace(reply, text=rest))
    return first if last.problem else replace(last, repaired=True)


def _ended(answer: Read, reply: Reply) -> Read:
    """Refuse what was read of an answer that neither the model nor the limit of tokens ended."""
    if reply.ending in ("whole", "limit") or answer.final:
        return answer
    cut = f"the answer is cut off, the server ended it with {reply.finish!r}"
    if reply.ending == "filter":
        cut = "the provider's content filter cut the answer off"
    return Read({}, problem=f"{cut}: {answer.problem}" if answer.problem else cut)


# --- one score --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadScore:
    """One score in [0, 100] as `said` and, with log-probabilities, as `expected`; NaN and a `problem` otherwise.

    mass: the share of probability on the scale's digits at the score's place.
    """

    said: float = math.nan
    expected: float = math.nan
    mass: float = math.nan
    explanation: str = ""
    repaired: bool = False
    problem: str | None = None


def read_overall(reply: Reply, scale: Scale, fits: Callable[[str], bool]) -> ReadScore:
    """Read the overall score of an answer.

    Args:
        reply: The answer.
        scale: The scale of its number.
        fits: Returns True for an answer in the prompt's form, which needs no repair.
    """
    text = reply.text
    cut = " (cut off at the token limit)" if reply.ending == "limit" else ""
    if not text.strip():
        return ReadScore(problem=f"the answer is empty{cut}")
    scores = stated_scores(text)
    if not scores:
        return ReadScore(problem=f"no score in the answer{cut}: {short(text)}")
    if any(is_cut(reply, stated, scale) for stated in scores):
        return ReadScore(
            problem=f"the score may be cut off at the token limit: {short(text)}"
        )
    value, problem = agreed(scores, scale)
    if problem:
        return ReadScore(problem=f"{problem}: {short(text)}")
    first = scores[0]
    expected, mass = expectation(reply, first.digits[0], scale)
    if mass < LOWEST_MASS:
        expected = math.nan
    return ReadScore(value, expected, mass, explanation_of(text, first), not fits(text))


def agreed(scores: Sequence[Stated], scale: Scale) -> tuple[float, str]:
    """Return the one score in [0, 100] of several statements, or NaN and the problem."""
    values = set[float]()
    for stated in scores:
        if math.isnan(stated.number):
            return math.nan, f"the score cannot be read: {short(stated.words, 40)}"
    for stated in scores:
        if problem := _misfit(stated, scale):
            return math.nan, problem
        values.add(scale.to_percent(stated.number))
    if len(values) > 1:
        return math.nan, f"{len(values)} different scores in one answer"
    return values.pop(), ""


def _misfit(stated: Stated, scale: Scale) -> str:
    """Return why a number is no score of the scale; "" for one that is.

    It may be of another scale ("8/10" on 1..5), or a share ("0.8" on 0..100).
    """
    value = stated.number
    if stated.top is not None and stated.top != scale.high:
        return f"the score {stated.words} of {stated.top:g} is of another scale than {scale}"
    if stated.percent and scale.high != 100:
        return f"the score {stated.words}% is of another scale than {scale}"
    if not scale.low <= value <= scale.high:
        return f"the score {stated.words} is outside {scale}"
    if scale.low <= 0 and scale.high >= 10 and 0 < value <= 1 and "." in stated.words:
        return f"the score {stated.words} may be a share of 1 or one on {scale}"
    return ""


#: What shows that a number was over before an answer was cut off: its line ended, its object, or its sentence.
_OVER = re.compile(r"\n|[}\]]|[,;.!?:)][^\d]")


def is_cut(reply: Reply, stated: Stated, scale: Scale) -> bool:
    """Return True if a number may lack its last digits: "Score: 8" at the token limit can be the start of 85."""
    if reply.ending == "whole" or scale.high < 10:
        return False
    end = stated.digits[1]
    return end < 0 or _OVER.search(reply.text, end) is None


# --- texts ------------------------------------------------------------------------------------------------------------

_EXPLANATION = re.compile(
    r"""(?:explanation|reason(?:ing)?|justification)["'*_`]*\s*[:=-]\s*["'*_`]*""", re.I
)
_LETTERS = re.compile(r"\w{3}")


def explanation_of(text: str, score: Stated) -> str:
    """Return the explanation of an answer: behind its label, before or after the score."""
    if score.explanation is not None:
        return score.explanation
    before = text[: score.start]
    after = text[score.end :]
    if label := _EXPLANATION.search(before):
        words = before[label.end() :]
    elif label := _EXPLANATION.search(after):
        words = after[label.end() :]
    else:
        words = before if _LETTERS.search(before) else after
    return " ".join(words.split()).rstrip(" \"'*_`{}[],:|-").lstrip(" \"'*_`{}[],:|/-")


def ended(text: str) -> str:
    """Return a text that was cut off, up to its last whole sentence; "" if none ended."""
    match = re.match(r"[\s\S]*[.!?。！？।؟](?=[\s\"'”’)]|$)", text)
    return match[0].strip() if match else ""


def bare(answer: str) -> str:
    """Return an answer without tags, quotation marks or an introduction around it."""
    text = answer.strip()
    tag = re.match(r"<(\w+)>", text)
    if tag and text.endswith(closing := f"</{tag[1]}>"):
        text = text[tag.end() : -len(closing)].strip()
    text = re.sub(
        r"^(?:here is|here's|sure|certainly)\b[^\n]{0,80}:\s*",
        "",
        text,
        flags=re.IGNORECASE,
    )
    for opening, closing in (('"', '"'), ("“", "”")):
        inside = text[1:-1]
        quoted = len(text) > 2 and text[0] == opening and text[-1] == closing
        if quoted and opening not in inside:
            text = inside
    return text.strip()


def short(text: str, most: int = 120) -> str:
    """Return an answer as a problem quotes it."""
    text = " ".join(text.split())
    return repr(text if len(text) <= most else text[: most - 1] + "…")
