"""The meta-evaluation as one HTML file: no network, no scripts, every text escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from markupsafe import Markup

from ..agreement.correlation import Vector
from ..agreement.meta.evaluation import MetaEvaluation, rows_of, text
from ..evaluating.pivot import BEHIND_MEANS, TITLES, Entry, Pivot, count, headline, pivots, plain_number
from ..evaluating.sources import Judged
from ..evaluating.tables import cell_text, order_lines, p_value, table_rows
from .charts import Axis, Point, Series, plot
from .page import environment, number

FIGURES = 24  # of a kind in one report
CASES = 12
SYSTEMS = 40  # in one figure
_STEPS = 20  # distinct values on an axis of a scatter; finer scores share bins, so that ties show
_BIGGEST = 7.0  # pixels, the radius of the largest dot
_LONG = 1_200  # characters of a text


def render(data: Judged, result: MetaEvaluation, notes: Sequence[str], levels: Mapping[str, str]) -> str:
    """The report. `levels`: what to call them."""
    from .. import __version__

    names, entries = table_rows(result)
    how, made = result.settings, pivots(result)
    method = (
        f"{how['confidence']:.0%} intervals ({how['interval']}) over resampled {how['over']}, {how['rounds']} rounds, "
        f"seed {how['seed']}"
        if how["rounds"]
        else "no intervals were asked for"
    )
    return (
        environment()
        .get_template("evaluation.html.j2")
        .render(
            data=data,
            rows=len(data.ids),
            documents=len(set(data.documents)),
            systems=len(set(data.systems or ())),
            method=method,
            titles=[TITLES[name] for name in names],
            entries=[
                _entry(entry, names, levels) | {"first": i > 0 and entry["judge"] != entries[i - 1]["judge"]}
                for i, entry in enumerate(entries)
            ],
            ceiling=_ceiling(result, names, levels),
            headline=headline(result, levels),
            pivots=[_pivot(pivot, levels) for pivot in made],
            main=sum(pivot.coefficient == made[0].coefficient for pivot in made) if made[0].coefficient else len(made),
            behind=BEHIND_MEANS if any(pivot.marked for pivot in made) else "",
            forest=_forest(made[0]),
            notes=notes,
            reasons=_reasons(result, levels),
            tables=_tables(result, levels),
            charts=_charts(data, result, levels),
            cases=_cases(data),
            version=__version__,
        )
    )


def _pivot(pivot: Pivot, levels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "title": pivot.title(levels), "columns": pivot.columns, "failed": any(line.failed for line in pivot.lines),
        "lines": [
            {
                "name": line.name, "rests": line.rests, "failed": "" if line.human else line.failed,
                "human": line.human,
                "cells": [
                    {"value": entry.shown, "interval": entry.interval(2), "best": entry.best} if entry is not None
                    else {"value": "–", "interval": "", "best": False}
                    for entry in line.entries
                ],
            }
            for line in pivot.lines
        ],
    }  # fmt: skip


def _forest(pivot: Pivot) -> dict[str, Any]:
    """The first pivot as intervals on one axis for each column: places in percent of the axis."""
    shown = [entry for line in pivot.lines for entry in line.entries if entry is not None]
    ends = [v for entry in shown for v in (entry.value, entry.low, entry.high) if not np.isnan(v)]
    axis = Axis.of("", [0.0, *ends])

    def at(value: float) -> float:
        return round(100 * axis.place(value), 2)

    def place(entry: Entry, ceiling: Entry | None) -> dict[str, Any]:
        whole = not np.isnan(entry.low)
        return {
            "at": at(entry.value), "low": at(entry.low) if whole else 0,
            "width": round(at(entry.high) - at(entry.low), 2) if whole else 0, "best": entry.best,
            "told": entry.shown, "limits": entry.interval(2),
            "ceiling": at(ceiling.value) if ceiling is not None and not np.isnan(ceiling.value) else None,
        }  # fmt: skip

    people = next((line.entries for line in pivot.lines if line.human), (None,) * len(pivot.columns))
    judges = [line for line in pivot.lines if not line.human]
    groups = []
    for k, column in enumerate(pivot.columns):
        rows = [(line.name, line.entries[k]) for line in judges]
        ceiling = people[k]
        groups.append(
            {
                "title": column,
                "ceiling": f"{ceiling.shown} {ceiling.interval(2)}".rstrip() if ceiling is not None else "",
                "rows": [(name, place(entry, ceiling)) for name, entry in rows if entry and not np.isnan(entry.value)],
            }
        )
    ticks = [(f"{tick:.4g}" if abs(tick) > 1e-12 else "0", at(tick)) for tick in axis.ticks()]
    return {"groups": [group for group in groups if group["rows"]], "ticks": ticks, "zero": at(0.0)}


def _entry(entry: Mapping[str, Any], names: Sequence[str], levels: Mapping[str, str]) -> dict[str, Any]:
    skipped = f", {entry['skipped']} skipped" if entry["skipped"] and entry["level"] == "sample" else ""
    cells = []
    for name in names:
        value, interval = _split(cell_text(entry["cells"].get(name)))
        cells.append({"value": value, "interval": interval})
    return {
        "judge": entry["judge"],
        "aspect": entry["aspect"],
        "level": levels[entry["level"]],
        "rests": count(entry["n"], entry["level"]) + skipped,
        "failed": entry["failed"],
        "cells": cells,
    }


def _ceiling(result: MetaEvaluation, names: Sequence[str], levels: Mapping[str, str]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows_of(result.ceiling):
        entry = found.setdefault((row["aspect"], row["level"]), {"raters": row["raters"], "alpha": row["alpha"]})
        entry[row["coefficient"]] = cell_text(row)
    return [
        {
            "aspect": aspect,
            "level": levels[level],
            "raters": entry["raters"],
            "alpha": plain_number(entry["alpha"], 2),
            "cells": [dict(zip(("value", "interval"), _split(entry.get(name, "")), strict=True)) for name in names],
        }
        for (aspect, level), entry in found.items()
    ]


def _split(cell: str) -> tuple[str, str]:
    """A number and its interval."""
    value, _, interval = cell.partition(" ")
    return value, interval


def _reasons(result: MetaEvaluation, levels: Mapping[str, str]) -> list[str]:
    return list(
        dict.fromkeys(
            f"{row['judge']}, {row['aspect']}, {levels[row['level']]}, {TITLES[row['coefficient']]}: {row['reason']}"
            for row in rows_of(result.agreement)
            if text(row["reason"])
        )
    )


# Tables --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the report; the first `texts` columns hold words, the others numbers."""

    title: str
    about: str
    texts: int
    names: Sequence[str]
    rows: list[dict[str, Any]]


