"""Experts' weights of a task's metrics by perturbation. Source: DHP benchmark, section 3.3.2 and appendix D."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path

from judgesmith.datasets.formats import open_table
from judgesmith.errors import OptionError
from judgesmith.parts import nearest

_NAMES = "perturbation"


def read_weights(
    path: Path, perturbations: Collection[str], metrics: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return the weights of each metric by perturbation, from a table of weights or counts of votes.

    Args:
        path: a table with a column `perturbation` and one for each metric.
        perturbations: names of perturbations that may occur.
        metrics: names of metrics that may occur; empty: any.

    Raises:
        LabelsError: If the file cannot be read.
        OptionError: If a cell is wrong, with its row and column.
    """
    table = open_table(path)
    weights = dict[str, dict[str, float]]()
    folded = {metric.casefold() for metric in metrics}
    for row, record in enumerate(table.records, 1):
        where = f"--weights {table.origin}, row {row}"
        cells = {
            column.strip(): "" if cell is None else str(cell).strip()
            for column, cell in record.items()
        }
        if (name := cells.pop(_NAMES, None)) is None:
            raise OptionError(f"{where}: no column {_NAMES!r}")
        if metrics and (
            other := next(
                (column for column in cells if column.casefold() not in folded), None
            )
        ):
            near = nearest(other, metrics)
            raise OptionError(
                f"{where}, column {other!r}: the metrics are {', '.join(metrics)}{near}"
            )
        if name.partition(":")[0] not in perturbations:
            raise OptionError(
                f"{where}: there is no perturbation {name!r}{nearest(name, perturbations)}"
            )
        if name in weights:
            raise OptionError(f"{where}: {name!r} appears twice")
        weights[name] = {
            column: _weight(cell, where, column)
            for column, cell in cells.items()
            if cell
        }
        if not math.fsum(weights[name].values()) > 0:
            raise OptionError(f"{where}: no metric has a weight for {name!r}")
    if not weights:
        raise OptionError(
            f"--weights {table.origin}: no weight in it; give a table of metrics by perturbations"
        )
    return weights


def _weight(cell: str, where: str, column: str) -> float:
    try:
        weight = float(cell)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight >= 0):
        raise OptionError(
            f"{where}, column {column!r}: {cell!r} is not a weight; give a number of at least 0"
        )
    return weight
