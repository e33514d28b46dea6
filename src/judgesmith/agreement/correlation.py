"""Correlation of a judge's scores with human ratings: coefficients, levels and the objective that a search maximises.

Everywhere `predicted` and `human` are vectors of one length, one row per judged text. NaN in `predicted` is a row on
which the judge failed; it is left out and counted, or imputed (`CorrelationSum`), never taken for a low score.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.coefficients import Codes as Codes
from judgesmith.agreement.coefficients import Level as Level
from judgesmith.agreement.coefficients import Vector as Vector
from judgesmith.agreement.coefficients import correlation, parts_of
from judgesmith.agreement.levels import level_of
from judgesmith.errors import OptionError

PARTS = (
    "pearson",
    "spearman",
    "kendall",
)  # of the sum, in the order of the objective's formula
FLAT = 1e-13  # a spread below this share of the largest value is rounding noise, so the scores count as constant
LARGEST = 1e100  # scores beyond are a mistake, and their squares overflow


# Input ---------------------------------------------------------------------------------------------------------------


def vector(values: npt.ArrayLike, name: str, *, missing: bool = False) -> Vector:
    """Return a float vector; None becomes NaN.

    Raises:
        OptionError: If it is not one-dimensional, not of finite numbers, or beyond 1e100, whose squares would overflow;
            NaN is allowed only if rows may be `missing`.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"{name}: expected a list of numbers, got {type(values).__name__} ({error})"
        ) from None
    if array.ndim != 1:
        raise OptionError(
            f"{name}: expected one score per row, got an array of shape {array.shape}"
        )
    wrong = ~(np.abs(array) <= LARGEST)
    if missing:
        wrong &= ~np.isnan(array)
    if wrong.any():
        row = int(wrong.argmax())
        if missing:
            hint = "a failed row is NaN or None"
        else:
            hint = "leave out the rows without a human score"
        raise OptionError(
            f"{name}: row {row} is {array[row]}, which is not a score; {hint}"
        )
    return array


def pair(predicted: npt.ArrayLike, human: npt.ArrayLike) -> tuple[Vector, Vector]:
    """Return both as float vectors of one length; only `predicted` may hold NaN.

    Raises:
        OptionError: If lengths differ, or a vector is invalid (see `vector`).
    """
    x = vector(predicted, "predicted", missing=True)
    y = vector(human, "human")
    if len(x) != len(y):
        raise OptionError(
            f"predicted has {len(x)} rows and human {len(y)}; give one score per row in the same order"
        )
    return x, y


def id_codes(ids: Iterable[Hashable], rows: int, name: str) -> Codes:
    """Return ids as numbers 0, 1, … in the order of first appearance.

    Raises:
        OptionError: If an id is missing, or there is not one per row.
    """
    seen: dict[Any, int] = {}
    try:
        codes = np.fromiter((seen.setdefault(i, len(seen)) for i in ids), dtype=np.intp)
    except TypeError as error:
        raise OptionError(f"{name}: expected one id per row ({error})") from None
    if len(codes) != rows:
        raise OptionError(
            f"{name} has {len(codes)} ids for {rows} rows; give one per row"
        )
    for i, code in seen.items():
        if i is None or (isinstance(i, float) and np.isnan(i)):
            raise OptionError(f"{name}: row {int((codes == code).argmax())} has no id")
    return codes


def level_codes(
    level: Level,
    documents: Iterable[Hashable] | None,
    systems: Iterable[Hashable] | None,
    rows: int,
) -> tuple[Codes | None, Codes | None]:
    """Return the codes of the documents and systems that were given.

    Raises:
        OptionError: If `level` needs one that was not given.
    """
    facts = level_of(level)
    if facts.needs is not None:
        given, each = {
            "documents": (documents, "one id per row"),
            "systems": (systems, "one name per row"),
        }[facts.needs]
        if given is None:
            raise OptionError(
                f'level "{level}" {facts.compared}: pass {facts.needs}=… ({each}), or level="pooled" for one '
                "correlation over all rows"
            )
    return (
        None if documents is None else id_codes(documents, rows, "documents"),
        None if systems is None else id_codes(systems, rows, "systems"),
    )


# Coefficients --------------------------------------------------------------------------------------------------------


