"""How much agreement do labels buy, by whose method? Recorded answers, fixed splits, three levels.

Two parts: ways *beside* a judge whose scores were recorded, and ways with a *small* model (at most 1.5B parameters) or
none. In each, all ways see the same rows, the same labels and the same test rows of other documents. Smaller samples of
labels lie in the larger ones. Nothing asks a model.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from judgesmith.agreement.correlation import CorrelationSum, Level
from judgesmith.datasets.loading import read_labels
from judgesmith.datasets.records import Labels
from judgesmith.experiments.studies.experience import (
    Task,
    load,
    located,
    percents,
    systems_of,
    whole_groups,
    without_family,
)
from judgesmith.experiments.studies.learners import BESIDE, SMALL, Learner, Recorded
from judgesmith.optimizers.fitting.curve import counts_of
from judgesmith.parts import Options, read_options
from judgesmith.programs.progress import Progress
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.head import Matrix, Readings, Vector
from judgesmith.programs.readings.judge import DIRECT
from judgesmith.programs.readings.passages import Text
from judgesmith.running.journal import Journal, read_journal
from judgesmith.running.settings import read_yaml

#: Numbers of labels; 0 is for ways that need none.
SIZES = (0, 8, 30, 80, 160)
LEVELS: tuple[Level, ...] = ("pooled", "sample", "within")
#: The share of a task's rows that is tested on, and the most of them.
TESTED = 0.4
MOST_TESTED = 200
#: Fewer test rows say nothing.
FEWEST_TESTED = 30
#: Rows of a set at most, and the seed by which whole documents of it are drawn.
ROWS = 600
DRAWN_BY = 11
#: A column that more rows lack is not recorded.
LACKING = 0.4
#: Places of the words of a text.
WIDTH = 1024
_WORD = re.compile(r"\w+")
Part = Literal["beside", "small"]
PARTS: Mapping[Part, tuple[Learner, ...]] = {"beside": BESIDE, "small": SMALL}


class EfficiencySet(Options):
    """A set of labels with what was recorded of its rows; see efficiency.yaml."""

    labels: str
    family: str
    aspects: tuple[str, ...] = Field(min_length=1)
    metrics: str = ""
    by: Literal["group", "document"] = "group"
    judge: str = ""
    criteria: tuple[str, ...] = ()
    panel: tuple[str, ...] = ()
    large: str = ""


class EfficiencySets(Options):
    """The file of a study."""

    sets: tuple[EfficiencySet, ...] = Field(min_length=2)


@dataclass(frozen=True)
class Problem:
    """A task of one part: rows with what was recorded of them, and people's ratings in percent.

    documents, systems: of each row; no systems where rows name none.
    """

    part: Part
    set: str
    family: str
    aspect: str
    rows: Recorded
    ratings: Vector
    documents: tuple[str, ...]
    systems: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the set and the aspect in words."""
        return f"{self.set} {self.aspect}"


@dataclass(frozen=True)
class Reached:
    """What a way reached on a task with some labels: each level's Q as the mean over draws; NaN where none is."""

    part: Part
    set: str
    family: str
    aspect: str
    way: str
    labels: int
    draws: int
    levels: tuple[float, ...]

    @property
    def task(self) -> str:
        """Return the set and the aspect in words."""
        return f"{self.set} {self.aspect}"


# What was recorded ---------------------------------------------------------------------------------------------------


def read_sets(path: Path | None) -> tuple[EfficiencySet, ...]:
    """Return the sets of a file, by default the recorded public ones.

    Raises:
        OptionError: For a file of another form.
    """
    path = path or Path(__file__).with_name("efficiency.yaml")
    read = read_options(EfficiencySets, read_yaml(path, "the file of sets"), path.name)
    return read.sets


