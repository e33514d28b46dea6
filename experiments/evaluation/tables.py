"""The agreement as a terminal table, CSV, LaTeX and markdown."""

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

from ...datasets.spreadsheets import guarded
from ...optimizers.agreement.meta.evaluation import MetaEvaluation, rows_of, text
from ..console import wide
from ..plain import clean, one_line


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


def plain_number(value: Any, digits: int = 3) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


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


TITLES = {
    "pearson": "Pearson r", "spearman": "Spearman ρ", "kendall": "Kendall τ-b", "kendall_c": "Kendall τ-c", "q": "Q",
    "accuracy": "acc_eq", "accuracy_cross": "acc_eq cross-fitted", "kappa": "kappa", "auc": "AUC",
    "balanced-accuracy": "balanced acc.", "pairwise": "pairwise acc.",
}  # fmt: skip
UNITS = {"pooled": "rows", "sample": "documents", "system": "systems"}


def count(n: int, level: str) -> str:
    """`98 documents`: what a value of this level rests on."""
    return f"{n} {UNITS[level]}" if n != 1 else f"1 {UNITS[level][:-1]}"


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


def agreement_latex(result: MetaEvaluation, levels: Mapping[str, str]) -> str:
    r"""A booktabs table; intervals stand small behind the values."""
    names, rows = table_rows(result)
    titles = {
        "pearson": "$r$", "spearman": r"$\rho$", "kendall": r"$\tau_b$", "kendall_c": r"$\tau_c$", "q": "$Q$",
        "accuracy": r"acc$_{eq}$", "accuracy_cross": r"acc$_{eq}$ cross-fitted", "kappa": r"$\kappa_w$", "auc": "AUC",
        "balanced-accuracy": "balanced acc.", "pairwise": "pairwise acc.",
    }  # fmt: skip
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{lllr{'l' * len(names)}}}",
        r"\toprule",
        " & ".join(["judge", "aspect", "level", "$n$", *(titles[n] for n in names)]) + r" \\",
        r"\midrule",
    ]
    for row in rows:
        cells = []
        for name in names:
            cell = row["cells"].get(name)
            if cell is None or math.isnan(cell["value"]):
                cells.append("--")
            elif math.isnan(cell["low"]):
                cells.append(f"${cell['value']:.3f}$")
            else:
                cells.append(rf"${cell['value']:.3f}$ {{\scriptsize$[{cell['low']:.3f}, {cell['high']:.3f}]$}}")
        lines.append(
            " & ".join([tex(row["judge"]), tex(row["aspect"]), tex(levels[row["level"]]), str(row["n"]), *cells])
            + r" \\"
        )
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def md(text: str) -> str:
    """A text of unknown origin in markdown: no markup, no link, no mention, one line."""
    return re.sub(r"([\\`*_{}\[\]()<>#+!|~&@:-])", lambda found: f"&#{ord(found[1])};", one_line(text))


def agreement_markdown(
    result: MetaEvaluation, levels: Mapping[str, str], gate: str | None = None, reasons: Sequence[str] = ()
) -> str:
    """A comment for a pull request: whether the gate passed, if there was one, why not, and the table."""
    names, rows = table_rows(result)
    how = result.settings
    lines = ["### Agreement with people", ""]
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
    return "\n".join([*lines, *(["", about] if about else []), ""])


def show(result: MetaEvaluation, origin: str, rows: int, notes: Sequence[str], levels: Mapping[str, str]) -> None:
    names, entries = table_rows(result)
    out = wide()
    narrow = out.width < 60 + 24 * len(names)
    how = result.settings
    about = (
        f"{how['confidence']:.0%} intervals over {how['over']}, seed {how['seed']}" if how["rounds"] else "no intervals"
    )
    table = Table(title=f"Agreement with people on {rows} rows of {escape(origin)} ({about})", box=box.SIMPLE_HEAD)
    for title in ("judge", "aspect", "level"):
        table.add_column(title, overflow="fold")
    table.add_column("rests on", justify="right")
    table.add_column("failed", justify="right")
    for name in names:
        table.add_column(TITLES[name], justify="right", no_wrap=True)
    previous: tuple[str, str] = ("", "")
    for entry in entries:
        judge, aspect = entry["judge"], entry["aspect"]
        if previous[0] not in ("", judge):
            table.add_section()
        rests = count(entry["n"], entry["level"])
        if entry["level"] == "sample" and entry["skipped"]:
            rests += f", {entry['skipped']} skipped"
        table.add_row(
            escape(judge) if judge != previous[0] else "", escape(aspect) if (judge, aspect) != previous else "",
            escape(levels[entry["level"]]), rests, str(entry["failed"]),
            *(escape(cell_text(entry["cells"].get(name), line="\n" if narrow else " ")) for name in names),
        )  # fmt: skip
        previous = (judge, aspect)
    _ceiling_rows(table, result, names, levels, "\n" if narrow else " ")
    out.print(table)
    _show_reasons(result, levels)
    _show_comparisons(result, levels)
    _show_others(result)
    for note in notes:
        out.print(f"note: {clean(note)}", style="yellow", markup=False)


def _ceiling_rows(
    table: Table, result: MetaEvaluation, names: Sequence[str], levels: Mapping[str, str], line: str
) -> None:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows_of(result.ceiling):
        found.setdefault((row["aspect"], row["level"]), {"row": row})[row["coefficient"]] = row
    if found:
        table.add_section()
    for (aspect, level), entry in found.items():
        table.add_row(
            "a person (with the others' mean)", escape(aspect), escape(levels[level]),
            f"{entry['row']['raters']} raters, α {plain_number(entry['row']['alpha'], 2)}", "",
            *(escape(cell_text(entry.get(name), line)) for name in names),
        )  # fmt: skip


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
    if not len(result.comparisons):
        return
    by = TITLES[str(result.comparisons["coefficient"].iloc[0])]
    title = f"Is one judge better? Differences of {by}; p corrected by Holm over the judges' pairs"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    for title in ("judge", "less judge", "aspect", "level"):
        table.add_column(title, overflow="fold")
    for title in ("difference", "p permutation", "p bootstrap", "p Williams (r)"):
        table.add_column(title, justify="right")
    for row in rows_of(result.comparisons):
        table.add_row(
            escape(row["a"]), escape(row["b"]), escape(row["aspect"]), escape(levels[row["level"]]),
            escape(cell_text(row | {"value": row["difference"]})),
            *(p_value(row[f"p_{test}_holm"]) for test in ("permutation", "bootstrap", "williams")),
        )  # fmt: skip
    wide().print(table)


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
                f"beyond what people's scores explain; agreement given the length {row['agreement']:.2f}",
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
