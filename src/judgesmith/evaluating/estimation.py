"""What `judgesmith estimate` and `suggest` read: rows of a file, scores of judges in it, and people's few scores."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..agreement.correlation import Vector
from ..datasets.benchmarks.registry import PREFIX
from ..datasets.records import Row, merge_groups
from ..errors import LabelsError, OptionError
from ..likeness import folded
from ..programs.readings.kinds import surface
from .sources import (
    File,
    Judged,
    inside,
    joined_by_id,
    places,
    read_file,
    read_number,
    read_people,
    some,
    systems_of,
    with_metrics,
)

#: Where the scores of `judgesmith score` stand.
VERDICTS = ("verdict.score", "judge_score")


@dataclass
class Known:
    """Rows of one file. judges: scores by name, NaN where there is none. human: human ratings, NaN where there is
    none. aspect: what they are of. seen: places of the rows that the judge was compiled from."""

    origin: str
    rows: list[Row]
    records: list[dict[str, Any]]
    judges: dict[str, Vector]
    human: Vector
    aspect: str
    seen: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    @property
    def systems(self) -> list[str] | None:
        return systems_of(self.rows)

    @property
    def documents(self) -> list[str]:
        return [row.doc_id for row in self.rows]

    @property
    def unlabelled(self) -> int:
        """Rows without a human score."""
        return int(np.isnan(self.human).sum())


def read_known(
    scored: str,
    *,
    human: Sequence[str] = (),
    judges: Sequence[str] = (),
    aspect: str | None = None,
    columns: Mapping[str, str] | None = None,
    labels_needed: bool = True,
) -> Known:
    """Read a file of rows, and join human ratings to it by id.

    human: files with human ratings (or bench/NAME), or columns of the file itself; none: found in the file by name.
    judges: columns, paths or names in SET.metrics.jsonl; none: the verdicts of `judgesmith score`, where there are any.
    Raises LabelsError for a file, a column or an id that is not there, OptionError for a wrong choice.
    """
    file = with_metrics(read_file(scored, columns, None))
    places(file.origin, file.rows)  # no id stands twice
    known = Known(file.origin, file.rows, file.records, {}, np.full(len(file.rows), np.nan), aspect or "")
    for i, record in enumerate(file.records):
        if str(record.get("seen", record.get("judge_seen"))).lower() == "true":
            known.seen.add(i)
    verdicts = (name for name in VERDICTS if any(inside(record, name) is not None for record in file.records))
    for name in judges or itertools.islice(verdicts, 1):
        known.judges[name] = _scores(file, name)
    files = [name for name in human if name.startswith(PREFIX) or Path(name).is_file()]
    own = [name for name in human if name not in files]
    if len(own) > 1:
        raise OptionError(f"--human {' '.join(own)}: name one column of {file.origin}, or files with human ratings")
    if missing := [
        name for name in own if Path(name).suffix.lower() in (".csv", ".tsv", ".json", ".jsonl", ".parquet")
    ]:
        raise LabelsError(f"{missing[0]}: no such file")
    if own or (not files and labels_needed):
        known.aspect, known.human = _people(file, own[0] if own else aspect)
    for name in files:
        _join(known, file, read_file(name, columns, None), aspect)
    return known


def _scores(file: File, name: str) -> Vector:
    cells = [inside(record, name) for record in file.records]
    if any(cell is not None for cell in cells):
        return np.array([read_number(file, row, name, cell) for row, cell in zip(file.rows, cells, strict=True)])
    raise LabelsError(f"{file.origin}: there is no column {name!r}; there are {some(file.names())}")


def _people(file: File, aspect: str | None) -> tuple[str, Vector]:
    people = Judged(file.origin)
    read_people(people, file, [aspect] if aspect else (), None)
    if len(people.human) > 1:
        raise OptionError(f"{file.origin} has human ratings for {some(people.human)}; choose one with --aspect")
    return next(iter(people.human.items()))


def _join(known: Known, file: File, labels: File, aspect: str | None) -> None:
    """Human ratings of another file, by id. Raises LabelsError where no id is the same, or outputs differ."""
    known.aspect, scores = _people(labels, aspect)
    pairs, missing, _ = joined_by_id(labels.origin, labels.rows, file)
    for j, i in pairs:
        if not np.isnan(scores[j]):
            known.human[i] = scores[j]
    if missing:
        known.notes.append(f"{len(missing)} of {len(labels.rows)} rows of {labels.origin} are not in {known.origin}")


# Rows to label next --------------------------------------------------------------------------------------------------


def read_suggestable(
    rows: str,
    *,
    labels: Sequence[str] = (),
    judges: Sequence[str] = (),
    aspect: str | None = None,
    columns: Mapping[str, str] | None = None,
    own: bool = True,
) -> tuple[Known, dict[str, Vector]]:
    """The rows, and their readings by name: scores of judges, and where there are none what can be counted.

    labels: files with human ratings; none: those of the rows' own file, unless `own` is false. A row whose text
    stands in a file of labels counts as labelled, whatever its id. Raises LabelsError for a file that cannot be read.
    """
    known = read_known(rows, judges=judges, aspect=aspect, columns=columns, labels_needed=False)
    if labels:
        labelled = _labelled_texts(labels, aspect, columns, known)
        known.human = np.array([labelled.get(_key(row.source, row.output), np.nan) for row in known.rows])
    elif own and any(row.scores for row in known.rows):
        known = read_known(rows, judges=judges, aspect=aspect, columns=columns)
    known.rows = list(merge_groups(known.rows))
    readings = dict(known.judges)
    if not readings or all(np.isnan(values).all() for values in readings.values()):
        counted = [surface(row.source, row.output) for row in known.rows]
        readings = {name: np.array([one[name] for one in counted]) for name in counted[0]}
        known.notes.append("no judge has scored these rows: they are spread by length, overlap and repetition alone")
    return known, readings


def _key(source: str, output: str) -> tuple[str, str]:
    return folded(source).key, folded(output).key


def _labelled_texts(
    labels: Sequence[str], aspect: str | None, columns: Mapping[str, str] | None, known: Known
) -> dict[tuple[str, str], float]:
    """Human ratings by text: files of labels often number their rows afresh."""
    result: dict[tuple[str, str], float] = {}
    for name in labels:
        file = read_file(name, columns, None)
        aspects = list(dict.fromkeys(a for row in file.rows for a in row.scores))
        wanted = aspect or next(iter(aspects), None)
        if wanted not in aspects:
            raise LabelsError(f"{file.origin}: no row has a score" + (f" for {aspect!r}" if aspect else ""))
        if len(aspects) > 1 and aspect is None:
            known.notes.append(f"{file.origin} has several aspects; a row with a score for {wanted!r} is labelled")
        result |= {_key(row.source, row.output): row.scores[wanted] for row in file.rows if wanted in row.scores}
    return result
