"""A fitted head: how the readings of a row become its score. Plain numbers, linear in every reading."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from judgesmith import parts
from judgesmith.errors import OptionError
from judgesmith.programs.registry import readings as kinds

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Number = Annotated[float, Field(ge=-1e100, le=1e100)]
#: A reading may leave the range of n training rows by this many nths of it (experiments/results/intervals.md).
SPARE_ROWS = 10.0


@dataclass(frozen=True)
class Readings:
    """A table: one row for each judged text.

    values: rows x names; NaN where a reading is missing. states: block -> rows x width, without gaps. groups: rows of
    equal group are never used to check what was fitted on one of them. raters: who rated each row, where that is known.

    Raises: OptionError where shapes do not agree, or a block has gaps.
    """

    names: tuple[str, ...]
    values: Matrix
    groups: tuple[Hashable, ...]
    states: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    raters: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.groups), len(self.names)):
            raise OptionError(
                f"readings of {len(self.groups)} rows and {len(self.names)} names need an array of that shape, not "
                f"{self.values.shape}"
            )
        for block, states in self.states.items():
            if len(states) != len(self.groups):
                raise OptionError(
                    f"states {block!r} have {len(states)} rows, the table {len(self.groups)}"
                )
            if not np.isfinite(states).all():
                raise OptionError(
                    f"states {block!r} have gaps; leave out the rows that could not be read"
                )

    def __len__(self) -> int:
        return len(self.groups)

    def rows(self, index: Iterable[int] | NDArray[Any]) -> Readings:
        """Return the table of some of its rows."""
        at = np.asarray(index, dtype=np.intp)
        states = {block: states[at] for block, states in self.states.items()}
        raters = tuple(self.raters[i] for i in at) if self.raters else ()
        return Readings(
            self.names,
            self.values[at],
            tuple(self.groups[i] for i in at),
            states,
            raters,
        )

    def columns(self, names: Sequence[str]) -> Matrix:
        """Return some readings, in the order of `names`, shape (rows, names).

        Raises:
            OptionError: For one that the table does not have.
        """
        missing = [name for name in names if name not in self.names]
        if missing:
            kind, dot, _ = missing[0].partition(".")
            unknown = ""
            if dot and kind not in kinds:
                unknown = f", and no package here reads {kind!r} (install the one that the judge was compiled with)"
            raise OptionError(
                f"the table has no reading {missing[0]!r}{unknown}; it has {', '.join(self.names)}"
            )
        return self.values[:, [self.names.index(name) for name in names]]


def over(values: Matrix, spreads: Vector) -> Matrix:
    """Values / spreads, and 0 where nothing varies."""
    return np.divide(values, spreads, out=np.zeros(values.shape), where=spreads > 0)


class StateWeights(parts.Options):
    """Weights of a block's dimensions, and what is taken off their sum."""

    offset: Number
    weights: Annotated[tuple[Number, ...], Field(min_length=1, max_length=20_000)]


class Steps(parts.Options):
    """Levels that a head's scores are put back on, where people and the judge have few.

    cuts: in percent of the head, rising: where each level but the lowest begins. levels: in percent, one more.
    """

    cuts: Annotated[tuple[Number, ...], Field(min_length=1, max_length=64)]
    levels: Annotated[tuple[Number, ...], Field(min_length=2, max_length=65)]

    @model_validator(mode="after")
    def _one_more(self) -> Self:
        rising = all(low <= high for low, high in itertools.pairwise(self.cuts))
        if len(self.levels) != len(self.cuts) + 1 or not rising:
            raise ValueError("steps need rising cuts, and one level more")
        return self

    @classmethod
    def of(cls, scores: Vector, human: Vector) -> Self:
        """Return the steps to people's levels, the nearest to scores that have people's mean and spread.

        Raises:
            ValueError: For human scores that are all equal.
        """
        levels = np.unique(human)
        midway = (levels[1:] + levels[:-1]) / 2
        unit = float(scores.std() / human.std())
        cuts = scores.mean() + unit * (midway - human.mean())
        return cls(cuts=tuple(map(_short, cuts)), levels=tuple(map(_short, levels)))

    def __call__(self, percents: Vector) -> Vector:
        """Return the level of each score."""
        return np.array(self.levels)[np.searchsorted(self.cuts, percents, "right")]


class HeadData(parts.Options):
    """A head as a saved judge holds it.

    model: SHA-256 of the file (or the name of the served model) whose readings it was fitted to. weights: reading ->
    (its mean among the training rows, points of percent for each unit above it). limits: the least and the most that a
    reading, or a block of states, adds to a score.
    """

    model: Annotated[str, Field(max_length=400)]
    base: Number
    weights: Annotated[dict[str, tuple[Number, Number]], Field(max_length=2_000)]
    states: Annotated[dict[str, StateWeights], Field(max_length=64)]
    limits: Annotated[
        dict[str, tuple[Number, Number]], Field(max_length=2_100, default_factory=dict)
    ]
    way: Annotated[str, Field(max_length=80)] = ""
    steps: Steps | None = None


