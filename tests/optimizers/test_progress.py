"""Who watches a long run: the one that was given, a bar where somebody may see it, else lines in the log."""

from __future__ import annotations

import io
import logging

import pytest
import rich.console
from rich.live import Live

from judgesmith.optimizers import progress
from judgesmith.optimizers.progress import Bar, Logged, Silent, watching


def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard error as a terminal; what is written to it."""
    shown, whole = io.StringIO(), rich.console.Console
    monkeypatch.setattr(
        rich.console, "Console", lambda **given: whole(file=shown, force_terminal=True, width=80, color_system=None)
    )
    return shown


def test_the_watcher_that_was_given_is_told() -> None:
    given = Silent()
    with watching(given, "compiling") as watcher:
        assert watcher is given


def test_without_a_terminal_there_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with caplog.at_level(logging.INFO, "judgesmith"), watching(None, "compiling") as watcher:
        assert isinstance(watcher, Logged)
        watcher.stage("zero-shot", 40)
        for k in range(40):
            now[0] = float(k)
            watcher.step()
    # After 10, 20 and 30 s; the first step is at 0 s.
    assert [record.getMessage() for record in caplog.records] == [
        "compiling: zero-shot, 11 of 40 after 10 s",
        "compiling: zero-shot, 21 of 40 after 20 s",
        "compiling: zero-shot, 31 of 40 after 30 s",
    ]


def test_a_terminal_gets_a_bar_and_markup_of_a_title_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    with watching(None, "compiling") as watcher:
        assert isinstance(watcher, Bar)
        watcher.stage("[red]candidate[/red]", 4)
        watcher.step()
        watcher.best("Q [1.2]")
    assert "best so far Q [1.2]" in shown.getvalue() and "[red]candidate[/red]" in shown.getvalue()


def test_another_display_on_the_screen_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rich.console.Console(file=io.StringIO(), force_terminal=True)
    monkeypatch.setattr(rich.console, "Console", lambda **given: whole)
    with Live(console=whole), watching(None, "compiling") as watcher:
        watcher.stage("zero-shot", 4)
        watcher.step()
