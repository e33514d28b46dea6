"""`judgesmith study readings`: which readings carry human ratings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...cli.options import LM, ApiBase, Columns, Json

if TYPE_CHECKING:
    from .readings import Found, SetFound

__all__ = ["register"]

SHOWN = 12


def register(group: typer.Typer) -> None:
    """Add `readings` to the studies."""
    group.command(name="readings")(readings)


def readings(
    labels: Annotated[
        list[Path], typer.Argument(help="Rows with human scores: .csv .tsv .json .jsonl .parquet; several are sets.")
    ],
    lm: LM = None,
    aspect: Annotated[list[str] | None, typer.Option(help="Which score, where rows have several. Repeatable.")] = None,
    library_aspect: Annotated[
        str | None, typer.Option("--as", metavar="[TASK/]ASPECT", help="As in `judgesmith compile`.")
    ] = None,
    reader: Annotated[str, typer.Option(help="A local model that reads instead of --lm.")] = "",
    instruction: Annotated[str, typer.Option(help="What the judged systems were asked to do.")] = "",
    size: Annotated[list[int] | None, typer.Option(help="Numbers of labels. Repeatable. Default: 20, 40, 80.")] = None,
    draws: Annotated[int, typer.Option(help="Draws of labels for each number.", min=1)] = 50,
    rows: Annotated[int | None, typer.Option(help="Rows at most, whole groups in a random order.", min=20)] = None,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where the plot is written.")] = Path(
        "study-readings"
    ),
    columns: Columns = None,
    api_base: ApiBase = None,
    as_json: Json = False,
) -> None:
    """Which of a model's readings carry your labels, and what do 40 labels gain over the zero-shot score?

    Rows are read once and kept on disk: after Ctrl-C the same command resumes where it stopped. Labels are then drawn
    many times (whole groups), weighed as `judgesmith compile` weighs them, and tested on all other groups.
    """
    from ...programs.models.lm import Connection
    from ...programs.readings.judge import ReadingsJudge
    from ...running.console import Watch, out, print_json
    from ...running.opening import column_roles, open_model, quiet
    from .readings import Found, gather, read_table, study_table

    found: list[SetFound] = []
    sizes = size or (20, 40, 80)
    with quiet():
        sets = gather(labels, aspect or [], columns=column_roles(columns or ()), rows=rows)
        model = open_model(lm, Connection(api_base=api_base))
        options = {"reader": reader, "instruction": instruction}
        given = {name: value for name, value in options.items() if value}
        judges = [
            ReadingsJudge.from_options(given, labels_aspect=one.aspect, library_aspect=library_aspect)
            for _, one in sets
        ]
        with Watch("reading", sum(2 * len(one) + draws * len(sizes) for _, one in sets)) as watch:
            for (name, one), judge in zip(sets, judges, strict=True):
                known = read_table(judge, one, model, watch)
                if known.failed and not as_json:
                    out.print(f"note: {known.failed} rows of {name} could not be read", style="yellow", markup=False)
                watch.stage(f"{one.aspect}: draws of labels", draws * len(sizes))
                found.append(study_table(name, known, sizes=sizes, draws=draws, step=watch.step))
        whole = Found(tuple(found), model.name)
        written = whole.write(output)
    if as_json:
        print_json(whole.to_dict() | {"files": [str(path) for path in written]})
    else:
        _show(whole)
        out.print(f"Wrote {', '.join(map(str, written))}", markup=False, soft_wrap=True)


def _show(found: Found) -> None:
    from rich.markup import escape
    from rich.table import Table

    from ...running.console import number, wide

    out = wide()

    for one in found.sets:
        table = Table(title=f"{escape(one.name)}: {one.rows} rows of {one.groups} groups, {escape(found.model)}")
        for name in ("reading, without labels", "Q", "Pearson within groups"):
            table.add_column(name, justify="left" if name.startswith("reading") else "right")
        for name in sorted(one.alone, key=lambda n: -abs(one.alone[n]))[:SHOWN]:
            table.add_row(name, number(one.alone[name]), number(one.within[name]))
        out.print(table)
        drawn = Table(title="Q on the rows that the labels were not drawn from (mean and sd over draws)")
        for name in ("labels", "zero-shot", "weighed", "sd", "below zero-shot", "difference", "p", "within groups",
                     "without length"):  # fmt: skip
            drawn.add_column(name, justify="right")
        for size in one.draws:
            drawn.add_row(
                str(size.labels), number(float(size.zero_shot.mean())), number(float(size.chosen.mean())),
                number(float(size.chosen.std())), f"{size.below:.0%}",
                f"{number(size.gap.value)} ({number(size.gap.low)} to {number(size.gap.high)})",
                number(size.gap.p, 3), " → ".join(map(number, size.within)),
                " → ".join(map(number, size.without_length)),
            )  # fmt: skip
        out.print(drawn)
        for size in one.draws:
            if len(size.told):
                out.print(
                    f"  {size.labels} labels: the Q that compiling reports from them alone (nested) is "
                    f"{size.told.mean():+.2f} beside the Q on the rows left over"
                )
        if one.systems is not None:
            out.print(
                f"  systems without a label: Q {one.systems.unseen:.2f} (zero-shot {one.systems.zero_shot:.2f}); the "
                f"other half, {one.systems.labels} of whose outputs were labelled: {one.systems.seen:.2f}"
            )
