"""A file of labels while it is read: what becomes of each of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..conversation import judged
from ..errors import LabelsError
from ..rows import as_text
from .exports import Export, recognised
from .marks import unrated
from .meanings import text_like
from .preferences import Pairs
from .raters import merged_raters
from .records import Account, Columns, Row

Record = dict[str, Any]


@dataclass
class Sheet:
    """The records of a file, plain: without an export's wrapping, two of them for a comparison of two outputs.

    lines: the row (from 1) that each record comes from. total: rows of the file. pairs: None unless rows compare two
    outputs. skipped: rows that are no labels, with the reason. problems: what is wrong, a sentence each. raters: who
    rated, found by `rows`.
    """

    origin: str
    records: list[Record]
    lines: list[int]
    total: int
    export: Export | None = None
    pairs: Pairs | None = None
    skipped: dict[int, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    raters: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, origin: str, records: Sequence[Record], chosen: Mapping[str, str], kind: str | None) -> Sheet:
        """Raises LabelsError where preferences are asked for and there are no two outputs."""
        export = recognised(records)
        plain = list(records) if export is None else [export.record(record) for record in records]
        sheet = cls(origin, [], [], len(plain), export)
        if kind in (None, "preference") and "output" not in chosen:
            sheet.pairs = Pairs.find(_names(plain), chosen)
        if kind == "preference" and sheet.pairs is None:
            raise LabelsError(
                f"{origin}: preferences need two outputs and a winner in each row (output_a, output_b, winner); name "
                "them with --columns output_a=NAME --columns output_b=NAME --columns winner=NAME; the columns are: "
                + ", ".join(_names(plain))
            )
        for line, record in enumerate(plain, 1):
            if all(unrated(value) for value in record.values()):
                sheet.skipped[line] = "the row is empty"
                continue
            for one in [record] if sheet.pairs is None else sheet._sides(sheet.pairs, record, line):
                sheet.records.append(one)
                sheet.lines.append(line)
        return sheet

    def _sides(self, pairs: Pairs, record: Record, line: int) -> list[Record]:
        try:
            won = pairs.won(record)
        except ValueError as error:
            self.problems.append(f"{self.origin}, row {line}, column {pairs.winner!r}: {error}")
            return []
        if won is None:
            self.skipped[line] = "no choice was made"
            return []
        made = pairs.sides(record, won)
        texts = [as_text(side["output"]) for side in made]
        if texts[0] is None or texts[1] is None:
            self.skipped[line] = "an output is empty"
            return []
        if texts[0] == texts[1]:
            self.skipped[line] = "both outputs are the same"
            return []
        for side, letter in zip(made, "ab", strict=True):
            side.setdefault("id", f"{line}-{letter}")
            if _alone(side):
                side.setdefault("doc_id", f"pair {line}")
        return made

    @property
    def names(self) -> list[str]:
        """The columns of the records."""
        return _names(self.records)

    def rows(self, parsed: Sequence[tuple[Row, Mapping[str, str]]], roles: Columns, aspect: str) -> list[Row]:
        """The labelled rows, those of several raters of one output as one; the others are counted as skipped, and what
        cannot be read is a problem. parsed: each record as a row, with what is wrong with its scores."""
        kept, names = [], []
        column = roles.texts.get("rater")
        for (row, reasons), record, line in zip(parsed, self.records, self.lines, strict=True):
            if aspect in reasons:
                self.problems.append(f"{self.origin}, row {line}, {reasons[aspect]}")
            elif aspect not in row.scores:
                self.skipped[line] = "no rating" if row.output else "no output and no rating"
            else:
                kept.append(row)
                names.append(None if column is None else as_text(record.get(column)))
        return self._merged(kept, names, aspect)

    def _merged(self, kept: list[Row], names: list[str | None], aspect: str) -> list[Row]:
        if self.pairs is not None:  # an output may stand in several comparisons, and every one is a rating
            names = [name or f"row {row.line}" for name, row in zip(names, kept, strict=True)]
        rows = merged_raters(kept, names, aspect)
        if self.pairs is not None and all(name and name.startswith("row ") for name in names):
            rows = [replace(row, raters={}) for row in rows]
        most = max((len(row.ratings.get(aspect, ())) for row in rows), default=1)
        there = {name for row in rows for name in row.raters.get(aspect, ()) if not name.startswith("row ")}
        self.raters = there or {str(number) for number in range(1 if self.pairs else max(1, most))}
        return rows

    def notes(self, roles: Columns) -> list[str]:
        """What a user should know of how the rows were read."""
        told = []
        if self.export is not None:
            left = f"; {self.export.left_out} ratings were left out, which no person gave or which were discarded"
            told.append(f"{self.origin}: read as an export of {self.export.tool}{left if self.export.left_out else ''}")
        column = roles.texts.get("messages")
        if column is not None and "output" not in roles.texts:
            cut = [found for record in self.records if (found := judged(record.get(column))) is not None]
            after = sum(found.after > 0 for found in cut)
            more = f"; turns after it are not shown ({after} rows)" if after else ""
            told.append(
                f"{self.origin}, column {column!r}: the assistant's last turn is judged, the turns before it are its "
                f"source{more}; to judge whole conversations, pass --columns output={column}"
            )
        return told

    def account(self, roles: Columns, aspect: str, scale_from: str | None) -> Account:
        """How many rows were read, and why others were skipped."""
        columns = dict(roles.texts)
        score, raters = roles.aspects.get(aspect, (roles.objects, ()))
        if self.pairs is not None:
            one, other = self.pairs.outputs
            columns = {role: name for role, name in columns.items() if name not in ("doc_id", "id", "system")}
            columns |= {"output": f"{one} | {other}"}
            score = self.pairs.winner or one
        columns["score"] = ", ".join([*([score] if score else []), *raters])
        used = {*roles.texts.values(), *raters, score, *(column for column, _ in roles.aspects.values())}
        unused = tuple(n for n in self.names if n not in used and n != roles.objects and text_like(self.records, n))
        skipped = tuple(sorted(self.skipped.items()))
        return Account(
            self.total, self.total - len(skipped), skipped, len(self.raters), columns, unused, scale_from
        )  # fmt: skip


def _names(records: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record))


def _alone(side: Mapping[str, Any]) -> bool:
    """Whether a comparison says nothing of what it is about: then it is a document of its own."""
    return not any(side.get(name) for name in side if name not in ("output", "score", "system", "id"))