def _tables(result: MetaEvaluation, levels: Mapping[str, str]) -> list[tuple[str, str, dict[str, Any]]]:
    """(title, introduction, {names, rows, texts}) of the tables that have rows."""
    makers = (_differences, _on_scale, _decisions, _length, _order, _widths)
    return [
        (table.title, table.about, {"names": table.names, "rows": table.rows, "texts": table.texts})
        for table in (make(result, levels) for make in makers)
        if table.rows
    ]


def _differences(result: MetaEvaluation, levels: Mapping[str, str]) -> _Table:
    return _Table(
        "Is one judge better?",
        "Differences of the first judge less the second, and p-values corrected by Holm over the pairs of judges.",
        4,
        ["judge", "less judge", "aspect", "level", "difference", "p permutation", "p bootstrap", "p Williams (r)"],
        [
            _row(
                row["a"], row["b"], row["aspect"], levels[row["level"]],
                cell_text(row | {"value": row["difference"]}),
                *(p_value(row[f"p_{test}_holm"]) for test in ("permutation", "bootstrap", "williams")),
            )
            for row in rows_of(result.comparisons)
        ],
    )  # fmt: skip


def _on_scale(result: MetaEvaluation, levels: Mapping[str, str]) -> _Table:
    return _Table(
        "On the scale itself",
        "In points of the human ratings' scale: mean absolute error, bias (above 0: lenient), root mean squared error.",
        2,
        ["judge", "aspect", "rows", "mean error", "bias", "root mean square"],
        [
            _measured(row, f"{row['judge']} {row['stage']}".strip(), row["n"], names=("mae", "bias", "rmse"))
            for row in rows_of(result.scale)
        ],
    )


