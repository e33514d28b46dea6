"""Rows that have a rating, those of several raters of one output as one row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from judgesmith.datasets.columns import Columns
from judgesmith.datasets.marks import Marks, word_set
from judgesmith.datasets.plain import Plain
from judgesmith.datasets.problems import Problem, rows_in_words
from judgesmith.datasets.row import Row
from judgesmith.datasets.statuses import Statuses
from judgesmith.likeness import folded
from judgesmith.rows import as_text

#: Each record as a row, with what is wrong with its scores, by aspect.
Parsed: TypeAlias = Sequence[tuple[Row, Mapping[str, str]]]
#: The place of a record, its row, and who rated it.
_Rating: TypeAlias = tuple[int, Row, str | None]

#: Words before the total or mean below a column of ratings.
_TOTALS = word_set(
    "total sum average avg mean median ø summe gesamt mittelwert durchschnitt mittel somme moyenne promedio suma "
    "media totale"
)


@dataclass(frozen=True)
class Rated:
    """The labelled rows of an aspect."""

    rows: list[Row] = field(default_factory=list)
    skipped: dict[int, str] = field(default_factory=dict)
    """Rows that are no labels, with the reason."""
    problems: list[Problem] = field(default_factory=list)
    raters: set[str] = field(default_factory=set)
    """Who rated; their numbers, where nobody is named."""


def rated_rows(
    plain: Plain, parsed: Parsed, columns: Columns, aspect: str, statuses: Statuses
) -> Rated:
    """Return the labelled rows of an aspect.

    The others are counted as skipped, and unreadable cells are problems. Rows are of one output where source, output,
    context, system and document are equal and somebody is named, or where they have the same id, too. An output may
    stand in several comparisons, and every one is a rating.
    """
    rated = Rated(skipped=dict(plain.skipped), problems=list(plain.problems))
    labelled = []
    for place, (row, wrong) in enumerate(parsed):
        line = plain.lines[place]
        if place in statuses.left and aspect in row.scores:
            rated.skipped[line] = f"a rating {statuses.left[place]}"
        elif aspect in wrong:
            rated.problems.append((line, wrong[aspect]))
        elif aspect not in row.scores:
            unrated = "no rating" if row.output else "no output and no rating"
            rated.skipped[line] = unrated
        elif plain.export is not None and not row.output:
            rated.skipped[line] = "a rating, but no output"
        else:
            labelled.append((place, row))
    if _sums_up([row for _, row in labelled], aspect):
        place, _ = labelled.pop()
        rated.skipped[plain.lines[place]] = "a total or mean of the other ratings"
    for place, _ in labelled:  # another output of the row has no rating
        rated.skipped.pop(plain.lines[place], None)
    for group in _by_output(plain, labelled, columns):
        for _, row, who in group:
            if not row.settled:
                rated.raters.update([who] if who else (), row.raters.get(aspect, ()))
        whole = _one(group)
        if plain.judged_by:
            shares = plain.shares(place for place, _, _ in group)
            whole = replace(whole, columns={**whole.columns, **shares})
        rated.rows.append(whole)
    if not rated.raters:
        most = 1
        if plain.pairs is None:
            ratings = (len(row.ratings.get(aspect, ())) for row in rated.rows)
            most = max(ratings, default=1)
        rated.raters.update(map(str, range(max(1, most))))
    return rated


def outputs_together(
    plain: Plain, parsed: Parsed, columns: Columns
) -> list[tuple[Row, list[int]]]:
    """Return each rated output as one row, with the places of its records; an unrated one is as often there."""
    rows = ((place, row) for place, (row, _) in enumerate(parsed))
    groups: list[list[_Rating]] = []
    for group in _by_output(plain, rows, columns):
        if any(row.scores for _, row, _ in group):
            groups.append(group)
        else:
            groups.extend([rating] for rating in group)
    groups.sort(key=lambda group: group[0][0])
    return [(_one(group), [place for place, _, _ in group]) for group in groups]


def _by_output(
    plain: Plain, rows: Iterable[tuple[int, Row]], columns: Columns
) -> Iterable[list[_Rating]]:
    """Rows with their places, together where they are of one output."""
    of_output: dict[tuple[object, ...], list[_Rating]] = {}
    column = columns.texts.get("rater")
    for place, row in rows:
        name = None if column is None else as_text(plain.records[place].get(column))
        key: tuple[object, ...] = (
            row.source,
            row.output,
            row.context,
            row.reference,
            row.system,
            row.doc_id,
        )
        if name is None and plain.pairs is None:
            key = (*key, row.id)
        of_output.setdefault(key, []).append((place, row, name))
    return of_output.values()


def _one(several: Sequence[_Rating]) -> Row:
    """The rows of one output as one row with every rating; its scores are what was settled last, where it was."""
    rated = [one for one in several if not one[1].settled]
    whole = _together(rated or several)
    if len(rated) == len(several):
        return whole
    scores = dict(whole.scores)
    for _, row, _ in several:
        if row.settled:
            scores |= row.scores
    return replace(whole, scores=scores, settled=True)


def _together(several: Sequence[_Rating]) -> Row:
    """The rows of one output, with their raters, as one row with every rating."""
    _, first, rater = several[0]
    if len(several) == 1:
        if not rater:
            return first
        named = dict.fromkeys(first.scores, (rater,))
        return replace(first, raters=named | dict(first.raters))
    scores: dict[str, float] = {}
    ratings: dict[str, tuple[float, ...]] = {}
    raters: dict[str, tuple[str, ...]] = {}
    aspects = itertools.chain(*(row.scores for _, row, _ in several))
    for aspect in dict.fromkeys(aspects):
        values, names = zip(*_ratings_of(aspect, several), strict=True)
        scores[aspect] = math.fsum(values) / len(values)
        if len(values) > 1:
            ratings[aspect] = values
        if all(names):
            raters[aspect] = names
    comments: dict[str, tuple[str, ...]] = {}
    for _, row, _ in several:
        for name, texts in row.comments.items():
            comments[name] = (*comments.get(name, ()), *texts)
    return replace(
        first, scores=scores, ratings=ratings, raters=raters, comments=comments
    )


def _ratings_of(aspect: str, several: Sequence[_Rating]) -> Iterator[tuple[float, str]]:
    """Yield every rating of an aspect with its rater, "" for an unnamed one."""
    for _, row, name in several:
        if aspect not in row.scores:
            continue
        for place, value in enumerate(row.ratings.get(aspect) or (row.scores[aspect],)):
            own = row.raters[aspect][place] if aspect in row.raters else ""
            yield value, name or own


def _sums_up(rows: Sequence[Row], aspect: str) -> bool:
    """Return True if the last row is no output but the total or mean of the ratings above, as spreadsheets have it."""
    if len(rows) < 3 or rows[-1].source or rows[-1].output.casefold() not in _TOTALS:
        return False
    *ratings, last = (row.scores[aspect] for row in rows)
    whole = (math.fsum(ratings), fmean(ratings), median(ratings))
    return any(abs(last - value) <= 0.05 * max(1, abs(value)) for value in whole)


# -- what is said of raters


def settled(origin: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a note on outputs whose score is one decision, where their raters were split."""
    lines = [row.line for row in rows if row.settled]
    if lines:
        yield (
            f"{origin}: {len(lines)} of {len(rows)} outputs have a settled score (settled_by) in place of the mean of "
            "their raters, whose agreement is still that of their own ratings"
        )


