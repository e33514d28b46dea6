"""Agreement of decisions with human ones: pass or fail, ordered categories, and the better of two outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy

from judgesmith.agreement.correlation import Codes as Places
from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.resampling import Bounded, Range, sums_by


def nearest_places(scores: Vector, levels: Sequence[float]) -> Places:
    """Return the category of each score, from 0: the level next to it, the better one of two that are equally near."""
    apart = np.abs(scores[:, None] - np.array(levels)[None, :])
    return np.asarray(
        len(levels) - 1 - np.argmin(apart[:, ::-1], axis=1), dtype=np.intp
    )


def places_by_rank(scores: Vector, human: Places, categories: int) -> Places:
    """Return categories by rank: as many rows in each as people put there.

    Equal scores fall into one category, that of their mean rank, so that a constant judge decides always the same.
    """
    below = np.cumsum(np.bincount(human, minlength=categories))[:-1]
    return np.asarray(
        np.searchsorted(below, scipy.stats.rankdata(scores) - 0.5, side="right"),
        dtype=np.intp,
    )


def ordered_pairs(
    scores: Vector, human: Vector, documents: Sequence[str]
) -> tuple[list[str], Vector, Vector]:
    """Return documents, pairs ordered as people ordered them, and pairs that people did not tie.

    Documents come in the order of their first row. Equal scores count half.
    """
    names = list(dict.fromkeys(documents))
    place = {name: i for i, name in enumerate(names)}
    document = np.array([place[name] for name in documents], dtype=np.intp)
    right = np.zeros(len(names))
    pairs = np.zeros(len(names))
    order = np.argsort(document, kind="stable")
    for rows in (
        np.split(order, np.flatnonzero(np.diff(document[order])) + 1)
        if len(order)
        else []
    ):
        x = scores[rows]
        y = human[rows]
        first, second = np.triu_indices(len(x), 1)
        present = np.sign(y[first] - y[second])
        ours = np.sign(x[first] - x[second])
        apart = present != 0
        right[document[rows[0]]] = (
            float((ours == present)[apart].sum()) + float((ours == 0)[apart].sum()) / 2
        )
        pairs[document[rows[0]]] = float(apart.sum())
    return names, right, pairs


# Measures when units are drawn again: (rounds, units) -> (rounds, 1), NaN where undefined. units: the number of each
# row's unit, from 0 in the order of first appearance.


def on_all(measure: Callable[..., Bounded], *sides: Vector | Places) -> float:
    """Return one of these measures on all rows, each counted once."""
    rows = len(sides[0])
    return float(measure(*sides, np.arange(rows))(np.ones((1, rows)))[0, 0])


def kappa_when_drawn(decided: Places, human: Places, units: Places) -> Bounded:
    """Return Cohen's kappa with quadratic weights as a function of resampled units.

    It is 1 for equal decisions and 0 at chance; NaN if both sides choose one and the same category throughout. Source:
    Cohen 1968.
    """
    a = decided.astype(float)
    b = human.astype(float)
    sums = sums_by(units, np.ones(len(a)), a, b, a * a, b * b, (a - b) ** 2)

    def kappa(counts: Vector) -> Vector:
        n, sa, sb, saa, sbb, apart = (counts @ sums).T
        chance = (
            n * saa + n * sbb - 2 * sa * sb
        )  # n² times the mean squared distance of rows drawn apart
        return _share(chance - n * apart, chance)

    return Bounded(kappa, Range())


def cohen_when_drawn(decided: Places, human: Places, units: Places) -> Bounded:
    """Return Cohen's kappa without weights as a function of resampled units.

    It is the share decided as people did, of what chance leaves open; NaN if both sides choose one and the same
    category throughout. Source: Cohen 1960.
    """
    categories = int(max(decided.max(initial=0), human.max(initial=0))) + 1
    sides = [
        (side == place).astype(float)
        for side in (decided, human)
        for place in range(categories)
    ]
    sums = sums_by(units, np.ones(len(human)), (decided == human).astype(float), *sides)

    def kappa(counts: Vector) -> Vector:
        n, alike, *both = (counts @ sums).T
        chance = sum(
            (a * b for a, b in zip(both[:categories], both[categories:], strict=True)),
            np.zeros(len(n)),
        )
        return _share(n * alike - chance, n * n - chance)

    return Bounded(kappa, Range())


def accuracy_when_drawn(decided: Places, human: Places, units: Places) -> Bounded:
    """Return the share of rows decided as people did."""
    sums = sums_by(units, (decided == human).astype(float), np.ones(len(human)))
    return Bounded(
        lambda counts: _share(*(counts @ sums).T), Range(0.0, 1.0, (len(human),))
    )


def found_when_drawn(
    decided: Places, human: Places, units: Places, place: int
) -> Bounded:
    """Return the share of people's rows of one place that are decided so: TNR for fail (0), TPR for pass (1)."""
    there = human == place
    alike = there & (decided == place)
    sums = sums_by(units, alike.astype(float), there.astype(float))
    return Bounded(
        lambda counts: _share(*(counts @ sums).T), Range(0.0, 1.0, (int(there.sum()),))
    )


