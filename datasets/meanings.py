"""What columns mean where their names are not those of a role: a scale in it, its words, what stands below it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ..conversation import parsed
from .marks import Marks, unrated, word_set

_BRACKETS = re.compile(r"(?P<what>.*?\S)[\s_]*[(\[](?P<inside>[^()\[\]]*)[)\]]\s*[?:*]?\s*", re.DOTALL)
_RANGE = re.compile(r"(?<![\d.])(-?\d{1,3})\s*(?:-|–|—|to|\.\.|bis|/)\s*(\d{1,3})(?![\d.])", re.IGNORECASE)
_NAMED_ENDS = re.compile(r"(-?\d{1,3})\s*(?:=|:|is|means)\s*([^\d,;]*)", re.IGNORECASE)
_OUT_OF = re.compile(r"(?:/|out of)\s*(\d{1,3})", re.IGNORECASE)
_TRAILING = re.compile(
    r"(?P<what>.*?[^\W\d])[\s_]+(?P<inside>-?\d{1,3}\s*(?:-|–|\.\.|_?to_?)\s*\d{1,3}|(?:/|out of)\s*\d{1,3})",
    re.IGNORECASE,
)
_GOOD = re.compile(r"\b(best|excellent|perfect|very good|great|outstanding|good)\b", re.IGNORECASE)
_BAD = re.compile(r"\b(worst|bad|poor|terrible|awful|very poor|very bad)\b", re.IGNORECASE)


_WORDS = {
    "output": word_set(
        "output response answer reply summary completion generation generated translation candidate prediction bot "
        "assistant ai llm chatbot hypothesis"
    ),
    "source": word_set(
        "source input question prompt query article document instruction instructions request user customer task "
        "ticket message"
    ),
    "context": word_set("context contexts passages passage retrieved knowledge evidence chunks"),
    "reference": word_set("reference gold expected ideal correct"),
}
#: Words of columns that hold something about a text.
_ABOUT = word_set(
    "id type length count time date timestamp score rating label url link name email tokens cost latency language "
    "rate comment comments notes note feedback reason rationale explanation justification why"
)
#: Words by which a column is likely to be the score, where its values could be one.
_SCORE_WORDS = word_set(
    "score rating rate rated grade label verdict quality stars star thumbs thumb feedback pass passed result correct "
    "good evaluation judgement judgment vote value acceptable ok helpful satisfaction"
)
_TEXT_WORDS = 3


@lru_cache(maxsize=4096)
def named_scale(name: str) -> tuple[str, tuple[float, float] | None]:
    """A column's name without the scale in it, and the scale: "Rating (1-5)" is ("Rating", (1, 5)); the name as it is
    and None where there is none."""
    match = _BRACKETS.fullmatch(name) or _TRAILING.fullmatch(name.strip())
    if match is None:
        return name, None
    inside = match["inside"].replace("_", " ")
    ends = [(float(number), word) for number, word in _NAMED_ENDS.findall(inside)]
    if len(ends) >= 2:
        (low, _), (high, _) = min(ends), max(ends)
    elif hit := _RANGE.search(inside):
        low, high = float(hit[1]), float(hit[2])
    elif hit := _OUT_OF.search(inside):
        high = float(hit[1])
        low = 0.0 if high >= 20 else 1.0
    else:
        return name, None
    return (match["what"].strip(" _-:"), (low, high)) if low < high else (name, None)


def reversed_scale(name: str) -> bool:
    """Whether a column's name says that the lowest score is the best: "Rank (1 = best, 5 = worst)"."""
    ends = sorted((float(number), word) for number, word in _NAMED_ENDS.findall(name))
    return len(ends) >= 2 and bool(_GOOD.search(ends[0][1]) and _BAD.search(ends[-1][1]))


def guessed(records: Sequence[Mapping[str, Any]], names: Sequence[str], taken: Mapping[str, str]) -> dict[str, str]:
    """role -> column for roles without a column: of the columns with texts the only one whose name has one of the
    role's words."""
    result: dict[str, str] = {}
    for role, words in _WORDS.items():
        if role in taken:
            continue
        free = [name for name in names if name not in (*taken.values(), *result.values())]
        other = _ABOUT if role == "reference" else _ABOUT | _WORDS["reference"]
        hits = [name for name in free if words & (said := words_of(name)) and not said & other]
        hits = [name for name in hits if text_like(records, name)]
        if len(hits) == 1:
            result[role] = hits[0]
    return result


def likely_scores(records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Columns that could be the score: their values are ratings, and the name speaks of one or the values cannot be
    anything else (thumbs, stars, pass/fail)."""
    named, certain = [], []
    for name in names:
        cells = [cell for record in records if not unrated(cell := record.get(name))]
        if not cells or any(isinstance(parsed(cell), (list, dict)) for cell in cells[:20]):
            continue
        marks = Marks.of(cells)
        read = sum(marks.readable(cell) for cell in cells)
        if read * 10 < len(cells) * 9 or len({str(cell) for cell in cells}) < 2:
            continue
        if words_of(name) & _SCORE_WORDS or named_scale(name)[1] is not None:
            named.append(name)
        elif marks.values:
            certain.append(name)
    return named or certain


def text_like(records: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether most cells of a column are texts of a few words, or structures."""
    cells = [cell for record in records if not unrated(cell := record.get(name))]
    texts = [c for c in cells if isinstance(c, (list, dict)) or (isinstance(c, str) and len(c.split()) >= _TEXT_WORDS)]
    return bool(cells) and len(texts) * 2 >= len(cells)


def words_of(name: str) -> set[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return set(re.findall(r"[^\W\d_]+", spaced.casefold()))
