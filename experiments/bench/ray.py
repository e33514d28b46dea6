"""What more worker processes bring, and whether a kill loses, doubles or repeats a row: `judgesmith score --on ray`.

    python experiments/bench/ray.py [--json] [--seconds 30] [--rate 15] [--latency-ms 300] [--in-flight 8] [--simulate]

A Ray cluster on this machine, once with 1, 2 and 4 workers and as many endpoints, each of which answers `rate` calls a
second, so that endpoints and not cores bound it. Throughput is what the endpoints answered from the first fifth of the
rows to the last one: processes, which start one after another, are counted separately. Then with 4 of both, kill -9
during the run: of a worker; of an endpoint, which is there again five seconds later; of the driver, after which the
same command is run again.

scaling_4: throughput of 4 workers by 4 times that of one; lost, doubled: rows that are not, or more than once, in an
output; repeated: calls for a row beyond its first, over all kills; in_flight: what was under way at those moments at
most, which `repeated` must not exceed. --simulate adds 64 endpoints and 10 million rows of skewed lengths (see
simulated_fleet.py).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesmith.experiments.bench import loopback, scoring, simulated_fleet
from judgesmith.experiments.bench.figures import show
from judgesmith.experiments.bench.loopback import Endpoint

# Of a script the folder is first on the path, and whoever looked for Ray would find this file.
sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != Path(__file__).resolve().parent]

#: Seconds that a run may take beside what its rows do.
PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Load:
    """How endpoints answer and how many calls a worker has under way."""

    rate: float
    latency_ms: float
    in_flight: int


class Fleet:
    """Endpoints that write down in one file what they are asked and what they answer."""

    def __init__(self, folder: Path, load: Load, endpoints: int) -> None:
        self.log = folder / "log.txt"
        self.log.touch()
        self.endpoints = [
            Endpoint(
                loopback.__file__,
                "--rate",
                str(load.rate),
                "--latency-ms",
                str(load.latency_ms),
                "--log",
                str(self.log),
            )
            for _ in range(endpoints)
        ]

    def told(self, what: str) -> list[tuple[int, float]]:
        """(row, time) of everything asked or answered so far; a line that is being written comes next time."""
        lines = [line.split() for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [(int(row), float(at)) for name, row, at in lines if name == what]

    def close(self) -> None:
        for endpoint in self.endpoints:
            endpoint.close()


@contextmanager
def run(folder: Path, fleet: Fleet, workers: int, load: Load) -> Iterator[subprocess.Popen[str]]:
    """`judgesmith score --on ray` in a process of its own, ended with the block."""
    bases = [part for endpoint in fleet.endpoints for part in ("--api-base", endpoint.address)]
    command = [
        sys.executable, "-m", "judgesmith.cli.main", "score", "rows.jsonl", "--judge", "judge.json", "-o", "out.jsonl",
        "--on", "ray", "--workers", str(workers), "--part-rows", "100", "--concurrency", str(load.in_flight), "--json",
        *bases,
    ]  # fmt: skip
    own = {"OPENAI_API_KEY": "none", "JUDGESMITH_CACHE": str(folder / "calls.sqlite")}
    own["RAY_worker_niceness"] = "0"  # else whatever else this machine does comes first
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | own
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(timeout=60)
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The summary of a run that ends well."""
    out, err = process.communicate(timeout=PATIENCE)
    if process.returncode != 0:
        raise RuntimeError(f"the run ended with {process.returncode}: {err[-2000:]}")
    try:
        told: dict[str, Any] = json.loads(out)
    except ValueError:
        raise RuntimeError(f"the run did not end with JSON: {out[:2000]}") from None
    return told


def descendants(process: int) -> list[tuple[int, str]]:
    """(process, its command) of everything below a process."""
    command = ["/bin/ps", "-eo", "pid=,ppid=,args="]
    listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    found, last = [], {process}
    while last:
        below = [(int(pid), args) for pid, parent, args in rows if int(parent) in last]
        found += below
        last = {pid for pid, _ in below}
    return found


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if process.poll() is not None:
            assert process.stderr is not None
            raise RuntimeError(f"the run ended before its time: {process.stderr.read()[-2000:]}")
        if time.monotonic() > end:
            raise RuntimeError("nothing happened for too long")
        time.sleep(0.1)


