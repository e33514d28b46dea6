"""Measure how far OpenVINO's and llama.cpp's readers of embedded models agree, on rows that people judged.

    python experiments/bench/reader_agreement.py read FOLDER [--way openvino] [--sets …] [--rows 64]
    python experiments/bench/reader_agreement.py compare FOLDER [--save FOLDER]

`read` keeps the readings of both readers, by local/qwen2.5-0.5b of the same rows: at most four of a document, the first
ones. `compare` makes scores of both. With no labels: by the experience that judgesmith brings. With labels: each row by
a head that was fitted to the labels of other documents (`nested`). Carried over: by such a head that was fitted to
llama.cpp's readings, of what OpenVINO read. Q = r + ρ + τ-b. `score` is the mean difference of a row's score without
labels, in points of 100, which vary by about 20; `log p` that of the mean log-probability, in nats.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.datasets.benchmarks.catalog import resolve
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.fitting.folds import folds
from judgesmith.optimizers.fitting.readings import agreement, weigh
from judgesmith.programs.models.files import file_sha256, model_path
from judgesmith.programs.models.threads import thread_count
from judgesmith.programs.readings.bindings.embedded_reader import EmbeddedReader
from judgesmith.programs.readings.bindings.kept import KeptReader
from judgesmith.programs.readings.bindings.openvino_reader import OpenVinoReader
from judgesmith.programs.readings.experience import experience_of
from judgesmith.programs.readings.head import Readings, Vector
from judgesmith.programs.readings.judge import table_of
from judgesmith.programs.readings.kinds import read_row
from judgesmith.programs.readings.passages import INSTRUCTIONS, Text

MODEL = "qwen2.5-0.5b"
OF_ONE = 4
SETS = {
    "wiki_da": "meaning",
    "sfres": "informativeness",
    "openmeva_roc": "overall",
    "personachat_usr": "overall",
    "topical_chat": "overall",
    "summeval": "coherence",
}
READERS: dict[str, Any] = {"llama.cpp": EmbeddedReader, "openvino": OpenVinoReader}


def chosen(name: str, count: int) -> list[dict[str, Any]]:
    """Return the first rows that have a score, at most four of a document."""
    taken = Counter[str]()
    result = list[dict[str, Any]]()
    for line in resolve(name).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if (
            len(result) < count
            and taken[row["doc_id"]] < OF_ONE
            and SETS[name] in row["scores"]
        ):
            taken[row["doc_id"]] += 1
            result.append(row)
    return result


def read(folder: Path, way: str, names: list[str], count: int) -> None:
    """Read rows of each set by one reader, and keep the tables in a folder; a run that was ended goes on."""
    opened = READERS[way](model_path(MODEL), threads=thread_count())
    reader = KeptReader(opened, folder / f"{way}.sqlite", model=way)
    for name in names:
        rows = chosen(name, count)
        found = []
        for row in rows:
            instruction = INSTRUCTIONS[row["task"]]
            reference = row.get("reference") or ""
            text = Text(
                row["source"] or "",
                row["output"],
                row.get("context") or "",
                instruction,
                reference,
            )
            found.append(read_row(reader, text, layers=3, counted=True))
        table = table_of(found, None, [row["doc_id"] for row in rows])
        columns: dict[str, Any] = {
            "names": np.array(table.names),
            "values": table.values,
            **table.states,
        }
        np.savez(folder / f"{name}.{way}.npz", **columns)
        print(name, way, len(rows), flush=True)


def kept(folder: Path, name: str, way: str, groups: list[str]) -> Readings:
    """Return a table that `read` kept."""
    with np.load(folder / f"{name}.{way}.npz") as of:
        states = {key: of[key] for key in of.files if key not in ("names", "values")}
        return Readings(tuple(of["names"]), of["values"], tuple(groups), states)


def carried(
    fitted: Readings, other: Readings, human: Vector, experience: Any
) -> Vector:
    """Scores of one reader's rows by heads that were fitted to the other's readings of other documents."""
    result = np.zeros(len(human))
    for rows in folds(fitted.groups, seed=1):
        rest = np.setdiff1d(np.arange(len(human)), rows)
        some = fitted.rows(rest)
        head = weigh(some, human[rest], experience).head
        own = head(some)
        result[rows] = (head(other.rows(rows)) - own.mean()) / max(
            float(own.std()), 1e-9
        )
    return result


def compare(folder: Path, target: Path | None) -> None:
    """Print the agreement of both readers' scores, and save it on request."""
    experience = experience_of(file_sha256(model_path(MODEL)))
    lines = []
    for name, aspect in SETS.items():
        if not all((folder / f"{name}.{way}.npz").exists() for way in READERS):
            continue
        count = len(np.load(folder / f"{name}.openvino.npz")["values"])
        rows = chosen(name, count)
        human = np.array([row["scores"][aspect] for row in rows], float)
        human = (human - human.min()) / np.ptp(human) * 100
        slow, fast = (
            kept(folder, name, way, [row["doc_id"] for row in rows]) for way in READERS
        )
        alone = [
            experience.head(one.names, tuple(one.states))(one) for one in (slow, fast)
        ]
        labels = [
            carried(one, other, human, experience)
            for one, other in ((slow, slow), (fast, fast), (slow, fast))
        ]
        qs = [round(agreement(scores, human), 3) for scores in (*alone, *labels)]
        score = float(np.abs(alone[0] - alone[1]).mean())
        logp = float(
            np.abs(
                slow.columns(["assistant.mean"]) - fast.columns(["assistant.mean"])
            ).mean()
        )
        lines.append([f"{name}, {aspect}", count, *qs, round(score, 2), round(logp, 3)])
        print(*lines[-1])
    form = "{:.2f}"
    columns = {"set and aspect": "", "rows": "{:.0f}"}
    columns |= dict.fromkeys(("no labels, llama.cpp", "no labels, OpenVINO"), form)
    columns |= dict.fromkeys(
        ("labels, llama.cpp", "labels, OpenVINO", "labels, carried over"), form
    )
    columns |= {"score": form, "log p": "{:.3f}"}
    command = "python experiments/bench/reader_agreement.py"
    save(
        target,
        "reader-agreement",
        columns,
        lines,
        commands=[f"{command} read FOLDER", f"{command} compare FOLDER"],
    )


def main() -> None:
    """Run one of the two parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ways = parser.add_subparsers(dest="action", required=True)
    reading = ways.add_parser("read")
    comparing = ways.add_parser("compare")
    for one in (reading, comparing):
        one.add_argument("folder", type=Path)
    reading.add_argument("--way", choices=READERS, default="openvino")
    reading.add_argument("--sets", default=",".join(SETS))
    reading.add_argument("--rows", type=int, default=64)
    comparing.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    if arguments.action == "read":
        read(arguments.folder, arguments.way, arguments.sets.split(","), arguments.rows)
    else:
        compare(arguments.folder, arguments.save)


if __name__ == "__main__":
    main()
