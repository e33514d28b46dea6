"""Compare an embedded model in groups of 128 and of 32 columns with llama.cpp: words' log-probabilities, and scores.

    python experiments/bench/group_columns.py read FOLDER WAY [--model qwen2.5-1.5b] [--sets …] [--rows 32]
    python experiments/bench/group_columns.py compare FOLDER [--model qwen2.5-1.5b] [--save FOLDER]

WAY is llama.cpp, or the columns of a group by which OpenVINO reads: 32 or 128. `read` keeps the log-probability of each
word of the output, the expected digit for the aspect that people rated, and the processor time of both, that of the
digits with the opening of the model; a run that was ended goes on. `compare` shows the mean and the largest difference
of a word from llama.cpp's, in nats; that of a row's mean; that of the scores, in points of 100; and the agreement of
both with people, Q = r + ρ + τ-b.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.experiments.bench.own_score import ASPECTS, item_of
from judgesmith.experiments.bench.reader_agreement import SETS, chosen
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.fitting.readings import agreement
from judgesmith.programs.models import engine
from judgesmith.programs.models.files import model_path
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.models.local import READER_VARIABLE
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.readings.bindings import weights
from judgesmith.programs.readings.bindings.opening import close_all, open_weights
from judgesmith.programs.readings.passages import INSTRUCTIONS, Text, passage

WAYS = ("llama.cpp", "32", "128")
COLUMNS = {
    "set and aspect": "",
    "rows": "{:.0f}",
    "read by": "",
    "word, mean": "{:.3f}",
    "word, largest": "{:.2f}",
    "row": "{:.3f}",
    "score, mean": "{:.2f}",
    "score, largest": "{:.2f}",
    "Q, log p": "{:.2f}",
    "Q, score": "{:.2f}",
    "s of CPU, log p": "{:.1f}",
    "s of CPU, score": "{:.1f}",
}


def read(folder: Path, way: str, model: str, names: list[str], count: int) -> None:
    """Keep log-probabilities and scores of each set's rows by one way, in a folder."""
    os.environ[READER_VARIABLE] = "openvino" if way.isdigit() else way
    weights.LARGER_GROUP = int(way) if way.isdigit() else weights.LARGER_GROUP
    for name in names:
        path = folder / f"{model}.{name}.{way}.json"
        rows = chosen(name, count)
        kept: dict[str, list[Any]] = {"logp": [], "direct": [], "cpu": [0.0, 0.0]}
        kept |= json.loads(path.read_text()) if path.exists() else {}
        reader = open_weights(model_path(model), model).reader
        for row in rows[len(kept["logp"]) :]:
            started = time.process_time()
            source = row["source"] or ""
            context = row.get("context") or ""
            text = Text(source, row["output"], context, INSTRUCTIONS[row["task"]])
            logp = reader.read(passage(text, reader.chat)).logp
            kept["logp"].append([float(nats) for nats in logp])
            kept["cpu"][0] += time.process_time() - started
            path.write_text(json.dumps(kept))
        close_all()
        lm = language_model(f"local/{model}", connection=Connection(cache=False))
        direct = DirectScorer(ASPECTS[name])
        direct.choose(reading="expected")
        for row in rows[len(kept["direct"]) :]:
            started = time.process_time()
            verdict = engine.run(direct.judge(item_of(row), lm))
            kept["direct"].append(float(verdict.percent))
            kept["cpu"][1] += time.process_time() - started
            path.write_text(json.dumps(kept))
        print(name, way, len(rows), flush=True)


class Found:
    """What one way found: log-probabilities of words, their means by row, and scores."""

    def __init__(self, kept: dict[str, Any]) -> None:
        self.words = np.array([*chain(*kept["logp"])])
        self.means = np.array([np.mean(row) for row in kept["logp"]])
        self.scores = np.array(kept["direct"])


def compared(found: Found, beside: Found, human: Any) -> list[float]:
    """Return the differences of one way from another's, and its agreement with people."""
    words = np.abs(found.words - beside.words)
    means = np.abs(found.means - beside.means)
    scores = np.abs(found.scores - beside.scores)
    numbers = [
        words.mean(),
        words.max(),
        means.mean(),
        scores.mean(),
        scores.max(),
        agreement(found.means, human),
        agreement(found.scores, human),
    ]
    return [round(float(number), 4) for number in numbers]


def of_set(
    name: str, aspect: str, kept: dict[str, dict[str, Any]]
) -> Iterator[list[Any]]:
    """Yield a line for each way to read the rows of a set."""
    beside = Found(kept["llama.cpp"])
    rows = chosen(name, len(beside.scores))
    human = np.array([row["scores"][aspect] for row in rows], float)
    for way, of in kept.items():
        seconds = [round(used / len(rows), 2) for used in of["cpu"]]
        numbers = compared(Found(of), beside, human)
        read_by = f"OpenVINO, {way} columns" if way.isdigit() else way
        yield [f"{name}, {aspect}", len(rows), read_by, *numbers, *seconds]


def compare(folder: Path, model: str, target: Path | None) -> None:
    """Print each way beside llama.cpp, and save it on request."""
    lines = list[list[Any]]()
    for name, aspect in SETS.items():
        kept = dict[str, dict[str, Any]]()
        for way in WAYS:
            file = folder / f"{model}.{name}.{way}.json"
            if file.exists():
                kept[way] = json.loads(file.read_text())
        if len(kept) == len(WAYS):
            lines += of_set(name, aspect, kept)
    for line in lines:
        print(*line)
    command = "python experiments/bench/group_columns.py"
    commands = [f"{command} read FOLDER WAY", f"{command} compare FOLDER"]
    save(target, "group-columns", COLUMNS, lines, commands=commands, model=model)


def main() -> None:
    """Run one of the two parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ways = parser.add_subparsers(dest="action", required=True)
    reading, comparing = map(ways.add_parser, ("read", "compare"))
    for one in (reading, comparing):
        one.add_argument("folder", type=Path)
        one.add_argument("--model", default="qwen2.5-1.5b")
    reading.add_argument("way", choices=WAYS)
    reading.add_argument("--sets", default="sfres,wiki_da")
    reading.add_argument("--rows", type=int, default=32)
    comparing.add_argument("--save", type=Path)
    of = parser.parse_args()
    if of.action == "read":
        read(of.folder, of.way, of.model, of.sets.split(","), of.rows)
    else:
        compare(of.folder, of.model, of.save)


if __name__ == "__main__":
    main()
