"""judgesmith with 0, 8 and 40 labels beside judges and metrics whose scores others recorded, on the same rows.

    python experiments/bench/beside.py TABLES... [--draws 20] [-o experiments/results/data]

Takes folders of tables that `judgesmith study experience` kept (SET.ASPECT*.npz), and the recorded scores beside the
sets of JUDGESMITH_DATA (SET.metrics.jsonl). A row counts where every recorded judge of its task scored it. The
experience of a task was learnt without its family.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Level, Vector
from judgesmith.agreement.differences import Procedure, differences_within
from judgesmith.agreement.objectives import Q, Rows
from judgesmith.agreement.resampling import (
    Agreement,
    RowSet,
    interval_of,
)
from judgesmith.datasets.row import Row
from judgesmith.experiments.bench.facts import Pair, read_pairs
from judgesmith.experiments.bench.rated_facts import aspect_of
from judgesmith.experiments.bench.sets import data_folder, table_parser
from judgesmith.experiments.studies.experience import (
    Task,
    TaskSpec,
    draws_of,
    located,
    without_family,
)
from judgesmith.experiments.studies.saving import save
from judgesmith.optimizers.fitting.readings import ahead, weigh
from judgesmith.programs.readings.experience import Experience
from judgesmith.programs.readings.judge import DIRECT

COMMAND = "python experiments/bench/beside.py TABLES -o experiments/results/data"
SIZES = (8, 40)
OURS = ("0 labels", *(f"{size} labels" for size in SIZES))
ENDS = (OURS[0], OURS[-1])
#: Set -> a recorded judge -> the column of its scores, of an {aspect} where it has one of each.
RECORDED: Mapping[str, Mapping[str, str]] = {
    "topical_chat": {"UniEval (770M)": "unieval_{aspect}"},
    "sfres": {"UniEval (770M)": "unieval_{aspect}"},
    "sfhot": {"UniEval (770M)": "unieval_{aspect}"},
    "qags_cnndm": {
        "UniEval (770M)": "unieval_{aspect}",
        "BARTScore-CNN (406M)": "bart_score_cnn_src_hypo",
        "ROUGE-2 precision against the source": "rouge2_p_src",
    },
    "summeval": {
        "GPT-4": "gpt-4-0314.rts.{aspect}",
        "GPT-3.5": "gpt-3.5-turbo-0301.rts.{aspect}",
        "Llama-2-70B": "llama-2-70b-chat-hf.rts.{aspect}",
        "Llama-2-13B": "llama-2-13b-chat-hf.rts.{aspect}",
        "Llama-2-7B": "llama-2-7b-chat-hf.rts.{aspect}",
        "BARTScore-CNN (406M)": "bart_score_cnn_src_hypo",
    },
    "openmeva_roc": {
        "GPT-3.5": "chatgpt",
        "BARTScore-CNN (406M)": "bartscore_cnn",
    },
    "wiki_da": {
        "BERTScore with references": "bertscore_F1_all",
        "SARI with references": "sari_all",
    },
    "hanna": {
        "GPT-3.5": "ChatGPT.p1.{aspect}",
        "OrcaPlatypus-13B": "OrcaPlatypus.p1.{aspect}",
        "Mistral-7B": "Mistral-7B.p1.{aspect}",
        "Llama-2-13B": "Llama-13B.p1.{aspect}",
        "BARTScore": "BARTScore-HS",
    },
}


@dataclass(frozen=True)
class Beside:
    """A task with the scores of recorded judges of the same rows. systems: None where the set names none."""

    task: Task
    recorded: Mapping[str, Vector]
    documents: np.ndarray
    systems: np.ndarray | None

    @property
    def name(self) -> str:
        """Return the set and the aspect in words."""
        return self.task.name.replace(".", " ")


# Reading --------------------------------------------------------------------------------------------------------------


def recorded_scores(spec: TaskSpec, rows: Sequence[Row]) -> dict[str, Vector]:
    """Scores of recorded judges by row; NaN where one has none."""
    file = located(spec.labels, None)
    columns = RECORDED.get(file.stem, {})
    if not columns:
        return {}
    lines = file.with_suffix(".metrics.jsonl").read_text(encoding="utf-8").splitlines()
    of_row = {one["id"]: one["metrics"] for one in map(json.loads, lines)}
    found = {}
    for judge, column in columns.items():
        key = column.format(aspect=spec.aspect)
        values = [of_row.get(row.id, {}).get(key) for row in rows]
        found[judge] = np.array(values, dtype=np.float64)
    return found


def beside(pair: Pair) -> Beside | None:
    """The rows that every recorded judge scored; None where nobody's scores are recorded."""
    found = recorded_scores(pair.spec, pair.rows)
    task = pair.with_facts
    if not found:
        return None
    (kept,) = np.nonzero(~np.isnan(list(found.values())).any(axis=0))
    systems = tuple(pair.rows[i].system or "" for i in kept)
    named = systems if all(systems) else ()
    part = replace(
        task, table=task.table.rows(kept), scores=task.scores[kept], systems=named
    )
    return Beside(
        part,
        {judge: values[kept] for judge, values in found.items()},
        np.unique(np.array(part.table.groups), return_inverse=True)[1],
        np.unique(np.array(named), return_inverse=True)[1] if named else None,
    )


