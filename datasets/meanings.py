"""What columns mean whose names are not those of a role: by words in the name, and by what their cells hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from ..conversation import parsed
from ..wording import folded
from .marks import WORDS, Marks, named_scale, unrated, word_set

Records = Sequence[Mapping[str, Any]]

_NAMES = {what: word_set(words) for what, words in WORDS["columns"].items()}
_WORDS = {
    role: _NAMES[role]
    for role in ("output", "source", "context", "reference", "rationale")
}
#: Words of columns that hold something about a text, and by which a column is likely to be the score, where its values
#: could be one.
_ABOUT, _SCORE_WORDS = _NAMES["about"], _NAMES["score"]

#: Words that keep a column from a role: a machine's reasons are no person's.
_OTHER = {"reference": _ABOUT, "rationale": _NAMES["machine"]}

#: What `judgesmith score` writes beside a verdict.
_OURS = ("verdict", "verdicts", "preference", "judge", "seen", "defer")


def guessed(
    records: Records, names: Sequence[str], taken: Mapping[str, str]
) -> dict[str, str]:
    """Role -> column for roles without a column: of the columns with texts the only one whose name has one of the
    role's words.
    """
    result: dict[str, str] = {}
    for role, words in _WORDS.items():
        if role in taken:
            continue
        other = _OTHER.get(role, _ABOUT | _WORDS["reference"])
        free = {
            name: words_of(name)
            for name in names
            if name not in (*taken.values(), *result.values())
        }
        hits = [
            n
            for n, own in free.items()
            if words & own and not own & other and text_like(records, n)
        ]
        if len(hits) == 1:
            result[role] = hits[0]
    return result


def likely_scores(records: Records, names: Sequence[str]) -> list[str]:
    """Columns that could be the score: their values are ratings, and the name speaks of one or the values cannot be
    anything else (thumbs, stars, pass/fail).
    """
    named, certain = [], []
    for name in (
        n
        for n in names
        if n not in _OURS and not n.startswith("judge_") and not by_machine(n)
    ):
        cells = [cell for record in records if not unrated(cell := record.get(name))]
        if len(set(map(str, cells))) < 2 or any(
            isinstance(parsed(cell), list | dict) for cell in cells[:20]
        ):
            continue
        marks = Marks.of(cells)
        if sum(marks.reads(folded(cell)) for cell in cells) * 10 < len(cells) * 9:
            continue
        if words_of(name) & _SCORE_WORDS or named_scale(name)[1] is not None:
            named.append(name)
        elif marks.values:
            certain.append(name)
    return named or certain


def nested_ratings(records: Records, names: Sequence[str]) -> list[str]:
    """Columns of human ratings in lists and objects, such as `human_labels` of {"by": "a", "value": 5}, where each
    has one reading.
    """
    return [name for name in names if _of_people(name) and _is_nested(records, name)]


def _of_people(name: str) -> bool:
    words = words_of(name)
    return bool(words & _NAMES["person"]) and not words & _NAMES["scorer"]


def _is_nested(records: Records, name: str) -> bool:
    """Whether the cells of a column are lists or objects of ratings, by its name or by their own."""
    cells = [
        parsed(cell) for record in records if not unrated(cell := record.get(name))
    ]
    if not all(isinstance(cell, list | tuple | Mapping) for cell in cells):
        return False
    parts = [part for cell in cells for _, part in parts_of(cell) if not unrated(part)]
    if (
        any(isinstance(part, list | tuple | Mapping) for part in parts)
        or len(set(map(str, parts))) < 2
    ):
        return False
    named = {word.removesuffix("s") for word in words_of(name)} & _SCORE_WORDS
    marks = Marks.of(parts)
    return bool(named or all(map(_says_rating, cells))) and all(
        map(marks.reads, map(folded, parts))
    )


def _says_rating(cell: Any) -> bool:
    """Whether every object in a cell names what is the rating in it."""
    inside = cell.values() if isinstance(cell, Mapping) else cell
    return one_rating(cell) is not None or all(
        one_rating(part) is not None for part in inside
    )


def parts_of(value: Any) -> list[tuple[str, Any]]:
    """The single ratings in one cell, each with its rater: of a list, of an object {rater: rating}, of objects with one
    rating each, or the cell itself ("" for unnamed ones).
    """
    value = parsed(value)
    if (single := one_rating(value)) is not None:
        return [single]
    if isinstance(value, Mapping):
        return [(str(rater), _inside(part)[1]) for rater, part in value.items()]
    return [
        _inside(part)
        for part in (value if isinstance(value, (list, tuple)) else [value])
    ]


def _inside(part: Any) -> tuple[str, Any]:
    """The rater and the rating of a part of a cell; the part as it is where it is no object with one rating."""
    held = one_rating(part)
    if held is None and isinstance(part, Mapping):
        beside = _NAMES["rater_in_object"] | _ABOUT
        free = [name for name in part if not words_of(str(name)) & beside]
        held = (
            (_rater_in(part), part[free[0]])
            if len(free) == 1 and _is_number(part[free[0]])
            else None
        )
    return held or ("", part)


def one_rating(value: Any) -> tuple[str, Any] | None:
    """The rater and the rating of an object that says which of its values is the rating, and has no further number;
    None for anything else.
    """
    if not isinstance(value, Mapping):
        return None
    hits = [
        name
        for name in value
        if words_of(str(name)) & _NAMES["rating_in_object"] and not unrated(value[name])
    ]
    others = [
        name for name in value if name not in hits and not words_of(str(name)) & _ABOUT
    ]
    single = len(hits) == 1 and not isinstance(value[hits[0]], list | Mapping)
    if not single or any(_is_number(value[name]) for name in others):
        return None
    return _rater_in(value), value[hits[0]]


def _rater_in(value: Mapping[Any, Any]) -> str:
    named = [
        value[name] for name in value if words_of(str(name)) & _NAMES["rater_in_object"]
    ]
    return str(named[0]) if named and isinstance(named[0], str | int) else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def by_machine(name: str) -> bool:
    """Whether a column's name says that a machine wrote what is in it: `model_score`, `quality.suggestion`.

    A rating of what a machine wrote ("AI answer quality") names that, and a person's names the person.
    """
    texts = _NAMES["output"] - _NAMES["scorer"]
    return speaks_of_machine(name) and not words_of(name) & texts


def speaks_of_machine(name: str) -> bool:
    """Whether a column's name has a machine's word, and no person's."""
    words = words_of(name)
    return bool(words & _NAMES["scorer"]) and not words & _NAMES["person"]


def text_like(records: Records, name: str) -> bool:
    """Whether most cells of a column are texts of a few words, or structures."""
    cells = [cell for record in records if not unrated(cell := record.get(name))]
    texts = [
        c
        for c in cells
        if isinstance(c, list | dict) or (isinstance(c, str) and len(c.split()) >= 3)
    ]
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
