"""Read ratings as people write them, and the scales that names of columns state.

Ratings are numbers, 4/5, stars, thumbs, pass/fail, or words of a rating scale. The cells of a column are read together,
as "good" is the top of bad/ok/good and the middle of poor/good/excellent.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, assert_never, get_args

from judgesmith.datasets.ends import Order, order_of
from judgesmith.datasets.spreadsheets import NUMBER
from judgesmith.errors import OptionError
from judgesmith.rows import is_missing
from judgesmith.wording import folded, plain

Kind = Literal["score", "category", "binary", "preference"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def word_set(words: str, apart: str | None = None) -> frozenset[str]:
    """Return the words of a text as a set.

    Args:
        words: The text.
        apart: The separator; None for white space.
    """
    return frozenset(words.split(apart))


WORDS: dict[str, Any] = tomllib.loads(
    files(__package__).joinpath("marks.toml").read_text(encoding="utf-8")
)
#: Contents of a cell without a rating.
UNRATED = word_set(WORDS["unrated"], "|") | {""}
_TABLES = (WORDS["pairs"], WORDS["ladders"])

#: What says that something is there.
_PRESENT = word_set(WORDS["present"], "|")
#: Words of this many steps, or more, are a score.
_LIKERT = 5
#: More words with their numbers than these are not listed.
_MOST_SHOWN = 12
#: More distinct words than these are not treated as a rating scale.
_MOST_WORDS = 9

#: Numbers with a comma that can be read in one way: where it is decimal, and where it is not.
_DECIMAL = re.compile(r"(?<![\w.,])(\d{1,3}(?:\.\d{3})+|\d+),(\d+)(?![\w.,])", re.ASCII)
_THOUSANDS = re.compile(
    r"(?<![\w.,])\d{1,3}(?:(?:,\d{3})+\.\d+|(?:,\d{3}){2,}|(?:['’]\d{3})+)(?![\w.,])",
    re.ASCII,
)
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}", re.ASCII)
_STARS = re.compile(r"([★⭐🌟✭✮*]*)([☆✩]*)")
_STAR_WORDS = re.compile(r"(\d+) ?stars?", re.ASCII)
_FRACTION = re.compile(
    r"(\d+(?:\.\d+)?) ?(?:/|\u2044|out of|of|von|sur|de|su) ?(\d+)", re.ASCII
)
_PERCENT = re.compile(
    r"([+-]?\d+(?:\.\d+)?) ?(?:%|percent|per cent|pct|prozent)", re.ASCII
)
_UNITS = re.compile(rf"([+-]?\d+(?:\.\d+)?) ?(?:{WORDS['units']})", re.ASCII)
_NUMBERED = re.compile(r"\(?(\d{1,2})\)? ?[-–—:.)=(] ?([^\d\s].*)", re.ASCII)
_DATE = re.compile(
    rf"\d{{1,2}}\.?[-./ ]? ?(?:{WORDS['months']})\.?(?:[-./ ,]{{1,2}}\d{{2,4}})?"  # 5-Apr, 5. April 2026
    rf"|(?:{WORDS['months']})\.?[-./ ]{{1,2}}\d{{1,4}}(?:, ?\d{{2,4}})?"  # Apr-05, April 5, 2026
    r"|\d{1,4}([-./])\d{1,2}\1\d{1,4}(?:[t ]\d.*)?"  # 2026-04-05, 05.04.2026, 4/5/26
    r"|\d{1,2}年?\d{1,2}月(?:\d{1,2}日)?",
    re.ASCII,
)
_BRACKETS = re.compile(
    r"(?P<what>.*?\S)[\s_]*[(\[](?P<inside>[^()\[\]]*)[)\]]\s*[?:*]?\s*", re.DOTALL
)
_RANGE = re.compile(
    r"(?<![\d.])(-?\d{1,3})\s*(?:-|–|—|to|\.\.|bis|/)\s*(\d{1,3})(?![\d.])",
    re.IGNORECASE,
)
_NAMED_ENDS = re.compile(r"(-?\d{1,3})\s*(?:=|:|is|means)\s*([^\d,;]*)", re.IGNORECASE)
_OF_HUNDRED = re.compile(r"\s*(?:in )?(?:%|percent|pct)\s*", re.IGNORECASE)
_OUT_OF = re.compile(r"(?:/|out of)\s*(\d{1,3})", re.IGNORECASE)
_TRAILING = re.compile(
    r"(?P<what>.*?[^\W\d])[\s_]+(?P<inside>-?\d{1,3}\s*(?:-|–|\.\.|_?to_?)\s*\d{1,3}|(?:/|out of)\s*\d{1,3}|(?:in )?%)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Marks:
    """The reading of a column's ratings.

    values: a folded word and its number; empty where cells are numbers. names: the categories, worst first, where there
    are some (of stars and Likert words, where `kind` is score, those that they can be taken for), and `levels` their
    numbers. scale: the one that the marks themselves state (4/5, stars, words), or None. unknown: the words, where most
    cells are words of no known scale. decimal_comma: some cells are numbers with a decimal comma, in a file where that
    is clear. signs: some cells are "+" and some "-", which is also how people say that there is no rating. order: which
    numbers are the better ones by the words beside them. fault: they say whether a fault is there, so that yes may
    be the worse one; `unknown` has them with yes first.
    """

    kind: Kind = "score"
    values: Mapping[str, float] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    scale: tuple[float, float] | None = None
    unknown: tuple[str, ...] = ()
    decimal_comma: bool = False
    signs: bool = False
    order: Order | None = None
    fault: bool = False

    @classmethod
    def of(
        cls,
        cells: Iterable[Any],
        categories: Sequence[str] = (),
        *,
        decimal_comma: bool = False,
    ) -> Marks:
        """Infer the marks from all cells of a column, single ratings each.

        Cells that do not fit are left to `number`, which raises.

        Args:
            cells: The cells.
            categories: The words, worst first, if the user stated them.
            decimal_comma: True if a comma in a number is a decimal one.
        """
        every = list(cells)
        words = Counter(
            word
            for cell in every
            if not unrated(cell) and not is_date(word := folded(cell))
        )
        signs = "+" in words and any(
            isinstance(cell, str) and plain(cell).strip() == "-" for cell in every
        )
        commas = decimal_comma and any(map(_DECIMAL.search, words))
        words = Counter({_word(word, commas): count for word, count in words.items()})
        if signs and not categories:
            marks = cls(signs=True)
        else:
            marks = cls._of_words(words, categories)
        return replace(marks, decimal_comma=commas)

    @classmethod
    def _of_words(cls, words: Counter[str], categories: Sequence[str]) -> Marks:
        if categories:
            return _of_ladder([(name,) for name in categories], tuple(categories))
        if not words:
            return cls()
        ways = (_numbers, _stars, _fractions, _percentages, _points, _numbered, _grades)
        tried = [way(words) for way in ways]
        tried += [_ladder(words, table) for table in _TABLES]
        readings = [marks for marks in tried if marks is not None]
        # What reads most of the cells; of equals the first. The others are problems, a row each.

        def read(marks: Marks) -> int:
            return sum(n for word, n in words.items() if marks.reads(word))

        best = max(readings, key=read, default=cls())
        wordy = not any(map(str.isdigit, "".join(words)))
        few = read(best) * 2 <= sum(words.values()) and len(words) <= _MOST_WORDS
        if few and wordy:
            return cls(unknown=tuple(sorted(words)))
        return best

    def of_fault(self) -> Marks:
        """Return the same ratings for a column that names a fault.

        Words that state its presence do not state which end is better.
        """
        present = self.kind != "score" and folded(self.names[-1]) in _PRESENT
        return Marks(unknown=self.names[::-1], fault=True) if present else self

    def reads(self, word: str) -> bool:
        """Return True if a folded word is one of these ratings."""
        if self.values:
            return word in self.values
        return NUMBER.fullmatch(word) is not None

    def number(self, cell: Any) -> float | None:
        """Return the number of a word, None for a cell that is to be read as a number.

        Raises:
            ValueError: For an unknown word, with a remedy.
        """
        word = _word(folded(cell), self.decimal_comma)
        if self.order == "falling":
            raise ValueError(
                "the words beside the numbers say that lower ones are better, but higher scores must be; "
                "reverse the numbers"
            )
        if word in self.values:
            return self.values[word]
        if self.signs:
            raise ValueError(
                "'+' and '-' can say good and bad, or that there is no rating; write pass and fail"
            )
        if is_date(word):
            raise ValueError(
                f"{_cut(cell)} is a date, perhaps a rating such as 4/5 that a spreadsheet took for one; "
                "format the column as text and type it again"
            )
        if self.decimal_comma and _EITHER.fullmatch(word):
            raise ValueError(
                f"{_cut(cell)} has a point where other cells have a decimal comma; write it with a comma"
            )
        if not self.values:
            return None
        words = ", ".join(self.names or list(self.values)[:8])
        raise ValueError(
            f"{_cut(cell)} is not one of {words}; correct it, or give all words in their order, worst first"
        )

    def shown(self, cells: Iterable[Any]) -> str:
        """Return the meaning of each word, as in `fail = 0 < pass = 1`, in the cells' own spelling; "" for numbers."""
        used: dict[float, list[str]] = {}
        for word in dict.fromkeys(folded(cell) for cell in cells if not unrated(cell)):
            if (number := self.values.get(word)) is not None:
                used.setdefault(number, []).append(word)
        named = dict(zip(self.levels, self.names, strict=True)) if used else {}
        levels = sorted({*used, *named})
        shown = (
            f"{'/'.join(used.get(level) or [named[level]])} = {level:g}"
            for level in levels
        )
        if len(levels) <= _MOST_SHOWN:
            return " < ".join(shown)
        return f"numbers from {levels[0]:g} to {levels[-1]:g}"

    def plain(self, cell: Any) -> Any:
        """Return a cell with other digits or with commas as the number that it is; any other unchanged."""
        word = _word(folded(cell), self.decimal_comma) if isinstance(cell, str) else ""
        return word if NUMBER.fullmatch(word) else cell