def _decisions(result: MetaEvaluation, levels: Mapping[str, str]) -> _Table:
    names = ("precision", "recall", "accuracy", "kappa")
    return _Table(
        "Decisions at a threshold",
        "Accepting what scores at least the threshold; kappa is 0 where the judge agrees as by chance.",
        2,
        ["judge", "aspect", "threshold", *names],
        [_measured(row, row["judge"], f"{row['threshold']:g}", names=names) for row in rows_of(result.decisions)],
    )


def _length(result: MetaEvaluation, levels: Mapping[str, str]) -> _Table:
    names = ("judge_length", "human_length", "bias", "agreement")
    return _Table(
        "Length",
        "Spearman correlations with the number of words. Bias: of the judge with the length, given the human rating.",
        2,
        ["judge", "aspect", "judge and length", "people and length", "bias", "agreement given length"],
        [
            _row(row["judge"], row["aspect"], *(plain_number(row[name], 2) for name in names))
            for row in rows_of(result.length)
        ],
    )


def _order(result: MetaEvaluation, levels: Mapping[str, str]) -> _Table:
    groups = result.order.groupby(["judge", "aspect"], sort=False) if len(result.order) else ()
    rows = [_row(judge, aspect, line) for (judge, aspect), found in groups for line in order_lines(rows_of(found))]
    return _Table("Order", "Is an output favoured for where it was shown?", 3, ["judge", "aspect", "what"], rows)


def _widths(result: MetaEvaluation, levels: Mapping[str, str]) -> _Table:
    sizes = list(dict.fromkeys(row["documents"] for row in rows_of(result.widths)))
    found: dict[tuple[str, ...], dict[int, str]] = {}
    for row in rows_of(result.widths):
        key = (row["judge"], row["aspect"], levels[row["level"]], TITLES[row["coefficient"]])
        width = plain_number(row["width"], 2) + ("*" if row["extrapolated"] else "")
        found.setdefault(key, {})[row["documents"]] = width
    return _Table(
        "How many labels?",
        "Expected width of the interval with this many labelled documents; * extrapolated.",
        4,
        ["judge", "aspect", "level", "coefficient", *(f"{size} documents" for size in sizes)],
        [_row(*key, *(widths.get(size, "–") for size in sizes)) for key, widths in found.items()],
    )


def _row(*cells: Any, reason: str = "") -> dict[str, Any]:
    """A row of a table; `reason` stands in place of the cells that are not there."""
    return {"cells": cells, "reason": reason}


def _measured(row: Mapping[str, Any], judge: str, about: Any, *, names: Sequence[str]) -> dict[str, Any]:
    """Estimates with their intervals, or the reason why there are none."""
    reason = text(row["reason"])
    return _row(judge, row["aspect"], about, *(() if reason else (_estimate(row, n) for n in names)), reason=reason)


