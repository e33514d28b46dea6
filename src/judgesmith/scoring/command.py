"""`judgesmith score`: new outputs scored with a compiled judge."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..cli.options import (
    LM,
    ApiBases,
    Columns,
    Concurrency,
    DryRun,
    Json,
    Limit,
    MaxCalls,
    MaxCost,
    MaxFailed,
    NoCache,
    Rpm,
    Timeout,
)
from ..errors import OptionError

if TYPE_CHECKING:
    from .scoring import ScoreSummary

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `score` to the command line."""
    app.command(name="score")(score)


class Where(StrEnum):
    ray = "ray"


Defer = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help='Mark this share of the rows ("defer": true) to leave to a person: those whose scores are least sure, and '
        "rows without a score. `evaluate` and `report` then show the agreement on the rest.",
        min=0,
        max=1,
    ),
]
On = Annotated[Where | None, typer.Option(help="`ray`: in several processes, or on a cluster.", rich_help_panel="Ray")]
Address = Annotated[
    str | None, typer.Option(help="Of a Ray cluster; one on this machine if not given.", rich_help_panel="Ray")
]
Workers = Annotated[int, typer.Option(help="Processes.", min=1, rich_help_panel="Ray")]
PartRows = Annotated[int, typer.Option(help="Rows of a part, which one worker judges.", min=1, rich_help_panel="Ray")]


Rows = Annotated[
    str, typer.Argument(help="Rows to judge: .csv .tsv .json .jsonl .parquet; with --on ray also s3://…, gs://….")
]
Output = Annotated[
    str | None,
    typer.Option(
        "-o", "--output",
        help=".jsonl, or .csv, which is written from OUTPUT.csv.jsonl beside it; default ROWS.scored.jsonl",
    ),
]  # fmt: skip
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Judge only the rows that have no score yet.")]


def score(
    rows: Rows,
    judge: Annotated[Path, typer.Option(help="A judge that `compile` saved.")],
    output: Output = None,
    lm: LM = None,
    columns: Columns = None,
    limit: Limit = None,
    retry_failed: RetryFailed = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start over instead of resuming.")] = False,
    defer: Defer = None,
    raw: Annotated[bool, typer.Option("--raw", help="Keep the model's own words with every row.")] = False,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    max_failed: MaxFailed = None,
    dry_run: DryRun = False,
    on: On = None,
    address: Address = None,
    workers: Workers = 2,
    part_rows: PartRows = 500,
    api_base: ApiBases = None,
    timeout: Timeout = 120.0,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    """Score outputs with a compiled judge.

    Rows are written as they finish, in the order of the input; a second run resumes where the first stopped. Exit code
    0: every row has a score; 1: some have none (listed; try `--retry-failed`); 2: an error. A judge compiled from
    labels gives each score an interval that holds the human rating for 90 % of new rows (`verdict.interval`). One of
    several aspects gives each a verdict (`verdict.aspects`; in .csv columns judge_score.ASPECT) and the mean as score.
    """
    from ..datasets.loading import count_rows
    from ..ray.storage import at_hand, is_address
    from ..running.console import Watch, out, print_json
    from ..running.limits import Limits
    from ..running.opening import column_roles, connection, open_judge, quiet
    from .deferral import mark_deferred, refuse_deferring
    from .scoring import Existing, Run, plan, rows_for, score_rows

    target = output or _beside(rows)
    if overwrite and retry_failed:
        raise OptionError("--overwrite judges all rows again, --retry-failed those without a score; give one of them")
    if on is None:
        _refuse_without_ray(rows, target)
    elif retry_failed or defer is not None:
        raise OptionError("--retry-failed and --defer resume one .jsonl file; leave --on ray out")
    existing: Existing = "overwrite" if overwrite else "retry failed" if retry_failed else "continue"
    limits = Limits.of(max_calls, max_cost, max_failed)
    where = connection(api_base, timeout, concurrency, rpm, no_cache)
    roles = column_roles(columns or [])
    with quiet(), at_hand(rows) as (path, stored):
        if dry_run:
            planned = plan(judge, lm, where, path, columns=roles, limit=limit)
            print_json(planned.to_dict()) if as_json else out.print(str(planned), markup=False, soft_wrap=True)
            raise typer.Exit(0)
        total = count_rows(path)
        with Watch("scoring", min(total, limit) if total and limit else total) as watch:
            if on is not None:
                from ..ray.scoring import Cluster, Input, Judging, score_on_ray

                summary = score_on_ray(
                    Judging(judge, lm, where, raw), Input(path, roles, limit, stored),
                    target if is_address(target) else Path(target),
                    Cluster(address, workers, part_rows),
                    overwrite=overwrite, watch=watch, limits=limits,
                )  # fmt: skip
            else:
                made = open_judge(judge, lm, where)
                if defer is not None:
                    refuse_deferring(Path(target), made.sureness is not None)
                run = Run(made, Path(target), raw, watch, limits)
                summary = score_rows(run, rows_for(run.output, path, columns=roles, limit=limit), existing)
        _warn_of_duplicates(summary)
        left = None if defer is None else mark_deferred(Path(target), defer)
        told = summary.to_dict() | {"output": target, "deferred": left}
        print_json(told) if as_json else _tell(summary, target, left)
    raise typer.Exit(1 if summary.failed else 0)


def _refuse_without_ray(*files: str) -> None:
    from ..ray.storage import is_address

    if far := next(filter(is_address, files), None):
        raise OptionError(f"{far}: object storage needs --on ray")


def _beside(rows: str) -> str:
    """Where the scores of a file are written by default."""
    name = Path(rows).name
    return rows.removesuffix(name) + Path(name.removesuffix(".gz")).stem + ".scored.jsonl"


def _warn_of_duplicates(summary: ScoreSummary) -> None:
    from ..running.console import err

    if summary.duplicate_ids:
        err.print(
            f"note: {summary.duplicate_ids} of {summary.rows} rows have the id of a row before them, the first "
            f"{summary.duplicate_example!r}; each is scored, but by id they cannot be told apart",
            style="yellow", markup=False, soft_wrap=True,
        )  # fmt: skip


def _tell(summary: ScoreSummary, target: str, left: int | None) -> None:
    from rich.markup import escape

    from ..running.console import duration, out

    again = f" ({summary.resumed} were there)" if summary.resumed else ""
    cost = "price unknown" if summary.cost is None else f"${summary.cost:.4g}"
    out.print(
        f"{summary.rows} rows{again}: {summary.scored} scored, {summary.failed} failed, "
        f"{summary.repaired} answers repaired; {summary.calls} calls, {summary.prompt_tokens:,} + "
        f"{summary.completion_tokens:,} tokens, {cost}, {duration(summary.seconds)} → {escape(target)}",
        soft_wrap=True,
    )
    if summary.seen:
        out.print(
            f"note: {summary.seen} of these rows were used to compile the judge; agreement with people on "
            "them says little",
            style="yellow",
        )
    if summary.suspicious:
        out.print(
            f"note: the texts of {summary.suspicious} rows address a judge (`suspicious` in the output); they were "
            "judged without those sentences",
            style="yellow",
        )
    for identity, reason in summary.failures[:10]:
        out.print(f"  no score for {identity}: {reason}", markup=False, style="red")
    if summary.failed > 10:
        out.print(f"  … and {summary.failed - 10} more; they are in the output with their reasons")
    if summary.failed:
        out.print("Try them again with --retry-failed.")
    if left is not None:
        out.print(f'{left} rows are left to a person ("defer": true), those whose scores are least sure.')
