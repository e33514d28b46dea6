"""`judgesmith compile`: a judge learnt from a few human scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from judgesmith.cli.commands import (
    Aspect,
    Command,
    Json,
    Jury,
    Preset,
    Rows,
    Scaled,
    argument,
    flag,
)
from judgesmith.errors import OptionError

if TYPE_CHECKING:
    from judgesmith.compiling.run import CompileRun, Setup
    from judgesmith.optimizers.compiling import AspectCompiler
    from judgesmith.optimizers.report import AspectsReport, CompileReport, Plan
    from judgesmith.optimizers.several import SeveralCompiler
    from judgesmith.programs.judge import Judge
    from judgesmith.running.settings import Catalogue

#: Exit code where a search waits to be agreed to.
WAITING = 3


class Compile(Command, Aspect, Preset, Jury, Rows, Scaled, Json):
    """Learn a judge from a few human ratings, and save it.

    Finished calls are cached on disk. After Ctrl-C, a crash or a kill, the same command resumes where it stopped.

    The objective follows from the kind of labels (or is set by `--objective`). Scores: Q = Pearson + Spearman +
    Kendall tau-b, from -3 to 3. Categories: weighted kappa. Pass and fail: AUC. Preferences: pairwise accuracy.

    `--take NAME` saves another candidate. `judgesmith list methods NAME` and `judgesmith list optimizers NAME` have the
    options of one method and one optimizer.
    """

    example: ClassVar[str] = (
        "judgesmith compile labels.csv --lm ollama_chat/llama3.1:8b -o judge.json"
    )
    everyday: ClassVar[tuple[str, ...]] = (
        "lm",
        "output",
        "aspect",
        "scale",
        "columns",
        "begin",
        "method",
        "signal",
        "heldout",
        "max_calls",
        "dry_run",
        "as_json",
    )

    labels: Path | None = argument(
        None,
        "Rows with human ratings: {formats}, or bench/NAME.",
    )
    begin: Path | None = flag(
        None,
        "Saved judge to start from, with its method, model, task, criteria and demonstrations. The labels refine it.",
        "--start",
        metavar="JUDGE",
    )
    output: Path = flag(
        Path("judge.json"), "File of the saved judge.", "-o", "--output"
    )
    signal: list[str] = flag(
        [],
        "Column with another score to combine, e.g. a metric or another judge. NAME=WORST..BEST sets its scale "
        "(gpt4=1..5, ter=100..0), NAME=WORST,…,BEST the order of its words (gpt4=fail,pass). Repeatable, most "
        "trusted first. Without --lm, the judge combines these columns and calls no model.",
        metavar="COLUMN",
    )
    aspect: list[str] = flag(
        [],
        "Name of the human rating to learn. Required if rows have several. mean:A,B,… averages ratings. Repeat it, "
        "or pass all, for one judge of several aspects, each with its own score and agreement.",
        metavar="NAME",
    )
    heldout: str | None = flag(
        None,
        "Share of rows held out for the reported agreement (0 to 1), or a file of other labels. Default: "
        "cross-validation up to 160 labels, or where folds need no model calls; else 0.25.",
        coerce_numbers_to_str=True,
    )
    optimizer: str | None = flag(
        None,
        "Optimizer (`judgesmith list optimizers`), or one of DSPy as dspy:MIPROv2. Default: zero-shot for the method "
        "readings, else random-search.",
        metavar="NAME",
    )
    max_calls: int | None = flag(
        None,
        "Maximum number of model calls, retries not counted. At the limit, the best candidate so far is saved. "
        "Default: no limit.",
        ge=1,
    )
    dry_run: bool = flag(
        False, "Print the number of calls and the estimated cost, and stop."
    )
    yes: bool = flag(
        False,
        "Search at once. Without it, a model that costs money is first asked alone, one call a row. Then you are "
        "asked: whether a search can pay and its price are said. Without a terminal the command ends there (exit code "
        "3). --max-calls, --max-cost and options of the search agree to it, too.",
        "--yes",
    )
    registered: str | None = flag(
        None,
        "Register the judge with MLflow as the next version of NAME. Other commands then accept `models:/NAME@ALIAS` "
        "as its file. The run is logged to the experiment of `--mlflow`, by default NAME.",
        "--register",
        metavar="NAME[@ALIAS]",
    )

    @classmethod
    def catalogue(cls, options: Mapping[str, Any]) -> Catalogue:
        """Return the options of the method, the optimizer and the run."""
        return cls._setup(
            options, (name for name in options if name not in cls.model_fields)
        ).catalogue()

    @classmethod
    def _setup(cls, chosen: Mapping[str, Any], options: Any) -> Setup:
        from judgesmith.compiling.run import Setup

        lms = chosen.get("lm") or []
        names = [
            *options,
            *(["signals"] if chosen.get("signal") else []),
            *(["models"] if len(lms) > 1 else []),
        ]
        return Setup.choose(
            chosen.get("method"),
            chosen.get("optimizer"),
            next(iter(lms), None),
            names,
            chosen.get("begin"),
        )

    def run(self) -> int:
        """Compile the judge, save it and print its agreement."""
        from judgesmith.compiling.run import CompileRun, RunOptions, with_orders
        from judgesmith.running.settings import ModelOptions

        setup = self._setup(
            dict(self),
            (f"{key}.{name}" for key, chosen in self._more.items() for name in chosen),
        )
        orders = self.orders()
        of_method = dict(self.more("method"))
        if self.signal:
            of_method["signals"] = with_orders(self.signal, orders)
        of_method |= setup.jury(self.lm)
        if self.labels is None:
            raise OptionError(
                "missing argument LABELS: name a file with human scores; "
                "for a judge without labels, use `judgesmith new`"
            )
        share, file = _heldout(self.heldout)
        flags = {"heldout": share, "max_calls": self.max_calls}
        flags = {name: value for name, value in flags.items() if value}
        one, several = _aspects(self.aspect, setup.aspects)
        run = CompileRun(
            setup=setup,
            run=RunOptions(**self.more("run") | flags),
            model=ModelOptions(**self.more("lm")),
            of_method=of_method,
            of_optimizer=self.more("optimizer"),
            labels=self.labels,
            lm=self.first_lm() or setup.model,
            output=self.output,
            aspect=one,
            aspects=several,
            scale=self.scale,
            columns=self.columns,
            orders=orders,
            heldout_file=file,
            library_aspect=self.library_aspect,
            api_base=self.api_base,
            registered=self.registered,
        )
        return compile_judge(
            run,
            dry_run=self.dry_run,
            as_json=self.as_json,
            agreed=self.yes or self.optimizer is not None or bool(run.of_optimizer),
        )


def _aspects(
    named: Sequence[str], of_start: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """The one aspect, or the several: those that are named, else those of the judge to go on from."""
    from judgesmith.datasets.loading import ALL

    if len(named) == 1 and named[0] != ALL:
        return named[0], ()
    return None, tuple(named) or of_start


def _heldout(value: str | None) -> tuple[float | None, Path | None]:
    """A share of rows, or a file of labels; neither where nothing is asked for. Raises OptionError."""
    if value is None:
        return None, None
    try:
        share = float(value)
    except ValueError:
        return None, Path(value)
    if not 0 < share < 1:
        raise OptionError(
            f"--heldout {value}: a share lies between 0 and 1; or name a file of labels"
        )
    return share, None


def compile_judge(
    run: CompileRun,
    *,
    dry_run: bool = False,
    as_json: bool = False,
    agreed: bool = False,
) -> int:
    """Compile a judge of one aspect or of several, save it and show its report.

    A file that cannot be written is refused before any call is sent.

    Args:
        run: The judge to be compiled.
        dry_run: Show what it would take, and stop.
        as_json: Print JSON.
        agreed: Search without a question, whatever it costs.

    Returns:
        The exit code: 1 if no held-out row of some aspect got a score, if the judge of one runs against people, or if
        MLflow did not log the judge; 3 if a search waits to be agreed to; else 0.
    """
    from judgesmith.compiling import first
    from judgesmith.compiling.telling import (
        planned,
        show_labels,
        show_planned,
        tell_labels,
        tell_waiting,
    )
    from judgesmith.running.console import print_json
    from judgesmith.running.opening import check_writable, quiet

    with quiet():
        begun = Begun.of(run)
        if not as_json:
            for labels in begun.work.labels.values():
                tell_labels(labels)
        plan = begun.plan
        asked = not agreed and first.is_asked(begun.run, plan)
        if dry_run:
            plan = begun.run.timed(plan)
            if as_json:
                print_json(planned(plan) | begun.work.described(plan))
                return 0
            for labels in begun.work.labels.values():
                show_labels(labels)
            show_planned(plan, begun.run.lm)
            if asked:
                tell_waiting()
            return 0
        log = run.log()
        check_writable(run.output, run.labels, run.heldout_file, *run.files())
        if asked:
            alone = _begun_alone(begun.run)
            measured = alone and alone.compiled(as_json=as_json)
            if measured and not as_json:
                measured.show()
            report = measured.report if measured else None
            answer = first.ask(
                first.Search.of(plan, report),
                report,
                options=first.options_of(alone.run) if alone else "",
                as_json=as_json,
            )
            if answer is None:
                return WAITING
            if not answer:
                return measured.kept(log, as_json=False, shown=True) if measured else 0
        return begun.compiled(as_json=as_json).kept(log, as_json=as_json)


def _begun_alone(run: CompileRun) -> Begun | None:
    """Return the first run of the model alone whose judges can be built; None if there is none."""
    from judgesmith.compiling import first

    for one in first.alone(run):
        with suppress(OptionError):  # the library does not know what is rated
            return Begun.of(one)
    return None


@dataclass(frozen=True, slots=True)
class Begun:
    """A run whose labels are read and whose judges are built, with what it will take."""

    run: CompileRun
    work: AspectCompiler | SeveralCompiler
    plan: Plan

    @classmethod
    def of(cls, run: CompileRun) -> Begun:
        """Return a run with its work and plan. Each judge is made ready to judge without a model, where it can."""
        from judgesmith.running.opening import model_for

        work = run.work()
        models = [model_for(judge, run.lm) for judge in work.judges.values()]
        run = replace(run, lm=models[0])
        plan = work.plan(run.lm, teacher=run.run.teacher is not None)
        return cls(run, work, plan)

    def compiled(self, *, as_json: bool) -> Compiled:
        """Open the models and compile."""
        from judgesmith.compiling.telling import tell_plan
        from judgesmith.running.console import Watch

        run, work, plan = self.run, self.work, self.plan
        judges = list(work.judges.values())
        batched = run.batched(judges)
        lm, teacher = run.opened(judges)
        if not as_json:
            tell_plan(plan, lm, run.run.max_calls)
        with Watch("compiling", plan.steps) as watch, batched(lm, watch) as lm:
            work.compiler = replace(work.compiler, progress=watch, teacher=teacher)
            compiled, report = work.run(lm, plan)
        told = [note for one in work.labels.values() for note in one.warnings]
        return Compiled(run, compiled, report, lm.meter.paid, tuple(told))


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled judge that is not saved yet.

    paid: dollars for calls that were sent; None where a price is unknown. told: notes that were shown before.
    """

    run: CompileRun
    judge: Judge
    report: CompileReport | AspectsReport
    paid: float | None
    told: tuple[str, ...]

    def show(self) -> None:
        """Show the report."""
        from judgesmith.compiling.telling import show_compiled

        show_compiled(self.judge, self.report, self.paid, shown=self.told)

    def kept(self, log: Any, *, as_json: bool, shown: bool = False) -> int:
        """Save the judge, log it where that was asked for, and say so; return the exit code.

        shown: whether the report was shown before.
        """
        from judgesmith.compiling.telling import tell_logged, tell_saved
        from judgesmith.programs.artifact import save_or_keep
        from judgesmith.running.console import err, print_json

        run, compiled, report = self.run, self.judge, self.report
        compiled.report = report
        compiled.provenance = run.descended(compiled.provenance)
        save_or_keep(compiled, run.output)
        logged = None if log is None else log.log(compiled, report)
        if as_json:
            more = {} if logged is None else {"mlflow": logged.to_dict()}
            print_json(report.to_dict() | {"judge": str(run.output)} | more)
        else:
            if not shown:
                self.show()
            tell_saved(run.output, against=report.against_people)
        failed = logged is not None and logged.error is not None
        if logged is not None and (failed or not as_json):
            tell_logged(logged)
        if report.nothing_scored:
            of = " of one aspect" if run.aspects else ""
            err.print(
                f"no held-out row got a score{of}: see the notes for the reasons",
                style="red",
            )
        return int(report.nothing_scored or report.against_people or failed)
