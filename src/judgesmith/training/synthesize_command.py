"""`judgesmith synthesize`: examples for training, annotated by judges."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from ..cli.options import (
    LM,
    ApiBase,
    Columns,
    Concurrency,
    DryRun,
    Json,
    Limit,
    MaxCalls,
    MaxCost,
    MaxFailed,
    NoCache,
    Timeout,
)
from ..cli.settings import Config, Presets, Settings, settings_of, with_settings

if TYPE_CHECKING:
    from ..running.settings import Catalogue

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `synthesize` to the command line."""
    app.command(name="synthesize", cls=with_settings(_catalogue))(synthesize)


def _catalogue(given: Mapping[str, Any]) -> Catalogue:
    from .synthesizing import catalogue

    return catalogue()


def synthesize(
    context: typer.Context,
    rows: Annotated[Path, typer.Argument(help="Inputs with outputs of any systems: .csv .tsv .json .jsonl .parquet")],
    judge: Annotated[
        list[Path], typer.Option(help="A saved judge that annotates. Repeatable: those of one aspect vote.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the examples go.")] = Path("synthetic.jsonl"),
    apart: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="LABELS", help="Rows whose documents and texts stay out, such as those held out. Repeatable."
        ),
    ] = None,
    writer: Annotated[
        list[str] | None, typer.Option(metavar="LM", help="A model that writes an output for every input. Repeatable.")
    ] = None,
    lm: LM = None,
    columns: Columns = None,
    limit: Limit = None,
    settings: Settings = None,
    preset: Presets = None,
    config: Config = None,
    seed: Annotated[int, typer.Option(help="Decides what is drawn.")] = 0,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    max_failed: MaxFailed = None,
    dry_run: DryRun = False,
    api_base: ApiBase = None,
    timeout: Timeout = 120.0,
    concurrency: Concurrency = None,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    """Make examples for `judgesmith distill`: outputs of several qualities, annotated by judges.

    Outputs are the rows' own, written by models (`--writer`), and perturbed copies. The file is JSON lines in the chat
    form that other trainers read, too, with a card beside it. After Ctrl-C or at the end of a budget the same command
    resumes.
    """
    from ..cli.rendering import show_dry_run
    from ..datasets.loading import iter_rows
    from ..running.console import Watch, out, print_json
    from ..running.limits import Limits
    from ..running.opening import check_writable_file, column_roles, connection, open_judge, open_model, quiet
    from .synthesizing import Synthesis, SynthesisOptions

    found = _catalogue({}).resolve(*settings_of(context, settings))["run"]
    where = connection(api_base, timeout, concurrency, None, no_cache)
    roles = column_roles(columns or [])
    with quiet():
        check_writable_file(output, rows, *judge, *(apart or ()))
        run = Synthesis(
            rows=rows, judges=[open_judge(path, lm, where) for path in judge], output=output,
            options=SynthesisOptions(**found), writers=[open_model(name, where) for name in writer or ()],
            apart=[row for file in apart or () for row, _ in iter_rows(file)],
            columns=roles, limit=limit, seed=seed, limits=Limits.of(max_calls, max_cost, max_failed),
        )  # fmt: skip
        if dry_run:
            show_dry_run(run.plan(), as_json=as_json)
            return
        with Watch("outputs", run.steps()) as watch:
            made = run.run(watch)
    if as_json:
        print_json(made.to_dict() | {"output": str(output)})
        return
    out.print(f"{made.kept} examples of {made.candidates} outputs, {made.calls} calls → {escape(str(output))}")
    for why, count in made.left.items():
        out.print(f"left out: {count}, {why}", markup=False)
    for name, counts in made.bins.items():
        out.print(f"{name}, by fifths of the scale from the worst: {', '.join(map(str, counts))}", markup=False)
    for note in made.notes:
        out.print(f"note: {note}", style="yellow", markup=False)
