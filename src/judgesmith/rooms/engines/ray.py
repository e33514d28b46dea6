"""`judgesmith score --on ray`: Ray Data reads, spreads, restarts and writes; its checkpoints resume after any kill.

OUTPUT/rows has the rows with the columns of a `BatchScorer`, as Parquet; OUTPUT/done the ids that are there, as Ray
keeps them; OUTPUT/input what was no Parquet, as `score` reads it; OUTPUT/run.json what the rows are of.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from judgesmith import errors
from judgesmith.errors import BudgetError, JudgesmithError, OptionError
from judgesmith.extras import from_extra
from judgesmith.programs import loading
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.artifact import Artifact
from judgesmith.programs.capabilities import models_of
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.models.price import Meter, price
from judgesmith.programs.models.provider import is_absent, is_local
from judgesmith.programs.prompting.predict import SECOND, TWICE
from judgesmith.rooms.engines.batches import BatchScorer, with_columns
from judgesmith.rooms.engines.folder import Output, Rows, opened_rows
from judgesmith.running.console import Watch
from judgesmith.running.journal import alone
from judgesmith.running.limits import GO_ON, Limits
from judgesmith.running.storage import is_address
from judgesmith.scoring.scoring import ScoreSummary
from judgesmith.signatures.values import Usage, Verdict

if TYPE_CHECKING:
    from judgesmith.scoring.command import Score

#: Without these Ray sends statistics and logs to the terminal, and on one machine listens to others.
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
#: Share of a core that a process takes which waits for a server; processes by default.
WAITING = 0.1
WORKERS = 4
#: Cores that Ray counts with on one machine for reading, writing and what was done.
BESIDE = 3
#: Rows of a block, which is judged and written as a whole.
FEWEST = 16
MOST = 1000
#: Seconds between two looks at what was counted.
LOOK = 1.0


# What the workers share ----------------------------------------------------------------------------------------------


class Tally:
    """An actor that counts for all workers, and says when they are to stop."""

    def __init__(self, limits: Limits, total: int | None = None) -> None:
        self.limits = limits
        self.total = total
        self.why = ""
        self.error = ""
        self.rows = self.failed = self.admitted = 0
        self.costs: dict[str, float] = {}
        self.usages: dict[str, Usage] = {}

    def admits(self, worker: str, cost: float) -> bool:
        """Return whether a worker, whose calls cost this much so far, may make one more."""
        self.costs[worker] = cost
        most = self.limits.max_calls
        dollars = self.limits.max_cost
        if most is not None and self.admitted >= most:
            self.stop("BudgetError", f"the budget of {most} calls is used up; {GO_ON}")
        elif dollars is not None and math.fsum(self.costs.values()) >= dollars:
            self.stop("BudgetError", f"the budget of ${dollars:g} is used up; {GO_ON}")
        if self.why:
            return False
        self.admitted += 1
        return True

    def judged(
        self, worker: str, usage: Usage, rows: int, failures: Sequence[str]
    ) -> None:
        """Count a batch. usage: of all that a worker did so far."""
        self.usages[worker] = usage
        self.rows += rows
        self.failed += len(failures)
        try:
            self.limits.check(
                self.failed, self.rows, failures[-1] if failures else None, self.total
            )
        except BudgetError as error:
            self.stop("BudgetError", f"{error}; {GO_ON}")

    def stop(self, error: str, why: str) -> None:
        """Have the workers begin nothing more. error: the class of what is to be raised."""
        if not self.why:
            self.error = error
            self.why = why

    def stopped(self) -> tuple[str, str]:
        """Return the error that stopped the run, and why; empty texts while it runs."""
        return self.error, self.why

    def counted(self) -> tuple[int, int, Usage]:
        """Return rows, failed ones, and what they used."""
        return self.rows, self.failed, sum(self.usages.values(), Usage())


class Metered(Meter):
    """A meter that asks the tally before each call."""

    def __init__(self, ray: Any, tally: Any) -> None:
        super().__init__()
        self.ray = ray
        self.tally = tally
        self.worker = ray.get_runtime_context().get_actor_id()

    def admit(self) -> None:
        """Take the cost of a call from the shared budget.

        Raises:
            BudgetError: If the budget is used up.
        """
        if not self.ray.get(self.tally.admits.remote(self.worker, self.cost)):
            raise BudgetError(
                "the budget is used up; raise --max-calls or --max-cost, and repeat the command"
            )
        Meter.admit(self)


class Judging:
    """One worker, with a judge that is opened once. Rows that it did not come to are left out, for the next run."""

    def __init__(
        self, scorer: BatchScorer, tally: Any, core: bool, bounded: bool
    ) -> None:
        if core:  # each process has one
            os.environ.setdefault("JUDGESMITH_THREADS", "1")
        self.scorer = scorer
        self.tally = tally
        self.bounded = bounded
        self.opening = threading.Lock()

    def opened(self, ray: Any) -> LanguageModel:
        """Return the model, metered by the shared budget if there is one."""
        with self.opening:
            lm = self.scorer.opened().lm
            if self.bounded and not isinstance(lm.meter, Metered):
                lm.meter = Metered(ray, self.tally)
            return lm

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Score a batch; return no rows once the run has stopped."""
        ray = import_module("ray")
        if ray.get(self.tally.stopped.remote())[1]:
            return self.scorer(batch.slice(0, 0))
        verdicts: list[Verdict] = []
        usage = Usage()
        try:
            lm = self.opened(ray)
            for verdict in self.scorer.verdicts(batch.to_pylist(), batch.schema.names):
                verdicts.append(verdict)
                usage = lm.meter.usage
        except JudgesmithError as error:
            while verdicts and verdicts[-1].failure:  # of a server that is down
                verdicts.pop()
            ray.get(self.tally.stop.remote(type(error).__name__, str(error)))
        worker = f"{ray.get_runtime_context().get_actor_id()} {os.getpid()}"
        failures = [verdict.failure for verdict in verdicts if verdict.failure]
        self.tally.judged.remote(worker, usage, len(verdicts), failures)
        return with_columns(
            batch.slice(0, len(verdicts)), self.scorer.columns_of(verdicts)
        )


