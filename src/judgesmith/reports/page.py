"""What the HTML reports share: templates that clean and escape every text, and figures in the page's colours."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import jinja2

from ..programs.atomic import write_whole
from ..running.plain import clean

#: Colours that stand in a figure for those of the page, which differ between its light and its dark form.
INK, JUDGE, PEOPLE, LINE = "#010203", "#010204", "#010205", "#010206"
OF_PAGE = {INK: "currentColor", JUDGE: "var(--accent)", PEOPLE: "var(--people)", LINE: "var(--dim)"}


def environment(**options: Any) -> jinja2.Environment:
    """Jinja's environment for the reports' templates. options: further ones of it."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("judgesmith.reports"), autoescape=True, finalize=_clean,
        undefined=jinja2.StrictUndefined, **options,
    )  # fmt: skip


def _clean(value: Any) -> Any:
    """Every text that goes into the page, but for finished figures."""
    return clean(value) if type(value) is str else value


def stylesheet() -> str:
    """The one stylesheet of all pages, for those that a server sends."""
    return environment().get_template("page.css.j2").render()


def number(value: float) -> str:
    """A score as people write it: without zeros at its end."""
    return "–" if math.isnan(value) else f"{round(value, 3):g}" if abs(value) < 1e6 else f"{value:.4g}"


def moment(time: str) -> str:
    """A time as files have it, in minutes; what is none stays as it is."""
    try:
        read = datetime.fromisoformat(time)
    except ValueError:
        return time
    return f"{read:%Y-%m-%d %H:%M}" + (" UTC" if read.utcoffset() == timedelta(0) else f"{read:%z}")


#: Colours that people who cannot tell red from green tell apart, also in grey; `--judge1` to `--judge6` of the page.
SERIES = ("#0067a3", "#c4520a", "#00755a", "#a3447b", "#806000", "#5b5b66")


@contextmanager
def plot_style(more: Mapping[str, Any] | None = None) -> Iterator[None]:
    """The one style of all figures, for the time of drawing them. more: settings of matplotlib beside it."""
    from matplotlib import rc_context
    from matplotlib.rcsetup import cycler

    settings: dict[str, Any] = {
        "axes.prop_cycle": cycler(color=SERIES), "axes.spines.top": False, "axes.spines.right": False,
        "axes.edgecolor": "#565656", "axes.labelcolor": "#1a1a1a", "text.color": "#1a1a1a", "xtick.color": "#565656",
        "ytick.color": "#565656", "xtick.labelcolor": "#1a1a1a", "ytick.labelcolor": "#1a1a1a",
        "axes.grid": True, "axes.axisbelow": True, "grid.color": "#d5d5d5", "grid.linewidth": 0.6,
        "axes.titlelocation": "left", "axes.titlesize": 9, "font.size": 9, "legend.frameon": False,
        "legend.fontsize": 8, "lines.linewidth": 1.6, "lines.markersize": 4.5, "errorbar.capsize": 2,
        "svg.hashsalt": "judgesmith", "text.usetex": False, "text.parse_math": True, "figure.facecolor": "white",
        "savefig.facecolor": "white", "figure.constrained_layout.use": True,
    }  # fmt: skip
    with rc_context(cast(Any, settings | dict(more or {}))):
        yield


def inline_svg(draw: Any, width: float = 3.6, height: float = 3.0, colours: Mapping[str, str] | None = None) -> str:
    """A figure as inline SVG in the page's own colours. Texts are outlines, so nothing of a name can become markup.
    colours: further stand-ins and what they are in the page."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with plot_style(
        {
            "svg.fonttype": "path", "font.size": 8, "text.color": INK, "axes.edgecolor": LINE, "axes.labelcolor": INK,
            "xtick.color": LINE, "ytick.color": LINE, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
            "axes.grid": False, "text.parse_math": False,
        }
    ):  # fmt: skip
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.add_subplot())
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    whole = buffer.getvalue()
    made = re.sub(r"<metadata>.*?</metadata>", "", whole[whole.index("<svg") :], flags=re.DOTALL)
    for drawn, of_page in (OF_PAGE | dict(colours or {})).items():
        made = made.replace(drawn, of_page)
    made = made.replace("<svg ", '<svg aria-hidden="true" ', 1)  # the figure around it has the words
    return re.sub(r' d="[^"]*"', lambda path: _NUMBER.sub(r"\1", path[0]), made)


_NUMBER = re.compile(r"(\.\d\d)\d+")  # a hundredth of a point is finer than any screen


def write_figure(path: Path, figure: Any) -> None:
    """A figure of matplotlib in the format that the file's name says: the same numbers give the same file, whole or
    not at all. Raises OSError."""
    kind = path.suffix.lower().lstrip(".") or "png"
    buffer = io.BytesIO()
    with plot_style():
        figure.savefig(buffer, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    write_whole(path, buffer.getvalue())


def own_ids(svg: str, number: int) -> str:
    """Ids must be unique in a page that holds several figures."""
    prefix = f"f{number}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}", svg)
