"""The command line: parsing only. What commands do is in `runs` and `scoring`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..errors import JudgesmithError
from ..experiments.options import (
    LM,
    Annotators,
    ApiBase,
    AspectFile,
    Columns,
    ComparisonForm,
    ComparisonOrder,
    Concurrency,
    CriteriaFile,
    Json,
    JudgeExplain,
    JudgeMethod,
    JudgeReading,
    JudgeVariant,
    LeftOut,
    LibraryAspect,
    NoCache,
    OtherVariant,
    ReferenceLevels,
    Rpm,
    Supervisor,
    TaskText,
    Timeout,
    Writer,
)
from ..experiments.plain import one_line, shown_streams
from . import (
    aspects as aspect_commands,
)
from . import (
    data as data_commands,
)
from . import (
    discern as discern_commands,
)
from . import (
    evaluate as evaluate_commands,
)
from . import (
    references as references_commands,
)
from . import (
    report as report_commands,
)
from . import (
    study as study_commands,
)

app = typer.Typer(
    name="judgesmith",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Turn a handful of human scores into a language-model judge, and say honestly how far to trust it.",
    epilog="Exit codes: 0 done; 1 some rows have no score; 2 an error, said in one line; 130 stopped by Ctrl-C.",
)
#: What typer raises for a wrong command line; it has no public name of its own.
UsageError: Any = typer.BadParameter.__base__
models = typer.Typer(no_args_is_help=True, help="List and fetch language models: local/NAME and Ollama's.")
app.add_typer(models, name="models")


Level = Literal["pooled", "sample", "system"]
Anchor = Literal["auto", "gold", "predicted"]
Optimizer = Literal["random-search", "optuna", "mipro", "gepa", "simba", "labeled-few-shot", "knn", "zepo", "none"]


def _version(asked: bool) -> None:
    if asked:
        from .. import __version__

        typer.echo(__version__)
        raise typer.Exit


data_commands.register(app)
evaluate_commands.register(app)
report_commands.register(app)
aspect_commands.register(app)
discern_commands.register(app)
references_commands.register(app)
study_commands.register(app)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_version)
    ] = False,
) -> None: ...


@app.command()
def compile(
    labels: Annotated[Path, typer.Argument(help="Rows with human scores: .csv .tsv .json .jsonl .parquet")],
    lm: LM = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the judge is saved.")] = Path("judge.json"),
    aspect: Annotated[
        str | None, typer.Option(help="Which score, where rows have several.", rich_help_panel="Data")
    ] = None,
    scale: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Lowest and highest score; inferred if not given.", rich_help_panel="Data"),
    ] = None,
    columns: Columns = None,
    heldout: Annotated[
        str, typer.Option(help="Share of rows held out, or a file of other labels.", rich_help_panel="Data")
    ] = "0.25",
    cv: Annotated[
        int | None,
        typer.Option(
            help="In place of a held-out share: agreement cross-validated with so many folds of whole documents; the "
            "judge itself is compiled from all rows.",
            metavar="FOLDS",
            rich_help_panel="Data",
        ),
    ] = None,
    method: JudgeMethod = "active-critic",
    variant: JudgeVariant = "coarse",
    explain: JudgeExplain = "auto",
    reading: JudgeReading = "auto",
    task: TaskText = None,
    criteria: CriteriaFile = None,
    without: LeftOut = None,
    library_aspect: LibraryAspect = None,
    aspect_file: AspectFile = None,
    annotator: Annotators = None,
    supervisor: Supervisor = "lm",
    references: ReferenceLevels = 5,
    writer: Writer = None,
    form: ComparisonForm = None,
    order: ComparisonOrder = None,
    optimizer: Annotated[
        Optimizer,
        typer.Option(
            help="random-search: random sets of demonstrations; optuna: TPE over demonstrations, their order, and what "
            "the prompt says of task and criteria; mipro, gepa, simba: DSPy's own, in which a model also writes "
            "instructions; labeled-few-shot: one set of labelled rows; knn: for each output the "
            "labelled rows that are most like it; zepo: the fairest wording of the instructions, chosen without "
            "labels, for judges that compare; none: none.",
            rich_help_panel="Search",
        ),
    ] = "random-search",
    augment: Annotated[
        Literal["dhp"] | None,
        typer.Option(
            help="dhp: damaged copies of good outputs as further rows of the search; kept only if they help on labels "
            "that were left out. About three times the calls.",
            rich_help_panel="Search",
        ),
    ] = None,
    ensemble_top: Annotated[
        int | None,
        typer.Option(
            help="The mean of the M best candidates (2 to 8) is the judge, if that clearly beats a single one on "
            "training rows that neither was chosen by. Scoring then takes M times the calls.",
            metavar="M",
            rich_help_panel="Search",
        ),
    ] = None,
    racing: Annotated[
        bool,
        typer.Option(
            "--racing/--no-racing",
            help="Judge candidates on growing blocks of rows and drop those that fall behind: about half of the calls.",
            rich_help_panel="Search",
        ),
    ] = False,
    try_variant: Annotated[
        list[OtherVariant] | None,
        typer.Option(
            help="optuna: another variant to try, beside --variant; repeatable. fine takes two calls a row.",
            rich_help_panel="Search",
        ),
    ] = None,
    try_temperature: Annotated[
        list[float] | None,
        typer.Option(
            help="optuna: a temperature to try, beside --temperature; repeatable.",
            min=0.0,
            max=2.0,
            rich_help_panel="Search",
        ),
    ] = None,
    parallel: Annotated[
        int,
        typer.Option(
            help="optuna: trials at once; faster where the model takes more calls than one pass keeps under way, and a "
            "little less learnt from each.",
            min=1,
            metavar="N",
            rich_help_panel="Search",
        ),
    ] = 1,
    storage: Annotated[
        Path | None,
        typer.Option(
            help="optuna: keep the study in this SQLite file, for optuna-dashboard and the like.",
            metavar="FILE",
            rich_help_panel="Search",
        ),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(
            help="optuna: draw the history of the study and what mattered in it (SVG).",
            metavar="FOLDER",
            rich_help_panel="Search",
        ),
    ] = None,
    level: Annotated[
        Level,
        typer.Option(
            help="Level of agreement: all rows together (papers: summary level), within documents, of systems.",
            rich_help_panel="Search",
        ),
    ] = "pooled",
    candidates: Annotated[
        int,
        typer.Option(
            help="Random demonstration sets to try; optuna has two trials more.", min=0, rich_help_panel="Search"
        ),
    ] = 8,
    demos: Annotated[int, typer.Option(help="Demonstrations in a set at most.", min=1, rich_help_panel="Search")] = 4,
    anchor: Annotated[
        Anchor,
        typer.Option(
            help="Score that bootstrapped demonstrations show: the human's (gold) or the model's own.",
            rich_help_panel="Search",
        ),
    ] = "auto",
    teacher: Annotated[
        str | None,
        typer.Option(help="A stronger model that writes the demonstrations' explanations.", rich_help_panel="Search"),
    ] = None,
    batches: Annotated[
        int, typer.Option(help="Mini-batches that task inference reads at most.", min=1, rich_help_panel="Search")
    ] = 25,
    keep: Annotated[int, typer.Option(help="Task descriptions to merge at most.", min=1, rich_help_panel="Search")] = 5,
    seed: Annotated[int, typer.Option(help="Decides splits and candidates.", rich_help_panel="Search")] = 0,
    max_calls: Annotated[
        int | None,
        typer.Option(
            help="Calls at most, repeats after a failed request left aside; the best so far is kept.",
            rich_help_panel="Budget",
        ),
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="Dollars at most.", rich_help_panel="Budget")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take, spend nothing.", rich_help_panel="Budget")
    ] = False,
    mlflow: Annotated[
        str | None,
        typer.Option(
            help="Log the run to this MLflow experiment, at MLFLOW_TRACKING_URI or else where MLflow keeps its runs "
            "locally. Should that fail after compiling, the judge is saved all the same; the exit code is then 1.",
            metavar="EXPERIMENT",
        ),
    ] = None,
    api_base: ApiBase = None,
    temperature: Annotated[float, typer.Option(rich_help_panel="Language model")] = 0.0,
    max_tokens: Annotated[
        int | None, typer.Option(help="Cap on the length of answers.", rich_help_panel="Language model")
    ] = None,
    timeout: Timeout = 120.0,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    """Learn a judge from a few human scores and save it.

    Finished calls are kept on disk: after Ctrl-C, a crash or a kill, the same command goes on where it stopped.
    Q = Pearson + Spearman + Kendall tau-b with people's scores, from -3 to 3.
    """
    from ..experiments import runs

    raise typer.Exit(
        runs.compile_judge(
            runs.CompileRun(
                labels=labels, lm=lm, output=output, aspect=aspect, scale=scale, columns=columns or [],
                heldout=heldout, variant=variant, explain=explain, reading=reading, task=task,
                criteria=criteria, without=tuple(w.value for w in without or ()), optimizer=optimizer, racing=racing,
                augment=augment, cv=cv, ensemble_top=ensemble_top, mlflow=mlflow,
                try_variants=tuple(v.value for v in try_variant or ()), try_temperatures=tuple(try_temperature or ()),
                parallel=parallel, storage=storage, plots=plots,
                level=level, candidates=candidates, demos=demos, anchor=anchor, teacher=teacher,
                batches=batches, keep=keep, seed=seed, max_calls=max_calls, max_cost=max_cost, dry_run=dry_run,
                temperature=temperature, max_tokens=max_tokens, as_json=as_json, method=method,
                library_aspect=library_aspect, aspect_file=aspect_file, annotators=tuple(annotator or ()),
                supervisor=supervisor, references=references, writer=writer, form=form, order=order,
                connection=runs.connection(api_base, timeout, concurrency, rpm, no_cache),
            )
        )
    )  # fmt: skip


@app.command()
def new(
    lm: LM = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the judge is saved.")] = Path("judge.json"),
    scale: Annotated[
        tuple[float, float] | None, typer.Option(help="Lowest and highest score; 0 to 100 if not given.")
    ] = None,
    method: JudgeMethod = "pairwise-direct",
    variant: JudgeVariant = "coarse",
    explain: JudgeExplain = "auto",
    reading: JudgeReading = "auto",
    task: TaskText = None,
    criteria: CriteriaFile = None,
    without: LeftOut = None,
    library_aspect: LibraryAspect = None,
    aspect_file: AspectFile = None,
    annotator: Annotators = None,
    supervisor: Supervisor = "lm",
    references: ReferenceLevels = 5,
    writer: Writer = None,
    form: ComparisonForm = None,
    order: ComparisonOrder = None,
) -> None:
    """Save a judge that has learnt from no labels, for when there are none yet.

    How far to trust it nobody knows: `judgesmith evaluate` says so from a few human scores, `judgesmith discern` what
    damage it notices without any, and `judgesmith compile` makes a better one.
    """
    from ..experiments import methods, runs

    options = methods.JudgeOptions(
        method=method, variant=variant, explain=explain, reading=reading, task=task, criteria=criteria,
        without=tuple(w.value for w in without or ()), library_aspect=library_aspect, aspect_file=aspect_file,
        annotators=tuple(annotator or ()), supervisor=supervisor, references=references, writer=writer,
        form=form, order=order,
    )  # fmt: skip
    raise typer.Exit(runs.new_judge(options, output, lm, scale))


@app.command()
def score(
    rows: Annotated[Path, typer.Argument(help="Rows to judge: .csv .tsv .json .jsonl .parquet")],
    judge: Annotated[Path, typer.Option(help="A judge that `compile` saved.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help=".jsonl or .csv; default ROWS.scored.jsonl")
    ] = None,
    lm: LM = None,
    columns: Columns = None,
    limit: Annotated[int | None, typer.Option(help="Only the first rows.", min=1, rich_help_panel="Data")] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Judge only the rows that have no score yet.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start anew instead of going on.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Keep the model's own words with every row.")] = False,
    api_base: ApiBase = None,
    timeout: Timeout = 120.0,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    """Score outputs with a compiled judge.

    Rows are written as they finish, in the order of the input; a second run goes on where the first stopped. Exit code
    0: every row has a score; 1: some have none (listed; try `--retry-failed`); 2: an error.
    """
    from ..experiments import runs

    raise typer.Exit(
        runs.score_rows_of_file(
            rows, judge, output, lm=lm, columns=columns or [], limit=limit, retry_failed=retry_failed,
            overwrite=overwrite, raw=raw, as_json=as_json,
            connection=runs.connection(api_base, timeout, concurrency, rpm, no_cache),
        )
    )  # fmt: skip


@app.command()
def show(
    judge: Annotated[Path, typer.Argument(help="A judge that `compile` saved.")],
    prompt: Annotated[
        Path | None, typer.Option(help="Rows: print the very messages that the first one would send.")
    ] = None,
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Show what a judge learnt: task, criteria, demonstrations, agreement, cost. Calls no model."""
    from ..experiments import runs

    raise typer.Exit(runs.show_judge(judge, prompt, columns or [], as_json=as_json))


