"""`judgesmith check --certificate FILE`: one page on what a judge may be used for, and for which rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.meta.evaluation import MetaEvaluation, rows_of
from judgesmith.agreement.sequential import ALPHA
from judgesmith.errors import OptionError
from judgesmith.evaluating.answer import Answer
from judgesmith.evaluating.decided import Decided
from judgesmith.evaluating.gate import Gated
from judgesmith.evaluating.pivot import headline_place
from judgesmith.evaluating.reading import Reading
from judgesmith.evaluating.sources import Judged
from judgesmith.pages import Section, render
from judgesmith.running.plain import finite
from judgesmith.tables import Cell, Column, Table, counted
from judgesmith.wording import word_count

if TYPE_CHECKING:
    from judgesmith.evaluating.live import LiveRun

FORMAT = "judgesmith.certificate/1"
KINDS = (".html", ".htm", ".json")
#: Ids that the page names.
NAMED = 20


@dataclass(frozen=True)
class Certificate:
    """What is certified of a judge, ready to be written."""

    answers: Sequence[Answer]
    judge: Mapping[str, Any]
    """Name, model and fingerprint."""
    people: Mapping[str, Any]
    """Who labelled: labels, documents, raters, ceiling, and how rows were drawn."""
    figures: Sequence[Mapping[str, Any]]
    """Numbers with their intervals."""
    rule: Mapping[str, Any]
    """The rule, whether it was passed, and how often it passes a judge that is at the bar."""
    rows: Mapping[str, Any]
    """The rows that it speaks of, and those of the file that lie outside."""
    protocol: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        told: dict[str, Any] = finite(
            {
                "format": FORMAT,
                "answers": [answer.to_dict() for answer in self.answers],
                "judge": dict(self.judge),
                "people": dict(self.people),
                "figures": [dict(one) for one in self.figures],
                "rule": dict(self.rule),
                "rows": dict(self.rows),
                "protocol": dict(self.protocol),
            }
        )
        return told

    def text(self, path: Path) -> str:
        """Return the file: JSON, or a page."""
        if path.suffix.lower() == ".json":
            return json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n"
        return self._page()

    def _page(self) -> str:
        table = Table(
            ["judge", "figure", Column("value", ".2f"), Column("labels", "d")]
        )
        for one in self.figures:
            cell = Cell(one["value"], one["low"], one["high"])
            table.add(one["judge"], one["figure"], cell, one["labels"])
        sections = [
            Section("The rows that it speaks of", list(self._outside())),
            Section("Figures", [table]),
            Section("The judge", [_facts(self.judge)]),
            Section("Who labelled", [_facts(self.people)]),
            Section("The rule and its error", [_facts(self.rule)]),
            Section("Protocol", [_facts(self.protocol)]),
        ]
        return render(
            f"Certificate: {self.judge['name']}",
            sections,
            lead=" ".join(map(str, self.answers)),
            about=[f"{self.protocol['date']} · judgesmith {self.protocol['version']}"],
        )

    def _outside(self) -> Iterator[str]:
        """Yield the rows that it speaks of, and those that it does not."""
        yield f"Rows like the labelled ones: {self.rows['like']}."
        outside = self.rows["outside"]
        if outside:
            ids = ", ".join(outside[:NAMED])
            more = " and others" if len(outside) > NAMED else ""
            yield f"Outside are {counted(len(outside), 'row')} of this file: {ids}{more}. It says nothing of them."


def check_certificate(path: Path | None) -> None:
    """Refuse a file of another kind, before any cost.

    Raises:
        OptionError: For such a file.
    """
    if path is not None and path.suffix.lower() not in KINDS:
        raise OptionError(f"--certificate {path}: name it .html or .json")


def certificate(
    data: Judged,
    result: MetaEvaluation,
    decided: Sequence[Decided],
    answers: Sequence[Answer],
    reading: Reading,
    gated: Gated,
    live: Sequence[LiveRun],
    power: Sequence[str],
    *,
    bar: float,
    drawn: bool,
    error: str,
) -> Certificate:
    """Return the certificate of the first judge.

    power: how often better judges pass the gates. drawn: the rows' probabilities to be labelled are known. error: how
    often the rule passes a judge that it should not.
    """
    name = next(iter(data.judges))
    own = [answer for answer in answers if answer.judge in (name, "")]
    return Certificate(
        own,
        _judge(data, name, live),
        _people(data, result, reading, drawn=drawn),
        list(_figures(name, result, decided)),
        _rule(gated, bar, power, error),
        _rows(data),
        _protocol(data, result),
    )


def _judge(data: Judged, name: str, live: Sequence[LiveRun]) -> dict[str, Any]:
    """Return a judge's name, model and fingerprint; of a column the hash of its verdicts by row."""
    for run in live:
        if run.judge == name:
            from judgesmith.programs import artifact, loading

            judge = loading.build(artifact.read(run.artifact))
            mark = artifact.fingerprint(judge)
            return {"name": name, "model": run.model, "fingerprint": mark}
    marks = {str(row.columns.get("judge") or "") for row in data.rows}
    if len(marks) == 1 and (mark := next(iter(marks))):
        return {"name": name, "model": "", "fingerprint": mark}
    verdicts = {
        aspect: {
            row.id: _plain(score) for row, score in zip(data.rows, scores, strict=True)
        }
        for aspect, scores in data.judges[name].items()
    }
    digest = hashlib.sha256(json.dumps(verdicts, sort_keys=True).encode()).hexdigest()
    return {"name": name, "model": "", "verdicts_sha256": digest}


