"""Compare rows that a panel scored by the probabilities of its members' answers, and by their likeliest answers.

    python experiments/bench/panel_command.py MODEL=EXPECTED.jsonl,LIKELIEST.jsonl … [--save FOLDER]

The files come from `judgesmith score` with a judge of `--reading expected` and one of `--reading said`; both have the
same rows in the same order, with the human rating as `score`. A panel's score is the mean of its members' percents.
Intervals are 95 %, over documents.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.experiments.bench.panel_gains import INTERVAL, POWER, around
from judgesmith.experiments.studies.replay import agreements
from judgesmith.experiments.studies.saving import save

RESAMPLES = 2000
Q = "{:.2f} [{:.2f}, {:.2f}]"
COLUMNS = {
    "model": "",
    "rows": "{:.0f}",
    "documents": "{:.0f}",
    "by expectation": Q,
    "by likeliest answers": Q,
    "gain": INTERVAL,
    "least gain that is found": "{:.2f}",
}


def panel(row: dict[str, Any]) -> float:
    """Return the mean of the members' percents of a scored row."""
    opinions = row["verdict"]["opinions"].values()
    return float(np.mean([opinion["percent"] for opinion in opinions]))


def compared(model: str, files: list[Path]) -> list[Any]:
    """Return a row: Q of both readings, and what expectation is ahead by."""
    tables = list[list[dict[str, Any]]]()
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        tables.append(list(map(json.loads, lines)))
    panels = np.array([list(map(panel, rows)) for rows in tables]).T
    human = np.array([row["score"] for row in tables[0]])
    documents: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(tables[0]):
        documents[row["doc_id"]].append(place)
    places = list(documents.values())
    rng = np.random.default_rng(0)
    again = []
    for _ in range(RESAMPLES):
        picks = rng.integers(len(places), size=len(places)).tolist()
        at = np.concatenate([places[one] for one in picks])
        again.append(agreements(panels[at], human[at]).sum(axis=0))
    q = agreements(panels, human).sum(axis=0)
    spread = np.array(again)
    cells = list(map(around, q.tolist(), spread.std(axis=0).tolist()))
    error = float((spread[:, 0] - spread[:, 1]).std())
    cells.append(around(float(q[0] - q[1]), error))
    return [model, len(human), len(places), *cells, POWER * error]


def main() -> None:
    """Print the table, and save it on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", nargs="+")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    rows = []
    for pair in options.pairs:
        model, _, files = pair.partition("=")
        rows.append(compared(model, list(map(Path, files.split(",")))))
        print(json.dumps(rows[-1]), flush=True)
    commands = [
        "judgesmith score ROWS.jsonl --judge JUDGE.json",
        "python experiments/bench/panel_command.py MODEL=EXPECTED.jsonl,LIKELIEST.jsonl",
    ]
    save(options.save, "panel-command", COLUMNS, rows, commands=commands, seed=0)


if __name__ == "__main__":
    main()
