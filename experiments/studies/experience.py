"""Experience from rated sets, and what it is worth on tasks of other families.

For every task readings and human scores are standardised, and each system's mean is taken off both: what is learnt
tells the texts of one system apart, not systems. Weights that tell all texts apart are learnt beside, for labels to
choose between. A family counts by the root of its number of tasks. One ridge
regression is fitted to the numbers and one to each block of states: their weights, with the readings' means and
spreads, are the experience. It is measured by leaving one family out: the experience of the others, and labels drawn
from the task.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from judgesmith.agreement.objectives import Q, Rows
from judgesmith.datasets.loading import read_labels
from judgesmith.datasets.records import Labels
from judgesmith.errors import OptionError
from judgesmith.optimizers.examples import (
    examples_of,
    groups,
    humans,
    item_of,
    score_rows,
)
from judgesmith.optimizers.fitting.gaussian import Fitted, target
from judgesmith.optimizers.fitting.readings import agreement, ahead, weigh
from judgesmith.parts import Options, read_options
from judgesmith.programs.atomic import write_whole
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.progress import Progress
from judgesmith.programs.readings.experience import (
    Card,
    Experience,
    StateExperience,
    Weights,
)
from judgesmith.programs.readings.head import Matrix, Readings, Vector
from judgesmith.programs.readings.judge import (
    DIRECT,
    ModelReadings,
    table_of,
    trained_scores,
)
from judgesmith.programs.readings.kinds import TRAINED
from judgesmith.running.plain import finite
from judgesmith.running.settings import read_yaml

#: Rows that a family counts as on average; ridge penalties; how far standardised readings may lie off; the parts'
#: shares.
FAMILY_ROWS = 300.0
NUMBERS_PENALTY = 100.0
STATES_PENALTY = 10_000.0
NUMBERS_CLIP = 4.0
STATES_CLIP = 6.0
NUMBERS_SHARE = 0.6
#: Between which percentiles of a task's rows a reading counts as seen.
RANGE = (2.0, 98.0)
SIZES = (5, 8, 12, 20, 40, 80)
#: Up to this number, labels are spread over documents.
SPREAD_LABELS = 12
#: Fewer rows to measure on say nothing.
FEWEST_LEFT = 20


class TaskSpec(Options):
    """A set of labels to learn from.

    family: tasks of one family are left out together. licence: for the card. by: the unit that is kept whole, if the
    column `group` names only a part of the set.
    """

    labels: str
    family: str
    aspect: str | None = None
    instruction: str = ""
    rows: int = Field(default=150, ge=20)
    licence: str = "own"
    by: Literal["group", "document"] = "group"


class Specs(Options):
    """The file of a study: tasks to learn from, and others that are only measured."""

    tasks: tuple[TaskSpec, ...] = Field(min_length=2)
    measured: tuple[TaskSpec, ...] = ()


@dataclass(frozen=True)
class Task:
    """Labelled rows of one aspect, as they were read.

    systems: which system wrote each row's text; empty where the set does not name them.
    """

    name: str
    family: str
    licence: str
    table: Readings
    scores: Vector
    systems: tuple[str, ...] = ()

    def within_systems(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values (one row each) less the mean of their system, where the set names several."""
        if len(set(self.systems)) < 2:
            return values
        _, of_row = np.unique(self.systems, return_inverse=True)
        members = np.eye(of_row.max() + 1)[:, of_row]
        means = (
            members @ values / members.sum(axis=1).reshape(-1, *[1] * (values.ndim - 1))
        )
        return np.asarray(values - means[of_row])


def systems_of(labels: Labels) -> tuple[str, ...]:
    """Return the system of each row; nothing if any row lacks one."""
    named = [row.system for row in labels.rows]
    return tuple(map(str, named)) if all(named) else ()


def read_specs(path: Path | None) -> Specs:
    """Return the tasks of a file, those of judgesmith's own experience by default.

    Raises:
        OptionError: For a file of another form.
    """
    path = path or Path(__file__).with_name("experience.yaml")
    return read_options(Specs, read_yaml(path, "the file of tasks"), path.name)


def located(labels: str, config: Path | None) -> Path:
    """Return the path of a file of labels, beside the config or in the folder of benchmark data."""
    beside = config.parent / labels if config is not None else Path(labels)
    if beside.exists():
        return beside
    return Path(os.environ.get("JUDGESMITH_DATA", ".")) / labels


