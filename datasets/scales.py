"""The scale of ratings: what states it, what makes it doubtful, and which one is likely.

What is refused here would make a wrong scale, or hide that a rating is none. The reader of labels and that of files to
evaluate call these in one order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from judgesmith.datasets.ends import order_in_name
from judgesmith.datasets.marks import Marks, named_scale
from judgesmith.datasets.meanings import names_a_fault, names_a_maximum
from judgesmith.datasets.problems import Problem, by_column
from judgesmith.datasets.row import Row
from judgesmith.datasets.spreadsheets import NUMBER
from judgesmith.errors import LabelsError

# Scales people use, smallest first. The rare ones are believed only when many rows reach both of their ends: taking
# 1..3 for a 1..5 would cut good outputs off, while taking 1..5 for a 1..3 does no harm to an order.
_COMMON_SCALES = (
    (0.0, 1.0),
    (1.0, 5.0),
    (0.0, 5.0),
    (1.0, 7.0),
    (1.0, 10.0),
    (0.0, 10.0),
    (0.0, 100.0),
)
_RARE_SCALES = ((1.0, 3.0), (1.0, 6.0))
_MANY_ROWS = 30
_LEAST_OF_100 = 25.0  # 0..100 is no plausible scale for scores that all lie below this
#: Numbers that surveys have for "no answer", "does not apply" and "do not know".
CODES = frozenset(
    {-1.0, -9.0, -98.0, -99.0, -999.0, -9999.0, 98.0, 99.0, 999.0, 9999.0}
)
#: Ratings by which a rater's scale is known, and more raters than these are a crowd.
_FEW = 5
_CROWD = 5
#: Where a scale stands.
_NAMED = "the column's name"


@dataclass(frozen=True)
class Ratings:
    """People's ratings of an aspect in the rows of a file."""

    origin: str
    """The file, for messages."""
    column: str | None
    """The ratings' column, for messages."""
    rows: Sequence[Row]
    """The labelled rows."""
    aspect: str
    marks: Marks = field(default_factory=Marks)
    """How the cells are read."""

    @property
    def place(self) -> str:
        """The file and the column, for messages."""
        return f"{self.origin}, column {self.column!r}"

    def single(self) -> list[tuple[float, int]]:
        """Return every single rating, or a row's score, with its row."""
        return [
            (value, row.line) for row in self.rows for value in row.single(self.aspect)
        ]

    def every(self) -> Iterator[tuple[float, int]]:
        """Yield scores and single ratings with their rows: a mean can lie on the scale when a rating does not."""
        for row in self.rows:
            if self.aspect in row.scores:
                yield row.scores[self.aspect], row.line
                for value in row.ratings.get(self.aspect, ()):
                    yield value, row.line


def refuse_reversed(ratings: Ratings, *, stated: bool) -> None:
    """Refuse ratings whose lowest one is the best, or may be, by their column's name or the words beside them.

    Args:
        ratings: The ratings.
        stated: True if the user gave the scale, the worst rating first.

    Raises:
        LabelsError: For such ratings.
    """
    values = [value for value, _ in ratings.single()]
    column = ratings.column
    if not column or not values:
        return
    fault = names_a_fault(column)
    marks = ratings.marks
    order, words = order_in_name(column, min(values), max(values), fault=fault) or (
        marks.order,
        dict(zip(marks.levels, marks.names, strict=True)),
    )
    match order:
        case "falling":
            raise LabelsError(
                f"{ratings.place}: its name says that the lowest score is the best, but higher scores must be better; "
                "reverse them and rename the column"
            )
        case "unclear" if not stated:
            ends = [repr(words[n]) for n in sorted(words)[:: max(1, len(words) - 1)]]
            what = "its name does"
            if ends:
                what = f"the marks of its ends ({', '.join(ends)}) do"
            raise LabelsError(
                f"{ratings.place}: {what} not tell whether the highest score is the best; if it is, pass --scale LOW "
                "HIGH, otherwise reverse the scores and rename the column"
            )
        case "unclear" | "rising" | None:
            return
        case _:
            assert_never(order)


