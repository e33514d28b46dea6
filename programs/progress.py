"""Progress of long work: a bar where somebody sees it, else lines now and then, or a watcher of the caller's own."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from rich.console import Console

#: Seconds before the first line in a log, and at most between two; while no step ends, such as in a long row.
SOON = 10.0
SELDOM = 300.0
NO_STEP = 30.0
#: Steps behind the first by which the time left is told.
FEW = 3
_LOG = logging.getLogger("judgesmith")


@dataclass(eq=False)
class Share:
    """Some texts that a model reads: what is to be read of them, and what is read already."""

    tokens: int
    work: float
    done: float = 0.0


@dataclass
class Reading:
    """What models of this process read beside calls: the progress inside a row.

    Work is in tokens that go through the layers. A number for the next token, of all words, is work, too.
    """

    tokens: int = 0
    """Read so far."""
    work: float = 0.0
    seconds: float = 0.0
    """What that work took."""
    under_way: list[Share] = field(default_factory=list)
    rows: int = 0
    """Rows whose texts are under way."""
    ended: int = 0
    """Rows that were read."""

    @contextmanager
    def of_rows(self, count: int) -> Iterator[None]:
        """Count rows while their texts are read, or wait for their turn."""
        self.rows += count
        try:
            yield
            self.ended += count
        finally:
            self.rows -= count

    @contextmanager
    def begun(self, tokens: int, work: float) -> Iterator[Share]:
        """Count texts as under way, those too that wait for their turn."""
        share = Share(tokens, work)
        self.under_way.append(share)
        try:
            yield share
        finally:
            self.under_way.remove(share)

    @contextmanager
    def step(self, share: Share | None, work: float, tokens: int = 0) -> Iterator[None]:
        """Count a step of reading, once it is done, with the time that it takes; of no share, its tokens alone."""
        began = time.monotonic()
        yield
        self.tokens += tokens
        if share is not None:
            self.seconds += time.monotonic() - began
            self.work += work
            share.done += work

    def of_texts(self) -> tuple[float, float, int]:
        """Return the work that was done on the texts under way, all work on them, and their tokens."""
        shares = tuple(self.under_way)
        done = sum(min(share.done, share.work) for share in shares)
        tokens = sum(share.tokens for share in shares)
        return done, sum(share.work for share in shares), tokens


read = Reading()


class Progress(Protocol):
    """A watcher. Methods are called one at a time and must return quickly."""

    def stage(self, title: str, steps: int) -> None:
        """Begin a new part of the work, with this number of steps, 0 if that is not known."""

    def step(self, title: str | None = None) -> None:
        """Count one step as done; `title` names the next one."""

    def best(self, text: str) -> None:
        """Show the best candidate so far, in words."""

    def tell(self, text: str) -> None:
        """Replace the line beside the numbers (only training calls this)."""


class Silent:
    """Nobody watches."""

    def stage(self, title: str, steps: int) -> None:
        """Ignore the stage."""

    def step(self, title: str | None = None) -> None:
        """Ignore the step."""

    def best(self, text: str) -> None:
        """Ignore the candidate."""

    def tell(self, text: str) -> None:
        """Ignore the text."""


class Watch:
    """A bar on a console; without one a line a stage, and now and then one with the steps done, the speed and the rest.

    total: steps of the whole work; None: every stage counts its own. console: the bar's console. say: takes lines, by
    default to the log of `judgesmith` (level INFO).
    """

    def __init__(
        self,
        title: str,
        total: int | None = None,
        *,
        console: Console | None = None,
        say: Callable[[str], object] = _LOG.info,
    ) -> None:
        self._title = title
        self._stage = ""
        self._note = ""
        self._total = total
        self._whole = total is not None
        self._done = self._earlier = self._told = 0
        self._first: tuple[float, int] | None = None
        self._started = time.monotonic()
        self._due = self._started + SOON
        self._before = replace(read)
        self._ended = threading.Event()
        self._writing = threading.RLock()
        self._say = say
        self._bar = None if console is None else _bar(console)
        if self._bar is not None:
            self._task = self._bar.add_task(_escape(title), total=total, note="")

    def __enter__(self) -> Self:
        from rich.errors import LiveError

        try:
            if self._bar is not None:
                self._bar.start()
        except LiveError:  # another display of rich is on the screen
            self._bar = None
        threading.Thread(target=self._go_on, daemon=True).start()
        return self

    def _go_on(self) -> None:
        """Tell now and then of what goes on also where no step ends: a long row is minutes of reading."""
        while not self._ended.wait(1.0):
            with self._writing:
                now = time.monotonic()
                if self._ended.is_set():
                    return
                if self._bar is not None:
                    self._show_note()
                elif now >= self._due:
                    self._line(now)

    def __exit__(self, *_: object) -> None:
        with self._writing:
            self._ended.set()
        if self._bar is not None:
            self._bar.stop()

    def stage(self, title: str, steps: int) -> None:
        """Begin a stage: name it on the bar or in a line."""
        self._stage = title
        if not self._whole:
            self._total = steps or None
            self._first = None
            self._done = self._earlier = self._told = 0
            if self._bar is not None:
                self._bar.reset(self._task, total=self._total)
        if self._bar is not None:
            self._bar.update(self._task, description=_escape(f"{self._title}: {title}"))
        else:
            self._say(
                f"[{time.monotonic() - self._started:5.0f} s] {title}"
                + (f" ({steps})" if steps else "")
            )

    def step(
        self, title: str | None = None, *, there: bool = False, steps: int = 1
    ) -> None:
        """Count further steps as done.

        Args:
            title: The next step.
            there: True for steps done before this run, which tell nothing about its speed.
            steps: The number of steps.
        """
        if self._bar is not None:
            self._bar.update(
                self._task, advance=steps, description=_escape(title) if title else None
            )
        now = time.monotonic()
        with self._writing:
            self._done += steps
            if there:
                self._earlier += steps
            elif self._first is None:
                self._first = now, self._earlier + steps
            if self._bar is None and now >= self._due:
                self._line(now)

    def best(self, text: str) -> None:
        """Show the best candidate so far."""
        if self._bar is not None:
            self.tell(f"best so far {text}")
        else:
            self._say(f"          best so far {text}")

    def tell(self, text: str) -> None:
        """Replace the text after the numbers: failures and cost so far."""
        self._note = text
        self._show_note()

    def _show_note(self) -> None:
        if self._bar is None:
            return
        parts = [self._note, self._reading(left=self._done - self._earlier < FEW)]
        self._bar.update(self._task, note=_escape(", ".join(filter(None, parts))))

    def _reading(self, *, left: bool) -> str:
        """Return how much of the texts under way is read, "" where none are; with the time that is left."""
        done, work, tokens = read.of_texts()
        if not work:
            return ""
        words = f"{done / work:.0%} of {tokens:,} tokens under way read"
        if not left or not read.work:
            return words
        seconds = read.seconds - self._before.seconds
        rows = read.ended - self._before.ended
        steps = self._done - self._earlier
        part = rows + read.rows * done / work
        if self._total and rows >= steps and part > 0:  # what is done are read rows
            rest = max(0.0, self._total - self._earlier - part) * seconds / part
            return f"{words}, {duration(rest)} left"
        rest = (work - done) * read.seconds / read.work
        return f"{words}, {duration(rest)} left of these"

    def line(self) -> None:
        """Write a line now."""
        with self._writing:
            self._line(time.monotonic())

    def _line(self, now: float) -> None:
        if self._total:
            done = f"{self._done:,} of {self._total:,}"
        else:
            done = f"{self._done:,}"
        # The first step had a model opened for it, and says nothing of the speed.
        since, before = self._first or (now, self._done)
        further = self._done - max(before, self._earlier)
        parts = [done]
        known = bool(self._total) and further >= FEW
        if further > 0 and now > since:
            rate = further / (now - since)
            parts.append(f"{rate:.1f}/s" if rate >= 0.1 else f"{1 / rate:.0f} s each")
            if self._total and known:
                left = max(0, self._total - self._done) / rate
                parts.append(f"{duration(left)} left")
        if reading := self._reading(left=not known):
            parts.append(reading)
        if self._note:
            parts.append(self._note)
        if not self._whole:
            parts = [self._stage, *parts]
        passed = now - self._started
        self._say(f"[{passed:5.0f} s] {self._title}: {', '.join(parts)}")
        most = SELDOM if self._done > self._told else NO_STEP
        self._due = now + min(max(SOON, passed / 10), most)
        self._told = self._done


def duration(seconds: float) -> str:
    """Return a time in s, min or h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def watching(progress: Progress | bool | None, title: str) -> Iterator[Progress]:
    """Yield the watcher of some work.

    Args:
        progress: A watcher; True, a bar on stderr or in the notebook; False, nothing; None, a bar in a notebook and
            where stderr is a terminal, elsewhere lines in the log.
        title: The work's title.
    """
    if progress is False:
        yield Silent()
    elif progress is None or progress is True:
        with Watch(title, console=_console(always=progress is True)) as watch:
            yield watch
    else:
        yield progress


@contextmanager
def counting(
    progress: Callable[[int], None] | bool | None, title: str, rows: object
) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of finished rows.

    Args:
        progress: Such a function, or as for `watching`.
        title: The work's title.
        rows: The rows, whose length is the total if they have one.
    """
    if callable(progress):
        yield progress
        return
    with watching(progress, title) as watcher:
        watcher.stage("rows", len(rows) if isinstance(rows, Sized) else 0)
        yield lambda done: watcher.step()


def _console(*, always: bool) -> Console | None:
    """Return a console that can show a bar: a terminal, a notebook, or, `always`, standard error; otherwise None."""
    from rich.console import Console

    console = Console(stderr=True)
    if (always and not console.is_jupyter) or (
        console.is_jupyter and find_spec("ipywidgets") is None
    ):
        console = Console(
            stderr=True, force_terminal=True, force_jupyter=False
        )  # a line of text
    return console if console.is_terminal or console.is_jupyter else None


def _bar(console: Console) -> Any:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as RichBar

    return RichBar(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
        # What the caller prints meanwhile goes where it would: rich moves stdout to stderr, even out of a file.
        redirect_stdout=bool(sys.stdout and sys.stdout.isatty()),
    )


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