def problems(
    sets: Sequence[EfficiencySet],
    config: Path | None,
    tables: Sequence[Path],
    part: Part,
    done: Collection[str] = (),
) -> Iterator[Problem]:
    """Yield the tasks of a part: those with a recorded judge, or those with a table of readings.

    tables: folders of readings that `judgesmith study experience` kept; the first that has a task counts. done: names
    of tasks that are not wanted.
    """
    if part == "beside":
        for spec in sets:
            wanted = [a for a in spec.aspects if f"{_stem(spec)} {a}" not in done]
            if spec.judge and wanted:
                yield from _beside(spec, wanted, config)
    else:
        yield from _small(sets, config, tables, done)


def _beside(
    spec: EfficiencySet, aspects: Sequence[str], config: Path | None
) -> Iterator[Problem]:
    recorded = _columns_of(spec, config)
    for aspect in aspects:
        labels = _labels(spec, aspect, config)
        judge = spec.judge.format(aspect=aspect)
        given = [recorded.get(row.id, {}).get(judge) for row in labels.rows]
        labels = labels.subset(k for k, value in enumerate(given) if value is not None)
        kept = labels.subset(sorted(whole_groups(labels.groups, ROWS, DRAWN_BY)))
        yield _problem("beside", spec, aspect, kept, recorded, None, Experience())


def _small(
    sets: Sequence[EfficiencySet],
    config: Path | None,
    tables: Sequence[Path],
    done: Collection[str],
) -> Iterator[Problem]:
    found = []
    for spec in sets:
        for aspect in spec.aspects:
            read = _read(spec, aspect, config, tables)
            if read is not None:
                found.append((spec, aspect, *read))
    families = {spec.family for spec, *_ in found}
    if len(families) < 2:  # nothing to learn from that is not of the family
        return
    common = set.intersection(*(set(table.names) for *_, table in found))
    teachers = []
    for spec, aspect, labels, table in found:
        names = tuple(name for name in table.names if name in common - {DIRECT})
        plain = Readings(names, table.columns(names), table.groups, table.states)
        name = f"{_stem(spec)}.{aspect}"
        scores = percents(labels)
        task = Task(name, spec.family, "", plain, scores, systems_of(labels))
        teachers.append(task)
    experience = {family: without_family(teachers, family) for family in families}
    for spec, aspect, labels, table in found:
        if f"{_stem(spec)} {aspect}" in done:
            continue
        known = experience[spec.family].of_aspect(aspect)
        recorded = _columns_of(spec, config)
        yield _problem("small", spec, aspect, labels, recorded, table, known)


def _read(
    spec: EfficiencySet, aspect: str, config: Path | None, tables: Sequence[Path]
) -> tuple[Labels, Readings] | None:
    """Return the rows of which readings were kept, with these; None without any."""
    name = f"{_stem(spec)}.{aspect}"
    files = [file for folder in tables for file in sorted(folder.glob(f"{name}*.npz"))]
    for file in files:
        kept = load(file)
        labels = _labels(spec, aspect, config)
        # Tables are of whole groups in the order that `study experience` draws, until there are enough.
        drawn = sorted(whole_groups(labels.groups, len(kept.scores), DRAWN_BY))
        labels = labels.subset(drawn)
        same = len(labels) == len(kept.scores)
        if same and np.allclose(percents(labels), kept.scores):
            table = kept.table
            if np.isnan(table.columns([DIRECT])).all():
                names = tuple(one for one in table.names if one != DIRECT)
                values = table.columns(names)
                table = Readings(names, values, table.groups, table.states)
            return labels, table
    return None


def _stem(spec: EfficiencySet) -> str:
    return Path(spec.labels).stem


def _labels(spec: EfficiencySet, aspect: str, config: Path | None) -> Labels:
    """Return a set's rows, their groups the units that are kept whole."""
    labels = read_labels(located(spec.labels, config), aspect=aspect)
    if spec.by == "document":
        rows = tuple(replace(row, group=row.doc_id) for row in labels.rows)
        return replace(labels, rows=rows)
    return labels


