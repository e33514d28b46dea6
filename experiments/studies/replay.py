"""Replay recorded answers to measure the gain of choosing among prompts by labels, and of averaging them.

Every candidate is a recorded prompt of one model (or one of several models). As in `compile`, candidates are compared
on labelled rows, one is chosen or all are averaged, and the outcome is measured on rows of other documents. No model is
called.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import dspy
import numpy as np
import scipy
from pydantic import Field

from judgesmith.agreement.correlation import impute, rowwise
from judgesmith.agreement.objectives import Closeness, Q, Rows
from judgesmith.datasets.loading import read_labels
from judgesmith.datasets.records import Labels
from judgesmith.errors import LabelsError
from judgesmith.experiments.studies.experience import located
from judgesmith.optimizers.examples import clearly, difference, examples_of
from judgesmith.optimizers.search.selection import Contest
from judgesmith.parts import Options, read_options
from judgesmith.programs.panel.averaging import (
    OF_MODELS,
    OF_PROMPTS,
    Matrix,
    Standing,
    Vector,
    averaged,
    standardised,
    standings_of,
    weights_by_labels,
)
from judgesmith.programs.progress import Progress
from judgesmith.programs.readings.bindings.columns import Column
from judgesmith.running.settings import read_yaml

#: Numbers of labels.
SIZES = (20, 40, 80, 160, 300)
#: Rows of other documents that an outcome is measured on at most; draws in which a candidate has to win clearly.
MOST_HELD_OUT = 200
SURE_DRAWS = 10
SURE = 0.7
ROUNDS = 300
Kind = Literal["panel", "jury"]


class ReplaySet(Options):
    """A set of labels with recorded answers.

    panels: prompts by model. juries: members of several models. column, juror: the names of their columns. by: the unit
    that is kept whole. contrast: it is of another kind than the others, which are summed up without it, too.
    """

    labels: str
    family: str
    aspects: tuple[str, ...]
    metrics: str = ""
    without: tuple[str, ...] = ()
    by: Literal["group", "document"] = "group"
    contrast: bool = False
    panels: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    column: str = "{model}.{prompt}"
    juries: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    juror: str = "{member}"


class ReplaySets(Options):
    """The file of a study."""

    sets: tuple[ReplaySet, ...] = Field(min_length=1)


@dataclass(frozen=True)
class Task:
    """Rows with the recorded percents of candidates, shape (rows, candidates)."""

    kind: Kind
    family: str
    model: str
    aspect: str
    percents: Matrix
    rows: Rows
    examples: Sequence[dspy.Example]


@dataclass(frozen=True)
class Outcome:
    """Held-out Q by number of labels and rule, as the mean over draws."""

    kind: Kind
    family: str
    model: str
    aspect: str
    candidates: int
    rows: int
    draws: int
    means: Mapping[tuple[int, str], float]

    @property
    def cluster(self) -> str:
        """Tasks that share a model and a set."""
        return f"{self.family}, {self.model}"

    def mean(self, labels: int, rule: str) -> float:
        """NaN where the task has too few rows for this number of labels."""
        return self.means.get((labels, rule), math.nan)


# What is replayed -----------------------------------------------------------------------------------------------------


def read_sets(path: Path | None) -> tuple[ReplaySet, ...]:
    """Return the sets of a file, by default the recorded public ones.

    Raises:
        OptionError: For a file of another form.
    """
    path = path or Path(__file__).with_name("replay.yaml")
    return read_options(ReplaySets, read_yaml(path, "the file of sets"), path.name).sets


def tasks_of(spec: ReplaySet, config: Path | None) -> Iterator[Task]:
    """Yield every panel and jury of a set, for each of its aspects.

    Raises:
        LabelsError: For labels that cannot be read.
        OptionError: For missing columns.
    """
    file = located(spec.labels, config)
    metrics = _metrics(located(spec.metrics, config)) if spec.metrics else {}
    for aspect in spec.aspects:
        labels = read_labels(file, aspect=aspect)
        labels = labels.subset(
            i for i, row in enumerate(labels.rows) if row.system not in spec.without
        )
        recorded = []
        for row in labels.rows:
            recorded.append(_recorded(row.columns, metrics.get(row.id, {})))
        for model, prompts in spec.panels.items():
            names = [
                _name(spec.column, model=model, prompt=prompt, aspect=aspect)
                for prompt in prompts
            ]
            yield _task("panel", spec, model, aspect, labels, recorded, names)
        for title, members in spec.juries.items():
            names = [
                _name(spec.juror, member=member, aspect=aspect) for member in members
            ]
            yield _task(
                "jury",
                spec,
                f"{len(names)} of several models, {title}",
                aspect,
                labels,
                recorded,
                names,
            )


def _name(form: str, **parts: str) -> str:
    return ".".join(part for part in form.format(**parts).split(".") if part)


def _metrics(file: Path) -> dict[str, Mapping[str, Any]]:
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {line["id"]: line["metrics"] for line in lines}


def _recorded(columns: Mapping[str, Any], metrics: Mapping[str, Any]) -> dict[str, Any]:
    judges = columns.get("judges")
    return {**metrics, **(judges if isinstance(judges, Mapping) else {})}


def _task(
    kind: Kind,
    spec: ReplaySet,
    model: str,
    aspect: str,
    labels: Labels,
    recorded: Sequence[Mapping[str, Any]],
    names: Sequence[str],
) -> Task:
    """The rows that every candidate was recorded for, but for single failures."""
    table: list[list[float]] = []
    for row in recorded:
        table.append([_number(row.get(name)) for name in names])
    values = np.array(table)
    present = np.isfinite(values).sum(axis=1) * 2 > len(names)
    if not present.any():
        raise LabelsError(f"{spec.labels}: nothing was recorded as {names[0]}")
    kept = labels.subset(np.flatnonzero(present).tolist())
    columns = []
    for name, column in zip(names, values[present].T, strict=True):
        of = Column(name).with_ends(column.tolist())
        columns.append((column - of.worst) * 100 / (of.best - of.worst))
    percents = np.stack(columns, axis=1)
    examples = examples_of(kept)
    documents = [row.doc_id for row in kept.rows]
    groups = documents if spec.by == "document" else list(kept.groups)
    for example, group in zip(examples, groups, strict=True):
        example["group"] = group
    rows = Rows(np.array([example.score for example in examples]), documents, groups)
    return Task(kind, spec.family, model, aspect, percents, rows, examples)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


# Rules ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """One split of a task: an order of rows to label, and held-out rows of other documents."""

    order: Sequence[int]
    heldout: Sequence[int]
    rng: np.random.Generator


def draw_of(task: Task, number: int) -> Draw:
    """Half of the groups are held out, and rows of the others are labelled in a random order."""
    rng = np.random.default_rng([number, 53])
    names = sorted(set(task.rows.groups))
    out = {
        names[place]
        for place in rng.permutation(len(names))[: len(names) // 2].tolist()
    }
    places = rng.permutation(len(task.rows.groups)).tolist()
    inside = [place for place in places if task.rows.groups[place] not in out]
    heldout = [place for place in places if task.rows.groups[place] in out]
    return Draw(inside, heldout[:MOST_HELD_OUT], rng)


def agreements(percents: Matrix, human: Vector) -> Matrix:
    """Return Pearson, Spearman and Kendall of each column with people, shape (3, columns).

    As in `CorrelationSum`, a failed row is imputed, and an undefined part is 0.
    """
    columns = np.stack([impute(column) for column in percents.T])
    people = np.broadcast_to(human, columns.shape)
    parts = rowwise(columns, people, ("pearson", "spearman", "kendall"))
    return np.nan_to_num(parts.T)


def q_of(task: Task, percents: Matrix, places: Sequence[int]) -> list[float]:
    """Q of each column on some rows."""
    sums: list[float] = (
        agreements(percents, task.rows.human[places]).sum(axis=0).tolist()
    )
    return sums


def _rows(task: Task, at: Any) -> Rows:
    documents = task.rows.documents
    groups = task.rows.groups
    return Rows(
        task.rows.human[at], [documents[i] for i in at], [groups[i] for i in at]
    )


def play(
    task: Task,
    draws: int,
    sizes: Sequence[int] = SIZES,
    progress: Callable[[str], None] | None = None,
) -> Outcome:
    """Play every rule on a task, by numbers of labels.

    Args:
        task: The task.
        draws: Number of draws of labels.
        sizes: Numbers of labels.
        progress: Called after every draw.
    """
    reached: dict[tuple[int, str], list[float]] = defaultdict(list)
    for number in range(draws):
        draw = draw_of(task, number)
        alone = q_of(task, task.percents[draw.heldout], draw.heldout)
        few = _unfitted(task, draw)
        for size in sizes:
            if size > len(draw.order):
                continue
            labelled = draw.order[:size]
            found = _chosen(task, labelled, alone, sure=number < SURE_DRAWS) | few
            found |= _averages(task, labelled, draw.heldout)
            for rule, value in found.items():
                reached[size, rule].append(value)
        if progress is not None:
            progress("")
    means = {key: float(np.mean(values)) for key, values in reached.items()}
    shape = task.percents.shape
    return Outcome(
        task.kind,
        task.family,
        task.model,
        task.aspect,
        shape[1],
        shape[0],
        draws,
        means,
    )


def _chosen(
    task: Task, labelled: Sequence[int], alone: Sequence[float], *, sure: bool
) -> dict[str, float]:
    """Held-out Q of the candidate that each rule of selection takes."""
    at = np.asarray(labelled)
    rows = _rows(task, at)
    percents = task.percents[at]
    r, rho, tau = agreements(percents, rows.human)
    close = [Closeness().reached(column, rows).value for column in percents.T]
    contest = Contest([(0, 0), *([(1, 0)] * (len(alone) - 1))], [True] * len(alone))
    q = (r + rho + tau).tolist()
    best = {
        "Q": contest.chosen(q, None),
        "Pearson": contest.chosen(r.tolist(), None),
        "closeness": contest.chosen(close, None),
    }
    if sure:
        examples = [task.examples[i] for i in labelled]

        def beats(one: int, other: int) -> bool:
            pair = percents[:, one], percents[:, other]
            return clearly(
                difference(*pair, examples, objective=Q(), seed=0, rounds=ROUNDS), SURE
            )

        best["Q, surely"] = contest.chosen(q, beats)
    found = {f"chosen by {rule}": alone[place] for rule, place in best.items()}
    ends = {
        "one at random": float(np.mean(alone)),
        "the first": alone[0],
        "the best in hindsight": max(alone),
    }
    return found | ends


def _unfitted(task: Task, draw: Draw) -> dict[str, float]:
    """Return the rules that do not depend on labels: percents unchanged, and panels of a few random candidates."""
    by_rule = {
        "mean of all, percents as they are": _plain_mean(task.percents[draw.heldout])
    }
    for count in (2, 3):
        if count < task.percents.shape[1]:
            some = draw.rng.permutation(task.percents.shape[1])[:count]
            percents = task.percents[:, some]
            by_rule[f"mean of {count} at random"] = averaged(
                percents[draw.heldout], standings_of(percents[draw.order])
            )
    return _by_rule(task, by_rule, draw.heldout)


def _averages(
    task: Task, labelled: Sequence[int], heldout: Sequence[int]
) -> dict[str, float]:
    """Panels of all candidates."""
    train = task.percents[labelled]
    rest = task.percents[heldout]
    standings = standings_of(train)
    human = task.rows.human[labelled]
    z = standardised(train, standings)
    weights = {
        "mean of all": np.ones(train.shape[1]),
        "all, weighed by labels": weights_by_labels(z, human, OF_MODELS),
        "all, weighed a little": weights_by_labels(z, human, OF_PROMPTS),
    }
    by_rule = {}
    for rule, shares in weights.items():
        weighed = [
            _weighed(one, share)
            for one, share in zip(standings, shares.tolist(), strict=True)
        ]
        by_rule[rule] = averaged(rest, weighed)
    return _by_rule(task, by_rule, heldout)


def _by_rule(
    task: Task, by_rule: Mapping[str, Vector], heldout: Sequence[int]
) -> dict[str, float]:
    """Q of panels, by their names."""
    return dict(
        zip(
            by_rule,
            q_of(task, np.column_stack(list(by_rule.values())), heldout),
            strict=True,
        )
    )


def _weighed(standing: Standing, share: float) -> Standing:
    return standing.model_copy(update={"weight": share})


def _plain_mean(percents: Matrix) -> Vector:
    finite = np.isfinite(percents)
    means: Vector = np.where(finite, percents, 0.0).sum(axis=1) / finite.sum(axis=1)
    return means


# What came out --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gain:
    """A rule's held-out Q less another's, as a mean over clusters of tasks.

    The 95 % interval is Student's t over clusters. NaN where fewer than two clusters have both.
    """

    value: float
    low: float
    high: float
    clusters: int


def gain(
    outcomes: Sequence[Outcome],
    labels: int,
    rule: str,
    other: str,
    by: Callable[[Outcome], str],
) -> Gain:
    """Return the gain of `rule` over `other`.

    Args:
        outcomes: The outcomes of all tasks.
        labels: The number of labels.
        rule: The rule.
        other: The rule it is compared with.
        by: The cluster of a task.
    """
    gains: dict[str, list[float]] = defaultdict(list)
    for one in outcomes:
        gained = one.mean(labels, rule) - one.mean(labels, other)
        if math.isfinite(gained):
            gains[by(one)].append(gained)
    means = np.array([np.mean(values) for values in gains.values()])
    if len(means) < 2:
        return Gain(
            float(means.mean()) if len(means) else math.nan,
            math.nan,
            math.nan,
            len(means),
        )
    half = float(
        scipy.stats.t.ppf(0.975, len(means) - 1)
        * means.std(ddof=1)
        / math.sqrt(len(means))
    )
    value = float(means.mean())
    return Gain(value, value - half, value + half, len(means))


def level(
    outcomes: Sequence[Outcome], labels: int, rule: str, by: Callable[[Outcome], str]
) -> float:
    """Return a rule's held-out Q, as the mean over clusters of their tasks' means."""
    values: dict[str, list[float]] = defaultdict(list)
    for one in outcomes:
        if math.isfinite(mean := one.mean(labels, rule)):
            values[by(one)].append(mean)
    if values:
        return float(np.mean([np.mean(some) for some in values.values()]))
    return math.nan


def rules_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the rules that were played, in their order."""
    return list(dict.fromkeys(rule for one in outcomes for _, rule in one.means))


