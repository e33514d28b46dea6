"""Reviewers on separate rows: their rows of one output become one, with every rating and its rater kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from .records import Row


def merged_raters(rows: Sequence[Row], names: Sequence[str | None], aspect: str) -> list[Row]:
    """One row an output, in the order of the first of each. names: who rated each row, None where that is not given.

    Rows are of one output where source, output, context, system and document are equal and somebody is named, or where
    they have the same id, too.
    """
    found: dict[tuple[object, ...], list[int]] = {}
    for place, row in enumerate(rows):
        texts = (row.source, row.output, row.context, row.reference, row.system, row.doc_id)
        key = texts if names[place] is not None else (*texts, row.id)
        found.setdefault(key, []).append(place)
    return [_one([rows[i] for i in places], [names[i] for i in places], aspect) for places in found.values()]


def _one(rows: Sequence[Row], names: Sequence[str | None], aspect: str) -> Row:
    """The rows of one output as one."""
    first = rows[0]
    given = [
        (value, name or (row.raters.get(aspect, ())[place] if aspect in row.raters else ""))
        for row, name in zip(rows, names, strict=True)
        for place, value in enumerate(row.ratings.get(aspect) or (row.scores[aspect],))
    ]
    if len(rows) == 1:
        return replace(first, raters={**first.raters, aspect: (names[0],)}) if names[0] else first
    values = tuple(value for value, _ in given)
    who = tuple(name for _, name in given)
    return replace(
        first,
        scores={**first.scores, aspect: math.fsum(values) / len(values)},
        ratings={**first.ratings, aspect: values},
        raters={**first.raters, aspect: who} if all(who) else first.raters,
    )
