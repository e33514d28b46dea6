"""How sure a score is: the interval that the human rating lies in, by conformal prediction.

The numbers come from errors on rows that the judge had not learnt from (`optimizers.fitting.sureness`): how far off it
is expected to be at a raw score, and how many times that a stated share of new rows is off at most.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import ConfigDict, Field

from ..errors import ArtifactError
from ..signatures.values import CLOSED, Scale, ScoreInterval

__all__ = ["COVERAGE", "Sureness"]

#: The coverage of a verdict's interval.
COVERAGE = 0.9


@dataclass(frozen=True, slots=True)
class Sureness:
    """error: the expected distance from human ratings at these raw percents (strictly increasing), on the user's scale
    and above 0; linear between, constant outside. times: for each coverage (strictly increasing, in 0..1) how many
    times that distance the interval reaches to either side; None: there are too few documents to promise so much, and
    the interval is the whole scale. rows, documents: what this rests on."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    percent: Annotated[tuple[Annotated[float, Field(ge=0, le=100)], ...], Field(min_length=1, max_length=64)]
    error: Annotated[tuple[float, ...], Field(max_length=64)]
    coverage: Annotated[tuple[float, ...], Field(min_length=1, max_length=64)]
    times: Annotated[tuple[float | None, ...], Field(max_length=64)]
    rows: Annotated[int, Field(ge=1)]
    documents: Annotated[int, Field(ge=1)]

    def __post_init__(self) -> None:
        if len(self.percent) != len(self.error) or len(self.coverage) != len(self.times):
            raise ArtifactError("the sureness needs an error for each percent, and a multiple for each coverage")
        if not all(math.isfinite(e) and e > 0 for e in self.error):
            raise ArtifactError("the sureness needs errors above 0")
        if not all(t is None or (math.isfinite(t) and t >= 0) for t in self.times):
            raise ArtifactError("the sureness needs multiples of 0 or more, or none")
        if not all(0 < c < 1 for c in self.coverage):
            raise ArtifactError("the sureness needs coverages between 0 and 1")
        if any(b <= a for knots in (self.percent, self.coverage) for a, b in itertools.pairwise(knots)):
            raise ArtifactError("the sureness's percents and coverages must strictly increase")

    def expected_error(self, percent: float) -> float:
        return float(np.interp(percent, self.percent, self.error))

    def interval(self, percent: float, score: float, scale: Scale, coverage: float = COVERAGE) -> ScoreInterval | None:
        """The interval around a score, cut at the ends of the scale; None for a coverage that was not prepared."""
        if coverage not in self.coverage:
            return None
        error, times = self.expected_error(percent), self.times[self.coverage.index(coverage)]
        half = math.inf if times is None else times * error
        return ScoreInterval(max(scale.low, score - half), min(scale.high, score + half), coverage, error)