def _plain(score: float) -> float | None:
    return None if np.isnan(score) else float(score)


def _people(
    data: Judged, result: MetaEvaluation, reading: Reading, *, drawn: bool
) -> dict[str, Any]:
    labelled = _labelled(data)
    documents = {data.documents[i] for i in np.flatnonzero(labelled).tolist()}
    raters = {name for row in data.rows for own in row.raters.values() for name in own}
    several = max((table.shape[1] for table in data.ratings.values()), default=1)
    told: dict[str, Any] = {
        "labels": int(labelled.sum()),
        "documents": len(documents),
        "ratings from": ", ".join(
            name for own in reading.ratings.values() for name in own
        ),
        "raters": ", ".join(sorted(map(str, raters))) or f"{several} a row",
    }
    for row in rows_of(result.ceiling):
        key = f"ceiling, {row['aspect']} {row['level']} {row['coefficient']}"
        told[key] = [row["value"], row["low"], row["high"]]
    told["left out"] = {reason: len(ids) for reason, ids in reading.left_out.items()}
    told["drawn"] = "as one column says" if drawn else "not known to be at random"
    return told


def _labelled(data: Judged) -> Any:
    labelled = np.zeros(len(data.rows), dtype=bool)
    for ratings in data.human.values():
        labelled |= ~np.isnan(ratings)
    return labelled


def _figures(
    name: str, result: MetaEvaluation, decided: Sequence[Decided]
) -> Iterator[dict[str, Any]]:
    """Yield the numbers of a judge that decisions, or scores, are told by."""
    for one in decided:
        if one.name == name:
            labels = int(np.sum(np.array(one.counts())[:, :-1]))
            for key, title in one.titles.items():
                figure = one.figures[key]
                ends = {"value": figure.value, "low": figure.low, "high": figure.high}
                about = {"judge": name, "figure": f"{one.aspect}: {title}"}
                yield about | ends | {"labels": labels}
    if any(one.name == name for one in decided):
        return
    rows = rows_of(result.agreement)
    level, coefficient = headline_place(result, rows)
    for row in rows:
        at = (row["judge"], row["level"], row["coefficient"])
        if at == (name, level, coefficient):
            ends = {key: row[key] for key in ("value", "low", "high")}
            title = f"{row['aspect']}: {level} {coefficient}"
            yield {"judge": name, "figure": title} | ends | {"labels": row["n"]}


def error_of_rule(confidence: float, *, anytime: bool, again: bool) -> str:
    """Return how often a rule passes a judge that it should not, in words.

    Args:
        confidence: That of the intervals, whose lower end has to be at the bar.
        anytime: The gates were looked at after every label.
        again: Gates that were passed before were tested against that run alone.
    """
    if anytime:
        return f"at most {100 * ALPHA:g}% for a judge at the bar, looked at after every label"
    once = f"at most {50 * (1 - confidence):g}% for a judge at the bar, looked at once on fresh labels"
    if again:
        return f"{once}; since then tested only for agreeing less than in that run"
    return once


def _rule(gated: Gated, bar: float, power: Sequence[str], error: str) -> dict[str, Any]:
    told = gated.to_dict()
    if told is None:
        told = {
            "gate": f"both ends above {bar:g} (--bar)",
            "passed": None,
            "reasons": [],
        }
    return {
        "rule": told["gate"],
        "passed": told["passed"],
        "reasons": told["reasons"],
        "false passes": error,
        "power": list(power),
    }


def _rows(data: Judged) -> dict[str, Any]:
    """Return what the labelled rows are like, and the rows of the file that lie outside of that."""
    labelled = _labelled(data)
    outputs = data.lengths
    sources = np.array([word_count(row.source) for row in data.rows], dtype=np.float64)
    outside = _beyond(outputs, labelled) | _beyond(sources, labelled)
    like = [
        f"outputs of {outputs[labelled].min():.0f} to {outputs[labelled].max():.0f} words",
        f"sources of {sources[labelled].min():.0f} to {sources[labelled].max():.0f} words",
    ]
    if data.systems is not None:
        systems = np.array(data.systems, dtype=object)
        known = dict.fromkeys(systems[labelled].tolist())
        outside |= np.array([name not in known for name in systems])
        like.append(f"systems {', '.join(map(str, known))}")
    ids = [data.rows[i].id for i in np.flatnonzero(outside).tolist()]
    return {"like": "; ".join(like), "outside": ids}


def _beyond(values: Vector, labelled: Any) -> Any:
    own = values[labelled]
    return (values < own.min()) | (values > own.max())


def _protocol(data: Judged, result: MetaEvaluation) -> dict[str, Any]:
    from judgesmith import __version__

    settings = result.settings
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "version": __version__,
        "file": data.origin,
        "intervals": f"{settings['confidence']:.0%}, {settings['rounds']} bootstrap resamples of documents",
        "seed": settings["seed"],
        "notes": list(dict.fromkeys([*data.notes, *result.notes])),
    }


def _facts(told: Mapping[str, Any]) -> Table:
    """Return facts as a table of two columns."""
    table = Table(["name", "value"], header=False)
    for name, value in told.items():
        if value != "":
            table.add(name, _in_words(value))
    return table


def _in_words(value: Any) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case dict():
            return "; ".join(f"{name}: {one}" for name, one in value.items()) or "none"
        case [float(), float(), float()]:
            return "{:.2f} [{:.2f}, {:.2f}]".format(*value)
        case list():
            return "; ".join(map(str, value)) or "none"
        case _:
            return str(value)
