"""The one interface of every judge: score one output, score many, be a DSPy module, save and load."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import dspy
from dspy.predict.parameter import Parameter
from dspy.utils.exceptions import AdapterParseError

from .. import parts
from ..errors import ArtifactError, CallError, JudgesmithError, NoScoreError, OptionError
from ..rows import arrow_records, arrow_table, human_score, roles_of
from ..signatures.judging import ExplainScore
from ..signatures.values import Criterion, Item, Passes, Scale, Verdict
from ..tables import facts, shortened
from ..trajectories.value import shown_share
from . import artifact
from .active_critic.task import TaskKnowledge
from .as_metric import Failed, JudgeMetric
from .aspects import OVERALL
from .models import engine, row_context
from .models.as_dspy import Quiet
from .models.lm import Capabilities, Connection, LanguageModel, language_model
from .models.transport import Message, Reply, Request, Unanswered
from .outcome import BradleyTerry, Calibration, Decision, Preference, Sureness
from .progress import counting
from .prompting.layouts import SentencesLayout
from .prompting.predict import JudgePredict, answer_of, called, carrying, material
from .prompting.suspicion import LOOKED_INTO, SHOWN, guarded, weighed

if TYPE_CHECKING:
    from .readings.bindings.columns import Column

#: The form of an explanation that is asked for after the score.
EXPLAIN = 'Answer with one or two short sentences that begin with "The output". Do not repeat the score or the texts.'
#: By how much a raw score may leave 0..100 and is cut; beyond, it is a failure.
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Words:
    """What is judged, in the user's words, before anything is learnt; see `Judge.from_options`."""

    labels_aspect: str | None
    library_aspect: str | None = None
    criteria: tuple[Criterion, ...] = ()
    task: str = ""


