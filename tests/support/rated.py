"""Rows with human scores alone, for what looks at numbers."""

from collections.abc import Sequence
from typing import Any

import dspy


def rated(human: Sequence[float] | Any, per_group: int = 2) -> list[dspy.Example]:
    """One row a score, `per_group` of a document in turn, of four systems."""
    return [
        dspy.Example(
            source="", output=f"o{i}", score=float(score), group=f"g{i // per_group}", document=f"g{i // per_group}",
            system=f"s{i % 4}", context=None, reference=None,
        )
        for i, score in enumerate(human)
    ]  # fmt: skip
