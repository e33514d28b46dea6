"""Measure the speed of `judgesmith score --on ray` with a waiting model, and the cost of kills.

    python experiments/bench/ray.py [--json] [--kills 10] [--rows 256] [--save]

A made-up model answers within 200 to 1000 ms; 8 calls are under way for each worker.

scaling_4: rows a second with four workers over four times those with one, from the first call to the last answer;
    256 rows a worker.
lost, doubled, broken: rows that the output has not, or twice, and files that cannot be read, after SIGKILL of a worker
    and of the driver in turn; after that of a driver the same command is given again.
listeners_beyond_loopback: sockets of Ray's processes that listen to other machines, as seen in each run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pyarrow.parquet as pq

import judgesmith as js
from judgesmith.experiments.bench.waiting import Served, waiting
from judgesmith.experiments.studies.saving import save

RESULTS = Path(__file__).resolve().parents[1] / "results/data"
AT_ONCE = 8
LOW = 200
HIGH = 1000
LOOPBACK = ("127.", "::1", "::ffff:127.")
LONGEST = 900.0


@dataclass
class Run:
    """Runs in one folder. beyond: listening addresses that other machines reach."""

    folder: Path
    model: Served
    beyond: set[str] = field(default_factory=set)
    took: list[float] = field(default_factory=list)

    def rows(self, count: int) -> Path:
        """Write a file of that many rows; return its path."""
        path = self.folder / f"rows{count}.jsonl"
        lines = (
            {"id": f"r{n}", "source": f"source {n}", "output": f"text {n}"}
            for n in range(count)
        )
        path.write_text(
            "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
        )
        return path

    def start(self, rows: Path, out: Path, workers: int) -> subprocess.Popen[str]:
        """Start `judgesmith score --on ray` in a process of its own."""
        command = [
            "score",
            rows,
            "--judge",
            self.folder / "judge.json",
            "--api-base",
            self.model.base,
            "--no-cache",
        ]
        command += [
            "--on",
            "ray",
            "--workers",
            workers,
            "--concurrency",
            AT_ONCE * workers,
            "-o",
            out,
            "--json",
        ]
        started = [sys.executable, "-m", "judgesmith", *map(str, command)]
        return subprocess.Popen(
            started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def end(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """Wait for a run and return its summary.

        Raises:
            RuntimeError: If the run failed.
        """
        began = time.monotonic()
        stdout, stderr = process.communicate(timeout=LONGEST)
        self.took.append(time.monotonic() - began)
        if process.returncode:
            raise RuntimeError(stderr[-2000:])
        summary: dict[str, Any] = json.loads(stdout)
        return summary

    def wait_for(
        self, calls: int, process: subprocess.Popen[str]
    ) -> list[psutil.Process]:
        """Wait until this number of calls was made; return the processes of the run."""
        while self.model.counts()["calls"] < calls:
            if process.poll() is not None:
                raise RuntimeError(process.communicate()[1][-2000:])
            time.sleep(0.2)
        children: list[psutil.Process] = psutil.Process(process.pid).children(
            recursive=True
        )
        self.look([psutil.Process(process.pid), *children])
        return children

    def look(self, processes: list[psutil.Process]) -> None:
        """Note who listens to other machines."""
        for one in processes:
            try:
                found = [
                    c.laddr.ip
                    for c in one.net_connections("inet")
                    if c.status == psutil.CONN_LISTEN
                ]
            except psutil.Error:
                continue
            self.beyond |= {
                f"{one.name()} {address}"
                for address in found
                if not address.startswith(LOOPBACK)
            }

    def speed(self, workers: int, rows: int) -> float:
        """Rows a second, from the first call to the last answer."""
        self.model.counts(reset=True)
        process = self.start(
            self.rows(rows * workers), self.folder / f"speed{workers}", workers
        )
        self.wait_for(rows * workers // 2, process)
        self.end(process)
        counts = self.model.counts()
        assert counts["calls"] >= rows * workers, counts
        assert counts["most"] <= AT_ONCE * workers, counts
        return float(rows * workers / counts["seconds"])

    def killed(self, victim: str, number: int, share: float) -> dict[str, int]:
        """Kill a process of a run and resume it; return counts of lost, doubled, broken rows and of repeated calls."""
        rows = self.rows(192)
        out = self.folder / f"killed{number}"
        count = 192
        self.model.counts(reset=True)
        process = self.start(rows, out, 2)
        children = self.wait_for(round(share * count), process)
        if victim == "worker":
            workers = [child for child in children if "MapWorker" in named(child)]
            workers[number % len(workers)].kill()
        else:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            process = self.start(rows, out, 2)
        self.end(process)
        ids: Counter[str] = Counter()
        broken = 0
        for file in (out / "rows").glob("*.parquet"):
            try:
                ids.update(pq.read_table(file, columns=["id"])["id"].to_pylist())
            except Exception as error:
                print(f"{file.name}: {error}", file=sys.stderr)
                broken += 1
        doubled = sum(ids.values()) - len(ids)
        counts = self.model.counts()
        repeated = counts["calls"] - counts["different"]
        return {
            "lost": count - len(ids),
            "doubled": doubled,
            "broken": broken,
            "repeated": repeated,
        }


def named(process: psutil.Process) -> str:
    """Return a process's command line; "" if it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def main() -> None:
    """Print the counts of all kills and the speeds, and save them on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument(
        "--rows", type=int, default=256, help="of a worker, for the speed"
    )
    parser.add_argument(
        "--save", action="store_true", help="into experiments/results/data"
    )
    arguments = parser.parse_args()
    drawn = random.Random(0)
    total: Counter[str] = Counter(lost=0, doubled=0, broken=0, repeated=0)
    with TemporaryDirectory() as folder, waiting(LOW, HIGH) as model:
        run = Run(Path(folder), model)
        js.Judge(js.DirectScorer("fluency", reading="said"), lm="openai/made-up").save(
            run.folder / "judge.json"
        )
        if arguments.rows:
            speeds = {workers: run.speed(workers, arguments.rows) for workers in (1, 4)}
        else:
            speeds = {1: 0.0, 4: 0.0}
        for number in range(arguments.kills):
            victim = ("worker", "driver")[number % 2]
            cost = run.killed(victim, number, drawn.uniform(0.15, 0.85))
            print(f"{victim} {number}: {cost}", file=sys.stderr)
            total.update(cost)
    scaling = speeds[4] / (4 * speeds[1]) if speeds[1] else 0.0
    result = {
        "scaling_4": round(scaling, 3),
        **total,
        "listeners_beyond_loopback": len(run.beyond),
    }
    result |= {
        "kills": arguments.kills,
        "rows_a_second_1": round(speeds[1], 2),
        "rows_a_second_4": round(speeds[4], 2),
    }
    print(
        json.dumps(result)
        if arguments.json
        else "\n".join(f"{name}: {value}" for name, value in result.items())
    )
    columns = {"rows/s, 1 worker": "{:.1f}", "4 workers": "{:.1f}", "scaling": "{:.2f}"}
    columns |= dict.fromkeys(
        ("kills", "lost", "doubled", "broken", "calls repeated", "listeners"), "{:d}"
    )
    row = [
        speeds[1],
        speeds[4],
        scaling,
        arguments.kills,
        *(total[name] for name in ("lost", "doubled", "broken", "repeated")),
    ]
    command = f"python experiments/bench/ray.py --json --kills {arguments.kills} --rows {arguments.rows} --save"
    save(
        RESULTS if arguments.save else None,
        "ray",
        columns,
        [[*row, len(run.beyond)]],
        commands=[command],
        seed=0,
    )


if __name__ == "__main__":
    main()
