"""Figures of `judgesmith discern`: D by perturbation, D_avg and D_min judge by judge, and response styles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..agreement.correlation import Vector
from ..errors import OptionError
from ..figures import figure, literal, look, write_figure
from .options import DiscernOptions
from .pairs import Book, Contender
from .run import HEADINGS, JudgeResult, Line, scores_of
from .tables import LEVELS, mark

__all__ = ["plot", "plot_judges", "plot_styles"]

#: What response styles are drawn of, the first that there is; the paper's Figure 2 has fictional entities.
_STYLED = ("entities-lm", "entities-rules")
_BINS = 20


def ordered(lines: Sequence[Line]) -> list[Line]:
    """By origin, the paper's first, then by level."""
    origins = list(HEADINGS)
    return sorted(lines, key=lambda line: (origins.index(line.origin), LEVELS.index(line.level)))


def plot(results: Sequence[JudgeResult], path: Path, *, origin: str) -> None:
    """Bars of D by perturbation, judges side by side, with the line at 1; the paper's perturbations stand first, then
    stand-ins, then ours. Raises OptionError where the file cannot be written."""
    every = ordered([line for result in results for line in result.of("degradation") if line.enough])
    by_name = {line.name: line for line in every}
    names = list(by_name)
    with figure(max(6.0, 0.2 * len(names) * max(len(results), 2) + 2.0), 4.4) as drawn:
        axes = drawn.subplots()
        width = 0.8 / max(len(results), 1)
        for j, result in enumerate(results):
            measured = {line.name: line.test.d for line in result.of("degradation") if line.enough}
            heights = [measured.get(name, math.nan) for name in names]
            places = [i + (j - (len(results) - 1) / 2) * width for i in range(len(names))]
            label = literal(f"{result.judge} (avg {result.summary.d_avg:.2f})")
            axes.bar(places, np.nan_to_num(heights), width, label=label, **look(j))
            for place, d in zip(places, heights, strict=True):
                if math.isnan(d):
                    axes.text(place, 0.05, "–", ha="center", va="bottom", fontsize=8)
        _line_at_one(axes)
        for i, (one, other) in enumerate(pairwise(by_name.values())):
            if (one.origin, one.level) != (other.origin, other.level):
                wide = one.origin != other.origin
                axes.axvline(i + 0.5, color="0.4" if wide else "0.8", linewidth=1.2 if wide else 0.7)
        axes.set_xticks(
            range(len(names)), [literal(name) + mark(by_name[name]) for name in names], rotation=60, ha="right"
        )
        axes.set_ylabel("D = log$_{0.05}$ p")
        axes.set_ylim(0, _top([line.test.d for line in every]))
        axes.set_title(literal(f"Discernment of perturbations, {origin}"))
        _legend(drawn)
    write_figure(path, drawn, "--plot")


def plot_judges(results: Sequence[JudgeResult], path: Path, *, origin: str) -> None:
    """D_avg and D_min over the paper's perturbations for each judge, without and with expert weights (Figures 4 and 5).
    Raises OptionError where the file cannot be written."""
    panels: list[tuple[str, Callable[[JudgeResult], Any]]] = [
        ("D", lambda result: result.summary),
        ("D with expert weights", lambda result: result.overall["paper"].expert),
    ]
    with figure(max(6.0, 1.1 * len(results) + 2.5), 4.0) as drawn:
        both = drawn.subplots(1, 2, sharey=True)
        values = []
        for axes, (title, of) in zip(both, panels, strict=True):
            summaries = [of(result) for result in results]
            for k, name in enumerate(("d_avg", "d_min")):
                measured = [getattr(summary, name) if summary else math.nan for summary in summaries]
                places = np.arange(len(results)) + (k - 0.5) * 0.38
                axes.bar(places, np.nan_to_num(measured), 0.36, label=name.replace("d_", "D "), **look(k))
                for place, d in zip(places, measured, strict=True):
                    shown = "–" if math.isnan(d) else f"{d:.1f}"
                    axes.text(place, 0 if math.isnan(d) else d, shown, ha="center", va="bottom", fontsize=7)
                values += measured
            _line_at_one(axes)
            axes.set_xticks(range(len(results)), [literal(r.judge)[:40] for r in results], rotation=30, ha="right")
            axes.set_title(title)
        both[0].set_ylim(0, _top(values))
        both[0].set_ylabel("D = log$_{0.05}$ p")
        drawn.suptitle(literal(f"{origin}: over {_rests_on(results)}"), fontsize=9, x=0.01, ha="left")
        _legend(drawn, both[0])
    write_figure(path, drawn, "--plot-judges")


