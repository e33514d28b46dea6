"""A file of labels while it is read: what becomes of each of its rows."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from judgesmith.conversation import judged, parsed
from judgesmith.datasets.duplicates import merge
from judgesmith.datasets.exports.reading import recognised
from judgesmith.datasets.marks import Kind, Marks, named_scale, unrated, word_set
from judgesmith.datasets.meanings import (
    left_out,
    names_a_fault,
    one_rating,
    speaks_of_machine,
    text_like,
)
from judgesmith.datasets.orders import Orders
from judgesmith.datasets.preferences import Pairs
from judgesmith.datasets.records import (
    Account,
    Columns,
    Labels,
    by_reason,
    infer_scale,
    is_role,
    refuse_codes,
    refuse_maxima,
    refuse_outliers,
    refuse_reversed,
    refuse_scales,
    remembered,
)
from judgesmith.datasets.rivals import refuse_rivals
from judgesmith.datasets.row import OVERALL, Row
from judgesmith.datasets.statuses import Statuses
from judgesmith.datasets.tables import Table
from judgesmith.errors import LabelsError, OptionError
from judgesmith.likeness import folded
from judgesmith.rows import DERIVED, as_text, is_sheet_error

Record: TypeAlias = dict[str, Any]
_Parsed: TypeAlias = Sequence[tuple[Row, Mapping[str, str]]]
#: The place of a record, its row, and who rated it.
_Rated: TypeAlias = tuple[int, Row, str | None]

_SHOWN = 5  # problems in one message
#: What a comparison has beside what it is about, of people's files and of those that `judgesmith score` writes.
_BESIDE = (
    "output",
    "score",
    "system",
    "id",
    "verdict",
    "judge",
    "asked",
    "seen",
    "resembles",
)
#: Words before the total or mean below a column of ratings.
_TOTALS = word_set(
    "total sum average avg mean median ø summe gesamt mittelwert durchschnitt mittel somme moyenne promedio suma "
    "media totale"
)
#: Where a scale stands.
_NAMED = "the column's name"
_MOST_CATEGORIES = 20
_LISTED = 6  # rows in one message
#: Names of columns on the order in which two outputs were shown.
_SWAPPED = re.compile(r"swap|flip|shuffl|(?:shown|display|presentation)_?order", re.I)
#: What differs between problems of one kind.
_VARYING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\d.]+""")


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a file, rated or not: rows of several raters of one output as one, two for a comparison.

    records: of each output the first that it stands in. columns: their roles. problems: by aspect the first rating that
    cannot be read. compared: people compared two outputs in each row of the file; the scores are shares of comparisons
    won. path: of the file. notes: on how it was read. decimal_comma: as of its table. orders: the words of columns,
    worst first, as the user said them.
    """

    origin: str
    rows: list[Row]
    records: list[Record]
    columns: Columns
    problems: Mapping[str, str]
    compared: bool
    path: Path | None = None
    notes: tuple[str, ...] = ()
    decimal_comma: bool = False
    orders: Orders = ()

    def names(self) -> list[str]:
        """Return the columns of the file."""
        return names_of(self.records)

    def aspects(self) -> list[str]:
        """Those that people rated, readable or not."""
        return list(
            dict.fromkeys(
                name for row in self.rows for name in (*row.scores, *self.problems)
            )
        )


class Sheet:
    """The rows of a file as plain records, without an export's wrapping, two of them for a comparison of two outputs.

    columns: role -> column, as the user named them. lines: the row (from 1) that each record comes from. skipped: rows
    that are no labels, with the reason. problems: (row, what is wrong). raters: who rated.
    Raises LabelsError where preferences are asked for and there are no two outputs.
    """

    def __init__(
        self,
        table: Table,
        rows: Sequence[Record],
        columns: Mapping[str, Any],
        kind: Kind | None = None,
    ) -> None:
        columns = remembered(rows, columns)
        self.table = table
        self.origin = table.origin
        self.columns = columns
        self.kind = kind
        self.records: list[Record] = []
        self.lines: list[int] = []
        self.skipped: dict[int, str] = {}
        self.problems: list[tuple[int, str]] = []
        self.raters: set[str] = set()
        self.rows, self.export = rows, recognised(rows, self.origin)
        plain = list(rows)
        if self.export is not None:
            plain = self.export.records(rows, self.origin)
            self.columns = columns = self.export.columns(columns, self.origin)
        self.total = len(plain)
        compares = kind in (None, "preference") and "output" not in columns
        if compares:
            self.pairs = Pairs.find(names_of(plain, verdicts=False), columns)
        else:
            self.pairs = None
        if (
            compares
            and self.pairs is None
            and self.export is not None
            and self.export.winners
        ):
            raise LabelsError(
                f"{self.origin}: which two outputs does {columns['winner']!r} compare? Name them, the left one first, "
                "with --columns output_a=NAME --columns output_b=NAME; the columns are: "
                + ", ".join(names_of(plain))
            )
        if kind == "preference" and self.pairs is None:
            raise LabelsError(
                f"{self.origin}: preferences need two outputs and a winner in each row (output_a, output_b, winner); "
                "name them with --columns output_a=NAME --columns output_b=NAME --columns winner=NAME; "
                "the columns are: " + ", ".join(names_of(plain))
            )
        free = [name for name in names_of(plain, verdicts=False) if not is_role(name)]
        self.judged_by = [] if self.pairs is None else self.pairs.judged_by(plain, free)
        if self.pairs is not None:
            self.pairs.refuse_bits(plain, self.origin)
        for line, record in enumerate(plain, 1):
            if all(unrated(value) for value in record.values()):
                self.skipped[line] = "the row is empty"
                continue
            split = [record]
            if self.pairs is not None:
                split = self._sides(self.pairs, record, line)
            self.records += split
            self.lines += [line] * len(split)
        self.names = names_of(self.records, verdicts=False)

    def _sides(self, pairs: Pairs, record: Record, line: int) -> list[Record]:
        try:
            choices = pairs.choices(record)
        except ValueError as error:
            self.problems.append((line, f"column {pairs.winner!r}: {error}"))
            return []
        if not choices:
            self.skipped[line] = "no choice was made"
            return []
        named = list[tuple[str, dict[str, Any]]]()
        for who, won in choices:
            named += [(who, side) for side in pairs.sides(record, won)]
        first, second = (as_text(side["output"]) for _, side in named[:2])
        if first is None or second is None:
            self.skipped[line] = "an output is empty"
            return []
        if first == second:
            self.skipped[line] = "both outputs are the same"
            return []
        for place, (who, side) in enumerate(named):
            for name in self.judged_by:
                side[name] = pairs.share_of_side(record, name, place % 2)
            side.setdefault("id", f"{line}-{'ab'[place % 2]}")
            side |= {"rater": who} if who else {}
            # A comparison that says nothing of what it is about is a document of its own.
            if not any(side.get(name) for name in side if name not in _BESIDE):
                side.setdefault("doc_id", f"{DERIVED}pair {line}")
        return [value for _, value in named]

    def _choices(self, places: Iterable[int]) -> Record:
        """Return the shares that choosing judges give an output that stands in several comparisons."""
        records = [self.records[place] for place in places]
        means: Record = {}
        for name in self.judged_by:
            shares = [record[name] for record in records if record[name] is not None]
            means[name] = math.fsum(shares) / len(shares) if shares else None
        return means

    def _whole(self, place: int) -> Record:
        """A record with all that its row of the file has, of an export, too."""
        record = self.records[place]
        if self.export is None:
            return record
        return {**self.rows[self.lines[place] - 1], **record}

    def labels(
        self,
        aspect: str | None,
        scale: tuple[float, float] | None,
        min_rows: int,
        categories: Orders,
    ) -> Labels:
        """Return the labels of one aspect, which may all be equal.

        Raises:
            LabelsError: With file, row, column and a remedy.
        """
        roles = self._roles(aspect, categories)
        guesses = self._guesses(roles) if aspect is None else []
        parsed = [
            roles.row(record, line)
            for record, line in zip(self.records, self.lines, strict=True)
        ]
        if self.pairs is not None:
            parsed = [(_of_better(row), reasons) for row, reasons in parsed]
        aspect = self._aspect(parsed, aspect)
        marks = roles.marks.get(aspect, Marks())
        column = roles.column_of(aspect)
        self._refuse_unknown(marks, aspect, column)
        statuses = Statuses.of(self.records, self._beside(roles), self.origin)
        rows = self._rows(parsed, roles, aspect, statuses)
        refuse_reversed(
            self.origin, column, rows, aspect, marks, stated=scale is not None
        )
        refuse_maxima(self.origin, self.records, self._beside(roles))
        if scale is None:
            stated, where = self._stated_scale(column or "", marks)
        else:
            stated, where = (scale, None)

        labels = [
            *self._text_problems(rows, roles),
            *self.problems,
            *_score_problems(rows, aspect, column, stated),
        ]
        problems = _by_column(self.origin, labels)
        if len(rows) < min_rows and not self.problems:
            problems.append(self._too_few(len(rows), min_rows))
        self._fail(problems)

        warnings = [*self.table.notes, *self._notes(roles), *guesses, *statuses.notes]
        if names_a_fault(column or aspect) and marks.kind == "score":
            warnings.append(
                f"{self.origin}, column {column!r}: higher scores are taken as better ones; if they say how much of a "
                "fault there is, reverse them"
            )
        values = np.array([value for row in rows for value in _values(row, aspect)])
        if scale is None:
            refuse_scales(self.origin, column, rows, aspect)
        if stated is None:
            refuse_codes(self.origin, column, rows, aspect)
            refuse_outliers(self.origin, column, rows, aspect)
        if (
            stated == (0.0, 100.0) and where == _NAMED and values.max() <= 1
        ):  # shares, whatever the name says of percent
            stated = None
            where = None
        low, high = stated or infer_scale(values, len(rows))
        if stated is None:
            warnings.append(
                f"{self.origin}: the scale was inferred as {low:g}..{high:g} from scores between"
                f" {values.min():g} and {values.max():g}; pass --scale LOW HIGH if that is wrong"
            )
        merged = merge(rows)
        warnings += [
            *merged.warnings(rows, self.origin),
            *_conflicts(self.origin, rows, aspect, (high - low) / 2),
        ]
        warnings += self._splits(rows, aspect, marks)
        warnings += [] if self.pairs else _rated_twice(self.origin, rows, aspect)
        kind: Kind = "preference"
        names: tuple[str, ...] = ()
        levels: tuple[float, ...] = ()
        if not self.pairs:
            kind, names, levels = self._kind(marks, scale, values)
        return Labels(
            merged.applied(rows),
            aspect,
            (float(low), float(high)),
            stated is not None,
            self.origin,
            tuple(warnings),
            kind,
            names,
            levels,
            self._account(roles, aspect, where),
        )

    def _too_few(self, rows: int, needed: int) -> str:
        """Return the message for too few labels."""
        if self.skipped:
            of = f" of {self.total} rows are labels ({self._reasons()}),"
            more = "rate more rows"
        else:
            of = " rows,"
            more = "add rows"
        return f"{self.origin}: {rows}{of} at least {needed} are needed; {more}"

    def _splits(self, rows: Sequence[Row], aspect: str, marks: Marks) -> list[str]:
        """A note on rows whose raters are split half and half between two categories."""
        if (
            marks.kind not in ("binary", "category")
            or self.pairs is not None
            or not marks.levels
        ):
            return []
        levels = np.array(marks.levels)
        lines = [row.line for row in rows if undecided(row.scores[aspect], levels)]
        if not lines:
            return []
        return [
            f"{self.origin}: raters are split half and half on {len(lines)} of {len(rows)} outputs "
            f"({rows_in_words(lines)}), which are in neither category and count as half of each; let a third person "
            "decide"
        ]

    def _roles(self, aspect: str | None, categories: Orders) -> Columns:
        if not self.records:
            self._fail(_by_column(self.origin, self.problems))
            raise LabelsError(
                f"{self.origin}: no row is a label ({self._reasons()}); at least some must be rated"
            )
        chosen = self._chosen()
        columns = Columns.find(
            self.names, self.origin, chosen=chosen, aspect=aspect, records=self.records
        )
        return columns.reading(
            self.records, categories, decimal_comma=self.table.decimal_comma
        )

    def _guesses(self, roles: Columns) -> list[str]:
        """Return notes on ratings that nobody named. Raises LabelsError where others could be meant as well."""
        if self.pairs is not None:
            return []
        return refuse_rivals(roles, self.records, self.names)

    def _refuse_unknown(self, marks: Marks, aspect: str, column: str | None) -> None:
        """Raises LabelsError for words whose order, or better end, only the user knows."""
        where = f"{self.origin}, column {column!r}"
        words = ",".join(marks.unknown)
        if marks.fault:
            back = ",".join(reversed(marks.unknown))
            raise LabelsError(
                f"{where}: it names a fault, so {marks.unknown[0]!r} may be the worse answer; say which is, "
                f'the worst first: --categories "{words}" or --categories "{back}"'
            )
        if marks.unknown:
            raise LabelsError(
                f"{where}: the ratings are words of no known scale; give them in their order, worst first: "
                f'--categories "{words}"'
            )

    def _chosen(self) -> Mapping[str, Any]:
        """The columns that the user named; a comparison's own give way to those of its sides."""
        if self.pairs is None:
            return self.columns
        roles = {
            role: name for role, name in self.columns.items() if name in self.names
        }
        return {**roles, "output": "output", "score": "score"}

    def _aspect(self, parsed: _Parsed, wanted: str | None) -> str:
        aspects = dict[str, None]()
        for row, reasons in parsed:
            aspects |= dict.fromkeys((*row.scores, *reasons))
        present = list(aspects)
        names = ", ".join(present)
        if not present and wanted is None:
            left = self.export.left_out() if self.export is not None else ""
            raise LabelsError(
                f"{self.origin}: no row has a score; rate some, or name the column with --columns score=NAME{left}",
                *self.table.notes,
            )
        if not wanted and OVERALL in present:
            wanted = OVERALL
        if not wanted and len(present) == 1:
            wanted = present[0]
        if not wanted:
            raise LabelsError(
                f"{self.origin}: there are several aspects ({names}); pass --aspect NAME"
            )
        if wanted not in present:
            raise LabelsError(
                f"{self.origin}: there is no aspect {wanted!r}; pass --aspect with one of: {names}"
            )
        return wanted

    def _rows(
        self, parsed: _Parsed, roles: Columns, aspect: str, statuses: Statuses
    ) -> list[Row]:
        """Return the labelled rows, those of several raters of one output as one.

        The others are counted as skipped, and unreadable cells are problems. Rows are of one output where source,
        output, context, system and document are equal and somebody is named, or where they have the same id, too. An
        output may stand in several comparisons, and every one is a rating.

        Args:
            parsed: Each record as a row, with the problems of its scores.
            roles: The columns.
            aspect: The aspect whose score is read.
            statuses: The ratings that do not count.
        """
        labelled = []
        for place, ((row, reasons), line) in enumerate(
            zip(parsed, self.lines, strict=True)
        ):
            if place in statuses.left and aspect in row.scores:
                self.skipped[line] = f"a rating {statuses.left[place]}"
            elif aspect in reasons:
                self.problems.append((line, reasons[aspect]))
            elif aspect not in row.scores:
                if row.output:
                    self.skipped[line] = "no rating"
                else:
                    self.skipped[line] = "no output and no rating"
            elif self.export is not None and not row.output:
                self.skipped[line] = "a rating, but no output"
            else:
                labelled.append((place, row))
        if _sums_up([row for _, row in labelled], aspect):
            place, _ = labelled.pop()
            self.skipped[self.lines[place]] = "a total or mean of the other ratings"
        rows = []
        for group in self._by_output(labelled, roles):
            for _, row, who in group:
                self.raters.update([who] if who else (), row.raters.get(aspect, ()))
            whole = _one(group)
            if self.judged_by:
                shares = self._choices([place for place, _, _ in group])
                whole = replace(whole, columns={**whole.columns, **shares})
            rows.append(whole)
        if not self.raters:
            if self.pairs:
                most = 1
            else:
                most = max(
                    (len(row.ratings.get(aspect, ())) for row in rows), default=1
                )
            self.raters = set(map(str, range(max(1, most))))
        return rows

    def _beside(self, roles: Columns, judges: Sequence[str] = ()) -> list[str]:
        """Return the columns without a role, which hold no scores of these judges."""
        used = {*roles.texts.values(), *self.judged_by, roles.objects, *judges}
        for column, raters in roles.aspects.values():
            used |= {column, *raters}
        return [name for name in self.names if name not in used]

    def _by_output(
        self, rows: Iterable[tuple[int, Row]], roles: Columns
    ) -> Iterable[list[_Rated]]:
        """Rows with their places, together where they are of one output."""
        of_output: dict[tuple[object, ...], list[_Rated]] = {}
        column = roles.texts.get("rater")
        for place, row in rows:
            name = None if column is None else as_text(self.records[place].get(column))
            key = [
                row.source,
                row.output,
                row.context,
                row.reference,
                row.system,
                row.doc_id,
            ]
            if name is None and self.pairs is None:
                key.append(row.id)
            of_output.setdefault(tuple(key), []).append((place, row, name))
        return of_output.values()

    def outputs(
        self,
        also: Sequence[str] = (),
        *,
        judges: Sequence[str] = (),
        texts_needed: bool = True,
        categories: Orders = (),
    ) -> Outputs:
        """Return every output, rated or not.

        Args:
            also: Columns with further ratings.
            judges: Columns with judges' scores, which state nothing of human ratings.
            texts_needed: False if a file of ids and ratings will do.
            categories: The words of ratings, worst first, of all or by name.

        Raises:
            LabelsError: As `labels`; also for winners that cannot be read.
        """
        self._fail(_by_column(self.origin, self.problems))
        columns = Columns.find(
            self.names,
            self.origin,
            chosen=self._chosen(),
            scores_needed=False,
            texts_needed=texts_needed,
            also=also,
            records=self.records,
        )
        roles = columns.reading(
            self.records, categories, decimal_comma=self.table.decimal_comma
        )
        beside = self._beside(roles, judges)
        refuse_maxima(self.origin, self.records, beside)
        parsed = list(map(roles.row, self.records, self.lines))
        notes = list(self.table.notes)
        statuses = Statuses.of(self.records, beside, self.origin)
        notes += statuses.notes
        for place in statuses.left:
            bare = replace(parsed[place][0], scores={}, ratings={}, raters={})
            parsed[place] = (bare, {})
        for why, places in by_reason(sorted(statuses.left.items())).items():
            notes.append(
                f"{self.origin}: the ratings of {len(places)} rows are left out, {why}"
            )
        wrong: dict[str, list[tuple[int, str]]] = {}
        for (_, reasons), line in zip(parsed, self.lines, strict=True):
            for aspect, reason in reasons.items():
                wrong.setdefault(aspect, []).append((line, reason))
        problems = {
            aspect: _by_column(self.origin, cells)[0] for aspect, cells in wrong.items()
        }
        groups = self._rated_together(parsed, roles)
        records = []
        for group in groups:
            shares = self._choices([place for place, _, _ in group])
            records.append(self._whole(group[0][0]) | shares)
        return Outputs(
            self.origin,
            [_one(group) for group in groups],
            records,
            roles,
            problems,
            self.pairs is not None,
            notes=tuple(notes),
            decimal_comma=self.table.decimal_comma,
            orders=categories,
        )

    def _rated_together(self, parsed: _Parsed, roles: Columns) -> list[list[_Rated]]:
        """Group the rows of each rated output; an unrated one is there as often as the file has it."""
        rows = ((place, row) for place, (row, _) in enumerate(parsed))
        groups: list[list[_Rated]] = []
        for group in self._by_output(rows, roles):
            rated = any(row.scores for _, row, _ in group)
            groups += [group] if rated else [[rating] for rating in group]
        return sorted(groups, key=lambda group: group[0][0])

    def _stated_scale(
        self, column: str, marks: Marks
    ) -> tuple[tuple[float, float] | None, str | None]:
        """Return the scale that the column's name or the marks state, and its place; None if neither does."""
        if self.pairs:
            return (0.0, 1.0), "the share of comparisons won"
        named = named_scale(column)[1]
        if named is not None and not marks.levels:
            return named, _NAMED
        if marks.values or marks.scale == (-1.0, 1.0):
            return (marks.scale, "the ratings")
        return (None, None)

    def _kind(
        self,
        marks: Marks,
        scale: tuple[float, float] | None,
        values: NDArray[np.float64],
    ) -> tuple[Kind, tuple[str, ...], tuple[float, ...]]:
        """The kind of the labels, and the names and scores of their categories."""
        kind = self.kind or marks.kind
        longer = (
            scale is not None
            and marks.kind == "binary"
            and not marks.values
            and scale != marks.scale
        )
        if kind == "score" or (
            self.kind is None and longer
        ):  # only two numbers of a longer scale were given so far
            return "score", (), ()
        names = marks.names
        levels = marks.levels
        if not names:
            levels = tuple(sorted({float(value) for value in values}))
            names = tuple(f"{level:g}" for level in levels)
        if kind == "binary" and len(levels) != 2:
            raise OptionError(
                f"--kind binary: {self.origin} has the ratings {', '.join(names[:12])}; two are needed"
            )
        if len(levels) > _MOST_CATEGORIES:
            raise OptionError(
                f"--kind category: {self.origin} has {len(levels)} different ratings; take --kind score"
            )
        return kind, names, levels

    # -- what is said

    def _text_problems(
        self, rows: Sequence[Row], roles: Columns
    ) -> list[tuple[int, str]]:
        problems = []
        output = roles.texts.get("output", roles.texts.get("messages"))
        name = roles.texts.get("id", "id")
        seen: dict[str, int] = {}
        for row in rows:
            if not row.output:
                cell = str(row.columns.get(output or "", "")).strip()
                if is_sheet_error(cell):
                    what = f"{cell!r} is an error of a spreadsheet and no output"
                else:
                    what = "the output is empty"
                problem = f"column {output!r}: {what}; fill it in or remove the row"
                problems.append((row.line, problem))
            first = seen.setdefault(row.id, row.line)
            if first != row.line:
                again = f"id {row.id!r} is that of row {first} already; give every row its own"
                problems.append((row.line, f"column {name!r}: {again}"))
        return problems

    def _fail(self, problems: Sequence[str]) -> None:
        """Raises LabelsError where there are problems."""
        lines = list(problems[:_SHOWN])
        if len(problems) > _SHOWN:
            lines.append(f"... and {len(problems) - _SHOWN} more problems")
        if self.table.has_header and any(", row " in line for line in lines):
            lines.append("(rows are counted from 1 without the header)")
        if lines:
            raise LabelsError(*lines)

    def _reasons(self) -> str:
        reasons = by_reason(sorted(self.skipped.items()))
        return (
            "; ".join(
                f"{reason}: {rows_in_words(lines)}" for reason, lines in reasons.items()
            )
            or "all of them"
        )

    def _notes(self, roles: Columns) -> list[str]:
        """Return the notes for the user on how the rows were read."""
        lines = []
        if self.export is not None:
            lines.append(
                f"{self.origin}: read as an export of {self.export.tool}{self.export.left_out()}"
            )
        if self.pairs is not None:
            lines += [
                f"{self.origin}: column {name!r} is not read; a winner is the one of the two columns as they stand, so "
                "undo the order in which they were shown if the winners go by that"
                for name in filter(_SWAPPED.search, self.names)
            ]
        column = roles.texts.get("messages")
        if column is not None and not {"output", "turn"} & set(roles.texts):
            lines.append(self._chat_note(column))
        source = roles.texts.get("source", "")
        without = sum(not as_text(record.get(source)) for record in self.records)
        if "source" in roles.texts and 0 < without < len(self.records):
            lines.append(
                f"{self.origin}: {without} of {len(self.records)} rows have no source and are judged without one"
            )
        columns = sorted(
            {column for column, _ in roles.aspects.values() if column is not None}
        )
        for name in columns:
            if speaks_of_machine(name) and name not in self.columns.values():
                lines.append(
                    f"{self.origin}: the ratings are those of {name!r}, whose name speaks of a machine; if no person "
                    "gave them, name people's with --columns score=NAME"
                )
        for name in columns:
            left = [
                why for record in self.records for why in left_out(record.get(name))
            ]
            if left:
                reasons = ", ".join(dict.fromkeys(left))
                lines.append(
                    f"{self.origin}, column {name!r}: {len(left)} ratings were left out, marked {reasons}"
                )
        for name in filter(self._has_objects, columns):
            lines.append(
                f"{self.origin}, column {name!r}: the keys of its objects were taken as raters and averaged; if they "
                f"are aspects, pass --columns scores={name}"
            )
        for name in filter(self._has_names, columns):
            lines.append(
                f"{self.origin}, column {name!r}: the names in its objects were taken as raters and averaged; if they "
                "are aspects, write `aspect` for `name`"
            )
        return lines

    def _has_objects(self, column: str) -> bool:
        """Return True if a cell of a column is an object of several ratings."""
        cells = (record.get(column) for record in self.records)
        return any(isinstance(cell, Mapping) and not one_rating(cell) for cell in cells)

    def _has_names(self, column: str) -> bool:
        """Return True if a cell of a column is a list of objects with different names."""
        for record in self.records:
            cell = parsed(record.get(column))
            objects = cell if isinstance(cell, list) else []
            named = [one.get("name") for one in objects if isinstance(one, Mapping)]
            if len(set(map(str, named))) > 1:
                return True
        return False

    def _chat_note(self, column: str) -> str:
        """Return the note on chats whose last turn is judged."""
        chats = [judged(record.get(column)) for record in self.records]
        after = sum(chat is not None and chat.after > 0 for chat in chats)
        more = f"; turns after it are not shown ({after} rows)" if after else ""
        return (
            f"{self.origin}, column {column!r}: the assistant's last turn is judged, the turns before it are its "
            f"source{more}; to judge whole conversations, pass --columns output={column}"
        )

    def _account(self, roles: Columns, aspect: str, scale_from: str | None) -> Account:
        """Return how many rows were read, and why others were skipped."""
        columns = dict(roles.texts)
        named = dict[str, str | tuple[str, ...]]()
        score, raters = roles.aspects.get(aspect, (roles.objects, ()))
        if raters:
            named["rater_score"] = raters
        if score is not None:
            named["scores" if score == roles.objects else "score"] = score
        if self.pairs is not None:
            columns = {
                role: name
                for role, name in columns.items()
                if name not in ("doc_id", "id", "system")
            }
            columns |= {"output": " | ".join(self.pairs.outputs)}
            score = self.pairs.winner or self.pairs.outputs[0]
            named = dict(zip(("output_a", "output_b"), self.pairs.outputs, strict=True))
            if self.pairs.winner is not None:
                named["winner"] = self.pairs.winner
        named = {**columns, **named}
        if self.pairs is not None:
            del named["output"]
        columns["score"] = ", ".join([*([score] if score else []), *raters])
        used = {
            *roles.texts.values(),
            *raters,
            score,
            roles.objects,
            *(column for column, _ in roles.aspects.values()),
        }
        unused = tuple(
            name
            for name in self.names
            if name not in used and text_like(self.records, name)
        )
        skipped = tuple(sorted(self.skipped.items()))
        return Account(
            self.total,
            self.total - len(skipped),
            skipped,
            len(self.raters),
            columns,
            unused,
            scale_from,
            named,
        )


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


