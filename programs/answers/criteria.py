"""What does an answer say of several criteria: their scores, the reasons for them, or which there are?"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from judgesmith.programs.answers.likely import LOWEST_MASS, expectation
from judgesmith.programs.answers.objects import json_parts, lenient_json, unfenced
from judgesmith.programs.answers.reading import (
    Read,
    agreed,
    explanation_of,
    is_cut,
    short,
)
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.answers.scores import (
    Stated,
    moved,
    stated_scores,
    stated_value,
)
from judgesmith.signatures.values import Criterion, CriterionScore, Scale

#: The scores that an answer states for a criterion, and its explanation.
_Section = tuple[list[Stated], str]


def read_criteria(
    reply: Reply,
    scale: Scale,
    criteria: Sequence[Criterion],
    fits: Callable[[str], bool],
    *,
    expected: bool,
    explained: bool,
) -> Read:
    """Read the scores of several criteria, by name as `criteria_scores`; a problem if fewer than half are readable.

    They stand as `Name: explanation` and `Score: 4`, on one line or two.

    Args:
        reply: The answer.
        scale: The scale of its numbers.
        criteria: The criteria.
        fits: Returns True for an answer in the prompt's form, which needs no repair.
        expected: True to take expectations over tokens.
        explained: True if explanations are needed.
    """
    text = reply.text
    if not text.strip():
        return Read({}, problem="the answer is empty")
    scores: dict[str, CriterionScore] = {}
    sections = _keyed(text, criteria) or _sectioned(text, criteria)
    for name, (stated, why) in sections.items():
        value, problem = agreed(stated, scale)
        if problem or is_cut(reply, stated[0], scale):
            continue
        if expected:
            mean, mass = expectation(reply, stated[0].digits[0], scale)
            value = mean if mass >= LOWEST_MASS else value
        scores[name] = CriterionScore(value, why if explained else "")
    missing = [c.name for c in criteria if c.name not in scores]
    if 2 * len(missing) > len(criteria):
        return Read({}, problem=f"no score for {', '.join(missing)}: {short(text)}")
    # In the criteria's own order, so that equal answers give equal artifacts.
    ordered = {c.name: scores.get(c.name, CriterionScore(math.nan)) for c in criteria}
    notes = (f"no score could be read for {', '.join(missing)}",) if missing else ()
    repaired = bool(missing) or not fits(text)
    return Read({"criteria_scores": ordered}, repaired, notes=notes)


# --- by name in JSON --------------------------------------------------------------------------------------------------

#: Keys of an explanation, and of a criterion's name in a list.
_WHY = ("explanation", "reason", "reasoning", "justification")
_NAME = ("name", "criterion", "aspect")


def _keyed(text: str, criteria: Sequence[Criterion]) -> dict[str, _Section]:
    """Return what an answer in JSON says by criterion; empty for another answer.

    Forms are {"Tone": 4}, {"Tone": {"score": 4, "explanation": …}}, or a list of objects with names.
    """
    names = {_key(c.name): c.name for c in criteria}
    scores: dict[str, _Section] = {}
    for data in json_parts(text):
        for key, value in _pairs(data):
            name = names.get(_key(key))
            if name is not None and name not in scores:
                stated = stated_value(value)
                why = _why_in(value) if isinstance(value, dict) else ""
                placed = replace(stated, digits=_place(text, key, stated))
                scores[name] = ([placed], why)
    return scores


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def _pairs(data: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Names with what stands under them, the outermost first."""
    if isinstance(data, list):
        for entry in data:
            held = entry if isinstance(entry, dict) else {}
            name = next((held[key] for key in _NAME if key in held), None)
            if isinstance(name, str):
                yield name, entry
    elif isinstance(data, dict):
        yield from data.items()
        for value in data.values() if depth < 2 else ():
            yield from _pairs(value, depth + 1)


def _why_in(entry: Mapping[str, Any]) -> str:
    """Return the explanation in a criterion's object; "" for none."""
    for label in _WHY:
        if isinstance(words := entry.get(label), str):
            return " ".join(words.split())
    return ""


