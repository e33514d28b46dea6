"""The kinds of readings, and the panel that takes several of them together.

A reading declares what it needs read and makes numbers, or states, of it. Several readings of one form share one pass
through the model; questions share the pass of the form they are asked on.
"""

from __future__ import annotations

import itertools
import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import scipy
from pydantic import AfterValidator, Field
from rapidfuzz.distance import Indel, LCSseq

from ... import parts
from ...errors import OptionError
from ...parts import option
from ..registry import readings
from .passages import FORMS, Text, about, after_reply, passage
from .reader import Ability, Floats, Reader, TokenReading


def _form(name: str) -> str:
    if name not in FORMS:
        raise ValueError(f"{name!r} is no form to read a row in; there are {', '.join(FORMS)}")
    return name


#: The name of one of the `FORMS`.
Form = Annotated[str, AfterValidator(_form)]
_YES_OR_NO = (("Yes", " Yes", "yes"), ("No", " No", "no"))


@dataclass(frozen=True, slots=True)
class Asked:
    """A question on a form, to be answered with yes or no."""

    on: str
    text: str


def expected_digit(logp: Floats) -> float:
    """The mean of the digits 1 to `len(logp)` under their log-probabilities."""
    return float(scipy.special.softmax(logp.astype(np.float64)) @ np.arange(1, len(logp) + 1))


@dataclass(frozen=True, slots=True)
class Wants:
    """What a reading needs of a row: forms with the layers whose states it uses, and questions by the number's name."""

    forms: Mapping[str, frozenset[int]] = field(default_factory=dict)
    questions: Mapping[str, Asked] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of one row. answers: question's name -> the log-probabilities of yes and no."""

    text: Text
    passages: Mapping[str, TokenReading] = field(default_factory=dict)
    answers: Mapping[str, Floats] = field(default_factory=dict)


class Reading(ABC):
    """One kind of reading: a class with a `kind`, one line on what it is (`about`), a name for what it adds to a score
    (`label`), and its `Options`, registered with `@readings.register` or as an entry point of `judgesmith.readings`.

    Numbers and states have names that no other kind gives: by default those that begin with the kind and a dot; see
    `gives`. The head is fitted to all numbers, and to blocks of states that are named FORM.meanLAYER."""

    kind: ClassVar[str]
    about: ClassVar[str]
    label: ClassVar[str] = ""
    paper: ClassVar[str] = ""

    class Options(parts.Options):
        """None."""

    def __init__(self, **options: object) -> None:
        """Raises OptionError for an option that it does not have."""
        self.options: Any = parts.read_options(type(self).Options, options, f"reading {self.kind}")

    @classmethod
    def chosen(cls, judge: Mapping[str, Any], ability: Ability, own: Mapping[str, Any]) -> Self | None:
        """The reading that a judge takes; None for none. judge: the judge's options. own: options that the user gave to
        this kind."""
        return cls(**own)

    @classmethod
    def gives(cls, name: str) -> bool:
        """Whether a number or a block of states of this name is this kind's."""
        return name.startswith(f"{cls.kind}.")

    @abstractmethod
    def wants(self, ability: Ability) -> Wants:
        """What must be read. Raises OptionError if the reader cannot."""

    def numbers(self, read: Read) -> dict[str, float]:
        """The row's numbers by name."""
        return {}

    def states(self, read: Read) -> dict[str, Floats]:
        """The row's states by block."""
        return {}


def group_of(name: str) -> str:
    """What people call a reading by its number's name: "likelihood", "hidden states", "surface", "checks"."""
    return next((part.label or part.kind for part in readings.parts().values() if part.gives(name)), name)


# How likely the text is ----------------------------------------------------------------------------------------------


def likelihoods(reading: TokenReading) -> dict[str, float]:
    """A passage's numbers, in nats.

    mean, min, sum, q10, q25, q50: of log p over the target's tokens. excess: the mean of -log p - entropy, how much
    more surprising the tokens were than the model itself expected. gap: the mean of top - log p, how far the tokens lie
    behind the likeliest ones. tokens: log of their number. excess and gap are NaN where the reader cannot give them.
    """
    logp = reading.logp.astype(np.float64)
    low, lower, middle = np.quantile(logp, (0.1, 0.25, 0.5))
    return {
        "mean": float(logp.mean()),
        "min": float(logp.min()),
        "sum": float(logp.sum()),
        "q10": float(low),
        "q25": float(lower),
        "q50": float(middle),
        "excess": float((-logp - reading.entropy).mean()),
        "gap": float((reading.top - logp).mean()),
        "tokens": float(np.log(len(logp))),
    }


def lift(given: Mapping[str, float], bare: Mapping[str, float]) -> float:
    """How much the source and the instruction make the text likelier: the difference of the means (pointwise mutual
    information a token)."""
    return given["mean"] - bare["mean"]


