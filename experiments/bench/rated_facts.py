"""Measure what it is worth that an aspect's name says that facts are rated.

    python experiments/bench/rated_facts.py TABLES... [--model NAME] [--name NAME] [-o experiments/results/data]

TABLES are folders of tables that `judgesmith study experience` kept; the sets are those of JUDGESMITH_DATA. Rows are
read with their counts of facts, once as those of any aspect and once with what is expected where facts are rated. The
family of each set is left out of the experience.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.experiments.bench.facts import (
    SIZES,
    Pair,
    q_alone,
    reached,
    read_pairs,
)
from judgesmith.experiments.bench.sets import data_folder, table_parser
from judgesmith.experiments.studies.experience import Task, read_specs, without_family
from judgesmith.experiments.studies.saving import save
from judgesmith.programs.readings.experience import FACTS

MORE = Path(__file__).with_name("rated_facts.yaml")


def aspect_of(task: Task) -> str:
    """Return the name of a task's aspect."""
    return task.name.partition(".")[2]


def best_count(task: Task) -> float:
    """Return Q of the best count alone."""
    names = [name for name in task.table.names if name.startswith(FACTS)]
    columns = task.table.columns(names).T
    return max(q_alone(of, task.scores) for of in columns if np.isfinite(of).any())


def measured(pairs: Sequence[Pair], draws: int) -> list[list[Any]]:
    """Return a row for each set whose aspect says that facts are rated, and their mean."""
    teachers = [pair.plain for pair in pairs if pair.teaches]
    rows = list[list[Any]]()
    for pair in pairs:
        task = pair.with_facts
        experience = without_family(teachers, task.family)
        rated = experience.of_aspect(aspect_of(task))
        if rated is experience:
            continue
        numbers = [
            best_count(task),
            *reached(task, experience, draws),
            *reached(task, rated, draws),
        ]
        rows.append([task.name.replace(".", " "), len(task.scores), *numbers])
        print(*rows[-1], flush=True)
    sizes, *columns = zip(*(row[1:] for row in rows), strict=True)
    return [*rows, ["mean", sum(sizes), *np.nanmean(columns, axis=1).tolist()]]


def main() -> None:
    """Measure each set with the name of its aspect and without, and save the table on request."""
    parser = table_parser(__doc__, draws=15)
    parser.add_argument("--model", default="qwen2.5-coder-0.5b (Q4_K_M)")
    parser.add_argument("--name", default="facts-rated")
    options = parser.parse_args()
    data_folder()  # ends here where the variable is not set
    pairs = [*read_pairs(options.tables)]
    pairs += read_pairs(options.tables, read_specs(MORE), teaching=False)
    rows = measured(pairs, options.draws)
    titles = ["best count alone"]
    for way in ("", ", facts are rated"):
        titles += [f"{labels} labels{way}" for labels in (0, *SIZES)]
    named = f" --name {options.name}" if options.name != "facts-rated" else ""
    save(
        options.output,
        options.name,
        {"set": "", "rows": "{}"} | dict.fromkeys(titles, "{:.2f}"),
        rows,
        commands=[
            f"python experiments/bench/rated_facts.py TABLES --draws {options.draws}{named} -o experiments/results/data"
        ],
        model=options.model,
        notes="each family left out of the experience; counts of facts are among the readings throughout",
    )


if __name__ == "__main__":
    main()
