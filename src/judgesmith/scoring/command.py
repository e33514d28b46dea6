"""`judgesmith score`: new outputs scored with a compiled judge."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from ..cli.commands import Command, Json, Reach, Rows, argument, flag
from ..errors import OptionError
from ..running.limits import Limits

if TYPE_CHECKING:
    from .scoring import ScoreSummary


class Score(Command, Rows, Reach, Limits, Json):
    """Score outputs with a compiled judge.

    Rows are written as they finish, in the order of the input; a second run resumes where the first stopped. Exit code
    0: every row has a score; 1: some have none (listed; try `--retry-failed`); 2: an error. A judge compiled from
    labels gives each score an interval that holds the human rating for 90 % of new rows (`verdict.interval`).
    """

    panel: ClassVar[str] = "Use"

    rows: str = argument(..., "Rows to judge: .csv .tsv .json .jsonl .parquet; with --on ray also s3://…, gs://….")
    judge: Path = flag(..., "A judge that `compile` saved.")
    output: str | None = flag(
        None, ".jsonl, or .csv, which is written from OUTPUT.csv.jsonl beside it; default ROWS.scored.jsonl.",
        "-o", "--output",
    )  # fmt: skip
    limit: int | None = flag(None, "Only the first rows.", ge=1)
    retry_failed: bool = flag(False, "Judge only the rows that have no score yet.")
    overwrite: bool = flag(False, "Start over instead of resuming.")
    defer: float | None = flag(
        None,
        'Mark this share of the rows ("defer": true) to leave to a person: those whose scores are least sure, and rows '
        "without a score. `evaluate` and `report` then show the agreement on the rest.",
        metavar="SHARE",
        ge=0,
        le=1,
    )
    raw: bool = flag(False, "Keep the model's own words with every row.")
    on: Literal["ray"] | None = flag(None, "`ray`: in several processes, or on a cluster.")
    address: str | None = flag(None, "--on ray: the address of a Ray cluster; by default a local one is started.")
    workers: int = flag(2, "--on ray: processes.", ge=1)
    part_rows: int = flag(500, "--on ray: rows of a part, which one worker judges.", ge=1)

    def run(self) -> int:
        from ..datasets.loading import count_rows
        from ..parts import plugin
        from ..programs import artifact
        from ..running.console import Watch, out, print_json
        from ..running.opening import is_address, open_judge, quiet
        from .scoring import Existing, Run, mark_deferred, plan, score_file

        target = self.output or _beside(self.rows)
        if self.overwrite and self.retry_failed:
            raise OptionError(
                "--overwrite judges all rows again, --retry-failed those without a score; give one of them"
            )
        if self.on is None and (far := next(filter(is_address, (self.rows, target)), None)):
            raise OptionError(f"{far}: object storage needs --on ray")
        if self.defer is not None and not target.lower().endswith(".jsonl"):
            raise OptionError("--defer works on .jsonl outputs; name the output .jsonl")
        if self.on and (self.retry_failed or self.defer is not None):
            raise OptionError("--retry-failed and --defer resume one .jsonl file; leave --on ray out")
        existing: Existing = "overwrite" if self.overwrite else "retry failed" if self.retry_failed else "continue"
        limits, where, roles, limit = self.limits(), self.connection(), self.roles(), self.limit
        runner = None if self.on is None else plugin("runners", self.on)
        at_hand = nullcontext((Path(self.rows), {})) if runner is None else runner.at_hand(self.rows)
        with quiet(), at_hand as (path, about):
            if self.dry_run:
                planned = plan(self.judge, self.lm, where, path, columns=roles, limit=limit)
                print_json(planned.to_dict()) if self.as_json else out.print(str(planned), markup=False, soft_wrap=True)
                return 0
            total = count_rows(path)
            with Watch("scoring", min(total, limit) if total and limit else total) as watch:
                if runner is not None:
                    artifact.read(self.judge)  # says what is wrong with a file that is no judge
                    summary = runner.score_on_ray(
                        runner.Order(self.judge.read_text(encoding="utf-8"), self.lm, where, self.raw),
                        runner.Input(path, about, roles, limit),
                        target,
                        runner.Cluster(self.address, self.workers, self.part_rows),
                        overwrite=self.overwrite, watch=watch, limits=limits,
                    )  # fmt: skip
                else:
                    made = open_judge(self.judge, self.lm, where)
                    if self.defer is not None and made.sureness is None:
                        raise OptionError(
                            "--defer needs a judge that knows how sure its scores are; compile it from labels with "
                            "this version"
                        )
                    run = Run(made, Path(target), self.raw, watch, limits)
                    summary = score_file(run, path, columns=roles, limit=limit, existing=existing)
            left = None if self.defer is None else mark_deferred(Path(target), self.defer)
            data = summary.to_dict() | {"output": target, "deferred": left}
            print_json(data) if self.as_json else _tell(summary, target, left)
        return 1 if summary.failed else 0


def _beside(rows: str) -> str:
    """Where the scores of a file are written by default."""
    name = Path(rows).name
    return rows.removesuffix(name) + Path(name).stem + ".scored.jsonl"


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
    for count, note in (
        (summary.seen, "of these rows were used to compile the judge; agreement with people on them says little"),
        (summary.suspicious, "rows have texts that address a judge (`suspicious` in the output); they were judged "
         "without those sentences"),
    ):  # fmt: skip
        if count:
            out.print(f"note: {count} {note}", style="yellow")
    for identity, reason in summary.failures[:10]:
        out.print(f"  no score for {identity}: {reason}", markup=False, style="red")
    if summary.failed:
        out.print("The reasons are in the output. Try these rows again with --retry-failed.")
    if left is not None:
        out.print(f'{left} rows are left to a person ("defer": true), those whose scores are least sure.')
