"""Experts' weights of a task's metrics by perturbation. Source: DHP benchmark, section 3.3.2 and appendix D."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Sequence
from pathlib import Path

from ..errors import OptionError
from ..parts import nearest

#: perturbation -> metric -> weight
Weights = dict[str, dict[str, float]]

_NAMES = "perturbation"


def read_weights(path: Path, known: Collection[str] = (), metrics: Sequence[str] = ()) -> Weights:
    """Weights of a .csv file with a column `perturbation` and one for each metric, of weights or counts of votes.

    known, metrics: names of perturbations and metrics that may occur; none: any. Raises OptionError with file, row and
    column for what is wrong.
    """
    try:
        lines = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig")), restval="")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"--weights {path}: {getattr(error, 'strerror', None) or error}") from None
    columns = [column for column in lines.fieldnames or () if column != _NAMES]
    if _NAMES not in (lines.fieldnames or ()):
        raise OptionError(f"--weights {path.name}: no column {_NAMES!r}")
    folded = {metric.casefold() for metric in metrics}
    if metrics and (other := next((column for column in columns if column.strip().casefold() not in folded), None)):
        near = nearest(other, metrics)
        raise OptionError(f"--weights {path.name}, column {other!r}: the metrics are {', '.join(metrics)}{near}")
    table: Weights = {}
    for row in lines:
        where, name = f"--weights {path.name}, line {lines.line_num}", row[_NAMES].strip()
        if None in row:
            raise OptionError(f"{where}: more cells than columns")
        if known and name.partition(":")[0] not in known:
            raise OptionError(f"{where}: there is no perturbation {name!r}{nearest(name, known)}")
        if name in table:
            raise OptionError(f"{where}: {name!r} appears twice")
        cells = {column.strip(): row[column].strip() for column in columns}
        table[name] = {column: _weight(cell, where, column) for column, cell in cells.items() if cell}
        if not math.fsum(table[name].values()) > 0:
            raise OptionError(f"{where}: no metric has a weight for {name!r}")
    if not table:
        raise OptionError(f"--weights {path.name}: no weight in it")
    return table


def _weight(cell: str, where: str, column: str) -> float:
    try:
        weight = float(cell)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight >= 0):
        raise OptionError(f"{where}, column {column!r}: {cell!r} is not a weight; give a number of at least 0")
    return weight