@readings.register
class Likelihood(Reading):
    """How likely the model finds the text, in one or several forms; see `likelihoods` and `lift`."""

    kind = "likelihood"
    about = "how likely the model finds the text, in one or several forms"
    label = "likelihood"
    paper = "GPTScore (Fu et al. 2023); BARTScore (Yuan et al. 2021)"

    class Options(parts.Options):
        forms: Annotated[tuple[Form, ...], Field(min_length=1)] = option(
            ("assistant", "bare"), "How the row is put before the model; with bare, the gain over the text alone, too."
        )

    @classmethod
    def chosen(cls, judge: Mapping[str, Any], ability: Ability, own: Mapping[str, Any]) -> Self:
        return cls(**{"forms": judge["read_forms"], **own})

    @classmethod
    def gives(cls, name: str) -> bool:
        return name.partition(".")[0] in FORMS and not States.gives(name)

    def wants(self, ability: Ability) -> Wants:
        return Wants({form: frozenset() for form in self.options.forms})

    def numbers(self, read: Read) -> dict[str, float]:
        numbers: dict[str, float] = {}
        of_form = {form: likelihoods(read.passages[form]) for form in self.options.forms}
        for form, likely in of_form.items():
            numbers |= {f"{form}.{name}": value for name, value in likely.items()}
            if "bare" in of_form and form not in ("bare", "reverse"):
                numbers[f"{form}.lift"] = lift(likely, of_form["bare"])
        return numbers


@readings.register
class States(Reading):
    """Hidden states of the middle layers: the mean over the text's tokens, or the last token's."""

    kind = "states"
    about = "hidden states of the middle layers: the mean over the text's tokens, or the last token's"
    label = "hidden states"
    paper = "BoRP; INSPECTOR"

    class Options(parts.Options):
        form: Form = option("assistant", "How the row is put before the model.")
        of: Literal["mean", "last"] = option("mean", "Mean over the text's tokens, or the last token.")
        depth: float = option(0.5, "Where the middle is, as a share of the model's layers.", gt=0, le=1)
        layers: int = option(3, "How many layers, a twelfth of the model apart.", ge=1, le=9)

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self._layers: tuple[int, ...] = ()

    @classmethod
    def chosen(cls, judge: Mapping[str, Any], ability: Ability, own: Mapping[str, Any]) -> Self | None:
        if not judge["layers"] or not ability.layers:
            return None
        return cls(**{"form": judge["read_forms"][0], "layers": judge["layers"], **own})

    @classmethod
    def gives(cls, name: str) -> bool:
        return re.fullmatch(r"[^.]+\.(?:mean|last)\d+", name) is not None

    def wants(self, ability: Ability) -> Wants:
        if not ability.layers:
            raise OptionError(
                "this reader gives no hidden states; read with a small model inside the process (local/…), or leave "
                "the states out"
            )
        self._layers = middle(ability.layers, self.options.depth, self.options.layers)
        return Wants({self.options.form: frozenset(self._layers)})

    def states(self, read: Read) -> dict[str, Floats]:
        passage, of = read.passages[self.options.form], self.options.of
        known = passage.means if of == "mean" else passage.last
        return {f"{self.options.form}.{of}{layer}": known[layer] for layer in self._layers}


def middle(layers: int, depth: float, count: int) -> tuple[int, ...]:
    """`count` layers around `depth`, a twelfth of the model apart: 10, 12, 14 of 24."""
    step = max(1, round(layers / 12))
    first = round(layers * depth) - step * (count - 1) // 2
    wanted = {min(layers, max(1, first + step * i)) for i in range(count)}
    return tuple(sorted(wanted))


@readings.register
class Questions(Reading):
    """Log-odds of yes for short questions on one shared beginning."""

    kind = "questions"
    about = "log-odds of yes for short questions on one shared beginning"
    label = "checks"
    paper = "LLM-Rubric (Hashemi et al. 2024); RocketEval (2025); CheckEval"

    class Options(parts.Options):
        on: Literal["assistant", "tags"] = option("tags", "The form whose beginning the questions share.")
        checks: Mapping[str, str] = option({}, "Name and statement of what is to be confirmed with Yes or No.")

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self._asked = {
            f"check.{name}": Asked(self.options.on, f"Does this hold: {words.rstrip('.')}? Answer with Yes or No.")
            for name, words in self.options.checks.items()
        }

    @classmethod
    def chosen(cls, judge: Mapping[str, Any], ability: Ability, own: Mapping[str, Any]) -> Self | None:
        checks = {str(number): statement for number, statement in enumerate(judge["checks"], start=1)}
        return cls(**{"on": "assistant", "checks": checks, **own}) if checks or own else None

    @classmethod
    def gives(cls, name: str) -> bool:
        return name.startswith("check.")

    def wants(self, ability: Ability) -> Wants:
        return Wants({}, self._asked)

    def numbers(self, read: Read) -> dict[str, float]:
        return {name: float(read.answers[name][0] - read.answers[name][1]) for name in self._asked}


