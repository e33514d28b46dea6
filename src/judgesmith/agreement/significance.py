"""The permutation test of two judges and Williams's, corrections for many tests, and how well people agree themselves.

The commands test by `differences`, whose intervals match their p-values; here are the tests that papers report.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from judgesmith.agreement.coefficients import parts_of
from judgesmith.agreement.correlation import (
    LARGEST,
    Codes,
    Vector,
    impute,
    imputed_by,
    level_codes,
    mean_defined,
    pair,
    rowwise,
    system_means,
    tidy,
    within_documents,
)
from judgesmith.agreement.resampling import Measure
from judgesmith.errors import OptionError

Flags = npt.NDArray[np.bool_]

_CELLS = 1_000_000  # scores held at a time in a permutation test


@dataclass(frozen=True)
class Significance:
    """A test of the difference in agreement between two judges.

    value: A minus B. p: two-sided, in (0, 1]; NaN with a `reason` if there is no test. n: what was swapped or counted.
    """

    value: float
    p: float
    n: int
    reason: str | None = None


# Permutation ---------------------------------------------------------------------------------------------------------


def permutation_test(
    predicted_a: npt.ArrayLike,
    predicted_b: npt.ArrayLike,
    measure: Measure,
    *,
    rounds: int = 2000,
    seed: int = 0,
) -> Significance:
    """Test whether judge A agrees better with people than B, by swapping their scores at random.

    Both judges are standardised, then their scores are swapped at random, whole documents at a time (Perm-Inputs);
    without documents, row by row. p = share of |difference| as large as observed, the observed one included; an
    undefined round counts as large. Its null hypothesis is that the judges can be exchanged, not that they agree
    equally well: judges that favour different systems are told apart too often (`experiments/results/differences.md`).
    Failed rows as in `paired_bootstrap`. Source: Deutsch, Cohen & Roth 2021, TACL.
    """
    names = parts_of(measure.coefficient)
    total = measure.total
    level = measure.level
    (a, y) = pair(predicted_a, measure.human)
    (b, _) = pair(predicted_b, measure.human)
    doc, sys = level_codes(level, measure.documents, measure.systems, len(y))
    unit = np.arange(len(y)) if doc is None else doc
    if level == "within":
        raise OptionError(
            'level "within" has no permutation test; differences.paired_bootstrap tests there'
        )
    if rounds < 1:
        raise OptionError(
            f"rounds: {rounds} is below 1; swap once or more, 1000 times or more for a p-value"
        )
    if not total:
        usable = ~(np.isnan(a) | np.isnan(b))
    else:
        usable = np.ones(len(y), dtype=np.bool_)
    if np.isnan(a).all() or np.isnan(b).all() or not usable.any():
        return Significance(
            np.nan, np.nan, 0, "a judge failed on every row, or there are none"
        )
    if total:
        like = imputed_by(level, doc, sys)
        a = impute(a, like)
        b = impute(b, like)
    a = _standard(a[usable])
    b = _standard(b[usable])
    y = y[usable]
    unit = np.unique(unit[usable], return_inverse=True)[1]
    n = int(unit.max()) + 1
    if level == "sample":
        # Swapped whole, documents keep the agreement within them: it changes hands and is not computed again.
        tables = [
            within_documents(x, y, unit, n, names, objective=total) for x in (a, b)
        ]

        def agreement(first: Vector, second: Vector, flags: Flags) -> Vector:
            return mean_defined(np.where(flags[:, :, None], second, first), axis=1)
    else:
        tables = [a, b]
        of_system = None if level == "pooled" or sys is None else sys[usable]

        def agreement(first: Vector, second: Vector, flags: Flags) -> Vector:
            return _agreements(
                np.where(flags[:, unit], second, first), y, of_system, names
            )

    def lead(flags: Flags) -> Vector:
        one = agreement(tables[0], tables[1], flags)
        other = agreement(tables[1], tables[0], flags)
        return np.asarray(
            np.nansum(one, axis=1) - np.nansum(other, axis=1)
            if total
            else one[:, 0] - other[:, 0]
        )

    value = float(lead(np.zeros((1, n), dtype=np.bool_))[0])
    if np.isnan(value):
        return Significance(
            value,
            np.nan,
            n,
            "the agreement is undefined: constant scores or too few rows",
        )
    rng = np.random.default_rng(seed)
    extreme = 1
    step = max(1, _CELLS // len(y))
    for start in range(0, rounds, step):
        null = lead(rng.random((min(step, rounds - start), n)) < 0.5)
        extreme += int(np.count_nonzero(~(np.abs(null) < abs(value) - 1e-12)))
    return Significance(value, extreme / (rounds + 1), n)


def _standard(x: Vector) -> Vector:
    """Return x scaled to mean 0 and variance 1, so that a swap mixes like with like; a constant becomes 0."""
    x = x - x.mean()
    scale = np.abs(x).max()
    x = x / scale if scale > 0 else x
    return np.asarray(x / (x.std() or 1.0))


def _agreements(
    x: Vector, y: Vector, sys: Codes | None, names: Sequence[str]
) -> Vector:
    """Return the agreement of each row of x, shape (k, n), with y, or of the systems' means -> (k, len(names)).

    NaN where undefined.
    """
    k = len(x)
    ys = np.broadcast_to(y, x.shape)
    if (
        sys is not None
    ):  # k data sets end to end: the codes of one begin where those of the one before end
        count = int(sys.max()) + 1
        codes = (sys + count * np.arange(k)[:, None]).ravel()
        x, ys = (
            means.reshape(k, count)
            for means in system_means(x.ravel(), np.tile(y, k), codes, k * count)
        )
        present = ~np.isnan(x[0])
        x = x[:, present]
        ys = ys[:, present]
    return rowwise(x, ys, names)


# Formulas ------------------------------------------------------------------------------------------------------------


def holm(p_values: npt.ArrayLike) -> Vector:
    """Return p-values adjusted for being many (step-down, in [0, 1]); NaN stays NaN and is not counted.

    Source: Holm 1979.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or ((p < 0) | (p > 1)).any():
        raise OptionError(
            f"p_values: expected a list of numbers in 0..1, got {p_values!r}"
        )
    # NaN sorts last
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(p)
    order = order[: int(np.count_nonzero(~np.isnan(p)))]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def false_discovery(p_values: npt.ArrayLike, *, dependent: bool = False) -> Vector:
    """Return p-values adjusted for the false discovery rate; NaN stays NaN and is not counted.

    Sources: Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001.

    Args:
        p_values: in [0, 1], or NaN.
        dependent: allow any dependence between the p-values (Benjamini and Yekutieli).

    Returns:
        One adjusted p-value for each.

    Raises:
        OptionError: If a value is outside [0, 1].
    """
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(len(p), np.nan)
    present = ~np.isnan(p)
    if present.any():
        adjusted[present] = scipy.stats.false_discovery_control(
            p[present], method="by" if dependent else "bh"
        )
    return adjusted


