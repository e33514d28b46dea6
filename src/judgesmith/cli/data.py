"""`judgesmith data`: which benchmark sets there are, what their cards say, and fetching them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import LabelsError, OptionError

if TYPE_CHECKING:
    from ..datasets.benchmarks.catalog import BenchmarkCard

__all__ = ["register"]

#: What a set's place is called in the table of all sets, and on its card.
PLACES = {
    "folder": ("folder", "the folder of JUDGESMITH_DATA"),
    "package": ("package", "an installed package"),
    "cache": ("cache", "the cache"),
    "fetchable": ("to fetch", "not here; `judgesmith data fetch` brings it"),
    "unavailable": ("nowhere", "not here, and it cannot be fetched; JUDGESMITH_DATA names a folder that has it"),
}

Json = Annotated[bool, typer.Option("--json", help="End with one JSON object on stdout, for machines.")]


def register(app: typer.Typer) -> None:
    """Add the `data` group to a command line."""
    data = typer.Typer(no_args_is_help=True, help="List, describe and fetch benchmark sets: bench/NAME.")
    data.command("list")(list_sets)
    data.command("show")(show_set)
    data.command("fetch")(fetch_sets)
    app.add_typer(data, name="data")


def list_sets(as_json: Json = False) -> None:
    """All sets with human scores from the literature, and where each of them is."""
    from ..datasets.benchmarks.catalog import list_benchmarks

    sets = [_summary(card) for card in list_benchmarks()]
    if as_json:
        _print_json({"sets": sets})
        return
    from rich.table import Table

    from ..running.console import out

    # Without lines and with the task below the name, it fits 80 columns.
    table = Table(title="Benchmark sets", title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("name, task", "rows", "aspects", "licence", "where"):
        justify: Literal["left", "right"] = "right" if column == "rows" else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=column == "name, task")
    for item in sets:
        licence = item["licence"] + (f"\n[yellow]{item['restriction']}[/yellow]" if item["restriction"] else "")
        table.add_row(
            f"{item['name']}\n[dim]{item['task']}[/dim]",
            _rows(item).replace(" of ", "/"),
            ", ".join(item["aspects"]),
            licence,
            PLACES[item["where"]][0],
        )
    out.print(table)
    for short, meaning in PLACES.values():
        if any(PLACES[item["where"]][0] == short for item in sets):
            out.print(f"{short}: {meaning}", markup=False, style="dim")
    out.print("`judgesmith data show NAME` prints a set's card.", style="dim")


def show_set(name: Annotated[str, typer.Argument(metavar="NAME", help="bench/NAME")], as_json: Json = False) -> None:
    """The card of a set: task, aspects, scales, paper, licence, how published tables aggregate it, its quirks."""
    from ..datasets.benchmarks.catalog import benchmark

    card = benchmark(name)
    here = _summary(card)
    if as_json:
        _print_json(card.to_json() | {key: here[key] for key in ("where", "path", "rows_here")})
        return
    from rich.markup import escape
    from rich.table import Table

    from ..running.console import out

    table = Table(title=f"{card.name}: {escape(card.title)}", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    systems = "systems not named" if card.systems is None else f"{card.systems} system{'s'[: card.systems != 1]}"
    lines = {
        "task": card.task,
        "rows": f"{card.rows:,} ({card.documents:,} documents, {systems})",
        "aspects": "\n".join(f"{aspect} {_scale(*scale)}" for aspect, scale in card.aspects.items()),
        "published as": card.aggregation,
        "paper": f"{card.paper}\n{card.paper_url}",
        "licence": _licence(card),
        "where": _whereabouts(here),
        "origin": _origin(card),
        "beside the rows": ", ".join(f"{card.key}.{extra}.jsonl" for extra in card.extras) or "nothing",
        "mind": "\n".join(f"- {quirk}" for quirk in card.quirks),
    }
    for title, text in lines.items():
        table.add_row(title, escape(text))
    out.print(table)


def fetch_sets(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="bench/NAME, one or several")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take the licences shown as read; do not ask.")] = False,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="A mirror with the paths of raw.githubusercontent.com.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fetch sets from their origins into the cache: licence first, checksum checked, rows converted.

    Exit code 0: they are here; 1: you said no; 2: an error.
    """
    from ..datasets.benchmarks.catalog import benchmark, locate, resolve
    from ..running.console import err, out

    cards = list({card.name: card for card in map(benchmark, names)}.values())
    wanted = [card for card in cards if locate(card.name).path is None]
    for card in wanted:
        if card.origin is None:
            raise LabelsError(
                f"{card.name}: cannot be fetched ({card.unfetchable}); set JUDGESMITH_DATA to a folder with"
                f" {card.key}.jsonl"
            )
    for card in wanted:
        err.print(f"{card.name}: {_licence(card)}", markup=False, style="yellow" if card.restriction else None)
    if wanted and not yes:
        if not _asks():
            raise OptionError("the licences above cannot be confirmed without a terminal; pass --yes to accept them")
        if not typer.confirm(f"Fetch {', '.join(card.name for card in wanted)}?", err=True):
            err.print("nothing was fetched")
            raise typer.Exit(1)
    done = []
    for card in cards:
        fetched = card in wanted
        if fetched:
            with _bar() as bar:
                task = bar.add_task(card.name, total=None)

                def say(received: int, total: int, what: str, bar: Any = bar, task: Any = task) -> None:
                    bar.update(task, completed=received, total=total)

                resolve(card.name, fetch=True, base_url=base_url, progress=say)
        here = _summary(card)
        done.append({key: here[key] for key in ("name", "rows", "rows_here", "where", "path")} | {"fetched": fetched})
        if not as_json:
            state = "fetched" if fetched else "here already"
            out.print(f"{card.name}: {state}, {_rows(here)} rows, {here['path']}", markup=False, soft_wrap=True)
    if as_json:
        _print_json({"sets": done})


