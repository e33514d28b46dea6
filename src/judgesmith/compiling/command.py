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
    from judgesmith.datasets.records import Labels
    from judgesmith.optimizers.options import Compiler
    from judgesmith.optimizers.report import Plan
    from judgesmith.programs.judge import Judge
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
        from judgesmith.compiling.run import CompileRun, with_orders
        from judgesmith.compiling.several import compile_aspects

        own_options = dict(self)
        setup = self._setup(
            own_options,
            (f"{key}.{name}" for key, chosen in self._more.items() for name in chosen),
        )
        chosen = {owner.key: self.more(owner.key) for owner in setup.catalogue().owners}
        orders = self.orders()
        chosen["method"] |= (
            {"signals": with_orders(self.signal, orders)} if self.signal else {}
        )
        chosen["method"] |= setup.jury(self.lm)
        if self.labels is None:
            raise OptionError(
                "missing argument LABELS: name a file with human scores; "
                "for a judge without labels, use `judgesmith new`"
            )
        share, file = _heldout(self.heldout)
        flags = {"heldout": share, "max_calls": self.max_calls}
        chosen["run"] |= {name: value for name, value in flags.items() if value}
        one, several = _aspects(self.aspect, setup.aspects)
        run = CompileRun.of(
            setup,
            chosen,
            labels=self.labels,
            lm=self.first_lm() or setup.model,
            start=self.begin,
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
        if several:
            return compile_aspects(run, dry_run=self.dry_run, as_json=self.as_json)
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
    """Compile, save and tell.

    The exit code is 1 where MLflow failed, no held-out row got a score, or the judge runs against people.

    What cannot be written is refused before anything is spent.
    """
    from judgesmith.cli.rendering import show_report
    from judgesmith.compiling.telling import (
        tell_labels,
        tell_logged,
        tell_plan,
        tell_saved,
    )
    from judgesmith.optimizers.compiling import compile_labels
    from judgesmith.optimizers.planning import plan as planned
    from judgesmith.programs.artifact import save_or_keep
    from judgesmith.running.console import Watch, err, print_json
    from judgesmith.running.opening import check_writable, model_for, quiet

    with quiet():
        labels = run.read()
        judge = run.judge(labels.aspect)
        compiler = run.compiler(labels)
        run = replace(run, lm=model_for(judge, run.lm))
        batched = run.batched([judge])
        if not as_json:
            tell_labels(labels)
        taught = run.run.teacher is not None
        plan = planned(compiler, judge, labels, run.lm, teacher=taught)
        if dry_run:
            return _dry_run(run, judge, labels, compiler, plan, as_json=as_json)
        log = run.log()
        parent = run.parent()
        check_writable(run.output, run.labels, run.heldout_file, *run.files())
        lm, teacher = run.opened([judge])
        if not as_json:
            tell_plan(plan, lm, run.run.max_calls)
        with Watch("compiling", plan.steps) as watch, batched(lm, watch) as lm:
            compiler = replace(compiler, progress=watch, teacher=teacher)
            compiled, report = compile_labels(compiler, judge, labels, lm)
        compiled.report = report
        compiled.provenance = run.descended(compiled.provenance, parent)
        save_or_keep(compiled, run.output)
        logged = None if log is None else log.log(compiled, report)
        problem = logged.error if logged is not None else None
        if as_json:
            facts = report.to_dict() | {"judge": str(run.output)}
            if logged is not None:
                facts["mlflow"] = logged.to_dict()
            print_json(facts)
        else:
            show_report(report, compiled, shown=labels.warnings)
            tell_saved(run.output, against=report.against_people)
        if logged is not None and (problem or not as_json):
            tell_logged(logged)
        if report.nothing_scored:
            err.print(
                "no held-out row got a score: see the notes for the reasons",
                style="red",
            )
        failed = report.nothing_scored or report.against_people
        return 1 if failed or problem is not None else 0


def _dry_run(
    run: CompileRun,
    judge: Judge,
    labels: Labels,
    compiler: Compiler,
    plan: Plan,
    *,
    as_json: bool,
) -> int:
    from judgesmith.compiling.telling import planned, show_labels, show_planned
    from judgesmith.running.console import print_json

    plan = run.timed(plan)
    if as_json:
        by = {"level": plan.objective.level, "objective": plan.objective.name}
        search = compiler.search.settings() | by if compiler.search else {}
        print_json(
            planned(plan)
            | {"objective": plan.objective.name}
            | labels.understood()
            | {"plan_notes": list(plan.notes)}
            | {"method": judge.method.settings(), "optimizer": search}
        )
    else:
        show_labels(labels)
        show_planned(plan, run.lm)
    return 0
