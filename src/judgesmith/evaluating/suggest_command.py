"""`judgesmith suggest`: which rows should people label next?"""

from __future__ import annotations

from typing import Annotated

import typer

from ..cli.options import Columns, Json

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `suggest` to the command line."""
    app.command(name="suggest")(suggest)


def suggest(
    rows: Annotated[str, typer.Argument(help="Rows to choose from; ideally an output of `score`.")],
    labels: Annotated[
        list[str] | None,
        typer.Option(help="A file with the labels that are there, joined by id. Repeatable.", metavar="FILE"),
    ] = None,
    n: Annotated[int, typer.Option("--n", help="How many rows.", min=1)] = 10,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="What is known of each row: a column, a path, a metric of SET.metrics.jsonl. Repeatable; verdicts are "
            "found where not given, and without any the texts' length, overlap and repetition are counted.",
        ),
    ] = None,
    aspect: Annotated[str | None, typer.Option(help="Which rating, where there are several.")] = None,
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Which rows should people label next?

    Spread over documents, systems and what judges say of the rows, a little more where these contradict each other;
    rows that resemble no others come last. Good for compiling a judge. For `estimate` draw rows at random instead.
    """
    from ..optimizers.suggestion import suggest as choose
    from ..running.console import out, print_json
    from ..running.opening import column_roles
    from ..running.plain import one_line
    from .suggesting import read_suggestable

    known, readings = read_suggestable(
        rows, labels=labels or (), judges=judge or (), aspect=aspect, columns=column_roles(columns or [])
    )
    found = choose(readings, n, human=known.human, documents=known.documents, systems=known.systems)
    if as_json:
        chosen = [{"id": known.rows[s.row].id, "row": known.rows[s.row].line} | s.to_dict() for s in found]
        print_json(
            {
                "ids": [one["id"] for one in chosen],
                "suggestions": chosen,
                "readings": list(readings),
                "rows": len(known.rows),
                "labelled": len(known.rows) - known.unlabelled,
                "notes": known.notes,
            }
        )
        return
    for s in found:
        out.print(one_line(f"{known.rows[s.row].id}  {s.why}"), markup=False, soft_wrap=True)
    if len(found) < n:
        out.print(f"{len(found)} of {n}: no other row is without a label.", style="yellow")
    for note in known.notes:
        out.print(one_line(f"note: {note}"), style="yellow", markup=False)