def balanced_when_drawn(decided: Places, human: Places, units: Places) -> Bounded:
    """Return the mean of the shares of failed (0) and of passed (1) rows that are decided so; 0.5 is chance."""
    good = human > 0
    right = decided == human
    sums = sums_by(
        units,
        *(part.astype(float) for part in (good, ~good, good & right, ~good & right)),
    )

    def balanced(counts: Vector) -> Vector:
        n, m, passed, failed = (counts @ sums).T
        return np.asarray((_share(passed, n) + _share(failed, m)) / 2)

    return Bounded(balanced, Range(0.0, 1.0, (int((~good).sum()), int(good.sum()))))


def f1_when_drawn(decided: Places, human: Places, units: Places) -> Bounded:
    """Return F1 for fail (0): twice the rows that both fail, over the rows that each side fails."""
    ours = decided == 0
    theirs = human == 0
    sums = sums_by(units, 2.0 * (ours & theirs), ours.astype(float) + theirs)
    return Bounded(
        lambda counts: _share(*(counts @ sums).T), Range(0.0, 1.0, (int(theirs.sum()),))
    )


def auc_when_drawn(scores: Vector, passed: Places, units: Places) -> Bounded:
    """Return the probability that a passed output scores above a failed one, as a function of resampled units.

    Equal scores count half. Source: Hanley & McNeil 1982.
    """
    values, place = np.unique(scores, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(values)))
    good = (passed > 0)[order]

    def area(counts: Vector) -> Vector:
        w = counts[:, units[order]]
        n, m = (np.add.reduceat(w * there, starts, axis=1) for there in (good, ~good))
        below = np.cumsum(m, axis=1) - m / 2
        return _share((n * below).sum(axis=1), n.sum(axis=1) * m.sum(axis=1))

    return Bounded(area, Range(0.0, 1.0, (int((~good).sum()), int(good.sum()))))


def pairwise_when_drawn(
    scores: Vector, human: Vector, documents: Sequence[str]
) -> Bounded:
    """Return the share of a document's untied pairs that the scores order as people did.

    Untied are pairs of outputs that people rated differently. Equal scores count half. Documents are resampled.
    """
    _, right, pairs = ordered_pairs(scores, human, documents)
    return Bounded(
        lambda counts: _share(counts @ right, counts @ pairs),
        Range(0.0, 1.0, (int(pairs.sum()),)),
    )


def mean_when_drawn(values: Vector, units: Places) -> Bounded:
    """Return the mean over rows of a value in [0, 1]."""
    sums = sums_by(units, values, np.ones(len(values)))
    return Bounded(lambda counts: _share(*(counts @ sums).T), Range(0.0, 1.0))


def _share(part: Vector, whole: Vector) -> Vector:
    """Return part / whole, NaN where that is empty; shape (rounds, 1)."""
    share: Vector = np.divide(
        part, whole, out=np.full(len(part), np.nan), where=whole > 0
    )[:, None]
    return share
