"""The page of `judgesmith check -o report.html`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.meta.evaluation import MetaEvaluation, rows_of
from judgesmith.errors import OptionError
from judgesmith.evaluating.answer import Answer
from judgesmith.evaluating.decided import LISTED, Decided
from judgesmith.evaluating.pivot import Pivot, behind_means, headline, pivots
from judgesmith.evaluating.sources import Judged
from judgesmith.evaluating.tables import pivot_table, tables_beside, undefined
from judgesmith.figures import JUDGE, Dot, Dots, Drawing, Estimate, forest, plot
from judgesmith.pages import Figures, Fold, Section
from judgesmith.pages import render as render_page
from judgesmith.tables import Table

FIGURES = 24  # of a kind in one page
SYSTEMS = 40  # in one figure
_SHOWN = 6  # figures of a kind that are not folded away


def render(
    data: Judged,
    result: MetaEvaluation,
    notes: Sequence[str],
    decided: Sequence[Decided] = (),
    beside: Sequence[tuple[str, Table]] = (),
    answers: Sequence[Answer] = (),
) -> str:
    """Return the page. beside: further tables, with their introductions. answers: the result, else the headline."""
    tables = pivots(result)
    first, *others = map(pivot_table, tables)
    folds = [_fold(table.title, table) for table in others]
    # Beside the first table stand those of its coefficient.
    main = sum(pivot.coefficient == tables[0].coefficient for pivot in tables) - 1
    agreement = [first, *folds[:main], _legend(tables, result)]
    agreement += _lines(notes, "note", " on these numbers")
    sections = []
    for decisions in decided:
        parts: list[Any] = []
        for about, table in decisions.tables(LISTED):
            if len(table):
                parts += [about, table] if about else [table]
        sections.append(Section(f"Decisions: {decisions.name}", parts))
    sections.append(Section("Agreement", agreement))
    sections.append(Section("Intervals", _forest(tables[0])))
    sections += _charts(data, result)
    reasons = _lines(undefined(result), "undefined number")
    sections.append(Section("Every number", [*folds[main:], *reasons]))
    for about, table in [*tables_beside(result), *beside]:
        title = table.title
        fold = _fold(_counted(len(table), "row"), table, about)
        sections.append(Section(title, [fold]))
    return render_page(
        f"Agreement with the human ratings: {data.origin}",
        sections,
        lead="\n".join(map(str, answers)) or headline(result),
        about=[
            *(" ".join(one.facts) for one in answers if one.facts),
            f"{_size(data)} · {_method(result)}",
        ],
        style="figcaption { max-width: 19rem; }",
    )


def _size(data: Judged) -> str:
    """Return the numbers of rows, documents and systems."""
    text = f"{len(data.rows)} rows, {len(set(data.documents))} documents"
    systems = len(set(data.systems or ()))
    return f"{text}, {systems} systems" if systems else text


def _method(result: MetaEvaluation) -> str:
    """Return the kind of the intervals."""
    settings = result.settings
    if not settings["rounds"]:
        return "no intervals were asked for"
    text = (
        f"{settings['confidence']:.0%} intervals over resampled documents, {settings['rounds']} rounds, "
        f"seed {settings['seed']}"
    )
    if settings["new_systems"]:
        text += "; those of correlations, and tests, speak of other systems, too"
    return text


def _legend(tables: Sequence[Pivot], result: MetaEvaluation) -> str:
    marked = any(pivot.marked for pivot in tables)
    behind = f" {behind_means(result)}." if marked else ""
    return (
        f"Bold: the best of its column.{behind} Human ceiling: one rater with the mean of the others, where there are "
        "several."
    )


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _lines(lines: Sequence[str], kind: str, more: str = "") -> list[Fold]:
    if not lines:
        return []
    return [Fold(_counted(len(lines), kind) + more, [list(lines)])]


def _fold(summary: str, table: Table, about: str = "") -> Fold:
    table.title = ""  # the summary, or the section, has it
    return Fold(summary, [about, table] if about else [table])


def _forest(pivot: Pivot) -> list[Any]:
    """Return the first pivot as intervals on one axis, a group for each column."""
    ceilings = next((line.entries for line in pivot.lines if line.human), None)
    groups = []
    bounded = False
    for k, column in enumerate(pivot.columns):
        ceiling = None if ceilings is None else ceilings[k]
        other = math.nan if ceiling is None else ceiling.value
        estimates = []
        for line in pivot.lines:
            cell: Any = line.entries[k]
            if cell is not None and not line.beside:
                estimates.append(
                    Estimate(line.name, cell.value, cell.low, cell.high, other)
                )
                bounded = bounded or not math.isnan(other)
        groups.append((column, estimates))
    ring = ", a ring the human ceiling" if bounded else ""
    return [
        f"{pivot.title()}: a line is the interval, a dot the value{ring}. The thin line is 0; the numbers stand in the "
        "table above.",
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
            if more:
                folded = [Fold(f"{len(more)} more figures", [Figures(more)])]
            else:
                folded = []
            yield Section(title, [about, Figures(drawn[:_SHOWN]), *folded])


def _both(data: Judged, judge: str, aspect: str) -> tuple[Vector, Vector, Any]:
    x = data.judges[judge][aspect]
    y = data.human[aspect]
    present = ~(np.isnan(x) | np.isnan(y))
    return x[present], y[present], present


def _calibration(
    data: Judged, result: MetaEvaluation, judge: str, aspect: str
) -> Figure | None:
    table = result.calibration
    if len(table):
        table = table[(table["judge"] == judge) & (table["aspect"] == aspect)]
    if not len(table):
        return None
    x, y, _ = _both(data, judge, aspect)
    bins = rows_of(table)
    sizes = table["n"].tolist()
    dots = []
    for row in bins:
        inside = (x >= row["low"] - 1e-9) & (x <= row["high"] + 1e-9)
        half = _half(y[inside])
        mean = row["human"]
        radius = max(2.0, 6.0 * math.sqrt(row["n"] / max(sizes)))
        # Student's t knows no end of a scale.
        low = max(mean - half, min(y))
        high = min(mean + half, max(y))
        dots.append(Dot(row["predicted"], mean, low, high, radius, f"n = {row['n']}"))
    text = f"{min(sizes)} to {max(sizes)}"
    if min(sizes) == max(sizes):
        text = f"{sizes[0]} each" if len(sizes) > 1 else f"{sizes[0]}"
    caption = f"{judge}, {aspect}: {_counted(len(sizes), 'bin')}, n = {text}"
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
    x = (x - x.mean()) / x.std()
    y = (y - y.mean()) / y.std()
    dots = []
    for name in sorted(set(names), key=lambda name: float(y[names == name].mean()))[
        -SYSTEMS:
    ]:
        mean = float(x[names == name].mean())
        half = _half(x[names == name])
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
    if n > 1:
        return float(scipy.stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return 0.0
