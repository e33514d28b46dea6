"""Tell from recorded answers how a panel and what is counted of a row are best weighed together.

    python experiments/bench/panel_signals.py [--draws 4] [--kept FILE] [--save FOLDER]

Tasks and draws are those of `judgesmith study replay`: prompts of one model are the members, half of the documents are
held out. The head is that beside a strong judge; its readings are length, overlap and repetition, which need no model.
The own score is one prompt's, or the panel's mean; members are further signals of the head, or are not. `where ahead`:
as compiling does, the head judges only where it is clearly ahead of the own score alone. Intervals are 95 %, Student's
t over the models of their tasks' means. Outcomes are kept in FILE, from which the same command goes on.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from judgesmith.agreement.correlation import impute
from judgesmith.agreement.objectives import Q, Rows
from judgesmith.experiments.studies.replay import (
    Task,
    agreements,
    draw_of,
    read_sets,
    tasks_of,
)
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.examples import item_of
from judgesmith.optimizers.fitting.readings import ahead, nested, weigh
from judgesmith.programs.panel.averaging import averaged, standings_of
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import LinearHead, Matrix, Readings, Vector
from judgesmith.programs.readings.kinds import SIGNAL, surface

SIZES = (40,)
MEAN = f"{SIGNAL}.mean"
FIRST = f"{SIGNAL}.member 0"
#: The own score of each head, and whether members are its signals.
HEADS: Mapping[str, tuple[str, bool]] = {
    "head over one prompt": (FIRST, False),
    "head over one prompt, the others as signals": (FIRST, True),
    "head over the mean": (MEAN, False),
    "head over the mean, members as signals": (MEAN, True),
}
ALONE = ("one at random", "panel")


def counted(task: Task) -> tuple[tuple[str, ...], Matrix]:
    """Return what is counted of each row, by name."""
    rows = []
    for item in map(item_of, task.examples):
        rows.append(surface(item.source or "", item.output))
    names = tuple(f"surface.{name}" for name in rows[0])
    return names, np.array([list(row.values()) for row in rows])


def heads(
    task: Task, size: int, number: int, read: tuple[tuple[str, ...], Matrix]
) -> dict[str, float]:
    """Return the held-out Q of each way to judge, after one draw of labels."""
    draw = draw_of(task, number)
    labelled = np.array(draw.order[:size])
    heldout = np.array(draw.heldout)
    members = np.stack([impute(column) for column in task.percents.T], axis=1)
    mean = averaged(task.percents, standings_of(task.percents[labelled]))
    named = {f"{SIGNAL}.member {n}": column for n, column in enumerate(members.T)}
    human = task.rows.human
    percents = {"panel": mean[heldout]}
    for name, (own, signals) in HEADS.items():
        columns = ({MEAN: mean} if own == MEAN else {}) | named
        if not signals:
            columns = {own: columns[own]}
        table = Readings(
            (*columns, *read[0]),
            np.column_stack([*columns.values(), read[1]]),
            tuple(task.rows.groups),
        )
        judged, taken = weighed(task, table, own, labelled)
        percents[name] = judged(table.rows(heldout))
        alone = columns[own][heldout]
        percents[f"{name}, where ahead"] = percents[name] if taken else alone
    q = agreements(np.column_stack(list(percents.values())), human[heldout])
    found = dict(zip(percents, q.sum(axis=0).tolist(), strict=True))
    alone = agreements(task.percents[heldout], human[heldout]).sum(axis=0)
    return {"one at random": float(alone.mean()), **found}


def weighed(
    task: Task, table: Readings, own: str, labelled: NDArray[Any]
) -> tuple[LinearHead, bool]:
    """Return the head of some labelled rows, and whether compiling takes it."""

    def fitted(rows: Readings, scores: Vector) -> LinearHead:
        return weigh(rows, scores, Experience(), own=own, first=True).head

    rows = table.rows(labelled)
    human = task.rows.human[labelled]
    held = nested(fitted, rows, human)
    documents = [task.rows.documents[place] for place in labelled]
    about = Rows(human, documents, [str(group) for group in rows.groups])
    alone = rows.columns([own])[:, 0]
    return fitted(rows, human), ahead(held, alone, about, Q(), strong=True)


def outcomes(draws: int, kept: Path | None) -> Iterator[dict[str, Any]]:
    """Yield the mean over draws for each task and number of labels, from its file where it is there."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept else []
    earlier = {}
    for one in map(json.loads, lines):
        if one.get("draws") == draws:
            earlier[one["task"], one["labels"]] = one
    for spec in read_sets(None):
        for task in tasks_of(spec, None):
            title = f"{task.family}, {task.model}, {task.aspect}"
            if task.kind != "panel" or spec.contrast:
                continue
            read = counted(task)
            for size in SIZES:
                if (title, size) not in earlier:
                    found = [heads(task, size, n, read) for n in range(draws)]
                    means = {
                        name: float(np.mean([one[name] for one in found]))
                        for name in found[0]
                    }
                    whose = f"{task.family}, {task.model}"
                    one = {"task": title, "labels": size, "draws": draws}
                    one |= {"of": whose, "q": means}
                    earlier[title, size] = one
                    if kept:
                        with kept.open("a", encoding="utf-8") as file:
                            print(json.dumps(one), file=file)
                yield earlier[title, size]


def gained(
    found: Sequence[Mapping[str, Any]], value: Callable[[Mapping[str, float]], float]
) -> list[float]:
    """Return the mean over models of a value of their tasks, and its interval."""
    by_model: dict[str, list[float]] = defaultdict(list)
    for one in found:
        by_model[one["of"]].append(value(one["q"]))
    means = np.array([np.mean(values) for values in by_model.values()])
    half = scipy.stats.t.ppf(0.975, len(means) - 1) * means.std(ddof=1)
    half /= len(means) ** 0.5
    return [float(means.mean() + side * half) for side in (0, -1, 1)]


def table_of(found: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return a row for each way to judge: Q with 40 labels, and its gain over the equal panel by labels."""
    rows: list[list[Any]] = []
    for name in found[0]["q"]:
        row: list[Any] = [name]
        at = [one for one in found if one["labels"] == 40]
        row.append(gained(at, lambda q, name=name: q[name])[0])  # type: ignore[misc]
        for size in SIZES:
            some = [one for one in found if one["labels"] == size]
            row.append(gained(some, lambda q, name=name: q[name] - q["panel"]))  # type: ignore[misc]
        rows.append(row)
    return rows


def main() -> None:
    """Print the table, and save it on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    if options.kept:
        options.kept.touch()
    rows = table_of(list(outcomes(options.draws, options.kept)))
    for row in rows:
        print(json.dumps(row))
    columns = {"judge": "", "Q, 40 labels": "{:.3f}"}
    columns |= dict.fromkeys(
        (f"− the panel, {size} labels" for size in SIZES),
        "{:+.3f} [{:+.3f}, {:+.3f}]",
    )
    command = f"python experiments/bench/panel_signals.py --draws {options.draws}"
    notes = f"{options.draws} draws a task"
    save(options.save, "panel-signals", columns, rows, commands=[command], notes=notes)


if __name__ == "__main__":
    main()