@contextmanager
def prepared(workers: int, rows: int, load: Load) -> Iterator[tuple[Path, Fleet]]:
    """A folder with rows and a judge, and as many endpoints as workers."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fleet = Fleet(folder, load, workers)
        stack.callback(fleet.close)
        with (folder / "rows.jsonl").open("w") as file:
            for number, row in enumerate(scoring.rows(rows)):
                file.write(json.dumps({"id": f"r{number}", **row}) + "\n")
        scoring.judge_at(fleet.endpoints[0].address, load.in_flight).save(folder / "judge.json")
        yield folder, fleet


def counted(folder: Path, fleet: Fleet, rows: int) -> dict[str, int]:
    """What is wrong with an output, and how often the endpoints were asked for a row again."""
    lines = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    times = Counter(record["id"] for record in map(json.loads, lines) if record["verdict"]["failure"] is None)
    asked = Counter(row for row, _ in fleet.told("asked"))
    return {
        "lost": sum(times[f"r{number}"] == 0 for number in range(rows)),
        "doubled": sum(count - 1 for count in times.values()),
        "repeated": sum(count - 1 for count in asked.values()),
    }


def scaled(workers: int, seconds: float, load: Load) -> dict[str, float]:
    """Rows a second of this number of workers, and the seconds until the first row."""
    rows = int(workers * load.rate * seconds)
    with prepared(workers, rows, load) as (folder, fleet):
        started = time.time()
        with run(folder, fleet, workers, load) as process:
            told = finished(process)
        answered = sorted(at for _, at in fleet.told("answered"))
        running = answered[len(answered) // 5 :]
        return {
            "rows_per_s": round((len(running) - 1) / (running[-1] - running[0]), 2),
            "until_first_row_s": round(answered[0] - started, 1),
            "seconds": told["seconds"],
            **counted(folder, fleet, rows),
        }


def killed(what: str, workers: int, rows: int, load: Load) -> dict[str, int]:
    """A run in which something is killed when a third is answered, and the same command again where it was the
    driver."""
    below: list[tuple[int, str]] = []
    with prepared(workers, rows, load) as (folder, fleet):
        with run(folder, fleet, workers, load) as process:
            wait_for(lambda: len(fleet.told("answered")) > rows / 3, process)
            if what == "worker":
                (victim, *_) = (pid for pid, name in descendants(process.pid) if name.startswith("ray::Scorer"))
                os.kill(victim, signal.SIGKILL)
            elif what == "endpoint":
                fleet.endpoints[-1].kill()
                time.sleep(5)
                fleet.endpoints[-1].start_again()
            else:
                below = descendants(process.pid)
                process.kill()
                process.wait()
            if what != "driver":
                finished(process)
        if what == "driver":
            with run(folder, fleet, workers, load) as process:
                finished(process)
            for pid in {pid for pid, _ in below} & {pid for pid, _ in descendants(1)}:
                os.kill(pid, signal.SIGKILL)  # Ray's own agents outlive a killed driver
        # A worker's calls; of an endpoint those that all workers have there.
        at_once = load.in_flight * (1 if what == "worker" else workers)
        return counted(folder, fleet, rows) | {"in_flight": at_once}


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    load = Load(given.rate, given.latency_ms, given.in_flight)
    runs: list[dict[str, Any]] = []
    rates: dict[int, float] = {}
    for workers in given.workers:
        told = scaled(workers, given.seconds, load)
        rates[workers] = told["rows_per_s"]
        runs.append({"workers": workers, **told})
        say(f"  {runs[-1]}")
    for what in ("worker", "endpoint", "driver"):
        runs.append({"killed": what, **killed(what, max(given.workers), given.rows, load)})
        say(f"  {runs[-1]}")
    first = min(rates)
    found: dict[str, Any] = {
        f"scaling_{n}": round(rates[n] / (n / first * rates[first]), 3) for n in rates if n != first
    }
    for name in ("lost", "doubled", "repeated", "in_flight"):
        found[name] = sum(int(told.get(name, 0)) for told in runs)
    return found | {"runs": runs}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measured run")
    parser.add_argument("--rate", type=float, default=15.0, help="calls a second that an endpoint answers")
    parser.add_argument("--latency-ms", type=float, default=300.0)
    parser.add_argument("--in-flight", type=int, default=8, help="calls of a worker")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rows", type=int, default=1000, help="of each run with a kill")
    parser.add_argument("--simulate", action="store_true", help="also 64 endpoints and 10 million rows")
    given = parser.parse_args(arguments)

    def say(line: str) -> None:
        print(line, file=sys.stderr if given.json else sys.stdout, flush=True)

    found = measure(given, say)
    if given.simulate:
        found["simulated"] = simulated_fleet.measure(say=say)
    show(found, as_json=given.json)


if __name__ == "__main__":
    main()
