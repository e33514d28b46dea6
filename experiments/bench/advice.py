"""Is the advice on more labels right? What a learning curve foretells beside what labels then gain.

    JUDGESMITH_DATA=… nice python experiments/bench/advice.py WORK.jsonl [--draws 4] [--save]

For every recorded judge of `judgesmith study efficiency`, labels are drawn, and their curve is asked what 20 to 200
labels would gain. The same numbers of labels are then drawn, weighed beside the judge, and measured on rows of other
documents: the mean over draws is what they gain. What is usual was learnt without the set that it is used on.

WORK.jsonl holds one line for each task; a run that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.experiments.bench.kept import Kept
from judgesmith.experiments.bench.sets import data_folder
from judgesmith.experiments.studies.efficiency import (
    Problem,
    problems,
    read_sets,
    split,
)
from judgesmith.experiments.studies.learners import Alone, Beside, filled
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.fitting.curve import (
    SPOKEN,
    USUAL,
    Curve,
    Usual,
    curve_of,
    with_counts,
)
from judgesmith.optimizers.fitting.readings import agreement

RESULTS = Path(__file__).parents[1] / "results" / "data"
#: Labels that a curve is drawn from.
AT_HAND = (40, 80, 160)
#: The least spread of a between judges, and beyond how many spreads one is an odd one.
LEAST_SPREAD = 0.2
FAR = 3.0


def replay(problem: Problem, draws: int) -> dict[str, Any]:
    """Return a by the labels at hand, with its error, for each draw; and what labels gained."""
    own = filled(problem.rows.judge)
    table = with_counts(own, problem.rows.counted)
    alone: dict[int, list[Any]] = {size: [] for size in AT_HAND}
    gained: dict[int, list[float]] = {size: [] for size in SPOKEN}
    for draw in range(draws):
        order, test = split(problem, draw)
        rest = problem.rows.rows(test)
        human = problem.ratings[test]
        before = agreement(Alone().fit(rest, human)(rest), human)
        for size in SPOKEN:
            if size <= len(order):
                at = order[:size]
                score = Beside().fit(problem.rows.rows(at), problem.ratings[at])
                gained[size].append(agreement(score(rest), human) - before)
        for size in AT_HAND:
            at = order[:size]
            enough = size <= len(order) and len(set(table.rows(at).groups)) > 7
            if enough and np.ptp(problem.ratings[at]) > 0 and np.ptp(own[at]) > 0:
                found = curve_of(table.rows(at), problem.ratings[at], seed=draw)
                alone[size].append([*found.alone, found.own])
    means = {size: float(np.mean(some)) for size, some in gained.items() if some}
    return {
        "task": problem.name,
        "set": problem.set,
        "alone": alone,
        "gained": means,
    }


def usual(lines: Sequence[Mapping[str, Any]]) -> Usual:
    """Return what gains look like: most judges gain about the median, a few far more."""
    found = []
    for line in lines:
        x = np.array([USUAL.share(int(size)) for size in line["gained"]])
        y = np.array(list(line["gained"].values()))
        found.append(float(x @ y / (x @ x)))
    a = np.array(found)
    most = float(np.median(a))
    spread = max(LEAST_SPREAD, 1.4826 * float(np.median(np.abs(a - most))))
    far = np.abs(a - most) > FAR * spread
    odd = (int(far.sum()) + 1) / (len(a) + 2)
    reach = float(a[far].mean()) if far.any() else USUAL.far
    return Usual(USUAL.half, most, spread, odd, reach)


def foretold(line: Mapping[str, Any], others: Usual) -> list[dict[str, Any]]:
    """Return each curve's gains beside those that came."""
    found = []
    for hand, draws in line["alone"].items():
        for value, error, own in draws:
            curve = Curve.of(int(hand), own, (value, error), others)
            for size, came in line["gained"].items():
                said, low, high = curve.gain(int(size))
                one = {
                    "hand": int(hand),
                    "labels": int(size),
                    "said": said,
                    "held": low <= came <= high,
                    "error": said - came,
                    "one figure": others.mean * others.share(int(size)) - came,
                    "by itself": value * others.share(int(size)) - came,
                    "width": high - low,
                    "came": came,
                    "certain": curve.certain,
                }
                found.append(one | {"set": line["set"], "task": line["task"]})
    return found


def table(lines: Sequence[Mapping[str, Any]]) -> tuple[dict[str, str], list[list[Any]]]:
    """Return errors and coverage of what was foretold, by labels at hand and labels asked about."""
    columns = {
        "labels at hand": "{:d}",
        "labels asked about": "{:d}",
        "sets, tasks": "{:d}, {:d}",
        "came": "{:+.3f}",
        "said": "{:+.3f}",
        "error": "{:.3f}",
        "error of one figure for all": "{:.3f}",
        "error of the file's own curve alone": "{:.3f}",
        "80 % intervals hold": "{:.2f}",
        "their width": "{:.2f}",
        "certain of a gain": "{:.0%}",
        "came where certain": "{:+.3f}",
    }
    said: list[dict[str, Any]] = []
    for line in lines:
        others = usual([one for one in lines if one["set"] != line["set"]])
        said += foretold(line, others)
    rows = []
    for hand in AT_HAND:
        for size in SPOKEN:
            some = [one for one in said if (one["hand"], one["labels"]) == (hand, size)]
            if some:
                rows.append([hand, size, *_row(some)])
    return columns, rows


def _row(some: Sequence[Mapping[str, Any]]) -> list[Any]:
    sizes = [len({one["set"] for one in some}), len({one["task"] for one in some})]

    def root(key: str) -> float:
        return float(np.sqrt(np.mean([one[key] ** 2 for one in some])))

    def mean(key: str, of: Sequence[Mapping[str, Any]] = some) -> float:
        return float(np.mean([one[key] for one in of])) if of else math.nan

    certain = [one for one in some if one["certain"]]
    return [
        sizes,
        mean("came"),
        mean("said"),
        root("error"),
        root("one figure"),
        root("by itself"),
        mean("held"),
        mean("width"),
        mean("certain"),
        mean("came", certain),
    ]


def main() -> None:
    """Run what is missing, and save the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    data_folder()  # ends here where the variable is not set
    kept = Kept(options.work)
    done = {line["task"] for line in kept.lines}
    for problem in problems(read_sets(None), None, [], "beside", done):
        line = kept.add(replay(problem, options.draws))
        print(problem.name, line["gained"], flush=True)
    print(usual(kept.lines))
    if options.save:
        columns, rows = table(kept.lines)
        command = shlex.join(["python", "experiments/bench/advice.py", *sys.argv[1:]])
        notes = (
            f"{options.draws} draws a task; what is usual was learnt without the set"
        )
        save(RESULTS, "advice", columns, rows, commands=[command], seed=0, notes=notes)


if __name__ == "__main__":
    main()
