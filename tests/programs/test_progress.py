"""Who watches a long run: the one that was given, a bar where somebody may see it, else lines in the log."""

from __future__ import annotations

import asyncio
import io
import logging
from typing import Any

import pytest
import rich.console
from rich.live import Live

from judgesmith.programs import progress
from judgesmith.programs.baselines.pairs import PairS
from judgesmith.programs.judge import Judge
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.progress import Silent, Watch, counting, watching
from judgesmith.testing.judges import obliging
from judgesmith.testing.scripted import MakeScripted


def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard error as a terminal; what is written to it."""
    shown, whole = io.StringIO(), rich.console.Console
    monkeypatch.setattr(
        rich.console,
        "Console",
        lambda **given: whole(
            file=shown, force_terminal=True, width=80, color_system=None
        ),
    )
    return shown


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds, which the test changes."""
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    return clock


def test_without_a_terminal_there_is_a_line_now_and_then(
    now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.INFO, "judgesmith"),
        watching(None, "compiling") as watcher,
    ):
        assert isinstance(watcher, Watch)
        watcher.stage("zero-shot", 40)
        for k in range(40):
            now[0] = float(k)
            watcher.step()
    # After 10, 20 and 30 s. The first step, at 0 s, says nothing of the speed: 10 more in 10 s.
    assert [record.getMessage() for record in caplog.records] == [
        "[    0 s] zero-shot (40)",
        "[   10 s] compiling: zero-shot, 11 of 40, 1.0/s, 29 s left",
        "[   20 s] compiling: zero-shot, 21 of 40, 1.0/s, 19 s left",
        "[   30 s] compiling: zero-shot, 31 of 40, 1.0/s, 9 s left",
    ]


def test_a_terminal_gets_a_bar_that_leaves_another_display_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = terminal(monkeypatch)
    with watching(None, "compiling") as watcher:
        watcher.stage("[red]candidate[/red]", 4)
        watcher.step()
        watcher.best("Q [1.2]")
    assert "best so far Q [1.2]" in shown.getvalue()
    assert "[red]candidate[/red]" in shown.getvalue()
    whole = rich.console.Console(file=io.StringIO(), force_terminal=True)
    monkeypatch.setattr(rich.console, "Console", lambda **given: whole)
    with Live(console=whole), watching(None, "compiling") as watcher:
        watcher.stage("zero-shot", 4)
        watcher.step()


ROWS = [{"source": "Source.", "output": f"Output {n}."} for n in range(4)]


def judged(judge: Judge, way: str, progress: bool | None) -> list[float]:
    """Scores of the rows by `score_many` or `ascore_many`."""
    if way == "score_many":
        return [verdict.score for verdict in judge.score_many(ROWS, progress=progress)]

    async def scores() -> list[float]:
        return [
            verdict.score
            async for verdict in judge.ascore_many(ROWS, progress=progress)
        ]

    return asyncio.run(scores())


@pytest.mark.parametrize("way", ["score_many", "ascore_many"])
@pytest.mark.parametrize("make", [DirectScorer, PairS])
def test_judging_many_rows_shows_a_bar_on_a_terminal_unless_it_is_switched_off(
    monkeypatch: pytest.MonkeyPatch, scripted: MakeScripted, make: Any, way: str
) -> None:
    shown = terminal(monkeypatch)
    judge = Judge(make("fluency"), lm=scripted(obliging())[0])
    scores = judged(judge, way, False)
    assert shown.getvalue() == ""
    assert judged(judge, way, None) == scores
    assert "judging: rows" in shown.getvalue()


def test_a_bar_can_be_asked_for_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with counting(True, "judging", [1, 2]) as finished:
        finished(1)
        print("between")
    said = capsys.readouterr()
    assert "judging" in said.err
    assert said.out == "between\n"


def test_what_a_caller_prints_to_a_file_stays_out_of_the_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = terminal(monkeypatch)
    with counting(None, "judging", [1, 2]) as finished:
        print("a verdict")  # stdout is no terminal here
        finished(1)
    assert capsys.readouterr().out == "a verdict\n"
    assert "a verdict" not in shown.getvalue()


def test_rows_of_unknown_number_are_counted_in_the_log(
    now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.INFO, "judgesmith"),
        counting(None, "judging", iter(ROWS)) as finished,
    ):
        now[0] = 12.0
        finished(1)
    assert [record.getMessage() for record in caplog.records] == [
        "[    0 s] rows",
        "[   12 s] judging: rows, 1",
    ]


def test_a_function_or_a_watcher_of_the_callers_own_is_called_and_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown, done, given = terminal(monkeypatch), list[int](), Silent()
    with (
        counting(done.append, "judging", ROWS) as finished,
        watching(given, "compiling") as watcher,
    ):
        finished(1)
        assert watcher is given
    assert done == [1]
    assert shown.getvalue() == ""
