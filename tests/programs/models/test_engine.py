"""The engine: an ordered, lazy map over one background loop, and what happens when something stops it."""

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from misbehaving_server import saying
from patience import HANG

from judgesmith.errors import BudgetError
from judgesmith.programs.models import engine


async def wait(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


async def same(item: int) -> int:
    return item


# Running one coroutine


def test_run_inside_the_loop_is_refused_instead_of_waiting_for_itself() -> None:
    async def nested() -> None:
        engine.run(wait(0.0))

    async def nested_map() -> list[float]:
        return list(engine.ordered_map(wait, [0.0], in_flight=1))

    with pytest.raises(RuntimeError, match="asynchronous form"):
        engine.run(nested())
    with pytest.raises(RuntimeError, match="asynchronous form"):
        engine.run(nested_map())


def test_context_variables_reach_the_coroutine_and_its_changes_stay_there() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar(
        "variable", default="unset"
    )

    async def seen(_: int) -> str:
        found = variable.get()
        variable.set("changed by a worker")
        return found

    token = variable.set("the caller's")
    try:
        assert engine.run(seen(0)) == "the caller's"
        assert (
            list(engine.ordered_map(seen, range(3), in_flight=2))
            == ["the caller's"] * 3
        )
        assert variable.get() == "the caller's"
    finally:
        variable.reset(token)


def test_cancelling_a_submitted_coroutine_cancels_it_on_the_loop() -> None:
    ended = threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    future = engine.submit(long())
    engine.run(wait(0.01))
    future.cancel()
    assert ended.wait(2)


def test_cancelling_before_it_starts_leaves_nothing_behind() -> None:
    release = threading.Event()

    async def block_the_loop() -> None:
        release.wait(2)

    async def never() -> None:
        raise AssertionError("it was cancelled")

    engine.submit(block_the_loop())
    assert engine.submit(never()).cancel()
    release.set()
    assert engine.run(wait(0.0)) == 0.0


# The map


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 9))
def test_results_come_in_the_order_of_the_items(
    waits: list[int], in_flight: int
) -> None:
    async def work(item: tuple[int, int]) -> int:
        await asyncio.sleep(item[1] / 2000)
        return item[0]

    assert list(
        engine.ordered_map(work, enumerate(waits), in_flight=in_flight)
    ) == list(range(len(waits)))


@pytest.mark.parametrize("in_flight", [1, 3, 16])
def test_as_many_at_a_time_as_asked_for(in_flight: int) -> None:
    now, most = 0, 0

    async def work(_: int) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        now -= 1

    list(engine.ordered_map(work, range(60), in_flight=in_flight))
    assert most == in_flight


@pytest.mark.parametrize("in_flight", [1, 8])
def test_the_source_is_read_no_further_than_the_window(in_flight: int) -> None:
    window = max(8 * in_flight, 8)
    read = 0

    def source() -> Iterator[int]:
        nonlocal read
        for number in range(100_000):
            assert threading.current_thread() is threading.main_thread()  # the caller's
            read += 1
            yield number

    results = engine.ordered_map(same, source(), in_flight=in_flight)
    assert read == 0  # not before the first result is asked for
    for taken in range(1, 200):
        next(results)
        assert read <= taken + window
    results.close()  # type: ignore[attr-defined]
    assert read <= 200 + window


def test_a_result_that_is_there_does_not_wait_for_a_slow_source() -> None:
    read: list[int] = []

    def source() -> Iterator[int]:
        for number in range(5):
            read.append(number)
            yield number
            time.sleep(0.03)

    results = engine.ordered_map(same, source(), in_flight=4)
    assert next(results) == 0
    assert len(read) <= 2
    assert list(results) == [1, 2, 3, 4]


def test_a_broken_source_comes_after_the_rows_before_it() -> None:
    def source() -> Iterator[int]:
        yield from range(5)
        raise ValueError("line 6 is broken")

    async def work(item: int) -> int:
        await asyncio.sleep(0.01)
        return item

    got: list[int] = []
    with pytest.raises(ValueError, match="line 6"):
        got.extend(engine.ordered_map(work, source(), in_flight=2))
    # extend() keeps what came before the exception
    assert got == [0, 1, 2, 3, 4]


def test_a_workers_exception_ends_the_map_in_its_place() -> None:
    async def work(item: int) -> int:
        if item == 3:
            raise LookupError("row 3")
        return item

    got: list[int] = []
    with pytest.raises(LookupError, match="row 3"):
        got.extend(engine.ordered_map(work, range(10), in_flight=8))
    assert got == [0, 1, 2]


