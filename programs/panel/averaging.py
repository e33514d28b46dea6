"""Average the scores of a panel's members.

Each is standardised, and they are averaged with weights that labels draw away from equality, hardly for prompts of one
model, and as far as they say so for a jury of several models. Measured in `experiments/results/replay.md`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from judgesmith.parts import Options, option

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: From this correlation on, a member says what another one says already; on at least these many rows.
ALIKE = 0.9
FEWEST_ROWS = 20
#: Rows with the usual spread that are added to each member's own: few rows hardly tell a spread.
PRIOR_ROWS = 15
#: The least spread that is divided by, in percent.
LEAST_SPREAD = 1.0
#: How far weights may lie from equality (their variance, times the number of members): for prompts of one model, which
#: differ little, and for models, which may differ much. Several values are weighed by their evidence.
OF_PROMPTS = (0.02,)
OF_MODELS = (0.02, 0.1, 0.5, 2.0)
#: How much of the labels is noise, and how steeply human ratings rise with the mean of all; weighed in the same way.
NOISES = (0.3, 0.5, 0.7, 0.9)
SLOPES = (0.2, 0.5, 0.8)


class Standing(Options):
    """The mean and spread by which a member's percents are standardised."""

    mean: float = option(50.0, "The mean of its percents.", ge=0, le=100)
    spread: float = option(25.0, "Their standard deviation.", ge=LEAST_SPREAD, le=100)
    weight: float = option(
        1.0, "Its weight in the mean of standardised percents.", ge=0, le=100
    )


#: The standings of a panel's members by name, as a saved judge holds them.
Standings = Annotated[dict[str, Standing], Field(min_length=1, max_length=128)]


def averaged(percents: Matrix, standings: Sequence[Standing]) -> Vector:
    """Return the panel's percents. A member without one is left out of its row.

    >>> two = [Standing(mean=40, spread=10), Standing(mean=80, spread=5)]
    >>> averaged(np.array([[40.0, 80.0], [50.0, 80.0], [50.0, np.nan]]), two).round(2).tolist()
    [66.67, 70.0, 73.33]

    Args:
        percents: Shape (rows, members), NaN where a member failed.
        standings: The standing of each member.

    Returns:
        Shape (rows,), in [0, 100]; NaN where no member with a weight gave a percent. With all members present it is
            their mean, weighted by weight / spread.
    """
    means, spreads = _means_and_spreads(standings)
    weights = np.array([standing.weight for standing in standings])
    heard = np.isfinite(percents) & (weights > 0)
    shares = np.where(heard, weights, 0.0)
    off = np.where(heard, (percents - means) / spreads, 0.0)
    total = shares.sum(axis=1)
    lead = np.divide(
        (shares * off).sum(axis=1),
        total,
        out=np.full(len(percents), math.nan),
        where=total > 0,
    )
    pull = weights / spreads
    centre = float((pull * means).sum() / pull.sum())
    unit = float(weights.sum() / pull.sum())
    panel: Vector = np.clip(centre + unit * lead, 0.0, 100.0)
    return panel


def _means_and_spreads(standings: Sequence[Standing]) -> tuple[Vector, Vector]:
    means = np.array([standing.mean for standing in standings])
    return means, np.array([standing.spread for standing in standings])


def standings_of(percents: Matrix) -> list[Standing]:
    """Means and spreads of members by rows that all of them judged, with equal weights.

    A spread is drawn towards the usual one, since a few rows hardly tell it.
    """
    counts = list[int]()
    means = list[float]()
    spreads = list[float]()
    for column in percents.T:
        usable = column[np.isfinite(column)]
        counts.append(len(usable))
        means.append(float(usable.mean()) if len(usable) else 50.0)
        spreads.append(float(usable.std()) if len(usable) else 0.0)
    usual = float(np.median(spreads))
    rows = np.array(counts)
    drawn = np.sqrt(
        (rows * np.array(spreads) ** 2 + PRIOR_ROWS * usual**2) / (rows + PRIOR_ROWS)
    )
    return [
        Standing(mean=round(mean, 6), spread=round(max(float(spread), LEAST_SPREAD), 6))
        for mean, spread in zip(means, drawn, strict=True)
    ]


