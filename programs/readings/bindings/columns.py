"""Columns of the user's rows as signals: scores of any other judge, its verdicts in words, or a metric."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from judgesmith.conversation import parsed
from judgesmith.errors import OptionError
from judgesmith.rows import is_missing
from judgesmith.signatures.values import FARTHEST
from judgesmith.wording import folded

_ENDS = re.compile(r"(?P<worst>[+-]?\d+(?:\.\d+)?)\.\.(?P<best>[+-]?\d+(?:\.\d+)?)")
#: Between the steps of a scale in words, and between words of one step: `no,partly|somewhat,yes`.
_STEP = ","
_SAME = "|"
#: Scales that a column without ends is taken to be on, where its values fill half of it.
USUAL = ((0.0, 1.0), (1.0, 5.0), (0.0, 10.0), (0.0, 100.0))
#: The share of its values' extent that lies beyond them on either side, on any other scale.
BEYOND = 0.25


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and the ends of its scale: NaN until they are known.

    worst above best: lower is better. steps: of a column of words, the words of each step from the worst one, which has
    the number 1.
    """

    name: str
    worst: float = math.nan
    best: float = math.nan
    steps: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, text: str) -> Self:
        """Read `gpt4`, `gpt4=1..5` with its scale's ends, `ter=100..0` if lower is better, or words, `gpt4=fail,pass`.

        Raises:
            OptionError: For any other text.
        """
        name, equals, ends = text.rpartition("=")
        bounds = _ENDS.fullmatch(ends) if equals else None
        steps: tuple[tuple[str, ...], ...] = ()
        if bounds is not None:
            worst = float(bounds["worst"])
            best = float(bounds["best"])
        elif equals and _STEP in ends:
            steps = tuple(
                tuple(map(folded, step.split(_SAME))) for step in ends.split(_STEP)
            )
            worst = 1.0
            best = float(len(steps))
        else:
            name = text
            worst = math.nan
            best = math.nan
        if not name.strip() or worst == best or max(abs(worst), abs(best)) > FARTHEST:
            raise OptionError(
                f"signal {text!r}: write the name of a column, or NAME=WORST..BEST with two different ends, for "
                "example gpt4=1..5, or ter=100..0 where lower is better"
            )
        words = [word for step in steps for word in step]
        if not all(words) or len(set(words)) < len(words):
            raise OptionError(
                f"signal {text!r}: give different words, worst first, for example gpt4=fail,pass"
            )
        return cls(name.strip(), worst, best, steps)

    def __str__(self) -> str:
        if self.steps:
            return f"{self.name}={_STEP.join(_SAME.join(step) for step in self.steps)}"
        if math.isnan(self.worst):
            return self.name
        return f"{self.name}={self.worst:g}..{self.best:g}"

    @property
    def turned(self) -> Column:
        """Return the same column, its best end the worst."""
        if self.steps:
            return replace(self, steps=self.steps[::-1])
        return replace(self, worst=self.best, best=self.worst)

    def with_ends(self, values: Iterable[float]) -> Column:
        """Return the column with ends that these values have room in, if it has none; higher is better then.

        Raises:
            OptionError: If there is nothing to tell them from.
        """
        present = [value for value in values if not math.isnan(value)]
        if not math.isnan(self.worst):
            return self
        if len(set(present)) < 2:
            raise OptionError(
                f"signal {self.name!r} has not two different numbers in these rows; leave it out, or say its scale: "
                f"{self.name}=1..5"
            )
        low = min(present)
        high = max(present)
        for worst, best in USUAL:
            if worst <= low and high <= best and 2 * (high - low) >= best - worst:
                return replace(self, worst=worst, best=best)
        room = BEYOND * (high - low)
        return replace(
            self, worst=float(f"{low - room:.6g}"), best=float(f"{high + room:.6g}")
        )

    def in_words(self, steps: Sequence[Sequence[str]]) -> Column:
        """Return a column of words, which stand for these steps, worst first."""
        return replace(
            self, worst=1.0, best=float(len(steps)), steps=tuple(map(tuple, steps))
        )

    def cell(self, record: Mapping[str, Any]) -> Any:
        """Return a record's cell: under the column's name, or as `NAME.KEY` in an object that a column holds.

        Raises:
            OptionError: For a record without the column.
        """
        return _cell(record, self.name)

    def value(self, record: Mapping[str, Any]) -> float:
        """Return the number in a record's cell, or the one that its word stands for.

        NaN for an empty cell, or an object without the key.

        Raises:
            OptionError: For a record without the column, and for a cell that is no number and no word of the scale.
        """
        cell = self.cell(record)
        if is_missing(cell):
            return math.nan
        if self.steps:
            return self._step(cell)
        try:
            number = float(cell)
        except (TypeError, ValueError):
            number = math.nan
        if not abs(number) <= FARTHEST:
            raise OptionError(
                f"column {self.name!r}: {str(cell)[:40]!r} is not a number; correct it, or leave it empty; of words "
                f"say the order: {self.name}=fail,pass"
            )
        return number

    def kept(self, record: Mapping[str, Any]) -> float | str:
        """Return `value`, or for a column of words its word.

        Raises:
            OptionError: As `value`.
        """
        value = self.value(record)
        if not self.steps or math.isnan(value):
            return value
        return self.steps[int(value) - 1][0]

    def _step(self, cell: Any) -> float:
        word = folded(cell)
        for place, step in enumerate(self.steps, 1):
            if word in step:
                return float(place)
        words = ", ".join(step[0] for step in self.steps)
        raise OptionError(
            f"column {self.name!r}: {str(cell)[:40]!r} is not one of {words}; correct it, or leave it empty"
        )

    def percent(self, value: float) -> float:
        """0 at the worst end, 100 at the best."""
        return float(
            np.clip((value - self.worst) * 100.0 / (self.best - self.worst), 0.0, 100.0)
        )


def _cell(record: Mapping[str, Any], name: str) -> Any:
    if name in record:
        return record[name]
    first, dot, rest = name.partition(".")
    inner = parsed(record.get(first)) if dot else None
    if isinstance(inner, Mapping):
        deeper = isinstance(inner.get(rest.partition(".")[0]), Mapping)
        return _cell(inner, rest) if deeper and rest not in inner else inner.get(rest)
    listed = ", ".join(str(column)[:40] for column in list(record)[:20]) or "none"
    raise OptionError(
        f"there is no column {name!r}, which this judge weighs; the columns are: {listed}"
    )
