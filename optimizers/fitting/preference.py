"""Chances of preferences, fitted to scores that are there already: no call is made."""

from __future__ import annotations

import itertools

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ...datasets.records import Labels
from ...programs.preference import BradleyTerry

Vector = NDArray[np.float64]
#: What is assumed before the pairs are seen, so that pairs that are all ordered rightly do not give certainty: the
#: width in raw percent, the share of ties, and how far off they may well be, as a factor's logarithm.
WIDTH, TIE, SPREAD = 20.0, 0.3, 1.0


def fit_preference(percents: ArrayLike, labels: Labels) -> BradleyTerry | None:
    """The chances of preferences by the judge's lead, most likely for the outputs of each document in these rows. None
    for labels that are no preferences, and where no two outputs of a document have scores.

    percents: raw scores of the labels' rows, NaN where a judge failed; those rows are left out.
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
        said = np.where(tied, tie, ahead * half) if ties else ahead * half
        return float((whole - said).sum() + (logs**2).sum() / (2 * SPREAD**2))

    width, tie = np.array([WIDTH, TIE]) * np.exp(scipy.optimize.minimize(surprise, np.zeros(2), method="Nelder-Mead").x)
    return BradleyTerry(round(float(width), 6), round(float(tie), 6) if ties else 0.0)


def _pairs(percents: Vector, labels: Labels) -> tuple[Vector, Vector]:
    """Of each two outputs of a document the first one's lead, and how far people hold it for the better one: 1 always,
    -1 never, 0 where they called it a tie. Two outputs that both won (or lost) elsewhere were not compared."""
    low, high = labels.scale
    won = (labels.scores - low) / (high - low)
    groups: dict[str, list[int]] = {}
    for i in np.flatnonzero(np.isfinite(percents)):
        groups.setdefault(labels.rows[i].group, []).append(int(i))
    pairs = [pair for rows in groups.values() for pair in itertools.combinations(rows, 2)]
    kept = [(i, j) for i, j in pairs if won[i] != won[j] or won[i] == 0.5]
    leads = np.array([percents[i] - percents[j] for i, j in kept])
    return leads, np.array([won[i] - won[j] for i, j in kept])
