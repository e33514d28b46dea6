"""What the HTML reports share: templates that clean and escape every text, and figures in the page's colours."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import jinja2

from ...programs.atomic import write_whole
from ..plain import clean

#: Colours that stand in a figure for those of the page, which differ between its light and its dark form.
INK, JUDGE, PEOPLE, LINE = "#010203", "#010204", "#010205", "#010206"
OF_PAGE = {INK: "currentColor", JUDGE: "var(--accent)", PEOPLE: "var(--people)", LINE: "var(--dim)"}


def environment(**options: Any) -> jinja2.Environment:
    """Jinja's environment for the reports' templates. options: further ones of it."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("judgesmith.experiments.reports"), autoescape=True, finalize=_clean,
        undefined=jinja2.StrictUndefined, **options,
    )  # fmt: skip


def _clean(value: Any) -> Any:
    """Every text that goes into the page, but for finished figures."""
    return clean(value) if type(value) is str else value


def inline_svg(draw: Any, width: float = 3.6, height: float = 3.0, colours: Mapping[str, str] | None = None) -> str:
    """A figure as inline SVG in the page's own colours. Texts are outlines, so nothing of a name can become markup.
    colours: further stand-ins and what they are in the page."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings: dict[str, Any] = {
        "svg.fonttype": "path", "svg.hashsalt": "judgesmith", "font.size": 8, "text.usetex": False,
        "text.parse_math": False, "text.color": INK, "axes.edgecolor": LINE, "axes.labelcolor": INK,
        "xtick.color": LINE, "ytick.color": LINE, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
        "legend.frameon": False, "axes.spines.top": False, "axes.spines.right": False,
    }  # fmt: skip
    with rc_context(cast(Any, settings)):
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
    from matplotlib import rc_context

    kind = path.suffix.lower().lstrip(".") or "png"
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "judgesmith"}):
        figure.savefig(buffer, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    write_whole(path, buffer.getvalue())


def own_ids(svg: str, number: int) -> str:
    """Ids must be unique in a page that holds several figures."""
    prefix = f"f{number}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}", svg)
