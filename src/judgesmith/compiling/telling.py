"""What `judgesmith compile` shows of labels: how a file was understood, and how its ratings are distributed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judgesmith.datasets.records import Account, Labels
    from judgesmith.optimizers.report import AspectsReport, CompileReport, Plan
    from judgesmith.programs.judge import Judge
    from judgesmith.programs.models.lm import LanguageModel
    from judgesmith.rooms.mlflow.logging import Logged


def tell_labels(labels: Labels) -> None:
    """Print how a file was read, where that is not as usual."""
    from judgesmith.optimizers.examples import scale_of
    from judgesmith.running.console import out

    account = labels.account
    whence = "inferred"
    if labels.scale_given:
        source = account.scale_from if account is not None else None
        whence = f"said by {source}" if source else "given"
    out.print(
        f"{_rows(labels)} of {labels.origin}, {labels.aspect} on {scale_of(labels)} ({whence})",
        markup=False,
    )
    for line in () if account is None else _reading(labels, account):
        out.print(f"  {line}", style="dim", markup=False)
    for warning in labels.warnings:
        out.print(f"note: {warning}", style="yellow", markup=False)


def _rows(labels: Labels) -> str:
    return labels.count if labels.kind == "preference" else f"{len(labels)} rows"


def _reading(labels: Labels, account: Account) -> Iterator[str]:
    """Yield how the rows of a file were read, a line each."""
    from judgesmith.datasets.problems import rows_in_words

    count = len(labels)
    if labels.kind != "score":
        words = f": {' < '.join(labels.categories)}" if labels.categories else ""
        yield f"kind: {labels.kind}{words}"
    if account.skipped or account.labelled != count:
        outputs = "" if account.labelled == count else f" of {count} outputs"
        yield f"{account.rows} rows in the file, {account.labelled} of them labels{outputs}"
    for reason, lines in account.reasons().items():
        rows = [account.ids.get(line, line) for line in lines]
        yield f"left out, {reason}: {rows_in_words(rows)}"
    if account.raters > 1:
        yield f"{account.raters} raters"
    if reasons := sum(bool(row.why(labels.aspect)) for row in labels.rows):
        yield f"{reasons} of {count} outputs have a reason for their score"
    roles = [f"{role} = {column!r}" for role, column in account.columns.items()]
    yield f"columns: {', '.join(roles)}"
    if account.unused:
        yield (
            f"not shown to the judge: {', '.join(map(repr, account.unused))} (to use a column: --columns ROLE=NAME)"
        )


def show_labels(labels: Labels) -> None:
    """How the ratings are distributed, and two rows as they are judged: the worst and the best."""
    import numpy as np

    from judgesmith.datasets.raters import undecided
    from judgesmith.running.console import out
    from judgesmith.tables import shortened

    scores = labels.scores
    levels = labels.levels or tuple(np.unique(scores).tolist())
    if len(levels) > 10:
        levels = tuple(np.linspace(*labels.scale, 6).tolist())
    nearest = np.abs(scores[:, None] - np.array(levels)).argmin(axis=1)
    counts = np.bincount(nearest, minlength=len(levels))
    names = labels.categories or tuple(f"{level:g}" for level in levels)
    if labels.categories:
        split = [undecided(score, np.array(levels)) for score in scores]
        if any(split):
            counts -= np.bincount(nearest[split], minlength=len(levels))
            names = (*names, "split")
            counts = np.append(counts, sum(split))
    names = tuple(shortened(name, 30) for name in names)
    width = max(10, *map(len, names))
    for name, count in zip(names, counts, strict=True):
        out.print(
            f"  {name:>{width}} {'▇' * round(24 * count / counts.max())} {count}",
            markup=False,
            highlight=False,
        )
    for row in (labels.rows[int(scores.argmin())], labels.rows[int(scores.argmax())]):
        out.print(
            f"  row {row.id}, {labels.aspect} {row.scores[labels.aspect]:g}:",
            style="dim",
            markup=False,
        )
        for role in ("source", "context", "reference", "output"):
            if text := getattr(row, role):
                out.print(
                    f"    {role}: {shortened(text, 160)}", style="dim", markup=False
                )
        for text in row.why(labels.aspect):
            out.print(f"    why: {shortened(text, 160)}", style="dim", markup=False)


def tell_plan(plan: Plan, lm: LanguageModel, most_calls: int | None) -> None:
    """Print what a run may take, and the notes on its plan. most_calls: the budget, if there is one."""
    from judgesmith.programs.controls import failed_control
    from judgesmith.running.console import err

    calls = min(plan.calls, most_calls or plan.calls)
    if calls:
        line = f"at most {calls:,} calls to {escape(lm.name)}, further tries not counted; Ctrl-C loses nothing"
        err.print(line, style="dim")
    failed = failed_control(lm.name)
    notes = plan.notes if failed is None else (*plan.notes, failed)
    for note in notes:
        err.print(f"note: {note}", style="dim", markup=False)


def show_compiled(
    compiled: Judge,
    report: CompileReport | AspectsReport,
    paid: float | None,
    *,
    shown: Sequence[str],
) -> None:
    """Show the report that ends a run, its cost, and the notes that are not in `shown`.

    paid: dollars for calls that were sent; None where a price is unknown.
    """
    from judgesmith.cli.rendering import show_notes, show_report, show_usage
    from judgesmith.optimizers.report import CompileReport
    from judgesmith.running.console import out

    if isinstance(report, CompileReport):
        show_report(report, compiled, paid, shown=shown)
        return
    report.table().show(out)
    show_usage(report.usage, report.seconds, paid)
    by_aspect = {f"{name}: {note}" for name in report.aspects for note in shown}
    show_notes(report.notes, by_aspect.union(shown))


def tell_saved(path: Path, *, against: bool = False) -> None:
    """Print where a judge was saved, and the next command. against: the judge runs against people."""
    from judgesmith.running.console import err, out

    saved = escape(str(path))
    if against:
        out.print(f"\nSaved {saved}, to look at: judgesmith show {saved}")
        err.print(
            "It runs against people: do not score with it. Look at the labels and at the ends of signals' scales "
            "(--signal NAME=WORST..BEST), and compile again",
            style="red",
        )
        return
    out.print(f"\nSaved {saved}. Next: judgesmith score OUTPUTS.jsonl --judge {saved}")


def tell_logged(logged: Logged) -> None:
    """Print where MLflow has a judge, or on stderr why it has not."""
    from judgesmith.running.console import err, out

    if logged.error is not None:
        if logged.run is None:
            missing = "has not logged it"
        else:
            missing = f"has only part of it, as run {logged.run}"
        err.print(
            f"the judge is saved, but MLflow {missing}: {logged.error}; the same command tries again, with "
            "finished calls from the disk",
            markup=False,
            style="red",
        )
        return
    out.print(
        f"Logged to the MLflow experiment {logged.experiment}, run {logged.run}",
        markup=False,
    )
    if logged.model is not None:
        out.print(f"Registered: {logged.model}", markup=False)


def planned(plan: Plan) -> dict[str, Any]:
    """Return a plan as a dry run's JSON has it."""
    counted = ("rows", "train", "heldout", "folds", "runs", "calls", "row_calls")
    names = (*counted, "prompt_tokens", "completion_tokens", "cost")
    figures = {name: getattr(plan, name) for name in names}
    batches = {} if plan.batches is None else {"batches": plan.batches}
    seconds = round(plan.seconds or 0)
    return {"dry_run": True, "seconds": seconds, **figures, **batches}


def show_planned(plan: Plan, lm: str | None) -> None:
    """Print a plan as a table for the named model; none: for any."""
    from judgesmith.cli.rendering import show_plan
    from judgesmith.programs.models.provider import NO_MODEL

    show_plan(plan, "no model" if lm == NO_MODEL else lm or "any model")


def tell_waiting() -> None:
    """Print that a search waits to be agreed to."""
    from judgesmith.running.console import out

    out.print(
        "note: the model alone is asked first, one call a row; you are then asked whether to search, with what it may "
        "gain (--yes: at once)"
    )
