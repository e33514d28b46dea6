"""`judgesmith study paper`: a table of a paper, run on any model, with the published rows beside ours.

Each table is a YAML file in `published/`: what is compared (a preset), on which sets (a study for each column), the
published numbers, and what differs from the paper. Its first line says what it is.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from judgesmith import tables
from judgesmith.agreement.correlation import Level, correlate
from judgesmith.datasets.loading import iter_rows
from judgesmith.errors import LabelsError, OptionError
from judgesmith.experiments.studies.analysis import Analysis, Line
from judgesmith.experiments.studies.config import StudyRequest
from judgesmith.programs.aspects import aspects
from judgesmith.programs.atomic import write_whole
from judgesmith.running.opening import benchmark_scale, rows_file
from judgesmith.running.settings import Shelf, read_yaml
from judgesmith.signatures.values import json_number
from judgesmith.tables import Cell, Table, md, number

_SHELF = Shelf(
    Path(__file__).parent / "published",
    "study paper",
    "table",
    "`judgesmith study paper`",
)
names = _SHELF.names
about = _SHELF.about
SIGNS = {
    "pearson": "r",
    "spearman": "ρ",
    "kendall": "τ",
    "touching": "spans right",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
}
MEAN = "mean"  # the column with the mean of the others
Measured = Literal[
    "pearson", "spearman", "kendall", "touching", "precision", "recall", "f1"
]
Numbers = Mapping[str, list[float | None]]


class Column(BaseModel):
    """One set of data, or one aspect of it.

    labels: a benchmark set. preset, settings: of the study, beside the table's own. criteria: TASK/ASPECT of the
    library, which stand for the set's own criteria.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    labels: str
    preset: str = ""
    settings: Mapping[str, Any] = Field(default_factory=dict)
    criteria: tuple[str, ...] = ()
    differs: str = ""


class PaperTable(BaseModel):
    """A published table.

    model: the paper's. rows: its numbers by our arm and column, one a coefficient, None where the paper has none.
    beside: those of methods that are no arm here. spread: published standard deviations by arm. differs: by arm, the
    differences from the paper; notes: what holds for all. kind: `study` compiles and compares arms, `aspects` compares
    human ratings alone, `subsets` and `spans` ask an ensemble once (see `annotating`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    paper: str
    table: str
    model: str = ""
    kind: Literal["study", "aspects", "subsets", "spans"] = "study"
    preset: str = ""
    level: Level = "pooled"
    coefficients: tuple[Measured, ...] = Field(min_length=1)
    columns: Mapping[str, Column] = Field(min_length=1)
    aspects: tuple[str, ...] = ()
    rows: Mapping[str, Numbers] = Field(default_factory=dict)
    beside: Mapping[str, Numbers] = Field(default_factory=dict)
    spread: Mapping[str, float] = Field(default_factory=dict)
    differs: Mapping[str, str] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def correlations(self) -> tuple[str, ...]:
        """Return its coefficients, without those of spans."""
        return tuple(
            c for c in self.coefficients if c in ("pearson", "spearman", "kendall")
        )

    @model_validator(mode="after")
    def _fits(self) -> PaperTable:
        columns = {*self.columns, MEAN, *self.aspects}
        for name, numbers in [*self.rows.items(), *self.beside.items()]:
            if unknown := set(numbers) - columns:
                raise ValueError(
                    f"row {name!r} has columns that are not there: {', '.join(sorted(unknown))}"
                )
            if any(
                len(values) != len(self.coefficients) for values in numbers.values()
            ):
                raise ValueError(
                    f"row {name!r} needs {len(self.coefficients)} numbers a column"
                )
        return self


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A row of the joined table.

    ours: True if we measured it. values: by column, one a coefficient, NaN where there is none. differs: the
    differences from the paper.
    """

    name: str
    ours: bool
    model: str
    values: Mapping[str, tuple[float, ...]]
    differs: str = ""
    spread: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON values; NaN becomes null."""
        values: dict[str, list[float | None]] = {}
        for column, found in self.values.items():
            values[column] = [json_number(value) for value in found]
        return {
            "row": self.name,
            "ours": self.ours,
            "model": self.model,
            "values": values,
            "differs": self.differs,
            "spread": json_number(self.spread),
        }


@dataclass(frozen=True, slots=True)
class Joined:
    """A published table and ours in one."""

    name: str
    table: PaperTable
    columns: tuple[str, ...]
    rows: tuple[PaperRow, ...]
    notes: tuple[str, ...] = field(default=())


def read(name: str) -> PaperTable:
    """Return a table by its name.

    Raises:
        OptionError: For an unknown name.
    """
    try:
        return PaperTable.model_validate(read_yaml(_SHELF.file(name)))
    except ValidationError as error:
        raise OptionError(f"{name}: {error.errors()[0]['msg']}") from None


def slug(text: str) -> str:
    """Return a column's name as that of a folder."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def given_for(
    table: PaperTable, column: str, flags: Mapping[str, Any], folder: Path
) -> StudyRequest:
    """Return the study of one column.

    Args:
        table: The table.
        column: The column's name.
        flags: As for `StudyRequest.read`; they go before the table's settings.
        folder: The folder for a file of criteria, if the column has some.
    """
    chosen = table.columns[column]
    data: dict[str, Any] = {"labels": str(rows_file(chosen.labels)), **chosen.settings}
    if chosen.criteria:
        library = aspects()
        lines = [
            f"{a.name}: {a.definition}" for a in map(library.find, chosen.criteria)
        ]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "criteria.txt"
        write_whole(path, "\n".join(lines) + "\n")
        data["criteria"] = str(path)
    data |= {name: value for name, value in flags.items() if value is not None}
    request = StudyRequest.read(
        "ablation", None, data, [name for name in (chosen.preset, table.preset) if name]
    )
    if not request.has("scale"):
        aspect = request.flags.get("aspect") or request.file.get("aspect")
        scale = benchmark_scale(chosen.labels, aspect)
        request = StudyRequest(
            request.kind,
            request.file,
            {**request.flags, "scale": scale},
            request.origin,
        )
    return request


