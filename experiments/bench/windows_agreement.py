"""Measure how reading texts whole, instead of 3,000 characters of each, changes the agreement with people.

    python experiments/bench/windows_agreement.py read newsroom before.npz --documents 9    # at commit c622c7c4
    python experiments/bench/windows_agreement.py read newsroom after.npz --documents 9
    python experiments/bench/windows_agreement.py compare newsroom before.npz after.npz [--save FOLDER]

`read` keeps the readings of all outputs of the first documents by local/qwen2.5-0.5b (of summeval those with sources of
more than 3,000 characters first). `compare` makes scores of both: by experience alone, and by heads that were fitted to
the labels of other documents (`nested`). Q = r + ρ + τ-b over all rows; 95 % intervals by resampling documents, those
of the difference paired.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.agreement.objectives import Q, Rows
from judgesmith.agreement.resampling import interval_of
from judgesmith.datasets.benchmarks.catalog import resolve
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.fitting.readings import lead, nested, weigh
from judgesmith.programs.models.files import file_sha256, model_path
from judgesmith.programs.models.threads import thread_count
from judgesmith.programs.readings.bindings.embedded_reader import EmbeddedReader
from judgesmith.programs.readings.experience import experience_of
from judgesmith.programs.readings.head import Readings, Vector
from judgesmith.programs.readings.judge import table_of
from judgesmith.programs.readings.kinds import read_row
from judgesmith.programs.readings.passages import INSTRUCTIONS, Text

MODEL = "qwen2.5-0.5b"
CUT = 3000


def chosen(name: str, documents: int) -> list[dict[str, Any]]:
    """Return the rows of the first documents; of summeval those with long sources first."""
    rows = [
        json.loads(line)
        for line in resolve(name).read_text(encoding="utf-8").splitlines()
    ]
    order = dict.fromkeys(row["doc_id"] for row in rows)
    if name == "summeval":
        long = {row["doc_id"] for row in rows if len(row["source"]) > CUT}
        order = dict.fromkeys(sorted(order, key=lambda document: document not in long))
    kept = [*order][:documents]
    return [row for document in kept for row in rows if row["doc_id"] == document]


def read(name: str, output: Path, documents: int) -> None:
    """Read the outputs of a set's first documents, and keep the table."""
    reader = EmbeddedReader(model_path(MODEL), threads=thread_count())
    rows = chosen(name, documents)
    found = []
    for row in rows:
        text = Text(
            row["source"],
            row["output"],
            "",
            INSTRUCTIONS["summarization"],
            row.get("reference") or "",
        )
        found.append(read_row(reader, text, layers=3, counted=True))
        print(len(found), len(rows), reader.computed, flush=True)
    table = table_of(found, None, [row["doc_id"] for row in rows])
    ids = np.array([row["id"] for row in rows])
    columns: dict[str, Any] = {
        "ids": ids,
        "names": np.array(table.names),
        "values": table.values,
        **table.states,
    }
    np.savez(output, **columns)


def table(path: Path, rows: list[dict[str, Any]]) -> Readings:
    """Return the readings that `read` kept of these very rows."""
    with np.load(path) as kept:
        assert kept["ids"].tolist() == [row["id"] for row in rows]
        states = {
            name: kept[name]
            for name in kept.files
            if name not in ("ids", "names", "values")
        }
        return Readings(
            tuple(kept["names"]),
            kept["values"],
            tuple(row["doc_id"] for row in rows),
            states,
        )


def scored(read: Readings, human: Vector) -> dict[str, Vector]:
    """Score the rows by experience alone, and by heads fitted to the labels of other documents."""
    experience = experience_of(file_sha256(model_path(MODEL)))
    alone = experience.head(read.names, tuple(read.states))(read)
    return {
        "no labels": alone,
        "labels": nested(lambda some, y: weigh(some, y, experience).head, read, human),
    }


def compare(name: str, before: Path, after: Path, folder: Path | None) -> None:
    """Print the agreement before and after, and save it on request."""
    ids = np.load(before)["ids"].tolist()
    every = {row["id"]: row for row in chosen(name, 10**6)}
    rows = [every[one] for one in ids]
    both = [table(path, rows) for path in (before, after)]
    long = sum(len(row["source"]) > CUT for row in rows)
    documents = [row["doc_id"] for row in rows]
    lines = []
    for aspect in rows[0]["scores"]:
        human = np.array([row["scores"][aspect] for row in rows], float)
        people = Rows((human - human.min()) / np.ptp(human) * 100, documents, documents)
        cut, whole = (scored(read, people.human) for read in both)
        for way in cut:
            objective = Q()
            each = [
                interval_of(objective.resampled([one[way]], people))
                for one in (cut, whole)
            ]
            shown = [[interval.value, interval.low, interval.high] for interval in each]
            more = lead(whole[way], cut[way], people, objective)
            lines.append(
                [f"{name}, {aspect}", way, *shown, [more.value, more.low, more.high]]
            )
    form = "{:.2f} [{:.2f}, {:.2f}]"
    columns = {
        "set and aspect": "",
        "judge": "",
        "Q, 3,000 characters": form,
        "Q, whole": form,
        "difference": form,
    }
    for line in lines:
        print(*line)
    about = f"{len(rows)} rows of {len(set(documents))} documents, {long} with a source of more than 3,000 characters"
    command = f"python experiments/bench/windows_agreement.py compare {name} before.npz after.npz"
    save(
        folder,
        f"windows-{name}",
        columns,
        lines,
        commands=[command],
        model=f"local/{MODEL}",
        notes=about,
    )


def main() -> None:
    """Run one of the two parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ways = parser.add_subparsers(dest="way", required=True)
    reading = ways.add_parser("read")
    comparing = ways.add_parser("compare")
    for way in (reading, comparing):
        way.add_argument("set")
    reading.add_argument("output", type=Path)
    reading.add_argument("--documents", type=int, default=9)
    for path in ("before", "after"):
        comparing.add_argument(path, type=Path)
    comparing.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    if arguments.way == "read":
        read(arguments.set, arguments.output, arguments.documents)
    else:
        compare(arguments.set, arguments.before, arguments.after, arguments.save)


if __name__ == "__main__":
    main()