class JudgeSettings(Parameter):  # type: ignore[misc]
    """Options, scale and what was fitted to its scores, as a leaf of DSPy's state beside the knowledge and the
    predictors: so a judge inside another program is saved and loaded with it."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    def reset(self) -> None:
        """Nothing: only demonstrations are reset."""

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        self.judge.settle_demos()
        return artifact.settings(self.judge)

    def load_state(self, state: Mapping[str, Any]) -> JudgeSettings:
        artifact.take_settings(self.judge, state)
        return self


class Judge(Quiet):
    """Base of all judges. A subclass declares itself (`kind`, `about`, `paper`, `Options`), registers with
    `@judges.register` and says how one output is judged (`ajudge`).

    Options are keyword arguments of the constructor, attributes of the judge (`judge.reading`; assigning one checks
    it), and what an artifact holds. Where a step of the judge has the name of an option, the option is read as
    `judge.chosen.NAME`.

    Attributes: chosen, the options; knowledge, what it knows of its task (description and criteria); scale, the user's
    scale of scores; calibration, the map from raw percent to it (None: linear); decision, where categories or pass and
    fail begin (None unless the labels had such); preference, how likely people prefer one of two outputs (None unless
    the labels were preferences); sureness, how sure a score is (None: unknown); provenance, how it was
    compiled (empty for a judge that was not); report, what compiling found (None unless it was compiled in this
    process); brief, whether it stops after the score where the same score comes without the explanation (for searches);
    explains, whether its model writes an explanation of every score that has none of its words, for one more call.
    """

    kind: ClassVar[str] = ""
    about: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()

    class Options(parts.Options):
        """None."""

    class Fitted(parts.Options):
        """What compiling fits beside options, as a saved judge holds it: by key, None where nothing was fitted."""

    #: Whether an output's score depends on the other outputs of its document: then all of them go into one
    #: `score_many`.
    whole_documents: ClassVar[bool] = False
    #: Whether its explanations are put together from numbers, and not written by a model.
    tells_by_numbers: ClassVar[bool] = False
    #: Whether what `refiners` names is fitted without a search, too.
    fitted_always: ClassVar[bool] = False

    def __init__(
        self,
        *,
        task: str = "",
        criteria: Sequence[Criterion] = (),
        lm: str | LanguageModel | Any | None = None,
        scale: Scale | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.chosen = parts.read_options(type(self).Options, options, type(self).__name__)
        for c in criteria:  # what an artifact can hold, said before anything is spent
            if not 1 <= len(c.name) <= 80 or len(c.definition) > 2000:
                raise OptionError(
                    f"criterion {c.name[:40]!r}: a name has 1 to 80 characters (here {len(c.name)}), a definition at "
                    f"most 2,000 (here {len(c.definition)})"
                )
        self.knowledge = TaskKnowledge(task, criteria)
        self.settled = JudgeSettings(self)
        self.scale = scale or Scale(0, 100)
        self.calibration: Calibration | None = None
        self.decision: Decision | None = None
        self.preference: BradleyTerry | None = None
        self.sureness: Sureness | None = None
        self.provenance: dict[str, Any] = {}
        self.report: Any = None
        self.explains = False
        #: The judge's own model, None where it takes DSPy's.
        self.own_lm: LanguageModel | None = None if lm is None else language_model(lm)

    # -- what a subclass provides

    async def ajudge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Judge one output: a Verdict whose `percent` is set; `score` is filled in by the base. Raises CallError."""
        raise NotImplementedError

    # -- what a person sees of it

    def __repr__(self) -> str:
        """On one line: method, scale, model, and how far it agrees with people. `judgesmith show` has everything."""
        model = self._model_name()
        parts = [f"scale={self.scale}", *([f"lm={model!r}"] if model else [])]
        if agreed := self.stated_agreement:
            parts.append(f"held out: {agreed}")
        return shortened(f"{type(self).__name__}({', '.join(parts)})", 240)

    def _repr_html_(self) -> str:
        """For notebooks. Nothing that a file or a model says is markup."""
        rows: list[tuple[str, Any]] = [("judge", type(self).__name__), ("scale", self.scale)]
        rows += [("model", self._model_name() or "none yet")]
        rows += [("held-out agreement", agreed)] if (agreed := self.stated_agreement) else []
        rows += [("task", shortened(self.knowledge.description, 300))] if self.knowledge.description else []
        rows += [(f"criterion: {one.name}", shortened(one.definition, 300)) for one in self.knowledge.criteria]
        rows += list(self.facts().items())
        return facts(rows)

    def _model_name(self) -> str:
        return "" if self.own_lm is None else str(self.own_lm.name)

    @property
    def stated_agreement(self) -> str:
        """The signature of its agreement on held-out rows, "" where it was not compiled. From a file, perhaps."""
        heldout = self.provenance.get("heldout")
        return str(heldout.get("signature") or "") if isinstance(heldout, Mapping) else ""

    # -- options

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls.__signature__ = _signature(cls)

    def __getattr__(self, name: str) -> Any:
        chosen = self.__dict__.get("chosen")
        if name in type(self).Options.model_fields and chosen is not None:
            return getattr(chosen, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self).Options.model_fields and not isinstance(value, dspy.Module):
            self.choose(**{name: value})
        else:
            super().__setattr__(name, value)

    def choose(self, **options: Any) -> None:
        """Change options, all at once, with the checks of the constructor. Raises OptionError."""
        now = {name: getattr(self.chosen, name) for name in type(self).Options.model_fields}
        self.chosen = parts.read_options(type(self).Options, now | options, type(self).__name__)

    def settings(self) -> dict[str, Any]:
        """Its kind and all of its options as JSON values."""
        return {"kind": self.kind, **self.chosen.settings()}

    def options(self) -> dict[str, Any]:
        """The options that an artifact holds, as JSON values: with task, criteria and what was fitted enough to build
        the same judge again."""
        return self.chosen.settings()

    @classmethod
    def from_options(
        cls,
        given: Mapping[str, Any],
        *,
        labels_aspect: str | None,
        library_aspect: str | None = None,
        criteria: Sequence[Criterion] = (),
        task: str = "",
    ) -> Self:
        """The judge that a command line or a settings file asks for, before anything is learnt.

        given: options by name, as values or as text. labels_aspect: the name of the labels' score, None without labels.
        library_aspect: which aspect of the library is judged. criteria, task: the user's own words. Raises OptionError
        for what this method does not take.
        """
        return cls.in_words(given, Words(labels_aspect, library_aspect, tuple(criteria), task))

    @classmethod
    def in_words(cls, given: Mapping[str, Any], words: Words) -> Self:
        """`from_options`, for a method that takes other words. Raises OptionError."""
        if words.library_aspect:
            raise OptionError(f"--as is for methods that judge one aspect of the library; {cls.kind} takes --criteria")
        parts.read_options(cls.Options, given, f"--method {cls.kind}")
        return cls(task=words.task, criteria=words.criteria, **given)

    # -- what compiling asks

    def fitted(self) -> dict[str, Any]:
        """What was fitted, by the keys of `Fitted`, as JSON numbers; nothing where nothing was."""
        return {}

    def load_fitted(self, name: str, data: Any) -> None:
        """Take what was fitted: JSON values as `fitted` gives them. Raises OptionError for what does not fit."""
        raise OptionError(f"{self.kind or type(self).__name__} takes no {name}")

    def facts(self) -> dict[str, str]:
        """What a person who looks at the judge should know beside its options: name -> text."""
        return {}

    def models(self) -> tuple[str, ...]:
        """Names of the models that it calls beside its own (`lm`), to be fetched or shown."""
        return ()

    def reads(self) -> tuple[str, ...]:
        """Those of `models` that answer no call: their weights are read in this process."""
        return ()

    def connect(self, connection: Connection | None) -> None:
        """How those models are reached; never from an artifact."""

    def taught(self) -> list[JudgePredict]:
        """The predictors that demonstrations are for."""
        return [p for p in self.predictors() if isinstance(p, JudgePredict)]

    def calls_per_row(self) -> int:
        """Calls that one output costs, retries not counted."""
        return 1

    def passes(self, item: Item) -> Passes:
        """What its model reads of a row beside the calls, about. No model is opened."""
        return Passes()

    def located(self, path: Path) -> None:
        """Called with the file that it was loaded from or saved to, for a judge with files beside that."""

    def calls_per_document(self) -> int:
        """Calls that a document costs once, however many outputs it has."""
        return 0

    def meet(self, aspect: str, items: Sequence[Item]) -> None:
        """Called with the training rows and their aspect before anything is searched. aspect: what their scores are of,
        "" where the name says nothing. What the user gave stays."""

    def columns(self) -> tuple[Column, ...]:
        """The columns of a row that it weighs beside the texts."""
        return ()

    def take_columns(self, columns: Sequence[Column]) -> None:
        """Weigh its columns on these scales."""

    def numbers(self, record: Mapping[str, Any]) -> dict[str, float | str]:
        """What a row's record has in them, by their names; NaN for an empty cell. Raises OptionError for a record that
        lacks one, or has neither a number nor a word of its scale in it."""
        return {column.name: column.kept(record) for column in self.columns()}

    @property
    def brief(self) -> bool:
        """Whether it stops after the score, where the same score comes without the explanation."""
        return False

    def set_brief(self, on: bool) -> None:
        """Switch explanations that do not change the score off or on, where the method has such."""

    def stops_early(self) -> bool:
        """Whether brief answers leave out what a demonstration would show."""
        return False

    def no_bootstrap(self) -> str | None:
        """Why its own answers cannot be demonstrations, None where they can."""
        return None if self.taught() else "its prompts show no demonstrations"

    async def prepare(self, lm: LanguageModel) -> None:
        """Settle what depends on the model's capabilities. Called before the first row."""

    def previews(self, item: Item) -> dict[str, list[Message]]:
        """The messages that each predictor would send for a row, by the predictor's name. Calls no model."""
        self.settle_demos()
        with row_context.under(item):
            return self.prompts(item)

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """What `previews` returns, for the row under judgement. By default the first call that `ajudge` makes is
        recorded; a judge that makes several overrides this to show them all."""
        recorder = _Recorder()
        lm = LanguageModel("recorded/model", recorder, identity="", connection=Connection(cache=False, attempts=1))
        lm.assume(Capabilities())

        async def ask() -> None:
            with row_context.judging(item), suppress(JudgesmithError):
                await self.apart_from(item).ajudge(item, lm)

        engine.run(ask())
        return {"first call": list(recorder.requests[0].messages)} if recorder.requests else {}

    def apart_from(self, item: Item, predictors: Sequence[dspy.Predict] | None = None) -> Judge:
        """The judge for a row: itself, or, where a plain `dspy.Predict` in it demonstrates the row's own document, a
        copy whose predictors leave that out. A `JudgePredict` leaves it out by itself. predictors: all of its own,
        where they are at hand."""
        own = self.predictors() if predictors is None else predictors
        plain = [p for p in own if not isinstance(p, JudgePredict)]
        if all(len(row_context.allowed(p.demos, item)) == len(p.demos) for p in plain):
            return self
        judge: Judge = self.deepcopy()
        for predictor in judge.predictors():
            if not isinstance(predictor, JudgePredict):
                predictor.demos = [predictor.demos[n] for n in row_context.allowed(predictor.demos, item)]
        return judge

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        """A row as a demonstration for every predictor, with what a verdict on it said, if there is one. The caller
        adds its `score` (percent)."""
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

    def settle_demos(self, predictors: Sequence[dspy.Predict] | None = None) -> None:
        """Bring what DSPy's optimizers gave the predictors as demonstrations (raw rows, with people's score on the
        judge's scale, and steps of a trace) into the form of `demonstration`. predictors: all of its own, where they
        are at hand. Raises OptionError for a row whose human score is not known or leaves the scale."""
        own = self.predictors() if predictors is None else predictors
        foreign = [p for p in own if isinstance(p, JudgePredict) and any("gold" not in demo for demo in p.demos)]
        taught = [id(p) for p in self.taught()] if foreign else []
        for predictor in foreign:
            demos = predictor.demos if id(predictor) in taught else []
            shown = [self._demonstrated(demo, predictor) for demo in demos]
            predictor.demos = [demo for demo in shown if demo is not None]

    def _demonstrated(self, demo: Any, predictor: JudgePredict) -> Any:
        """A demonstration as prompts show it; None for a step that gave nothing to show."""
        if "gold" in demo or demo.get("augmented"):
            return predictor.shown(demo)
        percent = self.scale.to_percent(human_score(demo))
        if not 0 <= percent <= 100:
            raise OptionError(
                f"people's score {human_score(demo):g} of a row is not on the judge's scale {self.scale}; make the "
                "judge with scale=js.Scale(lowest, highest)"
            )
        return self.demonstration(Item.of(demo), None) | {"score": percent, "augmented": False, "gold": True}

    def teach(self, demo: Mapping[str, Any]) -> None:
        """Show a demonstration, as `demonstration` made it, in the prompts of what is taught."""
        for predictor in self.taught():
            predictor.demos.append({"augmented": False, "gold": True, **demo})

    # -- the interface

    @property
    def lm(self) -> LanguageModel:
        """The model in use: one that a parent program set on its predictors, the judge's own, else DSPy's. Raises
        ModelError where there is none."""
        return called(self._given_lm)

    @property
    def _given_lm(self) -> Any:
        return next((p.lm for p in self.predictors() if p.lm is not None), None) or self.own_lm

    def without_model(self) -> bool:
        """Prepare to judge without any model; whether it can."""
        return False

    def begin(self) -> None:
        """Prepare to score without labels; only a judge that has experience does anything. Raises ModelError."""

    def set_lm(self, lm: str | LanguageModel | Any) -> None:
        """Use another model, a name or what `language_model` takes, for every step. Raises ModelError."""
        self.own_lm = language_model(lm)
        for predictor in self.predictors():
            predictor.lm = self.own_lm

    def get_lm(self) -> Any:
        """The judge's own model as DSPy takes it, the very object that was set where that is one of DSPy's; None where
        it uses DSPy's."""
        own = self._given_lm
        return own.dspy if isinstance(own, LanguageModel) else own

    def score(
        self, source: Any = "", output: Any = None, *, context: Any = None, reference: Any = None, **columns: Any
    ) -> Verdict:
        """Judge one output. `judge.score(source, output)`, or `judge.score(output=…)` where there is no source. Lists
        of turns (`{"role": …, "content": …}`) are texts, too: see `judgesmith.conversation`. columns: numbers that the
        judge weighs (`numbers`), by their names.

        Never raises for a failed call: the verdict's score is NaN and `failure` says why. Raises ModelError when the
        model cannot be used at all.
        """
        return engine.run(self.averdict(self._item("score", source, output, context, reference, columns)))

    def passed(self, source: Any = "", output: Any = None, **more: Any) -> bool:
        """Whether an output passes, by a judge that was compiled from pass and fail. more: as in `score`.

        Raises NoScoreError for a call that failed, which is no fail, and OptionError for another judge.
        """
        if self.decision is None or not self.decision.binary:
            raise OptionError(
                "this judge was not compiled from pass and fail; compare its score with a bar of your own"
            )
        verdict = self.score(source, output, **more)
        if verdict.passed is None:
            raise NoScoreError(verdict.failure or "there is no score")
        return verdict.passed

    async def ascore(
        self, source: Any = "", output: Any = None, *, context: Any = None, reference: Any = None, **columns: Any
    ) -> Verdict:
        """`score` for asynchronous callers: `verdict = await judge.ascore(source, output)`, from any event loop of any
        thread, beside synchronous calls."""
        return await self.averdict(self._item("ascore", source, output, context, reference, columns))

    def _item(
        self, caller: str, source: Any, output: Any, context: Any, reference: Any, columns: Mapping[str, Any]
    ) -> Item:
        if output is None:
            raise TypeError(f"{caller}() needs output=…, the text to be judged")
        if unknown := set(columns) - {column.name for column in self.columns()}:
            raise TypeError(f"{caller}() got an unexpected keyword argument {min(unknown)!r}")
        item = Item.of({"output": output, "source": source, "context": context, "reference": reference})
        return replace(item, columns=columns)

    def score_many(
        self,
        rows: Iterable[Any],
        *,
        concurrency: int | None = None,
        progress: bool | Callable[[int], None] | None = None,
    ) -> Iterator[Verdict]:
        """Judge rows (mappings or objects with source, output, context, reference, or with messages; a table of
        pandas, polars, pyarrow or DuckDB with such columns; `judgesmith.rows` knows the names) as an iterator in
        their order.

        concurrency: rows under way at once; default what the model takes. Memory does not grow with the rows.
        progress: a bar (True), nothing (False), or a function that is called with the number of finished rows. None: a
        bar in a notebook and where stderr is a terminal, elsewhere a line in the log of `judgesmith` now and then.
        """
        rows = rows_of(rows)
        lm = self.lm
        engine.run(self.prepare(lm))

        async def one(row: Any) -> Verdict:
            return await self.averdict(Item.of(row), lm)

        verdicts = engine.ordered_map(one, rows, in_flight=concurrency or self.rows_at_once(lm))
        with counting(progress, "judging", rows) as finished:
            for done, verdict in enumerate(verdicts, start=1):
                yield verdict
                finished(done)

    async def ascore_many(
        self,
        rows: Iterable[Any] | AsyncIterable[Any],
        *,
        concurrency: int | None = None,
        progress: bool | Callable[[int], None] | None = None,
    ) -> AsyncIterator[Verdict]:
        """`score_many` for asynchronous callers: `async for verdict in judge.ascore_many(rows)`, from any event loop.
        The rows may come asynchronously."""
        rows = rows if isinstance(rows, AsyncIterable) else rows_of(rows)
        if self.whole_documents:
            every = [row async for row in rows] if isinstance(rows, AsyncIterable) else list(rows)
            judged = self.score_many(every, concurrency=concurrency, progress=progress)
            for verdict in await asyncio.to_thread(list, judged):
                yield verdict
            return
        lm = self.lm
        await engine.on_loop(self.prepare(lm))

        async def one(row: Any) -> Verdict:
            return await self.averdict(Item.of(row), lm)

        stream = engine.aordered_map(one, rows, in_flight=concurrency or self.rows_at_once(lm))
        with counting(progress, "judging", rows) as finished:
            async with aclosing(stream) as verdicts:
                done = 0
                async for verdict in verdicts:
                    yield verdict
                    finished(done := done + 1)

    def prefer(self, source: Any = "", *, a: Any, b: Any, context: Any = None, reference: Any = None) -> Preference:
        """How likely people would prefer output a or b, for judges that were compiled from preferences, by the lead of
        one score over the other: `judge.prefer(source, a="…", b="…").winner` is "a", "b" or "tie".

        Returns: `Preference`; the probabilities of a, of a tie and of b sum to 1, and are NaN where an output has no
        score. Raises OptionError for judges that were not compiled from preferences.
        """
        return engine.run(self.aprefer(source, a=a, b=b, context=context, reference=reference))

    async def aprefer(
        self, source: Any = "", *, a: Any, b: Any, context: Any = None, reference: Any = None
    ) -> Preference:
        """`prefer` for asynchronous callers."""
        if self.preference is None:
            raise OptionError(
                "this judge was not compiled from preferences, so chances are not known; score both outputs"
            )
        both = [self._item("prefer", source, output, context, reference, {}) for output in (a, b)]
        first, second = [verdict async for verdict in self.ascore_many(both, progress=False)]
        return self.preference.preferred(first, second)

    def metric(
        self,
        *,
        output: str,
        source: str | None = None,
        context: str | None = None,
        reference: str | None = None,
        threshold: float | None = None,
        failed: Failed = "mean",
    ) -> JudgeMetric:
        """This judge as a metric for DSPy: `dspy.Evaluate(devset=…, metric=judge.metric(output="answer"))`, and for its
        optimizers; see `JudgeMetric`.

        output: the field of the program's prediction that is judged. source, context, reference: the fields of its
        examples and predictions that hold them. source: by default the example's only input. threshold: from which
        score (0 to 1) on an answer may become a demonstration. failed: what a failed call counts: the mean of the
        scores so far, which neither helps nor harms ("mean"), a number, or an error that DSPy counts as one of its own
        ("raise"). A prediction without the output counts that number, and is an error without one.
        """
        more = {role: name for role, name in (("context", context), ("reference", reference)) if name}
        return JudgeMetric(self, {"source": source, "output": output} | more, threshold, failed)

    def rows_at_once(self, lm: LanguageModel) -> int:
        """How many rows are best under way at once."""
        # Measured on llama.cpp: for answers of a few tokens one call at a time is faster, since each slot would
        # compute the shared prompt for itself; for longer answers the slots' batching wins.
        return 1 if self.brief and lm.embedded else lm.concurrency

    async def averdict(self, item: Item, lm: LanguageModel | None = None, *, explain: bool = False) -> Verdict:
        """The asynchronous form of `score`. lm: a model that the judge was prepared for; by default its own. explain:
        with what the model writes of why, as `explains`."""
        texts = {"source": item.source, "context": item.context, "reference": item.reference}
        numbers: dict[str, Any] = {"columns": found} if (found := self.numbers(item.columns)) else {}
        numbers |= {"explain": True} if explain else {}
        verdict: Verdict = answer_of(await self.acall(output=item.output, **texts, group=item.group, lm=lm, **numbers))
        return verdict

    async def judged(self, item: Item, lm: LanguageModel | None, *, explain: bool = False) -> Verdict:
        """What `averdict` gives, without DSPy's callbacks and history of the judge itself."""
        if lm is None:
            lm = self.lm
            await self.prepare(lm)
        if not item.output.strip():
            return Verdict.failed("the output is empty")
        return _shortened(item, await self._weighed(item, lm, explain or self.explains))

    async def _weighed(self, item: Item, lm: LanguageModel, explain: bool) -> Verdict:
        """The verdict that counts, of those with and without what addresses a judge."""
        size = sum(len(getattr(item, name) or "") for name in SHOWN)
        safe, said = await engine.apart(size, guarded, item, LOOKED_INTO)
        verdict = await self._judged(item, lm)
        verdict = verdict if said is None else weighed(verdict, await self._judged(safe, lm), said)
        return await self._explained(safe, verdict, lm) if explain else verdict

    async def _explained(self, safe: Item, verdict: Verdict, lm: LanguageModel) -> Verdict:
        """The verdict with what its model writes, in one call, of why the output got its score; as it is where it has
        no score, or an explanation that a model wrote. safe: the row without sentences that address a judge. A failed
        call leaves a note."""
        if verdict.failure is not None or (verdict.explanation and not self.tells_by_numbers):
            return verdict
        low, high = self.scale.low, self.scale.high
        score = verdict.category or f"{verdict.score:.3g} on a scale from {low:g} (very poor) to {high:g} (excellent)"
        known = {"task": self.knowledge.description, "criteria": self.knowledge.criteria, "aspect": self.judges_aspect}
        predict = JudgePredict(ExplainScore, SentencesLayout("explanation", EXPLAIN, tokens=160))
        try:
            answer = await predict.ask(lm, {**known, **material(safe), "score": score})
        except CallError as error:
            return verdict.model_copy(update={"notes": (*verdict.notes, f"no written explanation: {error}")})
        written = f"Written by {lm.name} after the score: {answer.read.values['explanation']}"
        more = {"usage": verdict.usage + answer.usage, "raw": (*verdict.raw, *answer.raw)}
        return verdict.model_copy(update={"explanation": f"{verdict.explanation}\n\n{written}".strip(), **more})

    async def _judged(self, item: Item, lm: LanguageModel) -> Verdict:
        predictors = self.predictors()  # looked up once: DSPy walks through the whole judge
        self.settle_demos(predictors)
        with row_context.judging(item, [demo for predictor in predictors for demo in predictor.demos]) as calls:
            try:
                judge = self.apart_from(item, predictors)
                verdict = await judge.ajudge(item, lm)
            except CallError as error:
                usage = calls.usage if calls.usages else getattr(error, "usage", None)
                return Verdict.failed(str(error), usage=usage, raw=getattr(error, "raw", ()))
            except AdapterParseError as error:
                raw = tuple(reply.text for reply in calls.replies)
                return Verdict.failed(
                    f"the answer cannot be read: {' '.join(str(error).split())[:200]}", usage=calls.usage, raw=raw
                )
        counted, reported = calls.usage, verdict.usage
        if counted.calls + counted.cached > reported.calls + reported.cached:  # a judge need not keep account
            verdict = verdict.model_copy(update={"usage": counted})
        failure = verdict.failure or _no_percent(verdict.percent)
        if failure is not None:
            return verdict.model_copy(update={"score": math.nan, "failure": failure})
        return self.decided(verdict.model_copy(update={"percent": min(100.0, max(0.0, verdict.percent))}))

    def decided(self, verdict: Verdict) -> Verdict:
        """A verdict whose percent is there, with what follows from it: the score, how sure that is, and category and
        pass or fail."""
        percent = verdict.percent
        score = (self.calibration or Calibration.linear(self.scale))(percent)
        interval = None if self.sureness is None else self.sureness.interval(percent, score, self.scale)
        decided = {}
        if self.decision is not None:
            decided = {"category": self.decision.category(percent), "passed": self.decision.passed(percent)}
        return verdict.model_copy(update={"score": score, "interval": interval, **decided})

    async def aforward(
        self,
        source: str = "",
        output: str = "",
        context: str | None = None,
        reference: str | None = None,
        *,
        group: str | None = None,
        lm: LanguageModel | None = None,
        columns: Mapping[str, float] | None = None,
        explain: bool = False,
        **row: Any,
    ) -> dspy.Prediction:
        """The verdict as a prediction: score, percent, explanation, criteria, errors, failure. group: rows of it are
        kept out of the prompt. columns: `numbers`. row: the texts under other names that `judgesmith.rows` knows, and
        what else stands in the row."""
        item = Item(output or "", source or "", context, reference, group, columns or {})
        if row:
            given = {"output": output, "source": source, "context": context, "reference": reference, "group": group}
            item = Item.of({name: text for name, text in given.items() if text} | row)
        more = {"explain": True} if explain else {}
        verdict = await engine.on_loop(self.judged(item, lm, **more))
        return carrying(as_prediction(verdict), verdict)

    def forward(
        self,
        source: str = "",
        output: str = "",
        context: str | None = None,
        reference: str | None = None,
        *,
        group: str | None = None,
        **row: Any,
    ) -> dspy.Prediction:
        """DSPy's form of `score`, for programs, evaluation and optimizers: `judge(source=…, output=…)`.

        Returns: a `dspy.Prediction` with score (float on the judge's scale, NaN where there is none), percent (float in
        [0, 100]), explanation, criteria (name -> float in [0, 100]), errors, failure. group:
        demonstrations of it are kept out of the prompt. Raises ModelError when the model cannot be used at all.
        """
        return engine.run(self.aforward(source, output, context, reference, group=group, **row))

    def save(self, path: str | Path, save_program: bool = False, modules_to_serialize: Any = None) -> None:
        """Write the judge as one JSON file (see `programs.artifact`), atomically. Raises ArtifactError for the forms of
        DSPy's that hold pickled code."""
        _refuse_pickle(path, save_program)
        artifact.save(self, path)
        self.located(Path(path))

    def load(self, path: str | Path, allow_pickle: bool = False, allow_unsafe_lm_state: bool = False) -> None:
        """Become the judge that a file holds; `js.load` makes a new one. The judge's own model stays; one that has none
        where DSPy has none either gets the file's. Raises ArtifactError for another kind of judge, and for pickles."""
        _refuse_pickle(path, allow_pickle)
        self._become(artifact.read(path), Path(path).name)
        self.located(Path(path))

    def load_state(self, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool = False) -> None:
        """DSPy's form of `load`: the state of a judge, or the content of its file. Raises ArtifactError."""
        if "format" in state:
            self._become(artifact.Artifact.of(state), "the state")
        else:
            super().load_state(state, allow_unsafe_lm_state=allow_unsafe_lm_state)

    def _become(self, read: artifact.Artifact, where: str) -> None:
        made = artifact.build(read)
        if type(made) is not type(self):
            raise ArtifactError(f"{where} holds a {made.kind} judge; js.load(path) makes one of it")
        own = self.own_lm
        if own is None and self.get_lm() is None and dspy.settings.lm is None:
            named = artifact.model_of(read)
            own = None if named is None else language_model(named, sampling=artifact.sampling_of(read))
        artifact.connect(made, None)
        kept = {name: self.__dict__[name] for name in ("callbacks", "history")}
        self.__dict__.clear()
        self.__dict__.update(made.__dict__ | kept)
        self.settled = JudgeSettings(self)
        self.own_lm = own

    @property
    def judges_aspect(self) -> str:
        """What its scores are of, as the labels that it was compiled from call it, or by its option; "" where that is
        the output as a whole, or nothing says."""
        labels = self.provenance.get("labels")
        aspect = labels.get("aspect") if isinstance(labels, Mapping) else None
        aspect = aspect or self.options().get("aspect")
        return aspect if isinstance(aspect, str) and aspect not in OVERALL else ""

    def copy_for(self, **changes: Any) -> Self:
        """A deep copy with some attributes changed; the model's connection is shared."""
        copied: Self = self.deepcopy()
        options = {name: value for name, value in changes.items() if name in type(self).Options.model_fields}
        if options:
            copied.choose(**options)
        for name, value in changes.items():
            if name not in options:
                setattr(copied, name, value)
        return copied


