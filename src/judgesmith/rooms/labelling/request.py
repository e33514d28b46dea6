"""The options of one labelling session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Order = Literal["file", "random", "suggest", "decide"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRequest:
    """Rows to label, the question, and the order. None leaves an option as the store has it."""

    store: Path
    rows: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    """Column names by role."""
    kind: str | None = None
    scale: tuple[float, float] | None = None
    categories: tuple[str, ...] = ()
    """Worst first."""
    aspects: tuple[str, ...] = ()
    why: bool = False
    guidelines: Path | None = None
    n: int | None = None
    order: Order | None = None
    """None: as of the file; with `decide` as that needs it."""
    chance: str | None = None
    """Probabilities by the words of a column."""
    decide: str | None = None
    """The gate that rows are labelled for."""
    judge: str | None = None
    """The judge that the gate is for: a column; None: the verdicts of `score`."""
    repeats: float | None = None
    settle: bool = False
    """Decide the rows that split their raters."""
    seed: int = 0