# Measuring ------------------------------------------------------------------------------------------------------------


def scored(
    task: Task, train: np.ndarray, left: np.ndarray, experience: Experience
) -> Vector:
    """Scores of the rows that are left, by what compiling takes: the mixture, or the model's own score."""
    rows = task.table.rows(train)
    y = task.scores[train]
    rest = task.table.rows(left)
    fit = weigh(rows, y, experience)
    own = np.nan_to_num(task.table.columns([DIRECT])[:, 0])
    members = [str(group) for group in rows.groups]
    of_rows = Rows(y, members, members)
    mixed = ahead(fit.left_out, own[train], of_rows, Q(), strong=False)
    return np.asarray(fit.head(rest) if mixed else own[left])


class Sets:
    """Sets of rows, one a draw of labels, with the scores of judges; all judges share them."""

    def __init__(self, of: Beside, level: Level) -> None:
        self.of = of
        self.level = level

    def agreement(self, parts: Sequence[tuple[np.ndarray, Vector]]) -> Agreement:
        """The mean agreement over sets. parts: the rows of each set, and their scores."""
        return Agreement.of_mean(
            [self._rows(left, x) for left, x in parts],
            int(self.of.documents.max()) + 1,
            self.level,
            "sum",
        )

    def _rows(self, left: np.ndarray, x: Vector) -> RowSet:
        of = self.of
        systems = None if of.systems is None else of.systems[left]
        return x, of.task.scores[left], of.documents[left], systems


def estimate(agreement: Agreement) -> list[float]:
    """Return an agreement with the ends of its interval."""
    found = interval_of(agreement)
    return [found.value, found.low, found.high]


def difference(ours: Agreement, theirs: Agreement) -> list[float]:
    """How far ours is ahead, on the same resamples of documents."""
    both = replace(
        ours,
        statistics=[*ours.statistics, *theirs.statistics],
        values=[*ours.values, *theirs.values],
        reason=ours.reason or theirs.reason,
    )
    (found,) = differences_within(both, np.array([[1.0, -1.0]]), Procedure())
    return [found.value, found.low, found.high]


Parts = dict[str, list[tuple[np.ndarray, Vector]]]


def our_scores(of: Beside, experience: Experience, draws: int) -> Parts:
    """Scores with each number of labels, of the rows without one, by draw."""
    task = of.task
    head = experience.head(set(task.table.names) - {DIRECT}, task.table.states)
    every = np.arange(len(task.scores))
    found: Parts = {"0 labels": [(every, head(task.table))]}
    for size in SIZES:
        drawn = draws_of(task.table.groups, size, draws)
        found[f"{size} labels"] = [
            (left, scored(task, train, left, experience)) for _, train, left in drawn
        ]
    return found


