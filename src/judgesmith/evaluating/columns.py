"""A judge's column: its cells as numbers, words by the one rule that people's labels are read by, and its reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.decisions import nearest_places
from judgesmith.conversation import parsed
from judgesmith.datasets.marks import Marks, unrated, word_set
from judgesmith.datasets.meanings import names_a_fault, parts_of
from judgesmith.datasets.orders import order_of, read_marks, refuse_unordered
from judgesmith.datasets.sheet import Outputs as File
from judgesmith.errors import LabelsError
from judgesmith.evaluating.sources import inside, read_cell
from judgesmith.rows import as_text
from judgesmith.wording import folded

#: What a column, or a key beside a score, is called that holds a judge's reason.
_REASONS = word_set(
    "reason reasons reasoning explanation rationale justification comment feedback why"
)


def column_scores(
    file: File, column: str, names: Sequence[str], like: tuple[str, Marks] | None = None
) -> tuple[Vector, Marks, str]:
    """Return a score for each row of a file, NaN where its cell has none, the marks of the cells, and these in words.

    column: a column, or a path. names: what else the user may call it. like: what people rated, and the marks of their
    ratings, which count if a judge uses their words.

    Raises:
        LabelsError: If a cell cannot be read, or only the user knows the words' order.
    """
    cells = [inside(record, column) for record in file.records]
    single = [part for cell in cells for _, part in parts_of(cell)]
    if isinstance(file.orders, Mapping):
        order = order_of(file.orders, column, *names)
    else:
        order = ()
    marks = read_marks(
        [column], single, order, decimal_comma=file.decimal_comma, numbers=True
    )
    where = f"{file.origin}, column {column!r}"
    if not order and like is not None and _in_their_words(single, marks, *like):
        _refuse_opposite(where, column, single, marks, *like)
        marks = like[1]
    if file.compared and marks.unknown:
        raise LabelsError(
            f"{where}: its words do not say which output is better; write A, B or tie, and name the column for a "
            f"choice, such as {column}_winner"
        )
    refuse_unordered(where, column, marks)
    scores = np.full(len(cells), np.nan)
    for i, (row, cell) in enumerate(zip(file.rows, cells, strict=True)):
        if numbers := read_cell(file.origin, row.number, column, cell, marks):
            scores[i] = sum(numbers) / len(numbers)
    return scores, marks, marks.shown(single)


def _in_their_words(
    cells: Iterable[Any], marks: Marks, aspect: str, like: Marks
) -> bool:
    """Return whether a judge says what people say, and nothing else. Yes to a fault is no yes to anything else."""
    words = {folded(cell) for cell in cells if not unrated(cell)}
    wordy = bool(marks.values or marks.unknown) and bool(like.values)
    return (
        wordy
        and words <= like.values.keys()
        and (not marks.fault or names_a_fault(aspect))
    )


def _refuse_opposite(
    where: str,
    column: str,
    cells: Iterable[Any],
    own: Marks,
    aspect: str,
    theirs: Marks,
) -> None:
    """Raise LabelsError where words are better in human ratings that are worse by themselves."""
    words = sorted(
        {folded(cell) for cell in cells if not unrated(cell)},
        key=lambda word: theirs.values[word],
    )
    worst = words[0]
    best = words[-1]
    if own.values and own.values[worst] > own.values[best]:
        raise LabelsError(
            f"{where}: {best!r} is the better word in the ratings of {aspect!r}, and the worse one otherwise; say "
            f'which it is here, the worst first: --scale "{column}={worst},{best}" or --scale "{column}={best},{worst}"'
        )


def same_categories(marks: Marks, other: Marks) -> bool:
    """Return True if words are the categories of other marks, or both pass or fail."""
    both = len(marks.levels) == 2 and other.kind == marks.kind == "binary"
    words = bool(marks.values and marks.names)
    return words and (both or marks.names == other.names)


def places_like(scores: Vector, marks: Marks, people: Marks | None) -> Vector | None:
    """Return each row's category number, NaN if there is none, of a judge that decides as people do.

    It decides in their words, or between two as they do; None for another judge.
    """
    if people is None or not same_categories(marks, people):
        return None
    places = np.full(len(scores), np.nan)
    rated = ~np.isnan(scores)
    places[rated] = nearest_places(scores[rated], marks.levels)
    return places


def column_reasons(
    records: Sequence[Mapping[str, Any]], names: Sequence[str], column: str
) -> list[str]:
    """Return the judge's reasons beside its score, one per row; "" if there is none.

    They are in a column named after the score's, with a word such as reason (`gpt4_reason`), or under such a key beside
    it.
    """
    paths = _reason_paths(records, names, column)
    if not paths:
        return [""] * len(records)
    reasons = []
    for record in records:
        text = as_text(inside(record, paths[0])) or ""
        reasons.append(" ".join(text.split()))
    return reasons


def _reason_paths(
    records: Sequence[Mapping[str, Any]], names: Sequence[str], column: str
) -> list[str]:
    """Return the paths that may hold reasons: below the score's, else columns named after it, else keys beside it."""
    below = [f"{column}.{key}" for key in _reason_keys(records, column)]
    if below:
        return below
    own = _words(column)
    paths = []
    for name in names:
        words = _words(name)
        if own < words and words - own <= _REASONS:
            paths.append(name)
    parent, _, key = column.rpartition(".")
    if parent:
        beside = _reason_keys(records, parent)
        paths += [f"{parent}.{name}" for name in beside if name != key]
    return paths


def _reason_keys(records: Sequence[Mapping[str, Any]], path: str) -> list[str]:
    """Return the keys of the objects at a path that are named like reasons."""
    keys: dict[str, None] = {}
    for record in records:
        value = parsed(inside(record, path))
        if isinstance(value, Mapping):
            keys.update(dict.fromkeys(map(str, value)))
    return [key for key in keys if _words(key) & _REASONS]


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z]+|\d+", name.casefold()))
