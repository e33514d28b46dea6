"""Measure what pooled agreement hides: agreement within one system, within one document, and by systems' mean labels.

A judge may only recognise who wrote a text. Then the mean label of each system does as well without reading anything,
and two versions by one system cannot be told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import dspy
import numpy as np

from judgesmith.agreement.correlation import Level
from judgesmith.agreement.metric import AgreementValue
from judgesmith.agreement.objectives import Objective, Q
from judgesmith.optimizers.examples import Vector, humans, rows_of

#: What is compared at each level, in words.
COMPARED: Mapping[Level, str] = {
    "within": "within systems",
    "sample": "within documents",
}
#: Rows beside the first of their system, and documents of several rows, that a level takes at least.
FEWEST_REPEATED = 5
#: The same as a report's fields, and that of the systems' mean labels.
LEVELS = (*(words.replace(" ", "_") for words in COMPARED.values()), "system_means")


@dataclass(frozen=True, slots=True)
class Levels:
    """Of a judge on held-out rows; empty where rows name no systems, or where each document has one row.

    inside: agreement within systems ("within") and documents ("sample"). system_means: agreement of each system's mean
    label among the training rows, inside the held-out part or inside each fold.
    """

    inside: Mapping[Level, AgreementValue] = field(default_factory=dict)
    system_means: AgreementValue | None = None

    def notes(self, heldout: AgreementValue) -> list[str]:
        """Describe the levels in sentences.

        Args:
            heldout: The judge's own agreement, over all rows.
        """
        result = [
            f"{COMPARED[level]}, where only rows of one {_one_of(level)} are compared: Q {agreement.span}"
            f"{_against_chance(agreement)}"
            for level, agreement in self.inside.items()
            if not agreement.reason
        ]
        if self.system_means is not None and not self.system_means.reason:
            means = f"each system's mean label alone, which reads no text, reaches Q {self.system_means.span}"
            worse = self.system_means.value >= heldout.value
            result.append(
                f"{means}: the judge is no better than that" if worse else means
            )
        return result


def _against_chance(agreement: AgreementValue) -> str:
    """Return what an interval of Q says of such rows, "" if it lies above 0 or there is none."""
    if agreement.high < 0:
        return "; the interval lies below 0, so that among such rows this judge runs against people"
    if agreement.low <= 0:
        return "; the interval holds 0, so that nothing shows that this judge can tell such rows apart"
    return ""


def _one_of(level: Level) -> str:
    """Return what the rows that a level compares have in common: a system or a document."""
    return COMPARED[level].removeprefix("within ").removesuffix("s")


def levels_of(objective: Objective, examples: Sequence[dspy.Example]) -> list[Level]:
    """Those that rows have beside the pooled one of Q; none for other objectives and levels.

    A few systems or documents of several rows say nothing: two rows of one document agree or do not.
    """
    rows = rows_of(examples)
    if objective.name != Q.name or objective.level != "pooled":
        return []
    systems = Counter(rows.systems or ())
    documents = Counter(rows.documents)
    repeated = len(examples) - len(systems)
    levels: list[Level] = []
    if len(systems) > 1 and repeated >= FEWEST_REPEATED:
        levels.append("within")
    if sum(count > 1 for count in documents.values()) >= FEWEST_REPEATED:
        levels.append("sample")
    return levels


def system_means(
    train: Sequence[dspy.Example], heldout: Sequence[dspy.Example]
) -> Vector:
    """Score each row by its system's mean label in the training rows; by the mean of all for an unseen system."""
    scores = Counter[str]()
    counts = Counter[str]()
    for example, score in zip(train, humans(train).tolist(), strict=True):
        scores[example.system] += score
        counts[example.system] += 1
    level = float(humans(train).mean())
    return np.array(
        [
            scores[e.system] / counts[e.system] if counts[e.system] else level
            for e in heldout
        ]
    )
