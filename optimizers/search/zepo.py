"""A prompt chosen without a label: of several wordings of the comparison's instructions, the fairest one.

A judge that compares should not care which output stands first. Shown each pair in both orders, its preferences should
fall on the first and on the second output equally often, whatever the outputs are worth; how far a wording is from that
can be seen without knowing which output is better. A model says the instructions again in other words, each wording
compares the same pairs of outputs, and the one nearest to balance is kept; with `rounds`, it is paraphrased again in
turn.

Source: Zhou et al. 2024, "Fairer Preferences Elicit Improved Human-Aligned Large Language Model Judgments" (ZEPO).
Ours: both orders of every pair, so that the balance is known to be one half; "Similar" is no preference and left out;
and zero-shot stays where labels, if there are any, clearly speak against the fair wording. The prompt is ours.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import dspy
import numpy as np

from ...errors import CallError, OptionError
from ...parts import option
from ...programs.comparing.comparison import Comparison, PairwiseComparer, sampled
from ...programs.judge import Judge
from ...programs.models import engine
from ...programs.models.lm import LanguageModel
from ...programs.prompting.answers import bare
from ...programs.prompting.layouts import TextLayout
from ...programs.prompting.predict import JudgePredict
from ...signatures.values import Item
from ...signatures.writing import ParaphraseInstructions
from ..examples import item_of
from ..registry import optimizers
from .base import DemonstrationSearch, Proposal, SearchContext, SearchOptions, Trial, without_demos

#: Temperature of paraphrases: at 0 there would be one paraphrase.
PARAPHRASING = 0.9
#: Draws for one paraphrase before there are fewer of them.
DRAWS = 2
#: Below this mean probability of any preference ("Similar" nearly always) there is none that could be fair.
LEAST_DECIDED = 0.01
LONGEST = 1500
#: Outputs of one document that pairs are made of, so that their number stays small.
MOST_OUTPUTS = 12

#: An item and the text that its output is compared with.
Pair = tuple[Item, str]


@dataclass(frozen=True, slots=True)
class Fairness:
    """How evenly preferences fell on both places. first: the share that fell on the output shown first; decided: the
    mean probability of a preference at all; comparisons, failed: how many were asked for, and how many of them could
    not be read. reason: why there is no value, where there is none.
    """

    first: float
    decided: float
    comparisons: int
    failed: int = 0
    reason: str | None = None

    @property
    def value(self) -> float:
        """1 − 2·|first − 1/2| in [0, 1], higher is fairer; NaN where too little was preferred or read."""
        return math.nan if self.reason else 1.0 - 2.0 * abs(self.first - 0.5)

    def __str__(self) -> str:
        return self.reason or f"{self.value:.2f}"


@dataclass(frozen=True, slots=True)
class Wording:
    """Instructions and how fair the comparisons by them were."""

    instructions: str
    fairness: Fairness

    def to_dict(self) -> dict[str, Any]:
        value = self.fairness.value
        return {
            "instructions": self.instructions,
            "fairness": None if math.isnan(value) else round(value, 6),
            "decided": round(self.fairness.decided, 6),
        }


def fairness_of(comparisons: Sequence[Comparison | None], max_failed: float = 0.1) -> Fairness:
    """Fairness of comparisons of a second output with a first (better: the second is preferred), each pair in both
    orders. None stands for a comparison that failed."""
    made = [c for c in comparisons if c is not None]
    failed = len(comparisons) - len(made)
    first, second = math.fsum(c.worse for c in made), math.fsum(c.better for c in made)
    decided = (first + second) / len(made) if made else 0.0
    reason = None
    if not made or failed > max_failed * len(comparisons):
        reason = f"{failed} of {len(comparisons)} comparisons failed"
    elif decided < LEAST_DECIDED:
        reason = "nothing was preferred to anything"
    return Fairness(math.nan if reason else first / (first + second), decided, len(comparisons), failed, reason)


def output_pairs(items: Sequence[Item], most: int, seed: int) -> list[Pair]:
    """Pairs of different outputs of one document (source and context), from as many documents as there are; `most` at
    most. The same items and seed give the same pairs."""
    rng = np.random.default_rng([seed, 11])
    documents: dict[tuple[str, str], dict[str, Item]] = {}
    for item in items:
        if item.output.strip():
            documents.setdefault((item.source, item.context or ""), {}).setdefault(item.output, item)

    def shuffled(values: Sequence[Any]) -> list[Any]:
        return [values[i] for i in rng.permutation(len(values))]

    pairs = []
    for outputs in documents.values():
        drawn = shuffled(list(outputs.values()))[:MOST_OUTPUTS]
        pairs.append(shuffled([(one, other.output) for one, other in itertools.combinations(drawn, 2)]))
    return [pair for turn in itertools.zip_longest(*shuffled(pairs)) for pair in turn if pair is not None][:most]


def with_instructions(judge: Judge, instructions: str) -> Judge:
    """A copy whose comparisons have other instructions; what it says about references stays."""
    made = judge.copy_for()
    predict = _comparer(made).predict
    predict.signature = predict.signature.with_instructions(instructions)
    return made


def _comparer(judge: Judge) -> PairwiseComparer:
    """Raises OptionError for a judge that does not compare outputs."""
    found = getattr(judge, "comparer", None)
    if not isinstance(found, PairwiseComparer):
        raise OptionError(
            f"zepo chooses how two outputs are compared, which {judge.kind or type(judge).__name__} does not do; it is "
            "for --method pairwise-direct and pairs (take another --optimizer)"
        )
    return found


@optimizers.register
class ZEPO(DemonstrationSearch):
    """The fairest of several wordings of a comparing judge's instructions; labels are not read for the choice.

    Zero-shot stays where it beats the fair wording on the validation rows in `sure` of the paired resamples, which
    guards against a wording that is fair and wrong. Unlike a search by Q, a fair wording need not beat zero-shot first:
    that would be a choice by labels.

    The pairs are of training rows' outputs. Where documents have one output each, a judge that writes references
    compares them with these. A teacher, if there is one, writes the paraphrases.
    wordings: what the last search tried, the judge's own first.
    """

    name = "zepo"
    about = "the fairest of several wordings of a comparison's instructions, chosen without labels"
    paper = "Zhou et al. 2024, Fairer Preferences Elicit Improved Human-Aligned Large Language Model Judgments"

    class Options(SearchOptions):
        candidates: int = option(8, "Paraphrases of the instructions a round.", ge=0)
        rounds: int = option(1, "The fairest wording so far is paraphrased again in each round (paper: 5).", ge=1)
        pairs: int = option(20, "Pairs of outputs that every wording compares, each in both orders.", ge=1)
        sure: float = option(
            0.7,
            "Zero-shot stays where it beats the fair wording in this share of the paired resamples; 0: wherever it is "
            "better at all.",
            ge=0,
            lt=1,
        )

    wordings: tuple[Wording, ...] = ()

    def evaluations(self) -> int:
        return 2 if self.candidates else 1

    def no_ensemble(self) -> str:
        return "it chooses a wording without labels, and an ensemble is chosen by them"

    def proposals(self, judge: Judge, rows: int) -> int:
        """Calls at most beside those for the validation rows: paraphrases, and comparisons of pairs. Raises OptionError
        for a judge that does not compare."""
        comparer = _comparer(judge)
        if not self.candidates:
            return 0
        draws = getattr(judge, "samples", 1) if getattr(judge, "reading", "") == "samples" else comparer.samples or 1
        wordings = self.candidates * self.rounds
        return int(DRAWS * wordings + (wordings + 1) * 2 * self.pairs * draws)

    def compile(self, student: Judge, **given: Any) -> Judge:
        """As `DemonstrationSearch.compile`. Raises OptionError for a judge that does not compare outputs."""
        _comparer(student)
        self.wordings = ()
        return super().compile(student, **given)

    def fairest(
        self, judge: Judge, items: Sequence[Item], *, teacher: LanguageModel | None = None
    ) -> tuple[Wording, ...]:
        """Wordings and their fairness on pairs of these outputs, the judge's own first; no label is needed. The one to
        take is `best_of` them, with `with_instructions`.

        Raises OptionError where there is nothing to compare, BudgetError over the budget.
        """
        lm, base = judge.lm, without_demos(judge)
        engine.run(base.prepare(lm))
        pairs = self._pairs(base, items, lm)
        own = _comparer(base).predict.signature.instructions
        found = [Wording(own, self._measured(base, pairs, lm, "the judge's own instructions"))]
        for round_ in range(self.rounds):
            source = best_of(found).instructions
            known = [w.instructions for w in found]
            self.progress.stage("paraphrases of the instructions", self.candidates)
            texts = engine.run(self._paraphrases(source, known, teacher or lm, round_))
            for text in texts:
                fairness = self._measured(with_instructions(base, text), pairs, lm, f"wording {len(found)}")
                found.append(Wording(text, fairness))
        return tuple(found)

    # -- the search

    def explore(self, context: SearchContext) -> None:
        if not self.candidates:
            return
        items = [item_of(e) for e in context.pool]  # without their scores
        self.wordings = self.fairest(context.base, items, teacher=context.teacher)
        best = best_of(self.wordings)
        if best is not self.wordings[0]:
            form = {**best.to_dict(), "tried": [w.to_dict() for w in self.wordings]}
            program = with_instructions(context.base, best.instructions)
            self.judge(context, [Proposal("fairest wording", "none", (), program, form)])

    def _corrected(self, tried: Sequence[Trial], chosen: Trial, rows: Sequence[dspy.Example]) -> None:
        return None  # Q did not choose, and needs no correction

    def choose(self, tried: Sequence[Trial], rows: Sequence[dspy.Example]) -> tuple[Trial, str | None]:
        zero_shot = tried[0]
        if len(tried) < 2:
            if not self.wordings:
                return zero_shot, None  # nothing was asked for, or the budget ended it, which the report shows
            own, others = self.wordings[0].fairness, len(self.wordings) - 1
            told = f"the fairest of {others + 1} wordings" if others else "kept, since no paraphrase of them was usable"
            return zero_shot, f"the judge's own instructions are {told} (fairness {own}; no label was used)"
        fair = tried[1]
        best, own = best_of(self.wordings).fairness, self.wordings[0].fairness
        value, plain = fair.candidate.agreement.value, zero_shot.candidate.agreement.value
        label = self.objective.label
        told = f"the fairest of {len(self.wordings)} wordings (fairness {best}; the judge's own {own})"
        if fair.candidate.disqualified is not None:
            return zero_shot, f"{told} cannot be chosen, since {fair.candidate.disqualified}; zero-shot stays"
        if zero_shot.candidate.disqualified is None and self._beats(zero_shot, fair, rows):
            return zero_shot, (
                f"{told} agrees clearly less with people ({label} {value:.2f} on the training rows) than the judge's "
                f"own ({plain:.2f}), which stays"
            )
        return fair, (
            f"{told} was chosen without labels; on the training rows its {label} is {value:.2f}, zero-shot's "
            f"{plain:.2f}"
        )

    # -- its parts

    def _pairs(self, judge: Judge, items: Sequence[Item], lm: LanguageModel) -> list[Pair]:
        pairs = output_pairs(items, self.pairs, self.seed)
        if len(pairs) < self.pairs and hasattr(judge, "areferences"):  # it writes texts to compare with
            pairs += engine.run(self._with_references(judge, items, lm, self.pairs - len(pairs)))
        if not pairs:
            raise OptionError("no document has two different outputs to compare; add rows of the same source")
        return pairs

    async def _with_references(self, judge: Judge, items: Sequence[Item], lm: LanguageModel, most: int) -> list[Pair]:
        """Outputs, each beside one of its document's references (which zero-shot's pass had written)."""
        rng = np.random.default_rng([self.seed, 12])
        pairs: list[Pair] = []
        for item in [items[i] for i in rng.permutation(len(items))]:
            if len(pairs) == most:
                break
            if item.output.strip():
                with contextlib.suppress(CallError):
                    references, _ = await judge.areferences(item, lm)
                    if texts := [text for text in references.outputs.values() if text != item.output]:
                        pairs.append((item, texts[int(rng.integers(len(texts)))]))
        return pairs

    def _measured(self, judge: Judge, pairs: Sequence[Pair], lm: LanguageModel, what: str) -> Fairness:
        comparer = _comparer(judge).deepcopy()
        comparer.order = "other-first"
        criteria = judge.knowledge.criteria
        definition = criteria[0].definition if criteria else ""
        name = str(getattr(judge, "aspect", "")) or (criteria[0].name if criteria else "")
        words = {"task": judge.knowledge.description, "aspect": f"{name}: {definition}" if definition else name}

        async def compare(pair: Pair) -> Comparison | None:
            try:
                compared = await comparer.acompare(*pair, lm, name=name, **words)
            except CallError:
                return None
            comparison: Comparison = compared.comparison
            return comparison

        both = [
            turned for item, other in pairs for turned in ((item, other), (replace(item, output=other), item.output))
        ]
        self.progress.stage(f"fairness of {what}", len(both))
        comparisons = []
        for comparison in engine.ordered_map(compare, both, in_flight=1 if lm.embedded else lm.concurrency):
            comparisons.append(comparison)
            self.progress.step()
        return fairness_of(comparisons, self.max_failed)

    async def _paraphrases(self, source: str, known: Sequence[str], lm: LanguageModel, round_: int) -> list[str]:
        """Up to `candidates` usable paraphrases, no two alike."""
        rule = "Answer with the instructions alone: no heading, no list, no quotation marks, no remark."
        step = JudgePredict(ParaphraseInstructions, TextLayout("paraphrase", rule, tokens=60 + len(source) // 2))
        seen, made = {_plain(text) for text in known}, list[str]()
        for draw in range(DRAWS * self.candidates):
            if len(made) == self.candidates:
                break
            number = (self.seed * 100 + round_) * DRAWS * self.candidates + draw
            try:
                answer = await step.ask(sampled(lm, number, PARAPHRASING), {"source": source})
            except CallError:
                continue
            text = usable(answer.read.values["paraphrase"], source)
            if text is not None and _plain(text) not in seen:
                seen.add(_plain(text))
                made.append(text)
                self.progress.step()
        return made


def best_of(wordings: Sequence[Wording]) -> Wording:
    """The fairest; the earlier of equals, and the first (the judge's own) where none has a value."""
    values = [-1.0 if math.isnan(w.fairness.value) else round(w.fairness.value, 9) for w in wordings]
    return wordings[values.index(max(values))]


def usable(answer: str, source: str) -> str | None:
    """A model's paraphrase of `source` as one paragraph, None where it can be none: by its length (0.4 to 2.5 times the
    source's, 1,500 characters at most), or with tags in it."""
    text = " ".join(bare(answer).split())
    text = re.sub(
        r"^(?:\w+ )?(?:paraphrased? )?(?:paraphrase|instructions?|output|answer)\s*:\s*", "", text, flags=re.I
    )
    share = len(text) / max(1, len(" ".join(source.split())))
    if not 0.4 <= share <= 2.5 or len(text) > LONGEST or re.search(r"[<>]|\[/?INST\]", text):
        return None
    return text


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()
