"""Levels: what is correlated, and what is said of it in tables and messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from judgesmith.agreement.coefficients import Level
from judgesmith.errors import OptionError


@dataclass(frozen=True)
class LevelFacts:
    """What is said of a level.

    title: in tables. unit: what a value rests on, plural. where: of a measure of this level, in a sentence. compared:
    what it does with systems or documents that have to be named. needs: the ids of rows that it needs.
    """

    name: Level
    title: str
    unit: str
    where: str
    compared: str = ""
    needs: Literal["documents", "systems"] | None = None
    constant: str = ""
    """Where scores are constant that have no value, in a sentence."""


_FACTS = (
    LevelFacts("pooled", "pooled", "rows", "over all rows together"),
    LevelFacts(
        "within",
        "within systems",
        "rows",
        "within systems",
        "compares the rows of one system",
        "systems",
        " inside every system",
    ),
    LevelFacts(
        "sample",
        "sample",
        "documents",
        "within documents",
        "correlates within documents",
        "documents",
    ),
    LevelFacts(
        "system",
        "system",
        "systems",
        "over systems' means",
        "correlates the systems' means",
        "systems",
        " across systems",
    ),
)
LEVELS: dict[str, LevelFacts] = {facts.name: facts for facts in _FACTS}


def level_of(name: str) -> LevelFacts:
    """Return what is said of a level.

    Raises:
        OptionError: If the name is unknown.
    """
    if name not in LEVELS:
        raise OptionError(f"level {name!r} is not one of {', '.join(LEVELS)}")
    return LEVELS[name]
