"""Batch jobs: rows that are judged in the background and fetched later. A job is a folder: its rows, how far it is, and
its results, which grow as those of `judgesmith score` do. A process that finds a folder without a worker resumes it,
after a restart or a kill, and no row is lost or twice in the results; several processes may share the folders."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import threading
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy
import orjson
from pydantic import ValidationError

from ..datasets.records import Row
from ..errors import JudgesmithError, OptionError
from ..programs.atomic import write_whole
from ..running.journal import TakenError, alone
from ..scoring.scoring import Run, score_rows
from ..signatures.values import Verdict
from .forms import RowIn, unreadable
from .reasons import brief, debugging, for_client
from .service import LOOK_AGAIN, Refused, Served, Service

ABOUT, STATE, ROWS, RESULTS, CANCELLED = "job.json", "state.json", "rows.jsonl", "results.jsonl", "cancelled"
_NAME = re.compile(r"[0-9a-f]{32}")
#: Seconds between two notes of how far a job is.
NOTED = 1.0
#: Seconds that a stop waits for rows that are under way; they are judged again later.
PATIENCE = 10.0
#: Failures that a job's status names.
NAMED = 20


class _Halted(Exception):
    """The server stops, or the job was cancelled."""


@dataclass(slots=True)
class _JobRun(Run):
    """A run that counts for the server's metrics, notes how far it is, and ends early where it has to."""

    jobs: Jobs | None = None
    served: Served | None = None
    due: float = 0.0

    def step(self, verdict: Verdict) -> None:
        assert self.jobs is not None and self.served is not None
        Run.step(self, verdict)
        name, model = self.served.name, self.served.lm.name
        self.jobs.service.metrics.judged(name, model, verdict, verdict.usage.seconds)
        folder = self.output.parent
        if self.jobs.halted.is_set() or (folder / CANCELLED).exists():
            raise _Halted
        if time.monotonic() > self.due:
            self.due = time.monotonic() + NOTED
            self.note("running")

    def note(self, state: str, problem: str | None = None) -> None:
        summary = self.summary
        failures = [{"id": name, "reason": brief(reason)[1]} for name, reason in summary.failures[:NAMED]]
        counts = {"done": summary.rows, "scored": summary.scored, "failed": summary.failed, "failures": failures}
        _write(self.output.with_name(STATE), {"state": state, "problem": problem} | counts)


