"""`judgesmith study readings`: which readings carry human ratings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...cli.commands import Command, Json, Model, Rows, argument, flag

if TYPE_CHECKING:
    from .readings import Found, SetFound

SHOWN = 12


class Readings(Command, Model, Rows, Json):
    """Which of a model's readings carry your labels, and what do 40 labels gain over the zero-shot score?

    Rows are read once and kept on disk: after Ctrl-C the same command resumes where it stopped. Labels are then drawn
    many times (whole groups), weighed as `judgesmith compile` weighs them, and tested on all other groups. Experience
    was learnt from public sets: on one of these, give one that was not (`judgesmith study experience`), or none.
    """

    labels: list[Path] = argument(..., "Rows with human scores: .csv .tsv .json .jsonl .parquet; several are sets.")
    aspect: list[str] = flag([], "Which score, where rows have several. Repeatable.")
    library_aspect: str | None = flag(None, "As in `judgesmith compile`.", "--as", metavar="[TASK/]ASPECT")
    reader: str = flag("", "A local model that reads instead of --lm.")
    instruction: str = flag("", "What the judged systems were asked to do.")
    experience: str = flag("", "What is known before labels, as in `judgesmith list methods readings`.")
    size: list[int] = flag([], "Numbers of labels. Repeatable. Default: 20, 40, 80.")
    draws: int = flag(50, "Draws of labels for each number.", ge=1)
    rows: int | None = flag(None, "Rows at most, whole groups in a random order.", ge=20)
    output: Path = flag(Path("study-readings"), "Where the plot is written.", "-o", "--output", metavar="FOLDER")

    def run(self) -> None:
        from ...programs.readings.judge import ReadingsJudge
        from ...running.console import Watch, out, print_json
        from ...running.opening import connection_of, open_model, quiet
        from ...running.settings import ReachOptions
        from .readings import Found, gather, read_table, study_table

        result: list[SetFound] = []
        sizes = self.size or (20, 40, 80)
        with quiet():
            sets = gather(self.labels, self.aspect, columns=self.roles(), rows=self.rows)
            model = open_model(self.lm, connection_of(ReachOptions(), self.api_base))
            options = {"reader": self.reader, "instruction": self.instruction, "experience": self.experience}
            given = {name: value for name, value in options.items() if value}
            judges = [
                ReadingsJudge.from_options(given, labels_aspect=one.aspect, library_aspect=self.library_aspect)
                for _, one in sets
            ]
            with Watch("reading", sum(2 * len(one) + self.draws * len(sizes) for _, one in sets)) as watch:
                for (name, one), judge in zip(sets, judges, strict=True):
                    known = read_table(judge, one, model, watch)
                    if known.failed and not self.as_json:
                        out.print(
                            f"note: {known.failed} rows of {name} could not be read", style="yellow", markup=False
                        )
                    watch.stage(f"{one.aspect}: draws of labels", self.draws * len(sizes))
                    start = judge.experience_with(model)
                    result.append(study_table(name, known, start, sizes=sizes, draws=self.draws, step=watch.step))
            whole = Found(tuple(result), model.name)
            written = whole.write(self.output)
        if self.as_json:
            print_json(whole.to_dict() | {"files": [str(path) for path in written]})
        else:
            _show(whole)
            out.print(f"Wrote {', '.join(map(str, written))}", markup=False, soft_wrap=True)


def _show(result: Found) -> None:
    from ...running.console import wide
    from ...tables import Cell, Column, Table, number

    out = wide()
    for one in result.sets:
        about = f"{one.name}: {one.rows} rows of {one.groups} groups, {result.model}"
        table = Table(["reading, without labels", Column("Q", ".2f"), Column("Pearson within groups", ".2f")], about)
        for name in sorted(one.alone, key=lambda n: -abs(one.alone[n]))[:SHOWN]:
            table.add(name, one.alone[name], one.within[name])
        table.show(out)
        numbers = (Column(name, ".2f") for name in ("zero-shot", "weighed", "sd"))
        drawn = Table(
            [Column("labels", "d"), *numbers, Column("below zero-shot", ".0%"), Column("difference", ".2f"),
             Column("p", ".3f"), "within groups"],
            "Q on the rows that the labels were not drawn from (mean and sd over draws)",
        )  # fmt: skip
        for size in one.draws:
            within = " → ".join(number(r, 2) for r in size.within)
            drawn.add(
                size.labels, size.zero_shot.mean(), size.chosen.mean(), size.chosen.std(), size.below,
                Cell(size.gap.value, size.gap.low, size.gap.high), size.gap.p, within,
            )  # fmt: skip
        drawn.show(out)
        for size in one.draws:
            if size.way:
                shares = " → ".join(f"{share:.0%}" for share in size.way)
                out.print(f"  {size.labels} labels: {shares} of the way from guessing to one human rater")
            if len(size.told):
                out.print(
                    f"  {size.labels} labels: the Q that compiling reports from them alone (nested) is "
                    f"{size.told.mean():+.2f} beside the Q on the rows left over"
                )
    families = result.families()
    table = Table(
        ["labels of", Column("gain", ".2f"), Column("p (Holm)", ".3f")],
        "What one judge from 40 labels gains over zero-shot, mean over a file's aspects",
    )
    for name, (gap, p) in families.items():
        table.add(name, Cell(gap.value, gap.low, gap.high), p)
    if families:
        table.show(out)
