"""`judgesmith compile --aspect A --aspect B`: one judge that scores several aspects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from .steps import carry_out, draw_study, exit_code, tell_labels, tell_saved

if TYPE_CHECKING:
    from ..datasets.records import Labels
    from ..optimizers.report import Plan
    from ..optimizers.several_aspects import AspectsReport
    from ..programs.judge import Judge
    from ..programs.models.lm import LanguageModel
    from .run import CompileRun

__all__ = ["compile_aspects"]


def compile_aspects(runs: Mapping[str, CompileRun], *, dry_run: bool = False, as_json: bool = False) -> int:
    """Compile a judge of the runs' aspects, save and tell; the exit code."""
    from ..cli.rendering import show_aspects_report
    from ..optimizers.several_aspects import AspectsCompiler, for_each
    from ..running.console import print_json
    from ..running.opening import quiet
    from .run import judge_of_aspects

    run = next(iter(runs.values()))
    with quiet():
        if run.registered is not None:
            raise OptionError("--register takes a judge of one aspect; compile each with a name of its own")
        labels = for_each(runs, lambda n: runs[n].read())
        judge = judge_of_aspects(runs, labels)
        compiler = AspectsCompiler(for_each(runs, lambda n: runs[n].compiler(labels[n])))
        if not as_json:
            tell_labels(list(labels.values()))
        if dry_run:
            return _dry_run(
                run, judge, labels, compiler.plan(judge, labels, run.lm, teacher=bool(run.run.teacher)), as_json
            )
        log = run.log()

        def compiled(lm: Any, teacher: Any, watch: Any) -> Any:
            taught = {name: replace(one, teacher=teacher) for name, one in compiler.compilers.items()}
            return AspectsCompiler(taught, watch).run(judge, labels, lm)

        made, report, lm = carry_out(
            run,
            judge,
            lambda lm, teacher: compiler.plan(judge, labels, lm, teacher=teacher is not None).values(),
            compiled,
            as_json=as_json,
        )
        drawn = _draw(report, run)
        problems = [] if log is None else _log(log, made, report, lm)
        if as_json:
            print_json(report.to_dict() | {"judge": str(run.output)} | ({"plots": drawn} if drawn else {}))
        else:
            show_aspects_report(report, made, shown=[note for one in labels.values() for note in one.warnings])
            tell_saved(run, drawn)
        return exit_code(report.aspects, problems)


def _dry_run(
    run: CompileRun, judge: Judge, labels: Mapping[str, Labels], plans: Mapping[str, Plan], as_json: bool
) -> int:
    from ..cli.rendering import show_plan
    from ..running.console import out, print_json
    from ..running.opening import expected_seconds

    summed = {
        name: sum(getattr(plan, name) for plan in plans.values())
        for name in ("calls", "prompt_tokens", "completion_tokens")
    }
    costs = [plan.cost for plan in plans.values()]
    cost = None if None in costs else sum(one or 0.0 for one in costs)
    seconds = expected_seconds(summed["calls"], run.lm, run.connection())
    notes = tuple(dict.fromkeys(note for plan in plans.values() for note in plan.notes))
    if not as_json:
        fullest = max(plans.values(), key=lambda plan: plan.rows)
        show_plan(replace(fullest, **summed, cost=cost, seconds=seconds, notes=notes), run.lm or "any model")
        for name, plan in plans.items():
            out.print(f"  {name}: {plan.rows} rows, {plan.calls:,} calls", markup=False, style="dim")
        return 0
    sizes = ("rows", "train", "heldout", "folds", "calls", "prompt_tokens", "completion_tokens", "cost")
    data: dict[str, Any] = {
        name: {size: getattr(plan, size) for size in sizes}
        | labels[name].understood()
        | {"plan_notes": list(plan.notes), "method": judge.by_aspect[name].settings()}
        for name, plan in plans.items()
    }
    passages = len(judge.passages())
    print_json(
        {"dry_run": True, "seconds": round(seconds)} | summed
        | {"cost": cost, "passages_per_row": passages, "aspects": data, "plan_notes": list(notes)}
    )  # fmt: skip
    return 0


def _draw(report: AspectsReport, run: CompileRun) -> list[str]:
    """Optuna's plots of each aspect, in folders of their own."""
    folder = run.run.plots
    if folder is None:
        return []
    beneath = {name: re.sub(r"[^\w-]+", "_", name) for name in report.aspects}
    return [file for name, one in report.aspects.items() for file in draw_study(one, folder / beneath[name])]


def _log(log: Any, made: Judge, report: AspectsReport, lm: LanguageModel) -> list[str]:
    """A run of MLflow's for each aspect; what went wrong."""
    problems = []
    for name, member in made.by_aspect.items():
        logged = log.log(member.copy_for(own_lm=lm), report.aspects[name])
        problems += [] if logged.error is None else [f"{name}: {logged.error}"]
    return problems
