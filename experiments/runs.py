"""What the commands do. Each returns its exit code and raises JudgesmithError for `cli.main` to say."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..datasets.loading import count_rows, iter_rows, read_labels
from ..datasets.records import Labels
from ..errors import ModelError, OptionError
from ..optimizers.by_name import optimizer_by_name
from ..optimizers.compiling import Compiler
from ..optimizers.report import Budget
from ..optimizers.search.optuna import OptunaSearch
from ..programs import artifact
from ..programs.active_critic.critic import ActiveCritic
from ..programs.active_critic.task import TaskInference
from ..programs.ensemble import Committee
from ..programs.judge import Judge
from ..programs.models.files import find_model, installed, model_path
from ..programs.models.files import list_models as catalog
from ..programs.models.lm import Connection, LanguageModel, Sampling, is_local, language_model
from ..programs.models.local import embedded
from ..programs.models.names import check_listed
from ..programs.models.ollama import list_ollama, pull_ollama
from ..programs.prompting.neighbours import Neighbours
from ..signatures.values import Item, Scale
from .console import Watch, duration, err, number, out, print_json, show_plan, show_report, show_verdict, training_q
from .methods import JudgeOptions
from .mlflow_logging import ExperimentLog
from .scoring import score_file

#: Seconds that a call is taken to need for estimates, where no better is known.
SECONDS_PER_CALL = {"embedded": 1.5, "remote": 1.5}
#: Of a larger pool of demonstrations `show` lists only the first.
MOST_DEMOS_SHOWN = 20


def connection(
    api_base: str | None, timeout: float, concurrency: int | None, rpm: float | None, no_cache: bool
) -> Connection:
    return Connection(api_base=api_base, timeout=timeout, concurrency=concurrency, rpm=rpm, cache=not no_cache)


def column_roles(given: Sequence[str]) -> dict[str, str]:
    """`ROLE=NAME` options as a mapping."""
    roles = {}
    for option in given:
        role, equals, name = option.partition("=")
        if not equals or not role or not name:
            raise OptionError(f"--columns {option!r} is not of the form ROLE=NAME, for example output=summary_text")
        roles[role.strip()] = name.strip()
    return roles


@contextmanager
def quiet() -> Iterator[None]:
    """Other libraries' chatter does not belong on a user's screen."""
    loggers = [logging.getLogger(name) for name in ("LiteLLM", "dspy", "httpx", "judgesmith")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def open_model(name: str | None, where: Connection | None = None, sampling: Sampling | None = None) -> LanguageModel:
    """A model by name; a local one that is not there is fetched first, with a progress bar."""
    if not name:
        raise OptionError(
            "no language model: give --lm (or set JUDGESMITH_LM), for example --lm local/qwen2.5-0.5b, "
            "--lm ollama_chat/llama3.1:8b or --lm openai/gpt-4o-mini"
        )
    if is_local(name):
        if name.startswith("local/") and not installed(name):
            fetch(name)
        with err.status(f"loading {escape(name)} …"):
            embedded(name)
    return language_model(name, connection=where, sampling=sampling)


def fetch(name: str) -> Path:
    """Fetch a local model with a progress bar."""
    model = find_model(name)
    err.print(f"fetching {model.title}, {model.bytes / 1e6:,.0f} MB, {model.licence}", markup=False)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=err,
        disable=not err.is_terminal,
    ) as bar:  # fmt: skip
        task = bar.add_task("", total=model.bytes)

        def progress(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total or None, description=escape(what))

        return model_path(name, progress=progress)


# -- compile


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileRun(JudgeOptions):
    """The options of `judgesmith compile`."""

    labels: Path
    lm: str | None
    output: Path
    aspect: str | None = None
    scale: tuple[float, float] | None = None
    columns: Sequence[str] = ()
    heldout: str = "0.25"
    optimizer: str = "random-search"
    level: str = "pooled"
    candidates: int = 8
    demos: int = 4
    anchor: str = "auto"
    teacher: str | None = None
    batches: int = 25
    keep: int = 5
    seed: int = 0
    max_calls: int | None = None
    max_cost: float | None = None
    dry_run: bool = False
    temperature: float = 0.0
    max_tokens: int | None = None
    connection: Connection | None = None
    as_json: bool = False
    racing: bool = False
    augment: str | None = None
    cv: int | None = None
    ensemble_top: int | None = None
    mlflow: str | None = None
    try_variants: tuple[str, ...] = ()
    try_temperatures: tuple[float, ...] = ()
    parallel: int = 1
    storage: Path | None = None
    plots: Path | None = None

    def compiler(self, labels: Labels) -> Compiler:
        search = optimizer_by_name(
            self.optimizer,
            candidates=self.candidates,
            max_demos=self.demos,
            anchor=self.anchor,  # type: ignore[arg-type]
            racing=self.racing,
            variants=self.try_variants,  # type: ignore[arg-type]
            temperatures=self.try_temperatures,
            parallel=self.parallel,
            storage=self.storage,
            seed=self.seed,
        )
        return Compiler(
            heldout=self._heldout(labels),
            search=search,
            inference=TaskInference(batches=self.batches, keep=self.keep),
            level=self.level,  # type: ignore[arg-type]
            seed=self.seed,
            budget=Budget(self.max_calls, self.max_cost),
            augment=self.augment == "dhp",
            cv=self.cv,
            ensemble_top=self.ensemble_top,
        )

    def refuse_unused(self) -> None:
        """Raises OptionError for what this optimizer has no use for: it would be paid for with nothing."""
        optuna = {
            "--try-variant": self.try_variants, "--try-temperature": self.try_temperatures,
            "--parallel": self.parallel > 1, "--storage": self.storage, "--plots": self.plots,
        }  # fmt: skip
        self._only_with(("optuna",), optuna)
        self._only_with(("random-search", "optuna", "knn"), {"--racing": self.racing})

    def _only_with(self, optimizers: Sequence[str], options: Mapping[str, Any]) -> None:
        given = [name for name, value in options.items() if value]
        if given and self.optimizer not in optimizers:
            raise OptionError(f"{', '.join(given)}: only with --optimizer {' or '.join(optimizers)}")

    def _heldout(self, labels: Labels) -> float | Labels:
        try:
            share = float(self.heldout)
        except ValueError:
            return read_labels(
                Path(self.heldout), aspect=labels.aspect, scale=labels.scale, columns=column_roles(self.columns)
            )
        if not 0 < share < 1:
            raise OptionError(f"--heldout {self.heldout}: a share lies between 0 and 1; or name a file of labels")
        return share


def compile_judge(run: CompileRun) -> int:
    run.refuse_unused()
    with quiet():
        labels = read_labels(run.labels, aspect=run.aspect, scale=run.scale, columns=column_roles(run.columns))
        judge, compiler = run.judge(labels.aspect), run.compiler(labels)
        if not run.as_json:
            out.print(
                f"{len(labels)} rows of {escape(labels.origin)}, {escape(labels.aspect)} on {Scale(*labels.scale)} "
                f"({'given' if labels.scale_given else 'inferred'})"
            )
            for warning in labels.warnings:
                out.print(f"note: {warning}", style="yellow", markup=False)
        if run.dry_run:
            return _dry_run(run, judge, labels, compiler)
        _check_writable(run.output, run.labels, Path(run.heldout), run.criteria, run.storage)
        if run.plots is not None and run.plots.exists() and not run.plots.is_dir():
            raise OptionError(f"--plots {run.plots} is no folder; name one, it is made where it is missing")
        check_listed(judge.models())
        log = None if run.mlflow is None else ExperimentLog(run.mlflow)
        sampling = Sampling(run.temperature, run.max_tokens)
        lm = open_model(run.lm, run.connection, sampling)
        teacher = open_model(run.teacher, run.connection) if run.teacher else None
        open_others(judge, run.connection)
        plan = compiler.plan(judge, labels, lm, teacher=teacher is not None)
        if not run.as_json:
            err.print(f"at most {plan.calls:,} calls to {escape(lm.name)}; Ctrl-C loses nothing", style="dim")
        with Watch("compiling", plan.steps) as watch:
            made, report = replace(compiler, progress=watch, teacher=teacher).run(judge, labels, lm)
        made.save(run.output)
        drawn = _draw_study(compiler, run.plots)
        logged = None if log is None else log.log(made, report)
        if run.as_json:
            told = (
                {"judge": str(run.output)}
                | ({"plots": drawn} if drawn else {})
                | ({} if logged is None else {"mlflow": logged.to_dict()})
            )
            print_json(report.to_dict() | told)
        else:
            show_report(report, made, shown=labels.warnings)
            out.print(
                f"\nSaved {escape(str(run.output))}. Next: "
                f"judgesmith score OUTPUTS.jsonl --judge {escape(str(run.output))}"
            )
            if drawn:
                out.print(f"Drawn: {', '.join(drawn)}", markup=False)
        if logged is not None and logged.error is not None:
            err.print(
                f"the judge is saved, but MLflow has not logged it: {logged.error}; the same command tries again, with "
                "finished calls from the disk",
                markup=False, style="red",
            )  # fmt: skip
        elif logged is not None and not run.as_json:
            out.print(f"Logged to the MLflow experiment {logged.experiment}, run {logged.run}", markup=False)
        nothing = report.heldout.objective.failed == report.heldout_rows
        if nothing:
            err.print("no held-out row got a score: see the notes for the reasons", style="red")
    return 1 if nothing or (logged is not None and logged.error is not None) else 0


def _draw_study(compiler: Compiler, folder: Path | None) -> list[str]:
    """Optuna's plots of the last search, where they were asked for; the files drawn."""
    if folder is None or not isinstance(compiler.search, OptunaSearch) or compiler.search.study is None:
        return []
    from .optuna_plots import draw

    return [str(path) for path in draw(compiler.search.study, folder)]


