"""Find the meaning of columns without a role's name: by words in the name, and by the content of their cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from judgesmith.conversation import parsed
from judgesmith.datasets.exports import cell_reader
from judgesmith.datasets.marks import (
    WORDS,
    Marks,
    named_scale,
    unrated,
    word_set,
)
from judgesmith.datasets.spreadsheets import NUMBER
from judgesmith.datasets.statuses import discounted
from judgesmith.rows import WRITTEN
from judgesmith.wording import folded, word_count, words_of

Records = Sequence[Mapping[str, Any]]

_NAMES = {role: word_set(words) for role, words in WORDS["columns"].items()}
_WORDS = {
    role: _NAMES[role]
    for role in ("output", "source", "context", "reference", "rationale")
}
#: Words of columns that hold something about a text, and by which a column is likely to be the score, where its values
#: could be one.
_ABOUT = _NAMES["about"]
_SCORE_WORDS = _NAMES["score"]

#: Words that keep a column from a role: a machine's reasons are no person's.
_OTHER = {"reference": _ABOUT, "rationale": _NAMES["machine"]}

#: More versions, or languages, than these are of something else.
_MOST_VERSIONS = 12
_MOST_LANGUAGES = 30
#: In front of the end of a German compound.
_COMPOUND = re.compile(r"(?=nummer$)|(?<=[^\W\d])(?=nr$)")
#: A language in a cell: "de", "pt-BR", "zh_Hans_CN", "Deutsch", "Brazilian Portuguese".
_LANGUAGE = re.compile(r"[^\W\d_]{2,20}([-_ ][^\W_]{2,20}){0,2}")

#: What our commands write beside people's columns.
_OURS = (*WRITTEN, "verdicts", "preference")


def guessed(
    records: Records, names: Sequence[str], taken: Mapping[str, str]
) -> dict[str, str]:
    """Return role -> column for roles without a column.

    A column is taken if it is the only one with texts whose name has one of the role's words, or promptfoo's form of an
    output. Ids and versions of a system are known by their cells, too.
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
            if (words & own and not own & other)
            or (role == "output" and cell_reader(n) is not None)
        ]
        hits = [n for n in hits if text_like(records, n)]
        if len(hits) == 1:
            result[role] = hits[0]
    for role, fits in (("id", _are_ids), ("system", _are_versions)):
        if role in taken:
            continue
        left = [n for n in names if n not in (*taken.values(), *result.values())]
        hits = [n for n in left if fits(records, n)]
        if len(hits) == 1:
            result[role] = hits[0]
    return result


def _are_ids(records: Records, name: str) -> bool:
    """Return True for a column such as "Ticket-ID" or "Fallnummer", if no two of its cells are the same."""
    own = words_of(name.replace("#", " number "))
    words = {part for word in own for part in _COMPOUND.split(word) if part}
    if not words & _NAMES["id"] or not words - _NAMES["id"] <= _NAMES["identified"]:
        return False
    if words <= _NAMES["id"] - {"id"}:
        return False  # "No." and "Number" by themselves may count anything
    cells = _rated_cells(records, name)
    return len(set(map(str, cells))) == len(cells) == len(records) > 1


def _are_versions(records: Records, name: str) -> bool:
    """Return True for a column such as "Bot version", if it has a few words that stand there again and again."""
    words = words_of(name)
    if not words & {"version", "variant"} or not words <= _NAMES["versioned"]:
        return False
    times = Counter(str(cell) for cell in _rated_cells(records, name))
    return 2 <= len(times) <= _MOST_VERSIONS and times.total() >= 4 * len(times)


def language_columns(records: Records, names: Sequence[str]) -> list[str]:
    """Return the columns that say in which language a text is, such as "Lang": a few short words, again and again."""
    return [name for name in names if _are_languages(records, name)]


def _are_languages(records: Records, name: str) -> bool:
    words = words_of(name)
    beside = {"code"} | _NAMES["identified"] | _NAMES["output"] | _NAMES["source"]
    if not words & _NAMES["language"] or not words <= _NAMES["language"] | beside:
        return False
    cells = _rated_cells(records, name)
    times = Counter(str(cell) for cell in cells)
    return (
        2 <= len(times) <= _MOST_LANGUAGES
        and times.total() >= 2 * len(times)
        and all(map(_LANGUAGE.fullmatch, times))
        and not _reads(Marks.of(cells), cells)
    )