def williams_test(
    predicted_a: npt.ArrayLike, predicted_b: npt.ArrayLike, human: npt.ArrayLike
) -> Significance:
    """Test whether two judges' Pearson correlations with people differ, given how far the judges agree with each other.

    One score a row each; rows that one of the judges failed on are left out. Of ranks it is the test of Spearman
    correlations. Rows have to be independent, which those of one document are not: `differences` takes whole documents
    there. value: A less B; n: rows. Source: Williams 1959; Graham and Baldwin 2014 for metrics.
    """
    (a, y) = pair(predicted_a, human)
    (b, _) = pair(predicted_b, human)
    usable = ~(np.isnan(a) | np.isnan(b))
    a = a[usable]
    b = b[usable]
    y = y[usable]
    n = len(y)
    if n < 4 or min(map(np.ptp, (a, b, y)), default=0.0) == 0:
        return Significance(
            np.nan,
            np.nan,
            n,
            "constant scores, or fewer than 4 rows that both judges scored",
        )
    r = np.corrcoef([a, b, y])
    return williams(float(r[0, 2]), float(r[1, 2]), float(r[0, 1]), n)


def williams(ra: float, rb: float, between: float, n: int) -> Significance:
    """Return Williams's test from the correlations of two judges with people, and with each other, over n rows.

    >>> round(williams(0.4, 0.5, 0.1, 103).p, 2)
    0.37
    """
    left = 1 - ra**2 - rb**2 - between**2 + 2 * ra * rb * between
    spread = 2 * left * (n - 1) / (n - 3) + (ra + rb) ** 2 / 4 * (1 - between) ** 3
    if spread <= 0:
        return Significance(ra - rb, np.nan, n, "the judges say the same")
    t = (ra - rb) * np.sqrt((n - 1) * (1 + between) / spread)
    return Significance(ra - rb, float(2 * scipy.stats.t.sf(abs(t), n - 3)), n)


# Raters --------------------------------------------------------------------------------------------------------------


