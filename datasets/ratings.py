"""Cells with ratings: a number, a list of numbers, or an object of them by rater."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from judgesmith.datasets.marks import Marks, unrated
from judgesmith.datasets.meanings import (
    parts_of,
)
from judgesmith.datasets.spreadsheets import NUMBER

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
#: Up to here sums, differences and squares of scores are finite, and differences of 0.001 are kept.
LARGEST_SCORE = 1e12


def read_ratings(value: Any, marks: Marks | None = None) -> list[tuple[str, float]]:
    """Return (rater, rating) for each rating in one cell: a number, a list of numbers, or an object {rater: number}.

    Absent ratings are left out.

    Args:
        value: The cell.
        marks: The meaning of words.

    Raises:
        ValueError: For an unreadable rating, with a remedy.
    """
    read = marks or Marks()
    return [
        (
            rater,
            _number(read.plain(part))
            if (number := read.number(part)) is None
            else number,
        )
        for rater, part in parts_of(value)
        if not unrated(part)
    ]


def _number(value: Any) -> float:
    if isinstance(value, (bool, np.bool_)):
        raise ValueError(
            f"{str(value).lower()} is not a number; write 1 for true and 0 for false, or remove the row"
        )
    if isinstance(value, str):
        text = value.strip()
        if _DECIMAL_COMMA.fullmatch(text):
            if not _THOUSANDS.fullmatch(text):
                other = " or two ratings"
            else:
                other = f" or stand for {text.replace(',', '')}"
            raise ValueError(
                f"{value!r} could be a decimal comma{other}; write {text.replace(',', '.')}"
            )
        if not NUMBER.fullmatch(text):
            raise ValueError(
                f"{value!r} is not a number; write a number or remove the row"
            )
        value = text
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{value!r} is not a number; write a number or remove the row"
        ) from None
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(
            f"{value!r} is not a finite number; write a number or remove the row"
        )
    if abs(number) > LARGEST_SCORE:
        raise ValueError(
            f"{number:g} is larger than any score ({LARGEST_SCORE:g} at most); correct it or remove the row"
        )
    return number