def rated_twice(origin: str, rows: Sequence[Row], aspect: str) -> Iterator[str]:
    """Yield a note on outputs that one person rated more than once, not always alike."""
    twice = []
    for row in rows:
        people = row.raters.get(aspect, ())
        named = zip(people, row.ratings.get(aspect, ()), strict=False)
        distinct = {(who, rating) for who, rating in named if who}
        if len(distinct) > len({who for who, _ in distinct}):
            twice.append(row.id)
    if twice:
        yield (
            f"{origin}: {rows_in_words(twice)}: the same person rated one output more than once, and differently; "
            "every rating counts, so remove those that were replaced"
        )


def opposed(
    origin: str, rows: Sequence[Row], aspect: str, apart: float
) -> Iterator[str]:
    """Yield a note on rows with the same texts whose ratings are further apart than that."""
    first: dict[tuple[str, str], Row] = {}
    pairs = []
    for row in rows:
        texts = folded(row.source).key, folded(row.output).key
        other = first.setdefault(texts, row)
        if abs(other.scores[aspect] - row.scores[aspect]) > apart and other.output:
            pairs.append((other, row))
    if pairs:
        a, b = pairs[0]
        others = len(pairs) - 1
        more = f", and {others} more rows are like that" if others else ""
        yield (
            f"{origin}: rows {a.id} and {b.id} hold the same texts and have opposite ratings, "
            f"{a.scores[aspect]:g} and {b.scores[aspect]:g}{more}; correct one, or let a third person decide"
        )


def split_evenly(
    origin: str, rows: Sequence[Row], aspect: str, marks: Marks
) -> Iterator[str]:
    """Yield a note on rows whose raters are split half and half between two categories."""
    if marks.kind not in ("binary", "category") or not marks.levels:
        return
    levels = np.array(marks.levels)
    split = [row.id for row in rows if undecided(row.scores[aspect], levels)]
    if split:
        yield (
            f"{origin}: raters are split half and half on {len(split)} of {len(rows)} outputs "
            f"({rows_in_words(split)}), which are in neither category and count as half of each; let a third person "
            "decide"
        )


def undecided(score: float, levels: NDArray[np.float64]) -> bool:
    """Return True if a mean rating lies in the middle between two categories."""
    far = np.sort(np.abs(levels - score))
    return len(far) > 1 and bool(np.isclose(far[0], far[1]))
