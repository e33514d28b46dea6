"""From the raw scores of two outputs to the chance that people prefer one of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import ConfigDict

from ..errors import ArtifactError
from ..signatures.values import CLOSED, Verdict

__all__ = ["BradleyTerry", "Preference"]


@dataclass(frozen=True, slots=True)
class BradleyTerry:
    """Chances of a preference by the lead of one output over the other: in raw percent over `width`, the log-odds that
    people who prefer one prefer the one that leads. tie: how likely a tie is beside either, where neither leads; 0
    where people gave none. Source: Bradley & Terry 1952; ties as in Davidson 1970."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    width: float
    tie: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.width) and self.width > 0 and math.isfinite(self.tie) and self.tie >= 0):
            raise ArtifactError("a preference needs a finite width above 0 and a tie of 0 or more")

    def chances(self, a: float, b: float) -> tuple[float, float, float]:
        """(first preferred, tie, second preferred), which sum to 1, from raw percents; NaN where one is."""
        if math.isnan(a) or math.isnan(b):
            return math.nan, math.nan, math.nan
        lead = min(100.0, max(-100.0, (a - b) / self.width)) / 2
        parts = math.exp(lead), self.tie, math.exp(-lead)
        return parts[0] / sum(parts), parts[1] / sum(parts), parts[2] / sum(parts)

    def __str__(self) -> str:
        return f"a lead of {self.width * math.log(3):.1f} of 100 is right in three of four preferences"


@dataclass(frozen=True, slots=True)
class Preference:
    """Which of two outputs people would prefer. a, tie, b: chances, NaN where an output has no score; verdicts: on
    each."""

    a: float
    tie: float
    b: float
    verdicts: tuple[Verdict, Verdict]

    @property
    def winner(self) -> Literal["a", "b", "tie"] | None:
        """The likeliest; None where an output has no score."""
        if math.isnan(self.a):
            return None
        if self.tie >= max(self.a, self.b) or self.a == self.b:
            return "tie"
        return "a" if self.a > self.b else "b"
