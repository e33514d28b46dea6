"""The page of `judgesmith evaluate -o report.html`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from ..agreement.correlation import Vector
from ..agreement.meta.evaluation import MetaEvaluation, rows_of
from ..errors import OptionError
from ..figures import JUDGE, Dot, Dots, Drawing, Estimate, forest, plot
from ..pages import Figures, Fold, Section
from ..pages import render as render_page
from ..tables import Table
from .decided import LISTED, Decided
from .pivot import Pivot, behind_means, headline, pivots
from .sources import Judged
from .tables import pivot_table, tables_beside, undefined

FIGURES = 24  # of a kind in one page
SYSTEMS = 40  # in one figure
_SHOWN = 6  # figures of a kind that are not folded away


def render(
    data: Judged,
    result: MetaEvaluation,
    notes: Sequence[str],
    decided: Sequence[Decided] = (),
    beside: Sequence[tuple[str, Table]] = (),
) -> str:
    """Return the page. beside: further tables, with their introductions."""
    settings, tables = result.settings, pivots(result)
    method = "no intervals were asked for"
    if settings["rounds"]:
        method = (
            f"{settings['confidence']:.0%} intervals over resampled documents, "
            f"{settings['rounds']} rounds, seed {settings['seed']}"
            + "; those of correlations, and tests, speak of other systems, too"
            * settings["new_systems"]
        )
    systems = len(set(data.systems or ()))
    counted = (
        f"{len(data.rows)} rows, {len(set(data.documents))} documents"
        + f", {systems} systems" * bool(systems)
    )
    first, *others = map(pivot_table, tables)
    folds = [_fold(table.title, table) for table in others]
    main = (
        sum(pivot.coefficient == tables[0].coefficient for pivot in tables) - 1
    )  # those of the headline's coefficient
    behind = (
        f" {behind_means(result)}." if any(pivot.marked for pivot in tables) else ""
    )
    legend = f"Bold: the best of its column.{behind} Human ceiling: one rater with the mean of the others, where there "
    legend += "are several."
    reasons = undefined(result)
    sections = [
        Section(
            "Agreement",
            [first, *folds[:main], legend, *_lines(notes, "note", " on these numbers")],
        ),
        *(
            Section(
                f"Decisions: {one.name}",
                [
                    part
                    for about, table in one.tables(LISTED)
                    if len(table)
                    for part in (about, table)
                    if part
                ],
            )
            for one in decided
        ),
        Section("Intervals", _forest(tables[0])),
        *_charts(data, result),
        Section("Every number", [*folds[main:], *_lines(reasons, "undefined number")]),
        *(
            Section(
                table.title,
                [_fold(f"{len(table)} row{'s'[: len(table) != 1]}", table, about)],
            )
            for about, table in [*tables_beside(result), *beside]
        ),
    ]
    return render_page(
        f"Agreement with the human ratings: {data.origin}",
        sections,
        lead=headline(result),
        about=[f"{counted} · {method}"],
        style="figcaption { max-width: 19rem; }",
    )


def _lines(lines: Sequence[str], kind: str, more: str = "") -> list[Fold]:
    return (
        [Fold(f"{len(lines)} {kind}{'s'[: len(lines) != 1]}{more}", [list(lines)])]
        if lines
        else []
    )


def _fold(summary: str, table: Table, about: str = "") -> Fold:
    table.title = ""  # the summary, or the section, says it
    return Fold(summary, [*([about] if about else []), table])


def _forest(pivot: Pivot) -> list[Any]:
    """Return the first pivot as intervals on one axis, a group for each column."""
    ceilings = next(
        (line.entries for line in pivot.lines if line.human),
        (None,) * len(pivot.columns),
    )
    groups = []
    for k, (column, ceiling) in enumerate(zip(pivot.columns, ceilings, strict=True)):
        other = math.nan if ceiling is None else ceiling.value
        entries: list[tuple[str, Any]] = [
            (line.name, line.entries[k]) for line in pivot.lines if not line.beside
        ]
        groups.append(
            (
                column,
                [
                    Estimate(name, e.value, e.low, e.high, other)
                    for name, e in entries
                    if e is not None
                ],
            )
        )
    bounded = any(
        not math.isnan(one.other) for _, estimates in groups for one in estimates
    )
    about = f"{pivot.title()}: a line is the interval, a dot the value{', a ring the human ceiling' * bounded}. "
    return [
        f"{about}The thin line is 0; the numbers stand in the table above.",
        Figures([(f"Intervals: {pivot.title()}", forest(groups))]),
    ]


def write_figures(folder: Path, data: Judged, result: MetaEvaluation) -> list[Path]:
    """Return every figure of the page as SVG and as PDF.

    Raises:
        OptionError: If the folder cannot be written.
    """
    written = list[Path]()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for section in (
            Section("", _forest(pivots(result)[0])),
            *_charts(data, result),
        ):
            parts = [
                one
                for part in section.parts
                for one in (part.parts if isinstance(part, Fold) else [part])
            ]
            for caption, drawn in (
                figure
                for part in parts
                if isinstance(part, Figures)
                for figure in part.figures
            ):
                words = f"{section.title} {caption.split(':')[0]}".lower()
                name = f"{len(written) // 2 + 1:02}-{re.sub('[^a-z0-9]+', '-', words).strip('-')[:60]}"
                for kind in ("svg", "pdf"):
                    written.append(folder / f"{name}.{kind}")
                    drawn.write(written[-1])  # type: ignore[attr-defined]
    except OSError as error:
        raise OptionError(
            f"--figures {folder} cannot be written: {error.strerror or error}"
        ) from None
    return written


# Figures -------------------------------------------------------------------------------------------------------------

Figure = tuple[str, Drawing]


def _charts(data: Judged, result: MetaEvaluation) -> Iterator[Section]:
    """Yield figures of every judge and aspect; those beyond the first few are folded away."""
    pairs = [
        (judge, aspect)
        for judge in data.judges
        for aspect in data.human
        if aspect in data.judges[judge]
    ]
    kinds: list[tuple[str, Callable[[str, str], Figure | None], str]] = [
        (
            "Calibration",
            lambda *pair: _calibration(data, result, *pair),
            "Mean human rating of rows with like scores, in bins of about equally many rows; vertical lines: "
            "95 % intervals of that mean. On the dotted line the judge's score is the human mean. A dot's area is its "
            "number of rows.",
        ),
        (
            "Systems",
            lambda *pair: _systems(data, *pair),
            "Each dot is a system: its mean human rating and mean score by the judge, both as standard scores. Above "
            "the dotted line the judge favours the system; below, people do.",
        ),
    ]
    for title, make, about in kinds:
        if len(pairs) > FIGURES:
            about += f" The first {FIGURES} of {len(pairs)} pairs of judge and aspect are drawn."
        if drawn := [
            figure for pair in pairs[:FIGURES] if (figure := make(*pair)) is not None
        ]:
            more = drawn[_SHOWN:]
            folded = (
                [Fold(f"{len(more)} more figures", [Figures(more)])] if more else []
            )
            yield Section(title, [about, Figures(drawn[:_SHOWN]), *folded])


def _both(data: Judged, judge: str, aspect: str) -> tuple[Vector, Vector, Any]:
    x, y = data.judges[judge][aspect], data.human[aspect]
    present = ~(np.isnan(x) | np.isnan(y))
    return x[present], y[present], present


def _calibration(
    data: Judged, result: MetaEvaluation, judge: str, aspect: str
) -> Figure | None:
    table = result.calibration
    if not len(table) or not len(
        table := table[(table["judge"] == judge) & (table["aspect"] == aspect)]
    ):
        return None
    x, y, _ = _both(data, judge, aspect)
    bins, sizes = rows_of(table), table["n"].tolist()
    dots = []
    for row in bins:
        half = _half(y[(x >= row["low"] - 1e-9) & (x <= row["high"] + 1e-9)])
        radius, mean = max(2.0, 6.0 * math.sqrt(row["n"] / max(sizes))), row["human"]
        low, high = (
            max(mean - half, min(y)),
            min(mean + half, max(y)),
        )  # Student's t knows no end of a scale
        dots.append(Dot(row["predicted"], mean, low, high, radius, f"n = {row['n']}"))
    text = (
        f"{min(sizes)} to {max(sizes)}"
        if min(sizes) < max(sizes)
        else f"{sizes[0]}{' each' * (len(sizes) > 1)}"
    )
    caption = f"{judge}, {aspect}: {len(sizes)} bin{'s'[: len(sizes) != 1]}, n = {text}"
    axes = ("judge, mean of the bin", "people, mean of the bin")
    return caption, plot(
        [Dots(dots, JUDGE, joined=True)],
        *axes,
        line="diagonal",
        salt=f"calibration {judge} {aspect}",
    )


def _systems(data: Judged, judge: str, aspect: str) -> Figure | None:
    x, y, present = _both(data, judge, aspect)
    if (
        len(set(data.systems or ())) < 2
        or len(x) < 3
        or np.ptp(x) == 0
        or np.ptp(y) == 0
    ):
        return None
    names = np.array(data.systems, dtype=object)[present]
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    dots = []
    for name in sorted(set(names), key=lambda name: float(y[names == name].mean()))[
        -SYSTEMS:
    ]:
        mean, half = float(x[names == name].mean()), _half(x[names == name])
        dots.append(
            Dot(
                float(y[names == name].mean()),
                mean,
                mean - half,
                mean + half,
                4.0,
                str(name),
            )
        )
    caption = f"{judge}, {aspect}: {len(dots)} systems"
    return caption, plot(
        [Dots(dots)],
        "people",
        "judge",
        line="diagonal",
        salt=f"systems {judge} {aspect}",
    )


def _half(values: Vector) -> float:
    """Return half the width of a 95 % interval of the mean; 0 for a single value."""
    n = len(values)
    return (
        float(scipy.stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
        if n > 1
        else 0.0
    )
