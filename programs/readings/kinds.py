"""The kinds of readings. Each declares what it needs read and makes numbers, or states, of it.

Several readings of one form share one pass through the model; questions share the pass of the form they are asked on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from ... import parts
from ...errors import OptionError
from ...parts import option
from ..registry import readings
from .forms import DIGITS, Text, digit_question
from .likelihood import lift, likelihoods
from .reader import Ability, Floats, TokenReading
from .surface import surface

__all__ = [
    "Asked",
    "Form",
    "Likelihood",
    "Questions",
    "Read",
    "Reading",
    "States",
    "Surface",
    "Wants",
    "expected_digit",
    "middle",
]

Form = Literal["assistant", "tags", "plain", "bare", "reverse"]
_ANSWERS = {"digit": DIGITS, "yes": (("Yes", " Yes", "yes"), ("No", " No", "no"))}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question on a form. kind: a digit from 1 to 5, or yes against no."""

    on: Literal["assistant", "tags"]
    text: str
    kind: Literal["digit", "yes"] = "digit"

    @property
    def answers(self) -> tuple[tuple[str, ...], ...]:
        """The answers to choose from, each with its spellings."""
        return _ANSWERS[self.kind]

    def number(self, logp: Floats) -> float:
        """The expected digit, 1 to 5, or the log-odds of yes."""
        return float(logp[0] - logp[1]) if self.kind == "yes" else expected_digit(logp)


def expected_digit(logp: Floats) -> float:
    """The mean of the digits 1 to `len(logp)` under their log-probabilities."""
    weights = np.exp(logp.astype(np.float64) - float(logp.max()))
    return float(weights @ np.arange(1, len(logp) + 1) / weights.sum())


@dataclass(frozen=True, slots=True)
class Wants:
    """What a reading needs of a row: forms with the layers whose states it uses, and questions by the number's name."""

    forms: Mapping[str, frozenset[int]] = field(default_factory=dict)
    questions: Mapping[str, Asked] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of one row. answers: question's name -> the log-probabilities of its answers."""

    text: Text
    passages: Mapping[str, TokenReading] = field(default_factory=dict)
    answers: Mapping[str, Floats] = field(default_factory=dict)


class Reading(ABC):
    """One kind of reading: a class with a `kind`, one line on what it is (`about`), and its `Options`, registered with
    `@readings.register`. Numbers and states have names that no other kind gives: they begin with the form that was
    read, or with the kind."""

    kind: ClassVar[str]
    about: ClassVar[str]
    paper: ClassVar[str] = ""

    class Options(parts.Options):
        """None."""

    def __init__(self, **given: object) -> None:
        """Raises OptionError for an option that it does not have."""
        self.options: Any = parts.read_options(type(self).Options, given, f"reading {self.kind}")

    @abstractmethod
    def wants(self, ability: Ability) -> Wants:
        """What must be read. Raises: OptionError if the reader cannot."""

    def numbers(self, read: Read) -> dict[str, float]:
        """The row's numbers by name."""
        return {}

    def states(self, read: Read) -> dict[str, Floats]:
        """The row's states by block."""
        return {}


@readings.register
class Likelihood(Reading):
    """How likely the model finds the text, in one or several forms; see `likelihoods` and `lift`."""

    kind = "likelihood"
    about = "how likely the model finds the text, in one or several forms"
    paper = "GPTScore (Fu et al. 2023); BARTScore (Yuan et al. 2021)"

    class Options(parts.Options):
        forms: Annotated[tuple[Form, ...], Field(min_length=1)] = option(
            ("assistant", "bare"), "How the row is put before the model; with bare, the gain over the text alone, too."
        )

    def wants(self, ability: Ability) -> Wants:
        return Wants({form: frozenset() for form in self.options.forms})

    def numbers(self, read: Read) -> dict[str, float]:
        found: dict[str, float] = {}
        of_form = {form: likelihoods(read.passages[form]) for form in self.options.forms}
        for form, numbers in of_form.items():
            found |= {f"{form}.{name}": value for name, value in numbers.items()}
            if "bare" in of_form and form not in ("bare", "reverse"):
                found[f"{form}.lift"] = lift(numbers, of_form["bare"])
        return found


@readings.register
class States(Reading):
    """Hidden states of the middle layers: the mean over the text's tokens, or the last token's."""

    kind = "states"
    about = "hidden states of the middle layers: the mean over the text's tokens, or the last token's"
    paper = "BoRP; INSPECTOR"

    class Options(parts.Options):
        form: Form = option("assistant", "How the row is put before the model.")
        of: Literal["mean", "last"] = option("mean", "Mean over the text's tokens, or the last token.")
        depth: float = option(0.5, "Where the middle is, as a share of the model's layers.", gt=0, le=1)
        layers: int = option(3, "How many layers, a twelfth of the model apart.", ge=1, le=9)

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self._layers: tuple[int, ...] = ()

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


@readings.register
class Questions(Reading):
    """Expected digits, or log-odds of yes, for short questions on one shared beginning."""

    kind = "questions"
    about = "expected digits, or log-odds of yes, for short questions on one shared beginning"
    paper = "LLM-Rubric (Hashemi et al. 2024); RocketEval (2025); CheckEval"

    class Options(parts.Options):
        on: Literal["assistant", "tags"] = option("tags", "The form whose beginning the questions share.")
        aspects: Mapping[str, str] = option({}, "Name and definition of what is asked for as a digit.")
        checks: Mapping[str, str] = option({}, "Name and statement of what is to be confirmed with Yes or No.")

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        on = self.options.on
        asked = {f"digit.{n}": Asked(on, digit_question(n, means)) for n, means in self.options.aspects.items()}
        for name, statement in self.options.checks.items():
            words = f"Does this hold: {statement.rstrip('.')}? Answer with Yes or No."
            asked[f"check.{name}"] = Asked(on, words, "yes")
        self._asked = asked

    def wants(self, ability: Ability) -> Wants:
        return Wants({}, self._asked)

    def numbers(self, read: Read) -> dict[str, float]:
        return {name: asked.number(read.answers[name]) for name, asked in self._asked.items()}


@readings.register
class Surface(Reading):
    """What is counted without a model; see `surface`. Never silently: its share of a score is shown."""

    kind = "surface"
    about = "length, overlap with the source, repetition: counted without a model"

    def wants(self, ability: Ability) -> Wants:
        return Wants()

    def numbers(self, read: Read) -> dict[str, float]:
        return {f"surface.{name}": value for name, value in surface(read.text.given, read.text.made).items()}


def middle(layers: int, depth: float = 0.5, count: int = 3) -> tuple[int, ...]:
    """`count` layers around `depth`, a twelfth of the model apart: 10, 12, 14 of 24."""
    step = max(1, round(layers / 12))
    first = round(layers * depth) - step * (count - 1) // 2
    found = {min(layers, max(1, first + step * i)) for i in range(count)}
    return tuple(sorted(found))
