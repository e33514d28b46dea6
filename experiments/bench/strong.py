"""What labels add to the recorded scores of a strong judge, weighed as `compile --signal` weighs them.

    python experiments/bench/strong.py [--draws 15] [--kept FILE] [-o experiments/results/data]

The sets are those in the folder `strong` of JUDGESMITH_DATA; the own score is the usual prompt of the strongest
recorded model. Half of the groups are measured, labels are spread over the groups of the other half. Length, overlap
and counts of facts stand beside the own score, which needs no model. r + d is Pearson's r and Somers' d
(`coefficients`): breaking the ties of a judge lowers Q, and leaves r + d. `system's mean`: with the mean own score of
all rows of a row's system as a further signal. Outcomes are kept in FILE, from which the same command goes on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.correlation import correlate, impute
from judgesmith.experiments.bench.kept import Kept
from judgesmith.experiments.bench.sets import read_set
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.fitting.readings import agreement, beside
from judgesmith.programs.readings.facts import facts
from judgesmith.programs.readings.head import Readings, Vector
from judgesmith.programs.readings.kinds import SIGNAL, reference, surface
from judgesmith.programs.readings.passages import Text

OWN = f"{SIGNAL}.own"
SIZES = (8, 40, 100, 200)
#: Set -> aspect -> the recorded scores.
JUDGES: Mapping[str, Mapping[str, str]] = {
    "wmt22_ende": {"overall": "gpt-4.gemba_da_noref"},
    "wmt23_zhen": {"overall": "gpt-4.gemba_mqm"},
    "wmt23_ende": {"overall": "gpt-4.gemba_mqm", "esa": "gpt-4.gemba_mqm"},
    "qgeval_answerability": {"answerability": "gpt-4.geval"},
    "basse_es": {
        aspect: f"gpt-4o.{aspect}"
        for aspect in ("coherence", "consistency", "fluency", "relevance", "5w1h")
    },
    "faithbench": dict.fromkeys(("faithfulness", "faithful"), "gpt-4o"),
    "quintd": {
        aspect: f"gpt-4.{aspect}"
        for aspect in (
            "errors_neg",
            "incorrect_errors_neg",
            "not_checkable_errors_neg",
        )
    },
    "ttcw": {"passes": "gpt-4"},
    "reliable_dialogue": {
        aspect: f"gpt-4.{aspect}"
        for aspect in ("interesting", "consistent", "not_repetitive", "overall")
    },
    "llmbar": {"preferred": "gpt-4.rating"},
    "ragchecker": {
        aspect: f"llama-3-70b-claims.{aspect}"
        for aspect in ("correctness", "completeness", "overall")
    },
}
#: Sets whose column `group` names only a part of the set.
BY_DOCUMENT = ("llmbar", "ragchecker", "quintd")
#: Two rows of a document say one thing there; means leave them out.
PAIRS = ("llmbar", "ragchecker")
FEWEST_LEFT = 20


@dataclass(frozen=True)
class Task:
    """Rows of one aspect: what is counted of them with the own score, human ratings, and their systems."""

    name: str
    table: Readings
    human: Vector
    systems: tuple[str, ...]

    @property
    def own(self) -> Vector:
        """Return the judge's own score of each row."""
        return self.table.columns([OWN])[:, 0]


def tasks() -> Iterator[Task]:
    """Yield every aspect that a strong judge scored."""
    for name, aspects in JUDGES.items():
        records = read_set(f"strong/{name}")
        for aspect, judge in aspects.items():
            rows = [row for row in records if row["scores"].get(aspect) is not None]
            yield task_of(f"{name} {aspect}", rows, aspect, judge)


def task_of(name: str, rows: Sequence[Any], aspect: str, judge: str) -> Task:
    """Return the rows of an aspect with their counts."""
    counted = [counts(row) for row in rows]
    own = np.array([row["judges"].get(judge) for row in rows], float)
    columns = [
        [value, *of.values()] for value, of in zip(impute(own), counted, strict=True)
    ]
    by_document = name.split()[0] in BY_DOCUMENT
    groups = [
        row["doc_id"] if by_document else row.get("group") or row["doc_id"]
        for row in rows
    ]
    table = Readings((OWN, *counted[0]), np.array(columns), tuple(map(str, groups)))
    human = np.array([row["scores"][aspect] for row in rows], float)
    systems = tuple(str(row.get("system") or "") for row in rows)
    return Task(name, table, human, systems if all(systems) else ())


def counts(row: Mapping[str, Any]) -> dict[str, float]:
    """Return what a judge counts of a row without a model."""
    right = row.get("reference") or ""
    text = Text(
        row.get("source") or "", row["output"], row.get("context") or "", "", right
    )
    found = surface(text.material, text.judged) | reference(right, text.judged)
    named = {f"surface.{name}": value for name, value in found.items()}
    return named | {f"facts.{name}": value for name, value in facts(text).items()}


