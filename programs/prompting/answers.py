"""Reading scores and criteria out of what models really write.

An answer in the asked form is read as it is. One with marks around it, or a bare number, is repaired and marked.
Anything else is a problem that says what was wrong: the caller asks once more and then gives up with NaN. Nothing here
guesses.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import json_repair

from ...signatures.values import Criterion, CriterionScore, Scale
from ..models.transport import Reply, TokenChoice
from .forms import Form

#: Of JSON that has to be repaired: characters and levels of brackets.
_LONGEST, _DEEPEST = 20_000, 8
#: The share of probability on a scale's digits below which their expectation is not taken.
LOWEST_MASS = 0.1
NUMBER = r"(?P<number>[-+]?\d+(?:\.\d+)?)"
#: What stands behind a number: the top of its scale or a percentage sign. Never the rest of a longer number ("4,5") or
#: of a range ("3-4", "3 or 4").
AFTER = r"""(?!\d|[.,]\d|e[-+]?\d|[ \t]*(?:[-–—]|\bto\b|\bor\b|\band\b)[ \t]*(?:an?\b[ \t]*)?\d|[ \t]*on\ a\ scale)
    (?:["'*_`)\]}]*+\s*+(?:\(\s*+)?(?:/|\b(?:out\ )?of\b)\s*["'*_`(\[]*(?P<top>\d+))?(?P<percent>\s*%)?"""
#: "Score: 4", "**Score**: 4", '"score": "4"', "overall rating = 4/5", "Score - 4 out of 5".
LABELLED = re.compile(
    rf"""(?<![\w-])(?:overall\W{{0,4}})?(?:score|rating)(?:\s*+\([^)\n]{{0,80}}\))?["'*_`]*\s*+(?:[:：=>–-]|is\b)[\s"'*_`(\[<]*+
    {NUMBER}{AFTER}""",
    re.IGNORECASE | re.VERBOSE,
)
BARE = re.compile(rf"""^(?:[^\w.+-]|_|[-+.](?!\d))*{NUMBER}{AFTER}[\W_]*$""", re.IGNORECASE | re.VERBOSE)
EXPLANATION = re.compile(r"""(?:explanation|reason(?:ing)?|justification)["'*_`]*\s*[:=-]\s*["'*_`]*""", re.I)


@dataclass(frozen=True, slots=True)
class Read:
    """What an answer gave: field values, or the problem with it."""

    values: dict[str, Any]
    repaired: bool = False
    problem: str | None = None
    notes: tuple[str, ...] = ()


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


def token_at(reply: Reply, start: int) -> TokenChoice | None:
    """The token that holds character `start` of the answer; None where it cannot be told."""
    if reply.tokens is None:
        return None
    rest = reply.text[start:]
    spoken = "".join(t.text for t in reply.tokens)
    if not spoken.startswith(reply.text[: start + 1]):
        # Tokens that are parts of one character, or a text that was stripped: what comes after may still fit.
        if not spoken.endswith(rest):
            return None
        start = len(spoken) - len(rest)
    place = 0
    for token in reply.tokens:
        after = place + len(token.text)
        if place <= start < after:
            return token
        place = after
    return None


def expectation(reply: Reply, start: int, scale: Scale) -> tuple[float, float]:
    """The mean score in [0, 100] over the one-digit numbers of `scale` at character `start`, and the share of
    probability on them. Surface forms of a digit (with or without a leading space) are added up. (NaN, 0) where the
    reply has no log-probabilities there or the number is not one digit."""
    token = token_at(reply, start)
    if token is None or len(token.text.strip()) != 1 or re.match(r"\d|\.\d", reply.text[start + 1 :]):
        return math.nan, 0.0
    digits = [str(digit) for digit in range(int(scale.low), min(9, int(scale.high)) + 1)]
    place, mass = share_of_words(reply, start, digits)
    return scale.to_percent(scale.low + place), mass


def share_of_words(reply: Reply, start: int | None, words: Sequence[str]) -> tuple[float, float]:
    """The mean place (0, 1, …) among `words`, which differ in their first letters, under the model's probabilities at
    character `start` of the answer, and the share of probability on them. (NaN, 0) where there are none there."""
    token = None if start is None else token_at(reply, start)
    weights: dict[int, float] = {}
    for text, logprob in () if token is None else token.alternatives:
        piece = text.strip().lower()
        fits = [i for i, word in enumerate(words) if piece and word.lower().startswith(piece)]
        if len(fits) == 1:
            weights[fits[0]] = weights.get(fits[0], 0.0) + math.exp(min(logprob, 0.0))
    mass = sum(weights.values())
    return (sum(v * w for v, w in weights.items()) / mass, min(mass, 1.0)) if mass > 0.0 else (math.nan, 0.0)


def read_overall(reply: Reply, scale: Scale, fits: Callable[[str], bool]) -> ReadScore:
    """The overall score of an answer. fits: whether an answer has the asked form and needs no repair."""
    text = without_thoughts(reply.text)
    if not text.strip():
        return ReadScore(problem="the answer is empty")
    matches = list(LABELLED.finditer(text))
    # One that ends the answer on a line of its own is the asked one; those inside the explanation before it may be
    # copied from the prompt.
    if matches and _alone(text, matches[-1]):
        matches = [m for m in matches if _alone(text, m)]
    bare = None if matches else BARE.match(text)
    if bare:
        matches = [bare]
    if not matches:
        cut = " (cut off at the token limit)" if reply.finish == "length" else ""
        return ReadScore(problem=f"no score in the answer{cut}: {_short(text)}")
    if any(_cut(reply, m.end("number"), scale) for m in matches):
        return ReadScore(problem=f"the score may be cut off at the token limit: {_short(text)}")
    values = {_on_scale(m, scale) for m in matches}
    if None in values:
        return ReadScore(problem=f"the score {matches[0][0].split()[-1]} is outside {scale}: {_short(text)}")
    if len(values) > 1:
        return ReadScore(problem=f"{len(values)} different scores in one answer: {_short(text)}")
    (value,) = values
    assert value is not None
    match = matches[0]
    expected, mass = expectation(reply, match.start("number"), scale)
    if mass < LOWEST_MASS:
        expected = math.nan
    return ReadScore(value, expected, mass, _explanation(text, match), not fits(text))


def read_criteria(
    reply: Reply, scale: Scale, criteria: Sequence[Criterion], form: Form, *, expected: bool, explained: bool
) -> Read:
    """The scores of several criteria from `Name: explanation` and `Score: 4`, on one line or two, by name as
    `criteria_scores`; a problem where fewer than half could be read. form: the asked one."""
    text = reply.text
    if not text.strip():
        return Read({}, problem="the answer is empty")
    scores: dict[str, CriterionScore] = {}
    for name, (start, end) in _sections(text, {c.name: c.name for c in criteria}).items():
        segment = text[start:end]
        match = LABELLED.search(segment) or BARE.match(segment)
        value = _on_scale(match, scale) if match else None
        if match is None or value is None or _cut(reply, start + match.end("number"), scale):
            continue
        line = re.split(r"[\n}]", segment[match.end() :])[0]
        if any(_on_scale(m, scale) != value for m in LABELLED.finditer(line)):
            continue  # two different scores for one criterion
        if expected:
            mean, mass = expectation(reply, start + match.start("number"), scale)
            value = mean if mass >= LOWEST_MASS else value
        scores[name] = CriterionScore(value, _explanation(segment, match) if explained else "")
    missing = [c.name for c in criteria if c.name not in scores]
    if 2 * len(missing) > len(criteria):
        return Read({}, problem=f"no score for {', '.join(missing)}: {_short(text)}")
    # In the criteria's own order, so that equal answers give equal artifacts.
    ordered = {c.name: scores.get(c.name, CriterionScore(math.nan)) for c in criteria}
    return Read({"criteria_scores": ordered}, bool(missing) or not form.fits(text, between=r"\s+"))


def read_reasons(text: str, criteria: Sequence[Criterion]) -> dict[str, str]:
    """Explanations by criterion from lines `Why Name: …`, in the order of the text."""
    places = _sections(text, {c.name: f"Why {c.name}" for c in criteria})
    return {name: " ".join(text[start:end].split()).strip(" \"'*_`") for name, (start, end) in places.items()}


def _sections(text: str, labels: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Where the texts are that stand behind labels at the beginning of a line, in the order of the text: each up to the
    next label. By the labels' keys."""
    places = []
    for key, label in labels.items():
        spaced = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", label)))
        pattern = rf"^(?:[^\w\n]|[\d_])*{spaced}[\"'*_`]*+\s*+[:={{-]"
        if match := re.search(pattern, text, re.IGNORECASE | re.MULTILINE):
            places.append((match.start(), match.end(), key))
    places.sort()
    ends = [*(start for start, _, _ in places[1:]), len(text)]
    return {key: (begin, end) for (_, begin, key), end in zip(places, ends, strict=False)}


#: "Name: definition" on a line, with marks around it.
_LISTED = re.compile(
    r"^(?:[-*•\d.)]+[ \t]+)?[\"'*_`]*([^\W\d_][^:：*_`\"\n]{1,48}?)[\"'*_`]*[ \t]*(?:：|[:–-][\"'*_`]*[ \t]+)(.+)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Drawn(Criterion):
    """A criterion with the numbers of the comments that a model says it comes from; they need not exist."""

    comments: tuple[int, ...] = ()


def read_criteria_list(text: str, *, most: int = 10) -> list[Drawn]:
    """Criteria from a JSON list of {name, definition}, a JSON object {name: definition}, or lines `Name: definition`.

    Duplicates by name are dropped; at most `most` are kept; an empty list where nothing could be read.
    """
    body = unfenced(text)
    start = min((i for i in (body.find("{"), body.find("[")) if i >= 0), default=-1)
    data = lenient_json(body[start:]) if start >= 0 else None
    if isinstance(data, dict):
        named = [{"name": name, "definition": meaning} for name, meaning in data.items()]
        data = [data] if "definition" in data else data.get("criteria", named)
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    listed = [(*pair, None) for pair in _LISTED.findall(body)]
    kept: dict[str, Drawn] = {}
    for name, meaning, cited in [tuple(map(e.get, ("name", "definition", "comments"))) for e in entries] or listed:
        if not (isinstance(name, str) and isinstance(meaning, str)):
            continue
        name = " ".join(re.sub(r"[\"'*_`:#{}\[\]<>|]", " ", name).split())[:48]
        meaning = " ".join(meaning.strip(" \"'*_`").split())[:300]
        if re.search(r"[A-Za-z\u00c0-\uffff]", name) and meaning and name.casefold() not in kept:
            numbers = tuple(dict.fromkeys(map(int, re.findall(r"\d{1,6}", str(cited or "")))))
            kept[name.casefold()] = Drawn(name, meaning, numbers)
    return list(kept.values())[:most]


def unfenced(text: str) -> str:
    """A text without a code fence around it."""
    text = text.strip()
    if opening := re.match(r"```\w*\s*", text):
        text = text[opening.end() :]
    return text.removesuffix("```").rstrip()


def lenient_json(text: str) -> Any:
    """JSON as far as it can be made out, None where it cannot. Repair takes time that grows faster than its input, most
    of all with the depth of what is left open: answers that are far longer or deeper than any list are not repaired."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        pass
    text = text[:_LONGEST]
    depth = accumulate(1 if sign in "{[(" else -1 for sign in re.findall(r"[][{}()]", text))
    if max(depth, default=0) > _DEEPEST:
        return None
    try:
        return json_repair.loads(text)
    except (ValueError, RecursionError):
        return None


def _alone(text: str, match: re.Match[str]) -> bool:
    """Whether a match has its line to itself, marks such as `**` left aside."""
    before, after = text[: match.start()].rpartition("\n")[2], text[match.end() :].partition("\n")[0]
    return not re.search(r"\w", before + after)


def _on_scale(match: re.Match[str], scale: Scale) -> float | None:
    """A matched number in [0, 100]; None off the scale, or where it is said to be of another one ("8/10" on 1..5)."""
    value = float(match["number"])
    other = match["top"] is not None and float(match["top"]) != scale.high
    if other or (match["percent"] and scale.high != 100) or not scale.low <= value <= scale.high:
        return None
    return scale.to_percent(value)


def _cut(reply: Reply, end: int, scale: Scale) -> bool:
    """Whether a number may lack its last digits: "Score: 8" at the token limit can be the start of 85."""
    return reply.finish == "length" and scale.high >= 10 and end == len(reply.text)


def _explanation(text: str, score: re.Match[str]) -> str:
    """The explanation of an answer: behind its label, before or after the score."""
    before, after = text[: score.start()], text[score.end() :]
    label = EXPLANATION.search(before)
    if label:
        words = before[label.end() :]
    elif label := EXPLANATION.search(after):
        words = after[label.end() :]
    else:
        words = before if re.search(r"\w{3}", before) else after
    return " ".join(words.split()).rstrip(" \"'*_`{}[],:|-").lstrip(" \"'*_`{}[],:|/-")


def without_thoughts(text: str) -> str:
    """A reasoning model's visible thoughts blanked out, at the same length, so that places in the text still hold."""
    end = text.rfind("</think>") + len("</think>") if "</think>" in text else 0
    opened = text.find("<think>", end)  # thoughts that never end
    stop = len(text) if opened < 0 else opened
    return " " * end + text[end:stop] + " " * (len(text) - stop)


def _short(text: str, most: int = 120) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= most else text[: most - 1] + "…")


def bare(answer: str) -> str:
    """An answer without tags, quotation marks or an introduction around it."""
    text = answer.strip()
    tag = re.match(r"<(\w+)>", text)
    if tag and text.endswith(closing := f"</{tag[1]}>"):
        text = text[tag.end() : -len(closing)].strip()
    text = re.sub(r"^(?:here is|here's|sure|certainly)\b[^\n]{0,80}:\s*", "", text, flags=re.IGNORECASE)
    for opening, closing in (('"', '"'), ("“", "”")):
        inside = text[1:-1]
        if len(text) > 2 and text[0] == opening and text[-1] == closing and opening not in inside:
            text = inside
    return text.strip()
