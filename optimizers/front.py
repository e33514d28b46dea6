"""`js.compile`: the front door to compiling."""

from __future__ import annotations

from typing import Any

from ..datasets.loading import read_labels
from ..datasets.records import Labels, on_one_scale
from ..programs.capabilities import without_model
from ..programs.judge import Judge
from ..programs.method import Method
from ..programs.models.lm import (
    NO_MODEL,
    Connection,
    LanguageModel,
    Sampling,
    language_model,
)
from ..programs.progress import Progress, watching
from ..programs.registry import methods
from .compiling import Compiler, default_optimizer, level_for
from .registry import build_optimizer
from .search.base import DemonstrationSearch


def compile(
    judge: Judge | Method | str,
    labels: Labels | Any,
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
            and `inference=TaskInference(…)` for how the task is inferred.

    Returns:
        The compiled judge. Its `report` (CompileReport) has the agreement with people, its `provenance` goes into the
            artifact.

    Raises:
        LabelsError: For labels that cannot be read or learnt from.
        LeakError: For held-out labels that share documents or texts with the others.
        ModelError: When the model cannot be reached or used.
        BudgetError: For a budget that not even a zero-shot judge fits in.
        OptionError: For unknown or unfitting options.
    """
    if not isinstance(judge, Judge):
        judge = Judge(methods.get(judge)() if isinstance(judge, str) else judge)
    if lm is None and judge.own_lm is None and without_model(judge.method):
        lm = NO_MODEL
    if lm is None:
        model = judge.lm
    else:
        model = language_model(lm, sampling=sampling, connection=connection)
    written_by = None
    if teacher is not None:
        written_by = language_model(teacher, connection=connection)

    labels = labels if isinstance(labels, Labels) else read_labels(labels)
    if isinstance(options.get("heldout"), Labels):
        labels, options["heldout"] = on_one_scale(labels, options["heldout"])
    search = optimizer or default_optimizer(judge.method)
    search = build_optimizer(search) if isinstance(search, str) else search
    with watching(progress, "compiling") as watcher:
        chosen = {"level": level_for(labels)} | options
        compiler = Compiler(
            search=search, teacher=written_by, progress=watcher, **chosen
        )
        compiled, report = compiler.run(judge, labels, model)
    compiled.report = report
    compiled._compiled = (
        False  # DSPy leaves what is frozen out of the state of a program around it
    )
    return compiled
