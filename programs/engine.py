"""One asynchronous engine under all judges: a background event loop, and an ordered map with bounded memory.

Judges are written as coroutines. Synchronous callers (a notebook, DSPy's optimizers, the command line) reach them
through `run`, which hands the coroutine to a loop in its own thread together with the caller's context variables, so
that `dspy.context(...)` and DSPy's traces work as they do in ordinary DSPy programs.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import queue
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_closers: list[Callable[[], Coroutine[Any, Any, None]]] = []


def at_exit(closer: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Have a coroutine function run on the loop when the process ends, to close a connection."""
    _closers.append(closer)


@atexit.register
def _close() -> None:
    async def everything() -> None:
        await asyncio.gather(*(close() for close in _closers), return_exceptions=True)

    if _loop is not None and _closers:
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(everything(), _loop).result(timeout=2)


def event_loop() -> asyncio.AbstractEventLoop:
    """The loop that all language-model traffic of this process runs on."""
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="judgesmith-engine", daemon=True).start()
            _loop = loop
        return _loop


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on the engine's loop with the caller's context variables."""
    loop, context, outcome = event_loop(), contextvars.copy_context(), Future[T]()
    tasks: list[asyncio.Task[T]] = []

    def finish(task: asyncio.Task[T]) -> None:
        if outcome.cancelled():
            return
        if task.cancelled():
            outcome.cancel()
        elif (error := task.exception()) is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(task.result())

    def start() -> None:
        task = loop.create_task(coroutine, context=context)
        tasks.append(task)
        task.add_done_callback(finish)

    outcome.add_done_callback(
        lambda f: loop.call_soon_threadsafe(lambda: [t.cancel() for t in tasks]) if f.cancelled() else None
    )
    loop.call_soon_threadsafe(start)
    return outcome


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code. Ctrl-C cancels it."""
    if threading.current_thread().name == "judgesmith-engine":
        coroutine.close()
        raise RuntimeError("a judge was called synchronously inside its own event loop; use the asynchronous form")
    outcome = submit(coroutine)
    try:
        return outcome.result()
    except BaseException:
        outcome.cancel()
        raise


def ordered_map(worker: Callable[[T], Awaitable[R]], items: Iterable[T], *, in_flight: int) -> Iterator[R]:
    """`worker(item)` for each item, `in_flight` at a time, results in the order of the items as soon as they are there.

    Memory does not grow with the number of items: at most `4 * in_flight` are read ahead. The first exception that a
    worker lets through ends the map; leaving the iterator early cancels what is under way.
    """
    source = iter(items)
    window = max(4 * in_flight, 8)
    done: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
    room = threading.Semaphore(window)

    async def pump() -> None:
        running = asyncio.Semaphore(in_flight)
        pending: deque[asyncio.Task[R]] = deque()
        arrived = asyncio.Event()
        over = False
        broken: Exception | None = None

        async def one(item: T) -> R:
            try:
                return await worker(item)
            finally:
                running.release()

        async def deliver() -> None:
            while True:
                while pending:
                    done.put(("result", await pending[0]))
                    pending.popleft()
                if over:
                    return
                arrived.clear()
                await arrived.wait()

        delivery = asyncio.ensure_future(deliver())
        try:
            while not delivery.done():
                if not room.acquire(blocking=False):
                    await asyncio.sleep(0.002)
                    continue
                await running.acquire()
                try:
                    item = next(source)
                except StopIteration:
                    break
                except Exception as error:  # a broken input line: what was read before it is still finished
                    broken = error
                    break
                pending.append(asyncio.ensure_future(one(item)))
                arrived.set()
            over = True
            arrived.set()
            await delivery
            if broken is not None:
                raise broken
        finally:
            delivery.cancel()
            for task in pending:
                task.cancel()

    outcome = submit(pump())
    outcome.add_done_callback(lambda f: done.put(("end", None)))
    try:
        while True:
            kind, value = done.get()
            if kind == "end":
                outcome.result()
                return
            room.release()
            yield value
    finally:
        outcome.cancel()
