"""Checks of a judge whose scores stand in the rows, as they are and after each change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...agreement.correlation import Vector
from ...datasets.sheet import Outputs as File
from ...errors import LabelsError, OptionError
from ...evaluating.columns import column_scores
from ...programs.readings.bindings.columns import Column
from .rows import PLAIN, leave_out


@dataclass
class Recorded:
    """Scores in the rows, by check, as shares of the scale.

    words: whether they were words, such as pass and fail, so that each value is a decision of its own.
    """

    name: str
    columns: dict[str, Vector]
    left: dict[str, str]
    notes: list[str]
    column: Column
    words: bool = False

    def categories(self, check: str) -> list[str | None]:
        """Return the decision of each row, None if there is none or the scores are numbers."""
        values = self.columns[check].tolist()
        return [f"{x:g}" if self.words and x == x else None for x in values]


def read_recorded(
    target: str, file: File, wanted: Mapping[str, bool], given: Mapping[str, str]
) -> Recorded:
    """Read the recorded scores that the checks need.

    Raises:
        OptionError: If a check lacks its column.
        LabelsError: If there is no such column.
    """
    column, values, words = read_column(file, Column.of(target), "JUDGE")
    result = Recorded(column.name, {PLAIN: values}, {}, [words], column, bool(words))
    for check, named in wanted.items():
        if check == "own":
            continue
        if check not in given:
            reason = f"a recorded judge is not asked; name its scores after the change: --recorded {check}=COLUMN"
            leave_out(check, reason, named=named, left=result.left)
            continue
        spec = Column.of(given[check])
        if math.isnan(spec.worst):
            spec = replace(column, name=spec.name)
        _, result.columns[check], words = read_column(
            file, spec, f"--recorded {check}="
        )
        if check == "swapped" and words:
            raise OptionError(
                f"--recorded swapped={spec.name}: words leave open whether A is the first place or the same output; "
                "write numbers in both columns: 1 for the row's output, 0.5 for a tie, 0 for the other"
            )
    return result


def read_column(file: File, column: Column, what: str) -> tuple[Column, Vector, str]:
    """Return a column on its scale, its values as shares of that, and the reading of its words ("" for numbers)."""
    if all(column.name not in record for record in file.records):
        try:
            column.cell(file.records[0])
        except OptionError:
            listed = ", ".join(file.names()[:20])
            raise OptionError(
                f"{what} {column.name}: neither a file of a saved judge, a method, nor a column of {file.origin}; its "
                f"columns are {listed}"
            ) from None
    if column.steps:
        orders = {column.name: tuple(step[0] for step in column.steps)}
        file = replace(file, orders=orders)
    scores, marks, words = column_scores(file, column.name, [column.name])
    if np.isnan(scores).all():
        raise LabelsError(f"{file.origin}: column {column.name!r} has no score in it")
    if marks.values:
        low, high = min(marks.levels), max(marks.levels)
        spread = (high - low) or 1.0
        return column, (scores - low) / spread, f"{column.name} is read as {words}"
    scale = column.with_ends(scores.tolist())
    percents = [scale.percent(x) if x == x else math.nan for x in scores.tolist()]
    return scale, np.array(percents) / 100, ""