def undecided(score: float, levels: NDArray[np.float64]) -> bool:
    """Return True if a mean rating lies in the middle between two categories."""
    far = np.sort(np.abs(levels - score))
    return len(far) > 1 and bool(np.isclose(far[0], far[1]))


def _rated_twice(origin: str, rows: Sequence[Row], aspect: str) -> list[str]:
    """Return a note on outputs that one person rated more than once, not always alike."""
    lines = []
    for row in rows:
        named = zip(
            row.raters.get(aspect, ()), row.ratings.get(aspect, ()), strict=False
        )
        distinct = {(who, rating) for who, rating in named if who}
        if len(distinct) > len({who for who, _ in distinct}):
            lines.append(row.line)
    if not lines:
        return []
    return [
        f"{origin}: {rows_in_words(lines)}: the same person rated one output more than once, and differently; every "
        "rating counts, so remove those that were replaced"
    ]


def _conflicts(
    origin: str, rows: Sequence[Row], aspect: str, apart: float
) -> list[str]:
    """A note on rows with the same texts whose ratings are further apart than that."""
    first: dict[tuple[str, str], Row] = {}
    same = [
        (first.setdefault((folded(row.source).key, folded(row.output).key), row), row)
        for row in rows
    ]
    pairs = [
        (a, b)
        for a, b in same
        if abs(a.scores[aspect] - b.scores[aspect]) > apart and a.output
    ]
    if not pairs:
        return []
    (a, b) = pairs[0]
    others = len(pairs) - 1
    more = f", and {others} more rows are like that" if others else ""
    return [
        f"{origin}: rows {a.line} and {b.line} hold the same texts and have opposite ratings, "
        f"{a.scores[aspect]:g} and {b.scores[aspect]:g}{more}; correct one, or let a third person decide"
    ]


