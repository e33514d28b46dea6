"""Racing: candidates are judged on growing blocks of the same rows, and those that fall behind for good are dropped.

After each block every candidate is compared with the leader on resamples of the documents seen so far. What decides is
the agreement on all rows, of which those seen are a part: the rows still to come can change less and less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray

from ...agreement.objectives import Objective, Q
from ...errors import BudgetError, OptionError
from ...signatures.values import Verdict
from ..examples import Scored, Vector, groups, humans, told_of

Rows = NDArray[np.intp]
#: With fewer documents (groups) among the rows seen, resampling them says nothing, and no candidate is dropped.
FEWEST_GROUPS = 5


@dataclass(frozen=True, slots=True)
class Racing:
    """The rules of a race.

    chance: a candidate is dropped when it would reach the leader on all rows in a smaller share of the resamples.
    shares: the shares of rows after which candidates are compared; the rest follows. least: rows of the first block at
    least. rounds: resamples.

    Simulated with 11 synthetic judges and 30 to 300 rows (`experiments/results/optimizers.md`, 60 to 150 repeats),
    against judging all on all rows: chance 0.15 took 48 % of the calls and chose judges whose true Q was 0.012 lower on
    average (0.05 where one good judge stands among equals and rows are 60 or fewer); 0.1 took 52 % for 0.009, 0.2 took
    46 % for 0.017. With 120 rows or fewer, chance 0.05 with least 15 took 63 % for 0.002.
    """

    chance: float = 0.15
    shares: tuple[float, ...] = (0.25, 0.5, 0.75)
    least: int = 10
    rounds: int = 300

    def __post_init__(self) -> None:
        if not 0 <= self.chance < 0.5:
            raise OptionError(f"chance is {self.chance}; it lies in [0, 0.5); 0 drops no candidate")
        if not all(0 < a < b < 1 for a, b in zip(self.shares, (*self.shares[1:], 1 - 1e-9), strict=True)):
            raise OptionError(f"shares {self.shares} must rise between 0 and 1")
        if self.least < 2 or self.rounds < 1:
            raise OptionError(f"least must be 2 or more and rounds 1 or more; got {self.least} and {self.rounds}")


@dataclass(slots=True)
class Runner:
    """A candidate in a race. verdicts: by row number, of the rows it was judged on. dropped: why it was not judged on
    all of them."""

    verdicts: dict[int, Verdict] = field(default_factory=dict)
    dropped: str | None = None

    @property
    def judged(self) -> Rows:
        return np.array(sorted(self.verdicts), dtype=np.intp)

    def scored(self) -> Scored:
        """Its verdicts on the rows that it judged, in their order."""
        return Scored.of([self.verdicts[i] for i in sorted(self.verdicts)])


def blocks(
    examples: Sequence[dspy.Example],
    *,
    objective: Objective | None = None,
    rules: Racing | None = None,
    seed: int = 0,
) -> list[Rows]:
    """Row numbers in blocks that together are all rows, each block with the whole range of human scores.

    Rows are spread where the objective (default: Q, pooled) is made of rows, else the whole documents (groups) that it
    is made of.
    """
    rules, rng = rules or Racing(), np.random.default_rng([seed, 41])
    human = humans(examples)
    units: dict[Any, list[int]] = {}
    for i, name in enumerate(groups(examples)):
        units.setdefault(i if objective is None or objective.of_rows else name, []).append(i)
    # Units in the order of their scores, dealt out evenly: any beginning of the deal has the range of the whole.
    ordered = sorted(units.values(), key=lambda unit: (float(human[unit].mean()), rng.random()))
    position = (np.arange(len(ordered)) * 0.6180339887498949 + rng.random()) % 1.0
    dealt = [ordered[place] for place in np.argsort(position, kind="stable")]
    starts = np.cumsum([0, *map(len, dealt)])
    cuts: list[int] = []
    for share in rules.shares:
        wanted = max(share * len(examples), rules.least)
        cut = int(starts[np.searchsorted(starts, wanted - 1e-9)]) if wanted < len(examples) else len(examples)
        if (cuts[-1] if cuts else 0) < cut < len(examples):
            cuts.append(cut)
    return [np.sort(part) for part in np.split(np.array([i for unit in dealt for i in unit], dtype=np.intp), cuts)]


def chances(
    percents: Sequence[Vector],
    leader: int,
    examples: Sequence[dspy.Example],
    total: int,
    *,
    objective: Objective | None = None,
    rounds: int = 300,
    seed: int = 0,
) -> Vector:
    """For each candidate, the share of paired resamples in which its objective on all rows would reach the leader's.

    percents: per candidate, on the rows `examples`, NaN where it failed (imputed, as everywhere). total: how many rows
    there will be. A candidate that failed on every row has chance 0; all have 1 where the rows are too few to tell.

    The seen rows are a share f of all, so that the difference on all of them varies about the seen one with (1 - f)
    times the variance of the resamples (finite population correction), which n / (n - 1) makes up for few documents.
    """
    answered = [i for i, p in enumerate(percents) if np.isfinite(p).any()]
    shares = np.array([float(i in answered) for i in range(len(percents))])
    if leader not in answered or len(answered) < 2:
        return shares
    resampled = (objective or Q()).resampled([percents[i] for i in answered], told_of(examples))
    units = resampled.documents
    if units < FEWEST_GROUPS:
        return shares
    samples, _ = resampled.resample(rounds, seed)
    spread = math.sqrt(max(0.0, 1 - len(examples) / total) * units / (units - 1))
    best = answered.index(leader)
    for place, i in enumerate(answered):
        gap = samples[place] - samples[best]
        drawn = resampled.values[place] - resampled.values[best] + (gap - gap.mean()) * spread
        # Ties count half: one that says the same as the leader is neither ahead nor behind.
        shares[i] = float((drawn > 1e-9).mean() + 0.5 * (np.abs(drawn) <= 1e-9).mean())
    shares[leader] = 1.0
    return shares


def value_of(percents: Vector, examples: Sequence[dspy.Example], objective: Objective) -> float:
    """The objective, or -inf where it is undefined: that it counts as chance is a convention that must not lead."""
    reached = objective.reached(percents, told_of(examples))
    return -math.inf if reached.reason else reached.value


def race(
    names: Sequence[str],
    score: Callable[[int, Rows], Scored],
    examples: Sequence[dspy.Example],
    *,
    favourite: tuple[str, Vector] | None = None,
    rules: Racing | None = None,
    objective: Objective | None = None,
    max_failed: float = 0.1,
    seed: int = 0,
) -> tuple[list[Runner], bool]:
    """Judge candidates until all are dropped or judged on all rows; and whether the budget ended it.

    score: judges some rows with a candidate (its number); a BudgetError from it ends the race. favourite: the name and
    percents, on all rows, of one that is judged already and may lead but not be dropped. A candidate whose
    failures alone disqualify it is dropped, too.
    """
    rules, objective, count = rules or Racing(), objective or Q(), len(examples)
    runners = [Runner() for _ in names]
    seen = np.array([], dtype=np.intp)
    alive = list(range(len(names)))
    for block in blocks(examples, objective=objective, rules=rules, seed=seed):
        for i in alive:
            try:
                runners[i].verdicts.update(zip(block.tolist(), score(i, block).verdicts, strict=True))
            except BudgetError:
                for late in (r for r in runners if r.dropped is None and len(r.verdicts) < count):
                    late.dropped = f"the budget ran out after {len(late.verdicts)} of {count} rows"
                return runners, True
        seen = np.sort(np.concatenate([seen, block]))
        if len(seen) == count:
            break
        some, where = [examples[i] for i in seen.tolist()], f"after {len(seen)} of {count} rows"
        for i in alive:
            if (failed := runners[i].scored().failed) > max_failed * count:
                runners[i].dropped = f"{where}: {failed} rows failed already"
        alive = [i for i in alive if runners[i].dropped is None]
        entries = [(names[i], runners[i].scored().percents) for i in alive]
        if favourite is not None:
            entries.append((favourite[0], favourite[1][seen]))
        if not entries:
            break
        percents = [scores for _, scores in entries]
        reached = [value_of(scores, some, objective) for scores in percents]
        leader = int(np.argmax(reached))
        if reached[leader] > -math.inf:
            likely = chances(percents, leader, some, count, objective=objective, rounds=rules.rounds, seed=seed)
            for i, chance in zip(alive, likely.tolist(), strict=False):  # the favourite, last, stays
                if chance < rules.chance:
                    runners[i].dropped = f"{where}: a chance of {chance:.0%} of reaching {entries[leader][0]}"
        # The leader first: where the budget ends, the best so far has been judged on more rows.
        order = sorted(zip([-value for value in reached], alive, strict=False))
        alive = [i for _, i in order if runners[i].dropped is None]
    return runners, False
