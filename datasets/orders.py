"""The order of a column's words: what the user said, else the obvious one.

People's labels, a judge's verdicts and signals are read by `read_marks` alike; words that can be read in two ways are
refused with the way out, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from judgesmith.datasets.marks import Marks, pointed, unrated
from judgesmith.datasets.meanings import names_a_fault
from judgesmith.datasets.spreadsheets import NUMBER
from judgesmith.errors import LabelsError, OptionError
from judgesmith.wording import folded, plain

#: Words in their order, worst first: of all columns, or by the name of a column, an aspect or a judge.
Orders = Sequence[str] | Mapping[str, Sequence[str]]
FORM = "NAME=WORST,…,BEST"


def parse_orders(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Read `gpt4=very poor,poor,fair,good,excellent`.

    >>> parse_orders(["gpt4 = fail, pass"])
    {'gpt4': ('fail', 'pass')}

    Raises:
        OptionError: For a text that is not of this form.
    """
    result: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        words = tuple(word.strip() for word in rest.split(","))
        if not equals or not name.strip():
            raise OptionError(
                f"--scale {text!r} is not of the form {FORM}, such as gpt4=fail,pass"
            )
        if (
            len(words) < 2
            or not all(words)
            or len(set(map(folded, words))) < len(words)
        ):
            raise OptionError(
                f"--scale {text!r}: give two or more different words, the worst first"
            )
        if name.strip() in result:
            raise OptionError(
                f"--scale {text!r}: the order of {name.strip()!r} is said twice; leave one out"
            )
        result[name.strip()] = words
    return result


def order_of(orders: Orders, *names: str | None) -> tuple[str, ...]:
    """Return the words of a column that has one of these names, () if it has no order."""
    if not isinstance(orders, Mapping):
        return tuple(orders)
    by_name = {folded(name): tuple(words) for name, words in orders.items()}
    return next(
        (by_name[folded(name)] for name in names if name and folded(name) in by_name),
        (),
    )


def check_orders(orders: Orders, columns: Iterable[str]) -> None:
    """Check that every order is of a known column.

    Raises:
        OptionError: For an order of an unknown one.
    """
    names = list(dict.fromkeys(columns))
    here = set(map(folded, names))
    for name in orders if isinstance(orders, Mapping) else ():
        if not here & {folded(name), folded(name.split(".")[0])}:
            raise OptionError(
                f"--scale {name}=…: there is no such column or judge; there are {', '.join(names)}"
            )


def read_marks(
    names: Sequence[str | None],
    cells: Iterable[Any],
    order: Sequence[str] = (),
    *,
    decimal_comma: bool = False,
    numbers: bool = False,
) -> Marks:
    """Return the marks by which the cells of one column are read, single ratings each.

    If a name is that of a fault, the words for yes and no are left `unknown`.

    Args:
        names: Names of the column, and of the aspect it rates.
        cells: Its cells.
        order: The words, worst first, if the user stated them.
        decimal_comma: True if a comma in a number is a decimal one.
        numbers: True if a column of nothing but numbers holds scores, and 0 and 1 are no decision.
    """
    every = list(cells)
    if (
        numbers
        and not order
        and all(_is_number(cell, decimal_comma) for cell in every if not unrated(cell))
    ):
        return Marks(decimal_comma=decimal_comma)
    marks = Marks.of(every, order, decimal_comma=decimal_comma)
    if not order and any(names_a_fault(name) for name in names if name):
        return marks.of_fault()
    return marks


def refuse_unordered(
    where: str, name: str, marks: Marks, option: str = "--scale"
) -> None:
    """Refuse words whose order, or better end, only the user knows.

    Args:
        where: File and column.
        name: The column's name.
        marks: Its marks.
        option: The option that states the order.

    Raises:
        LabelsError: For such words.
    """
    words = ",".join(marks.unknown)
    back = ",".join(reversed(marks.unknown))
    if marks.fault:
        raise LabelsError(
            f"{where}: {name!r} names a fault, so {marks.unknown[0]!r} may be the worse answer; say which is, the "
            f'worst first: {option} "{name}={words}" or {option} "{name}={back}"'
        )
    if marks.unknown:
        raise LabelsError(
            f"{where}: the ratings are words of no known scale; give them in their order, worst first: "
            f'{option} "{name}={words}"'
        )


def _is_number(cell: Any, decimal_comma: bool) -> bool:
    if isinstance(cell, str):
        return (
            NUMBER.fullmatch((pointed(cell) if decimal_comma else plain(cell)).strip())
            is not None
        )
    return isinstance(cell, Real) and not isinstance(cell, bool)
