"""A judge to be compiled: labels, method, optimizer, and what was set of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

from judgesmith.datasets.loading import FEWEST, read_aspects, read_labels
from judgesmith.datasets.marks import Kind
from judgesmith.datasets.orders import check_orders, order_of
from judgesmith.datasets.records import Labels, on_one_scale
from judgesmith.errors import LabelsError, OptionError
from judgesmith.optimizers.compiling import AspectCompiler
from judgesmith.optimizers.examples import teachable
from judgesmith.optimizers.front import judges_of
from judgesmith.optimizers.options import (
    NO_TEACHER,
    CompileOptions,
    Compiler,
    default_optimizer,
    level_for,
)
from judgesmith.optimizers.registry import build_optimizer, optimizers
from judgesmith.optimizers.report import Plan
from judgesmith.optimizers.seen import Seen
from judgesmith.optimizers.several import SeveralCompiler
from judgesmith.parts import EVERYWHERE, Options, option, plugin
from judgesmith.programs import artifact, loading
from judgesmith.programs.capabilities import InfersTask, models_of
from judgesmith.programs.contract import (
    Contract,
    ratings_of,
    speaks_of,
)
from judgesmith.programs.judge import Judge
from judgesmith.programs.method import Method
from judgesmith.programs.models.lm import Connection, LanguageModel, Sampling
from judgesmith.programs.models.names import check_listed
from judgesmith.programs.models.provider import is_local
from judgesmith.programs.progress import Progress
from judgesmith.programs.readings.bindings.columns import Column as Signal
from judgesmith.programs.refining import fitted_always
from judgesmith.programs.registry import methods
from judgesmith.programs.several.judge import scales_of
from judgesmith.running.contracts import Held, question_of
from judgesmith.running.criteria import read_criteria_file
from judgesmith.running.opening import (
    benchmark_scale,
    column_roles,
    connection_of,
    expected_seconds,
    open_model,
    open_others,
    reading_seconds,
    roles_for,
    rows_file,
)
from judgesmith.running.settings import (
    BATCH,
    Catalogue,
    JudgeInWords,
    ModelOptions,
    Owner,
    check_way,
)
from judgesmith.signatures.values import Criterion

#: Calls of the judge's model under way at a time where they wait for each other to be sent in batches.
IN_BATCHES = 50_000
#: Provides an opened model for a run, whose progress the second argument hears of.
Provided = Callable[[LanguageModel, Progress], AbstractContextManager[LanguageModel]]
METHOD = "active-critic"
OPTIMIZER = "random-search"
#: The method that is taken where none is asked for and the model can be read, and for other models without labels.
READ = "readings"
COMPARING = "pairwise-direct"
#: The method that is taken where none is asked for and one of its own options, or a second model, is.
PANEL = "panel"
OF_PANEL = ("members", "forms", "models", "row_calls", "infer")
#: Options of the run that only a method which infers its task has a use for.
OF_INFERENCE = ("batches", "batch_size", "keep")


class RunOptions(JudgeInWords, CompileOptions):
    """Settings of compiling, for any method and optimizer."""

    ways = EVERYWHERE
    kind: Kind | None = option(
        None,
        "Kind of labels: score, category, binary (pass or fail) or preference (A, B or tie). none: inferred from the "
        "labels.",
    )
    categories: tuple[str, ...] = option(
        (),
        "Categories, worst first, for words that are not on a usual scale: bad,ok,good.",
    )
    forget: tuple[str, ...] = option(
        (), "Ids of rows to leave out, e.g. those whose label was withdrawn."
    )
    teacher: str | None = option(
        None,
        "Stronger model that writes the explanations in the demonstrations. none: the judge's own model.",
    )
    batch: bool = option(
        False,
        "Use the batch API of openai/… or anthropic/…: half the price, answers within a day. Requests that wait for an "
        "answer at the same time are sent as one batch, fewer than ten at once. OUTPUT.batches.jsonl lists the "
        "batches. The same command resumes.",
    )
    mlflow: str | None = option(
        None,
        "MLflow experiment to log the run to, at MLFLOW_TRACKING_URI or in MLflow's local folder. If logging fails, "
        "the judge is still saved and the exit code is 1.",
    )


@cache
def every_part() -> tuple[tuple[str, type[Options]], ...]:
    """Return the name of each part with options, with these."""
    ways = [(name, part.Options) for name, part in methods.parts().items()]
    searches = [
        (f"--optimizer {name}", part.Options)
        for name, part in optimizers.every().items()
    ]
    return (
        ("every compile run", RunOptions),
        ("every compile run", ModelOptions),
        *ways,
        *searches,
    )


@dataclass(frozen=True, slots=True)
class Setup:
    """A method and an optimizer (None for a judge without labels), and the judge to start from, read once."""

    method: str = METHOD
    optimizer: str | None = OPTIMIZER
    start: Path | None = None
    parent: artifact.Artifact | None = None

    @property
    def model(self) -> str | None:
        """The model of the judge to start from."""
        lm = self.parent.lm if self.parent else None
        return lm.model if lm else None

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects of the judge to start from, where it has several."""
        return tuple(scales_of(self.parent.plain())) if self.parent else ()

    @classmethod
    def choose(
        cls,
        method: str | None,
        optimizer: str | None,
        lm: str | None = None,
        options: Iterable[str] = (),
        start: Path | None = None,
    ) -> Setup:
        """Return the method and optimizer requested, or else those that suit the model best.

        Readings are the default if the model runs in this process or a reader is given, unless one of the options
        belongs to a method that only prompts.

        Raises:
            OptionError: If the method is unknown, or not that of the judge to start from.
        """
        if start is not None:
            saved = artifact.read(start)
            kind = saved.program.kind
            if method not in (None, kind):
                raise OptionError(
                    f"--start {start} is a judge of method {kind}; leave --method {method} out"
                )
            each = methods.get(saved.program.options.get("of", kind))
            search = optimizer or default_optimizer(each)
            return cls(kind, search, start, saved)
        if method is None:
            names = list(options)
            read = cls(READ, optimizer or default_optimizer(methods.get(READ)))
            if _readable(lm, names) and all(map(read.catalogue().has, names)):
                method = READ
            else:
                method = METHOD
            method = PANEL if _of_panel(names) else method
        return cls(method, optimizer or default_optimizer(methods.get(method)))

    @classmethod
    def unlabelled(
        cls,
        method: str | None,
        lm: str | None,
        options: Iterable[str] = (),
        sentence: bool = False,
    ) -> Setup:
        """Return the method requested, or else the one that suits a judge without labels best.

        sentence: there is a criterion.
        """
        names = list(options)
        read = cls(READ, None).catalogue()
        able = _readable(lm, names) and all(map(read.has, names))
        if method is None and _of_panel(names):
            return cls(PANEL, None)
        if not method and able:
            method = READ
        return cls(method or (METHOD if sentence else COMPARING), None)

    def catalogue(self) -> Catalogue:
        """Return the options of method, optimizer and run.

        Raises:
            OptionError: If the method or the optimizer is unknown.
        """
        owners = [
            Owner("method", f"--method {self.method}", methods.get(self.method).Options)
        ]
        who = owners[0].where
        more = f"; see `judgesmith list methods {self.method}`"
        if self.optimizer is None:
            owners.append(Owner("run", "a judge without labels", JudgeInWords))
        else:
            search = Owner(
                "optimizer",
                f"--optimizer {self.optimizer}",
                optimizers.get(self.optimizer).Options,
            )
            model = Owner("lm", "the language model", ModelOptions)
            owners += [search, Owner("run", "the run", RunOptions), model]
            who = f"{who} and {search.where}"
            more = f"{more} and `judgesmith list optimizers {self.optimizer}`"
        return Catalogue(tuple(owners), who, every_part, more, self._unused)

    def jury(self, lms: Sequence[str]) -> dict[str, Any]:
        """Return the method's option for a second and third model.

        Raises:
            OptionError: If the method has none.
        """
        if len(lms) < 2:
            return {}
        if not self.catalogue().has("method.models"):
            raise OptionError(
                f"--lm {lms[1]}: --method {self.method} has one model; several are a jury of --method {PANEL}"
            )
        if len(set(lms)) < len(lms):
            raise OptionError(
                "--lm: a model is named twice; name different models for a jury"
            )
        return {"models": tuple(lms[1:])}

    def _unused(self, name: str) -> str | None:
        """Return why an option of the run has no effect with these parts; None if it has one."""
        method = methods.get(self.method)
        infers = issubclass(method, InfersTask)
        match name:
            case "teacher" if self.optimizer:
                if not optimizers.get(self.optimizer).uses_teacher:
                    return f"--optimizer {self.optimizer}: {NO_TEACHER}"
            case "refine" if not infers and not hasattr(method, "refiners"):
                return f"--method {self.method}: there is nothing to refine in it"
            case "refine" if fitted_always(method):
                return f"--method {self.method}: its weights are all that it learns"
            case _ if name in OF_INFERENCE and not infers:
                return f"--method {self.method}: it infers no task"
            case _:
                pass
        return None