def _columns_of(
    spec: EfficiencySet, config: Path | None
) -> dict[str, dict[str, float]]:
    """Return what was recorded of each row, by its id: its own judges, and the metrics beside the set."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    files = [located(spec.labels, config)]
    if spec.metrics:
        files.append(located(spec.metrics, config))
    for file in files:
        for text in file.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            columns = line.get("metrics") or line.get("judges") or {}
            numbers = {
                name: float(value)
                for name, value in columns.items()
                if isinstance(value, int | float)
            }
            found[str(line["id"])].update(numbers)
    return dict(found)


def _problem(
    part: Part,
    spec: EfficiencySet,
    aspect: str,
    labels: Labels,
    recorded: Mapping[str, Mapping[str, float]],
    readings: Readings | None,
    experience: Experience,
) -> Problem:
    rows = labels.rows
    of_rows = [recorded.get(row.id, {}) for row in rows]

    def columns(names: Sequence[str]) -> Matrix:
        values = [[own.get(name, math.nan) for name in names] for own in of_rows]
        table = np.array(values, dtype=np.float64).reshape(len(rows), len(names))
        known = np.isfinite(table).mean(axis=0) >= 1 - LACKING
        return table[:, known]

    judge = spec.judge.format(aspect=aspect)
    panel = [judge, *(name.format(aspect=aspect) for name in spec.panel)]
    every = sorted({name for own in of_rows for name in own})
    if part == "small":
        every = [name for name in every if not _matches(spec.large, name)]
    texts = [
        Text(row.source, row.output, row.context or "", "", row.reference or "")
        for row in rows
    ]
    groups = tuple(map(str, labels.groups))
    counted = counts_of(texts, groups)
    only = columns([judge])
    bank = columns(every)
    return Problem(
        part,
        _stem(spec),
        spec.family,
        aspect,
        Recorded(
            only[:, 0] if only.shape[1] else np.full(len(rows), math.nan),
            columns(spec.criteria),
            columns(panel) if spec.panel else columns([]),
            np.hstack([bank, counted.values]),
            _likeness(texts),
            counted,
            readings,
            groups,
            experience,
        ),
        percents(labels),
        tuple(row.doc_id for row in rows),
        systems_of(labels),
    )


def _matches(pattern: str, name: str) -> bool:
    return bool(pattern) and re.fullmatch(pattern, name) is not None


def _likeness(texts: Sequence[Text]) -> Matrix:
    """Return rows of unit length, whose products say how like texts are: words of the output, the rarer the more."""
    counts = np.zeros((len(texts), WIDTH))
    for k, text in enumerate(texts):
        for word in _WORD.findall(text.judged.casefold()):
            counts[k, zlib.crc32(word.encode()) % WIDTH] += 1
    rare = np.log((1 + len(texts)) / (1 + (counts > 0).sum(axis=0))) + 1
    weighed = np.log1p(counts) * rare
    length = np.maximum(np.linalg.norm(weighed, axis=1, keepdims=True), 1e-9)
    return np.asarray(weighed / length)


# Measuring -----------------------------------------------------------------------------------------------------------


def split(problem: Problem, draw: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows in the order in which they are labelled, and test rows of other groups; fixed by the draw."""
    rng = np.random.default_rng([draw, 71])
    groups = np.array(problem.rows.groups, dtype=object)
    names = rng.permutation(sorted(set(groups.tolist()))).tolist()
    wanted = min(MOST_TESTED, TESTED * len(groups))
    tested: list[str] = []
    rows = 0
    while rows < wanted:
        tested.append(names.pop())
        rows += int((groups == tested[-1]).sum())
    test = np.flatnonzero(np.isin(groups, tested))
    # Labels are spread over documents: one row of each, then a second one, …
    turns = [rng.permutation(np.flatnonzero(groups == name)).tolist() for name in names]
    order: list[int] = []
    while any(turns):
        order += [turn.pop() for turn in turns if turn]
    return np.array(order, dtype=np.intp), test


