"""A file's rows as plain records: without an export's wrapping, two of them for a comparison of two outputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from judgesmith.datasets.columns import Columns
from judgesmith.datasets.exports.reading import Export, recognised
from judgesmith.datasets.marks import Kind, unrated
from judgesmith.datasets.preferences import Pairs
from judgesmith.datasets.problems import Problem
from judgesmith.datasets.roles import is_role, remembered, written
from judgesmith.datasets.tables import Record, Table
from judgesmith.datasets.wide import Wide
from judgesmith.errors import LabelsError
from judgesmith.rows import DERIVED, WRITTEN, as_text

#: What a comparison has beside what it is about, of people's files and of those that `judgesmith score` writes.
_BESIDE = ("output", "score", "system", "id", *WRITTEN)


@dataclass(frozen=True)
class Plain:
    """The records of a file, before their columns have roles."""

    table: Table
    rows: Sequence[Record]
    """As the file has them."""
    columns: Mapping[str, Any]
    """Role -> column, as the user named them, and as comparisons were found."""
    kind: Kind | None
    """What the user says that people gave."""
    export: Export | None
    pairs: Pairs | None
    judged_by: Sequence[str]
    """Columns of judges that chose between two outputs."""
    total: int
    """Rows of the file."""
    records: list[Record] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    """The row (from 1) that each record comes from."""
    skipped: dict[int, str] = field(default_factory=dict)
    """Rows that are no labels, with the reason."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def origin(self) -> str:
        """The file's name, for messages."""
        return self.table.origin

    @cached_property
    def names(self) -> list[str]:
        """The columns of the records, without the verdict that `score` writes."""
        return names_of(self.records, verdicts=False)

    def chosen(self) -> Mapping[str, Any]:
        """Return the columns that the user named; a comparison's own give way to those of its sides."""
        if self.pairs is None:
            return self.columns
        names = self.names
        roles = {role: name for role, name in self.columns.items() if name in names}
        return {**roles, "output": "output", "score": "score"}

    def beside(self, columns: Columns, judges: Sequence[str] = ()) -> list[str]:
        """Return the columns without a role, which hold no scores of these judges and nothing that `score` wrote."""
        used = {*columns.texts.values(), *self.judged_by, columns.objects, *judges}
        used.update(written(self.names))
        for column, raters in columns.aspects.values():
            used |= {column, *raters}
        return [name for name in self.names if name not in used]

    def shares(self, places: Iterable[int]) -> Record:
        """Return the shares that choosing judges give an output that stands in several comparisons."""
        records = [self.records[place] for place in places]
        means: Record = {}
        for name in self.judged_by:
            shares = [record[name] for record in records if record[name] is not None]
            means[name] = math.fsum(shares) / len(shares) if shares else None
        return means

    def whole(self, place: int) -> Record:
        """Return a record with all that its row of the file has, of an export, too."""
        record = self.records[place]
        if self.export is None:
            return record
        return {**self.rows[self.lines[place] - 1], **record}


