"""What `judgesmith suggest` and `label --order suggest` know of the rows that they choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..agreement.correlation import Vector
from ..datasets.records import merge_groups
from ..errors import LabelsError
from ..evaluating.sources import Scored, read_file, read_known
from ..likeness import folded


def read_suggestable(
    rows: str,
    *,
    labels: Sequence[str] = (),
    judges: Sequence[str] = (),
    aspect: str | None = None,
    columns: Mapping[str, Any] | None = None,
    own: bool = True,
) -> tuple[Scored, dict[str, Vector]]:
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
        from ..programs.readings.kinds import surface

        counted = [surface(row.source, row.output) for row in known.rows]
        readings = {name: np.array([one[name] for one in counted]) for name in counted[0]}
        known.notes.append("no judge has scored these rows: they are spread by length, overlap and repetition alone")
    return known, readings


def _key(source: str, output: str) -> tuple[str, str]:
    return folded(source).key, folded(output).key


def _labelled_texts(
    labels: Sequence[str], aspect: str | None, columns: Mapping[str, Any] | None, known: Scored
) -> dict[tuple[str, str], float]:
    """Human ratings by text: files of labels often number their rows afresh."""
    result: dict[tuple[str, str], float] = {}
    for name in labels:
        file = read_file(name, columns)
        aspects = list(dict.fromkeys(a for row in file.rows for a in row.scores))
        wanted = aspect or next(iter(aspects), None)
        if wanted not in aspects:
            raise LabelsError(f"{file.origin}: no row has a score" + (f" for {aspect!r}" if aspect else ""))
        if len(aspects) > 1 and aspect is None:
            known.notes.append(f"{file.origin} has several aspects; a row with a score for {wanted!r} is labelled")
        result |= {_key(row.source, row.output): row.scores[wanted] for row in file.rows if wanted in row.scores}
    return result