@dataclass(frozen=True)
class LinearHead:
    """base + the sum over readings of weight x (reading - mean) + the sum over blocks of states x weights - offset.

    weights: name -> (mean, weight). states: block -> (offset, weights), one weight a dimension. A reading that is
    missing in a row counts as its mean, so that it adds nothing. limits: the least and the most that a reading or a
    block adds. steps: the levels that scores are put back on. Sums and multiples of heads have neither.
    """

    base: float
    weights: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    states: Mapping[str, tuple[float, Vector]] = field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    steps: Steps | None = None

    def __call__(self, table: Readings) -> Vector:
        """Return a score for each row.

        Raises:
            OptionError: If the table lacks a reading that has a weight.
        """
        parts = self.contributions(table)
        return self.of_sum(sum(parts.values(), np.zeros(len(table))))

    def of_sum(self, added: Vector | float) -> Vector:
        """Return the scores of rows by the sums of their contributions."""
        scores = np.asarray(self.base + added)
        return scores if self.steps is None else self.steps(scores)

    def contributions(self, table: Readings) -> dict[str, Vector]:
        """Return the contribution of each reading to each row's score, within its limits; the head's base is added."""
        limits = self.limits
        return {
            name: np.clip(x, *limits[name]) if name in limits else x
            for name, x in self._added(table).items()
        }

    def held_to(self, table: Readings) -> LinearHead:
        """Return the head with limits: the contributions in these rows, and a little more, the more rows the less."""
        ends = {
            name: (float(x.min()), float(x.max()))
            for name, x in self._added(table).items()
        }
        spare = SPARE_ROWS / len(table)
        limits = {
            name: (a - spare * (b - a), b + spare * (b - a))
            for name, (a, b) in ends.items()
        }
        return replace(self, limits=limits)

    def unlike(self, table: Readings) -> list[str]:
        """Return the readings that would add far more, or less, to the first row than to any training row.

        They are beyond the limits by more than their distance.
        """
        ends = (
            (name, float(x[0]), *self.limits.get(name, (-np.inf, np.inf)))
            for name, x in self._added(table).items()
        )
        return [
            name
            for name, x, low, high in ends
            if max(low - x, x - high) > high - low > 0
        ]

    def _added(self, table: Readings) -> dict[str, Vector]:
        result: dict[str, Vector] = {}
        if self.weights:
            values = table.columns(list(self.weights))
            for column, (name, (mean, weight)) in zip(
                values.T, self.weights.items(), strict=True
            ):
                result[name] = weight * np.where(np.isnan(column), 0.0, column - mean)
        for block, (offset, weights) in self.states.items():
            if block not in table.states:
                raise OptionError(
                    f"the table has no states {block!r}; it has {', '.join(table.states) or 'none'}"
                )
            result[block] = table.states[block].astype(np.float64) @ weights - offset
        return result

    @classmethod
    def of_standardised(
        cls,
        numbers: Mapping[str, tuple[float, float, float]],
        states: Mapping[str, tuple[Vector, Vector, Vector]],
    ) -> Self:
        """From weights of standardised readings: name -> (mean, spread, weight), block -> the same of its dimensions.

        What does not vary has no weight.
        """
        weights = {
            name: (mean, w / spread if spread > 0 else 0.0)
            for name, (mean, spread, w) in numbers.items()
        }
        slopes = {
            block: (means, over(weight, spreads))
            for block, (means, spreads, weight) in states.items()
        }
        return cls(
            0.0,
            weights,
            {
                block: (float(means @ slope), slope)
                for block, (means, slope) in slopes.items()
            },
        )

    def scaled(self, factor: float, shift: float = 0.0) -> LinearHead:
        """Factor x this head + shift."""
        return LinearHead(
            self.base * factor + shift,
            {
                name: (mean, weight * factor)
                for name, (mean, weight) in self.weights.items()
            },
            {
                block: (offset * factor, weights * factor)
                for block, (offset, weights) in self.states.items()
            },
        )

    def __add__(self, other: LinearHead) -> LinearHead:
        # The means of one reading agree where both were fitted on the same rows; else the base takes the difference.
        base = self.base + other.base
        weights = dict(self.weights)
        for name, (mean, weight) in other.weights.items():
            first, so_far = weights.get(name, (mean, 0.0))
            base += weight * (first - mean)
            weights[name] = (first, so_far + weight)
        states = dict(self.states)
        for block, (offset, slope) in other.states.items():
            before, sloped = states.get(block, (0.0, np.zeros_like(slope)))
            states[block] = (before + offset, sloped + slope)
        return LinearHead(base, weights, states)

    def data(self, model: str, way: str = "") -> HeadData:
        """Return the head as a saved judge holds it, with seven significant digits."""
        states = dict[str, StateWeights]()
        for block, (offset, weights) in self.states.items():
            numbers = tuple(map(_short, weights))
            states[block] = StateWeights(offset=_short(offset), weights=numbers)
        return HeadData(
            model=model,
            way=way,
            base=_short(self.base),
            weights=_short_pairs(self.weights),
            states=states,
            limits=_short_pairs(self.limits),
            steps=self.steps,
        )

    @classmethod
    def of(cls, data: HeadData) -> Self:
        """Return the head that `data` wrote down."""
        states = {
            block: (held.offset, np.array(held.weights))
            for block, held in data.states.items()
        }
        return cls(data.base, data.weights, states, data.limits, data.steps)


def _short_pairs(
    pairs: Mapping[str, tuple[float, float]],
) -> dict[str, tuple[float, float]]:
    return {name: (_short(a), _short(b)) for name, (a, b) in pairs.items()}


def _short(number: float) -> float:
    return float(f"{float(number):.7g}")
