"""Annotations that were rejected, skipped or not finished, by a column of their status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judgesmith.datasets.marks import unrated, word_set
from judgesmith.datasets.meanings import words_of
from judgesmith.wording import folded

#: The column's name has one of the first, and otherwise the last (`AssignmentStatus`, `ASSIGNMENT:status`, `status`).
_STATUS = word_set("status")
_OF_ANNOTATION = word_set(
    "annotation annotator assignment hit submission response label labeling labelling rating review task answer worker "
    "survey record item judgement judgment"
)
_REJECTED = word_set(
    "rejected reject discarded discard draft skipped skip ignored ignore"
)
_ACCEPTED = word_set(
    "approved approve accepted accept submitted completed complete finished done validated valid ok"
)
_OPEN = word_set("pending active open reviewed unreviewed expired returned abandoned")


def status_columns(
    records: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> list[str]:
    """Return the columns that state of each annotation how it ended.

    Every word in them is one of annotation tools', and some annotations were accepted.
    """
    return [name for name in names if _is_status(name) and _ends(records, name)]


def _is_status(name: str) -> bool:
    words = words_of(name)
    return bool(words & _STATUS) and words <= _STATUS | _OF_ANNOTATION


def _ends(records: Sequence[Mapping[str, Any]], name: str) -> bool:
    cells = (record.get(name) for record in records)
    words = {folded(cell) for cell in cells if not unrated(cell)}
    return bool(words & _ACCEPTED) and words <= _REJECTED | _ACCEPTED | _OPEN


def rejected(cell: Any) -> bool:
    """Return True if a status says that the annotation does not count."""
    return folded(cell) in _REJECTED
