"""Heads: how readings become a score. Each is fitted on a table of readings and human scores, and is linear in the end.

A fitted head is plain numbers: for every reading its mean among the training rows and a weight, for every block of
hidden states a mean and a weight for each of its dimensions. A reading that is missing in a row counts as its mean, so
that it adds nothing. What each reading adds to a score is its weight times its distance from the mean, in points.

Everything here costs no call to a model.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import OptionError
from ...programs.readings.head import LinearHead, Matrix, Readings, Vector

_FLAT = 1e-9  # a reading whose spread is below this share of its size is constant
SCALAR_PENALTIES: tuple[float, ...] = tuple(float(p) for p in np.logspace(-1, 4, 16))
STATE_PENALTIES: tuple[float, ...] = tuple(float(p) for p in np.logspace(0, 6, 19))


@dataclass(frozen=True)
class Fitted:
    """A head, and each training row's score by the head that the other groups' rows give.

    `left_out` has no intercept: with one, a row's own label would move it the other way, and a head that knows nothing
    would seem to be wrong on purpose. Its penalty is the whole fit's: by simulation that flatters a head about as much
    as what leaving out groups takes from it (on 40 rows of noise Q is -0.24 to 0.07).
    """

    head: LinearHead
    left_out: Vector


class Recipe(Protocol):
    """A way to fit a head. `groups` of the training table say which rows may check which."""

    @property
    def name(self) -> str: ...

    def __call__(self, table: Readings, scores: Vector) -> Fitted: ...


class Once:
    """A recipe that others are made of, too: fitted once to each table."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._known: tuple[Readings, Vector, Fitted] | None = None

    @property
    def name(self) -> str:
        return self.recipe.name

    def __call__(self, table: Readings, scores: Vector) -> Fitted:
        if self._known is None or self._known[0] is not table or self._known[1] is not scores:
            self._known = table, scores, self.recipe(table, scores)
        return self._known[2]


@dataclass(frozen=True)
class Directed:
    """Equal weights for readings of which more is better: no label decides, labels only set the scale. Each counts by
    its standard deviation among the training rows."""

    name: str
    readings: tuple[str, ...]

    def __call__(self, table: Readings, scores: Vector) -> Fitted:
        means, scales, z = _standard(table.columns(self.readings))
        weights = np.full(len(self.readings), 1 / len(self.readings))
        return Fitted(_linear(self.readings, 0.0, means, scales, weights), z @ weights)


@dataclass(frozen=True)
class Ridge:
    """Ridge regression on standardised readings; its penalty is chosen by leaving out one group after the other."""

    name: str
    readings: tuple[str, ...]
    choices: tuple[float, ...] = SCALAR_PENALTIES

    def __call__(self, table: Readings, scores: Vector) -> Fitted:
        means, scales, z = _standard(table.columns(self.readings))
        weights, left_out = _ridge(z, scores - scores.mean(), table.groups, self.choices)
        return Fitted(_linear(self.readings, float(scores.mean()), means, scales, weights), left_out)


@dataclass(frozen=True)
class StateRidge:
    """Ridge regression on each of some blocks of states, and the mean of the heads: layers next to each other know the
    same thing with different noise."""

    name: str
    blocks: tuple[str, ...]
    choices: tuple[float, ...] = STATE_PENALTIES

    def __call__(self, table: Readings, scores: Vector) -> Fitted:
        head, left_out = LinearHead(0.0), np.zeros(len(table))
        for block in self.blocks:
            means, scales, z = _standard(table.states[block].astype(np.float64))
            weights, without = _ridge(z, scores - scores.mean(), table.groups, self.choices)
            slope = _per_unit(weights, scales)
            head += LinearHead(float(scores.mean()), {}, {block: (float(means @ slope), slope)})
            left_out += without
        return Fitted(head.scaled(1 / len(self.blocks)), left_out / len(self.blocks))


@dataclass(frozen=True)
class Together:
    """The mean of several heads, each divided by the spread of its scores for left-out rows: within the fit, a head
    with many weights spreads as widely as the labels whatever it knows."""

    name: str
    parts: tuple[Recipe, ...]

    def __call__(self, table: Readings, scores: Vector) -> Fitted:
        return mean_of([part(table, scores) for part in self.parts])


def mean_of(fits: Sequence[Fitted], weights: Sequence[float] | None = None) -> Fitted:
    """The weighted mean of fitted heads in units of their spread over left-out rows, equal weights unless others are
    given. A head without spread says nothing."""
    shares = np.ones(len(fits)) if weights is None else np.asarray(weights, dtype=float)
    head, left_out = LinearHead(0.0), np.zeros(len(fits[0].left_out))
    for fit, share in zip(fits, shares / shares.sum(), strict=True):
        spread = float(np.std(fit.left_out))
        if spread > _FLAT:
            head += fit.head.scaled(share / spread)
            left_out += share * (fit.left_out - fit.left_out.mean()) / spread
    return Fitted(head, left_out)


