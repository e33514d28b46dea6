"""The agreement as tables: in a terminal, in the page, as markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from judgesmith.agreement.coefficients import title_of
from judgesmith.agreement.meta.evaluation import MetaEvaluation, rows_of, text
from judgesmith.evaluating.answer import Answer
from judgesmith.evaluating.decided import Decided
from judgesmith.evaluating.passrate import PassRate
from judgesmith.evaluating.pivot import (
    Pivot,
    alpha,
    behind_means,
    count,
    distinct,
    headline,
    pivots,
)
from judgesmith.evaluating.plan import Plan
from judgesmith.evaluating.reading import Reading
from judgesmith.evaluating.systems import Systems
from judgesmith.running.console import wide
from judgesmith.tables import Cell, Column, Table, clean, md, one_line

COMPARED = "Is one judge better"
MOST_COMPARED = 12  # rows of that table on a terminal


def pivot_table(pivot: Pivot) -> Table:
    """Return judges against aspects or coefficients; below them the human ceiling and the systems' mean labels."""
    failed = any(line.failed for line in pivot.lines)
    columns: list[str | Column] = ["judge", Column("n", "s")]
    if failed:
        columns.append(Column("failed", "d"))
    columns += [Column(title, ".3f", ".2f") for title in pivot.columns]
    table = Table(columns, pivot.title())
    for line in pivot.lines:
        cells: list[Any] = [line.name, line.rests]
        if failed:
            cells.append("" if line.beside else line.failed)
        cells += [cell or Cell(None) for cell in line.entries]
        table.add(*cells, kind="human" if line.beside else "")
    return table


def agreement_table(result: MetaEvaluation) -> Table:
    """Return every judge, aspect and level against every coefficient."""
    names = distinct(rows_of(result.agreement), "coefficient")
    columns: list[str | Column] = ["judge", "aspect", "level"]
    columns += [Column("n", "s"), Column("failed", "d")]
    columns += [Column(title_of(name), ".3f") for name in names]
    table = Table(columns)
    for _, group in result.agreement.groupby(["judge", "aspect", "level"], sort=False):
        rows = rows_of(group)
        first = rows[0]
        rests_on = count(first["n"], first["level"])
        if first["skipped"] and first["level"] == "sample":
            rests_on += f", {first['skipped']} skipped"
        cells = dict.fromkeys(names, Cell(None))
        for row in rows:
            cells[row["coefficient"]] = Cell(row["value"], row["low"], row["high"])
        table.add(
            first["judge"],
            first["aspect"],
            first["level"],
            rests_on,
            first["failed"],
            *cells.values(),
        )
    return table


def undefined(result: MetaEvaluation) -> list[str]:
    """Return the reasons why numbers or their intervals are undefined, once each."""
    reasons = (
        f"{row['judge']}, {row['aspect']}, {row['level']}, {title_of(row['coefficient'])}: {row['reason']}"
        for row in rows_of(result.agreement)
        if text(row["reason"])
    )
    return list(dict.fromkeys(reasons))


# What stands beside the agreement ------------------------------------------------------------------------------------


def tables_beside(result: MetaEvaluation) -> list[tuple[str, Table]]:
    """Return (introduction, table) of the results beside the agreement; tables without rows are left out."""
    tables: Iterable[tuple[str, Table]] = (
        (
            "The first judge less the second. Intervals and p-values are those of all pairs of a level together: p is "
            f"below {alpha(result):g} where the interval leaves 0 out.",
            _differences(rows_of(result.comparisons)),
        ),
        (
            "Q with the mean of the other raters, as a share of one rater's own: 0 guesses, 1 is one rater.",
            _ways(rows_of(result.way)),
        ),
        (
            "In points of the human ratings' scale: mean absolute error, bias (above 0: lenient), root mean squared "
            "error.",
            _errors(rows_of(result.scale)),
        ),
        (
            "Spearman correlations with the number of words. Bias: of the judge with length, given the human rating.",
            _length(result),
        ),
    )
    return [(about, table) for about, table in tables if len(table)]


def _differences(rows: Sequence[Mapping[str, Any]]) -> Table:
    numbers = (Column("difference", ".3f"), Column("p", "p"))
    by = title_of(rows[0]["coefficient"]) if rows else ""
    table = Table(
        ["judge", "less judge", "aspect", "level", *numbers], f"{COMPARED} by {by}?"
    )
    for row in rows:
        table.add(
            row["a"],
            row["b"],
            row["aspect"],
            row["level"],
            Cell(row["difference"], row["low"], row["high"]),
            row["p"],
        )
    return table


def _ways(rows: Sequence[Mapping[str, Any]]) -> Table:
    numbers = (Column("raters", "d"), Column("share", ".0%"))
    reasons = ["undefined"] if any(text(row["reason"]) for row in rows) else []
    title = "On the way to one human rater"
    table = Table(["judge", "aspect", *numbers, *reasons], title)
    for row in rows:
        share = Cell(row["value"], row["low"], row["high"])
        why = [text(row["reason"])] if reasons else []
        table.add(row["judge"], row["aspect"], row["raters"], share, *why)
    return table


