"""Coefficients: how far scores agree with people's, one class each.

A class declares all that is said of it (name, title, range, value at chance, the levels that it is measured at), and
how it is computed. Tables, gates, titles, help and resampling read that. A new one is a class in a file of this
folder, or in another package with an entry point in the group `judgesmith.coefficients`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from judgesmith.errors import OptionError
from judgesmith.parts import Registry, nearest

Vector = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Level = Literal["pooled", "within", "sample", "system"]
ALL_LEVELS: tuple[Level, ...] = ("pooled", "within", "sample", "system")

coefficients: Registry[type[Coefficient]] = Registry(
    "coefficient",
    packages=("judgesmith.agreement.coefficients",),
    group="judgesmith.coefficients",
)


class Coefficient(ABC):
    """What is said of a coefficient. A class of it is one of those below, which say how it is computed."""

    name: ClassVar[str]
    """Its name on the command line and in files."""
    aliases: ClassVar[tuple[str, ...]] = ()
    title: ClassVar[str]
    """Its name in tables and sentences."""
    about: ClassVar[str]
    """One line for help."""
    low: ClassVar[float] = -1.0
    high: ClassVar[float] = 1.0
    chance: ClassVar[float | None] = 0.0
    """The value of a judge that knows nothing, and that some are below; None if it depends on the data."""
    levels: ClassVar[tuple[Level, ...]] = ALL_LEVELS
    """The levels that it is measured at."""
    kinds: ClassVar[tuple[str, ...]] = ()
    """The kinds of human ratings that it is reported for unasked."""
    brings: ClassVar[tuple[str, ...]] = ()
    """Coefficients that are always reported with it."""
    on_scale: ClassVar[bool] = False
    """Whether it compares the numbers themselves. It has no value for scores on another scale than people's."""


class Correlation(Coefficient):
    """A coefficient of scores, at every level. Only `of` has to be written.

    Resamples are then rows written out as often as their documents were drawn. A weighted form is faster.
    """

    aliases: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def of(self, x: Vector, y: Vector) -> Vector:
        """Return the coefficient of each row of x with the same row of y.

        Args:
            x: Scores, shape (k, n), without NaN.
            y: Human scores, shape (k, n), without NaN.

        Returns:
            Shape (k,). What comes for a row that is constant on one side does not count: it is undefined.
        """

    def within(self, x: Vector, y: Vector, sys: Codes) -> float:
        """Return the coefficient of all rows together, less what tells systems apart.

        Args:
            x: Scores, shape (n,).
            y: Human scores, shape (n,).
            sys: The system of each row, from 0.
        """
        sides = (less_means(side, sys)[None] for side in (x, y))
        return float(self.of(*sides)[0])

    def weighted(self, rows: Any, drawn: Any) -> Vector:
        """Return the coefficient of resampled rows, a value for each resample.

        Args:
            rows: Both sides, `resampling.WeightedRows`.
            drawn: How often each row was drawn, `resampling.Drawn`.
        """
        x = rows.x.raw
        y = rows.y.raw
        written = ((np.repeat(x, t), np.repeat(y, t)) for t in _times(drawn.w))
        return np.array([self.of(one[None], other[None])[0] for one, other in written])

    def weighted_within(self, rows: Any, drawn: Any) -> Vector:
        """Return the coefficient of resampled rows, less what tells systems apart.

        Args:
            rows: Both sides, `resampling.WithinSystems`.
            drawn: How often each row was drawn, `resampling.DrawnWithin`.
        """
        values = []
        for times in _times(drawn.w):
            x = np.repeat(rows.x.raw, times)
            y = np.repeat(rows.y.raw, times)
            values.append(self.within(x, y, np.repeat(rows.sys, times)))
        return np.array(values)


def _times(w: Vector) -> Codes:
    return np.asarray(w.astype(np.intp))


class Sum(Coefficient):
    """A sum of coefficients; a failed row is imputed, and an undefined part counts as chance."""

    parts: ClassVar[tuple[str, ...]]


class Pairs(Coefficient):
    """A share of pairs that are ordered as people order them; `meta.accuracy` computes it."""

    low: ClassVar[float] = 0.0
    chance: ClassVar[float | None] = None
    of_systems: ClassVar[bool] = False
    """Whether systems alone are compared."""
    crossed: ClassVar[bool] = False
    """Whether epsilon comes from other documents."""


