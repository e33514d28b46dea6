"""`judgesmith check --spans`: agreement of a judge's error spans with human ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from judgesmith.agreement.resampling import Estimate
from judgesmith.agreement.spans import (
    SpanAgreement,
    human_span_agreement,
    span_agreement,
)
from judgesmith.datasets.benchmarks.catalog import benchmark, data_dir, resolve
from judgesmith.datasets.benchmarks.registry import PREFIX
from judgesmith.datasets.loading import iter_rows
from judgesmith.datasets.spans import Span, SpanSet, read_spans
from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.gate import OF_SPANS, Gate
from judgesmith.running.console import wide
from judgesmith.running.plain import clean
from judgesmith.signatures.values import ErrorSpan, How
from judgesmith.tables import Cell, Column, Table, counted, with_interval

#: Sets whose file of spans lists only the outputs in which something was marked, though all were read.
_LISTS_ERRORS_ONLY = frozenset({"mqm_ted_ende", "mqm_ted_zhen"})


@dataclass(frozen=True)
class SpanReport:
    """A judge's spans against people's. human: people's agreement with each other, None where no two read one text.

    rows: of the scored file. failed: of them without a verdict; they are in no number. unmarked: of them that no person
    read. unscored: outputs that people read and the scored file does not have.
    """

    scored: str
    gold: str
    agreement: SpanAgreement
    human: SpanAgreement | None
    rows: int
    failed: int
    unmarked: int
    unscored: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; NaN becomes null."""
        human = None if self.human is None else self.human.to_dict()
        spans = {
            "spans": self.agreement.to_dict(),
            "human_spans": human,
            "notes": list(self.notes),
        }
        names = ("scored", "gold", "rows", "failed", "unmarked", "unscored")
        return {name: getattr(self, name) for name in names} | spans

    def gated(self, gate: Gate, min_coverage: float) -> list[str]:
        """Return the reasons why the gate is not passed, by all characters (micro), none if it is.

        Raises:
            OptionError: If the gate is of a number that spans do not have.
        """
        of_part = gate.level is not None or gate.aspect is not None
        if gate.coefficient not in OF_SPANS or of_part:
            raise OptionError(
                f"--fail-under {gate.text!r}: of spans there are {', '.join(OF_SPANS)}, such as f1>=0.3"
            )
        estimate: Estimate = getattr(self.agreement.micro, gate.coefficient)
        counts = {"failed": self.failed, "rows": self.rows, "reason": None}
        row = {"aspect": "spans", "what": gate.coefficient} | asdict(estimate) | counts
        return gate.reasons(self.scored, [row], min_coverage)

    def show(self) -> None:
        """Print it as a table, with what the numbers rest on below."""
        agreement = self.agreement
        documents = counted(agreement.documents, "document")
        intervals = f"{agreement.confidence:.0%} intervals over {documents}, seed {agreement.seed}"
        table = Table(
            [
                "characters",
                *(Column(name, ".3f") for name in ("precision", "recall", "F1")),
            ],
            f"Error spans of {self.scored} against {self.gold} ({intervals if agreement.rounds else 'no intervals'})",
        )
        for who, several in (("", agreement), ("people: ", self.human)):
            table.section()
            if several is None:
                lines = {}
            else:
                lines = {
                    "all (micro)": several.micro,
                    "per text (macro)": several.macro,
                }
            if several is not None and not math.isnan(several.weighted.f1.value):
                lines["by severity (micro)"] = several.weighted
            for name, scores in lines.items():
                cells = (
                    Cell(one.value, one.low, one.high)
                    for one in (scores.precision, scores.recall, scores.f1)
                )
                table.add(who + name, *cells)
        out = wide()
        table.show(out)
        out.print(
            f"{counted(agreement.texts, 'text')}, {counted(agreement.predicted, 'predicted span')} of which"
            f" {_cell(agreement.touching)} touch a human one, {counted(agreement.gold, 'span')} of people of which"
            f" {_cell(agreement.found)} are touched",
            markup=False,
        )
        for note in self.notes:
            out.print(f"note: {clean(note)}", style="yellow", markup=False)


def evaluate_spans(
    scored: str | PathLike[str],
    gold: str | PathLike[str],
    *,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> SpanReport:
    """Compare the error spans of a scored file with people's, joined by id.

    scored: rows that `judgesmith score` wrote, with {"verdict": {"errors": [...]}}. gold: bench/NAME, or a file that
    `datasets.spans` reads. Outputs that it does not list are left out, but for the benchmarks that list only outputs
    with errors: there they were read, and nothing was found.

    Raises:
        LabelsError: If a file cannot be read or was marked on other texts.
        OptionError: If nothing can be compared.
    """
    scored = Path(scored)
    marked = _read_marked(scored)
    outputs = marked.outputs
    predicted = marked.predicted
    spans, name, listed = _gold(gold, outputs)
    all_people, read = _people(spans, listed)
    if not read & outputs.keys():
        raise OptionError(
            f"{scored.name} and {name} have no id in common ({_some(outputs)} and {_some(read)}); score the outputs"
            " that people marked, with their ids"
        )
    people = [_of_outputs(rater, outputs) for rater in all_people]
    lengths = {identity: len(text) for identity, text in outputs.items()}
    options: dict[str, Any] = {"rounds": rounds, "confidence": confidence, "seed": seed}
    if not any(predicted.keys() & rater.keys() for rater in people):
        raise OptionError(
            f"{scored.name}: the judge failed on every row that people marked; there is nothing to compare"
        )
    agreement = span_agreement(predicted, people, lengths, marked.documents, **options)
    human = human_span_agreement(people, lengths, marked.documents, **options)
    unmarked = len(outputs.keys() - read)
    unscored = len(read - outputs.keys())
    notes = _notes(marked, unmarked, unscored)
    return SpanReport(
        scored.name,
        name,
        agreement,
        human,
        len(outputs),
        marked.failed,
        unmarked,
        unscored,
        (*notes, *agreement.notes),
    )


def _of_outputs(
    rater: Mapping[str, tuple[Span, ...]], outputs: Mapping[str, str]
) -> dict[str, tuple[Span, ...]]:
    return {identity: spans for identity, spans in rater.items() if identity in outputs}


@dataclass
class _Marked:
    """The outputs of a scored file with the judge's error spans, and the rows that have none."""

    outputs: dict[str, str] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)
    predicted: dict[str, list[ErrorSpan]] = field(default_factory=dict)
    failed: int = 0
    seen: int = 0
    """Rows that the judge was compiled from."""
    misshapen: int = 0
    """Entries of verdicts' errors that are not objects."""