def chosen_rows(spec: TaskSpec, file: Path) -> Labels:
    """Return the rows of a set that are read: whole documents, drawn until there are enough."""
    labels = read_labels(file, aspect=spec.aspect)
    if spec.by == "document":
        labels = replace(
            labels, rows=tuple(replace(row, group=row.doc_id) for row in labels.rows)
        )
    return labels.subset(sorted(whole_groups(labels.groups, spec.rows, 11)))


def percents(labels: Labels) -> Vector:
    """Return the human scores in percent of their scale."""
    low, high = labels.scale
    return np.asarray(100 * (labels.scores - low) / (high - low))


def read_task(
    spec: TaskSpec,
    file: Path,
    reader: str,
    lm: LanguageModel,
    progress: Progress,
    kept: Path,
    *,
    trained: bool = False,
) -> Task:
    """Read a task's rows, or take them from an earlier run in the folder `kept`.

    Raises:
        LabelsError: For labels that cannot be read.
        OptionError: If no row can be read by the model.
    """
    chosen = chosen_rows(spec, file)
    name = f"{file.stem}.{chosen.aspect}"
    path = kept / f"{name}.npz"
    if not path.exists():
        fixed = {"instruction": spec.instruction, "reader": reader}
        options = {name: value for name, value in fixed.items() if value}
        method = ModelReadings.from_options(
            options, labels_aspect=chosen.aspect, library_aspect=None
        )
        save(path, read_table(method, chosen, lm, progress, trained=trained))
    rows = load(path)
    if trained and TRAINED not in rows.table.names:
        raise OptionError(
            f"{path} has no scores of the trained reader; delete it to read the rows again"
        )
    if not rows.systems and len(rows.scores) == len(chosen):  # of an earlier version
        if not np.allclose(rows.scores, percents(chosen)):
            raise OptionError(f"{path} holds other rows; delete it to read them again")
        rows = replace(rows, systems=systems_of(chosen))
    return Task(name, spec.family, spec.licence, rows.table, rows.scores, rows.systems)


@dataclass(frozen=True)
class RowTable:
    """Labelled rows as they were read: the table, human scores in percent, and the rows' systems (none: unnamed)."""

    table: Readings
    scores: Vector
    systems: tuple[str, ...] = ()


def read_table(
    method: ModelReadings,
    labels: Labels,
    lm: LanguageModel,
    progress: Progress,
    *,
    trained: bool = False,
) -> RowTable:
    """Read labelled rows, each once.

    Args:
        method: The method that reads.
        labels: The rows.
        lm: The model.
        progress: The watcher of the run.
        trained: True to let the trained reader score them, too.

    Raises:
        OptionError: If none can be read.
    """
    examples = examples_of(labels)
    method.keeps = True
    progress.stage(f"{labels.aspect}: direct scores", len(examples))
    direct = score_rows(Judge(method, lm=lm), examples, progress).percents
    progress.stage(f"{labels.aspect}: readings", len(examples))
    read = method.rows.read_many([item_of(e) for e in examples], lm, progress.step)
    present = [i for i, row in enumerate(read) if row is not None]
    if not present:
        raise OptionError(
            f"no row of {labels.origin} could be read by {method.rows.opened(lm).reader.name}"
        )
    members = groups(examples)
    rows = [row for row in read if row is not None]
    if trained:
        scores = trained_scores(method, [item_of(examples[i]) for i in present])
        rows = [
            replace(row, numbers={TRAINED: score, **row.numbers})
            for row, score in zip(rows, scores, strict=True)
        ]
    table = table_of(rows, direct[present].tolist(), [members[i] for i in present])
    named = systems_of(labels)
    systems = tuple(named[i] for i in present) if named else ()
    return RowTable(table, humans(examples)[present], systems)


def whole_groups(
    members: Sequence[Any], rows: int, seed: Sequence[int] | int
) -> list[int]:
    """Numbers of the rows of whole groups in a random order, until there are enough."""
    codes = np.unique([str(member) for member in members], return_inverse=True)[1]
    taken: list[int] = []
    for group in np.random.default_rng(seed).permutation(int(codes.max()) + 1):
        if len(taken) >= rows:
            break
        taken += np.flatnonzero(codes == group).tolist()
    return taken


