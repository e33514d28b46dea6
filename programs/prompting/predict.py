"""Predictors and evaluators.

A predictor is a `dspy.Predict` that formats, calls and parses through our engine and keeps a row out of its own prompt.
Evaluators are DSPy modules of one or a few calls, which a judge is made of and which can be used alone.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypedDict

import dspy
from dspy.dsp.utils.settings import main_thread_config
from dspy.utils.callback import with_callbacks

from judgesmith.errors import ArtifactError, CallError, ModelError
from judgesmith.programs.answers.reading import Read
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models import engine, row_context
from judgesmith.programs.models.as_dspy import (
    Quiet,
    Result,
    heard,
    listeners,
    setting,
    value_of,
    without_system,
)
from judgesmith.programs.models.connection import Capabilities
from judgesmith.programs.models.lm import LanguageModel, language_model
from judgesmith.programs.models.parameters import notes_on
from judgesmith.programs.models.transport import Message, Request
from judgesmith.programs.prompting.beginnings import Beginnings
from judgesmith.programs.prompting.demonstrations import labelled, traced
from judgesmith.programs.prompting.layouts import Layout, described, judges_row
from judgesmith.programs.prompting.saved import (
    SavedPredictor,
    flat,
    from_stock,
    saved_predictor,
    signature_hash,
)
from judgesmith.programs.prompting.training import refuse_training
from judgesmith.signatures.values import Item, Scale, Usage, Verdict

#: What is sent to a model whose answer could not be read. In those words, small ones take the judged text for
#: unreadable, and give it the lowest score.
AGAIN = "The form of that answer was wrong, not what it says. Write it again."
#: What a verdict says where a model was asked again, and had an answer then, or none.
SECOND = "answered at the second request"
TWICE = "(asked twice)"


class Unreadable(CallError):
    """The model answered twice and neither answer could be read."""

    def __init__(self, problem: str, raw: tuple[str, ...], usage: Usage) -> None:
        super().__init__(problem)
        self.raw = raw
        self.usage = usage


@dataclass(frozen=True, slots=True)
class Answer:
    """A read answer with what it cost and the model's own words."""

    read: Read
    usage: Usage
    raw: tuple[str, ...]

    def verdict(self, percent: float, **more: Any) -> Verdict:
        """Return the verdict of this answer alone.

        Args:
            percent: The score in [0, 100].
            **more: Further fields of the verdict.
        """
        return Verdict(
            percent=percent,
            repaired=self.read.repaired,
            notes=self.read.notes,
            usage=self.usage,
            raw=self.raw,
            **more,
        )


def spent(answers: Iterable[Any]) -> tuple[Usage, tuple[str, ...]]:
    """Return the cost and the raw texts of several answers; those that could not be read are `CallError`s with both."""
    usages = list[Usage]()
    raw = list[str]()
    for answer in answers:
        usage: Usage | None = getattr(answer, "usage", None)
        usages += [] if usage is None else [usage]
        raw += getattr(answer, "raw", ())
    return Usage.total(usages), tuple(raw)


@dataclass(slots=True)
class _Reader:
    """Says of a reply whether it can be used, and keeps what was read last."""

    predict: JudgePredict
    inputs: Mapping[str, Any]
    usable: Callable[[Read], bool]
    read: Read = field(init=False)

    def __call__(self, reply: Reply) -> bool:
        predict = self.predict
        fields = described(predict.signature)
        self.read = predict.layout.read(reply, self.inputs, fields)
        return self.read.problem is None and self.usable(self.read)