def rows_in_words(lines: Sequence[int]) -> str:
    """Return `row 3`, `rows 3, 7, 9` or `12 rows, the first 3`."""
    if len(lines) > _LISTED:
        return f"{len(lines)} rows, the first {lines[0]}"
    return f"row{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"


def _score_problems(
    rows: Sequence[Row],
    aspect: str,
    column: str | None,
    scale: tuple[float, float] | None,
) -> list[tuple[int, str]]:
    low, high = scale or (-np.inf, np.inf)
    outside = dict[int, float]()
    least = low
    most = high
    for row in rows:
        for value in _values(row, aspect):
            if not low <= value <= high:
                outside.setdefault(row.line, value)
                least = min(least, value)
                most = max(most, value)
    wider = f"--scale {least:g} {most:g}"
    return [
        (
            line,
            f"column {column!r}: {value:g} is outside {low:g}..{high:g}; pass {wider} or correct the row",
        )
        for line, value in outside.items()
    ]


def refuse_outside(
    origin: str,
    column: str | None,
    rows: Sequence[Row],
    aspect: str,
    scale: tuple[float, float],
) -> None:
    """Refuse ratings that are not on the scale.

    Raises:
        LabelsError: For such ratings.
    """
    if problems := _by_column(origin, _score_problems(rows, aspect, column, scale)):
        raise LabelsError(*problems)


