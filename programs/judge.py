"""The one interface of every judge: score one output, score many, be a DSPy module, save and load."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import dspy

from ..errors import CallError, ModelError, OptionError
from ..signatures.values import Criterion, Item, Scale, Verdict
from . import engine
from .calibration import Calibration
from .lm import Connection, LanguageModel, language_model
from .predict import JudgePredict
from .suspicion import guarded
from .task import TaskKnowledge
from .transport import Message


class Judge(dspy.Module):  # type: ignore[misc]
    """Base of all judges. A subclass says how one output is judged (`ajudge`) and what identifies it (`options`).

    Attributes: knowledge, what it knows of its task (description and criteria); scale, the user's scale of scores;
    calibration, the map from raw percent to it (None: linear); provenance, how it was compiled (empty for a judge that
    was not); report, what compiling found (None unless it was compiled in this process); brief, whether it stops after
    the score where the same score comes without the explanation (for searches).
    """

    kind: ClassVar[str] = ""
    #: Whether an output's score depends on the other outputs of its document: then all of them go into one
    #: `score_many`.
    whole_documents: ClassVar[bool] = False

    def __init__(
        self,
        *,
        task: str = "",
        criteria: Sequence[Criterion] = (),
        lm: str | LanguageModel | Any | None = None,
        scale: Scale | None = None,
    ) -> None:
        super().__init__()
        for c in criteria:  # what an artifact can hold, said before anything is spent
            if not 1 <= len(c.name) <= 80 or len(c.definition) > 2000:
                raise OptionError(
                    f"criterion {c.name[:40]!r}: a name has 1 to 80 characters (here {len(c.name)}), a definition at "
                    f"most 2,000 (here {len(c.definition)})"
                )
        self.knowledge = TaskKnowledge(task, criteria)
        self.scale = scale or Scale(0, 100)
        self.calibration: Calibration | None = None
        self.provenance: dict[str, Any] = {}
        self.report: Any = None
        self._language_model = None if lm is None else language_model(lm)

    # -- what a subclass provides

    async def ajudge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Judge one output: a Verdict whose `percent` is set; `score` is filled in by the base. Raises CallError."""
        raise NotImplementedError

    def options(self) -> dict[str, Any]:
        """The constructor's keyword arguments as JSON values, enough to build the same judge again."""
        raise NotImplementedError

    def models(self) -> tuple[str, ...]:
        """Names of the models that it calls beside its own (`lm`), for whoever has to fetch or show them."""
        return ()

    def connect(self, connection: Connection | None) -> None:
        """How those models are reached; never from an artifact."""

    def taught(self) -> list[JudgePredict]:
        """The predictors that demonstrations are for."""
        return [p for p in self.predictors() if isinstance(p, JudgePredict)]

    def calls_per_row(self) -> int:
        """Calls that one output costs, retries not counted."""
        return 1

    def calls_per_document(self) -> int:
        """Calls that a document costs once, however many outputs it has."""
        return 0

    def meet(self, aspect: str, outputs: Sequence[str]) -> None:
        """Told of the training rows before anything is searched: what their scores are of ("" where the name says
        nothing) and what outputs look like. What the user said stays."""

    @property
    def brief(self) -> bool:
        return False

    def set_brief(self, on: bool) -> None:
        """Switch explanations that do not change the score off or on, where the method has such."""

    async def prepare(self, lm: LanguageModel) -> None:
        """Settle what depends on the model's capabilities. Called before the first row."""

    def previews(self, item: Item) -> dict[str, list[Message]]:
        """The messages that each predictor would send for a row, by the predictor's name."""
        raise NotImplementedError

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

    # -- the interface

    @property
    def lm(self) -> LanguageModel:
        """The model in use: the judge's own, else DSPy's. Raises ModelError where there is neither."""
        if self._language_model is not None:
            return self._language_model
        configured = dspy.settings.lm
        if configured is None:
            raise ModelError("no language model: pass lm=…, for example js.load('judge.json', lm='local/qwen2.5-0.5b')")
        return language_model(configured)

    def set_lm(self, lm: str | LanguageModel | Any) -> None:
        self._language_model = language_model(lm)

    def score(
        self, source: str = "", output: str | None = None, *, context: str | None = None, reference: str | None = None
    ) -> Verdict:
        """Judge one output. `judge.score(source, output)`, or `judge.score(output=…)` where there is no source.

        Never raises for a failed call: the verdict's score is NaN and `failure` says why. Raises ModelError when the
        model cannot be used at all.
        """
        if output is None:
            raise TypeError("score() needs output=…, the text to be judged")
        return engine.run(self.averdict(Item(output, source, context, reference)))

    def score_many(
        self,
        rows: Iterable[Any],
        *,
        concurrency: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Verdict]:
        """Judge rows (mappings or objects with source, output, context, reference) as an iterator in their order.

        concurrency: rows under way at once; default what the model takes. Memory does not grow with the rows.
        progress: called with the number of finished rows.
        """
        lm = self.lm
        engine.run(self.prepare(lm))

        async def one(row: Any) -> Verdict:
            return await self.averdict(Item.of(row), lm)

        for done, verdict in enumerate(
            engine.ordered_map(one, rows, in_flight=concurrency or self.rows_at_once(lm)), start=1
        ):
            yield verdict
            if progress is not None:
                progress(done)

    def rows_at_once(self, lm: LanguageModel) -> int:
        """How many rows are best under way at once."""
        # Measured on llama.cpp: for answers of a few tokens one call at a time is faster, since each slot would
        # compute the shared prompt for itself; for longer answers the slots' batching wins.
        return 1 if self.brief and lm.embedded else lm.concurrency

    async def averdict(self, item: Item, lm: LanguageModel | None = None) -> Verdict:
        """The asynchronous form of `score`, on the engine's loop."""
        if lm is None:
            lm = self.lm
            await self.prepare(lm)
        if not item.output.strip():
            return Verdict.failed("the output is empty")
        safe, suspicious = guarded(item)
        try:
            verdict = replace(await self.ajudge(safe, lm), suspicious=suspicious)
        except CallError as error:
            return Verdict.failed(str(error), usage=getattr(error, "usage", None), raw=getattr(error, "raw", ()))
        if verdict.failure is not None or math.isnan(verdict.percent):
            return replace(verdict, score=math.nan, failure=verdict.failure or "the judge gave no score")
        mapped = self.calibration or Calibration.linear(self.scale)
        return replace(verdict, score=mapped(verdict.percent))

    async def aforward(
        self, source: str = "", output: str = "", context: str | None = None, reference: str | None = None
    ) -> dspy.Prediction:
        return as_prediction(await self.averdict(Item(output, source, context, reference)))

    def forward(
        self, source: str = "", output: str = "", context: str | None = None, reference: str | None = None
    ) -> dspy.Prediction:
        return engine.run(self.aforward(source, output, context, reference))

    def save(self, path: str | Path, **_: Any) -> None:
        """Write the judge as one JSON file (see `programs.artifact`), atomically."""
        from .artifact import save

        save(self, path)

    def copy_for(self, **changes: Any) -> Self:
        """A deep copy with some attributes changed; the model's connection is shared."""
        copied: Self = self.deepcopy()
        for name, value in changes.items():
            setattr(copied, name, value)
        return copied


def as_prediction(verdict: Verdict) -> dspy.Prediction:
    return dspy.Prediction(
        score=verdict.score,
        percent=verdict.percent,
        explanation=verdict.explanation,
        criteria={name: c.score for name, c in verdict.criteria.items()},
        errors=list(verdict.errors),
        failure=verdict.failure,
    )