@dataclass(frozen=True, slots=True)
class Candidates:
    """Columns that could be ratings.

    named: the name speaks of a score. certain: the values cannot be anything else (thumbs, stars, pass/fail). whole:
    they are a few whole numbers, as of 1 to 5.
    """

    named: list[str] = field(default_factory=list)
    certain: list[str] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)

    @property
    def likely(self) -> list[str]:
        """Return those whose name says it, or without one those whose values do."""
        return self.named or self.certain


def likely_scores(records: Records, names: Sequence[str]) -> list[str]:
    """Return the columns that could be the score; see `Candidates`."""
    return candidates(records, names).likely


def candidates(records: Records, names: Sequence[str]) -> Candidates:
    """Return the columns that could hold human ratings, by their names and by all of their cells."""
    found = Candidates()
    for name in names:
        if name in _OURS or name.startswith("judge_") or by_machine(name):
            continue
        cells = _rated_cells(records, name)
        if len(set(map(str, cells))) < 2:
            continue
        if any(isinstance(parsed(cell), list | dict) for cell in cells[:20]):
            continue
        marks = Marks.of(cells)
        if not _reads(marks, cells):
            continue
        if names_a_fault(name) and not marks.values:
            continue  # numbers of a fault: more is worse
        if words_of(name) & _SCORE_WORDS or named_scale(name)[1] is not None:
            found.named.append(name)
        elif marks.values:
            found.certain.append(name)
        elif _are_few_steps(name, cells):
            found.whole.append(name)
    return found


def holds_ratings(records: Records, name: str) -> bool:
    """Return True if nearly all cells of a column that say something can be read as ratings."""
    cells = _rated_cells(records, name)
    return _reads(Marks.of(cells), cells)


def are_shares(records: Records, name: str) -> bool:
    """Return True if a column's cells are numbers from 0 to 1, not all of them whole, as metrics are."""
    numbers = _numbers(_rated_cells(records, name))
    inside = all(0 <= number <= 1 for number in numbers)
    return inside and any(number % 1 for number in numbers)


def _reads(marks: Marks, cells: Sequence[Any]) -> bool:
    return sum(marks.reads(folded(cell)) for cell in cells) * 10 >= len(cells) * 9


def _are_few_steps(name: str, cells: Sequence[Any]) -> bool:
    """Return True if cells are whole numbers of a scale of up to eleven steps, and the name counts nothing."""
    numbers = _numbers(cells)
    steps = {number for number in numbers if number % 1 == 0}
    if words_of(name) & (_ABOUT | _NAMES["counted"]):
        return False
    return (
        len(numbers) == len(cells)
        and len(steps) == len(set(numbers)) <= 11
        and (min(steps) >= -5 and max(steps) <= 10)
    )


def _numbers(cells: Sequence[Any]) -> list[float]:
    words = (folded(cell) for cell in cells)
    return [float(word) for word in words if NUMBER.fullmatch(word)]


def _rated_cells(records: Records, name: str) -> list[Any]:
    """The cells of a column that say something."""
    cells = (record.get(name) for record in records)
    return [cell for cell in cells if not unrated(cell)]


def nested_ratings(records: Records, names: Sequence[str]) -> list[str]:
    """Return the columns of human ratings in lists and objects, if each has one reading.

    An example is `human_labels` of {"by": "a", "value": 5}.
    """
    return [name for name in names if _of_people(name) and _is_nested(records, name)]


def _of_people(name: str) -> bool:
    return names_a_person(name) and not words_of(name) & _NAMES["scorer"]


def names_a_person(name: str) -> bool:
    """Return True if a column's name says that people gave its cells: `human_score`, "Reviewer rating"."""
    return bool(words_of(name) & _NAMES["person"])


def _is_nested(records: Records, name: str) -> bool:
    """Return True if the cells of a column are lists or objects of ratings, by its name or by their own."""
    cells = list(map(parsed, _rated_cells(records, name)))
    if not all(map(_holds_parts, cells)):
        return False
    parts = list[Any]()
    for cell in cells:
        parts += [part for _, part in parts_of(cell) if not unrated(part)]
    if any(map(_holds_parts, parts)) or len(set(map(str, parts))) < 2:
        return False
    named = {word.removesuffix("s") for word in words_of(name)} & _SCORE_WORDS
    marks = Marks.of(parts)
    rates = bool(named) or all(map(_says_rating, cells))
    return rates and all(map(marks.reads, map(folded, parts)))


def _holds_parts(value: Any) -> bool:
    return isinstance(value, list | tuple | Mapping)


def _says_rating(cell: Any) -> bool:
    """Return True if every object in a cell names the rating in it."""
    inside = cell.values() if isinstance(cell, Mapping) else cell
    return one_rating(cell) is not None or all(
        one_rating(part) is not None for part in inside
    )


