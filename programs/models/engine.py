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
from functools import partial
from typing import Any, Generic, TypeVar

from dspy.dsp.utils.settings import main_thread_config, thread_local_overrides
from dspy.dsp.utils.utils import dotdict

T = TypeVar("T")
R = TypeVar("R")

#: Characters that are gone through in a thread.
LONG = 20_000

#: Set once nobody waits any more for what a thread computes; long work looks at it now and then.
GIVEN_UP: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar(
    "judgesmith_given_up", default=None
)

_lock = threading.RLock()  # a collection while it is held may end a batch that was left
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
#: Makes the loop; a server takes a faster one, before the first use.
make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
_closers: list[Callable[[], Coroutine[Any, Any, None]]] = []


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
            asyncio.run_coroutine_threadsafe(everything(), _loop).result(timeout=10)
        _loop.call_soon_threadsafe(_loop.stop)
        # A loop that still runs while the interpreter ends can crash it: a busy machine gets the time.
        _thread.join(timeout=10)


def _after_fork() -> None:
    # The loop's thread, and whoever held the lock, exist in the parent only.
    global _lock, _loop, _thread
    if hasattr(_loop, "_selector"):
        # Both processes share the kernel's list of sockets to watch: when the copies of the parent's connections end
        # here, they must not take the parent's off it, nor complain of not having been closed.
        _loop._selector = selectors.SelectSelector()  # type: ignore[union-attr]
        _loop.set_exception_handler(lambda *_: None)  # type: ignore[union-attr]
    _lock = threading.RLock()
    _loop = None
    _thread = None
    _closers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def event_loop() -> asyncio.AbstractEventLoop:
    """Return the loop that all language-model traffic of this process runs on."""
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
        _loop = asyncio.get_running_loop()
        _thread = threading.current_thread()
        return _loop


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on the engine's loop with the caller's context variables."""
    return asyncio.run_coroutine_threadsafe(coroutine, event_loop())


def _outside_the_loop() -> None:
    if threading.current_thread() is _thread:
        raise RuntimeError(
            "a judge was called synchronously inside its own event loop; use the asynchronous form"
        )


def on_loop(coroutine: Coroutine[Any, Any, T]) -> Awaitable[T]:
    """Return what awaits a coroutine on the engine's loop: connections, limits and locks belong to it.

    It is awaited on any loop of any thread. Cancelling the caller cancels it.
    """
    if threading.current_thread() is _thread:
        return coroutine
    return asyncio.wrap_future(submit(coroutine))


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Return the function's result, computed in a thread, which `GIVEN_UP` tells of the caller's being cancelled."""
    given_up = threading.Event()
    token = GIVEN_UP.set(given_up)
    try:
        return await asyncio.to_thread(function, *arguments)
    except asyncio.CancelledError:
        given_up.set()
        raise
    finally:
        GIVEN_UP.reset(token)


async def apart(size: int, function: Callable[..., T], *arguments: Any) -> T:
    """Return the function's result, computed in a thread for texts of `LONG` characters or more.

    Context variables are those of the caller.
    """
    if size < LONG:
        return function(*arguments)
    return await asyncio.to_thread(function, *arguments)


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
    """A value that belongs to one event loop (a semaphore, a lock): made again on another one, as after a fork."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self) -> T:
        """Return the value of the running loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._current = loop, self._make()
        return self._current

    def __deepcopy__(self, memo: dict[int, Any]) -> PerLoop[T]:
        return self


class Heap:
    """The objects in memory, which garbage collections leave out while batches are judged.

    Looking through the modules of DSPy and LiteLLM again and again took a quarter of a row's time. Batches may overlap.
    """

    def __init__(self) -> None:
        self._batches = 0
        self._others = False

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the heap for a batch, unless others did: what they froze stays so."""
        with _lock:
            ours = self._batches > 0 or not self._frozen_by_others()
            if ours and self._batches == 0:
                gc.freeze()
            if ours:
                self._batches += 1
        try:
            yield
        finally:
            if ours:
                self._thaw()

    def _thaw(self) -> None:
        with _lock:
            self._batches -= 1
            if self._batches == 0:
                gc.unfreeze()

    def _frozen_by_others(self) -> bool:
        """Return whether others froze the heap, now or at an earlier batch.

        Python counts what is frozen one by one: in a server, that took longer at each batch than judging a row.
        """
        self._others = self._others or gc.get_freeze_count() > 0
        return self._others


heap = Heap()


class _Row(Generic[T, R]):
    """An item that was read, with the caller's context variables, and its result."""

    __slots__ = ("_error", "_value", "context", "done", "item")

    def __init__(self, item: T) -> None:
        self.item = item
        self.context = contextvars.copy_context()
        self.done = False
        self._error: BaseException | None = None

    def end(self, value: R) -> None:
        self._value = value
        self.done = True

    def fail(self, error: BaseException) -> None:
        self._error = error
        self.done = True

    def result(self) -> R:
        if self._error is not None:
            raise self._error
        return self._value


