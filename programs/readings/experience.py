"""Experience with readings from earlier human ratings: the start of a judge that has seen no label.

An experience is fitted once to many tasks (`judgesmith study experience`). For every reading it holds the mean and the
spread that it had there, and its weight in a score; a task's own labels move on from that. The part learnt from the
hidden states of a model holds for its file alone; the part learnt from its numbers is taken for other models, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from judgesmith import parts
from judgesmith.errors import OptionError
from judgesmith.programs.readings.head import LinearHead, Number, Readings, Vector, over
from judgesmith.programs.readings.kinds import TRAINED

_Numbers = Annotated[tuple[Number, ...], Field(min_length=1, max_length=20_000)]
_Text = Annotated[str, Field(max_length=400)]
#: Prefix of the readings that compare an output with its source.
FACTS = "facts."
#: Names of aspects whose ratings are of facts that the source has.
_OF_FACTS = re.compile(
    r"consist[a-z]+|faithful|factual|\bfacts?\b|grounded|hallucinat|entail|supported|attribution|attributable|truthful"
)
#: What such ratings may reward, the likeliest first: that the source says it in the same words, in likely words, and
#: all values of a table; or that it has the names, numbers and dates. Reading -> (usual mean, usual spread, weight);
#: experiments/results/facts.md.
FACTUAL = (
    {
        "facts.pairs": (0.75, 0.22, 0.14),
        "facts.triples": (0.67, 0.26, 0.14),
        "facts.supported": (0.83, 0.21, 0.14),
        "facts.weakest": (0.74, 0.27, 0.14),
        "facts.context": (0.63, 0.29, 0.14),
        "facts.values": (0.9, 0.19, 0.42),
        "assistant.mean": (-1.7, 0.98, 0.28),
    },
    {"facts.details": (0.92, 0.18, 1.0)},
)
#: Without labels, how much such a rating is what all ratings reward.
_FACTUAL_SHARE = 0.5
#: Names of aspects whose ratings compare an output with the right answer, and how definitions say so. Of other aspects
#: labels tell.
_OF_ANSWERS = re.compile(
    r"correct|accura|\banswers?\b|\bright\b|solution|solve|match|equival|similar"
)
_TO_ANSWERS = re.compile(
    r"(right|correct|expected|true|gold|reference) (answer|solution|one\b)"
    r"|(match|same as|agree|compare)\w* .{0,30}\b(reference|answer key)"
)
#: What they reward: the share of the reference's words. Reading -> (usual mean, usual spread, weight);
#: experiments/results/facts.md.
RIGHT = {"facts.of_reference": (0.5, 0.35, 1.0)}
#: Without labels, how much such a rating is what all ratings reward.
_RIGHT_SHARE = 0.3


class StateExperience(parts.Options):
    """Means, spreads and weights of a block's dimensions."""

    means: _Numbers
    spreads: _Numbers
    weights: _Numbers

    @model_validator(mode="after")
    def _one_width(self) -> Self:
        if not len(self.means) == len(self.spreads) == len(self.weights):
            raise ValueError("means, spreads and weights have different lengths")
        return self

    def added(self, states: NDArray[Any]) -> Vector:
        """Return what the states of each row (rows x width) add to a score of unit spread."""
        slopes = over(np.array(self.weights), np.array(self.spreads))
        return np.asarray((states.astype(np.float64) - np.array(self.means)) @ slopes)


class Weights(parts.Options):
    """Other weights of standardised readings and of blocks' dimensions, with the same means and spreads."""

    numbers: dict[str, Number] = Field(default_factory=dict, max_length=2_000)
    states: dict[str, _Numbers] = Field(default_factory=dict, max_length=64)

    def without(self, names: Collection[str]) -> Weights:
        """Return the weights without those of some readings and blocks."""
        numbers = {name: w for name, w in self.numbers.items() if name not in names}
        states = {name: w for name, w in self.states.items() if name not in names}
        return Weights(numbers=numbers, states=states)


class Card(parts.Options):
    """The origin of an experience. reader: the model that read the rows. sets: the licence of each set."""

    reader: _Text = ""
    date: _Text = ""
    sets: dict[str, _Text] = Field(default_factory=dict)


