"""Analyse a study's held-out predictions: agreement over its seeds, with intervals and differences between arms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.differences import Difference, difference_of
from judgesmith.agreement.resampling import Agreement, Measure, Statistic, drawn_again
from judgesmith.agreement.significance import holm
from judgesmith.experiments.studies.config import Size, StudyConfig
from judgesmith.experiments.studies.run import Cell, Journal
from judgesmith.signatures.values import json_number
from judgesmith.tables import Cell as TableCell
from judgesmith.tables import Column, Table, facts

ROUNDS = 2000
NOTE = (
    "Q = Pearson + Spearman + Kendall tau-b on held-out rows, the mean over the seeds. Intervals (95 %) and p come "
    "from a paired bootstrap of documents, each resample of one seed in turn: they speak of one judge from one draw of "
    "labels, as far as so few seeds show how draws differ. p is corrected by Holm over the arms of a table; the best "
    "arm was chosen on these very rows, which flatters its lead."
)
#: What fewer candidates than this did on training rows is not worth a note.
FEWEST_LEADS = 5


@dataclass(frozen=True, slots=True)
class Gap:
    """Q less that of another line, over the seeds that both have. p is not corrected, p_holm is."""

    other: str
    difference: Difference
    seeds: int
    p_holm: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as JSON values; NaN becomes null."""
        d = self.difference
        return {
            "other": self.other,
            "value": json_number(d.value),
            "low": json_number(d.low),
            "high": json_number(d.high),
            "p": json_number(d.p),
            "p_holm": json_number(self.p_holm),
            "seeds": self.seeds,
            "reason": d.reason,
        }