def _errors(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return errors with their intervals, or the reason why there are none."""
    names = {"mae": "mean error", "bias": "bias", "rmse": "root mean square"}
    reasons = ["undefined"] if any(text(row["reason"]) for row in rows) else []
    columns = (Column(name, ".3f") for name in names.values())
    table = Table(
        ["judge", "aspect", Column("rows", "s"), *columns, *reasons],
        "On the scale itself",
    )
    for row in rows:
        reason = text(row["reason"])
        cells = [
            Cell(None if reason else row[n], row[f"{n}_low"], row[f"{n}_high"])
            for n in names
        ]
        table.add(
            row["judge"],
            row["aspect"],
            str(row["n"]),
            *cells,
            *([reason] if reasons else []),
        )
    return table


def _length(result: MetaEvaluation) -> Table:
    names = {
        "judge_length": "judge and length",
        "human_length": "people and length",
        "bias": "bias",
        "agreement": "agreement given length",
    }
    table = Table(
        ["judge", "aspect", *(Column(name, ".2f") for name in names.values())], "Length"
    )
    for row in rows_of(result.length):
        table.add(row["judge"], row["aspect"], *(row[name] for name in names))
    return table


# Files ---------------------------------------------------------------------------------------------------------------


def agreement_markdown(
    result: MetaEvaluation,
    answers: Sequence[Answer] = (),
    gate: str | None = None,
    reasons: Sequence[str] = (),
) -> str:
    """Return a comment for a pull request: what is found, whether the gate passed, why not, and the table."""
    lines = ["### Agreement with the human ratings", ""]
    if gate is not None:
        lines += [
            f"**{'failed' if reasons else 'passed'}** {md(gate)}",
            "",
            *(f"- {md(reason)}" for reason in reasons),
        ]
        lines += [""] if reasons else []
    for answer in answers:
        lines += [md(str(answer)), ""]
    about = f" {_intervals(result)}." if result.settings["rounds"] else ""
    return "\n".join(
        [*lines, agreement_table(result).markdown(), md(about.strip()), ""]
    )


def _intervals(result: MetaEvaluation) -> str:
    settings = result.settings
    if not settings["rounds"]:
        return "no intervals"
    other = " and systems" * settings["new_systems"]
    return f"{settings['confidence']:.0%} intervals over documents{other}, seed {settings['seed']}"


# Terminal ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Said:
    """What stands before the tables: what is found, pass rates of all rows, systems, and how the file was read."""

    answers: Sequence[Answer]
    reading: Reading
    rates: Sequence[PassRate] = ()
    systems: Sequence[Systems] = ()

    def show(self, out: Console) -> None:
        """Print it: sentences in bold, what was read dim."""
        for answer in self.answers:
            out.print(one_line(str(answer)), markup=False, style="bold")
            if answer.facts:
                out.print(one_line(" ".join(answer.facts)), markup=False)
        for rate in self.rates:
            if rate.labels < rate.rows:
                out.print(one_line(str(rate)), markup=False)
        for systems in self.systems:
            out.print(one_line(str(systems)), markup=False)
        for line in self.reading.lines():
            out.print(one_line(line), markup=False, style="dim")


def show_plan(answers: Sequence[Answer], plan: Plan) -> None:
    """Print what is found, and what more labels would buy."""
    out = wide()
    for answer in answers:
        out.print(one_line(str(answer)), markup=False, style="bold")
    plan.table().show(out)
    for sentence in plan.sentences():
        out.print(one_line(sentence), markup=False)


def show(
    result: MetaEvaluation,
    origin: str,
    rows: int,
    notes: Sequence[str],
    decided: Sequence[Decided] = (),
    said: Said | None = None,
) -> None:
    """Print the result: a sentence first, the figures by name, how the file was read, then the tables."""
    out = wide()
    if said is None:
        out.print(one_line(headline(result)), markup=False, style="bold")
    else:
        said.show(out)
    about = f"{rows} rows of {one_line(origin)}; {_intervals(result)}"
    out.print(about, markup=False, style="dim")
    for decisions in decided:
        for about, table in decisions.tables():
            if len(table):
                table.show(out)
                out.print(about, markup=False, style="dim")
    _show_pivots(pivots(result), result, out)
    reasons = undefined(result)
    for line in reasons[:8]:
        out.print(f"note: {clean(line)}", style="yellow", markup=False)
    if len(reasons) > 8:
        out.print(f"… and {len(reasons) - 8} more; they are in --json", style="yellow")
    for about, table in tables_beside(result):
        if table.title.startswith(COMPARED) and len(table) > MOST_COMPARED:
            out.print(
                f"{len(table)} comparisons of judges: in --json and the page (-o report.html).",
                style="dim",
            )
            continue
        table.show(out)
        out.print(about, markup=False, style="dim")
    for note in notes:
        out.print(f"note: {clean(note)}", style="yellow", markup=False)


def _show_pivots(tables: Sequence[Pivot], result: MetaEvaluation, out: Console) -> None:
    """Print the pivots of one coefficient; the files and the page have the others."""
    first = tables[0].coefficient
    others: dict[str, None] = {}
    for pivot in tables:
        if pivot.coefficient == first:
            pivot_table(pivot).show(out)
        else:
            others[title_of(pivot.coefficient)] = None
    if any(pivot.marked for pivot in tables):
        out.print(f"Bold: best. {behind_means(result)}.", markup=False, style="dim")
    if others:
        out.print(
            f"{', '.join(others)}: in --json and the page (-o report.html).",
            style="dim",
        )
