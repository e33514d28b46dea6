"""Measure what a reader that was trained on differences adds within systems: alone, and beside readings.

    python experiments/bench/within_gains.py SCORES.json... --tables TABLES... [--draws 15] [-o FOLDER]

SCORES.json is what `train_within.py heads` or `score` wrote: scores of SummEval's rows by readers that saw no rating of
a summary. TABLES are folders of tables that `judgesmith study experience` kept. Without labels a score is alone, or has
the weight that the shipped trained reader has beside the readings. With labels the head is that of compiling, with
facts and with experience that lacks summaries; a score is one more reading, of which experience says nothing, has that
weight, or is taken for the judge's own. Intervals are those of resampled documents.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.correlation import Level
from judgesmith.agreement.differences import difference_of
from judgesmith.agreement.resampling import (
    Agreement,
    Measure,
    drawn_again,
)
from judgesmith.experiments.bench.facts import Pair, read_pairs
from judgesmith.experiments.bench.sets import data_folder
from judgesmith.experiments.studies.experience import (
    Task,
    draws_of,
    without_family,
)
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.examples import Vector
from judgesmith.optimizers.fitting.readings import weigh
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import Readings
from judgesmith.programs.readings.judge import DIRECT
from judgesmith.programs.readings.kinds import TRAINED

#: The scores of outputs by id and by aspect.
Scores = Mapping[str, Mapping[str, float]]
LABELS, ROUNDS = 40, 1000
NOTES = (
    "SummEval, 160 rows of ten documents, summaries left out of training and experience; Q over all rows is a mean of "
    "four aspects, what follows is within systems; leads with 95 % intervals by resampled documents"
)
#: Mean, spread and weight that the shipped experience gives the shipped trained reader, and what it leaves others of
#: theirs.
SHIPPED, BESIDE = (50.0, 20.0, 0.22), 0.83


#: What is measured, by the name of its columns.
MEASURES: Mapping[str, tuple[Level, str]] = {
    "Q, all rows": ("pooled", "sum"),
    "Q within systems": ("within", "sum"),
    "rho within systems": ("within", "spearman"),
}
TODAY, ALONE, READING = "today", "the score alone", "one more reading"
EXPECTED, OWN = "with the shipped reader's weight", "as own score"


# Beside readings ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """A task's rows, with the trained reader's score as a reading, and the document of each row by number."""

    task: Task
    documents: NDArray[np.intp]

    def measure(
        self, rows: NDArray[np.intp], level: Level, coefficient: str
    ) -> Measure:
        """Return the measure of some rows."""
        return Measure(
            self.task.scores[rows],
            documents=self.documents[rows].tolist(),
            systems=np.array(self.task.systems)[rows].tolist(),
            level=level,
            coefficient=coefficient,
        )


def with_scores(pair: Pair, scores: Scores) -> Rows:
    """Return a task with the scores as its first reading, of mean 50 and spread 20."""
    aspect = pair.plain.name.partition(".")[2]
    found = np.array([scores[row.id][aspect] for row in pair.rows])
    found = SHIPPED[0] + SHIPPED[1] * (found - found.mean()) / found.std()
    table = pair.with_facts.table
    values = np.column_stack([found, table.values])
    wider = replace(table, names=(TRAINED, *table.names), values=values)
    documents = np.unique([row.doc_id for row in pair.rows], return_inverse=True)[1]
    return Rows(replace(pair.with_facts, table=wider), documents)


#: A table of the rows to learn from, their human scores, and a table of the rows to score -> scores.
Way = Callable[[Readings, Vector, Readings], Vector]


def ways(experience: Experience) -> dict[str, Way]:
    """Return how rows are scored after labels: as today, and with the score in three ways."""
    numbers = {TRAINED: SHIPPED, **_lowered(experience)}
    expected = experience.model_copy(update={"numbers": numbers})

    def today(train: Readings, human: Vector, left: Readings) -> Vector:
        return weigh(_without(train), human, experience).head(_without(left))

    def reading(train: Readings, human: Vector, left: Readings) -> Vector:
        return weigh(train, human, experience).head(left)

    def weighted(train: Readings, human: Vector, left: Readings) -> Vector:
        return weigh(train, human, expected).head(left)

    def own(train: Readings, human: Vector, left: Readings) -> Vector:
        return weigh(train, human, experience, own=TRAINED).head(left)

    return {TODAY: today, READING: reading, EXPECTED: weighted, OWN: own}


def _lowered(experience: Experience) -> dict[str, tuple[float, float, float]]:
    numbers = experience.numbers.items()
    return {name: (m, s, BESIDE * weight) for name, (m, s, weight) in numbers}


def _without(table: Readings) -> Readings:
    names = tuple(name for name in table.names if name != TRAINED)
    return replace(table, names=names, values=table.columns(names))


def unlabelled(experience: Experience, table: Readings) -> dict[str, Vector]:
    """Return the scores of rows without labels: as today, by the score alone, and with both."""
    trained = {TRAINED: SHIPPED, **_lowered(experience)}
    both = experience.model_copy(update={"trained": trained})
    names = set(table.names) - {DIRECT}
    return {
        TODAY: experience.head(names - {TRAINED}, table.states)(table),
        ALONE: table.columns([TRAINED])[:, 0],
        EXPECTED: both.head(names, table.states)(table),
    }


@dataclass(frozen=True)
class Scored:
    """Rows that were not learnt from, and their scores by each way."""

    rows: NDArray[np.intp]
    by_way: Mapping[str, Vector]


def scored(rows: Rows, experience: Experience, draws: int) -> dict[int, list[Scored]]:
    """Return what is scored by number of labels: without any once, with labels once for each draw."""
    table, human = rows.task.table, rows.task.scores
    every = np.arange(len(human))
    after = list[Scored]()
    for _, train, left in draws_of(table.groups, LABELS, draws):
        learnt, rest = table.rows(train), table.rows(left)
        found = {
            name: way(learnt, human[train], rest)
            for name, way in ways(experience).items()
        }
        after.append(Scored(left, found))
    return {0: [Scored(every, unlabelled(experience, table))], LABELS: after}


@dataclass(frozen=True)
class Reached:
    """The agreement of each way, and its lead over today's in resamples of documents: shape (rounds, ways)."""

    ways: Sequence[str]
    values: Vector
    leads: Vector
    documents: int

    @classmethod
    def mean(cls, several: Sequence[Reached]) -> Reached:
        """Return the mean over aspects, whose rows are of the same documents."""
        values = np.mean([one.values for one in several], axis=0)
        leads = np.mean([one.leads for one in several], axis=0)
        return cls(several[0].ways, values, leads, several[0].documents)

    def lead(self, way: str) -> list[float] | None:
        """Return a way's lead over today's, with its interval."""
        place = list(self.ways).index(way)
        if not place:
            return None
        gain = float(self.values[place] - self.values[0])
        found = difference_of(gain, self.leads[:, place], self.documents, 0, 0.95)
        return [gain, found.low, found.high]

    def value(self, way: str) -> float:
        """Return what a way reaches."""
        return float(self.values[list(self.ways).index(way)])