class JudgePredict(Quiet, dspy.Predict):  # type: ignore[misc]
    """One predictor of a judge: a signature, demonstrations, and the layout of its prompt and answer.

    DSPy sees an ordinary `Predict` (demos, signature, traces, state, callbacks, history). The layout, an adapter of its
    own, lays out the prompt and parses the answer whatever `dspy.settings.adapter` is: what was measured is what asks.
    """

    signature: Any  # a subclass of dspy.Signature
    #: Whether it judges the output, and does not write one.
    judges = True
    #: Texts of the row and of demonstrations that its prompts leave out.
    hides: tuple[str, ...] = ()
    #: Whether no judge holds it: then no one else knows the scale of human scores in its demonstrations.
    alone = False

    def __init__(self, signature: type[dspy.Signature], layout: Layout) -> None:
        super().__init__(signature)
        self.layout = layout
        #: Of human scores in demonstrations that DSPy brings; None: only `score` in percent is read.
        self.scale: Scale | None = None
        self._beginnings = Beginnings()

    @property
    def demos(self) -> list[Any]:
        """Return its demonstrations."""
        return self._demos

    @demos.setter
    def demos(self, demos: list[Any]) -> None:
        """Take demonstrations.

        Raises:
            OptionError: As `settle` does, while an optimizer compiles it alone: `compile` then fails with the reason,
                and not a call within it.
        """
        for demo in demos if self.alone else ():
            self.shown(demo)
        self._demos = demos

    def settle(self) -> None:
        """Bring demonstrations that DSPy's optimizers gave it into the prompts' form; those with nothing to show go.

        Raises:
            OptionError: For a human score on an unknown scale.
        """
        if all("gold" in demo for demo in self._demos):
            return
        shown = [self.shown(demo) for demo in self._demos]
        self._demos = [demo for demo in shown if demo is not None]

    def _settled(self, demo: Any) -> bool:
        """Return True if it is in that form: DSPy gives examples; a dict with a score in percent is one by hand."""
        by_hand = (
            self.scale is None
            and isinstance(demo, dict)
            and demo.get("score") is not None
        )
        return "gold" in demo or by_hand

    def shown(self, demo: Any) -> Any:
        """Return one of them as prompts show it; None for one that shows nothing."""
        if self._settled(demo):
            return demo
        if demo.get("augmented"):
            return traced(demo, self.layout, self.signature)
        return labelled(demo, self.layout, self.signature, self.scale)

    def demos_for(self, inputs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the demonstrations in the prompt of the row under judgement: see `row_context.seen`."""
        self.settle()
        if not self._demos or not judges_row(self.signature):
            return list(self._demos)
        item = Item(
            inputs.get("output") or "",
            inputs.get("source") or "",
            group=row_context.group(),
        )
        return row_context.seen(self._demos, item)

    def messages(
        self, inputs: Mapping[str, Any], *, group: str | None = None
    ) -> list[Message]:
        """Return the very messages that a row sends.

        Args:
            inputs: The inputs of the call.
            group: The row's document, if no row is under judgement.
        """
        if row_context.current() is None:
            with row_context.judging(Item("", group=group)):
                return self.messages(inputs)
        demos = self.demos_for(inputs)
        if self.hides:
            nothing = dict.fromkeys(self.hides, "")
            inputs = {**inputs, **nothing}
            demos = [{**demo, **nothing} for demo in demos]
        return self.layout.messages(self.signature, demos, inputs, self._beginnings)

    async def ask(
        self,
        lm: LanguageModel,
        inputs: Mapping[str, Any],
        *,
        usable: Callable[[Read], bool] = lambda _: True,
    ) -> Answer:
        """Make one call, and one more if the answer cannot be read.

        Args:
            lm: The model.
            inputs: The inputs of the call.
            usable: Returns True for a read answer of use to the caller. An unusable one is returned but not cached, so
                the next run asks again.

        Raises:
            Unreadable: If neither answer can be read.
            CallError: For a failed call.
        """
        if heard(self) or _trace() is not None:
            return value_of(await self.acall(**inputs, lm=lm, usable=usable), Answer)
        return await engine.on_loop(self._asked(lm, inputs, usable))

    async def aforward(
        self,
        *,
        lm: str | LanguageModel | Any | None = None,
        group: str | None = None,
        usable: Callable[[Read], bool] = lambda _: True,
        **inputs: Any,
    ) -> dspy.Prediction:
        """Return the fields of an answer; `value_of` gives its cost.

        Args:
            lm: The model; by default the predictor's own, else DSPy's.
            group: The row's document, if no judge has set it.
            usable: As for `ask`.
            **inputs: The inputs of the call.
        """
        model = called(lm if lm is not None else self.lm)
        answer = await engine.on_loop(self._asked(model, inputs, usable, group))
        prediction = Result(answer, **answer.read.values)
        trace = _trace()
        if trace is not None:
            # DSPy's adapters, which lay steps out for training, take a list for one of texts.
            held = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in inputs.items()
            }
            trace.append((self, held, prediction))
        return prediction

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Call `aforward` in this thread."""
        return engine.run(self.aforward(**inputs))

    async def _asked(
        self,
        lm: LanguageModel,
        inputs: Mapping[str, Any],
        usable: Callable[[Read], bool],
        group: str | None = None,
    ) -> Answer:
        """Answer on the engine's loop, with the inputs as the row where none is under judgement."""
        if row_context.current() is None:
            texts = (inputs.get("output") or "", inputs.get("source") or "")
            with row_context.judging(Item(*texts, group=group)):
                return await self._asked(lm, inputs, usable)
        able = await lm.capabilities()
        size = 0
        for text in inputs.values():
            if isinstance(text, str):
                size += len(text)
        messages = await engine.apart(size, self.messages, inputs)
        if not able.system_prompt:
            messages = without_system(messages)
        request = self._request(lm, able, messages, inputs)
        first = await self._once(lm, request, inputs, usable)
        if first.read.problem is None:
            return first
        rules = self.layout.told(self.signature, inputs)
        again: list[Message] = [
            *messages,
            {"role": "assistant", "content": first.raw[0] or "(no answer)"},
            {"role": "user", "content": f"{AGAIN} {rules}"},
        ]
        request = replace(request, messages=again)
        second = await self._once(lm, request, inputs, usable, first)
        read = second.read
        if read.problem is not None:
            problem = f"{read.problem} {TWICE}"
            raise Unreadable(problem, second.raw, second.usage)
        notes = (*read.notes, SECOND)
        return replace(second, read=Read(read.values, read.repaired, notes=notes))

    def _request(
        self,
        lm: LanguageModel,
        able: Capabilities,
        messages: list[Message],
        inputs: Mapping[str, Any],
    ) -> Request:
        """Return the request for an answer in the layout's form, as far as the model can be held to it."""
        layout = self.layout
        most = min(layout.max_tokens(inputs), lm.sampling.max_tokens or 1_000_000)
        form: dict[str, Any] = {}
        if able.grammar:
            form["grammar"] = layout.grammar(inputs)
            form["choices"] = layout.choices(inputs)
        elif able.json_schema:
            form["schema"] = layout.schema(inputs)
        return Request(
            messages,
            most,
            lm.sampling.temperature,
            20 if layout.wants_logprobs and able.logprobs else 0,
            beginning=len(messages) - 1,  # the row is the last one
            **form,
        )

    async def _once(
        self,
        lm: LanguageModel,
        request: Request,
        inputs: Mapping[str, Any],
        usable: Callable[[Read], bool],
        before: Answer | None = None,
    ) -> Answer:
        """Make one call; the answer has a problem where it cannot be read. before: the one that could not be.

        Raises:
            Unreadable: If asking again would not help.
        """
        reader = _Reader(self, inputs, usable)
        reply, usage = await lm.answered(request, reader)
        read = reader.read
        raw: tuple[str, ...] = (reply.text,)
        if before is not None:
            usage = before.usage + usage
            raw = (*before.raw, *raw)
        self._tell(reply.text, read)
        if read.final:
            raise Unreadable(str(read.problem), raw, usage)
        if reply.without:
            read = replace(read, notes=(*read.notes, *notes_on(reply.without)))
        return Answer(read, usage, raw)

    def _tell(self, completion: str, read: Read) -> None:
        """DSPy's callbacks hear of the reading as of an adapter's parsing."""
        if listeners(self.layout):

            def parse(
                layout: Layout, signature: type[dspy.Signature], completion: str
            ) -> dict[str, Any]:
                return read.values

            with_callbacks(parse)(self.layout, self.signature, completion)

    # -- state

    def take(self, saved: SavedPredictor) -> None:
        """Instructions and demonstrations that were saved."""
        self.signature = self.signature.with_instructions(saved.instructions)
        self.demos = saved.demonstrations()

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """Instructions and demonstrations as JSON values, which a stock `dspy.Predict` of its signature loads, too.

        They hold no model and no settings.
        """
        self.settle()
        saved = saved_predictor(self.signature, self.demos)
        return {
            "traces": [],
            "train": [],
            "demos": [flat(demo) for demo in saved["demos"]],
            "signature": self.signature.dump_state(),
            "lm": None,
            "digest": signature_hash(self.signature),
        }

    def load_state(
        self, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool = False
    ) -> Self:
        """Take a state of the same fields.

        Raises:
            ArtifactError: For a state of other fields, or of anything else.
        """
        try:
            saved = SavedPredictor.model_validate_json(
                json.dumps(from_stock(state), allow_nan=False)
            )
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            problem = " ".join(str(error).split())[:200]
            raise ArtifactError(
                f"this is not a state of a judge's predictor: {problem}"
            ) from None
        if saved.fields not in (None, signature_hash(self.signature)):
            raise ArtifactError(
                "the state was saved for other prompt fields; compile again with this version"
            )
        self.take(saved)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that shares the set model: it is a connection."""
        if self.lm is not None:
            memo[id(self.lm)] = self.lm
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        copied.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return copied


refuse_training(JudgePredict)


def _trace() -> list[Any] | None:
    """Return the list that DSPy's optimizers trace calls in; None if nobody reads one.

    The list that is there without `dspy.context(trace=…)` has no reader, and would keep every row in memory.
    """
    trace: list[Any] | None = setting("trace")
    return None if trace is main_thread_config["trace"] else trace


def called(lm: Any) -> LanguageModel:
    """Return the model to be used: this one, else DSPy's.

    Raises:
        ModelError: Without either.
    """
    model = dspy.settings.lm if lm is None else lm
    if model is None:
        raise ModelError(
            "no language model: pass lm=…, for example js.load('judge.json', lm='local/qwen2.5-0.5b')"
        )
    return language_model(model)


def material(item: Item) -> dict[str, Any]:
    """Return the texts of a row as fields of a prompt."""
    return {
        "source": item.source,
        "context": item.context,
        "reference": item.reference,
        "output": item.output,
    }


class Call(TypedDict, total=False):
    """The arguments of every call beside its texts.

    group: demonstrations of it are kept out of the prompt. lm: the model.
    """

    group: str | None
    lm: Any


class Compilable(Quiet):
    """A module that DSPy's optimizers take as it is: an evaluator, or a method of judging."""

    @property
    def scale(self) -> Scale | None:
        """Return the scale of human scores in rows that DSPy's optimizers show it, None for percents."""
        return next(
            (p.scale for p in self.predictors() if isinstance(p, JudgePredict)), None
        )

    @scale.setter
    def scale(self, scale: Scale | None) -> None:
        for predictor in self.predictors():
            if isinstance(predictor, JudgePredict):
                predictor.scale = scale

    def reset_copy(self) -> Self:
        """Return a copy without demonstrations, which optimizers begin with: see `JudgePredict.demos`."""
        copied = super().reset_copy()
        for predictor in copied.predictors():
            if isinstance(predictor, JudgePredict):
                predictor.alone = True
        return copied

    def dump_state(self, json_mode: bool = True) -> Any:
        """Return DSPy's state.

        Raises:
            ArtifactError: For a module whose `forward` an optimizer replaced.
        """
        if "forward" in vars(self):
            raise ArtifactError(
                "its `forward` was replaced (KNNFewShot does so), which a file cannot hold"
            )
        return super().dump_state(json_mode=json_mode)


class Evaluator(Compilable):
    """A subclass says what it takes and gives in `aforward`; `forward` is that, called synchronously.

    Judges call their evaluators through `acall`, so that DSPy's callbacks, history and usage show the tree. Alone, an
    evaluator uses the model given as `lm`, else the one of `set_lm`, else DSPy's.
    """

    predict: JudgePredict  # of those that make one call

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "aforward" in vars(cls):

            def forward(self: Any, *args: Any, **named: Any) -> dspy.Prediction:
                return engine.run(self.aforward(*args, **named))

            forward.__signature__ = inspect.signature(cls.aforward)  # type: ignore[attr-defined]
            forward.__doc__ = cls.aforward.__doc__
            cls.forward = forward  # type: ignore[attr-defined]

    async def aforward(self, *args: Any, **named: Any) -> dspy.Prediction:
        """Do the evaluator's work."""
        raise NotImplementedError

    async def answered(
        self,
        inputs: Mapping[str, Any],
        lm: LanguageModel,
        call: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Return what its predictor `predict` answers.

        DSPy sees the evaluator's own call if anybody can.

        Args:
            inputs: The inputs of the predictor.
            lm: The model.
            call: The arguments of the evaluator's own call, if they are others.

        Raises:
            Unreadable: If the answer cannot be read.
            CallError: For a failed call.
        """
        if heard(self):
            own = inputs if call is None else call
            return value_of(await self.acall(**own, lm=lm), Answer)
        return await self.predict.ask(lm, inputs)
