"""Opening what a command names: models, judges, columns, and the file that is to be written."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from judgesmith.datasets.benchmarks.registry import PREFIX
from judgesmith.datasets.formats import open_table
from judgesmith.datasets.loading import aspects_of_mean
from judgesmith.datasets.row import OVERALL
from judgesmith.errors import JudgesmithError, OptionError
from judgesmith.programs.atomic import write_whole
from judgesmith.programs.contract import RATINGS, ratings_of, with_chosen
from judgesmith.programs.models import pace
from judgesmith.programs.models.connection import Connection
from judgesmith.programs.models.files import find_model, installed, model_path
from judgesmith.programs.models.provider import NO_MODEL, is_local, provider_of
from judgesmith.programs.models.threads import thread_count
from judgesmith.running.console import err
from judgesmith.running.settings import ReachOptions

# DSPy takes a second to load, and commands that open no judge do without it.
if TYPE_CHECKING:
    from judgesmith.programs.artifact import Artifact
    from judgesmith.programs.judge import Judge
    from judgesmith.programs.models.lm import LanguageModel, Sampling

#: Seconds that a call is taken to need for estimates, where no better is known.
SECONDS_PER_CALL = 1.5
#: Seconds until a command has begun to open a model of this machine, and bytes of weights that are opened in a second.
STARTING = 2.5
OPENED_PER_SECOND = 1e8
#: Rows by which the columns of a file are found.
HEAD = 1000


def expected_seconds(calls: int, model: str | None, where: Connection | None) -> float:
    """Return a guess at how long this number of calls takes."""
    at_once = 16
    if model and is_local(model):
        at_once = 1
    elif where and where.concurrency:
        at_once = where.concurrency
    return calls * SECONDS_PER_CALL / at_once


def reading_seconds(tokens: float, models: Sequence[str]) -> float:
    """Return a guess at how long models of this machine take to open and to read this many tokens.

    It goes by what this machine last took, or by what ours took.
    """
    sizes = list(map(_size, dict.fromkeys(models)))
    if not any(sizes):
        return 0.0
    reading = tokens * max(sizes) / (pace.known() * thread_count())
    return STARTING + sum(sizes) / OPENED_PER_SECOND + reading


def _size(name: str) -> int:
    with suppress(OSError, JudgesmithError):
        return provider_of(name).size(name)
    return 0


def connection_of(options: ReachOptions, api_base: str | None = None) -> Connection:
    """Return address and limits of models.

    api_base: the server's address.
    """
    return Connection(
        api_base=api_base,
        timeout=options.timeout,
        concurrency=options.concurrency,
        rpm=options.rpm,
        cache=options.cache,
    )


def _names_benchmark(name: str) -> bool:
    return name.startswith(PREFIX) and not Path(name).exists()


def rows_file(name: str) -> Path:
    """Return the file that a command names; for `bench/NAME` the benchmark's, which may be in JUDGESMITH_DATA."""
    if not _names_benchmark(name):
        return Path(name)
    from judgesmith.datasets.benchmarks import catalog

    return catalog.resolve(name.removeprefix(PREFIX))


def benchmark_scale(name: str, aspect: str | None) -> tuple[float, float] | None:
    """Return the scale of an aspect of `bench/NAME`, or of all aspects for a mean.

    None if its card has none with two ends, and for any other file.
    """
    if not _names_benchmark(name):
        return None
    from judgesmith.datasets.benchmarks import catalog

    aspects = catalog.benchmark(name.removeprefix(PREFIX)).aspects
    result = {
        aspects.get(part) for part in aspects_of_mean(aspect) or [aspect or OVERALL]
    }
    scale = result.pop()
    if not result and scale is not None and all(map(math.isfinite, scale)):
        return scale
    return None


def column_roles(options: Sequence[str]) -> dict[str, Any]:
    """Return `ROLE=NAME` options as a mapping; of rater_score, a tuple of names.

    Raises:
        OptionError: If another role is given twice.
    """
    roles: dict[str, Any] = {}
    for option in options:
        role, equals, name = option.partition("=")
        if not equals or not role or not name:
            raise OptionError(
                f"--columns {option!r} is not of the form ROLE=NAME, for example output=summary_text"
            )
        role = role.strip()
        name = name.strip()
        if role in roles and role != "rater_score":
            raise OptionError(
                f"--columns {role} is given twice, {roles[role]!r} and {name!r}, and can be one column only; columns "
                f"with one person's ratings each are --columns rater_score={roles[role]} --columns rater_score={name}"
            )
        roles[role] = (*roles.get(role, ()), name) if role == "rater_score" else name
    return roles


def roles_for(
    path: Path, chosen: Mapping[str, Any] | None, *judges: Path
) -> dict[str, Any]:
    """Return the columns that the user named; for other roles those that saved judges were compiled from.

    The latter count only if the file has them. Judges of different ratings are each compared with their own aspect.

    Raises:
        ArtifactError: If a file is not a judge.
    """
    if not judges:
        return with_chosen({}, chosen or {})
    from judgesmith.programs import artifact

    contracts = [artifact.read(judge).contract for judge in judges]
    names = names_in(path) if any(contracts) else ()
    known = [contract.columns_in(names) for contract in contracts if contract]
    together: dict[str, Any] = {}
    for columns in known:
        together |= columns
    if any(ratings_of(columns) != ratings_of(together) for columns in known):
        together = {r: name for r, name in together.items() if r not in RATINGS}
    return with_chosen(together, chosen or {})


