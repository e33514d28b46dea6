"""One asynchronous engine under all judges: a background event loop, and an ordered map with bounded memory.

Judges are written as coroutines. Synchronous callers (a notebook, DSPy's optimizers, the command line) reach them
through `run`, which hands the coroutine to a loop in its own thread together with the caller's context variables, so
that `dspy.context(...)` and DSPy's traces work as they do in ordinary DSPy programs.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import os
import selectors
import threading
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
)
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

import dspy

T = TypeVar("T")
R = TypeVar("R")

#: Characters that are gone through in a thread.
LONG = 20_000

_lock = threading.RLock()  # a collection while it is held may end a batch that was left
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
#: Makes the loop; a server takes a faster one, before the first use.
make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
_closers: list[Callable[[], Coroutine[Any, Any, None]]] = []
_batches = 0  # for which the heap is frozen


def at_exit(closer: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Have a coroutine function run on the loop when the process ends, to close a connection."""
    _closers.append(closer)


@atexit.register
def _close() -> None:
    """Cancel what is under way, close the connections and end the loop, so that nothing complains at exit."""

    async def everything() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.gather(*(close() for close in _closers), return_exceptions=True)

    if _loop is not None and _loop.is_running() and _thread is not None:
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(everything(), _loop).result(timeout=2)
        _loop.call_soon_threadsafe(_loop.stop)
        _thread.join(timeout=1)


def _after_fork() -> None:
    # The loop's thread, and whoever held the lock, exist in the parent only.
    global _lock, _loop, _thread
    if hasattr(_loop, "_selector"):
        # Both processes share the kernel's list of sockets to watch: when the copies of the parent's connections end
        # here, they must not take the parent's off it, nor complain of not having been closed.
        _loop._selector = selectors.SelectSelector()  # type: ignore[union-attr]
        _loop.set_exception_handler(lambda *_: None)  # type: ignore[union-attr]
    _lock, _loop, _thread = threading.RLock(), None, None
    _closers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def event_loop() -> asyncio.AbstractEventLoop:
    """The loop that all language-model traffic of this process runs on."""
    global _loop, _thread
    with _lock:
        if _loop is None or _thread is None or not _thread.is_alive():
            _loop = make_loop()
            _thread = threading.Thread(
                target=_loop.run_forever, name="judgesmith-engine", daemon=True
            )
            _thread.start()
        return _loop


def adopt() -> asyncio.AbstractEventLoop:
    """Take the loop that runs in this thread for the engine's, as a server does whose requests change no threads."""
    global _loop, _thread
    with _lock:
        _loop, _thread = asyncio.get_running_loop(), threading.current_thread()
        return _loop


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on the engine's loop with the caller's context variables."""
    return asyncio.run_coroutine_threadsafe(coroutine, event_loop())


def _outside_the_loop() -> None:
    if threading.current_thread() is _thread:
        raise RuntimeError(
            "a judge was called synchronously inside its own event loop; use the asynchronous form"
        )


async def on_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine on the engine's loop, from any loop of any thread: connections, limits and locks belong to it.

    Cancelling the caller cancels it.
    """
    if threading.current_thread() is _thread:
        return await coroutine
    return await asyncio.wrap_future(submit(coroutine))


async def apart(size: int, function: Callable[..., T], *given: Any) -> T:
    """Return the function's result, computed in a thread for texts of `LONG` characters or more.

    Context variables are those of the caller.
    """
    if size < LONG:
        return function(*given)
    return await asyncio.to_thread(function, *given)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code. Ctrl-C cancels it."""
    try:
        _outside_the_loop()
    except RuntimeError:
        coroutine.close()
        raise
    outcome = submit(coroutine)
    try:
        return outcome.result()
    except BaseException:
        outcome.cancel()
        raise


class PerLoop(Generic[T]):
    """What belongs to one event loop (a semaphore, a lock): made again on another one, as after a fork."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self) -> T:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._made = loop, self._make()
        return self._made

    def __deepcopy__(self, memo: dict[int, Any]) -> PerLoop[T]:
        return self


