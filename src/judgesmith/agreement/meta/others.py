"""Agreement that a correlation cannot see: errors on the scale itself, and the effect of the text's length.

The functions give the rows of the data frames of `MetaEvaluation`. x, y: one score per row of a judge, NaN where it
failed, and of people.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesmith.agreement.correlation import Codes, Vector, rowwise
from judgesmith.agreement.meta.inputs import Aspect, EvaluationOptions, scores_of
from judgesmith.agreement.resampling import Range, estimates_of, sums_by
from judgesmith.errors import OptionError

Rows = list[dict[str, Any]]
Judged = tuple[
    dict[str, Any], Aspect, Vector
]  # the columns that name a row, the aspect, and the judge's scores of it


def judged(judges: Iterable[str], aspects: Sequence[Aspect]) -> list[Judged]:
    """Return every judge of every aspect."""
    pairs = itertools.product(aspects, judges)
    return [
        ({"judge": judge, "aspect": a.name}, a, a.x[judge])
        for a, judge in pairs
        if judge in a.x
    ]


# On the scale --------------------------------------------------------------------------------------------------------


def scales(
    every: Iterable[Judged],
    limits: Mapping[str, tuple[float, float] | None],
    on_scale: Collection[str] | None,
    options: EvaluationOptions,
) -> Rows:
    """Return errors on people's scale, or why there are none."""
    result = []
    for about, aspect, x in every:
        failed = int(np.isnan(x).sum())
        row = about | {"n": len(x) - failed, "failed": failed}
        reason = _off_scale(about["judge"], x, limits[aspect.name], on_scale)
        result.append(
            row
            | (
                {"reason": reason}
                if reason
                else errors(x, aspect.y, aspect.units, options)
            )
        )
    return result


def _off_scale(
    judge: str,
    x: Vector,
    limits: tuple[float, float] | None,
    on_scale: Collection[str] | None,
) -> str | None:
    if on_scale is not None and judge not in on_scale:
        return "not known to score on the human ratings' scale"
    x = x[~np.isnan(x)]
    if not len(x):
        return "no row has a prediction"
    if limits is None:
        return "the scale of human ratings is not known"
    low, high = limits
    slack = 1e-9 * max(abs(low), abs(high))
    if x.min() < low - slack or x.max() > high + slack:
        return f"scores from {x.min():.4g} to {x.max():.4g} are not on the human ratings' scale {low:g}..{high:g}"
    return None


def off_scale(aspect: Aspect, rows: Rows) -> dict[str, str]:
    """Return why scores are not known to be on the scale of an aspect, by judge; judges on it are left out."""
    own = (row for row in rows if row["aspect"] == aspect.name)
    return {row["judge"]: row["reason"] for row in own if row.get("reason")}


def errors(
    x: Vector, y: Vector, documents: Codes, options: EvaluationOptions
) -> dict[str, float]:
    """Compute mean absolute error, bias (judge less people) and root mean squared error, with intervals (`limits`)."""
    present = ~np.isnan(x)
    gap = (x - y)[present]
    units = np.unique(documents[present], return_inverse=True)[1]
    sums = sums_by(units, np.abs(gap), gap, gap**2, np.ones(len(gap)))

    def means(counts: Vector) -> Vector:
        mae, bias, square, n = (counts @ sums).T
        return np.stack(
            [mae / n, bias / n, np.sqrt(np.maximum(square / n, 0.0))], axis=1
        )

    rounds = options.rounds_of(len(y))
    within = [Range(0.0, np.inf), Range(-np.inf, np.inf), Range(0.0, np.inf)]
    estimates = estimates_of(
        means,
        len(sums),
        within,
        rounds=rounds,
        confidence=options.confidence,
        seed=options.seed,
    )
    named = zip(("mae", "bias", "rmse"), estimates, strict=True)
    return {
        k: v
        for name, e in named
        for k, v in ((name, e.value), (f"{name}_low", e.low), (f"{name}_high", e.high))
    }


def assumed_on_scale(rows: Rows, on_scale: Collection[str] | None) -> list[str]:
    """Return the note that names the judges whose scale was not given."""
    names = dict.fromkeys(
        str(row["judge"])
        for row in rows
        if on_scale is None and row.get("reason") is None
    )
    if not names:
        return []
    return [
        f"compared on the scale of the human ratings, as their scores lie inside it: {', '.join(names)}; ignore the "
        "error on the scale of one that has a scale of its own"
    ]


def calibrations(every: Iterable[Judged], on_scale: Collection[str] | None) -> Rows:
    """Return the calibration curve of every judge on the scale, a row per bin."""
    return [
        about | {"bin": number} | part
        for about, aspect, x in every
        if on_scale is None or about["judge"] in on_scale
        for number, part in enumerate(calibration_curve(x, aspect.y))
    ]


def calibration_curve(x: Vector, y: Vector, bins: int = 10) -> Rows:
    """Return mean judge and human score in bins of about equally many rows, from low to high.

    Equal predictions share a bin, so there may be fewer bins than asked. Empty without predictions.
    """
    present = ~np.isnan(x)
    x = x[present]
    y = y[present]
    values, code, counts = np.unique(x, return_inverse=True, return_counts=True)
    middle = (
        np.cumsum(counts) - counts / 2
    )  # place of each distinct value among the rows
    bin_of = np.minimum((middle * bins / max(1, len(x))).astype(np.intp), bins - 1)
    curve: Rows = []
    for number in np.unique(bin_of):
        rows = bin_of[code] == number
        inside = values[bin_of == number]
        means = {"predicted": float(x[rows].mean()), "human": float(y[rows].mean())}
        curve.append(
            {"low": float(inside[0]), "high": float(inside[-1]), "n": int(rows.sum())}
            | means
        )
    return curve


# Length and systems --------------------------------------------------------------------------------------------------


def length_biases(every: Iterable[Judged], lengths: npt.ArrayLike | None) -> Rows:
    """Return the length bias of every judge; empty without lengths."""
    if lengths is None:
        return []
    words = scores_of("lengths", lengths)
    return [
        about | length_bias(x, aspect.y, words, aspect.rows)
        for about, aspect, x in every
    ]


def length_bias(
    x: Vector, y: Vector, lengths: Vector, rows: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    """Measure whether the judge favours long outputs more than people do.

    Spearman correlations over all rows, NaN where undefined: of judge and people with the length, of the judge with the
    length given the human score (`bias`: what people's taste for length does not explain), and of the judge with people
    given the length (`agreement`).

    Raises:
        OptionError: If there is not one length per row.
    """
    if len(lengths) != len(rows):
        raise OptionError(
            f"lengths has {len(lengths)} rows and human {len(rows)}; give one length per row"
        )
    present = ~np.isnan(x)
    x = x[present]
    y = y[present]
    long = lengths[rows][present]
    judge, people, agree = (
        float(rowwise(a[None], b[None], ("spearman",))[0, 0])
        for a, b in ((x, long), (y, long), (x, y))
    )
    partial = {
        "bias": _partial(judge, agree, people),
        "agreement": _partial(agree, judge, people),
    }
    counts = {"n": len(x), "failed": int((~present).sum())}
    return {"judge_length": judge, "human_length": people} | partial | counts


def _partial(ab: float, ac: float, bc: float) -> float:
    """Return the correlation of a and b given c; NaN where c determines one of them, or a correlation is NaN."""
    left = (1 - ac * ac) * (1 - bc * bc)
    if left > 1e-12:
        return float(np.clip((ab - ac * bc) / np.sqrt(left), -1.0, 1.0))
    return float("nan")
