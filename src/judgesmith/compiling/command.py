"""`judgesmith compile`: a judge learnt from a few human scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from ..cli.options import LM, ApiBase, Columns, Json, LibraryAspect, Method, Optimizer
from ..cli.settings import Config, Presets, Settings, settings_of, with_settings
from ..errors import OptionError
from .steps import check_output, draw_study, tell_labels

if TYPE_CHECKING:
    from ..datasets.records import Labels
    from ..mlflow.logging import Logged
    from ..optimizers.compiling import Compiler
    from ..optimizers.report import CompileReport
    from ..programs.judge import Judge
    from ..running.settings import Catalogue
    from .run import CompileRun

__all__ = ["compile_judge", "register"]

#: `--aspect all`.
ALL = "all"


def register(app: typer.Typer) -> None:
    """Add `compile` to the command line."""
    app.command(name="compile", cls=with_settings(_catalogue))(compile)


def _catalogue(given: Mapping[str, Any]) -> Catalogue:
    from .run import Setup

    return Setup.choose(given.get("method"), given.get("optimizer"), given.get("lm")).catalogue()


def compile(
    context: typer.Context,
    labels: Annotated[
        Path, typer.Argument(help="Rows with human scores: .csv .tsv .json .jsonl .parquet .xlsx, or bench/NAME")
    ],
    lm: LM = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the judge is saved.")] = Path("judge.json"),
    aspect: Annotated[
        list[str] | None,
        typer.Option(
            help="Which score, where rows have several; repeatable, or all: one judge that scores each. mean:A,B,… is "
            "their mean."
        ),
    ] = None,
    scale: Annotated[
        tuple[float, float] | None, typer.Option(help="Lowest and highest score; inferred if not given.")
    ] = None,
    columns: Columns = None,
    heldout: Annotated[str, typer.Option(help="Share of rows held out, or a file of other labels.")] = "0.25",
    method: Method = None,
    library_aspect: LibraryAspect = None,
    optimizer: Optimizer = None,
    settings: Settings = None,
    preset: Presets = None,
    config: Config = None,
    max_calls: Annotated[
        int | None,
        typer.Option(help="Calls at most, not counting repeats after a failed request; the best so far is kept."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what the run would take, spend nothing.")] = False,
    register: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[@ALIAS]",
            help="Register the judge with MLflow as the next version of NAME; `models:/NAME@ALIAS` then stands for its "
            "file. Its run is logged to the experiment of `--mlflow`, or to one of that name.",
        ),
    ] = None,
    api_base: ApiBase = None,
    as_json: Json = False,
) -> None:
    """Learn a judge from a few human scores and save it.

    Finished calls are kept on disk: after Ctrl-C, a crash or a kill, the same command resumes where it stopped.
    What is maximised follows from the labels (--objective overrules it): Q = Pearson + Spearman + Kendall tau-b, from
    -3 to 3, for scores; weighted kappa for categories, AUC for pass and fail, pairwise accuracy for preferences.
    """
    from .run import CompileRun, Setup

    layers = settings_of(context, settings)
    setup = Setup.choose(method, optimizer, lm, (name for layer in layers for name, _ in layer), api_base=api_base)
    share, file = _heldout(heldout)
    everyday = [("run.max_calls", max_calls), ("run.heldout", share)]
    run = CompileRun.of(
        setup, setup.resolve(everyday, *layers), labels=labels, lm=lm, output=output,
        aspect=aspect[0] if aspect else None, scale=scale, columns=columns or (), heldout_file=file,
        library_aspect=library_aspect, api_base=api_base, registered=register,
    )  # fmt: skip
    if aspect and (len(aspect) > 1 or aspect == [ALL]):
        from .several_aspects import compile_aspects

        raise typer.Exit(compile_aspects(run.of_aspects(aspect), dry_run=dry_run, as_json=as_json))
    raise typer.Exit(compile_judge(run, dry_run=dry_run, as_json=as_json))


def _heldout(given: str) -> tuple[float, Path | None]:
    """A share of rows, or a file of labels. Raises OptionError."""
    try:
        share = float(given)
    except ValueError:
        return 0.25, Path(given)
    if not 0 < share < 1:
        raise OptionError(f"--heldout {given}: a share lies between 0 and 1; or name a file of labels")
    return share, None


def compile_judge(run: CompileRun, *, dry_run: bool = False, as_json: bool = False) -> int:
    """Compile, save and tell; the exit code."""
    from ..mlflow.logging import ExperimentLog
    from ..programs.models.names import check_listed
    from ..running.console import Watch, err
    from ..running.opening import make_room, open_model, open_others, quiet

    with quiet():
        labels = run.read()
        judge, compiler = run.judge(labels.aspect), run.compiler(labels)
        if not as_json:
            tell_labels([labels])
        if dry_run:
            return _dry_run(run, judge, labels, compiler, as_json=as_json)
        check_output(run)
        check_listed(judge.models())
        log = ExperimentLog.of(run.run.mlflow, run.registered)
        where = run.connection()
        lm = open_model(run.lm, where, run.sampling())
        teacher = open_model(run.run.teacher, where) if run.run.teacher else None
        open_others(judge, where)
        plan = compiler.plan(judge, labels, lm, teacher=teacher is not None)
        if not as_json:
            err.print(f"at most {plan.calls:,} calls to {escape(lm.name)}; Ctrl-C loses nothing", style="dim")
        with Watch("compiling", plan.steps) as watch:
            made, report = replace(compiler, progress=watch, teacher=teacher).run(judge, labels, lm)
        make_room(run.output, made)
        made.save(run.output)
        drawn = draw_study(report, run.run.plots)
        logged = None if log is None else log.log(made, report)
        if as_json:
            _print_result(run, report, drawn, logged)
        else:
            _tell_result(run, report, made, labels, drawn)
        return _exit_code(report, logged, as_json=as_json)


def _print_result(run: CompileRun, report: CompileReport, drawn: list[str], logged: Logged | None) -> None:
    from ..running.console import print_json

    told: dict[str, Any] = {"judge": str(run.output)}
    if drawn:
        told["plots"] = drawn
    if logged is not None:
        told["mlflow"] = logged.to_dict()
    print_json(report.to_dict() | told)


def _tell_result(run: CompileRun, report: CompileReport, made: Judge, labels: Labels, drawn: list[str]) -> None:
    from ..cli.rendering import show_report
    from ..running.console import out

    show_report(report, made, shown=labels.warnings)
    saved = escape(str(run.output))
    out.print(f"\nSaved {saved}. Next: judgesmith score OUTPUTS.jsonl --judge {saved}")
    if drawn:
        out.print(f"Drawn: {', '.join(drawn)}", markup=False)


def _exit_code(report: CompileReport, logged: Logged | None, *, as_json: bool) -> int:
    """0, or 1 where no held-out row got a score or MLflow failed, with a message."""
    from ..running.console import err, out

    unlogged = logged is not None and logged.error is not None
    if logged is not None and unlogged:
        err.print(
            f"the judge is saved, but MLflow has not logged it: {logged.error}; the same command tries again, with "
            "finished calls from the disk",
            markup=False, style="red",
        )  # fmt: skip
    elif logged is not None and not as_json:
        out.print(f"Logged to the MLflow experiment {logged.experiment}, run {logged.run}", markup=False)
        if logged.model is not None:
            out.print(f"Registered: {logged.model}", markup=False)
    nothing = report.heldout.reached.failed == report.heldout_rows
    if nothing:
        err.print("no held-out row got a score: see the notes for the reasons", style="red")
    return 1 if nothing or unlogged else 0


def _dry_run(run: CompileRun, judge: Judge, labels: Labels, compiler: Compiler, *, as_json: bool) -> int:
    from ..cli.rendering import show_plan
    from ..running.console import print_json
    from ..running.opening import expected_seconds

    plan = compiler.plan(judge, labels, run.lm, teacher=run.run.teacher is not None)
    seconds = expected_seconds(plan.calls, run.lm, run.connection())
    plan = replace(plan, seconds=seconds)
    if as_json:
        names = ("rows", "train", "heldout", "folds", "calls", "prompt_tokens", "completion_tokens", "cost")
        by = {"level": plan.objective.level, "objective": plan.objective.name}
        search = compiler.search.settings() | by if compiler.search else {}
        print_json(
            {"dry_run": True, "seconds": round(seconds)}
            | {name: getattr(plan, name) for name in names}
            | {"objective": plan.objective.name}
            | labels.understood()
            | {"plan_notes": list(plan.notes)}
            | {"method": judge.settings(), "optimizer": search}
        )
    else:
        show_plan(plan, run.lm or "any model")
    return 0