@contextlib.contextmanager
def _heap_frozen() -> Iterator[None]:
    """Collections of garbage leave alone what is in memory before it: looking through the modules of DSPy and LiteLLM
    again and again took a quarter of a row's time. Batches may overlap, and a heap that others froze stays so.
    """
    global _batches
    with _lock:
        ours = _batches > 0 or gc.get_freeze_count() == 0
        if ours and not _batches:
            gc.freeze()
        _batches += ours
    try:
        yield
    finally:
        with _lock:
            _batches -= ours
            if ours and not _batches:
                gc.unfreeze()


class _Window(Generic[T, R]):
    """What an ordered map has read ahead: at most `8 * in_flight` items, in order, `in_flight` of them at work."""

    def __init__(self, worker: Callable[[T], Awaitable[R]], in_flight: int) -> None:
        self._worker = worker
        self._most = max(8 * in_flight, 8)
        self._running = asyncio.Semaphore(in_flight)
        self.pending: deque[Future[R]] = deque()
        self.over = False
        self._failed = False
        #: What the source raised: what was read before it is still finished.
        self.broken: Exception | None = None

    @property
    def reads_on(self) -> bool:
        full = len(self.pending) >= self._most or bool(
            self.pending and self.pending[0].done()
        )
        return not (self.over or full)

    def start(self, item: T) -> None:
        self.pending.append(submit(self._work(item)))

    def end(self, error: Exception | None = None) -> None:
        """There is no further item, because of an error or not."""
        self.over, self.broken = True, error

    async def _work(self, item: T) -> R:
        async with self._running:
            if self._failed:  # the map ends at that row: those after it are not begun, and cost nothing
                raise asyncio.CancelledError
            with dspy.context(
                disable_history=True
            ):  # of many rows, no prompts are kept; see `as_dspy.Quiet`
                try:
                    return await self._worker(item)
                except Exception:
                    self._failed = True
                    raise

    def close(self) -> None:
        """Cancel what is under way."""
        for future in self.pending:
            future.cancel()


def ordered_map(
    worker: Callable[[T], Awaitable[R]], items: Iterable[T], *, in_flight: int
) -> Generator[R, None, None]:
    """`worker(item)` for each item, `in_flight` at a time, results in the order of the items as soon as they are there.

    The items are read in the caller's thread, so that they may come from a database cursor, a slow pipe or another
    judge's scores. Memory does not grow with their number: at most `8 * in_flight` are read ahead. The first exception
    that a worker lets through ends the map; one of the source comes after the results of what was read before it.
    Leaving the iterator early cancels what is under way. DSPy's histories keep nothing of the calls.
    """
    _outside_the_loop()
    source = iter(items)
    window = _Window(worker, in_flight)
    with _heap_frozen(), contextlib.closing(window):
        while True:
            while window.reads_on:
                try:
                    window.start(next(source))
                except StopIteration:
                    window.end()
                except Exception as error:  # a broken input line
                    window.end(error)
            if not window.pending:
                break
            yield window.pending[0].result()
            window.pending.popleft()
        if window.broken is not None:
            raise window.broken


async def aordered_map(
    worker: Callable[[T], Coroutine[Any, Any, R]],
    items: Iterable[T] | AsyncIterable[T],
    *,
    in_flight: int,
) -> AsyncGenerator[R, None]:
    """`ordered_map` for asynchronous callers on any loop; the items, which may come asynchronously, are read on the
    caller's. Close the generator (`contextlib.aclosing`) where it is left early: that cancels what is under way.
    """
    source = aiter(items if isinstance(items, AsyncIterable) else _as_async(items))
    window = _Window(worker, in_flight)
    with _heap_frozen(), contextlib.closing(window):
        while True:
            while window.reads_on:
                try:
                    window.start(await anext(source))
                except StopAsyncIteration:
                    window.end()
                except Exception as error:
                    window.end(error)
            if not window.pending:
                break
            yield await asyncio.wrap_future(window.pending[0])
            window.pending.popleft()
        if window.broken is not None:
            raise window.broken


async def _as_async(items: Iterable[T]) -> AsyncGenerator[T, None]:
    for item in items:
        yield item