@app.command()
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the judge is saved.")] = Path("demo-judge.json"),
    lm: Annotated[str, typer.Option("--lm", help="Another model to try it with.")] = "local/qwen2.5-0.5b",
    as_json: Json = False,
) -> None:
    """See it work: compile a judge from 48 labelled sentences on a small model inside this process, then score."""
    from ..experiments import runs

    raise typer.Exit(runs.run_demo(output, lm, as_json=as_json))


@models.command("list")
def models_list(
    host: Annotated[str | None, typer.Option(help="Address of Ollama.")] = None, as_json: Json = False
) -> None:
    """The models that can be used without a key: embedded ones and what Ollama has."""
    from ..experiments import runs

    raise typer.Exit(runs.list_models(host, as_json=as_json))


@models.command("pull")
def models_pull(
    name: Annotated[str, typer.Argument(help="local/NAME or ollama_chat/NAME")],
    host: Annotated[str | None, typer.Option(help="Address of Ollama.")] = None,
) -> None:
    """Fetch a model, with its licence and checksum."""
    from ..experiments import runs

    raise typer.Exit(runs.pull_model(name, host))


ERROR, STOPPED = 2, 130


def main() -> None:
    """The entry point: one line for an error, no traceback (set JUDGESMITH_DEBUG=1 to see it)."""
    with shown_streams():
        code = _run()
        try:
            sys.stdout.flush()
        except OSError as error:
            code = _without_stdout(error)
        sys.exit(code)


