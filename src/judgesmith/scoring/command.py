"""`judgesmith score`: new outputs scored with a compiled judge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, Literal

from judgesmith.cli.commands import (
    CONTENT,
    Command,
    Json,
    Reach,
    Rows,
    argument,
    flag,
)
from judgesmith.errors import OptionError
from judgesmith.parts import EVERYWHERE, Effect, plugin
from judgesmith.running.limits import Limits
from judgesmith.running.settings import BATCH, RAY, check_way, compared

if TYPE_CHECKING:
    from judgesmith.scoring.scoring import ScoreSummary


#: An option for this process alone, with or without batches; and one for engines alone.
HERE = Effect("nothing", (BATCH,))
ENGINES = Effect("nothing", (RAY,))


class Score(Command, Rows, Reach, Limits, Json):
    """Score outputs with a saved judge.

    Rows are written as they finish, in the order of the input. A second run resumes where the first stopped. A judge
    compiled from labels gives each score an interval. It contains the human rating for 90 % of new rows. Exit code 0:
    every row has a score; 1: some have none (listed; try `--retry-failed`); 2: an error. 75: the model's server does
    not answer now; come again.
    """

    example: ClassVar[str] = (
        "judgesmith score outputs.jsonl --judge judge.json -o scored.jsonl"
    )
    everyday: ClassVar[tuple[str, ...]] = (
        "judge",
        "output",
        "lm",
        "limit",
        "columns",
        "explain",
        "defer",
        "retry_failed",
        "overwrite",
        "max_cost",
        "dry_run",
        "as_json",
    )

    rows: str = argument(
        ...,
        "Rows to score: {formats}. A file or a URL (s3://…, gs://…).",
        effect=CONTENT,
    )
    judge: Path = flag(..., "Saved judge (JSON file).", effect=CONTENT)
    output: str | None = flag(
        None,
        "Output file: {outputs}. With --on: a folder of Parquet files. Default: ROWS.scored.jsonl.",
        "-o",
        "--output",
        effect=Effect("nothing", EVERYWHERE),
    )
    limit: int | None = flag(
        None,
        "Number of rows to score, from the first. Default: all.",
        effect=Effect("content", (RAY, BATCH)),
        ge=1,
    )
    retry_failed: bool = flag(
        False,
        "Score only the rows without a score.",
        effect=Effect("nothing", (RAY, BATCH)),
    )
    any_server: bool = flag(
        False,
        "Resume even if the same model is now served from a different address.",
        effect=HERE,
    )
    overwrite: bool = flag(
        False,
        "Start over instead of resuming.",
        effect=Effect("nothing", (RAY, BATCH)),
    )
    defer: float | None = flag(
        None,
        'Share of rows (0 to 1) to mark for human review ("defer": true): unscored rows first, then the least '
        "certain. `check` and `report` show the agreement on the rest.",
        metavar="SHARE",
        effect=HERE,
        ge=0,
        le=1,
    )
    batch: bool = flag(
        False,
        "Use the batch API of openai/… or anthropic/…: half the price, answers within a day. For judges with one "
        "call per row. OUTPUT.batches.jsonl lists the requests. The same command resumes.",
        effect=HERE,
    )
    explain: bool = flag(
        False,
        "Ask the model to explain each score (one extra call per row, unless it already did).",
        effect=Effect(
            "value", (RAY,), {BATCH: f"and {BATCH} cannot be combined; give only one"}
        ),
    )
    otel: bool = flag(
        False,
        "Emit each verdict as the OpenTelemetry event gen_ai.evaluation.result. Configure the exporter with "
        "`opentelemetry-instrument`.",
        effect=HERE,
    )
    raw: bool = flag(
        False, "Include the model's raw answers in the output.", effect=HERE
    )
    on: Literal["ray"] | None = flag(
        None,
        "Engine for scoring in several processes or on a cluster (extra `ray`). All processes share rates and "
        "limits. Default: this process.",
        effect=ENGINES,
    )
    address: str | None = flag(
        None,
        "Address of the engine's cluster. Default: processes on this machine.",
        effect=ENGINES,
    )
    workers: int | None = flag(
        None,
        "Number of scoring processes with --on. Default: 4, or one per core for models in the process.",
        effect=ENGINES,
        ge=1,
    )

    def run(self) -> int:
        """Score the rows, here or on an engine, and write the output."""
        if self.on is None and (self.address or self.workers):
            raise OptionError(
                "--address and --workers are for a run --on ray; name the engine, or leave them out"
            )
        if self.overwrite and self.retry_failed:
            raise OptionError(
                "--overwrite judges all rows again, --retry-failed those without a score; give only one"
            )
        if self.on is not None:
            check_way(self, f"--on {self.on}")
        if self.batch:
            check_way(self, BATCH)
        if self.on is not None and not self.dry_run:
            summary: ScoreSummary = plugin("scoring", self.on)(self)
            return self.tell(summary, str(self.output))
        with _at_hand(self) as (rows, target, name):
            return self.score(rows, target, name)

    def score(self, path: Path, target: Path, name: str) -> int:
        """Score a file of this machine into another, which messages call `name`."""
        from judgesmith.datasets.formats import open_table
        from judgesmith.datasets.loading import count_rows
        from judgesmith.programs.models.provider import is_absent
        from judgesmith.running.console import Watch, err, out, print_json
        from judgesmith.running.opening import open_judge, quiet, roles_for
        from judgesmith.running.trust import UNRATED
        from judgesmith.scoring.scoring import (
            Existing,
            Run,
            mark_deferred,
            plan,
            score_file,
        )

        if self.defer is not None and target.suffix.lower() != ".jsonl":
            raise OptionError("--defer works on .jsonl outputs; name the output .jsonl")
        existing: Existing = "continue"
        if self.overwrite:
            existing = "overwrite"
        elif self.retry_failed:
            existing = "retry failed"
        limits = self.limits()
        where = self.connection()
        limit = self.limit
        roles = roles_for(path, self.roles(), self.judge)
        with quiet():
            if self.dry_run:
                planned = plan(
                    self.judge,
                    self.lm,
                    where,
                    path,
                    columns=roles,
                    limit=limit,
                    explain=self.explain,
                )
                if self.batch:
                    planned = replace(
                        planned,
                        cost=planned.cost and planned.cost / 2,
                        seconds=24 * 3600.0,
                    )
                if self.as_json:
                    print_json(planned.to_dict())
                else:
                    out.print(str(planned), markup=False, soft_wrap=True)
                return 0
            for note in open_table(path).notes:
                err.print(f"note: {note}", style="yellow", markup=False)
            total = count_rows(path)
            total = total and min(total, limit or total)
            with Watch("scoring", total) as watch:
                judge = open_judge(self.judge, self.lm, where)
                judge.explains = self.explain
                if self.explain and is_absent(judge.lm.name):
                    raise OptionError(
                        "--explain: this judge has no model that writes; give --lm"
                    )
                if self.defer is not None and judge.outcome.sureness is None:
                    raise OptionError(
                        "--defer: this judge has no expected errors; compile it again from labels"
                    )
                if self.defer is not None and judge.moved:
                    raise OptionError(
                        f"--defer: this judge was {judge.moved}, so its errors are not known"
                    )
                run = Run(
                    judge,
                    target,
                    self.raw,
                    watch,
                    limits,
                    total=total,
                    any_server=self.any_server,
                    name=self.judge.name,
                    options=compared(self, "value"),
                )
                run.emit = plugin("scoring", "otel")(judge) if self.otel else None
                if self.batch:
                    begun = plugin("scoring", "batch")
                    run.ahead = begun(
                        judge, where, run.output, again=self.retry_failed, watch=watch
                    )
                summary = score_file(
                    run, path, columns=roles, limit=limit, existing=existing
                )
            left = None if self.defer is None else mark_deferred(target, self.defer)
            if not (judge.provenance or self.as_json):
                out.print(f"note: {UNRATED}", style="yellow")
            return self.tell(summary, name, left)

    def tell(self, summary: ScoreSummary, name: str, left: int | None = None) -> int:
        """Show what a run did, and return the exit code."""
        from judgesmith.running.console import print_json

        data = summary.to_dict() | {"output": name, "deferred": left}
        print_json(data) if self.as_json else _print_summary(summary, name, left)
        return 1 if summary.failed else 0


@contextmanager
def _at_hand(command: Score) -> Iterator[tuple[Path, Path, str]]:
    """Provide the rows and the output as files of this machine, with the output's name.

    Addresses are copied from and back.
    """
    from judgesmith.running.storage import copy, file_name, growing, is_address

    with ExitStack() as stack:
        rows = Path(command.rows)
        name = command.output
        if is_address(command.rows):
            rows = Path(stack.enter_context(TemporaryDirectory())) / file_name(
                command.rows
            )
            copy(command.rows, str(rows))
            name = name or command.rows.replace(rows.name, f"{rows.stem}.scored.jsonl")
        name = name or str(rows.parent / f"{rows.stem}.scored.jsonl")
        if is_address(name) and not command.dry_run:
            yield (
                rows,
                stack.enter_context(growing(name, ".jsonl", ".batches.jsonl")),
                name,
            )
        else:
            yield rows, Path(name), name


def _print_summary(summary: ScoreSummary, target: str, left: int | None) -> None:
    from rich.markup import escape

    from judgesmith.running.console import duration, out
    from judgesmith.tables import counted

    again = f" ({summary.resumed} were there)" if summary.resumed else ""
    cost = "price unknown" if summary.cost is None else f"${summary.cost:.4g}"
    kept = f" ({summary.prefix_tokens:,} cached)" if summary.prefix_tokens else ""
    out.print(
        f"{counted(summary.rows, 'row')}{again}: {summary.scored} scored, {summary.failed} failed, "
        f"{summary.repaired} answers repaired, {summary.again} asked again; {counted(summary.calls, 'call')}, "
        f"{summary.prompt_tokens:,}{kept} + {summary.completion_tokens:,} tokens, {cost}, "
        f"{duration(summary.seconds)} → {escape(target)}",
        soft_wrap=True,
    )
    for count, note in (
        (
            summary.seen,
            "of these rows were used to compile the judge; agreement with people on them says little",
        ),
        (
            summary.resembling,
            "of these rows have an output that is nearly equal to a labelled one of another source, such as a "
            "template's (`resembles` in the output); they count as rows of their own",
        ),
        (
            summary.suspicious,
            "rows have texts that address a judge (`suspicious` in the output says what that did); the lower of "
            "the scores with and without those sentences counts",
        ),
        (
            summary.partly,
            "rows have texts of which not all was read (`partly` in the output says which share)",
        ),
        (
            summary.far,
            "rows are unlike all that the judge learnt from (`notes` in the output says how): their scores have no "
            "interval, and its agreement with people does not hold for them",
        ),
    ):
        if count:
            out.print(f"note: {count} {note}", style="yellow")
    for identity, reason in summary.failures[:10]:
        out.print(f"  no score for {identity}: {reason}", markup=False, style="red")
    if summary.failed:
        out.print(
            "The reasons are in the output. Try these rows again with --retry-failed."
        )
    if left is not None:
        out.print(
            f'{left} rows are left to a person ("defer": true), those whose scores are least sure.'
        )
