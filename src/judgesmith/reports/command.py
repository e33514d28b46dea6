"""`judgesmith report`: a scored file as a page to look at."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ..errors import OptionError
from ..programs.atomic import write_whole

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `report` to the command line."""
    app.command(name="report")(report)


def report(
    scored: Annotated[Path, typer.Argument(help="A .jsonl that `judgesmith score` wrote.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="One .html file, no network; default SCORED.html")
    ] = None,
    human: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Human ratings to compare with: an aspect, a column or a path; found by name where not given.",
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="The page's title.")] = "",
    columns: Annotated[
        list[str] | None, typer.Option("--columns", metavar="ROLE=NAME", help="As in `judgesmith compile`.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object on stdout, for machines.")] = False,
) -> None:
    """Look at the verdicts: every row with its errors marked in the text, explanations, filters, disagreements.

    Where people scored the rows, those on which the judge is furthest from them come first. The page holds everything
    it needs and can be passed on as it is. Without scripts it shows the first rows. Keys: j, k, n, p, o and /.
    """
    from ..running.console import err, out, print_json
    from ..running.opening import column_roles
    from ..running.plain import clean
    from .rows import read_scored, summarise
    from .spans import render

    target = output or scored.with_suffix(".html")
    if target.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"-o {target}: the report is HTML; name it .html")
    if target.exists() and scored.exists() and target.samefile(scored):
        raise OptionError(f"{target} is the input; give another -o")
    started = time.monotonic()
    data = read_scored(scored, human=human, columns=column_roles(columns or []))
    page = render(data, title).encode("utf-8", "backslashreplace")
    try:
        write_whole(target, page)
    except OSError as error:
        raise OptionError(f"{target} cannot be written: {error.strerror or error}") from None
    found = summarise(data)
    if as_json:
        seconds = round(time.monotonic() - started, 2)
        print_json({"output": str(target)} | found | {"bytes": len(page), "seconds": seconds})
        return
    for note in data.notes:
        err.print(f"note: {clean(note)}", style="yellow", markup=False)
    size = f"{len(page) / 1e6:.1f} MB" if len(page) >= 1e6 else f"{len(page) / 1e3:.0f} kB"
    done = f"rows: {found['rows']}, without score: {found['failures']}, errors: {found['errors']}"
    out.print(f"Wrote {clean(str(target))} ({size}); {done}", markup=False, soft_wrap=True)
