"""The meta-evaluation as one HTML file: no network, no scripts, every text escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from markupsafe import Markup

from ...optimizers.agreement.correlation import Vector
from ...optimizers.agreement.meta.evaluation import MetaEvaluation, rows_of, text
from ..evaluation.sources import Judged
from ..evaluation.tables import TITLES, cell_text, count, order_lines, p_value, plain_number, table_rows
from ..plain import clean
from .page import INK, JUDGE, LINE, PEOPLE, environment, inline_svg, own_ids

FIGURES = 24  # of a kind in one report
CASES = 12
_STEPS = 40  # distinct values on an axis of a scatter; finer scores share bins, so that ties show
_BIGGEST = 140.0  # points², the area of the largest dot
_LONG = 1_200  # characters of a text


def render(data: Judged, result: MetaEvaluation, notes: Sequence[str], levels: Mapping[str, str]) -> str:
    """The report. `levels`: what to call them."""
    from ... import __version__

    names, entries = table_rows(result)
    how = result.settings
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
            notes=notes,
            reasons=_reasons(result, levels),
            tables=_tables(result, levels),
            charts=_charts(data, result, levels),
            cases=_cases(data),
            version=__version__,
        )
    )


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
        "In points of people's scale: mean absolute error, bias (above 0: lenient), root mean squared error.",
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
        "Spearman correlations with the number of words. Bias: of the judge with the length, given people's score.",
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
    pairs = [(judge, aspect) for judge in data.judges for aspect in data.human if aspect in data.judges[judge]]
    charts = []
    scatters = [_scatter(data, judge, aspect) for judge, aspect in pairs[:FIGURES]]
    charts.append(
        (
            "Judge against people",
            "A dot's area is the number of rows that share the pair of scores; the smallest stand for one or a few. "
            f"Where a side has more than {_STEPS} different scores, they are put into {_STEPS} bins.",
            scatters,
        )
    )
    if len(result.calibration):
        curves = [(f"{j}, {a}", _calibration(data, result, j, a)) for j, a in pairs[:FIGURES]]
        charts.append(
            (
                "Calibration",
                "Mean human score of rows with like predictions; on the line where both share a scale.",
                curves,
            )
        )
    if data.systems is not None and len(set(data.systems)) > 1:
        bars = [(f"{j}, {a}", _systems(data, j, a)) for j, a in pairs[:FIGURES]]
        charts.append(
            ("Systems", "Means of people and judge with 95 % intervals over rows, both as standard scores.", bars)
        )
    shown, number = [], 0
    for title, intro, figures in charts:
        if len(pairs) > FIGURES:
            intro += f" The first {FIGURES} of {len(pairs)} pairs of judge and aspect are drawn."
        drawn = []
        for caption, svg in figures:
            if svg:
                number += 1
                drawn.append({"caption": caption, "svg": Markup(own_ids(svg, number))})  # noqa: S704  # our own figure, whose texts are outlines
        if drawn:
            shown.append((title, intro, drawn))
    return shown


def _both(data: Judged, judge: str, aspect: str) -> tuple[Vector, Vector, Any]:
    x, y = data.judges[judge][aspect], data.human[aspect]
    there = ~(np.isnan(x) | np.isnan(y))
    return x[there], y[there], there


def _scatter(data: Judged, judge: str, aspect: str) -> tuple[str, str]:
    """(caption, figure), the figure "" where there is no pair."""
    x, y, _ = _both(data, judge, aspect)
    if not len(x):
        return f"{judge}, {aspect}", ""
    points, counts = np.unique(np.stack([_steps(y), _steps(x)], axis=1), axis=0, return_counts=True)
    # Neighbours may touch, not hide each other: about 190 points of an axis for its distinct values.
    room = min(_BIGGEST, max(12.0, (1.5 * 190 / max(len(np.unique(points[:, 1])), len(np.unique(points[:, 0])))) ** 2))
    areas = np.maximum(room * counts / counts.max(), 5.0)

    def draw(axes: Any) -> None:
        axes.margins(0.09)
        axes.scatter(points[:, 0], points[:, 1], s=areas, alpha=0.7, linewidths=0, color=JUDGE)
        axes.set_xlabel("people")
        axes.set_ylabel("judge")

    biggest = int(counts.max())
    return f"{judge}, {aspect}: {len(x)} rows, largest dot {biggest} row{'s'[: biggest != 1]}", inline_svg(draw)


def _steps(values: Vector) -> Vector:
    """Scores as they are, or the middles of their bins where there are many different ones."""
    if len(np.unique(values)) <= _STEPS:
        return values
    low, width = values.min(), np.ptp(values) / _STEPS
    return np.asarray(low + (np.minimum(np.floor((values - low) / width), _STEPS - 1) + 0.5) * width)


def _calibration(data: Judged, result: MetaEvaluation, judge: str, aspect: str) -> str:
    table = result.calibration
    table = table[(table["judge"] == judge) & (table["aspect"] == aspect)]
    if not len(table):
        return ""

    def draw(axes: Any) -> None:
        limits = data.scales.get(aspect)
        if limits and table["low"].min() >= limits[0] - 1e-9 and table["high"].max() <= limits[1] + 1e-9:
            axes.plot(limits, limits, color=LINE, linewidth=0.8)
        for stage, group in table.groupby("stage", sort=False):
            dashed = stage == "uncalibrated"
            axes.plot(
                group["predicted"], group["human"], marker="o", markersize=3, color=PEOPLE if dashed else JUDGE,
                linestyle="--" if dashed else "-", label="before calibration" if dashed else "judge",
            )  # fmt: skip
        axes.set_xlabel("judge, mean of the bin")
        axes.set_ylabel("people, mean of the bin")
        if table["stage"].nunique() > 1:
            axes.legend()

    return inline_svg(draw)


def _systems(data: Judged, judge: str, aspect: str) -> str:
    x, y, there = _both(data, judge, aspect)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return ""
    names = np.array(data.systems, dtype=object)[there]
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    systems = sorted(set(names), key=lambda name: float(y[names == name].mean()))[-30:]

    def draw(axes: Any) -> None:
        for shift, values, label, colour in ((0.19, y, "people", PEOPLE), (-0.19, x, "judge", JUDGE)):
            means = [values[names == name].mean() for name in systems]
            halves = [_half(values[names == name]) for name in systems]
            axes.barh(
                np.arange(len(systems)) + shift, means, height=0.34, xerr=halves, label=label, color=colour,
                error_kw={"linewidth": 0.9, "ecolor": INK},
            )  # fmt: skip
        axes.set_yticks(range(len(systems)), [clean(name)[:28] for name in systems])
        axes.set_xlabel("mean, in standard deviations")
        axes.axvline(0, color=LINE, linewidth=0.6)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)

    return inline_svg(draw, 4.6, 1.2 + 0.24 * len(systems))


def _half(values: Vector) -> float:
    n = len(values)
    return float(scipy.stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0


# Disagreements -------------------------------------------------------------------------------------------------------


def _cases(data: Judged) -> list[dict[str, Any]]:
    """The rows of the first judge on which its place differs most from people's."""
    judge = next(iter(data.judges))
    others = list(data.judges)[1:]
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
                (name, plain_number(float(data.judges[name][aspect][i])))
                for name in others[:4]
                if aspect in data.judges[name]
            ]
            found.append(
                {
                    "judge": judge,
                    "aspect": aspect,
                    "id": data.ids[i],
                    "system": data.systems[i] if data.systems else "",
                    "human": plain_number(float(y[k])),
                    "predicted": plain_number(float(x[k])),
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
