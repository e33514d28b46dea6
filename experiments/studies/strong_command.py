"""`judgesmith study strong`: what a few labels add to a strong judge."""

from __future__ import annotations

from pathlib import Path

from ...cli.commands import Command, Json, argument, flag


class Strong(Command, Json):
    """What do 8, 20, 40 and 80 labels add to the scores of a strong judge that stand in your rows?

    TASKS.yaml lists `tasks` (labels, family, aspect, signals, the strong judge's column first) by paths beside it or
    in JUDGESMITH_DATA. No model is called. Labels are drawn many times, and what compiling makes of them is measured on
    all other documents. The tables are written to the folder -o, as experiments/results/data has them.
    """

    tasks: Path | None = argument(None, "Tasks with recorded judges; default: those of experiments/results/strong.md.")
    draws: int = flag(20, "Draws of labels for each number.", ge=1)
    output: Path = flag(Path("study-strong"), "Folder of the tables.", "-o", "--output", metavar="FOLDER")

    def run(self) -> None:
        from ...running.console import Watch, out, print_json
        from ...running.opening import quiet
        from .strong import read_strong, read_strong_task, tables

        specs = read_strong(self.tasks).tasks
        command = f"judgesmith study strong{f' {self.tasks.name}' if self.tasks else ''} --draws {self.draws}"
        with quiet(), Watch("measuring", len(specs)) as watch:
            tasks = [read_strong_task(spec, self.tasks) for spec in specs]
            tables(tasks, self.draws, self.output, command, watch.step)
        files = sorted(map(str, self.output.glob("strong*.json")))
        if self.as_json:
            print_json({"files": files, "tasks": [task.name for task in tasks]})
        else:
            out.print(f"Wrote {', '.join(files)}", markup=False, soft_wrap=True)
