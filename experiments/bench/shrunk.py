"""Replay estimates of systems from few labels: what is a label worth beside a judge, and do intervals hold?

    JUDGESMITH_DATA=… nice python experiments/bench/shrunk.py WORK.jsonl [--draws 20] [--save]

Documents are drawn anew, with replacement, from those that all systems of a set answered, so that the truth is known:
people's means over all of these. People rate the first 5, 10 or 20 of the drawn documents, the judge scores all. Worth
is the mean squared error of differences by labels alone over that of an estimate: how many labels alone one label is
worth. All recorded judges of sets with five systems or more take part; *pass/fail* cuts the same ratings at their
median.

WORK.jsonl holds one line for each judge and number of labels; a run that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import itertools
import math
import shlex
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from judgesmith.agreement.estimation import corrected_means, estimate
from judgesmith.experiments.bench.kept import Kept
from judgesmith.experiments.bench.versions import RESULTS, Matrix, Task, tasks
from judgesmith.experiments.studies.saving import save

LABELS = (5, 10, 20)
FEWEST_SYSTEMS = 5
FEWEST_DOCUMENTS = 28
WAYS = ("labels alone", "PPI++", "PPI++ and line")
KINDS = ("ratings", "pass/fail")
#: One judge a set and aspect, the strongest of its kind: those that teams use.
STRONG = ("gpt-4", "gpt-4o", "gpt-4-0314", "ChatGPT", "chatgpt", "unieval")


def complete(task: Task) -> tuple[Matrix, Matrix]:
    """Return people's ratings and the judge's scores of the documents that all systems answered."""
    every = ~np.isnan(task.human).any(axis=0)
    return task.human[:, every], task.judge[:, every]


def replay(task: Task, kind: str, labels: int, draws: int) -> dict[str, Any] | None:
    """Return each way's mean squared error, coverage, share of pairs proven and proven wrongly; None without pairs."""
    human, judge = complete(task)
    systems, documents = human.shape
    if systems < FEWEST_SYSTEMS or documents < max(FEWEST_DOCUMENTS, 2 * labels):
        return None
    if kind == "pass/fail":
        human = (human >= np.median(human)).astype(float)
        if np.ptp(human) == 0:
            return None
    spread = human.std()
    one, other = np.triu_indices(systems, 1)
    means = human.mean(axis=1)
    truth = means[one] - means[other]
    names = [f"system {s:02}" for s in range(systems)]
    rows_systems = [name for name in names for _ in range(documents)]
    rows_documents = np.tile(np.arange(documents), systems)
    rng = np.random.default_rng([sum(map(ord, task.name)), labels])
    found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    on_line = 0
    for _ in range(draws):
        drawn = rng.integers(documents, size=documents)
        scores = judge[:, drawn]
        people = human[:, drawn].copy()
        people[:, labels:] = np.nan
        known = people[:, :labels]
        gap = known.mean(axis=1)[one] - known.mean(axis=1)[other]
        error = (known[one] - known[other]).std(axis=1, ddof=1) / math.sqrt(labels)
        reach = float(scipy.stats.t.ppf(0.975, labels - 1))
        found[WAYS[0]].append(_figures(gap, reach * error, truth))
        table = scores.ravel(), people.ravel(), rows_systems, rows_documents
        corrected = corrected_means(*table)
        gap = corrected.human[one] - corrected.human[other]
        error = np.linalg.norm(corrected.errors[one] - corrected.errors[other], axis=1)
        alone = _figures(gap, reach * error, truth)
        found[WAYS[1]].append(alone)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimates = estimate(
                table[0], table[1], systems=table[2], documents=table[3]
            )
        if not estimates.on_line:
            found[WAYS[2]].append(alone)
            continue
        on_line += 1
        by_pair = {(d.a, d.b): d for d in estimates.differences}
        ordered = [by_pair[names[a], names[b]] for a, b in zip(one, other, strict=True)]
        gap = np.array([d.difference for d in ordered])
        ends = np.array([(d.low, d.high) for d in ordered])
        found[WAYS[2]].append(_figures(gap, ends, truth))
    about = {
        "task": task.name,
        "set": task.set,
        "kind": kind,
        "labels": labels,
        "systems": systems,
        "on line": on_line / draws,
    }
    figures = {way: np.mean(values, axis=0).tolist() for way, values in found.items()}
    for values in figures.values():
        values[0] /= spread**2
    return about | figures


