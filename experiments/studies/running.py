"""The common part of the commands of `judgesmith study`: settings, plans, and a run with progress on the screen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesmith.errors import OptionError
from judgesmith.running.console import Watch, duration, err, out
from judgesmith.running.plain import clean

if TYPE_CHECKING:
    from judgesmith.experiments.studies.analysis import Analysis
    from judgesmith.experiments.studies.run import Cell, Study
    from judgesmith.programs.models.lm import Connection

NO_MODEL = (
    "no language model: give --lm (or set JUDGESMITH_LM), or lm: in the --config file"
)


def run_one(
    study: Study,
    output: Path,
    where: Connection,
    *,
    overwrite: bool,
    heading: str | None,
) -> tuple[Analysis, list[Path], dict[str, int]]:
    """Run the rest of a study in its folder.

    Args:
        study: The study.
        output: Its folder.
        where: The connection to models.
        overwrite: True to discard an earlier run.
        heading: The heading of progress; None is silent before the first cell.

    Returns:
        The analysis, the files written, and how many cells there are, ran and are done.
    """
    from judgesmith.experiments.studies.analysis import analyse
    from judgesmith.experiments.studies.page import write
    from judgesmith.experiments.studies.run import Journal, run_study

    if not study.config.lm:
        raise OptionError(NO_MODEL)
    journal = Journal.open(output, study, overwrite=overwrite)
    cells = study.cells()
    todo = [cell for cell in cells if not journal.done(cell)]
    if heading is not None:
        for warning in study.labels.warnings:
            out.print(f"note: {clean(warning)}", style="yellow", markup=False)
        if len(todo) < len(cells):
            finished = f", {len(cells) - len(todo)} of them there"
        else:
            finished = ""
        calls = sum(study.plan(cell).calls for cell in todo)
        head = f"{clean(heading)}: " if heading else ""
        err.print(
            f"{head}{len(cells)} cells{finished}; at most {calls:,} calls; Ctrl-C loses nothing",
            style="dim",
        )
    if todo:
        with Show(study, todo) as show:
            run_study(study, journal, where, show)
    result = analyse(study.config, journal, cells)
    done = sum(journal.done(cell) for cell in cells)
    return (
        result,
        write(result, output),
        {"cells": len(cells), "ran": len(todo), "done": done},
    )


def _groups(
    study: Study, where: Connection
) -> tuple[dict[tuple[str, str, Any], list[int]], float]:
    """Calls of each cell by model, arm and size, and the seconds that all may take.

    Cells of one arm, model and size have as many, but for the size of the seeds' parts.
    """
    from judgesmith.running.opening import expected_seconds

    groups: dict[tuple[str, str, Any], list[int]] = {}
    seconds = 0.0
    for cell in study.cells():
        calls = study.plan(cell).calls
        groups.setdefault((cell.model, cell.arm, cell.train), []).append(calls)
        seconds += expected_seconds(calls, cell.model, where)
    return groups, seconds


def plan_of(study: Study, where: Connection) -> dict[str, Any]:
    """Return an upper bound of a study's calls and cost, as JSON values."""
    groups, seconds = _groups(study, where)
    return {
        "cells": len(study.cells()),
        "calls": sum(map(sum, groups.values())),
        "seconds": round(seconds),
        "seeds": list(study.config.seeds),
        "parts": {
            str(seed): {"heldout": len(part.heldout), "to_learn_from": len(part.pool)}
            for seed, part in study.parts.items()
        },
        "lines": [
            {
                "model": model,
                "arm": arm,
                "train": size,
                "cells": len(each),
                "calls": sum(each),
            }
            for (model, arm, size), each in groups.items()
        ],
    }


def show_plan(study: Study, where: Connection, of: str = "the study") -> None:
    """Print an upper bound of a study's calls and cost."""
    from judgesmith.tables import Column, Table

    groups, seconds = _groups(study, where)
    total = sum(map(sum, groups.values()))
    several = len(study.config.lm) > 1
    numbers = (
        Column(name, ",") for name in ("labels", "cells", "calls a cell", "calls")
    )
    table = Table(
        [*(["model"] if several else []), "arm", *numbers],
        f"What {of} would take (at most)",
    )
    for (model, arm, size), each in groups.items():
        table.add(
            *([model] if several else []),
            arm,
            str(size),
            len(each),
            max(each),
            sum(each),
        )
    table.section()
    table.add("in all", *([""] if several else []), "", len(study.cells()), "", total)
    table.show(out)
    parts = [f"{len(part.pool)} + {len(part.heldout)}" for part in study.parts.values()]
    out.print(f"Rows to learn from + held out, by seed: {', '.join(parts)}.")
    out.print(
        f"About {duration(seconds)}. Arms share calls through the disk cache, so that it may be far less."
    )


class Show(Watch):
    """A study on the screen: a bar over all steps with the time left, and a line for every finished cell."""

    def __init__(self, study: Study, todo: list[Cell]) -> None:
        self.study = study
        self.planned = [study.plan(cell).steps for cell in todo]
        self.number = 0
        self.steps = 0
        self.name = ""
        super().__init__("study", sum(self.planned))

    def begin(self, cell: Cell) -> None:
        """Show the cell's title."""
        self.name = self.study.title(cell)
        self.steps = 0
        self.stage("", 0)

    def stage(self, title: str, steps: int) -> None:
        """Show a stage of the cell on a terminal; a log has a line for each cell only."""
        if err.is_terminal:  # a log has a line for a cell, not for each of its stages
            super().stage(
                f"{self.number + 1}/{len(self.planned)} {self.name}"
                + (f": {title}" if title else ""),
                0,
            )

    def step(self, title: str | None = None, **_: Any) -> None:
        """Advance the bar, at most to the cell's plan."""
        if self.steps < self.planned[self.number]:
            self.steps += 1
            super().step()

    def best(self, text: str) -> None:
        """Show the best candidate so far on a terminal."""
        if err.is_terminal:
            super().best(text)

    def end(
        self, cell: Cell, record: Mapping[str, Any], seconds_left: float | None
    ) -> None:
        """Complete the cell's share of the bar, and print its result."""
        while self.steps < self.planned[self.number]:  # plans are upper bounds
            self.step()
        self.number += 1
        done = record["status"] == "done"
        if done:
            outcome = f"{record['signature']}, {record['calls']:,} calls, {duration(record['seconds'])}"
        else:
            outcome = f"failed: {record['reason']}"
        if seconds_left is not None:
            left = f"; about {duration(seconds_left)} left"
        else:
            left = ""
        line = clean(
            f"[{self.number}/{len(self.planned)}] {self.name}: {outcome}{left}"
        )
        err.print(line, markup=False, style=None if done else "red", soft_wrap=True)