def reached(
    rows: Rows, found: Sequence[Scored], level: Level, coefficient: str
) -> Reached:
    """Return what each way reaches, as means over draws, and its lead in resamples."""
    agreements = [
        Agreement.of(
            list(one.by_way.values()), rows.measure(one.rows, level, coefficient)
        )
        for one in found
    ]
    # Agreements number documents in the order of their first appearance.
    places = [list(dict.fromkeys(rows.documents[one.rows].tolist())) for one in found]

    def leads(counts: Vector) -> Vector:
        parts = list[Vector]()
        for agreement, place in zip(agreements, places, strict=True):
            drawn = counts[:, place]
            each = [np.nansum(of(drawn), axis=1) for of in agreement.statistics]
            parts.append(np.stack(each, axis=1))
        mean = np.mean(parts, axis=0)
        return np.asarray(mean - mean[:, :1])

    documents = int(rows.documents.max()) + 1
    values = np.mean([agreement.values for agreement in agreements], axis=0)
    drawn = drawn_again(leads, documents, ROUNDS, 0)
    return Reached(list(found[0].by_way), values, drawn, documents)


def of_reader(
    pairs: Sequence[Pair], experience: Experience, scores: Scores, draws: int
) -> dict[int, dict[str, list[Reached]]]:
    """Return what is reached with a reader's scores: by number of labels and measure, one for each aspect.

    Without draws only what needs no labels.
    """
    result = dict[int, dict[str, list[Reached]]]()
    for pair in pairs:
        rows = with_scores(pair, scores)
        expected = experience.of_aspect(pair.plain.name.partition(".")[2])
        for labels, several in scored(rows, expected, draws).items():
            of_labels = result.setdefault(labels, defaultdict(list))
            for measure, (level, coefficient) in MEASURES.items():
                if several:
                    of = reached(rows, several, level, coefficient)
                    of_labels[measure].append(of)
    return result


