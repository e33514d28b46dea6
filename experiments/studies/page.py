"""A study as one HTML page: what came out in a sentence, the table, Q against calls and against labels, candidates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from judgesmith.agreement.discernment import ALPHA
from judgesmith.errors import OptionError
from judgesmith.experiments.studies.analysis import Analysis, Line
from judgesmith.experiments.studies.tables import colours, heading, markdown, results
from judgesmith.figures import OF_JUDGES, Dot, Dots, Drawing, Estimate, forest, plot
from judgesmith.pages import Figures, Section
from judgesmith.pages import render as render_page
from judgesmith.programs.atomic import write_whole
from judgesmith.tables import counted, interval, number, p_value

CANDIDATES = 2_000  # dots of candidates


def render(analysis: Analysis) -> str:
    """Return the page as HTML."""
    return _page(analysis, [*figures(analysis)])


def _page(analysis: Analysis, drawn: Sequence[tuple[str, Drawing]]) -> str:
    done = any(line.records for line in analysis.lines)
    sections = [
        Section("Results", [results(analysis)] if done else []),
        Section("Figures", [Figures(drawn)]),
        Section(
            "Failed", [[f"{cell}: {reason}" for cell, reason in analysis.failures]]
        ),
        Section("Notes", [analysis.notes]),
    ]
    return render_page(heading(analysis), sections, lead=lead(analysis))


def write(analysis: Analysis, folder: Path) -> list[Path]:
    """Write study.html, tables.md, tables.tex and the page's figure; return their paths.

    The figure is Q against labels, or else of every line, as figure.svg and figure.pdf.

    Raises:
        OptionError: For a folder that cannot be written.
    """
    paths = [folder / "study.html", folder / "tables.md", folder / "tables.tex"]
    drawn = [*figures(analysis)]
    texts = (_page(analysis, drawn), markdown(analysis), latex(analysis))
    main = [
        one
        for about, one in drawn
        if about.startswith(("Q of every line", "Q against labels"))
    ]
    try:
        for path, text in zip(paths, texts, strict=True):
            write_whole(path, text)
        for path in (folder / "figure.svg", folder / "figure.pdf") if main else ():
            main[-1].write(path)
            paths.append(path)
    except OSError as error:
        raise OptionError(
            f"{folder} cannot be written: {error.strerror or error}"
        ) from None
    return paths


def latex(analysis: Analysis) -> str:
    """Return the results as a booktabs table."""
    signs = str.maketrans(
        {"ρ": r"$\rho$", "τ": r"$\tau$", "−": "$-$", "–": "--", "<": "$<$"}
    )
    return str(results(analysis).frame().to_latex(index=False, escape=True)).translate(
        signs
    )


def lead(analysis: Analysis) -> str:
    """Describe which line agrees best with people, its lead over the baseline, and whether that may be chance."""
    done = [line for line in analysis.lines if line.records]
    if not done:
        return "No cell is done yet."
    best = max(
        [line for line in done if line.whole] or done,
        key=lambda line: -math.inf if math.isnan(line.q) else line.q,
    )
    seeds = counted(len(best.records), "seed")
    text = f"{best.name} agrees best with people: Q {number(best.q, 2)} {interval(best.low, best.high)}".rstrip()
    text += f" on held-out rows with {best.mean('labels'):.0f} labels and {best.mean('calls'):,.0f} calls ({seeds})."
    gap = best.baseline
    if gap is None:
        return text + (
            f" No line is better than {best.arm}, the baseline."
            if best.arm == analysis.config.baseline
            else ""
        )
    d = gap.difference
    sure = "beyond chance" if gap.p_holm < ALPHA else "which may be chance"
    return (
        f"{text} That is {d.value:+.2f} {interval(d.low, d.high)} against {gap.other}, {sure} (p = "
        f"{p_value(gap.p_holm)}, corrected by Holm; the best was chosen on these rows, which flatters it)."
    )


def _against(x: str, lines: Sequence[Line]) -> list[Dot]:
    """Return a dot for each line: its Q against a number of its records, from left to right."""
    dots = []
    for line in sorted(lines, key=lambda line: line.mean(x)):
        at = line.mean(x)
        about = f"{line.name}: Q {line.q:.2f}, {at:,.0f}"
        dots.append(Dot(max(1.0, at), line.q, line.low, line.high, 4.0, about))
    return dots


def figures(analysis: Analysis) -> Iterator[tuple[str, Drawing]]:
    """Yield each figure with its caption; none before a cell is done."""
    keys = colours(analysis)
    lines = [line for line in analysis.lines if line.records]
    if lines:
        estimates = [
            Estimate(line.name, line.q, line.low, line.high, colour=keys[line.name])
            for line in lines
        ]
        yield (
            "Q of every line with its 95 % interval; the thin line is 0",
            forest([("", estimates)]),
        )
    done = [line for line in analysis.lines if line.records and not math.isnan(line.q)]
    names = list(dict.fromkeys(line.name for line in done))
    for title, x, words in (
        ("Q against calls", "calls", "calls of fitting"),
        ("Q against labels", "labels", "labels to learn from"),
    ):
        if not done or (x == "labels" and len(analysis.sizes()) < 2):
            continue
        series = []
        for name in names:
            dots = _against(x, [line for line in done if line.name == name])
            series.append(Dots(dots, OF_JUDGES[keys[name] - 1], joined=True, name=name))
        about = f"{title}: means over the seeds with 95 % intervals; the lower axis is logarithmic"
        yield (
            about,
            plot(
                series,
                words,
                "Q on held-out rows",
                line="zero",
                logarithmic=True,
                salt=title,
                width=460,
            ),
        )
    candidates = list(itertools.islice(_candidates(done), CANDIDATES))
    if candidates:
        series = []
        for line in names:
            own = [dot for name, dot in candidates if name == line]
            series.append(Dots(own, OF_JUDGES[keys[line] - 1], faint=True))
        about = (
            "Candidates: a dot is a candidate of a search, at the height of the one that was chosen. Right of the "
            "dotted line, training rows promised more than held-out rows kept"
        )
        axes = (
            "Q on training rows, of every candidate",
            "Q on held-out rows, of the chosen one",
        )
        yield about, plot(series, *axes, line="diagonal", salt="candidates", width=460)


def _candidates(lines: Sequence[Line]) -> Iterator[tuple[str, Dot]]:
    """Yield each candidate's result on training rows, and the chosen one's on held-out rows."""
    for line in lines:
        for record in line.records.values():
            for one in record.get("candidates", ()):
                if None not in (one["q"], record["q"]):
                    yield line.name, Dot(one["q"], record["q"], radius=3.0)
