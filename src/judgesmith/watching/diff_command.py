"""`judgesmith diff`: what changed between two judges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ..cli.options import LM, ApiBases, Columns, Concurrency, Json, Limit, NoCache, Rpm, Timeout
from ..errors import OptionError

if TYPE_CHECKING:
    from ..agreement.resampling import Interval
    from ..programs.models.lm import Connection
    from .judges import Change, JudgeDiff
    from .scores import ScoreDiff

__all__ = ["register"]

#: Changes of one part that the table shows.
MOST_SHOWN = 12


def register(app: typer.Typer) -> None:
    """Add `diff` to the command line."""
    app.command(name="diff")(diff)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A saved judge, or a file that it scored (.jsonl, .csv).")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    rows: Annotated[
        Path | None, typer.Option(help="Rows that both judges score now, to compare what they say.", show_default=False)
    ] = None,
    columns: Columns = None,
    limit: Limit = None,
    seed: Annotated[int, typer.Option(help="Of the resampled documents.")] = 0,
    lm: LM = None,
    api_base: ApiBases = None,
    timeout: Timeout = 120.0,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    """What changed between two judges, and whether their scores may be compared.

    Of two saved judges: method, options, task, criteria, prompts, demonstrations, model, readings and head, scale,
    calibration, provenance. With --rows, or of two scored files of the same rows: how alike they order the rows, what
    flips, the mean difference, and the rows that moved most. Exit code, as of `diff`: 0 the same (provenance aside), 1
    different, 2 an error.
    """
    from ..programs import artifact
    from ..running.console import print_json
    from ..running.opening import column_roles, connection, quiet
    from .judges import compare_judges
    from .scores import compare_scores, read_scores

    scored = [name.lower().removesuffix(".gz").endswith((".jsonl", ".csv")) for name in (a, b)]
    if any(scored) and (rows is not None or not all(scored)):
        raise OptionError("give two saved judges (with --rows, to score rows by both), or two files that they scored")
    found, judged = None, None
    with quiet():
        if all(scored):
            judged = compare_scores(*(read_scores(Path(x), column_roles(columns or [])) for x in (a, b)), seed=seed)
        else:
            found = compare_judges(artifact.read(a), artifact.read(b))
        if rows is not None:
            where = connection(api_base, timeout, concurrency, rpm, no_cache)
            judged = _on_rows((a, b), rows, columns or [], limit, lm, where, seed)
    if as_json:
        told = {} if found is None else found.to_dict()
        print_json({"a_file": a, "b_file": b} | told | {"rows": judged and judged.to_dict()})
    else:
        if found is not None:
            _tell_judges(found, a, b)
        if judged is not None:
            _tell_scores(judged, a, b)
    same = (found is None or found.same) and (judged is None or judged.same)
    raise typer.Exit(0 if same else 1)


def _on_rows(
    files: tuple[str, str], rows: Path, columns: Sequence[str], limit: int | None, lm: str | None, where: Connection,
    seed: int,
) -> ScoreDiff:  # fmt: skip
    from ..evaluating.sources import read_file
    from ..programs.artifact import fingerprint
    from ..running.console import Watch
    from ..running.opening import column_roles, open_judge
    from .scores import compare_scores, judge_rows

    read = read_file(str(rows), column_roles(columns), limit).rows
    if not read:
        raise OptionError(f"{rows}: no row in it")
    opened = [open_judge(Path(file), lm, where) for file in files]
    with Watch("scoring", 2 * len(read)) as watch:
        named = zip(files, opened, strict=True)
        scores = [judge_rows(Path(file).name, judge, fingerprint(judge), read, watch) for file, judge in named]
    return compare_scores(*scores, seed=seed)


def _tell_judges(found: JudgeDiff, a: str, b: str) -> None:
    from ..running.console import out

    table = Table(title="The judges", title_justify="left")
    for column in ("", escape(a), escape(b), ""):
        table.add_column(column, overflow="fold")
    table.add_row("fingerprint", found.a.fingerprint, found.b.fingerprint, "" if found.same else "differs")
    for name, mark in found.a.parts().items():
        other = found.b.parts()[name]
        table.add_row(name, escape(mark), escape(other), "" if mark == other else "differs")
    out.print(table)
    answer = "yes" if found.comparable.scores else "only" if found.comparable.order else "no"
    out.print(f"May their scores be compared? {answer}: {found.comparable.why}.", markup=False, soft_wrap=True)
    if found.changes:
        out.print(_changes(found.changes, a, b))


def _changes(changes: Sequence[Change], a: str, b: str) -> Table:
    from .judges import shown

    table = Table(title="What changed", title_justify="left")
    table.add_column("part")
    table.add_column("what", overflow="fold")
    table.add_column(escape(a), overflow="fold", ratio=1)
    table.add_column(escape(b), overflow="fold", ratio=1)
    for part in dict.fromkeys(change.part for change in changes):
        mine = [change for change in changes if change.part == part]
        for place, one in enumerate(mine[:MOST_SHOWN]):
            before, after = escape(shown(one.before)), escape(shown(one.after))
            table.add_row("" if place else escape(part), escape(one.name), before, after)
        if len(mine) > MOST_SHOWN:
            table.add_row("", f"and {len(mine) - MOST_SHOWN} more (--json)", "", "")
    return table


def _tell_scores(found: ScoreDiff, a: str, b: str) -> None:
    from ..running.console import number, out
    from ..tables import p_value

    failed = found.failed
    out.print(
        f"{found.rows} rows of both; {found.n} scored by both ({found.documents} documents), {found.equal} with the "
        f"same score; without a score: {failed['a']} only by {a}, {failed['b']} only by {b}, {failed['both']} by both.",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    table = Table(title=f"{b} against {a} (95 % intervals over documents)", title_justify="left")
    for column in ("", "value", "interval", ""):
        table.add_column(column)
    for name, value in (("Spearman", found.spearman), ("Kendall tau-b", found.kendall)):
        table.add_row(name, number(value.value), _interval(value), escape(value.reason or ""))
    if found.difference is not None:
        mean = found.difference
        told = "" if mean.p != mean.p else f"p = {p_value(mean.p)}".replace("= <", "< ")
        between = f"{number(mean.low)} … {number(mean.high)}"
        table.add_row("mean difference", f"{mean.value:+.3g}", between, told)
    share = f"{found.reversed / found.pairs:.1%} of {found.pairs}" if found.pairs else ""
    table.add_row("pairs in the opposite order", str(found.reversed), "", share)
    if found.flips is not None:
        table.add_row("rows in another category", str(sum(found.flips.values())), "", f"of {found.n}")
        for (one, other), count in found.flips.items():
            table.add_row(escape(f"  {one} → {other}"), str(count), "", "")
    out.print(table)
    if found.moved:
        moved = Table(title="The rows that moved most", title_justify="left")
        for column in ("row", a, b, "output"):
            moved.add_column(escape(column), overflow="fold")
        for row in found.moved:
            before, after = (
                f"{number(score)} {category}".strip()
                for score, category in ((row.a, row.category_a), (row.b, row.category_b))
            )
            words = " ".join(row.row.output.split())
            moved.add_row(escape(row.row.id), escape(before), escape(after), escape(words[:80]))
        out.print(moved)
    for note in found.notes:
        out.print(f"note: {note}", markup=False, style="yellow", soft_wrap=True)


def _interval(found: Interval) -> str:
    from ..running.console import number

    return f"{number(found.low)} … {number(found.high)}"
