"""What `judgesmith evaluate` reads: scored files, columns, metric files, annotators and benchmarks, joined by id."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..datasets.loading import iter_rows
from ..datasets.records import OVERALL, Columns, Row, from_json, infer_scale, is_missing, read_ratings
from ..errors import LabelsError, OptionError
from ..optimizers.correlation import Vector
from ..programs.reference_metrics import PREFIX, reference_metric

BENCH = "bench/"
ASPECT = "{aspect}"  # in a judge's column: a column for each aspect
_SHOWN = 12  # names in one message


@dataclass
class Judged:
    """Rows with people's and judges' scores, as `meta_evaluate` takes them, and the texts to show with them."""

    origin: str
    ids: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    systems: list[str] | None = None
    human: dict[str, Vector] = field(default_factory=dict)
    judges: dict[str, dict[str, Vector]] = field(default_factory=dict)
    uncalibrated: dict[str, dict[str, Vector]] = field(default_factory=dict)
    explanations: dict[str, list[str]] = field(default_factory=dict)
    ratings: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    scales: dict[str, tuple[float, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seen: int = 0  # rows that a judge was compiled from

    @property
    def lengths(self) -> Vector:
        """Words of the outputs."""
        return np.array([len(text.split()) for text in self.outputs], dtype=np.float64)


@dataclass(frozen=True)
class Spec:
    """`NAME=COLUMN` or `COLUMN` of `--judge`."""

    name: str
    column: str

    @classmethod
    def parse(cls, text: str) -> Spec:
        name, equals, column = text.partition("=")
        if not equals:
            name = column = text
        if not name.strip() or not column.strip():
            raise OptionError(f"--judge {text!r} is not of the form COLUMN or NAME=COLUMN")
        return cls(name.strip(), column.strip())


@dataclass(frozen=True)
class _File:
    origin: str
    path: Path
    rows: list[Row]
    records: list[dict[str, Any]]
    chosen: Mapping[str, str]

    def names(self) -> list[str]:
        return list(dict.fromkeys(name for record in self.records for name in record))


def read_judged(
    sources: Sequence[str],
    *,
    human: Sequence[str] = (),
    judges: Sequence[str] = (),
    labels: str | None = None,
    metrics: Sequence[Path] = (),
    columns: Mapping[str, str] | None = None,
    without_systems: Sequence[str] = (),
    scale: tuple[float, float] | None = None,
    limit: int | None = None,
) -> Judged:
    """Read and join everything by id; the first file (or `labels`) gives the rows and people's scores.

    Raises LabelsError for a file, a column or an id that is not there, with what is; OptionError for a wrong option.
    """
    specs = [Spec.parse(text) for text in (*judges, *(s for s in sources if s.startswith(PREFIX)))]
    files = [_read(name, columns, limit) for name in sources if not name.startswith(PREFIX)]
    if not files and labels is None:
        raise OptionError("name a file with scores, or a benchmark such as bench/summeval")
    base = files[0] if labels is None else _read(labels, columns, limit)
    joined = Judged(base.origin)
    keep = [i for i, row in enumerate(base.rows) if (row.system or "") not in without_systems]
    _known_systems(base, without_systems)
    rows, records = [base.rows[i] for i in keep], [base.records[i] for i in keep]
    if not rows:
        raise LabelsError(f"{base.origin}: no row is left without the systems {', '.join(without_systems)}")
    place = _places(base.origin, rows)
    joined.ids, joined.outputs = [row.id for row in rows], [row.output for row in rows]
    joined.documents = [row.doc_id for row in rows]
    if all(row.system for row in rows):
        joined.systems = [str(row.system) for row in rows]
    _people(joined, base, rows, records, human, scale)
    _raters(joined, base, place)
    tables = [_metric_file(path) for path in metrics]
    beside = base.path.with_name(base.path.name.split(".")[0] + ".metrics.jsonl")
    if not tables and beside.exists() and beside != base.path:
        tables = [_metric_file(beside)]
    for spec in specs:
        _judge(joined, spec, base, rows, records, files, tables, place)
    for file in files if labels is None or not specs else []:
        _verdicts(joined, file, rows, place, specs, several=len(files) > 1)
    if labels is not None and not specs and not joined.judges:
        raise LabelsError(f"{', '.join(f.origin for f in files)}: no row has a verdict; name a column with --judge")
    if not joined.judges:
        raise OptionError(
            f"{base.origin}: there is no judge's score in it; name one with --judge COLUMN, --judge metric/rougeL"
            + (f", or a metric: {_some(_metric_names(tables))}" if tables else "")
        )
    return joined


# Files ---------------------------------------------------------------------------------------------------------------


def _read(name: str, columns: Mapping[str, str] | None, limit: int | None) -> _File:
    path = _benchmark(name) if name.startswith(BENCH) else Path(name)
    pairs = []
    for pair in iter_rows(path, columns=columns):
        pairs.append(pair)
        if limit is not None and len(pairs) >= limit:
            break
    return _File(path.name, path, [row for row, _ in pairs], [record for _, record in pairs], columns or {})


def _benchmark(name: str) -> Path:
    """The file of `bench/NAME`: what the benchmarks module finds or fetches, else a file of JUDGESMITH_DATA."""
    short = name.removeprefix(BENCH)
    try:
        from ..datasets import benchmarks  # type: ignore[attr-defined,unused-ignore]
    except ImportError:
        folder = os.environ.get("JUDGESMITH_DATA")
        if not folder:
            raise OptionError(f"{name}: set JUDGESMITH_DATA to the folder that has {short}.jsonl") from None
        there = sorted(p.name.split(".")[0] for p in Path(folder).glob("*.jsonl") if p.name.count(".") == 1)
        if short not in there:
            raise OptionError(f"{name}: there is no such set in JUDGESMITH_DATA; there are {_some(there)}") from None
        return Path(folder) / f"{short}.jsonl"
    return benchmarks.resolve(short)


def _known_systems(file: _File, wanted: Sequence[str]) -> None:
    there = {row.system for row in file.rows}
    for name in wanted:
        if name not in there:
            raise OptionError(f"--without-system {name!r}: {file.origin} has {_some(sorted(s for s in there if s))}")


def _places(origin: str, rows: Sequence[Row]) -> dict[str, int]:
    place: dict[str, int] = {}
    for i, row in enumerate(rows):
        if place.setdefault(row.id, i) != i:
            raise LabelsError(
                f"{origin}, row {row.line}: id {row.id!r} is that of row {rows[place[row.id]].line} already; give "
                "every row its own"
            )
    return place


def _some(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:_SHOWN]) + (f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else "") or "none"


# People's scores -----------------------------------------------------------------------------------------------------


def _people(
    joined: Judged,
    file: _File,
    rows: Sequence[Row],
    records: Sequence[Mapping[str, Any]],
    wanted: Sequence[str],
    scale: tuple[float, float] | None,
) -> None:
    known = list(dict.fromkeys(name for row in rows for name in row.scores))
    if not wanted:
        wanted = [OVERALL] if OVERALL in known else known
        if not wanted:
            raise LabelsError(
                f"{file.origin}: no column with people's scores was found; name it with --human COLUMN; the columns "
                f"are: {_some(file.names())}"
            )
    for name in dict.fromkeys(known if "all" in wanted and "all" not in known else wanted):
        aspect = name.removeprefix("scores.")
        values, ratings = _human_column(file, rows, records, name, aspect, known)
        joined.human[aspect] = values
        raters = max((len(r) for r in ratings), default=0)
        if raters > 1:
            joined.ratings[aspect] = np.array([[*r, *[math.nan] * (raters - len(r))] for r in ratings])
        defined = values[~np.isnan(values)]
        if scale is not None:
            joined.scales[aspect] = scale
        elif len(defined):
            every = np.concatenate([defined, *(np.array(r) for r in ratings if len(r))])
            joined.scales[aspect] = infer_scale(every, len(defined))


def _human_column(
    file: _File,
    rows: Sequence[Row],
    records: Sequence[Mapping[str, Any]],
    name: str,
    aspect: str,
    known: Sequence[str],
) -> tuple[Vector, list[tuple[float, ...]]]:
    """The scores, NaN where there is none, and the single ratings of each row, () where there is one rating."""
    names = file.names()
    if name not in names and "." in name and name.split(".")[0] in names and aspect not in known:
        values = [_number(file, row, name, _inside(record, name)) for row, record in zip(rows, records, strict=True)]
        if all(math.isnan(v) for v in values):
            raise LabelsError(f"{file.origin}: {name!r} is in no row; people's scores are {_some(known)}")
        return np.array(values), [()] * len(rows)
    flat = next((n for n in (name, *(n for n in names if n.casefold() == name.casefold())) if n in names), None)
    if aspect not in known and flat is None:
        raise LabelsError(
            f"{file.origin}: there is no column or aspect {name!r} with people's scores; aspects: {_some(known)}; "
            f"columns: {_some(names)}"
        )
    if flat is not None and aspect not in known:
        cells = [
            read_cell(file.origin, row.line, flat, record.get(flat)) for row, record in zip(rows, records, strict=True)
        ]
        values = [math.fsum(cell) / len(cell) if cell else math.nan for cell in cells]
        return np.array(values), [cell if len(cell) > 1 else () for cell in cells]
    roles = Columns.find(names, file.origin, chosen=file.chosen, aspect=aspect, scores_needed=False)
    values, ratings = [], []
    for row, record in zip(rows, records, strict=True):
        if aspect not in row.scores:
            problem = roles.row(record, row.line)[1].get(aspect)
            if problem is not None and "missing" not in problem:
                raise LabelsError(f"{file.origin}, row {row.line}, {problem}")
        values.append(row.scores.get(aspect, math.nan))
        ratings.append(row.ratings.get(aspect, ()))
    return np.array(values), ratings


def read_cell(origin: str, line: int, column: str, cell: Any) -> tuple[float, ...]:
    """The number or numbers in a cell, () where it is empty. Raises LabelsError with the place and the mend."""
    if is_missing(cell) or (isinstance(cell, str) and cell.strip().lower() == "nan"):
        return ()
    try:
        return read_ratings(cell, or_none=True)
    except ValueError as error:
        raise LabelsError(f"{origin}, row {line}, column {column!r}: {error}") from None


def _number(file: _File, row: Row, column: str, cell: Any) -> float:
    found = read_cell(file.origin, row.line, column, cell)
    return math.fsum(found) / len(found) if found else math.nan


def _inside(record: Mapping[str, Any], path: str) -> Any:
    """`verdict.criteria.fluency.score`: a value inside nested objects, None where a step is missing."""
    value: Any = record
    while path:
        value = from_json(value)
        if not isinstance(value, Mapping):
            return None
        if path in value:
            return value[path]
        step, _, path = path.partition(".")
        value = value.get(step)
    return value


def _raters(joined: Judged, file: _File, place: Mapping[str, int]) -> None:
    """`<set>.annotators.jsonl` beside the file: {"id", "annotations": [{aspect: rating}, …]}."""
    beside = file.path.with_name(file.path.name.split(".")[0] + ".annotators.jsonl")
    if not beside.exists() or beside == file.path:
        return
    found: dict[str, dict[int, list[float]]] = {}
    for line, record in _json_lines(beside):
        i = place.get(str(record.get("id")))
        given = record.get("annotations")
        for person in given if i is not None and isinstance(given, list) else []:
            for aspect, cell in person.items() if isinstance(person, Mapping) else ():
                rating = read_cell(beside.name, line, str(aspect), cell)
                found.setdefault(str(aspect), {}).setdefault(i or 0, []).append(rating[0] if rating else math.nan)
    for aspect in joined.human:
        if aspect in found and aspect not in joined.ratings:
            raters = max(len(r) for r in found[aspect].values())
            table = np.full((len(joined.ids), raters), np.nan)
            for i, ratings in found[aspect].items():
                table[i, : len(ratings)] = ratings
            joined.ratings[aspect] = table
            note = f"ceilings are from {beside.name}, where positions are not the same persons throughout"
            if note not in joined.notes:
                joined.notes.append(note)


# Judges' scores ------------------------------------------------------------------------------------------------------

_Table = tuple[str, dict[str, Mapping[str, Any]]]  # a metric file's name, and its values by id


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    record = json.loads(line)
                    if not isinstance(record, dict):
                        raise LabelsError(f"{path.name}, line {number}: a JSON object is needed")
                    yield number, record
    except (ValueError, RecursionError) as error:
        raise LabelsError(f"{path.name}: no JSON lines ({error}); mend the file") from None
    except OSError as error:
        raise LabelsError(f"{path.name}: cannot be read ({error.strerror})") from None


def _metric_file(path: Path) -> _Table:
    """`{"id", "metrics": {name: value}}` a line, or the values beside the id."""
    found: dict[str, Mapping[str, Any]] = {}
    for number, record in _json_lines(path):
        values = record.get("metrics", {k: v for k, v in record.items() if k != "id"})
        if "id" not in record or not isinstance(values, Mapping):
            raise LabelsError(f'{path.name}, line {number}: expected {{"id": …, "metrics": {{name: value}}}}')
        if found.setdefault(str(record["id"]), values) is not values:
            raise LabelsError(f"{path.name}, line {number}: id {record['id']!r} stands in it twice")
    return path.name, found


def _metric_names(tables: Sequence[_Table]) -> list[str]:
    return list(dict.fromkeys(name for _, table in tables for values in table.values() for name in values))


def _judge(
    joined: Judged,
    spec: Spec,
    base: _File,
    rows: Sequence[Row],
    records: Sequence[Mapping[str, Any]],
    files: Sequence[_File],
    tables: Sequence[_Table],
    place: Mapping[str, int],
) -> None:
    """Find the scores that `--judge` names: a reference metric, a column of a file, or a metric of a metric file."""
    if spec.name in joined.judges:
        raise OptionError(f"--judge {spec.name!r} is named twice; tell them apart with NAME=COLUMN")
    if spec.column.startswith(PREFIX):
        references = _references(base)
        items = [
            {"output": row.output, "reference": row.reference, "references": references.get(row.doc_id)} for row in rows
        ]
        scores = np.array([verdict.score for verdict in reference_metric(spec.column).score_many(items)])
        if np.isnan(scores).all():
            raise LabelsError(f"{base.origin}: no row has a reference, which {spec.column} compares with")
        joined.judges[spec.name] = dict.fromkeys(joined.human, scores)
        return
    found: dict[str, Vector] = {}
    for aspect in joined.human:
        column = spec.column.replace(ASPECT, aspect.removeprefix("zscores."))
        scores_of = _column(column, base, rows, records, files, tables, place, joined)
        if scores_of is not None:
            found[aspect] = scores_of
    if not found:
        there = [*base.names(), *_metric_names(tables)]
        raise LabelsError(f"there is no column or metric {spec.column!r}; there are {_some(there)}")
    joined.judges[spec.name] = found


def _references(file: _File) -> dict[str, list[str]]:
    """`<set>.references.jsonl` beside the file: {"doc_id", "references": […]}."""
    beside = file.path.with_name(file.path.name.split(".")[0] + ".references.jsonl")
    if not beside.exists() or beside == file.path:
        return {}
    return {
        str(record["doc_id"]): [str(text) for text in record["references"]]
        for _, record in _json_lines(beside)
        if "doc_id" in record and isinstance(record.get("references"), list)
    }


def _column(
    column: str,
    base: _File,
    rows: Sequence[Row],
    records: Sequence[Mapping[str, Any]],
    files: Sequence[_File],
    tables: Sequence[_Table],
    place: Mapping[str, int],
    joined: Judged,
) -> Vector | None:
    cells = [_inside(record, column) for record in records]
    if any(cell is not None for cell in cells):
        return np.array([_number(base, row, column, cell) for row, cell in zip(rows, cells, strict=True)])
    for name, table in tables:
        if any(column in values for values in table.values()):
            values = np.full(len(rows), np.nan)
            for identity, i in place.items():
                found = read_cell(name, i + 1, column, table.get(identity, {}).get(column))
                values[i] = found[0] if found else np.nan
            _one_sided(joined, name, table, place, base.origin)
            return values
    for file in files:
        if file is not base and any(_inside(record, column) is not None for record in file.records):
            where = _joined_rows(joined, file, rows, place)
            values = np.full(len(rows), np.nan)
            for i, j in where:
                values[i] = _number(file, file.rows[j], column, _inside(file.records[j], column))
            return values
    return None


def _one_sided(joined: Judged, name: str, other: Iterable[str], place: Mapping[str, int], origin: str) -> None:
    """Say which ids stand on one side only. Raises LabelsError if none stands on both."""
    ids = set(other)
    missing = [i for i in place if i not in ids]
    if len(missing) == len(place):
        raise LabelsError(
            f"no id of {origin} is in {name} ({next(iter(place))!r} here, {next(iter(ids), 'none')!r} there); the "
            "files are joined by id"
        )
    extra = len(ids) - (len(place) - len(missing))
    note = []
    if missing:
        first = f"first: {missing[0]!r}"
        note.append(f"{len(missing)} of {len(place)} rows of {origin} are not in {name} ({first}) and count as failed")
    if extra:
        note.append(f"{extra} rows of {name} are not in {origin} and are left out")
    if note and "; ".join(note) not in joined.notes:
        joined.notes.append("; ".join(note))


def _joined_rows(joined: Judged, file: _File, rows: Sequence[Row], place: Mapping[str, int]) -> list[tuple[int, int]]:
    """(row here, row there) of equal ids. Raises LabelsError where they hold different outputs."""
    there = _places(file.origin, file.rows)
    _one_sided(joined, file.origin, there, place, joined.origin)
    pairs = [(place[identity], j) for identity, j in there.items() if identity in place]
    for i, j in pairs:
        if rows[i].output != file.rows[j].output:
            raise LabelsError(
                f"id {rows[i].id!r} is another output in {file.origin} (row {file.rows[j].line}) than in "
                f"{joined.origin} (row {rows[i].line}); give the rows ids of their own, or join files of the same rows"
            )
    return pairs


def _verdicts(
    joined: Judged,
    file: _File,
    rows: Sequence[Row],
    place: Mapping[str, int],
    specs: Sequence[Spec],
    *,
    several: bool,
) -> None:
    """The verdicts of `judgesmith score`: {"verdict": {"score", …}} of JSON lines, judge_score of CSV."""
    nested = any(isinstance(record.get("verdict"), Mapping) for record in file.records)
    if not nested and "judge_score" not in file.names():
        if several and not specs:
            raise LabelsError(f"{file.origin}: no row has a verdict; name the judge's column with --judge")
        return
    if any(spec.column in ("verdict.score", "judge_score") for spec in specs) and not several:
        return
    where = [(i, i) for i in range(len(rows))]
    if rows is not file.rows and (len(rows) != len(file.rows) or rows[0] is not file.rows[0]):
        same = joined.origin == file.origin
        where = (
            [(place[row.id], j) for j, row in enumerate(file.rows) if row.id in place]
            if same
            else _joined_rows(joined, file, rows, place)
        )
    name = _free(file.origin.split(".")[0] or "judge", joined.judges)
    score, raw = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    explanations = [""] * len(rows)
    for i, j in where:
        record, row = file.records[j], file.rows[j]
        if nested:
            verdict = record.get("verdict")
            verdict = verdict if isinstance(verdict, Mapping) else {}
            score[i] = _number(file, row, "verdict.score", verdict.get("score"))
            raw[i] = _number(file, row, "verdict.percent", verdict.get("percent"))
            explanations[i] = str(verdict.get("explanation") or verdict.get("failure") or "")
        else:
            score[i] = _number(file, row, "judge_score", record.get("judge_score"))
            explanations[i] = str(record.get("judge_explanation") or record.get("judge_failure") or "")
        seen = record.get("seen", record.get("judge_seen"))
        joined.seen += seen is True or str(seen).lower() == "true"
    joined.judges[name] = dict.fromkeys(joined.human, score)
    joined.explanations[name] = explanations
    if not np.isnan(raw).all() and len(set(joined.scales.values())) == 1:
        low, high = next(iter(joined.scales.values()))
        before = low + (high - low) * raw / 100.0
        if not np.allclose(before, score, atol=1e-6, equal_nan=True):  # a judge without calibration has no other stage
            joined.uncalibrated[name] = dict.fromkeys(joined.human, before)
    if joined.seen:
        joined.notes.append(
            f"{joined.seen} of the rows were used to compile the judge; agreement on them says little. Leave them out"
        )


def _free(name: str, taken: Iterable[str]) -> str:
    names = set(taken)
    return next(n for n in (name, *(f"{name} ({k})" for k in range(2, 1000))) if n not in names)
