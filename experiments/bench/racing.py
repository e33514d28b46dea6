"""What racing saves and what it costs, by simulation: synthetic judges of known quality, chosen by a plain search and
by a race over the same scores.

    python experiments/bench/racing.py [--json] [--repeats 200] [--sizes 30 60 120 300]

A judge's score of a row is a part of the human score and noise, most of which all candidates share: they are one model
with different prompts. Its quality is the Q it would have on endless rows. No model is called.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

import dspy
import numpy as np

from judgesmith.agreement.objectives import Q
from judgesmith.experiments.bench.figures import add_save, save
from judgesmith.optimizers.examples import Scored, Vector
from judgesmith.optimizers.search.racing import Racing, race, value_of
from judgesmith.signatures.values import Verdict

#: Pearson's r of the candidates with people, drawn again in each repeat: the first is zero-shot.
CASES = {
    "spread": (0.25, 0.60),
    "close": (0.40, 0.50),
    "one good": None,
    "equal": (0.45, 0.45),
}


def qualities(case: str, candidates: int, rng: np.random.Generator) -> Vector:
    low_high = CASES[case]
    if low_high is None:
        found = np.full(candidates, 0.35)
        found[rng.integers(candidates)] = 0.6
        return found
    return rng.uniform(*low_high, candidates)


def true_q(r: Vector) -> Vector:
    """Q of bivariate normal scores on endless rows: r + (6/pi) asin(r/2) + (2/pi) asin(r)."""
    return np.asarray(r + 6 / np.pi * np.arcsin(r / 2) + 2 / np.pi * np.arcsin(r))


def scores(r: Vector, human: Vector, common: float, rng: np.random.Generator) -> Vector:
    """Candidates × rows, in percent; `common` is the share of the noise's variance that all candidates have alike."""
    noise = np.sqrt(common) * rng.normal(size=len(human)) + np.sqrt(1 - common) * rng.normal(size=(len(r), len(human)))
    return np.asarray(50 + 15 * (r[:, None] * human + np.sqrt(1 - r[:, None] ** 2) * noise))


def rows(human: Vector, per_document: int) -> list[dspy.Example]:
    return [
        dspy.Example(score=50 + 15 * h, group=f"d{i // per_document}", document=f"d{i // per_document}", system=None)
        for i, h in enumerate(human.tolist())
    ]


def one(size: int, case: str, rules: Racing, candidates: int, common: float, seed: int) -> tuple[float, ...]:
    """True Q of the best, of the plain choice and of the race's, and the share of calls that the race took."""
    rng = np.random.default_rng([seed, size, list(CASES).index(case)])
    human, r = rng.normal(size=size), qualities(case, candidates, rng)
    said, examples = scores(r, human, common, rng), rows(human, 2)
    calls = [size]  # zero-shot is judged on all rows

    def score(i: int, block: Any) -> Scored:
        calls.append(len(block))
        percents = said[i + 1, block]
        return Scored(tuple(Verdict(score=p, percent=p) for p in percents.tolist()), percents)

    runners, _ = race(
        [str(i) for i in range(1, candidates)],
        score,
        examples,
        favourite=("zero-shot", said[0]),
        rules=rules,
        seed=seed,
    )
    q = np.array([value_of(s, examples, Q()) for s in said])
    finished = [0] + [i for i, runner in enumerate(runners, start=1) if runner.dropped is None]
    raced = max(finished, key=lambda i: q[i])
    truth = true_q(r)
    return float(truth.max()), float(truth[q.argmax()]), float(truth[raced]), sum(calls) / (size * candidates)


def table(sizes: Sequence[int], rules: Racing, candidates: int, common: float, repeats: int) -> list[dict[str, Any]]:
    found = []
    for size in sizes:
        for case in CASES:
            drawn = np.array([one(size, case, rules, candidates, common, seed) for seed in range(repeats)])
            best, plain, raced, calls = drawn.T
            gap = raced - plain
            found.append(
                {
                    "rows": size,
                    "case": case,
                    "calls": float(calls.mean()),
                    "difference": float(gap.mean()),
                    "error": float(gap.std() / np.sqrt(repeats)),
                    "plain_near_best": float((best - plain <= 0.05).mean()),
                    "raced_near_best": float((best - raced <= 0.05).mean()),
                }
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 60, 120, 300])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--candidates", type=int, default=11)
    parser.add_argument("--common", type=float, default=0.6)
    parser.add_argument("--chance", type=float, default=Racing().chance)
    parser.add_argument("--shares", type=float, nargs="+", default=list(Racing().shares))
    parser.add_argument("--least", type=int, default=Racing().least)
    parser.add_argument("--json", action="store_true")
    add_save(parser)
    given = parser.parse_args()
    rules = Racing(chance=given.chance, shares=tuple(given.shares), least=given.least)
    found = table(given.sizes, rules, given.candidates, given.common, given.repeats)
    if not given.json:
        print("rows  case       calls  Q raced - plain   within 0.05 of the best: plain  raced")
        for f in found:
            print(
                f"{f['rows']:4}  {f['case']:9}  {f['calls']:5.2f}  {f['difference']:+.3f} ± {f['error']:.3f}"
                f"  {f['plain_near_best']:29.2f}  {f['raced_near_best']:5.2f}"
            )
    summary = {
        "calls_ratio": round(float(np.mean([f["calls"] for f in found])), 3),
        "q_difference": round(float(np.mean([f["difference"] for f in found])), 4),
    }
    print(json.dumps(summary | ({"cells": found} if given.json else {})))
    columns = {"rows": "{}", "candidates": "", "calls": "{:.0%}", "true Q, raced − plain": "{:+.3f} ± {:.3f}",
               "within .05 of the best, plain": "{:.0%}", "raced": "{:.0%}"}  # fmt: skip
    save(
        given.save, "racing", columns,
        [[f["rows"], f["case"], f["calls"], [f["difference"], f["error"]], f["plain_near_best"], f["raced_near_best"]]
         for f in found],
        notes=f"{given.repeats} repeats, ± standard error",
    )  # fmt: skip


if __name__ == "__main__":
    main()
