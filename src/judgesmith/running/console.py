"""What people see: consoles, progress with the time left, JSON. Everything but results goes to stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import IO, Any, Self

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.text import Text

from .plain import json_text, shown


class ShownConsole(Console):
    """A console on which a text of unknown origin cannot act on the terminal: what is rendered is `shown`, and only
    rich's own styles and cursor movements are escapes."""

    # Before the measuring of columns, in which a control character has another width than what is shown for it.
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(shown(text), **options)

    # Whatever is not a str: ready-made texts, columns of progress bars.
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
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


#: Seconds between two lines of progress in a log: the first ones, and at most.
SOON, SELDOM = 10.0, 300.0


class Watch:
    """A progress bar over a whole run on a terminal; where there is none (logs, CI) a line a stage, and now and then
    one that says how many are done, how fast, and how long the rest takes."""

    def __init__(self, title: str, total: int | None = None) -> None:
        self._live = err.is_terminal
        self._title, self._total, self._done, self._told = title, total, 0, ""
        self._first = 0
        self._started = time.monotonic()
        self._due = self._started + SOON
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[best]}"),
            console=err,
            disable=not self._live,
            transient=True,
        )
        self._task = self._bar.add_task(escape(title), total=total, best="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.stop()

    def stage(self, title: str, steps: int) -> None:
        if self._live:
            self._bar.update(self._task, description=escape(title))
        else:
            err.print(f"[{time.monotonic() - self._started:5.0f} s] {title} ({steps})", markup=False)

    def step(self, title: str | None = None, *, there: bool = False, count: int = 1) -> None:
        """Count further rows as done. there: they were done before this run, which tells nothing about its speed."""
        self._bar.advance(self._task, count)
        self._done += count
        self._first += count * there
        if title and self._live:
            self._bar.update(self._task, description=escape(title))
        elif not self._live and time.monotonic() >= self._due:
            self._log()

    def tell(self, text: str) -> None:
        """Replace the text after the numbers: failures and cost so far."""
        self._told = text
        if self._live:
            self._bar.update(self._task, best=escape(text))

    def _log(self) -> None:
        now = time.monotonic()
        passed = now - self._started
        rate = (self._done - self._first) / passed if passed > 0 else 0.0
        parts = [f"{self._done:,} of {self._total:,}" if self._total else f"{self._done:,}", f"{rate:.1f}/s"]
        if self._total and rate > 0:
            parts.append(f"{duration(max(0, self._total - self._done) / rate)} left")
        parts += [self._told] if self._told else []
        err.print(f"[{passed:5.0f} s] {self._title}: {', '.join(parts)}", markup=False, soft_wrap=True)
        self._due = now + min(max(SOON, passed / 10), SELDOM)

    def best(self, text: str) -> None:
        if self._live:
            self._bar.update(self._task, best=f"best so far {escape(text)}")
        else:
            err.print(f"          best so far {text}", markup=False)


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
