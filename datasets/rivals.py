"""Columns that could be human ratings as well as the one that was taken: asked about, or named.

A column is taken without a question if its name is "score" or says that people gave it, or if nothing else looks like
ratings. What was taken by a word in its name, or by its values, is said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from judgesmith.datasets.columns import Columns
from judgesmith.datasets.meanings import (
    Candidates,
    are_shares,
    candidates,
    holds_ratings,
    names_a_person,
    speaks_of_machine,
)
from judgesmith.datasets.roles import is_score, named_score
from judgesmith.datasets.row import OVERALL
from judgesmith.errors import LabelsError

_SHOWN = 6  # columns in one message

#: What a shell takes as one word.
_PLAIN = re.compile(r"[\w.=-]+")

Records = Sequence[Mapping[str, Any]]


def refuse_rivals(
    columns: Columns,
    records: Records,
    names: Sequence[str],
    option: str = "--columns score=",
) -> list[str]:
    """Return notes on the ratings that were taken where nobody named them.

    Args:
        columns: The roles of the columns.
        records: The rows.
        names: The columns that hold no judge's scores.
        option: The option that names human ratings, before the column.

    Raises:
        LabelsError: For another column that could be the ratings as well.
    """
    taken = [] if columns.stated else _taken(columns)
    if not taken:
        return []
    used = {*columns.texts.values(), *taken, columns.objects}
    used |= {name for name, _ in columns.aspects.values()}
    free = [name for name in names if name not in used]
    found = candidates(records, free)
    if rivals := _rivals(taken, found, records):
        raise LabelsError(_question(columns.origin, taken[0], rivals, records, option))
    if _sure(taken) or named_score(taken[0]):
        others = _whole_numbers(found.named, records)
        return _passed_over(columns.origin, taken, others)
    if is_score(taken[0]) or speaks_of_machine(taken[0]):
        return []  # a name that speaks of a machine has a note of its own
    return [
        f"{columns.origin}: the ratings are taken from {taken[0]!r}, by its name or its values; if a machine gave "
        f"them, name people's with {option}NAME"
    ]


def _taken(columns: Columns) -> list[str]:
    """Return the columns of the ratings that are read where the user names no aspect; none where they are objects."""
    if OVERALL in columns.aspects:
        column, raters = columns.aspects[OVERALL]
    elif len(columns.aspects) == 1:
        ((column, raters),) = columns.aspects.values()
    else:
        return []
    return [name for name in (column, *raters) if name is not None]


def _sure(taken: Sequence[str]) -> bool:
    """Return True if columns are surely people's: they have several raters, or their name says it."""
    return len(taken) > 1 or names_a_person(taken[0])


def _rivals(taken: Sequence[str], found: Candidates, records: Records) -> list[str]:
    """Return the columns that could be meant instead of the one that was taken.

    Shares are a metric's rather than a person's, so that they are no rivals of whole numbers, and have more themselves.
    """
    every = [*found.named, *found.certain, *found.whole]
    if _sure(taken):
        return []
    if are_shares(records, taken[0]):
        return every
    if named_score(taken[0]):
        return []
    return _whole_numbers(found.named if is_score(taken[0]) else every, records)


def _whole_numbers(names: Sequence[str], records: Records) -> list[str]:
    return [name for name in names if not are_shares(records, name)]


def _passed_over(origin: str, taken: Sequence[str], others: Sequence[str]) -> list[str]:
    if not others:
        return []
    return [
        f"{origin}: the ratings are those of {_listed(taken)}; {_listed(others)} could be ratings, too, and count for "
        "nothing; name each person's column with --columns rater_score=NAME"
    ]


def _question(
    origin: str, taken: str, rivals: Sequence[str], records: Records, option: str
) -> str:
    if holds_ratings(records, taken):
        names = [taken, *rivals]
        which = " or ".join(_given(option, name) for name in names[:_SHOWN])
        return (
            f"{origin}: columns {_listed(names)} could each be the score; say which with {which}"
            f"{_each(rivals, option)}"
        )
    return (
        f"{origin}: column {taken!r} holds no ratings that can be read, and {_listed(rivals)} could be the score; "
        f"say so with {_given(option, rivals[0])}{_each(rivals, option)}"
    )


def _each(names: Sequence[str], option: str) -> str:
    """Return the options for columns of one person each."""
    if option != "--columns score=" or len(names) < 2:
        return ""
    given = " ".join(_given("--columns rater_score=", name) for name in names[:_SHOWN])
    return f", or each person's with {given}"


def _given(option: str, name: str) -> str:
    """Return an option as it is typed: in quotes, where the column's name has blanks."""
    before, _, role = option.rpartition(" ")
    value = f"{role}{name}"
    return f"{before} {value}" if _PLAIN.fullmatch(value) else f'{before} "{value}"'


def _listed(names: Sequence[str]) -> str:
    shown = list(map(repr, names[:_SHOWN]))
    if len(names) > _SHOWN:
        shown.append(f"{len(names) - _SHOWN} more")
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
