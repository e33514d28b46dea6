"""Columns of the user's rows as signals: scores of any other judge, or a metric."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ....conversation import parsed
from ....errors import OptionError
from ....rows import is_missing
from ....signatures.values import FARTHEST

_ENDS = re.compile(r"(?P<worst>[+-]?\d+(?:\.\d+)?)\.\.(?P<best>[+-]?\d+(?:\.\d+)?)")
#: Scales that a column without ends is taken to be on, where its values fill half of it.
USUAL = ((0.0, 1.0), (1.0, 5.0), (0.0, 10.0), (0.0, 100.0))
#: The share of its values' extent that lies beyond them on either side, on any other scale.
BEYOND = 0.25


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and the ends of its scale: NaN until they are known. worst above best: lower is better."""

    name: str
    worst: float = math.nan
    best: float = math.nan

    @classmethod
    def of(cls, text: str) -> Self:
        """`gpt4`, or with the ends of its scale `gpt4=1..5`, and `ter=100..0` where lower is better. Raises
        OptionError."""
        name, equals, ends = text.rpartition("=")
        found = _ENDS.fullmatch(ends) if equals else None
        if found is None:
            name, worst, best = text, math.nan, math.nan
        else:
            worst, best = float(found["worst"]), float(found["best"])
        if not name.strip() or worst == best or max(abs(worst), abs(best)) > FARTHEST:
            raise OptionError(
                f"signal {text!r}: write the name of a column, or NAME=WORST..BEST with two different ends, for "
                "example gpt4=1..5, or ter=100..0 where lower is better"
            )
        return cls(name.strip(), worst, best)

    def __str__(self) -> str:
        return self.name if math.isnan(self.worst) else f"{self.name}={self.worst:g}..{self.best:g}"

    def known(self, values: Iterable[float]) -> Column:
        """With ends that these values have room in, where it has none; higher is better then. Raises OptionError where
        there is nothing to tell it from."""
        present = [value for value in values if not math.isnan(value)]
        if not math.isnan(self.worst):
            return self
        if len(set(present)) < 2:
            raise OptionError(
                f"signal {self.name!r} has not two different numbers in these rows; leave it out, or say its scale: "
                f"{self.name}=1..5"
            )
        low, high = min(present), max(present)
        for worst, best in USUAL:
            if worst <= low and high <= best and 2 * (high - low) >= best - worst:
                return replace(self, worst=worst, best=best)
        room = BEYOND * (high - low)
        return replace(self, worst=float(f"{low - room:.6g}"), best=float(f"{high + room:.6g}"))

    def value(self, record: Mapping[str, Any]) -> float:
        """The number that a record has in it: under its name, or as `NAME.KEY` in an object that a column holds. NaN
        for an empty cell, or an object without the key. Raises OptionError for a record without the column, and for
        what is no number."""
        cell = _cell(record, self.name)
        if is_missing(cell):
            return math.nan
        try:
            number = float(cell)
        except (TypeError, ValueError):
            number = math.nan
        if not abs(number) <= FARTHEST:
            raise OptionError(
                f"column {self.name!r}: {str(cell)[:40]!r} is not a number; correct it, or leave it empty"
            )
        return number

    def percent(self, value: float) -> float:
        """0 at the worst end, 100 at the best."""
        return float(np.clip((value - self.worst) * 100.0 / (self.best - self.worst), 0.0, 100.0))


def _cell(record: Mapping[str, Any], name: str) -> Any:
    if name in record:
        return record[name]
    first, dot, rest = name.partition(".")
    inner = parsed(record.get(first)) if dot else None
    if isinstance(inner, Mapping):
        deeper = isinstance(inner.get(rest.partition(".")[0]), Mapping)
        return _cell(inner, rest) if deeper and rest not in inner else inner.get(rest)
    listed = ", ".join(str(column)[:40] for column in list(record)[:20]) or "none"
    raise OptionError(f"there is no column {name!r}, which this judge weighs; the columns are: {listed}")
