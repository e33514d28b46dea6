"""Pairwise accuracy: the share of pairs of outputs (or of systems) that judge and people order alike.

Within documents and pooled it is acc*_eq: pairs closer than epsilon count as tied by the judge, and epsilon is the one
that fits best. That is chosen on the rows it is reported on; the cross-fitted accuracy chooses it on one half of the
documents and counts on the other. Sources: Deutsch, Foster & Freitag 2023 (ties), Kocmi et al. 2021 (systems).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from judgesmith.agreement.correlation import Codes, Level, Vector, id_codes
from judgesmith.agreement.meta.inputs import Aspect, EvaluationOptions, Units
from judgesmith.agreement.meta.intervals import Cell
from judgesmith.agreement.resampling import (
    Agreement,
    Bounded,
    Range,
    Statistic,
    Systems,
    mean_drawn,
)
from judgesmith.errors import OptionError

MOST_PAIRS = 8_000_000  # about 300 MB


def _units(aspect: Aspect, level: Level) -> int:
    """Return what an accuracy of this level rests on at most: rows, documents or systems.

    Raises:
        OptionError: If accuracy has no such level.
    """
    match level:
        case "pooled":
            return len(aspect.y)
        case "sample":
            return len(np.unique(aspect.units))
        case "system":
            return aspect.systems
        case "within":
            raise OptionError("acc_eq is not computed within systems")
        case _:
            assert_never(level)


def accuracy(
    aspect: Aspect,
    judge: str,
    level: Level,
    options: EvaluationOptions,
    *,
    cross: bool = False,
) -> Cell:
    """Compute acc*_eq of a judge, with an interval at the epsilon of all rows.

    At system level it is plain pairwise accuracy of the means. cross: cross-fit it, with epsilon from the other half of
    the documents.
    """
    x = aspect.x[judge]
    y = aspect.y
    usable = ~np.isnan(x)
    units = aspect.only(usable)
    every = _units(aspect, level)
    cell = Cell(math.nan, 0, every, int((~usable).sum()), len(y), None)
    x = x[usable]
    y = y[usable]
    match level:
        case "system":
            cell.n = units.systems
            if units.systems < 2:
                cell.reason = (
                    f"{units.systems} systems with a prediction, at least 2 are needed"
                )
            else:
                means = Bounded(_of_systems(x, y, units))
                _bound(cell, means, units, units.systems**2, options)
        case "pooled":
            together = np.zeros(len(x), dtype=np.intp)
            if _fits(cell, together, "; take level sample"):
                cell.n = len(x)
                _compare_rows(
                    cell, (x, y, units, together), _pooled, options, cross=cross
                )
        case "sample":
            if _fits(cell, units.doc, ""):
                cell.n = int(np.count_nonzero(np.bincount(units.doc) > 1))
                _compare_rows(
                    cell, (x, y, units, units.doc), _within, options, cross=cross
                )
        case "within":
            raise OptionError("acc_eq is not computed within systems")
        case _:
            assert_never(level)
    cell.skipped = every - cell.n
    return cell


def _pairs(group: Codes) -> int:
    sizes = np.bincount(group)
    return int((sizes * (sizes - 1) // 2).sum())


def _fits(cell: Cell, group: Codes, advice: str) -> bool:
    """Return whether the pairs of rows of one group can be compared; if not, the cell says so."""
    if _pairs(group) <= MOST_PAIRS:
        return True
    cell.reason = f"{len(group)} rows make too many pairs{advice}"
    return False


def _compare_rows(
    cell: Cell,
    rows: tuple[Vector, Vector, Units, Codes],
    alike: Callable[[Vector, Vector, Units, Vector, Codes], Statistic],
    options: EvaluationOptions,
    *,
    cross: bool,
) -> None:
    """Fill in the accuracy of pairs of rows of one group: predictions, ratings, units and the groups."""
    x, y, units, group = rows
    pairs = _pairs(group)
    half = np.zeros(units.documents, dtype=np.intp)
    if not pairs:
        cell.reason = "no two rows to compare"
        return
    if cross:
        half = np.random.default_rng(options.seed).permutation(units.documents) % 2
        sides = [half[units.doc] == side for side in (0, 1)]
        fitted = [fitted_epsilon(x[side], y[side], group[side]) for side in sides]
        epsilon = np.array(fitted)[1 - half]
        if np.isnan(epsilon).any():
            cell.reason = "too few documents to choose epsilon on half of them"
            return
    else:
        epsilon = np.full(units.documents, fitted_epsilon(x, y, group))
    statistic = alike(x, y, units, epsilon + _rounding(x), half)
    bounded = Bounded(statistic, Range(0.0, 1.0, (pairs,)))
    _bound(cell, bounded, units, len(x), options)


def soft_accuracy(aspect: Aspect, judge: str, options: EvaluationOptions) -> Cell:
    """Return soft pairwise accuracy of a judge on systems, without an interval."""
    x = aspect.x[judge]
    usable = ~np.isnan(x)
    units = aspect.only(usable)
    cell = Cell(
        math.nan,
        units.systems,
        aspect.systems - units.systems,
        int((~usable).sum()),
        len(x),
        None,
    )
    if units.sys is None or units.systems < 2:
        cell.reason = (
            f"{units.systems} systems with a prediction, at least 2 are needed"
        )
        return cell
    cell.value = soft_pairwise_accuracy(
        x[usable],
        aspect.y[usable],
        systems=units.sys,
        documents=units.doc,
        rounds=options.rounds or 1000,
        seed=options.seed,
    )
    cell.reason = "no interval: it is made of p-values itself"
    return cell


def soft_pairwise_accuracy(
    predicted: npt.ArrayLike,
    human: npt.ArrayLike,
    *,
    systems: Iterable[Hashable],
    documents: Iterable[Hashable],
    rounds: int = 1000,
    seed: int = 0,
) -> float:
    """Compute how closely judge and people agree on how sure it is which of two systems is better.

    Source: Thompson et al. 2024, WMT (soft pairwise accuracy).

    Args:
        predicted: one score per row.
        human: one human score per row.
        systems: system of each row.
        documents: document of each row.
        rounds: swaps drawn for the one-sided p-values: both systems' scores, document by document, the same for both
            sides.
        seed: seed of the swaps.

    Returns:
        1 less the mean distance of the p-values of all pairs of systems, in [0, 1]; NaN if no two systems share a
        document.
    """
    x = np.asarray(predicted, dtype=np.float64)
    y = np.asarray(human, dtype=np.float64)
    sys = id_codes(systems, len(x), "systems")
    doc = id_codes(documents, len(x), "documents")
    swaps = np.random.default_rng(seed).choice(
        [-1.0, 1.0], (rounds, int(doc.max(initial=-1)) + 1)
    )
    means = [_cells(side, sys, doc) for side in (x, y)]
    first, second = np.triu_indices(means[0].shape[1], 1)
    judged, rated = (
        _sureness(table[:, first] - table[:, second], swaps) for table in means
    )
    both = ~(np.isnan(judged) | np.isnan(rated))
    return 1 - float(np.abs(judged - rated)[both].mean()) if both.any() else math.nan


def _cells(values: Vector, sys: Codes, doc: Codes) -> Vector:
    """Return the mean of each document and system, NaN where there is none."""
    shape = int(doc.max()) + 1, int(sys.max()) + 1
    place = doc * shape[1] + sys
    counts = np.bincount(place, minlength=shape[0] * shape[1])
    sums = np.bincount(place, values, shape[0] * shape[1])
    means: Vector = np.divide(
        sums, counts, out=np.full(len(sums), np.nan), where=counts > 0
    )
    return means.reshape(shape)


def _sureness(apart: Vector, swaps: Vector) -> Vector:
    """Return, for each pair of systems, p of the first not being the better one.

    apart: differences by document. Ties count half. NaN for a pair without a common document.
    """
    common = ~np.isnan(apart)
    filled = np.where(common, apart, 0.0)
    observed = filled.sum(axis=0)
    drawn = swaps @ filled
    slack = 1e-9 * np.abs(filled).sum(axis=0)
    above = (drawn > observed + slack).mean(axis=0)
    near = (np.abs(drawn - observed) <= slack).mean(axis=0)
    return np.where(common.any(axis=0), above + near / 2, np.nan)


def fitted_epsilon(x: Vector, y: Vector, group: Codes) -> float:
    """Return the distance up to which two predictions count as tied.

    It maximises the mean over groups of the share of pairs that both order or tie alike; the least if several do. NaN
    without pairs.
    """
    parts = []
    for rows in _groups(group):
        i, j = np.triu_indices(len(rows), 1)
        dx = x[rows[i]] - x[rows[j]]
        dy = y[rows[i]] - y[rows[j]]
        # A gap that becomes a tie gains a pair that people tied and loses one that was ordered alike.
        gain = (dy == 0).astype(np.float64) - (np.sign(dx) * np.sign(dy) > 0)
        parts.append((np.abs(dx), gain / max(1, len(dx))))
    if parts:
        gaps, gains = (np.concatenate(part) for part in zip(*parts, strict=True))
    else:
        gaps, gains = np.zeros((2, 0))
    if not len(gaps):
        return math.nan
    order = np.argsort(gaps)
    gaps = gaps[order]
    slack = _rounding(x)
    last = np.flatnonzero(
        np.append(np.diff(gaps) > slack, True)
    )  # equal gaps become ties together
    steps = np.append(0.0, np.cumsum(gains[order])[last])
    thresholds = np.append(0.0, gaps[last])
    if gaps[0] <= slack:  # equal predictions are tied at any epsilon
        steps = steps[1:]
        thresholds = thresholds[1:]
    return float(thresholds[np.flatnonzero(steps >= steps.max() - 1e-12)[0]])


def _rounding(x: Vector) -> float:
    """Return the difference of two gaps up to which it is rounding noise: .3 - .2 is as wide as .2 - .1."""
    return 1e-12 * float(np.abs(x).max(initial=0.0))


def _groups(group: Codes) -> list[Codes]:
    """Return the rows of each group."""
    if len(group):
        return np.split(
            np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1]
        )
    return []


def _bound(
    cell: Cell, statistic: Bounded, units: Units, cells: int, options: EvaluationOptions
) -> None:
    agreement = Agreement.of_share(statistic, units.documents, cells)
    cell.value = agreement.values[0]
    cell.key = units.doc.tobytes()
    if options.rounds:
        cell.bound(agreement, options)


def _alike(x: Vector, y: Vector, epsilon: Any) -> Any:
    """Return a mask of the pairs that both order alike or both hold for tied, x and y (…, n) -> (…, n, n)."""
    dx = x[..., :, None] - x[..., None, :]
    dy = y[..., :, None] - y[..., None, :]
    return np.where(np.abs(dx) <= epsilon, dy == 0, dx * dy > 0)


def _within(
    x: Vector, y: Vector, units: Units, epsilon: Vector, half: Codes
) -> Statistic:
    """Return the mean over documents of the share of their pairs; NaN for a document without pairs."""
    share = np.full((units.documents, 1), np.nan)
    for document, rows in enumerate(_groups(units.doc)):
        if (n := len(rows)) > 1:
            share[document] = (
                _alike(x[rows], y[rows], epsilon[document]).sum() - n
            ) / (n * (n - 1))
    return lambda counts: mean_drawn(counts, share)


def _of_pairs(w: Vector, right: Vector, all_pairs: Vector) -> Vector:
    """Return the weighted share of right pairs, shape (rounds, 1).

    w: weights (rounds, n). right, all_pairs: right pairs and all pairs of each row. Pairs of a row with its own copies,
    which are tied by construction, are left out.
    """
    pairs = all_pairs - (w * w).sum(axis=1)
    pairs[pairs < 0.5] = np.nan
    return np.asarray((w * right).sum(axis=1) / pairs)[:, None]


def _pooled(
    x: Vector, y: Vector, units: Units, epsilon: Vector, half: Codes
) -> Statistic:
    """Return the accuracy over pairs of all rows, or of rows in the same half of the documents."""
    side = half[units.doc]
    alike = np.where(
        side[:, None] == side, _alike(x, y, epsilon[units.doc][:, None]), False
    ).astype(np.float32)
    np.fill_diagonal(alike, 0.0)

    def share(counts: Vector) -> Vector:
        w = counts[:, units.doc]
        totals = np.stack(
            [w[:, side == s].sum(axis=1) ** 2 for s in np.unique(side)]
        ).sum(axis=0)
        return _of_pairs(w, (w.astype(np.float32) @ alike).astype(np.float64), totals)

    return share


def _of_systems(x: Vector, y: Vector, units: Units) -> Statistic:
    """Return the share of pairs of systems whose means both order alike, without a tolerance for ties."""
    assert units.sys is not None
    means = Systems(x, y, units.doc, units.documents, units.sys).means

    def share(counts: Vector) -> Vector:
        mean_x, mean_y = means(counts)
        w = (~np.isnan(mean_x)).astype(np.float64)
        alike = _alike(np.nan_to_num(mean_x), np.nan_to_num(mean_y), 0.0).astype(
            np.float64
        )
        right = (
            np.einsum("kij,kj->ki", alike, w) - w
        )  # less the pair with itself, which is alike
        return _of_pairs(w, right, w.sum(axis=1) ** 2)

    return share
