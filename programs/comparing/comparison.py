"""Pairwise comparison: whether an output is better than, worse than or similar to another one, as probabilities.

The material and the two outputs are asked about in one prompt, whose answer is one word. With log-probabilities one
call gives the probabilities of all words, and a further one that of a word of several tokens, to which it holds the
model; a model without them is asked several times. A form asks about the output in one place (the second, in
yes-no-first the first), whichever of the two is judged, so that with both orders a liking for a place and a liking for
a word cancel out.

Source: "Direct-Scoring NLG Evaluators Can Use Pairwise Comparisons Too" (§2.2, §4). Prompts are ours.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain
from typing import Any, Literal, TypeVar, Unpack, assert_never, cast

import dspy
import numpy as np

from judgesmith.errors import CallError, OptionError
from judgesmith.likeness import same_output
from judgesmith.parts import Options, option
from judgesmith.programs.answers.likely import letters, token_at, word_probabilities
from judgesmith.programs.answers.reading import Read
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.answers.words import is_listed, said_word
from judgesmith.programs.models import row_context
from judgesmith.programs.models.as_dspy import Result, value_of
from judgesmith.programs.models.connection import Capabilities
from judgesmith.programs.models.lm import LanguageModel, Sampling
from judgesmith.programs.models.transport import Message, Request
from judgesmith.programs.one_aspect import OneAspect
from judgesmith.programs.prompting.forms import Form, choice
from judgesmith.programs.prompting.layouts import Layout, block
from judgesmith.programs.prompting.predict import (
    Answer,
    Call,
    Evaluator,
    JudgePredict,
    called,
    spent,
)
from judgesmith.signatures.judging import CompareOutputs
from judgesmith.signatures.values import Item, Usage, Verdict

T = TypeVar("T")
Question = Literal["better-worse", "yes-no", "yes-no-first"]
Order = Literal["other-first", "output-first", "both"]
Evidence = Literal["auto", "probabilities", "samples"]
Drawn = Literal[Evidence, "drawn"]
SAMPLES = "Answers drawn where log-probabilities are not read."
#: Words that answer, in the order (the asked-about output is better, is worse, similar).
WORDS: dict[Question, tuple[str, ...]] = {
    "better-worse": ("Better", "Worse", "Similar"),
    "yes-no": ("Yes", "No"),
    "yes-no-first": ("Yes", "No"),
}
#: Names of a field in which people said how an output compares with `other`, and what they write there.
LABELS = ("comparison", "winner", "preferred", "preference", "label")
MEANT = {
    **dict.fromkeys(("better", "output", "win", "1", "1.0", "yes", "true"), "better"),
    **dict.fromkeys(("worse", "other", "loss", "0", "0.0", "no", "false"), "worse"),
    **dict.fromkeys(("similar", "tie", "equal", "same", "0.5"), "similar"),
}
#: A share of probability on the words below which a note warns the reader.
LOW_SHARE = 0.5
#: Below this share the words were hardly thought of, and their proportions mean nothing.
LEAST_SHARE = 0.001
#: Log-probabilities asked of an embedded model, where the list has no limit of 20.
LISTED = 300


class Drawing(Options):
    """Options of judges that read the probabilities of words or digits, or draw answers and count them."""

    reading: Evidence = option(
        "auto",
        "The probabilities of the answer, or samples: drawn answers; auto draws only where the model gives no "
        "log-probabilities.",
    )
    samples: int = option(5, SAMPLES, ge=1, le=1000)
    trial: int = option(
        0,
        "Number of the independent trial that answers are drawn for. In a study, a seed is a trial.",
        added=True,
        ge=0,
    )
    temperature: float = option(
        1.0, "The temperature at which answers are drawn.", gt=0, le=2
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of an output with another: probabilities that add up to 1.

    share: the part of the model's probability that lay on the words of the answer, the lowest of several calls; NaN
    where answers were counted instead. answers: how many answers were counted; 0 with log-probabilities. flipped:
    whether the two orders gave different answers; None where one was asked for. usage, raw: what it cost, and the
    model's own words.
    """

    better: float
    worse: float
    similar: float
    share: float = math.nan
    answers: int = 0
    flipped: bool | None = None
    usage: Usage = field(default_factory=Usage)
    raw: tuple[str, ...] = ()
    repaired: bool = False
    notes: tuple[str, ...] = ()

    @property
    def word(self) -> Literal["better", "worse", "similar"]:
        """Return the most probable answer; similar if better and worse are equally probable."""
        if self.similar >= max(self.better, self.worse) or self.better == self.worse:
            return "similar"
        return "better" if self.better > self.worse else "worse"

    @property
    def error(self) -> float:
        """Return the standard error of better − worse for counted answers; NaN for one answer, 0 without counting."""
        if not self.answers:
            return 0.0
        if self.answers == 1:
            return math.nan
        variance = (
            self.better + self.worse - (self.better - self.worse) ** 2
        )  # of +1, −1 and 0
        return math.sqrt(max(0.0, variance) / (self.answers - 1))


