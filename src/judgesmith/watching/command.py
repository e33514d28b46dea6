"""`judgesmith watch`: does a judge still mean what it meant?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..cli.options import LM, ApiBases, Columns, Concurrency, Json, Rpm, Timeout

if TYPE_CHECKING:
    from .watching import Look

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `watch` to the command line."""
    app.command(name="watch")(watch)


def watch(
    rows: Annotated[
        Path, typer.Argument(help="Sentinel rows: the same ones each time, with or without human ratings.")
    ],
    judge: Annotated[Path, typer.Option(help="A judge that `compile` saved.")],
    history: Annotated[
        Path | None, typer.Option(help="Where each run is appended; default ROWS.watch.jsonl", show_default=False)
    ] = None,
    scored: Annotated[
        Path | None, typer.Option(help="What this judge has scored since the last run; it is watched, too.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A page: one .html file, no network.")] = None,
    human: Annotated[
        str | None, typer.Option(metavar="ASPECT", help="The human rating in the sentinel rows; found if there is one.")
    ] = None,
    baseline: Annotated[
        int, typer.Option(help="Runs that later ones are compared with; the first command makes them.", min=2, max=50)
    ] = 3,
    alpha: Annotated[float, typer.Option(help="Chance of any false alarm in --looks runs.", min=0, max=1)] = 0.05,
    looks: Annotated[int, typer.Option(help="Runs that --alpha is for.", min=1)] = 365,
    rebase: Annotated[bool, typer.Option("--rebase", help="Start a new baseline, accepting what changed.")] = False,
    columns: Columns = None,
    lm: LM = None,
    api_base: ApiBases = None,
    timeout: Timeout = 120.0,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    as_json: Json = False,
) -> None:
    """Score sentinel rows again and alarm if the judge's answers have changed.

    Every row is judged afresh, never taken from the cache. The first command scores the rows --baseline times: how
    these differ is noise. Later ones compare scores, failures and the length of explanations, row by row; with
    --scored also the scores, lengths and failures of new rows with those of the first such file. Exit code 0: quiet; 1:
    an alarm; 2: an error.
    """
    from ..evaluating.sources import read_file
    from ..pages import check_page, write_page
    from ..programs.artifact import fingerprint
    from ..running.console import Watch, print_json
    from ..running.opening import column_roles, connection, open_judge, quiet
    from .page import render
    from .watching import Sentinels, WatchOptions, look, read_traffic

    if output is not None:
        check_page(output, "-o", rows, judge, history, scored)
    options = WatchOptions(baseline=baseline, alpha=alpha, looks=looks)
    kept = history or rows.with_name(f"{rows.name.split('.')[0]}.watch.jsonl")
    roles = column_roles(columns or [])
    with quiet():
        sentinels = Sentinels.of(rows.name, read_file(str(rows), roles, None).rows, human)
        made = open_judge(judge, lm, connection(api_base, timeout, concurrency, rpm, no_cache=True))
        traffic = None if scored is None else read_traffic(scored, fingerprint(made), roles)
        with Watch("watching") as progress:
            found = look(made, sentinels, kept, options, traffic=traffic, restart=rebase, watch=progress)
    if output is not None:
        write_page(output, render(found, judge.name), "-o")
    if as_json:
        print_json(found.to_dict() | {"history": str(kept), "page": output and str(output)})
    else:
        _tell(found, kept, output)
    raise typer.Exit(1 if found.run.alarms else 0)


def _tell(found: Look, kept: Path, page: Path | None) -> None:
    from ..running.console import out
    from .watching import findings_table, summary

    for note in found.notes:
        out.print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)
    if found.run.found:
        findings_table(found.run.found).show(out)
    out.print(summary(found), markup=False, soft_wrap=True, style="red" if found.run.alarms else "green")
    out.print(f"{len(found.runs)} runs in {kept}" + (f"; page: {page}" if page else ""), markup=False, soft_wrap=True)