# Rows ----------------------------------------------------------------------------------------------------------------


def table_of(name: str, table: PaperTable, analyses: Mapping[str, Analysis]) -> Joined:
    """Join the published table with ours.

    Args:
        name: The table's name.
        table: The published table.
        analyses: Ours by column; columns that were not run are left out.
    """
    run = {name: analyses[name] for name in table.columns if name in analyses}
    places = list(run)
    whole = len(run) == len(table.columns)
    if whole and any(MEAN in row for row in table.rows.values()):
        places.append(MEAN)
    lines = itertools.chain(*(analysis.lines for analysis in run.values()))
    rows: list[PaperRow] = []
    for arm in dict.fromkeys([*table.rows, *(line.arm for line in lines)]):
        if arm in table.rows:
            rows.append(published_row(arm, table, table.rows[arm], places))
        rows += _ours(arm, table, run, places)
    for other, numbers in table.beside.items():
        rows.append(published_row(other, table, numbers, places))
    notes = list(table.notes)
    for name in run:
        if table.columns[name].differs:
            notes.append(f"{name}: {table.columns[name].differs}")
    if not whole:
        left = ", ".join(name for name in table.columns if name not in run)
        notes.append(f"columns not run: {left}")
    notes.append(
        "95 % intervals and every seed are in the tables of the columns' own folders."
    )
    return Joined(name, table, tuple(places), tuple(rows), tuple(notes))


def published_row(
    name: str, table: PaperTable, numbers: Numbers, columns: Sequence[str]
) -> PaperRow:
    """Return a published row of these columns."""
    empty = (math.nan,) * len(table.coefficients)
    values = {
        c: tuple(np.array(numbers[c], dtype=float).tolist()) if c in numbers else empty
        for c in columns
    }
    return PaperRow(
        name, False, table.model, values, spread=table.spread.get(name, math.nan)
    )


def _ours(
    arm: str,
    table: PaperTable,
    analyses: Mapping[str, Analysis],
    columns: Sequence[str],
) -> Iterator[PaperRow]:
    """Yield our rows of an arm, one for each model."""
    by_model: dict[str, dict[str, Line]] = {}
    for column, analysis in analyses.items():
        for line in analysis.lines:
            if line.arm == arm:
                by_model.setdefault(line.model, {})[column] = line
    for model, own in by_model.items():
        values = dict.fromkeys(columns, (math.nan,) * len(table.coefficients))
        for column, line in own.items():
            values[column] = tuple(map(line.mean, table.coefficients))
        if MEAN in columns:
            several = [values[column] for column in analyses]
            cells = zip(*several, strict=True)
            values[MEAN] = tuple(sum(one) / len(analyses) for one in cells)
        differs = "; ".join(_differences(arm, table, model, list(own.values())))
        yield PaperRow(arm, True, model, values, differs)


