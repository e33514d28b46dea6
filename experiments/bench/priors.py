"""What a judge of readings expects before the labels: without right answers and other views, and as it ships.

    python experiments/bench/priors.py TABLES... [--draws 15] [--kept FILE] [-o experiments/results/data]

TABLES are folders of tables of readings (SET.ASPECT*.npz), as `judgesmith study experience` keeps them, the first that
has a task counting; the sets are those of JUDGESMITH_DATA. The family of a task is left out of the experience; of a
family that the shipped experience never had, that is the shipped one. `reversed`: people's scores turned round, so that
experience misleads on purpose. Outcomes are kept in FILE, from which the same command goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from judgesmith.experiments.bench.facts import SIZES, Pair, read_pairs
from judgesmith.experiments.bench.kept import Kept
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
from judgesmith.programs.readings import experience as experiences
from judgesmith.programs.readings.experience import Experience, read_experience
from judgesmith.programs.readings.judge import DIRECT

FAMILIES = Path(__file__).with_name("families.yaml")
MODEL = "qwen2.5-coder-0.5b"


@dataclass(frozen=True)
class Way:
    """What is expected: that a reference may be the right answer; other views of experience, and answers without it."""

    title: str
    right: bool
    views: bool

    @contextmanager
    def fits(self) -> Iterator[None]:
        """Fit in this way."""
        right = experiences.RIGHT if self.right else {}
        given_up = gaussian.GIVEN_UP if self.views else ()
        with (
            mock.patch.object(gaussian, "RIGHT", right),
            mock.patch.object(gaussian, "GIVEN_UP", given_up),
        ):
            yield

    def known(self, learnt: Experience, aspect: str) -> Experience:
        """Return what is known of an aspect."""
        found = learnt.of_aspect(aspect)
        found = found if self.right else found.model_copy(update={"right": False})
        return found if self.views else found.model_copy(update={"pooled": None})


BEFORE = Way("before", right=False, views=False)
RIGHT = Way("right answers", right=True, views=False)
NOW = Way("as shipped", right=True, views=True)
MEASURED = (
    *((0, way) for way in (BEFORE, RIGHT)),
    *((size, way) for size in SIZES for way in (BEFORE, RIGHT, NOW)),
)
REVERSED = tuple((size, way) for size in SIZES for way in (BEFORE, NOW))


def reached(task: Task, learnt: Experience, way: Way, size: int, draws: int) -> float:
    """Return Q with some labels on documents without one, as the mean over draws."""
    table = task.table
    known = way.known(learnt, task.name.partition(".")[2])
    if not size:
        head = known.head(set(table.names) - {DIRECT}, table.states)
        return agreement(head(table), task.scores)
    found = []
    with way.fits():
        for _, train, left in draws_of(table.groups, size, draws):
            fit = weigh(table.rows(train), task.scores[train], known)
            found.append(agreement(fit.head(table.rows(left)), task.scores[left]))
    return float(np.mean(found)) if found else np.nan


def numbers(task: Task, learnt: Experience, draws: int) -> list[float]:
    """Return Q in every way, and with the scores turned round."""
    turned = replace(task, scores=100 - task.scores)
    found = [reached(task, learnt, way, size, draws) for size, way in MEASURED]
    own = agreement(np.nan_to_num(task.table.columns([DIRECT])[:, 0]), task.scores)
    has_own = bool(np.isfinite(task.table.columns([DIRECT])).any())
    return [
        own if has_own else np.nan,
        *found,
        *(reached(turned, learnt, way, size, draws // 3) for size, way in REVERSED),
    ]


def measured(pairs: Sequence[Pair], draws: int, kept: Kept) -> list[list[Any]]:
    """Return a row for each task: whether experience may learn from its set, its rows, and all numbers."""
    before: dict[str, Any] = dict(kept.lines)
    teachers = [pair.plain for pair in pairs if pair.teaches]
    taught = {spec.family for spec in read_specs(None).tasks}
    learnt = dict[str, Experience]()
    rows = []
    for pair in pairs:
        task = pair.with_facts
        if task.name not in before:
            if task.family not in learnt:
                learnt[task.family] = (
                    without_family(teachers, task.family)
                    if task.family in taught
                    else shipped()
                )
            before[task.name] = numbers(task, learnt[task.family], draws)
            kept.add([task.name, before[task.name]])
        print(task.name, *(f"{q:.2f}" for q in before[task.name]), flush=True)
        rows.append([task.name.replace(".", " "), len(task.scores), *before[task.name]])
    return rows


def shipped() -> Experience:
    """Return judgesmith's own experience with the model."""
    return read_experience(Path(experiences.__file__).parent / f"learnt/{MODEL}.json")


def means(rows: Sequence[Sequence[Any]], new: Sequence[bool]) -> list[list[Any]]:
    """Return the mean of sets that were chosen on, of the others, and of all."""
    found = np.array([row[2:] for row in rows], float)
    sizes = np.array([row[1] for row in rows])
    other = np.array(new)
    result: list[list[Any]] = []
    for title, of in (
        ("mean of the sets of experience.md", ~other),
        ("mean of other sets", other),
        ("mean", np.ones(len(rows), bool)),
    ):
        of_own = np.nanmean(found[of, 0]) if np.isfinite(found[of, 0]).any() else np.nan
        result.append(
            [title, int(sizes[of].sum()), of_own, *np.nanmean(found[of, 1:], axis=0)]
        )
    return result


def main() -> None:
    """Measure all tasks, and save the table on request."""
    parser = table_parser(__doc__, draws=15)
    parser.add_argument("--kept", type=Path)
    options = parser.parse_args()
    data_folder()  # ends here where the variable is not set
    pairs = list(read_pairs(options.tables))
    known = len(pairs)
    pairs += read_pairs(options.tables, read_specs(FAMILIES), teaching=False)
    rows = measured(pairs, options.draws, Kept(options.kept))
    rows += means(rows, [place >= known for place in range(len(rows))])
    for row in rows[-3:]:
        print(*row)
    titles = ["own score"]
    titles += [f"{size} labels: {way.title}" for size, way in MEASURED]
    titles += [f"{size} labels, reversed: {way.title}" for size, way in REVERSED]
    save(
        options.output,
        "priors",
        {"task": "", "rows": "{}"} | dict.fromkeys(titles, "{:.2f}"),
        rows,
        commands=[
            f"python experiments/bench/priors.py TABLES --draws {options.draws} -o experiments/results/data"
        ],
        model=f"{MODEL} (Q4_K_M)",
        notes="each family left out of the experience; own score: where it was recorded",
    )


if __name__ == "__main__":
    main()
