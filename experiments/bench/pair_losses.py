"""Compare heads that were trained on differences between rows with experience as it is shipped, families left out.

    python experiments/bench/pair_losses.py TABLES... [--draws 10] [-o experiments/results/data]

TABLES are folders of tables that `judgesmith study experience` kept. A head on the numbers and the states of a row is
trained by RankNet's loss (Burges et al. 2005) over pairs of rows of a task, weighted by the difference of their
ratings: pairs of one document, of one system, of either, or all. The family of the measured task is left out. Without
labels each head is measured alone, and the mean of the last and of shipped experience; with 40 labels the last is one
more reading, or is taken for the judge's own score. Penalties are the best of .1, .5, 2 and 8 on these tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from judgesmith.experiments.bench.experience_within import q_within
from judgesmith.experiments.bench.facts import Pair, read_pairs
from judgesmith.experiments.bench.sets import data_folder, table_parser
from judgesmith.experiments.studies.experience import draws_of, without_family
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.examples import Vector
from judgesmith.optimizers.fitting.gaussian import target
from judgesmith.optimizers.fitting.readings import agreement, weigh
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import Matrix, Readings
from judgesmith.programs.readings.judge import DIRECT

LABELS = 40
#: What standardised numbers and states are multiplied by, and where they are clipped.
NUMBERS, STATES = (2.0, 4.0), (0.35, 6.0)
#: The largest difference of two ratings that counts, in standard deviations.
MOST = 3.0
ROUNDS = 25
SHIPPED, BOTH = "as shipped", "all, and as shipped"
READING, OWN = "all as one more reading", "all as own score"
SCORE = "pairs.score"

Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Rows:
    """A task's rows. systems: None where the set names no two."""

    pair: Pair
    numbers: Matrix
    states: Matrix
    wanted: Vector
    documents: Codes
    systems: Codes | None

    @property
    def family(self) -> str:
        """The family of the task."""
        return self.pair.plain.family

    def features(self, spreads: Vector) -> Matrix:
        """Return numbers and states as the head takes them, given the states' spreads."""
        states = (self.states / spreads).clip(-STATES[1], STATES[1])
        return np.concatenate([NUMBERS[0] * self.numbers, STATES[0] * states], axis=1)


#: Scores rows by their readings.
Head: TypeAlias = Callable[[Rows], Vector]


def read_rows(pair: Pair, names: Sequence[str]) -> Rows:
    """Return a task's rows with their readings standardised; gaps stand at the mean."""
    table = pair.plain.table
    values = table.columns(names)
    present = ~np.isnan(values)
    counts = np.maximum(present.sum(axis=0), 1)
    means = np.where(present, values, 0).sum(axis=0) / counts
    centred = np.where(present, values - means, 0)
    spreads = centred.std(axis=0)
    numbers = np.where(spreads > 1e-9, centred / np.maximum(spreads, 1e-9), 0)
    states = np.concatenate(
        [s.astype(np.float32) for s in table.states.values()], axis=1
    )
    systems = _codes(pair.plain.systems)
    return Rows(
        pair,
        numbers.clip(-NUMBERS[1], NUMBERS[1]).astype(np.float32),
        states - states.mean(axis=0),
        target(pair.plain.scores)[0],
        _codes([row.doc_id for row in pair.rows]),
        systems if len(set(systems.tolist())) > 1 else None,
    )


def _codes(names: Sequence[str]) -> Codes:
    return np.unique(list(names), return_inverse=True)[1]


# Pairs ----------------------------------------------------------------------------------------------------------------

#: Rows, and both sides of every pair of them -> which pairs count.
Choice = Callable[[Rows, Codes, Codes], NDArray[np.bool_]]


def of_document(rows: Rows, one: Codes, other: Codes) -> NDArray[np.bool_]:
    """Choose pairs of one document."""
    return np.asarray(rows.documents[one] == rows.documents[other])


def of_system(rows: Rows, one: Codes, other: Codes) -> NDArray[np.bool_]:
    """Choose pairs of one system; none where the set names no two."""
    if rows.systems is None:
        return np.zeros(len(one), np.bool_)
    return np.asarray(rows.systems[one] == rows.systems[other])