def measured(of: Beside, ours: Parts, level: Level) -> list[list[Any]]:
    """A row for each recorded judge: its Q, ours, and how far ours is ahead with no label and with most."""
    sets = Sets(of, level)
    every = np.arange(len(of.task.scores))
    own = {name: sets.agreement(parts) for name, parts in ours.items()}
    q = [estimate(own[name]) for name in OURS]
    documents = int(of.documents.max()) + 1
    result = []
    for judge, values in of.recorded.items():
        alone = estimate(sets.agreement([(every, values)]))
        row: list[Any] = [of.name, judge, len(every), documents, alone, *q]
        for name in ENDS:
            theirs = [(at, values[at]) for at, _ in ours[name]]
            row.append(difference(own[name], sets.agreement(theirs)))
        result.append(row)
    return result


# The tables -----------------------------------------------------------------------------------------------------------

INTERVAL = "{:.2f} [{:.2f}, {:.2f}]"
AHEAD = "{:+.2f} [{:+.2f}, {:+.2f}]"


def columns_of() -> dict[str, str]:
    """Return the columns of a table of tasks with their formats."""
    plain = {"task": "", "recorded": "", "rows": "{}", "documents": "{}"}
    figures = dict.fromkeys(("its Q", *OURS), INTERVAL)
    ahead_by = [f"{name} − recorded" for name in ENDS]
    return plain | figures | dict.fromkeys(ahead_by, AHEAD)


def by_judge(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """For each recorded judge its tasks, the mean of each Q, and how often either is certainly ahead."""
    result = []
    for judge in dict.fromkeys(str(row[1]) for row in rows):
        own = [row for row in rows if row[1] == judge]
        figures = np.array(
            [row[4:] for row in own]
        )  # tasks, figures, (value, low, high)
        counts = list[int]()
        for at in (-2, -1):
            counts.append(int((figures[:, at, 2] < 0).sum()))
            counts.append(int((figures[:, at, 1] > 0).sum()))
        result.append(
            [judge, len(own), *figures[:, :4, 0].mean(axis=0).tolist(), *counts]
        )
    return sorted(result, key=lambda row: row[5] - row[2])


def columns_of_judges() -> dict[str, str]:
    """Return the columns of the table of judges with their formats."""
    counts = [
        f"{who} surely ahead, {name}"
        for name in ENDS
        for who in ("recorded", "judgesmith")
    ]
    figures = dict.fromkeys(("its Q", *OURS), "{:.2f}")
    return {"recorded": "", "tasks": "{}"} | figures | dict.fromkeys(counts, "{}")


def main() -> None:
    """Read the command line and run."""
    parser = table_parser(__doc__, draws=20)
    options = parser.parse_args()
    data_folder()  # ends here where the variable is not set
    run(options.tables, options.draws, options.output)


def run(folders: Sequence[Path], draws: int, output: Path | None) -> None:
    """Measure every task that has a table and recorded judges, and save the tables."""
    pairs = list(read_pairs(folders))
    teachers = [pair.plain for pair in pairs if pair.teaches]
    pooled = list[list[Any]]()
    within = list[list[Any]]()
    for pair in pairs:
        if (of := beside(pair)) is None:
            continue
        experience = without_family(teachers, pair.plain.family)
        rated = experience.of_aspect(aspect_of(pair.plain))
        ours = our_scores(of, rated, draws)
        pooled += measured(of, ours, "pooled")
        print(of.name, *pooled[-1][5:8], flush=True)
        if of.systems is not None and of.systems.max() > 0:
            within += measured(of, ours, "within")
    families = ", ".join(dict.fromkeys(task.family for task in teachers))
    about = {
        "model": "qwen2.5-coder-0.5b (Q4_K_M)",
        "notes": f"{draws} draws of labels, the task's family left out of the experience, learnt from {families}",
    }
    commands = [f"{COMMAND} --draws {draws}"]
    for name, found in (("beside", pooled), ("beside-within", within)):
        found.sort(key=lambda row: row[-1][0])  # losses first
        save(output, name, columns_of(), found, commands=commands, **about)
    rows = by_judge(pooled)
    save(output, "beside-judges", columns_of_judges(), rows, commands=commands, **about)


if __name__ == "__main__":
    main()
