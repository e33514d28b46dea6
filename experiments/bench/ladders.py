"""python experiments/bench/ladders.py SET …: how many rows have a reference to be perturbed; no model is asked."""

import sys
from pathlib import Path

from judgesmith.datasets.benchmarks.catalog import resolve
from judgesmith.datasets.loading import iter_rows
from judgesmith.datasets.perturbations.base import Unperturbable
from judgesmith.datasets.perturbations.ladder import perturbed_copies
from judgesmith.experiments.studies.saving import save
from judgesmith.likeness import same_row


def has_ladder(text: str | None) -> bool:
    try:
        return bool(text and perturbed_copies(text, 4))
    except Unperturbable:
        return False


lines = []
for name in sys.argv[1:]:
    rows = [row for row, _ in iter_rows(resolve(name))]
    own = {row.id for row in rows if row.reference and same_row(row.source, row.reference, row.source, row.output)}
    fit = {row.id for row in rows if has_ladder(row.reference)} - own
    short = sum(not (row.id in fit or has_ladder(row.output)) for row in rows)
    lines.append([name, len(rows), len(fit), len(own), len(rows) - len(fit) - len(own), short])
command = " ".join(["python experiments/bench/ladders.py", *sys.argv[1:]])
counts = ("rows", "a reference", "the reference is the judged output", "none, or too short", "no text long enough")
save(
    Path(__file__).resolve().parents[1] / "results/data",
    "ladders",
    {"set": "", **dict.fromkeys(counts, "{}")},
    lines,
    commands=[command],
)
