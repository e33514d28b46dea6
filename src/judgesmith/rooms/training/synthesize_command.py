"""`judgesmith synthesize`: examples for training, annotated by judges."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.markup import escape

from judgesmith.cli.commands import Command, Json, Preset, Reach, Rows, argument, flag
from judgesmith.running.limits import Limits

if TYPE_CHECKING:
    from judgesmith.running.settings import Catalogue


class Synthesize(Command, Preset, Rows, Reach, Limits, Json):
    """Make examples for `judgesmith distill`: outputs of several qualities, annotated by judges.

    Outputs are those of the rows and perturbed copies. The file is JSON lines in the chat format of common trainers.
    After Ctrl-C or at a limit, the same command resumes. `judgesmith list options synthesize` has further options.
    """

    example: ClassVar[str] = "judgesmith synthesize rows.jsonl --judge judge.json"

    rows: Path = argument(
        ...,
        "Inputs with outputs of any systems: {formats}.",
    )
    judge: list[Path] = flag(
        ...,
        "Saved judge that annotates the outputs. Repeatable. Judges of one aspect vote.",
    )
    output: Path = flag(
        Path("synthetic.jsonl"), "File of the examples.", "-o", "--output"
    )
    apart: list[Path] = flag(
        [],
        "File of rows to keep out, with their documents and near-duplicates, e.g. the held-out rows. Repeatable.",
        metavar="LABELS",
    )
    limit: int | None = flag(
        None, "Number of rows to use, from the first. Default: all.", ge=1
    )
    seed: int = flag(0, "Random seed for the choice of outputs and aspects.")

    @classmethod
    def catalogue(cls, chosen: Mapping[str, Any]) -> Catalogue:
        """Return the options of synthesis."""
        from judgesmith.rooms.training.synthesizing import catalogue

        return catalogue()

    def run(self) -> None:
        """Annotate rows and write the synthetic examples."""
        from judgesmith.cli.rendering import show_dry_run
        from judgesmith.datasets.loading import iter_rows
        from judgesmith.rooms.training.synthesizing import Synthesis, SynthesisOptions
        from judgesmith.running.console import Watch, out, print_json
        from judgesmith.running.opening import check_writable_file, open_judge, quiet

        where = self.connection()
        with quiet():
            check_writable_file(self.output, self.rows, *self.judge, *self.apart)
            synthesis = Synthesis(
                rows=self.rows,
                judges=[open_judge(path, self.lm, where) for path in self.judge],
                output=self.output,
                options=SynthesisOptions(**self.more("run")),
                apart=[row for file in self.apart for row, _ in iter_rows(file)],
                columns=self.roles(),
                limit=self.limit,
                seed=self.seed,
                limits=self.limits(),
            )
            if self.dry_run:
                show_dry_run(synthesis.plan(), as_json=self.as_json)
                return
            with Watch("outputs", synthesis.steps()) as watch:
                result = synthesis.run(watch)
        if self.as_json:
            print_json(result.to_dict() | {"output": str(self.output)})
            return
        out.print(
            f"{result.kept} examples of {result.candidates} outputs, {result.calls} calls → {escape(str(self.output))}"
        )
        for why, count in result.left.items():
            out.print(f"left out: {count}, {why}", markup=False)
        for note in result.notes:
            out.print(f"note: {note}", style="yellow", markup=False)
