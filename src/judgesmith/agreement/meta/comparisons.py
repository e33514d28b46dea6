"""Differences between judges, those of an aspect and level tested together."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Coefficient, Level, Vector
from judgesmith.agreement.differences import (
    Difference,
    OtherSystems,
    Procedure,
    differences_within,
)
from judgesmith.agreement.meta.inputs import MANY, Aspect, EvaluationOptions
from judgesmith.agreement.resampling import Agreement, Measure

ALL_PAIRS = (
    8  # judges up to which all pairs are tested, beyond it each against the first
)
Pair = tuple[str, str]


def comparisons(
    judges: Sequence[str],
    aspects: Sequence[Aspect],
    levels: Sequence[Level],
    options: EvaluationOptions,
    notes: list[str],
) -> list[dict[str, Any]]:
    """Return every difference between two judges, with an interval and a p-value that always agree."""
    if len(judges) < 2:
        return []
    result: list[dict[str, Any]] = []
    for aspect, level in itertools.product(aspects, levels):
        if len(aspect.y) > MANY:
            notes.append(
                f"judges are not compared above {MANY:,} rows; every difference that matters is significant"
            )
            continue
        here = [judge for judge in judges if judge in aspect.x]
        pairs = list(itertools.combinations(here, 2))
        if len(here) > ALL_PAIRS:
            pairs = [(here[0], other) for other in here[1:]]
            notes.append(
                f"{len(here)} judges: each is tested against the first, {here[0]!r}, not every pair"
            )
        tested = _Family(aspect, level, options).differences(pairs)
        about = {
            "aspect": aspect.name,
            "level": level,
            "coefficient": options.compare_by,
        }
        result += [{"a": a, "b": b} | about | _row(tested[a, b]) for a, b in pairs]
    return result


def _row(difference: Difference) -> dict[str, Any]:
    names = ("low", "high", "p", "error", "freedom", "reason")
    return {"difference": difference.value, "n": difference.documents} | {
        name: getattr(difference, name) for name in names
    }


def _alone(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Return a group for each pair."""
    return [[pair] for pair in pairs]


class _Family:
    """The judges of one aspect at one level."""

    def __init__(
        self, aspect: Aspect, level: Level, options: EvaluationOptions
    ) -> None:
        coefficient: Coefficient = (
            "sum" if options.compare_by == "q" else options.compare_by
        )
        self.x, self.options = aspect.x, options
        documents = aspect.doc if level != "system" else aspect.units
        self.measure = Measure(
            aspect.y,
            documents=documents,
            systems=aspect.sys,
            level=level,
            coefficient=coefficient,
        )

    def differences(self, pairs: Sequence[Pair]) -> dict[Pair, Difference]:
        """Return the difference of every pair.

        Judges that scored the same rows are resampled together; where they did not, every pair is measured on the rows
        that both scored, and Bonferroni counts the pairs.
        """
        comparable, rows = set(), set()
        for judge in dict.fromkeys(itertools.chain(*pairs)):
            if not np.isnan(self._value(judge)):
                comparable.add(judge)
                rows.add(np.isnan(self.x[judge]).tobytes())
        sound = list(filter(comparable.issuperset, pairs))
        together = self.measure.total or len(rows) == 1
        tested = self._tested([sound]) if together else self._tested(_alone(sound))
        if all(one.reason for one in tested.values()):
            tested = self._tested(_alone(sound))
        return tested | self._tested(
            _alone(pair for pair in pairs if pair not in tested)
        )

    def _value(self, judge: str) -> float:
        return Agreement.of([self.x[judge]], self.measure).values[0]

    def _tested(self, groups: Sequence[Sequence[Pair]]) -> dict[Pair, Difference]:
        """Return differences of the pairs of each group together."""
        procedure = Procedure(
            self.options.rounds,
            self.options.confidence,
            self.options.seed,
            max(1, len(groups)),
        )
        tested: dict[Pair, Difference] = {}
        for pairs in filter(None, groups):
            names = list(dict.fromkeys(itertools.chain(*pairs)))
            scores = [self.x[name] for name in names]
            agreement = Agreement.of(scores, self.measure)
            others = (
                OtherSystems.of(scores, self.measure)
                if self.options.new_systems
                else None
            )
            contrasts = np.stack(
                [self._contrast(pair, names, agreement.values) for pair in pairs]
            )
            tested |= zip(
                pairs,
                differences_within(agreement, contrasts, procedure, others),
                strict=True,
            )
        return tested

    def _contrast(
        self, pair: Pair, names: Sequence[str], values: Sequence[float]
    ) -> Vector:
        """Return the weights of judges in a difference; negative agreements are turned for absolute ones."""
        weights = np.zeros(len(names))
        for judge, sign in zip(pair, (1.0, -1.0), strict=True):
            place = names.index(judge)
            weights[place] = (
                -sign if self.options.absolute and values[place] < 0 else sign
            )
        return weights
