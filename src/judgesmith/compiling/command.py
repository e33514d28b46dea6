"""`judgesmith compile`: a judge learnt from a few human scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
    from judgesmith.running.settings import Catalogue


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
        return compile_judge(run, dry_run=self.dry_run, as_json=self.as_json)


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
    run: CompileRun, *, dry_run: bool = False, as_json: bool = False
) -> int:
    """Compile a judge of one aspect or of several, save it and show its report.

    A file that cannot be written is refused before any call is sent.

    Returns:
        The exit code: 1 if no held-out row of some aspect got a score, if the judge of one runs against people, or if
        MLflow did not log the judge; else 0.
    """
    from judgesmith.compiling.telling import (
        planned,
        show_compiled,
        show_labels,
        show_planned,
        tell_labels,
        tell_logged,
        tell_plan,
        tell_saved,
    )
    from judgesmith.programs.artifact import save_or_keep
    from judgesmith.running.console import Watch, err, print_json
    from judgesmith.running.opening import check_writable, model_for, quiet

    with quiet():
        work = run.work()
        judges = list(work.judges.values())
        every = list(work.labels.values())
        # Each judge is made ready to judge without a model, where it can.
        models = [model_for(judge, run.lm) for judge in judges]
        run = replace(run, lm=models[0])
        batched = run.batched(judges)
        if not as_json:
            for labels in every:
                tell_labels(labels)
        plan = work.plan(run.lm, teacher=run.run.teacher is not None)
        if dry_run:
            plan = run.timed(plan)
            if as_json:
                print_json(planned(plan) | work.described(plan))
                return 0
            for labels in every:
                show_labels(labels)
            show_planned(plan, run.lm)
            return 0
        log = run.log()
        check_writable(run.output, run.labels, run.heldout_file, *run.files())
        lm, teacher = run.opened(judges)
        if not as_json:
            tell_plan(plan, lm, run.run.max_calls)
        with Watch("compiling", plan.steps) as watch, batched(lm, watch) as lm:
            work.compiler = replace(work.compiler, progress=watch, teacher=teacher)
            compiled, report = work.run(lm, plan)
        compiled.report = report
        compiled.provenance = run.descended(compiled.provenance)
        save_or_keep(compiled, run.output)
        logged = None if log is None else log.log(compiled, report)
        if as_json:
            more = {} if logged is None else {"mlflow": logged.to_dict()}
            print_json(report.to_dict() | {"judge": str(run.output)} | more)
        else:
            notes = [note for labels in every for note in labels.warnings]
            show_compiled(compiled, report, lm.meter.paid, shown=notes)
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
