"""Does a judge favour what it is shown first? Its scores against people's by the position of an output.

`predicted` and `human` as in `correlation`. A position is any name or number: the place of an output in its prompt, its
slot in a pair. What is measured is the judge beyond people: outputs at a position may be better in human ratings, too.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from ..errors import OptionError
from .correlation import Codes, Vector, flat, id_codes, pair
from .resampling import Estimate, estimates_of, sums_by

MOST_POSITIONS = 20
_CELLS = 1_000_000  # scores held at a time in the permutation test


@dataclass(frozen=True)
class PositionEffect:
    """How the judge places the outputs at a position beyond what human ratings of them explain, in standard
    deviations of its ranks and beside the other outputs of the document; above 0 it favours the position. human:
    people's own mean there, likewise."""

    position: str
    n: int
    difference: Estimate
    human: float


@dataclass(frozen=True)
class OrderEffect:
    """All positions, and one p-value for all: were the judge's differences from people's the same wherever an output
    stands? NaN with a `reason` if there is no test."""

    positions: tuple[PositionEffect, ...]
    p: float
    n: int
    failed: int
    reason: str | None = None


@dataclass(frozen=True)
class FirstPreference:
    """Of pairs of outputs, one at each of two positions: how often is the first preferred?

    first: its position. judge, human: share of the decided pairs, in [0, 1], with exact binomial intervals. p: sign
    test of the judge's share against one half. p_people: sign test of the pairs that judge and people decide in
    opposite ways (McNemar), which also holds where the better output often comes first. n: pairs; ties: of the judge.
    """

    first: str
    judge: Estimate
    human: Estimate
    p: float
    p_people: float
    n: int
    ties: int