def _differences(
    arm: str, table: PaperTable, model: str, lines: Sequence[Line]
) -> Iterator[str]:
    """Yield how our row of an arm differs from the paper's: model, rows, seeds, failures, and the table's own words."""
    if table.model and model != table.model:
        yield f"{model} instead of {table.model}"
    measured = [line for line in lines if line.records]
    if measured:
        rows = sorted({round(line.mean("heldout")) for line in measured})
        seeds = sorted({len(line.records) for line in measured})
        noun = "seed" if seeds == [1] else "seeds"
        yield f"{_range(rows)} held-out rows, {_range(seeds)} {noun}"
    else:
        yield "not run, or failed"
    failed = sum(line.failed for line in measured)
    if failed:
        yield f"{failed} rows without a score"
    if table.differs.get(arm):
        yield table.differs[arm]


def _range(values: Sequence[int]) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]}–{values[-1]}"


def rows_of(name: str, table: PaperTable, columns: Sequence[str] = ()) -> Joined:
    """Compare human ratings' aspects with each other, which needs no model, in the published table's form.

    Args:
        name: The table's name.
        table: The published table.
        columns: Sets; none: all.
    """
    wanted = list(columns or table.columns)
    (column,) = wanted if len(wanted) == 1 else (None,)
    if column is None:
        raise OptionError(f"{name} has several sets; name one")
    file = rows_file(table.columns[column].labels)
    aspects = set(table.aspects)
    rows = [row for row, _ in iter_rows(file) if aspects <= row.scores.keys()]
    if len(rows) < 2:
        raise LabelsError(f"{file}: no rows with ratings of {', '.join(table.aspects)}")
    where = [row.doc_id for row in rows]
    ratings: dict[str, list[float]] = {}
    for aspect in table.aspects:
        ratings[aspect] = [float(row.scores[aspect]) for row in rows]
    paper_rows: list[PaperRow] = []
    for one in table.aspects:
        if one in table.rows:
            paper_rows.append(published_row(one, table, table.rows[one], table.aspects))
        values: dict[str, tuple[float, ...]] = {}
        for other in table.aspects:
            values[other] = tuple(
                correlate(
                    ratings[one],
                    ratings[other],
                    coefficient=c,
                    level=table.level,
                    documents=where,
                ).value
                for c in table.correlations
            )
        text = "; ".join(
            filter(None, (f"{len(rows)} rows", table.columns[column].differs))
        )
        paper_rows.append(PaperRow(one, True, "", values, text))
    return Joined(name, table, table.aspects, tuple(paper_rows), table.notes)


# Showing -------------------------------------------------------------------------------------------------------------


def shown(joined: Joined) -> Table:
    """Return the joined table for the screen."""
    table = joined.table
    values = (
        tables.Column(f"{column} {SIGNS[c]}", ".3f")
        for column in joined.columns
        for c in table.coefficients
    )
    result = Table(
        ["row", "whose", *values, "what differs from the paper"],
        f"{table.paper}, {table.table}",
    )
    for row in joined.rows:
        whose = (
            f"{'ours' if row.ours else 'paper'}{f', {row.model}' if row.model else ''}"
        )
        cells = [
            Cell(value) for column in joined.columns for value in row.values[column]
        ]
        if not math.isnan(row.spread):
            cells[-1] = replace(cells[-1], mark=f" ± {number(row.spread)}")
        result.add(row.name, whose, *cells, row.differs)
    return result


def markdown(joined: Joined) -> str:
    """Return the joined table with its source and notes."""
    table = shown(joined)
    return f"# {md(table.title)}\n\n{table.markdown()}\n{''.join(f'- {md(note)}{chr(10)}' for note in joined.notes)}"


def write(joined: Joined, folder: Path) -> list[Path]:
    """Write table.md and table.json; return their paths.

    Raises:
        OptionError: For a folder that cannot be written.
    """
    data = {
        "table": joined.name,
        "paper": joined.table.paper,
        "of": joined.table.table,
        "model": joined.table.model,
        "coefficients": list(joined.table.coefficients),
        "columns": list(joined.columns),
        "rows": [row.to_dict() for row in joined.rows],
        "notes": list(joined.notes),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "table.md", markdown(joined))
        write_whole(
            folder / "table.json",
            json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        )
    except OSError as error:
        raise OptionError(
            f"-o {folder} cannot be written: {error.strerror or error}"
        ) from None
    return [folder / "table.md", folder / "table.json"]
