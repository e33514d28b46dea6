"""`judgesmith score --on ray`: the same engine in several processes or machines, each row once whatever is killed.

The input is cut into parts. A worker judges a part into a file that grows row by row, as `judgesmith score` does, and
renames it when it is whole; a worker that takes the part after a kill continues that file. So a row is never twice in
the output, and what is asked again is what was in flight. On object storage, where files neither grow nor are renamed,
the growing file stands on the worker's own disk, and the whole part is sent, then its summary: without that it counts
as not there."""

from __future__ import annotations

import itertools
import json
import logging
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..datasets.loading import iter_rows
from ..datasets.records import Row
from ..errors import JudgesmithError, MissingExtraError, OptionError
from ..programs import artifact
from ..programs.atomic import write_whole
from ..programs.models.cache import default_cache_path
from ..programs.models.lm import Connection
from ..running.console import Watch
from ..running.journal import TakenError, alone
from ..running.limits import Limits
from ..running.opening import open_judge, quiet
from ..scoring.scoring import Run, ScoreSummary, score_rows
from .storage import Storage
from .storage import at_hand as at_hand

#: Seconds that a worker waits for a killed one to let go of a part.
PATIENCE = 60.0
#: Parts that a worker has at once: the calls that the end of one leaves free are the next one's. By simulation (64
#: endpoints, skewed lengths) this halves what stands idle.
PARTS_AT_ONCE = 2
MANIFEST = "manifest.json"
COUNTED = (
    "rows", "scored", "failed", "repaired", "suspicious", "resumed", "seen", "calls", "cached_calls", "prompt_tokens",
    "completion_tokens",
)  # fmt: skip

