"""How often `judgesmith watch` alarms without a reason, and how many rows it needs to notice one: by simulation.

    python experiments/bench/watching.py [--json] [--series 400] [--looks 60] [--seed 0]

A judge's score of a row is its own place plus noise that is new in each run; scores on 1..5 are continuous, rounded to
whole numbers, or without any noise (a model at temperature 0 on a quiet server). False alarms: `--series` series of
`--looks` runs in which nothing changes, with `--alpha` for that number of looks; a series counts if any run alarms.
Changes begin at once and stay: found is the share of series that alarm in the first run after them, rows how many
sentinel or new rows were scored from the change to the alarm (median, nine series in ten; at most 20 runs). No model is
called."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy

from judgesmith.experiments.bench.figures import add_save, save
from judgesmith.watching.history import Run, Traffic
from judgesmith.watching.watching import WatchOptions, compared

MOST_RUNS = 20
Values = Any


@dataclass(frozen=True)
class World:
    """What a judge and its rows are like. sd: of the noise of a sentinel's score; rounded: to whole numbers. shift: of
    all scores, in points; other: the correlation of the scores with those before, for another model; words: factor of
    the length of explanations; outputs: factor of the length of new outputs; better: points by which new rows differ;
    failing: share of rows without a score."""

    sentinels: int = 100
    new: int = 100
    sd: float = 0.3
    rounded: bool = False
    shift: float = 0.0
    other: float = 1.0
    words: float = 1.0
    outputs: float = 1.0
    better: float = 0.0
    failing: float = 0.01


class Watched:
    """A history of simulated runs."""

    def __init__(self, world: World, options: WatchOptions, rng: np.random.Generator) -> None:
        self.options, self.rng = options, rng
        self.place = rng.normal(3.2, 0.8, world.sentinels)
        self.otherwise = rng.normal(3.2, 0.8, world.sentinels)
        self.length = np.exp(rng.normal(3.2, 0.4, world.sentinels))
        self.runs = [self._run(world, True, number == 0) for number in range(options.baseline)]

    def look(self, world: World) -> list[str]:
        """The alarms of one more run."""
        made = compared(self._run(world, False, False), self.runs, self.options)
        self.runs.append(made)
        return made.alarms

    def _scores(self, world: World, place: Values, sd: float) -> Values:
        found = np.clip(place + world.shift + self.rng.normal(0, sd, len(place)) if sd else place + world.shift, 1, 5)
        found = np.round(found) if world.rounded else found
        return np.where(self.rng.random(len(place)) < world.failing, np.nan, found)

    def _run(self, world: World, baseline: bool, first: bool) -> Run:
        place = 3.2 + world.other * (self.place - 3.2) + np.sqrt(1 - world.other**2) * (self.otherwise - 3.2)
        scores = self._scores(world, place, world.sd)
        noise = np.exp(self.rng.normal(0, 0.15, len(scores))) if world.sd else 1.0
        return Run(
            time="", judge="", model="", rows="", baseline=baseline, ids=[""] * len(scores),
            scores=[None if np.isnan(score) else float(score) for score in scores],
            words=list(np.round(self.length * world.words * noise)),
            traffic=self._traffic(world, 5 * world.new if first else world.new) if first or not baseline else None,
        )  # fmt: skip

    def _traffic(self, world: World, rows: int) -> Traffic | None:
        if not rows:
            return None
        scores = self._scores(world, self.rng.normal(3.2 + world.better, 0.85, rows), world.sd)
        known = scores[~np.isnan(scores)]
        return Traffic(
            origin="", rows=rows, documents=rows, failed=rows - len(known), scores=[float(x) for x in known],
            lengths=list(np.round(np.exp(self.rng.normal(4, 0.5, rows)) * world.outputs)),
        )  # fmt: skip


def false_alarms(world: World, given: argparse.Namespace) -> dict[str, Any]:
    options = WatchOptions(alpha=given.alpha, looks=given.looks)
    wrong = looks = 0
    for number in range(given.series):
        watched = Watched(world, options, np.random.default_rng([given.seed, number]))
        alarms = [bool(watched.look(world)) for _ in range(given.looks)]
        wrong += any(alarms)
        looks += sum(alarms)
    interval = scipy.stats.binomtest(wrong, given.series).proportion_ci()
    return {
        "series": given.series, "share": wrong / given.series, "low": float(interval.low), "high": float(interval.high),
        "alarms_per_look": looks / given.series / given.looks,
    }  # fmt: skip


def found(world: World, change: Callable[[World], World], rows: int, given: argparse.Namespace) -> dict[str, Any]:
    """After three quiet looks the change begins. rows: how many a run scores."""
    options = WatchOptions(alpha=given.alpha, looks=365)
    needed = []
    for number in range(given.changed):
        watched = Watched(world, options, np.random.default_rng([given.seed, 1, number]))
        for _ in range(3):
            watched.look(world)
        after = change(world)
        needed.append(next((i for i in range(1, MOST_RUNS + 1) if watched.look(after)), np.inf))
    at_once = float(np.mean(np.array(needed) == 1))
    median, most = (float(np.quantile(needed, q, method="inverted_cdf")) * rows for q in (0.5, 0.9))
    plain = [None if np.isinf(value) else round(value) for value in (median, most)]
    return {"at_once": at_once, "rows_median": plain[0], "rows_90": plain[1], "series": given.changed}


def changed(**values: Any) -> Callable[[World], World]:
    return lambda world: World(**{**world.__dict__, **values})


#: Without a change: name and world.
QUIET: Sequence[tuple[str, World]] = (
    ("continuous, noise 0.3", World()),
    ("whole numbers, noise 0.3", World(rounded=True)),
    ("no noise", World(sd=0.0, failing=0.0)),
    ("20 sentinels, 5 % fail", World(sentinels=20, new=40, failing=0.05)),
)
#: What changes: name, world before, change, rows that a run scores.
CHANGES: Sequence[tuple[str, World, Callable[[World], World], int]] = (
    ("another model (r = 0.8), no noise, 30 sentinels", World(sentinels=30, new=0, sd=0.0), changed(other=0.8), 30),
    ("another model (r = 0.8), 30 sentinels", World(sentinels=30, new=0), changed(other=0.8), 30),
    ("another model (r = 0.8), 100 sentinels", World(new=0), changed(other=0.8), 100),
    ("scores 0.1 lower, 100 sentinels", World(new=0), changed(shift=-0.1), 100),
    ("scores 0.2 lower, 100 sentinels", World(new=0), changed(shift=-0.2), 100),
    ("scores 0.2 lower, whole numbers, 100 sentinels", World(new=0, rounded=True), changed(shift=-0.2), 100),
    ("explanations 20 % longer, 30 sentinels", World(sentinels=30, new=0), changed(words=1.2), 30),
    ("outputs worse by 0.25, 100 new rows a run", World(sentinels=1), changed(better=-0.25), 100),
    ("outputs worse by 0.5, 100 new rows a run", World(sentinels=1), changed(better=-0.5), 100),
    ("outputs 20 % longer, 100 new rows a run", World(sentinels=1), changed(outputs=1.2), 100),
    ("failures 1 % to 5 %, 100 new rows a run", World(sentinels=1), changed(failing=0.05), 100),
    ("failures 1 % to 20 %, 100 new rows a run", World(sentinels=1), changed(failing=0.2), 100),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    add_save(parser)
    parser.add_argument("--series", type=int, default=400)
    parser.add_argument("--changed", type=int, default=100, help="Series for each change.")
    parser.add_argument("--looks", type=int, default=60)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    quiet = [{"world": name} | false_alarms(world, given) for name, world in QUIET]
    noticed = [{"change": name} | found(world, change, rows, given) for name, world, change, rows in CHANGES]
    series, seed = {"notes": f"{given.series} series of {given.looks} runs"}, given.seed
    columns = {"world": "", "series with a false alarm": "{:.1%} [{:.1%}, {:.1%}]"}
    told = [[one["world"], [one["share"], one["low"], one["high"]]] for one in quiet]
    save(given.save, "watching-false-alarms", columns, told, seed=seed, **series)
    columns = {"change": "", "in the first run": "{:.0%}", "rows, median": "{}", "rows, 9 in 10": "{}"}
    told = [[one["change"], one["at_once"], one["rows_median"], one["rows_90"]] for one in noticed]
    save(given.save, "watching-changes", columns, told, seed=seed, notes=f"{given.changed} series a change")
    if given.json:
        print(json.dumps({"alpha": given.alpha, "looks": given.looks, "false_alarms": quiet, "found": noticed}))
        return
    for rows in (quiet, noticed):
        print(pd.DataFrame(rows).to_string(index=False, float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