class _Window(Generic[T, R]):
    """The items that an ordered map has read ahead: at most `8 * in_flight`, in order, `in_flight` of them at work."""

    def __init__(
        self,
        worker: Callable[[T], Awaitable[R]],
        in_flight: int,
        tell: Callable[[], None],
    ) -> None:
        self._worker = worker
        self._in_flight = in_flight
        self._most = max(8 * in_flight, 8)
        self._tell = tell
        self._loop = event_loop()
        self._todo: deque[_Row[T, R]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._called = False
        self.pending: deque[_Row[T, R]] = deque()
        #: The row that the caller waits for.
        self.head: _Row[T, R] | None = None
        self.over = False
        self._failed = False
        #: What the source raised: what was read before it is still finished.
        self.broken: Exception | None = None

    @property
    def reads_on(self) -> bool:
        full = len(self.pending) >= self._most or bool(
            self.pending and self.pending[0].done
        )
        return not (self.over or full)

    def start(self, item: T) -> None:
        row = _Row[T, R](item)
        self.pending.append(row)
        self._todo.append(row)
        if not self._called and len(self._tasks) < self._in_flight:
            self._called = True
            self._loop.call_soon_threadsafe(self._begin)

    def end(self, error: Exception | None = None) -> None:
        """There is no further item, because of an error or not."""
        self.over = True
        self.broken = error

    def _begin(self) -> None:
        """Begin as many items as there are places for. After one that failed the map ends: none is begun."""
        self._called = False
        while self._todo and len(self._tasks) < self._in_flight and not self._failed:
            row = self._todo.popleft()
            task = self._loop.create_task(self._work(row), context=row.context)
            self._tasks.add(task)
            task.add_done_callback(partial(self._left, row))

    def _left(self, row: _Row[T, R], task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not row.done:  # cancelled before it began
            self._failed = True
            row.fail(asyncio.CancelledError())
        if row is self.head:
            self._loop.call_soon(self._tell)  # once for all of this turn
        self._begin()

    async def _work(self, row: _Row[T, R]) -> None:
        # Of many rows, no prompts are kept; see `as_dspy.Quiet`. The context is this row's own.
        settings = dotdict(main_thread_config)
        settings.update(thread_local_overrides.get(), disable_history=True)
        thread_local_overrides.set(settings)
        try:
            row.end(await self._worker(row.item))
        except BaseException as error:
            self._failed = True
            row.fail(error)
            if not isinstance(error, Exception):
                raise

    def close(self) -> None:
        """Cancel what is under way."""
        self._failed = True
        if self._tasks or self._called:
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        self._todo.clear()
        for task in self._tasks:
            task.cancel()


def ordered_map(
    worker: Callable[[T], Awaitable[R]], items: Iterable[T], *, in_flight: int
) -> Generator[R, None, None]:
    """Yield `worker(item)` for each item, in the order of the items, `in_flight` of them at a time.

    The items are read in the caller's thread, so that they may come from a database cursor, a slow pipe or another
    judge's scores. Memory does not grow with their number: at most `8 * in_flight` are read ahead. The first exception
    that a worker lets through ends the map; one of the source comes after the results of the items read before it.
    Leaving the iterator early cancels the calls under way. DSPy's histories keep nothing of the calls.
    """
    _outside_the_loop()
    source = iter(items)
    ready = threading.Event()
    window = _Window(worker, in_flight, ready.set)
    with heap.frozen(), contextlib.closing(window):
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
            window.head = head = window.pending[0]
            while not head.done:
                ready.clear()
                if not head.done:
                    ready.wait()
            yield head.result()
            window.pending.popleft()
        if window.broken is not None:
            raise window.broken


async def aordered_map(
    worker: Callable[[T], Coroutine[Any, Any, R]],
    items: Iterable[T] | AsyncIterable[T],
    *,
    in_flight: int,
) -> AsyncGenerator[R, None]:
    """Yield as `ordered_map` does, for asynchronous callers on any loop.

    The items, which may come asynchronously, are read on the caller's loop. Close the generator (`contextlib.aclosing`)
    when leaving it early: that cancels the calls under way.
    """
    source = aiter(items if isinstance(items, AsyncIterable) else _as_async(items))
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()

    def tell() -> None:
        with contextlib.suppress(RuntimeError):  # the caller's loop may be closed
            loop.call_soon_threadsafe(ready.set)

    window = _Window(worker, in_flight, tell)
    with heap.frozen(), contextlib.closing(window):
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
            window.head = head = window.pending[0]
            while not head.done:
                ready.clear()
                if not head.done:
                    await ready.wait()
            yield head.result()
            window.pending.popleft()
        if window.broken is not None:
            raise window.broken


async def _as_async(items: Iterable[T]) -> AsyncGenerator[T, None]:
    for item in items:
        yield item
