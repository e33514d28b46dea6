"""Columns of several raters, by a name that they share: score and score_2, pandas' rating and rating.1, Score (2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from judgesmith.datasets.marks import named_scale
from judgesmith.datasets.meanings import holds_ratings
from judgesmith.rows import folded_name, named_roles

#: Columns of single raters, whatever else the file has.
_RATER = re.compile(
    r"(?:rater|annotator|worker|human|score|rating)[ _.-]?\d+|(?:rater|annotator|reviewer|labell?er|expert)[ _.-][a-h]",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"(?P<stem>.*[^\W\d_][)\]]?|.*[)\]])[\s_.#-]*[(\[]?#?(?P<number>\d{1,2})[)\]]?"
)
_SCORES = frozenset[str]().union(*named_roles("ratings")["score"])
_PEOPLE = frozenset(
    ["rater", "annotator", "worker", "reviewer", "labeler", "labeller", "expert"]
)


def rater_columns(
    names: Sequence[str], records: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Return the columns with a rater's score each, in the order of the file; none of a single column.

    A column without a number beside numbered ones is a rater's, too, unless it sums them up.

    Args:
        names: The columns without another role.
        records: The rows, by which ratings are known.
    """
    families: dict[str, dict[int, str]] = {}
    for name in names:
        stem, number = _parts(name)
        families.setdefault(stem, {}).setdefault(number, name)
    found = {name for name in names if _RATER.fullmatch(name.strip())}
    for stem, columns in families.items():
        numbered = [name for number, name in columns.items() if number >= 0]
        bare = columns.get(-1)
        several = len(numbered) + (bare is not None) > 1
        if not numbered or not several or stem not in _SCORES | _PEOPLE:
            continue
        if all(holds_ratings(records, name) for name in columns.values()):
            found.update(numbered)
            if bare is not None and not _sums_up(records, bare, numbered):
                found.add(bare)
    return tuple(name for name in names if name in found)


def _parts(name: str) -> tuple[str, int]:
    """Return a name without its number, and the number, -1 without one."""
    bare = named_scale(name)[0].strip()
    match = _NUMBERED.fullmatch(bare)
    stem, number = (match["stem"], int(match["number"])) if match else (bare, -1)
    return folded_name(named_scale(stem)[0]), number


def _sums_up(
    records: Sequence[Mapping[str, Any]], bare: str, numbered: Sequence[str]
) -> bool:
    """Return True if a column is what several numbered ones came to: never beyond them, and often their mean or median.

    Of one other column nothing is a mean.
    """
    if len(numbered) < 2:
        return False
    cells = (_numbers(record, [bare, *numbered]) for record in records)
    rated = [row for row in cells if len(row) > 2]
    within = sum(min(row[1:]) <= row[0] <= max(row[1:]) for row in rated)
    mean = sum(
        any(abs(row[0] - middle(row[1:])) < 0.51 for middle in (fmean, median))
        for row in rated
    )
    return within == len(rated) and mean * 2 >= len(rated)


def _numbers(record: Mapping[str, Any], names: Sequence[str]) -> list[float]:
    """Return the numbers of a record in these columns; none where the first holds no number."""
    numbers = []
    for name in names:
        try:
            numbers.append(float(str(record.get(name))))
        except ValueError:
            if not numbers:
                return []
    return numbers
