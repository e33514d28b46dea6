"""Output to people: consoles, progress with the time left, JSON.

Everything but results goes to stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from judgesmith.programs import progress
from judgesmith.programs.progress import duration as duration
from judgesmith.running.plain import json_text, shown


class ShownConsole(Console):
    """A console on which a text of unknown origin cannot act on the terminal.

    All rendered text is `shown`; only rich's own styles and cursor movements are escapes.
    """

    # Before the measuring of columns, in which a control character has another width than what is shown for it.
    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text as rich's text, with control characters replaced."""
        return super().render_str(shown(text), **options)

    # Whatever is not a str: ready-made texts, columns of progress bars.
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments, with control characters replaced in text."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else shown(text), style, control)

    def on_broken_pipe(self) -> None:
        """Rich would end the program with exit code 1, which here means something else."""
        raise

    @property
    def file(self) -> IO[str]:
        """The stream beneath a progress bar."""
        file = super().file
        return getattr(file, "beneath", file)

    @file.setter
    def file(self, new: IO[str]) -> None:
        Console.file.fset(self, new)  # type: ignore[attr-defined]


out = ShownConsole(highlight=False)
err = ShownConsole(stderr=True, highlight=False)


def wide() -> Console:
    """Return standard output for tables, 160 characters wide in a file or pipe unless COLUMNS says otherwise."""
    if out.is_terminal or "COLUMNS" in os.environ:
        return out
    return ShownConsole(width=160, highlight=False)


def asks() -> bool:
    """Return whether somebody sits at a terminal who can answer."""
    return sys.stdin.isatty()


def print_json(data: Any) -> None:
    """Print one JSON object on stdout, nothing else."""
    sys.stdout.write(json_text(data) + "\n")
    sys.stdout.flush()


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with that many digits; a dash for None and NaN."""
    return "–" if value is None or value != value else f"{value:.{digits}f}"


class Watch(progress.Watch):
    """Progress of a command: a bar on a terminal, lines on standard error elsewhere (logs, CI)."""

    def __init__(self, title: str, total: int | None = None) -> None:
        console = err if err.is_terminal else None
        super().__init__(
            title,
            total,
            console=console,
            say=lambda line: err.print(line, markup=False, soft_wrap=True),
        )
