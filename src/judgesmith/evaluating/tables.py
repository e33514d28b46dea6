"""The agreement in a terminal, as CSV, LaTeX and markdown."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.markup import escape as _escape
from rich.table import Table
from rich.text import Text

from ..agreement.meta.evaluation import MetaEvaluation, rows_of, text
from ..datasets.spreadsheets import guarded
from ..running.console import wide
from ..running.plain import clean, one_line
from .pivot import ALPHA, BEHIND, BEHIND_MEANS, TITLES, Entry, Pivot, count, headline, pivots, plain_number


def escape(words: str) -> str:
    """A text of unknown origin for a cell of a rich table, on one line."""
    return _escape(one_line(words))


def table_rows(result: MetaEvaluation) -> tuple[list[str], list[dict[str, Any]]]:
    """The coefficients, and one entry per judge, aspect and level: {judge, aspect, level, n, failed, cells}."""
    names = list(dict.fromkeys(result.agreement["coefficient"]))
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows_of(result.agreement):
        key = (row["judge"], row["aspect"], row["level"])
        entry = rows.setdefault(
            key, dict(zip(("judge", "aspect", "level"), key, strict=True)) | {"cells": {}, "failed": row["failed"]}
        )
        entry["cells"][row["coefficient"]] = row
        entry.setdefault("n", row["n"])
        entry.setdefault("skipped", row["skipped"])
    return names, list(rows.values())


def p_value(value: float) -> str:
    return "<0.0001" if value < 0.0001 else plain_number(value, 4)


def cell_text(cell: Mapping[str, Any] | None, line: str = " ") -> str:
    """`0.467 [0.412, 0.518]`, without the brackets where there is no interval. line: what stands between."""
    if cell is None:
        return "–"
    value = plain_number(cell["value"])
    if math.isnan(cell["low"]):
        return value
    return f"{value}{line}[{plain_number(cell['low'])}, {plain_number(cell['high'])}]"


def agreement_csv(result: MetaEvaluation, levels: Mapping[str, str]) -> str:
    """The agreement frame with the levels' names; texts that a spreadsheet would run as formulas are quoted."""
    table = result.agreement.copy()
    table["level"] = table["level"].map(lambda name: levels[name])
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.itertuples(index=False):
        writer.writerow([_cell_of_csv(value) for value in row])
    return buffer.getvalue()


def _cell_of_csv(value: Any) -> Any:
    if isinstance(value, str):
        return guarded(value)
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value


_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "\n": " ", "\r": " ",
}  # fmt: skip


def tex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in clean(text))


_TEX_TITLES = {
    "pearson": "$r$", "spearman": r"$\rho$", "kendall": r"$\tau_b$", "kendall_c": r"$\tau_c$", "q": "$Q$",
    "accuracy": r"acc$_{eq}$", "accuracy_cross": r"acc$_{eq}$ cross-fitted", "kappa": r"$\kappa_w$", "auc": "AUC",
    "balanced-accuracy": "balanced acc.", "pairwise": "pairwise acc.",
}  # fmt: skip