class Experience(parts.Options):
    """Experience as a file holds it; empty without a file.

    model: SHA-256 of the reader's weights. level, points: the mean human score in percent, and how many percent one
    unit of a score is worth, which is its spread on other tasks. numbers: reading -> (mean, spread, weight of the
    standardised reading). trained: the same where the trained reader's score is one of them. states: the same by block.
    """

    format: Literal["judgesmith.experience/1"] = "judgesmith.experience/1"
    model: _Text = ""
    card: Card = Card()
    level: Number = 50.0
    points: Number = 0.0
    numbers: dict[str, tuple[Number, Number, Number]] = Field(
        default_factory=dict, max_length=2_000
    )
    trained: dict[str, tuple[Number, Number, Number]] = Field(
        default_factory=dict, max_length=2_000
    )
    states: dict[str, StateExperience] = Field(default_factory=dict, max_length=64)
    ranges: dict[str, tuple[Number, Number]] = Field(
        default_factory=dict, max_length=2_100
    )
    pooled: Weights | None = None
    """What tells all texts apart, systems among them; the other weights tell those of one system apart."""
    factual: tuple[dict[str, tuple[Number, Number, Number]], ...] = Field(
        default=(), max_length=8
    )
    """What ratings of facts may reward, the likeliest first (`FACTUAL`); empty for other ratings."""
    right: bool = False
    """Whether ratings are expected to compare with a reference that is the right answer (`RIGHT`)."""

    def of_aspect(self, aspect: str, definition: str = "") -> Experience:
        """Return the experience for an aspect: with what its words say that ratings reward.

        Facts (`FACTUAL`) are told by the name, a right answer (`RIGHT`) by the name or the definition.
        """
        if not self.numbers:
            return self
        found = dict[str, Any]()
        if _OF_FACTS.search(aspect.casefold()):
            found["factual"] = self.factual or FACTUAL
        named = _OF_ANSWERS.search(aspect.casefold())
        if named or _TO_ANSWERS.search(definition.casefold()):
            found["right"] = True
        return self.model_copy(update=found) if found else self

    def of_numbers(self) -> Experience:
        """Return what holds for the readings of other models, too."""
        pooled = self.pooled and self.pooled.without(self.pooled.states)
        return self.model_copy(update={"states": {}, "pooled": pooled})

    def head(self, names: Collection[str], blocks: Collection[str]) -> LinearHead:
        """Return the head, in percent, of a judge without labels that has these readings and these blocks of states."""
        priors = self.trained if TRAINED in names else self.numbers
        numbers = {name: prior for name, prior in priors.items() if name in names}
        states = {}
        for name, block in self.states.items():
            if name in blocks:
                means = np.array(block.means)
                spreads = np.array(block.spreads)
                states[name] = (means, spreads, np.array(block.weights))
        head = LinearHead.of_standardised(numbers, states)
        if facts := self._likeliest(names):
            rewarded = LinearHead.of_standardised(facts, {})
            head = head.scaled(_FACTUAL_SHARE) + rewarded.scaled(1 - _FACTUAL_SHARE)
        right = {name: prior for name, prior in RIGHT.items() if name in names}
        if self.right and right:
            rewarded = LinearHead.of_standardised(right, {})
            head = head.scaled(_RIGHT_SHARE) + rewarded.scaled(1 - _RIGHT_SHARE)
        head = head.scaled(self.points, self.level)
        return replace(head, limits=self._limits(head))

    def _likeliest(
        self, names: Collection[str]
    ) -> dict[str, tuple[Number, Number, Number]]:
        """Return what ratings of facts most likely reward of these readings; nothing where none counts facts."""
        priors = self.factual[0] if self.factual else {}
        numbers = {name: prior for name, prior in priors.items() if name in names}
        return numbers if any(name.startswith(FACTS) for name in numbers) else {}

    def of_seen(self, table: Readings) -> Experience:
        """Return the experience without the weights of readings that most rows have beyond their ranges."""
        numbers = dict(self.numbers)
        states = dict(self.states)
        beyond = set[str]()
        for name, ends in self.ranges.items():
            if name in numbers and name in table.names:
                if _mostly_beyond(table.columns([name])[:, 0], ends):
                    numbers[name] = (*numbers[name][:2], 0.0)
                    beyond.add(name)
            elif name in states and name in table.states:
                block = states[name]
                if _mostly_beyond(block.added(table.states[name]), ends):
                    nothing = (0.0,) * len(block.weights)
                    states[name] = block.model_copy(update={"weights": nothing})
                    beyond.add(name)
        pooled = self.pooled and self.pooled.without(beyond)
        seen = {"numbers": numbers, "states": states, "pooled": pooled}
        return self.model_copy(update=seen)

    def _limits(self, head: LinearHead) -> dict[str, tuple[float, float]]:
        """Return the least and the most percent that each reading and each block may add."""
        limits = dict[str, tuple[float, float]]()
        for name, (low, high) in self.ranges.items():
            if name in head.states:
                limits[name] = (self.points * low, self.points * high)
            elif name in head.weights:
                mean, weight = head.weights[name]
                ends = sorted((weight * (low - mean), weight * (high - mean)))
                limits[name] = (ends[0], ends[1])
        return limits


def _mostly_beyond(values: Vector, ends: tuple[float, float]) -> bool:
    present = values[np.isfinite(values)]
    beyond = (present < ends[0]) | (present > ends[1])
    return len(present) > 0 and float(beyond.mean()) > 0.5


def experience_of(model: str, name: str = "") -> Experience:
    """Return the experience with a model's readings.

    Args:
        model: The SHA-256 of its file.
        name: A file, `none`, or empty for judgesmith's own: all of it for the models it was learnt from, the numbers
            alone for others.

    Raises:
        OptionError: For a file that holds no experience.
    """
    if name == "none":
        return Experience()
    experiences = [read_experience(Path(name))] if name else _shipped()
    return next(
        (experience for experience in experiences if experience.model == model),
        experiences[0].of_numbers(),
    )


def read_experience(path: Path) -> Experience:
    """Read an experience.

    Raises:
        OptionError: For a file that holds none.
    """
    try:
        return Experience.model_validate_json(path.read_bytes())
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise OptionError(f"{path} is not an experience: {str(error)[:200]}") from None


@cache
def _shipped() -> list[Experience]:
    """Return judgesmith's own experiences, that from most sets and the larger model first."""
    folder = files(__package__) / "learnt"
    experiences = [
        Experience.model_validate_json(file.read_bytes()) for file in folder.iterdir()
    ]
    return sorted(
        experiences,
        key=lambda experience: (len(experience.card.sets), len(str(experience.states))),
        reverse=True,
    )
