"""Fit what maps raw scores to outcomes, without a call: cut points, chances of preferences, and intervals of scores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from judgesmith.agreement.conformal import conformal_quantile
from judgesmith.agreement.decisions import (
    balanced_when_drawn,
    kappa_when_drawn,
    nearest_places,
    on_all,
)
from judgesmith.datasets.records import Labels
from judgesmith.errors import OptionError
from judgesmith.optimizers.examples import Vector, scale_of
from judgesmith.optimizers.fitting.folds import folds
from judgesmith.programs.outcome import (
    BradleyTerry,
    Calibration,
    CalibrationFit,
    Decision,
    Sureness,
    significant,
)
from judgesmith.signatures.values import Scale

#: With more different scores than these, cuts are tried at as many quantiles.
MOST_CUTS = 100
#: Passes over all cuts; each only improves.
PASSES = 10


def places_of(labels: Labels) -> NDArray[np.intp]:
    """Return the category of each row, from 0: the level next to its score, the better of two that are equally near."""
    return nearest_places(labels.scores, labels.levels)


def fit_decision(percents: ArrayLike, labels: Labels) -> Decision | None:
    """Fit the cut points between categories that make decisions on these rows agree best with people's.

    Agreement is balanced accuracy for pass and fail, and quadratic-weighted kappa for more categories. Cuts start where
    as many rows fall below them as people put there, and move one at a time while that helps; of equally good ones
    those in the widest gap between scores are taken. Without two categories in the rows the cuts stand midway between
    levels.

    Args:
        percents: Raw scores of the labels' rows, NaN where a judge failed; those rows are left out.
        labels: The rows with people's categories.

    Returns:
        The decision, or None for labels without categories.
    """
    if not labels.levels:
        return None
    scale = scale_of(labels)
    levels = [scale.to_percent(level) for level in labels.levels]
    midway = [(low + high) / 2 for low, high in itertools.pairwise(levels)]
    x = np.asarray(percents, float)
    usable = np.isfinite(x)
    x = x[usable]
    human = places_of(labels)[usable]
    binary = labels.kind == "binary"
    if len(np.unique(human)) > 1 and np.ptp(x) > 0:
        midway = fitted_cuts(x, human, len(levels), binary)
    return Decision(
        labels.categories, tuple(round(float(cut), 6) for cut in midway), binary
    )


def cheapest(
    decision: Decision, percents: ArrayLike, labels: Labels, missed: float
) -> Decision:
    """Return the decision with the cut whose mistakes on these rows cost least; of equally cheap ones the middle."""
    x = np.asarray(percents, float)
    failed = places_of(labels) == 0
    values = np.unique(x[np.isfinite(x)])
    cuts = [0.0, *((values[1:] + values[:-1]) / 2), 100.000001]
    costs = [
        missed * float((failed & (x >= cut)).sum()) + float((~failed & (x < cut)).sum())
        for cut in cuts
    ]
    least = [cut for cut, cost in zip(cuts, costs, strict=True) if cost == min(costs)]
    return replace(decision, cuts=(round(float(least[len(least) // 2]), 6),))


def fitted_cuts(
    x: Vector, human: NDArray[np.intp], categories: int, binary: bool
) -> list[float]:
    """Return the cuts of `fit_decision`.

    Args:
        x: Scores without NaN, not all equal.
        human: People's categories of the same rows, two at least.
        categories: The number of categories.
        binary: True for pass and fail.
    """
    values = np.unique(x)
    tried = (values[1:] + values[:-1]) / 2
    gaps = np.diff(values)
    if len(tried) > MOST_CUTS:
        places = np.unique(np.linspace(0, len(tried) - 1, MOST_CUTS).astype(int))
        tried = tried[places]
        gaps = gaps[places]

    def agreement(cuts: list[float]) -> float:
        decided = np.searchsorted(np.array(cuts), x, side="right")
        reached = on_all(
            balanced_when_drawn if binary else kappa_when_drawn, decided, human
        )
        return -1.0 if np.isnan(reached) else round(reached, 9)

    below = [float((human <= place).mean()) for place in range(categories - 1)]
    cuts = [float(cut) for cut in np.maximum.accumulate(np.quantile(x, below))]
    best = agreement(cuts)
    for _ in range(PASSES):
        before = best
        for place in range(len(cuts)):
            low = cuts[place - 1] if place else -np.inf
            high = cuts[place + 1] if place + 1 < len(cuts) else np.inf
            result = []
            for cut, gap in zip(tried.tolist(), gaps.tolist(), strict=True):
                if low <= cut <= high:
                    reached = agreement([*cuts[:place], cut, *cuts[place + 1 :]])
                    result.append((reached, gap, cut))
            if result and max(result)[0] >= best:
                best, _, cuts[place] = max(result)
        if best == before:
            break
    return cuts


#: What is assumed before the pairs are seen, so that pairs that are all ordered rightly do not give certainty: the
#: width in raw percent, the share of ties, and how far off they may well be, as a factor's logarithm.
WIDTH = 20.0
TIE = 0.3
SPREAD = 1.0


def fit_preference(percents: ArrayLike, labels: Labels) -> BradleyTerry | None:
    """Fit the probability of a preference by the judge's lead, most likely for these rows.

    Args:
        percents: Raw scores of the labels' rows, NaN where a judge failed; those rows are left out.
        labels: The rows with people's preferences between outputs of one document.

    Returns:
        The fitted model, or None for labels that are no preferences, or if no two outputs of a document have scores.
    """
    if labels.kind != "preference":
        return None
    leads, ahead = _pairs(np.asarray(percents, float), labels)
    if not len(leads):
        return None
    tied = ahead == 0
    ties = bool(tied.any())

    def surprise(logs: Vector) -> float:
        half = leads / (2 * WIDTH * np.exp(logs[0]))
        tie = np.log(TIE) + logs[1] if ties else -np.inf
        whole = np.logaddexp(np.logaddexp(half, -half), tie)
        chances = np.where(tied, tie, ahead * half) if ties else ahead * half
        return float((whole - chances).sum() + (logs**2).sum() / (2 * SPREAD**2))

    width, tie = np.array([WIDTH, TIE]) * np.exp(
        scipy.optimize.minimize(surprise, np.zeros(2), method="Nelder-Mead").x
    )
    return BradleyTerry(
        significant(float(width)), significant(float(tie)) if ties else 0.0
    )


def _pairs(percents: Vector, labels: Labels) -> tuple[Vector, Vector]:
    """Return, for each two outputs of a document, the first one's lead and people's preference for it.

    The preference is 1 if always, -1 if never, 0 for a tie. Two outputs that both won (or lost) elsewhere were not
    compared.
    """
    low, high = labels.scale
    won = (labels.scores - low) / (high - low)
    groups: dict[str, list[int]] = {}
    for row in np.flatnonzero(np.isfinite(percents)).tolist():
        groups.setdefault(labels.rows[row].group, []).append(row)
    leads: list[float] = []
    preferences: list[float] = []
    for rows in groups.values():
        for first, second in itertools.combinations(rows, 2):
            if won[first] != won[second] or won[first] == 0.5:
                leads.append(percents[first] - percents[second])
                preferences.append(won[first] - won[second])
    return np.array(leads), np.array(preferences)


COVERAGES = (0.5, 0.8, 0.9, 0.95)
#: Rows that each stretch of raw scores needs, to have an expected error of its own.
ROWS_A_KNOT = 12
MOST_KNOTS = 5
#: Rows with the mean error that are added to each stretch's: few labels hardly tell one stretch from another.
PRIOR_ROWS = 12
#: The smallest expected error, as a share of the scale.
LEAST = 0.01


def calibrated_without(
    percent: Vector,
    human: Vector,
    groups: Sequence[Hashable],
    scale: Scale,
    *,
    seed: int = 0,
    fit: CalibrationFit = Calibration.fit,
) -> Vector:
    """Map raw percents to the user's scale, each row by a map that `fit` fits to the other groups' rows.

    There are five folds of whole groups. NaN where the percent is, and everywhere for fewer than two groups.
    """
    scores = np.full(len(percent), np.nan)
    try:
        parts = folds(groups, seed=seed)
    except OptionError:
        return scores
    for rows in parts:
        rest = np.setdiff1d(np.arange(len(percent)), rows)
        mapped = fit(percent[rest], human[rest], scale)
        scores[rows] = [
            mapped(p) if np.isfinite(p) else np.nan for p in percent[rows].tolist()
        ]
    return scores


def fit_sureness(
    percent: Vector,
    scores: Vector,
    human: Vector,
    groups: Sequence[Hashable],
    scale: Scale,
) -> Sureness | None:
    """Fit intervals for future scores.

    Args:
        percent: Raw scores of rows that the judge had not learnt from; NaN rows are left out.
        scores: The same on the user's scale.
        human: Human ratings of these rows.
        groups: The group of each row; rows of one group belong together.
        scale: The user's scale.

    Returns:
        The intervals, or None if no row is left.
    """
    present = np.isfinite(percent) & np.isfinite(scores) & np.isfinite(human)
    if not present.any():
        return None
    x = np.clip(percent[present], 0.0, 100.0)
    off = np.abs(scores - human)[present]
    members = list(itertools.compress(groups, present))
    floor = LEAST * (scale.high - scale.low)
    knots, means = _expected(x, np.maximum(off, floor))
    errors = [significant(error) for error in means.tolist()]
    times = off / np.interp(x, knots, errors)
    reach = [
        conformal_quantile(times, coverage, documents=members) for coverage in COVERAGES
    ]
    return Sureness(
        tuple(knots.tolist()),
        tuple(errors),
        COVERAGES,
        tuple(round(r, 6) + 1e-6 if np.isfinite(r) else None for r in reach),
        len(x),
        len(set(members)),
        # Rounded outwards: no labelled row is beyond them.
        (math.floor(x.min() * 1000) / 1000, math.ceil(x.max() * 1000) / 1000),
    )


def _expected(x: Vector, off: Vector) -> tuple[Vector, Vector]:
    """Mean errors along the raw scores, in equally filled stretches, drawn towards the mean of all."""
    order = np.argsort(x, kind="stable")
    parts = np.array_split(order, max(1, min(MOST_KNOTS, len(x) // ROWS_A_KNOT)))
    centres = np.array([x[part].mean() for part in parts]).round(3)
    sums = np.array([off[part].sum() for part in parts])
    rows = np.array([len(part) for part in parts], dtype=float)
    centres, same = np.unique(centres, return_inverse=True)
    sums = np.bincount(same, sums)
    rows = np.bincount(same, rows)
    return centres, (sums + PRIOR_ROWS * off.mean()) / (rows + PRIOR_ROWS)
