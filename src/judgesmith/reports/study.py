"""A study as one HTML page: what came out in a sentence, Q against calls and against labels, candidates, the table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..evaluating.pivot import ALPHA, plain_number
from ..evaluating.tables import p_value
from .charts import Axis, Point, Series, plot
from .page import environment

if TYPE_CHECKING:
    from ..experiments.studies.analysis import Analysis, Gap, Line

#: Colours of the page; lines beyond share them, and the names beside the dots tell them apart.
_COLOURS = 6
CANDIDATES = 2_000  # dots of candidates


def render(found: Analysis, heading: str, what: str) -> str:
    """The page. heading: what was compared; what: what a line is called."""
    from .. import __version__

    keys = {name: k % _COLOURS + 1 for k, name in enumerate(found.names())}
    done = [line for line in found.lines if line.records]
    return (
        environment()
        .get_template("study.html.j2")
        .render(
            heading=heading, what=what, lead=lead(found), several=len(found.sizes()) > 1,
            rows=[_row(line, keys[line.name]) for line in done], axis=_axis(done), baseline=found.config.baseline,
            charts=list(_charts(found, keys)), keys=[(name, keys[name]) for name in found.names()],
            notes=found.notes, failures=[(str(cell), reason) for cell, reason in found.failures], version=__version__,
        )
    )  # fmt: skip


def lead(found: Analysis) -> str:
    """Which line agrees best with people, by how much more than the baseline, and whether that may be chance."""
    done = [line for line in found.lines if line.records]
    if not done:
        return "No cell is done yet."
    best = max(
        [line for line in done if line.whole] or done, key=lambda line: -math.inf if math.isnan(line.q) else line.q
    )
    seeds = f"{len(best.records)} seed{'s'[: len(best.records) != 1]}"
    told = f"{best.name} agrees best with people: Q {plain_number(best.q, 2)}{_limits(best.low, best.high)}"
    told += f" on held-out rows with {best.mean('labels'):.0f} labels and {best.mean('calls'):,.0f} calls ({seeds})."
    gap = best.baseline
    if gap is None:
        return told + (
            f" No line is better than {best.arm}, the baseline." if best.arm == found.config.baseline else ""
        )
    d = gap.difference
    sure = "beyond chance" if gap.p_holm < ALPHA else "which may be chance"
    return (
        f"{told} That is {d.value:+.2f}{_limits(d.low, d.high)} against {gap.other}, {sure} "
        f"(p = {_p(gap)}, corrected by Holm; the best was chosen on these rows, which flatters it)."
    )


def _limits(low: float, high: float) -> str:
    return "" if math.isnan(low) else f" [{plain_number(low, 2)}, {plain_number(high, 2)}]"


def _p(gap: Gap) -> str:
    return "–" if math.isnan(gap.p_holm) else p_value(gap.p_holm)


def _axis(lines: Sequence[Line]) -> dict[str, Any]:
    axis = Axis.of("", [0.0, *(v for line in lines for v in (line.q, line.low, line.high))])
    return {"ticks": [(f"{tick:.4g}", round(100 * axis.place(tick), 1)) for tick in axis.ticks()[::2]],
            "zero": round(100 * axis.place(0.0), 1),
            "at": {id(line): tuple(round(100 * axis.place(v), 1) if not math.isnan(v) else 0.0
                                   for v in (line.q, line.low, line.high)) for line in lines}}  # fmt: skip


def _row(line: Line, colour: int) -> dict[str, Any]:
    def gap(of: Gap | None) -> str:
        return "–" if of is None else f"{of.difference.value:+.2f}{_limits(of.difference.low, of.difference.high)}"

    return {
        "key": id(line), "name": line.name, "colour": colour, "labels": f"{line.mean('labels'):.0f}",
        "q": plain_number(line.q, 2), "limits": _limits(line.low, line.high).strip(), "best": line.leads,
        "gap": gap(line.baseline), "p": "–" if line.baseline is None else _p(line.baseline),
        "seeds": f"{len(line.records)} of {line.wanted}", "failed": line.failed,
        "calls": f"{line.mean('calls'):,.0f}",
        "tokens": f"{line.mean('prompt_tokens', 'completion_tokens'):,.0f}",
    }  # fmt: skip


def _charts(found: Analysis, keys: dict[str, int]) -> Iterator[dict[str, Any]]:
    done = [line for line in found.lines if line.records and not math.isnan(line.q)]
    if not done:
        return
    ends = [v for line in done for v in (line.q, line.low, line.high)]
    y = Axis.of("Q on held-out rows", ends)

    def dot(line: Line, x: float) -> Point:
        return Point(x, line.q, line.low, line.high, 4.0, f"{line.name}: Q {line.q:.2f}, {x:,.0f}")

    def series(name: str, x: str) -> Series:
        own = sorted((line for line in done if line.name == name), key=lambda line: line.mean(x))
        points = [dot(line, max(1.0, line.mean(x))) for line in own]
        return Series(points, f"var(--judge{keys[name]})", joined=True)

    names = list(dict.fromkeys(line.name for line in done))
    for title, x, words in (("Q against calls", "calls", "calls of fitting"),
                            ("Q against labels", "labels", "labels to learn from")):  # fmt: skip
        if x == "labels" and len(found.sizes()) < 2:
            continue
        axis = Axis.of(words, [max(1.0, line.mean(x)) for line in done], logarithmic=True)
        lines = [series(name, x) for name in names]
        yield {"title": title, "svg": plot(lines, axis, y, width=460, height=300, line="zero"),
               "about": "Means over the seeds with 95 % intervals; the lower axis is logarithmic."}  # fmt: skip
    dots = list(_candidates(done))
    if dots:
        lines = [
            Series([point for name, point in dots if name == line], f"var(--judge{keys[line]})", faint=True)
            for line in names
        ]
        x_axis = Axis.of("Q on training rows, of every candidate", [point.x for _, point in dots])
        y_axis = Axis.of("Q on held-out rows, of the chosen one", [point.y for _, point in dots])
        yield {"title": "Candidates", "svg": plot(lines, x_axis, y_axis, width=460, height=300, line="diagonal"),
               "about": "A dot is a candidate of a search, at the height of the one that was chosen. Right of the "
               "dotted line, training rows promised more than held-out rows kept."}  # fmt: skip


def _candidates(lines: Sequence[Line]) -> Iterator[tuple[str, Point]]:
    """What each candidate came to on training rows, and the chosen one on held-out rows; from a file, of any shape."""
    number = 0
    for line in lines:
        for seed, record in line.records.items():
            tried, kept = record.get("candidates"), record.get("q")
            if not isinstance(tried, list) or not isinstance(kept, float):
                continue
            for one in tried:
                value = one.get("q") if isinstance(one, dict) else None
                if isinstance(value, float) and number < CANDIDATES:
                    number += 1
                    yield line.name, Point(value, kept, radius=3.0, title=f"{line.name}, seed {seed}: {value:.2f}")