def of_either(rows: Rows, one: Codes, other: Codes) -> NDArray[np.bool_]:
    """Choose pairs of one document or of one system."""
    return of_document(rows, one, other) | of_system(rows, one, other)


def every(rows: Rows, one: Codes, other: Codes) -> NDArray[np.bool_]:
    """Choose all pairs."""
    return np.ones(len(one), np.bool_)


ALL = "all"
CHOICES: Mapping[str, tuple[Choice, float]] = {
    "pairs of one document": (of_document, 2.0),
    "of one system": (of_system, 8.0),
    "of either": (of_either, 2.0),
    ALL: (every, 0.5),
}


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, the better first, and their weights, which sum to 1."""

    better: Codes
    worse: Codes
    weights: Vector

    @classmethod
    def of(cls, tasks: Sequence[Rows], choice: Choice) -> Pairs:
        """Return the pairs of some tasks, whose rows are numbered one after the other.

        A family counts by the root of its number of tasks.
        """
        of_family = Counter(rows.family for rows in tasks)
        parts, first = list[tuple[Codes, Codes, Vector]](), 0
        for rows in tasks:
            one, other = np.triu_indices(len(rows.wanted), 1)
            ahead = rows.wanted[one] - rows.wanted[other]
            counts = choice(rows, one, other) & (np.abs(ahead) > 1e-6)
            one, other, ahead = one[counts], other[counts], ahead[counts]
            better = np.where(ahead > 0, one, other)
            weights = np.minimum(np.abs(ahead), MOST)
            if len(weights):
                weights /= weights.sum() * np.sqrt(of_family[rows.family])
                parts.append((first + better, first + one + other - better, weights))
            first += len(rows.wanted)
        better, worse, weights = map(np.concatenate, zip(*parts, strict=True))
        return cls(better, worse, weights / weights.sum())


def trained(
    tasks: Sequence[Rows], choice: Choice, penalty: float
) -> Callable[[Rows], Vector]:
    """Return a head that was trained on some tasks, as a function of rows."""
    squares = [(rows.states**2).mean(axis=0) for rows in tasks]
    spreads = np.sqrt(np.mean(squares, axis=0)) + 1e-6
    x = np.concatenate([rows.features(spreads) for rows in tasks])
    pairs = Pairs.of(tasks, choice)

    def loss(weights: Vector) -> tuple[float, Vector]:
        weights = weights.astype(np.float32)
        scores = x @ weights
        leads = scores[pairs.better] - scores[pairs.worse]
        slopes = -pairs.weights / (1 + np.exp(leads))
        of_rows = np.bincount(pairs.better, slopes, len(x))
        of_rows -= np.bincount(pairs.worse, slopes, len(x))
        value = pairs.weights @ np.logaddexp(0, -leads)
        value += penalty / 2 * float(weights @ weights)
        gradient = of_rows.astype(np.float32) @ x + penalty * weights
        return float(value), gradient.astype(np.float64)

    found = scipy.optimize.minimize(
        loss,
        np.zeros(x.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": ROUNDS},
    )
    return lambda rows: np.asarray(rows.features(spreads) @ found.x)


# Measuring ------------------------------------------------------------------------------------------------------------


def standard(scores: Vector) -> Vector:
    """Return scores with mean 0 and spread 1."""
    return np.asarray((scores - scores.mean()) / scores.std())


def unlabelled(
    rows: Rows, experience: Experience, heads: Mapping[str, Head]
) -> list[float]:
    """Return Q over all rows by each way, then Q within systems."""
    task = rows.pair.with_facts
    names = set(task.table.names) - {DIRECT}
    shipped = experience.head(names, task.table.states)(task.table)
    scores = [shipped, *(head(rows) for head in heads.values())]
    scores.append(standard(scores[-1]) + standard(shipped))
    pooled = [agreement(one, task.scores) for one in scores]
    return pooled + [q_within(one, task.scores, task.systems) for one in scores]


def labelled(
    rows: Rows, experience: Experience, score: Vector, draws: int
) -> list[float]:
    """Return Q over all rows, and within systems, as means over draws: as shipped, and with a score in two ways."""
    task = rows.pair.with_facts
    table = task.table
    values = np.column_stack([standard(score), table.values])
    wider = replace(table, names=(SCORE, *table.names), values=values)
    fits: Sequence[tuple[Readings, str]] = (
        (table, DIRECT),
        (wider, DIRECT),
        (wider, SCORE),
    )
    systems = np.array(task.systems)
    found = list[list[float]]()
    for _, train, left in draws_of(table.groups, LABELS, draws):
        human, of_left = task.scores[left], list[str]()
        if len(systems):
            of_left = systems[left].tolist()
        scored = [
            weigh(readings.rows(train), task.scores[train], experience, own=own).head(
                readings.rows(left)
            )
            for readings, own in fits
        ]
        pooled = [agreement(one, human) for one in scored]
        found.append(pooled + [q_within(one, human, of_left) for one in scored])
    return np.mean(found, axis=0).tolist() if found else [np.nan] * 2 * len(fits)


def measured(pairs: Sequence[Pair], draws: int) -> Matrix:
    """Return what every way reaches on every task, its family left out: the columns of both tables."""
    names = set(pairs[0].plain.table.names)
    for pair in pairs[1:]:
        names &= set(pair.plain.table.names)
    everything = [read_rows(pair, sorted(names - {DIRECT})) for pair in pairs]
    teachers = [rows for rows in everything if rows.pair.teaches]
    by_family = dict[str, tuple[Experience, dict[str, Head]]]()
    result = list[list[float]]()
    for rows in everything:
        if rows.family not in by_family:
            by_family[rows.family] = of_others(teachers, rows.family)
        learnt, heads = by_family[rows.family]
        task = rows.pair.plain.name
        experience = learnt.of_aspect(task.partition(".")[2])
        found = unlabelled(rows, experience, heads)
        found += labelled(rows, experience, heads[ALL](rows), draws)
        print(task, *map("{:.2f}".format, found), flush=True)
        result.append(found)
    return np.array(result)


def of_others(
    teachers: Sequence[Rows], family: str
) -> tuple[Experience, dict[str, Head]]:
    """Return the experience and the heads of the tasks of other families."""
    others = [rows for rows in teachers if rows.family != family]
    plain = [rows.pair.plain for rows in teachers]
    heads = {name: trained(others, *choice) for name, choice in CHOICES.items()}
    return without_family(plain, family), heads


def table_rows(pairs: Sequence[Pair], found: Matrix) -> list[list[Any]]:
    """Return a row for each task, and the means of some of them."""
    sizes = np.array([len(pair.plain.scores) for pair in pairs])
    several = np.array([len(set(pair.plain.systems)) > 1 for pair in pairs])
    rows: list[list[Any]] = [
        [pair.plain.name.replace(".", " "), len(pair.plain.scores), *of.tolist()]
        for pair, of in zip(pairs, found, strict=True)
    ]
    for title, members in (
        ("mean of those with several systems", several),
        ("mean", np.ones(len(pairs), bool)),
    ):
        means = np.nanmean(found[members], axis=0).tolist()
        rows.append([title, int(sizes[members].sum()), *means])
    return rows


def main() -> None:
    """Measure all, and save the table on request."""
    parser = table_parser(__doc__, draws=10)
    options = parser.parse_args()
    data_folder()  # ends here where the variable is not set
    pairs = list(read_pairs(options.tables))
    rows = table_rows(pairs, measured(pairs, options.draws))
    titles = [
        f"{level}{labels} labels: {way}"
        for labels, of_labels in (
            (0, (SHIPPED, *CHOICES, BOTH)),
            (LABELS, (SHIPPED, READING, OWN)),
        )
        for level in ("", "Q within systems, ")
        for way in of_labels
    ]
    save(
        options.output,
        "pair-losses",
        {"task": "", "rows": "{}"} | dict.fromkeys(titles, "{:.2f}"),
        rows,
        commands=[
            f"python experiments/bench/pair_losses.py TABLES --draws {options.draws} -o experiments/results/data"
        ],
        model="qwen2.5-coder-0.5b (Q4_K_M)",
        notes="each family left out of the heads and of the experience",
    )


if __name__ == "__main__":
    main()
