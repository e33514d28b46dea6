"""Does one judge discern perturbations better than another? Both are compared on the same texts.

D grows with the number of texts, and so do its differences. What is tested is the effect, the rank-biserial correlation
of each perturbation, averaged as D_avg is (levels weigh the same): it is free of a judge's scale. By the jackknife an
effect becomes a sum of what each text adds to it, so that the judges can be swapped text by text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..errors import OptionError
from .correlation import Vector
from .discernment import differences_in_place, discernment, summarise
from .resampling import drawn_again
from .significance import difference_of

#: Scores before and after, each metrics × texts, by perturbation. Texts have the same columns everywhere.
Scores = Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]

SWAPS = 10_000
FEWEST = 5  # texts: below it, all swaps together are too few for p <= 0.05


@dataclass(frozen=True)
class Gap:
    """What judge A discerns less what B discerns, on the pairs that every metric of both has scored.

    value: difference of the mean effects, in [-2, 2], with a percentile interval over resampled texts. p: two-sided,
    in (0, 1], of swapping the judges text by text. d: difference of D_avg (normalised), which grows with the texts.
    by_name: (difference of the effects, p) for each perturbation. NaN with a `reason` where there is no test.
    """

    value: float
    low: float
    high: float
    p: float
    d: float
    texts: int
    by_name: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reason: str | None = None


def compare_discernment(
    a: Scores,
    b: Scores,
    levels: Mapping[str, str],
    *,
    swaps: int = SWAPS,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Gap:
    """Compare two judges on the perturbations that both have. levels: of each perturbation. rounds: of the bootstrap.

    Judges of equal effect were called different in 3-6 % of 500 simulated benchmarks of 15 and of 40 texts, for normal,
    heavy-tailed, skewed and rounded scores; in fewer where nearly every text drops. Raises OptionError for shapes that
    do not fit.
    """
    names = [name for name in a if name in b and name in levels]
    if swaps < 1 or rounds < 0 or not 0 < confidence < 1:
        raise OptionError(f"swaps {swaps}, rounds {rounds}, confidence {confidence}: at least 1 and 0, and in 0..1")
    sides = {name: [_differences(scores[name]) for scores in (a, b)] for name in names}
    if len({side.shape[1] for both in sides.values() for side in both}) > 1:
        raise OptionError("the columns of scores are texts, and every perturbation and judge must have the same ones")
    kept: dict[str, list[Vector]] = {}
    for name, both in sides.items():
        present = ~np.isnan(np.vstack(both)).any(axis=0)
        if present.any():
            kept[name] = [np.where(present, side, np.nan) for side in both]
    nan = math.nan
    if not kept:
        return Gap(nan, nan, nan, nan, nan, 0, reason="no pair has scores of both judges")
    used = ~np.all([np.isnan(both[0][0]) for both in kept.values()], axis=0)
    kept = {name: [side[:, used] for side in both] for name, both in kept.items()}
    texts = int(used.sum())
    weights = _weights([levels[name] for name in kept])
    # texts × perturbations: what a text adds to A's effect, less what it adds to B's
    shares = np.stack([_shares(both[0]) - _shares(both[1]) for both in kept.values()], axis=1)
    observed = np.append(shares.sum(axis=0), shares.sum(axis=0) @ weights)
    d = [summarise({name: discernment(both[i], np.zeros_like(both[i])).d for name, both in kept.items()}, levels).d_avg
         for i in (0, 1)]  # fmt: skip
    if texts < FEWEST:
        by_name = {name: (float(value), nan) for name, value in zip(kept, observed[:-1], strict=True)}
        reason = f"{texts} texts; a test needs at least {FEWEST}"
        return Gap(float(observed[-1]), nan, nan, nan, d[0] - d[1], texts, by_name, reason)
    rng = np.random.default_rng(seed)
    signs = rng.choice(np.array([-1.0, 1.0]), size=(swaps, texts))
    drawn = signs @ np.column_stack([shares, shares @ weights])
    p = (1 + np.count_nonzero(np.abs(drawn) >= np.abs(observed) - 1e-12, axis=0)) / (swaps + 1)
    low = high = nan
    if rounds:

        def leads(counts: Vector) -> Vector:
            return np.stack([_effects(one, counts) - _effects(other, counts) for one, other in kept.values()], axis=1)

        mean = drawn_again(leads, texts, rounds, rng) @ weights
        found = difference_of(float(observed[-1]), mean, texts, int(np.isnan(mean).sum()), confidence)
        low, high = found.low, found.high
    return Gap(
        float(observed[-1]), low, high, float(p[-1]), d[0] - d[1], texts,
        {name: (float(value), float(q)) for name, value, q in zip(kept, observed[:-1], p[:-1], strict=True)},
    )  # fmt: skip


def _differences(scores: tuple[npt.ArrayLike, npt.ArrayLike]) -> Vector:
    before, after = (np.atleast_2d(np.asarray(side, dtype=np.float64)) for side in scores)
    if before.shape != after.shape or before.ndim != 2:
        raise OptionError(
            f"scores before and after must have one shape, metrics × texts; got {before.shape}, {after.shape}"
        )
    return np.stack([differences_in_place(one, other) for one, other in zip(before, after, strict=True)])


def _weights(levels: list[str]) -> Vector:
    """Of each perturbation in the mean: every level weighs the same, and every perturbation within a level."""
    count = len(set(levels))
    return np.array([1 / count / levels.count(level) for level in levels])


def _shares(differences: Vector) -> Vector:
    """What each text adds to the effect (mean over the metrics); the sum is the effect. A text without a pair adds 0.

    Jackknife pseudo-values: of an effect of 1 every text adds the same, where shares of the ranks would differ.
    """
    result = np.zeros(differences.shape[1])
    present = np.flatnonzero(~np.isnan(differences).any(axis=0))
    n = len(present)
    effects = _effects(differences[:, present], np.vstack([np.ones((1, n)), 1 - np.eye(n)]))
    if n == 1:
        result[present] = effects[0]
        return result
    values = n * effects[0] - (n - 1) * effects[1:]
    result[present] = (values - values.mean() + effects[0]) / n
    return result


def _effects(differences: Vector, counts: Vector) -> Vector:
    """The effect (mean over the metrics) in every resample, from how often it has each text: (rounds, texts) ->
    (rounds,). NaN where none of the resample's texts has a pair; 0 where no pair differs."""
    total = np.zeros(len(counts))
    for row in differences:
        present = ~np.isnan(row)
        some = np.flatnonzero(present & (row != 0))
        effect = np.zeros(len(counts))
        if len(some):
            code = np.unique(np.abs(row[some]), return_inverse=True)[1]
            of_code = np.zeros((len(some), int(code.max()) + 1))
            of_code[np.arange(len(some)), code] = 1
            drawn = counts[:, some]
            tied = drawn @ of_code
            ranks = np.cumsum(tied, axis=1) - tied / 2 + 0.5  # midrank of each size
            above = (drawn * np.sign(row[some])) @ of_code
            all_ranks = (ranks * tied).sum(axis=1)
            np.divide((ranks * above).sum(axis=1), all_ranks, out=effect, where=all_ranks > 0)
        effect[counts[:, present].sum(axis=1) == 0] = np.nan
        total += effect / len(differences)
    return total