def numbered(groups: Sequence[Hashable]) -> NDArray[np.intp]:
    """The number of each row's group, in the order of their first rows. Raises: OptionError with fewer than two."""
    codes = {group: code for code, group in enumerate(dict.fromkeys(groups))}
    if len(codes) < 2:
        raise OptionError("all rows belong to one group: nothing is left to check a fit on; label more sources")
    return np.array([codes[group] for group in groups], dtype=np.intp)


def folds(groups: Sequence[Hashable], count: int = 5, *, seed: int = 0) -> list[NDArray[np.intp]]:
    """Rows of each fold: whole groups, the largest first into the smallest fold, in an order drawn by `seed`.

    Raises: OptionError with fewer than two groups.
    """
    fold_of = fold_numbers(groups, count, seed=seed)
    return [np.flatnonzero(fold_of == fold) for fold in range(fold_of.max() + 1)]


def fold_numbers(groups: Sequence[Hashable], count: int = 5, *, seed: int = 0) -> NDArray[np.intp]:
    """The fold of each row, as `folds` makes them."""
    of_row = numbered(groups)
    sizes = np.bincount(of_row)
    drawn = np.random.default_rng(seed).permutation(len(sizes))
    filled = np.zeros(min(count, len(sizes)), dtype=int)
    place = np.zeros(len(sizes), dtype=np.intp)
    for code in sorted(drawn, key=lambda c: -sizes[c]):
        place[code] = int(filled.argmin())
        filled[place[code]] += sizes[code]
    return place[of_row]


# Computing -----------------------------------------------------------------------------------------------------------


def _per_unit(weights: Vector, scales: Vector) -> Vector:
    """Weights of standardised readings as weights of the readings themselves; 0 for a constant one."""
    return np.where(scales > 0, weights / np.where(scales > 0, scales, 1.0), 0.0)


def _linear(names: Sequence[str], base: float, means: Vector, scales: Vector, weights: Vector) -> LinearHead:
    slopes = _per_unit(weights, scales)
    return LinearHead(base, {n: (float(m), float(w)) for n, m, w in zip(names, means, slopes, strict=True)})


def _standard(values: Matrix) -> tuple[Vector, Vector, Matrix]:
    """Means and standard deviations of the columns, and the standardised table with gaps at 0. A column that is
    constant, or empty, has a deviation of 0 and stands at 0."""
    present = ~np.isnan(values)
    counts = np.maximum(present.sum(axis=0), 1)
    means = np.where(present, values, 0.0).sum(axis=0) / counts
    centred = np.where(present, values - means, 0.0)
    scales = np.sqrt((centred**2).sum(axis=0) / counts)
    scales = np.where(scales > _FLAT * np.maximum(np.abs(means), 1e-3), scales, 0.0)
    return means, scales, np.where(scales > 0, centred / np.where(scales > 0, scales, 1.0), 0.0)


def _ridge(z: Matrix, y: Vector, groups: Sequence[Hashable], choices: Sequence[float]) -> tuple[Vector, Vector]:
    """Weights of the ridge regression of centred y on centred z, and the fit of every group by all others.

    The penalty is the one whose squared error on left-out groups is least, the larger of two that do equally well. A
    left-out group is placed by its distance from the mean of the other rows, whose fit has an intercept: without one,
    rows that were centred together tell each other's labels, which are what is missing to a sum of zero. The errors
    follow from the hat matrix: nothing is fitted twice.
    """
    u, s, vt = np.linalg.svd(z, full_matrices=False)
    rotated = u.T @ y
    of_row = numbered(groups)
    sizes = np.bincount(of_row)
    members = [np.flatnonzero(of_row == code) for code in range(len(sizes))]
    least, chosen, errors = np.inf, max(choices), np.zeros(len(y))
    for penalty in sorted(choices, reverse=True):
        shrink = s**2 / (s**2 + penalty)
        hat = (u * shrink) @ u.T + 1 / len(y)
        rest = y - (u * shrink) @ rotated
        wrong = np.zeros(len(y))
        for rows in members:
            wrong[rows] = np.linalg.solve(np.eye(len(rows)) - hat[np.ix_(rows, rows)], rest[rows])
        error = float(wrong @ wrong)
        if error < least * (1 - 1e-9):
            least, chosen, errors = error, penalty, wrong
    means_of_rest = -np.bincount(of_row, weights=y) / (len(y) - sizes)
    return vt.T @ (s / (s**2 + chosen) * rotated), y - errors - means_of_rest[of_row]