def refuse_outliers(ratings: Ratings) -> None:
    """Refuse one or two ratings far above all others: a slip of the keyboard that would become the scale.

    All other ratings (of 50 or more rows: all but 2 %) are whole numbers up to 10.

    Raises:
        LabelsError: For such ratings.
    """
    values = sorted(ratings.single())
    off = max(1, len(values) // 50)
    most = values[-off - 1][0] if len(values) > 2 * off + 5 else math.inf
    far = [(value, line) for value, line in values[-off:] if value > 2 * max(most, 1)]
    whole = all(value == int(value) for value, _ in values[:-off])
    if 2 <= most <= 10 and far and whole:
        raise LabelsError(
            f"{ratings.origin}, row {far[0][1]}, column {ratings.column!r}: {far[0][0]:g} is far from all other "
            f"ratings, which are {values[0][0]:g} to {most:g}; correct it, or pass --scale LOW HIGH if it is right"
        )


def refuse_maxima(
    origin: str, records: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> None:
    """Refuse ratings beside a column that gives each the best possible score, where these differ.

    Raises:
        LabelsError: For such a column.
    """
    for name in filter(names_a_maximum, names):
        cells = {str(record.get(name)).strip() for record in records}
        most = sorted({float(cell) for cell in cells if NUMBER.fullmatch(cell)})
        if len(most) > 1:
            raise LabelsError(
                f"{origin}: by column {name!r} the ratings are on different scales (up to {most[0]:g} and up to "
                f"{most[-1]:g}); bring them to one scale, as shares of their maximum, and remove the column"
            )


def refuse_codes(ratings: Ratings) -> None:
    """Refuse numbers that stand for "no answer" in surveys, such as -99, where they are apart from all other ratings.

    Raises:
        LabelsError: For such numbers.
    """
    values = ratings.single()
    others = [value for value, _ in values if value not in CODES]
    if not others or not 3 <= max(others) <= 100 or min(others) < 0:
        return
    apart = [
        (value, line)
        for value, line in values
        if value in CODES and (value < 0 or value > 2 * max(others))
    ]
    if apart:
        code, line = apart[0]
        raise LabelsError(
            f"{ratings.origin}, row {line}, column {ratings.column!r}: {code:g} often stands for no answer, and all "
            f"other ratings are {min(others):g} to {max(others):g} ({len(apart)} such cells); empty these cells, or "
            "pass --scale LOW HIGH if they are ratings"
        )


def refuse_scales(ratings: Ratings) -> None:
    """Refuse the ratings of raters on different scales, of which nothing is the mean: 1 to 5 beside 0 to 100.

    Raises:
        LabelsError: With the raters and their ranges.
    """
    by_rater: dict[str, list[float]] = {}
    for row in ratings.rows:
        values = row.single(ratings.aspect)
        people = row.raters.get(ratings.aspect, ())
        if not people and len(values) > 1:
            people = tuple(f"rating {place}" for place in range(1, len(values) + 1))
        for who, one in zip(people, values, strict=False):
            by_rater.setdefault(who, []).append(one)
    if len(by_rater) < 2:
        return
    known = {who: values for who, values in by_rater.items() if len(values) >= _FEW}
    narrow = min(known, key=lambda who: max(known[who]), default="")
    for who, given in known.items():
        if _on_other_scales(known[narrow], given, len(by_rater)):
            ranges = " and ".join(
                f"{name!r} ({min(known[name]):g} to {max(known[name]):g})"
                for name in (narrow, who)
            )
            raise LabelsError(
                f"{ratings.place}: the raters {ranges} rate on different scales, and their mean says nothing; bring "
                "them to one scale, or pass --scale LOW HIGH if they are on one"
            )


def _on_other_scales(narrow: list[float], wide: list[float], raters: int) -> bool:
    """Return True if most of the second rater's numbers are beyond the first one's scale, of which all is used.

    Of a crowd some rate only what is bad, so that more has to differ.
    """
    top = max(narrow)
    most = max(wide)
    beyond = sum(value > top for value in wide) * 2 >= len(wide)
    used = len(set(narrow)) > 2 or min(narrow) < min(wide)
    return beyond and used and most >= top * (2 if raters <= _CROWD else 4) and most > 1


def outside(ratings: Ratings, scale: tuple[float, float] | None) -> list[Problem]:
    """Return a problem for each row with ratings that are not on the scale."""
    low, high = scale or (-np.inf, np.inf)
    beyond: dict[int, float] = {}
    least = low
    most = high
    for value, line in ratings.every():
        if not low <= value <= high:
            beyond.setdefault(line, value)
            least = min(least, value)
            most = max(most, value)
    problem = f"is outside {low:g}..{high:g}; pass --scale {least:g} {most:g} or correct the row"
    return [
        (line, f"column {ratings.column!r}: {value:g} {problem}")
        for line, value in beyond.items()
    ]


def refuse_outside(ratings: Ratings, scale: tuple[float, float]) -> None:
    """Refuse ratings that are not on the scale.

    Raises:
        LabelsError: For such ratings.
    """
    ids = {row.line: row.id for row in ratings.rows}
    if problems := by_column(ratings.origin, outside(ratings, scale), ids):
        raise LabelsError(*problems)


def infer_scale(values: NDArray[np.float64], rows: int) -> tuple[float, float]:
    """Return the smallest common scale that holds all values; (min, max) of the values if none is plausible."""
    low = float(values.min())
    high = float(values.max())
    if rows >= _MANY_ROWS and (low, high) in _RARE_SCALES:
        return low, high
    for worst, best in _COMMON_SCALES:
        if worst <= low and high <= best and (best < 100 or high >= _LEAST_OF_100):
            return worst, best
    return low, high


@dataclass(frozen=True)
class ReadScale:
    """The scale of labels, and where it stands; it was inferred if it is not stated."""

    low: float
    high: float
    stated: bool
    place: str | None
    """Where the file states it; None if the user gave it, or it was inferred."""
    notes: tuple[str, ...] = ()


#: A scale, and where the file states it.
Stated = tuple[tuple[float, float] | None, str | None]


def stated_scale(column: str, marks: Marks) -> Stated:
    """Return the scale that the column's name or the marks state, and its place; None if neither does."""
    named = named_scale(column)[1]
    if named is not None and not marks.levels:
        return named, _NAMED
    if marks.values or marks.scale == (-1.0, 1.0):
        return marks.scale, "the ratings"
    return None, None


def read_scale(ratings: Ratings, stated: Stated, *, given: bool) -> ReadScale:
    """Return the scale that is stated, or the likely one with a note.

    Args:
        ratings: The ratings, which are on the stated scale.
        stated: What the user or the file states.
        given: True if the user does.

    Raises:
        LabelsError: For raters on different scales, for numbers that are codes, and for slips of the keyboard.
    """
    scale, place = stated
    if not given:
        refuse_scales(ratings)
    if scale is None:
        refuse_codes(ratings)
        refuse_outliers(ratings)
    values = np.array([value for value, _ in ratings.every()])
    # Shares, whatever the name says of percent.
    if scale == (0.0, 100.0) and place == _NAMED and values.max() <= 1:
        scale = None
        place = None
    if scale is not None:
        return ReadScale(float(scale[0]), float(scale[1]), True, place)
    low, high = infer_scale(values, len(ratings.rows))
    note = (
        f"{ratings.origin}: the scale was inferred as {low:g}..{high:g} from scores between {values.min():g} and "
        f"{values.max():g}; pass --scale LOW HIGH if that is wrong"
    )
    return ReadScale(low, high, False, place, (note,))
