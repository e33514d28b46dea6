"""A file of labels while it is read: what becomes of each of its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..conversation import judged
from ..errors import LabelsError
from ..rows import as_text
from .exports import Export, recognised
from .marks import unrated
from .preferences import Pairs
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
        export = recognised(records, origin)
        plain = list(records) if export is None else [export.record(record) for record in records]
        sheet = cls(origin, [], [], len(plain), export)
        if kind in (None, "preference") and "output" not in chosen:
            sheet.pairs = Pairs.find(names_of(plain), chosen)
        if kind == "preference" and sheet.pairs is None:
            raise LabelsError(
                f"{origin}: preferences need two outputs and a winner in each row (output_a, output_b, winner); name "
                "them with --columns output_a=NAME --columns output_b=NAME --columns winner=NAME; the columns are: "
                + ", ".join(names_of(plain))
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
            # A comparison that says nothing of what it is about is a document of its own.
            if not any(side.get(name) for name in side if name not in ("output", "score", "system", "id")):
                side.setdefault("doc_id", f"pair {line}")
        return made

    @property
    def names(self) -> list[str]:
        return names_of(self.records)

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
        self.raters = {name for name in names if name} | {n for row in kept for n in row.raters.get(aspect, ())}
        rows = self._merged(kept, names, aspect)
        if not self.raters:
            most = 1 if self.pairs else max((len(row.ratings.get(aspect, ())) for row in rows), default=1)
            self.raters = set(map(str, range(max(1, most))))
        return rows

    def _merged(self, rows: Sequence[Row], names: Sequence[str | None], aspect: str) -> list[Row]:
        """One row an output, in the order of the first of each. names: who rated each row, None where that is not
        given.

        Rows are of one output where source, output, context, system and document are equal and somebody is named, or
        where they have the same id, too. An output may stand in several comparisons, and every one is a rating.
        """
        of_output: dict[tuple[object, ...], list[tuple[Row, str | None]]] = {}
        for row, name in zip(rows, names, strict=True):
            texts = (row.source, row.output, row.context, row.reference, row.system, row.doc_id)
            key = texts if name is not None or self.pairs is not None else (*texts, row.id)
            of_output.setdefault(key, []).append((row, name))
        return [_one(several, aspect) for several in of_output.values()]

    def notes(self, roles: Columns) -> list[str]:
        """What a user should know of how the rows were read."""
        lines = []
        if self.export is not None:
            left = f"; {self.export.left_out} ratings were left out, which no person gave or which were discarded"
            lines.append(
                f"{self.origin}: read as an export of {self.export.tool}{left if self.export.left_out else ''}"
            )
        column = roles.texts.get("messages")
        if column is not None and "output" not in roles.texts:
            cut = [found for record in self.records if (found := judged(record.get(column))) is not None]
            after = sum(found.after > 0 for found in cut)
            more = f"; turns after it are not shown ({after} rows)" if after else ""
            lines.append(
                f"{self.origin}, column {column!r}: the assistant's last turn is judged, the turns before it are its "
                f"source{more}; to judge whole conversations, pass --columns output={column}"
            )
        return lines

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
        unused = tuple(n for n in self.names if n not in used and n != roles.objects and _text_like(self.records, n))
        skipped = tuple(sorted(self.skipped.items()))
        return Account(
            self.total, self.total - len(skipped), skipped, len(self.raters), columns, unused, scale_from
        )  # fmt: skip


def names_of(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns of all the records, in the order of their first appearance."""
    return list(dict.fromkeys(name for record in records for name in record))


def _text_like(records: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether most cells of a column are texts of a few words, or structures."""
    cells = [cell for record in records if not unrated(cell := record.get(name))]
    texts = [c for c in cells if isinstance(c, (list, dict)) or (isinstance(c, str) and len(c.split()) >= 3)]
    return bool(cells) and len(texts) * 2 >= len(cells)


def _one(several: Sequence[tuple[Row, str | None]], aspect: str) -> Row:
    """The rows of one output, with their raters, as one row with every rating."""
    first, rater = several[0]
    if len(several) == 1:
        return replace(first, raters={**first.raters, aspect: (rater,)}) if rater else first
    given = [
        (value, name or (row.raters[aspect][place] if aspect in row.raters else ""))
        for row, name in several
        for place, value in enumerate(row.ratings.get(aspect) or (row.scores[aspect],))
    ]
    values, who = tuple(value for value, _ in given), tuple(name for _, name in given)
    return replace(
        first,
        scores={**first.scores, aspect: math.fsum(values) / len(values)},
        ratings={**first.ratings, aspect: values},
        raters={**first.raters, aspect: who} if all(who) else first.raters,
    )