def _place(text: str, key: str, stated: Stated) -> tuple[int, int]:
    """Return the place of the number under a key in JSON; (-1, -1) if it cannot be told."""
    begins = re.search(rf'"{re.escape(key)}"\s*:', text)
    if begins is None or not stated.words:
        return -1, -1
    number = rf"\s*\"?({re.escape(stated.words)})(?![\w.])"
    direct = re.compile(number).match(text, begins.end())
    inner = re.compile(rf'"(?:score|rating|value)"\s*:{number}')
    found = direct or inner.search(text, begins.end())
    return found.span(1) if found else (-1, -1)


# --- by name at the beginning of a line -------------------------------------------------------------------------------

#: Labels of a score of the whole, which ends what is said of the last criterion.
_OF_ALL = ("overall score", "overall rating", "overall")


def _sectioned(text: str, criteria: Sequence[Criterion]) -> dict[str, _Section]:
    """Return the scores stated behind each criterion's name, and the explanation."""
    names = {c.name: c.name for c in criteria}
    labels = dict(names)
    if "verall" in text:
        taken = {name.casefold() for name in names}
        labels |= {label: label for label in _OF_ALL if label not in taken}
    sections: dict[str, _Section] = {}
    for name, (start, end) in _sections(text, labels).items():
        segment = text[start:end]
        scores = stated_scores(segment) if name in names else []
        if scores:
            why = explanation_of(segment, scores[0])
            sections[name] = ([moved(score, start) for score in scores], why)
    return sections


def read_reasons(text: str, criteria: Sequence[Criterion]) -> dict[str, str]:
    """Explanations by criterion from lines `Why Name: …`, in the order of the text."""
    places = _sections(text, {c.name: f"Why {c.name}" for c in criteria})
    return {
        name: " ".join(text[start:end].split()).strip(" \"'*_`")
        for name, (start, end) in places.items()
    }


def _sections(text: str, labels: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Return the places of the texts behind labels at the beginning of a line, by the labels' keys.

    They are in the order of the text, each up to the next label.
    """
    places = []
    for key, label in labels.items():
        if match := _section(label).search(text):
            places.append((match.start(), match.end(), key))
    places.sort()
    ends = [*(start for start, _, _ in places[1:]), len(text)]
    return {
        key: (begin, end) for (_, begin, key), end in zip(places, ends, strict=False)
    }


@lru_cache(maxsize=512)
def _section(label: str) -> re.Pattern[str]:
    """A label at the beginning of a line or of a table's row, with its colon, or as a heading."""
    spaced = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", label)))
    heading = rf"^#+[ \t]*+[*_]*{spaced}[*_]*[ \t]*+$"
    beginning = rf"^(?:[^\w\n]|[\d_])*{spaced}(?:[ \t]+(?:score|rating))?[\"'*_`]*+\s*+[:：={{|-]"
    return re.compile(f"{beginning}|{heading}", re.IGNORECASE | re.MULTILINE)


# --- which criteria there are -----------------------------------------------------------------------------------------

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
    listed = [(*pair, None) for pair in _LISTED.findall(body)]
    criteria: dict[str, Drawn] = {}
    for name, meaning, cited in _entries_of(body) or listed:
        if not (isinstance(name, str) and isinstance(meaning, str)):
            continue
        name = " ".join(re.sub(r"[\"'*_`:#{}\[\]<>|]", " ", name).split())[:48]
        meaning = " ".join(meaning.strip(" \"'*_`").split())[:300]
        worded = re.search(r"[A-Za-z\u00c0-\uffff]", name) and meaning
        if worded and name.casefold() not in criteria:
            numbers = map(int, re.findall(r"\d{1,6}", str(cited or "")))
            drawn = Drawn(name, meaning, tuple(dict.fromkeys(numbers)))
            criteria[name.casefold()] = drawn
    return list(criteria.values())[:most]


def _entries_of(body: str) -> list[tuple[Any, Any, Any]]:
    """(name, definition, comments) of each criterion of an answer in JSON; none for another answer."""
    starts = [place for place in (body.find("{"), body.find("[")) if place >= 0]
    data = lenient_json(body[min(starts) :]) if starts else None
    if isinstance(data, dict):
        named = [
            {"name": name, "definition": meaning} for name, meaning in data.items()
        ]
        data = [data] if "definition" in data else data.get("criteria", named)
    entries = list[tuple[Any, Any, Any]]()
    for entry in data if isinstance(data, list) else ():
        if isinstance(entry, dict):
            name = entry.get("name")
            meaning = entry.get("definition")
            entries.append((name, meaning, entry.get("comments")))
    return entries