def _no_percent(percent: float) -> str | None:
    """Why this is no raw score; None for one in 0..100, but for rounding."""
    if math.isnan(percent):
        return "the judge gave no score"
    return None if -ROUNDING <= percent <= 100 + ROUNDING else f"the judge gave {percent:g}, which is outside 0..100"


def _shortened(item: Item, verdict: Verdict) -> Verdict:
    """The verdict, with the share of each trajectory that its text shows: long results of tools are cut there."""
    texts = {"source": item.source, "context": item.context or "", "output": item.output}
    cut = {name: share for name, text in texts.items() if (share := shown_share(text)) < 1}
    if not cut:
        return verdict
    told = ", ".join(f"{share:.0%} of the {name}" for name, share in cut.items())
    note = f"long results of tools and arguments are cut in their middle: {told} is shown"
    partly = {name: round(share * verdict.partly.get(name, 1.0), 4) for name, share in cut.items()}
    return verdict.model_copy(update={"notes": (*verdict.notes, note), "partly": {**verdict.partly, **partly}})


class _Recorder:
    """A transport that answers nothing and keeps what it is asked."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Reply:
        self.requests.append(request)
        raise Unanswered("this call was only recorded", again=False)


def rows_of(rows: Any) -> Iterable[Any]:
    """Rows as `score_many` takes them: of a table (pandas, polars, pyarrow, DuckDB) its records. Raises OptionError for
    what holds no rows."""
    if isinstance(rows, (str, bytes, Mapping, Path)):
        raise OptionError(
            f"score_many takes rows, such as a list of dicts or a DataFrame, and got a {type(rows).__name__}; a file "
            "is scored by `judgesmith score`, one row by judge.score(source, output)"
        )
    reader = arrow_table(rows)
    if reader is not None or (hasattr(rows, "to_dict") and hasattr(rows, "columns")):
        names = tuple(map(str, rows.columns if reader is None else reader.schema.names))
        if not {"output", "messages"} & set(roles_of(names)):
            raise OptionError(
                f"the table's columns are {', '.join(names)}; the judged text belongs in 'output' (rename it: "
                'df.rename(columns={"what they wrote": "output"}))'
            )
        made: Iterable[Any] = rows.to_dict("records") if reader is None else arrow_records(reader)
        return made
    return cast(Iterable[Any], rows)


def _refuse_pickle(path: str | Path, asked: bool) -> None:
    if asked or Path(path).suffix.lower() in (".pkl", ".pickle"):
        raise ArtifactError(
            f"{path}: a judge is never pickled, since loading a pickle runs what is in it; save it as JSON, "
            "judge.save('judge.json'), and read it with js.load('judge.json') or judge.load('judge.json')"
        )


def as_prediction(verdict: Verdict) -> dspy.Prediction:
    return dspy.Prediction(
        score=verdict.score,
        percent=verdict.percent,
        explanation=verdict.explanation,
        criteria={name: c.score for name, c in verdict.criteria.items()},
        errors=list(verdict.errors),
        failure=verdict.failure,
    )


def _signature(cls: type[Judge]) -> inspect.Signature:
    """How a judge is made: what its constructors take, and its options as keywords."""
    result: dict[str, inspect.Parameter] = {}
    for part in cls.__mro__:
        if issubclass(part, Judge) and "__init__" in vars(part):
            result = {p.name: p for p in list(inspect.signature(part.__init__).parameters.values())[1:]} | result
    keyword = inspect.Parameter.KEYWORD_ONLY
    for name, option in cls.Options.model_fields.items():
        result.setdefault(name, inspect.Parameter(name, keyword, default=option.default, annotation=option.annotation))
    shown = [p for p in result.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    return inspect.Signature(sorted(shown, key=lambda p: p.kind))
