"""How sure a search should be before it leaves zero-shot, by simulation: what the chosen candidate's true Q gains over
zero-shot's, where demonstrations harm, do nothing or help on average.

    python experiments/bench/sureness.py [--json] [--repeats 400] [--sizes 40 80]

Synthetic judges as in `bench_racing`, two rows a document. Zero-shot's r with people is 0.5 (Q 1.32); the candidates'
are normal around it, moved by `shift`, with standard deviation `spread`; 0.1 of r is about 0.27 of Q there. The rule is
the searches' (fewer demonstrations unless clearly beaten, in the share `sure` of paired resamples; 0 takes the highest
Q). "best": what would be gained by who knew the truth. No model is called.
"""

from __future__ import annotations

import argparse
import json
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from judgesmith.agreement.objectives import Q
from judgesmith.agreement.significance import Difference
from judgesmith.experiments.bench.figures import add_save, save
from judgesmith.experiments.bench.racing import rows, scores, true_q
from judgesmith.optimizers.examples import clearly, difference
from judgesmith.optimizers.search.racing import value_of
from judgesmith.optimizers.search.selection import Contest

SHIFTS = (-0.15, -0.08, 0.0, 0.08)
SPREADS = (0.03, 0.1)
SURE = (0.0, 0.6, 0.7, 0.8, 0.9)
ZERO_SHOT = 0.5


def one(size: int, shift: float, spread: float, candidates: int, common: float, seed: int) -> list[float]:
    """The true Q gained over zero-shot: by who knows the truth, then at each value of SURE."""
    rng = np.random.default_rng([seed, size, round(1000 * (1 + shift)), round(1000 * spread)])
    r = np.append(ZERO_SHOT, np.clip(ZERO_SHOT + shift + spread * rng.normal(size=candidates), -0.95, 0.95))
    human = rng.normal(size=size)
    said, examples = scores(r, human, common, rng), rows(human, 2)
    q = [value_of(s, examples, Q()) for s in said]
    contest = Contest([(d, 0) for d in (0, *rng.integers(1, 9, candidates).tolist())], [True] * len(q))

    @cache
    def gap(first: int, second: int) -> Difference:
        return difference(said[first], said[second], examples, objective=Q(), seed=seed, rounds=500)

    def chosen(sure: float) -> int:
        return contest.chosen(q, (lambda first, second: clearly(gap(first, second), sure)) if sure else None)

    gained = true_q(r) - true_q(r)[0]
    return [float(gained.max()), *(float(gained[chosen(sure)]) for sure in SURE)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--sizes", type=int, nargs="+", default=[40, 80], help="rows")
    parser.add_argument("--candidates", type=int, default=6, help="beside zero-shot")
    parser.add_argument("--common", type=float, default=0.6, help="share of the noise that all candidates have alike")
    parser.add_argument("--json", action="store_true")
    add_save(parser)
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    if not given.json:
        print("true Q less zero-shot's, by the share of resamples that a candidate must win (standard error)")
        print("rows  shift  spread  best    " + "".join(f"{sure:<16}" for sure in SURE))
    for size, shift, spread in product(given.sizes, SHIFTS, SPREADS):
        drawn = np.array([one(size, shift, spread, given.candidates, given.common, i) for i in range(given.repeats)])
        mean, error = drawn.mean(axis=0), drawn.std(axis=0) / np.sqrt(len(drawn))
        gains = {
            str(s): [round(float(m), 4), round(float(e), 4)] for s, m, e in zip(SURE, mean[1:], error[1:], strict=True)
        }
        found.append(
            {"rows": size, "shift": shift, "spread": spread, "best": round(float(mean[0]), 4), "gained": gains}
        )
        if not given.json:
            told = "".join(f"{m:+.3f} ({e:.3f})  " for m, e in gains.values())
            print(f"{size:4} {shift:+6.2f} {spread:6.2f}   {mean[0]:+.3f}  {told}", flush=True)
    summary = {str(s): round(float(np.mean([f["gained"][str(s)][0] for f in found])), 4) for s in SURE}
    print(json.dumps({"mean_gained": summary} | ({"cells": found} if given.json else {})))
    columns = {"rows": "{}", "candidates on average (of r)": "{:+.2f}", "spread": "{:.2f}", "best possible": "{:.3f}"}
    columns |= {"highest Q" if sure == 0 else f"{100 * sure:.0f} %": "{:+.3f} ({:.3f})" for sure in SURE}
    table: list[list[Any]] = [[f["rows"], f["shift"], f["spread"], f["best"], *f["gained"].values()] for f in found]
    errors = np.array([[f["gained"][str(s)][1] for s in SURE] for f in found])
    mean = zip(summary.values(), np.sqrt((errors**2).sum(axis=0)) / len(found), strict=True)
    table.append(["mean of all", None, None, float(np.mean([f["best"] for f in found])), *map(list, mean)])
    save(given.save, "sureness", columns, table, notes=f"{given.repeats} repeats, standard error in brackets")


if __name__ == "__main__":
    main()
