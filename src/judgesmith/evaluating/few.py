"""One judge and few human ratings: the rows of `judgesmith estimate`, `suggest` and `label --order suggest`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.datasets.benchmarks.registry import PREFIX
from judgesmith.datasets.formats import of_name
from judgesmith.datasets.orders import check_orders
from judgesmith.datasets.records import merge_groups
from judgesmith.datasets.row import Row
from judgesmith.datasets.sheet import Outputs as File
from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.columns import column_scores
from judgesmith.evaluating.sources import (
    VERDICTS,
    FileRows,
    Judged,
    grouped,
    has_column,
    joined_by_id,
    marked,
    places,
    read_file,
    read_people,
    some,
    with_metrics,
)
from judgesmith.likeness import folded
from judgesmith.programs.contract import ratings_of, with_chosen
from judgesmith.running.contracts import Held, held_in
from judgesmith.running.opening import names_in, rows_file


@dataclass
class Scored(FileRows):
    """Inputs of `estimate` and `suggest`.

    judges: scores by name, and human ratings, NaN where there is none. aspect: the aspect of these. decisions: the
    human scores of fail and pass; None if ratings are others.
    """

    judges: dict[str, Vector] = field(default_factory=dict)
    human: Vector = field(default_factory=lambda: np.array([]))
    aspect: str = ""
    decisions: tuple[float, float] | None = None
    held: list[Held] = field(default_factory=list)
    """What the judge that scored the rows was compiled from."""


def read_few(
    scored: str,
    *,
    human: Sequence[str] = (),
    judges: Sequence[str] = (),
    aspect: str | None = None,
    columns: Mapping[str, Any] | None = None,
    labels_needed: bool = True,
    of_versions: bool = False,
    orders: Mapping[str, Sequence[str]] | None = None,
) -> Scored:
    """Read a file of rows, and join human ratings to it by id.

    human: files with human ratings (or bench/NAME), or columns of the file itself; none: found in the file by name.
    judges: columns, paths or names in SET.metrics.jsonl; none: the verdicts of `judgesmith score`, if there are any.
    of_versions: an id may stand once for each system. orders: the words of columns, worst first, by name.

    Raises:
        LabelsError: If there is no such file, column or id.
        OptionError: If a choice is invalid.
    """
    files = [name for name in human if name.startswith(PREFIX) or Path(name).is_file()]
    own = [name for name in human if name not in files]
    file = with_metrics(
        read_file(scored, columns, human=own, judges=judges, orders=orders or {})
    )
    apart: dict[str | None, list[Row]] = {}
    for row in file.rows:
        apart.setdefault(row.system if of_versions else None, []).append(row)
    for rows in apart.values():
        places(file.origin, rows)  # no id stands twice
    result = Scored(
        file.origin,
        grouped(file.rows),
        human=np.full(len(file.rows), np.nan),
        aspect=aspect or "",
    )
    for i, record in enumerate(file.records):
        if marked(record, "seen"):
            result.seen.add(i)
    for name in judges or _verdict_columns(file):
        _read_judge(result, file, name)
    check_orders(orders or {}, [*file.names(), *file.columns.aspects, *result.judges])
    if len(own) > 1:
        raise OptionError(
            f"--human {' '.join(own)}: name one column of {file.origin}, or files with human ratings"
        )
    if own and of_name(Path(own[0])) is not None and not has_column(file, own[0]):
        raise LabelsError(f"{own[0]}: no such file; check the path")
    result.held = [] if judges else held_in(file)
    chosen = bool(own or aspect or ratings_of(columns or {}))
    if own or (not files and labels_needed):
        named = own[0] if own else aspect
        result.human = people_of(result, file, named, chosen=chosen)
    for name in files:
        roles = roles_of(name, result.held, columns)
        labels = read_file(name, roles, texts_needed=False, orders=orders or {})
        _join_labels(result, file, labels, aspect, chosen=chosen)
    return result


def roles_of(
    name: str, held: Sequence[Held], columns: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the columns of a file of labels: as the user named them, else as the judge was compiled from them."""
    known: dict[str, Any] = {}
    if held:
        names = names_in(rows_file(name))
        for contract in held[0].contracts:
            known |= contract.columns_in(names)
    return with_chosen(known, columns or {})


def _verdict_columns(file: File) -> list[str]:
    """Return the column of the verdicts of `judgesmith score`, none without any."""
    for name in VERDICTS:
        if has_column(file, name):
            return [name]
    return []


