"""`js.compile`: the front door to compiling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judgesmith.datasets.loading import ALL, read_aspects, read_labels
from judgesmith.datasets.records import Labels, on_one_scale
from judgesmith.errors import OptionError
from judgesmith.optimizers.compiling import AspectCompiler
from judgesmith.optimizers.options import (
    CompileOptions,
    Compiler,
    default_optimizer,
    level_for,
)
from judgesmith.optimizers.registry import build_optimizer
from judgesmith.optimizers.search.base import DemonstrationSearch
from judgesmith.optimizers.several import SeveralCompiler
from judgesmith.parts import read_options
from judgesmith.programs.capabilities import without_model
from judgesmith.programs.judge import Judge
from judgesmith.programs.method import Method
from judgesmith.programs.models.lm import (
    Connection,
    LanguageModel,
    Sampling,
    language_model,
)
from judgesmith.programs.models.provider import NO_MODEL
from judgesmith.programs.one_aspect import OneAspect
from judgesmith.programs.progress import Progress, watching
from judgesmith.programs.registry import methods
from judgesmith.programs.several.judge import SeveralAspects


def compile(
    judge: Judge | Method | str | Mapping[str, Judge | Method | str],
    labels: Labels | Mapping[str, Labels] | Any,
    *,
    lm: str | LanguageModel | Any | None = None,
    teacher: str | LanguageModel | Any | None = None,
    optimizer: DemonstrationSearch | str | None = None,
    sampling: Sampling | None = None,
    connection: Connection | None = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Judge:
    """Compile a judge from labels: `js.compile(js.ActiveCritic(variant="fine"), labels, lm="ollama_chat/llama3.1:8b")`.

    The same seed, labels and cache give the same judge. A method that needs no model takes none:
    `js.compile(js.ModelReadings(signals=["gpt4"]), "labels.csv")`.

    Args:
        judge: A method, or its name, or a judge that is compiled again.
        labels: The result of `read_labels`, or its input with default options (a path, a DataFrame, dicts).
        lm: The judge's model, by name or as an LM; by default the judge's own or DSPy's.
        teacher: A model that writes the answers shown as demonstrations.
        optimizer: A `DemonstrationSearch` such as `CorrelationRandomSearch`, which is not changed, or a name
            (`judgesmith optimizers` lists them). Default: zero-shot for a judge that weighs readings, random search for
            others.
        sampling: Sampling options of a model given by name.
        connection: Address and limits of a model given by name.
        progress: A bar (True), nothing (False) or a watcher (`Progress`). None: a bar in a notebook and where stderr is
            a terminal, elsewhere lines in the log.
        **options: Those of `CompileOptions` by their names. `level` (by default pooled, and of preferences sample) and
            `seed` hold for the optimizer, too, whatever its own. `heldout` may also be other labels to hold out, whose
            scores widen an inferred scale, not a stated one. `budget=Budget(…)` stands for `max_calls` and `max_cost`,
            and `inference=TaskInference(…)` for how the task is inferred. `aspect` is the score that is learnt, if rows
            have several; two or more, `aspect=["fluency", "coherence"]` or "all", make one judge of them all. Judge,
            labels and held-out labels may then be given by aspect, too, and a row may lack some.

    Returns:
        The compiled judge. Its `report` (CompileReport) has the agreement with people, its `provenance` goes into the
            artifact.

    Raises:
        LabelsError: For labels that cannot be read or learnt from.
        LeakError: For held-out labels that share documents or texts with the others.
        ModelError: When the model cannot be reached or used.
        BudgetError: For a budget that not even the model alone fits in.
        OptionError: For unknown or unfitting options.
    """
    aspect = options.pop("aspect", None)
    several = _several(judge, labels, aspect)
    if several is None:
        judges = {"": _judge(judge)}
        read = {"": _labels(labels, aspect)}
        if isinstance(options.get("heldout"), Labels):
            read[""], options["heldout"] = on_one_scale(read[""], options["heldout"])
    else:
        read = several
        judges = judges_of(judge, several)
    first = next(iter(judges.values()))
    if lm is None and first.own_lm is None:
        able = [without_model(judged.method) for judged in judges.values()]
        lm = NO_MODEL if all(able) else None
    if lm is None:
        model = first.lm
    else:
        model = language_model(lm, sampling=sampling, connection=connection)
    written_by = None
    if teacher is not None:
        written_by = language_model(teacher, connection=connection)
    search = optimizer or default_optimizer(first.method)
    search = build_optimizer(search) if isinstance(search, str) else search
    with watching(progress, "compiling") as watcher:
        heldout: Any = None
        if isinstance(options.get("heldout"), Labels | Mapping):
            heldout = options.pop("heldout")
        inference = options.pop("inference", None)
        compiler = Compiler(
            search,
            _options(options, next(iter(read.values()))),
            heldout if isinstance(heldout, Labels) else None,
            written_by,
            inference,
            watcher,
        )
        work: AspectCompiler | SeveralCompiler
        if several is None:
            work = AspectCompiler(compiler, judges, read)
        else:
            apart = heldout if isinstance(heldout, Mapping) else {}
            work = SeveralCompiler(compiler, judges, read, apart)
        compiled, report = work.run(model)
    compiled.report = report
    # DSPy leaves what is frozen out of the state of a program around it.
    compiled._compiled = False
    return compiled


def _options(options: dict[str, Any], labels: Labels) -> CompileOptions:
    """Return the options of compiling by their names, `budget` among them. Raises OptionError."""
    values: dict[str, Any] = {"level": level_for(labels)} | options
    budget = values.pop("budget", None)
    if budget is not None:
        values |= {"max_calls": budget.max_calls, "max_cost": budget.max_cost}
    return read_options(CompileOptions, values, "compile")


def _judge(judge: Any) -> Judge:
    return judge if isinstance(judge, Judge) else Judge(_method(judge))


def _labels(labels: Any, aspect: Any) -> Labels:
    """Return the labels of one aspect. Raises LabelsError, OptionError."""
    if not isinstance(labels, Labels):
        return read_labels(labels, aspect=aspect)
    if aspect not in (None, labels.aspect):
        raise OptionError(
            f"these labels are of {labels.aspect}; give the rows, or read_labels(…, aspect={aspect!r})"
        )
    return labels


def _several(
    judge: Any, labels: Any, aspect: str | Sequence[str] | None
) -> dict[str, Labels] | None:
    """Return the labels of each aspect, where several are compiled. Raises OptionError, LabelsError."""
    of_judge = _aspects_of(judge)
    by_aspect = isinstance(labels, Mapping) and bool(labels)
    if by_aspect and all(
        isinstance(of_aspect, Labels) for of_aspect in labels.values()
    ):
        wanted = dict(labels)
        if aspect is not None:
            names = [aspect] if isinstance(aspect, str) else list(aspect)
            if names != [ALL] and set(names) != set(wanted):
                raise OptionError(
                    f"the labels are of {', '.join(wanted)}, and aspect names {', '.join(names)}"
                )
        return wanted
    if aspect is None:
        aspect = of_judge
    if aspect is None or (isinstance(aspect, str) and aspect != ALL):
        return None
    if isinstance(labels, Labels):
        raise OptionError(
            f"these labels are of {labels.aspect} alone; for several aspects give the rows, or labels by aspect"
        )
    names = [aspect] if isinstance(aspect, str) else list(aspect)
    return read_aspects(labels, names)


def _aspects_of(judge: Any) -> list[str] | None:
    """Return the aspects of a judge of several, or of judges by aspect; None of another."""
    if isinstance(judge, Mapping):
        return list(judge)
    method = judge.method if isinstance(judge, Judge) else judge
    return list(method.parts()) if isinstance(method, SeveralAspects) else None


def _method(judge: Method | str | Any) -> Method:
    method: Method = methods.get(judge)() if isinstance(judge, str) else judge
    return method


def judges_of(judge: Any, names: Iterable[str]) -> dict[str, Judge]:
    """Return a judge for each aspect, before it is compiled.

    Args:
        judge: a method (or its name) whose options all of them have, judges or methods by aspect, or a judge of several
            aspects.
        names: the aspects.

    Raises:
        OptionError: for an aspect that it has none for, or that a method cannot judge by its name alone.
    """
    method = judge.method if isinstance(judge, Judge) else judge
    by_name: Mapping[str, Any] = judge if isinstance(judge, Mapping) else {}
    if isinstance(method, SeveralAspects):
        own = judge.own_lm if isinstance(judge, Judge) else None
        by_name = {
            name: Judge(part.method, lm=own, outcome=part.outcome)
            for name, part in method.parts().items()
        }
    elif not isinstance(judge, Mapping):
        return {name: _named(judge, name) for name in names}
    judges = {}
    for name in names:
        if name not in by_name:
            raise OptionError(
                f"there is no judge of {name!r} to begin with; there are {', '.join(by_name)}"
            )
        judges[name] = _judge(by_name[name])
    return judges


def _named(judge: Judge | Method | str, name: str) -> Judge:
    """Return a judge of an aspect, with the options of another one."""
    method = _method(judge.method if isinstance(judge, Judge) else judge)
    options = {
        key: value for key, value in method.saved_options().items() if key != "aspect"
    }
    criteria = () if isinstance(method, OneAspect) else method.knowledge.criteria
    named = type(method).from_options(
        options,
        labels_aspect=name,
        criteria=criteria,
        task=method.knowledge.description,
    )
    return Judge(named, lm=judge.own_lm if isinstance(judge, Judge) else None)