Rows = list[tuple[Row, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the work is done. address: of a Ray cluster, None for one on this machine; workers: processes; part: rows
    of a part."""

    address: str | None = None
    workers: int = 2
    part: int = 500


@dataclass(frozen=True, slots=True)
class Input:
    """A file of rows: which columns play a role, and how many of its first rows are judged. stored: of the copy of a
    file on object storage, what tells that from others."""

    path: Path
    columns: Mapping[str, str] | None = None
    limit: int | None = None
    stored: Mapping[str, Any] | None = None

    def parts(self, size: int) -> Iterator[Rows]:
        """Its rows, `size` at a time."""
        rows = itertools.islice(iter_rows(self.path, columns=self.columns), self.limit)
        while part := list(itertools.islice(rows, size)):
            yield part

    def about(self) -> dict[str, Any]:
        """What tells it from other inputs."""
        if self.stored is not None:
            return dict(self.stored)
        told = self.path.stat()
        return {"input": self.path.name, "bytes": told.st_size, "changed": told.st_mtime_ns}


@dataclass(frozen=True, slots=True)
class Judging:
    """A saved judge, a model in place of its own, how that is reached, and whether the model's words are kept."""

    judge: Path
    lm: str | None = None
    where: Connection = field(default_factory=Connection)
    raw: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """What every worker has to know: the saved judge as text, the model and how it is reached, and the folder, which
    all of them see; or, with stored (an address), one of its own, from which whole parts are sent there."""

    judge: str
    lm: str | None
    where: Connection
    folder: Path
    raw: bool = False
    stored: str | None = None


class Scorer:
    """A worker: opens the judge once, then judges parts. Runs in a process of Ray's."""

    def __init__(self, order: Order) -> None:
        self.order = order
        with tempfile.TemporaryDirectory() as folder, quiet():
            path = Path(folder) / "judge.json"
            path.write_text(order.judge, encoding="utf-8")
            self.judge = open_judge(path, order.lm, order.where)

    def score(self, number: int, rows: Rows) -> dict[str, Any]:
        """Judge a part, or what is missing of it; its summary. Several at once share the model's connection and its
        limits, each with a meter of its own."""
        judge = self.judge.copy_for(own_lm=self.judge.lm.metered())
        whole, growing = part_file(self.order.folder, number), part_file(self.order.folder, number, growing=True)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                summary = score_rows(Run(judge, growing, self.order.raw), iter(rows))
                break
            except TakenError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        data = summary.to_dict()
        if self.order.stored is not None:
            stored = Storage(self.order.stored)
            stored.write(whole.name, growing)
            kept = data | {"bytes": growing.stat().st_size}
            stored.write(summary_file(self.order.folder, number).name, json.dumps(kept).encode())
            growing.unlink()
            return data
        write_whole(summary_file(self.order.folder, number), json.dumps(data))
        growing.replace(whole)
        return data


def part_file(folder: Path, number: int, *, growing: bool = False) -> Path:
    """Of a whole part, or of one that is being judged."""
    return folder / f"{'growing' if growing else 'part'}-{number:06d}.jsonl"


def summary_file(folder: Path, number: int) -> Path:
    return folder / f"part-{number:06d}.summary.json"


def told_of(order: Order, number: int) -> dict[str, Any] | None:
    """The summary of a part that is whole; None of another."""
    part, summary = part_file(order.folder, number), summary_file(order.folder, number)
    if order.stored is None:
        exists = part.exists() and summary.exists()
        return json.loads(summary.read_text(encoding="utf-8")) if exists else None
    stored = Storage(order.stored)
    if stored.size(summary.name) is None:
        return None
    data: dict[str, Any] = json.loads(stored.read(summary.name))
    return data if stored.size(part.name) == data["bytes"] else None


@dataclass(slots=True)
class _Progress:
    """The one summary of all parts, and its progress."""

    watch: Watch | None
    limits: Limits
    summary: ScoreSummary = field(default_factory=lambda: ScoreSummary(cost=0.0))

    def add(self, told: Mapping[str, Any], *, there: bool = False) -> None:
        s = self.summary
        for name in COUNTED:
            new = told["rows"] if there and name == "resumed" else told[name]
            # What an earlier run spent is not this one's.
            if not there or name not in ("calls", "cached_calls", "prompt_tokens", "completion_tokens"):
                setattr(s, name, getattr(s, name) + new)
        if not there:
            s.cost = None if s.cost is None or told["cost"] is None else s.cost + told["cost"]
            s.new_failed += told["failed"]
        s.failures += [(f["id"], f["reason"]) for f in told["failures"]][: 1000 - len(s.failures)]
        if self.watch is not None:
            self.watch.tell(f"{s.failed} failed" if s.failed else "")
            self.watch.step(there=there, count=told["rows"])
        if not there:
            self.limits.check(s.new_failed, s.rows - s.resumed, s.failures[-1][1] if s.failures else None)


def score_on_ray(
    judging: Judging,
    source: Input,
    output: Path | str,
    cluster: Cluster,
    *,
    overwrite: bool = False,
    watch: Watch | None = None,
    limits: Limits | None = None,
) -> ScoreSummary:
    """Judge every row of a file with a saved judge on a Ray cluster. output: a folder of parts, or a .jsonl file, which
    is put together from its parts at the end; on object storage its address. The same command resumes after any kill.

    Raises what `score_file` raises, and MissingExtraError without Ray.
    """
    limits = limits or Limits()
    if limits.max_calls is not None or limits.max_cost is not None:
        raise OptionError("--max-calls and --max-cost are of one process; with --on ray give --max-failed or --limit")
    read = artifact.read(judging.judge)
    if artifact.build(read).whole_documents:
        raise OptionError("a judge that ranks whole documents takes all rows together; score them without --on ray")
    joined = str(output).lower().endswith(".jsonl")
    parts = f"{output}.parts" if joined else str(output)
    exists = Storage(output).size() is not None if isinstance(output, str) else output.exists()
    if joined and exists and not overwrite:
        raise OptionError(f"{output} exists and is complete; give another -o, or --overwrite")
    stored = parts if isinstance(output, str) else None
    # What stands on other machines is not seen here: one command at a time on this one.
    folder = Path(parts).resolve() if stored is None else _own_folder(parts)
    order = Order(judging.judge.read_text(encoding="utf-8"), judging.lm, judging.where, folder, judging.raw, stored)
    progress = _Progress(watch, limits)
    started = time.monotonic()
    with alone(folder, folder=True):
        run = _manifest(order, source, cluster.part, overwrite)
        if stored is not None:
            order = replace(order, folder=_own_folder(run))
        count = _judge_parts(order, source.parts(cluster.part), cluster, progress)
        if joined:
            _join(order, count, output)
    if joined or stored is not None:
        with suppress(OSError):  # somebody else's files are in it
            folder.rmdir()
    progress.summary.seconds = time.monotonic() - started
    return progress.summary


def _own_folder(name: str) -> Path:
    """A folder of this machine for what belongs to an address or a run."""
    return default_cache_path().with_name("parts") / sha256(name.encode()).hexdigest()[:24]


def _manifest(order: Order, source: Input, part: int, overwrite: bool) -> str:
    """Notes whose parts these are; the name of the run that began them. Raises OptionError where they are another
    judge's or input's."""
    folder, stored = order.folder, None if order.stored is None else Storage(order.stored)
    mark = artifact.fingerprint_of(artifact.Artifact.of(json.loads(order.judge)))
    now = {
        "format": "judgesmith.parts/1", "judge": mark, "lm": order.lm, "rows_of_a_part": part, "limit": source.limit,
    } | source.about()  # fmt: skip
    before: Any = None
    if not overwrite:
        try:
            before = json.loads((folder / MANIFEST).read_bytes() if stored is None else stored.read(MANIFEST))
        except FileNotFoundError:
            pass
        except ValueError:
            before = {}
    elif stored is not None:
        stored.remove("part-*.json*")
    else:
        for old in (*folder.glob("part-*.json*"), *folder.glob("growing-*.jsonl")):
            old.unlink()
    if before is not None and (other := [name for name, value in now.items() if before.get(name) != value]):
        where = order.stored or folder
        raise OptionError(
            f"{where} has parts of another run ({', '.join(other)} differ); give another -o, or --overwrite"
        )
    run = str((before or {}).get("run") or uuid.uuid4().hex)
    text = json.dumps(now | {"run": run})
    if stored is None:
        write_whole(folder / MANIFEST, text)
    else:
        stored.write(MANIFEST, text.encode())
    return run


def _judge_parts(order: Order, parts: Iterator[Rows], cluster: Cluster, progress: _Progress) -> int:
    """Judge the parts that are not whole, as many at once as there are workers; the number of parts."""
    count = 0
    with _ray(cluster) as ray:
        how = {"max_restarts": -1, "max_task_retries": -1, "max_concurrency": PARTS_AT_ONCE, "num_cpus": 1}
        actor = ray.remote(**how)(Scorer)
        free = [actor.remote(order) for _ in range(cluster.workers)] * PARTS_AT_ONCE
        busy: dict[Any, Any] = {}

        def finish() -> None:
            (done,), _ = ray.wait(list(busy), num_returns=1)
            free.append(busy.pop(done))
            try:
                progress.add(ray.get(done))
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, JudgesmithError):
                    raise error.cause from None
                raise
            except ray.exceptions.RayActorError as error:
                cause = getattr(error, "cause", None)
                raise OptionError(f"a worker cannot start: {cause or str(error).splitlines()[0]}") from None

        for number, rows in enumerate(parts):
            count += 1
            if (told := told_of(order, number)) is not None:
                progress.add(told, there=True)
                continue
            while not free:
                finish()
            worker = free.pop()
            busy[worker.score.remote(number, rows)] = worker
        while busy:
            finish()
    return count


@contextmanager
def _ray(cluster: Cluster) -> Iterator[Any]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingExtraError("--on ray needs Ray: pip install 'judgesmith[ray]'") from None
    local: dict[str, Any] = {} if cluster.address else {"include_dashboard": False, "num_cpus": cluster.workers}
    with redirect_stdout(sys.stderr):  # Ray tells of killed workers on stdout, where our JSON goes
        try:
            ray.init(address=cluster.address or "local", logging_level=logging.ERROR, log_to_driver=False, **local)
        except Exception as error:  # for a node that does not start, Ray raises a plain Exception
            where, what = cluster.address or "on this machine", str(error).splitlines()[0]
            raise OptionError(f"the Ray cluster {where} cannot be used: {what}") from None
        try:
            yield ray
        finally:
            ray.shutdown()


def _join(order: Order, count: int, output: Path | str) -> None:
    """All parts as one file, then no parts any more."""
    names = [part_file(order.folder, number).name for number in range(count)]
    if isinstance(output, str):
        stored = Storage(order.stored or "")
        Storage(output).write("", itertools.chain.from_iterable(map(stored.pieces, names)))
        stored.remove("part-*.json*", MANIFEST)
        return
    folder = order.folder
    beside = output.with_name(f".{output.name}.joining")
    with beside.open("wb") as file:
        for name in names:
            with (folder / name).open("rb") as part:
                shutil.copyfileobj(part, file)
    beside.replace(output)
    for old in (*folder.glob("part-*.json*"), folder / MANIFEST):
        old.unlink()
