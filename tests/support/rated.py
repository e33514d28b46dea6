"""Rows with human scores alone, for what looks at numbers."""

from collections.abc import Sequence
from typing import Any

import dspy
import numpy as np


def rated(human: Sequence[float] | Any, per_group: int = 2) -> list[dspy.Example]:
    """One row a score, `per_group` of a document in turn, of four systems."""
    return [
        dspy.Example(
            source="",
            output=f"o{i}",
            score=float(score),
            group=f"g{i // per_group}",
            document=f"g{i // per_group}",
            system=f"s{i % 4}",
            context=None,
            reference=None,
        )
        for i, score in enumerate(human)
    ]


def table(
    documents: int, systems: int, seed: int = 0, noise: float = 1.0
) -> tuple[Any, Any, Any, Any]:
    """A judge and people, rounded so that there are ties, with documents and systems that differ."""
    rng = np.random.default_rng(seed)
    doc, sys = (codes.ravel() for codes in np.indices((documents, systems)))
    human = (
        rng.normal(size=documents)[doc]
        + 0.5 * rng.normal(size=systems)[sys]
        + rng.normal(size=len(doc))
    )
    return (
        np.round(human + noise * rng.normal(size=len(doc)), 1),
        np.round(human),
        doc,
        sys,
    )
