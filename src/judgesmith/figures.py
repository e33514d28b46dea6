"""Figures: one style of matplotlib, inside pages and as files.

A figure in a page is inline SVG in the page's own colours: it loads nothing, follows light and dark, and its texts are
escaped. The figure around it has the words for those who do not see it.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from markupsafe import Markup

from judgesmith.programs.atomic import write_whole
from judgesmith.tables import clean, escaped, shortened

#: Colours that people who cannot tell red from green tell apart, also in grey; `--judge1` to `--judge6` of a page.
SERIES = ("#0067a3", "#c4520a", "#00755a", "#a3447b", "#806000", "#5b5b66")
#: A page's colours differ between its light and its dark form: a figure is drawn in names that stand for them, and in a
#: file in those of paper.
OF_PAGE = (
    "currentColor",
    "var(--accent)",
    "var(--people)",
    "var(--dim)",
    "var(--line)",
    *(f"var(--judge{k})" for k in range(1, len(SERIES) + 1)),
)
ON_PAPER = ("#1a1a1a", "#1f5fa8", "#6d6d6d", "#565656", "#d5d5d5", *SERIES)
INK, JUDGE, PEOPLE, DIM, LINE, *OF_JUDGES = (
    f"judgesmith {k}" for k in range(len(OF_PAGE))
)
#: What a page does without: texts are in its own font, and nothing is drawn outside the axes.
_SLIM = [
    (re.compile(pattern, re.DOTALL), by)
    for pattern, by in (
        (
            r"<metadata>.*?</metadata>|<!--.*?-->|<defs>\s*<(?:style|clipPath).*?</defs>",
            "",
        ),
        (
            r' clip-path="[^"]*"| id="(?![mCh][0-9a-f]{9,}|dot-)[^"]*"| transform="rotate\(-0 [^"]*"',
            "",
        ),
        (
            r'font-(?:size|family): [^;"]*; |stroke-line(?:cap|join): \w+;? ?|; (?=")',
            "",
        ),
        (r"\s*\n\s*", " "),
        (r"> <", "><"),
        (r"<g/>", ""),
    )
]


class Drawing(Markup):
    """A figure of a page, which can be written to a file, too. place: what it draws on axes, and their size."""

    place: tuple[Callable[[Any], None], int, int]

    def write(self, path: Path) -> None:
        """Write the figure as SVG or PDF by the file's suffix, in colours for paper.

        The same numbers give the same file, whole or not at all.

        Raises:
            OSError: If it cannot be written.
        """
        kind = path.suffix.lower().lstrip(".")
        buffer = io.BytesIO()
        with _colours(ON_PAPER), _style({"pdf.fonttype": 42}):
            drawn = _figure(*self.place)
            drawn.savefig(
                buffer,
                format=kind,
                metadata={"Date" if kind == "svg" else "CreationDate": None},
            )
        write_whole(path, buffer.getvalue())


@contextmanager
def _style(more: Mapping[str, Any]) -> Iterator[None]:
    """Set the style of figures while they are drawn.

    more: further settings of matplotlib.
    """
    from matplotlib import rc_context

    settings = {
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.edgecolor": DIM,
        "axes.labelcolor": INK,
        "text.color": INK,
        "xtick.color": DIM,
        "ytick.color": DIM,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "grid.color": LINE,
        "grid.linewidth": 0.6,
        "font.size": 11,
        "axes.labelsize": 11,
        "xtick.labelsize": 11,
        "ytick.labelsize": 11,
        "legend.fontsize": 9,
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        "lines.markersize": 4.5,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "xtick.minor.size": 0,
        "svg.hashsalt": "judgesmith",
        "text.usetex": False,
        "text.parse_math": False,
        "figure.constrained_layout.use": False,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "font.family": "sans-serif",
    }
    with rc_context(cast(Any, {**settings, **more})):
        yield


@contextmanager
def _colours(values: Sequence[str]) -> Iterator[None]:
    """Set the meaning of colour names for the block."""
    from matplotlib.colors import get_named_colors_mapping

    names = get_named_colors_mapping()
    for name, value in zip(
        (INK, JUDGE, PEOPLE, DIM, LINE, *OF_JUDGES), values, strict=True
    ):
        names[name] = value
    yield


def _figure(draw: Callable[[Any], None], width: int, height: int) -> Any:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 72, height / 72))
    FigureCanvasSVG(figure)
    draw(
        figure.add_axes(
            (48 / width, 42 / height, 1 - 60 / width, max(0.1, 1 - 52 / height))
        )
    )
    return figure


def svg(
    draw: Callable[[Any], None],
    width: int,
    height: int,
    *,
    salt: str,
    titles: Sequence[str] = (),
) -> Drawing:
    """Return a figure of `width` times `height` pixels for a page.

    draw: draws on the axes. salt: tells the figure from the others of its page. titles: tooltips of the artists with
    the ids `dot-0`, `dot-1` and so on.
    """
    style = {"svg.fonttype": "none", "svg.hashsalt": salt}
    with (
        _colours([f"#0102{k:02x}" for k in range(len(OF_PAGE))]),
        _style(style),
        warnings.catch_warnings(),
    ):
        figure = _figure(draw, width, height)
        buffer = io.StringIO()
        figure.patch.set_visible(False)
        figure.axes[0].patch.set_visible(False)
        warnings.filterwarnings(
            "ignore", "Glyph"
        )  # the reader's fonts have what ours lack
        figure.savefig(
            buffer,
            format="svg",
            metadata={"Date": None, "Creator": None},
            transparent=True,
        )
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    for pattern, by in _SLIM:
        drawn = pattern.sub(by, drawn)
    # A tenth of a pixel is finer than an eye; texts keep their digits.
    drawn = re.sub(
        r'="[^"<>]*"', lambda part: re.sub(r"(\d\.\d)\d+", r"\1", part[0]), drawn
    )
    drawn = re.sub(
        r"#0102([0-9a-f]{2})", lambda match: OF_PAGE[int(match[1], 16)], drawn
    )
    for place, title in enumerate(titles):
        drawn = drawn.replace(
            f'<g id="dot-{place}">', f"<g><title>{escaped(title)}</title>", 1
        )
    drawn = drawn.replace(
        f'width="{width}pt" height="{height}pt"',
        f'width="{width}" height="{height}"',
        1,
    )
    drawn = drawn.replace("<svg ", '<svg aria-hidden="true" font-size="11" ', 1)
    whole = Drawing(
        drawn
    )  # matplotlib escapes the texts, and the titles are escaped above
    whole.place = draw, width, height
    return whole


class Dot(NamedTuple):
    """A point with the ends of its interval (NaN where there is none), its radius in pixels, and what to say of it."""

    x: float
    y: float
    low: float = math.nan
    high: float = math.nan
    radius: float = 3.5
    title: str = ""


@dataclass(frozen=True, slots=True)
class Dots:
    """Points in one colour.

    joined: a line through them. faint: overlapping points shine through. name: of the series, if there are several.
    """

    dots: Sequence[Dot]
    colour: str = JUDGE
    joined: bool = False
    faint: bool = False
    name: str = ""


def plot(
    series: Sequence[Dots],
    x: str,
    y: str,
    *,
    width: int = 300,
    height: int = 250,
    line: str = "",
    logarithmic: bool = False,
    salt: str = "",
) -> Drawing:
    """Plot dots with intervals.

    x, y: labels of the axes. line: "diagonal" (x = y), "zero" (y = 0) or none. logarithmic: the lower axis, of positive
    values.
    """
    limits = [
        dot
        for one in series
        for dot in one.dots
        if math.isfinite(dot.x) and math.isfinite(dot.y)
    ]
    titles = [dot.title for dot in limits if dot.title]

    def draw(axes: Any) -> None:
        number = 0
        for one in series:
            dots = [
                dot for dot in one.dots if math.isfinite(dot.x) and math.isfinite(dot.y)
            ]
            if one.joined:
                axes.plot(
                    [dot.x for dot in dots],
                    [dot.y for dot in dots],
                    "-",
                    color=one.colour,
                )
            bars(
                axes,
                [(dot.x, dot.low, dot.high) for dot in dots if dot.low < dot.high],
                one.colour,
                0.7,
                1.4,
            )
            style: dict[str, Any] = {
                "color": one.colour,
                "alpha": 0.6 if one.faint else None,
                "markeredgewidth": 0,
            }
            groups: dict[float, list[Dot]] = {}  # dots of one size share a path
            for dot in dots:
                if dot.title:
                    axes.plot(
                        dot.x,
                        dot.y,
                        "o",
                        markersize=2 * dot.radius,
                        gid=f"dot-{number}",
                        **style,
                    )
                    number += 1
                else:
                    groups.setdefault(round(2 * dot.radius), []).append(dot)
            for size, some in groups.items():
                axes.plot(
                    [dot.x for dot in some],
                    [dot.y for dot in some],
                    "o",
                    markersize=size,
                    **style,
                )
            if one.name:
                axes.plot([], [], "o", color=one.colour, label=shortened(one.name, 32))
        _axes(axes, x, y, logarithmic=logarithmic)
        if any(one.name for one in series):
            axes.legend()
        if line == "zero" and axes.get_ylim()[0] < 0 < axes.get_ylim()[1]:
            axes.axhline(0, color=DIM, linestyle=":", linewidth=1)
        if line == "diagonal":
            across = axes.get_xlim()
            up = axes.get_ylim()
            both = max(across[0], up[0]), min(across[1], up[1])
            if both[0] < both[1]:
                axes.plot(both, both, ":", color=DIM, linewidth=1)
                axes.set(xlim=across, ylim=up)

    return svg(draw, width, height, salt=salt, titles=titles)


def bars(
    axes: Any,
    ends: Sequence[tuple[float, float, float]],
    colour: str,
    alpha: float = 0.35,
    linewidth: float = 2,
) -> None:
    """Draw vertical lines from low to high as one path.

    ends: (place, low, high).
    """
    across = [value for place, _, _ in ends for value in (place, place, math.nan)]
    up = [value for _, low, high in ends for value in (low, high, math.nan)]
    axes.plot(
        across,
        up,
        color=colour,
        alpha=alpha,
        linewidth=linewidth,
        solid_capstyle="butt",
    )


def _axes(axes: Any, x: str, y: str, *, logarithmic: bool) -> None:
    axes.set_xlabel(clean(x))
    axes.set_ylabel(clean(y))
    axes.xaxis.grid(visible=False)
    if logarithmic:
        from matplotlib.ticker import LogLocator, NullFormatter

        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(
            LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,))
        )
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(
            lambda value, _: f"{value / 1000:g}k" if value >= 10_000 else f"{value:g}"
        )


class Estimate(NamedTuple):
    """A line of a forest. colour: the number of a series, from 1. other: a value to compare with, hollow."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    other: float = math.nan
    colour: int = 0


