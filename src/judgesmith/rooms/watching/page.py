"""The page of `judgesmith watch -o`: the newest run against the baseline, and all runs over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.figures import DIM, INK, JUDGE, PEOPLE, bars, svg
from judgesmith.pages import Figures, Section, moment
from judgesmith.pages import render as render_page
from judgesmith.rooms.watching.history import Run, epoch
from judgesmith.rooms.watching.watching import Look, findings_table, summary
from judgesmith.tables import Cell, Column, Table, counted

#: Runs that the page shows, the newest ones.
MOST_RUNS = 400
#: Sentinel rows that are listed.
MOST_MOVED = 20


def render(look: Look, judge: str) -> str:
    """Return the page. judge: what to call it."""
    run = look.run
    runs = look.runs[-MOST_RUNS:]
    threshold = _threshold(run)
    text = (
        f"A test alarms at p ≤ {threshold}, so that the chance of any false alarm in {look.options.looks} runs is at "
        f"most {look.options.alpha} if rows vary independently of each other: a server whose runs move all rows "
        "together alarms more often. Before and now are means. Sentinel rows stay the same: where they change, the "
        "judge has changed."
    )
    figures = [
        (caption, svg(draw, 370, 175, salt=caption))
        for caption, draw in _charts(runs)
        if draw is not None
    ]
    moved = _moved(look)
    sections = [
        Section(
            "This run against the baseline",
            [text, findings_table(run.found)] if run.found else [],
        ),
        Section(
            "Over time",
            [
                "A line from top to bottom is a run with an alarm, a dashed one a new baseline.",
                Figures(figures),
            ],
        ),
        Section("Sentinel rows that moved most", [moved]),
        Section("Runs", [_runs(runs)]),
    ]
    about = f"Judge {run.judge}, model {run.model}, {moment(run.time)}, {counted(len(look.runs), 'run')}."
    return render_page(
        f"{'Alarm' if run.alarms else 'Quiet'}: watching {judge}",
        sections,
        lead=summary(look),
        about=[about],
        warn=bool(run.alarms),
        notes=look.notes,
        style="tr.alarm > * { color: var(--warn); font-weight: 600; }",
    )


def _threshold(run: Run) -> str:
    return "–" if run.threshold is None else f"{run.threshold:.2g}"


def _state(run: Run) -> str:
    """Return the state of a run; "" for one that was not tested."""
    if run.baseline:
        return "baseline"
    if run.alarms:
        return "alarm"
    return "quiet" if run.found else ""


def _mean(values: Sequence[float]) -> float | None:
    """Return the mean; None without values."""
    return float(np.mean(values)) if values else None


def _runs(runs: Sequence[Run]) -> Table:
    numbers = (
        Column("mean", ".3f"),
        Column("failed", "d"),
        Column("words", ".3f"),
        Column("Spearman", ".2f"),
    )
    table = Table(["time", "judge", "model", Column("rows", "d"), *numbers, "state"])
    for run in reversed(runs):
        present = [score for score in run.scores if score is not None]
        a = run.agreement
        table.add(
            moment(run.time),
            run.judge,
            run.model,
            len(run.ids),
            _mean(present),
            len(run.ids) - len(present),
            _mean(run.words),
            Cell(a.value, a.low, a.high) if a else None,
            ": ".join(filter(None, [_state(run), "; ".join(run.alarms)])),
            kind="alarm" if run.alarms else "",
        )
    return table


def _moved(look: Look) -> Table:
    """Return the sentinel rows whose scores are furthest from the baseline's, most first."""
    moved = Table(
        [
            "row",
            Column("baseline", ".3f"),
            Column("now", ".3f"),
            "why there is no score",
        ]
    )
    run = look.run
    base = [
        one.values() for one in epoch(look.runs, run.judge, run.rows) if one.baseline
    ]
    if run.baseline or not base:
        return moved
    table = np.array(base)
    now = run.values()
    present = ~np.isnan(table).all(axis=0)
    before = np.full(len(now), np.nan)
    before[present] = np.nanmean(table[:, present], axis=0)
    gap = np.nan_to_num(np.abs(now - before), nan=-1.0)
    lost = np.isnan(now) & present
    for i in [i for i in np.lexsort((-gap, ~lost)) if lost[i] or gap[i] > 1e-9][
        :MOST_MOVED
    ]:
        moved.add(run.ids[i], before[i], now[i], run.failures.get(run.ids[i], ""))
    return moved


# Figures -------------------------------------------------------------------------------------------------------------

Draw = Callable[[Any], None]
#: A run by its number from 1, with the low end, the value and the high end that are drawn; NaN where there is none.
Point = tuple[int, float, float, float]


def _charts(runs: Sequence[Run]) -> Iterator[tuple[str, Draw | None]]:
    """Yield the charts beside the table of runs: distributions of scores and lengths, and intervals."""
    ends = []
    for i, run in enumerate(runs, 1):
        a = run.agreement
        if a and a.value is not None:
            ends.append((i, _number(a.low), a.value, _number(a.high)))
    scores = _quartiles((i, run.values()) for i, run in enumerate(runs, 1))
    yield "Sentinel rows: scores, median with quartiles", _chart(runs, scores)
    yield "Agreement with people (Spearman, 95 %)", _chart(runs, ends, zero=True)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _quartiles(values: Iterable[tuple[int, Vector]]) -> list[Point]:
    present = ((place, one[~np.isnan(one)]) for place, one in values)
    return [
        (place, *np.quantile(one, (0.25, 0.5, 0.75)).tolist())
        for place, one in present
        if len(one)
    ]


def _chart(
    runs: Sequence[Run], points: Sequence[Point], *, zero: bool = False
) -> Draw | None:
    """Return a line through the runs with their intervals.

    Alarms are vertical lines, dashed where a baseline begins. zero: draw a line at 0.
    """
    if not points:
        return None

    def draw(axis: Any) -> None:
        bars(axis, [(place, low, high) for place, low, _, high in points], JUDGE)
        places = [point[0] for point in points]
        values = [point[2] for point in points]
        axis.plot(places, values, color=JUDGE, marker="o", markersize=3, linewidth=1)
        if zero:
            axis.axhline(0, color=INK, linewidth=0.5)
        for place, run in enumerate(runs, 1):
            if run.alarms:
                axis.axvline(place, color=PEOPLE, linewidth=1.2)
            if run.restart and place > 1:
                axis.axvline(place - 0.5, color=DIM, linewidth=0.8, linestyle="--")
        axis.set_xlim(0.5, len(runs) + 0.5)
        axis.set_xlabel("run")
        axis.xaxis.get_major_locator().set_params(integer=True)

    return draw