def pointed(cell: Any) -> Any:
    """Return a text with points for decimal commas."""
    return _word(plain(cell), True) if isinstance(cell, str) else cell


def unrated(cell: Any) -> bool:
    """Return True if a cell holds no rating: empty, NaN, or a word such as n/a."""
    return is_missing(cell) or (
        isinstance(cell, str) and plain(cell).strip().casefold() in UNRATED
    )


def is_date(word: str) -> bool:
    """Return True if a folded word is a date, as spreadsheets make of 4/5."""
    return _DATE.fullmatch(word) is not None


def _word(word: str, decimal_comma: bool) -> str:
    """A folded word whose numbers have a point for a decimal comma, and nothing between thousands."""
    word = _THOUSANDS.sub(lambda hit: re.sub("[,'’]", "", hit[0]), word)
    if decimal_comma:
        return _DECIMAL.sub(lambda hit: f"{hit[1].replace('.', '')}.{hit[2]}", word)
    return word


@lru_cache(maxsize=4096)
def named_scale(name: str) -> tuple[str, tuple[float, float] | None]:
    """Return a column's name without its scale, and the scale or None: "Rating (1-5)" gives ("Rating", (1, 5))."""
    match = _BRACKETS.fullmatch(name) or _TRAILING.fullmatch(name.strip())
    if match is None:
        return name, None
    inside = match["inside"].replace("_", " ")
    if _OF_HUNDRED.fullmatch(inside):
        return match["what"].strip(" _-:"), (0.0, 100.0)
    ends = [(float(number), word) for number, word in _NAMED_ENDS.findall(inside)]
    if len(ends) >= 2:
        (low, _) = min(ends)
        (high, _) = max(ends)
    elif hit := _RANGE.search(inside):
        low = float(hit[1])
        high = float(hit[2])
    elif hit := _OUT_OF.search(inside):
        high = float(hit[1])
        low = 0.0 if high >= 20 else 1.0
    else:
        return name, None
    return (match["what"].strip(" _-:"), (low, high)) if low < high else (name, None)


