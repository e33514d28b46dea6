"""Checks of a judge whose scores stand in the rows, as they are and after each change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.datasets.marks import Marks
from judgesmith.datasets.sheet import Outputs as File
from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.columns import column_scores, same_categories
from judgesmith.programs.readings.bindings.columns import Column
from judgesmith.rooms.discerning.checking.rows import PLAIN, leave_out

#: The judge's argument, before its value.
JUDGE = "JUDGE "


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
    judge = read_column(file, Column.of(target), JUDGE)
    column = judge.column
    words = judge.words
    values = {PLAIN: judge.values}
    result = Recorded(column.name, values, {}, [words], column, bool(words))
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
        like = (column.name, judge.marks)
        after = read_column(file, spec, f"--recorded {check}=", like)
        if check == "swapped" and after.words:
            raise OptionError(
                f"--recorded swapped={spec.name}: words leave open whether A is the first place or the same output; "
                "write numbers in both columns: 1 for the row's output, 0.5 for a tie, 0 for the other"
            )
        _refuse_other_categories(check, judge, after)
        result.columns[check] = after.values
    return result


def _refuse_other_categories(check: str, judge: Reading, after: Reading) -> None:
    """Raise OptionError for a column whose categories are not the judge's: no decision could be compared."""
    if not judge.words and not after.words:
        return
    if not same_categories(after.marks, judge.marks):
        name = judge.column.name
        other = after.column.name
        raise OptionError(
            f"--recorded {check}={other}: {after.words or f'{other} holds numbers'}, but "
            f"{judge.words or f'{name} holds numbers'}; write both columns in the same words, and name all of them "
            f"with the judge, worst first: '{name}=WORST,…,BEST'"
        )


@dataclass(frozen=True)
class Reading:
    """A column on its scale, its values as shares of that, and the marks of its cells.

    words: the reading of its words as a note, "" for numbers.
    """

    column: Column
    values: Vector
    marks: Marks
    words: str = ""


def read_column(
    file: File, column: Column, what: str, like: tuple[str, Marks] | None = None
) -> Reading:
    """Read a column of recorded scores.

    like: another column and the marks of its cells, which count if this one has only words of that one.
    """
    if all(column.name not in record for record in file.records):
        try:
            column.cell(file.records[0])
        except OptionError:
            listed = ", ".join(file.names()[:20])
            kind = "not a column"
            if what == JUDGE:
                kind = "neither a file of a saved judge, a method, nor a column"
            raise OptionError(
                f"{what}{column.name}: {kind} of {file.origin}; its columns are {listed}"
            ) from None
    if column.steps:
        orders = {column.name: tuple(step[0] for step in column.steps)}
        file = replace(file, orders=orders)
    scores, marks, words = column_scores(file, column.name, [column.name], like)
    if np.isnan(scores).all():
        raise LabelsError(f"{file.origin}: column {column.name!r} has no score in it")
    if marks.values:
        low = min(marks.levels)
        high = max(marks.levels)
        shares = (scores - low) / ((high - low) or 1.0)
        return Reading(column, shares, marks, f"{column.name} is read as {words}")
    scale = column.with_ends(scores.tolist())
    percents = [scale.percent(x) if x == x else math.nan for x in scores.tolist()]
    return Reading(scale, np.array(percents) / 100, marks)
