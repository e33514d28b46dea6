"""Progress of long work that is started from Python: a bar, lines in the log, or a watcher of the caller's own."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

#: Seconds before the first line in a log, and at most between two.
SOON, SELDOM = 10.0, 300.0
_LOG = logging.getLogger("judgesmith")


class Progress(Protocol):
    """A watcher. Methods are called one at a time and must return quickly."""

    def stage(self, title: str, steps: int) -> None:
        """A new part of the work begins; it has this number of steps, 0 if that is not known."""

    def step(self, title: str | None = None) -> None:
        """One step is done; `title` says what comes next."""

    def best(self, text: str) -> None:
        """The best candidate so far, in words."""


class Telling(Progress, Protocol):
    """A watcher who also shows a line beside the numbers."""

    def tell(self, text: str) -> None:
        """Replace that line."""


Watcher = TypeVar("Watcher", bound=Progress)


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
        self._stage, self._total = title, self._done + steps if steps else 0

    def step(self, title: str | None = None) -> None:
        self._done += 1
        now = time.monotonic()
        if now >= self._due:
            passed = now - self._started
            done = f"{self._done} of {self._total}" if self._total else f"{self._done}"
            _LOG.info("%s: %s, %s after %.0f s", self._title, self._stage, done, passed)
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
def watching(given: Watcher | bool | None, title: str) -> Iterator[Watcher | Silent | Bar | Logged]:
    """The watcher of some work. given: a watcher; True, a bar on stderr or in the notebook; False, nothing; None, a bar
    in a notebook and where stderr is a terminal, elsewhere lines in the log."""
    if given is False:
        yield Silent()
    elif given is None or given is True:
        with _shown(title, always=given is True) as watcher:
            yield watcher
    else:
        yield given


@contextmanager
def counting(given: Callable[[int], None] | bool | None, title: str, rows: object) -> Iterator[Callable[[int], None]]:
    """What is called with the number of finished rows. given: such a function, or as for `watching`."""
    if callable(given):
        yield given
        return
    with watching(given, title) as watcher:
        watcher.stage("rows", len(rows) if isinstance(rows, Sized) else 0)
        yield lambda done: watcher.step()


@contextmanager
def _shown(title: str, *, always: bool) -> Iterator[Bar | Logged]:
    from rich.console import Console
    from rich.errors import LiveError
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichBar

    console = Console(stderr=True)
    if (always and not console.is_jupyter) or (console.is_jupyter and find_spec("ipywidgets") is None):
        console = Console(stderr=True, force_terminal=True, force_jupyter=False)  # a line of text
    bar = RichBar(
        TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn(),
        console=console, transient=True,
        # What the caller prints meanwhile goes where it would: rich moves stdout to stderr, even out of a file.
        redirect_stdout=bool(sys.stdout and sys.stdout.isatty()),
    )  # fmt: skip
    seen = console.is_terminal or console.is_jupyter
    try:
        if seen:
            bar.start()
    except LiveError:  # another display of rich is on the screen
        seen = False
    try:
        yield Bar(bar, title) if seen else Logged(title)
    finally:
        if seen:
            bar.stop()
