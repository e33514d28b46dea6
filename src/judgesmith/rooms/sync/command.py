"""`judgesmith sync`: labels from where people give them, and verdicts back to there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from judgesmith.cli.commands import Command, Json, Reach, Worded, argument, flag
from judgesmith.errors import OptionError
from judgesmith.parts import plugin
from judgesmith.running.limits import Limits


class Sync(Command, Reach, Worded, Limits, Json):
    """Pull human feedback on traces into a file of labels, and log a judge's verdicts to the traces.

    A later run adds new rows, updates changed ones and removes withdrawn ones, which NAME.removed.jsonl keeps. Other
    rows of the file stay. --judge scores traces without a verdict of this judge, and prints its agreement with the
    feedback since the last sync.

    Set addresses and keys as for the tool itself. MLflow: MLFLOW_TRACKING_URI. Phoenix: PHOENIX_COLLECTOR_ENDPOINT and
    PHOENIX_API_KEY. Langfuse: LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY. Exit code 0: done; 1: some
    traces have no score (the next sync retries them); 2: an error.
    """

    example: ClassVar[str] = "judgesmith sync mlflow support-bot --judge judge.json"

    queue: str = argument(
        ...,
        "Source of the traces: langfuse, mlflow, phoenix, or a queue that a plug-in adds.",
    )
    name: str = argument(..., "Name of the project; for MLflow, of the experiment.")
    output: Path = flag(
        Path("labels.jsonl"), "File of labels to update.", "-o", "--output"
    )
    judge: Path | None = flag(
        None,
        "Saved judge to score the traces with. Its verdicts are logged to the traces.",
    )
    human: str | None = flag(
        None,
        "Name of the feedback to compare the judge with. Default: the judge's aspect.",
        metavar="NAME",
    )
    only: str | None = flag(
        None,
        "Filter of the traces in the tool's own syntax: \"tags.env = 'prod'\" for MLflow, name=agent for others.",
        "--filter",
    )
    limit: int | None = flag(
        None, "Maximum number of traces to score, newest first. Default: all.", ge=1
    )

    def run(self) -> int:
        """Judge new traces, write verdicts back and print the agreement."""
        from judgesmith.programs import artifact, loading
        from judgesmith.rooms.sync.judging import Judging
        from judgesmith.rooms.sync.pulling import Pulled
        from judgesmith.running.console import Watch, print_json
        from judgesmith.running.journal import alone
        from judgesmith.running.opening import open_judge, quiet

        if self.judge is None and (self.human or self.limit):
            raise OptionError("--human and --limit are for --judge; leave them out")
        with quiet(), alone(self.output):
            pulled = Pulled(self.output, f"{self.queue}: {self.name}")
            judge = None
            mark = ""
            if self.judge is not None and self.dry_run:  # opens no model
                read = artifact.read(self.judge)
                judge = loading.build(read)
                mark = artifact.digest(artifact.identity_of(read))
            elif self.judge is not None:
                judge = open_judge(self.judge, self.lm, self.connection())
            queue = plugin("queues", self.queue)(self.name, self.only)
            with Watch("syncing") as watch:
                try:
                    pulled.pull(queue, watch)
                finally:
                    if not self.dry_run:
                        pulled.write()
                data: dict[str, Any] = pulled.to_dict() | {
                    "output": str(self.output),
                    "dry_run": self.dry_run,
                }
                if judge is not None:
                    judging = Judging(
                        judge, queue, pulled, self.human, mark, orders=self.orders()
                    )
                    waiting = judging.waiting(self.limit)
                    if not self.dry_run:
                        judging.run(waiting, self.limits(), watch)
                    failed = [
                        {"id": name, "reason": reason}
                        for name, reason in judging.failures
                    ]
                    about = {
                        "judge": judging.mark,
                        "name": judging.name,
                        "waiting": len(waiting),
                    }
                    about |= {"calls": len(waiting) * judge.method.cost().calls_per_row}
                    data["judged"] = (
                        about
                        | {"scored": judging.scored, "failed": failed}
                        | judging.compared()
                    )
        print_json(data) if self.as_json else _print_pulled(self, data)
        return int(bool(data.get("judged", {}).get("failed")))


#: Ids and rows that are shown; --json has all.
SHOWN = 10


def _print_pulled(command: Sync, data: dict[str, Any]) -> None:
    from judgesmith.running.console import out

    def say(text: str, style: str = "") -> None:
        out.print(text, markup=False, soft_wrap=True, style=style)

    aspects = (
        ", ".join(f"{name} ({n})" for name, n in data["aspects"].items()) or "none"
    )
    say(
        f"{command.queue}, {command.name}: {data['traces']} traces; feedback of {data['raters']} people: {aspects}"
    )
    new = len(data["added"])
    changed = len(data["changed"])
    ids = data["withdrawn"]
    kept = data["rows"] - new - changed
    dry = ", nothing was written (--dry-run)" if command.dry_run else ""
    say(
        f"{command.output}: {new} rows are new, {changed} changed, {kept} stay as they were{dry}"
    )
    if ids:
        more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
        say(
            f"feedback was withdrawn, so these rows are gone: {', '.join(ids[:SHOWN])}{more}",
            "yellow",
        )
        say(
            f"{len(ids)} of {len(ids) + data['rows']} rows of this queue; {data['kept_in']} keeps them as they were",
            "yellow",
        )
    if data["without_output"]:
        say(
            f"{len(data['without_output'])} traces with feedback have no output, so they are no labels",
            "yellow",
        )
    if judged := data.get("judged"):
        _print_judged(judged, say)
        if new or changed or ids:
            # Of a judge that it starts from, compile may keep what was withdrawn.
            start = "" if ids else f" --start {command.judge}"
            say(
                f"To learn from what people said: judgesmith compile {command.output}{start} -o {command.judge}",
                "dim",
            )


def _print_judged(judged: dict[str, Any], say: Any) -> None:
    from judgesmith.running.console import out
    from judgesmith.tables import Column, Table

    missing = f"{judged['waiting']} traces had no verdict of this judge (at most {judged['calls']} calls)"
    failed = f"{len(judged['failed'])} without a score (those without an output are left out)"
    say(
        f"{missing}: {judged['scored']} verdicts logged as {judged['name']!r}, {failed}"
    )
    for one in judged["failed"][:SHOWN]:
        say(f"  no score for {one['id']}: {one['reason']}", "red")
    for key, which in (
        ("since", "labelled since the last sync"),
        ("all", "that the judge was not compiled from"),
    ):
        if agreement := judged[key]:
            if agreement["low"] is not None:
                ends = f" [{agreement['low']:.2f}, {agreement['high']:.2f}]"
            else:
                ends = ""
            if agreement["value"] is None:
                value = agreement["reason"]
            else:
                value = f"{agreement['coefficient']} {agreement['value']:.2f}{ends}"
            say(
                f"Agreement with people on traces {which} (n={agreement['n']}): {value}"
            )
    if judged["aspect"] is None:
        say(
            "No feedback of people has the judge's name; --human NAME says which it is compared with.",
            "yellow",
        )
    table = Table(
        ["trace", Column("people", "g"), Column("judge", ".3g")],
        "Where judge and people differ most",
    )
    for one in judged["differ"][:SHOWN]:
        table.add(one["id"], one["people"], one["judge"])
    if judged["differ"]:
        table.show(out)