# The run -------------------------------------------------------------------------------------------------------------


def score(command: Score) -> ScoreSummary:
    """Judge the rows of a command into its output.

    Raises:
        OptionError: If no folder is named for the output, or the price of the model is unknown.
        LabelsError: If rows lack an id of their own.
        BudgetError: If a limit is reached.
        MissingExtraError: If Ray is not installed.
    """
    if command.output is None:
        raise OptionError("--on ray needs a folder for its output: -o FOLDER")
    output = Output(command.output)
    started = time.monotonic()
    scorer = BatchScorer(
        command.judge,
        command.lm,
        command.connection(),
        command.roles(),
        explain=command.explain,
    )
    judge = Artifact.of(json.loads(scorer.content))
    model = scorer.lm or (judge.lm.model if judge.lm else "")
    if command.max_cost is not None and price(model, Reply("")) is None:
        raise OptionError(
            f"--max-cost: the price of {model} is unknown; use --max-calls"
        )
    models = [model, *models_of(loading.build(judge).method)]
    waiting = not any(
        name == "" or is_local(name) or is_absent(name) for name in models
    )
    with (
        nullcontext()
        if is_address(output.name)
        else alone(Path(output.name), folder=True)
    ):
        rows = opened_rows(command, output, scorer)
        # Ray writes to stdout what it has to say.
        with redirect_stdout(sys.stderr), Watch("scoring", rows.count) as watch:
            used = _judged(command, output, rows, waiting, watch)
    summary = _summary(output, rows, used)
    summary.cost = price(
        model, Reply("", None, summary.prompt_tokens, summary.completion_tokens)
    )
    summary.seconds = time.monotonic() - started
    return summary


@contextmanager
def _ray(address: str | None, cores: int) -> Iterator[Any]:
    """Return Ray, started on this machine or joined.

    Raises:
        MissingExtraError: If Ray is not installed.
    """
    for name, value in (QUIET | LOOPBACK if address is None else QUIET).items():
        os.environ.setdefault(name, value)
    ray = from_extra("ray", "--on ray", "ray", "ray.data.checkpoint")
    _check_answers(address)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        _join(ray, address, cores)
        yield ray
    except ray.exceptions.RayError as error:
        (*_, line) = str(error).strip().splitlines() or [type(error).__name__]
        raise JudgesmithError(f"Ray ended: {line}; {GO_ON}") from None
    finally:
        ray.shutdown()


def _join(ray: Any, address: str | None, cores: int) -> None:
    own: dict[str, Any] = (
        {"num_cpus": cores, "include_dashboard": False} if address is None else {}
    )
    if address:
        where = f"no Ray can be joined at {address} (RAY_AUTH_MODE=token?)"
    else:
        where = "Ray cannot be started"
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level="ERROR",
            **own,
        )
    except Exception as error:  # of Ray's own, whatever their class: a busy machine's start raises the plain one
        raise OptionError(f"{where}: {error}; {GO_ON}") from None


