"""`judgesmith score --on ray`: the same engine in several processes or machines, each row once whatever is killed.

The input is cut into parts. A worker judges a part into a file on its own disk that grows row by row, as `judgesmith
score` does; a worker on that machine that takes the part after a kill continues that file. The whole part is sent to
the output, then its summary: without that it counts as not there. So a row is never twice in the output."""

from __future__ import annotations

import itertools
import json
import logging
import os
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
from ..programs.models.cache import default_cache_path
from ..programs.models.lm import Connection
from ..running.console import Watch
from ..running.journal import TakenError, alone
from ..running.limits import Limits
from ..running.opening import is_address, open_judge, quiet
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
    """A file of rows, what tells it from others, which columns play a role, and how many of its first rows are
    judged."""

    path: Path
    about: Mapping[str, Any]
    columns: Mapping[str, str] | None = None
    limit: int | None = None

    def parts(self, size: int) -> Iterator[Rows]:
        """Its rows, `size` at a time."""
        rows = itertools.islice(iter_rows(self.path, columns=self.columns), self.limit)
        while part := list(itertools.islice(rows, size)):
            yield part


@dataclass(frozen=True, slots=True)
class Order:
    """What every worker has to know: the saved judge as text, a model in place of its own and how that is reached,
    whether the model's words are kept, the folder of the parts, and the name of the run that fills it."""

    judge: str
    lm: str | None = None
    where: Connection = field(default_factory=Connection)
    raw: bool = False
    parts: str = ""
    run: str = ""


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
        growing = own_folder(self.order.run) / part_name(number)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                summary = score_rows(Run(judge, growing, self.order.raw), iter(rows))
                break
            except TakenError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        data = summary.to_dict() | {"bytes": growing.stat().st_size}
        stored = Storage(self.order.parts)
        stored.write(part_name(number), growing)
        stored.write(summary_name(number), json.dumps(data).encode())
        growing.unlink()
        return data


def part_name(number: int) -> str:
    return f"part-{number:06d}.jsonl"


def summary_name(number: int) -> str:
    return f"part-{number:06d}.summary.json"


def own_folder(name: str) -> Path:
    """A folder of this machine for what belongs to an output or a run."""
    return default_cache_path().with_name("parts") / sha256(name.encode()).hexdigest()[:24]


def _summary(stored: Storage, number: int) -> dict[str, Any] | None:
    """Of a part that is whole; None of another."""
    if stored.size(summary_name(number)) is None:
        return None
    data: dict[str, Any] = json.loads(stored.read(summary_name(number)))
    return data if stored.size(part_name(number)) == data.get("bytes") else None


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
    order: Order,
    source: Input,
    output: str,
    cluster: Cluster,
    *,
    overwrite: bool = False,
    watch: Watch | None = None,
    limits: Limits | None = None,
) -> ScoreSummary:
    """Judge every row of a file on a Ray cluster. output: a folder of parts, or a .jsonl file, which is put together
    from its parts at the end; a path, or an address of object storage. The same command resumes after any kill.

    Raises what `score_file` raises, and MissingExtraError without Ray.
    """
    limits = limits or Limits()
    if limits.max_calls is not None or limits.max_cost is not None:
        raise OptionError("--max-calls and --max-cost are of one process; with --on ray give --max-failed or --limit")
    read = artifact.Artifact.of(json.loads(order.judge))
    if artifact.build(read).whole_documents:
        raise OptionError("a judge that ranks whole documents takes all rows together; score them without --on ray")
    output = output if is_address(output) else str(Path(output).resolve())
    joined = output.lower().endswith(".jsonl")
    if joined and not overwrite and Storage(output).size() is not None:
        raise OptionError(f"{output} exists and is complete; give another -o, or --overwrite")
    order = replace(order, parts=f"{output}.parts" if joined else output)
    stored, progress, started = Storage(order.parts), _Progress(watch, limits), time.monotonic()
    # What stands on other machines is not seen here: one command at a time on this one.
    with alone(own_folder(order.parts), folder=True):
        about = {
            "format": "judgesmith.parts/1", "judge": artifact.fingerprint_of(read), "lm": order.lm,
            "rows_of_a_part": cluster.part, "limit": source.limit, **source.about,
        }  # fmt: skip
        order = replace(order, run=_run_of(stored, about, overwrite))
        count = _judge_parts(order, source.parts(cluster.part), cluster, progress)
        if joined:
            names = map(part_name, range(count))
            Storage(output).write("", itertools.chain.from_iterable(map(stored.pieces, names)))
            stored.remove_all()
    for name in (order.parts, order.run):
        with suppress(OSError):  # on other machines the second stands, or a part of it is left
            own_folder(name).rmdir()
    progress.summary.seconds = time.monotonic() - started
    return progress.summary


def _run_of(stored: Storage, about: Mapping[str, Any], overwrite: bool) -> str:
    """The name of the run that began these parts, which are noted. Raises OptionError where they are another judge's or
    input's."""
    before: Any = None
    if overwrite:
        stored.remove("part-*.json*")
    else:
        try:
            before = json.loads(stored.read(MANIFEST))
        except FileNotFoundError:
            pass
        except ValueError:
            before = {}
    if before is not None and (other := [name for name, value in about.items() if before.get(name) != value]):
        raise OptionError(
            f"{stored.address} has parts of another run ({', '.join(other)} differ); give another -o, or --overwrite"
        )
    run = str((before or {}).get("run") or uuid.uuid4().hex)
    stored.write(MANIFEST, json.dumps({**about, "run": run}).encode())
    return run


def _judge_parts(order: Order, parts: Iterator[Rows], cluster: Cluster, progress: _Progress) -> int:
    """Judge the parts that are not whole, as many at once as there are workers; the number of parts."""
    count, stored = 0, Storage(order.parts)
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
            if (known := _summary(stored, number)) is not None:
                progress.add(known, there=True)
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