@dataclass(slots=True)
class Line:
    """An arm with a model and a number of labels, over its seeds. records: by seed, of the cells that are done.

    wanted: how many seeds there are to be. failures: why cells have no record. q, low, high and the coefficients are
    means over seeds, NaN without any; calls, tokens and seconds are means of fitting one cell.
    """

    name: str
    model: str
    arm: str
    train: Size
    records: dict[int, dict[str, Any]]
    wanted: int
    low: float = math.nan
    high: float = math.nan
    baseline: Gap | None = None
    best: Gap | None = None
    failures: list[str] = field(default_factory=list)

    def mean(self, *names: str) -> float:
        """Return the mean over seeds of a number of the records, or of the sum of several; NaN if there is none."""
        result = [
            sum(_number(r.get(name)) for name in names) for r in self.records.values()
        ]
        return float(np.mean(result)) if result else math.nan

    def spread(self, name: str) -> float:
        """Return the standard deviation (n − 1) over seeds of a number of the records; NaN for fewer than two seeds."""
        result = [_number(r.get(name)) for r in self.records.values()]
        return float(np.std(result, ddof=1)) if len(result) > 1 else math.nan

    @property
    def q(self) -> float:
        """Return the mean Q over seeds."""
        return self.mean("q")

    @property
    def whole(self) -> bool:
        """Return True if every seed is done."""
        return len(self.records) == self.wanted

    @property
    def failed(self) -> int:
        """Return the number of failed rows over all seeds."""
        return sum(r["failed"] for r in self.records.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the line as JSON values; NaN becomes null."""
        means = {name: json_number(self.mean(name)) for name in MEANS}
        return {
            "name": self.name,
            "model": self.model,
            "arm": self.arm,
            "train": self.train,
            "q": means.pop("q"),
            "low": json_number(self.low),
            "high": json_number(self.high),
            **means,
            "tokens": json_number(self.mean("prompt_tokens", "completion_tokens")),
            "spread": {name: json_number(self.spread(name)) for name in MEANS[:4]},
            "failed": self.failed,
            "seeds": len(self.records),
            "of": self.wanted,
            "failures": self.failures,
            "by_seed": {str(seed): r["q"] for seed, r in self.records.items()},
            "selected": {str(seed): r["selected"] for seed, r in self.records.items()},
            "minus_baseline": None
            if self.baseline is None
            else self.baseline.to_dict(),
            "minus_best": None if self.best is None else self.best.to_dict(),
        }


MEANS = (
    "q",
    "pearson",
    "spearman",
    "kendall",
    "labels",
    "heldout",
    "calls",
    "sent",
    "seconds",
    "heldout_calls",
    "demos",
)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


@dataclass(slots=True, repr=False)
class Analysis:
    """The lines in the study's order, and what a reader should know. failures: cell and reason."""

    config: StudyConfig
    lines: list[Line]
    failures: list[tuple[Cell, str]]
    missing: int = 0
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        done = sum(len(line.records) for line in self.lines)
        return (
            f"Analysis({self.config.study} study, {len(self.lines)} lines, "
            f"{done} cells done, {self.missing} missing)"
        )

    def _repr_html_(self) -> str:
        """For notebooks: Q of every line with its interval, and what it is ahead of the baseline."""
        table = Table(
            (
                "line",
                "labels",
                Column("Q", ".2f"),
                Column(f"less {self.config.baseline}", "+.2f"),
                Column("p (Holm)", "p"),
                Column("calls", ",.0f"),
            ),
            f"Study of {self.config.study}",
        )
        for line in self.lines:
            ahead = line.baseline
            lead = (ahead and ahead.difference.value, ahead and ahead.p_holm)
            table.add(
                line.name,
                str(line.train),
                TableCell(line.q, line.low, line.high),
                *lead,
                line.mean("calls"),
            )
        return table.notebook() + facts(("note", note) for note in self.notes)

    def sizes(self) -> list[Size]:
        """Return the numbers of labels, in the study's order."""
        return list(self.config.train)

    def of(self, size: Size) -> list[Line]:
        """Return the lines with this number of labels."""
        return [line for line in self.lines if line.train == size]

    def names(self) -> list[str]:
        """Return the names of the lines, each once."""
        return list(dict.fromkeys(line.name for line in self.lines))


def analyse(
    config: StudyConfig, journal: Journal, cells: Sequence[Cell], rounds: int = ROUNDS
) -> Analysis:
    """Agreement and differences from the predictions in the journal; no model is called."""
    lines: dict[tuple[str, str, Size], Line] = {}
    for cell in cells:
        key = (cell.model, cell.arm, cell.train)
        both = cell.arm if len(config.lm) < 2 else f"{cell.arm}, {cell.model}"
        name = cell.model if len(config.lm) > 1 and len(config.arms) == 1 else both
        line = lines.setdefault(key, Line(name, *key, {}, len(config.seeds)))
        if journal.done(cell):
            line.records[cell.seed] = journal.results[cell]
        elif cell in journal.results:
            line.failures.append(str(journal.results[cell]["reason"]))
    for size in config.train:
        _compare(
            [line for line in lines.values() if line.train == size],
            config,
            journal,
            rounds,
        )
    failures = [
        (c, str(journal.results[c]["reason"]))
        for c in cells
        if c in journal.results and not journal.done(c)
    ]
    analysis = Analysis(
        config,
        list(lines.values()),
        failures,
        sum(c not in journal.results for c in cells),
    )
    analysis.notes = [NOTE, *_notes(analysis)]
    return analysis


def _compare(
    lines: Sequence[Line], config: StudyConfig, journal: Journal, rounds: int
) -> None:
    """Intervals, and differences to the baseline and to the best, of lines with the same number of labels."""
    cells = [
        Cell(line.model, line.arm, line.train, seed)
        for line in lines
        for seed in line.records
    ]
    drawn, units = resample(
        {cell: journal.predictions[cell] for cell in cells}, config, rounds
    )
    own = {
        (line.model, line.arm): {
            seed: drawn[Cell(line.model, line.arm, line.train, seed)]
            for seed in line.records
        }
        for line in lines
    }
    for line in lines:
        if len(line.records) == 1:  # as its own record has it
            (record,) = line.records.values()
            line.low = _number(record["low"])
            line.high = _number(record["high"])
        elif line.records and units > 1:
            interval = difference_of(
                line.q,
                _of_one(list(own[line.model, line.arm].values())),
                units,
                0,
                0.95,
                3.0,
            )
            line.low = interval.low
            line.high = interval.high
    usable = [line for line in lines if line.records]
    best = max(
        [line for line in usable if line.whole] or usable,
        key=lambda line: line.q,
        default=None,
    )

    def gap(line: Line, other: Line) -> Gap | None:
        mine = own[line.model, line.arm]
        its = own[other.model, other.arm]
        shared = [seed for seed in mine if seed in its]
        if line is other or not shared:
            return None
        value = float(
            np.mean(
                [
                    _number(line.records[s]["q"]) - _number(other.records[s]["q"])
                    for s in shared
                ]
            )
        )
        if units < 2:
            nothing = Difference(
                value,
                math.nan,
                math.nan,
                math.nan,
                0,
                0,
                units,
                "one document cannot be resampled",
            )
            return Gap(other.name, nothing, len(shared))
        gaps = _of_one([mine[s] - its[s] for s in shared])
        return Gap(
            other.name, difference_of(value, gaps, units, 0, 0.95, 6.0), len(shared)
        )

    for line in usable:
        base = next(
            (o for o in usable if o.arm == config.baseline and o.model == line.model),
            None,
        )
        line.baseline = None if base is None else gap(line, base)
        line.best = None if best is None else gap(line, best)
    for name in ("baseline", "best"):
        present = [line for line in usable if getattr(line, name) is not None]
        adjusted = holm([getattr(line, name).difference.p for line in present])
        for line, p in zip(present, adjusted.tolist(), strict=True):
            old: Gap = getattr(line, name)
            setattr(line, name, Gap(old.other, old.difference, old.seeds, p))


def _of_one(drawn: Sequence[Vector]) -> Vector:
    """Resamples of one judge: each is of one seed in turn, so that the spread over draws of labels is among theirs."""
    rounds = np.arange(len(drawn[0]))
    return np.stack(drawn)[rounds % len(drawn), rounds]


def resample(
    predictions: Mapping[Cell, Sequence[Mapping[str, Any]]],
    config: StudyConfig,
    rounds: int,
    seed: int = 0,
) -> tuple[dict[Cell, Vector], int]:
    """Q of every cell on the same resamples of the documents, shape (rounds,) each, and how many documents there are.

    A resample draws from the documents of all cells together, as many as there are, and says how often each counts,
    wherever it is held out. Undefined correlations count 0, as in Q.
    """
    unit = "doc_id" if config.level == "sample" else "group"
    names = dict.fromkeys(row[unit] for rows in predictions.values() for row in rows)
    places = {name: place for place, name in enumerate(names)}
    if len(places) < 2:
        return {cell: np.zeros(0) for cell in predictions}, len(places)
    result = {}
    for cell, rows in predictions.items():
        ids = [row[unit] for row in rows]
        systems = [row["system"] for row in rows]
        people = [row["human"] for row in rows]
        measure = Measure(
            people,
            documents=ids,
            systems=systems if all(systems) else None,
            level=config.level,
        )
        (statistic,) = Agreement.of(
            [[_number(row["percent"]) for row in rows]], measure
        ).statistics
        own = [places[name] for name in dict.fromkeys(ids)]

        def of_cell(
            counts: Vector, statistic: Statistic = statistic, own: list[int] = own
        ) -> Vector:
            return statistic(counts[:, own])

        result[cell] = np.nansum(
            drawn_again(of_cell, len(places), rounds, seed, cells=len(rows)), axis=1
        )
    return result, len(places)


def _notes(analysis: Analysis) -> list[str]:
    notes = []
    records = [
        (line, seed, record)
        for line in analysis.lines
        for seed, record in line.records.items()
    ]
    calls, sent = (sum(r[name] for _, _, r in records) for name in ("calls", "sent"))
    if calls and sent < 0.98 * calls:
        notes.append(
            f"{1 - sent / calls:.0%} of the calls of fitting were answered from the disk, where other arms and earlier "
            "runs had left them: calls and tokens count them all the same, as a budget does, but seconds say little "
            "(--no-cache measures them)"
        )
    for line, seed, record in records:
        lines = [f"{record['reason']}; that counts 0"] if record.get("reason") else []
        lines += [record[name] for name in ("choice", "stopped") if record.get(name)]
        lines += record.get("tried", ())
        notes += [
            f"{line.name}, {line.train} labels, seed {seed}: {one}" for one in lines
        ]
    for line in analysis.lines:
        dropped = sum(
            _left_out(record, line, analysis.config) for record in line.records.values()
        )
        if dropped:
            notes.append(
                f"{line.name}, {line.train} labels: in {dropped} of {len(line.records)} seeds compiling left the "
                "inferred task and criteria out of the prompt, since the training rows were judged better without"
            )
        leads = training_leads(line.records.values())
        if len(leads) >= FEWEST_LEADS:
            notes.append(
                f"{line.name}, {line.train} labels: on the training rows the Q of its {len(leads)} candidates less "
                f"those of the model alone is {np.mean(leads):+.2f} on average ({min(leads):+.2f} to {max(leads):+.2f})"
            )
    if analysis.missing:
        notes.append(f"{analysis.missing} cells are not run yet")
    return notes


def training_leads(records: Iterable[Mapping[str, Any]]) -> list[float]:
    """Return each candidate's lead over zero-shot on the training rows of its search.

    Races are left out: candidates that a race did not drop are the better ones.
    """
    leads = []
    for record in records:
        tried = record.get("candidates", ())
        if not any(one["dropped"] for one in tried):
            leads += [
                one["q"] - tried[0]["q"]
                for one in tried[1:]
                if None not in (one["q"], tried[0]["q"])
            ]
    return leads


def _left_out(record: Mapping[str, Any], line: Line, config: StudyConfig) -> bool:
    form = record.get("form") or {}
    settings = {**config.settings, **config.arm(line.arm).settings}
    return (
        form.get("variant") == "coarse"
        and not form.get("use_task", True)
        and "task" not in settings.get("without", ())
    )