def standardised(percents: Matrix, standings: Sequence[Standing]) -> Matrix:
    """Percents in units of their members' spreads; 0, the mean, where a member failed."""
    means, spreads = _means_and_spreads(standings)
    in_spreads: Matrix = np.nan_to_num((percents - means) / spreads)
    return in_spreads


def weights_by_labels(
    members: Matrix, human: Vector, departures: Sequence[float]
) -> Vector:
    """Fit weights of standardised members that are equal as far as human scores do not say otherwise.

    It is a ridge whose penalty is on departures from equality alone, over several strengths by their evidence.

    Args:
        members: Shape (rows, members).
        human: Shape (rows,).
        departures: The strengths.

    Returns:
        Non-negative weights whose mean is 1; all 1 for constant scores.
    """
    count = members.shape[1]
    equal = np.ones(members.shape[1])
    spread = float(human.std())
    mean = members.mean(axis=1)
    if not spread > 0 or not float(mean.std()) > 0:
        return equal
    target = (human - human.mean()) / spread
    apart = members @ (np.eye(count) - 1.0 / count)
    evidence = list[float]()
    candidates = list[Vector]()
    for slope, departure, noise in itertools.product(SLOPES, departures, NOISES):
        start = np.full(count, slope / (count * float(mean.std())))
        rest = target - members @ start
        # The rest is normal with covariance B Bᵀ + noise · I, where B holds departures and an intercept.
        both = np.column_stack(
            [math.sqrt(departure / count) * apart, np.ones(len(target))]
        )
        inner = both.T @ both + noise * np.eye(count + 1)
        solved = (rest - both @ np.linalg.solve(inner, both.T @ rest)) / noise
        size = (len(target) - count - 1) * math.log(noise) + float(
            np.linalg.slogdet(inner)[1]
        )
        evidence.append(-0.5 * (float(rest @ solved) + size))
        candidates.append(start + departure / count * (apart.T @ solved))
    shares = np.exp(np.array(evidence) - max(evidence))
    weights = np.maximum(shares @ np.array(candidates), 0.0)
    relative: Vector = weights / weights.mean() if weights.sum() > 0 else equal
    return relative


def worth_asking(percents: Matrix) -> list[int]:
    """Return the members that stay in a panel: they say something of the rows, and something of their own."""
    saying = speaking(percents)
    return [saying[place] for place in different(percents[:, saying])]


def speaking(percents: Matrix) -> list[int]:
    """Return the members that are worth asking: they score most rows, and not all alike.

    All of them, where none is. Of fewer than FEWEST_ROWS rows none can be said to be alike.

    >>> speaking(np.array([[40.0, np.nan], [60.0, np.nan]]))
    [0]
    """
    worth = list[int]()
    for place, column in enumerate(percents.T):
        scores = column[np.isfinite(column)]
        constant = len(scores) >= FEWEST_ROWS and np.ptp(scores) == 0
        if 2 * len(scores) >= len(column) and not constant:
            worth.append(place)
    return worth or list(range(percents.shape[1]))


def different(percents: Matrix) -> list[int]:
    """Return the members that differ from all before them: those whose correlation with every earlier is below ALIKE.

    One that has fewer than FEWEST_ROWS rows in common with another cannot be told to be alike.
    """
    members = list[int]()
    for place in range(percents.shape[1]):
        if not any(
            correlation(percents[:, member], percents[:, place]) >= ALIKE
            for member in members
        ):
            members.append(place)
    return members


def correlation(first: Vector, second: Vector) -> float:
    """Pearson's r over the rows that both have; NaN for fewer than FEWEST_ROWS of them, and for constants."""
    both = np.isfinite(first) & np.isfinite(second)
    if (
        both.sum() < FEWEST_ROWS
        or np.ptp(first[both]) == 0
        or np.ptp(second[both]) == 0
    ):
        return math.nan
    return float(np.corrcoef(first[both], second[both])[0, 1])