class Jobs:
    """The jobs in a folder. `accept` runs on the engine's loop, everything else in threads."""

    def __init__(self, service: Service, folder: Path) -> None:
        self.service, self.folder = service, folder
        self.halted, self._news = threading.Event(), threading.Event()
        self._later: dict[str, float] = {}
        self._thread = threading.Thread(target=self._work, name="judgesmith-jobs", daemon=True)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(f"--jobs {folder} cannot be used: {error.strerror or error}") from None

    # -- beginning and end

    def start(self) -> None:
        self._thread.start()

    def halt(self) -> None:
        """Take up no row any more."""
        self.halted.set()
        self._news.set()

    def stop(self) -> None:
        self.halt()
        self._thread.join(PATIENCE)

    # -- what clients ask for

    async def accept(self, body: AsyncIterator[bytes], judge: str | None) -> dict[str, Any]:
        """A new job of rows that come a line each, as its client sees it. Raises Refused."""
        served, name = self.service.find(judge), uuid.uuid4().hex
        self.service.check_ready(served)
        most = self.service.bounds.jobs
        if sum(1 for _ in self.folder.glob("*/" + ABOUT)) >= most:
            raise Refused(429, "jobs", f"{most} jobs are kept, which is the most; DELETE those that are done", 60)
        growing = self.folder / f".new-{name}"
        try:
            growing.mkdir()
            about = {"judge": served.name, "fingerprint": served.mark, "created": time.time()}
            about["rows"] = await self._lines(body, growing / ROWS)
            await asyncio.to_thread(self._keep, growing, name, about)
        except BaseException as problem:
            shutil.rmtree(growing, ignore_errors=True)
            if isinstance(problem, OSError):
                words = "there is no room for the job on the server's disk; DELETE jobs that are done"
                raise Refused(507, "disk_full", words, 60) from None
            raise
        self._news.set()
        return {"id": name, "status": f"/v1/jobs/{name}", "results": f"/v1/jobs/{name}/results"} | about

    async def _lines(self, body: AsyncIterator[bytes], path: Path) -> int:
        """Check and keep rows; how many there were."""
        rows, rest, bounds = 0, b"", self.service.bounds
        with path.open("wb") as file:

            def keep(line: bytes) -> None:
                nonlocal rows
                if not line.strip():
                    return
                if len(line) > bounds.body:
                    raise Refused(413, "too_long", f"row {rows}: a row has at most {bounds.body} bytes")
                if rows == bounds.job_rows:
                    raise Refused(413, "too_many_rows", f"a job has at most {bounds.job_rows} rows")
                try:
                    row = RowIn.model_validate_json(line)
                except ValidationError as problem:
                    refused = unreadable(problem)
                    raise Refused(refused.status, refused.code, f"row {rows}: {refused}") from None
                file.write(orjson.dumps(row.model_dump(exclude_none=True)) + b"\n")
                rows += 1

            async for piece in body:
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    keep(line)
                if len(rest) > bounds.body:
                    keep(rest)
            keep(rest)
        if not rows:
            raise Refused(422, "invalid", "a job has at least one row")
        return rows

    def _keep(self, growing: Path, name: str, about: dict[str, Any]) -> None:
        with (growing / ROWS).open("rb") as file:
            os.fsync(file.fileno())
        _write(growing / ABOUT, about)
        growing.rename(self.folder / name)

    def status(self, job: str) -> dict[str, Any]:
        """How far a job is. Raises Refused."""
        folder = self._found(job)
        fresh: dict[str, Any] = {"id": job, "state": "queued", "problem": None, "failures": []}
        fresh |= dict.fromkeys(("done", "scored", "failed"), 0)
        return fresh | _read(folder / ABOUT) | _read(folder / STATE)

    def results(self, job: str, start: int) -> Iterator[bytes]:
        """Lines of a job's results from one row on. Raises Refused."""
        folder = self._found(job)

        def lines() -> Iterator[bytes]:
            with suppress(FileNotFoundError), (folder / RESULTS).open("rb") as file:
                for place, line in enumerate(file):
                    if place >= start and line.endswith(b"\n"):
                        data = orjson.loads(line)
                        named = {"id": data["given"]} if "given" in data else {}
                        reply = {"index": place} | named | for_client(data["verdict"]) | {"judge": data["judge"]}
                        yield orjson.dumps(reply) + b"\n"

        return lines()

    def remove(self, job: str) -> None:
        """Cancel a job or forget it. Raises Refused."""
        folder = self._found(job)
        (folder / CANCELLED).touch()
        # Whoever works on it takes it away.
        with suppress(TakenError), alone(folder, folder=True):
            shutil.rmtree(folder, ignore_errors=True)

    def _found(self, job: str) -> Path:
        folder = self.folder / job
        if not _NAME.fullmatch(job) or not (folder / ABOUT).exists() or (folder / CANCELLED).exists():
            raise Refused(404, "unknown_job", "there is no such job; it may have been removed")
        return folder

    # -- work

    def _work(self) -> None:
        # As for requests: no prompt is kept in memory.
        with dspy.context(disable_history=True):
            while not self.halted.is_set():
                self._news.clear()
                if not any(map(self._try, self._waiting())):
                    self._news.wait(1.0)

    def _waiting(self) -> list[Path]:
        """Jobs that are not done, the oldest first."""
        now = time.monotonic()
        result = []
        for path in self.folder.glob("*/" + ABOUT):
            folder = path.parent
            if self._later.get(folder.name, 0.0) <= now and _read(folder / STATE).get("state") != "done":
                result.append((_read(path).get("created", 0.0), folder))
        return [folder for _, folder in sorted(result)]

    def _try(self, folder: Path) -> bool:
        """Work on a job unless another process does; whether that finished something."""
        if self.halted.is_set() or not folder.exists():
            return False
        self._later[folder.name] = time.monotonic() + LOOK_AGAIN
        try:
            with alone(folder, folder=True):
                if not (folder / ABOUT).exists():  # it was removed at this very moment
                    shutil.rmtree(folder, ignore_errors=True)
                    return False
                self._judge(folder)
                if (folder / CANCELLED).exists():
                    shutil.rmtree(folder, ignore_errors=True)
        except TakenError:
            return False
        except (JudgesmithError, OSError) as problem:  # the disk, most of all
            sys.stderr.write(f"job {folder.name}: {problem if debugging() else type(problem).__name__}\n")
            return False
        return _read(folder / STATE).get("state") in (None, "done")

    def _judge(self, folder: Path) -> None:
        about = _read(folder / ABOUT)
        try:
            served = self.service.find(f"{about['judge']}@{about['fingerprint']}")
        except Refused as problem:
            _write(folder / STATE, _read(folder / STATE) | {"state": "waiting", "problem": str(problem)})
            return
        # A meter of its own: other rows count on the judge's.
        judge = served.judge.copy_for(own_lm=served.lm.metered())
        run = _JobRun(judge, folder / RESULTS, jobs=self, served=served)
        try:
            score_rows(run, _rows(folder / ROWS))
        except _Halted:
            run.note("queued")
        except Exception as problem:
            known = isinstance(problem, JudgesmithError)
            run.note("waiting", brief(str(problem))[1] if known else type(problem).__name__)
        else:
            run.note("done")


def _rows(path: Path) -> Iterator[tuple[Row, dict[str, Any]]]:
    with path.open("rb") as file:
        for place, line in enumerate(file):
            row = RowIn.model_validate_json(line)
            record = {"index": place} | ({} if row.id is None else {"given": row.id})
            name = str(place if row.id is None else row.id)
            yield Row(name, row.output, row.source, row.context, row.reference, group=row.group or ""), record


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _write(path: Path, data: dict[str, Any]) -> None:
    with suppress(FileNotFoundError):  # the job was removed
        write_whole(path, json.dumps(data))