def _run() -> int:
    """The command's exit code. Whatever goes wrong is 2: 1 is what a command gives a meaning to."""
    debug = bool(os.environ.get("JUDGESMITH_DEBUG"))
    try:
        code = app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = STOPPED
    except UsageError as error:
        _say_usage(error)
        return ERROR
    except JudgesmithError as error:
        if debug:
            raise
        return _say(f"{type(error).__name__}: {error}")
    except OSError as error:
        if debug:
            raise
        return _without_stdout(error)
    except MemoryError:
        if debug:
            raise
        return _say("there is not enough memory for this; give fewer rows at a time (--limit), or a smaller file")
    except Exception as error:
        if debug:
            raise
        return _say(
            f"internal error: {type(error).__name__}: {error} (set JUDGESMITH_DEBUG=1 to see the traceback; please "
            "report it)"
        )
    if code == STOPPED:  # typer turns Ctrl-C into this exit code without a word
        _say("stopped; finished calls and rows are kept, the same command goes on from there")
    return code or 0


def _say(line: str) -> int:
    """One line on stderr, and the exit code for an error."""
    with suppress(OSError):  # nobody is left to be told
        sys.stderr.write(f"{one_line(line)}\n")
    return ERROR


def _without_stdout(error: OSError) -> int:
    """Says an error of the system. What stdout still holds is dropped if it cannot be written, so that the
    interpreter does not fail on it a second time."""
    if not isinstance(error, BrokenPipeError):
        where = f"{error.filename}: " if error.filename else ""
        _say(f"{type(error).__name__}: {where}{error.strerror or error}")
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ERROR


def _say_usage(error: Any) -> None:
    """A wrong command line in one line, or the help where nothing was given."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    command = error.ctx.command_path if error.ctx is not None else "judgesmith"
    _say(f"{error.format_message()} (see {command} --help)")


if __name__ == "__main__":
    main()