def replay(
    tasks: Sequence[Task], draws: int, progress: Progress, kept: Path | None = None
) -> list[Outcome]:
    """Play every task.

    Args:
        tasks: The tasks.
        draws: Number of draws of labels.
        progress: The watcher of the run.
        kept: A file of outcomes, from which those of an earlier run are taken.
    """
    earlier = _kept(kept, draws)
    progress.stage("replaying", len(tasks) * draws)
    outcomes = []
    for task in tasks:
        key = f"{task.kind}, {task.family}, {task.model}, {task.aspect}"
        if key not in earlier:
            earlier[key] = play(task, draws, progress=progress.step)
            if kept is not None:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"key": key, **_plain(earlier[key])}) + "\n")
        outcomes.append(earlier[key])
    return outcomes


def _plain(outcome: Outcome) -> dict[str, Any]:
    named = {
        name: getattr(outcome, name)
        for name in ("kind", "family", "model", "aspect", "candidates", "rows", "draws")
    }
    return {
        **named,
        "means": [[size, rule, value] for (size, rule), value in outcome.means.items()],
    }


def _kept(file: Path | None, draws: int) -> dict[str, Outcome]:
    """Outcomes of as many draws, or more, that a file holds, by their keys."""
    if file is None or not file.exists():
        return {}
    found = {}
    for line in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        key = line.pop("key")
        means = {(size, rule): value for size, rule, value in line.pop("means")}
        if line["draws"] >= draws:
            found[key] = Outcome(**line, means=means)
    return found
