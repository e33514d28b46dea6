"""What columns mean whose names are not those of a role: by words in the name, and by what their cells hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..conversation import parsed
from .marks import WORDS, Marks, folded, named_scale, unrated, word_set

Records = Sequence[Mapping[str, Any]]

_NAMES = {what: word_set(words) for what, words in WORDS["columns"].items()}
_WORDS = {role: _NAMES[role] for role in ("output", "source", "context", "reference", "rationale")}
#: Words of columns that hold something about a text, and by which a column is likely to be the score, where its values
#: could be one.
_ABOUT, _SCORE_WORDS = _NAMES["about"], _NAMES["score"]

#: Words that keep a column from a role: a machine's reasons are no person's.
_OTHER = {"reference": _ABOUT, "rationale": _NAMES["machine"]}

#: What `judgesmith score` writes beside a verdict.
_OURS = ("verdict", "verdicts", "preference", "judge", "seen", "defer")


def guessed(records: Records, names: Sequence[str], taken: Mapping[str, str]) -> dict[str, str]:
    """role -> column for roles without a column: of the columns with texts the only one whose name has one of the
    role's words."""
    result: dict[str, str] = {}
    for role, words in _WORDS.items():
        if role in taken:
            continue
        other = _OTHER.get(role, _ABOUT | _WORDS["reference"])
        free = {name: words_of(name) for name in names if name not in (*taken.values(), *result.values())}
        hits = [n for n, own in free.items() if words & own and not own & other and text_like(records, n)]
        if len(hits) == 1:
            result[role] = hits[0]
    return result


def likely_scores(records: Records, names: Sequence[str]) -> list[str]:
    """Columns that could be the score: their values are ratings, and the name speaks of one or the values cannot be
    anything else (thumbs, stars, pass/fail)."""
    named, certain = [], []
    for name in (n for n in names if n not in _OURS and not n.startswith("judge_") and not by_machine(n)):
        cells = [cell for record in records if not unrated(cell := record.get(name))]
        if len(set(map(str, cells))) < 2 or any(isinstance(parsed(cell), list | dict) for cell in cells[:20]):
            continue
        marks = Marks.of(cells)
        if sum(marks.reads(folded(cell)) for cell in cells) * 10 < len(cells) * 9:
            continue
        if words_of(name) & _SCORE_WORDS or named_scale(name)[1] is not None:
            named.append(name)
        elif marks.values:
            certain.append(name)
    return named or certain


def by_machine(name: str) -> bool:
    """Whether a column's name says that a machine wrote what is in it: `model_score`, `quality.suggestion`. A rating of
    what a machine wrote ("AI answer quality") names that, and a person's names the person."""
    texts = _NAMES["output"] - _NAMES["scorer"]
    return speaks_of_machine(name) and not words_of(name) & texts


def speaks_of_machine(name: str) -> bool:
    """Whether a column's name has a machine's word, and no person's."""
    words = words_of(name)
    return bool(words & _NAMES["scorer"]) and not words & _NAMES["person"]


def text_like(records: Records, name: str) -> bool:
    """Whether most cells of a column are texts of a few words, or structures."""
    cells = [cell for record in records if not unrated(cell := record.get(name))]
    texts = [c for c in cells if isinstance(c, list | dict) or (isinstance(c, str) and len(c.split()) >= 3)]
    return bool(cells) and len(texts) * 2 >= len(cells)


def names_a_fault(name: str) -> bool:
    """Whether a name speaks of something that is better absent: "hallucination", "Is it toxic?", not "no errors"."""
    words = words_of(name)
    return bool(words & _NAMES["fault"]) and not words & _NAMES["no_fault"]


def words_of(name: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", spaced(name).casefold()))


def spaced(name: str) -> str:
    """A name with a space before each capital inside it: "userQuestion" is "user Question"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
