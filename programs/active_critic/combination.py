"""A fitted overall score: the weighted mean of criterion scores, with OS-E's own score where that helps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints

from ...errors import OptionError
from ...parts import Options, option
from ...signatures.values import CriterionScore


class SavedCombination(Options):
    """A combination as a saved judge holds it."""

    overall: float = option(0.0, "The share of OS-E's score.", ge=0, lt=1)
    criteria: Annotated[
        dict[Annotated[str, StringConstraints(min_length=1, max_length=80)], Annotated[float, Field(ge=0, le=1)]],
        Field(min_length=1, max_length=64, description="Weights of the criteria, by name."),
    ]


@dataclass(frozen=True, slots=True)
class Combination:
    """Weights of the criteria by name, each in [0, 1] and some above 0, and the share of OS-E's score, in [0, 1).

    There is no intercept: agreement does not see one, and the calibration learns the user's scale anyway. Raises
    OptionError for other weights.
    """

    criteria: Mapping[str, float]
    overall: float = 0.0

    def __post_init__(self) -> None:
        for name, weight in self.criteria.items():
            if not 0 <= weight <= 1:  # NaN is refused, too
                raise OptionError(f"the weight of {name!r} must lie in [0, 1]; got {weight!r}")
        if not any(self.criteria.values()):
            raise OptionError("no criterion has a weight above 0")
        if not 0 <= self.overall < 1:
            raise OptionError(f"the share of the overall score must lie in [0, 1); got {self.overall!r}")

    def __call__(self, scores: Mapping[str, CriterionScore], overall: float = math.nan) -> float:
        """The combined percent in [0, 100].

        A criterion without a score leaves its weight to the others, as in a plain mean. NaN where none with a weight
        has a score, or where OS-E's is asked for and is NaN: half of a fitted rule is another rule.
        """
        there = [
            (weight, scores[name].score)
            for name, weight in self.criteria.items()
            if weight > 0 and name in scores and not math.isnan(scores[name].score)
        ]
        if not there:
            return math.nan
        percent = sum(w * s for w, s in there) / sum(w for w, _ in there)
        # The least weights that a float can hold are too coarse for a quotient.
        percent = min(max(s for _, s in there), max(min(s for _, s in there), percent))
        if self.overall:
            percent = self.overall * overall + (1 - self.overall) * percent
        return percent if math.isnan(percent) else min(100.0, max(0.0, percent))
