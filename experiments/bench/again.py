"""Measure how often the interval of folds that choose again holds the agreement of the chosen candidate.

    python experiments/bench/again.py [--repeats 100] [--output DIR]

Zero-shot and ten candidates judge 40 rows, each with a correlation of its own with quality (equal, spread, or one that
is clearly better) and with errors that they share in part. One is chosen as `compile` chooses; its true Q follows from
its correlation. Two ways to estimate that: folds that choose again among these candidates (`compile`'s way where what
is tried does not depend on scores), five times over; and folds that each try ten candidates of their own, once.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import dspy
import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.objectives import Q
from judgesmith.agreement.resampling import Estimate, Range
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.crossing import FOLDS, RUNS, crossed, on_one_scale
from judgesmith.optimizers.examples import Scored, agreement, rated
from judgesmith.optimizers.fitting.folds import folds
from judgesmith.optimizers.search.base import Candidate, SearchRecord, Trial
from judgesmith.optimizers.search.random import CorrelationRandomSearch

Vector = NDArray[np.float64]
CANDIDATES = 10
SHARED = 0.6
ROUNDS = 200
#: Correlations with quality: of zero-shot, of the candidates on average, their spread, and of one that is better.
WORLDS: dict[str, tuple[float, float, float, float | None]] = {
    "equal": (0.45, 0.45, 0.0, None),
    "spread": (0.45, 0.45, 0.1, None),
    "worse": (0.45, 0.3, 0.1, None),
    "better": (0.2, 0.6, 0.1, None),
    "one good": (0.45, 0.45, 0.0, 0.7),
    "strong": (0.75, 0.75, 0.05, None),
}


def truth(r: float) -> float:
    """Return the Q of two normal variables with this correlation."""
    tau = 2 / np.pi * np.arcsin(r)
    return float(r + 6 / np.pi * np.arcsin(r / 2) + tau)


def drawn(world: str, rng: np.random.Generator) -> Vector:
    """Return the correlations of zero-shot and the candidates."""
    zero, mean, spread, good = WORLDS[world]
    r = np.clip(mean + spread * rng.normal(size=CANDIDATES), -0.2, 0.95)
    if good is not None:
        r[rng.integers(CANDIDATES)] = good
    return np.array([zero, *r])


def judged(r: Vector, human: Vector, common: Vector, rng: Any) -> Vector:
    """Return the scores of candidates, shape (candidates, rows)."""
    own = rng.normal(size=(len(r), len(human)))
    noise = np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own
    said = r[:, None] * human + np.sqrt(1 - r**2)[:, None] * noise
    return np.asarray(50 + 15 * said)


def tried(said: Vector, rows: list[dspy.Example]) -> tuple[Trial, ...]:
    """Return candidates with these scores; all but the first have demonstrations."""
    trials = []
    for number, percents in enumerate(said):
        found = agreement(percents, rows, objective=Q(), seed=0, rounds=0)
        demos = 4 if number else 0
        candidate = Candidate(str(number), "labels", demos, found, rows=len(rows))
        program: Any = SimpleNamespace(number=number)
        trials.append(Trial(candidate, program, Scored((), percents)))
    return tuple(trials)


def once(world: str, count: int, seed: int) -> list[tuple[float, float, float, float]]:
    """Return (truth, value, low, high) of each way."""
    rng = np.random.default_rng([seed, len(world)])
    r = drawn(world, rng)
    human = rng.normal(size=count)
    common = rng.normal(size=count)
    said = judged(r, human, common, rng)
    rows = labelled(human)
    search = CorrelationRandomSearch(seed=seed)
    trials = tried(said, rows)
    chosen, _ = search.choose(trials, rows)
    record = SearchRecord(trials, chosen)
    right = truth(float(r[int(chosen.candidate.name)]))
    again = [
        by_folds(search, record, rows, said, seed + 1_000_003 * run)
        for run in range(RUNS)
    ]
    searched = [by_searches(world, search, rows, human, common, rng, seed)]
    ways = [crossed(runs, Range.of("q")) for runs in (again, searched)]
    return [(right, way.value, way.low, way.high) for way in ways]


def labelled(human: Vector) -> list[dspy.Example]:
    """Return rows of a document each, with human scores in percent."""
    rows = [
        SimpleNamespace(
            source=f"s{n}",
            output=f"o{n}",
            context=None,
            reference=None,
            group=str(n),
            doc_id=str(n),
            system=None,
        )
        for n in range(len(human))
    ]
    made: Any = rows
    return rated(made, (50 + 15 * human).tolist())


def by_folds(
    search: Any, record: SearchRecord, rows: Any, said: Vector, seed: int
) -> Estimate:
    """Return the estimate of one run of folds that choose again."""
    parts = []
    order = []
    for out in folds([row.group for row in rows], FOLDS, seed=seed):
        inside = np.setdiff1d(np.arange(len(rows)), out)
        trial = search.chosen_again(record, rows, inside)
        percents = said[int(trial.candidate.name)]
        parts.append((percents[inside], percents[out]))
        order += out.tolist()
    return reached(parts, [rows[i] for i in order], seed)


def by_searches(
    world: str,
    search: Any,
    rows: Any,
    human: Vector,
    common: Vector,
    rng: Any,
    seed: int,
) -> Estimate:
    """Return the estimate of one run of folds that each try candidates of their own."""
    parts = []
    order = []
    for out in folds([row.group for row in rows], FOLDS, seed=seed):
        inside = np.setdiff1d(np.arange(len(rows)), out)
        said = judged(drawn(world, rng), human, common, rng)
        rest = [rows[i] for i in inside.tolist()]
        chosen, _ = search.choose(tried(said[:, inside], rest), rest)
        percents = said[int(chosen.candidate.name)]
        parts.append((percents[inside], percents[out]))
        order += out.tolist()
    return reached(parts, [rows[i] for i in order], seed)


def reached(parts: Any, rows: Any, seed: int) -> Estimate:
    """Return the agreement of folds' scores with its interval."""
    found = agreement(
        on_one_scale(parts), rows, objective=Q(), seed=seed, rounds=ROUNDS
    )
    return Estimate(found.value, found.low, found.high)


def main() -> None:
    """Print and save the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--labels", type=int, nargs="+", default=[40])
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    cells: list[list[Any]] = []
    for count in given.labels:
        for world in WORLDS:
            runs = np.array([once(world, count, n) for n in range(given.repeats)])
            for place, way in enumerate(
                ("choose again, five times", "search again, once")
            ):
                right, value, low, high = runs[:, place].T
                covered = float(np.mean((low <= right) & (right <= high)))
                width = float(np.mean(high - low))
                bias = value - right
                error = float(np.sqrt(np.mean(bias**2)))
                cells.append(
                    [
                        count,
                        world,
                        way,
                        len(runs),
                        covered,
                        width,
                        float(bias.mean()),
                        error,
                    ]
                )
                print(*cells[-1], flush=True)
    columns = {
        "labels": "{:d}",
        "candidates": "{}",
        "folds": "{}",
        "draws": "{:d}",
        "covered": "{:.3f}",
        "width": "{:.2f}",
        "bias": "{:+.2f}",
        "error": "{:.2f}",
    }
    command = f"python experiments/bench/again.py --repeats {given.repeats}"
    save(given.output, "again", columns, cells, commands=[command])


if __name__ == "__main__":
    main()
