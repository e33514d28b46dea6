"""What a few labels add to a strong judge, whose scores stand in the rows beside people's.

The own score is the first signal of a task. Labels are drawn many times, spread over documents; what compiling makes of
them (the mixture, or the own score alone where the mixture is not clearly ahead) is measured on all other documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from ...agreement.conformal import deferred
from ...agreement.estimation import estimate
from ...agreement.objectives import Q, Rows
from ...datasets.loading import open_table, read_labels
from ...datasets.records import Labels
from ...optimizers.examples import examples_of, humans, item_of
from ...optimizers.fitting.outcome import calibrated_without, fit_sureness
from ...optimizers.fitting.readings import SURE, agreement, lead, weigh
from ...parts import Options, read_options
from ...programs.models.lm import NO_MODEL, language_model
from ...programs.outcome import Calibration
from ...programs.readings.experience import Experience, experience_of
from ...programs.readings.head import Readings, Vector
from ...programs.readings.judge import DIRECT, ReadingsJudge, table_of
from ...programs.readings.kinds import SIGNAL
from ...running.settings import read_yaml
from ...signatures.values import Scale
from .experience import FEWEST_LEFT, TaskSpec, located, spread
from .saving import save

SIZES = (8, 20, 40, 80)
MAIN = 40
SURES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SHARES = (0.1, 0.2, 0.3, 0.5)


class StrongSpec(TaskSpec):
    """A task and its signals, the judge whose score has the first word before all others. more: a file of further
    columns, found by the rows' ids. judge: what the first signal is called."""

    signals: tuple[str, ...] = Field(min_length=1)
    more: str = ""
    judge: str = ""


class StrongSpecs(Options):
    """The file of a study."""

    tasks: tuple[StrongSpec, ...] = Field(min_length=1)


@dataclass(frozen=True)
class StrongTask:
    """table: the first signal, the others, what is counted. own: the first in percent."""

    spec: StrongSpec
    table: Readings
    scores: Vector
    own: Vector
    labels: Labels

    @property
    def name(self) -> str:
        return f"{Path(self.spec.labels).stem} {self.spec.aspect or 'overall'}"

    def columns(self, keep: Callable[[str], bool]) -> Readings:
        """The first signal and those others that are kept."""
        first, *rest = self.table.names
        names = (first, *filter(keep, rest))
        return Readings(names, self.table.columns(names), self.table.groups)

    def beside(self, values: Vector) -> Readings:
        """The first signal and a column of numbers."""
        first = self.table.names[:1]
        both = np.column_stack([self.table.columns(first), values])
        return Readings((*first, "made.column"), both, self.table.groups)


def read_strong(path: Path | None) -> StrongSpecs:
    """The tasks of a file, those of recorded judges by default. Raises OptionError."""
    path = path or Path(__file__).with_name("strong.yaml")
    return read_options(StrongSpecs, read_yaml(path, "the file of tasks"), path.name)


def read_strong_task(spec: StrongSpec, config: Path | None) -> StrongTask:
    """Rows where the first signal is there. Raises LabelsError, OptionError."""
    records = [dict(record) for record in open_table(located(spec.labels, config)).records]
    if spec.more:
        further = {record["id"]: record for record in open_table(located(spec.more, config)).records}
        records = [further.get(record["id"], {}) | record for record in records]
    labels = read_labels(records, aspect=spec.aspect)
    judge = ReadingsJudge.from_options({"signals": spec.signals}, labels_aspect=labels.aspect)
    judge.without_model()
    judge.set_lm(language_model(NO_MODEL))
    leader = judge.columns()[0]
    labels = labels.subset([i for i, row in enumerate(labels.rows) if np.isfinite(leader.value(row.columns))])
    items = [item_of(example) for example in examples_of(labels, judge)]
    judge.meet("", items)
    read = [judge.read(item, judge.lm) for item in items]
    members = [row.doc_id if spec.by == "document" else row.group for row in labels.rows]
    own = np.array([judge.columns()[0].percent(leader.value(row.columns)) for row in labels.rows])
    return StrongTask(spec, table_of(read, None, members), humans(examples_of(labels)), own, labels)


# What labels add ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Added:
    """Means over draws. own, mixed: Q of the own score, and of the mixture whether or not it is clearly ahead; judged:
    of what compiling takes. taken: the share of draws in which that is the mixture. gains: by draw, how far the mixture
    is ahead on other documents, and in which share of resamples of the labels."""

    own: float
    mixed: float
    judged: float
    taken: float
    gains: tuple[tuple[float, float], ...]

    def gain(self, sure: float) -> float:
        """What it would be with another share of resamples."""
        return float(np.mean([gained * (share >= sure) for gained, share in self.gains]))


