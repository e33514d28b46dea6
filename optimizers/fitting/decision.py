"""Cut points between categories, fitted to scores that are there already: no call is made."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...agreement.decisions import balanced_accuracy, nearest_places, weighted_kappa
from ...datasets.records import Labels
from ...programs.decision import Decision
from ...signatures.values import Scale

Vector = NDArray[np.float64]
#: With more different scores than these, cuts are tried at as many quantiles.
MOST_CUTS = 100
#: Passes over all cuts; each only improves.
PASSES = 10


def places_of(labels: Labels) -> NDArray[np.intp]:
    """The category of each row, from 0: the level next to its score, the better one of two that are equally near."""
    return nearest_places(labels.scores, labels.levels)


def fit_decision(percents: ArrayLike, labels: Labels) -> Decision | None:
    """Where categories begin, so that the decisions on these rows agree best with people's: by balanced accuracy for
    pass and fail, by quadratic-weighted kappa for more categories. None for labels without categories.

    percents: raw scores of the labels' rows, NaN where a judge failed; those rows are left out. Cuts start where as
    many rows fall below them as people put there, and move one at a time while that helps; of equally good ones those
    in the widest gap between scores are taken. Without two categories in the rows the cuts stand midway between levels.
    """
    if not labels.levels:
        return None
    scale = Scale(*labels.scale)
    levels = [scale.to_percent(level) for level in labels.levels]
    midway = [(low + high) / 2 for low, high in itertools.pairwise(levels)]
    x = np.asarray(percents, float)
    usable = np.isfinite(x)
    x, human = x[usable], places_of(labels)[usable]
    binary = labels.kind == "binary"
    if len(np.unique(human)) > 1 and np.ptp(x) > 0:
        midway = fitted_cuts(x, human, len(levels), binary)
    return Decision(labels.categories, tuple(round(float(cut), 6) for cut in midway), binary)


def fitted_cuts(x: Vector, human: NDArray[np.intp], categories: int, binary: bool) -> list[float]:
    """The cuts of `fit_decision`. x: scores without NaN, not all equal; human: people's categories, two at least."""
    values = np.unique(x)
    tried = (values[1:] + values[:-1]) / 2
    gaps = np.diff(values)
    if len(tried) > MOST_CUTS:
        kept = np.unique(np.linspace(0, len(tried) - 1, MOST_CUTS).astype(int))
        tried, gaps = tried[kept], gaps[kept]

    def agreement(cuts: list[float]) -> float:
        decided = np.searchsorted(np.array(cuts), x, side="right")
        found = balanced_accuracy(decided, human) if binary else weighted_kappa(decided, human, categories)
        return -1.0 if np.isnan(found) else round(found, 9)

    below = [float((human <= place).mean()) for place in range(categories - 1)]
    cuts = [float(cut) for cut in np.maximum.accumulate(np.quantile(x, below))]
    best = agreement(cuts)
    for _ in range(PASSES):
        before = best
        for place in range(len(cuts)):
            low = cuts[place - 1] if place else -np.inf
            high = cuts[place + 1] if place + 1 < len(cuts) else np.inf
            open_ = [(float(cut), float(gap)) for cut, gap in zip(tried, gaps, strict=True) if low <= cut <= high]
            found = [(agreement([*cuts[:place], cut, *cuts[place + 1 :]]), gap, cut) for cut, gap in open_]
            if found and max(found)[0] >= best:
                best, _, cuts[place] = max(found)
        if best == before:
            break
    return cuts
