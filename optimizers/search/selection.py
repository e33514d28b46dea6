"""Which candidate of a search is chosen, and what its agreement is after correction for having been chosen.

The highest of many noisy Qs is too high (winner's curse): of 16 equal judges measured on 40 rows, the one that came out
best looks better by about half a point of Q than it is. What would be measured on new rows is estimated here from the
scores that are there, by making the choice again and again under more noise and measuring the chosen one apart from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import dspy
import numpy as np
import scipy
from numpy.typing import NDArray

from ...agreement.objectives import Objective, Q
from ...agreement.resampling import drawn_again
from ..examples import Vector, rows_of

#: (one, other): whether candidate `one` clearly beats candidate `other`.
Beats = Callable[[int, int], bool]
#: With fewer documents (groups) their resamples say too little of the noise: a bias of .09 is left with 8.
FEWEST_GROUPS = 15
#: How much noise is added to the choice, as a share of the variance that Q has on these rows: as if it were made on
#: 1 / (1 + MORE) of them. Less is less biased where candidates differ, and varies more.
MORE = 0.2
ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class Contest:
    """The rule by which one candidate is chosen by their Qs. Candidate 0 is zero-shot.

    parts: how far each is from zero-shot (demonstrations, then changes of form). qualified: whether it may be chosen.
    """

    parts: Sequence[tuple[int, int]]
    qualified: Sequence[bool]

    def better(self, q: Sequence[float], one: int, other: int) -> bool:
        """Whether `one` is to be preferred: qualified first, then Q, then fewer demonstrations and changes."""
        if self.qualified[one] != self.qualified[other]:
            return self.qualified[one]
        difference = q[one] - q[other]
        if abs(difference) > 1e-9:
            return difference > 0
        return self.parts[one] < self.parts[other]

    def best(self, q: Sequence[float]) -> int:
        """The preferred one of all, the earlier where two are equal."""
        return reduce(lambda best, i: i if self.better(q, i, best) else best, range(len(q)))

    def chosen(self, q: Sequence[float], beats: Beats | None) -> int:
        """The candidate with the fewest demonstrations among those that the best one does not clearly beat.

        Demonstrations can harm a small model, so that the best by Q wins outright only over candidates that it clearly
        beats; the others tie. Whatever takes the place of zero-shot has itself to beat it so. beats None: the best.
        """
        best = self.best(q)
        if beats is None:
            return best
        for i in sorted(range(len(q)), key=lambda i: self.parts[i]):
            if self.parts[i] >= self.parts[best]:
                break
            if self.qualified[best] and not self.qualified[i]:
                continue
            if i and (self.better(q, 0, i) or not beats(i, 0)):
                continue
            if not beats(best, i):
                return i
        return best


@dataclass(frozen=True, slots=True)
class Correction:
    """value: an estimate of the chosen candidate's objective on new rows. naive: its objective on the rows that it was
    chosen on. candidates: how many it was chosen from."""

    value: float
    naive: float
    candidates: int


class Entrant(NamedTuple):
    """A candidate's scores (NaN where it failed) and objective (NaN where undefined). judged: the numbers of the rows
    that they are of, where it was dropped before the last; None for all."""

    percents: Vector
    value: float
    judged: NDArray[np.intp] | None = None


def corrected(
    entrants: Sequence[Entrant],
    contest: Contest,
    rows: Sequence[dspy.Example],
    *,
    objective: Objective | None = None,
    sure: float = 0.7,
    seed: int = 0,
    rounds: int = ROUNDS,
) -> tuple[int, Correction] | None:
    """The number of the candidate that the rule chooses, and its agreement after correction for having been chosen.

    entrants: zero-shot first, on the validation `rows`. sure: as in the searches. None where it cannot be estimated:
    fewer than 15 groups, or no candidate with a defined value.

    With d the deviation of all candidates' Qs in a resample of the groups, q + sqrt(a) d and q - d / sqrt(a) have
    independent noise (a = `MORE`). So the choice is made by the first and measured by the second, whose mean over the
    resamples, each taken with both signs of d, is the estimate: that of the Q which the rule reaches with 1 / (1 + a)
    of the rows. On the scale of the arc sine, where the noise of a Q hardly depends on the Q. The estimate varies from
    sample to sample as much as a Q of these rows does or more, and may come out above the naive one.
    Simulated (`experiments/results/choosing.md`): with 40 rows and 16 equal candidates the highest Q was 0.36 to 0.53
    too high, the estimate off by 0.03 or less; after a race it is rougher. What was chosen before (form of answers) or
    fitted after the search is not corrected for; cross-validation (`Compiler(cv=…)`) does that.
    Source: the coupled bootstrap of Oliveira, Lei & Tibshirani 2021, of which this is the use for a choice.
    """
    objective = objective or Q()
    drawn = _resampled(entrants, rows, objective, rounds, seed)
    if drawn is None:
        return None
    q, samples, units = drawn
    beats_at = _margins(q, samples, units, sure)
    whole = [value if e.judged is None else -math.inf for value, e in zip(q.tolist(), entrants, strict=True)]
    first = contest.chosen(whole, beats_at(whole))
    if math.isnan(entrants[first].value):
        return None
    middle, reach = objective.chance, objective.reach
    position, deviation = (_stable(x, middle, reach) for x in (q, samples))
    # Resamples of k groups vary by (k - 1) / k less than new groups do.
    deviation = np.nan_to_num(deviation - deviation.mean(axis=0)) * math.sqrt(units / (units - 1))

    def measured(more: float) -> float:
        """The choice's mean with this share of noise added."""
        total = 0.0
        for signed in (deviation, -deviation):
            moved = _unstable(position + math.sqrt(more) * signed, middle, reach)
            for i, now in enumerate(moved.tolist()):
                chosen = contest.chosen(now, beats_at(now))
                total += position[chosen] - signed[i, chosen] / math.sqrt(more)
        return total / (2 * len(deviation))

    # What the choice loses by more noise grows about evenly with it: from two shares follows what it is without any.
    value = float(_unstable(np.array(2 * measured(MORE) - measured(2 * MORE)), middle, reach))
    return first, Correction(value, float(q[first]), len(entrants))


