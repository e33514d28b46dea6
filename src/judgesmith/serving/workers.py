"""Several processes at one address, each with the judges loaded: a process judges on one core. The operating system
hands each new connection to one of them; whoever started them watches over them and passes signals on."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from socket import socket
from typing import Any

from prometheus_client import multiprocess

from ..errors import JudgesmithError, OptionError
from ..running.console import err
from .metrics import SHARED
from .run import Order, run

#: Seconds beyond the grace of a stop before a process that does not end is killed.
PATIENCE = 15.0
#: Seconds before a process is started in the place of one that died at its start; they double up to the second.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
SPAWNING = multiprocessing.get_context("spawn")


def _work(order: Order, listening: socket, started: Any, wanted: int, running: Any) -> None:
    """A process of several, from its start to its end. running: how many there are at the moment."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of them; the first process passes it on
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        run(
            order, listening, started.set, signals=(signal.SIGTERM,),
            workers=lambda: {"workers": {"wanted": wanted, "running": running.value}},
        )  # fmt: skip
    except JudgesmithError as problem:
        err.print(f"error: {problem}", style="red", markup=False, soft_wrap=True)
        sys.exit(2)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


class _Worker:
    def __init__(self, order: Order, listening: socket, wanted: int, running: Any) -> None:
        self.started = SPAWNING.Event()
        given = (order, listening, self.started, wanted, running)
        self.process: SpawnProcess = SPAWNING.Process(target=_work, args=given)
        self.process.start()


class Workers:
    """The processes, which are started again where one dies, after a pause that grows while they die at their start.
    Raises OptionError where the first one cannot start."""

    def __init__(self, order: Order, listening: socket, count: int) -> None:
        self.order, self.listening, self.count = order.share(count), listening, count
        self.running: list[_Worker] = []
        self.ready = SPAWNING.Value("i", 0)
        self.stopping: float | None = None
        self.pause, self.due, self.up = FIRST_PAUSE, 0.0, False

    def run(self, started: Callable[[], None]) -> None:
        """Until SIGTERM or Ctrl-C; a second one hands back at once what is not finished."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            os.environ[SHARED] = folder
            try:
                # One alone at first: what keeps it from starting is reported once.
                for total in (1, self.count):
                    while self.stopping is None and self.ready.value < total and not self.due:
                        self._look(total)
                if self.stopping is None:
                    started()
                while self.running or self.stopping is None:
                    self._look(self.count)
            finally:
                del os.environ[SHARED]
                for worker in self.running:
                    worker.process.kill()

    def _stop(self, *_: Any) -> None:
        self.stopping = self.stopping or time.monotonic()
        for worker in self.running:
            with suppress(ProcessLookupError):
                os.kill(worker.process.pid or 0, signal.SIGTERM)

    def _look(self, total: int) -> None:
        """Start what is missing; wait a little; take note of processes that have ended."""
        while self.stopping is None and len(self.running) < total and time.monotonic() >= self.due:
            self.running.append(_Worker(self.order, self.listening, self.count, self.ready))
        if not self.running:
            time.sleep(0.1)
        wait([worker.process.sentinel for worker in self.running], timeout=0.1)
        for worker in [one for one in self.running if one.process.exitcode is not None]:
            self._ended(worker)
        self.ready.value = sum(worker.started.is_set() for worker in self.running)
        self.up = self.up or self.ready.value > 0
        if self.ready.value == self.count:
            self.pause = FIRST_PAUSE
        if self.stopping is not None and time.monotonic() > self.stopping + self.order.bounds.grace + PATIENCE:
            for worker in self.running:
                worker.process.kill()

    def _ended(self, worker: _Worker) -> None:
        self.running.remove(worker)
        with suppress(OSError):
            multiprocess.mark_process_dead(worker.process.pid)  # type: ignore[no-untyped-call]
        if self.stopping is not None:
            return
        code, after = worker.process.exitcode, ""
        if not worker.started.is_set():
            if not self.up:
                raise OptionError(f"a process of the server ended at its start (exit {code})")
            self.due, after = time.monotonic() + self.pause, f" in {self.pause:g} s"
            self.pause = min(2 * self.pause, LONGEST_PAUSE)
        err.print(f"note: a process ended (exit {code}); another replaces it{after}")
