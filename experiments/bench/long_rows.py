"""Measure what `judgesmith score` takes for a long row: a judge that reads in this process, and one that is asked.

    JUDGESMITH_DATA=… python experiments/bench/long_rows.py [--kept work.jsonl] [--save]

Two judges of a model in this process: one of readings, compiled from 40 rows of `summeval`, and one that is asked one
question (`--method direct`). A row is an article and its summary, of which one has so many words: behind its own stand
those of other articles. Each cell is a command of its own, as a user gives it.

Processor time is user and system together, memory the most that was resident. *Silence* is the longest time without a
line on standard error. *Estimate* is what `--dry-run` said before, on a machine of which nothing is known. What is kept
is not measured again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesmith.datasets.benchmarks import catalog
from judgesmith.experiments.bench.kept import Kept
from judgesmith.experiments.studies.saving import save

DATA = Path(__file__).resolve().parents[1] / "results" / "data"
WORDS = (60, 500, 1000, 3000, 6000)
#: Words of rows that are scored together, and their number.
LONG = 3000
TOGETHER = 6
#: Labels: so many documents, with so many outputs each.
DOCUMENTS = 10
OUTPUTS = 4
QUESTION = "Is the summary relevant: does it hold the important points of the article?"
COLUMNS = {
    "judge": "",
    "long text": "",
    "rows": "{}",
    "words each": "{:,}",
    "s of processor": "{:.0f}",
    "s of wall": "{:.0f}",
    "estimate, s": "{:.0f}",
    "silence, s": "{:.0f}",
    "MB at most": "{:,}",
    "of the source read": "{:.0%}",
    "interval": "",
}


class Texts:
    """The rows that judges are made from and that they score."""

    def __init__(self) -> None:
        lines = catalog.resolve("summeval").read_text(encoding="utf-8").splitlines()
        documents: dict[str, list[dict[str, Any]]] = {}
        for row in map(json.loads, lines):
            documents.setdefault(row["doc_id"], []).append(row)
        names = sorted(documents)
        self.labels = [
            row for name in names[:DOCUMENTS] for row in documents[name][:OUTPUTS]
        ]
        self.short = documents[names[DOCUMENTS]][0]
        others = [documents[name][0]["source"] for name in names[DOCUMENTS + 1 :]]
        self._words = " ".join(others).split()

    def row(self, part: str, words: int, place: int = 0) -> dict[str, str]:
        """Return a row whose output or source has so many words, which no other place has."""
        row = {"source": self.short["source"], "output": self.short["output"]}
        first = place * words
        longer = row[part].split() + self._words[first : first + words]
        row[part] = " ".join(longer[:words])
        return {"id": f"{part}-{words}-{place}", **row}


def ran(command: Sequence[str], environment: Mapping[str, str]) -> dict[str, float]:
    """Return seconds, memory and the longest silence of a command."""
    began = time.monotonic()
    heard = [began]
    with subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            heard.append(time.monotonic())
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    heard.append(time.monotonic())
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {''.join(said)}")
    return {
        "processor": used.ru_utime + used.ru_stime,
        "wall": heard[-1] - began,
        "silence": max(b - a for a, b in itertools.pairwise(heard)),
        "mb": used.ru_maxrss / 1024,
    }


def cells() -> Iterator[tuple[str, str, int, int]]:
    """Yield judge, long part, number of rows and words of each cell."""
    for judge in ("readings", "direct"):
        for part in ("output", "source"):
            for words in WORDS:
                yield judge, part, 1, words
    yield "readings", "output", TOGETHER, LONG


class Bench:
    """Judges in a folder, and the commands that score with them."""

    def __init__(self, folder: Path, model: str, threads: int) -> None:
        self._folder = folder
        self._texts = Texts()
        self._model = model
        self._environment = {"JUDGESMITH_THREADS": str(threads)}
        self._command = [sys.executable, "-m", "judgesmith"]

    def judge(self, name: str) -> Path:
        """Return a judge's file, made if it is not there."""
        path = self._folder / f"{name}.json"
        if path.exists():
            return path
        model = ["--lm", self._model, "-o", str(path)]
        if name == "direct":
            made = ["new", QUESTION, "--method", "direct", *model]
        else:
            labels = self._written("labels.jsonl", self._texts.labels)
            made = ["compile", str(labels), "--aspect", "relevance", *model]
        ran([*self._command, *made], self._of(name))
        return path

    def cell(self, judge: str, part: str, count: int, words: int) -> list[Any]:
        """Measure a cell, and return it as a row of the table."""
        rows = [self._texts.row(part, words, place) for place in range(count)]
        name = f"{judge}-{part}-{count}-{words}"
        file = self._written(f"{name}.jsonl", rows)
        scored = self._folder / f"{name}.scored.jsonl"
        score = [*self._command, "score", str(file), "--judge", str(self.judge(judge))]
        score += ["-o", str(scored), "--overwrite"]
        environment = self._of(name)  # with a cache of its own
        planned = subprocess.run(
            [*score, "--dry-run", "--json"],
            env={**os.environ, **environment},
            check=True,
            capture_output=True,
            text=True,
        )
        found = ran(score, environment)
        lines = scored.read_text(encoding="utf-8").splitlines()
        verdict = json.loads(lines[0])["verdict"]
        return [
            "reads (readings)" if judge == "readings" else "is asked (direct)",
            part,
            count,
            words,
            round(found["processor"], 1),
            round(found["wall"], 1),
            json.loads(planned.stdout)["seconds"],
            round(found["silence"], 1),
            round(found["mb"]),
            verdict.get("partly", {}).get("source", 1.0),
            _interval(judge, verdict),
        ]

    def _of(self, name: str) -> dict[str, str]:
        cache = {"JUDGESMITH_CACHE": str(self._folder / f"{name}.sqlite")}
        return self._environment | cache

    def _written(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        path = self._folder / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path


def _interval(judge: str, verdict: Mapping[str, Any]) -> str:
    """Return a verdict's interval; a judge without labels has none."""
    interval = verdict.get("interval")
    if judge == "direct":
        return "no labels"
    if interval is None:
        return "none: far"
    return f"{interval['low']:.1f} to {interval['high']:.1f}"


def main() -> None:
    """Measure each cell, print it, and save all on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="local/qwen2.5-0.5b")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--kept", type=Path, help="file of finished cells")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    kept = Kept(options.kept)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.model, options.threads)
        for cell in list(cells())[len(kept.lines) :]:
            print(*kept.add(bench.cell(*cell)), sep="\t", flush=True)
    threads = f"{options.threads} thread" + "s" * (options.threads > 1)
    save(
        DATA if options.save else None,
        "long-rows",
        COLUMNS,
        kept.lines,
        commands=["python experiments/bench/long_rows.py --save"],
        model=options.model,
        notes=f"{threads} of {os.cpu_count()} cores, ahead of all other processes; a command a cell",
    )


if __name__ == "__main__":
    main()
