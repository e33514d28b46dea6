"""Tell from recorded prompts of larger models what single parts of a prompt are worth.

    python experiments/bench/prompt_parts.py [--save FOLDER]

Pairs of recorded prompts that differ in one part: an explanation beside the rating, the raters' guidelines, anchors on
the scale, choices in words, reasoning before the answer, a reference. Sets are those of `judgesmith
study replay`. Q is the mean over a set's models, aspects and pairs; its intervals are 95 %, with the documents drawn
again for all of them at once. So they hold for other documents and for these models; how many of these are ahead is
beside them.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.experiments.bench.panel_gains import POWER, around
from judgesmith.experiments.studies.replay import (
    ReplaySet,
    Task,
    agreements,
    read_sets,
    tasks_of,
)
from judgesmith.experiments.studies.saving import save

RESAMPLES = 60


@dataclass(frozen=True)
class Part:
    """A part of a prompt, with the recorded prompts of a set that differ in it: without, with."""

    name: str
    family: str
    pairs: Sequence[tuple[str, str]]


PARTS = (
    Part("an explanation beside the rating", "stories", [("p1", "p2")]),
    Part("the raters' guidelines", "stories", [("p2", "p3")]),
    Part("a story by people for comparison", "stories", [("p3", "p4")]),
    Part(
        "anchors on the scale (SQM against DA)",
        "translation",
        [
            ("gemba_da_ref", "gemba_sqm_ref"),
            ("gemba_da_noref", "gemba_sqm_noref"),
        ],
    ),
    Part(
        "a reference translation",
        "translation",
        [
            ("gemba_da_noref", "gemba_da_ref"),
            ("gemba_sqm_noref", "gemba_sqm_ref"),
        ],
    ),
    Part(
        "choices in words instead of a reasoned number", "summaries", [("rts", "mcq")]
    ),
    Part("reasoning first", "instructions", [("compare", "compare_cot")]),
)


def pairs_of(part: Part, spec: ReplaySet, task: Task) -> list[tuple[int, int]]:
    """Return the columns of a task's pairs; none where its model was not asked both."""
    prompts = spec.panels[task.model]
    found = []
    for without, having in part.pairs:
        if without in prompts and having in prompts:
            found.append((prompts.index(without), prompts.index(having)))
    return found


def row_of(part: Part, spec: ReplaySet, tasks: Sequence[Task]) -> list[Any]:
    """Return Q without and with a part, their difference with its interval, and how many models are ahead."""
    rng = np.random.default_rng(0)
    names = sorted({one for task in tasks for one in task.rows.documents})
    draws = [dict.fromkeys(names, 1)]
    for _ in range(RESAMPLES):
        counts = np.bincount(
            rng.integers(len(names), size=len(names)), minlength=len(names)
        )
        draws.append(dict(zip(names, counts.tolist(), strict=True)))
    levels = np.zeros((len(draws), 2))
    by_model: dict[str, list[float]] = defaultdict(list)
    used = 0
    for task in tasks:
        for without, having in pairs_of(part, spec, task):
            both = task.percents[:, [without, having]]
            used = used + 1
            for number, draw in enumerate(draws):
                times = [draw[document] for document in task.rows.documents]
                at = np.repeat(np.arange(len(times)), times)
                q = agreements(both[at], task.rows.human[at]).sum(axis=0)
                levels[number] += q
                if number == 0:
                    by_model[task.model].append(float(q[1] - q[0]))
    levels /= used
    gains = levels[:, 1] - levels[:, 0]
    error = float(gains[1:].std())
    centre = float(gains[0])
    ahead = sum(np.mean(values) > 0 for values in by_model.values())
    interval = around(centre, error)
    counted = [[int(ahead), len(by_model)], used, len(tasks[0].rows.human)]
    return [
        part.name,
        part.family,
        *levels[0].tolist(),
        interval,
        *counted,
        POWER * error,
    ]


def main() -> None:
    """Print the table, and save it on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    specs = {spec.family: spec for spec in read_sets(None)}
    panels: dict[str, list[Task]] = {}
    rows = []
    for part in PARTS:
        spec = specs[part.family]
        if part.family not in panels:
            every = tasks_of(spec, None)
            panels[part.family] = [task for task in every if task.kind == "panel"]
        rows.append(row_of(part, spec, panels[part.family]))
        print(json.dumps(rows[-1]), flush=True)
    columns = {"what the prompt has more": "", "set": ""}
    columns |= {"Q without": "{:.2f}", "Q with": "{:.2f}"}
    columns |= {"difference": "{:+.3f} [{:+.3f}, {:+.3f}]"}
    columns |= {"models ahead": "{:.0f} of {:.0f}", "comparisons": "{:.0f}"}
    columns |= {"rows": "{:.0f}", "least that is found": "{:.2f}"}
    command = "python experiments/bench/prompt_parts.py"
    save(options.save, "prompt-parts", columns, rows, commands=[command], seed=0)


if __name__ == "__main__":
    main()