def _numbers(words: Counter[str]) -> Marks | None:
    numbers = [float(word) for word in words if NUMBER.fullmatch(word)]
    if not numbers:
        return None
    for low in (0.0, -1.0):
        if len(numbers) == len(words) and set(numbers) == {low, 1.0}:
            return Marks("binary", {}, (f"{low:g}", "1"), (low, 1.0), (low, 1.0))
    return Marks()


def _stars(words: Counter[str]) -> Marks | None:
    """★★★★, ★★☆☆☆, 4 stars."""
    values: dict[str, float] = {}
    longest = 5
    for word in words:
        if (match := _STARS.fullmatch(word.replace(" ", ""))) and match[0]:
            values[word] = float(len(match[1]))
            longest = max(longest, len(match[0]))
        if match := _STAR_WORDS.fullmatch(word):
            values[word] = float(match[1])
    if not values:
        return None
    low = 0 if min(values.values()) < 1 else 1
    high = int(max(longest, *values.values()))
    steps = range(low, high + 1)
    for word in words:
        if NUMBER.fullmatch(word) and low <= float(word) <= high:
            values[word] = float(word)
    names = tuple("★" * step or "no star" for step in steps)
    return Marks("score", values, names, tuple(map(float, steps)), (low, high))


def _fractions(words: Counter[str]) -> Marks | None:
    fractions = {word: match for word in words if (match := _FRACTION.fullmatch(word))}
    tops: Counter[str] = Counter()
    for word, match in fractions.items():
        tops[match[2]] += words[word]
    # another one in some cell is a problem of that cell
    if tops:
        top = tops.most_common(1)[0][0]
    else:
        top = "0"
    if int(top) < 2:
        return None
    values = {
        word: float(match[1]) for word, match in fractions.items() if match[2] == top
    }
    values |= {
        word: float(word)
        for word in words
        if NUMBER.fullmatch(word) and 0 <= float(word) <= float(top)
    }
    low = 0.0 if min(values.values()) < 1 or int(top) >= 20 else 1.0
    return Marks("score", values, scale=(low, float(top)))


