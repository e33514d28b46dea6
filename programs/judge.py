"""The judge that a user holds: a method with its model, its scale and what was learnt from labels.

It scores one output, scores many, is a DSPy program, and is saved and loaded. Ways to judge are `Method`s; what happens
between a row and its verdict is `pipeline`.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import aclosing
from dataclasses import replace
from typing import Any, final

from judgesmith.errors import NoScoreError, OptionError
from judgesmith.programs import pipeline
from judgesmith.programs.capabilities import RanksDocuments, ranks_documents
from judgesmith.programs.contract import unmeasured
from judgesmith.programs.dspy_judge import DSPyJudge
from judgesmith.programs.method import Method
from judgesmith.programs.models import engine
from judgesmith.programs.models.as_dspy import heard, value_of
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.outcome import Outcome, Preference
from judgesmith.programs.progress import counting
from judgesmith.programs.ranking import ranked
from judgesmith.rows import rows_of
from judgesmith.signatures.values import Item, Scale, Verdict
from judgesmith.tables import facts, shortened


@final
class Judge(DSPyJudge):
    """A method of judging with its model, its scale, and what was learnt from labels.

    Final: to judge in another way, write a `Method`.

    method: `js.ActiveCritic("fine")`, for example. lm: the judge's model, a name or what `language_model` takes; by
    default DSPy's. scale: the user's scale of scores, 0 to 100 by default. outcome: all that is made of a raw percent,
    instead of a scale alone.

    Attributes: method, outcome; own_lm, the judge's own model (None where it takes DSPy's); provenance, how it was
    compiled (empty for a judge that was not); report, what compiling found (None unless it was compiled in this
    process); explains, whether its model writes an explanation of every score that has none of its words, for one more
    call.

    >>> from judgesmith.programs.pointwise.direct import DirectScorer
    >>> Judge(DirectScorer("fluency"), scale=Scale(1, 5))
    Judge(direct, scale=1..5)
    """

    # -- one output

    def score(
        self,
        source: Any = "",
        output: Any = None,
        *,
        context: Any = None,
        reference: Any = None,
        **columns: Any,
    ) -> Verdict:
        """Judge one output: `judge.score(source, output)`, or `judge.score(output=…)` without a source.

        Lists of turns (`{"role": …, "content": …}`) are texts, too: see `judgesmith.conversation`.

        Args:
            source: The text that the output was made from.
            output: The judged text.
            context: Further material, such as retrieved passages.
            reference: A good output.
            **columns: Numbers that the judge weighs, by their names.

        Returns:
            A verdict. A failed call is no error: the verdict's score is NaN and `failure` has the reason.

        Raises:
            ModelError: When the model cannot be used at all.
        """
        return engine.run(
            self.verdict(
                self._item("score", source, output, context, reference, columns)
            )
        )

    async def ascore(
        self,
        source: Any = "",
        output: Any = None,
        *,
        context: Any = None,
        reference: Any = None,
        **columns: Any,
    ) -> Verdict:
        """Judge one output as `score` does, for asynchronous callers: `await judge.ascore(source, output)`.

        It can be called from any event loop of any thread, beside synchronous calls.
        """
        return await self.verdict(
            self._item("ascore", source, output, context, reference, columns)
        )

    def passed(self, source: Any = "", output: Any = None, **more: Any) -> bool:
        """Return whether an output passes, by a judge that was compiled from pass and fail.

        Args:
            source: As for `score`.
            output: As for `score`.
            **more: As for `score`.

        Raises:
            NoScoreError: For a call that failed, which is no fail.
            OptionError: For another judge.
        """
        decision = self.outcome.decision
        if decision is None or not decision.binary:
            raise OptionError(
                "this judge was not compiled from pass and fail; compare its score with a bar of your own"
            )
        verdict = self.score(source, output, **more)
        if verdict.passed is None:
            raise NoScoreError(verdict.failure or "there is no score")
        return verdict.passed

    def prefer(
        self,
        source: Any = "",
        *,
        a: Any,
        b: Any,
        context: Any = None,
        reference: Any = None,
    ) -> Preference:
        """Return how likely people would prefer output a or b, by a judge that was compiled from preferences.

        It follows from the lead of one score over the other: `judge.prefer(source, a="…", b="…").winner` is "a", "b" or
        "tie".

        Args:
            source: As for `score`.
            a: One output.
            b: The other.
            context: As for `score`.
            reference: As for `score`.

        Returns:
            The probabilities of a, of a tie and of b, which sum to 1, and are NaN if an output has no score.

        Raises:
            OptionError: For judges that were not compiled from preferences.
        """
        return engine.run(
            self.aprefer(source, a=a, b=b, context=context, reference=reference)
        )

    async def aprefer(
        self,
        source: Any = "",
        *,
        a: Any,
        b: Any,
        context: Any = None,
        reference: Any = None,
    ) -> Preference:
        """Compare two outputs as `prefer` does, for asynchronous callers."""
        preference = self.outcome.preference
        if preference is None:
            raise OptionError(
                "this judge was not compiled from preferences, so chances are not known; score both outputs"
            )
        both = [
            self._item("prefer", source, output, context, reference, {})
            for output in (a, b)
        ]
        first, second = [
            verdict async for verdict in self.ascore_many(both, progress=False)
        ]
        return preference.preferred(first, second)

    # -- many outputs

    def score_many(
        self,
        rows: Iterable[Any],
        *,
        concurrency: int | None = None,
        progress: bool | Callable[[int], None] | None = None,
    ) -> Iterator[Verdict]:
        """Judge rows as an iterator of verdicts, in their order.

        Memory does not grow with the rows, but where outputs of a document are ranked.

        Args:
            rows: Mappings or objects with source, output, context, reference, or with messages; a table of pandas,
                polars, pyarrow or DuckDB with such columns; `judgesmith.rows` knows the names.
            concurrency: Rows under way at once; by default as many as the model takes calls. Where it is no less than
                that, the prompts of a quarter more are prepared.
            progress: A bar (True), nothing (False), or a function that is called with the number of finished rows.
                None: a bar in a notebook and where stderr is a terminal, elsewhere a line in the log of `judgesmith`
                now and then.
        """
        rows = rows_of(rows)
        lm = self.lm
        engine.run(self.method.prepare(lm))
        if isinstance(self.method, RanksDocuments):
            said = self.moved_to(lm)
            for verdict in ranked(
                self.method,
                self.outcome,
                rows,
                lm,
                concurrency=concurrency,
                progress=progress,
            ):
                yield unmeasured(verdict, said) if said else verdict
            return

        verdicts = engine.ordered_map(
            lambda row: self.verdict(Item.of(row), lm),
            rows,
            in_flight=pipeline.rows_at_once(self.method, lm, concurrency),
        )
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
        """Judge rows as `score_many` does, for asynchronous callers: `async for verdict in judge.ascore_many(rows)`.

        It runs in any event loop, and the rows may come asynchronously.
        """
        rows = rows if isinstance(rows, AsyncIterable) else rows_of(rows)
        if isinstance(self.method, RanksDocuments):
            if isinstance(rows, AsyncIterable):
                every = [row async for row in rows]
            else:
                every = list(rows)
            judged = self.score_many(every, concurrency=concurrency, progress=progress)
            for verdict in await asyncio.to_thread(list, judged):
                yield verdict
            return
        lm = self.lm
        await engine.on_loop(self.method.prepare(lm))

        stream = engine.aordered_map(
            lambda row: self.verdict(Item.of(row), lm),
            rows,
            in_flight=pipeline.rows_at_once(self.method, lm, concurrency),
        )
        with counting(progress, "judging", rows) as finished:
            async with aclosing(stream) as verdicts:
                done = 0
                async for verdict in verdicts:
                    yield verdict
                    finished(done := done + 1)

    async def verdict(
        self, item: Item, lm: LanguageModel | None = None, *, explain: bool = False
    ) -> Verdict:
        """Judge a row that is an `Item` already.

        Args:
            item: The row.
            lm: A model that the method was prepared for; by default the judge's own.
            explain: True to have the model write the reasons for the score, as `explains`.
        """
        if not heard(self):
            return await engine.on_loop(self.judged(item, lm, explain=explain))
        texts = {
            "source": item.source,
            "context": item.context,
            "reference": item.reference,
            "group": item.group,
        }
        columns = pipeline.numbers_of(self.method, item.columns)
        prediction = await self.acall(
            output=item.output, **texts, lm=lm, columns=columns, explain=explain
        )
        return value_of(prediction, Verdict)

    def _item(
        self,
        caller: str,
        source: Any,
        output: Any,
        context: Any,
        reference: Any,
        columns: Mapping[str, Any],
    ) -> Item:
        if output is None:
            raise TypeError(f"{caller}() needs output=…, the text to be judged")
        if unknown := set(columns) - {column.name for column in self.method.columns()}:
            raise TypeError(
                f"{caller}() got an unexpected keyword argument {min(unknown)!r}"
            )
        item = Item.of(
            {
                "output": output,
                "source": source,
                "context": context,
                "reference": reference,
            }
        )
        return replace(item, columns=columns)

    # -- its parts

    @property
    def scale(self) -> Scale:
        """Return the user's scale of scores."""
        return self.outcome.scale

    @property
    def stated_agreement(self) -> str:
        """Return the signature of its agreement on held-out rows, "" if it was not compiled.

        It may come from a file. A judge that asks another model than the one that was measured has none.
        """
        if self.moved:
            return ""
        heldout = self.provenance.get("heldout")
        if isinstance(heldout, Mapping):
            return str(heldout.get("signature") or "")
        return ""

    @property
    def whole_documents(self) -> bool:
        """Return True if an output's score depends on the other outputs of its document.

        Then all of them go into one `score_many`.
        """
        return ranks_documents(self.method)

    def with_(
        self,
        *,
        method: Method | None = None,
        lm: str | LanguageModel | Any | None = None,
        scale: Scale | None = None,
        outcome: Outcome | None = None,
        **options: Any,
    ) -> Judge:
        """Return a deep copy with another method, model, scale or outcome, or with other options of its method.

        The model's connection is shared.

        Raises:
            OptionError: For options that the method does not take.
        """
        copied: Judge = self.deepcopy()
        if method is not None:
            copied.method = method
        if options:
            copied.method.choose(**options)
        if lm is not None:
            copied.set_lm(lm)
        if outcome is not None:
            copied.outcome = outcome
        if scale is not None:
            copied.outcome = replace(copied.outcome, scale=scale)
        return copied

    def previews(self, item: Item) -> dict[str, Any]:
        """Return the messages that each predictor would send for a row, by the predictor's name. Calls no model."""
        return pipeline.previews(self.method, self.scale, item)

    def __repr__(self) -> str:
        """Show method, scale, model and agreement with people on one line. `judgesmith show` has everything."""
        model = self._model_name()
        parts = [self.method.kind or type(self.method).__name__, f"scale={self.scale}"]
        parts += [f"lm={model!r}"] if model else []
        if agreed := self.stated_agreement:
            parts.append(f"held out: {agreed}")
        return shortened(f"Judge({', '.join(parts)})", 240)

    def _repr_html_(self) -> str:
        """For notebooks. Nothing that a file or a model says is markup."""
        knowledge = self.method.knowledge
        rows: list[tuple[str, Any]] = [
            ("judge", self.method.kind),
            ("scale", self.scale),
        ]
        rows += [("model", self._model_name() or "none yet")]
        rows += (
            [("held-out agreement", agreed)]
            if (agreed := self.stated_agreement)
            else []
        )
        rows += (
            [("task", shortened(knowledge.description, 300))]
            if knowledge.description
            else []
        )
        rows += [
            (f"criterion: {criterion.name}", shortened(criterion.definition, 300))
            for criterion in knowledge.criteria
        ]
        rows += list(self.method.facts().items())
        return facts(rows)

    def _model_name(self) -> str:
        return "" if self.own_lm is None else str(self.own_lm.name)
