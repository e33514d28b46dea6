"""Measure the errors of gates on coefficients that are looked at after every label.

    python experiments/bench/looks.py [--audits 1000] [--data FOLDER] [--state FILE]

The judges and tasks are those of FOLDER/strong; all rows of one are the population, of which labels are drawn with
replacement. The bar stands beside the judge's own coefficient. `CoefficientTest` looks from 20 labels on, up to 400.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesmith.agreement.coefficients import coefficient_of, decided
from judgesmith.agreement.meta.agreement import share_of
from judgesmith.agreement.resampling import Agreement, Measure
from judgesmith.agreement.sequential import CoefficientTest, looks_of
from judgesmith.experiments.bench.audits import (
    RESULTS,
    Vector,
    audits_parser,
    measured,
    options_of,
    recorded,
    scored,
)
from judgesmith.experiments.studies.saving import save

MOST = 400
COEFFICIENTS = (
    "spearman",
    "pearson",
    "kendall",
    "cohen-kappa",
    "balanced-accuracy",
    "f1",
    "mae",
)
SITUATIONS = {"at the bar": 0.0, "as hoped": 1.0, "as far below": -1.0}


@dataclass(frozen=True)
class Pair:
    """People's ratings and a judge's scores, or their decisions."""

    people: Vector
    judge: Vector


def agreement(name: str, pair: Pair, rows: npt.NDArray[np.intp]) -> Agreement:
    """Return a coefficient of some rows."""
    x: Vector = pair.judge[rows]
    y: Vector = pair.people[rows]
    if name == "mae":
        return _error(np.abs(np.asarray(x - y)))
    if name in decided():
        codes = np.arange(len(rows))
        return share_of(name, x.astype(np.intp), y.astype(np.intp), codes)
    return Agreement.of([x], Measure(y, documents=None, coefficient=name))


def _error(errors: Vector) -> Agreement:
    def less(drawn: Vector) -> Vector:
        return np.asarray(-(drawn @ errors / drawn.sum(axis=1))[:, None])

    return Agreement(
        [less], [-float(errors.mean())], len(errors), len(errors), False, None
    )


def audit(
    name: str, pair: Pair, test: CoefficientTest, rng: np.random.Generator
) -> tuple[str, int]:
    """Return the decision and the labels that it took."""
    drawn = rng.integers(0, len(pair.people), size=MOST)
    for labels in looks_of(MOST):
        found = agreement(name, pair, drawn[:labels])
        if not found.statistics or math.isnan(found.values[0]):
            continue
        (statistic,) = found.statistics
        each = np.ones((found.documents, found.documents)) - np.eye(found.documents)
        left_out = found.collapsed(np.asarray(statistic(each)))
        if np.isnan(left_out).any():
            continue
        look = test.look([(labels, found.values[0], left_out)], labels)
        if look.decision != "open":
            return look.decision, labels
    return "open", MOST


def tests(name: str, pair: Pair, away: float) -> CoefficientTest | None:
    """Return the test whose bar lies beside the judge's own coefficient; None where that is out of range."""
    every = np.arange(len(pair.people))
    true = agreement(name, pair, every).values[0]
    low = -float(np.ptp(pair.people))
    high = 0.0
    if name != "mae":
        declared = coefficient_of(name)
        low = declared.low
        high = declared.high
    ahead = 0.1 * (high - low)
    bar = true - away * ahead
    middle = (low + high) / 2
    inside = low + ahead < bar < high - 1.5 * ahead
    if not inside or (low == -1 and bar < middle + 0.05):
        return None
    return CoefficientTest(bar, bar + ahead, low, high)


def cell(name: str, pairs: list[Pair], away: float, audits: int) -> list[Any]:
    """Return the audits, how often the judge passes and fails, and the mean labels."""
    rng = np.random.default_rng(0)
    asked = [(pair, test) for pair in pairs if (test := tests(name, pair, away))]
    if not asked:
        return [0, 0, None, None, None]
    found = [audit(name, *asked[k % len(asked)], rng) for k in range(audits)]
    passed = float(np.mean([decision == "passed" for decision, _ in found]))
    failed = float(np.mean([decision == "failed" for decision, _ in found]))
    labels = float(np.mean([count for _, count in found]))
    return [len(asked), audits, passed, failed, labels]


def main() -> None:
    """Run the audits and save the table."""
    options = options_of(audits_parser(__doc__, 1000))
    scores = [
        Pair(people, judge)
        for _, people, judge in scored(options.data)
        if np.ptp(people) and np.ptp(judge)
    ]
    decisions = [
        Pair(one.people.astype(np.float64), one.judge.astype(np.float64))
        for one in recorded(options.data)
    ]

    def numbers(name: str, away: float) -> list[Any]:
        pairs = decisions if name in decided() else scores
        if name == "mae":  # of scores on people's scale
            pairs = [
                pair
                for pair in scores
                if pair.people.min() <= pair.judge.min()
                and pair.judge.max() <= pair.people.max()
            ]
        return cell(name, pairs, away, options.audits)

    rows = measured(COEFFICIENTS, SITUATIONS, numbers, options.state)
    columns = {
        "coefficient": "",
        "the judge is": "",
        "judges": "{:d}",
        "audits": "{:,d}",
        "passes": "{:.1%}",
        "fails": "{:.1%}",
        "labels": "{:.0f}",
    }
    save(
        RESULTS,
        "audits-looks",
        columns,
        rows,
        commands=[f"python experiments/bench/looks.py --audits {options.audits}"],
        seed=0,
    )


if __name__ == "__main__":
    main()
