"""Measure by simulation how many calls racing saves, and how much quality it loses.

Synthetic judges of known quality are chosen by a plain search and by a race over the same scores.

    python experiments/bench/racing.py [--json] [--repeats 60] [--save]

A judge's score of a row is a part of the human score and noise, most of which all candidates share: they are one model
with different prompts. Its quality is the Q that it would have on endless rows. No model is called.

calls_ratio: calls of the race by those of the plain search. q_difference: true Q of the race's choice less that of the
plain search's choice, the mean over all sizes and cases.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import dspy
import numpy as np

from judgesmith.agreement.objectives import Q
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.examples import Vector, rows_of
from judgesmith.optimizers.search.racing import CHANCE, blocks, chance

DATA = Path(__file__).resolve().parents[1] / "results" / "data"
#: Pearson's r of the candidates with people, drawn again in each repeat, zero-shot first. "one good": one of equals is
#: better.
CASES = {
    "spread": (0.25, 0.60),
    "close": (0.40, 0.50),
    "one good": (0.35, 0.35),
    "equal": (0.45, 0.45),
}
CANDIDATES = 11
#: The share of the noise's variance that all candidates have in common.
COMMON = 0.6


def one_repeat(size: int, case: str, seed: int) -> tuple[float, ...]:
    """Return the true Q of the best candidate, the plain choice and the race's, and the race's share of calls."""
    rng = np.random.default_rng([seed, size, list(CASES).index(case)])
    human = rng.normal(size=size)
    r = rng.uniform(*CASES[case], CANDIDATES)
    if case == "one good":
        r[rng.integers(CANDIDATES)] = 0.6
    noise = COMMON**0.5 * rng.normal(size=size) + (1 - COMMON) ** 0.5 * rng.normal(
        size=(CANDIDATES, size)
    )
    scores = 50 + 15 * (r[:, None] * human + np.sqrt(1 - r[:, None] ** 2) * noise)
    examples = [
        dspy.Example(
            score=50 + 15 * h, group=f"d{i // 2}", document=f"d{i // 2}", system=None
        )
        for i, h in enumerate(human.tolist())
    ]
    q = [Q().reached(percents, rows_of(examples)).value for percents in scores]
    # zero-shot is judged on all rows
    finished = [0]
    judged = size
    for i in range(1, CANDIDATES):
        rows = rows_before_the_end(
            scores[i], scores[max(finished, key=q.__getitem__)], examples, seed
        )
        judged += rows
        if rows == size:
            finished.append(i)
    truth = (
        r + 6 / math.pi * np.arcsin(r / 2) + 2 / math.pi * np.arcsin(r)
    )  # Q of bivariate normal scores
    raced = max(finished, key=q.__getitem__)
    return (
        float(truth.max()),
        float(truth[np.argmax(q)]),
        float(truth[raced]),
        judged / (size * CANDIDATES),
    )


def rows_before_the_end(
    percents: Vector, best: Vector, examples: list[dspy.Example], seed: int
) -> int:
    """Return how many rows a candidate is judged on before it is dropped, or all."""
    seen = np.array([], dtype=int)
    for block in blocks(examples, Q(), seed):
        seen = np.sort(np.concatenate([seen, block]))
        some = [examples[i] for i in seen.tolist()]
        if (
            len(seen) < len(examples)
            and chance(percents[seen], best[seen], some, len(examples), Q(), seed)
            < CHANCE
        ):
            break
    return len(seen)


def main() -> None:
    """Print the table of sizes and cases, and save it on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--save", action="store_true", help="into experiments/results/data"
    )
    arguments = parser.parse_args()
    lines: list[list[Any]] = []
    for size in (30, 60, 120, 300):
        for case in CASES:
            drawn = np.array(
                [one_repeat(size, case, seed) for seed in range(arguments.repeats)]
            )
            best, plain, raced, calls = drawn.T
            gap = raced - plain
            near = [float((best - some <= 0.05).mean()) for some in (plain, raced)]
            error = float(gap.std() / math.sqrt(arguments.repeats))
            lines.append(
                [size, case, float(calls.mean()), [float(gap.mean()), error], *near]
            )
    columns = {
        "rows": "{}",
        "candidates": "",
        "calls": "{:.0%}",
        "true Q, raced − plain": "{:+.3f} ± {:.3f}",
        "within .05 of the best, plain": "{:.0%}",
        "raced": "{:.0%}",
    }
    means = {
        "calls_ratio": np.mean([line[2] for line in lines]),
        "q_difference": np.mean([line[3][0] for line in lines]),
    }
    found = {name: round(float(value), 4) for name, value in means.items()}
    print(
        json.dumps(found)
        if arguments.json
        else "\n".join(f"{name}: {value}" for name, value in found.items())
    )
    command = f"python experiments/bench/racing.py --repeats {arguments.repeats}"
    save(
        DATA if arguments.save else None,
        "racing",
        columns,
        lines,
        commands=[command],
        notes=f"{arguments.repeats} repeats, ± standard error",
    )


if __name__ == "__main__":
    main()
