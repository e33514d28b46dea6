"""A study's tables (terminal, markdown, LaTeX) and its figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from ...errors import OptionError
from ...evaluating.pivot import plain_number
from ...evaluating.tables import escape, p_value, tex
from ...programs.atomic import write_whole
from ...running.console import duration
from ...running.console import wide as table_console
from ...running.plain import clean
from .analysis import Analysis, Gap, Line
from .config import Size

TITLES = {
    "optimizers": "Optimizers at the same budget",
    "ablation": "Ablation",
    "labels": "Agreement against the number of labels",
    "models": "Models",
}
WHAT = {"optimizers": "optimizer", "ablation": "variant", "labels": "arm", "models": "model"}
SHOWN_NOTES = 6


def limits(low: float, high: float) -> str:
    return "" if math.isnan(low) else f"[{plain_number(low, 2)}, {plain_number(high, 2)}]"


def thousands(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:,.0f}"


def size_text(size: Size, lines: Sequence[Line]) -> str:
    """`40`, or `all (36)`: the number that all came to."""
    if size != "all":
        return str(size)
    counts = [line.mean("labels") for line in lines if line.records]
    return f"all ({counts[0]:.0f})" if counts else "all"


def heading(found: Analysis) -> str:
    """What was compared, in one line."""
    c = found.config
    heldout = [line.mean("heldout") for line in found.lines if line.records]
    rows = f"{min(heldout):.0f} held-out rows" if heldout else "no results yet"
    models = c.lm[0] if len(c.lm) == 1 else f"{len(c.lm)} models"
    seeds = f"seed {c.seeds[0]}" if len(c.seeds) == 1 else f"{len(c.seeds)} seeds"
    return f"{TITLES[c.study]}: {c.aspect} of {Path(c.labels).name}, {models}, {rows}, {seeds}"


# Terminal ------------------------------------------------------------------------------------------------------------


def show(found: Analysis) -> None:
    out = table_console()
    wide, several = out.width >= 130, len(found.sizes()) > 1
    # On a narrow terminal a gap's interval and p stand below each other, and tables.md has the rest.
    gaps = ("baseline", "best") if out.width >= 96 else ("baseline",)
    table = Table(title=escape(heading(found)), box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column(WHAT[found.config.study], overflow="fold", min_width=14)
    names = ["labels"] if several else []
    names.append("Q")
    for gap in gaps:
        names += [f"− {escape(found.config.baseline) if gap == 'baseline' else 'best'}", *(["p"] if wide else [])]
    for name in (*names, "failed", "calls", *(["tokens"] if wide else []), "time"):
        table.add_column(name, justify="right", overflow="fold")
    for number, size in enumerate(found.sizes()):
        if number:
            table.add_section()
        for line in found.of(size):
            seeds = "" if line.whole else f"\n({len(line.records)} of {line.wanted} seeds)"
            cells = [escape(line.name) + seeds, *([size_text(size, found.of(size))] if several else [])]
            q = _two(plain_number(line.q, 2), limits(line.low, line.high), wide)
            cells.append(f"[bold]{q}[/bold]" if line.leads else q)
            for name in gaps:
                gap_of: Gap | None = getattr(line, name)
                if gap_of is None:
                    cells += ["–", ""] if wide else ["–"]
                    continue
                d = gap_of.difference
                shown = _two(f"{d.value:+.2f}", limits(d.low, d.high), wide)
                cells += [shown, _p(gap_of)] if wide else [f"{shown}\np {_p(gap_of)}"]
            seconds = line.mean("seconds")
            cells += [str(line.failed) if line.records else "–", thousands(line.mean("calls"))]
            cells += [thousands(line.mean("prompt_tokens", "completion_tokens"))] if wide else []
            cells.append("–" if math.isnan(seconds) else duration(seconds))
            table.add_row(*cells)
    out.print(table)
    for note in found.notes[: SHOWN_NOTES + 1]:
        out.print(f"note: {clean(note)}", style="dim", markup=False)
    if len(found.notes) > SHOWN_NOTES + 1:
        out.print(f"… and {len(found.notes) - SHOWN_NOTES - 1} more; they are in tables.md", style="dim")
    for cell, reason in found.failures[:SHOWN_NOTES]:
        out.print(f"failed: {clean(str(cell))}: {clean(reason)}", style="red", markup=False)
    if len(found.failures) > SHOWN_NOTES:
        out.print(f"… and {len(found.failures) - SHOWN_NOTES} more; they are in tables.md", style="red")


def _two(value: str, interval: str, wide: bool) -> str:
    return escape(value) + ((" " if wide else "\n") + escape(interval) if interval else "")


def _gap_text(gap: Gap | None) -> str:
    if gap is None:
        return "–"
    d = gap.difference
    return f"{d.value:+.2f} {limits(d.low, d.high)}".strip()


def _p(gap: Gap) -> str:
    return "–" if math.isnan(gap.p_holm) else p_value(gap.p_holm)


# Files ---------------------------------------------------------------------------------------------------------------

COEFFICIENTS = ("pearson", "spearman", "kendall")
Cells = list[str]


def _rows(
    found: Analysis, size: Size, bold: Callable[[str], str], text: Callable[[str], str], dash: str
) -> list[Cells]:
    lines = found.of(size)
    whole = [line for line in lines if line.whole] or [line for line in lines if line.records]
    top = {name: max((line.mean(name) for line in whole), default=math.nan) for name in ("q", *COEFFICIENTS)}
    made = []
    for line in lines:
        name = text(line.name) + ("" if line.whole else f" ({len(line.records)} of {line.wanted} seeds)")
        cells = [name]
        for key in ("q", *COEFFICIENTS):
            value = line.mean(key)
            shown = dash if math.isnan(value) else f"{value:.3f}"
            cells.append(bold(shown) if line in whole and value == top[key] else shown)
        cells[1] += f" {limits(line.low, line.high)}" if line.records else ""
        for gap in (line.baseline, line.best):
            cells += [dash, ""] if gap is None else [_gap_text(gap), _p(gap)]
        cells += [
            str(line.failed),
            *(thousands(v) for v in (line.mean("calls"), line.mean("prompt_tokens", "completion_tokens"))),
        ]
        cells.append(dash if math.isnan(line.mean("seconds")) else f"{line.mean('seconds'):.1f}")
        made.append([dash if cell == "–" else cell for cell in cells])
    return made


def _columns(found: Analysis, text: Callable[[str], str]) -> Cells:
    less = f"− {text(found.config.baseline)}"
    return [
        WHAT[found.config.study], "Q", "r", "ρ", "τ", less, "p", "− best", "p", "failed", "calls", "tokens", "seconds",
    ]  # fmt: skip


def markdown(found: Analysis) -> str:
    """Tables, values by seed, notes and failures."""

    def table(head: Cells, rows: Sequence[Cells]) -> list[str]:
        rule = [":--", *["--:"] * (len(head) - 1)]
        return ["| " + " | ".join(row) + " |" for row in (head, rule, *rows)] + [""]

    parts = [f"# {_md(heading(found))}", ""]
    for size in found.sizes():
        if len(found.sizes()) > 1:
            parts += [f"## {size_text(size, found.of(size))} labels", ""]
        parts += table(_columns(found, _md), _rows(found, size, lambda cell: f"**{cell}**", _md, "–"))
    if len(found.sizes()) > 1:
        parts += ["## Q by the number of labels", ""]
        head = [WHAT[found.config.study], *(size_text(size, found.of(size)) for size in found.sizes())]
        parts += table(head, [[_md(name), *(_short(line) for line in _row(found, name))] for name in found.names()])
    if any(len(line.records) > 1 for line in found.lines):
        parts += ["## Spread: mean ± standard deviation over seeds", ""]
        parts += table(
            [WHAT[found.config.study], "labels", "seeds", "Q", "r", "ρ", "τ"],
            [
                [
                    _md(line.name), size_text(line.train, found.of(line.train)), str(len(line.records)),
                    *(f"{plain_number(line.mean(k))} ± {plain_number(line.spread(k))}" for k in ("q", *COEFFICIENTS)),
                ]
                for line in found.lines
                if len(line.records) > 1
            ],
        )  # fmt: skip
    parts += ["## By seed", ""]
    by_seed = [
        [
            _md(line.name), size_text(line.train, found.of(line.train)), str(seed), plain_number(record["q"]),
            limits(*(math.nan if record[k] is None else record[k] for k in ("low", "high"))), _md(record["selected"]),
            str(record["demos"]), _md(_form(record)), str(record["calls"]),
        ]
        for line in found.lines
        for seed, record in line.records.items()
    ]  # fmt: skip
    parts += table(
        [WHAT[found.config.study], "labels", "seed", "Q", "95 %", "chosen", "demonstrations", "form", "calls"], by_seed
    )
    parts += ["## Notes", "", *(f"- {_md(note)}" for note in found.notes), ""]
    if found.failures:
        parts += ["## Failed", "", *(f"- {_md(str(cell))}: {_md(reason)}" for cell, reason in found.failures), ""]
    return "\n".join(parts)


def _row(found: Analysis, name: str) -> list[Line]:
    return [line for line in found.lines if line.name == name]


def _short(line: Line) -> str:
    return f"{plain_number(line.q, 2)} {limits(line.low, line.high)}".strip() if line.records else "–"


def _form(record: dict[str, Any]) -> str:
    form = record.get("form") or {}
    return ", ".join(f"{name}={value}" for name, value in form.items() if name in ("explain", "reading"))


def _md(words: str) -> str:
    """A text of unknown origin in a cell of markdown."""
    words = " ".join(clean(words).split()).replace("\\", "\\\\")
    for character in "|*_`[]<>":
        words = words.replace(character, f"\\{character}")
    return words


def latex(found: Analysis) -> str:
    """One booktabs table, sections by the number of labels."""
    head = _columns(found, tex)
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
        r"\toprule",
        " & ".join(_signs(cell) for cell in head) + r" \\",
    ]
    for size in found.sizes():
        lines.append(r"\midrule")
        if len(found.sizes()) > 1:
            lines.append(rf"\multicolumn{{{len(head)}}}{{l}}{{{size_text(size, found.of(size))} labels}} \\")
        for row in _rows(found, size, lambda cell: rf"\textbf{{{cell}}}", lambda name: tex(clean(name)), "--"):
            lines.append(" & ".join(_signs(cell) for cell in row) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _signs(cell: str) -> str:
    for sign, meant in (("−", "$-$"), ("ρ", r"$\rho$"), ("τ", r"$\tau_b$"), ("<0.", "$<$0.")):
        cell = cell.replace(sign, meant)
    return cell


def write(found: Analysis, folder: Path) -> list[Path]:
    """study.html, tables.md, tables.tex, figure.png and figure.svg. Raises OptionError where they cannot be written."""
    from ...reports.study import render

    made = [folder / "study.html", folder / "tables.md", folder / "tables.tex"]
    texts = (render(found, heading(found), WHAT[found.config.study]), markdown(found), latex(found))
    try:
        for path, text in zip(made, texts, strict=True):
            write_whole(path, text)
        if any(line.records for line in found.lines):
            made += draw(found, folder)
    except OSError as error:
        raise OptionError(f"{folder} cannot be written: {error.strerror or error}") from None
    return made


# The figure ----------------------------------------------------------------------------------------------------------


def draw(found: Analysis, folder: Path) -> list[Path]:
    """A curve over the number of labels with its bands; Q against calls for optimizers; else Q of each line."""
    from ...reports.page import plot_style, write_figure

    with plot_style():
        figure = _figure(found)
        paths = [folder / "figure.png", folder / "figure.svg"]
        for path in paths:
            write_figure(path, figure)
    return paths


def _figure(found: Analysis) -> Any:
    from matplotlib.figure import Figure

    several = len(found.sizes()) > 1
    count = len(found.names())
    figure = Figure(figsize=(6.4, 4.0 if several else max(2.2, 0.34 * count + 1.4)), layout="constrained")
    axes: Any = figure.subplots()
    if several:
        _curve(axes, found)
    elif found.config.study == "optimizers":
        _against_calls(axes, found)
    else:
        _dots(axes, found)
    axes.set_title(literal(heading(found)), fontsize=8, wrap=True)
    return figure


def _curve(axes: Any, found: Analysis) -> None:
    ticks: set[int] = set()
    for name in found.names():
        lines = [line for line in _row(found, name) if line.records]
        lines.sort(key=lambda line: line.mean("labels"))
        places = [line.mean("labels") for line in lines]
        ticks |= {round(place) for place in places}
        (drawn,) = axes.plot(places, [line.q for line in lines], "o-", label=literal(name))
        axes.fill_between(
            places, [line.low for line in lines], [line.high for line in lines], color=drawn.get_color(), alpha=0.13,
            linewidth=0,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(sorted(ticks), [str(t) for t in sorted(ticks)])
    axes.minorticks_off()
    axes.set_xlabel("labels to learn from")
    axes.set_ylabel("Q on held-out rows")
    axes.legend(fontsize=8)


def _against_calls(axes: Any, found: Analysis) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    for line in found.lines:
        if line.records:
            axes.errorbar(
                [max(1.0, line.mean("calls"))], [line.q], yerr=_bars([line]), fmt="o", capsize=3,
                label=literal(line.name),
            )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("calls of fitting")
    axes.set_ylabel("Q on held-out rows")
    axes.figure.set_size_inches(6.4, 4.0)
    axes.legend(fontsize=8)


def _dots(axes: Any, found: Analysis) -> None:
    lines = [line for line in found.lines if line.records][::-1]
    axes.errorbar([line.q for line in lines], range(len(lines)), xerr=_bars(lines), fmt="o", capsize=3)
    axes.set_yticks(range(len(lines)), [literal(line.name) for line in lines], fontsize=8)
    axes.set_xlabel("Q on held-out rows")
    base = next((line.q for line in lines if line.arm == found.config.baseline), math.nan)
    if not math.isnan(base):
        axes.axvline(base, color="0.7", linewidth=0.8, zorder=0)


def _bars(lines: Sequence[Line]) -> list[list[float]]:
    """Lengths of error bars below and above; none where there is no interval."""
    pairs = [(line.q - line.low, line.high - line.q) for line in lines]
    return [[0.0 if math.isnan(p[side]) else max(0.0, p[side]) for p in pairs] for side in (0, 1)]


def literal(text: str) -> str:
    """A name of unknown origin, not read as mathematics by matplotlib."""
    return clean(text).replace("$", r"\$")
