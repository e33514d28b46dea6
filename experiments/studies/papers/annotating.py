"""Tables of papers that ask an ensemble once and look at what each annotator said: OpeNLGauge's subsets and spans."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith import presets
from judgesmith.agreement.correlation import correlate
from judgesmith.datasets.loading import read_labels
from judgesmith.datasets.records import Labels
from judgesmith.errors import OptionError
from judgesmith.evaluating.spans import evaluate_spans
from judgesmith.experiments.studies.papers.table import (
    Joined,
    PaperRow,
    PaperTable,
    published_row,
    slug,
)
from judgesmith.programs.atomic import write_whole
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection
from judgesmith.programs.openlgauge.judge import OpeNLGauge
from judgesmith.running.console import Watch
from judgesmith.running.opening import open_model, open_others, rows_file
from judgesmith.scoring.scoring import Run, score_file
from judgesmith.signatures.values import Scale

_MOST = 8  # annotators: 255 subsets


@dataclass(frozen=True, slots=True)
class AnnotationRequest:
    """The request to annotate: models, rows and options.

    lm: "" for the preset's. annotators: none has `lm` annotate alone, unless that is the preset's, too. rows: how many,
    from the first on; None for all. options: further ones of the judge.
    """

    lm: str = ""
    annotators: tuple[str, ...] = ()
    rows: int | None = None
    max_calls: int | None = None
    options: Mapping[str, Any] | None = None

    def judge(
        self, table: PaperTable, column: str, scale: tuple[float, float]
    ) -> Judge:
        """Return the judge of a column.

        Raises:
            OptionError: For options that the judge does not take.
        """
        chosen = presets.read(table.preset)
        if self.lm or self.annotators:
            chosen["annotators"] = list(self.annotators) or [self.lm]
        if table.kind == "subsets":
            chosen["supervisor"] = "none"  # it touches no score
        chosen |= dict(self.options or {})
        result = {
            name: value
            for name, value in chosen.items()
            if name not in ("method", "lm")
        }
        if table.kind == "subsets" and len(result["annotators"]) > _MOST:
            raise OptionError(
                f"--annotator: subsets of {_MOST} annotators at most; got {len(result['annotators'])}"
            )
        method = OpeNLGauge(table.columns[column].settings["library_aspect"], **result)
        return Judge(method, scale=Scale(*scale))

    def model(self, table: PaperTable) -> str:
        """Whose model supervises."""
        return self.lm or str(presets.read(table.preset)["lm"])

    def labels(self, table: PaperTable, column: str) -> Labels:
        """Return the rows of a column."""
        chosen = table.columns[column]
        return read_labels(
            rows_file(chosen.labels), aspect=chosen.settings["aspect"], limit=self.rows
        )


def annotate(
    table: PaperTable,
    column: str,
    request: AnnotationRequest,
    folder: Path,
    where: Connection,
) -> tuple[Labels, Path]:
    """Judge a column's rows into `scored.jsonl` of the folder; an existing file is continued.

    Raises:
        BudgetError: When the calls are used up; rows judged until then stay.
    """
    labels = request.labels(table, column)
    judge = request.judge(table, column, labels.scale)
    open_others(judge, where)
    judge.set_lm(open_model(request.model(table), where))
    if request.max_calls is not None:
        judge.lm.meter.max_calls = judge.lm.meter.logical + request.max_calls
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "id": r.id,
            "source": r.source,
            "context": r.context,
            "output": r.output,
            "doc_id": r.doc_id,
            "group": r.group,
        }
        for r in labels.rows
    ]
    write_whole(
        folder / "rows.jsonl",
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
    )
    with Watch(f"annotating {column}", len(labels)) as watch:
        score_file(
            Run(judge, folder / "scored.jsonl", watch=watch), folder / "rows.jsonl"
        )
    return labels, folder / "scored.jsonl"


def joined(
    name: str,
    table: PaperTable,
    columns: Sequence[str],
    request: AnnotationRequest,
    folder: Path,
    where: Connection,
) -> Joined:
    """Annotate every column, and put the results beside the published rows."""
    result: dict[str, dict[str, tuple[float, ...]]] = {}
    differs: dict[str, list[str]] = {}
    for column in columns:
        labels, scored = annotate(table, column, request, folder / slug(column), where)
        if table.kind == "subsets":
            numbers = _subsets(labels, scored, table)
        else:
            spans = evaluate_spans(
                scored, table.columns[column].labels, rounds=0
            ).agreement
            shares = (
                spans.touching,
                spans.micro.precision,
                spans.micro.recall,
                spans.micro.f1,
            )
            numbers = {"ensemble": tuple(share.value for share in shares)}
        for row, values in numbers.items():
            result.setdefault(row, {})[column] = values
            differs.setdefault(row, []).append(f"{column}: {len(labels)} rows")
    empty = (math.nan,) * len(table.coefficients)
    model = request.model(table) if table.kind == "spans" else ""
    rows: list[PaperRow] = []
    for one, published in table.rows.items():
        rows.append(published_row(one, table, published, columns))
    for row, found in result.items():
        if table.differs.get(row):
            differs[row].append(table.differs[row])
        ours = {column: found.get(column, empty) for column in columns}
        rows.append(PaperRow(row, True, model, ours, "; ".join(differs[row])))
    for other, published in table.beside.items():
        rows.append(published_row(other, table, published, columns))
    return Joined(name, table, tuple(columns), tuple(rows), table.notes)


def _subsets(
    labels: Labels, scored: Path, table: PaperTable
) -> dict[str, tuple[float, ...]]:
    """Return the mean correlation of every subset of annotators with human ratings.

    Keys are the annotators' names; for each size there is the mean over its subsets.
    """
    lines = map(json.loads, scored.read_text(encoding="utf-8").splitlines())
    opinions = [line["verdict"].get("opinions") or {} for line in lines]
    names = list(dict.fromkeys(itertools.chain(*opinions)))
    percents = []
    for one in opinions:
        percents.append([(one.get(name) or {}).get("percent") for name in names])
    matrix = np.array(percents, dtype=float)  # None becomes NaN
    where = [row.doc_id for row in labels.rows]
    result: dict[str, tuple[float, ...]] = {}
    for size in range(1, len(names) + 1):
        of_size = []
        for chosen in itertools.combinations(range(len(names)), size):
            part = matrix[:, list(chosen)]
            heard = np.isfinite(part).sum(axis=1)
            mean = np.where(
                heard > 0, np.nansum(part, axis=1) / np.maximum(heard, 1), np.nan
            )
            values = tuple(
                correlate(
                    mean,
                    labels.scores,
                    coefficient=c,
                    level=table.level,
                    documents=where,
                ).value
                for c in table.correlations
            )
            result[" + ".join(names[i] for i in chosen)] = values
            of_size.append(values)
        if len(of_size) > 1:
            result[f"mean of the {len(of_size)} subsets of {size}"] = tuple(
                np.mean(of_size, axis=0).tolist()
            )
    return result