def _of_panel(options: Iterable[str]) -> bool:
    return any(name.rpartition(".")[2] in OF_PANEL for name in options)


def _readable(lm: str | None, options: Iterable[str]) -> bool:
    """Return whether readings can be weighed: the model or the reader given can be read, or there are signals."""
    return is_local(lm or "") or any(
        name.rpartition(".")[2] in ("reader", "signals") for name in options
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileRun:
    """A judge to be compiled: its labels and model, its parts, and what was set of them."""

    labels: Path
    lm: str | None = None
    output: Path = Path("judge.json")
    aspect: str | None = None
    aspects: tuple[str, ...] = ()
    """Several, or `all`, for one judge of them."""
    scale: tuple[float, float] | None = None
    columns: Sequence[str] = ()
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    heldout_file: Path | None = None
    library_aspect: str | None = None
    api_base: str | None = None
    registered: str | None = None
    setup: Setup = field(default_factory=Setup)
    run: RunOptions = field(default_factory=RunOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    of_method: Mapping[str, Any] = field(default_factory=dict)
    of_optimizer: Mapping[str, Any] = field(default_factory=dict)

    def log(self) -> Any:
        """Return the logger of the judge; None without --mlflow and --register.

        Raises:
            OptionError: If its address is missing or invalid.
            MissingExtraError: If MLflow is not installed.
        """
        if self.run.mlflow is None and self.registered is None:
            return None
        return plugin("logs", "mlflow").of(self.run.mlflow, self.registered)

    def judge(self, aspect: str | None) -> Judge:
        """Return the judge before compiling.

        aspect: the name of the labels' score.

        Raises:
            OptionError: If the method cannot be built.
        """
        if self.setup.parent is None:
            return self._built(aspect, self.library_aspect)
        words = {
            "--task": self.run.task,
            "--criteria": self.run.criteria,
            "--as": self.library_aspect,
        }
        for name, value in words.items():
            if value:
                raise OptionError(
                    f"--start has a judge's own task and criteria; leave {name} out"
                )
        judge = loading.build(self.setup.parent)
        judge.method.choose(**self.of_method)
        return judge

    def _built(self, aspect: str | None, library_aspect: str | None) -> Judge:
        of_method = self.of_method
        name = self.setup.method
        return Judge(method_in_words(name, of_method, self.run, aspect, library_aspect))

    def _judges(self, names: Sequence[str]) -> dict[str, Judge]:
        """Return the judges of several aspects before compiling, by aspect."""
        if self.setup.parent is None:
            return {name: self._built(name, self._in_library(name)) for name in names}
        return judges_of(self.judge(None), names)

    def _in_library(self, name: str) -> str | None:
        """Return the library's name of an aspect, where `--as` names its task; None without `--as`.

        Raises:
            OptionError: If `--as` names an aspect too.
        """
        task = self.library_aspect
        if task is not None and "/" in task:
            raise OptionError(
                f"--as {task}: with several aspects name the task alone, for example --as {task.split('/')[0]}"
            )
        return None if task is None else f"{task}/{name}"

    def work(self) -> AspectCompiler | SeveralCompiler:
        """Return the compiler of the aspect, or of several, with judges and labels.

        Raises:
            LabelsError: If the labels of an aspect cannot be learnt from.
            OptionError: If an option contradicts the labels.
        """
        if self.aspects:
            return self._several()
        labels = self.read()
        judges = {labels.aspect: self.judge(labels.aspect)}
        compiler = replace(self.compiler(labels), heldout=self._heldout(labels))
        return AspectCompiler(compiler, judges, {labels.aspect: labels})

    def compiler(self, labels: Labels) -> Compiler:
        """Return the compiler, without labels to hold out."""
        where = f"--optimizer {self.setup.optimizer}"
        search = build_optimizer(
            str(self.setup.optimizer), self.of_optimizer, where=where
        )
        options: CompileOptions = self.run
        if "level" not in self.run.model_fields_set:
            options = options.model_copy(update={"level": level_for(labels)})
        elif labels.kind == "preference" and options.level != "sample":
            raise OptionError(
                f"--level {options.level} cannot be used with preferences, which order outputs within documents; leave "
                "it out, or take --level sample"
            )
        return Compiler(search=search, options=options)

    def _several(self) -> SeveralCompiler:
        name = str(self.labels)
        read = read_aspects(
            rows_file(name),
            self.aspects,
            scale=self.scale or partial(benchmark_scale, name),
            columns=column_roles(self.columns),
            kind=self.run.kind,
            categories=self.run.categories or self.orders,
        )
        for aspect, of_aspect in read.items():
            contract = self._held(aspect)
            if contract is not None:
                read[aspect] = self._kept(of_aspect, contract)
        self._check_orders(*read.values())
        labels = dict[str, Labels]()
        held = dict[str, Labels]()
        for aspect, rated in self._forgetting_each(read).items():
            rated = rated.regrouped(self.run.template_share)
            labels[aspect] = teachable(self._widened(rated))
            heldout = self._heldout(labels[aspect])
            held |= {} if heldout is None else {aspect: heldout}
        compiler = self.compiler(next(iter(labels.values())))
        return SeveralCompiler(compiler, self._judges(list(labels)), labels, held)

    def _forgetting_each(self, labels: Mapping[str, Labels]) -> dict[str, Labels]:
        """Return the labels of several aspects without the rows of `--forget`.

        Raises:
            OptionError: If no aspect has a label with such an id.
        """
        unknown = set(self.run.forget)
        remaining = dict[str, Labels]()
        for name, rated in labels.items():
            own = {row.id for row in rated.rows} & set(self.run.forget)
            remaining[name] = self._forgetting(rated, sorted(own)) if own else rated
            unknown -= own
        if unknown:
            raise OptionError(
                f"--forget {min(unknown)}: {self.labels} has no label with this id"
            )
        return remaining

    def files(self) -> list[Path]:
        """The files that it reads or writes beside labels and judge."""
        values = [
            *(value for _, value in self.run),
            *self.of_method.values(),
            *self.of_optimizer.values(),
        ]
        return [value for value in values if isinstance(value, Path)]

    def connection(self) -> Connection:
        """Return address and limits of the model."""
        return connection_of(self.model, self.api_base)

    def batched(self, judges: Iterable[Judge]) -> Provided:
        """Return what provides the opened model for the run: as it is, or with its requests in batches.

        Raises:
            OptionError: If `--batch` does not suit the model, a judge or another option.
        """
        if not self.run.batch:
            return lambda lm, _: nullcontext(lm)
        check_way(self.run, BATCH)
        check_way(self.model, BATCH)
        model = plugin("compiling", "batch")
        over: Provided = model(judges, self.lm, self.connection(), self.output).over
        return over

    def sampling(self) -> Sampling:
        """Return the sampling settings of the model."""
        return Sampling(self.model.temperature, self.model.max_tokens)

    def opened(
        self, judges: Iterable[Judge]
    ) -> tuple[LanguageModel, LanguageModel | None]:
        """Open all models that compiling asks; return the judges' own and the teacher's."""
        where = self.connection()
        several = list(judges)
        for judge in several:
            check_listed(models_of(judge.method))
        own = where
        if self.run.batch:
            own = replace(where, concurrency=IN_BATCHES)
        lm = open_model(self.lm, own, self.sampling())
        teacher = open_model(self.run.teacher, where) if self.run.teacher else None
        for judge in several:
            open_others(judge, where)
        return lm, teacher

    def timed(self, plan: Plan) -> Plan:
        """Return a plan with the seconds that its calls are expected to take; in batches, with half the price."""
        if self.run.batch:
            cost = None if plan.cost is None else plan.cost / 2
            each = plan.aspects.values() or [plan]
            batches = sum(one.passes * one.row_calls for one in each)
            return replace(plan, cost=cost, batches=batches)
        seconds = reading_seconds(
            plan.asked + plan.read, [self.lm or "", *plan.readers]
        )
        if not is_local(self.lm or ""):
            seconds += expected_seconds(plan.calls, self.lm, self.connection())
        return replace(plan, seconds=seconds)

    def read(self) -> Labels:
        """Return the labels, without those that are forgotten.

        Raises:
            LabelsError: If the file cannot be read.
            OptionError: If an option does not fit it.
        """
        name = str(self.labels)
        labels = self._read(name, self.scale or benchmark_scale(name, self.aspect))
        self._check_orders(labels)
        if self.run.forget:
            labels = self._forgetting(labels, self.run.forget)
        return teachable(self._widened(labels))

    def _read(
        self, name: str, scale: tuple[float, float] | None, aspect: str | None = None
    ) -> Labels:
        """Return the labels of a file; those that refine a judge answer the question that it was compiled for.

        Raises:
            OptionError: If they answer another question than the judge's own labels, with both readings.
        """
        path = rows_file(name)
        named = column_roles(self.columns)
        aspect = aspect or self.aspect
        orders = self.run.categories or self.orders
        held = self._held(aspect)
        kind = self.run.kind
        read = partial(read_labels, path, categories=orders, kind=kind)
        start = self.setup.start
        parent = self.setup.parent
        if held is None or start is None or parent is None:
            labels = read(aspect=aspect, scale=scale, columns=named)
            return labels.regrouped(self.run.template_share)
        columns = roles_for(path, named, start)
        read = partial(read, columns=columns, scale=scale)
        own = aspect or (
            None if speaks_of(held.question.aspect, "") else held.question.aspect
        )
        words = parent.decision
        try:
            labels = read(aspect=own)
        except LabelsError:
            if words is None or orders:
                labels = read(aspect=aspect)
            else:  # in the order that it was compiled with
                labels = read(aspect=own, categories=words.names)
        labels = self._kept(labels, held)
        asked = held.question.kind
        if kind is None and asked and labels.kind != asked:
            as_before = cast(Kind, asked)
            labels = read(aspect=labels.aspect, scale=labels.scale, kind=as_before)
        return labels.regrouped(self.run.template_share)

    def _kept(self, labels: Labels, held: Contract) -> Labels:
        """Return labels on the scale of the judge to start from, whose question they answer.

        Raises:
            OptionError: For another question, with both readings.
        """
        found = question_of(labels, held.question.scale)
        chosen = bool(self.aspect or ratings_of(column_roles(self.columns)))
        judge = self.setup.start.name if self.setup.start else ""
        note = held.check(found, judge=judge, origin=labels.origin, chosen=chosen)
        notes = labels.warnings
        if found.scale is not None and found.scale == held.question.scale:
            notes = tuple(n for n in notes if "the scale was inferred" not in n)
            labels = replace(labels, scale=found.scale, scale_given=True)
        return replace(labels, warnings=(*notes, *([note] if note else [])))

    def _held(self, aspect: str | None) -> Contract | None:
        """Return the contract of the judge to start from, on one of its aspects; None without one."""
        setup = self.setup
        if setup.start is None or setup.parent is None:
            return None
        return Held(setup.start.name, setup.parent.contracts).on(aspect or "")

    def _widened(self, labels: Labels) -> Labels:
        """The labels on a scale that holds the held-out ones, too, where it was inferred."""
        if labels.scale_given or self.heldout_file is None:
            return labels
        return on_one_scale(labels, self._of_heldout(labels, None))[0]

    def _forgetting(self, labels: Labels, names: Sequence[str]) -> Labels:
        if (
            labels.kind == "preference"
        ):  # an output may stand in several comparisons, which its row has as ratings
            raise OptionError(
                "--forget is for rows of one output; take the comparison out of the file"
            )
        gone = {row.id: row for row in labels.rows if row.id in names}
        for name in names:
            if name not in gone:
                raise OptionError(
                    f"--forget {name}: {labels.origin} has no label with this id"
                )
        parent = self.setup.parent
        seen = Seen(parent.provenance) if parent else Seen()
        for name, row in gone.items():
            if seen.knows(row.source, row.output):
                raise OptionError(
                    f"--start {self.setup.start} was compiled from {name}, and what starts from it may keep what it "
                    "learnt there; leave --start out to forget it"
                )
        remaining = labels.subset(
            i for i, row in enumerate(labels.rows) if row.id not in gone
        )
        if len(remaining) < FEWEST:
            raise LabelsError(
                f"{labels.origin}: without what --forget names, fewer than {FEWEST} labels are left"
            )
        if account := labels.account:
            lines = [(row.line, "it is to be forgotten") for row in gone.values()]
            left = account.labelled - len(gone)
            account = replace(
                account,
                labelled=left,
                skipped=tuple(sorted([*account.skipped, *lines])),
            )
        return replace(remaining, account=account)

    def descended(self, provenance: Mapping[str, Any]) -> dict[str, Any]:
        """Return a provenance with the judge that it starts from and that one's ancestors, the oldest first.

        Their rows were seen, too.
        """
        read = self.setup.parent
        if read is None:
            return dict(provenance)
        before = read.provenance
        labels = read.provenance.get("labels") or {}
        parent = {
            "judge": artifact.digest(artifact.identity_of(read)),
            "created": before.get("created"),
        }
        parent |= {"labels": labels.get("fingerprint"), "rows": labels.get("rows")}
        seen = {
            k: sorted({*provenance[k], *(before.get(k) or [])})
            for k in ("seen", "seen_texts")
        }
        return {
            **provenance,
            **seen,
            "lineage": [*(before.get("lineage") or []), parent],
        }

    def _of_heldout(self, labels: Labels, scale: tuple[float, float] | None) -> Labels:
        aspect = labels.aspect if self.aspects else self.aspect or labels.aspect
        return self._read(str(self.heldout_file), scale, aspect)

    def _check_orders(self, *every: Labels) -> None:
        """Raise OptionError for an order of words that nothing here has."""
        if self.run.categories and self.orders:
            raise OptionError(
                "--categories and --scale NAME=… both order people's words; leave one out"
            )
        scores = [
            labels.account.columns["score"]
            for labels in every
            if labels.account and "score" in labels.account.columns
        ]
        signals = (Signal.of(text).name for text in self.of_method.get("signals", ()))
        aspects = (labels.aspect for labels in every)
        check_orders(self.orders, [*aspects, *scores, *signals])

    def _heldout(self, labels: Labels) -> Labels | None:
        if self.heldout_file is None:
            return None
        heldout = self._of_heldout(labels, labels.scale)
        if (heldout.kind, heldout.levels) != (labels.kind, labels.levels):
            theirs, here = (
                f"{side.kind} {', '.join(side.categories)}".strip()
                for side in (heldout, labels)
            )
            raise LabelsError(
                f"{heldout.origin}: its ratings are read as {theirs}, those of {labels.origin} as {here}; say what "
                "both are with --kind, or --categories with all words, worst first"
            )
        return heldout


def with_orders(
    signals: Sequence[str], orders: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Signals as `--signal` has them, with the order of their words where the user said it."""
    ordered = []
    for text in signals:
        words = order_of(orders, text)
        ordered.append(f"{text}={','.join(words)}" if words else text)
    return tuple(ordered)


def method_in_words(
    method: str,
    options: Mapping[str, Any],
    words: JudgeInWords,
    aspect: str | None,
    library_aspect: str | None,
    criteria: Sequence[Criterion] = (),
) -> Method:
    """A method by its name and its options. aspect: of the labels, None where there are none."""
    built: Method = methods.get(method).from_options(
        options,
        labels_aspect=aspect,
        library_aspect=library_aspect,
        criteria=read_criteria_file(words.criteria) if words.criteria else criteria,
        task=words.task,
    )
    return built
