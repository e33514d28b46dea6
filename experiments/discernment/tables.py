"""What `judgesmith discern` shows: tables by level, false alarms, attacks, and the figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from ...errors import OptionError
from ..console import wide
from ..evaluation.tables import escape, p_value, plain_number
from ..plain import clean
from .comparison import Comparison
from .run import JudgeResult, Line

SEES = {"yes": "yes", "alone": "doubtful", "no": "NO", "unknown": "too few"}


def show(result: JudgeResult, *, rounds: int) -> None:
    """The tables of one judge."""
    out = wide()
    several = len(result.metrics) > 1
    harmful = [line for line in result.of("damage") if line.test.n]
    if harmful:
        how = "95 % intervals over texts" if rounds else "no intervals"
        of = f", metrics {escape(', '.join(result.metrics))}" if several else ""
        table = _table(f"What {escape(result.judge)} discerns (D >= 1: p <= 0.05; {how}{of})", "level", "perturbation")
        titles = ["texts", "left out", "D", "p", "p Holm", "effect", "mean drop", "dropped", "sees it"]
        for title in [*titles[:3], *(["D paper", "D expert"] if several else []), *titles[3:]]:
            table.add_column(title, justify="right", no_wrap=True)
        previous = ""
        for line in sorted(harmful, key=lambda line: ("character", "word", "sentence").index(line.level)):
            if previous and previous != line.level:
                table.add_section()
            t = line.test
            more = [plain_number(t.d_paper, 2), plain_number(t.d_expert, 2)] if several else []
            table.add_row(
                line.level if line.level != previous else "", _name(line), str(t.n), str(line.left or ""),
                _with_limits(t.d, t.low, t.high), *more, p_text(t.p), p_text(line.p_holm),
                _with_limits(t.effect, t.effect_low, t.effect_high), plain_number(t.drop), share_text(t.dropped),
                SEES[line.sees],
            )  # fmt: skip
            previous = line.level
        out.print(table)
        _say_summary(result, out)
    _others(result, "invariance", "Changes without harm: a good judge does not react", "mean drop", "dropped", "reacts")
    if result.of("invariance"):
        out.print(f"False alarms: {share_text(result.false_alarms)} of these texts lost score.", markup=False)
    attacks = "Attacks: wrong texts that address the judge, before and after"
    _others(result, "attack", attacks, "mean rise", "risen", "gives in")
    for line in result.lines:
        reasons = dict.fromkeys(test.reason for test in line.test.tests if test.reason)
        if reasons and line.test.n:
            out.print(f"note: {line.name}: {', '.join(map(str, reasons))}, so p = 1", style="yellow", markup=False)
    if result.failed:
        out.print(f"note: {result.failed} texts have no score; their pairs are left out", style="yellow", markup=False)
    out.print(clean(result.conclusion()), markup=False, style="bold", soft_wrap=True)


def show_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Which judge discerns more, and of what."""
    if not comparisons:
        return
    out = wide()
    table = _table(
        "Does one judge discern more? Differences of the mean effect over the same texts (95 % intervals); p of "
        "swapping the judges text by text, corrected by Holm over their pairs",
        "judge", "less judge",
    )  # fmt: skip
    for name in ("texts", "difference", "p", "p Holm", "of D_avg"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in comparisons:
        g = one.gap
        table.add_row(
            escape(one.a), escape(one.b), str(g.texts), _with_limits(g.value, g.low, g.high), p_text(g.p),
            p_text(one.p_holm), plain_number(g.d, 2),
        )  # fmt: skip
    out.print(table)
    for one in comparisons:
        out.print(clean(difference_in_words(one)), markup=False, soft_wrap=True)


def difference_in_words(one: Comparison) -> str:
    """Which of two judges discerns more, in one line."""
    if one.gap.reason:
        return f"{one.a} and {one.b}: {one.gap.reason}."
    if one.p_holm <= 0.05:
        better, other = (one.a, one.b) if one.gap.value > 0 else (one.b, one.a)
        said = f"{better} discerns more than {other}"
    else:
        said = f"{one.a} and {one.b} cannot be told apart over all perturbations"
    parts = []
    for judge, sign in ((one.a, 1), (one.b, -1)):
        names = [name for name, value, _ in one.differing() if value * sign > 0]
        if names:
            parts.append(f"{judge} sees more of {', '.join(names)}")
    return f"{said}{'; ' if parts else ''}{'; '.join(parts)}."


def _say_summary(result: JudgeResult, out: Console) -> None:
    s = result.summary
    few = [line for line in result.of("damage") if line.test.n and not line.enough]
    out.print(
        f"D_avg {plain_number(s.d_avg, 2)} (levels weigh the same), D_min {plain_number(s.d_min, 2)} "
        f"({s.worst or 'undefined'})"
        + (f"; {len(few)} perturbations with fewer than {few[0].fewest} texts are left out" if few else ""),
        markup=False, soft_wrap=True,
    )  # fmt: skip
    if len(result.metrics) > 1:
        p = result.paper
        out.print(
            f"As the paper prints it, without 1/M: D_avg {plain_number(p.d_avg, 2)}, D_min {plain_number(p.d_min, 2)}",
            markup=False,
        )
        if (e := result.expert) is not None:
            out.print(
                f"With expert weights: D_avg {plain_number(e.d_avg, 2)}, D_min {plain_number(e.d_min, 2)} ({e.worst})"
                + (f"; {e.undefined} perturbations have no weight for these metrics" if e.undefined else ""),
                markup=False,
            )
        else:
            out.print("No expert weight fits these metrics; give --weights", markup=False)
    floors = [line.test.tests[0].floor for line in result.of("damage") if line.enough]
    if floors:
        out.print(
            f"The smallest p that these texts can give is {min(floors):.1e} to {max(floors):.1e}: D grows with the "
            "number of texts, the effect (rank-biserial, 1 = every text lost score) does not.",
            markup=False, style="dim", soft_wrap=True,
        )  # fmt: skip


def _others(result: JudgeResult, kind: str, title: str, change: str, share: str, reacts: str) -> None:
    lines = [line for line in result.of(kind) if line.test.n]
    if not lines:
        return
    table = _table(f"{title} ({escape(result.judge)})", kind)
    for name in ("texts", "left out", change, share, "effect", "p", "p Holm", reacts):
        table.add_column(name, justify="right", no_wrap=True)
    for line in lines:
        t = line.test
        table.add_row(
            _name(line), str(t.n), str(line.left or ""), plain_number(t.drop), share_text(t.dropped),
            _with_limits(t.effect, t.effect_low, t.effect_high), p_text(t.p), p_text(line.p_holm),
            {"yes": "YES", "alone": "doubtful", "no": "no", "unknown": "too few"}[line.sees],
        )  # fmt: skip
    wide().print(table)


def _table(title: str, *names: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _name(line: Line) -> str:
    return escape(line.name) + ("" if line.paper or line.kind != "damage" else " +")


def p_text(value: float) -> str:
    return "–" if math.isnan(value) else p_value(value)


def _with_limits(value: float, low: float, high: float) -> str:
    found = plain_number(value, 2)
    return found if math.isnan(low) else escape(f"{found} [{plain_number(low, 2)}, {plain_number(high, 2)}]")


def share_text(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.0%}"


# The figure ----------------------------------------------------------------------------------------------------------


def check_plot(path: Path) -> None:
    """Raises OptionError for a figure that is neither PNG nor SVG nor PDF."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise OptionError(f"--plot {path}: a figure is .png, .svg or .pdf")


def plot(results: Sequence[JudgeResult], path: Path, *, origin: str) -> None:
    """Bars of D by perturbation, judges side by side, with the line at 1 (DHP, Figure 4). Raises OptionError where the
    file cannot be written."""
    from ..reports.page import plot_style, write_figure

    check_plot(path)
    with plot_style():
        figure = _figure(results, origin)
        try:
            write_figure(path, figure)
        except OSError as error:
            raise OptionError(f"--plot {path} cannot be written: {error.strerror or error}") from None


def _figure(results: Sequence[JudgeResult], origin: str) -> Any:
    from matplotlib.figure import Figure

    first = [line for result in results for line in result.of("damage") if line.enough]
    order = {"character": 0, "word": 1, "sentence": 2}
    names = list(dict.fromkeys(line.name for line in sorted(first, key=lambda line: order[line.level])))
    levels = {line.name: line.level for line in first}
    figure = Figure(figsize=(max(6.0, 0.2 * len(names) * max(len(results), 2) + 2.0), 4.2), layout="constrained")
    axes: Any = figure.subplots()
    width = 0.8 / max(len(results), 1)
    top = max([line.test.d for line in first if not math.isnan(line.test.d)], default=1.0)
    for j, result in enumerate(results):
        found = {line.name: line.test.d for line in result.of("damage") if line.enough}
        heights = [found.get(name, math.nan) for name in names]
        places = [i + (j - (len(results) - 1) / 2) * width for i in range(len(names))]
        drawn = [0.0 if math.isnan(d) else d for d in heights]
        axes.bar(places, drawn, width, label=_literal(f"{result.judge} (avg {result.summary.d_avg:.2f})"))
        for place, d in zip(places, heights, strict=True):
            if math.isnan(d):
                axes.text(place, 0.05, "–", ha="center", va="bottom", fontsize=8)
    axes.axhline(1.0, color="#1a1a1a", linewidth=1.0, linestyle="--")
    for i in range(1, len(names)):
        if levels[names[i]] != levels[names[i - 1]]:
            axes.axvline(i - 0.5, color="0.8", linewidth=0.8)
    axes.set_xticks(range(len(names)), [_literal(name) for name in names], rotation=60, ha="right", fontsize=8)
    # A root: nothing is cut off, and D = 1 stays in sight beside D = 50.
    axes.set_yscale("function", functions=(lambda d: np.sqrt(np.maximum(d, 0.0)), np.square))
    axes.set_ylabel("D = log$_{0.05}$ p (root scale)")
    axes.set_ylim(0, max(top * 1.1, 1.3))
    axes.set_yticks([tick for tick in (0, 1, 2, 5, 10, 20, 50, 100, 200) if tick <= max(top * 1.1, 1.3)])
    axes.set_title(_literal(f"Discernment of perturbations, {origin}"), fontsize=10)
    figure.legend(fontsize=8, loc="outside lower center", ncols=4, frameon=False)  # beside the bars, never over them
    return figure


def _literal(text: str) -> str:
    """A name of unknown origin, not read as mathematics by matplotlib."""
    return clean(text).replace("$", r"\$")
