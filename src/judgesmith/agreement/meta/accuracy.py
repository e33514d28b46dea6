"""Pairwise accuracy: the share of pairs of outputs (or of systems) that judge and people order alike.

Within documents and pooled it is acc*_eq: pairs closer than epsilon count as tied by the judge, and epsilon is the one
that fits best. That is chosen on the rows it is reported on; the cross-fitted accuracy chooses it on one half of the
documents and counts on the other. Sources: Deutsch, Foster & Freitag 2023 (ties), Kocmi et al. 2021 (systems).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from ..correlation import Codes, Level, Vector, system_means
from ..resampling import Systems, mean_drawn
from ..significance import pairwise_accuracy, rounding
from .inputs import MANY, Aspect, How, Units
from .intervals import Cell, draw, in_steps, limit, times_of, too_few

MOST_ROWS = 4000  # pooled: more make too many pairs
_CELLS = 2_000_000  # pairs at a time

Drawn = Callable[[Vector, Codes | None], Vector]  # of `intervals.draw` -> accuracy (rounds,), NaN where undefined


def accuracy(aspect: Aspect, judge: str, level: Level, how: How, *, cross: bool = False) -> Cell:
    """acc*_eq of a judge (at system level plain pairwise accuracy of the means), with a percentile interval at the
    epsilon of all rows. cross: the cross-fitted one, with epsilon from the other half of the documents."""
    x, y = aspect.x[judge], aspect.y
    usable = ~np.isnan(x)
    failed = int((~usable).sum())
    units = aspect.only(usable)
    x, y = x[usable], y[usable]
    if level == "system":
        return _of_systems(aspect, x, y, units, failed, how)
    everything = len(np.unique(aspect.units)) if level == "sample" else len(aspect.y)
    if level == "pooled" and len(aspect.y) > MOST_ROWS:
        why = f"{len(aspect.y)} rows make too many pairs; take level sample"
        return Cell(math.nan, 0, everything, failed, len(aspect.y), why)
    found = pairwise_accuracy(x, y, documents=units.doc if level == "sample" else None)
    n = found.n if level == "sample" else len(x)
    cell = Cell(found.value, n, everything - n, failed, len(aspect.y), found.reason)
    if math.isnan(found.value):
        return cell
    epsilon, half = np.full(units.documents, found.epsilon), np.zeros(units.documents, dtype=np.intp)
    if cross:
        half = np.random.default_rng(how.seed).permutation(units.documents) % 2
        epsilons = [_fitted(x, y, units, half == side, level) for side in (0, 1)]
        if any(math.isnan(e) for e in epsilons):
            cell.value, cell.reason = math.nan, "too few documents to choose epsilon on half of them"
            return cell
        epsilon = np.array(epsilons)[1 - half]
    epsilon = epsilon + rounding(x)
    shares = _within(x, y, units, epsilon) if level == "sample" else _pooled(x, y, units, epsilon, half)
    if cross:
        cell.value = float(shares(np.ones((1, units.documents)), None)[0])
    if level == "sample" and units.documents > MANY and how.rounds:
        _normal(cell, x, y, units, epsilon, how)
    else:
        _bound(cell, shares, units, how)
    return cell


def _fitted(x: Vector, y: Vector, units: Units, documents: Any, level: Level) -> float:
    rows = documents[units.doc]
    return pairwise_accuracy(x[rows], y[rows], documents=units.doc[rows] if level == "sample" else None).epsilon


def _bound(cell: Cell, drawn: Drawn, units: Units, how: How) -> None:
    if not how.rounds:
        return
    cell.reason = too_few(units, how)
    if cell.reason is not None:
        return
    cell.key = (how.over, units.doc.tobytes())
    limit(cell, drawn(*draw(units, how)), how)


def _alike(x: Vector, y: Vector, epsilon: Any) -> Any:
    """Which pairs both order alike or both hold for tied, x and y (…, n) -> (…, n, n)."""
    dx, dy = x[..., :, None] - x[..., None, :], y[..., :, None] - y[..., None, :]
    return np.where(np.abs(dx) <= epsilon, dy == 0, dx * dy > 0)


# Within documents ----------------------------------------------------------------------------------------------------


def _shares(x: Vector, y: Vector, units: Units, epsilon: Vector, often: Vector | None) -> Vector:
    """Share of the pairs of each document, (1, documents), or (rounds, documents) when systems count so `often`; pairs
    of a row with its own copies, which are tied by construction, are left out. NaN without pairs."""
    order = np.argsort(units.doc, kind="stable")
    share = np.full((1 if often is None else len(often), units.documents), np.nan)
    for document, rows in enumerate(np.split(order, np.cumsum(np.bincount(units.doc))[:-1])):
        if len(rows) < 2:
            continue
        alike = _alike(x[rows], y[rows], epsilon[document]).astype(np.float64)
        np.fill_diagonal(alike, 0.0)
        w = np.ones((1, len(rows))) if often is None or units.sys is None else often[:, units.sys[rows]]
        share[:, document] = _of_pairs(w, w @ alike, w.sum(axis=1) ** 2)
    return share


def _of_pairs(w: Vector, right: Vector, all_pairs: Vector) -> Vector:
    """Weighted share of pairs, from weights (rounds, n), how much of each row's pairs is right, and all pairs."""
    pairs = all_pairs - (w * w).sum(axis=1)
    pairs[pairs < 0.5] = np.nan
    return np.asarray((w * right).sum(axis=1) / pairs)