def _percentages(words: Counter[str]) -> Marks | None:
    values = {
        word: float(match[1]) for word in words if (match := _PERCENT.fullmatch(word))
    }
    return Marks("score", values, scale=(0.0, 100.0)) if values else None


def _points(words: Counter[str]) -> Marks | None:
    """`5 points`."""
    values = {
        word: float(match[1]) for word in words if (match := _UNITS.fullmatch(word))
    }
    values |= {word: float(word) for word in words if NUMBER.fullmatch(word) and values}
    return Marks("score", values) if values else None


def _numbered(words: Counter[str]) -> Marks | None:
    """`4 - Good`, `5 (excellent)`, `1: poor`: a form's numbers with their words."""
    numbers = dict[str, re.Match[str]]()
    plain = dict[str, float]()
    for word in words:
        if match := _NUMBERED.fullmatch(word):
            numbers[word] = match
        elif NUMBER.fullmatch(word):
            plain[word] = float(word)
    if not numbers:
        return None
    values = {word: float(match[1]) for word, match in numbers.items()} | plain
    texts: dict[float, str] = {}
    for word, match in sorted(numbers.items(), reverse=True):
        texts[values[word]] = match[2].strip(" ()")
    least = min(values.values())
    most = max(values.values())
    order = _order(texts)
    match order:
        case "falling":
            return Marks("score", values, order=order)
        case "rising" | "unclear" | None:
            pass
        case _:
            assert_never(order)
    if not 1 <= most - least <= 10:
        return Marks("score", values, order=order)
    levels = tuple(map(float, range(int(least), int(most) + 1)))
    kind: Kind = "score" if len(levels) >= _LIKERT else "category"
    names = tuple(f"{n:g} {texts.get(n, '')}".strip() for n in levels)
    # Categories are shown in their order, worst first, with what becomes of them.
    order = None if kind == "category" and order == "unclear" else order
    return Marks(kind, values, names, levels, order=order)


def _order(texts: Mapping[float, str]) -> Order | None:
    """Return which numbers are the better ones by the words beside them; by a known ladder's where there is one."""
    ends = sorted(texts)
    for ladder in _TABLES:
        marks = _ladder(Counter(texts.values()), ladder)
        values = {} if marks is None else marks.values
        steps = [values[texts[number]] for number in ends if texts[number] in values]
        if len(steps) > 1 and steps == sorted(set(steps)):
            return "rising"
        if len(steps) > 1 and steps == sorted(set(steps), reverse=True):
            return "falling"
    return order_of(texts)


def _grades(words: Counter[str]) -> Marks | None:
    """A, B, C, D, F: marks of a school where somebody has the F. Without it letters may name anything."""
    grades = "fdcba"
    if (
        len(words) < 3
        or "f" not in words
        or not all(len(word) == 1 and word in grades for word in words)
    ):
        return None
    return replace(
        _of_ladder([(grade,) for grade in grades], tuple(grades.upper())), kind="score"
    )


def _ladder(words: Counter[str], ladders: Sequence[Sequence[str]]) -> Marks | None:
    def covered(ladder: Sequence[str]) -> int:
        steps = "|".join(ladder).split("|")
        return sum(words[word] for word in set(map(folded, steps)))

    best = max(ladders, key=lambda ladder: (covered(ladder), -len(ladder)))
    if covered(best) * 2 <= sum(words.values()):
        return None  # most cells say something else: these words are no scale
    steps = [step.split("|") for step in best]
    marks = _of_ladder(steps, tuple(step[0] for step in steps))
    return replace(marks, kind="score") if len(steps) >= _LIKERT else marks


def _of_ladder(steps: Sequence[Sequence[str]], names: tuple[str, ...]) -> Marks:
    if len(steps) < 2 or len({folded(name) for name in names}) < len(names):
        raise OptionError(
            f"--categories: {', '.join(names)}: give two or more different words, worst first"
        )
    first = 0.0 if len(steps) == 2 else 1.0
    levels = tuple(first + n for n in range(len(steps)))
    values = {
        folded(word): level
        for step, level in zip(steps, levels, strict=True)
        for word in step
    }
    kind: Kind = "binary" if len(steps) == 2 else "category"
    return Marks(kind, values, names, levels, (levels[0], levels[-1]))


def _cut(cell: Any) -> str:
    text = repr(cell) if isinstance(cell, str) else str(cell)
    return text if len(text) <= 60 else text[:57] + "…" + text[-1]
