"""The row of a file: an output with what people gave it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from judgesmith.rows import Item, stated

#: The aspect of a score of the output as a whole.
OVERALL = "overall"


def numbered(line: int, row_id: str | None) -> str:
    """Return a row's number for a message, with the id that the file gives it.

    >>> numbered(6, "HD-30005")
    '6 (HD-30005)'
    """
    return str(line) if row_id in (None, str(line)) else f"{line} ({row_id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Item):
    """One output of a system, with what it was made from and what people gave it.

    `scores` maps an aspect to its score, the mean where several people rated; `ratings` keeps their single ratings and
    has only the aspects that more than one person rated, and `raters` who rated, in the same order, where the file says
    so. `line` is the row's number in its file, from 1, a header not counted. `doc_id` is equal for rows with the same
    input, `group` for rows that must stay on one side of a split. `suggested`: it was not drawn at random, but chosen
    by `suggest` to be labelled. `settled`: its scores are what somebody decided, and `ratings` those of its raters.
    `chance` is the probability with which it was drawn to be labelled, NaN where the file
    does not say it. `comments` is what people wrote of it by aspect, "" where they named none. `own_group`
    is the group of the file where duplicates gave it another.
    """

    id: str
    system: str | None = None
    doc_id: str = ""
    group: str = ""
    scores: Mapping[str, float] = field(default_factory=dict, hash=False)
    ratings: Mapping[str, tuple[float, ...]] = field(default_factory=dict, hash=False)
    line: int = 0
    raters: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    suggested: bool = False
    settled: bool = False
    comments: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    own_group: str = field(default="", repr=False, compare=False)
    chance: float = field(default=math.nan, repr=False, compare=False)

    @property
    def number(self) -> str:
        """Its number in the file, with its id if it has one: `6`, `6 (HD-30005)`."""
        return numbered(self.line, self.id)

    def unlabelled(self) -> Item:
        """Return what a judge sees of it: nothing that people said."""
        group = stated(self.group or self.doc_id or None, self.source, self.output)
        return Item(
            self.output, self.source, self.context, self.reference, group, self.columns
        )

    def single(self, aspect: str) -> tuple[float, ...]:
        """Return the single ratings of an aspect, or its score; none if it has no rating."""
        return self.ratings.get(aspect) or (
            (self.scores[aspect],) if aspect in self.scores else ()
        )

    def why(self, aspect: str) -> tuple[str, ...]:
        """People's reasons for the score of an aspect; all that they wrote where that is overall quality."""
        names = self.comments if aspect == OVERALL else (aspect, "")
        return tuple(chain.from_iterable(self.comments.get(name, ()) for name in names))