def against_others(ratings: npt.ArrayLike) -> list[tuple[Flags, Vector, Vector]]:
    """Return, per rater, the rows that another rater saw too, the rater's scores, and the mean of the others'."""
    table = _ratings(ratings)
    present = ~np.isnan(table)
    result = []
    for rater in range(table.shape[1]):
        others = np.delete(table, rater, axis=1)
        count = np.count_nonzero(~np.isnan(others), axis=1)
        rows = present[:, rater] & (count > 0)
        mean = tidy(np.nansum(others[rows], axis=1) / count[rows])
        result.append((rows, table[rows, rater], mean))
    return result


#: p of raters' agreement from which on it may be chance: that of one side, as of a 95 % interval above 0.
BY_CHANCE = 0.025


def raters_agree(
    ratings: npt.ArrayLike,
    *,
    nominal: bool = False,
    rounds: int = 999,
    seed: int = 0,
) -> float:
    """Return P of agreement as close as this among raters whose ratings have nothing to do with the rows.

    Each rater's ratings are dealt again to the rows that this rater saw, so that strict and lenient raters stay so.
    Above `BY_CHANCE` the raters do not agree beyond chance, and nothing they say measures a judge.

    Args:
        ratings: shape (rows, raters), NaN or None where missing.
        nominal: the numbers stand for categories, which are equal or not.
        rounds: times that ratings are dealt.
        seed: seed of the dealing.

    Returns:
        p in (0, 1]; 1 where no row has two ratings.

    >>> raters_agree([[1, 2], [2, 2], [3, 4], [4, 3], [5, 5], [6, 6]]) < 0.02
    True
    """
    table = _ratings(ratings)
    table = table[np.count_nonzero(~np.isnan(table), axis=1) > 1]
    values = np.unique(table[~np.isnan(table)])
    if len(values) < 2:
        return 1.0
    present = ~np.isnan(table)
    count = present.sum(axis=1)

    def closeness(one: Vector) -> float:
        """Return the rows' squared sums by their ratings: the more alike these are, the larger."""
        parts = [one == value for value in values] if nominal else [one]
        sums = (np.nansum(part, axis=1) for part in parts)
        return float(sum((total**2 / (count - 1)).sum() for total in sums))

    table = table if nominal else table - values.mean()
    rng = np.random.default_rng(seed)
    observed = closeness(table)
    as_close = 0
    dealt = table.copy()
    for _ in range(rounds):
        for rater, seen in enumerate(present.T):
            dealt[seen, rater] = rng.permutation(table[seen, rater])
        as_close += closeness(dealt) >= observed - 1e-9 * abs(observed)
    return (1 + as_close) / (1 + rounds)


def krippendorff_alpha(ratings: npt.ArrayLike, *, nominal: bool = False) -> float:
    """Return Krippendorff's alpha for interval data: 1 = all raters agree, 0 = as by chance, below 0 = worse than that.

    ratings: shape (rows, raters), NaN or None where missing; rows with one rating are left out. nominal: the numbers
    stand for categories, which are equal or not. NaN where fewer than two ratings can be compared or all are equal.
    Source: Krippendorff 2011.
    """
    table = _ratings(ratings)
    table = table[np.count_nonzero(~np.isnan(table), axis=1) > 1]
    values = table[~np.isnan(table)]
    if len(values) < 2 or np.ptp(values) == 0:
        return float("nan")
    if nominal:  # two categories differ in two of their indicators, equal ones in none
        tables = [
            np.where(np.isnan(table), np.nan, table == one) for one in np.unique(values)
        ]
    else:
        tables = [(table - values.mean()) / np.ptp(values)]
    observed, expected = np.sum([_disagreement(one) for one in tables], axis=0)
    return float(1 - observed / expected)


def _disagreement(table: Vector) -> tuple[float, float]:
    """Return observed and expected disagreement of rows with two ratings at least."""
    count = np.count_nonzero(~np.isnan(table), axis=1)
    values = table[~np.isnan(table)]
    means = np.nansum(table, axis=1) / count
    # Squared differences of all ordered pairs among m values are 2 m times their squares about the mean.
    observed = (
        2 * count * np.nansum((table - means[:, None]) ** 2, axis=1) / (count - 1)
    ).sum() / len(values)
    expected = 2 * ((values - values.mean()) ** 2).sum() / (len(values) - 1)
    return float(observed), float(expected)


def _ratings(ratings: npt.ArrayLike) -> Vector:
    try:
        table = np.asarray(ratings, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OptionError(f"ratings: expected a table of numbers ({error})") from None
    if table.ndim != 2:
        raise OptionError(f"ratings: expected shape (rows, raters), got {table.shape}")
    if (np.abs(table) > LARGEST).any():
        raise OptionError(
            "ratings: a rating is infinite; where a rater did not see a row, it is NaN or None"
        )
    return table
