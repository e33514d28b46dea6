"""How well `score --on ray` keeps a large fleet busy, by simulation: no cluster, no endpoint, one process.

    python experiments/bench/simulated_fleet.py [--json] [--rows 10000000] [--parts-at-once 2] [--in-flight 32]

64 endpoints that compute 16 calls at once (more wait in line), 64 workers, rows whose times are lognormal (sigma 1: one
row in a hundred takes ten times the median) with a mean of one second. A worker asks the endpoint with the fewest of
its own calls, each one's turn among equals (programs/models/fleet.py), reads ahead at most four times what it has under
way (programs/models/engine.py), and takes its next part when one is whole. bound_s: all work by all slots, or the
longest row; seconds_by_bound: the time taken by that; idle: share of all slots' time without work.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import numpy as np

from judgesmith.experiments.bench.figures import add_save, save

#: Seconds from a worker's whole part to its next one.
TURN = 0.05
SKEW = 1.0
#: What the page of results shows: rows, calls of a worker, parts at once.
TABLE = ((3_000_000, 16, 1), (3_000_000, 16, 2), (10_000_000, 16, 2), (10_000_000, 32, 2))


@dataclass(frozen=True, slots=True)
class Plan:
    """The fleet and how it is used; slots: calls that an endpoint computes at once."""

    endpoints: int = 64
    slots: int = 16
    workers: int = 64
    in_flight: int = 32
    part: int = 500
    parts_at_once: int = 2


class Part:
    """Rows of a worker's part: those that are started, and the first that is not finished."""

    __slots__ = ("done", "first", "head", "next", "size")

    def __init__(self, first: int, size: int) -> None:
        self.first, self.size, self.next, self.head = first, size, 0, 0
        self.done = bytearray(size)


@dataclass(slots=True)
class Worker:
    endpoints: int
    turn: int = 0
    parts: list[Part] = field(default_factory=list)
    under_way: int = 0
    loads: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loads = [0] * self.endpoints

    def endpoint(self) -> int:
        """The least loaded one, in turn."""
        self.turn = start = (self.turn + 1) % self.endpoints
        least = min(self.loads)
        try:
            place = self.loads.index(least, start)
        except ValueError:
            place = self.loads.index(least)
        self.loads[place] += 1
        return place


class Simulation:
    def __init__(self, plan: Plan, times: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        self.plan, self.times = plan, times
        self.workers = [Worker(plan.endpoints) for _ in range(plan.workers)]
        self.busy = [0] * plan.endpoints
        self.lines: list[deque[tuple[float, int, Part, int]]] = [deque() for _ in range(plan.endpoints)]
        self.given = 0
        #: (time, endpoint or -1 for a part that comes, worker, part, row of it); the second number keeps them in order.
        self.events: list[tuple[float, int, int, int, Part | None, int]] = []
        self.count = 0

    def run(self) -> float:
        """Seconds until the last row is finished."""
        for _ in range(self.plan.parts_at_once):
            for number in range(self.plan.workers):
                self._push(0.0, -1, number, None, 0)
        now, events = 0.0, self.events
        while events:
            now, _, endpoint, number, part, row = heappop(events)
            worker = self.workers[number]
            if part is None:
                if self.given >= len(self.times):
                    continue
                worker.parts.append(Part(self.given, min(self.plan.part, len(self.times) - self.given)))
                self.given += self.plan.part
            else:
                self._finish(now, endpoint, number, part, row)
            self._start(now, number, worker)
        return now

    def _push(self, at: float, endpoint: int, worker: int, part: Part | None, row: int) -> None:
        self.count += 1
        heappush(self.events, (at, self.count, endpoint, worker, part, row))

    def _finish(self, now: float, endpoint: int, number: int, part: Part, row: int) -> None:
        worker, line = self.workers[number], self.lines[endpoint]
        worker.under_way -= 1
        worker.loads[endpoint] -= 1
        if line:
            seconds, other, waiting, place = line.popleft()
            self._push(now + seconds, endpoint, other, waiting, place)
        else:
            self.busy[endpoint] -= 1
        part.done[row] = 1
        if row == part.head:
            part.head = part.done.find(b"\0", row)
            if part.head < 0:
                worker.parts.remove(part)
                self._push(now + TURN, -1, number, None, 0)

    def _start(self, now: float, number: int, worker: Worker) -> None:
        """As many calls as the worker may have under way and each of its parts may be read ahead."""
        plan = self.plan
        for part in worker.parts:
            while worker.under_way < plan.in_flight and part.next < min(part.size, part.head + 4 * plan.in_flight):
                row, endpoint = part.next, worker.endpoint()
                part.next += 1
                worker.under_way += 1
                seconds = self.times[part.first + row]
                if self.busy[endpoint] < plan.slots:
                    self.busy[endpoint] += 1
                    self._push(now + seconds, endpoint, number, part, row)
                else:
                    self.lines[endpoint].append((seconds, number, part, row))


def simulate(plan: Plan, rows: int, seed: int = 0) -> dict[str, float]:
    """Time against the bound, and the idle share."""
    times = np.random.default_rng([seed, rows]).lognormal(-SKEW * SKEW / 2, SKEW, rows)
    slots = plan.endpoints * plan.slots
    work, longest = float(times.sum()), float(times.max())
    taken = Simulation(plan, times).run()
    bound = max(work / slots, longest)
    return {
        "rows": rows,
        "seconds": round(taken, 1),
        "bound_s": round(bound, 1),
        "seconds_by_bound": round(taken / bound, 4),
        "idle": round(1 - work / (slots * taken), 4),
    }


def measure(
    rows: int = 10_000_000, plan: Plan | None = None, say: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    plan = plan or Plan()
    say(f"simulated: {rows:,} rows, {plan}")
    return simulate(plan, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", type=int, default=10_000_000)
    for name, default in (("workers", 64), ("in-flight", 32), ("part", 500), ("parts-at-once", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    add_save(parser)
    given = vars(parser.parse_args())
    as_json, rows, folder = given.pop("json"), given.pop("rows"), given.pop("save")
    if folder is not None:  # its own plans, whatever else is asked for
        told = []
        for rows, in_flight, parts in TABLE:
            one = simulate(Plan(in_flight=in_flight, parts_at_once=parts), rows)
            told.append([rows, in_flight, parts, one["idle"], one["seconds_by_bound"]])
        columns = {"rows": "{:,}", "calls of a worker": "{}", "parts at once": "{}", "idle": "{:.1%}",
                   "time by the bound": "{:.3f}"}  # fmt: skip
        this = "python experiments/bench/simulated_fleet.py --save"
        save(folder, "simulated-fleet", columns, told, commands=[this], seed=0)
        return
    found = measure(rows, Plan(**given), lambda line: print(line, file=sys.stderr))
    print(json.dumps(found) if as_json else "\n".join(f"{name:18} {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