def _rests_on(results: Sequence[JudgeResult]) -> str:
    first = results[0]
    count = len(first.overall["paper"].names)
    return f"{count} of the paper's {count + len(first.unmeasured)} perturbations"


def plot_styles(
    contenders: Sequence[Contender], results: Sequence[JudgeResult], book: Book, how: DiscernOptions, path: Path
) -> None:
    """Each judge's scores (mean over its metrics) of the good texts and of the same texts after one perturbation
    (Figure 2). Raises OptionError where there is none, and where the file cannot be written."""
    option = "--plot-styles"
    name = _styled(results)
    if name is None:
        raise OptionError(f"{option}: no perturbation has scores before and after it")
    result = [_means(contender, book, how, name) for contender in contenders]
    with figure(6.4, 1.1 + 1.3 * len(results)) as drawn:
        panels = drawn.subplots(len(results), 1, squeeze=False)[:, 0]
        for axes, contender, scores in zip(panels, contenders, result, strict=True):
            _style(axes, contender, scores)
        panels[-1].set_xlabel("score, mean over the metrics; lines: means")
        drawn.suptitle(literal(f"Response styles: before and after {name}"), fontsize=10, x=0.01, ha="left")
        _legend(drawn, panels[0])
    write_figure(path, drawn, option)


def _styled(results: Sequence[JudgeResult]) -> str | None:
    lines = [line for line in ordered(results[0].of("degradation")) if line.test.n]
    wanted = [line.name for name in _STYLED for line in lines if line.name.partition(":")[0] == name]
    return next(iter([*wanted, *(line.name for line in lines)]), None)


def _means(contender: Contender, book: Book, how: DiscernOptions, name: str) -> tuple[Vector, Vector]:
    """Scores before and after, of the texts that have both."""
    means = scores_of(contender, book, how)[1].mean(axis=1)[:, [pair.name == name for pair in book.pairs]]
    before, after = means[:, ~np.isnan(means).any(axis=0)]
    return before, after


def _style(axes: Any, contender: Contender, scores: tuple[Vector, Vector]) -> None:
    """One judge's two distributions, over its whole scale where it has one."""
    axes.set_title(literal(f"{contender.name} ({len(scores[0])} texts)"), fontsize=9)
    axes.set_ylabel("texts")
    if not len(scores[0]):
        axes.text(0.5, 0.5, "no scores", transform=axes.transAxes, ha="center")
        return
    scales = [scale for one in contender.scorers.values() if (scale := getattr(one, "scale", None)) is not None]
    low = min([*map(np.min, scores), *(scale.low for scale in scales)])
    high = max([*map(np.max, scores), *(scale.high for scale in scales)])
    room = (high - low or 1.0) * 0.04
    bins = np.linspace(low - room, high + room, _BINS + 1)
    for k, (values, label) in enumerate(zip(scores, ("before", "after"), strict=True)):
        style, up = look(k), 1 - 2 * k  # after hangs below the line, so that neither hides the other
        axes.hist(values, bins, weights=np.full(len(values), up), label=label, **style)
        axes.axvline(values.mean(), 0.5 * (1 - k), 1 - 0.5 * k, color="black", linestyle=("-", "--")[k], linewidth=1.4)
    most = max(map(abs, axes.get_ylim()))
    axes.set_ylim(-most, most)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.locator_params(axis="y", integer=True, nbins=5)
    axes.yaxis.set_major_formatter(lambda count, place: f"{abs(count):g}")


def _line_at_one(axes: Any) -> None:
    axes.axhline(1.0, color="black", linewidth=1.0, linestyle="--", label="D = 1 (p = 0.05)")


def _top(values: Sequence[float]) -> float:
    """The end of an axis on which no bar is cut."""
    return max([1.2, *(d for d in values if not math.isnan(d))]) * 1.08


def _legend(figure: Any, axes: Any = None) -> None:
    """Below the axes, never over bars."""
    handles, labels = (axes or figure.axes[0]).get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