def plain_records(
    table: Table,
    rows: Sequence[Record],
    columns: Mapping[str, Any],
    kind: Kind | None = None,
) -> Plain:
    """Return the rows of a file as plain records.

    Args:
        table: Where they come from.
        rows: The rows.
        columns: Role -> column, as the user named them.
        kind: What people gave; None to infer it.

    Raises:
        LabelsError: For an export that cannot be read, and where preferences are asked for and there are no two
            outputs.
    """
    chosen = remembered(rows, columns)
    export = recognised(rows, table.origin)
    unwrapped = list(rows)
    if export is not None:
        unwrapped = export.records(rows, table.origin)
        chosen = export.columns(chosen, table.origin)
    pairs = _pairs(table.origin, unwrapped, chosen, kind, export)
    names = names_of(unwrapped, verdicts=False)
    wide = None
    if pairs is None and export is None and chosen.get("output") not in names:
        wide = Wide.find(names, unwrapped)
    judged_by: list[str] = []
    if pairs is not None:
        free = [name for name in names if not is_role(name)]
        judged_by = pairs.judged_by(unwrapped, free)
        pairs.refuse_bits(unwrapped, table.origin)
    total = len(unwrapped)
    plain = Plain(table, rows, chosen, kind, export, pairs, judged_by, total)
    for line, record in enumerate(unwrapped, 1):
        if all(unrated(value) for value in record.values()):
            plain.skipped[line] = "the row is empty"
        else:
            several = [record]
            if wide is not None:
                several = list(wide.rows(record, line))
                if not several:
                    plain.skipped[line] = "no output"
            elif pairs is not None:
                several = _sides(plain, pairs, record, line)
            plain.records.extend(several)
            plain.lines.extend([line] * len(several))
    if wide is not None:
        table.notes.append(f"{table.origin}: {wide}")
    return plain


def _pairs(
    origin: str,
    records: Sequence[Record],
    columns: Mapping[str, Any],
    kind: Kind | None,
    export: Export | None,
) -> Pairs | None:
    """Return the columns of comparisons; None if the file has none. Raises LabelsError where it must have some."""
    pairs = None
    if kind in (None, "preference") and "output" not in columns:
        pairs = Pairs.find(names_of(records, verdicts=False), columns)
        if pairs is None and export is not None and export.winners:
            raise LabelsError(
                f"{origin}: which two outputs does {columns['winner']!r} compare? Name them, the left one first, with "
                "--columns output_a=NAME --columns output_b=NAME; the columns are: "
                + ", ".join(names_of(records))
            )
    if kind == "preference" and pairs is None:
        raise LabelsError(
            f"{origin}: preferences need two outputs and a winner in each row (output_a, output_b, winner); name them "
            "with --columns output_a=NAME --columns output_b=NAME --columns winner=NAME; the columns are: "
            + ", ".join(names_of(records))
        )
    return pairs


def _sides(plain: Plain, pairs: Pairs, record: Record, line: int) -> list[Record]:
    """Return both outputs of a comparison for each choice, or say why it is none."""
    try:
        choices = pairs.choices(record)
    except ValueError as error:
        plain.problems.append((line, f"column {pairs.winner!r}: {error}"))
        return []
    if not choices:
        plain.skipped[line] = "no choice was made"
        return []
    named: list[tuple[str, Record]] = []
    for who, won in choices:
        named += [(who, side) for side in pairs.sides(record, won)]
    first, second = (as_text(side["output"]) for _, side in named[:2])
    if first is None or second is None:
        plain.skipped[line] = "an output is empty"
        return []
    if first == second:
        plain.skipped[line] = "both outputs are the same"
        return []
    for place, (who, side) in enumerate(named):
        for name in plain.judged_by:
            side[name] = pairs.share_of_side(record, name, place % 2)
        side.setdefault("id", f"{line}-{'ab'[place % 2]}")
        if who:
            side["rater"] = who
        # A comparison that says nothing of what it is about is a document of its own.
        if not any(side.get(name) for name in side if name not in _BESIDE):
            side.setdefault("doc_id", f"{DERIVED}pair {line}")
    return [side for _, side in named]


def names_of(
    records: Iterable[Mapping[str, Any]], *, verdicts: bool = True
) -> list[str]:
    """Return the columns of all the records, in the order of their first appearance.

    Args:
        records: The records.
        verdicts: True to include the columns that `score` writes.
    """
    each = (tuple(record) if verdicts else _unscored(record) for record in records)
    # Most records have the same columns, and are told apart as wholes.
    return list(dict.fromkeys(itertools.chain.from_iterable(dict.fromkeys(each))))


def _unscored(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of a record without the verdict that `score` writes."""
    scored = isinstance(record.get("verdict"), Mapping)
    return tuple(name for name in record if not scored or name != "verdict")