def _asks() -> bool:
    """Whether somebody sits there who can answer."""
    return sys.stdin.isatty()


def _bar() -> Any:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from ..running.console import err

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    return Progress(*columns, console=err, disable=not err.is_terminal, transient=True)


def _print_json(data: Any) -> None:
    from ..running.console import print_json

    print_json(data)


def _summary(card: BenchmarkCard) -> dict[str, Any]:
    """What the table of all sets says about one; `rows_here` is None where it is not here."""
    from ..datasets.benchmarks.catalog import count_here, locate

    place = locate(card.name)
    return {
        "name": card.name,
        "task": card.task,
        "rows": card.rows,
        "rows_here": count_here(card.name),
        "aspects": list(card.aspects),
        "licence": card.licence,
        "restriction": card.restriction,
        "where": place.kind,
        "path": None if place.path is None else str(place.path),
    }


def _rows(item: dict[str, Any]) -> str:
    part = item["rows_here"] not in (None, item["rows"])
    return f"{item['rows_here']:,} of {item['rows']:,}" if part else f"{item['rows']:,}"


def _scale(worst: float, best: float) -> str:
    return f"{worst:g}..{best:g}" if worst != float("-inf") else f"up to {best:g} (no worst end)"


def _licence(card: BenchmarkCard) -> str:
    mark = f" [{card.restriction.upper()}]" if card.restriction else ""
    return f"{card.licence}{mark}. {card.licence_note}"


def _whereabouts(item: dict[str, Any]) -> str:
    where = PLACES[item["where"]][1]
    if item["path"] is None:
        return where
    part = item["rows_here"] != item["rows"]
    note = f"\n{_rows(item)} rows: published numbers are for all of them" if part else ""
    return f"{where}: {item['path']}{note}"


def _origin(card: BenchmarkCard) -> str:
    if card.origin is None:
        return f"cannot be fetched: {card.unfetchable}"
    origin = card.origin
    return (
        f"{origin.repository}, {origin.path}\ncommit {origin.commit}\n{origin.bytes:,} bytes, SHA-256 {origin.sha256}"
    )
