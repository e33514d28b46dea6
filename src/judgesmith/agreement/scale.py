"""Agreement that a correlation cannot see: on the scale itself, in the order of systems, and how much of a judge's
score is only the length of the text.

`predicted` and `human` as in `correlation`: one score per row, NaN in `predicted` where the judge failed. Intervals are
percentile bootstraps over documents.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from ..errors import OptionError
from .correlation import Codes, Vector, id_codes, pair, rowwise, system_means, vector
from .resampling import Estimate, estimates_of, sums_by


@dataclass(frozen=True)
class ScaleAgreement:
    """How far the numbers themselves are from people's, in points of the scale.

    mae: mean absolute error, 0 is best. bias: mean of predicted less human; above 0 the judge is lenient. rmse: root
    of the mean squared error. n: rows with a prediction, failed: without. All NaN, with a `reason`, where n is 0.
    """

    mae: Estimate
    bias: Estimate
    rmse: Estimate
    n: int
    failed: int
    reason: str | None = None


@dataclass(frozen=True)
class CalibrationBin:
    """Rows whose predictions lie in low..high: their number, mean prediction and mean human score."""

    low: float
    high: float
    n: int
    predicted: float
    human: float


@dataclass(frozen=True)
class LengthBias:
    """Spearman correlations with the length of the output, in [-1, 1], NaN where undefined.

    judge_length, human_length: of the scores with the length. bias: of the judge's score with the length, given the
    human score (what people's taste for length does not explain). agreement: of the judge with people, given the
    length.
    """

    judge_length: float
    human_length: float
    bias: float
    agreement: float
    n: int
    failed: int


@dataclass(frozen=True)
class SystemRank:
    """A system's mean scores and places (1 is best, ties share the mean place) with judge and people."""

    system: str
    rows: int
    human: float
    human_rank: float
    predicted: float
    predicted_rank: float


# On the scale --------------------------------------------------------------------------------------------------------


def scale_agreement(
    predicted: npt.ArrayLike,
    human: npt.ArrayLike,
    *,
    documents: Iterable[Hashable] | None = None,
    rounds: int = 0,
    confidence: float = 0.95,
    seed: int = 0,
) -> ScaleAgreement:
    """Mean absolute error, bias and root mean squared error; intervals if rounds > 0. Raises OptionError."""
    x, y, doc, failed = _usable(predicted, human, documents)
    if not len(x):
        none = Estimate(np.nan)
        return ScaleAgreement(none, none, none, 0, failed, "no row has a prediction")
    gap = x - y
    sums = sums_by(doc, np.abs(gap), gap, gap**2, np.ones(len(gap)))

    def means(counts: Vector) -> Vector:
        *parts, n = (counts @ sums).T
        mae, bias, square = (part / n for part in parts)
        return np.stack([mae, bias, np.sqrt(np.maximum(square, 0.0))], axis=1)

    mae, bias, rmse = estimates_of(means, len(sums), rounds, confidence, seed)
    return ScaleAgreement(mae, bias, rmse, len(x), failed)


def calibration_curve(predicted: npt.ArrayLike, human: npt.ArrayLike, *, bins: int = 10) -> tuple[CalibrationBin, ...]:
    """Mean human score where the judge gives much or little: bins of about equally many rows, equal predictions never
    parted, so there are fewer bins than asked where predictions repeat. Empty without predictions."""
    if bins < 1:
        raise OptionError(f"bins is {bins}; ask for 1 or more")
    x, y, _, _ = _usable(predicted, human, None)
    if not len(x):
        return ()
    values, code, counts = np.unique(x, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2  # place of each distinct value among the rows
    bin_of = np.minimum((middle * bins / len(x)).astype(np.intp), bins - 1)
    curve = []
    for number in np.unique(bin_of):
        rows = bin_of[code] == number
        inside = values[bin_of == number]
        curve.append(
            CalibrationBin(
                float(inside[0]), float(inside[-1]), int(rows.sum()), float(x[rows].mean()), float(y[rows].mean())
            )
        )
    return tuple(curve)


# Length and systems --------------------------------------------------------------------------------------------------


def length_bias(predicted: npt.ArrayLike, human: npt.ArrayLike, lengths: npt.ArrayLike) -> LengthBias:
    """Does the judge like long outputs more than people do? Partial Spearman correlations over all rows.

    lengths: of the outputs, in any unit, one per row. Raises OptionError.
    """
    x, y = pair(predicted, human)
    long = vector(lengths, "lengths")
    if len(long) != len(x):
        raise OptionError(f"lengths has {len(long)} rows and predicted {len(x)}; give one length per row")
    present = ~np.isnan(x)
    x, y, long = x[present], y[present], long[present]
    judge, people, agree = (float(rowwise(a[None], b[None], "spearman")[0]) for a, b in ((x, long), (y, long), (x, y)))
    return LengthBias(
        judge_length=judge,
        human_length=people,
        bias=_partial(judge, agree, people),
        agreement=_partial(agree, judge, people),
        n=len(x),
        failed=int((~present).sum()),
    )


def _partial(ab: float, ac: float, bc: float) -> float:
    """Correlation of a and b given c; NaN where c determines one of them, or a correlation is NaN."""
    left = (1 - ac * ac) * (1 - bc * bc)
    if not left > 1e-12:
        return float("nan")
    return float(np.clip((ab - ac * bc) / np.sqrt(left), -1.0, 1.0))


def rank_systems(predicted: npt.ArrayLike, human: npt.ArrayLike, systems: Iterable[Hashable]) -> tuple[SystemRank, ...]:
    """The systems by their mean human score, best first, over the rows that have a prediction."""
    x, y = pair(predicted, human)
    names = list(systems)
    code = id_codes(names, len(x), "systems")
    present = ~np.isnan(x)
    count = int(code.max(initial=-1)) + 1
    first = {int(c): str(name) for c, name in zip(code[::-1], names[::-1], strict=True)}
    rows = np.bincount(code[present], minlength=count)
    x, y = system_means(x[present], y[present], code[present], count)
    known = np.flatnonzero(rows)
    places = [scipy.stats.rankdata(-v[known]) for v in (y, x)]
    ranked = [
        SystemRank(first[int(i)], int(rows[i]), float(y[i]), float(human_place), float(x[i]), float(place))
        for i, human_place, place in zip(known, *places, strict=True)
    ]
    return tuple(sorted(ranked, key=lambda s: (s.human_rank, s.system)))


# Shared --------------------------------------------------------------------------------------------------------------


def _usable(
    predicted: npt.ArrayLike, human: npt.ArrayLike, documents: Iterable[Hashable] | None
) -> tuple[Vector, Vector, Codes, int]:
    x, y = pair(predicted, human)
    doc = np.arange(len(x)) if documents is None else id_codes(documents, len(x), "documents")
    present = ~np.isnan(x)
    return x[present], y[present], np.unique(doc[present], return_inverse=True)[1], int((~present).sum())