def flat(x: Vector) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows of x, shape (k, n) with n >= 1, that are constant but for rounding noise."""
    low = x.min(axis=1)
    high = x.max(axis=1)
    return np.asarray(high - low <= FLAT * np.maximum(np.abs(low), np.abs(high)))


def rowwise(x: Vector, y: Vector, names: Sequence[str]) -> Vector:
    """Return coefficients of each row of x with the same row of y, both (k, n) without NaN -> (k, names).

    NaN where a row is constant on either side or n < 2.
    """
    value = np.full((len(x), len(names)), np.nan)
    if x.shape[1] < 2:
        return value
    undefined = flat(x) | flat(y)
    with np.errstate(
        all="ignore"
    ):  # only undefined rows divide by zero, and they are set to NaN below
        for column, name in enumerate(names):
            one = correlation(name)
            # rounding may leave 1 + 2e-16
            value[:, column] = np.clip(one.of(x, y), one.low, one.high)
    value[undefined] = np.nan
    return np.asarray(value)


def midranks(x: Vector) -> Vector:
    """Return the ranks 1, 2, … of a vector without NaN; equal values share the mean of theirs.

    The numbers are those of scipy.stats.rankdata, which takes several times as long for a few hundred values.
    """
    order = np.argsort(x, kind="stable")
    ordered = x[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    end = np.append(first[1:], len(x))
    ranks = np.empty(len(x))
    ranks[order] = np.repeat((first + end + 1) / 2, end - first)
    return ranks


# Levels --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Correlation:
    """An agreement and what it rests on.

    value: the coefficient, or NaN with a `reason`. n: rows (pooled), documents (sample) or systems (system) used.
    skipped: rows (pooled), documents (sample) or systems (system) left out; failed: rows without a prediction.
    """

    value: float
    n: int
    skipped: int
    reason: str | None
    coefficient: str
    level: str
    failed: int


def correlate(
    predicted: npt.ArrayLike,
    human: npt.ArrayLike,
    *,
    coefficient: str = "spearman",
    level: Level = "sample",
    documents: Iterable[Hashable] | None = None,
    systems: Iterable[Hashable] | None = None,
) -> Correlation:
    """Return the agreement of predicted with human scores at a level; the levels give very different numbers.

    Rows without a prediction (NaN, None) are left out and counted.

    Args:
        predicted: one score per row; NaN where the judge failed.
        human: one human score per row.
        coefficient: "pearson", "spearman", "kendall" (tau-b, corrected for ties, Kendall 1945), "sum" (or "q"), which
            is r + rho + tau-b, or another that is registered (`coefficients`).
        level: "pooled": one correlation over all rows. "sample": mean over documents of the correlation within the
            document; documents where either side is constant or fewer than 2 rows are usable are skipped and counted.
            "system": correlation of the systems' mean scores. "within": all rows, less what tells systems apart
            (`within_systems`).
        documents: document of each row; needed at level "sample".
        systems: system of each row; needed at levels "system" and "within".

    Returns:
        `Correlation`; its value lies in [-1, 1] ([-3, 3] for "sum"), higher is better; NaN, with a reason, if scores
        are constant or too few.

    Raises:
        OptionError: If lengths differ, scores are infinite, human scores are missing, or the level needs other ids.

    >>> correlate([1, 2, 3, 4], [2, 1, 3, 4], level="pooled").value  # 1 - 6·(1 + 1)/(4·15)
    0.8
    """
    names = parts_of(coefficient)
    x, y = pair(predicted, human)
    doc, sys = level_codes(level, documents, systems, len(x))
    usable = ~np.isnan(x)
    failed = len(x) - int(usable.sum())
    values, n, units = _at_level(x, y, usable, names, level, doc, sys)
    value = float(sum(values))
    reason = _why_undefined(x[usable], y[usable], level, n) if np.isnan(value) else None
    return Correlation(value, n, units - n, reason, coefficient, level, failed)


def _at_level(
    x: Vector,
    y: Vector,
    usable: npt.NDArray[np.bool_],
    names: Sequence[str],
    level: Level,
    doc: Codes | None,
    sys: Codes | None,
    *,
    objective: bool = False,
) -> tuple[list[float], int, int]:
    """Return one value per name, the units (rows, documents, systems) that it rests on, and all units."""
    match level:
        case "sample":
            assert doc is not None
            count = int(doc.max(initial=-1)) + 1
            table = within_documents(
                x[usable], y[usable], doc[usable], count, names, objective=objective
            )
            # All coefficients are undefined on the same documents.
            table = table[~np.isnan(table[:, 0])]
            means = [float(c.mean()) if len(table) else np.nan for c in table.T]
            return means, len(table), count
        case "within":
            assert sys is not None
            values = within_systems(x[usable], y[usable], sys[usable], names)
            return values, int(usable.sum()), len(x)
        case "system":
            assert sys is not None
            count = int(sys.max(initial=-1)) + 1
            x, y = system_means(x[usable], y[usable], sys[usable], count)
            usable = ~np.isnan(x)
        case "pooled":
            count = len(x)
        case _:
            assert_never(level)
    x = x[usable]
    y = y[usable]
    return rowwise(x[None], y[None], names)[0].tolist(), len(x), count


def within_documents(
    x: Vector,
    y: Vector,
    doc: Codes,
    count: int,
    names: Sequence[str],
    *,
    objective: bool = False,
) -> Vector:
    """Return coefficients within each of `count` documents -> shape (count, len(names)), NaN where undefined.

    objective: a document where only the predictions are constant counts 0 and not NaN, so that a judge cannot gain
    by giving one score to every text of the documents it finds hard.
    """
    table = np.full((count, len(names)), np.nan)
    order = np.argsort(doc, kind="stable")
    x = x[order]
    y = y[order]
    sizes = np.bincount(doc, minlength=count)
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes > 1]):  # documents of one size make one matrix
        which = np.flatnonzero(sizes == size)
        rows = starts[which][:, None] + np.arange(size)
        one = x[rows]
        other = y[rows]
        table[which] = rowwise(one, other, names)
        if objective:
            table[which[flat(one) & ~flat(other)]] = 0.0
    return table


def within_systems(
    x: Vector, y: Vector, sys: Codes, names: Sequence[str]
) -> list[float]:
    """Compute coefficients of all rows together, less what tells systems apart.

    NaN where a side is constant in every system. r: of scores less the mean of their system. rho: Pearson of pooled
    ranks less the mean rank of their system. tau-b: over the pairs of rows of one system. The mean of correlations
    inside each system would be biased with few rows.

    >>> within_systems(*np.array([[1.0, 2, 5, 6], [2, 1, 9, 8]]), np.array([0, 0, 1, 1]), ["pearson"])
    [-1.0]
    """
    x = tidy(x)
    y = tidy(y)
    ties = [untied(side, sys) for side in (x, y)]
    if len(x) < 2 or not min(ties):
        return [np.nan] * len(names)
    found = ((one, one.within(x, y, sys)) for one in map(correlation, names))
    return [float(np.clip(value, one.low, one.high)) for one, value in found]


def untied(x: Vector, sys: Codes) -> float:
    """Return twice the number of pairs of rows of one system that differ in x."""
    _, cells = np.unique(
        np.stack([sys.astype(np.float64), x]), axis=1, return_counts=True
    )
    return float(
        (np.bincount(sys).astype(np.float64) ** 2).sum()
        - (cells.astype(np.float64) ** 2).sum()
    )


def surplus(x: Vector, y: Vector, sys: Codes) -> float:
    """Return twice the concordant less the discordant pairs of rows of one system."""
    total = 0.0
    for system in np.unique(sys):
        a = x[sys == system]
        b = y[sys == system]
        one = np.zeros(len(a), dtype=np.intp)
        pairs = np.sqrt(untied(a, one) * untied(b, one))
        total += float(scipy.stats.kendalltau(a, b).statistic) * pairs if pairs else 0.0
    return total


def system_means(x: Vector, y: Vector, sys: Codes, count: int) -> tuple[Vector, Vector]:
    """Return the mean of x and of y per system -> two vectors of shape (count,); NaN for a system without rows."""
    rows = np.bincount(sys, minlength=count).astype(np.float64)
    rows[rows == 0] = np.nan
    return (
        tidy(np.bincount(sys, weights=x, minlength=count) / rows),
        tidy(np.bincount(sys, weights=y, minlength=count) / rows),
    )


def tidy(means: Vector) -> Vector:
    """Return means rounded to 12 digits of the largest in their row: the order of summation must not break a tie."""
    scale = np.nanmax(
        np.abs(means), axis=-1, keepdims=True, initial=np.finfo(np.float64).tiny
    )
    return np.asarray(np.round(means / scale, 12) * scale)


def mean_defined(values: Vector, axis: int) -> Vector:
    """Return the mean along an axis of what is defined; NaN where nothing is."""
    count = np.count_nonzero(~np.isnan(values), axis=axis).astype(np.float64)
    count[count == 0] = np.nan
    return np.asarray(np.nansum(values, axis=axis) / count)


def _why_undefined(x: Vector, y: Vector, level: Level, n: int) -> str:
    if not len(x):
        return "no row has a prediction"
    if level == "sample":
        return (
            "in every document the scores are constant or fewer than 2 rows are usable"
        )
    if n < 2:
        return f"{n} {level_of(level).unit[:-1]}, at least 2 are needed"
    where = level_of(level).constant
    side = "scores"
    if flat(x[None])[0]:
        side = "predictions"
    elif flat(y[None])[0]:
        side = "human scores"
    return f"the {side} are constant{where}"


# The objective -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Objective:
    """The value that a search maximises.

    q lies in [-3, 3] and is never NaN; its parts lie in [-1, 1] and are NaN, with a `reason`, if undefined. n: rows,
    documents or systems at the `level`, failed rows included. failed: rows whose prediction was imputed.
    """

    q: float
    pearson: float
    spearman: float
    kendall: float
    n: int
    failed: int
    reason: str | None
    level: str


@dataclass(frozen=True)
class CorrelationSum:
    """Q = r + rho + tau-b of a whole set of scores at a level, in [-3, 3], higher is better.

    An undefined part counts 0 in q and is NaN with a reason. Failed rows (NaN) are imputed (see `impute`), which takes
    from |r|, so that leaving out its hard rows does not pay. At level "sample", documents where people gave one score
    are left out and those where only the judge did count 0: every candidate is measured on the same documents. If every
    row failed, q is 0.

    Source: Active-Critic, eq. 3 (there pooled).
    """

    level: Level = "pooled"

    def __call__(
        self,
        predicted: npt.ArrayLike,
        human: npt.ArrayLike,
        documents: Iterable[Hashable] | None = None,
        systems: Iterable[Hashable] | None = None,
    ) -> Objective:
        """Score one candidate. Raises OptionError as `correlate` does."""
        x, y = pair(predicted, human)
        doc, sys = level_codes(self.level, documents, systems, len(x))
        failed = int(np.isnan(x).sum())
        if failed == len(x):
            why = f"all {failed} rows failed" if failed else "no rows"
            return Objective(0.0, np.nan, np.nan, np.nan, 0, failed, why, self.level)
        x = impute(x, imputed_by(self.level, doc, sys))
        everything = np.ones(len(x), dtype=np.bool_)
        values, n, _ = _at_level(
            x, y, everything, PARTS, self.level, doc, sys, objective=True
        )
        reason = _why_undefined(x, y, self.level, n) if np.isnan(values).any() else None
        r, rho, tau = values
        return Objective(
            float(np.nansum(values)), r, rho, tau, n, failed, reason, self.level
        )


def imputed_by(level: Level, doc: Codes | None, sys: Codes | None) -> Codes | None:
    """Return the codes of the rows whose mean takes a failed row's place; None for that of all rows."""
    match level:
        case "sample":
            return doc
        case "within":
            return sys
        case "pooled" | "system":
            return None
        case _:
            assert_never(level)


def impute(x: Vector, doc: Codes | None = None) -> Vector:
    """Return x with NaN replaced by the mean of the other predictions.

    If `doc` is given, the mean is of the same document (or system), if that has any. At least one value must not be
    NaN. With the mean, a row adds nothing to the covariance, only to the human variance.
    """
    missing = np.isnan(x)
    if not missing.any():
        return x
    x = np.where(missing, np.mean(x[~missing]), x) if doc is None else x.copy()
    if doc is not None:
        counts = np.bincount(doc[~missing], minlength=int(doc.max()) + 1)
        sums = np.bincount(doc[~missing], weights=x[~missing], minlength=len(counts))
        means = np.where(counts > 0, sums / np.maximum(counts, 1), np.mean(x[~missing]))
        x[missing] = means[doc[missing]]
    return x
