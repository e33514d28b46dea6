"""Experts' weights of a task's metrics by perturbation: a form that asks for them, and reading what came back.

An expert marks the metric that each perturbation should lower most; the marks of several experts become shares of
votes. Source: DHP benchmark, section 3.3.2, appendix D and Figure 6.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Sequence
from pathlib import Path

from ..datasets.perturbations.registry import Perturbation
from ..errors import OptionError
from ..parts import nearest
from ..programs.atomic import write_whole

#: perturbation -> metric -> weight
Weights = dict[str, dict[str, float]]

_NAMES, _ISSUE = "perturbation", "quality issue"


def write_form(path: Path, metrics: Sequence[str], perturbations: Sequence[Perturbation]) -> None:
    """Write a form for one expert: a table with a row for each perturbation and a column for each metric to mark with
    x. metrics: as TASK/ASPECT of the library. Raises OptionError."""
    if path.suffix.lower() != ".csv":
        raise OptionError(f"--weights-form {path}: a form is .csv")
    if path.exists():
        raise OptionError(f"--weights-form {path} exists already; name a new file")
    if len(metrics) < 2:
        raise OptionError("--weights-form: there is nothing to weigh with fewer than two metrics; give --preset, for "
                          "example dhp/summeval, or --metrics TASK/ASPECT,TASK/ASPECT")  # fmt: skip
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([_NAMES, _ISSUE, *(metric.rpartition("/")[2] for metric in metrics)])
    rows.writerows([made.name, made.about, *[""] * len(metrics)] for made in perturbations)
    try:
        write_whole(path, text.getvalue())
    except OSError as error:
        raise OptionError(f"--weights-form {path} cannot be written: {error.strerror or error}") from None


def read_weights(path: Path, known: Collection[str] = (), metrics: Sequence[str] = ()) -> Weights:
    """Weights of a .csv file, or of a folder of forms, one an expert, each of whom has one vote for each perturbation.

    A file has a column `perturbation` and one for each metric (weights, votes, or an x under one metric).
    known, metrics: names of perturbations and metrics that may occur; none: any. Raises OptionError with file, row and
    column for what is wrong.
    """
    if not path.is_dir():
        return _read(path, known, metrics)
    files = sorted(path.glob("*.csv"))
    if not files:
        raise OptionError(f"--weights {path}: no .csv form in this folder")
    votes: Weights = {}
    for file in files:
        for name, row in _read(file, known, metrics).items():
            counted = votes.setdefault(name, {})
            for metric, weight in row.items():
                counted[metric] = counted.get(metric, 0.0) + weight / math.fsum(row.values())
    return votes


def _read(path: Path, known: Collection[str], metrics: Sequence[str]) -> Weights:
    try:
        lines = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig")), restval="")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"--weights {path}: {getattr(error, 'strerror', None) or error}") from None
    columns = [column for column in lines.fieldnames or () if column not in (_NAMES, _ISSUE)]
    if _NAMES not in (lines.fieldnames or ()):
        raise OptionError(f"--weights {path.name}: no column {_NAMES!r}; --weights-form writes a form")
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
            raise OptionError(f"{where}: no metric is marked for {name!r}; put an x under one")
    if not table:
        raise OptionError(f"--weights {path.name}: no weight in it")
    return table


def _weight(cell: str, where: str, column: str) -> float:
    try:
        weight = 1.0 if cell.casefold() == "x" else float(cell)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight >= 0):
        raise OptionError(f"{where}, column {column!r}: {cell!r} is not a weight; give a number of at least 0, or an x")
    return weight