def table_rows(
    name: str, found: Mapping[int, Mapping[str, Sequence[Reached]]], *, today: bool
) -> list[list[Any]]:
    """Return a row for each number of labels and each way to use a reader's scores, and today's on request."""
    table = list[list[Any]]()
    for labels, by_measure in found.items():
        if not by_measure:
            continue
        pooled, within, rho = (by_measure[measure] for measure in MEASURES)
        for way in pooled[0].ways:
            if way == TODAY and not today:
                continue
            means = [Reached.mean(several) for several in (pooled, within, rho)]
            reader = "–" if way == TODAY else name
            row: list[Any] = [labels, reader, way, means[0].value(way)]
            row += [one.value(way) for one in within]
            for mean in means[1:]:
                row += [mean.value(way), mean.lead(way)]
            table.append(row)
            print(*row, flush=True)
    return table


def summaries(tables: Sequence[Path]) -> tuple[list[Pair], Experience]:
    """Return the aspects of SummEval, and experience that no summary is in."""
    every = list(read_pairs(tables))
    teachers = [pair.plain for pair in every if pair.teaches]
    measured = [pair for pair in every if pair.plain.name.startswith("summeval.")]
    return measured, without_family(teachers, "summaries")


def main() -> None:
    """Measure all readers of a file, and save the table on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scores", nargs="+", type=Path)
    parser.add_argument("--tables", nargs="+", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=15)
    parser.add_argument(
        "--labelled", nargs="*", default=("either and copies, two layers too",)
    )
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    data_folder()  # ends here where the variable is not set
    pairs, experience = summaries(options.tables)
    table = list[list[Any]]()
    for path in options.scores:
        for name, scores in json.loads(path.read_text(encoding="utf-8")).items():
            draws = options.draws if name in options.labelled else 0
            found = of_reader(pairs, experience, scores, draws)
            of_name = table_rows(name, found, today=not table or draws > 0)
            table += [row for row in of_name if row not in table]
    aspects = [pair.plain.name.partition(".")[2] for pair in pairs]
    lead = "{:+.2f} [{:+.2f}, {:+.2f}]"
    columns = {"labels": "{}", "trained on": "", "use": "", "Q, all rows": "{:.2f}"}
    columns |= dict.fromkeys(aspects, "{:.2f}")
    columns |= {"mean": "{:.2f}", "lead": lead, "rho": "{:.2f}", "lead of rho": lead}
    save(
        options.output,
        "within-gains",
        columns,
        sorted(table, key=lambda row: row[0]),
        commands=[
            "python experiments/bench/within_gains.py FOLDER/heads.json FOLDER/scores.json --tables TABLES "
            f"--draws {options.draws} -o experiments/results/data"
        ],
        model="SmolLM2-135M (Q4_1), beside qwen2.5-coder-0.5b (Q4_K_M)",
        notes=NOTES,
    )


if __name__ == "__main__":
    main()