def names_in(path: Path) -> list[str]:
    """Return the columns of a file's first rows: a row of JSON lines need not have every one."""
    rows = islice(open_table(path).records, HEAD)
    return list(dict.fromkeys(chain.from_iterable(rows)))


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the chatter of other libraries."""
    loggers = [
        logging.getLogger(name) for name in ("LiteLLM", "dspy", "httpx", "judgesmith")
    ]
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


def model_for(judge: Judge, name: str | None) -> str | None:
    """Return the model that is opened for a judge: none, where no other is asked for and the judge needs none."""
    from judgesmith.programs.capabilities import without_model

    if name in (None, "", NO_MODEL) and without_model(judge.method):
        return NO_MODEL
    return name


def open_model(
    name: str | None, where: Connection | None = None, sampling: Sampling | None = None
) -> LanguageModel:
    """Return a model by name; a local one that is not there is fetched first."""
    from judgesmith.programs.models.lm import language_model

    if not name:
        raise OptionError(
            "no language model: give --lm (or set JUDGESMITH_LM), for example --lm local/qwen2.5-0.5b, "
            "--lm ollama_chat/llama3.1:8b or --lm openai/gpt-4o-mini"
        )
    provider = provider_of(name)
    if provider.catalog:
        fetch(name)
    loads = provider.in_process
    with err.status(f"loading {escape(name)} …") if loads else nullcontext():
        return language_model(name, connection=where, sampling=sampling)


def fetch(name: str) -> Path:
    """Return the file of a local model, which is fetched where it is not here."""
    model = find_model(name)
    if not installed(name):
        err.print(
            f"fetching {model.title}, {model.bytes / 1e6:,.0f} MB, {model.licence}",
            markup=False,
        )
    return model_path(
        name, announce=lambda line: err.print(line, markup=False, soft_wrap=True)
    )


@contextmanager
def fetching(name: str) -> Iterator[Callable[[int, int, str], None]]:
    """Show a progress bar over a download.

    The function given is called with the bytes present, their total, and their name.
    """
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=err,
        disable=not err.is_terminal,
    ) as bar:
        task = bar.add_task(escape(name), total=None)
        yield lambda done, total, now: bar.update(
            task, completed=done, total=total or None, description=escape(now)
        )


def open_judge(path: Path, lm: str | None, where: Connection | None = None) -> Judge:
    """Open a saved judge with the model it was compiled with, or another; a missing local model is fetched."""
    from judgesmith.programs import artifact

    return open_artifact(artifact.read(path), path, lm, where)


def open_artifact(
    read: Artifact, path: Path, lm: str | None, where: Connection | None = None
) -> Judge:
    """Open a judge as `open_judge` does, from a file that was read.

    path: the file's path.
    """
    from judgesmith.programs import artifact, loading
    from judgesmith.programs.capabilities import locate

    judge = loading.build(
        read
    )  # the whole file is checked before a model is opened for it
    name = lm or artifact.model_of(read, where)
    artifact.connect(judge.method, where)
    judge.set_lm(open_model(name, where, artifact.sampling_of(read)))
    if judge.moved:
        note = f"note: {path.name} was {judge.moved}".replace("FILE", str(path))
        err.print(note, style="yellow", markup=False, soft_wrap=True)
    locate(judge.method, path)
    open_others(judge, where)
    return judge


def open_others(judge: Judge, where: Connection | None) -> None:
    """Open the models that a judge needs beside its own: fetch them before any cost, and try those that are called.

    One that is only read is opened by its reader; a server for it would hold its weights twice.
    """
    from judgesmith.programs.capabilities import connect_models, models_of, read_by

    method = judge.method
    read = read_by(method)
    for name in models_of(method):
        if name not in read:
            open_model(name, where)
        elif provider_of(name).catalog:
            fetch(name)
    connect_models(method, where)


def check_writable(path: Path, *inputs: Path | None) -> None:
    """Check, before any cost, that a judge can be saved to `path`.

    Raises:
        OptionError: If not, or if it would replace an input or a file that is not a judge.
    """
    from judgesmith.programs import artifact

    check_writable_file(path, *inputs)
    try:
        if path.exists():
            artifact.read(path)
    except JudgesmithError as error:
        raise OptionError(
            f"-o {path} exists and is not a judge, so it is not overwritten ({error}); name another file, or delete it"
        ) from None


def write_output(path: Path, text: str) -> None:
    """Write a file in one step.

    Raises:
        OptionError: If it cannot be written.
    """
    try:
        write_whole(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise OptionError(
            f"{path} cannot be written: {error.strerror or error}"
        ) from None


def check_writable_file(path: Path, *inputs: Path | None) -> None:
    """Check, as `check_writable` does, that a file of any kind can be written."""
    for file in inputs:
        if file is not None and path.exists() and file.exists() and path.samefile(file):
            raise OptionError(
                f"-o {path} is an input of this command; name another file"
            )
    if path.is_dir():
        raise OptionError(f"-o {path} is a folder; name a file in it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
        if path.stat().st_size == 0:
            path.unlink()
    except OSError as error:
        raise OptionError(
            f"-o {path} cannot be written: {error.strerror or error}"
        ) from None
