"""Measure the counts of facts: each one's agreement by itself, and its gain beside a model's readings.

    python experiments/bench/facts.py alone -o experiments/results/data
    python experiments/bench/facts.py head TABLES... -o experiments/results/data

The sets are those of JUDGESMITH_DATA. `head` takes folders of tables that `judgesmith study experience` kept
(SET.ASPECT*.npz), counts facts in the same rows, and measures with the family left out of the experience, with facts
and without.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.datasets.loading import read_labels
from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.errors import OptionError
from judgesmith.experiments.bench.sets import data_folder
from judgesmith.experiments.studies.experience import (
    Specs,
    Task,
    TaskSpec,
    chosen_rows,
    draws_of,
    load,
    located,
    percents,
    read_specs,
    systems_of,
    whole_groups,
    without_family,
)
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.examples import Vector
from judgesmith.optimizers.fitting.readings import agreement, weigh
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.facts import facts
from judgesmith.programs.readings.head import Readings
from judgesmith.programs.readings.judge import DIRECT
from judgesmith.programs.readings.kinds import reference, surface
from judgesmith.programs.readings.passages import Text

COMMAND = "python experiments/bench/facts.py"
#: Sets whose ratings are of facts, and three of other things.
ALONE = (
    ("qags_cnndm.jsonl", "consistency"),
    ("summeval.jsonl", "consistency"),
    ("more/begin_grounding.jsonl", "groundedness"),
    ("more/summedits.jsonl", "consistency"),
    ("more/rank19.jsonl", "consistency"),
    ("strong/faithbench.jsonl", "faithfulness"),
    ("rotowire_accuracy.jsonl", "accuracy"),
    ("more/webnlg2020.jsonl", "coverage"),
    ("more/e2e_nlg.jsonl", "quality"),
    ("more/triviaqa.jsonl", "correctness"),
    ("more/realsumm.jsonl", "coverage"),
    ("more/conala.jsonl", "usefulness"),
    ("summeval.jsonl", "fluency"),
    ("topical_chat.jsonl", "engagingness"),
    ("hanna.jsonl", "engagement"),
)
ROWS = 600
FOURTEEN = frozenset(
    f"{data}.{aspect}"
    for data, aspects in (
        ("openmeva_roc", "overall"),
        ("sfhot", "informativeness naturalness"),
        ("sfres", "informativeness naturalness"),
        ("summeval", "coherence consistency fluency relevance"),
        ("topical_chat", "engagingness overall"),
        ("wiki_da", "fluency meaning simplicity"),
    )
    for aspect in aspects.split()
)
SIZES = (8, 40)


def texts(labels: Labels) -> list[Text]:
    """Return the texts of labelled rows as readings take them."""
    return [
        Text(row.source, row.output, row.context or "", "", row.reference or "")
        for row in labels.rows
    ]


def counted(rows: Sequence[Text]) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names of the counts, and their values, shape (rows, counts)."""
    found = [facts(text) for text in rows]
    return tuple(found[0]), np.array([list(row.values()) for row in found], float)


def q_alone(values: Vector, scores: Vector) -> float:
    """Gaps stand at the mean, as in a head; NaN of nothing."""
    present = ~np.isnan(values)
    if present.any():
        return agreement(np.where(present, values, values[present].mean()), scores)
    return np.nan


def alone(folder: Path | None) -> None:
    """Print and save Q of each count by itself."""
    rows = list[list[object]]()
    names = tuple[str, ...]()
    for file, aspect in ALONE:
        labels = read_labels(located(file, None), aspect=aspect)
        labels = labels.subset(sorted(whole_groups(labels.groups, ROWS, 11)))
        names, values = counted(texts(labels))
        words = np.array(
            [
                surface(text.material, text.judged)["from_source"]
                for text in texts(labels)
            ]
        )
        found = [q_alone(column, labels.scores) for column in (words, *values.T)]
        rows.append([f"{Path(file).stem} {aspect}", len(labels), *found])
        print(*rows[-1])
    columns = {"set": "", "rows": "{}"} | dict.fromkeys(("words", *names), "{:.2f}")
    save(
        folder,
        "facts-alone",
        columns,
        rows,
        commands=[f"{COMMAND} alone -o experiments/results/data"],
    )


@dataclass(frozen=True)
class Pair:
    """A task without facts and with them; whether experience may learn from it; its rows."""

    plain: Task
    with_facts: Task
    teaches: bool
    spec: TaskSpec
    rows: tuple[Row, ...]


