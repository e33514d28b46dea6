"""`judgesmith score --on ray`: the same engine in several processes or machines, each row once whatever is killed.

The input is cut into parts. A worker judges a part into a file that grows row by row, as `judgesmith score` does, and
renames it when it is whole; whoever takes the part after a kill goes on with that file. So a row is never twice in the
output, and what is asked again is what was in flight.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..datasets.loading import iter_rows
from ..datasets.records import Row
from ..errors import JudgesmithError, MissingExtraError, OptionError
from ..programs import artifact
from ..programs.atomic import write_whole
from ..programs.models.lm import Connection
from .alone import TakenError, alone
from .console import Watch
from .limits import Limits
from .opening import open_judge, quiet
from .scoring import Run, ScoreSummary, score_rows

#: Seconds that a worker waits for a killed one to let go of a part.
PATIENCE = 60.0
#: Parts that a worker has at once: the calls that the end of one leaves free are the next one's. By simulation (64
#: endpoints, skewed lengths) this halves what stands idle.
PARTS_AT_ONCE = 2
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

    def __post_init__(self) -> None:
        if self.workers < 1 or self.part < 1:
            raise OptionError("--workers and --part-rows must be positive")


@dataclass(frozen=True, slots=True)
class Input:
    """A file of rows: which columns play a role, and how many of its first rows are judged."""

    path: Path
    columns: Mapping[str, str] | None = None
    limit: int | None = None

    def parts(self, size: int) -> Iterator[Rows]:
        """Its rows, `size` at a time."""
        rows = itertools.islice(iter_rows(self.path, columns=self.columns), self.limit)
        while part := list(itertools.islice(rows, size)):
            yield part


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
    all of them see."""

    judge: str
    lm: str | None
    where: Connection
    folder: Path
    raw: bool = False


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
        judge = self.judge.copy_for(_language_model=self.judge.lm.metered())
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
        told = summary.to_dict()
        write_whole(summary_file(self.order.folder, number), json.dumps(told))
        growing.replace(whole)
        return told


def part_file(folder: Path, number: int, *, growing: bool = False) -> Path:
    """Of a whole part, or of one that is being judged."""
    return folder / f"{'growing' if growing else 'part'}-{number:06d}.jsonl"


def summary_file(folder: Path, number: int) -> Path:
    return folder / f"part-{number:06d}.summary.json"


@dataclass(slots=True)
class _Progress:
    """The one summary of all parts, and what is told of it."""

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
    output: Path,
    cluster: Cluster,
    *,
    overwrite: bool = False,
    watch: Watch | None = None,
    limits: Limits | None = None,
) -> ScoreSummary:
    """Judge every row of a file with a saved judge on a Ray cluster. output: a folder of parts, or a .jsonl file, which
    is put together from its parts at the end. The same command goes on after any kill.

    Raises what `score_file` raises, and MissingExtraError without Ray.
    """
    limits = limits or Limits()
    if limits.max_calls is not None or limits.max_cost is not None:
        raise OptionError("--max-calls and --max-cost are of one process; with --on ray give --max-failed or --limit")
    read = artifact.read(judging.judge)
    if artifact.build(read).whole_documents:
        raise OptionError("a judge that ranks whole documents takes all rows together; score them without --on ray")
    joined = output.suffix.lower() == ".jsonl"
    folder = (output.with_name(f"{output.name}.parts") if joined else output).resolve()
    if joined and output.exists() and not overwrite:
        raise OptionError(f"{output} is there and complete; give another -o, or --overwrite")
    order = Order(judging.judge.read_text(encoding="utf-8"), judging.lm, judging.where, folder, judging.raw)
    progress = _Progress(watch, limits)
    started = time.monotonic()
    with alone(folder, folder=True):
        _manifest(folder, order, source, cluster.part, overwrite)
        count = _judge_parts(order, source.parts(cluster.part), cluster, progress)
        if joined:
            _join(folder, count, output)
    if joined:
        with suppress(OSError):  # somebody else's files are in it
            folder.rmdir()
    progress.summary.seconds = time.monotonic() - started
    return progress.summary


def _manifest(folder: Path, order: Order, source: Input, part: int, overwrite: bool) -> None:
    """Notes whose parts these are. Raises OptionError where they are another judge's or input's."""
    about = source.path.stat()
    mark = artifact.fingerprint_of(artifact.Artifact.of(json.loads(order.judge)))
    now = {
        "format": "judgesmith.parts/1", "judge": mark,
        "lm": order.lm, "rows_of_a_part": part, "limit": source.limit, "input": source.path.name,
        "bytes": about.st_size,
        "changed": about.st_mtime_ns,
    }  # fmt: skip
    path = folder / "manifest.json"
    if overwrite:
        for old in (*folder.glob("part-*.json*"), *folder.glob("growing-*.jsonl")):
            old.unlink()
    elif path.exists():
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            before = {}
        if other := [name for name, value in now.items() if before.get(name) != value]:
            raise OptionError(
                f"{folder} has parts of another run ({', '.join(other)} differ); give another -o, or --overwrite"
            )
    write_whole(path, json.dumps(now))


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
            if part_file(order.folder, number).exists() and summary_file(order.folder, number).exists():
                told = json.loads(summary_file(order.folder, number).read_text(encoding="utf-8"))
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
    local: dict[str, Any] = {} if cluster.address else {"num_cpus": cluster.workers, "include_dashboard": False}
    with redirect_stdout(sys.stderr):  # Ray tells of killed workers on stdout, where our JSON goes
        try:
            ray.init(address=cluster.address or "local", logging_level=logging.ERROR, log_to_driver=False, **local)
        except Exception as error:  # of a node that does not start, Ray says so with a plain Exception
            where, what = cluster.address or "on this machine", str(error).splitlines()[0]
            raise OptionError(f"the Ray cluster {where} cannot be used: {what}") from None
        try:
            yield ray
        finally:
            ray.shutdown()


def _join(folder: Path, count: int, output: Path) -> None:
    """All parts as one file, then no parts any more."""
    beside = output.with_name(f".{output.name}.joining")
    with beside.open("wb") as file:
        for number in range(count):
            with part_file(folder, number).open("rb") as part:
                while piece := part.read(1 << 20):
                    file.write(piece)
    beside.replace(output)
    for old in (*folder.glob("part-*.json*"), folder / "manifest.json"):
        old.unlink()


__all__ = ["Cluster", "Input", "Judging", "score_on_ray"]
