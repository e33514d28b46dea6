"""Measure the errors of gates on coefficients that are looked at after every label.

    python experiments/bench/looks.py [--audits 1000] [--data FOLDER] [--state FILE]

The judges and tasks are those of FOLDER/strong; all rows of one are the population, of which labels are drawn with
replacement. The bar stands beside the judge's own coefficient. `CoefficientTest` looks from 20 labels on, up to 400.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesmith.agreement.coefficients import coefficient_of, decided
from judgesmith.agreement.meta.agreement import share_of
from judgesmith.agreement.resampling import Agreement, Measure
from judgesmith.agreement.sequential import CoefficientTest, looks_of
from judgesmith.experiments.bench.audits import RESULTS, ROWS, recorded
from judgesmith.experiments.studies.saving import save

Vector = npt.NDArray[np.float64]
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


def scored(folder: Path) -> Iterator[Pair]:
    """Yield the ratings and scores of every recorded judge of every set and aspect."""
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem.count("."):
            continue
        rows = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
        if path.stem in ("llmbar", "ragchecker"):
            rows = [row for row in rows if str(row["id"]).endswith("/a")]
        aspects = dict.fromkeys(name for row in rows for name in row["scores"])
        judges = dict.fromkeys(name for row in rows for name in row["judges"])
        for aspect, judge in itertools.product(aspects, judges):
            own = judge.rpartition(".")[2]
            both = [
                (row["scores"].get(aspect), row["judges"].get(judge)) for row in rows
            ]
            both = [pair for pair in both if None not in pair]
            if len(both) < ROWS or (own in aspects and own != aspect):
                continue
            people, scores = np.array(both, dtype=np.float64).T
            if np.ptp(people) and np.ptp(scores):
                yield Pair(people, scores)


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--data", type=Path, default=os.environ.get("JUDGESMITH_DATA"))
    parser.add_argument("--state", type=Path, help="File of finished rows: resumes.")
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the folder of the sets: --data or JUDGESMITH_DATA")
    scores = list(scored(options.data / "strong"))
    decisions = [
        Pair(one.people.astype(np.float64), one.judge.astype(np.float64))
        for one in recorded(options.data / "strong")
    ]
    done: dict[tuple[str, str], list[Any]] = {}
    if options.state is not None and options.state.exists():
        for line in options.state.read_text(encoding="utf-8").splitlines():
            name, situation, *numbers = json.loads(line)
            done[name, situation] = numbers
    for name, situation in itertools.product(COEFFICIENTS, SITUATIONS):
        if (name, situation) in done:
            continue
        pairs = decisions if name in decided() else scores
        if name == "mae":  # of scores on people's scale
            pairs = [
                pair
                for pair in scores
                if pair.people.min() <= pair.judge.min()
                and pair.judge.max() <= pair.people.max()
            ]
        numbers = cell(name, pairs, SITUATIONS[situation], options.audits)
        done[name, situation] = numbers
        print(name, situation, numbers, flush=True)
        if options.state is not None:
            with options.state.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, situation, *numbers]) + "\n")
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
        [[*key, *numbers] for key, numbers in done.items()],
        commands=[f"python experiments/bench/looks.py --audits {options.audits}"],
        seed=0,
    )


if __name__ == "__main__":
    main()
