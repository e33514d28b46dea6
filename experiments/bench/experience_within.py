"""Compare experience that was learnt within systems with experience that was learnt from all rows together.

    python experiments/bench/experience_within.py TABLES... [--draws 15] [-o experiments/results/data]

TABLES are folders of tables that `judgesmith study experience` kept (SET.ASPECT*.npz); the sets are those of
JUDGESMITH_DATA. Both are fitted to the same tasks, the family of the measured one left out, and both are measured on
the same draws: Q over all rows, and Q within systems, with 0, 8 and 40 labels.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import within_systems
from judgesmith.experiments.bench.facts import FOURTEEN, SIZES, read_pairs
from judgesmith.experiments.studies.experience import (
    Task,
    draws_of,
    fit_experience,
)
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.examples import Vector
from judgesmith.optimizers.fitting.readings import agreement, weigh
from judgesmith.programs.readings.experience import Card, Experience
from judgesmith.programs.readings.judge import DIRECT

COEFFICIENTS = ("pearson", "spearman", "kendall")


@dataclass(frozen=True)
class Reached:
    """Q over all rows and within systems, by the number of labels."""

    pooled: tuple[float, ...]
    within: tuple[float, ...]


def q_within(predicted: Vector, human: Vector, systems: Sequence[str]) -> float:
    """Return Q within systems; NaN where all rows are of one."""
    if len(set(systems)) < 2:
        return np.nan
    codes = np.unique(systems, return_inverse=True)[1]
    return float(sum(within_systems(predicted, human, codes, COEFFICIENTS)))


def reached(task: Task, known: Experience, draws: int) -> Reached:
    """Measure one task on documents without a label, as a mean over draws."""
    table, scores, systems = task.table, task.scores, np.array(task.systems)
    unlabelled = known.head(set(table.names) - {DIRECT}, table.states)(table)
    pooled = [agreement(unlabelled, scores)]
    within = [q_within(unlabelled, scores, task.systems)]
    for size in SIZES:
        found = list[tuple[float, float]]()
        for _, train, left in draws_of(table.groups, size, draws):
            head = weigh(table.rows(train), scores[train], known).head
            predicted = head(table.rows(left))
            of_left = systems[left].tolist() if len(systems) else []
            found.append(
                (
                    agreement(predicted, scores[left]),
                    q_within(predicted, scores[left], of_left),
                )
            )
        means = np.mean(found, axis=0) if found else [np.nan, np.nan]
        pooled.append(float(means[0]))
        within.append(float(means[1]))
    return Reached(tuple(pooled), tuple(within))


def compared(
    tasks: Sequence[Task], teachers: Sequence[Task], draws: int
) -> list[tuple[Reached, Reached]]:
    """Measure each task by experience of all rows, and by experience within systems."""
    result = []
    known = dict[str, tuple[Experience, Experience]]()
    for task in tasks:
        if task.family not in known:
            others = [one for one in teachers if one.family != task.family]
            unnamed = [replace(one, systems=()) for one in others]
            known[task.family] = (
                fit_experience(unnamed, Card()),
                fit_experience(others, Card()),
            )
        all_rows, inside = (reached(task, one, draws) for one in known[task.family])
        result.append((all_rows, inside))
        print(task.name, all_rows, inside, flush=True)
    return result


def rows_of(
    tasks: Sequence[Task], found: Sequence[tuple[Reached, Reached]]
) -> list[list[Any]]:
    """Return a row for each task, and the means of some of them."""
    numbers = np.array(
        [
            [*before.pooled, *after.pooled, *before.within, *after.within]
            for before, after in found
        ]
    )
    rows: list[list[Any]] = [
        [task.name.replace(".", " "), len(task.scores), *of.tolist()]
        for task, of in zip(tasks, numbers, strict=True)
    ]
    named = np.array([len(set(task.systems)) > 1 for task in tasks])
    fourteen = np.array([task.name in FOURTEEN for task in tasks])
    every = np.ones(len(tasks), bool)
    for title, members in (
        ("mean of the fourteen of readings.md", fourteen),
        ("mean of those with several systems", named),
        ("mean", every),
    ):
        count = sum(
            len(task.scores) for task, of in zip(tasks, members, strict=True) if of
        )
        means = np.nanmean(numbers[members], axis=0)
        rows.append([title, count, *means.tolist()])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--draws", type=int, default=15)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if "JUDGESMITH_DATA" not in os.environ:
        parser.error("JUDGESMITH_DATA names the folder of the sets")
    pairs = list(read_pairs(options.tables))
    tasks = [pair.plain for pair in pairs]
    teachers = [pair.plain for pair in pairs if pair.teaches]
    rows = rows_of(tasks, compared(tasks, teachers, options.draws))
    titles = [
        f"{level}{size} labels{of}"
        for level in ("", "within systems, ")
        for of in (", all rows", ", learnt within")
        for size in (0, *SIZES)
    ]
    families = dict.fromkeys(task.family for task in teachers)
    save(
        options.output,
        "experience-within",
        {"task": "", "rows": "{}"} | dict.fromkeys(titles, "{:.2f}"),
        rows,
        commands=[
            f"python experiments/bench/experience_within.py TABLES --draws {options.draws} -o experiments/results/data"
        ],
        model="qwen2.5-coder-0.5b (Q4_K_M)",
        notes=f"each family left out of the experience, which was learnt from {', '.join(families)}",
    )


if __name__ == "__main__":
    main()