def _figures(gap: Any, half: Any, truth: Any) -> list[float]:
    """Return squared error, coverage, share proven and share proven wrongly. half: half-widths, or both ends."""
    low, high = half.T if half.ndim == 2 else (gap - half, gap + half)
    proven = (low > 0) | (high < 0)
    wrong = proven & (gap * truth < 0)
    held = (low <= truth) & (truth <= high)
    return [
        float(((gap - truth) ** 2).mean()),
        *(float(share.mean()) for share in (held, proven, wrong)),
    ]


def is_strong(name: str) -> bool:
    """Return True for the judges of large models that teams use, by one prompt."""
    judge = name.split(" ")[-1]
    model = judge.split(".")[0].split("_")[0]
    prompt = judge.split(".")[1] if "." in judge else ""
    return model in STRONG and "_ref" not in prompt


def table(
    lines: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, str], list[list[Any]]]:
    """Return the table: worth, coverage and pairs by labels and judges, the worst set named."""
    columns = {"ratings": "", "judges": "", "labels a system": "{:d}"}
    columns |= {"sets, judges": "{:d}, {:d}", "on the line": "{:.0%}"}
    columns |= {
        "a label is worth: PPI++": "×{:.2f}",
        "with the line": "×{:.2f}",
        "median": "×{:.2f}",
        "worst": "",
    }
    for what, form in (
        ("cover of 95 %", "{:.3f}"),
        ("pairs proven", "{:.3f}"),
        ("proven wrongly", "{:.4f}"),
    ):
        columns |= {f"{what}: {way}": form for way in WAYS}
    columns["least cover"] = ""
    rows = []
    for kind in KINDS:
        for who in ("strong", "all"):
            for labels in LABELS:
                own = [
                    line
                    for line in lines
                    if line["kind"] == kind
                    and line["labels"] == labels
                    and (who == "all" or is_strong(line["task"]))
                ]
                if own:
                    rows.append([kind, who, labels, *_row(own)])
    return columns, rows


def _row(own: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return a row's cells; every set and aspect counts once."""
    by_aspect: dict[str, list[Mapping[str, Any]]] = {}
    for line in own:
        by_aspect.setdefault(" ".join(line["task"].split(" ")[:2]), []).append(line)

    def mean_of(value: Any) -> dict[str, float]:
        return {
            name: float(np.mean([value(line) for line in some]))
            for name, some in by_aspect.items()
        }

    first, ppi, line_ = WAYS
    worth_ppi = mean_of(lambda x: x[first][0] / x[ppi][0])
    worth = mean_of(lambda x: x[first][0] / x[line_][0])
    cover = mean_of(lambda x: x[line_][1])
    every = list(worth.values())
    worst = min(worth, key=worth.__getitem__)
    least = min(cover, key=cover.__getitem__)
    cells: list[Any] = [
        [len({line["set"] for line in own}), len(own)],
        float(np.mean(list(mean_of(lambda x: x["on line"]).values()))),
        float(np.mean(list(worth_ppi.values()))),
        float(np.mean(every)),
        float(np.median(every)),
        f"×{worth[worst]:.2f} {worst}",
    ]
    for k in (1, 2, 3):
        for way in WAYS:
            shares = mean_of(lambda x, way=way, k=k: x[way][k])
            cells.append(float(np.mean(list(shares.values()))))
    return [*cells, f"{cover[least]:.2f} {least}"]


def main() -> None:
    """Run what is missing, and save the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    kept = Kept(options.work)
    done = {(line["task"], line["kind"], line["labels"]) for line in kept.lines}
    for task in sorted(tasks(), key=lambda task: not is_strong(task.name)):
        for kind, labels in itertools.product(KINDS, LABELS):
            if (task.name, kind, labels) in done:
                continue
            line = replay(task, kind, labels, options.draws)
            if line is not None:
                kept.add(line)
        print(task.name, flush=True)
    if options.save:
        columns, rows = table(kept.lines)
        command = shlex.join(["python", "experiments/bench/shrunk.py", *sys.argv[1:]])
        drawn = f"{options.draws} draws a judge; every set and aspect counts once"
        save(RESULTS, "shrunk", columns, rows, commands=[command], seed=0, notes=drawn)


if __name__ == "__main__":
    main()