def _read_marked(scored: Path) -> _Marked:
    """Read the error spans of a scored file.

    Raises:
        LabelsError: If two rows have one id, or no row has a verdict.
    """
    marked = _Marked()
    verdicts = 0
    for row, record in iter_rows(scored):
        if row.id in marked.outputs:
            raise LabelsError(
                f"{scored.name}, row {row.line}: id {row.id!r} is that of an earlier row; give every row its own"
            )
        marked.outputs[row.id] = row.output
        marked.documents[row.id] = row.doc_id
        marked.seen += record.get("seen") is True
        verdict = record.get("verdict")
        errors = None
        if isinstance(verdict, Mapping):
            verdicts += 1
            errors = None if verdict.get("failure") else verdict.get("errors")
        if not isinstance(errors, list):
            marked.failed += 1
            continue
        marked.predicted[row.id], misshapen = _errors(errors)
        marked.misshapen += misshapen
    if not verdicts:
        raise LabelsError(
            f"{scored.name}: no row has a verdict with its errors; score the outputs with"
            " `judgesmith score -o FILE.jsonl`"
        )
    return marked


def _people(
    spans: SpanSet, listed: Mapping[str, str] | None
) -> tuple[list[dict[str, tuple[Span, ...]]], set[str]]:
    """Return the spans of each rater by output, and the outputs that were read.

    Args:
        spans: The human spans.
        listed: All outputs that people read, if the file lists only those with errors.
    """
    people = [dict(rater) for rater in spans.people.values()] or [{}]
    for identity in listed or ():
        if identity not in spans.ids and identity not in spans.unplaced:
            people[0][identity] = ()
    read = set(spans.unplaced).union(*people)
    return people, read


def _notes(marked: _Marked, unmarked: int, unscored: int) -> Iterator[str]:
    rows = len(marked.outputs)
    if marked.failed:
        yield f"{marked.failed} of {rows} rows have no verdict and are left out of every number"
    if unmarked:
        yield f"{unmarked} of {rows} rows were not marked by people and are left out"
    if unscored:
        yield f"{unscored} outputs that people marked were not scored"
    if marked.seen:
        yield (
            f"{marked.seen} of the rows were used to compile the judge; agreement on them says little. Leave them out"
        )
    if not any(marked.predicted.values()):
        yield "no verdict has an error: does this judge give error spans?"
    if marked.misshapen:
        yield f"{marked.misshapen} entries of verdicts' errors are not objects and were passed over"


def _gold(
    gold: str | PathLike[str], outputs: Mapping[str, str]
) -> tuple[SpanSet, str, Mapping[str, str] | None]:
    """People's spans, what to call them, and all outputs that they read where the file lists only those with errors."""
    if not str(gold).startswith(PREFIX):
        return read_spans(gold, outputs), Path(gold).name, None
    card = benchmark(str(gold))
    folder = data_dir()
    path = None if folder is None else folder / f"{card.key}.spans.jsonl"
    if path is None or not path.is_file():
        if "spans" not in card.extras:
            lacking = "the set has no spans"
        else:
            lacking = f"{card.key}.spans.jsonl is not here"
        raise LabelsError(
            f"{card.name}: {lacking}; set JUDGESMITH_DATA to a folder with it, or name a file of spans"
        )
    texts = {row.id: row.output for row, _ in iter_rows(resolve(card.name))}
    for identity, text in outputs.items():
        if texts.get(identity, text) != text:
            raise LabelsError(
                f"{card.name}: the output of {identity!r} is not the one that was judged; score the set's own outputs"
            )
    return (
        read_spans(path, texts),
        card.name,
        texts if card.key in _LISTS_ERRORS_ONLY else None,
    )


def _errors(errors: Sequence[Any]) -> tuple[list[ErrorSpan], int]:
    """Return the spans of a verdict, and the number of entries that are not objects."""
    spans = [_span(error) for error in errors if isinstance(error, Mapping)]
    return spans, len(errors) - len(spans)


def _span(error: Mapping[str, Any]) -> ErrorSpan:
    start = error.get("start")
    end = error.get("end")
    if type(start) is not int or type(end) is not int:
        start = end = None
    severity: Any = error.get("severity")
    if type(severity) not in (int, float):
        severity = math.nan
    how = error.get("how")
    return ErrorSpan(
        text=str(error.get("text") or ""),
        explanation=str(error.get("explanation") or ""),
        severity=float(severity),
        start=start,
        end=end,
        how=how if how in get_args(How) else None,
    )


def _cell(estimate: Estimate) -> str:
    return with_interval(estimate.value, estimate.low, estimate.high, 3)


def _some(ids: Iterable[str]) -> str:
    every = sorted(ids)
    return ", ".join(map(repr, every[:2])) + (", …" if len(every) > 2 else "") or "none"