class ComparisonLayout(Layout):
    """One word that says how output 2 compares with output 1.

    Instructions, task and aspect come first, then the document, then the two outputs: comparisons of one document
    share all that stands before the outputs.
    """

    def __init__(
        self, form: Question = "better-worse", *, sampled: bool = False
    ) -> None:
        super().__init__()
        self.question: Question = form
        self.sampled = sampled
        self.words = WORDS[form]
        self.wants_logprobs = not sampled

    @property
    def _asked(self) -> str:
        """Asks whether an output is better, without naming the aspect; for forms answered with Yes or No."""
        subject, other = (1, 2) if self.question == "yes-no-first" else (2, 1)
        return f"Is output {subject} better than output {other}"

    def rules(self, inputs: Mapping[str, Any]) -> str:
        """Return the question, with the words of its answer."""
        name = inputs.get("name") or "quality"
        if self.question != "better-worse":
            return f"{self._asked} in {name}? Answer with one word: Yes or No."
        return f"How does output 2 compare with output 1 in {name}? Answer with one word: Better, Worse or Similar."

    def _material(self, fields: Sequence[str], values: Mapping[str, Any]) -> str:
        parts = [
            block(name, str(values[name]))
            for name in ("source", "context")
            if values.get(name)
        ]
        # What stands outside the tags is ours alone: a text can neither end its block nor name itself output 1.
        if values.get("other"):
            pair = [values["other"], values["output"]]
            if values.get("order") == "output-first":
                pair.reverse()
            parts += [
                f"Output {i}:\n{block('output', str(text))}"
                for i, text in enumerate(pair, start=1)
            ]
            parts.append(
                "Compared with output 1, output 2 is:"
                if self.question == "better-worse"
                else f"{self._asked}?"
            )
        else:
            parts.append(block("output", str(values.get("output") or "")))
        return "\n".join(parts)

    def held(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Return the comparison's word, for a demonstration."""
        comparison = step.get("comparison")
        return {
            "comparison": comparison.word
            if isinstance(comparison, Comparison)
            else None
        }

    def labelled(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the comparison of a labelled pair, for a demonstration.

        Raises:
            OptionError: For an unknown word.
        """
        name = next((name for name in LABELS if row.get(name) is not None), None)
        if name is None or not row.get("other"):
            return {}
        word = MEANT.get(str(row[name]).strip().casefold())
        if word is None:
            raise OptionError(
                f"{name} of a labelled pair is {str(row[name])[:40]!r}; say better, worse or similar"
            )
        return {"comparison": word}

    def shows(self, demo: Mapping[str, Any]) -> bool:
        """Return True for a demonstration with both outputs and a comparison."""
        return bool(demo.get("output") and demo.get("other") and demo.get("comparison"))

    def answer(self, demo: Mapping[str, Any], inputs: Mapping[str, Any]) -> str | None:
        """Return the word of a comparison in the requested order; None for a demonstration with a score instead."""
        if not self.shows(demo):
            return None
        word = demo["comparison"]
        if (demo.get("order") == "output-first") != (
            self.question == "yes-no-first"
        ):  # the other one is asked about
            word = {"better": "worse", "worse": "better"}.get(word, word)
        return self.words[
            min(("better", "worse", "similar").index(word), len(self.words) - 1)
        ]

    def example(self, demo: Mapping[str, Any]) -> str | None:
        """Return the score of an example; None without one."""
        if demo.get("score") is None:
            return None
        return f"Score: {demo['score']:.0f} of 100"

    def whole(self, inputs: Mapping[str, Any]) -> str:
        """Return nothing: the question stands last, and its answer is one word."""
        return ""

    def form(self, inputs: Mapping[str, Any]) -> Form:
        """Return a choice of the answer's words."""
        return Form(choice("", [inputs["word"]] if inputs.get("word") else self.words))

    def max_tokens(self, inputs: Mapping[str, Any]) -> int:
        """Return the limit of tokens: more for sampled answers."""
        return 24 if self.sampled else 8

    def extract(self, reply: Reply, inputs: Mapping[str, Any]) -> Read:
        """Read the word, or its probabilities, from a reply."""
        if inputs.get("word"):
            # The tokens of the only answer, each after those before it.
            return Read({"probability": _probability(reply)})
        text = reply.text
        stated = said_word(reply.text, self.words)
        choices = ", ".join(self.words)
        excerpt = " ".join(text.split())[:120]
        if stated is None and is_listed(text, self.words):
            return Read({}, problem=f"several of {choices} in the answer: {excerpt!r}")
        plain = text.strip().rstrip(".").lower()
        repaired = plain not in map(str.lower, self.words)
        if not self.sampled and reply.tokens is not None:
            place = stated[1] if stated else len(text) - len(text.lstrip())
            odds, share = word_probabilities(reply, place, self.words)
            if share >= LEAST_SHARE:
                values: dict[str, Any] = {
                    "comparison": _comparison(odds, share),
                    "token": token_at(reply, place),
                }
                odds, share = word_probabilities(reply, place, self.words, whole=True)
                values["whole"] = [p * share for p in odds]
                return Read(values, repaired=repaired)
        if stated is None:
            return Read({}, problem=f"no {choices} in the answer: {excerpt!r}")
        odds = tuple(float(place == stated[0]) for place in range(len(self.words)))
        notes = ("no log-probabilities at the answer; the stated word was taken",)
        return Read(
            {"comparison": _comparison(odds, math.nan, answers=1)},
            repaired=repaired,
            notes=() if self.sampled else notes,
        )


def _comparison(odds: Sequence[float], share: float, *, answers: int = 0) -> Comparison:
    better, worse, *similar = odds
    return Comparison(better, worse, similar[0] if similar else 0.0, share, answers)


def _same(one: str | None, other: str) -> bool:
    return bool(one) and (one == other or same_output(str(one), other))


class ComparisonPredict(JudgePredict):
    """Leaves out demonstrations that repeat the other output, too."""

    def demos_for(self, inputs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the demonstrations without those that show either of the compared outputs."""
        other = inputs.get("other") or ""
        judged = inputs.get("output") or ""
        order = inputs.get("order")
        apart = [
            demo
            for demo in super().demos_for(inputs)
            if not _same(demo.get("output"), other)
            and not _same(demo.get("other"), other)
        ]
        return [
            {**demo, "order": order}
            for demo in apart
            if not _same(demo.get("other"), judged)
        ]


class PairwiseComparer(Evaluator):
    """Compares an output with another one.

    form: better-worse (three words) or yes-no (two; "No" counts as worse), yes-no-first if it asks about output 1.
    order: which output stands first, or both orders, averaged. samples: 0 reads log-probabilities; otherwise
    this many answers are drawn at `temperature` and counted, other ones in each `trial`. `prepare` may draw them from
    the log-probabilities of one answer instead (`counted`).
    """

    def __init__(
        self,
        form: Question = "better-worse",
        *,
        order: Order = "other-first",
        samples: int = 0,
        temperature: float = 1.0,
        trial: int = 0,
    ) -> None:
        super().__init__()
        self.form: Question = form
        self.order: Order = order
        self.samples = samples
        self.temperature = temperature
        self.trial = trial
        self.counted = 0
        self.predict = ComparisonPredict(
            CompareOutputs, ComparisonLayout(form, sampled=samples > 0)
        )

    async def prepare(self, lm: LanguageModel, reading: Drawn, samples: int) -> Drawn:
        """Settle the reading: log-probabilities, or `samples` answers or draws from them.

        "auto" counts only if the model gives no log-probabilities.

        Returns:
            The reading, settled.
        """
        able = await lm.capabilities()
        drawn = 0 if able.logprobs else samples
        self.counted = 0
        match reading:
            case "auto":
                reading = "probabilities" if able.logprobs else "samples"
            case "samples":
                drawn = samples
            case "drawn":
                self.counted = samples if able.logprobs else 0
            case "probabilities":
                pass
            case _:
                assert_never(reading)
        if self.samples != drawn:
            self.samples = drawn
            self.predict.layout = ComparisonLayout(self.form, sampled=drawn > 0)
        return reading

    def inputs(
        self,
        item: Item,
        other: str,
        *,
        task: str = "",
        aspect: str = "",
        name: str = "",
        order: Order | None = None,
    ) -> dict[str, Any]:
        """Return the inputs of a comparison.

        Args:
            item: The row.
            other: The other output.
            task: The task's description.
            aspect: The aspect with its definition, for the prompt's start.
            name: The aspect's name, for the question.
            order: The output shown first; None: as set.
        """
        first = order or (
            "output-first" if self.order == "output-first" else "other-first"
        )
        return {
            "task": task,
            "aspect": aspect,
            "name": name,
            "source": item.source,
            "context": item.context,
            "other": other,
            "output": item.output,
            "order": first,
        }

    async def acompare(
        self, item: Item, other: str, lm: LanguageModel, **words: str
    ) -> Comparison:
        """Compare `item.output` with `other`.

        Args:
            item: The row.
            other: The other output.
            lm: The model.
            **words: Task, aspect and name.

        Raises:
            CallError: If no answer could be read.
        """
        texts = {
            "source": item.source,
            "output": item.output,
            "other": other,
            "context": item.context,
        }
        return value_of(await self.acall(**texts, **words, lm=lm), Comparison)

    async def aforward(
        self,
        source: str = "",
        output: str = "",
        other: str = "",
        *,
        context: str | None = None,
        task: str = "",
        aspect: str = "",
        name: str = "",
        **call: Unpack[Call],
    ) -> dspy.Prediction:
        """Return the probabilities that `output` is better, worse than or similar to `other`, and the likeliest word.

        `score` is in [0, 100]: 0 where it is surely worse, 50 for a tie, 100 where it is surely better.

        Raises:
            CallError: If no answer could be read.
        """
        item = Item(output, source, context, None, call.get("group"))
        model = called(call.get("lm") or self.predict.lm)
        orders: list[Order] = (
            ["other-first", "output-first"] if self.order == "both" else [self.order]
        )
        comparisons = []
        with row_context.under(item):
            for order in orders:
                inputs = self.inputs(
                    item, other, task=task, aspect=aspect, name=name, order=order
                )
                answer = await self._asked(inputs, model)
                if (order == "output-first") != (
                    self.form == "yes-no-first"
                ):  # the other one was asked about
                    answer = replace(answer, better=answer.worse, worse=answer.better)
                comparisons.append(answer)
        if len(comparisons) > 1:
            compared = _mean(
                comparisons, len({answer.word for answer in comparisons}) > 1
            )
        else:
            compared = comparisons[0]
        shown = {
            field: getattr(compared, field)
            for field in ("better", "worse", "similar", "word", "notes")
        }
        score = 50.0 + 50.0 * (compared.better - compared.worse)
        return Result(compared, **shown, score=score)

    async def _asked(self, inputs: Mapping[str, Any], lm: LanguageModel) -> Comparison:
        if not self.samples:
            compared = await self._read(inputs, listing(lm) if lm.embedded else lm)
            return self._count(compared, inputs) if self.counted else compared
        read, lost, cost = await drawn_answers(
            self.predict,
            lm,
            inputs,
            self.samples,
            temperature=self.temperature,
            trial=self.trial,
        )
        compared = _compared(read)
        if not lost:
            return compared
        note = f"{lost} of {self.samples} sampled answers could not be read"
        return replace(
            compared, usage=compared.usage + cost, notes=(*compared.notes, note)
        )

    async def _read(self, inputs: Mapping[str, Any], lm: LanguageModel) -> Comparison:
        """By the probabilities of whole words: the model is held to each that is several tokens, in a further call."""
        answer = await self.predict.ask(lm, inputs)
        compared = _compared([answer])
        words = WORDS[self.form]
        if "whole" not in answer.read.values:
            return compared
        odds = [*answer.read.values["whole"]]
        listed = dict(answer.read.values["token"].alternatives)
        unlisted = [word for word in words if word not in listed]
        if not (await lm.capabilities()).grammar:
            starts = tuple(letters(text) or "-" for text in listed)
            cut = [word for word in unlisted if word.lower().startswith(starts)]
            note = f"the first token was read, which does not spell {' and '.join(cut)} to its end"
            return replace(compared, notes=(*compared.notes, note)) if cut else compared
        for word in unlisted:
            spelled = await self.predict.ask(lm, {**inputs, "word": word})
            odds[words.index(word)] += spelled.read.values["probability"]
            compared = replace(compared, usage=compared.usage + spelled.usage)
        if not (share := sum(odds)) >= LEAST_SHARE:  # or NaN
            return compared
        better, worse, *similar = odds
        return replace(
            compared,
            better=better / share,
            worse=worse / share,
            similar=sum(similar) / share,
            share=min(share, 1.0),
        )

    def _count(self, odds: Comparison, inputs: Mapping[str, Any]) -> Comparison:
        """Draw answers from these odds and count them. The same trial and texts draw the same."""
        seeded_by = repr((self.trial, self.form, sorted(inputs.items())))
        rng = np.random.default_rng(
            list(sha256(seeded_by.encode("utf-8", "surrogatepass")).digest())
        )
        weights = np.array([odds.better, odds.worse, odds.similar]) ** (
            1.0 / self.temperature
        )
        better, worse, similar = (
            rng.multinomial(self.counted, weights / weights.sum()) / self.counted
        ).tolist()
        return replace(
            odds, better=better, worse=worse, similar=similar, answers=self.counted
        )


class Comparing(OneAspect):
    """Base of the methods that compare outputs."""

    class Options(Drawing, OneAspect.Options):
        reading: Drawn = option(  # type: ignore[assignment]  # a wider choice than the others have
            "auto",
            "The probabilities of the answer; samples: answers that are drawn; drawn: as many, drawn from one call's "
            "probabilities, as decoding bound to these words would; auto draws only where the model gives no "
            "log-probabilities.",
        )
        form: Question = option(
            "better-worse",
            "The question of a comparison: Better, Worse or Similar; yes-no: whether output 2 is better, which small "
            "models answer with less regard to the order; yes-no-first: whether output 1 is (with order output-first "
            "the paper's form).",
        )
        order: Order = option(
            "other-first",
            "Which output of a comparison stands first; both asks twice and takes the mean, against a preference for a "
            "place.",
        )

    options: Options

    def build(self) -> None:
        """Make the comparer."""
        o = self.options
        self.comparer = PairwiseComparer(
            o.form, order=o.order, temperature=o.temperature, trial=o.trial
        )

    def calls_a_comparison(self) -> int:
        """Return the calls of one comparison: answers drawn, times orders."""
        return (self.options.samples if self.options.reading == "samples" else 1) * (
            2 if self.options.order == "both" else 1
        )

    def taught(self) -> list[JudgePredict]:
        """Return the comparer's predictor."""
        return [self.comparer.predict]

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        """Return a labelled row as an example with its score: a verdict is no answer to a comparison."""
        return super().demonstration(item, None)

    async def prepare(self, lm: LanguageModel) -> None:
        """Settle the reading for the model."""
        o = self.options
        reading = await self.comparer.prepare(lm, o.reading, o.samples)
        if reading != o.reading:
            self.choose(reading=reading)  # makes a comparer
            await self.comparer.prepare(lm, reading, o.samples)

    def prompt_words(self) -> dict[str, Any]:
        """Task and aspect for the prompt. `knowledge` may have been changed since this judge was made."""
        if self.knowledge.criteria:
            definition = self.knowledge.criteria[0].definition
        else:
            definition = ""
        if definition:
            described = f"{self.options.aspect}: {definition}"
        else:
            described = self.options.aspect
        return {
            "task": self.knowledge.description,
            "aspect": described,
            "name": self.options.aspect,
        }

    async def acompare(self, item: Item, other: str, lm: LanguageModel) -> Comparison:
        """Compare the item's output with another one.

        Raises:
            CallError: If no answer could be read.
        """
        return await self.comparer.acompare(item, other, lm, **self.prompt_words())

    def cautions(self, comparisons: Collection[Comparison]) -> list[str]:
        """Return notes for the reader of a score that rests on these comparisons."""
        notes = []
        if low := [c.share for c in comparisons if c.share < LOW_SHARE]:  # NaN is none
            notes.append(
                f"little of the probability was on the asked words in {len(low)} of {len(comparisons)} comparisons "
                f"(at least {min(low):.1%})"
            )
        counted = self.comparer.counted
        if number := counted or self.comparer.samples:
            lacks = self.options.reading != "samples" and not counted
            if lacks:
                why = (
                    "; the judge was made for log-probabilities, which this model lacks"
                )
            else:
                why = ""
            notes.append(
                f"{'' if counted else 'not '}from log-probabilities: {number} answers drawn a comparison at "
                f"temperature {self.options.temperature:g}{why}"
            )
        if self.options.order == "both":
            flips = sum(bool(c.flipped) for c in comparisons)
            notes.append(
                f"the two orders disagreed in {flips} of {len(comparisons)} comparisons"
            )
        return notes + list(
            dict.fromkeys(note for c in comparisons for note in c.notes)
        )

    def comparison_prompt(self, item: Item, other: str) -> list[Message]:
        """Return the messages that compare a row's output with another one."""
        return self.comparer.predict.messages(
            self.comparer.inputs(item, other, **self.prompt_words())
        )


def _compared(answers: Sequence[Answer]) -> Comparison:
    parts = [(a.read.values["comparison"], a, a.read) for a in answers]
    return _mean(
        [
            replace(c, usage=a.usage, raw=a.raw, repaired=r.repaired, notes=r.notes)
            for c, a, r in parts
        ]
    )


def _probability(reply: Reply) -> float:
    """The probability of an answer that consists of words alone, NaN without log-probabilities."""
    logps = list[float]()
    for token in reply.tokens or ():
        if token.text.strip():
            logps.append(dict(token.alternatives).get(token.text, math.nan))
    return math.exp(sum(logps)) if logps else math.nan


def _mean(parts: Sequence[Comparison], flipped: bool | None = None) -> Comparison:
    """Several comparisons of the same two outputs as one."""
    count = len(parts)
    shares = [part.share for part in parts if not math.isnan(part.share)]
    notes = chain.from_iterable(part.notes for part in parts)
    usage, raw = spent(parts)
    return Comparison(
        sum(part.better for part in parts) / count,
        sum(part.worse for part in parts) / count,
        sum(part.similar for part in parts) / count,
        min(shares, default=math.nan),
        sum(part.answers for part in parts),
        flipped,
        usage,
        raw,
        any(part.repaired for part in parts),
        tuple(dict.fromkeys(notes)),
    )


class _Asked(LanguageModel):
    """A model whose requests are changed on their way. Meter, cache, limits and connection are the original's."""

    def __init__(self, lm: LanguageModel, sampling: Sampling, **changes: Any) -> None:
        self.__dict__.update(lm.__dict__)
        self.sampling = sampling
        self._lm = lm
        self._changes = changes

    async def capabilities(self) -> Capabilities:
        return await self._lm.capabilities()

    async def answered(self, request: Request, *options: Any) -> tuple[Reply, Usage]:
        return await self._lm.answered(replace(request, **self._changes), *options)


def sampled(lm: LanguageModel, number: int, temperature: float) -> LanguageModel:
    """Return the model for its `number`-th answer at `temperature`: a numbered draw, cached on its own."""
    return _Asked(lm, Sampling(temperature, lm.sampling.max_tokens), sample=number)


async def settled(tasks: Iterable[Awaitable[T]]) -> list[T | CallError]:
    """Return all results and failed calls, after all have ended.

    Calls that a used-up budget ends must not run on in the background. Other errors are raised.
    """
    got = await asyncio.gather(*tasks, return_exceptions=True)
    for error in got:
        if isinstance(error, BaseException) and not isinstance(error, CallError):
            raise error
    return cast("list[T | CallError]", got)


async def drawn_answers(
    predict: JudgePredict,
    lm: LanguageModel,
    inputs: Mapping[str, Any],
    samples: int,
    *,
    temperature: float,
    trial: int = 0,
) -> tuple[list[Answer], int, Usage]:
    """Return the readable drawn answers, the number of unreadable ones, and the cost; another trial draws others.

    Raises:
        CallError: If none can be read.
    """
    numbers = range(trial * samples, (trial + 1) * samples)
    drawn = await settled(
        predict.ask(sampled(lm, number, temperature), inputs) for number in numbers
    )
    read = list[Answer]()
    failed = list[CallError]()
    for answer in drawn:
        if isinstance(answer, CallError):
            failed.append(answer)
        else:
            read.append(answer)
    if not read:
        raise failed[0]
    lost, _ = spent(failed)
    return read, len(failed), lost


def listing(lm: LanguageModel) -> LanguageModel:
    """Return the model with more log-probabilities than servers elsewhere give.

    Measured on small llama.cpp models: of the words that answer, the less likely ones are often missing among the first
    20.
    """
    return _Asked(lm, lm.sampling, top_logprobs=LISTED)