def _stable(q: Vector, middle: float, reach: float) -> Vector:
    return np.asarray(reach * np.arcsin(np.clip((q - middle) / reach, -1, 1)))


def _unstable(x: Vector, middle: float, reach: float) -> Vector:
    return np.asarray(middle + reach * np.sin(np.clip(x / reach, -np.pi / 2, np.pi / 2)))


def _resampled(
    entrants: Sequence[Entrant], rows: Sequence[dspy.Example], objective: Objective, rounds: int, seed: int
) -> tuple[Vector, Vector, int] | None:
    """The objective (here called q) of each candidate, the same in each resample (rounds × candidates), and how many
    groups were resampled. A candidate without a defined one has that of chance, and NaN in the resamples."""
    named = objective.units(rows_of(rows))
    code = {name: i for i, name in enumerate(dict.fromkeys(named))}
    units = len(code)
    if units < FEWEST_GROUPS:
        return None

    def measured(scores: Vector, part: NDArray[np.intp]) -> tuple[float, Vector] | None:
        resampled = objective.resampled([scores], rows_of([rows[i] for i in part.tolist()]))
        if resampled.reason:
            return None
        own = [code[name] for name in dict.fromkeys(named[i] for i in part.tolist())]
        statistic = resampled.statistics[0]
        drawn = drawn_again(lambda counts: statistic(counts[:, own]), units, rounds, seed, cells=len(part))
        return resampled.values[0], resampled.collapsed(drawn)

    worst, best = objective.worst, objective.chance + objective.reach
    q, samples = np.full(len(entrants), objective.chance), np.full((rounds, len(entrants)), np.nan)
    for i, (percents, value, part) in enumerate(entrants):
        some = np.arange(len(rows)) if part is None else part
        resampled = None if math.isnan(value) else measured(percents, some)
        if resampled is None:
            continue
        q[i], samples[:, i] = resampled
        plain = None if part is None or math.isnan(entrants[0].value) else measured(entrants[0].percents[some], some)
        if plain is not None:
            # What is known of a candidate that was dropped is its distance from zero-shot on the rows it was judged
            # on; on all rows it would have varied less.
            gap, gaps = q[i] - plain[0], samples[:, i] - plain[1]
            q[i] = np.clip(q[0] + gap, worst, best)
            samples[:, i] = samples[:, 0] + gap + (gaps - gap) * math.sqrt(len(some) / len(rows))
    return q, np.clip(samples, worst, best), units


def _margins(q: Vector, samples: Vector, units: int, sure: float) -> Callable[[Sequence[float]], Beats | None]:
    """At other Qs than these, which candidate clearly beats which: as `paired_bootstrap` has it, with the noise of the
    difference as it is here."""
    if not sure:
        return lambda now: None
    rounds = len(samples)
    # The one-sided p of `difference_of` is at most 1 - sure where no more resamples than this are against.
    worst = scipy.special.ndtr(-scipy.stats.t.isf(1 - sure, units - 1) * math.sqrt(units / (units - 1)))
    against = math.floor(worst * (rounds + 1) + 1e-9) - 1
    known: dict[tuple[int, int], float] = {}

    def margin(one: int, other: int) -> float:
        if (one, other) not in known:
            noise = samples[:, one] - samples[:, other] - (q[one] - q[other])
            needed = math.inf if against < 0 else -float(np.partition(noise, against)[against])
            known[one, other] = math.inf if math.isnan(needed) else 0.0 if sure <= 0.5 else max(needed, 0.0)
        return known[one, other]

    def beats_at(now: Sequence[float]) -> Beats:
        return lambda one, other: now[one] - now[other] > margin(one, other) + 1e-12

    return beats_at
