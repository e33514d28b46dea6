"""Kept score tables: a benchmark set's human scores, and its published metric columns as judges. No model is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judgesmith.datasets.benchmarks import catalog
from judgesmith.datasets.loading import iter_rows
from judgesmith.evaluating.sources import json_lines

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Rows that have a human score and all metrics. scores: (rows, metrics)."""

    human: Vector
    scores: Vector
    documents: list[str]
    systems: list[str]


def read_table(name: str, aspect: str, metrics: Sequence[str]) -> Table:
    """The rows of a set that have a human score for the aspect and every one of the metrics."""
    path = catalog.resolve(name)
    known = {str(record["id"]): record["metrics"] for _, record in json_lines(path.with_suffix(".metrics.jsonl"))}
    rows = [row for row, _ in iter_rows(path) if aspect in row.scores]
    kept = [row for row in rows if all(known.get(row.id, {}).get(m) is not None for m in metrics)]
    if not kept:
        raise SystemExit(f"{name}: no row has {aspect} and all of {', '.join(metrics)}")
    return Table(
        np.array([row.scores[aspect] for row in kept]),
        np.array([[float(known[row.id][m]) for m in metrics] for row in kept]),
        [row.group or row.doc_id for row in kept],
        [row.system or "" for row in kept],
    )