def _check_writable(path: Path, *inputs: Path | None) -> None:
    """Before anything is spent: can the judge be saved at all, and not over one of the inputs?"""
    for file in inputs:
        if file is not None and path.exists() and file.exists() and path.samefile(file):
            raise OptionError(f"-o {path} is an input of this command; name another file")
    if path.is_dir():
        raise OptionError(f"-o {path} is a folder; name a file in it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
        if path.stat().st_size == 0:
            path.unlink()
    except OSError as error:
        raise OptionError(f"-o {path} cannot be written: {error.strerror or error}") from None


def _dry_run(run: CompileRun, judge: Judge, labels: Labels, compiler: Compiler) -> int:
    plan = compiler.plan(judge, labels, run.lm, teacher=run.teacher is not None)
    local = bool(run.lm and is_local(run.lm))
    at_once = 1 if local else (run.connection.concurrency if run.connection else None) or 16
    seconds = plan.calls * SECONDS_PER_CALL["embedded" if local else "remote"] / at_once
    plan = replace(plan, seconds=seconds)
    if run.as_json:
        print_json(
            {"dry_run": True}
            | {name: getattr(plan, name) for name in ("rows", "train", "heldout", "folds", "calls")}
            | {
                "prompt_tokens": plan.prompt_tokens,
                "completion_tokens": plan.completion_tokens,
                "seconds": round(seconds),
                "cost": plan.cost,
            }
        )
    else:
        show_plan(plan, run.lm or "any model")
    return 0


def new_judge(options: JudgeOptions, output: Path, lm: str | None, scale: tuple[float, float] | None) -> int:
    """A judge without labels, saved."""
    with quiet():
        judge = options.judge(None)
        if scale is not None:
            judge.scale = Scale(*scale)
        _check_writable(output, options.criteria)
        check_listed(judge.models())
        judge.set_lm(open_model(lm))
        judge.save(output)
        out.print(
            f"Saved {escape(str(output))}: {judge.kind}, {judge.scale}, learnt from no labels. Next: "
            f"judgesmith score OUTPUTS.jsonl --judge {escape(str(output))}"
        )
    return 0


# -- score


def score_rows_of_file(
    rows: Path,
    judge: Path,
    output: Path | None,
    *,
    lm: str | None,
    columns: Sequence[str],
    limit: int | None,
    retry_failed: bool,
    overwrite: bool,
    raw: bool,
    as_json: bool,
    connection: Connection,
) -> int:
    with quiet():
        made = open_judge(judge, lm, connection)
        target = output or rows.with_name(Path(rows.name.removesuffix(".gz")).stem + ".scored.jsonl")
        total = count_rows(rows)
        with Watch("scoring", min(total, limit) if total and limit else total) as watch:
            summary = score_file(
                made, rows, target, columns=column_roles(columns), limit=limit, overwrite=overwrite,
                retry_failed=retry_failed, raw=raw, watch=watch,
            )  # fmt: skip
        if summary.duplicate_ids:
            err.print(
                f"note: {summary.duplicate_ids} of {summary.rows} rows have the id of a row before them, the first "
                f"{summary.duplicate_example!r}; each is scored, but by id they cannot be told apart",
                style="yellow", markup=False, soft_wrap=True,
            )  # fmt: skip
        if as_json:
            print_json(summary.to_dict() | {"output": str(target)})
        else:
            again = f" ({summary.resumed} were there)" if summary.resumed else ""
            out.print(
                f"{summary.rows} rows{again}: {summary.scored} scored, {summary.failed} failed, "
                f"{summary.repaired} answers repaired; {summary.calls} calls, {duration(summary.seconds)} → "
                f"{escape(str(target))}"
            )
            if summary.seen:
                out.print(
                    f"note: {summary.seen} of these rows were used to compile the judge; agreement with people on "
                    "them says little",
                    style="yellow",
                )
            if summary.suspicious:
                out.print(
                    f"note: the texts of {summary.suspicious} rows address a judge (`suspicious` in the output); they "
                    "were judged without those sentences",
                    style="yellow",
                )
            for identity, reason in summary.failures[:10]:
                out.print(f"  no score for {identity}: {reason}", markup=False, style="red")
            if summary.failed > 10:
                out.print(f"  … and {summary.failed - 10} more; they are in the output with their reasons")
            if summary.failed:
                out.print("Try them again with --retry-failed.")
    return 1 if summary.failed else 0


def open_judge(path: Path, lm: str | None, where: Connection | None = None) -> Judge:
    """A saved judge with the model it was compiled with, or another; a local model is fetched where it is missing."""
    read = artifact.read(path)
    judge = artifact.build(read)  # the whole file is checked before a model is opened for it
    name = lm or artifact.model_of(read, where)
    artifact.connect(judge, where)
    judge.set_lm(open_model(name, where, artifact.sampling_of(read)))
    open_others(judge, where)
    return judge


def open_others(judge: Judge, where: Connection | None) -> None:
    """The models that a judge calls beside its own: fetched and tried before anything is spent."""
    for name in judge.models():
        open_model(name, where)
    judge.connect(where)


# -- show


def show_judge(path: Path, prompt: Path | None, columns: Sequence[str], *, as_json: bool) -> int:
    with quiet():
        read = artifact.read(path)
        judge = artifact.build(read)
        saved = artifact.to_dict(judge) | {"lm": read.lm and read.lm.model_dump()}
        messages = None
        if prompt is not None:
            row, _ = next(iter_rows(prompt, columns=column_roles(columns)), (None, None))
            if row is None:
                raise OptionError(f"{prompt}: no row in it")
            messages = judge.previews(Item.of(row))
        if as_json:
            print_json(
                saved | {"fingerprint": artifact.fingerprint(judge)} | ({"prompt": messages} if messages else {})
            )
            return 0
        if messages is not None:
            for name, sent in messages.items():
                out.rule(escape(name))
                for message in sent:
                    out.print(f"[bold]{message['role']}[/bold]")
                    out.print(message["content"], markup=False)
            return 0
        _print_judge(path, judge, saved)
    return 0


def _print_judge(path: Path, judge: Judge, saved: dict[str, Any]) -> None:
    facts = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    facts.add_column(style="bold")
    facts.add_column()
    provenance = {name: part for name, part in saved["provenance"].items() if part is not None}
    options = ", ".join(f"{k}={v}" for k, v in saved["program"]["options"].items() if v not in ("", True))
    facts.add_row("judge", escape(f"{path.name}, {saved['program']['kind']} ({options})"))
    if isinstance(judge, Committee):
        facts.add_row("committee", f"the mean of {len(judge.members)} prompts; {judge.calls_per_row()} calls a row")
    facts.add_row("model", escape((saved["lm"] or {}).get("model", "none")))
    facts.add_row("scale", str(judge.scale))
    facts.add_row("task", escape(saved["task"] or "–"))
    for index, criterion in enumerate(judge.knowledge.criteria):
        facts.add_row("criteria" if index == 0 else "", escape(f"{criterion.name}: {criterion.definition}"))
    if isinstance(judge, ActiveCritic) and (combination := judge.combination) is not None:
        weights = ", ".join(f"{name} {weight:.2f}" for name, weight in combination.criteria.items() if weight)
        facts.add_row("weights", escape(f"{weights}; share of the overall score {combination.overall:.2f}"))
    for title, key in (("agreement", "heldout"), ("zero-shot", "zero_shot")):
        if found := provenance.get(key):
            facts.add_row(title, escape(str(found.get("signature", "–"))))
    tried = provenance.get("candidates", [])
    if selected := provenance.get("selected"):
        facts.add_row("chosen", escape(f"{selected.get('candidate')}: {training_q(selected, len(tried))}"))
    if labels := provenance.get("labels"):
        facts.add_row("labels", escape(f"{labels.get('rows')} rows of {labels.get('origin')}, {labels.get('aspect')}"))
    if cost := provenance.get("cost"):
        facts.add_row(
            "cost",
            escape(f"{cost.get('calls')} calls, {cost.get('prompt_tokens')} + {cost.get('completion_tokens')} tokens"),
        )
    if "created" in provenance:
        facts.add_row("created", escape(provenance["created"]))
    out.print(facts)
    for name, predictor in artifact.predictors(judge).items():
        demos = predictor.demos
        told = f"{len(demos)} demonstrations"
        if isinstance(demos, Neighbours):
            told = f"for each output the {demos.shown} most similar of {len(demos)} labelled rows"
        table = Table(title=f"{escape(name)}: {told}")
        for column in ("score", "by", "source", "output", "explanation"):
            table.add_column(column, overflow="fold", max_width=None if column in ("score", "by") else 48)
        for demo in demos[:MOST_DEMOS_SHOWN]:
            table.add_row(
                number(judge.scale.from_percent(demo["score"])),
                "people" if demo.get("gold") else "the model",
                *(escape(_cut(demo.get(field) or "")) for field in ("source", "output", "explanation")),
            )
        if len(demos) > MOST_DEMOS_SHOWN:
            table.caption = f"and {len(demos) - MOST_DEMOS_SHOWN} more (--json shows all)"
        if demos:
            out.print(table)
    if tried:
        table = Table(title="What the search tried (Q on training rows, each judged without itself)")
        for column in ("candidate", "demos", "Q", "95 % interval", "failed", "rows"):
            table.add_column(column, justify="left" if column == "candidate" else "right")
        for c in tried:
            table.add_row(
                escape(str(c.get("candidate"))), str(c.get("demos")), number(c.get("q")),
                f"{number(c.get('low'))} … {number(c.get('high'))}", str(c.get("failed")),
                escape(str(c.get("rows") or c.get("n"))) + (", dropped" if c.get("dropped") else ""),
            )  # fmt: skip
        out.print(table)


def _cut(text: str, most: int = 160) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


# -- models


def list_models(host: str | None, *, as_json: bool) -> int:
    local = [
        {"name": f"local/{m.name}", "size_mb": round(m.bytes / 1e6), "licence": m.licence, "installed": m.installed}
        for m in catalog()
    ]
    ollama: list[dict[str, Any]] = []
    problem = None
    try:
        ollama = [
            {"name": f"ollama_chat/{m.name}", "size_mb": round((m.bytes or 0) / 1e6), "licence": "", "installed": True}
            for m in list_ollama(host)
        ]
    except ModelError as error:
        problem = str(error)
    if as_json:
        print_json({"models": local + ollama, "ollama_problem": problem})
        return 0
    table = Table(title="Models that need no key")
    for column in ("name", "size", "licence", "here"):
        table.add_column(column, justify="right" if column == "size" else "left")
    for model in local + ollama:
        table.add_row(
            model["name"], f"{model['size_mb']:,} MB", model["licence"], "yes" if model["installed"] else "no"
        )
    out.print(table)
    if problem:
        out.print(f"Ollama: {problem}", style="dim", markup=False)
    out.print("Fetch one with `judgesmith models pull NAME`. Any LiteLLM name works too (openai/…, anthropic/…).")
    return 0


def pull_model(name: str, host: str | None) -> int:
    provider, _, model = name.partition("/")
    if provider in ("ollama", "ollama_chat") and model:
        with Progress(
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=err,
            disable=not err.is_terminal,
        ) as bar:  # fmt: skip
            task = bar.add_task(escape(model), total=None)
            pull_ollama(
                model, host, progress=lambda done, total, what: bar.update(
                    task, completed=done, total=total or None, description=escape(what)
                ),
            )  # fmt: skip
        out.print(f"{escape(name)} is there.")
        return 0
    path = fetch(name)
    out.print(f"{escape(name)} is there: {escape(str(path))}", soft_wrap=True)
    return 0


# -- demo


def run_demo(output: Path, lm: str, *, as_json: bool) -> int:
    with as_file(files("judgesmith.datasets.demo")) as folder:
        labels, new = folder / "labels.jsonl", folder / "new_outputs.jsonl"
        if not as_json:
            out.print(
                "[bold]48 simplified sentences[/bold], written and rated 1-5 (is the meaning kept?) by the makers of "
                "judgesmith for this demo (see datasets/demo/CARD.md): demonstration ratings, no benchmark."
            )
        # Half of the documents held out: an interval over six would say nothing. The form with log-probabilities is
        # taken as given where it is sure to be there, to stay within a few minutes on two cores.
        run = CompileRun(
            labels=labels,
            lm=lm,
            output=output,
            scale=(1, 5),
            heldout="0.5",
            reading="expected" if is_local(lm) else "auto",
            candidates=2,
            demos=4,
            keep=1,
            as_json=as_json,
            connection=Connection(),
        )
        code = compile_judge(run)
        if as_json or code:
            return code
        with quiet():
            judge = open_judge(output, lm)
            out.rule("New outputs, judged by the saved file")
            for row, _ in iter_rows(new):
                verdict = judge.score(row.source, row.output)
                show_verdict(row.id, row.output, verdict, str(judge.scale))
    out.print(f"\nLook inside with: judgesmith show {escape(str(output))}")
    return 0
