"""What people see: consoles, progress with the time left, JSON. Everything but results goes to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from ..programs import progress
from ..programs.progress import duration as duration
from .plain import json_text, shown


class ShownConsole(Console):
    """A console on which a text of unknown origin cannot act on the terminal: what is rendered is `shown`, and only
    rich's own styles and cursor movements are escapes.
    """

    # Before the measuring of columns, in which a control character has another width than what is shown for it.
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(shown(text), **options)

    # Whatever is not a str: ready-made texts, columns of progress bars.
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else shown(text), style, control)

    def on_broken_pipe(self) -> None:
        """Rich would end the program with exit code 1, which here means something else."""
        raise

    @property
    def file(self) -> IO[str]:
        file = super().file
        return getattr(file, "beneath", file)

    @file.setter
    def file(self, new: IO[str]) -> None:
        Console.file.fset(self, new)  # type: ignore[attr-defined]


out = ShownConsole(highlight=False)
err = ShownConsole(stderr=True, highlight=False)


def wide() -> Console:
    """Standard output for tables with many columns, which a file or pipe gets without folding."""
    return out if out.is_terminal else ShownConsole(width=160, highlight=False)


def print_json(data: Any) -> None:
    """One JSON object on stdout, nothing else."""
    sys.stdout.write(json_text(data) + "\n")
    sys.stdout.flush()


def number(value: float | None, digits: int = 2) -> str:
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
