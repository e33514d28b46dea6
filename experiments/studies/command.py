"""`judgesmith study`: parsing, progress and the order of things; `study` runs the cells."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...cli.options import ApiBase, Columns, Json
from ...cli.settings import Config, Presets, Settings, with_settings
from ...errors import OptionError
from . import paper_command as study_paper
from . import readings_command as study_readings
from .running import NO_MODEL, catalogue, pairs, plan_of, run_one, show_plan

if TYPE_CHECKING:
    from ...programs.models.lm import Connection
    from .config import Given

__all__ = ["register"]

HELP = {
    "optimizers": "Which optimizer is worth its calls on your labels? All learn from the same rows with the same "
    "budget of candidates and are compared on the same held-out rows.",
    "ablation": "What does each part of Active-Critic do? Its variants (Table 1 of the paper) without task, OS-E, "
    "explanations, search or mini-batches (Table 4, Figures 2 and 3); --criteria FILE adds the arm with your criteria "
    "instead of inferred ones. --preset has the arms of one table or figure, OpeNLGauge's and direct scoring's, too.",
    "labels": "How many labels are enough? Agreement against the number of labels, 10, 20, 40 … all; more labels "
    "contain the fewer.",
    "models": "Which model judges best? The same study over several --lm.",
}
MORE = (
    "Every seed draws held-out rows (whole documents), which no arm learns from, then an order of the labels. All is "
    "kept in the folder -o: config.yaml, results.jsonl (with every candidate of a search) and predictions.jsonl "
    "(written as cells finish; the same command resumes where it stopped, and more arms, models or seeds are added), "
    "study.html (a page to look at), tables.md, tables.tex, figure.png and .svg.",
    "A --config file has the same options by their names (lm, train, seeds, arms, …, and all of `judgesmith compile`); "
    "flags win. A --preset has the arms of a paper's table, or what it sets for a set of data; both can be given. Exit "
    "code 0: all cells are there; 1: some failed, with their reasons; 2: an error.",
)


def register(app: typer.Typer) -> None:
    """Add `study optimizers`, `ablation`, `labels`, `models`, `readings` and `paper` to the command line."""
    group = typer.Typer(
        no_args_is_help=True,
        help="Compare optimizers, variants, numbers of labels, models or readings; run a paper's table.",
    )
    settings = with_settings(catalogue, reads_file=False)
    for kind, text in HELP.items():
        group.command(name=kind, cls=settings, help="\n\n".join((text, *MORE)))(study)
    study_readings.register(group)
    study_paper.register(group)
    app.add_typer(group, name="study")


def study(
    context: typer.Context,
    labels: Annotated[
        Path | None, typer.Argument(help="Rows with human scores: .csv .tsv .json .jsonl .parquet")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Folder of the results; default study-KIND.")
    ] = None,
    lm: Annotated[
        list[str] | None,
        typer.Option(help="A model, as in `judgesmith compile`; repeatable. Default: JUDGESMITH_LM."),
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART+PART…",
            help="What is compared, instead of the usual arms; repeatable. Parts: an optimizer, a variant, a method, "
            "racing, augment, no-task, no-criteria, no-os-e, no-explanations, no-search, one-batch, own-criteria, "
            "OPTION=VALUE. For example: fine+no-task, random-search+demos=8.",
        ),
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="N|A,B,…", help="How many seeds, or which. Default 3.")] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N,N,…|all",
            help="Labels to learn from; several make a curve; repeatable. Default all that are not held out; for "
            "`study labels` 10,20,40,…,all.",
        ),
    ] = None,
    heldout: Annotated[
        str | None, typer.Option(help="Share or number of rows to compare on, or a file. Default 0.5.")
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(help="Calls at most to fit one cell; held-out rows are not counted.", min=1)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what the run would take, spend nothing.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start the folder over.")] = False,
    aspect: Annotated[
        str | None, typer.Option(help="Which score, where rows have several; mean:A,B,… is their mean.")
    ] = None,
    scale: Annotated[
        tuple[float, float] | None, typer.Option(help="Lowest and highest score; inferred if not given.")
    ] = None,
    columns: Columns = None,
    api_base: ApiBase = None,
    settings: Settings = None,
    preset: Presets = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    from .config import Given

    flags = {
        "labels": None if labels is None else str(labels), "lm": lm, "arms": arm, "seeds": seeds,
        "train": ",".join(train) if train else None, "heldout": heldout, "max_calls": max_calls, "aspect": aspect,
        "scale": scale, "columns": columns, "api_base": api_base, **pairs(settings or []),
    }  # fmt: skip
    kind: Any = context.info_name
    given = Given.read(kind, config, flags, preset or ())
    raise typer.Exit(_run(given, output, given.connection(), dry_run=dry_run, overwrite=overwrite, as_json=as_json))


def _run(given: Given, output: Path | None, where: Connection, *, dry_run: bool, overwrite: bool, as_json: bool) -> int:
    from ...running.console import out, print_json
    from ...running.journal import alone
    from ...running.opening import quiet
    from ...running.plain import clean
    from . import tables as tables
    from .run import Study

    if not given.has("lm") and os.environ.get("JUDGESMITH_LM"):
        given = replace(given, flags={**given.flags, "lm": os.environ["JUDGESMITH_LM"]})
    output = output or given.folder()
    with quiet(), ExitStack() as lock:
        made = Study.prepare(given)
        if dry_run:
            if as_json:
                print_json({"dry_run": True, "study": made.config.study, **plan_of(made, where)})
            else:
                show_plan(made, where)
            return 0
        if not made.config.lm:
            raise OptionError(NO_MODEL)
        lock.enter_context(alone(output, folder=True))
        found, written, counts = run_one(made, output, where, overwrite=overwrite, said=None if as_json else "")
        if as_json:
            print_json(
                {
                    "study": given.kind, "output": str(output), **counts,
                    "lines": [line.to_dict() for line in found.lines],
                    "failures": [{**cell._asdict(), "reason": reason} for cell, reason in found.failures],
                    "notes": found.notes, "files": [path.name for path in written],
                }
            )  # fmt: skip
        else:
            tables.show(found)
            out.print(
                f"Wrote {clean(str(output))}: {', '.join(path.name for path in written)}", markup=False, soft_wrap=True
            )
    return 1 if found.failures else 0
