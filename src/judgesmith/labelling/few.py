"""One judge and few human ratings: what `judgesmith estimate`, `suggest` and `label --order suggest` know of rows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..agreement.correlation import Vector
from ..datasets.benchmarks.registry import PREFIX
from ..datasets.orders import check_orders
from ..datasets.records import merge_groups
from ..datasets.sheet import Outputs as File
from ..errors import LabelsError, OptionError
from ..evaluating.columns import column_scores
from ..evaluating.sources import (
    VERDICTS,
    Judged,
    Known,
    grouped,
    inside,
    joined_by_id,
    places,
    read_cell,
    read_file,
    read_people,
    some,
    with_metrics,
)
from ..likeness import folded


@dataclass
class Scored(Known):
    """Inputs of `estimate` and `suggest`.

    judges: scores by name, and human ratings, NaN where there is none. aspect: the aspect of these.
    """

    judges: dict[str, Vector] = field(default_factory=dict)
    human: Vector = field(default_factory=lambda: np.array([]))
    aspect: str = ""

    def numbers(self, column: str) -> Vector:
        """Return a column of the rows as numbers, NaN where it is empty.

        Raises:
            LabelsError: If a cell is not a number.
        """
        cells = [inside(row.columns, column) for row in self.rows]
        if all(cell is None for cell in cells):
            names = dict.fromkeys(name for row in self.rows for name in row.columns)
            raise LabelsError(
                f"{self.origin}: there is no column {column!r}; there are {some(names)}"
            )
        read = (
            read_cell(self.origin, row.line, column, cell)
            for row, cell in zip(self.rows, cells, strict=True)
        )
        return np.array([one[0] if one else np.nan for one in read])


def read_known(
    scored: str,
    *,
    human: Sequence[str] = (),
    judges: Sequence[str] = (),
    aspect: str | None = None,
    columns: Mapping[str, Any] | None = None,
    labels_needed: bool = True,
    orders: Mapping[str, Sequence[str]] | None = None,
) -> Scored:
    """Read a file of rows, and join human ratings to it by id.

    human: files with human ratings (or bench/NAME), or columns of the file itself; none: found in the file by name.
    judges: columns, paths or names in SET.metrics.jsonl; none: the verdicts of `judgesmith score`, if there are any.
    orders: the words of columns, worst first, by name.

    Raises:
        LabelsError: If there is no such file, column or id.
        OptionError: If a choice is invalid.
    """
    files = [name for name in human if name.startswith(PREFIX) or Path(name).is_file()]
    own = [name for name in human if name not in files]
    file = with_metrics(read_file(scored, columns, human=own, orders=orders or {}))
    places(file.origin, file.rows)  # no id stands twice
    result = Scored(
        file.origin,
        grouped(file.rows),
        human=np.full(len(file.rows), np.nan),
        aspect=aspect or "",
    )
    marks = (
        str(record.get("seen", record.get("judge_seen"))).lower()
        for record in file.records
    )
    result.seen |= {i for i, mark in enumerate(marks) if mark == "true"}
    verdicts = (
        name
        for name in VERDICTS
        if any(inside(record, name) is not None for record in file.records)
    )
    for name in judges or itertools.islice(verdicts, 1):
        cells = [inside(record, name) for record in file.records]
        if all(cell is None for cell in cells):
            raise LabelsError(
                f"{file.origin}: there is no column {name!r}; there are {some(file.names())}"
            )
        result.judges[name], _, read = column_scores(file, name, [])
        result.notes += [f"{name} is read as {read}"] if read else []
    check_orders(orders or {}, [*file.names(), *file.columns.aspects, *result.judges])
    if len(own) > 1:
        raise OptionError(
            f"--human {' '.join(own)}: name one column of {file.origin}, or files with human ratings"
        )
    if own and Path(own[0]).suffix.lower() in (
        ".csv",
        ".tsv",
        ".json",
        ".jsonl",
        ".parquet",
    ):
        raise LabelsError(f"{own[0]}: no such file")
    if own or (not files and labels_needed):
        result.aspect, result.human = _people(
            file, own[0] if own else aspect, result.notes
        )
    for name in files:
        labels = read_file(name, columns, texts_needed=False, orders=orders or {})
        result.aspect, ratings = _people(labels, aspect, result.notes)
        pairs, absent, _ = joined_by_id(labels.origin, labels.rows, file)
        for j, i in pairs:
            if not np.isnan(ratings[j]):
                result.human[i] = ratings[j]
                result.rows[i] = replace(
                    result.rows[i], suggested=labels.rows[j].suggested
                )
        if absent:
            result.notes.append(
                f"{len(absent)} of {len(labels.rows)} rows of {labels.origin} are not in {result.origin}"
            )
    return result


def _people(file: File, aspect: str | None, notes: list[str]) -> tuple[str, Vector]:
    people = Judged(file.origin)
    read_people(people, file, [aspect] if aspect else (), None)
    if len(people.human) > 1:
        raise OptionError(
            f"{file.origin} has human ratings for {some(people.human)}; choose one with --aspect"
        )
    notes += (
        note for note in people.notes if " are read as " in note and note not in notes
    )
    return next(iter(people.human.items()))


def read_suggestable(
    rows: str,
    *,
    labels: Sequence[str] = (),
    judges: Sequence[str] = (),
    aspect: str | None = None,
    columns: Mapping[str, Any] | None = None,
    own: bool = True,
    orders: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Scored, dict[str, Vector]]:
    """Return the rows, and their readings by name: scores of judges, or else counts of words.

    labels: files with human ratings; none: those of the rows' own file, unless `own` is false. A row whose text stands
    in a file of labels counts as labelled, whatever its id.

    Raises:
        LabelsError: If a file cannot be read.
    """
    options: dict[str, Any] = {
        "judges": judges,
        "aspect": aspect,
        "columns": columns,
        "orders": orders,
    }
    scored = read_known(rows, labels_needed=False, **options)
    if labels:
        labelled = _labelled_texts(labels, aspect, columns, scored)
        scored.human = np.array(
            [labelled.get(_key(row.source, row.output), np.nan) for row in scored.rows]
        )
    elif own and any(row.scores for row in scored.rows):
        scored = read_known(rows, **options)
    scored.rows = list(merge_groups(scored.rows))
    readings = dict(scored.judges)
    if not readings or all(np.isnan(values).all() for values in readings.values()):
        from ..programs.readings.kinds import surface

        counted = [surface(row.source, row.output) for row in scored.rows]
        readings = {
            name: np.array([one[name] for one in counted]) for name in counted[0]
        }
        scored.notes.append(
            "no judge has scored these rows: they are spread by length, overlap and repetition alone"
        )
    return scored, readings


def _key(source: str, output: str) -> tuple[str, str]:
    return folded(source).key, folded(output).key


def _labelled_texts(
    labels: Sequence[str],
    aspect: str | None,
    columns: Mapping[str, Any] | None,
    scored: Scored,
) -> dict[tuple[str, str], float]:
    """Return human ratings by text: files of labels often number their rows afresh."""
    result: dict[tuple[str, str], float] = {}
    for name in labels:
        file = read_file(name, columns)
        aspects = list(dict.fromkeys(a for row in file.rows for a in row.scores))
        wanted = aspect or next(iter(aspects), None)
        if wanted not in aspects:
            raise LabelsError(
                f"{file.origin}: no row has a score"
                + (f" for {aspect!r}" if aspect else "")
            )
        if len(aspects) > 1 and aspect is None:
            scored.notes.append(
                f"{file.origin} has several aspects; a row with a score for {wanted!r} is labelled"
            )
        result |= {
            _key(row.source, row.output): row.scores[wanted]
            for row in file.rows
            if wanted in row.scores
        }
    return result