def parts_of(value: Any) -> list[tuple[str, Any]]:
    """Return the single ratings in one cell, each with its rater, "" for unnamed ones.

    A cell is a list, an object {rater: rating}, objects with one rating each, or a rating itself.
    """
    value = parsed(value)
    if _left_out(value):
        return []
    if (single := one_rating(value)) is not None:
        return [single]
    if isinstance(value, Mapping):
        return [(str(rater), _inside(part)[1]) for rater, part in value.items()]
    if not isinstance(value, (list, tuple)):
        return [("", value)]
    return [_inside(part) for part in value if not _left_out(part)]


def _left_out(part: Any) -> bool:
    """Return True if an object says that its rating does not count: {"rating": 5, "status": "rejected"}."""
    return isinstance(part, Mapping) and discounted(part) is not None


def left_out(value: Any) -> list[str]:
    """Return why single ratings in a cell do not count, a text for each."""
    value = parsed(value)
    parts = value if isinstance(value, (list, tuple)) else [value]
    objects = (part for part in parts if isinstance(part, Mapping))
    return [why for part in objects if (why := discounted(part)) is not None]


def _inside(part: Any) -> tuple[str, Any]:
    """The rater and the rating of a part of a cell; the part as it is where it is no object with one rating."""
    held = one_rating(part)
    if held is None and isinstance(part, Mapping):
        beside = _NAMES["rater_in_object"] | _ABOUT
        free = [name for name in part if not words_of(str(name)) & beside]
        if len(free) == 1 and _is_number(part[free[0]]):
            held = (rater_in(part), part[free[0]])
        else:
            held = None
    return held or ("", part)


def one_rating(value: Any) -> tuple[str, Any] | None:
    """Return the rater and the rating of an object that names its rating and has no further number; otherwise None."""
    if not isinstance(value, Mapping):
        return None
    hits = _named_rating(value)
    others = [
        name for name in value if name not in hits and not words_of(str(name)) & _ABOUT
    ]
    rating = rating_in(value)
    if rating is None or any(_is_number(value[name]) for name in others):
        return None
    return rater_in(value), rating


def _named_rating(value: Mapping[Any, Any]) -> list[Any]:
    return [
        name
        for name in value
        if words_of(str(name)) & _NAMES["rating_in_object"] and not unrated(value[name])
    ]


def rating_in(value: Mapping[Any, Any]) -> Any:
    """Return the rating of an object, by the only key that names one; None without it."""
    hits = _named_rating(value)
    single = len(hits) == 1 and not isinstance(value[hits[0]], list | Mapping)
    return value[hits[0]] if single else None


def rater_in(value: Mapping[Any, Any]) -> str:
    """Return the rater that an object names, "" without one."""
    named = [
        value[name] for name in value if words_of(str(name)) & _NAMES["rater_in_object"]
    ]
    return str(named[0]) if named and isinstance(named[0], str | int) else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def by_machine(name: str) -> bool:
    """Return True if a column's name states that a machine wrote its cells: `model_score`, `quality.suggestion`.

    A rating of a machine's text ("AI answer quality") names that, and a person's names the person.
    """
    texts = _NAMES["output"] - _NAMES["scorer"]
    return speaks_of_machine(name) and not words_of(name) & texts


def speaks_of_machine(name: str) -> bool:
    """Return True if a column's name has a machine's word, and no person's."""
    words = words_of(name)
    return bool(words & _NAMES["scorer"]) and not words & _NAMES["person"]


def names_a_maximum(name: str) -> bool:
    """Return True if a column's name says that its cells are the best possible scores: `max_score`, "Out of"."""
    words = words_of(name)
    of_scores = _SCORE_WORDS | {"scores", "points", "scale"}
    most = words & {"max", "maximum", "possible"} and words & of_scores
    return bool(most) or words == {"out", "of"}


def text_like(records: Records, name: str) -> bool:
    """Return True if most cells of a column are texts of a few words, or structures."""
    cells = [cell for record in records if not unrated(cell := record.get(name))]
    texts = [
        c
        for c in cells
        if isinstance(c, list | dict) or (isinstance(c, str) and word_count(c) >= 3)
    ]
    return bool(cells) and len(texts) * 2 >= len(cells)


def names_a_fault(name: str) -> bool:
    """Return True if a name is of something better absent: "hallucination", "Is it toxic?", not "no errors"."""
    words = words_of(name)
    return bool(words & _NAMES["fault"]) and not words & _NAMES["no_fault"]
