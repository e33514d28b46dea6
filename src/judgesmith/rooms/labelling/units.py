"""A file as units to be labelled: its rows, or pairs of outputs."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from judgesmith.datasets.loading import read_compared
from judgesmith.datasets.meanings import candidates
from judgesmith.datasets.row import Row
from judgesmith.datasets.sheet import Outputs
from judgesmith.errors import LabelsError
from judgesmith.evaluating.sources import places, read_file
from judgesmith.rooms.labelling.task import Kind, Unit
from judgesmith.rows import WRITTEN
from judgesmith.running.opening import rows_file

#: A unit without its key: row, line, extra.
_Keyless = tuple[dict[str, Any], int, dict[str, Any]]


@dataclass(frozen=True)
class Units:
    """Units of a file to label, in the file's order."""

    origin: str
    units: tuple[Unit, ...]
    notes: tuple[str, ...] = ()


def read_units(name: str, kind: Kind, columns: Mapping[str, str]) -> Units:
    """Read ROWS.

    Raises:
        LabelsError: If a file cannot be read, or has nothing to label in this way.
    """
    path = rows_file(name)
    if kind == "preference":
        return _keyed(path.name, _pairs(name, path, columns))
    file = read_file(name, columns)
    places(file.origin, file.rows)  # ids must differ: a label names its row by its id
    full = [row for row in file.rows if row.output.strip()]
    if not full:
        raise LabelsError(
            f"{file.origin}: the output is empty in every row; name its column with --columns output=NAME"
        )
    notes = [
        f"{file.origin}: {len(file.rows) - len(full)} rows without an output are left out"
    ]
    others = _others(file)
    whole: list[_Keyless] = []
    for row in full:
        extra = {name: row.columns[name] for name in others if name in row.columns}
        whole.append((_row(row) | {"output": row.output}, row.line, extra))
    return _keyed(file.origin, whole, notes if len(full) < len(file.rows) else ())


def _keyed(
    origin: str, candidates: Iterable[_Keyless], notes: Sequence[str] = ()
) -> Units:
    """Return units with keys of what is shown: the same texts are the same unit wherever they stand in the file."""
    seen: Counter[str] = Counter()
    units = []
    for row, line, extra in candidates:
        shown = {
            name: value
            for name, value in row.items()
            if name not in ("id", "doc_id", "group", "system")
        }
        digest = sha256(json.dumps([shown, {}], sort_keys=True).encode()).hexdigest()[
            :20
        ]
        seen[digest] += 1
        units.append(Unit(f"{digest}-{seen[digest]}", row, line, extra))
    return Units(origin, tuple(units), tuple(notes))


def _others(file: Outputs) -> list[str]:
    """Return the columns without a role that say something of a row, but for what may be ratings or a judge's."""
    names = file.names()
    found = candidates(file.records, names)
    of_scores = (
        name
        for column, raters in file.columns.aspects.values()
        for name in (column, *raters)
    )
    left_out = {
        *file.columns.texts.values(),
        *of_scores,
        *found.named,
        *found.certain,
        *found.whole,
        *WRITTEN,
    }
    return [
        name
        for name in names
        if name not in left_out
        and not name.startswith("judge_")
        and not name.startswith("score")
        and all(
            isinstance(row.get(name, ""), str | int | float) for row in file.records
        )
    ]


def _row(row: Row) -> dict[str, Any]:
    """Return the fields of a row that are kept beside its outputs."""
    fields = {
        "id": row.id,
        "source": row.source,
        "context": row.context,
        "reference": row.reference,
        "system": row.system,
        "doc_id": row.doc_id,
        "group": row.group if row.group != row.doc_id else None,
    }
    return {name: value for name, value in fields.items() if value}


# Pairs ---------------------------------------------------------------------------------------------------------------


def _pairs(name: str, path: Path, columns: Mapping[str, str]) -> Iterator[_Keyless]:
    """Yield two outputs in a row, or neighbouring outputs of one document."""
    compared = read_compared(path, columns)
    if compared is None:
        pairs = _neighbours(read_file(name, columns).rows)
    else:
        pairs = [(pair.a, pair.b, pair.id) for pair, _ in compared]
    different = False
    for a, b, pair in pairs:
        if a.output.strip() and b.output.strip() and a.output != b.output:
            different = True
            row = _row(a)
            row.pop("system", None)
            texts = {"output_a": a.output, "output_b": b.output}
            yield row | {"id": pair} | texts, 0, {}
    if not different:
        raise LabelsError(
            f"{path.name}: there are no two different outputs to compare; give rows with two outputs (output_a, "
            "output_b; or --columns output_a=NAME --columns output_b=NAME), or several outputs with one doc_id"
        )


def _neighbours(rows: Iterable[Row]) -> list[tuple[Row, Row, str]]:
    """Return neighbouring rows of each document, with an id for both."""
    documents: dict[str, list[Row]] = {}
    for row in rows:
        documents.setdefault(row.doc_id, []).append(row)
    pairs = []
    for of_document in documents.values():
        for a, b in itertools.pairwise(of_document):
            pairs.append((a, b, f"{a.id} | {b.id}"))
    return pairs
