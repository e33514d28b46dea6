"""Pages: HTML files that load nothing and escape every text, from one template.

A page is a title and sections; a section holds parts: a paragraph, a list of notes, a `Table`, `Figures`, a `Fold` with
parts of its own, or finished markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from judgesmith.errors import OptionError
from judgesmith.programs.atomic import write_whole
from judgesmith.tables import Table, clean


def environment(
    package: str = "judgesmith.pages", **options: Any
) -> jinja2.Environment:
    """Return Jinja's environment for the templates of a package and for those of all pages.

    options: further options of the environment.
    """
    loaders = [
        jinja2.PackageLoader(name)
        for name in dict.fromkeys((package, "judgesmith.pages"))
    ]
    jinja = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        finalize=_clean,
        undefined=jinja2.StrictUndefined,
        **options,
    )
    from judgesmith import __version__

    jinja.globals |= {"version": __version__, "kind_of": _kind}
    return jinja


def _clean(value: Any) -> Any:
    """Return every text that goes into a page, but for finished markup."""
    return clean(value) if type(value) is str else value


def stylesheet() -> str:
    """Return the one stylesheet of all pages, for those that a server sends."""
    return environment().get_template("page.css.j2").render()


class Figures(NamedTuple):
    """Figures beside each other: (caption, SVG)."""

    figures: Sequence[tuple[str, Markup]]


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that are folded away below a line."""

    summary: str
    parts: Sequence[Any]
    opened: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """See the module. parts that are empty are left out, and a section without any is."""

    title: str
    parts: Sequence[Any]


def _kind(part: Any) -> str:
    kinds: Mapping[type, str] = {
        Markup: "markup",
        str: "text",
        Table: "table",
        Figures: "figures",
        Fold: "fold",
    }
    return kinds.get(type(part), "notes")


def filled(parts: Iterable[Any]) -> list[Any]:
    """Return the parts that hold something."""
    return [
        part for part in parts if (part.figures if isinstance(part, Figures) else part)
    ]


def render(
    title: str,
    sections: Iterable[Section],
    *,
    lead: str = "",
    about: Sequence[str] = (),
    warn: bool = False,
    notes: Sequence[str] = (),
    style: str = "",
) -> str:
    """Return a page as HTML.

    Args:
        title: title of the page.
        sections: sections, in their order.
        lead: the result, in a sentence or two.
        about: small lines below the title.
        warn: show the lead as an alarm.
        notes: what a reader has to know first.
        style: further CSS.
    """
    named: dict[str, Section] = {}
    for section in sections:
        if parts := filled(section.parts):
            name = (
                re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-")
                or "section"
            )
            name += f"-{len(named) + 1}" if name in named else ""
            named[name] = Section(section.title, parts)
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            sections=named,
            lead=lead,
            about=about,
            warn=warn,
            notes=notes,
            style=style,
        )
    )


def check_page(path: Path, option: str, *others: Path | None) -> None:
    """Check, before any cost, that a page can be written.

    others: further files of the command.

    Raises:
        OptionError: If the file is not HTML, is a folder, or is one of the others.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"{option} {path}: the page is HTML; name it .html")
    if path.is_dir():
        raise OptionError(f"{option} {path} is a folder; name a file in it")
    for other in others:
        if (
            other is not None
            and path.exists()
            and other.exists()
            and path.samefile(other)
        ):
            raise OptionError(
                f"{option} {path} is another file of this command, {other}; name a new one"
            )


def write_page(path: Path, page: str, option: str) -> int:
    """Write a page whole or not at all; return its bytes.

    Raises:
        OptionError: If it cannot be written.
    """
    data = page.encode("utf-8", "backslashreplace")
    try:
        write_whole(path, data)
    except OSError as error:
        raise OptionError(
            f"{option} {path} cannot be written: {error.strerror or error}"
        ) from None
    return len(data)


def moment(time: str) -> str:
    """Return a time as files have it, in minutes; a text that is not a time stays as it is."""
    try:
        read = datetime.fromisoformat(time)
    except ValueError:
        return time
    return f"{read:%Y-%m-%d %H:%M}" + (
        " UTC" if read.utcoffset() == timedelta(0) else f"{read:%z}"
    )