def _check_answers(address: str | None) -> None:
    """Check that something listens at the address; Ray itself would try for ten minutes.

    Raises:
        OptionError: If nothing listens there.
    """
    place = re.fullmatch(r"(?:ray://)?([^/]+):(\d+)", address or "")
    try:
        if place is not None:
            socket.create_connection((place[1], int(place[2])), timeout=10).close()
    except OSError as error:
        raise OptionError(
            f"--address {address}: no Ray answers there: {error.strerror or error}"
        ) from None


def _judged(
    command: Score, output: Output, rows: Rows, waiting: bool, watch: Watch
) -> Usage:
    """Judge what is not done, and return what was counted. Raises what the workers ended with."""
    workers = command.workers or (WORKERS if waiting else os.cpu_count() or 1)
    share = WAITING if waiting else 1.0
    where = rows.scorer.connection or Connection()
    workers = min(workers, where.concurrency or workers)
    where = replace(
        where,
        concurrency=where.concurrency and where.concurrency // workers,
        rpm=where.rpm and where.rpm / workers,
    )
    scorer = replace(rows.scorer, connection=where)
    if rows.done:
        watch.step(there=True, steps=rows.done)
    if rows.done == rows.count:
        return Usage()
    with _ray(command.address, math.ceil(workers * share) + BESIDE) as ray:
        tally = ray.remote(num_cpus=0)(Tally).remote(
            command.limits(), rows.count - rows.done
        )
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.checkpoint_config = ray.data.checkpoint.CheckpointConfig(
            rows.key,
            output.path("done"),
            override_filesystem=output.system,
            delete_checkpoint_on_success=False,
        )
        judged = (
            ray.data.read_parquet(rows.path, filesystem=rows.system)
            .repartition(
                target_num_rows_per_block=min(
                    MOST, max(FEWEST, rows.count // (8 * workers))
                )
            )
            .map_batches(
                Judging,
                fn_constructor_args=(
                    scorer,
                    tally,
                    not waiting,
                    bool(command.max_calls or command.max_cost),
                ),
                batch_format="pyarrow",
                batch_size=None,
                # The end of one batch, when few of its rows wait, is the beginning of another.
                compute=ray.data.ActorPoolStrategy(
                    size=workers, max_concurrent_calls_per_actor=2
                ),
                num_cpus=share,
            )
        )
        with _watched(ray, tally, watch):
            judged.write_parquet(
                output.path("rows"),
                filesystem=output.system,
                ray_remote_args={"num_cpus": WAITING},
            )
        error, why = ray.get(tally.stopped.remote())
        if why:
            raise getattr(errors, error, JudgesmithError)(why)
        *_, used = ray.get(tally.counted.remote())
        return cast(Usage, used)


@contextmanager
def _watched(ray: Any, tally: Any, watch: Watch) -> Iterator[None]:
    """Show what was counted while the block lasts."""
    ended = threading.Event()

    def look() -> None:
        shown = 0
        while not ended.wait(LOOK):
            try:
                rows, failed, _ = ray.get(tally.counted.remote())
            except ray.exceptions.RayError:  # the run itself says why
                return
            watch.tell(f"{failed} failed" if failed else "")
            if rows > shown:
                watch.step(steps=rows - shown)
                shown = rows

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()


def _summary(output: Output, rows: Rows, used: Usage) -> ScoreSummary:
    table = output.table("rows", [rows.key, "judge_failure", "judge_verdict"])
    failed = table.filter(pc.field("judge_failure").is_valid()).slice(0, 1000)
    summary = ScoreSummary(
        rows=table.num_rows, failed=table.num_rows - table["judge_failure"].null_count
    )
    summary.scored = summary.rows - summary.failed
    summary.resumed = rows.done
    words = (
        ("repaired", '"repaired": true'),
        ("suspicious", '"suspicious": "'),
        ("partly", '"partly": {'),
        ("again", SECOND),
        ("again", TWICE),
    )
    for name, word in words:
        found = pc.sum(pc.match_substring(table["judge_verdict"], word)).as_py() or 0
        setattr(summary, name, getattr(summary, name) + found)
    summary.calls = used.calls
    summary.cached_calls = used.cached
    summary.prompt_tokens = used.prompt_tokens
    summary.completion_tokens = used.completion_tokens
    summary.failures = [
        (str(one[rows.key]), one["judge_failure"]) for one in failed.to_pylist()
    ]
    return summary
