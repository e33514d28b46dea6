"""`judgesmith label`: people label rows on a page of this machine."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..cli.options import Columns, Json
from ..errors import MissingExtraError, OptionError

if TYPE_CHECKING:
    from .run import Opened, Wanted

__all__ = ["register"]


_Rows = Annotated[
    str | None, typer.Argument(metavar="ROWS", help="Rows to label; an output of `score` for --kind verdicts.")
]
_Kind = Annotated[
    str | None,
    typer.Option(
        help="score (default), category, binary (pass or fail), preference (A or B), spans (errors in the text, "
        "for `judgesmith spans`) or verdicts (are a judge's error spans and explanations right?).",
        metavar="KIND",
    ),
]
_N = Annotated[
    int | None,
    typer.Option("--n", help="Rows to label in all; a larger number later adds rows.", min=1, rich_help_panel="Rows"),
]
_Order = Annotated[
    str,
    typer.Option(
        help="file, random (as `estimate` needs them), or suggest (as `judgesmith suggest` chooses).",
        rich_help_panel="Rows",
    ),
]
_Repeats = Annotated[
    float | None,
    typer.Option(
        help="Share of rows that each rater is shown twice, to measure consistency.",
        metavar="SHARE",
        rich_help_panel="Rows",
    ),
]


def register(app: typer.Typer) -> None:
    """Add `label` to the command line."""
    app.command(name="label")(label)


def label(
    rows: _Rows = None,
    kind: _Kind = None,
    scale: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Worst and best score; default 1 5.", metavar="LOW HIGH", show_default=False),
    ] = None,
    categories: Annotated[
        str | None, typer.Option(help="Their words, worst first: bad,ok,good.", metavar="WORDS")
    ] = None,
    aspect: Annotated[str | None, typer.Option(help="What is rated, for example coherence.")] = None,
    guidelines: Annotated[
        Path | None, typer.Option(help="A text that is shown beside every row.", metavar="FILE")
    ] = None,
    rater: Annotated[str | None, typer.Option(help="Who labels; asked on the page where not given.")] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="Where labels are kept; default ROWS.labels.sqlite in this folder.", metavar="FILE"),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Write the labels at the end: .jsonl or .csv, a line a rater and row.", metavar="FILE"),
    ] = None,
    export_only: Annotated[
        bool, typer.Option("--export-only", help="No page: agreement and --export of what is in the store.")
    ] = False,
    n: _N = None,
    order: _Order = "file",
    repeats: _Repeats = None,
    seed: Annotated[int, typer.Option(help="Of --order random.", rich_help_panel="Rows")] = 0,
    columns: Columns = None,
    port: Annotated[int, typer.Option(help="0: that of the last run, or any free one.", min=0, max=65535)] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    as_json: Json = False,
) -> None:
    """Label rows by keyboard on a page that only this machine's browser can open; Ctrl-C ends it.

    Every answer is kept in one SQLite file as it is given: run the same command to continue, in any number of tabs,
    with any number of raters. The exported file needs no options: judgesmith compile labels.jsonl"""
    from ..running.opening import column_roles
    from .order import ORDERS
    from .run import Wanted

    if order not in ORDERS:
        raise OptionError(f"--order {order}: it is one of {', '.join(ORDERS)}")
    if rows is None and not export_only:
        raise OptionError("give ROWS to label, or --export-only --store FILE for labels that are there")
    words = tuple(word.strip() for word in categories.split(",")) if categories else ()
    wanted = Wanted(
        rows, store, kind, scale, words, aspect, guidelines, n, order, repeats, seed,  # type: ignore[arg-type]
        column_roles(columns or []),
    )  # fmt: skip
    _run(wanted, export, None if export_only else _page(rater, port, not no_browser), as_json)


def _run(wanted: Wanted, export: Path | None, page: Callable[[Opened], None] | None, as_json: bool) -> None:
    """The labels taken on the page, if there is one, then a summary."""
    from ..running.console import err, out, print_json
    from ..running.plain import one_line
    from .export import check_export
    from .run import open_store

    opened = open_store(wanted)
    for note in opened.notes:
        err.print(one_line(f"note: {note}"), style="yellow", markup=False)
    if export is not None:
        check_export(export, opened.task)
    if page is not None:
        page(opened)
    found = opened.result(export)
    opened.store.close()
    if as_json:
        print_json(found)
        return
    for line in _told(found):
        out.print(one_line(line), markup=False, soft_wrap=True)


def _page(rater: str | None, port: int, browser: bool) -> Callable[[Opened], None]:
    """Serves the page of a store until it is ended. Raises MissingExtraError before anything is opened."""
    _require_server()
    from ..running.console import err
    from ..running.plain import one_line
    from .run import listening, serve

    def page(opened: Opened) -> None:
        def started(address: str) -> None:
            err.print(f"labelling {opened.rows} rows at {address}", markup=False, soft_wrap=True)
            err.print(f"Kept in {one_line(str(opened.store.path))}; Ctrl-C ends it.", markup=False, soft_wrap=True)
            if browser:
                webbrowser.open(address)

        serve(opened, listening(opened.store, port), rater, started)

    return page


def _require_server() -> None:
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"the page needs {error.name}, which is not installed: pip install 'judgesmith[serve]'"
        ) from None


def _told(found: dict[str, Any]) -> list[str]:
    """A summary in a few lines."""
    told = [f"{found['labels']} labels on {found['rows']} rows, kept in {found['store']}"]
    for one in found["raters"]:
        again = "" if one["same"] is None else f", the same answer twice on {one['same']:.0%} of {one['twice']}"
        told.append(f"  {one['rater']}: {one['rated']} rated, {one['skipped']} skipped{again}")
    for one in found["agreement"]:
        if one["rows"]:
            told.append(f"  {one['question']}: {_agreement(one)} on {one['rows']} rows of {one['raters']} raters")
    for one in found["splits"][:10]:
        told.append(
            f"  raters split on {one['id']}: {', '.join(f'{who} {said}' for who, said in one['answers'].items())}"
        )
    if found["split_rows"] > 10:
        told.append(f"  … and {found['split_rows'] - 10} more (--json has them)")
    for one in found["contradictions"][:10]:
        told.append(f"  {one['rater']} on {one['id']}: first {one['first']}, then {one['second']}")
    if found["confused"]:
        most = found["confused"][0]
        told.append(f"  most often confused: {' and '.join(most['between'])} ({most['rows']} rows)")
    told += _studies(found.get("studies", {}))
    if "export" in found:
        told.append(f"wrote {found['exported']} labels to {found['export']}")
    return told


def _agreement(one: dict[str, Any]) -> str:
    from ..running.console import number

    if "f1" in one:
        return f"F1 of the marked characters {number(one['f1'])}, with severities {number(one['weighted_f1'])}"
    return f"Krippendorff's alpha {number(one['alpha'])}, equal answers {number(one['equal'])}"


def _studies(found: dict[str, Any]) -> list[str]:
    from ..running.console import number
    from .task import QUALITIES, SPAN_ANSWERS

    told = []
    for judge, tables in found.items():
        if spans := tables.get("spans"):
            told.append(f"{judge}: explanation by error span ({', '.join(SPAN_ANSWERS)})")
            told += [
                f"  {name}: {', '.join(str(row[c]) for c in SPAN_ANSWERS)}" for name, row in spans["counts"].items()
            ]
            told.append(f"  {spans['total']} in all; span OK {number(spans['span_ok'], 0)} %, "
                        f"explanation correct {number(spans['explanation_correct'], 0)} %")  # fmt: skip
        if said := tables.get("explanations"):
            told.append(f"{judge}: yes in per cent ({', '.join(QUALITIES)})")
            rows = said["rows"] | {"Average": said["average"]}
            told += [f"  {name}: {', '.join(number(row[q]) for q in QUALITIES)}" for name, row in rows.items()]
            told.append(f"  aspect-to-overall alignment {number(said['alignment'])}, differentiability "
                        f"{number(said['differentiability'])}, overall (1-5) {number(said['overall'], 3)}")  # fmt: skip
    return told
