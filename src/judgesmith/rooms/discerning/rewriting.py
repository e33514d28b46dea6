"""DHP's perturbations by a language model (its Table 2), each answer checked before it is taken.

They are perturbations like all others, and here since `datasets` asks no model.

What a model answers is no perturbed text until it is shown to be one: the asked part changed, the rest stayed, and the
length is near. An answer that fails is asked for again, a few times and no more.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, assert_never

import dspy
from rapidfuzz.distance import Indel

from judgesmith.datasets.perturbations.base import (
    DHP,
    Need,
    several_sentences,
    split_space,
)
from judgesmith.datasets.perturbations.registry import (
    Degree,
    Level,
    Material,
    Method,
    Perturbation,
    Unperturbable,
)
from judgesmith.datasets.perturbations.rules import inserted
from judgesmith.errors import CallError
from judgesmith.programs.answers.reading import bare
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.prompting.layouts import TextLayout
from judgesmith.programs.prompting.predict import JudgePredict
from judgesmith.signatures.writing import BreakGrammar, Rephrase, ReplaceEntities

Rewriting = Literal["entities", "grammar", "rephrase"]

TRIES = 3
OTHER_NUMBERS = "its numbers are others"
_AMOUNT: Mapping[tuple[str, str], str] = {
    ("entities", "minor"): "exactly one of them",
    ("entities", "major"): "one or more, as many as matter to what the text says",
    ("grammar", "minor"): "exactly one",
    ("grammar", "major"): "two or more",
}
_WORD = re.compile(r"\w+(?:['’.,:-]\w+)*")
_LENGTH = {"entities": (0.7, 1.5), "grammar": (0.8, 1.25), "rephrase": (0.5, 2.0)}
#: Share of words that may change: more would be another text, not this one perturbed.
_MOST = {
    ("entities", "minor"): 0.35,
    ("entities", "major"): 0.7,
    ("grammar", "minor"): 0.25,
    ("grammar", "major"): 0.5,
}


class Rewriter(dspy.Module):  # type: ignore[misc]
    """Perturbs texts."""

    def __init__(self) -> None:
        super().__init__()
        rule = "Answer with the {} and nothing else: no introduction, no quotation marks, no list of what you changed."
        text, sentence = (
            _Again("changed", rule.format(part), tokens=1500)
            for part in ("whole text", "sentence")
        )
        self.entities = JudgePredict(ReplaceEntities, text)
        self.grammar = JudgePredict(BreakGrammar, text)
        self.rephrase = JudgePredict(Rephrase, sentence)

    async def rewrite(
        self, kind: Rewriting, text: str, lm: LanguageModel, *, amount: Degree = "minor"
    ) -> str:
        """Return one text ("rephrase": one sentence).

        Raises:
            CallError: If a call fails, or three answers do not fit.
        """
        step: JudgePredict = getattr(self, kind)
        problem = ""
        for attempt in range(1, TRIES + 1):
            # "source" is a tag that a text cannot close (see `prompting`).
            inputs: dict[str, Any] = {"source": text}
            if kind != "rephrase":
                inputs["amount"] = _AMOUNT[kind, amount]
            if problem:
                inputs["problem"] = (
                    problem  # also another prompt, so that no cache gives the same answer
                )
                inputs["attempt"] = attempt
            answer = await step.ask(lm, inputs)
            changed = bare(str(answer.read.values["changed"]))
            problem = check(kind, text, changed, amount)
            if not problem:
                # The white space around the text is no part of the perturbation.
                return (
                    text[: len(text) - len(text.lstrip())]
                    + changed
                    + text[len(text.rstrip()) :]
                )
        raise CallError(
            f"no usable answer in {TRIES} tries; of the last one: {problem}"
        )


class _Again(TextLayout):
    """Plain text, and at a further try what was wrong with the answer before."""

    def rules(self, inputs: Mapping[str, Any]) -> str:
        again = inputs.get("problem")
        if again:
            more = f" Try {inputs['attempt']}: an earlier answer was refused, since {again}."
        else:
            more = ""
        return f"{self.rule}{more}"

    def max_tokens(self, inputs: Mapping[str, Any]) -> int:
        return min(
            self.tokens, 60 + len(str(inputs.get("source") or ""))
        )  # a token is rarely less than a character


def check(kind: Rewriting, before: str, after: str, amount: Degree = "minor") -> str:
    """Return the problem with a rewritten text, in words; "" if there is none."""
    if " ".join(after.split()).casefold() == " ".join(before.split()).casefold():
        return "nothing was changed"
    low, high = _LENGTH[kind]
    ratio = len(after) / max(len(before), 1)
    if not low <= ratio <= high:
        return f"it is {ratio:.1f} times as long as the text"
    words = _words(before)
    new_words = _words(after)
    one = Counter(words)
    other = Counter(new_words)
    gone = list((one - other).elements())
    new = list((other - one).elements())
    share = max(len(gone), len(new)) / max(len(words), 1)
    changed = f"{share:.0%} of the words were changed, which is another text"
    numbers = _numbers(before) == _numbers(after)
    match kind:
        case "rephrase":
            if not numbers:
                return OTHER_NUMBERS
            distance = Indel.normalized_distance(words, new_words)
            return "it hardly differs" if distance < 0.1 else ""
        case "entities":
            if share > _MOST[kind, amount]:
                return changed
            named = any(_is_named(word) for word in gone)
            return "" if named and new else "no name, number or term was replaced"
        case "grammar":
            if share > _MOST[kind, amount]:
                return changed
            return _lost(words, new_words, after) if numbers else OTHER_NUMBERS
        case _:
            assert_never(kind)


def _lost(words: Sequence[str], new_words: Sequence[str], after: str) -> str:
    """Return which name a text lost, in words; "" if it has them all."""
    folded = after.casefold()
    for word in words[1:]:
        unchanged = word in new_words or word.casefold() in folded
        if word[:1].isupper() and not unchanged:
            return f"the name {word!r} was lost"
    return ""


def _is_named(word: str) -> bool:
    """Return whether a word may be a name, a number or a term."""
    return word[:1].isupper() or _has_digit(word) or len(word) > 3


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _numbers(text: str) -> list[str]:
    """Return the numbers of a text, sorted, since a rephrased sentence may turn them round."""
    return sorted(filter(_has_digit, _words(text)))


class Written(Perturbation):
    """A perturbation by a language model. lm: None where what follows is to be counted and no text is judged."""

    method: ClassVar[Method] = "lm"
    needs: ClassVar[tuple[Need, ...]] = ("lm",)
    paper: ClassVar[str] = DHP
    kind_of_rewriting: ClassVar[Rewriting]

    def __init__(self, lm: LanguageModel | None) -> None:
        self.lm = lm
        self.rewriter = Rewriter()

    def ask(self, text: str, degree: Degree) -> str:
        """Return one checked answer. Raises Unperturbable where the model gives none."""
        if self.lm is None:
            return text + f" [{self.name}]" * (2 if degree == "major" else 1)
        try:
            return engine.run(
                self.rewriter.rewrite(
                    self.kind_of_rewriting, text, self.lm, amount=degree
                )
            )
        except CallError as error:
            raise Unperturbable(f"{self.lm.name}: {error}") from None

    def change(
        self, text: str, degree: Degree, rng: random.Random, material: Material
    ) -> str:
        """Return the text rewritten by the model."""
        return self.ask(text, degree)


class EntitiesByLM(Written):
    """DHP's entity errors, written by a model."""

    name: ClassVar[str] = "entities-lm"
    about: ClassVar[str] = "names, numbers and terms replaced by invented ones"
    level: ClassVar[Level] = "word"
    kind_of_rewriting: ClassVar[Rewriting] = "entities"