def added(task: StrongTask, table: Readings, labels: int, draws: int, *, today: bool = False) -> Added | None:
    """What labels add to the first column of a table by the others, on the same half of the documents whatever their
    number; None where the task is too small. today: as compiling weighed them before there was a first word."""
    result = []
    documents = [row.doc_id for row in task.labels.rows]
    known = experience_of("") if today else Experience()
    for number in range(draws):
        train, left = spread(table.groups, labels, number)[0], spread(table.groups, len(table), number)[1]
        if len(train) < labels or len(left) < FEWEST_LEFT:
            return None
        y, own = task.scores[train], task.own
        fit = weigh(table.rows(train), y, known, own=table.names[0], first=not today)
        rows = Rows(y, [documents[i] for i in train], [str(table.groups[i]) for i in train])
        gap = lead(fit.left_out, own[train], rows, Q())
        share = 1 - gap.p / 2 if gap.value > 0 and np.isfinite(gap.p) else 0.0
        wins = today or share >= next(sure for fewest, sure in SURE.items() if labels >= fewest)
        qs = [agreement(given, task.scores[left]) for given in (own[left], fit.head(table.rows(left)))]
        result.append((*qs, qs[int(wins)], float(wins), qs[1] - qs[0], share))
    own_q, mixed, judged, taken, *_ = np.mean(result, axis=0).tolist()
    return Added(own_q, mixed, judged, taken, tuple((row[4], row[5]) for row in result))


def as_today(task: StrongTask) -> Readings:
    """The table as it would be where the first signal is the model's own score, and there are no others."""
    table = task.columns(lambda name: not name.startswith(SIGNAL))
    return Readings((DIRECT, *table.names[1:]), np.column_stack([task.own, table.values[:, 1:]]), table.groups)


def candidates(task: StrongTask) -> dict[str, Readings]:
    """What could add to the own score, by name."""
    table, others = task.table, [name for name in task.table.names[1:] if name.startswith(SIGNAL)]
    made = {
        "surface": task.columns(lambda name: not name.startswith(SIGNAL)),
        "length alone": task.columns(lambda name: name == "surface.words"),
        "mean of the document": task.beside(_document_means(task.own, [row.doc_id for row in task.labels.rows])),
    }
    if others:
        columns = table.columns((table.names[0], *others))
        standard = (columns - np.nanmean(columns, axis=0)) / np.maximum(np.nanstd(columns, axis=0), 1e-9)
        made |= {
            "a second judge": task.columns(lambda name: name == others[0]),
            "all judges": task.columns(lambda name: name in others),
            "all judges and surface": table,
            "spread of the judges": task.beside(np.nanstd(standard, axis=1)),
        }
    return made


def _document_means(values: Vector, documents: Sequence[str]) -> Vector:
    codes = np.unique(documents, return_inverse=True)[1]
    made: Vector = (np.bincount(codes, values) / np.bincount(codes))[codes]
    return made


# How sure it is -------------------------------------------------------------------------------------------------------


def estimated(task: StrongTask, labels: int, draws: int) -> list[float]:
    """`estimate` of all rows' mean from some documents' labels: the share of intervals (95 %) that hold the mean of all
    human scores, that of labels alone, and how many labels alone would give so narrow an interval, for each label."""
    documents, result = [str(group) for group in task.table.groups], []
    for number in range(draws):
        train, _ = spread(documents, labels, number)
        human = np.full(len(documents), np.nan)
        human[train] = task.scores[train]
        (one,) = estimate(task.own, human, documents=documents).systems
        mean = task.scores.mean()
        result.append([one.low <= mean <= one.high, one.human_low <= mean <= one.human_high, one.effective / labels])
    return [float(x) for x in np.nanmean(np.array(result, float), axis=0)]


def sureness(task: StrongTask, labels: int, draws: int) -> list[float]:
    """Of the own score, calibrated by labels: coverage and width (in percent of the scale) of its 90 % intervals beside
    those of a judge that says the mean label of every row, and the mean error on what is left where shares of the rows
    go to people, as a share of that on all rows."""
    scale, result = Scale(0, 100), []
    for number in range(draws):
        train, left = spread(task.table.groups, labels, number)
        y, members = task.scores[train], [task.table.groups[i] for i in train]
        rest, row = task.scores[left], []
        mapped, means = Calibration.fit(task.own[train], y, scale), [y[np.array(members) != m].mean() for m in members]
        judged = calibrated_without(task.own[train], y, members, scale), np.array([mapped(p) for p in task.own[left]])
        for percents, (out, given) in (
            (task.own, judged),
            (np.full(len(task.own), 50.0), (np.array(means), np.full(len(left), y.mean()))),
        ):
            sure = fit_sureness(percents[train], out, y, members, scale)
            assert sure is not None
            reach = [sure.interval(p, s, scale) for p, s in zip(percents[left].tolist(), given.tolist(), strict=True)]
            low, high = (np.array([getattr(one, end) for one in reach if one]) for end in ("low", "high"))
            row += [float(np.mean((low - 1e-9 <= rest) & (rest <= high + 1e-9))), float(np.mean(high - low))]
            if percents is task.own:
                off, expected = np.abs(given - rest), [one.error for one in reach if one]
                errors = [off.mean(), *(off[~deferred(expected, share)].mean() for share in SHARES)]
        result.append([*row, *(float(error / errors[0]) for error in errors[1:])])
    return [float(x) for x in np.mean(result, axis=0)]


