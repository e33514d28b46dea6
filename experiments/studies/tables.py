"""A study's tables: terminal, markdown, LaTeX and page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from judgesmith.experiments.studies.analysis import Analysis, Line
from judgesmith.experiments.studies.config import Size
from judgesmith.figures import SERIES
from judgesmith.running.console import wide as table_console
from judgesmith.tables import Cell, Column, Table, clean, interval, md, number

TITLES = {
    "optimizers": "Optimizers at the same budget",
    "ablation": "Ablation",
    "labels": "Agreement against the number of labels",
    "models": "Models",
}
WHAT = {
    "optimizers": "optimizer",
    "ablation": "variant",
    "labels": "arm",
    "models": "model",
}
SHOWN_NOTES = 6
#: Characters of a failure's reason in a table.
LONGEST = 100
COEFFICIENTS = {"q": "Q", "pearson": "r", "spearman": "ρ", "kendall": "τ"}


def size_text(size: Size, lines: Sequence[Line]) -> str:
    """Return `40`, or `all (36)`: the number that all came to."""
    if size != "all":
        return str(size)
    counts = [line.mean("labels") for line in lines if line.records]
    return f"all ({counts[0]:.0f})" if counts else "all"


def heading(analysis: Analysis) -> str:
    """Describe the comparison in one line."""
    c = analysis.config
    heldout = [line.mean("heldout") for line in analysis.lines if line.records]
    rows = f"{min(heldout):.0f} held-out rows" if heldout else "no results yet"
    models = c.lm[0] if len(c.lm) == 1 else f"{len(c.lm)} models"
    seeds = f"seed {c.seeds[0]}" if len(c.seeds) == 1 else f"{len(c.seeds)} seeds"
    return f"{TITLES[c.study]}: {c.aspect} of {Path(c.labels).name}, {models}, {rows}, {seeds}"


def colours(analysis: Analysis) -> dict[str, int]:
    """Return the number of a series for each name; names beyond share them."""
    return {name: k % len(SERIES) + 1 for k, name in enumerate(analysis.names())}


# Tables --------------------------------------------------------------------------------------------------------------


def results(analysis: Analysis) -> Table:
    """Return every line: agreement, lead over the baseline, distance from the best, cost. Sections by labels."""
    several = len(analysis.sizes()) > 1
    keys = colours(analysis)
    gaps = [
        Column(f"− {analysis.config.baseline}", "+.2f"),
        Column("p", "p"),
        Column("− best", "+.2f"),
        Column("p", "p"),
    ]
    cost = [
        Column("failed", "d"),
        *(Column(name, ",.0f") for name in ("calls", "tokens", "seconds")),
    ]
    coefficients = (Column(sign, ".3f", ".2f") for sign in COEFFICIENTS.values())
    table = Table(
        [
            WHAT[analysis.config.study],
            *([Column("labels", "s")] if several else []),
            *coefficients,
            *gaps,
            *cost,
        ]
    )
    for size in analysis.sizes():
        lines = analysis.of(size)
        whole = [line for line in lines if line.whole] or [
            line for line in lines if line.records
        ]
        top = {
            name: max((line.mean(name) for line in whole), default=math.nan)
            for name in COEFFICIENTS
        }
        if size != analysis.sizes()[0]:
            table.section()
        for line in lines:
            about = [f"{len(line.records)} of {line.wanted} seeds"]
            about += [shortened(reason) for reason in dict.fromkeys(line.failures)]
            seeds = "" if line.whole else f" ({'; '.join(about)})"
            cells = [
                Cell(
                    line.mean(name), best=line in whole and line.mean(name) == top[name]
                )
                for name in COEFFICIENTS
            ]
            cells[0] = replace(cells[0], low=line.low, high=line.high)
            for gap in (line.baseline, line.best):
                d = gap and gap.difference
                cells += (
                    [Cell(d.value, d.low, d.high), Cell(gap.p_holm)]
                    if gap and d
                    else [Cell(None), Cell("")]
                )
            table.add(
                Cell(line.name + seeds, colour=keys[line.name]),
                *([size_text(size, lines)] if several else []),
                *cells,
                line.failed if line.records else None,
                line.mean("calls"),
                line.mean("prompt_tokens", "completion_tokens"),
                line.mean("seconds"),
            )
    return table


def shortened(reason: str) -> str:
    """Return the beginning of a reason, for a cell of a table; the whole stands among what failed."""
    return reason if len(reason) <= LONGEST else f"{reason[:LONGEST].rstrip()}…"


def _by_size(analysis: Analysis) -> Table:
    sizes = analysis.sizes()
    table = Table(
        [
            WHAT[analysis.config.study],
            *(Column(size_text(size, analysis.of(size)), ".2f") for size in sizes),
        ]
    )
    for name in analysis.names():
        table.add(
            name,
            *(
                Cell(line.q, line.low, line.high)
                for line in analysis.lines
                if line.name == name
            ),
        )
    return table


def _spread(analysis: Analysis) -> Table:
    signs = (Column(sign, "s") for sign in COEFFICIENTS.values())
    table = Table(
        [
            WHAT[analysis.config.study],
            Column("labels", "s"),
            Column("seeds", "d"),
            *signs,
        ]
    )
    for line in analysis.lines:
        if len(line.records) > 1:
            spread = (
                f"{number(line.mean(name))} ± {number(line.spread(name))}"
                for name in COEFFICIENTS
            )
            table.add(
                line.name,
                size_text(line.train, analysis.of(line.train)),
                len(line.records),
                *spread,
            )
    return table


def _by_seed(analysis: Analysis) -> Table:
    table = Table(
        [
            WHAT[analysis.config.study],
            Column("labels", "s"),
            Column("seed", "d"),
            Column("Q", ".3f"),
            "95 %",
            "chosen",
            Column("demonstrations", "d"),
            Column("Q on training rows", ".3f"),
            "form",
            Column("calls", "d"),
        ]
    )
    for line in analysis.lines:
        for seed, record in line.records.items():
            low, high = (
                math.nan if record[end] is None else record[end]
                for end in ("low", "high")
            )
            form = {
                name: value
                for name, value in (record.get("form") or {}).items()
                if name in ("explain", "reading")
            }
            table.add(
                line.name,
                size_text(line.train, analysis.of(line.train)),
                seed,
                record["q"],
                interval(low, high),
                record["selected"],
                record["demos"],
                record.get("train_q"),
                ", ".join(f"{n}={v}" for n, v in form.items()),
                record["calls"],
            )
    return table


def show(analysis: Analysis) -> None:
    """Print the results, and the first notes and failures."""
    out = table_console()
    table = results(analysis)
    table.title = heading(analysis)
    table.show(out)
    failures = [f"{cell}: {reason}" for cell, reason in analysis.failures]
    for kind, lines, style in (
        ("note", analysis.notes, "dim"),
        ("failed", failures, "red"),
    ):
        most = SHOWN_NOTES + (kind == "note")
        for line in lines[:most]:
            out.print(f"{kind}: {clean(line)}", style=style, markup=False)
        if len(lines) > most:
            out.print(
                f"… and {len(lines) - most} more; they are in tables.md", style=style
            )


def markdown(analysis: Analysis) -> str:
    """Tables, values by seed, notes and failures."""
    parts: dict[str, str] = {}
    if len(analysis.sizes()) > 1:
        parts["## Q by the number of labels"] = _by_size(analysis).markdown()
    if len(spread := _spread(analysis)):
        parts["## Spread: mean ± standard deviation over seeds"] = spread.markdown()
    parts["## By seed"] = _by_seed(analysis).markdown()
    parts["## Notes"] = "".join(f"- {md(note)}\n" for note in analysis.notes)
    if analysis.failures:
        parts["## Failed"] = "".join(
            f"- {md(f'{cell}: {reason}')}\n" for cell, reason in analysis.failures
        )
    return f"# {md(heading(analysis))}\n\n{results(analysis).markdown()}" + "".join(
        f"\n{title}\n\n{text}" for title, text in parts.items()
    )