def agreement_latex(result: MetaEvaluation, levels: Mapping[str, str]) -> str:
    r"""A booktabs table: judges against aspects, a panel for each level and coefficient, intervals small below the
    values; of one aspect, judges against coefficients. The best of a column is bold, a dagger is explained below."""
    made = pivots(result)
    wide_columns = max((pivot.columns for pivot in made), key=len, default=())
    by_aspect = any(pivot.coefficient for pivot in made)
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{l{'r' * (not by_aspect)}{'c' * len(wide_columns)}}}",
        r"\toprule",
    ]
    if by_aspect:
        for i, pivot in enumerate(made):
            lines += [r"\midrule"] * bool(i)
            title = f"{_TEX_TITLES[pivot.coefficient]}, {tex(levels[pivot.level])}"
            lines += [" & ".join([title, *map(tex, pivot.columns)]) + r" \\", r"\midrule"]
            for line in pivot.lines:
                values, limits = (map(part, line.entries) for part in (_tex_value, _tex_limits))
                lines.append(" & ".join([tex(line.name), *values]) + r" \\[-2pt]")
                lines.append(" & ".join(["", *limits]) + r" \\")
    else:
        symbols = {title: _TEX_TITLES[name] for name, title in TITLES.items()}
        lines += [" & ".join(["judge", "$n$", *(symbols[name] for name in wide_columns)]) + r" \\", r"\midrule"]
        for pivot in made:
            for line in pivot.lines:
                cells = [f"{_tex_value(entry)} {_tex_limits(entry)}".rstrip() for entry in line.entries]
                name = f"{line.name} ({levels[pivot.level]})" if len(made) > 1 else line.name
                lines.append(" & ".join([tex(name), tex(line.rests), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    if any(pivot.marked for pivot in made):
        lines.append(rf"% {BEHIND_MEANS.replace(BEHIND, chr(92) + 'dagger:')}")
    return "\n".join([*lines, ""])


def _tex_value(entry: Entry | None) -> str:
    if entry is None or math.isnan(entry.value):
        return "--"
    value = rf"\mathbf{{{entry.value:.3f}}}" if entry.best else f"{entry.value:.3f}"
    return f"${value}{'^{' + chr(92) + 'dagger}' if entry.behind else ''}$"


def _tex_limits(entry: Entry | None) -> str:
    if entry is None or math.isnan(entry.low):
        return ""
    return rf"{{\scriptsize$[{entry.low:.3f}, {entry.high:.3f}]$}}"


def md(text: str) -> str:
    """A text of unknown origin in markdown: no markup, no link, no mention, one line."""
    return re.sub(r"([\\`*_{}\[\]()<>#+!|~&@:-])", lambda found: f"&#{ord(found[1])};", one_line(text))


def agreement_markdown(
    result: MetaEvaluation, levels: Mapping[str, str], gate: str | None = None, reasons: Sequence[str] = ()
) -> str:
    """A comment for a pull request: whether the gate passed, if there was one, why not, and the table."""
    names, rows = table_rows(result)
    how = result.settings
    lines = ["### Agreement with the human ratings", ""]
    if gate is not None:
        lines += [f"**{'failed' if reasons else 'passed'}** {md(gate)}", "", *(f"- {md(reason)}" for reason in reasons)]
        lines += [""] if reasons else []
    titles = ("judge", "aspect", "level", "rests on", "failed", *(TITLES[name] for name in names))
    lines += [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for row in rows:
        known = (md(row["judge"]), md(row["aspect"]), md(levels[row["level"]]), count(row["n"], row["level"]))
        cells = (cell_text(row["cells"].get(name)) for name in names)
        lines.append(f"| {' | '.join((*known, str(row['failed']), *cells))} |")
    about = f"{how['confidence']:.0%} intervals over {how['over']}, seed {how['seed']}" if how["rounds"] else ""
    told = headline(result, levels) + (f" {about}." if about else "")
    return "\n".join([*lines, "", md(told), ""])


def show(result: MetaEvaluation, origin: str, rows: int, notes: Sequence[str], levels: Mapping[str, str]) -> None:
    """On standard output: the result in a sentence, the pivots, tests of the best against the others, the rest."""
    out, made = wide(), pivots(result)
    how = result.settings
    about = (
        f"{how['confidence']:.0%} intervals over {how['over']}, seed {how['seed']}" if how["rounds"] else "no intervals"
    )
    out.print(one_line(headline(result, levels)), markup=False, style="bold")
    out.print(f"{rows} rows of {one_line(origin)}; {about}", markup=False, style="dim")
    first = made[0].coefficient
    for pivot in made:
        # Of several aspects one coefficient is enough to read; the files and the page have the others.
        if pivot.coefficient == first:
            _show_pivot(pivot, levels)
    if any(pivot.marked for pivot in made):
        out.print(f"Bold: best. {BEHIND_MEANS}.", markup=False, style="dim")
    others = [TITLES[name] for name in dict.fromkeys(pivot.coefficient for pivot in made) if name != first]
    if others:
        out.print(f"{', '.join(others)}: in --json, --csv, --latex and the page (-o report.html).", style="dim")
    _show_reasons(result, levels)
    _show_comparisons(result, levels)
    _show_others(result)
    for note in notes:
        out.print(f"note: {clean(note)}", style="yellow", markup=False)


_NAME = 24  # characters of a judge's or an aspect's name on a line


def _show_pivot(pivot: Pivot, levels: Mapping[str, str]) -> None:
    """In as many blocks of columns as the terminal needs; no word and no number is broken but over-long names."""
    out = wide()
    failed = any(line.failed for line in pivot.lines)
    name = min(_NAME, max(len(one_line(line.name)) for line in pivot.lines))
    rests = max(len(line.rests) for line in pivot.lines)
    widths = [
        max(
            min(_NAME, len(one_line(title))),
            *(len(_lines_of(line.entries[k])[i]) for line in pivot.lines for i in (0, 1)),
        )
        for k, title in enumerate(pivot.columns)
    ]
    start, title = 0, pivot.title(levels)
    while start < len(widths):
        whole = start == 0
        room = out.width - 4 - name - (rests + 2 + 8 * failed if whole else 0)
        stop = start + 1
        while stop < len(widths) and sum(widths[start : stop + 1]) + 2 * (stop + 1 - start) <= room:
            stop += 1
        table = Table(title=title if whole else f"{title}, continued", box=box.SIMPLE_HEAD, title_justify="left",
                      padding=(0, 1, 0, 1), collapse_padding=True, pad_edge=False)  # fmt: skip
        table.add_column("judge", overflow="fold", min_width=name, max_width=name)
        if whole:
            table.add_column("rests on", justify="right", no_wrap=True)
            if failed:
                table.add_column("failed", justify="right", no_wrap=True)
        for k in range(start, stop):
            table.add_column(
                escape(pivot.columns[k]), justify="right", overflow="fold", min_width=widths[k], max_width=widths[k]
            )
        for line in pivot.lines:
            if line.human:
                table.add_section()
            beside = [line.rests, *([str(line.failed) if not line.human else ""] if failed else [])] if whole else []
            cells = [_cell_of(line.entries[k]) for k in range(start, stop)]
            table.add_row(escape(line.name), *beside, *cells)
        out.print(table)
        start = stop


def _lines_of(entry: Entry | None) -> tuple[str, str]:
    return ("–", "") if entry is None else (entry.shown, entry.interval(2))


def _cell_of(entry: Entry | None) -> Text:
    value, limits = _lines_of(entry)
    made = Text(value, style="bold" if entry is not None and entry.best else "")
    return made.append(f"\n{limits}", style="dim not bold") if limits else made


def _show_reasons(result: MetaEvaluation, levels: Mapping[str, str]) -> None:
    out = wide()
    said: dict[str, str] = {}
    for row in rows_of(result.agreement):
        if text(row["reason"]):
            said.setdefault(f"{row['judge']}, {row['aspect']}, {levels[row['level']]}: {row['reason']}", "")
    for line in list(said)[:8]:
        out.print(f"note: {clean(line)}", style="yellow", markup=False)
    if len(said) > 8:
        out.print(f"… and {len(said) - 8} more; they are in --json", style="yellow")


def _show_comparisons(result: MetaEvaluation, levels: Mapping[str, str]) -> None:
    """The first judge of each pair against the others at the first level; the other pairs are in the files."""
    if not len(result.comparisons):
        return
    rows = rows_of(result.comparisons)
    level, by = rows[0]["level"], TITLES[str(rows[0]["coefficient"])]
    at = [row for row in rows if row["level"] == level]
    lead = _leader(at)
    shown = [row for row in at if lead in (row["a"], row["b"])]
    table = Table(
        title=f"{escape(lead)} less the others: {by}, {levels[level]}; p < {ALPHA:g} after Holm is beyond chance",
        box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 1), collapse_padding=True, pad_edge=False,
    )  # fmt: skip
    table.add_column("less judge", overflow="fold", max_width=_NAME)
    table.add_column("aspect", overflow="fold", max_width=_NAME)
    for title in ("difference", "p perm.", "p boot.", "p Williams"):
        table.add_column(title, justify="right", no_wrap=True)
    previous = ""
    for row in sorted(shown, key=lambda row: _other(row, lead)):
        sign, other = (1 if row["a"] == lead else -1), _other(row, lead)
        low, high = sorted((sign * row["low"], sign * row["high"]))
        limits = Entry(0.0, low, high).interval(2)
        table.add_row(
            escape(other) if other != previous else "", escape(row["aspect"]),
            escape(f"{plain_number(sign * row['difference'], 2)} {limits}".rstrip()),
            *(p_value(row[f"p_{test}_holm"]) for test in ("permutation", "bootstrap", "williams")),
        )  # fmt: skip
        previous = other
    out = wide()
    out.print(table)
    if len(rows) > len(shown):
        out.print(f"{len(rows) - len(shown)} more comparisons: in --json and the page (-o report.html).", style="dim")


def _leader(rows: Sequence[Mapping[str, Any]]) -> str:
    """The judge that is ahead in most pairs."""
    ahead: dict[str, float] = {}
    for row in rows:
        if not math.isnan(row["difference"]):
            ahead[row["a"]] = ahead.get(row["a"], 0.0) + row["difference"]
            ahead[row["b"]] = ahead.get(row["b"], 0.0) - row["difference"]
    return max(ahead, key=lambda name: ahead[name], default=str(rows[0]["a"]))


def _other(row: Mapping[str, Any], lead: str) -> str:
    return str(row["b"] if row["a"] == lead else row["a"])


def _show_others(result: MetaEvaluation) -> None:
    out = wide()
    for row in rows_of(result.scale):
        if not text(row["reason"]):
            stage = f" ({row['stage']})" if row["stage"] else ""
            out.print(
                f"On the scale, {_who(row)}{stage}: mean error {_estimate(row, 'mae')}, bias {_estimate(row, 'bias')}",
                markup=False,
            )
    for row in rows_of(result.decisions):
        if not text(row["reason"]):
            out.print(
                f"Accepting from {row['threshold']:g}, {_who(row)}: precision "
                f"{_estimate(row, 'precision')}, recall {_estimate(row, 'recall')}, kappa {_estimate(row, 'kappa')}",
                markup=False,
            )
        else:
            out.print(f"No decisions for {_who(row)}: {row['reason']}", markup=False)
    for row in rows_of(result.length):
        if abs(row["bias"]) >= 0.2:
            out.print(
                f"Length, {_who(row)}: correlates {row['bias']:+.2f} with the number of words "
                f"beyond what human ratings explain; agreement given the length {row['agreement']:.2f}",
                markup=False,
            )
    for (judge, aspect), group in result.order.groupby(["judge", "aspect"], sort=False):
        for line in order_lines(rows_of(group)):
            out.print(f"Order, {_who({'judge': judge, 'aspect': aspect})}: {clean(line)}", markup=False)
    for (judge, aspect), group in result.widths.dropna(subset="width").groupby(["judge", "aspect"], sort=False):
        widths = ", ".join(f"{row['documents']} → {plain_number(row['width'], 2)}" for row in rows_of(group))
        by = TITLES[str(group["coefficient"].iloc[0])]
        out.print(
            f"Width of the interval of {by} with n documents, {_who({'judge': judge, 'aspect': aspect})}: {widths}",
            markup=False,
        )


def order_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The order effects of one judge and aspect in words."""
    lines = []
    places = [row for row in rows if row["measure"] == "difference" and row["position"]]
    if places:
        shown = ", ".join(f"{row['position']} {cell_text(row)}" for row in places)
        why = text(places[0]["reason"])
        test = f"no test: {why}" if why else f"p {p_value(places[0]['p'])}, shuffled within documents"
        lines.append(f"judge less people by position, in standardised ranks: {shown} ({test})")
    lines += [f"no effect of the order: {row['reason']}" for row in rows if not row["position"]]
    for row in rows:
        if row["measure"] == "preference":
            lines.append(
                f"the output at {row['position']} wins {cell_text(row)} of {row['n'] - row['ties']:.0f} decided pairs, "
                f"with people {plain_number(row['people'])} (sign test p {p_value(row['p'])}; of the pairs that judge "
                f"and people decide in opposite ways p {p_value(row['p_people'])})"
            )
    return lines


def _who(row: Mapping[str, Any]) -> str:
    return " ".join(clean(f"{row['judge']}, {row['aspect']}").split())


def _estimate(row: Mapping[str, Any], name: str) -> str:
    return cell_text({"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]})
