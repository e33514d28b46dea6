"""How far the agreement that a search reports of the candidate it chose is from that candidate's true agreement, by
simulation: the highest Q as it is, and after correction for having been chosen.

    python experiments/bench/selection.py [--json] [--repeats 400]

Synthetic judges as in `bench_racing`: a judge's score of a row is a part of the human score and noise, `common` of
which all candidates share. In groups of two rows, half of everything is shared by the rows of a group. "bias" is the
mean of reported minus true Q over the repeats, beside its standard error. Chosen is by the highest Q and by the rule of
the searches (fewer demonstrations unless clearly beaten). "any" is the mean of all candidates, where nothing is chosen:
how far the draws of this run, and Q of few rows, are off by themselves. No model is called.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import dspy
import numpy as np

from judgesmith.agreement.objectives import Q
from judgesmith.experiments.bench.figures import add_save, save
from judgesmith.experiments.bench.racing import qualities, true_q
from judgesmith.optimizers.examples import Vector
from judgesmith.optimizers.search.racing import value_of
from judgesmith.optimizers.search.selection import MORE, ROUNDS, Contest, Entrant, corrected

#: case, rows, candidates, share of the noise in common, rows a group
CELLS: tuple[tuple[str, int, int, float, int], ...] = (
    ("equal", 40, 16, 0.0, 1),
    ("equal", 40, 16, 0.6, 1),
    ("equal", 40, 16, 0.6, 2),
    ("one good", 40, 16, 0.0, 1),
    ("one good", 40, 16, 0.6, 1),
    ("equal", 80, 8, 0.0, 1),
    ("equal", 80, 8, 0.6, 1),
    ("equal", 80, 8, 0.6, 2),
    ("one good", 80, 8, 0.6, 1),
    ("spread", 40, 16, 0.6, 1),
)


def normal(rows: int, per_group: int, rng: np.random.Generator) -> Vector:
    """Standard normal, half of the variance shared within groups of two or more."""
    shared = 0.5 if per_group > 1 else 0.0
    group = np.repeat(rng.normal(size=-(-rows // per_group)), per_group)[:rows]
    return np.asarray(np.sqrt(shared) * group + np.sqrt(1 - shared) * rng.normal(size=rows))


def one(
    case: str, rows: int, candidates: int, common: float, per_group: int, more: float, rounds: int, seed: int
) -> dict[str, float]:
    """What is reported less the truth, by way of choosing; "any": without choosing.

    Two seeds share their draws, the noise with the other sign, so that luck which all candidates share cancels.
    """
    rng, sign = np.random.default_rng([seed // 2, rows, candidates]), 1 - 2 * (seed % 2)
    r = qualities(case, candidates, rng)
    truth, human, alike = true_q(r), normal(rows, per_group, rng), normal(rows, per_group, rng)
    own = np.array([normal(rows, per_group, rng) for _ in r])
    noise = sign * (np.sqrt(common) * alike + np.sqrt(1 - common) * own)
    said = 50 + 15 * (r[:, None] * human + np.sqrt(1 - r[:, None] ** 2) * noise)
    names = [f"d{i // per_group}" for i in range(rows)]
    examples = [
        dspy.Example(score=50 + 15 * h, group=name, document=name, system=None)
        for h, name in zip(human.tolist(), names, strict=True)
    ]
    entrants = [Entrant(s, value_of(s, examples, Q())) for s in said]
    demos = [0, *rng.integers(1, 5, candidates - 1).tolist()]
    contest = Contest([(d, 0) for d in demos], [True] * candidates)
    found = {"any": float(np.mean([e.q for e in entrants] - truth))}
    for how, sure in (("highest", 0.0), ("rule", 0.7)):
        made = corrected(entrants, contest, examples, sure=sure, seed=seed, more=more, rounds=rounds)
        assert made is not None
        chosen, correction = made
        found |= {
            f"{how}, naive": correction.naive - float(truth[chosen]),
            f"{how}, corrected": correction.value - float(truth[chosen]),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=400, help="an even number")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="resamples; fewer are faster and hardly worse")
    parser.add_argument("--more", type=float, default=MORE)
    parser.add_argument("--cells", type=int, nargs="*", help="numbers of the cells to run, from 0")
    parser.add_argument("--json", action="store_true")
    add_save(parser)
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    if not given.json:
        columns = ("any", "highest, naive", "corrected", "rule, naive", "corrected")
        print("bias ± error (root mean square error)")
        print("case      rows   K common group  " + "  ".join(f"{name:21}" for name in columns))
    for number, cell in enumerate(CELLS):
        if given.cells and number not in given.cells:
            continue
        case, rows, candidates, common, per_group = cell
        started = time.monotonic()
        drawn = [one(*cell, given.more, given.rounds, seed) for seed in range(2 * (given.repeats // 2))]
        told: dict[str, Any] = {
            "case": case, "rows": rows, "candidates": candidates, "common": common, "group": per_group,
            "seconds": round((time.monotonic() - started) / given.repeats, 3),
        }  # fmt: skip
        for name in drawn[0]:
            values = np.array([d[name] for d in drawn])
            pairs = values.reshape(-1, 2).mean(axis=1)
            told[name] = {
                "bias": round(float(values.mean()), 4),
                "error": round(float(pairs.std() / np.sqrt(len(pairs))), 4),
                "rmse": round(float(np.sqrt((values**2).mean())), 4),
            }
        found.append(told)
        if not given.json:
            cells = [f"{told[n]['bias']:+.3f} ± {told[n]['error']:.3f} ({told[n]['rmse']:.2f})" for n in drawn[0]]
            print(f"{case:9} {rows:4} {candidates:3} {common:6.1f} {per_group:5}  " + "  ".join(cells), flush=True)
    equal = [f for f in found if f["case"] in ("equal", "one good")]
    summary: dict[str, Any] = {}
    for kind in ("naive", "corrected"):
        biases = [abs(f[f"{how}, {kind}"]["bias"]) for f in equal for how in ("highest", "rule")]
        summary[f"worst_{kind}_bias"] = max(biases, default=None)
    print(json.dumps(summary | {"more": given.more} | ({"cells": found} if given.json else {})))
    ways = {"any": "any", "highest, as it is": "highest, naive", "highest, corrected": "highest, corrected",
            "rule, as it is": "rule, naive", "rule, corrected": "rule, corrected"}  # fmt: skip
    titles = {"candidates": "{}", "rows, K": "{}, {}", "shared error": "{:.1f}", "rows a group": "{}"}
    save(
        given.save, "selection", titles | dict.fromkeys(ways, "{:+.3f} ± {:.3f} ({:.2f})"),
        [[f["case"], [f["rows"], f["candidates"]], f["common"], f["group"],
          *([f[way]["bias"], f[way]["error"], f[way]["rmse"]] for way in ways.values())] for f in found],
        notes=f"{given.repeats} repeats, ± standard error, root mean square error in brackets",
    )  # fmt: skip


if __name__ == "__main__":
    main()