class GrammarByLM(Written):
    """DHP's grammatical errors, written by a model."""

    name: ClassVar[str] = "grammar-lm"
    about: ClassVar[str] = "grammatical errors"
    level: ClassVar[Level] = "word"
    kind_of_rewriting: ClassVar[Rewriting] = "grammar"


class RewriteByLM(Written):
    """DHP's rewritten insertions, with sentences rephrased by a model."""

    name: ClassVar[str] = "rewrite-lm"
    about: ClassVar[str] = (
        "sentences rephrased and inserted after themselves: one (minor), up to three (major)"
    )
    level: ClassVar[Level] = "sentence"
    kind_of_rewriting: ClassVar[Rewriting] = "rephrase"

    def change(
        self, text: str, degree: Degree, rng: random.Random, material: Material
    ) -> str:
        """Return the text with one (minor) or up to three (major) sentences repeated in other words."""
        parts = several_sentences(text, material, 2 if degree == "major" else 1)
        places = list(range(len(parts)))
        rng.shuffle(places)
        for i in sorted(places[: 1 if degree == "minor" else 3], reverse=True):
            parts = inserted(parts, i, self.ask(split_space(parts[i])[0], degree))
        return "".join(parts)


WRITTEN: tuple[type[Written], ...] = (EntitiesByLM, GrammarByLM, RewriteByLM)


def written_perturbations(lm: LanguageModel | None) -> Mapping[str, Perturbation]:
    """Return the perturbations that a model makes, by name; see `Written`."""
    return {kind.name: kind(lm) for kind in WRITTEN}