def order_effect(
    predicted: npt.ArrayLike,
    human: npt.ArrayLike,
    positions: Iterable[Hashable],
    *,
    documents: Iterable[Hashable] | None = None,
    systems: Iterable[Hashable] | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> OrderEffect:
    """The judge's ranks less people's, by position: ranks over all rows, standardised, less their mean in the document.

    People's ranks count as far as they predict the judge's among outputs of one position: a judge that agrees loosely
    would else seem to be against every position at which outputs are good. It still seems so a little where people's
    own scores are noisy. Intervals over documents (percentile). p: differences shuffled within documents, sum over
    positions of n mean^2; without repeated documents, over all rows. Rows without a prediction or a position (None,
    NaN, "") are left out. Where every system keeps one position there is no test: favour for the place is then favour
    for the system. Raises OptionError for unequal lengths.
    """
    x, y = pair(predicted, human)
    doc = np.arange(len(x)) if documents is None else id_codes(documents, len(x), "documents")
    names = _names(positions, len(x))
    present = ~np.isnan(x)
    failed = int((~present).sum())
    present &= names != ""
    block = doc if len(np.unique(doc)) < len(doc) else np.zeros(len(doc), dtype=np.intp)
    sizes = np.bincount(block[present], minlength=int(block.max(initial=0)) + 1)
    present &= sizes[block] > 1  # an output alone has no place among others
    x, y, names = x[present], y[present], names[present]
    labels = _in_order(names)
    reason = _no_effect(x, y, labels)
    if reason is not None:
        return OrderEffect((), np.nan, len(x), failed, reason)
    block, doc = (np.unique(codes[present], return_inverse=True)[1] for codes in (block, doc))
    place = np.array([labels.index(name) for name in names], dtype=np.intp)
    judge, people = (_within(_standard(np.asarray(scipy.stats.rankdata(v), dtype=np.float64)), block) for v in (x, y))
    gap = judge - _slope(judge, people, place) * people
    at = np.eye(len(labels))[place]
    counts = at.sum(axis=0)
    sums = [sums_by(doc, *columns.T) for columns in (at * gap[:, None], at)]  # gaps and numbers of the positions

    def mean_gaps(drawn: Vector) -> Vector:
        with np.errstate(invalid="ignore", divide="ignore"):  # a position of which no document was drawn
            return np.asarray((drawn @ sums[0]) / (drawn @ sums[1]))

    found = estimates_of(mean_gaps, len(sums[0]), rounds, confidence, seed)
    means = (at.T @ people) / counts
    effects = tuple(
        PositionEffect(label, int(n), estimate, float(mean))
        for label, n, estimate, mean in zip(labels, counts, found, means, strict=True)
    )
    if systems is not None:
        sys = id_codes(systems, len(present), "systems")[present]
        if len(np.unique(sys)) > 1 and len(np.unique(sys)) == len(set(zip(sys.tolist(), place.tolist(), strict=True))):
            why = "every system keeps one position: favour for a position and for a system cannot be separated"
            return OrderEffect(effects, np.nan, len(x), failed, why)
    p = _permuted(gap, block, at, rounds, seed) if rounds else np.nan
    return OrderEffect(effects, p, len(x), failed)


def first_preference(
    predicted: npt.ArrayLike,
    human: npt.ArrayLike,
    positions: Iterable[Hashable],
    documents: Iterable[Hashable],
    *,
    confidence: float = 0.95,
) -> FirstPreference | None:
    """How often the output shown first wins its pair; None unless there are two positions and every document has one
    output at each (or, of a document, one that is missing: then it is left out). Raises OptionError."""
    x, y = pair(predicted, human)
    doc = id_codes(documents, len(x), "documents")
    names = _names(positions, len(x))
    labels = _in_order(names[names != ""])
    if len(labels) != 2:
        return None
    first, second = np.flatnonzero(names == labels[0]), np.flatnonzero(names == labels[1])
    if any(len(np.unique(doc[rows])) < len(rows) for rows in (first, second)):
        return None
    partner = {int(d): int(i) for d, i in zip(doc[second], second, strict=True)}
    pairs = [(int(i), partner[int(doc[i])]) for i in first if int(doc[i]) in partner]
    pairs = [(i, j) for i, j in pairs if not np.isnan(x[i] + x[j])]
    if not pairs:
        return None
    one, other = np.array(pairs).T
    judge, people = np.sign(x[one] - x[other]), np.sign(y[one] - y[other])
    against = judge * people < 0
    return FirstPreference(
        labels[0],
        _share(judge, confidence),
        _share(people, confidence),
        _sign_test(judge),
        _sign_test(judge[against]),
        len(pairs),
        int((judge == 0).sum()),
    )


# Parts ---------------------------------------------------------------------------------------------------------------


def _names(positions: Iterable[Hashable], rows: int) -> npt.NDArray[np.object_]:
    names = np.empty(rows, dtype=object)
    given = list(positions)
    if len(given) != rows:
        raise OptionError(f"positions has {len(given)} entries for {rows} rows; give one per row, None where unknown")
    for i, position in enumerate(given):
        names[i] = "" if position is None or position != position else str(position).strip()
    return names


def _in_order(names: npt.NDArray[np.object_]) -> list[str]:
    """Distinct positions, numbers by size and before names."""

    def key(name: str) -> tuple[int, float, str]:
        try:
            return (0, float(name), name)
        except ValueError:
            return (1, 0.0, name)

    return sorted(set(names.tolist()), key=key)


def _no_effect(x: Vector, y: Vector, labels: list[str]) -> str | None:
    if len(labels) < 2:
        return "no two outputs of a document stand at different positions" if labels else "no row has a position"
    if len(labels) > MOST_POSITIONS:
        return f"{len(labels)} different positions; at most {MOST_POSITIONS} can be told apart"
    if flat(x[None])[0] or flat(y[None])[0]:
        return f"the {'predictions' if flat(x[None])[0] else 'human scores'} are constant"
    return None


def _standard(ranks: Vector) -> Vector:
    return np.asarray((ranks - ranks.mean()) / ranks.std())


def _within(values: Vector, block: Codes) -> Vector:
    """Values less the mean of their block."""
    return np.asarray(values - (np.bincount(block, weights=values) / np.bincount(block))[block])


def _slope(judge: Vector, people: Vector, place: Codes) -> float:
    """Of the judge's ranks on people's among outputs of one position (analysis of covariance); 0 where undefined."""
    judge, people = _within(judge, place), _within(people, place)
    square = float(people @ people)
    return float(judge @ people) / square if square > 1e-9 else 0.0


def _permuted(gap: Vector, block: Codes, at: Vector, rounds: int, seed: int) -> float:
    order = np.argsort(block, kind="stable")
    gap, block, at = gap[order], block[order], at[order]
    counts = at.sum(axis=0)

    def spread(gaps: Vector) -> Vector:
        return np.asarray(((gaps @ at) ** 2 / counts).sum(axis=1))

    observed = float(spread(gap[None])[0])
    rng, extreme = np.random.default_rng(seed), 1
    step = max(1, _CELLS // len(gap))
    for start in range(0, rounds, step):
        keys = block + rng.random((min(step, rounds - start), len(gap)))  # sorted, rows change places within blocks
        extreme += int(np.count_nonzero(spread(gap[np.argsort(keys, axis=1)]) >= observed - 1e-12))
    return extreme / (rounds + 1)


def _share(signs: Vector, confidence: float) -> Estimate:
    decided, won = int((signs != 0).sum()), int((signs > 0).sum())
    if not decided:
        return Estimate(np.nan)
    interval = scipy.stats.binomtest(won, decided).proportion_ci(confidence)
    return Estimate(won / decided, float(interval.low), float(interval.high))


def _sign_test(signs: Vector) -> float:
    decided, won = int((signs != 0).sum()), int((signs > 0).sum())
    return float(scipy.stats.binomtest(won, decided).pvalue) if decided else np.nan
