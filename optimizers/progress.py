"""What a long run tells whoever watches it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

#: Seconds before the first line in a log, and at most between two.
SOON, SELDOM = 10.0, 300.0
_LOG = logging.getLogger("judgesmith")


class Progress(Protocol):
    """A watcher. Methods are called one at a time and must return quickly."""

    def stage(self, title: str, steps: int) -> None:
        """A new part of the work begins, with so many steps."""

    def step(self, title: str | None = None) -> None:
        """One step is done; `title` says what comes next."""

    def best(self, text: str) -> None:
        """The best candidate so far, in words."""


class Telling(Progress, Protocol):
    """A watcher who also shows a line beside the numbers."""

    def tell(self, text: str) -> None:
        """What stands there from now on."""


class Silent:
    """Nobody watches."""

    def stage(self, title: str, steps: int) -> None: ...

    def step(self, title: str | None = None) -> None: ...

    def best(self, text: str) -> None: ...

    def tell(self, text: str) -> None: ...


class Logged:
    """A line in the log of `judgesmith` (level INFO) now and then: steps done, of those known so far."""

    def __init__(self, title: str) -> None:
        self._title, self._stage, self._done, self._total = title, "", 0, 0
        self._started = time.monotonic()
        self._due = self._started + SOON

    def stage(self, title: str, steps: int) -> None:
        self._stage, self._total = title, self._done + steps

    def step(self, title: str | None = None) -> None:
        self._done += 1
        now = time.monotonic()
        if now >= self._due:
            passed = now - self._started
            _LOG.info("%s: %s, %d of %d after %.0f s", self._title, self._stage, self._done, self._total, passed)
            self._due = now + min(max(SOON, passed / 10), SELDOM)

    def best(self, text: str) -> None:
        _LOG.info("%s: best so far %s", self._title, text)

    def tell(self, text: str) -> None:
        self._stage = text


class Bar:
    """A bar on a terminal or in a notebook, a new one for every stage."""

    def __init__(self, bar: Any, title: str) -> None:
        self._bar, self._title = bar, title
        self._task = bar.add_task(title, total=None)

    def stage(self, title: str, steps: int) -> None:
        from rich.markup import escape

        self._bar.reset(self._task, total=steps or None, description=f"{self._title}: {escape(title)}")

    def step(self, title: str | None = None) -> None:
        self._bar.advance(self._task)

    def best(self, text: str) -> None:
        from rich.markup import escape

        self._bar.console.print(f"{self._title}: best so far {escape(text)}", style="dim")

    def tell(self, text: str) -> None:
        from rich.markup import escape

        self._bar.update(self._task, description=f"{self._title}: {escape(text)}")


@contextmanager
def watching(given: Progress | None, title: str) -> Iterator[Progress]:
    """Who watches: the one that was given; else a bar where somebody may see it (a terminal, a notebook), and lines in
    the log where nobody does, or where another display of rich is on the screen."""
    if given is not None:
        yield given
        return
    from rich.console import Console
    from rich.errors import LiveError
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichBar

    console = Console(stderr=True)
    bar = RichBar(
        TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn(),
        console=console, transient=True,
    )  # fmt: skip
    seen = console.is_terminal or console.is_jupyter
    try:
        if seen:
            bar.start()
    except LiveError:
        seen = False
    try:
        yield Bar(bar, title) if seen else Logged(title)
    finally:
        if seen:
            bar.stop()
