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
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from socket import socket
from typing import Any

from prometheus_client import multiprocess

from ..errors import JudgesmithError, OptionError
from ..programs.models.lm import Connection
from ..running.console import err
from ..running.opening import open_judge, quiet
from .metrics import SHARED
from .run import serve, use_fast_loop
from .service import Bounds

#: Seconds beyond the grace of a stop before a process that does not end is killed.
PATIENCE = 15.0


@dataclass(frozen=True, slots=True)
class Order:
    """What each process serves: saved judges by name, the model in place of their own and how it is reached, and what
    is accepted. jobs: the folder that keeps batch jobs."""

    judges: Mapping[str, Path]
    lm: str | None
    where: Connection
    bounds: Bounds
    jobs: Path
    log: bool = True

    def share(self, workers: int) -> Order:
        """Of one process among several: together they keep to the bounds. Raises OptionError where they cannot."""
        where, bounds = self.where, self.bounds
        least = min(bounds.queue, where.concurrency or workers)
        if least < workers:
            raise OptionError(
                f"{workers} processes cannot share {least}; --queue and --concurrency are of all together"
            )
        where = replace(
            where,
            concurrency=None if where.concurrency is None else where.concurrency // workers,
            rpm=None if where.rpm is None else where.rpm / workers,
        )
        return replace(self, where=where, bounds=replace(bounds, queue=bounds.queue // workers))

    def run(self, listening: socket, started: Callable[[], None], **more: Any) -> None:
        """Serve in this process until it is asked to stop."""
        use_fast_loop()
        with quiet():
            judges = {name: open_judge(path, self.lm, self.where) for name, path in self.judges.items()}
            serve(
                judges, listening, self.jobs, bounds=self.bounds, log=self.log,
                started=started, **more,
            )  # fmt: skip


def _work(order: Order, listening: socket, started: Any) -> None:
    """A process of several, from its start to its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of them; the first process passes it on
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        order.run(listening, started.set, signals=(signal.SIGTERM,))
    except JudgesmithError as problem:
        err.print(f"error: {problem}", style="red", markup=False, soft_wrap=True)
        sys.exit(2)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


class _Worker:
    def __init__(self, order: Order, listening: socket) -> None:
        spawning = multiprocessing.get_context("spawn")
        self.started = spawning.Event()
        self.process: SpawnProcess = spawning.Process(target=_work, args=(order, listening, self.started))
        self.process.start()


class Workers:
    """The processes, which are started again where one dies. Raises OptionError where one cannot start."""

    def __init__(self, order: Order, listening: socket, count: int) -> None:
        self.order, self.listening, self.count = order.share(count), listening, count
        self.running: list[_Worker] = []
        self.stopping: float | None = None

    def run(self, started: Callable[[], None]) -> None:
        """Until SIGTERM or Ctrl-C; a second one hands back at once what is not finished."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            os.environ[SHARED] = folder
            try:
                # One alone at first: what keeps it from starting is reported once.
                for total in (1, self.count):
                    while self.stopping is None and not self._up(total):
                        self._look()
                if self.stopping is None:
                    started()
                while self.running:
                    self._look()
            finally:
                del os.environ[SHARED]
                for worker in self.running:
                    worker.process.kill()

    def _stop(self, *_: Any) -> None:
        self.stopping = self.stopping or time.monotonic()
        for worker in self.running:
            with suppress(ProcessLookupError):
                os.kill(worker.process.pid or 0, signal.SIGTERM)

    def _up(self, total: int) -> bool:
        while len(self.running) < total:
            self.running.append(_Worker(self.order, self.listening))
        return all(worker.started.is_set() for worker in self.running)

    def _look(self) -> None:
        """Wait a little; take note of processes that have ended."""
        wait([worker.process.sentinel for worker in self.running], timeout=0.1)
        for worker in [one for one in self.running if one.process.exitcode is not None]:
            self.running.remove(worker)
            with suppress(OSError):
                multiprocess.mark_process_dead(worker.process.pid)  # type: ignore[no-untyped-call]
            if self.stopping is None:
                if not worker.started.is_set():
                    raise OptionError(f"a process of the server ended at its start (exit {worker.process.exitcode})")
                err.print(f"note: a process ended (exit {worker.process.exitcode}); another replaces it")
                self.running.append(_Worker(self.order, self.listening))
        if self.stopping is not None and time.monotonic() > self.stopping + self.order.bounds.grace + PATIENCE:
            for worker in self.running:
                worker.process.kill()
