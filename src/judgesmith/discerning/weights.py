"""Experts' weights of a task's metrics by perturbation: a form that asks for them, and reading what came back.

An expert marks the metric that each perturbation should lower most; the marks of several experts become shares of
votes. Source: DHP benchmark, section 3.3.2, appendix D and Figure 6.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..datasets.perturbations.registry import Perturbation
from ..errors import OptionError
from ..parts import nearest
from ..programs.atomic import write_whole

__all__ = ["Weights", "read_weights", "write_form"]

#: perturbation -> metric -> weight
Weights = dict[str, dict[str, float]]

ISSUE = "quality issue"
_MARKS = ("x", "✓", "✔", "yes")
_FILES = (".csv", ".json")


# The form ------------------------------------------------------------------------------------------------------------


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
    rows.writerow(["perturbation", ISSUE, *(metric.rpartition("/")[2] for metric in metrics)])
    rows.writerows([made.name, made.about, *[""] * len(metrics)] for made in perturbations)
    try:
        write_whole(path, text.getvalue())
    except OSError as error:
        raise OptionError(f"--weights-form {path} cannot be written: {error.strerror or error}") from None


# Reading -------------------------------------------------------------------------------------------------------------


def read_weights(path: Path, known: Collection[str] = (), metrics: Sequence[str] = ()) -> Weights:
    """Weights of a file, or of a folder of forms, one an expert, each of whom has one vote for each perturbation.

    A file is JSON {perturbation: {metric: weight}}, or CSV with the perturbation in the first column and a column for
    each metric (weights, votes, or an x under one metric).
    known, metrics: names of perturbations and metrics that may occur; none: any. Raises OptionError with file, row and
    column for what is wrong.
    """
    if not path.is_dir():
        return _File(path, known, metrics).read()
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in _FILES)
    if not files:
        raise OptionError(f"--weights {path}: no .csv or .json form in this folder")
    votes: Weights = {}
    for file in files:
        for name, row in _File(file, known, metrics).read().items():
            for metric, weight in row.items():
                counted = votes.setdefault(name, {})
                counted[metric] = counted.get(metric, 0.0) + weight / math.fsum(row.values())
    return votes


class _File:
    """One file of weights as it is read."""

    def __init__(self, path: Path, known: Collection[str], metrics: Sequence[str]) -> None:
        self.path = path
        self.known = known
        self.metrics = metrics
        self.table: Weights = {}
        self.places: dict[str, str] = {}

    def read(self) -> Weights:
        try:
            text = self.path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"--weights {self.path}: {getattr(error, 'strerror', None) or error}") from None
        if self.path.suffix.lower() == ".json":
            self._json(text)
        else:
            self._csv(text)
        if not self.table:
            raise self._wrong("no weight in it")
        for name, row in self.table.items():
            if not math.fsum(row.values()) > 0:
                raise self._wrong(f"no metric is marked for {name!r}; put an x under one", self.places[name])
        return self.table

    def _wrong(self, problem: str, where: str = "") -> OptionError:
        return OptionError(f"--weights {self.path.name}{f', {where}' if where else ''}: {problem}")

    def _json(self, text: str) -> None:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._wrong(f"not JSON ({error})") from None
        if not isinstance(data, dict) or not all(isinstance(row, dict) for row in data.values()):
            raise self._wrong("expected {perturbation: {metric: weight}}")
        for name, row in data.items():
            self._put(name, row, repr(name))

    def _csv(self, text: str) -> None:
        lines = csv.reader(io.StringIO(text))
        head = [name.strip() for name in next(lines, [])]
        if len(set(head)) < len(head):
            raise self._wrong(f"a column appears twice ({', '.join(head)})", "line 1")
        for cells in lines:
            where = f"line {lines.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) > len(head):
                raise self._wrong(f"{len(cells)} cells under {len(head)} columns", where)
            row = dict(zip(head, [*cells, *[""] * (len(head) - len(cells))], strict=True))
            name = row.pop(head[0])
            self._put(name, {metric: cell for metric, cell in row.items() if metric != ISSUE}, where)

    def _put(self, perturbation: str, row: Mapping[str, Any], where: str) -> None:
        name = perturbation.strip()
        if self.known and name.partition(":")[0] not in self.known:
            raise self._wrong(f"there is no perturbation {name!r}{nearest(name, self.known)}", where)
        if name in self.table:
            raise self._wrong(f"{name!r} appears twice", where)
        weights = self.table.setdefault(name, {})
        for column, cell in row.items():
            metric = column.strip()
            if self.metrics and metric.casefold() not in map(str.casefold, self.metrics):
                raise self._wrong(
                    f"the metrics are {', '.join(self.metrics)}{nearest(metric, self.metrics)}",
                    f"{where}, column {metric!r}",
                )
            weight = _weight(cell)
            if math.isnan(weight):
                raise self._wrong(
                    f"{cell!r} is not a weight; give a number of at least 0, or an x", f"{where}, column {metric!r}"
                )
            if weight or cell not in ("", None):
                weights[metric] = weight
        self.places[name] = where


def _weight(cell: Any) -> float:
    """NaN for what is none; 0 for an empty cell."""
    if isinstance(cell, str):
        cell = cell.strip()
        if not cell or cell.casefold() in _MARKS:
            return float(bool(cell))
    try:
        weight = math.nan if isinstance(cell, bool) or cell is None else float(cell)
    except (TypeError, ValueError):
        return math.nan
    return weight if math.isfinite(weight) and weight >= 0 else math.nan
