"""Measure the memory of `judgesmith score` over a large Parquet file.

    python experiments/bench/large_files.py [--json] [--rows 200000] [--save]

Rows of 60 and 25 words, one score each from a model's server on loopback that answers at once, no cache of calls, a
process of its own. Memory is the process's at the end of each fifth of the rows, in MB; it is to be level. cpu_ms: the
process's computing time a row, its start included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from judgesmith.experiments.bench.loopback import loopback
from judgesmith.experiments.bench.scoring import make_judge, rows
from judgesmith.experiments.bench.serve import computing, memory
from judgesmith.experiments.studies.saving import save

DATA = Path(__file__).resolve().parents[1] / "results" / "data"
PARTS = 5
#: Rows of one part of the file, which are read at once.
GROUP = 10_000


def write(path: Path, count: int) -> None:
    """Write the rows as Parquet."""
    table = None
    records = rows(count)
    for _ in range(0, count, GROUP):
        part = pa.Table.from_pylist(list(islice(records, GROUP)))
        table = table or pq.ParquetWriter(path, part.schema)
        table.write_table(part)
    assert table is not None
    table.close()


@contextmanager
def scoring(
    file: Path, output: Path, base: str, errors: IO[str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that scores a file."""
    judge = output.with_name("judge.json")
    make_judge("openai/loopback").save(judge)
    command = [sys.executable, "-m", "judgesmith", "score", str(file)]
    command += ["--judge", str(judge), "--api-base", base, "--no-cache"]
    command += ["--concurrency", "64", "-o", str(output)]
    surroundings = os.environ | {"OPENAI_API_KEY": "none"}
    with subprocess.Popen(
        command, stdout=errors, stderr=errors, env=surroundings
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def finished(output: Path, place: int) -> tuple[int, int]:
    """Return how many lines were written after a place of the output, and the place behind them."""
    if not output.exists():
        return 0, place
    with output.open("rb") as file:
        file.seek(place)
        text = file.read()
    return text.count(b"\n"), place + len(text)


def measure(count: int, base: str, folder: Path) -> dict[str, Any]:
    """Return megabytes after each part of the rows, and milliseconds a row."""
    file = folder / "rows.parquet"
    output = folder / "scored.jsonl"
    write(file, count)
    levels: list[float] = []
    error_file = folder / "errors"
    with error_file.open("w") as errors, scoring(file, output, base, errors) as process:
        done = place = 0
        used = now = 0.0
        while process.poll() is None:
            used = computing(process.pid)
            now = memory(process.pid, "VmRSS")
            new, place = finished(output, place)
            done += new
            if done >= count * (len(levels) + 1) // PARTS:
                levels.append(round(now, 1))
            time.sleep(0.1)
    lines = finished(output, place)[0] + done
    if process.returncode or lines != count:
        raise RuntimeError(f"{lines} rows; {error_file.read_text()[-500:]}")
    return {"mb": levels, "cpu_ms": round(1000 * used / count, 3), "rows": count}


def main() -> None:
    """Print the megabytes, and save them on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, loopback(latency_ms=0) as base:
        found = measure(arguments.rows, base, Path(folder))
    print(json.dumps(found))
    counts = [arguments.rows * part // PARTS for part in range(1, PARTS + 1)]
    figures = [list(pair) for pair in zip(counts, found["mb"], strict=False)]
    save(
        DATA if arguments.save else None,
        "large-files",
        {"rows scored": "{:,}", "MB": "{:.0f}"},
        figures,
        commands=["python experiments/bench/large_files.py --save"],
    )


if __name__ == "__main__":
    main()
