"""May a judge take a rater's place? How far it is on the way to one, and the alternative annotator test.

Each rater in turn is left out, and the judge and that rater are compared: who is closer to the other raters, row by
row? The judge wins against a rater if its share of wins is certainly not lower than the rater's less epsilon, which is
what a rater's time and cost are worth. It may replace raters if it wins against half of them or more.

Source: Calderon, Reichart and Dror 2025, The Alternative Annotator Test for LLM-as-a-Judge (ACL 2025). Theirs is a
paired t-test over rows; rows of one document are taken as one piece of evidence here.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from ..errors import LabelsError, OptionError
from .correlation import Codes, Vector, id_codes, impute, vector
from .fields import json_values
from .resampling import Agreement, Estimate, percentiles
from .significance import against_others

#: What the test asks for, to be believed.
RATERS, ROWS = 3, 30
EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class AgainstRater:
    """The judge against one rater. rows: those that the rater and another one rated and the judge scored. judge, human:
    shares of rows in which the judge, or the rater, is as close to the others or closer (ties count for both). p:
    one-sided, of the judge being worse by epsilon or more; won: after Benjamini and Yekutieli's correction."""

    rater: int
    rows: int
    judge: float
    human: float
    p: float
    won: bool


@dataclass(frozen=True, slots=True)
class Replacement:
    """omega: share of the raters that the judge wins against; rho: mean of its shares of wins, its advantage. passed:
    omega is half or more. conditions: what the test asks for and does not have here."""

    omega: float
    rho: float
    epsilon: float
    passed: bool
    raters: tuple[AgainstRater, ...]
    conditions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; NaN becomes null."""
        return dict(json_values(asdict(self)))


def way_to_rater(
    judge: npt.ArrayLike,
    ratings: npt.ArrayLike,
    *,
    documents: Iterable[Hashable] | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """How far a judge is on the way from guessing (0) to one human rater (1, and beyond): the unit that compares sets,
    where Q depends on how well people agree.

    Of each rater in turn, and of the judge, Q with the mean of the other raters on the same rows is taken; the judge's
    mean over its raters' mean. judge: one score a row, on any scale, NaN where it failed (imputed, as in Q). ratings:
    shape (rows, raters), NaN where there is none. The interval is of resampled documents; all is NaN where raters do
    not agree beyond chance.

    >>> way_to_rater([1, 2, 3, 4, 5, 6], [[1, 2], [2, 2], [3, 4], [4, 3], [5, 5], [6, 6]], rounds=0).value > 1
    True
    """
    x, table = vector(judge, "judge", missing=True), np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(x):
        raise LabelsError(f"ratings have shape {table.shape}; {len(x)} rows of raters are needed")
    codes = np.arange(len(x)) if documents is None else id_codes(documents, len(x), "documents")
    x, count = impute(x) if not np.isnan(x).all() else np.zeros(len(x)), int(codes.max(initial=-1)) + 1
    sides = against_others(table)
    people = Agreement.of_mean([(own, rest, codes[rows], None) for rows, own, rest in sides], count, "pooled", "sum")
    ours = Agreement.of_mean([(x[rows], rest, codes[rows], None) for rows, _, rest in sides], count, "pooled", "sum")
    if math.isnan(people.values[0]) or people.values[0] <= 0:
        return Estimate(math.nan)
    value = (0.0 if math.isnan(ours.values[0]) else ours.values[0]) / people.values[0]
    if not rounds or people.reason or ours.reason:
        return Estimate(value)
    above, below = (side.resample(rounds, seed)[0][0] for side in (ours, people))
    if np.quantile(below, (1 - confidence) / 2) <= 0:
        return Estimate(math.nan)
    return Estimate(value, *percentiles(above / below, confidence))


def alternative_annotator_test(
    judge: npt.ArrayLike,
    ratings: npt.ArrayLike,
    *,
    documents: Iterable[Hashable] | None = None,
    epsilon: float = 0.2,
    alpha: float = 0.05,
) -> Replacement:
    """Whether the judge may take a rater's place (the alternative annotator test, Calderon et al. 2025).

    judge: one score a row on the raters' scale, NaN where it failed (such rows are left out). ratings: shape (rows,
    raters), NaN where a rater did not see a row; a column has to be one person. Closeness is the root mean squared
    distance from the other raters' scores. epsilon: 0.2 for trusted experts, 0.15 for skilled raters, 0.1 for crowds.

    Returns: `Replacement`; it passed if the judge wins against half of the raters or more. Raises: LabelsError for
    fewer than two raters, OptionError for epsilon or alpha outside 0..1.

    >>> alternative_annotator_test([1, 2, 3, 4] * 10, [[1, 2, 1], [2, 2, 2], [3, 3, 3], [4, 5, 4]] * 10).passed
    True
    """
    if not (0 <= epsilon < 1 and 0 < alpha < 1):
        raise OptionError(f"epsilon is {epsilon}, alpha {alpha}: both lie between 0 and 1")
    scores, table = vector(judge, "judge", missing=True), np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != len(scores) or table.shape[1] < 2:
        raise LabelsError(f"ratings have shape {table.shape}; {len(scores)} rows of two raters or more are needed")
    codes = np.arange(len(scores)) if documents is None else id_codes(documents, len(scores), "documents")
    result = [_against(scores, table, rater, codes, epsilon) for rater in range(table.shape[1])]
    usable = [one for one in result if one.rows and not math.isnan(one.p)]
    if not usable:
        raise LabelsError("no row has a judge's score and the ratings of two raters from two documents or more")
    corrected = scipy.stats.false_discovery_control([one.p for one in usable], method="by")
    done = tuple(replace(one, won=bool(p < alpha)) for one, p in zip(usable, corrected, strict=True))
    omega = float(np.mean([one.won for one in done]))
    rho = float(np.mean([one.judge for one in done]))
    return Replacement(omega, rho, epsilon, omega >= 0.5, done, tuple(_conditions(done, table.shape[1])))


def _against(scores: Vector, table: Vector, rater: int, codes: Codes, epsilon: float) -> AgainstRater:
    others = np.delete(table, rater, axis=1)
    rows = ~np.isnan(scores) & ~np.isnan(table[:, rater]) & ~np.isnan(others).all(axis=1)
    if not rows.any():
        return AgainstRater(rater + 1, 0, math.nan, math.nan, math.nan, False)
    rest = others[rows]
    judge, human = (np.nanmean((rest - own[rows, None]) ** 2, axis=1) for own in (scores, table[:, rater]))
    closer, farther = judge <= human + EQUAL, human <= judge + EQUAL
    lead = farther.astype(float) - closer
    return AgainstRater(
        rater + 1, int(rows.sum()), float(closer.mean()), float(farther.mean()), _worse(lead, codes[rows], epsilon),
        False,
    )  # fmt: skip


def _worse(lead: Vector, codes: Codes, epsilon: float) -> float:
    """One-sided p of the mean lead of a rater being epsilon or more; Student's t over documents."""
    documents = np.unique(codes, return_inverse=True)[1]
    count = int(documents.max()) + 1
    if count < 2:
        return math.nan
    mean = float(lead.mean())
    sums = np.bincount(documents, lead - mean)
    error = math.sqrt(count / (count - 1) * float(sums @ sums)) / len(lead)
    if error <= EQUAL:
        return 0.0 if mean < epsilon else 1.0
    return float(scipy.stats.t.cdf((mean - epsilon) / error, count - 1))


def _conditions(raters: tuple[AgainstRater, ...], columns: int) -> list[str]:
    lines = []
    if len(raters) < RATERS:
        lines.append(f"{len(raters)} of {columns} raters can be compared; the test asks for {RATERS} at least")
    few = [str(one.rater) for one in raters if one.rows < ROWS]
    if few:
        lines.append(f"rater {', '.join(few)}: fewer than {ROWS} rows, which the test asks for")
    return lines