def _by_column(origin: str, problems: Iterable[tuple[int, str]]) -> list[str]:
    """Return one sentence for each kind of problem in a column, with the number of its cells.

    problems: (row, "column 'NAME': the problem"); those of a kind differ in quoted words and numbers alone.
    """
    kinds: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for line, reason in problems:
        column, _, problem = reason.partition(": ")
        kinds.setdefault((column, _VARYING.sub("", problem)), []).append((line, reason))
    result = []
    for cells in kinds.values():
        line, reason = cells[0]
        if len(cells) <= _LISTED:
            rows = f": rows {', '.join(str(other) for other, _ in cells)}"
        else:
            rows = ""
        such = f" ({len(cells)} such cells{rows})" if len(cells) > 1 else ""
        result.append(f"{origin}, row {line}, {reason}{such}")
    return result


def _values(row: Row, aspect: str) -> tuple[float, ...]:
    """The score and the single ratings, as a mean can lie on the scale when a rating does not."""
    if aspect in row.scores:
        return (row.scores[aspect], *row.ratings.get(aspect, ()))
    return ()


def _sums_up(rows: Sequence[Row], aspect: str) -> bool:
    """Return True if the last row is no output but the total or mean of the ratings above, as spreadsheets have it."""
    if len(rows) < 3 or rows[-1].source or rows[-1].output.casefold() not in _TOTALS:
        return False
    *ratings, last = (row.scores[aspect] for row in rows)
    whole = (math.fsum(ratings), fmean(ratings), median(ratings))
    return any(abs(last - value) <= 0.05 * max(1, abs(value)) for value in whole)