def _within(x: Vector, y: Vector, units: Units, epsilon: Vector) -> Drawn:
    def drawn(times: Vector, picked: Codes | None) -> Vector:
        share = _shares(x, y, units, epsilon, None if picked is None else times_of(picked))
        return mean_drawn(times, share[:, :, None])[:, 0]

    return drawn


def _normal(cell: Cell, x: Vector, y: Vector, units: Units, epsilon: Vector, how: How) -> None:
    """Of enough documents for a normal mean: no resamples are needed."""
    if how.over != "documents":
        cell.reason = f"no interval of accuracy over systems above {MANY:,} documents"
        return
    share = _shares(x, y, units, epsilon, None)[0]
    share = share[~np.isnan(share)]
    half = float(share.std(ddof=1) / np.sqrt(len(share)) * scipy.stats.norm.ppf((1 + how.confidence) / 2))
    cell.low, cell.high, cell.interval = cell.value - half, cell.value + half, "normal"


# All rows ------------------------------------------------------------------------------------------------------------


def _pooled(x: Vector, y: Vector, units: Units, epsilon: Vector, half: Codes) -> Drawn:
    """All rows with each other, or with those of their half of the documents."""
    side = half[units.doc]
    alike = np.where(side[:, None] == side, _alike(x, y, epsilon[units.doc][:, None]), False).astype(np.float32)
    np.fill_diagonal(alike, 0.0)

    def drawn(times: Vector, picked: Codes | None) -> Vector:
        w = times[:, units.doc]
        if picked is not None and units.sys is not None:
            w = w * times_of(picked)[:, units.sys]
        totals = np.stack([w[:, side == s].sum(axis=1) ** 2 for s in np.unique(side)]).sum(axis=0)
        return _of_pairs(w, (w.astype(np.float32) @ alike).astype(np.float64), totals)

    return drawn


# Systems -------------------------------------------------------------------------------------------------------------


def _of_systems(aspect: Aspect, x: Vector, y: Vector, units: Units, failed: int, how: How) -> Cell:
    """Share of pairs of systems whose means both order alike, without a tolerance for ties."""
    assert aspect.sys is not None and units.sys is not None
    sys, everything = units.sys, len(np.unique(aspect.sys))
    cell = Cell(math.nan, units.systems, everything - units.systems, failed, len(aspect.y), None)
    if units.systems < 2:
        cell.reason = f"{units.systems} systems with a prediction, at least 2 are needed"
        return cell

    def share(mean_x: Vector, mean_y: Vector, often: Vector) -> Vector:
        present = ~np.isnan(mean_x)
        w = often * present
        alike = _alike(np.where(present, mean_x, 0.0), np.where(present, mean_y, 0.0), 0.0).astype(np.float64)
        right = np.einsum("kij,kj->ki", alike, w) - w  # less the pair with itself, which is alike
        return _of_pairs(w, right, w.sum(axis=1) ** 2)

    means = Systems(x, y, units.doc, units.documents, sys).means

    def drawn(times: Vector, picked: Codes | None) -> Vector:
        often = np.ones((len(times), units.systems)) if picked is None else times_of(picked)
        return in_steps(share, max(1, _CELLS // units.systems**2), *means(times), often)

    a, b = system_means(x, y, sys, units.systems)
    cell.value = float(share(a[None], b[None], np.ones((1, units.systems)))[0])
    _bound(cell, drawn, units, how)
    return cell