def forest(
    groups: Sequence[tuple[str, Sequence[Estimate]]],
    *,
    salt: str = "forest",
    width: int = 640,
) -> Drawing:
    """Plot values with their intervals below each other, on one axis with a line at 0.

    groups: with their titles, which may be empty. Long names are cut; the table beside has them whole.
    """
    lines: list[tuple[str, Estimate | None]] = []
    for title, estimates in groups:
        lines += [(title, None)] if title else []
        lines += [(one.name, one) for one in estimates if not math.isnan(one.value)]
    height = 19 * len(lines) + 30

    def draw(axes: Any) -> None:
        axes.set_position((210 / width, 22 / height, 1 - 225 / width, 1 - 26 / height))
        for place, (_, one) in enumerate(lines):
            if one is None:
                continue
            colour = OF_JUDGES[one.colour - 1] if one.colour else JUDGE
            if not math.isnan(one.low):
                axes.hlines(place, one.low, one.high, color=colour)
            if not math.isnan(one.other):
                axes.plot(one.other, place, "o", markerfacecolor="none", color=PEOPLE)
            axes.plot(one.value, place, "o", color=colour)
        axes.axvline(0, color=LINE, linewidth=1)
        names = [shortened(name, 32) for name, _ in lines]
        axes.set_yticks(range(len(lines)), names)
        axes.tick_params(axis="y", length=0)
        for label, (_, one) in zip(axes.get_yticklabels(), lines, strict=True):
            label.set_fontweight("bold" if one is None else "normal")
        axes.set_ylim(len(lines) - 0.4, -0.6)
        axes.yaxis.grid(visible=False)

    return svg(draw, width, height, salt=salt)
