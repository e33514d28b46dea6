"""Differences between judges, those of an aspect and level tested together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from judgesmith.agreement.coefficients import title_of
from judgesmith.agreement.correlation import Level, Vector
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
#: The share of the most documents of a pair that one has to have to be tested with the others.
ALIKE = 0.8
Pair = tuple[str, str]
#: The difference of two judges of which one has no value.
UNTESTED = Difference(math.nan, math.nan, math.nan, math.nan, 0, 0, 0)


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
    by = options.compared_by
    if by not in options.reported:
        notes.append(
            f"judges are tested by {title_of(by)}, which stands in no table of agreement; --coefficient {by} adds it, "
            "--compare-by tests by another"
        )
    result: list[dict[str, Any]] = []
    for aspect, level in itertools.product(aspects, levels):
        if len(aspect.y) > MANY:
            notes.append(
                f"judges are not compared above {MANY:,} rows; every difference that matters is significant"
            )
            continue
        here = [judge for judge in judges if judge in aspect.x]
        unfit = {judge: aspect.unfit(judge, options.compared_by) for judge in here}
        pairs = list(itertools.combinations(here, 2))
        if len(here) > ALL_PAIRS:
            pairs = [(here[0], other) for other in here[1:]]
            notes.append(
                f"{len(here)} judges: each is tested against the first, {here[0]!r}, not every pair"
            )
        family = _Family(aspect, level, options)
        fit = [(a, b) for a, b in pairs if not (unfit[a] or unfit[b])]
        tested = family.differences(fit)
        notes += _uneven(aspect, fit, family.together(fit))
        for a, b in pairs:
            if reason := unfit[a] or unfit[b]:
                tested[a, b] = replace(UNTESTED, reason=reason)
        about = {
            "aspect": aspect.name,
            "level": level,
            "coefficient": options.compared_by,
        }
        result += [{"a": a, "b": b} | about | _row(tested[a, b]) for a, b in pairs]
    return result


def _row(difference: Difference) -> dict[str, Any]:
    names = ("low", "high", "p", "error", "freedom", "reason")
    return {"difference": difference.value, "n": difference.documents} | {
        name: getattr(difference, name) for name in names
    }


def _uneven(
    aspect: Aspect, pairs: Sequence[Pair], together: Sequence[Pair]
) -> list[str]:
    """Return notes on judges that lack rows, and on the pairs that are tested alone for it."""
    judges = dict.fromkeys(itertools.chain(*pairs))
    missing = {judge: int(np.isnan(aspect.x[judge]).sum()) for judge in judges}
    lacking = [f"{judge} ({count})" for judge, count in missing.items() if count]
    if not lacking or len(set(missing.values())) == 1:
        return []
    notes = [
        f"{aspect.name}: rows without a score: {', '.join(lacking)}; each pair of judges is compared on the rows that "
        "both scored"
    ]
    alone = [f"{a} and {b}" for a, b in pairs if (a, b) not in together]
    if alone and together:
        notes.append(
            f"{aspect.name}: {', '.join(alone)}: tested alone, with Bonferroni's correction, since they share too few "
            "documents or an agreement is undefined; all other pairs are tested together"
        )
    return notes


class _Family:
    """The judges of one aspect at one level."""

    def __init__(
        self, aspect: Aspect, level: Level, options: EvaluationOptions
    ) -> None:
        self._values: dict[bytes, float] = {}
        self.x = aspect.x
        self.options = options
        self.units = aspect.units
        documents = aspect.doc if level != "system" else aspect.units
        self.measure = Measure(
            aspect.y,
            documents=documents,
            systems=aspect.sys,
            level=level,
            coefficient=options.compared_by,
        )

    def differences(self, pairs: Sequence[Pair]) -> dict[Pair, Difference]:
        """Return the difference of every pair, on the rows that both judges scored.

        Pairs are tested together by max-t: the same documents are drawn for all. A pair of much fewer documents, or of
        a judge whose agreement is undefined, stands alone. Bonferroni shares the error by the numbers of pairs.
        """
        defined = list(filter(self._defined, pairs))
        together = self.together(defined)
        tested = self._tested(together, len(defined) / max(1, len(together)))
        if all(one.reason for one in tested.values()):
            tested = {}
        for pair in pairs:
            if pair not in tested:
                tested |= self._tested([pair], max(1, len(defined)))
        return tested

    def together(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Return the pairs that are tested together: those with a difference that rest on about the same documents."""
        defined = list(filter(self._defined, pairs))
        documents = {pair: self._documents(pair) for pair in defined}
        most = max(documents.values(), default=0)
        return [pair for pair, count in documents.items() if count >= ALIKE * most]

    def _defined(self, pair: Pair) -> bool:
        return not any(math.isnan(self._value(x)) for x in self._on_shared(pair))

    def _value(self, scores: Vector) -> float:
        key = scores.tobytes()
        if key not in self._values:
            self._values[key] = Agreement.of([scores], self.measure).values[0]
        return self._values[key]

    def _on_shared(self, pair: Pair) -> list[Vector]:
        """Return the scores of both judges, missing where one of them is; a sum imputes them instead."""
        one, other = (self.x[judge] for judge in pair)
        if self.measure.total:
            return [one, other]
        missing = np.isnan(one) | np.isnan(other)
        return [np.where(missing, np.nan, scores) for scores in (one, other)]

    def _documents(self, pair: Pair) -> int:
        scored = ~np.isnan(self._on_shared(pair)[0])
        if self.measure.total:
            scored[:] = True
        return len(np.unique(self.units[scored]))

    def _tested(self, pairs: Sequence[Pair], families: float) -> dict[Pair, Difference]:
        """Return differences of pairs, tested together."""
        if not pairs:
            return {}
        entries: dict[tuple[str, bytes], Vector] = {}
        places = list[tuple[int, int]]()
        for pair in pairs:
            keys = []
            for judge, scores in zip(pair, self._on_shared(pair), strict=True):
                key = judge, np.isnan(scores).tobytes()
                entries.setdefault(key, scores)
                keys.append(list(entries).index(key))
            places.append((keys[0], keys[1]))
        every = list(entries.values())
        agreement = Agreement.of(every, self.measure, apart=True)
        others = None
        if self.options.new_systems:
            others = OtherSystems.of(every, self.measure, apart=True)
        contrasts = np.stack([self._contrast(at, agreement.values) for at in places])
        options = self.options
        procedure = Procedure(
            options.rounds, options.confidence, options.seed, families
        )
        found = differences_within(agreement, contrasts, procedure, others)
        return {
            pair: replace(difference, documents=self._documents(pair))
            for pair, difference in zip(pairs, found, strict=True)
        }

    def _contrast(self, at: tuple[int, int], values: Sequence[float]) -> Vector:
        """Return the weights of agreements in a difference; negative ones are turned for absolute agreement."""
        weights = np.zeros(len(values))
        for place, sign in zip(at, (1.0, -1.0), strict=True):
            turned = self.options.absolute and values[place] < 0
            weights[place] = -sign if turned else sign
        return weights
