"""`judgesmith study experience`: what rated sets teach about readings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from judgesmith.cli.commands import Command, Json, Model, argument, flag

if TYPE_CHECKING:
    from judgesmith.experiments.studies.experience import Worth


class Experience(Command, Model, Json):
    """Learn weights of a model's readings from rated data sets, as a prior for new tasks.

    TASKS.yaml lists `tasks` (labels, family, and optionally aspect, instruction, rows, licence), and `measured`, which
    nothing is learnt from. Its paths are relative to it or to JUDGESMITH_DATA. The result is a file for
    `compile --method readings --experience FILE`: your own earlier tasks inform the next one. The folder -o has the
    readings, and the same command resumes there.
    """

    tasks: Path | None = argument(
        None,
        "YAML file of tasks to learn from. Default: those of the built-in experience.",
    )
    reader: str = flag("", "Local model that reads the rows instead of --lm.")
    trained: bool = flag(
        False,
        "Score the rows with the trained reader, too, as for judges without labels.",
    )
    draws: int = flag(
        0,
        "Number of draws per size to measure the experience with, each family left out. 0: no measurement.",
        ge=0,
    )
    output: Path = flag(
        Path("experience"), "Folder of the results.", "-o", "--output", metavar="FOLDER"
    )

    def run(self) -> None:
        """Read all tasks, fit the experience, measure its worth, and write both."""
        from datetime import date

        from judgesmith.experiments.studies.experience import (
            fit_experience,
            leave_family_out,
            located,
            read_specs,
            read_task,
            write_experience,
        )
        from judgesmith.programs.readings.experience import Card
        from judgesmith.programs.readings.judge import ModelReadings
        from judgesmith.running.console import Watch, out, print_json
        from judgesmith.running.opening import connection_of, open_model, quiet
        from judgesmith.running.settings import ReachOptions

        specs = read_specs(self.tasks)
        with quiet():
            lm = open_model(self.lm, connection_of(ReachOptions(), self.api_base))
            opened = ModelReadings(reader=self.reader).rows.opened(lm)
            every = (*specs.tasks, *specs.measured)
            with Watch("reading", len(every)) as watch:
                kept = self.output / "tables"
                files = [located(spec.labels, self.tasks) for spec in every]
                tasks = [
                    read_task(*pair, self.reader, lm, watch, kept, trained=self.trained)
                    for pair in zip(every, files, strict=True)
                ]
            taught = tasks[: len(specs.tasks)]
            sets = {
                f"{task.name} ({len(task.scores)} rows)": task.licence
                for task in taught
            }
            card = Card(
                reader=opened.reader.name, date=date.today().isoformat(), sets=sets
            )
            path = self.output / "experience.json"
            write_experience(fit_experience(taught, card, opened.model), path)
            found: list[Worth] = []
            if self.draws:
                with Watch("measuring", len(tasks)) as watch:
                    found = leave_family_out(tasks, taught, self.draws, watch.step)
        if self.as_json:
            print_json(
                {"experience": str(path), "tasks": [one.to_dict() for one in found]}
            )
            return
        if found:
            _show(found)
        out.print(
            f"Wrote {path}; use it with `judgesmith compile --method readings --experience {path}`",
            markup=False,
        )


def _show(found: list[Worth]) -> None:
    from judgesmith.experiments.studies.experience import SIZES
    from judgesmith.running.console import wide
    from judgesmith.tables import Column, Table

    numbers = [Column(f"{size}", ".2f") for size in SIZES]
    table = Table(
        [
            "task, its family left out",
            Column("own score", ".2f"),
            Column("log p", ".2f"),
            Column("0", ".2f"),
            *numbers,
        ],
        "Q by the number of labels, on documents without one",
    )
    for one in found:
        of = [
            one.by_labels[size][0] if size in one.by_labels else float("nan")
            for size in SIZES
        ]
        table.add(one.task, one.zero_shot, one.likelihood, one.unlabelled, *of)
    table.show(wide())
