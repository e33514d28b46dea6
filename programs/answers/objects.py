"""Read answers in JSON, also broken JSON.

It is the whole of an answer, the content of a code fence, or begins on a line of its own, also where JSON is wrapped
into a string once more.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any, SupportsIndex

import json_repair

#: Of JSON that has to be repaired: characters, levels of brackets, and times that a character is looked at. Broken
#: answers of models need one to five.
_LONGEST = 20_000
_DEEPEST = 8
_LOOKS = 20
_FENCED = re.compile(
    r"```(?:json)?[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL | re.IGNORECASE
)
_OPENED = re.compile(r"^[ \t]*+(?=[{\[])", re.MULTILINE)
#: Objects of one answer that are looked at.
_MOST = 8


def json_parts(text: str) -> list[Any]:
    """Return the objects and lists that an answer consists of; none for an answer that is no JSON."""
    body = text.strip()
    if body[:1] == '"':
        body = _unquoted(body)
    if body[:1] not in ("{", "["):
        if "{" not in text and "[" not in text:
            return []
        if fenced := _FENCED.search(text):
            body = fenced[1].strip()
        elif opened := _OPENED.search(text):
            body = text[opened.end() :]
    parts: list[Any] = []
    while body[:1] in ("{", "[") and len(parts) < _MOST:
        try:
            part, end = json.JSONDecoder().raw_decode(body)
        except (ValueError, RecursionError):
            part = None if parts else lenient_json(body)
            end = len(body)
        parts += [] if part is None else [part]
        following = _OPENED.search(body, end)
        body = body[following.end() :] if following else ""
    return [unwrapped(part) for part in parts]


#: Words that name a model's own answer, before an object inside its sentence; or a tag that holds nothing else.
_INTRODUCED = re.compile(
    r"""(?:\b(?:here|json|follow(?:s|ing)?|below|verdict|evaluation|answer|results?|assessment|judgment|judgement|response|score|
        rating|grade|conclusion|I\ (?:would\ )?(?:rate|score|grade|judge|evaluate|assess|give)(?:\ (?:it|this))?)\b
        (?:\ (?:is|are|as\ follows|the\ json|below|it|my\ (?:verdict|answer|evaluation|json|assessment|score|rating)))?
        [\s*_]*[:=]?[\s*_`]*(?:json\b\s*)?
      |^[ \t]*<\w{1,20}>\s*
      |^[ \t]*[`*_]{1,6}(?:json\b)?\s*)(?=\{)""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
#: How a sentence ends behind an object that is its answer: another goes on in small letters.
_SENTENCE_ENDS = re.compile(
    r"[\s*_`]*(?:</\w{1,20}>)?[.!]?(?:\s*\Z|\s*\n|\s+(?=[A-Z\W]))"
)


def introduced(text: str) -> list[Any]:
    """Return the object that an answer's own sentence introduces, as in "Here is my verdict: {…} Let me know".

    None where there are several, and where a sentence about it goes on: "It says {…}, which is a trick."
    """
    found = []
    for match in _INTRODUCED.finditer(text) if "{" in text else ():
        try:
            held, end = json.JSONDecoder().raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        found += [held] if _SENTENCE_ENDS.match(text, end) else []
    return found if len(found) == 1 else []


def unwrapped(value: Any) -> Any:
    """Return a value, or the object or list that a string spells."""
    if not isinstance(value, str) or value.strip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _unquoted(body: str) -> str:
    """JSON that stands in a string as a whole."""
    try:
        held = json.loads(body)
    except (ValueError, RecursionError):
        return body
    return held.strip() if isinstance(held, str) else body


def unfenced(text: str) -> str:
    """Return a text without a code fence around it."""
    text = text.strip()
    if opening := re.match(r"```\w*\s*", text):
        text = text[opening.end() :]
    return text.removesuffix("```").rstrip()


def _depth(text: str, opening: str, closing: str) -> int:
    """Return how many brackets of a kind are open at once, those in strings included."""
    signs = re.findall(f"[{re.escape(opening + closing)}]", text)
    depths = accumulate(1 if sign == opening else -1 for sign in signs)
    return max(depths, default=0)


class _Limited(str):
    """Text whose characters may be looked at only so often: repair goes back and forth, without end in stray quotes."""

    _looks: int

    def __new__(cls, text: str) -> _Limited:
        limited = super().__new__(cls, text)
        limited._looks = _LOOKS * (len(text) + 100)
        return limited

    def __getitem__(self, place: SupportsIndex | slice) -> str:
        self._looks -= 1
        if self._looks < 0:
            raise ValueError("JSON is too broken: the limit of its repair is reached")
        return super().__getitem__(place)


def lenient_json(text: str) -> Any:
    """Return JSON as far as it can be made out, None where it cannot.

    Repair takes time that grows faster than its input, most of all with the depth of what is left open: answers that
    are far longer or deeper than any list are not repaired, and none is looked at without end.
    """
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        pass
    text = text[:_LONGEST]
    if any(_depth(text, *kind) > _DEEPEST for kind in ("{}", "[]", "()")):
        return None
    try:
        return json_repair.loads(_Limited(text))
    except (ValueError, RecursionError):
        return None
