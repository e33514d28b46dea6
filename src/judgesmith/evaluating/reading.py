"""How a file was read: what is taken for what, what else looks like a rating, and which rows are left out, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.datasets.meanings import candidates, language_columns
from judgesmith.datasets.roles import ROLES, written
from judgesmith.datasets.row import OVERALL
from judgesmith.datasets.sheet import Outputs as File

#: Columns, and rows, that one line names.
SHOWN = 6


@dataclass(frozen=True)
class Reading:
    """What was taken from a file."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """Columns of the texts and ids, by role."""
    ratings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Columns of the human ratings, by aspect."""
    judges: tuple[str, ...] = ()
    """The judges: columns, verdicts or saved judges."""
    rivals: tuple[str, ...] = ()
    """Columns that look like ratings, too, and are not used."""
    rest: tuple[str, ...] = ()
    """Other columns that are not used."""
    languages: tuple[str, ...] = ()
    """Columns that may say the language of a row."""
    split: tuple[str, ...] = ()
    """Columns that the agreement is split by."""
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Ids of rows that do not count, by the reason."""

    def lines(self) -> Iterator[str]:
        """Yield it in words, a line each."""
        order = sorted(self.texts, key=list(ROLES).index)
        roles = [f"{role} from {self.texts[role]!r}" for role in order]
        people = [
            f"human ratings from {_some([repr(name) for name in columns])}"
            for columns in self.ratings.values()
        ]
        judges = f"judge {_some(self.judges)}"
        yield f"Read: {_some([*people, judges, *roles])}."
        if self.rivals:
            named = _some([repr(name) for name in self.rivals])
            yield f"Not used, but could be ratings: {named}; --human or --judge takes them."
        if self.split:
            split = _some([repr(name) for name in self.split])
            yield f"Agreement is split by {split} at the end; --slices names other columns, or none."
        elif self.languages:
            named = _some([repr(name) for name in self.languages])
            yield f"May be languages: {named}; --slices splits the agreement by one."
        rest = [repr(name) for name in self.rest if name not in self.split]
        if rest:
            yield f"Not used: {_some(rest)}."
        for reason, ids in self.left_out.items():
            rows = "row" if len(ids) == 1 else "rows"
            yield f"Left out: {len(ids)} {rows} {reason} ({_some(ids)})."

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "texts": dict(self.texts),
            "ratings": {name: list(own) for name, own in self.ratings.items()},
            "judges": list(self.judges),
            "look_like_ratings": list(self.rivals),
            "not_used": [name for name in self.rest if name not in self.split],
            "languages": list(self.languages),
            "split": list(self.split),
            "left_out": {reason: list(ids) for reason, ids in self.left_out.items()},
        }


def reading(
    file: File,
    aspects: Sequence[str],
    judges: Sequence[str],
    columns: Mapping[str, str],
) -> Reading:
    """Return how a file was read.

    Args:
        file: The file of the human ratings.
        aspects: The aspects of the human ratings.
        judges: The judges' names.
        columns: The column of each judge that is one.
    """
    ratings: dict[str, tuple[str, ...]] = {}
    if file.winner:
        ratings[OVERALL] = (file.winner,)
    for aspect in aspects if not file.compared else ():
        column, raters = file.columns.aspects.get(aspect, (None, ()))
        own = tuple(name for name in (column, *raters) if name is not None)
        ratings[aspect] = own or (file.columns.objects or aspect,)
    taken = {*file.columns.texts.values(), *columns.values()}
    taken |= {name for own in ratings.values() for name in own}
    if file.compared:  # a share of comparisons won, which no file has
        taken.add("score")
    free = [name for name in file.names() if name not in taken]
    found = candidates(file.records, free)
    rivals = [*found.named, *found.certain, *found.whole]
    ours = written(file.names())
    rest = [name for name in free if name not in rivals and name not in ours]
    return Reading(
        dict(file.columns.texts),
        ratings,
        tuple(_shown(name, columns) for name in judges),
        tuple(name for name in free if name in rivals),
        tuple(rest),
        () if file.compared else tuple(language_columns(file.records, rest)),
    )


def _shown(judge: str, columns: Mapping[str, str]) -> str:
    column = columns.get(judge, judge)
    return repr(judge) if column == judge else f"{judge!r} from {column!r}"


def left_out(
    human: Mapping[str, Vector],
    judges: Mapping[str, Mapping[str, Vector]],
    ids: Sequence[str],
) -> dict[str, list[str]]:
    """Return the rows that do not count, by the reason.

    human: ratings by aspect, judges: scores by judge and aspect; NaN where there is none.
    """
    found: dict[str, list[str]] = {}
    for aspect, ratings in human.items():
        unrated = np.isnan(ratings)
        about = f" of {aspect}" if len(human) > 1 else ""
        _add(found, f"without a human rating{about}", unrated, ids)
        for judge, by_aspect in judges.items():
            scores = by_aspect.get(aspect)
            if scores is not None:
                lacking = np.isnan(scores) & ~unrated
                _add(found, f"that {judge} gave no verdict on{about}", lacking, ids)
    return found


def _add(
    found: dict[str, list[str]], reason: str, mask: Any, ids: Sequence[str]
) -> None:
    if mask.any():
        found[reason] = [ids[i] for i in np.flatnonzero(mask).tolist()]


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    shown = ", ".join(names[:SHOWN])
    more = len(names) - SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
