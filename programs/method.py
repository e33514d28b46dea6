"""The part of a judge that an author writes: options, steps, and the judging of one output.

A `Method` is one file. `Judge` (programs/judge.py) is what a user holds: a method with its model, its scale and what
was learnt from labels. What only some methods can do is a protocol in `capabilities`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Self

import dspy
from dspy.predict.parameter import Parameter

from judgesmith import parts
from judgesmith.errors import ArtifactError, JudgesmithError, OptionError
from judgesmith.programs import pipeline
from judgesmith.programs.active_critic.task import TaskKnowledge
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.capabilities import fitted_of, models_of
from judgesmith.programs.models import engine, row_context
from judgesmith.programs.models.connection import Capabilities
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.models.names import check_listed
from judgesmith.programs.models.transport import Message, Request, Unanswered
from judgesmith.programs.outcome import Outcome
from judgesmith.programs.prompting.predict import Compilable, JudgePredict, called
from judgesmith.signatures.values import Criterion, Item, Verdict

if TYPE_CHECKING:
    from judgesmith.programs.readings.bindings.columns import Column


@dataclass(frozen=True, slots=True)
class Cost:
    """Calls of a model, retries not counted."""

    calls_per_row: int = 1
    """For each output."""
    calls_per_document: int = 0
    """Once for each document, however many outputs it has."""


@dataclass(frozen=True, slots=True)
class Words:
    """The judge that a user describes before anything is learnt; see `Method.from_options`."""

    labels_aspect: str | None
    library_aspect: str | None = None
    criteria: tuple[Criterion, ...] = ()
    task: str = ""


class MethodSettings(Parameter):  # type: ignore[misc]
    """Options and fitted data of a method, as a leaf of DSPy's state beside its knowledge and its predictors."""

    def __init__(self, method: Method) -> None:
        self.method = method

    def reset(self) -> None:
        """Keep everything: only demonstrations are reset."""

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """Return the settings as JSON values."""
        method = self.method
        return {
            "kind": method.kind,
            "options": method.saved_options(),
            "fitted": fitted_of(method),
        }

    def load_state(self, state: Mapping[str, Any]) -> MethodSettings:
        """Take the settings of another method of this kind with the same steps.

        Raises:
            ArtifactError: For settings that do not fit.
        """
        method = self.method
        try:
            new = method.of_settings(**state)
        except (JudgesmithError, TypeError, ValueError) as error:
            line = " ".join(str(error).split())[:300]
            raise ArtifactError(
                f"this is not a state of a {method.kind}: {line}"
            ) from None
        steps = dict(method.named_predictors())
        if {*steps} != {name for name, _ in new.named_predictors()}:
            raise ArtifactError(
                f"the state is of a {method.kind} with other steps; make it with the options {new.saved_options()} and "
                "load again"
            )
        new.adopt(steps)
        new.knowledge = method.knowledge
        vars(method).update(vars(new))
        method.settled = self
        return self