# Tables ---------------------------------------------------------------------------------------------------------------


def tables(tasks: Sequence[StrongTask], draws: int, folder: Path, command: str, step: Callable[[], None]) -> None:
    """Measure, and write the tables of the page."""
    about: Mapping[str, Any] = {
        "commands": [command],
        "notes": f"{draws} draws of labels; Q on documents without a label",
    }
    rows, tried, sure = list[list[Any]](), dict[str, list[tuple[float, float, float]]](), list[list[Any]]()
    guards = list[tuple[str, Added]]()
    for task in tasks:
        made = candidates(task)
        of = {size: added(task, made["surface"], size, draws) for size in SIZES}
        main, today = of[MAIN], added(task, as_today(task), MAIN, draws, today=True)
        found = {name: main if name == "surface" else added(task, table, MAIN, draws) for name, table in made.items()}
        both = found.get("all judges and surface")
        if main is not None:
            known = [None if one is None else one.judged for one in of.values()]
            every = both or main
            known += [main.taken, every.judged, every.taken]
            guards.append((task.spec.family, main))
            old = None if today is None else today.judged
            rows.append([task.name, task.spec.judge, len(task.own), main.own, old, *known])
            sure.append([task.name, task.spec.judge, *estimated(task, MAIN, 5 * draws), *sureness(task, 80, draws)])
        for name, one in found.items():
            if one is not None:
                tried.setdefault(name, []).append((one.own, one.judged, one.mixed))
        step()
    names = ["task", "own score of", "rows", "own score", f"weighed as before, {MAIN}"]
    names += [
        *(f"{size} labels" for size in SIZES),
        f"mixture taken, {MAIN}",
        f"all columns, {MAIN}",
        "mixture taken (all)",
    ]
    forms = ["", "", "{}", *["{:.2f}"] * (2 + len(SIZES)), "{:.0%}", "{:.2f}", "{:.0%}"]
    save(folder, "strong", dict(zip(names, forms, strict=True)), [*rows, *_means(rows)], **about)
    save(folder, "strong-guard", *_guards(guards), **about)
    lines = []
    for name, pairs in tried.items():
        own, judged, mixed = np.array(pairs).T
        gain = judged - own
        lines.append([name, len(own), own.mean(), judged.mean(), gain.mean(), gain.min(), gain.max(), mixed.mean()])
    titles = ("beside the own score", "tasks", "own score", f"{MAIN} labels", "gain", "worst task", "best task")
    forms = ["", "{}", "{:.2f}", "{:.2f}", "{:+.3f}", "{:+.3f}", "{:+.3f}", "{:.2f}"]
    save(folder, "strong-candidates", dict(zip((*titles, "without the guard"), forms, strict=True)), lines, **about)
    names = [
        "task",
        "own score of",
        f"estimate, {MAIN} labels: coverage",
        "labels alone: coverage",
        "labels it is worth",
    ]
    names += ["90 % interval, 80 labels: coverage", "width", "without a judge: coverage", "its width"]
    names += [f"error, {share:.0%} deferred" for share in SHARES]
    forms = ["", "", "{:.2f}", "{:.2f}", "×{:.2f}", "{:.2f}", "{:.0f}", "{:.2f}", "{:.0f}", *["{:.2f}"] * len(SHARES)]
    save(folder, "strong-uncertainty", dict(zip(names, forms, strict=True)), [*sure, *_means(sure)], **about)


def _guards(tasks: Sequence[tuple[str, Added]]) -> tuple[dict[str, str], list[list[Any]]]:
    """What each share of resamples would give, and one that is chosen for a task by the tasks of other families: the
    lowest that leaves none of them more than .02 below its own score."""
    columns = {
        "share of resamples": "",
        "mean gain": "{:+.3f}",
        "worst task": "{:+.3f}",
        "below by more than .02": "{}",
    }

    def line(name: str, gains: Sequence[float]) -> list[Any]:
        return [name, float(np.mean(gains)), min(gains), sum(gain < -0.02 for gain in gains)]

    chosen = []
    for family, one in tasks:
        others = [other for name, other in tasks if name != family]
        safe = (sure for sure in SURES if all(other.gain(sure) >= -0.02 for other in others))
        chosen.append(one.gain(next(safe, SURES[-1])))
    lines = [line(f"{sure:.0%}", [one.gain(sure) for _, one in tasks]) for sure in SURES]
    return columns, [*lines, line("chosen on other families", chosen)]


def _means(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Of all tasks, and of those with a judge of the strongest kind; None where a task has none."""
    strong = [row for row in rows if not row[1].startswith("GPT-3.5")]
    result = []
    for some, name in ((rows, "tasks"), (strong, "tasks without GPT-3.5")):
        made: list[Any] = [f"mean of {len(some)} {name}", ""]
        for column in list(zip(*some, strict=True))[2:]:
            whole = sum(column) if all(isinstance(value, int) for value in column) else None
            made.append(whole or (None if None in column else float(np.mean(column))))
        result.append(made)
    return result
