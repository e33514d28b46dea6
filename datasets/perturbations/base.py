"""The parts of every perturbation of a text: declaration, material, and texts cut into words and sentences.

Source: DHP benchmark, Tables 1 and 2. The perturbations themselves are in `rules`, `facts`, `invariances` and
`attacks`; `registry` finds them and makes pairs with them.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import ClassVar, Literal

from rapidfuzz.distance import Levenshtein

from judgesmith.errors import JudgesmithError, OptionError
from judgesmith.extras import from_extra
from judgesmith.trajectories.value import Trajectory

Kind = Literal["degradation", "invariance", "attack"]
Level = Literal["character", "word", "sentence", "trajectory"]
Method = Literal["rules", "lm"]
Degree = Literal["minor", "major", "only"]  # "only": the perturbation has no degrees
#: Whose perturbation it is: DHP's for a task, a stand-in by rules for one that DHP has a language model make, or ours.
Origin = Literal["paper", "stand-in", "ours"]
Need = Literal["others", "wrong", "lm", "english", "trajectory"]

#: What `paper` says of those that are taken from there.
DHP = "DHP benchmark (Wang et al. 2024), Tables 1 and 2"
WORD = re.compile(r"\w+(?:['’.,:-]\w+)*")
_LOWEST = 2.0  # letters that must be left for every one that is changed


def kept(name: str) -> dict[str, dict[str, str]]:
    """Return the tables of a file of this folder (.toml)."""
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))


class Unperturbable(JudgesmithError):
    """This text cannot be perturbed in this way; the message says why. It is left out and counted, never altered."""


@dataclass(frozen=True, slots=True)
class Text:
    """A good text with its origin.

    group: texts of one group are no "other documents" to each other. references: other good texts for the same source.
    wrong: a wrong ending or answer that the data has for it.
    """

    id: str
    text: str
    source: str = ""
    context: str | None = None
    references: tuple[str, ...] = ()
    group: str = ""
    wrong: str | None = None


@dataclass(frozen=True, slots=True)
class Amounts:
    """The numbers of characters or words to change.

    task: one of PAPER, whose k the paper's Table 2 gives for texts of one length, or "relative": about the same shares
    of any text (3 and 15 % of the letters, 7 and 35 % of the words; 10 of SummEval's 340 characters are 3 %).
    """

    task: str = "relative"

    def __post_init__(self) -> None:
        if self.task != "relative" and self.task not in PAPER:
            raise OptionError(
                f"amount {self.task!r} is not one of relative, {', '.join(PAPER)}"
            )

    def count(
        self, unit: Literal["character", "word"], degree: Degree, there: int
    ) -> int:
        """Return how many of the `there` characters or words to change, at least 1.

        Raises:
            Unperturbable: For a text so short that less than twice as many are there.
        """
        place = 1 if degree == "major" else 0
        if self.task == "relative":
            shares = (0.03, 0.15) if unit == "character" else (0.07, 0.35)
            k = max(1, round(shares[place] * there))
            if place:  # more than minor, however short the text
                k = max(k, 1 + max(1, round(shares[0] * there)))
        else:
            k = PAPER[self.task][unit == "word"][place]
        if there < _LOWEST * k or there < 4:
            raise Unperturbable(
                f"too short: {there} {'letters or digits' if unit == 'character' else 'words'} for {k}"
            )
        return k


#: Table 2: minor and major k of characters and of consecutive words. The paper deletes words of translations only; for
#: the other tasks the same shares of their mean lengths are taken. Of story endings it changes 5 letters; 10 is ours.
PAPER: Mapping[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "summarization": ((10, 50), (4, 20)),
    "scientific": ((20, 100), (8, 40)),
    "story": ((5, 10), (1, 3)),
    "answer": ((5, 25), (2, 8)),
    "translation": ((10, 50), (5, 25)),
}


@dataclass(frozen=True)
class Material:
    """The texts that a perturbation may use beside the perturbed one.

    others: texts of other documents, in an order that does not depend on the perturbation.
    """

    own: Text
    others: Sequence[Text] = ()
    amounts: Amounts = field(default_factory=Amounts)
    language: str = "en"

    @property
    def english(self) -> bool:
        """Return True if the text's language is English, by its tag."""
        return self.language.lower().partition("-")[0] == "en"


class Perturbation:
    """One way to change a text.

    name: as users write it; made by rules in place of a language model, it ends with "-rules", made by one, with "-lm".
    kind: "degradation" must lower a score, "invariance" must not, "attack" must not raise it. degrees: ("minor",
    "major") or ("only",). needs: "others" (texts of other documents), "wrong" (a wrong ending in the data), "lm",
    "english", "trajectory" (calls of tools).
    paper: where it is from, "" for one of ours. stands_for: the perturbation of the paper that it takes the place of,
    without being it.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    level: ClassVar[Level]
    kind: ClassVar[Kind] = "degradation"
    method: ClassVar[Method] = "rules"
    degrees: ClassVar[tuple[Degree, ...]] = ("minor", "major")
    needs: ClassVar[tuple[Need, ...]] = ()
    paper: ClassVar[str] = ""
    stands_for: ClassVar[str] = ""

    def base(self, material: Material) -> str:
        """Return the text that is changed: the good one, unless a subclass needs another."""
        return material.own.text

    def change(
        self, text: str, degree: Degree, rng: random.Random, material: Material
    ) -> str:
        """Return the changed text.

        Raises:
            Unperturbable: For a text that cannot be changed in this way.
        """
        raise NotImplementedError

    def require(self, material: Material) -> None:
        """Check that everything the perturbation needs is there.

        Raises:
            Unperturbable: For a missing source, reference, or other need.
        """
        if "english" in self.needs and not material.english:
            raise Unperturbable(
                f"its rules are for English, and the language is {material.language!r}"
            )
        if "others" in self.needs and not material.others:
            raise Unperturbable("there is no text of another document")
        if "wrong" in self.needs and not (material.own.wrong or "").strip():
            raise Unperturbable("the data has no wrong ending for it (column wrong)")
        if "trajectory" in self.needs:
            run = Trajectory.read(material.own.text)
            if not run.calls:
                raise Unperturbable("it is no trajectory with calls of tools")
            if run.judged is not None:
                raise Unperturbable(
                    "one of its turns is judged, which a change elsewhere need not concern"
                )


# Texts in parts ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)  # the others' texts are cut again for every text
def sentences(text: str, language: str = "en") -> tuple[str, ...]:
    """Return the sentences of a text, each with the white space after it: joined they are the text.

    Split by sentencex, which knows about 300 languages and leaves abbreviations and decimal points alone.
    """
    sentencex = from_extra("discern", "splitting texts into sentences", "sentencex")
    result: list[str] = []
    place = 0
    # a lone surrogate, which broken JSON holds, is no text to it; "?" has the same length
    for piece in sentencex.segment(language, text.encode("utf-8", "replace").decode()):
        part = text[place : place + len(piece)]
        place += len(piece)
        if result and not part.strip():
            result[-1] += part
        else:
            result.append(part)
    if place < len(text):
        result.append(text[place:])
    return tuple(result)


def split_space(sentence: str) -> tuple[str, str]:
    """Return a sentence and the white space after it."""
    bare = sentence.rstrip()
    return bare, sentence[len(bare) :]


def several_sentences(text: str, material: Material, fewest: int = 2) -> list[str]:
    """Return the sentences of a text.

    Raises:
        Unperturbable: For fewer than `fewest`.
    """
    result = list(sentences(text, material.language))
    if len(result) < fewest:
        noun = "sentence" if len(result) == 1 else "sentences"
        raise Unperturbable(f"{len(result)} {noun}; at least {fewest} are needed")
    return result


def letters(text: str) -> list[int]:
    """Places of letters and digits."""
    return [i for i, character in enumerate(text) if character.isalnum()]


def like(model: str, word: str) -> str:
    """Return `word` with the case of `model`: capitalised, in capitals or unchanged."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


@dataclass(frozen=True, slots=True)
class Spot:
    """text[start:end] would become `new`."""

    start: int
    end: int
    new: str


def spots_of(
    text: str, pattern: re.Pattern[str], new: Callable[[re.Match[str]], str | None]
) -> list[Spot]:
    """Return a spot for every match that `new` has a replacement for."""
    matches = ((m, new(m)) for m in pattern.finditer(text))
    return [
        Spot(m.start(), m.end(), replacement)
        for m, replacement in matches
        if replacement is not None and replacement != m[0]
    ]


def replace_spots(
    text: str, spots: Iterable[Spot], rng: random.Random, count: int | None = None
) -> str:
    """Replace `count` of the spots (None: all), drawn so that a larger count includes what a smaller one draws.

    Of spots that overlap only one is taken.
    """
    order = list(spots)
    rng.shuffle(order)
    taken: list[Spot] = []
    for spot in order:
        if count is not None and len(taken) == count:
            break
        if all(spot.end <= other.start or spot.start >= other.end for other in taken):
            taken.append(spot)
    for spot in sorted(taken, key=lambda s: -s.start):
        text = text[: spot.start] + spot.new + text[spot.end :]
    return text


def replace_by_degree(
    text: str,
    spots: Sequence[Spot],
    degree: Degree,
    rng: random.Random,
    things: str,
    most: int = 5,
) -> str:
    """Replace one spot for a minor perturbation, up to `most` for a major one, which needs two.

    Raises:
        Unperturbable: For too few spots.
    """
    fewest = 2 if degree == "major" else 1
    if len(spots) < fewest:
        raise Unperturbable(
            f"it has {len(spots)} {things}, and {fewest} {'are' if fewest > 1 else 'is'} needed"
        )
    return replace_spots(text, spots, rng, 1 if degree == "minor" else most)


# How much changed ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """The distance between two texts.

    distance: Levenshtein, in characters; share: of the longer text's characters, words: share of the longer text's
    words (both in 0..1).
    """

    distance: int
    share: float
    words: float

    @classmethod
    def between(cls, before: str, after: str) -> Change:
        """Measure the distance from one text to another."""
        old = before.split()
        new = after.split()
        distance = Levenshtein.distance(before, after)
        return cls(
            distance,
            distance / max(len(before), len(after), 1),
            Levenshtein.distance(old, new) / max(len(old), len(new), 1),
        )