def read_pairs(
    folders: Sequence[Path], specs: Specs | None = None, *, teaching: bool = True
) -> Iterator[Pair]:
    """Yield each task's recorded table, without counts of facts and with them.

    Args:
        folders: Where tables were kept.
        specs: The tasks; those of judgesmith's own experience by default.
        teaching: False if none may teach.
    """
    specs = specs or read_specs(None)
    for spec in (*specs.tasks, *specs.measured):
        labels = chosen_rows(spec, located(spec.labels, None))
        name = f"{Path(spec.labels).stem}.{labels.aspect}"
        kept = next(
            (
                file
                for folder in folders
                for file in sorted(folder.glob(f"{name}*.npz"))
            ),
            None,
        )
        if kept is None:
            continue
        rows = load(kept)
        same = len(rows.scores) == len(labels)
        if not same or not np.allclose(rows.scores, percents(labels)):
            raise OptionError(
                f"{kept.name} has other rows than the set has now; read it again"
            )
        task = Task(
            name,
            spec.family,
            spec.licence,
            without_facts(rows.table, texts(labels)),
            rows.scores,
            systems_of(labels),
        )
        yield Pair(
            task,
            replace(task, table=joined(task.table, texts(labels))),
            teaching and spec in specs.tasks,
            spec,
            labels.rows,
        )


def without_facts(table: Readings, rows: Sequence[Text]) -> Readings:
    """With overlap with a reference, which earlier tables lack."""
    names = tuple(
        name
        for name in table.names
        if not name.startswith(("facts.", "surface.reference"))
    )
    overlap = [reference(text.reference, text.judged) for text in rows]
    both = (*names, *(f"surface.{name}" for name in overlap[0]))
    values = np.column_stack(
        [table.columns(names), [list(row.values()) for row in overlap]]
    )
    return Readings(both, values, table.groups, table.states)


def joined(table: Readings, rows: Sequence[Text]) -> Readings:
    """Return a table with the counts of facts as further columns."""
    names, values = counted(rows)
    both = (*table.names, *(f"facts.{name}" for name in names))
    return Readings(
        both, np.column_stack([table.values, values]), table.groups, table.states
    )


def reached(task: Task, experience: Experience, draws: int) -> list[float]:
    """Return Q with no label and with each number of them, on documents without a label."""
    table = task.table
    scores = task.scores
    head = experience.head(set(table.names) - {DIRECT}, table.states)
    result = [agreement(head(table), scores)]
    for size in SIZES:
        found = []
        for _, train, left in draws_of(table.groups, size, draws):
            fit = weigh(table.rows(train), scores[train], experience)
            found.append(agreement(fit.head(table.rows(left)), scores[left]))
        result.append(float(np.mean(found)) if found else np.nan)
    return result


def reached_by_task(
    tasks: Sequence[Task], teachers: Sequence[Task], draws: int
) -> list[list[float]]:
    """Return what is `reached` on each task, its family left out of the experience."""
    result = []
    for task in tasks:
        experience = without_family(teachers, task.family)
        result.append(reached(task, experience, draws))
        print(task.name, *(f"{q:.2f}" for q in result[-1]), flush=True)
    return result


def head(folders: Sequence[Path], draws: int, folder: Path | None) -> None:
    """Print and save Q with and without facts, with the family left out of the experience."""
    pairs = list(read_pairs(folders))
    plain = [pair.plain for pair in pairs]
    with_facts = [pair.with_facts for pair in pairs]
    of_plain = [pair.plain for pair in pairs if pair.teaches]
    of_facts = [pair.with_facts for pair in pairs if pair.teaches]
    sides = [
        np.array(reached_by_task(plain, of_plain, draws)),
        np.array(reached_by_task(with_facts, of_plain, draws)),
        np.array(reached_by_task(with_facts, of_facts, draws)),
    ]
    found = np.concatenate(sides, axis=1)
    sizes = np.array([len(task.scores) for task in plain])
    rows: list[list[Any]] = []
    for task, q in zip(plain, found.tolist(), strict=True):
        rows.append([task.name.replace(".", " "), len(task.scores), *q])
    fourteen = np.array([task.name in FOURTEEN for task in plain])
    for name, members in (
        ("mean of the fourteen of readings.md", fourteen),
        ("mean", np.ones(len(plain), dtype=np.bool_)),
    ):
        means = np.nanmean(found[members], axis=0).tolist()
        rows.append([name, int(sizes[members].sum()), *means])
    titles: list[str] = []
    for side in ("", ", facts", ", facts in the experience too"):
        titles += [f"{size} labels{side}" for size in (0, *SIZES)]
    columns = {"task": "", "rows": "{}"} | dict.fromkeys(titles, "{:.2f}")
    command = f"{COMMAND} head TABLES --draws {draws} -o experiments/results/data"
    families = ", ".join(dict.fromkeys(task.family for task in of_plain))
    notes = f"each family left out of the experience, which was learnt from {families}"
    save(
        folder,
        "facts-head",
        columns,
        rows,
        commands=[command],
        model="qwen2.5-coder-0.5b (Q4_K_M)",
        notes=notes,
    )


def main() -> None:
    """Run one of the two parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["alone", "head"])
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--draws", type=int, default=15)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    data_folder()  # ends here where the variable is not set
    if arguments.what == "alone":
        alone(arguments.output)
    else:
        head(arguments.tables, arguments.draws, arguments.output)


if __name__ == "__main__":
    main()
