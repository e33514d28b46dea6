"""`judgesmith watch`: detect changes of a judge on sentinel rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from judgesmith.cli.commands import Command, Json, Reach, Rows, Worded, argument, flag

if TYPE_CHECKING:
    from judgesmith.rooms.watching.watching import Look


class Watch(Command, Rows, Worded, Reach, Json):
    """Score sentinel rows again and alarm if the judge's answers have changed.

    Rows are scored without the cache. The first run scores them --baseline times to measure the judge's noise. Later
    runs compare scores, failures and the length of explanations, row by row. Exit code 0: no change found; 1: an
    alarm; 2: an error.
    """

    example: ClassVar[str] = "judgesmith watch sentinels.jsonl --judge judge.json"

    rows: Path = argument(
        ..., "Sentinel rows: the same file in every run, with or without human ratings."
    )
    judge: Path = flag(..., "Saved judge (JSON file).")
    history: Path | None = flag(
        None, "JSON-lines file to append each run to. Default: ROWS.watch.jsonl."
    )
    output: Path | None = flag(
        None,
        "Self-contained HTML file of the report.",
        "-o",
        "--output",
    )
    human: str | None = flag(
        None,
        "Column of human ratings in the sentinel rows. Default: the column with a usual name, if any.",
        metavar="ASPECT",
    )
    baseline: int = flag(
        3,
        "Number of baseline runs. The first command makes all of them.",
        ge=2,
        le=50,
    )
    alpha: float = flag(
        0.05,
        "Probability of at least one false alarm in --looks runs, if rows vary independently.",
        ge=0,
        le=1,
    )
    looks: int = flag(365, "Number of runs that --alpha covers.", ge=1)
    rebase: bool = flag(False, "Accept the change and start a new baseline.")

    def run(self) -> int:
        """Score the sentinel rows, test them against the baseline and report."""
        from judgesmith.evaluating.sources import read_file
        from judgesmith.pages import check_page, write_page
        from judgesmith.rooms.watching.page import render
        from judgesmith.rooms.watching.watching import Sentinels, WatchOptions, look
        from judgesmith.running.console import Watch as Progress
        from judgesmith.running.console import print_json
        from judgesmith.running.contracts import held_by
        from judgesmith.running.opening import open_judge, quiet, roles_for, rows_file

        if self.output is not None:
            check_page(self.output, "-o", self.rows, self.judge, self.history)
        options = WatchOptions(
            baseline=self.baseline, alpha=self.alpha, looks=self.looks
        )
        history = self.history or self.rows.with_name(
            f"{self.rows.name.split('.')[0]}.watch.jsonl"
        )
        where = self.model_copy(update={"cache": False}).connection()
        with quiet():
            roles = roles_for(rows_file(str(self.rows)), self.roles(), self.judge)
            file = read_file(
                str(self.rows),
                roles,
                human=[self.human] if self.human else [],
                orders=self.orders(),
            )
            sentinels = Sentinels.of(file, self.human, held_by(self.judge))
            judge = open_judge(self.judge, self.lm, where)
            with Progress("watching") as progress:
                outcome = look(
                    judge,
                    sentinels,
                    history,
                    options,
                    restart=self.rebase,
                    watch=progress,
                )
        if self.output is not None:
            write_page(self.output, render(outcome, self.judge.name), "-o")
        if self.as_json:
            print_json(
                outcome.to_dict()
                | {"history": str(history), "page": self.output and str(self.output)}
            )
        else:
            _print_outcome(outcome, history, self.output)
        return 1 if outcome.run.alarms else 0


def _print_outcome(outcome: Look, kept: Path, page: Path | None) -> None:
    from judgesmith.rooms.watching.watching import findings_table, summary
    from judgesmith.running.console import out

    for note in outcome.notes:
        out.print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)
    if outcome.run.found:
        findings_table(outcome.run.found).show(out)
    out.print(
        summary(outcome),
        markup=False,
        soft_wrap=True,
        style="red" if outcome.run.alarms else "green",
    )
    out.print(
        f"{len(outcome.runs)} runs in {kept}" + (f"; page: {page}" if page else ""),
        markup=False,
        soft_wrap=True,
    )
