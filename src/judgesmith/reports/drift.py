"""What `judgesmith watch` saw over time as one HTML file: no network, no scripts, every text escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from ..agreement.correlation import Vector
from ..evaluating.pivot import plain_number
from ..evaluating.tables import p_value
from ..watching.history import Run
from ..watching.watching import Look, summary
from .page import INK, JUDGE, LINE, PEOPLE, environment, inline_svg, moment, own_ids

#: Runs that the page shows, the newest ones.
MOST_RUNS = 400
#: Sentinel rows that are listed.
MOST_MOVED = 20


def render(look: Look, judge: str) -> str:
    """The page. judge: what to call it."""
    from .. import __version__

    runs = look.runs[-MOST_RUNS:]
    drawn = [(caption, draw) for caption, draw in _charts(runs) if draw is not None]
    figures = [
        {"caption": caption, "svg": Markup(own_ids(inline_svg(draw, 5.2, 2.4), i))}  # noqa: S704  # texts are outlines
        for i, (caption, draw) in enumerate(drawn)
    ]
    return (
        environment()
        .get_template("drift.html.j2")
        .render(
            judge=judge, run=look.run, time=moment(look.run.time), summary=summary(look), notes=look.notes,
            options=look.options,
            findings=[
                {"name": one.name, "before": _number(one.before), "now": _number(one.now), "n": one.n,
                 "p": "–" if one.p is None else p_value(one.p), "alarm": one.alarm}
                for one in look.run.found
            ],
            threshold="–" if look.run.threshold is None else f"{look.run.threshold:.2g}",
            figures=figures, moved=_moved(look), runs=[_line(run) for run in reversed(runs)], all=len(look.runs),
            version=__version__,
        )
    )  # fmt: skip


def _number(value: float | None) -> str:
    return plain_number(value, 3)


def _line(run: Run) -> dict[str, Any]:
    known = [score for score in run.scores if score is not None]
    agreed = run.agreement
    return {
        "time": moment(run.time), "judge": run.judge, "model": run.model, "rows": len(run.ids),
        "mean": _number(float(np.mean(known))) if known else "–", "failed": len(run.ids) - len(known),
        "words": _number(float(np.mean(run.words))) if run.words else "–",
        "agreement": "–" if agreed is None else
        "{} [{}, {}]".format(*(plain_number(v, 2) for v in (agreed.value, agreed.low, agreed.high))),
        "new": run.traffic.rows if run.traffic else "", "alarms": "; ".join(run.alarms),
        "role": "baseline" if run.baseline else "alarm" if run.alarms else "quiet" if run.found else "",
    }  # fmt: skip


def _moved(look: Look) -> list[dict[str, Any]]:
    """The sentinel rows whose scores are furthest from the baseline's, most first."""
    run = look.run
    same = [one for one in look.runs if (one.judge, one.rows) == (run.judge, run.rows)]
    base = [one.values() for one in same[_begin(same) :] if one.baseline]
    if run.baseline or not base:
        return []
    table, now = np.array(base), run.values()
    there = ~np.isnan(table).all(axis=0)
    before = np.full(len(now), np.nan)
    before[there] = np.nanmean(table[:, there], axis=0)
    gap = np.nan_to_num(np.abs(now - before), nan=-1.0)
    lost = np.isnan(now) & there
    order = [i for i in np.lexsort((-gap, ~lost)) if lost[i] or gap[i] > 1e-9][:MOST_MOVED]
    return [
        {"id": run.ids[i], "before": _number(float(before[i])), "now": _number(float(now[i])),
         "why": run.failures.get(run.ids[i], "")}
        for i in order
    ]  # fmt: skip


def _begin(runs: Sequence[Run]) -> int:
    return max((i for i, run in enumerate(runs) if run.restart), default=0)


# Figures -------------------------------------------------------------------------------------------------------------

Draw = Callable[[Any], None]


def _charts(runs: Sequence[Run]) -> list[tuple[str, Draw | None]]:
    scores = [run.values() for run in runs]
    traffic = [(i, run.traffic) for i, run in enumerate(runs, 1) if run.traffic is not None]
    return [
        ("Sentinel rows: scores, median with quartiles", _spread(runs, enumerate(scores, 1))),
        ("Sentinel rows: share without a score",
         _line_of(runs, [(i, float(np.isnan(one).mean())) for i, one in enumerate(scores, 1)])),
        ("Sentinel rows: words of explanations, median with quartiles",
         _spread(runs, ((i, np.array(run.words)) for i, run in enumerate(runs, 1) if any(run.words)))),
        ("Agreement with people (Spearman, 95 %)", _agreement(runs)),
        ("New rows: scores, median with quartiles", _spread(runs, ((i, np.array(t.scores)) for i, t in traffic))),
        ("New rows: lengths of outputs in words, median with quartiles",
         _spread(runs, ((i, np.array(t.lengths)) for i, t in traffic))),
        ("New rows: share of documents without a score",
         _line_of(runs, [(i, t.failed / t.documents) for i, t in traffic if t.documents])),
    ]  # fmt: skip


def _frame(axis: Any, runs: Sequence[Run]) -> None:
    """Alarms as lines from top to bottom, and dashed ones where a baseline begins."""
    for place, run in enumerate(runs, 1):
        if run.alarms:
            axis.axvline(place, color=PEOPLE, linewidth=1.2)
        if run.restart and place > 1:
            axis.axvline(place - 0.5, color=LINE, linewidth=0.8, linestyle="--")
    axis.set_xlim(0.5, len(runs) + 0.5)
    axis.set_xlabel("run")
    axis.xaxis.get_major_locator().set_params(integer=True)


def _spread(runs: Sequence[Run], values: Iterable[tuple[int, Vector]]) -> Draw | None:
    known = [(place, one[~np.isnan(one)]) for place, one in values]
    known = [(place, one) for place, one in known if len(one)]
    if not known:
        return None
    places = [place for place, _ in known]
    low, middle, high = np.array([np.quantile(one, (0.25, 0.5, 0.75)) for _, one in known]).T

    def draw(axis: Any) -> None:
        axis.vlines(places, low, high, color=JUDGE, linewidth=2, alpha=0.35)
        axis.plot(places, middle, color=JUDGE, marker="o", markersize=3, linewidth=1)
        _frame(axis, runs)

    return draw


def _line_of(runs: Sequence[Run], points: Sequence[tuple[int, float]]) -> Draw | None:
    if not points:
        return None

    def draw(axis: Any) -> None:
        axis.plot(*zip(*points, strict=True), color=JUDGE, marker="o", markersize=3, linewidth=1)
        axis.set_ylim(0, max(0.05, 1.1 * max(value for _, value in points)))
        _frame(axis, runs)

    return draw


def _agreement(runs: Sequence[Run]) -> Draw | None:
    known = [(i, run.agreement) for i, run in enumerate(runs, 1) if run.agreement and run.agreement.value is not None]
    if not known:
        return None

    def draw(axis: Any) -> None:
        for place, one in known:
            if one.low is not None:
                axis.vlines(place, one.low, one.high, color=JUDGE, linewidth=2, alpha=0.35)
        axis.plot([i for i, _ in known], [one.value for _, one in known], color=JUDGE, marker="o", markersize=3)
        axis.axhline(0, color=INK, linewidth=0.5)
        _frame(axis, runs)

    return draw