def _of_better(row: Row) -> Row:
    """Return a row of two outputs with its comments if it is the better one: they speak for that."""
    preferred = max(row.scores.values(), default=0) > 0.5
    return row if preferred else replace(row, comments={})


def _one(several: Sequence[_Rated]) -> Row:
    """The rows of one output, with their raters, as one row with every rating."""
    _, first, rater = several[0]
    if len(several) == 1:
        if not rater:
            return first
        named = dict.fromkeys(first.scores, (rater,))
        return replace(first, raters=named | dict(first.raters))
    scores = dict[str, float]()
    ratings = dict[str, tuple[float, ...]]()
    raters = dict[str, tuple[str, ...]]()
    aspects = itertools.chain(*(row.scores for _, row, _ in several))
    for aspect in dict.fromkeys(aspects):
        values, names = zip(*_ratings_of(aspect, several), strict=True)
        scores[aspect] = math.fsum(values) / len(values)
        if len(values) > 1:
            ratings[aspect] = values
        if all(names):
            raters[aspect] = names
    comments: dict[str, tuple[str, ...]] = {}
    for _, row, _ in several:
        for name, texts in row.comments.items():
            comments[name] = (*comments.get(name, ()), *texts)
    return replace(
        first, scores=scores, ratings=ratings, raters=raters, comments=comments
    )


def _ratings_of(aspect: str, several: Sequence[_Rated]) -> Iterator[tuple[float, str]]:
    """Yield every rating of an aspect with its rater, "" for an unnamed one."""
    for _, row, name in several:
        if aspect not in row.scores:
            continue
        for place, value in enumerate(row.ratings.get(aspect) or (row.scores[aspect],)):
            own = row.raters[aspect][place] if aspect in row.raters else ""
            yield value, name or own