def test_no_row_is_begun_after_one_that_ended_the_map() -> None:
    """It could ask beyond a budget, whose limits end with the map."""
    begun: list[int] = []

    async def worker(item: int) -> None:
        begun.append(item)
        if item == 2:
            raise BudgetError("used up")

    for _ in range(20):
        with pytest.raises(BudgetError):
            list(engine.ordered_map(worker, range(8), in_flight=1))
    engine.run(asyncio.sleep(0.01))
    assert begun == [0, 1, 2] * 20


def test_leaving_early_cancels_what_is_under_way() -> None:
    now = 0

    async def work(item: int) -> int:
        nonlocal now
        if item == 0:
            await asyncio.sleep(0.1)  # until the others are under way
            return item
        now += 1
        try:
            await asyncio.sleep(60)
        finally:
            now -= 1
        return item

    for result in engine.ordered_map(work, range(1000), in_flight=4):
        assert result == 0
        engine.run(wait(0.01))
        assert now > 0
        break
    engine.run(wait(0.01))
    assert now == 0


@pytest.fixture
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A heap of which nothing is frozen, as a command has it; that of the tests is."""
    monkeypatch.setattr(engine, "heap", engine.Heap())
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("thawed")
def test_what_was_there_before_is_no_garbage_while_any_map_goes_on() -> None:
    first, second = (engine.ordered_map(same, range(9), in_flight=1) for _ in range(2))
    next(first)
    next(second)
    first.close()
    assert gc.get_freeze_count() > 0
    second.close()
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("thawed")
def test_a_heap_that_the_caller_froze_stays_so() -> None:
    gc.freeze()
    assert list(engine.ordered_map(same, range(3), in_flight=1)) == [0, 1, 2]
    assert gc.get_freeze_count() > 0


@pytest.mark.usefixtures("thawed")
def test_a_frozen_heap_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.freeze()
    count, counted = gc.get_freeze_count, []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(1) or count())
    for _ in range(3):
        assert list(engine.ordered_map(same, range(3), in_flight=1)) == [0, 1, 2]
    assert len(counted) == 1


def test_system_exit_in_the_source_leaves_the_engine_alive() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        list(engine.ordered_map(same, source(), in_flight=2))
    assert engine.run(wait(0.0)) == 0.0


# The end of a process

AT_EXIT = """
import asyncio, threading
from judgesmith.errors import BudgetError
from judgesmith.programs.models import engine
begun = threading.Event()
left = [3]
async def work(item):
    left[0] -= 1
    if not left[0]:
        begun.set()
    try:
        # The first ends when all have begun: had it ended before, the map would yield it and read no further.
        while item or not begun.is_set():
            await asyncio.sleep(0.01)
    finally:
        print("ended", flush=True)
results = engine.ordered_map(work, range(3), in_flight=8)
next(results)
async def closer():
    print("closed", flush=True)
engine.at_exit(closer)
keep = [results]
import sys
sys.modules["keep"] = keep  # outlives the atexit functions
"""


def test_what_is_under_way_at_exit_is_cancelled_and_connections_closed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=HANG
    )
    assert done.stderr == ""
    assert done.stdout == "ended\nended\nended\nclosed\n"


# Forks


def test_a_thread_learns_that_nobody_waits_for_it() -> None:
    begun, ended = threading.Event(), threading.Event()

    def long_work() -> None:
        given_up = engine.GIVEN_UP.get()
        assert given_up is not None
        begun.set()
        assert given_up.wait(HANG)
        ended.set()

    async def leave() -> None:
        work = asyncio.create_task(engine.in_thread(long_work))
        assert await asyncio.to_thread(begun.wait, HANG)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(leave())
    assert ended.wait(HANG)
    assert engine.GIVEN_UP.get() is None


FORKING = """
import multiprocessing, sys
import judgesmith as js
from judgesmith.programs.models.lm import Connection, language_model

lm = language_model("openai/m", connection=Connection(api_base=sys.argv[1], cache=False, timeout=20, attempts=1))
judge = js.Judge(js.DirectScorer("fluency"), lm=lm)


def judged(rows):
    return [verdict.score for verdict in judge.score_many(rows, progress=False)]


def main():
    rows = [{"source": "A source.", "output": f"An output {n}."} for n in range(12)]
    scores = [judged(rows)]
    for _ in range(2):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            scores += pool.map(judged, [rows, rows])
        scores.append(judged(rows))
    print(len(scores), {score for some in scores for score in some})


main()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_parent_judges_on_after_its_forked_children_did(serve: Any) -> None:
    """The children share the parent's epoll: what they close must not end the parent's connections."""
    server = serve(lambda number, body: saying("Score: 4"))
    done = subprocess.run(
        [sys.executable, "-c", FORKING, server.base],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.stdout.split()[:1] == ["7"], done.stdout + done.stderr
    assert "nan" not in done.stdout
    assert "Unclosed" not in done.stderr