def _estimate(row: Mapping[str, Any], name: str) -> str:
    return cell_text({"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]})


# Figures -------------------------------------------------------------------------------------------------------------


def _charts(data: Judged, result: MetaEvaluation, levels: Mapping[str, str]) -> list[Any]:
    """(title, introduction, [{caption, svg}], whether it is folded away)."""
    pairs = [(judge, aspect) for judge in data.judges for aspect in data.human if aspect in data.judges[judge]]
    charts: list[tuple[str, str, list[tuple[str, Markup]], bool]] = []
    if len(result.calibration):
        charts.append(
            (
                "Calibration",
                "Mean human rating of rows with like scores, in bins of equally many rows where scores allow; vertical "
                "lines: 95 % intervals of that mean. On the dotted line the judge's score is the human mean. "
                "A dot's area is its number of rows.",
                [_calibration(data, result, judge, aspect) for judge, aspect in pairs[:FIGURES]],
                False,
            )
        )
    charts.append(
        (
            "Judge against people",
            "A dot's area is the number of rows that share the pair of scores; the smallest stand for one or a few. "
            f"Where a side has more than {_STEPS} different scores, they are put into {_STEPS} bins.",
            [_scatter(data, judge, aspect) for judge, aspect in pairs[:FIGURES]],
            True,
        )
    )
    if data.systems is not None and len(set(data.systems)) > 1:
        charts.append(
            (
                "Systems",
                "Each dot is a system: its mean human rating and its mean score by the judge, both as standard scores. "
                "Above the dotted line the judge favours the system; below, people do.",
                [_systems(data, judge, aspect) for judge, aspect in pairs[:FIGURES]],
                True,
            )
        )
    shown = []
    for title, intro, figures, folded in charts:
        if len(pairs) > FIGURES:
            intro += f" The first {FIGURES} of {len(pairs)} pairs of judge and aspect are drawn."
        drawn = [{"caption": caption, "svg": svg} for caption, svg in figures if svg]
        if drawn:
            shown.append((title, intro, drawn, folded))
    return shown


def _both(data: Judged, judge: str, aspect: str) -> tuple[Vector, Vector, Any]:
    x, y = data.judges[judge][aspect], data.human[aspect]
    there = ~(np.isnan(x) | np.isnan(y))
    return x[there], y[there], there


def _scatter(data: Judged, judge: str, aspect: str) -> tuple[str, Markup]:
    """(caption, figure), the figure empty where there is no pair."""
    x, y, _ = _both(data, judge, aspect)
    if not len(x):
        return f"{judge}, {aspect}", Markup()
    points, counts = np.unique(np.stack([_steps(y), _steps(x)], axis=1), axis=0, return_counts=True)
    # Neighbours may touch, not hide each other: about 240 pixels of an axis for its distinct values.
    room = min(_BIGGEST, max(2.0, 150 / max(len(np.unique(points[:, 1])), len(np.unique(points[:, 0])))))
    radii = np.maximum(room * np.sqrt(counts / counts.max()), 1.2)
    dots = [Point(float(a), float(b), radius=float(r)) for (a, b), r in zip(points, radii, strict=True)]
    biggest = int(counts.max())
    axes = (Axis.of("people", points[:, 0]), Axis.of("judge", points[:, 1]))
    caption = f"{judge}, {aspect}: {len(x)} rows, largest dot {biggest} row{'s'[: biggest != 1]}"
    return caption, plot([Series(dots, faint=True)], *axes, height=270)


def _steps(values: Vector) -> Vector:
    """Scores as they are, or the middles of their bins where there are many different ones."""
    if len(np.unique(values)) <= _STEPS:
        return values
    low, width = values.min(), np.ptp(values) / _STEPS
    return np.asarray(low + (np.minimum(np.floor((values - low) / width), _STEPS - 1) + 0.5) * width)


def _calibration(data: Judged, result: MetaEvaluation, judge: str, aspect: str) -> tuple[str, Markup]:
    table = result.calibration
    table = table[(table["judge"] == judge) & (table["aspect"] == aspect)]
    if not len(table):
        return "", Markup()
    x, y, _ = _both(data, judge, aspect)
    lines, told = [], list[int]()
    most = table["n"].max()
    for stage, group in table.groupby("stage", sort=False):
        before = stage == "uncalibrated"
        dots = []
        for row in rows_of(group):
            inside = y[(x >= row["low"] - 1e-9) & (x <= row["high"] + 1e-9)] if not before else y[:0]
            half = _half(inside) if len(inside) == row["n"] else math.nan
            radius = max(2.0, 6.0 * math.sqrt(row["n"] / most))
            dots.append(
                Point(
                    row["predicted"], row["human"], row["human"] - half, row["human"] + half, radius, f"n = {row['n']}"
                )
            )
        colour = "var(--people)" if before else "var(--accent)"
        lines.append(Series(dots, colour, joined=True, dashed=before))
        if not before:
            told = [int(row["n"]) for row in rows_of(group)]
    ends = [v for one in lines for p in one.points for v in (p.y, p.low, p.high)]
    axes = (
        Axis.of("judge, mean of the bin", [p.x for one in lines for p in one.points]),
        Axis.of("people, mean of the bin", ends),
    )
    sizes = told[0] if len(told) == 1 else f"{min(told)} to {max(told)}" if min(told) < max(told) else f"{told[0]} each"
    caption = f"{judge}, {aspect}: {len(told)} bin{'s'[: len(told) != 1]}, n = {sizes}"
    caption += "; dashed: before calibration" if len(lines) > 1 else ""
    return caption, plot(lines, *axes, line="diagonal")


def _systems(data: Judged, judge: str, aspect: str) -> tuple[str, Markup]:
    x, y, there = _both(data, judge, aspect)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return "", Markup()
    names = np.array(data.systems, dtype=object)[there]
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    dots = []
    for name in sorted(set(names), key=lambda name: float(y[names == name].mean()))[-SYSTEMS:]:
        mean, half = float(x[names == name].mean()), _half(x[names == name])
        dots.append(Point(float(y[names == name].mean()), mean, mean - half, mean + half, 4.0, str(name)))
    axes = (Axis.of("people", [p.x for p in dots]), Axis.of("judge", [v for p in dots for v in (p.y, p.low, p.high)]))
    return f"{judge}, {aspect}: {len(dots)} systems", plot([Series(dots)], *axes, line="diagonal")


def _half(values: Vector) -> float:
    """Half of a 95 % interval of the mean, 0 for a single value."""
    n = len(values)
    return float(scipy.stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0


# Disagreements -------------------------------------------------------------------------------------------------------


def _cases(data: Judged) -> list[dict[str, Any]]:
    """The rows of one judge on which its place differs most from people's: of the first that explains, else the
    first."""
    judge = next((name for name in data.judges if data.explanations.get(name)), next(iter(data.judges)))
    others = [name for name in data.judges if name != judge]
    found = []
    for aspect in data.human:
        if aspect not in data.judges[judge]:
            continue
        x, y, there = _both(data, judge, aspect)
        if len(x) < 2:
            continue
        places = [(scipy.stats.rankdata(v) - 1) / (len(v) - 1) * 100 for v in (x, y)]
        gap = np.abs(places[0] - places[1])
        rows = np.flatnonzero(there)
        for k in np.argsort(-gap, kind="stable")[: max(2, CASES // len(data.human))]:
            i = int(rows[k])
            said = [(name, data.explanations[name][i]) for name in (judge, *others) if name in data.explanations]
            scores = [
                (name, number(float(data.judges[name][aspect][i])))
                for name in others[:4]
                if aspect in data.judges[name]
            ]
            found.append(
                {
                    "judge": judge,
                    "aspect": aspect,
                    "id": data.ids[i],
                    "system": data.systems[i] if data.systems else "",
                    "human": number(float(y[k])),
                    "predicted": number(float(x[k])),
                    "others": scores,
                    "human_place": f"{places[1][k]:.0f}",
                    "predicted_place": f"{places[0][k]:.0f}",
                    "output": _short(data.outputs[i]),
                    "explanations": [(name, _short(words)) for name, words in said if words],
                }
            )
    return found


def _short(words: str) -> str:
    return words if len(words) <= _LONG else words[:_LONG] + "…"