def levels_of(problem: Problem, test: NDArray[np.intp], scores: Vector) -> list[float]:
    """Return Q over all test rows, within documents, and within systems; NaN where there is none."""
    human = problem.ratings[test]
    documents = [problem.documents[i] for i in test.tolist()]
    systems = [problem.systems[i] for i in test.tolist()] if problem.systems else None
    found = []
    alone = len(set(documents)) == len(documents)
    of_one = len(set(systems or ())) < 2
    for level in LEVELS:
        if (level == "sample" and alone) or (level == "within" and of_one):
            found.append(math.nan)
            continue
        total = CorrelationSum(level)(scores, human, documents, systems)
        found.append(total.q if total.n else math.nan)
    return found


def measure(problem: Problem, draws: int) -> Iterator[Reached]:
    """Yield what each way reaches with each number of labels."""
    reached: dict[tuple[str, int], list[list[float]]] = defaultdict(list)
    ways = [way for way in PARTS[problem.part] if way.can(problem.rows)]
    for draw in range(draws):
        order, test = split(problem, draw)
        if len(test) < FEWEST_TESTED:
            continue
        rest = problem.rows.rows(test)
        for way in ways:
            for size in SIZES:
                if size < way.fewest or size > len(order):
                    continue
                if size and not way.learns:
                    reached[way.name, size].append(reached[way.name, 0][-1])
                    continue
                at = order[:size]
                score = way.fit(problem.rows.rows(at), problem.ratings[at])
                scores = np.nan_to_num(score(rest))
                reached[way.name, size].append(levels_of(problem, test, scores))
    for (name, size), values in reached.items():
        with np.errstate(invalid="ignore"):
            means = np.array(values).mean(axis=0)
        yield Reached(
            problem.part,
            problem.set,
            problem.family,
            problem.aspect,
            name,
            size,
            len(values),
            tuple(means.tolist()),
        )


def run(
    sets: Sequence[EfficiencySet],
    config: Path | None,
    tables: Sequence[Path],
    draws: int,
    journal: Path,
    progress: Progress,
) -> list[Reached]:
    """Measure what is missing in the journal; return all of it."""
    found = measured(journal)
    done = {part: {o.task for o in found if o.part == part} for part in PARTS}
    with Journal(journal) as kept:
        for part in PARTS:
            for problem in problems(sets, config, tables, part, done[part]):
                progress.stage(f"{part}: {problem.name}", 1)
                reached = list(measure(problem, draws))
                kept.write(*map(asdict, reached))
                found += reached
                progress.step("")
    return found


def measured(path: Path) -> list[Reached]:
    """Return what a journal has."""
    if not path.exists():
        return []
    found = []
    for _, line in read_journal(path):
        levels = tuple(math.nan if v is None else v for v in line.pop("levels"))
        found.append(Reached(**line, levels=levels))
    return found


# Summing up ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mean:
    """A mean over sets (each set the mean of its aspects), with its 95 % interval by Student's t."""

    value: float
    low: float
    high: float
    sets: int


def over_sets(by_task: Mapping[str, float]) -> Mean:
    """Return the mean over sets. by_task: values by "set aspect"; NaN counts for nothing."""
    by_set: dict[str, list[float]] = defaultdict(list)
    for task, value in by_task.items():
        if not math.isnan(value):
            by_set[task.split(" ")[0]].append(value)
    means = np.array([np.mean(values) for values in by_set.values()])
    if not len(means):
        return Mean(math.nan, math.nan, math.nan, 0)
    mean = float(means.mean())
    if len(means) < 3:
        return Mean(mean, math.nan, math.nan, len(means))
    error = float(means.std(ddof=1)) / math.sqrt(len(means))
    half = float(scipy.special.stdtrit(len(means) - 1, 0.975)) * error
    return Mean(mean, mean - half, mean + half, len(means))


def values_of(
    found: Sequence[Reached], part: Part, way: str, labels: int, level: str
) -> dict[str, float]:
    """Return what a way reached by task."""
    place = LEVELS.index(level)
    return {
        one.task: one.levels[place]
        for one in found
        if (one.part, one.way, one.labels) == (part, way, labels)
    }
