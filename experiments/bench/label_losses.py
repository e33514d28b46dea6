"""Measure where labels make a judge worse than it is without any, and what it helps that labels may be mostly noise.

    python experiments/bench/label_losses.py TABLES... [--draws 15] [-o experiments/results/data]

TABLES are folders of tables that `judgesmith study experience` kept; the sets are those of JUDGESMITH_DATA. The family
of each set is left out of the experience. Q of the head without labels and of heads with some is taken on the same
rows, those of documents without a label; the table has the differences. `before`: without the answer that labels are
mostly noise, and with the variance of documents and the odds of facts that went with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from judgesmith.experiments.bench.facts import FOURTEEN, SIZES, read_pairs
from judgesmith.experiments.bench.rated_facts import MORE, aspect_of
from judgesmith.experiments.bench.sets import data_folder, table_parser
from judgesmith.experiments.studies.experience import (
    Task,
    draws_of,
    read_specs,
    without_family,
)
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.fitting import gaussian
from judgesmith.optimizers.fitting.readings import agreement, weigh
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.judge import DIRECT

#: From which noise on an answer says that labels are mostly noise; a loss that is shown.
MOSTLY = 0.7
LOSS = 0.05


@contextmanager
def before() -> Iterator[None]:
    """Fit as before there was the answer that labels are mostly noise."""
    sizes = tuple(one for one in gaussian.SIZES if one.noise < MOSTLY)
    factual = replace(gaussian.OF_FACTUAL, log_prior=0.5)
    with mock.patch.multiple(gaussian, SIZES=sizes, OF_FACTUAL=factual, DOCUMENT=0.05):
        yield


def gained(task: Task, experience: Experience, size: int, draws: int) -> float:
    """Return Q with labels less Q without, on the same rows, as the mean over draws."""
    table = task.table
    scores = task.scores
    head = experience.head(set(table.names) - {DIRECT}, table.states)
    found = list[float]()
    for _, train, left in draws_of(table.groups, size, draws):
        fit = weigh(table.rows(train), scores[train], experience)
        rest = table.rows(left)
        with_labels = agreement(fit.head(rest), scores[left])
        found.append(with_labels - agreement(head(rest), scores[left]))
    return float(np.mean(found))


def measured(
    tasks: Sequence[Task], teachers: Sequence[Task], draws: int
) -> list[list[Any]]:
    """Return a row for each task: gains with each number of labels, before and now."""
    rows = list[list[Any]]()
    for task in tasks:
        learnt = without_family(teachers, task.family)
        experience = learnt.of_aspect(aspect_of(task))
        gains = list[float]()
        for size in SIZES:
            with before():
                gains.append(gained(task, experience, size, draws))
            gains.append(gained(task, experience, size, draws))
        rows.append([task.name.replace(".", " "), len(task.scores), *gains])
        print(*rows[-1], flush=True)
    return rows


def means(rows: Sequence[Sequence[Any]]) -> Iterator[list[Any]]:
    """Yield the mean of the fourteen tasks and of all."""
    numbers = np.array([row[2:] for row in rows], float)
    sizes = np.array([row[1] for row in rows])
    fourteen = np.array([row[0].replace(" ", ".") in FOURTEEN for row in rows])
    for title, of in (
        ("mean of the fourteen of readings.md", fourteen),
        ("mean", np.ones(len(rows), bool)),
    ):
        yield [title, int(sizes[of].sum()), *numbers[of].mean(axis=0).tolist()]


def losers(rows: Sequence[Sequence[Any]]) -> str:
    """Return how many tasks lose by labels, in words."""
    lost = (np.array([row[2:] for row in rows], float) < -LOSS).sum(axis=0).tolist()
    of_sizes = zip(SIZES, lost[::2], lost[1::2], strict=True)
    said = [f"{was} before and {now} now with {size}" for size, was, now in of_sizes]
    return f"tasks of {len(rows)} that lose more than {LOSS}: {', '.join(said)}"


def main() -> None:
    """Measure all tasks, and save the table on request."""
    parser = table_parser(__doc__, draws=15)
    options = parser.parse_args()
    data_folder()  # ends here where the variable is not set
    pairs = list(read_pairs(options.tables))
    teachers = [pair.plain for pair in pairs if pair.teaches]
    pairs += read_pairs(options.tables, read_specs(MORE), teaching=False)
    rows = measured([pair.with_facts for pair in pairs], teachers, options.draws)
    lost = losers(rows)
    rows += list(means(rows))
    titles = [f"{size} labels{way}" for size in SIZES for way in (", before", "")]
    save(
        options.output,
        "label-losses",
        {"task": "", "rows": "{}"} | dict.fromkeys(titles, "{:+.2f}"),
        rows,
        commands=[
            f"python experiments/bench/label_losses.py TABLES --draws {options.draws} -o experiments/results/data"
        ],
        model="qwen2.5-coder-0.5b (Q4_K_M)",
        notes=f"Q with labels less Q without, on the same rows; each family left out of the experience; {lost}",
    )


if __name__ == "__main__":
    main()
