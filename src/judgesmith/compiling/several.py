"""`judgesmith compile` for several aspects: one judge, of one pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

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
    from ..running.console import Watch, err, print_json
    from ..running.opening import check_writable, model_for, quiet
    from .telling import tell_labels, tell_plan, tell_saved

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
        lm, teacher = run.opened(several.judges.values())
        if not as_json:
            tell_plan(plan, lm, run.run.max_calls)
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
            tell_saved(run.output)
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
    from ..running.console import print_json
    from .telling import planned, show_labels, show_planned

    plan = run.timed(plan)
    if not as_json:
        for labels in several.labels.values():
            show_labels(labels)
        show_planned(plan, run.lm)
        return 0
    understood = {name: one.understood() for name, one in several.labels.items()}
    settings = {name: judge.method.settings() for name, judge in several.judges.items()}
    print_json(
        planned(plan)
        | {"aspects": understood, "plan_notes": list(plan.notes), "methods": settings}
    )
    return 0
