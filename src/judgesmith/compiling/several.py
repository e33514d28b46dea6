"""`judgesmith compile` for several aspects: one judge, of one pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.markup import escape

from ..errors import OptionError
from ..running.console import duration, out

if TYPE_CHECKING:
    from ..optimizers.report import AspectsReport, Plan
    from ..optimizers.several import SeveralCompiler
    from .run import CompileRun


def compile_aspects(
    run: CompileRun, *, dry_run: bool = False, as_json: bool = False
) -> int:
    """Compile, save and tell; the exit code: 1 where there is an aspect of which no held-out row got a score.

    What cannot be written is refused before anything is spent.
    """
    from ..programs.artifact import save_or_keep
    from ..programs.capabilities import models_of
    from ..programs.models.names import check_listed
    from ..running.console import Watch, err, print_json
    from ..running.opening import (
        check_writable,
        model_for,
        open_model,
        open_others,
        quiet,
    )
    from .telling import tell_labels

    _refuse(run)
    with quiet():
        several = run.several()
        models = [model_for(judge, run.lm) for judge in several.judges.values()]
        run = replace(run, lm=models[0])
        if not as_json:
            for labels in several.labels.values():
                tell_labels(labels)
        plan = several.plan(run.lm, teacher=run.run.teacher is not None)
        if dry_run:
            return _dry_run(run, several, plan, as_json=as_json)
        parent = run.parent()
        check_writable(run.output, run.labels, run.heldout_file, *run.files())
        where = run.connection()
        for judge in several.judges.values():
            check_listed(models_of(judge.method))
            open_others(judge, where)
        lm = open_model(run.lm, where, run.sampling())
        teacher = open_model(run.run.teacher, where) if run.run.teacher else None
        if not as_json:
            most = min(plan.calls, run.run.max_calls or plan.calls)
            if most:
                calls = (
                    f"at most {most:,} calls to {escape(lm.name)}; Ctrl-C loses nothing"
                )
                err.print(calls, style="dim")
            for note in plan.notes:
                err.print(f"note: {note}", style="dim", markup=False)
        with Watch("compiling", plan.steps) as watch:
            several.compiler = replace(
                several.compiler, progress=watch, teacher=teacher
            )
            made, report = several.run(lm, plan)
        made.report = report
        made.provenance = run.descended(made.provenance, parent)
        save_or_keep(made, run.output)
        if as_json:
            print_json(report.to_dict() | {"judge": str(run.output)})
        else:
            notes = [n for one in several.labels.values() for n in one.warnings]
            show_aspects(report, shown=notes)
            saved = escape(str(run.output))
            out.print(
                f"\nSaved {saved}. Next: judgesmith score OUTPUTS.jsonl --judge {saved}"
            )
        if report.nothing_scored:
            err.print(
                "no held-out row got a score of one aspect: see the notes for the reasons",
                style="red",
            )
        return int(report.nothing_scored)


def _refuse(run: CompileRun) -> None:
    """Raise OptionError for what is of one aspect only."""
    asked = {
        "--also": run.run.also,
        "--mlflow": run.run.mlflow,
        "--register": run.registered,
        "--take": run.run.take,
    }
    for name, value in asked.items():
        if value is not None:
            raise OptionError(
                f"{name} is for a judge of one aspect; leave it out, or compile the aspects one by one"
            )


def show_aspects(report: AspectsReport, *, shown: Sequence[str] = ()) -> None:
    """Show the table that ends a run. Notes in `shown` were said before."""
    report.table().show(out)
    usage = report.usage
    out.print(
        f"{usage.calls:,} calls ({usage.cached:,} more came from the disk), {usage.prompt_tokens:,} + "
        f"{usage.completion_tokens:,} tokens, {duration(report.seconds)}."
    )
    said = {*shown, *(f"{name}: {note}" for name in report.aspects for note in shown)}
    for note in report.notes:
        if note not in said:
            style = "red" if "WARNING" in note else "yellow"
            out.print(f"note: {note}", style=style, markup=False)


def _dry_run(
    run: CompileRun, several: SeveralCompiler, plan: Plan, *, as_json: bool
) -> int:
    """Show what the run would take, all aspects together."""
    from ..cli.rendering import show_plan
    from ..programs.models.lm import NO_MODEL
    from ..running.console import print_json
    from ..running.opening import expected_seconds
    from .telling import show_labels

    seconds = expected_seconds(plan.calls, run.lm, run.connection())
    plan = replace(plan, seconds=seconds)
    if not as_json:
        for labels in several.labels.values():
            show_labels(labels)
        show_plan(plan, "no model" if run.lm == NO_MODEL else run.lm or "any model")
        return 0
    counted = ("rows", "train", "heldout", "folds", "runs", "calls", "row_calls")
    names = (*counted, "prompt_tokens", "completion_tokens", "cost")
    understood = {name: one.understood() for name, one in several.labels.items()}
    settings = {name: judge.method.settings() for name, judge in several.judges.items()}
    print_json(
        {"dry_run": True, "seconds": round(seconds)}
        | {name: getattr(plan, name) for name in names}
        | {"aspects": understood, "plan_notes": list(plan.notes), "methods": settings}
    )
    return 0