# Counts --------------------------------------------------------------------------------------------------------------

_WORD = re.compile(r"\w+|[^\w\s]")
_MOST_WORDS = 2000  # of a text that are compared in order: the comparison's time is their product


def surface(source: str, output: str) -> dict[str, float]:
    """Counts of an output beside what it was made from.

    words: log of the number of words. ratio: log of the output's words to the source's. from_source: share of the
    output's distinct words that the source has. of_source: share of the source's that the output has. order: similarity
    of the two as sequences of words, 0 to 1. copied: longest common subsequence's share of the output. variety:
    distinct words a word. repeated: share of word pairs that came before. sentence: mean words a sentence, log.
    """
    given, made = (_WORD.findall(text.casefold()) for text in (source, output))
    both = set(given) & set(made)
    pairs = Counter(itertools.pairwise(made))
    ends = max(1, sum(word in ".!?" for word in made))
    short, long = given[:_MOST_WORDS], made[:_MOST_WORDS]
    return {
        "words": math.log1p(len(made)),
        "ratio": math.log1p(len(made)) - math.log1p(len(given)),
        "from_source": len(both) / max(1, len(set(made))),
        "of_source": len(both) / max(1, len(set(given))),
        "order": float(Indel.normalized_similarity(short, long)),
        "copied": LCSseq.similarity(short, long) / max(1, len(long)),
        "variety": len(set(made)) / max(1, len(made)),
        "repeated": 1 - len(pairs) / max(1, pairs.total()),
        "sentence": math.log1p(len(made) / ends),
    }


@readings.register
class Surface(Reading):
    """What is counted without a model; see `surface`. Never silently: its share of a score is shown."""

    kind = "surface"
    label = "surface"
    about = "length, overlap with the source, repetition: counted without a model"

    @classmethod
    def chosen(cls, judge: Mapping[str, Any], ability: Ability, own: Mapping[str, Any]) -> Self | None:
        return cls() if judge["surface"] else None

    def wants(self, ability: Ability) -> Wants:
        return Wants()

    def numbers(self, read: Read) -> dict[str, float]:
        return {f"surface.{name}": value for name, value in surface(read.text.given, read.text.made).items()}


# Several together ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowReadings:
    """One row's numbers and states by name, and how the model took each token in the first form that was read."""

    numbers: dict[str, float]
    states: dict[str, Floats]
    tokens: TokenReading | None = None

    def surprise(self, text: str) -> list[tuple[str, float]]:
        """The text cut into the model's tokens, each with -log p in nats: a heat map of what is improbable."""
        if self.tokens is None:
            return []
        starts = (0, *self.tokens.ends)
        spans = zip(starts, self.tokens.ends, self.tokens.logp, strict=False)
        return [(text[start:end], -float(logp)) for start, end, logp in spans]


class Panel:
    """Readings that are taken together.

    Raises: OptionError without readings, if the reader cannot give what one of them needs, or if two of them give
    numbers of one name.
    """

    def __init__(self, readings: Sequence[Reading], reader: Reader) -> None:
        if not readings:
            raise OptionError("a panel needs at least one reading")
        self.readings = tuple(readings)
        self.reader = reader
        wants = [reading.wants(reader.ability) for reading in readings]
        self._forms: dict[str, set[int]] = {}
        for want in wants:
            for form, layers in want.forms.items():
                self._forms.setdefault(form, set()).update(layers)
        self._questions: dict[str, Asked] = {}
        for want in wants:
            for name, asked in want.questions.items():
                if self._questions.setdefault(name, asked) != asked:
                    raise OptionError(f"two readings ask different questions under the name {name!r}; rename one")

    def read(self, text: Text) -> RowReadings:
        """One row's readings. Raises: what the reader raises; OptionError for a row without an output."""
        reader, chat = self.reader, self.reader.chat
        passages, answers = {}, {}
        for form in dict.fromkeys([*self._forms, *(asked.on for asked in self._questions.values())]):
            if form in self._forms:
                passages[form] = reader.read(passage(form, text, chat), layers=sorted(self._forms[form]))
            ask = about if form == "tags" else after_reply
            for name, asked in self._questions.items():
                if asked.on == form:
                    answers[name] = reader.answer(ask(text, chat, asked.text, _YES_OR_NO))
        read = Read(text, passages, answers)
        numbers: dict[str, float] = {}
        states: dict[str, Floats] = {}
        for reading in self.readings:
            numbers |= reading.numbers(read)
            states |= reading.states(read)
        return RowReadings(numbers, states, next(iter(passages.values()), None))