def draw_labels(
    members: Sequence[Any], labels: int, draw: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw rows to learn from in whole groups; return their numbers and those of the rows left.

    Of the last group only as many rows as are missing are taken; its other rows are in neither part.
    """
    train = np.array(whole_groups(members, labels, [draw, 5])[:labels], dtype=np.intp)
    of_train = {str(members[i]) for i in train}
    return train, np.flatnonzero([str(member) not in of_train for member in members])


def save(path: Path, rows: RowTable) -> None:
    """Write readings and scores to an .npz file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = rows.table
    states: dict[str, Any] = {
        f"states/{block}": v.astype(np.float16) for block, v in table.states.items()
    }
    np.savez_compressed(
        path,
        names=np.array(table.names),
        values=table.values,
        groups=np.array([str(g) for g in table.groups]),
        scores=rows.scores,
        systems=np.array(rows.systems, dtype=str),
        **states,
    )


def load(path: Path) -> RowTable:
    """Read a table that `save` wrote; one of an earlier version names no systems."""
    with np.load(path, allow_pickle=False) as file:
        states = {
            key[7:]: file[key].astype(np.float32)
            for key in file.files
            if key.startswith("states/")
        }
        names = tuple(map(str, file["names"]))
        table = Readings(names, file["values"], tuple(file["groups"].tolist()), states)
        systems = file["systems"].tolist() if "systems" in file.files else []
        return RowTable(table, file["scores"], tuple(systems))


# Fitting --------------------------------------------------------------------------------------------------------------


def fit_experience(tasks: Sequence[Task], card: Card, model: str = "") -> Experience:
    """Fit the experience of some tasks, with the readings that all their tables have.

    Raises:
        OptionError: Without any task.
    """
    if not tasks:
        raise OptionError(
            "an experience needs tasks to learn from; name tasks of two families or more"
        )
    wanted = np.concatenate(
        [task.within_systems(target(task.scores)[0]) for task in tasks]
    )
    rows = Counter[str]()
    for task in tasks:
        rows[task.family] += len(task.scores)
    of_family = Counter(task.family for task in tasks)
    one = FAMILY_ROWS / np.mean([np.sqrt(number) for number in of_family.values()])
    weight = {
        family: one * np.sqrt(number) / rows[family]
        for family, number in of_family.items()
    }
    weights = np.concatenate(
        [np.full(len(task.scores), weight[task.family]) for task in tasks]
    )
    shares = np.array([1 / of_family[task.family] for task in tasks]) / len(of_family)
    names = tuple(
        n for n in tasks[0].table.names if all(n in task.table.names for task in tasks)
    )
    blocks = [
        b
        for b in tasks[0].table.states
        if all(b in task.table.states for task in tasks)
    ]
    share = NUMBERS_SHARE if blocks else 1.0
    fitted = _Fit(tasks, wanted, weights, shares)
    plain = [n for n in names if n != TRAINED]
    numbers = fitted.numbers(plain, share)
    beside_trained = [n for n in names if n != DIRECT] if TRAINED in names else []
    trained = fitted.numbers(beside_trained, share)
    states = {
        block: fitted.states(block, (1 - share) / len(blocks)) for block in blocks
    }
    scores = np.concatenate([target(task.scores)[0] for task in tasks])
    of_all = _Fit([replace(t, systems=()) for t in tasks], scores, weights, shares)
    pooled = Weights(
        numbers={name: w for name, (*_, w) in of_all.numbers(plain, share).items()},
        states={b: of_all.states(b, (1 - share) / len(blocks)).weights for b in blocks},
    )
    columns = {name: [t.table.columns([name])[:, 0] for t in tasks] for name in names}
    columns |= {
        block: [of.added(t.table.states[block]) for t in tasks]
        for block, of in states.items()
    }
    ranges = {
        name: _range(of)
        for name, of in columns.items()
        if np.isfinite(np.concatenate(of)).any()
    }
    level = float(shares @ [task.scores.mean() for task in tasks])
    points = (
        float(shares @ [task.scores.std() for task in tasks]) / 2
    )  # what a score is worth at first
    return Experience(
        model=model,
        card=card,
        level=round(level, 3),
        points=round(points, 3),
        numbers=numbers,
        trained=trained,
        states=states,
        ranges=ranges,
        pooled=pooled,
    )


@dataclass(frozen=True)
class _Fit:
    """What every regression of an experience is fitted to.

    wanted: human scores within systems, standardised, of all tasks' rows. weights: how much each of these rows counts.
    shares: how much each task counts for means and spreads.
    """

    tasks: Sequence[Task]
    wanted: Vector
    weights: Vector
    shares: Vector

    def numbers(
        self, names: Sequence[str], share: float
    ) -> dict[str, tuple[float, float, float]]:
        """Return mean, spread and weight of each reading; share: of a score's spread, by all of them."""
        if not names:
            return {}
        tables = [task.table.columns(names) for task in self.tasks]
        means, spreads, slopes = self._ridge(tables, NUMBERS_CLIP, NUMBERS_PENALTY)
        rounded = (np.round(part, 7) for part in (means, spreads, share * slopes))
        columns = zip(names, *rounded, strict=True)
        return {name: (float(m), float(s), float(w)) for name, m, s, w in columns}

    def states(self, block: str, share: float) -> StateExperience:
        """Return means, spreads and weights of a block's dimensions."""
        tables = [task.table.states[block].astype(np.float64) for task in self.tasks]
        means, spreads, slopes = self._ridge(tables, STATES_CLIP, STATES_PENALTY)
        m, s, w = (
            tuple(float(f"{x:.5g}") for x in part)
            for part in (means, spreads, share * slopes)
        )
        return StateExperience(means=m, spreads=s, weights=w)

    def _ridge(
        self, tables: Sequence[Matrix], clip: float, penalty: float
    ) -> tuple[Vector, Vector, Vector]:
        """Fit one ridge regression to some columns of all tasks.

        A task without a column says nothing of it.

        Args:
            tables: the columns of each task.
            clip: the largest standardised reading.
            penalty: that of the ridge.

        Returns:
            Means and spreads of the columns within tasks, and their weights, which give scores of unit spread.
        """
        masked = [np.ma.masked_invalid(values) for values in tables]
        means, spreads = (
            np.array([getattr(m, of)(axis=0).filled(0.0) for m in masked])
            for of in ("mean", "std")
        )
        read = [
            np.clip(
                np.nan_to_num((values - mean) / np.where(spread > 0, spread, np.inf)),
                -clip,
                clip,
            )
            for values, mean, spread in zip(tables, means, spreads, strict=True)
        ]
        inside = [
            task.within_systems(values)
            for task, values in zip(self.tasks, read, strict=True)
        ]
        root = np.sqrt(self.weights)[:, None]
        x = np.concatenate(inside) * root
        y = self.wanted * root[:, 0]
        if x.shape[1] > len(x):
            fitted = x.T @ np.linalg.solve(x @ x.T + penalty * np.eye(len(x)), y)
        else:
            fitted = np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)
        varies = self.shares @ (spreads > 0)
        counted = np.where(varies > 0, varies, 1.0)
        pooled = np.sqrt(self.shares @ spreads**2 / counted)
        unit = max(float((np.concatenate(read) @ fitted).std()), 1e-9)
        return (
            (self.shares @ np.where(spreads > 0, means, 0.0)) / counted,
            pooled,
            fitted / unit,
        )


