"""Measure how calls that are never answered slow down all others.

    python experiments/bench/hanging.py [--json] [--rows 600] [--latency-ms 50] [--repetitions 3]

The same rows with a model's server that answers everything, and with one that leaves every fiftieth call unanswered: a
judge's `score_many`, with its default of places, and the limit of 120 seconds a call that connections have. Medians of
the repetitions, by turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

from judgesmith.experiments.bench.loopback import loopback
from judgesmith.experiments.bench.scoring import judge_at, rows


def speed(base: str, count: int, in_flight: int) -> dict[str, Any]:
    """Rows a second, rows without a score, and the calls that were sent for a row."""
    judge = judge_at(base, in_flight)
    warm = list(judge.score_many(rows(100), progress=False))
    assert all(verdict.failure is None for verdict in warm[:1])
    started = time.perf_counter()
    verdicts = list(judge.score_many(rows(count), progress=False))
    seconds = time.perf_counter() - started
    calls = sum(verdict.usage.calls for verdict in verdicts)
    failed = sum(verdict.failure is not None for verdict in verdicts)
    return {
        "rows a second": round(count / seconds, 1),
        "failed": failed,
        "calls a row": round(calls / count, 3),
    }


def main() -> None:
    """Print the throughput with and without hanging calls."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--in-flight", type=int, default=16)
    arguments = parser.parse_args()
    every: dict[str, list[dict[str, Any]]] = {"all answered": [], "2 % hang": []}
    for _ in range(arguments.repetitions):
        for name, hanging in (("all answered", 0), ("2 % hang", 50)):
            with loopback(latency_ms=arguments.latency_ms, hanging=hanging) as base:
                every[name].append(speed(base, arguments.rows, arguments.in_flight))
    found: dict[str, Any] = {
        name: {part: statistics.median(one[part] for one in runs) for part in runs[0]}
        for name, runs in every.items()
    }
    found["share kept"] = round(
        found["2 % hang"]["rows a second"] / found["all answered"]["rows a second"], 2
    )
    if not arguments.json:
        print(*found.items(), sep="\n")
    if arguments.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
