"""`judgesmith compile` for several aspects: one judge, of one pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from judgesmith.running.console import out

if TYPE_CHECKING:
    from judgesmith.compiling.run import CompileRun
    from judgesmith.optimizers.report import AspectsReport, Plan
    from judgesmith.optimizers.several import SeveralCompiler


def compile_aspects(
    run: CompileRun, *, dry_run: bool = False, as_json: bool = False
) -> int:
    """Compile a judge of several aspects, save it and show its report.

    A file that cannot be written is refused before any call is sent.

    Returns:
        The exit code: 1 if no held-out row of some aspect got a score, if the judge of one runs against people, or if
        MLflow did not log the judge; else 0.
    """
    from judgesmith.compiling.telling import (
        tell_labels,
        tell_logged,
        tell_plan,
        tell_saved,
    )
    from judgesmith.programs.artifact import save_or_keep
    from judgesmith.running.console import Watch, err, print_json
    from judgesmith.running.opening import check_writable, model_for, quiet

    with quiet():
        several = run.several()
        models = [model_for(judge, run.lm) for judge in several.judges.values()]
        run = replace(run, lm=models[0])
        batched = run.batched(several.judges.values())
        if not as_json:
            for labels in several.labels.values():
                tell_labels(labels)
        plan = several.plan(run.lm, teacher=run.run.teacher is not None)
        if dry_run:
            return _dry_run(run, several, plan, as_json=as_json)
        log = run.log()
        parent = run.parent()
        check_writable(run.output, run.labels, run.heldout_file, *run.files())
        lm, teacher = run.opened(several.judges.values())
        if not as_json:
            tell_plan(plan, lm, run.run.max_calls)
        with Watch("compiling", plan.steps) as watch, batched(lm, watch) as lm:
            several.compiler = replace(
                several.compiler, progress=watch, teacher=teacher
            )
            compiled, report = several.run(lm, plan)
        compiled.report = report
        compiled.provenance = run.descended(compiled.provenance, parent)
        save_or_keep(compiled, run.output)
        logged = None if log is None else log.log(compiled, report)
        if as_json:
            more = {} if logged is None else {"mlflow": logged.to_dict()}
            print_json(report.to_dict() | {"judge": str(run.output)} | more)
        else:
            notes = [
                n for of_aspect in several.labels.values() for n in of_aspect.warnings
            ]
            show_aspects(report, shown=notes)
            tell_saved(run.output, against=report.against_people)
        failed = logged is not None and logged.error is not None
        if logged is not None and (failed or not as_json):
            tell_logged(logged)
        if report.nothing_scored:
            err.print(
                "no held-out row got a score of one aspect: see the notes for the reasons",
                style="red",
            )
        return int(report.nothing_scored or report.against_people or failed)


def show_aspects(report: AspectsReport, *, shown: Sequence[str] = ()) -> None:
    """Show the table that ends a run, its cost, and the notes that are not in `shown`."""
    from judgesmith.cli.rendering import show_notes, show_usage

    report.table().show(out)
    show_usage(report.usage, report.seconds)
    by_aspect = {f"{name}: {note}" for name in report.aspects for note in shown}
    show_notes(report.notes, by_aspect.union(shown))


def _dry_run(
    run: CompileRun, several: SeveralCompiler, plan: Plan, *, as_json: bool
) -> int:
    """Show the calls, tokens and seconds that all aspects together would take."""
    from judgesmith.compiling.telling import planned, show_labels, show_planned
    from judgesmith.running.console import print_json

    plan = run.timed(plan)
    if not as_json:
        for labels in several.labels.values():
            show_labels(labels)
        show_planned(plan, run.lm)
        return 0
    understood = {
        name: of_aspect.understood() for name, of_aspect in several.labels.items()
    }
    settings = {name: judge.method.settings() for name, judge in several.judges.items()}
    print_json(
        planned(plan)
        | {"aspects": understood, "plan_notes": list(plan.notes), "methods": settings}
    )
    return 0