def _range(columns: Sequence[Vector]) -> tuple[float, float]:
    """Return the lowest and the highest of the tasks' percentiles `RANGE`, gaps left out."""
    present = [column[np.isfinite(column)] for column in columns]
    ends = [np.percentile(of, RANGE) for of in present if len(of)]
    low = min(of[0] for of in ends)
    high = max(of[1] for of in ends)
    return float(f"{low:.6g}"), float(f"{high:.6g}")


# Measuring ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Worth:
    """Q of one task on groups without a label, means over draws; NaN for a task that is too small.

    zero_shot: the model's own score; likelihood: log p alone; unlabelled: by experience alone. by_labels: with
    experience, without it, the share of human scores in the 90 % interval of the fitted model; of permuted labels with
    experience (nested and fresh).
    """

    task: str
    family: str
    rows: int
    zero_shot: float
    likelihood: float
    unlabelled: float
    by_labels: Mapping[int, tuple[float, float, float]]
    permuted: tuple[float, float]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON values; NaN becomes null."""
        values: dict[str, Any] = finite(asdict(self))
        return values


def draw(
    members: Sequence[Any], labels: int, number: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows that are learnt from and rows of other groups: few labels are spread, more are of whole groups."""
    return (draw_labels if labels > SPREAD_LABELS else spread)(members, labels, number)


