"""From a judge's raw 0–100 to the category that people would choose, or to pass and fail: cut points."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from ..errors import ArtifactError
from ..signatures.values import CLOSED

MOST = 20


@dataclass(frozen=True, slots=True)
class Decision:
    """Categories, worst first, and where each after the first begins, in raw percent. The cuts increase, not always
    strictly: a category whose cut is that of the next one is never chosen. binary: the two categories are fail and
    pass, whatever they are called."""

    __pydantic_config__: ClassVar[ConfigDict] = CLOSED

    names: tuple[Annotated[str, Field(max_length=200)], ...]
    cuts: tuple[float, ...]
    binary: bool = False

    def __post_init__(self) -> None:
        if not 2 <= len(self.names) <= MOST or len(self.cuts) != len(self.names) - 1:
            raise ArtifactError(f"a decision needs 2 to {MOST} categories and one cut less")
        if len(set(self.names)) < len(self.names) or not all(self.names):
            raise ArtifactError("a decision's categories must be different words")
        if not all(math.isfinite(cut) for cut in self.cuts) or any(b < a for a, b in itertools.pairwise(self.cuts)):
            raise ArtifactError("a decision's cuts must be finite numbers that do not decrease")
        if self.binary and len(self.names) != 2:
            raise ArtifactError("a decision between pass and fail has two categories")

    def place(self, percent: float) -> int:
        """The category's place, from 0."""
        return bisect_right(self.cuts, percent)

    def category(self, percent: float) -> str:
        return self.names[self.place(percent)]

    def passed(self, percent: float) -> bool | None:
        """Whether it passes; None where there are categories and not pass and fail."""
        return bool(self.place(percent)) if self.binary else None

    def __str__(self) -> str:
        cuts = (f"{name} from {cut:.1f}" for name, cut in zip(self.names[1:], self.cuts, strict=True))
        return f"{self.names[0]}, {', '.join(cuts)} of 100"