class Decision(Coefficient):
    """A measure of decisions: of categories, of pass and fail, or of which output is better.

    people and decided are the numbers of categories, 0 is fail.
    """

    low: ClassVar[float] = 0.0
    chance: ClassVar[float | None] = None
    levels: ClassVar[tuple[Level, ...]] = ("pooled",)
    fits: ClassVar[Literal["categories", "pass and fail", "preferences"]]
    """Human ratings that it can be measured on."""
    by_scores: ClassVar[bool] = False
    """Whether it orders rows by scores, and needs no decision of the judge."""
    empty: ClassVar[str] = "no row has a decision"
    """Why there is no value where it rests on no row."""

    @abstractmethod
    def when_drawn(self, judged: Any, people: Any, units: Codes, /) -> Any:
        """Return the measure as a function of how often each unit is drawn, `resampling.Bounded`.

        Args:
            judged: The judge's scores, or the categories that it decided on.
            people: People's categories, or their scores of preferences.
            units: The unit of each row, from 0.
        """

    def counted(self, decided: Codes, people: Codes) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that it rests on. Documents without such rows are not resampled."""
        return np.ones(len(people), dtype=np.bool_)


def coefficient_of(name: str) -> type[Coefficient]:
    """Return a coefficient.

    Raises:
        OptionError: If the name is unknown.
    """
    return coefficients.get(name)


def correlation(name: str) -> Correlation:
    """Return a coefficient of scores, to compute with.

    Raises:
        OptionError: If the name is unknown, or that of another kind of coefficient.
    """
    found = coefficients.get(name)
    if not issubclass(found, Correlation):
        raise OptionError(
            f"coefficient {name!r} is not computed from scores alone; those that are: {', '.join(of_scores())}"
        )
    return found()


def parts_of(name: str) -> tuple[str, ...]:
    """Return the coefficients that one adds up; itself, if it is none.

    Raises:
        OptionError: If the name is unknown, or no sum nor coefficient of scores.
    """
    found = coefficients.get(name)
    if issubclass(found, Sum):
        return found.parts
    return (type(correlation(name)).name,)


def is_sum(name: str) -> bool:
    """Return whether a coefficient adds up others."""
    return issubclass(coefficients.get(name), Sum)


def of_scores() -> tuple[str, ...]:
    """Return the names of all coefficients of scores, and of their sums."""
    return tuple(
        name
        for name, one in coefficients.parts().items()
        if issubclass(one, Correlation | Sum)
    )


def less_means(x: Vector, sys: Codes) -> Vector:
    """Return values less the mean of their system."""
    rows = np.maximum(np.bincount(sys), 1)
    return np.asarray(x - (np.bincount(sys, weights=x) / rows)[sys])


def known(name: str) -> str:
    """Return the name of a coefficient, for pydantic.

    Raises:
        ValueError: If it is unknown.
    """
    if name not in coefficients:
        raise ValueError(
            f"there is no coefficient {name!r}{nearest(name, coefficients.names())}; there are "
            f"{', '.join(sorted(coefficients.names()))}"
        )
    return coefficients.get(name).name


def known_of_scores(name: str) -> str:
    """Return the name of a coefficient of scores, for pydantic.

    Raises:
        ValueError: If it is none.
    """
    if known(name) not in of_scores():
        raise ValueError(
            f"{name!r} is not computed from scores alone; those that are: {', '.join(of_scores())}"
        )
    return known(name)


def decided() -> tuple[str, ...]:
    """Return the names of all measures of decisions."""
    return tuple(
        name for name, one in coefficients.parts().items() if issubclass(one, Decision)
    )


def decision_of(name: str) -> Decision:
    """Return a measure of decisions, to compute with.

    Raises:
        OptionError: If the name is unknown, or that of another kind of coefficient.
    """
    found = coefficients.get(name)
    if not issubclass(found, Decision):
        raise OptionError(
            f"coefficient {name!r} is no measure of decisions; those are {', '.join(decided())}"
        )
    return found()


def unasked(kind: str) -> tuple[str, ...]:
    """Return the coefficients that a kind of human ratings has unasked."""
    parts = coefficients.parts().items()
    return tuple(name for name, one in parts if kind in one.kinds)


def title_of(name: str) -> str:
    """Return the name of a coefficient in tables and sentences."""
    return coefficients.get(name).title
