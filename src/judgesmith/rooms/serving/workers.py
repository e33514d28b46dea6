"""Several processes behind one port: uvicorn's own, which it starts again when one dies."""

from __future__ import annotations

import inspect
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dspy
import orjson
import psutil
import uvicorn
from prometheus_client import multiprocess
from uvicorn.supervisors import Multiprocess

from judgesmith.errors import OptionError
from judgesmith.programs import artifact, loading
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection
from judgesmith.rooms.serving.app import application
from judgesmith.rooms.serving.gate import Hosts
from judgesmith.rooms.serving.metrics import SHARED
from judgesmith.rooms.serving.run import configured, prepared
from judgesmith.rooms.serving.service import Bounds, Service
from judgesmith.running.opening import open_judge, quiet

#: Seconds that a process may be silent, as while it loads a model, before it is taken to hang and started again.
PATIENCE = 120


@dataclass(frozen=True)
class Worker:
    """One process of a server; calling it there makes the application.

    Its limits are its share.
    """

    judges: Mapping[str, Path]
    lm: str | None
    where: Connection
    bounds: Bounds
    keys: tuple[str, ...]
    hosts: Hosts
    log: bool

    def share(self, workers: int) -> Worker:
        """Return a worker with its share of the limits.

        Raises:
            OptionError: If there are fewer calls or rows at once than processes.
        """
        for name, most in (
            ("--concurrency", self.where.concurrency),
            ("--queue", self.bounds.queue),
        ):
            if most is not None and most < workers:
                raise OptionError(
                    f"{name} {most} is fewer than the {workers} processes that share it"
                )
        where = replace(
            self.where,
            concurrency=self.where.concurrency and self.where.concurrency // workers,
            rpm=self.where.rpm and self.where.rpm / workers,
        )
        return replace(
            self,
            where=where,
            bounds=replace(
                self.bounds,
                queue=self.bounds.queue // workers,
                key_rows=self.bounds.key_rows and self.bounds.key_rows / workers,
            ),
        )

    def __call__(self) -> Callable[..., Any]:
        """Return the application, whose judges run on the loop that listens."""
        dead = _forget_the_dead(Path(os.environ[SHARED]))
        with quiet():
            judges = {
                name: open_judge(path, self.lm, self.where)
                for name, path in self.judges.items()
            }
        service = Service(judges, self.bounds)
        service.metrics.deaths.inc(len(dead))
        prepared(service)
        dspy.configure(disable_history=True)
        loop = engine.adopt()
        ends = signal.getsignal(signal.SIGTERM)

        def stop(number: int, frame: Any) -> None:
            loop.call_soon_threadsafe(service.stop)
            if callable(ends):
                ends(number, frame)

        signal.signal(signal.SIGTERM, stop)
        return application(service, keys=self.keys, hosts=self.hosts, log=self.log)


def _forget_the_dead(folder: Path) -> set[int]:
    """Discard the rows that dead processes had accepted, and return these processes; their counts stay."""
    dead = set()
    for file in folder.glob("gauge_live*.db"):
        number = file.stem.rpartition("_")[2]
        if number.isdigit() and not psutil.pid_exists(int(number)):
            dead.add(int(number))
            multiprocess.mark_process_dead(int(number), str(folder))  # type: ignore[no-untyped-call]
    return dead


class Supervisor(Multiprocess):
    """Uvicorn's, which starts a process that died again without a word; this one has a line of log for it."""

    log = True

    def keep_subprocess_alive(self) -> None:
        """Replace the processes that died."""
        before = [process.pid for process in self.processes]
        for process in self.processes:
            # While this side holds the worker's end of their pipe, a worker that dies before it answers is waited for
            # as long as one that hangs.
            process.child_conn.close()
        super().keep_subprocess_alive()
        for old, new in zip(before, self.processes, strict=True):
            if self.log and new.pid != old:
                line = {"time": round(time.time(), 3), "event": "worker_died"}
                line |= {"process": old, "replaced_by": new.pid}
                sys.stderr.write(orjson.dumps(line).decode() + "\n")


def serve_many(
    worker: Worker, workers: int, listening: socket.socket, started: Callable[[], None]
) -> None:
    """Answer in several processes until SIGTERM or Ctrl-C.

    Raises:
        OptionError: Before any starts, if an option is invalid.
        ArtifactError: Before any starts, if a file is not a judge.
    """
    share = worker.share(workers)
    for path in share.judges.values():
        loading.build(artifact.read(path))
    loop = "asyncio"
    with suppress(ImportError):
        import uvloop  # noqa: F401

        loop = "uvloop"
    with TemporaryDirectory(prefix="judgesmith-metrics-") as folder:
        os.environ[SHARED] = folder
        config = configured(
            share, share.bounds, factory=True, workers=workers, loop=loop
        )
        config.timeout_worker_healthcheck = PATIENCE
        if "target" in inspect.signature(Multiprocess).parameters:
            own = {"target": uvicorn.Server(config).run}
        else:
            own = {}
        started()
        supervisor = Supervisor(config, sockets=[listening], **own)
        supervisor.log = worker.log
        supervisor.run()
