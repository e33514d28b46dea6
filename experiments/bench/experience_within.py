"""Compare experience that was learnt within systems, and keeps to the ranges it has seen, with what it replaces.

And with what is shipped now: facts counted in the source, too, expected to decide where an aspect's name says so.

    python experiments/bench/experience_within.py TABLES... [--draws 15] [--kept FILE] [-o experiments/results/data]

TABLES are folders of tables that `judgesmith study experience` kept (SET.ASPECT*.npz), the first that has a task
counting; the sets are those of JUDGESMITH_DATA. All are fitted to the same tasks, the family of the measured one left
out, and measured on the same draws: Q over all rows, and Q within systems, with 0, 8 and 40 labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.correlation import within_systems
from judgesmith.experiments.bench.facts import FOURTEEN, SIZES, Pair, read_pairs
from judgesmith.experiments.bench.kept import Kept
from judgesmith.experiments.bench.sets import data_folder, table_parser
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
class Variant:
    """A way to learn experience: from differences within systems or of all rows, with ranges or without.

    facts: with counts of facts, and what is expected of them by the aspect's name.
    """

    title: str
    within: bool
    ranges: bool
    facts: bool = False

    def learn(self, teachers: Sequence[Task]) -> Experience:
        """Fit an experience to some tasks."""
        tasks = [
            task if self.within else replace(task, systems=()) for task in teachers
        ]
        learnt = fit_experience(tasks, Card())
        return learnt if self.ranges else learnt.model_copy(update={"ranges": {}})


BEFORE = Variant("all rows", within=False, ranges=False)
INSIDE = Variant("within systems", within=True, ranges=False)
RANGES = Variant("within systems, ranges", within=True, ranges=True)
SHIPPED = Variant("with facts, as shipped", within=True, ranges=True, facts=True)
#: What is measured: without labels all, with labels those that differ.
MEASURED = (
    (0, BEFORE),
    (0, INSIDE),
    (0, RANGES),
    (0, SHIPPED),
    *((size, variant) for size in SIZES for variant in (BEFORE, RANGES, SHIPPED)),
)


def q_within(predicted: Vector, human: Vector, systems: Sequence[str]) -> float:
    """Return Q within systems; NaN where all rows are of one."""
    if len(set(systems)) < 2:
        return np.nan
    codes = np.unique(systems, return_inverse=True)[1]
    return float(sum(within_systems(predicted, human, codes, COEFFICIENTS)))


def reached(task: Task, experience: Experience, labels: int, draws: int) -> Vector:
    """Return Q and Q within systems on documents without a label, as means over draws."""
    table = task.table
    scores = task.scores
    systems = np.array(task.systems)
    if not labels:
        predicted = experience.head(set(table.names) - {DIRECT}, table.states)(table)
        found = [
            (agreement(predicted, scores), q_within(predicted, scores, task.systems))
        ]
        return np.array(found[0])
    found = []
    for _, train, left in draws_of(table.groups, labels, draws):
        head = weigh(table.rows(train), scores[train], experience).head
        predicted = head(table.rows(left))
        of_left = systems[left].tolist() if len(systems) else []
        pooled = agreement(predicted, scores[left])
        found.append((pooled, q_within(predicted, scores[left], of_left)))
    return np.array(found).mean(axis=0) if found else np.full(2, np.nan)


def measured(
    pairs: Sequence[Pair],
    teachers: Sequence[Task],
    draws: int,
    kept: Kept,
) -> NDArray[np.float64]:
    """Measure every task in every way: shape (tasks, ways, 2), pooled and within systems.

    kept: what tasks have reached before.
    """
    before: dict[str, Any] = dict(kept.lines)
    experiences = dict[tuple[str, Variant], Experience]()
    for pair in pairs:
        task = pair.plain
        if task.name in before:
            continue
        others = [one for one in teachers if one.family != task.family]
        for variant in (BEFORE, INSIDE, RANGES, SHIPPED):
            if (task.family, variant) not in experiences:
                experiences[task.family, variant] = variant.learn(others)
        aspect = task.name.partition(".")[2]
        of_task = []
        for labels, variant in MEASURED:
            experience = experiences[task.family, variant]
            rows = pair.with_facts if variant.facts else task
            expected = experience.of_aspect(aspect) if variant.facts else experience
            of_task.append(reached(rows, expected, labels, draws).tolist())
        before[task.name] = of_task
        kept.add([task.name, of_task])
        print(task.name, *(f"{one[0]:.2f}" for one in of_task), flush=True)
    return np.array([before[pair.plain.name] for pair in pairs])


def rows_of(tasks: Sequence[Task], found: NDArray[np.float64]) -> list[list[Any]]:
    """Return a row for each task, and the means of some of them: pooled columns, then those within systems."""
    numbers = np.concatenate([found[:, :, 0], found[:, :, 1]], axis=1)
    rows: list[list[Any]] = [
        [task.name.replace(".", " "), len(task.scores), *of.tolist()]
        for task, of in zip(tasks, numbers, strict=True)
    ]
    sizes = np.array([len(task.scores) for task in tasks])
    for title, members in (
        (
            "mean of the fourteen of readings.md",
            np.array([task.name in FOURTEEN for task in tasks]),
        ),
        (
            "mean of those with several systems",
            np.array([len(set(task.systems)) > 1 for task in tasks]),
        ),
        ("mean", np.ones(len(tasks), bool)),
    ):
        means = np.nanmean(numbers[members], axis=0)
        rows.append([title, int(sizes[members].sum()), *means.tolist()])
    return rows


def main() -> None:
    """Measure both experiences on the same draws, and save the table on request."""
    parser = table_parser(__doc__, draws=15)
    parser.add_argument("--kept", type=Path)
    options = parser.parse_args()
    data_folder()  # ends here where the variable is not set
    pairs = list(read_pairs(options.tables))
    tasks = [pair.plain for pair in pairs]
    teachers = [pair.plain for pair in pairs if pair.teaches]
    found = measured(pairs, teachers, options.draws, Kept(options.kept))
    rows = rows_of(tasks, found)
    titles = [
        f"{level}{labels} labels: {variant.title}"
        for level in ("", "Q within systems, ")
        for labels, variant in MEASURED
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