class Method(Compilable):
    """Base of all ways to judge.

    A subclass declares itself (`kind`, `about`, `paper`, `Options`), registers with `@methods.register`, makes its
    steps in `build` and judges one output in `judge`.

    Options are keyword arguments of the constructor, attributes of `options`, and what an artifact holds.

    Attributes: options, which never change in place (`choose` replaces them); knowledge, the description of the task
    and the criteria.
    """

    kind: ClassVar[str] = ""
    about: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    #: Whether its explanations are put together from numbers, and not written by a model.
    tells_by_numbers: ClassVar[bool] = False

    class Options(parts.Options):
        """None."""

    options: Any  # a subclass names its own `Options`

    def __init__(
        self, *, task: str = "", criteria: Sequence[Criterion] = (), **options: Any
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if others := {"lm", "scale"} & set(options) - set(
            type(self).Options.model_fields
        ):
            names = ", ".join(f"{option}=…" for option in sorted(others))
            raise OptionError(
                f"{name} is a method of judging; a judge has a model and a scale: Judge({name}(…), {names})"
            )
        self.options = parts.read_options(type(self).Options, options, name)
        for criterion in criteria:
            _check(criterion)
        self.knowledge = TaskKnowledge(task, criteria)
        self.settled = MethodSettings(self)
        self.build()
        self._leave_out()

    def __init_subclass__(cls, **settings: Any) -> None:
        """Show the options in `help()` and in editors, as if the constructor named them."""
        super().__init_subclass__(**settings)
        cls.__signature__ = _signature(cls)  # type: ignore[attr-defined]

    # -- as a DSPy program

    def forward(
        self,
        source: str = "",
        output: str = "",
        context: str | None = None,
        reference: str | None = None,
        **row: Any,
    ) -> dspy.Prediction:
        """Judge one output with DSPy's configured model, as DSPy's programs are called.

        Args:
            source: The source.
            output: The judged text.
            context: Further material, such as retrieved passages.
            reference: A good output.
            **row: `group`, `lm`, `columns`, and other columns of the row.

        Returns:
            A `dspy.Prediction` with score (float in [0, 100], NaN for none), percent (the same), explanation, criteria
                (name -> float in [0, 100]), errors, failure.

        Raises:
            ModelError: When the model cannot be used at all.
            OptionError: For demonstrations with human scores on an unknown scale.
        """
        return engine.run(self.aforward(source, output, context, reference, **row))

    async def aforward(
        self,
        source: str = "",
        output: str = "",
        context: str | None = None,
        reference: str | None = None,
        *,
        group: str | None = None,
        lm: Any = None,
        columns: Mapping[str, float] | None = None,
        **row: Any,
    ) -> dspy.Prediction:
        """Judge one output as `forward` does, for asynchronous callers."""
        item = pipeline.called_with(
            source, output, context, reference, group, columns, row
        )
        if (alone := pipeline.ranked_only(self)) is not None:
            return pipeline.as_prediction(alone)
        predictors = self.predictors()
        for predictor in predictors:
            if isinstance(predictor, JudgePredict):
                predictor.settle()
        own = next((p.lm for p in predictors if p.lm is not None), None)
        return await engine.on_loop(self._judged(item, called(lm or own)))

    def of_settings(
        self, kind: str, options: Mapping[str, Any], fitted: Mapping[str, Any]
    ) -> Self:
        """Return a method of this kind and knowledge with other settings.

        Raises:
            OptionError, TypeError, ValueError: For settings that do not fit.
        """
        if kind != self.kind:
            raise OptionError(f"it is that of a {str(kind)[:80]}")
        given = type(self).Options.absent() | dict(options)
        knowledge = self.knowledge
        new = type(self)(
            task=knowledge.description, criteria=knowledge.criteria, **given
        )
        for name, data in fitted.items():
            new.load_fitted(name, data)  # type: ignore[attr-defined]  # of one that learns
        check_listed(models_of(new))
        return new

    def named_parameters(self) -> list[tuple[str, Any]]:
        """Return DSPy's parameters; the options of methods inside are this one's."""
        return [
            (name, parameter)
            for name, parameter in super().named_parameters()
            if parameter is self.settled or not isinstance(parameter, MethodSettings)
        ]

    async def _judged(self, item: Item, lm: LanguageModel) -> dspy.Prediction:
        await self.prepare(lm)
        verdict, _ = await pipeline.judge_row(self, Outcome(), item, lm)
        return pipeline.told(self, item, verdict)

    # -- what a subclass provides

    def build(self) -> None:
        """Make the steps (predictors and evaluators) that the options ask for, as attributes.

        Called by the constructor and again when options change: steps of the same name keep their demonstrations and
        instructions.
        """

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Judge one output.

        Returns:
            A Verdict with `percent` in [0, 100], NaN beside a `failure`; the judge makes `score` of it.

        Raises:
            CallError: For a call that failed.
        """
        raise NotImplementedError

    async def prepare(self, lm: LanguageModel) -> None:
        """Settle what depends on the model's capabilities. Called before the first row."""

    def cost(self) -> Cost:
        """Return the calls that judging takes."""
        return Cost()

    def meet(self, aspect: str, items: Sequence[Item], lm: LanguageModel) -> None:
        """Look at training rows before anything is searched; must not override the user's settings.

        Args:
            aspect: The name of their scores, "" for one without meaning.
            items: The rows.
            lm: The judge's model.
        """

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """Return the messages of each predictor for the row under judgement.

        By default the first call that `judge` makes is recorded; a method that makes several overrides this to show
        them all.
        """
        recorder = _Recorder()
        lm = LanguageModel(
            "recorded/model",
            recorder,
            identity="",
            connection=Connection(cache=False, attempts=1),
        )
        lm.assume(Capabilities())

        async def ask() -> None:
            with row_context.judging(item), suppress(JudgesmithError):
                await self.without_own_document(item).judge(item, lm)

        engine.run(ask())
        if recorder.requests:
            return {"first call": list(recorder.requests[0].messages)}
        return {}

    @property
    def hidden(self) -> tuple[str, ...]:
        """Return the texts of a row that its judging prompts leave out: source, context."""
        return ()

    def _leave_out(self) -> None:
        for predictor in self.predictors():
            if isinstance(predictor, JudgePredict) and predictor.judges:
                predictor.hides = self.hidden

    def taught(self) -> list[JudgePredict]:
        """Return the predictors that demonstrations are for."""
        return [p for p in self.predictors() if isinstance(p, JudgePredict)]

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        """Return a row as a demonstration for every predictor, with what a verdict on it said, if there is one.

        The caller adds its `score` (percent).
        """
        demo: dict[str, Any] = {
            "source": item.source,
            "output": item.output,
            "context": item.context,
            "reference": item.reference,
            "group": item.group,
        }
        if verdict is not None:
            demo["explanation"] = verdict.explanation
            if verdict.criteria:
                demo["criteria_scores"] = dict(verdict.criteria)
        return demo

    def no_bootstrap(self) -> str | None:
        """Return why its own answers cannot be demonstrations, None where they can."""
        return None if self.taught() else "its prompts show no demonstrations"

    @property
    def brief(self) -> bool:
        """Return True if its answers are a word or a number as they are asked for now."""
        layouts = [predictor.layout for predictor in self.taught()]
        return any(getattr(layout, "brief", False) for layout in layouts)

    def columns(self) -> tuple[Column, ...]:
        """Return the columns of a row that it weighs beside the texts."""
        return ()

    def facts(self) -> dict[str, str]:
        """Return what a person who looks at it should know beside its options: name -> text."""
        return {}

    # -- options

    def choose(self, **options: Any) -> None:
        """Change options, all at once, with the checks of the constructor; its steps follow.

        Raises:
            OptionError: For options that the method does not take.
        """
        now = {
            name: getattr(self.options, name)
            for name in type(self).Options.model_fields
        }
        wanted = parts.read_options(
            type(self).Options, now | options, type(self).__name__
        )
        if wanted == self.options:
            return
        self.options = wanted
        before = self.named_predictors()
        self.build()
        self.adopt(dict(before))

    def with_(self, **options: Any) -> Self:
        """Return a deep copy with these options changed; models' connections are shared.

        Raises:
            OptionError: For options that the method does not take.
        """
        copied: Self = self.deepcopy()
        if options:
            copied.choose(**options)
        return copied

    def settings(self) -> dict[str, Any]:
        """Return its kind and all of its options as JSON values."""
        return {"kind": self.kind, **self.options.settings()}

    def saved_options(self) -> dict[str, Any]:
        """Return the options that an artifact holds, as JSON values.

        With task, criteria and fitted data they are enough to build the same method again.
        """
        settings: dict[str, Any] = self.options.settings()
        return settings

    @classmethod
    def from_options(
        cls,
        options: Mapping[str, Any],
        *,
        labels_aspect: str | None,
        library_aspect: str | None = None,
        criteria: Sequence[Criterion] = (),
        task: str = "",
    ) -> Self:
        """Return the method that a command line or a settings file describes, before anything is learnt.

        Args:
            options: Options by name, as values or as text.
            labels_aspect: The name of the labels' score, None without labels.
            library_aspect: The aspect of the library that is judged.
            criteria: The user's own criteria.
            task: The user's own description of the task.

        Raises:
            OptionError: For options and words that this method does not take.
        """
        return cls.in_words(
            options, Words(labels_aspect, library_aspect, tuple(criteria), task)
        )

    @classmethod
    def in_words(cls, options: Mapping[str, Any], words: Words) -> Self:
        """Build as `from_options` does, for a method that takes other words.

        Raises:
            OptionError: For words that it does not take.
        """
        if words.library_aspect:
            raise OptionError(
                f"--as is for methods that judge one aspect of the library; {cls.kind} takes --criteria"
            )
        parts.read_options(cls.Options, options, f"--method {cls.kind}")
        return cls(task=words.task, criteria=words.criteria, **options)

    # -- for the judge that holds it

    def adopt(self, predictors: Mapping[str, Any]) -> None:
        """Put these predictors, with demonstrations and instructions, in the places of those of the same name.

        The form of their answers is this method's. DSPy's optimizers know predictors by their identity.
        """
        for name, own in self.named_predictors():
            if (other := predictors.get(name)) is None:
                continue
            if isinstance(own, JudgePredict):
                other.layout = own.layout
            *path, last = name.split(".")
            setattr(reduce(getattr, path, self), last, other)
        self._leave_out()

    def without_own_document(
        self, item: Item, predictors: Sequence[Any] | None = None
    ) -> Self:
        """Return the method for a row: itself, or a copy whose plain predictors do not demonstrate the row's document.

        A `JudgePredict` leaves it out by itself.

        Args:
            item: The row.
            predictors: All of the method's own, if they are at hand.
        """
        own = self.predictors() if predictors is None else predictors
        plain = [p for p in own if not isinstance(p, JudgePredict)]
        if all(len(row_context.allowed(p.demos, item)) == len(p.demos) for p in plain):
            return self
        copied: Self = self.deepcopy()
        for predictor in copied.predictors():
            if not isinstance(predictor, JudgePredict):
                predictor.demos = row_context.seen(predictor.demos, item)
        return copied


def _check(criterion: Criterion) -> None:
    """Refuse a criterion that an artifact cannot hold before anything is spent. Raises OptionError."""
    name = criterion.name
    definition = criterion.definition
    if not 1 <= len(name) <= 80 or len(definition) > 2000:
        raise OptionError(
            f"criterion {name[:40]!r}: a name has 1 to 80 characters (here {len(name)}), a definition at most 2,000 "
            f"(here {len(definition)})"
        )


class _Recorder:
    """A transport that answers nothing and keeps what it is asked."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Reply:
        self.requests.append(request)
        raise Unanswered("this call was only recorded", again=False)


def _signature(cls: type[Method]) -> inspect.Signature:
    """Return the parameters of a method's constructor, with its options as keywords."""
    result: dict[str, inspect.Parameter] = {}
    for part in cls.__mro__:
        if issubclass(part, Method) and "__init__" in vars(part):
            result = {
                p.name: p
                for p in list(inspect.signature(part.__init__).parameters.values())[1:]
            } | result
    keyword = inspect.Parameter.KEYWORD_ONLY
    for name, option in cls.Options.model_fields.items():
        result.setdefault(
            name,
            inspect.Parameter(
                name, keyword, default=option.default, annotation=option.annotation
            ),
        )
    shown = [p for p in result.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    return inspect.Signature(sorted(shown, key=lambda p: p.kind))
