"""`judgesmith distill`: a small model trained to judge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.markup import escape

from judgesmith.cli.commands import Command, Json, Preset, Rows, argument, flag

if TYPE_CHECKING:
    from judgesmith.rooms.training.distilling import DistillReport
    from judgesmith.running.settings import Catalogue


class Distill(Command, Preset, Rows, Json):
    """Train a small model to judge, from human ratings and synthetic examples.

    After Ctrl-C, a crash or a kill, the same command resumes from its last checkpoint. The report compares the student
    with the untrained model (and a teacher) on held-out rows. Requires the extras local and train. `judgesmith list
    options distill` has further options.
    """

    example: ClassVar[str] = (
        "judgesmith distill labels.jsonl --synthetic synthetic.jsonl"
    )

    labels: Path = argument(
        ...,
        "Rows with human ratings: {formats}, or bench/NAME.",
    )
    base: str = flag(
        "local/qwen2.5-0.5b",
        "Model to train: local/NAME (`judgesmith list models`) or gguf:PATH.",
    )
    output: Path = flag(
        Path("judge.json"),
        "File of the saved judge. Its weights go into the folder NAME.student beside it.",
        "-o",
        "--output",
    )
    synthetic: Path | None = flag(
        None,
        "File of examples from `judgesmith synthesize`. Human ratings weigh more (--human-weight).",
    )
    aspect: str | None = flag(
        None, "Name of the human rating to learn. Required if rows have several."
    )
    scale: tuple[float, float] | None = flag(
        None,
        "Lowest and highest score. Default: inferred from the labels.",
        metavar="LOW HIGH",
    )
    heldout: str = flag(
        "0.25",
        "Share of rows held out for the reported agreement (0 to 1), or a file of other labels.",
        coerce_numbers_to_str=True,
    )
    library_aspect: str | None = flag(
        None,
        "Library aspect that the score measures (`judgesmith list aspects`).",
        "--as",
        metavar="[TASK/]ASPECT",
    )
    teacher: Path | None = flag(
        None, "Saved judge to compare the student with, on the same held-out rows."
    )
    seed: int = flag(0, "Random seed for splits, batches and initial weights.")
    overwrite: bool = flag(False, "Start over instead of resuming from a checkpoint.")
    dry_run: bool = flag(False, "Print the estimated time and memory, and stop.")

    @classmethod
    def catalogue(cls, chosen: Mapping[str, Any]) -> Catalogue:
        """Return the options of training."""
        from judgesmith.rooms.training.distill_run import catalogue

        return catalogue()

    def run(self) -> int:
        """Train a student, save it and print its agreement."""
        from judgesmith.cli.rendering import show_dry_run
        from judgesmith.rooms.training.distill_run import (
            DistillRequest,
            DistillRun,
            RunOptions,
        )
        from judgesmith.running.console import print_json
        from judgesmith.running.opening import quiet

        request = DistillRequest(
            labels=self.labels,
            base=self.base,
            output=self.output,
            synthetic=self.synthetic,
            aspect=self.aspect,
            scale=self.scale,
            heldout=self.heldout,
            library_aspect=self.library_aspect,
            teacher=self.teacher,
            seed=self.seed,
            overwrite=self.overwrite,
            columns=self.roles(),
            options=RunOptions(**self.more("run")),
        )
        distilling = DistillRun(request)
        with quiet():
            if self.dry_run:
                show_dry_run(distilling.plan(), as_json=self.as_json)
                return 0
            report = distilling.run()
            if self.as_json:
                print_json(report.to_dict() | {"output": str(self.output)})
            else:
                _show(report, self.output)
        return 1 if report.heldout.objective.failed == report.heldout.objective.n else 0


def _show(report: DistillReport, output: Path) -> None:
    from judgesmith.running.console import duration, wide
    from judgesmith.running.console import out as plain
    from judgesmith.tables import Cell, Column, Table

    numbers = (Column(name, ".2f") for name in ("Q", "r", "rho", "tau"))
    costs = (Column("calls/row", ".1f"), Column("s/row", ".2f"))
    table = Table(
        ["", *numbers, Column("student's lead", "+.2f"), Column("p", "p"), *costs],
        "On the held-out rows",
    )
    for one in report.contenders:
        agreement = one.agreement
        gap = one.against
        by = agreement.objective
        lead = (Cell(gap.value, gap.low, gap.high), gap.p) if gap else ("", "")
        q = Cell(agreement.q, agreement.low, agreement.high)
        table.add(
            one.name,
            q,
            by.pearson,
            by.spearman,
            by.kendall,
            *lead,
            one.calls,
            one.seconds,
        )
    table.show(wide())
    rows = report.rows
    plain.print(
        f"{rows['heldout']} held-out rows; trained on {rows['human']} human ratings and {rows['synthetic']} "
        f"synthetic examples, {report.trained.ended} epochs, the best was {report.trained.best}; "
        f"{duration(report.seconds)}"
    )
    for note in report.notes:
        plain.print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)
    size = sum(report.sizes.values()) / 1e6
    saved = escape(str(output))
    plain.print(f"\nSaved {saved}, weights of {size:.0f} MB beside it.")
    if report.contenders[0].agreement.high >= 0:  # a note says not to use the others
        plain.print(
            f"Next: judgesmith score OUTPUTS.jsonl --judge {saved}", soft_wrap=True
        )
