"""`js.compile`: the front door to compiling, of one aspect or of several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..datasets.loading import read_labels
from ..datasets.records import Labels
from ..errors import OptionError
from ..programs.judge import Judge
from ..programs.models.lm import Connection, LanguageModel, Sampling, language_model
from ..programs.progress import Progress, watching
from .compiling import Compiler, default_optimizer, level_for
from .registry import build_optimizer
from .report import CompileReport
from .search.base import DemonstrationSearch
from .several_aspects import AspectsCompiler, AspectsReport, for_each


def compile(
    judge: Judge,
    labels: Labels | Any,
    *,
    lm: str | LanguageModel | Any,
    teacher: str | LanguageModel | Any | None = None,
    optimizer: DemonstrationSearch | str | None = None,
    sampling: Sampling | None = None,
    connection: Connection | None = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Judge:
    """Compile a judge from labels: `js.compile(js.ActiveCritic(variant="fine"), labels, lm="ollama_chat/llama3.1:8b")`.

    labels: what `read_labels` gave, or what it reads (a path, a DataFrame, dicts), with its defaults. Of a judge of
    several aspects (`js.AspectsJudge`) the labels of each by the aspect's name, or a source that has them all; see
    `AspectsCompiler`.
    optimizer: a `DemonstrationSearch` such as `CorrelationRandomSearch`, which is not changed, or a name (`judgesmith
    optimizers` lists them); by default none for a judge that weighs readings, random search for others. teacher: a
    model that writes what a search has written. options: those of `CompileOptions` by their names (level, by default
    pooled and of preferences sample, and seed hold for the optimizer, too, whatever its own); heldout may also be other
    labels to hold out, budget=Budget(…) stands for max_calls and max_cost, and inference=TaskInference(…) for how the
    task is inferred. progress: a bar (True), nothing (False) or a watcher (`Progress`); None: a bar in a notebook and
    where stderr is a terminal, elsewhere lines in the log. The same seed, labels and cache give the same judge.

    Returns the compiled judge; its `report` (CompileReport) says how far it agrees with people, its `provenance` goes
    into the artifact. Raises LabelsError, LeakError, ModelError, BudgetError, OptionError.
    """
    model = language_model(lm, sampling=sampling, connection=connection)
    written_by = None if teacher is None else language_model(teacher, connection=connection)

    with watching(progress, "compiling") as watcher:
        made, report = _run(judge, labels, model, written_by, optimizer, watcher, options)
    made.report = report
    made._compiled = False  # DSPy leaves what is frozen out of the state of a program around it
    return made


def _run(
    judge: Judge,
    labels: Labels | Any,
    model: LanguageModel,
    teacher: LanguageModel | None,
    optimizer: DemonstrationSearch | str | None,
    progress: Progress,
    options: dict[str, Any],
) -> tuple[Judge, CompileReport | AspectsReport]:
    def compiler(part: Judge, its: Labels, **given: Any) -> Compiler:
        search = optimizer or default_optimizer(type(part))
        return Compiler(
            search=build_optimizer(search) if isinstance(search, str) else search,
            teacher=teacher,
            progress=progress,
            **{"level": level_for(its)} | given,
        )

    if judge.by_aspect:
        every = _of_aspects(judge, labels)
        heldout = options.pop("heldout", None)
        held = _of_aspects(judge, heldout) if isinstance(heldout, Mapping) else dict.fromkeys(every, heldout)
        compilers = {
            name: compiler(part, every[name], heldout=held[name], **options) for name, part in judge.by_aspect.items()
        }
        return AspectsCompiler(compilers, progress).run(judge, every, model)
    labels = labels if isinstance(labels, Labels) else read_labels(labels)
    return compiler(judge, labels, **options).run(judge, labels, model)


def _of_aspects(judge: Judge, labels: Any) -> dict[str, Labels]:
    """The labels of each aspect of a judge. Raises OptionError, LabelsError."""
    names = list(judge.by_aspect)
    if isinstance(labels, Mapping) and any(isinstance(one, Labels) for one in labels.values()):
        if set(labels) != set(names):
            raise OptionError(f"the judge is of {', '.join(names)}, the labels of {', '.join(map(str, labels))}")
        return {name: labels[name] for name in names}
    if isinstance(labels, Labels):
        raise OptionError(
            f"these are labels of {labels.aspect!r} alone, and the judge is of {', '.join(names)}; give the labels of "
            "each, {aspect: labels}, or the file that has them all"
        )
    source = list(labels) if isinstance(labels, Iterator) else labels  # it is read several times
    return for_each(names, lambda name: read_labels(source, aspect=name))


__all__ = ["compile"]