def draws_of(
    members: Sequence[Any], labels: int, draws: int
) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
    """Draws by number, with both parts: those with two groups to learn from and enough rows to measure on."""
    for number in range(draws):
        train, left = draw(members, labels, number)
        several = len({members[row] for row in train.tolist()}) > 1
        if len(train) >= labels and len(left) >= FEWEST_LEFT and several:
            yield number, train, left


def spread(
    members: Sequence[Any], labels: int, number: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of as many groups as there are labels, up to half of all groups, and the rows of all others."""
    rows = defaultdict[str, list[int]](list)
    for row in np.random.default_rng([number, 6]).permutation(len(members)).tolist():
        rows[str(members[row])].append(row)
    groups = list(rows)[: max(2, min(labels, len(rows) // 2))]
    turns = itertools.chain.from_iterable(
        itertools.zip_longest(*(rows[group] for group in groups))
    )
    train = np.array([row for row in turns if row is not None][:labels], dtype=np.intp)
    return train, np.flatnonzero([str(member) not in groups for member in members])


def worth(
    task: Task, experience: Experience, draws: int, sizes: Sequence[int] = SIZES
) -> Worth:
    """Measure the worth of experience for a task.

    Args:
        task: The task.
        experience: The experience of other families.
        draws: Number of draws of labels.
        sizes: Numbers of labels.
    """
    table = task.table
    scores = task.scores
    head = experience.head(set(table.names) - {DIRECT}, table.states)
    by_labels = {}
    seconds = [0.0]
    permuted: list[tuple[float, float]] = []
    for size in sizes:
        results = []
        for number, train, left in draws_of(table.groups, size, draws):
            rows = table.rows(train)
            y = scores[train]
            rest = table.rows(left)
            started = time.perf_counter()
            weighed = weigh(rows, y, experience)
            seconds.append(time.perf_counter() - started)
            plain = weigh(rows, y, Experience())
            given = weighed.head(rest)
            own = np.nan_to_num(table.columns([DIRECT])[:, 0])
            members = [str(group) for group in rows.groups]
            if not ahead(
                weighed.left_out,
                own[train],
                Rows(y, members, members),
                Q(),
                strong=False,
            ):
                given = own[left]
            inside = np.abs(scores[left] - given) <= 1.645 * _deviation(weighed)
            results.append(
                (
                    agreement(given, scores[left]),
                    agreement(plain.head(rest), scores[left]),
                    inside.mean(),
                )
            )
            if size == 40:
                noise = np.random.default_rng([number, 8]).permutation(y)
                mixed = weigh(rows, noise, experience)
                permuted.append(
                    (
                        agreement(mixed.left_out, noise),
                        agreement(mixed.head(rest), scores[left]),
                    )
                )
        if results:
            by_labels[size] = tuple(np.mean(results, axis=0).tolist())
    of = {
        name: np.nan_to_num(table.columns([name])[:, 0])
        for name in (DIRECT, "assistant.mean")
    }
    mean = tuple(np.mean(permuted, axis=0).tolist()) if permuted else (np.nan, np.nan)
    return Worth(
        task.name,
        task.family,
        len(table),
        agreement(of[DIRECT], scores),
        agreement(of["assistant.mean"], scores),
        agreement(head(table), scores),
        by_labels,
        mean,
        float(np.mean(seconds)),
    )


def _deviation(fit: Fitted) -> float:
    return float(np.sqrt(np.mean(fit.deviation**2)))


def without_family(teachers: Sequence[Task], family: str) -> Experience:
    """Fit an experience to the tasks of all other families."""
    others = [other for other in teachers if other.family != family]
    return fit_experience(others, Card())


def leave_family_out(
    tasks: Sequence[Task],
    learnt_from: Sequence[Task],
    draws: int,
    step: Callable[[], None] = lambda: None,
) -> list[Worth]:
    """Measure the worth of all other families' experience for each task.

    Args:
        tasks: The tasks to measure.
        learnt_from: The tasks that may teach.
        draws: Number of draws of labels.
        step: Called after each task.
    """
    result = []
    by_family = dict[str, Experience]()
    for task in tasks:
        if task.family not in by_family:
            by_family[task.family] = without_family(learnt_from, task.family)
        result.append(worth(task, by_family[task.family], draws))
        step()
    return result


def write_experience(data: Experience, path: Path) -> None:
    """Write experience as JSON, whole or not at all."""
    write_whole(path, data.model_dump_json(indent=None) + "\n")