def _read_judge(result: Scored, file: File, name: str) -> None:
    """Add a judge's scores in a column.

    Raises:
        LabelsError: If there is no such column.
    """
    if not has_column(file, name):
        raise LabelsError(
            f"{file.origin}: there is no column {name!r}; there are {some(file.names())}"
        )
    result.judges[name], _, reading = column_scores(file, name, [])
    if reading:
        result.notes.append(f"{name} is read as {reading}")


def _join_labels(
    result: Scored, file: File, labels: File, aspect: str | None, *, chosen: bool
) -> None:
    """Add the human ratings of a file of labels to the rows of the same ids."""
    ratings = people_of(result, labels, aspect, chosen=chosen)
    pairs, absent, _ = joined_by_id(labels.origin, labels.rows, file)
    for j, i in pairs:
        if not np.isnan(ratings[j]):
            result.human[i] = ratings[j]
            label = labels.rows[j]
            result.rows[i] = replace(
                result.rows[i], suggested=label.suggested, chance=label.chance
            )
    if absent:
        result.notes.append(
            f"{len(absent)} of {len(labels.rows)} rows of {labels.origin} are not in {result.origin}"
        )


def people_of(
    result: Scored, file: File, aspect: str | None, *, chosen: bool
) -> Vector:
    """Return the human ratings of a file's rows, and keep their aspect and the scores of fail and pass.

    Raises:
        OptionError: If they answer another question than the labels of the judge that scored the rows.
    """
    people = Judged(file.origin)
    wanted = [aspect] if aspect else ()
    read_people(people, file, wanted, None, held=result.held, chosen=chosen)
    if len(people.human) > 1:
        raise OptionError(
            f"{file.origin} has human ratings for {some(people.human)}; choose one with --aspect"
        )
    for note in people.notes:
        said = " are read as " in note or " was compiled from " in note
        if said and note not in result.notes:
            result.notes.append(note)
    result.aspect, ratings = next(iter(people.human.items()))
    if people.kinds.get(result.aspect) == "binary":
        fail, passed = people.marks[result.aspect].levels
        result.decisions = fail, passed
    return ratings


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
    scored = read_few(rows, labels_needed=False, **options)
    if labels:
        labelled = _labelled_texts(labels, aspect, columns, scored)
        ratings = [labelled.get(_key(row), math.nan) for row in scored.rows]
        scored.human = np.array(ratings)
    elif own and any(row.scores for row in scored.rows):
        scored = read_few(rows, **options)
    scored.rows = list(merge_groups(scored.rows))
    readings = dict(scored.judges)
    if all(np.isnan(values).all() for values in readings.values()):
        readings = _counts_of_words(scored.rows)
        scored.notes.append(
            "no judge has scored these rows: they are spread by length and overlap alone"
        )
    return scored, readings


def _counts_of_words(rows: Sequence[Row]) -> dict[str, Vector]:
    """Return length, overlap and repetition of the rows, by name."""
    from judgesmith.programs.readings.kinds import surface

    columns: dict[str, list[float]] = {}
    for row in rows:
        for name, value in surface(row.source, row.output).items():
            columns.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in columns.items()}


def _key(row: Row) -> tuple[str, str]:
    return folded(row.source).key, folded(row.output).key


def _labelled_texts(
    labels: Sequence[str],
    aspect: str | None,
    columns: Mapping[str, Any] | None,
    scored: Scored,
) -> dict[tuple[str, str], float]:
    """Return human ratings by text: files of labels often number their rows afresh."""
    result: dict[tuple[str, str], float] = {}
    for name in labels:
        file = read_file(name, roles_of(name, scored.held, columns))
        aspects = list(dict.fromkeys(a for row in file.rows for a in row.scores))
        wanted = aspect or next(iter(aspects), None)
        if wanted not in aspects:
            wanting = f" for {aspect!r}" if aspect else ""
            raise LabelsError(f"{file.origin}: no row has a score{wanting}")
        if len(aspects) > 1 and aspect is None:
            scored.notes.append(
                f"{file.origin} has several aspects; a row with a score for {wanted!r} is labelled"
            )
        chosen = bool(aspect or ratings_of(columns or {}))
        people_of(scored, file, wanted, chosen=chosen)
        for row in file.rows:
            if wanted in row.scores:
                result[_key(row)] = row.scores[wanted]
    return result