def draw(
    groups: Sequence[Any], labels: int, number: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows that are labelled, spread over half of the groups, and those of the other half."""
    rng = np.random.default_rng([number, 3])
    codes = np.unique([str(group) for group in groups], return_inverse=True)[1]
    order = rng.permutation(int(codes.max()) + 1)
    measured = np.isin(codes, order[: len(order) // 2])
    waiting = [
        rng.permutation(np.flatnonzero(codes == group)).tolist()
        for group in order[len(order) // 2 :]
    ]
    train = list[int]()
    while len(train) < labels and any(waiting):
        turn = [rows.pop() for rows in waiting if rows]
        train += turn[: labels - len(train)]
    return np.array(train, dtype=np.intp), np.flatnonzero(measured)


def reached(task: Task, labels: int, number: int) -> list[float] | None:
    """Return what one draw of labels gives on the measured rows.

    Returns:
        Q and r + d of the own score, of the mixture and of what compiling takes; whether that is the mixture. None
        where the task has too few rows.
    """
    train, left = draw(task.table.groups, labels, number)
    if len(train) < labels or len(left) < FEWEST_LEFT:
        return None
    rows = task.table.rows(train)
    human = task.human[train]
    head, taken = beside(rows, human, OWN)
    mixed = head(task.table.rows(left))
    own = task.own[left]
    found = list[float]()
    for scores in (own, mixed, mixed if taken else own):
        found += [
            agreement(scores, task.human[left]),
            without_ties(scores, task.human[left]),
        ]
    return [*found, float(taken)]


def without_ties(scores: Vector, human: Vector) -> float:
    """Return r + d, 0 where it is undefined."""
    value = correlate(scores, human, coefficient="pearson-somers", level="pooled").value
    return float(np.nan_to_num(value))


def with_system_mean(task: Task) -> Task | None:
    """Return the task with the mean own score of each row's system as a signal; None where systems are not named."""
    if len(set(task.systems)) < 2:
        return None
    codes = np.unique(task.systems, return_inverse=True)[1]
    means = np.bincount(codes, weights=task.own) / np.bincount(codes)
    table = task.table
    names = (*table.names, f"{SIGNAL}.system")
    values = np.column_stack([table.values, means[codes]])
    return replace(task, table=replace(table, names=names, values=values))


def numbers(task: Task, draws: int) -> list[float]:
    """Return the columns of a task as means over draws; NaN where it has too few rows."""
    found: dict[Any, list[list[float]]] = {}
    by_system = with_system_mean(task)
    for number in range(draws):
        for size in SIZES:
            found.setdefault(size, []).append(reached(task, size, number) or [])
        if by_system is not None:
            found.setdefault("system", []).append(reached(by_system, 40, number) or [])
    of = {
        key: np.mean([one for one in draws_of if one], axis=0)
        for key, draws_of in found.items()
        if any(draws_of)
    }
    nothing = np.full(7, np.nan)
    sizes = [of.get(size, nothing) for size in SIZES]
    forty = of.get(40, nothing)
    system = of.get("system", nothing)
    return [
        forty[0],
        *(one[4] for one in sizes),
        forty[6],
        forty[1],
        *(one[5] for one in sizes),
        forty[2],
        forty[3],
        system[4],
        system[5],
    ]


def main() -> None:
    """Measure all tasks, and save the table on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=15)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    kept = Kept(options.kept)
    before: dict[str, Any] = dict(kept.lines)
    rows: list[list[Any]] = []
    for task in tasks():
        if task.name not in before:
            before[task.name] = list(map(float, numbers(task, options.draws)))
            kept.add([task.name, before[task.name]])
        rows.append([task.name, len(task.human), *before[task.name]])
        print(*rows[-1], flush=True)
    alone = [row for row in rows if not row[0].startswith(PAIRS)]
    named = [row for row in alone if np.isfinite(row[-1])]
    for title, some in (
        (f"mean of {len(rows)} tasks", rows),
        (f"mean of {len(alone)} without pairs", alone),
        ("mean of those with systems", named),
    ):
        found = np.array([row[2:] for row in some], float)
        rows_of = sum(row[1] for row in some)
        rows.append([title, rows_of, *np.nanmean(found, axis=0).tolist()])
        print(*rows[-1])
    columns = {"task": "", "rows": "{}", "own score": "{:.2f}"}
    columns |= {f"{size} labels": "{:.2f}" for size in SIZES}
    columns |= {"mixture taken, 40": "{:.0%}", "own score, r + d": "{:.2f}"}
    columns |= {f"{size} labels, r + d": "{:.2f}" for size in SIZES}
    columns |= {"always mixed, 40": "{:.2f}", "always mixed, 40, r + d": "{:.2f}"}
    columns |= {"system's mean, 40": "{:.2f}", "system's mean, 40, r + d": "{:.2f}"}
    command = f"python experiments/bench/strong.py --draws {options.draws} -o experiments/results/data"
    notes = f"{options.draws} draws of labels; on documents without a label"
    save(options.output, "strong", columns, rows, commands=[command], notes=notes)


if __name__ == "__main__":
    main()
