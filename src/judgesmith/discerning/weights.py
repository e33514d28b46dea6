"""Experts' weights of a task's metrics by perturbation. Source: DHP benchmark, section 3.3.2 and appendix D."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path

from ..datasets.formats import open_table
from ..errors import OptionError
from ..parts import nearest

_NAMES = "perturbation"


def read_weights(
    path: Path, known: Collection[str], metrics: Sequence[str]
) -> dict[str, dict[str, float]]:
    """By perturbation the weight of each metric, from a table with a column `perturbation` and one for each metric, of
    weights or counts of votes.

    known, metrics: names of perturbations and metrics that may occur; no metrics: any. Raises LabelsError for a file
    that cannot be read, OptionError with row and column for what is wrong in it.
    """
    table, weights = open_table(path), dict[str, dict[str, float]]()
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
        if name.partition(":")[0] not in known:
            raise OptionError(
                f"{where}: there is no perturbation {name!r}{nearest(name, known)}"
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
        raise OptionError(f"--weights {table.origin}: no weight in it")
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
