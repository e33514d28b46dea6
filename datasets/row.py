"""The row that everything else takes: one output with what it was made from and what people gave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

#: The aspect of a score of the output as a whole.
OVERALL = "overall"


@dataclass(frozen=True, slots=True)
class Row:
    """One output of a system, with what it was made from and what people gave it.

    `scores` maps an aspect to its score, the mean where several people rated; `ratings` keeps their single ratings and
    has only the aspects that more than one person rated, and `raters` who rated, in the same order, where the file says
    so. `line` is the row's number in its file, from 1, a header not counted, `columns` its whole record. `doc_id` is
    equal for rows with the same input, `group` for rows that must stay on one side of a split. `suggested`: it was not
    drawn at random, but chosen by `suggest` to be labelled. `comments` is what people wrote of it by aspect, "" where
    they named none. `own_group` is the group of the file where duplicates gave it another.
    """

    id: str
    output: str
    source: str = ""
    context: str | None = None
    reference: str | None = None
    system: str | None = None
    doc_id: str = ""
    group: str = ""
    scores: Mapping[str, float] = field(default_factory=dict, hash=False)
    ratings: Mapping[str, tuple[float, ...]] = field(default_factory=dict, hash=False)
    line: int = 0
    raters: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    suggested: bool = False
    columns: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    comments: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    own_group: str = field(default="", repr=False, compare=False)

    def single(self, aspect: str) -> tuple[float, ...]:
        """Return the single ratings of an aspect, or its score; none if it has no rating."""
        return self.ratings.get(aspect) or (
            (self.scores[aspect],) if aspect in self.scores else ()
        )

    def why(self, aspect: str) -> tuple[str, ...]:
        """People's reasons for the score of an aspect; all that they wrote where that is overall quality."""
        names = self.comments if aspect == OVERALL else (aspect, "")
        return tuple(chain.from_iterable(self.comments.get(name, ()) for name in names))
