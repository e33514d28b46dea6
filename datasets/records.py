"""Labelled rows, and their construction from one record of a file or table (a dict)."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from judgesmith.conversation import parsed
from judgesmith.datasets.duplicates import SHARE, merge
from judgesmith.datasets.ends import order_in_name
from judgesmith.datasets.marks import (
    Kind,
    Marks,
    named_scale,
    pointed,
    unrated,
)
from judgesmith.datasets.meanings import (
    by_machine,
    guessed,
    likely_scores,
    names_a_fault,
    names_a_maximum,
    nested_ratings,
    parts_of,
)
from judgesmith.datasets.orders import Orders, order_of, read_marks
from judgesmith.datasets.rater_columns import rater_columns
from judgesmith.datasets.row import OVERALL, Row
from judgesmith.datasets.spreadsheets import NUMBER
from judgesmith.errors import LabelsError, OptionError
from judgesmith.rows import ROLES as TEXT_ROLES
from judgesmith.rows import (
    as_text,
    folded_name,
    is_missing,
    named_roles,
    source_key,
    texts,
)

#: Cells with ratings, each with its rater, "" where it is not named by the column.
_Cells: TypeAlias = Sequence[tuple[str, Any]]

#: Role -> names of its column, best first: the texts (`judgesmith.rows`), then what people said of them.
ROLES = TEXT_ROLES | named_roles("ratings")
_ASPECT_COLUMN = re.compile(r"scores?[._](?P<aspect>.*\D.*)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")

# Scales people use, smallest first. The rare ones are believed only when many rows reach both of their ends: taking
# 1..3 for a 1..5 would cut good outputs off, while taking 1..5 for a 1..3 does no harm to an order.
_COMMON_SCALES = (
    (0.0, 1.0),
    (1.0, 5.0),
    (0.0, 5.0),
    (1.0, 7.0),
    (1.0, 10.0),
    (0.0, 10.0),
    (0.0, 100.0),
)
_RARE_SCALES = ((1.0, 3.0), (1.0, 6.0))
_MANY_ROWS = 30
#: Roles of human ratings, and rows by which the columns of a file are known.
_RATINGS = ("score", "scores", "rater_score", "winner")
_HEAD = 1000
#: Up to here sums, differences and squares of scores are finite, and differences of 0.001 are kept.
LARGEST_SCORE = 1e12
#: The aspect of labels that have the scores of several, in percent, and their mean as this one.
TOGETHER = "all aspects"
#: Numbers that surveys have for "no answer", "does not apply" and "do not know".
CODES = frozenset(
    {-1.0, -9.0, -98.0, -99.0, -999.0, -9999.0, 98.0, 99.0, 999.0, 9999.0}
)
#: Ratings by which a rater's scale is known, and more raters than these are a crowd.
_FEW = 5
_CROWD = 5
_LEAST_OF_100 = 25.0  # 0..100 is no plausible scale for scores that all lie below this


@dataclass(frozen=True)
class Account:
    """Every row of a file, as a label or as `skipped` with its reason.

    rows: in the file, `labelled` of them with a rating that was taken. skipped: (row from 1, reason). raters: how many
    people rated. columns: role -> column, in words. unused: columns with texts that play no role. scale_from: where the
    scale stands, None where it was given or inferred. roles: the columns as `--columns` takes them, those of several
    raters apart.
    """

    rows: int
    labelled: int
    skipped: tuple[tuple[int, str], ...] = ()
    raters: int = 1
    columns: Mapping[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    scale_from: str | None = None
    roles: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)

    def reasons(self) -> dict[str, list[int]]:
        """Return the skipped rows by reason."""
        return by_reason(self.skipped)


def by_reason(skipped: Iterable[tuple[int, str]]) -> dict[str, list[int]]:
    """Rows that were skipped, `(row, reason)` each, by reason in the order given."""
    result: dict[str, list[int]] = {}
    for row, reason in skipped:
        result.setdefault(reason, []).append(row)
    return result


@dataclass(frozen=True, repr=False)
class Labels:
    """Rows with human scores for one aspect. `scale` is (worst, best); `scale_given` is False where it was inferred.

    kind: what people gave: scores, ordered categories, pass or fail, or preferences between two outputs (whose scores
    are the share of comparisons won, and mean something within a document only). `categories` names the categories,
    worst first, and `levels` are their scores; both are empty for scores and preferences. `account` has every
    row of the file, read or skipped. `origin` is the file's name without its folder, or "<table>". `warnings` are
    sentences to show to the user. `template_share` is the share of all documents from which nearly equal texts are a
    template and no duplicates.
    """

    rows: tuple[Row, ...]
    aspect: str
    scale: tuple[float, float]
    scale_given: bool = True
    origin: str = "<table>"
    warnings: tuple[str, ...] = ()
    kind: Kind = "score"
    categories: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    account: Account | None = field(default=None, repr=False, compare=False)
    template_share: float = SHARE

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        low, high = self.scale
        return f"Labels({len(self)} rows of {self.origin}, {self.kind} {self.aspect!r} on {low:g}..{high:g})"

    @property
    def count(self) -> str:
        """How many labels there are, in words; two outputs share a preference."""
        if self.kind == "preference":
            given = len(self) // 2 if self.account is None else self.account.labelled
            return f"{given} preferences"
        return f"{len(self)} labels"

    def understood(self) -> dict[str, Any]:
        """Return the reading of the file, as JSON values.

        Every one of its `rows` is `labelled` or `skipped`; rows of several raters of one output are one of `outputs`.
        """
        account = self.account or Account(len(self), len(self))
        return {
            "rows": account.rows,
            "labelled": account.labelled,
            "skipped": len(account.skipped),
            "skipped_rows": [
                {"row": line, "reason": reason} for line, reason in account.skipped
            ],
            "outputs": len(self),
            "raters": account.raters,
            "kind": self.kind,
            "categories": list(self.categories),
            "aspect": self.aspect,
            "scale": list(self.scale),
            "scale_from": "inferred"
            if not self.scale_given
            else account.scale_from or "given",
            "columns": dict(account.columns),
            "unused": list(account.unused),
            "notes": list(self.warnings),
        }

    @property
    def scores(self) -> NDArray[np.float64]:
        """Return the human scores of the aspect, shape (rows,), on `scale`; NaN for a row without one."""
        return np.array(
            [row.scores.get(self.aspect, math.nan) for row in self.rows],
            dtype=np.float64,
        )

    @property
    def groups(self) -> list[str]:
        """Return the group of every row, in row order."""
        return [row.group for row in self.rows]

    @property
    def suggested(self) -> NDArray[np.bool_]:
        """Return a mask of the rows that `suggest` chose, so that what holds for them need not hold for others."""
        return np.array([row.suggested for row in self.rows], dtype=np.bool_)

    @cached_property
    def grouped(self) -> Labels:
        """Return the same rows in groups that share no document and no text (`duplicates`), worked out once."""
        rows = merge_groups(self.rows, self.template_share)
        return self if rows == self.rows else replace(self, rows=rows)

    def regrouped(self, share: float) -> Labels:
        """Return the same rows, the file's groups joined again; the notes list what was joined and what was not.

        Args:
            share: The share of all documents above which nearly equal texts are a template and no duplicates.
        """
        if share == self.template_share:
            return self
        rows = [replace(row, group=row.own_group or row.group) for row in self.rows]
        before = merge(rows, self.template_share).warnings(rows, self.origin)
        merged = merge(rows, share)
        own_warnings = (note for note in self.warnings if note not in before)
        notes = (*own_warnings, *merged.warnings(rows, self.origin))
        return replace(
            self, rows=merged.applied(rows), warnings=notes, template_share=share
        )

    def subset(self, indices: Iterable[int]) -> Labels:
        """Return these rows, in the order of `indices`, with everything else kept.

        Raises:
            IndexError: For an index beyond the rows.
        """
        return replace(self, rows=tuple(self.rows[int(index)] for index in indices))

    def fingerprint(self) -> str:
        """Sha256 (64 hex digits) over ids, texts, scores of the aspect, reasons, scale. The order of rows counts."""
        digest = hashlib.sha256(
            json.dumps([self.aspect, *map(float, self.scale)]).encode()
        )
        for row, score in zip(self.rows, self.scores.tolist(), strict=True):
            digest.update(b"\n")
            texts = [row.id, row.source, row.context, row.output, row.reference]
            digest.update(json.dumps([*texts, score, *row.why(self.aspect)]).encode())
        return digest.hexdigest()


def merge_groups(rows: Sequence[Row], share: float = SHARE) -> tuple[Row, ...]:
    """Join the groups that share a document or a text, equal or nearly so, so that no split can part duplicates.

    A joined group takes the name of its first row's group. `duplicates` says when texts are the same, and how much a
    text alone may join. Merging again changes nothing.
    """
    return merge(rows, share).applied(rows)


def on_one_scale(labels: Labels, heldout: Labels) -> tuple[Labels, Labels]:
    """Labels and held-out ones on one scale that holds the ratings of both, where one scale or both were inferred.

    A stated scale is a bound: an inferred one gives way to it, and is never widened for ratings outside it. As they are
    where both are stated, ratings lie outside, or the kinds differ.
    """
    if (labels.kind, labels.levels) != (
        heldout.kind,
        heldout.levels,
    ) or labels.scale == heldout.scale:
        return labels, heldout
    if labels.scale_given and heldout.scale_given:
        return labels, heldout
    stated = next((side.scale for side in (labels, heldout) if side.scale_given), None)
    low, high = stated or labels.scale
    values = np.array(
        [
            value
            for side in (labels, heldout)
            for row in side.rows
            for value in row.single(side.aspect)
        ]
    )
    if not (low <= values.min() and values.max() <= high):
        if stated:
            return labels, heldout
        low, high = infer_scale(values, len(labels))
    if labels.scale != (low, high):
        theirs = heldout.scores
        note = (
            f"{labels.origin}: the scale is {low:g}..{high:g}, as held-out scores lie between {theirs.min():g} and "
            f"{theirs.max():g}; pass --scale LOW HIGH if that is wrong"
        )
        labels = replace(labels, scale=(low, high), warnings=(*labels.warnings, note))
    return labels, replace(heldout, scale=(low, high))


def refuse_reversed(
    origin: str,
    column: str | None,
    rows: Sequence[Row],
    aspect: str,
    marks: Marks,
    *,
    stated: bool,
) -> None:
    """Refuse ratings whose lowest one is the best, or may be, by their column's name or the words beside them.

    Args:
        origin: The file, for messages.
        column: The ratings' column.
        rows: The labelled rows.
        aspect: The aspect that is read.
        marks: How its cells are read.
        stated: True if the user gave the scale, the worst rating first.

    Raises:
        LabelsError: For such ratings.
    """
    values = [value for row in rows for value in row.single(aspect)]
    if not column or not values:
        return
    where = f"{origin}, column {column!r}"
    fault = names_a_fault(column)
    order, words = order_in_name(column, min(values), max(values), fault=fault) or (
        marks.order,
        dict(zip(marks.levels, marks.names, strict=True)),
    )
    if order == "falling":
        raise LabelsError(
            f"{where}: its name says that the lowest score is the best, but higher scores "
            "must be better; reverse them and rename the column"
        )
    if order == "unclear" and not stated:
        ends = [repr(words[n]) for n in sorted(words)[:: max(1, len(words) - 1)]]
        if ends:
            what = f"the marks of its ends ({', '.join(ends)}) do"
        else:
            what = "its name does"
        raise LabelsError(
            f"{where}: {what} not tell whether the "
            "highest score is the best; if it is, pass --scale LOW HIGH, otherwise reverse the scores and rename the "
            "column"
        )


def refuse_outliers(
    origin: str, column: str | None, rows: Sequence[Row], aspect: str
) -> None:
    """Refuse one or two ratings far above all others: a slip of the keyboard that would become the scale.

    All other ratings (of 50 or more rows: all but 2 %) are whole numbers up to 10.

    Raises:
        LabelsError: For such ratings.
    """
    values = sorted((value, row.line) for row in rows for value in row.single(aspect))
    off = max(1, len(values) // 50)
    most = values[-off - 1][0] if len(values) > 2 * off + 5 else math.inf
    far = [(value, line) for value, line in values[-off:] if value > 2 * max(most, 1)]
    if (
        2 <= most <= 10
        and far
        and all(value == int(value) for value, _ in values[:-off])
    ):
        raise LabelsError(
            f"{origin}, row {far[0][1]}, column {column!r}: {far[0][0]:g} is far from all other ratings, which are "
            f"{values[0][0]:g} to {most:g}; correct it, or pass --scale LOW HIGH if it is right"
        )


def refuse_maxima(
    origin: str, records: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> None:
    """Refuse ratings beside a column that gives each the best possible score, where these differ.

    Raises:
        LabelsError: For such a column.
    """
    for name in filter(names_a_maximum, names):
        cells = {str(record.get(name)).strip() for record in records}
        most = sorted({float(cell) for cell in cells if NUMBER.fullmatch(cell)})
        if len(most) > 1:
            raise LabelsError(
                f"{origin}: by column {name!r} the ratings are on different scales (up to {most[0]:g} and up to "
                f"{most[-1]:g}); bring them to one scale, as shares of their maximum, and remove the column"
            )


def refuse_codes(
    origin: str, column: str | None, rows: Sequence[Row], aspect: str
) -> None:
    """Refuse numbers that stand for "no answer" in surveys, such as -99, where they are apart from all other ratings.

    Raises:
        LabelsError: For such numbers.
    """
    values = [(value, row.line) for row in rows for value in row.single(aspect)]
    others = [value for value, _ in values if value not in CODES]
    if not others or not 3 <= max(others) <= 100 or min(others) < 0:
        return
    apart = [
        (value, line)
        for value, line in values
        if value in CODES and (value < 0 or value > 2 * max(others))
    ]
    if apart:
        code, line = apart[0]
        raise LabelsError(
            f"{origin}, row {line}, column {column!r}: {code:g} often stands for no answer, and all other ratings are "
            f"{min(others):g} to {max(others):g} ({len(apart)} such cells); empty these cells, or pass --scale "
            "LOW HIGH if they are ratings"
        )


def refuse_scales(
    origin: str, column: str | None, rows: Sequence[Row], aspect: str
) -> None:
    """Refuse the ratings of raters on different scales, of which nothing is the mean: 1 to 5 beside 0 to 100.

    Raises:
        LabelsError: With the raters and their ranges.
    """
    by_rater: dict[str, list[float]] = {}
    for row in rows:
        values = row.single(aspect)
        people = row.raters.get(aspect, ())
        if not people and len(values) > 1:
            people = tuple(f"rating {place}" for place in range(1, len(values) + 1))
        for who, one in zip(people, values, strict=False):
            by_rater.setdefault(who, []).append(one)
    if len(by_rater) < 2:
        return
    known = {who: values for who, values in by_rater.items() if len(values) >= _FEW}
    narrow = min(known, key=lambda who: max(known[who]), default="")
    for who, given in known.items():
        if _on_other_scales(known[narrow], given, len(by_rater)):
            ranges = " and ".join(
                f"{name!r} ({min(known[name]):g} to {max(known[name]):g})"
                for name in (narrow, who)
            )
            raise LabelsError(
                f"{origin}, column {column!r}: the raters {ranges} rate on different scales, and their mean says "
                "nothing; bring them to one scale, or pass --scale LOW HIGH if they are on one"
            )


def _on_other_scales(narrow: list[float], wide: list[float], raters: int) -> bool:
    """Return True if most of the second rater's numbers are beyond the first one's scale, of which all is used.

    Of a crowd some rate only what is bad, so that more has to differ.
    """
    top = max(narrow)
    most = max(wide)
    beyond = sum(value > top for value in wide) * 2 >= len(wide)
    used = len(set(narrow)) > 2 or min(narrow) < min(wide)
    return beyond and used and most >= top * (2 if raters <= _CROWD else 4) and most > 1


def infer_scale(values: NDArray[np.float64], rows: int) -> tuple[float, float]:
    """Return the smallest common scale that holds all values; (min, max) of the values if none is plausible."""
    low = float(values.min())
    high = float(values.max())
    if rows >= _MANY_ROWS and (low, high) in _RARE_SCALES:
        return low, high
    for worst, best in _COMMON_SCALES:
        if worst <= low and high <= best and (best < 100 or high >= _LEAST_OF_100):
            return worst, best
    return low, high


@dataclass(frozen=True)
class Columns:
    """The columns and their roles, worked out once for a file, then applied to each of its records.

    `texts` maps a role to its column; `aspects` maps an aspect to its score column (or None) and its rater columns;
    `objects` is the column whose cells hold {aspect: score}, if there is one. `marks` says how the ratings of an aspect
    are read; an aspect without is read as numbers. `origin` is the file's name. `stated`: the user named the ratings.
    """

    texts: Mapping[str, str]
    aspects: Mapping[str, tuple[str | None, tuple[str, ...]]]
    objects: str | None = None
    marks: Mapping[str, Marks] = field(default_factory=dict)
    origin: str = "<table>"
    stated: bool = False

    @classmethod
    def find(
        cls,
        names: Sequence[str],
        origin: str,
        *,
        chosen: Mapping[str, Any] | None = None,
        aspect: str | None = None,
        scores_needed: bool = True,
        texts_needed: bool = True,
        also: Sequence[str] = (),
        records: Sequence[Mapping[str, Any]] = (),
    ) -> Columns:
        """Give the columns `names` their roles.

        Args:
            names: The columns of the file.
            origin: The file, for messages.
            chosen: Role -> column, of rater_score several; goes before every guess.
            aspect: The aspect whose score is read.
            scores_needed: True if a score must be found.
            texts_needed: True if an output must be found.
            also: Columns with further ratings, each an aspect of its own name.
            records: Rows whose texts and ratings reveal columns with unusual names.

        Raises:
            LabelsError: For a chosen column that is not there, for two columns that fit a role equally well, and for a
                missing output or score.
            OptionError: For an unknown role.
        """
        result, raters = _chosen_columns(chosen or {}, names, origin)
        for role in ROLES:
            if role not in result and role not in ("score", "scores"):
                free = [n for n in names if n not in (*result.values(), *raters)]
                if (column := _best(role, free, origin)) is not None:
                    result[role] = column
        result |= guessed(records, names, result)
        if texts_needed and "output" not in result and "messages" not in result:
            raise LabelsError(
                f"{origin}: no column for the output text; {_listed(names)}; name it with --columns output=NAME"
            )
        score = result.pop("score", None)
        objects = result.pop("scores", None)
        stated = score is not None or objects is not None or bool(raters)
        free = [n for n in names if n not in result.values()]
        aspects: dict[str, tuple[str | None, tuple[str, ...]]] = {}
        if score is not None or raters:
            if score is None or is_score(score):
                own_name = OVERALL
            else:
                own_name = named_scale(score)[0]
            aspects[aspect or own_name] = (score, raters)
        elif objects is None:
            people = rater_columns(free, records)
            aspects, objects = _score_columns(
                free, origin, aspect, people, needed=scores_needed
            )
        further: dict[str, tuple[str | None, tuple[str, ...]]] = {}
        for name in also:
            column = _same(name, names)
            if column is not None:
                further[name] = (column, ())
        likely: list[str] = []
        if not aspects and not further and objects is None:
            likely = [*likely_scores(records, free), *nested_ratings(records, free)]
        if likely:
            if len(likely) > 1 and scores_needed:
                raise LabelsError(
                    f"{origin}: columns {' and '.join(map(repr, likely[:6]))} could each be the score; say which with "
                    "--columns score=NAME, or --columns rater_score=NAME for each person's"
                )
            aspects = {aspect or OVERALL: (likely[0], ())} if len(likely) == 1 else {}
        if scores_needed and not aspects and objects is None:
            raise LabelsError(
                f"{origin}: no column with scores{_of_machines(free)}; {_listed(names)}; name it with --columns "
                "score=NAME"
            )
        return cls(result, further | aspects, objects, origin=origin, stated=stated)

    def reading(
        self,
        records: Iterable[Mapping[str, Any]],
        categories: Orders = (),
        *,
        decimal_comma: bool = False,
    ) -> Columns:
        """Return these columns with marks for the ratings in `records`: words, stars and thumbs are read as numbers.

        Args:
            records: The rows.
            categories: The words, worst first, of all columns or by name.
            decimal_comma: True to read 4,5 as 4.5.
        """
        cells: dict[str, list[Any]] = {}
        for record in records:
            for aspect, (_, *ratings) in self._score_cells(record).items():
                cells.setdefault(aspect, []).extend(
                    part for _, cell in chain(*ratings) for _, part in parts_of(cell)
                )
        marks = {}
        for name, words in cells.items():
            names = (name, self.column_of(name))
            order = order_of(categories, *names)
            marks[name] = read_marks(names, words, order, decimal_comma=decimal_comma)
        return replace(self, marks=marks)

    def pointed(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record, its ratings with points for decimal commas.

        Later steps do not see that `;` separated the cells.
        """
        ratings = {
            name
            for column, raters in self.aspects.values()
            for name in (column, *raters)
        }
        return {
            name: pointed(cell) if name in ratings else cell
            for name, cell in record.items()
        }

    def row(self, record: Mapping[str, Any], line: int) -> tuple[Row, dict[str, str]]:
        """Return the record as a Row, and for each aspect with an unreadable score the reason, with its column.

        Raises:
            LabelsError: For texts that cannot be read.
        """
        scores: dict[str, float] = {}
        ratings: dict[str, tuple[float, ...]] = {}
        raters: dict[str, tuple[str, ...]] = {}
        problems: dict[str, str] = {}
        for aspect, (column, own, singles) in self._score_cells(record).items():
            try:
                recorded = self._ratings(aspect, own)
                single = self._ratings(aspect, singles)
            except ValueError as error:
                problems[aspect] = f"column {column!r}: {error}"
                continue
            recorded = recorded or single
            if recorded:
                _, values = zip(*recorded, strict=True)
                scores[aspect] = math.fsum(values) / len(values)
            rated = single if len(single) > 1 else recorded
            if not rated:
                continue
            people, several = zip(*rated, strict=True)
            if len(several) > 1:
                ratings[aspect] = several
            if all(people):
                raters[aspect] = people
        try:
            read = texts(record, self.texts)
        except OptionError as error:
            raise LabelsError(f"{self.origin}, row {line}, {error}") from None
        output = read.output or ""
        row_id, doc_id, group, system, chosen_by = (
            as_text(record.get(self.texts[role])) if role in self.texts else None
            for role in ("id", "doc_id", "group", "system", "chosen_by")
        )
        row_id = row_id or str(line)
        # Without a source the text itself is the document: a line number would join rows of unrelated files.
        doc_id = doc_id or source_key(read.source or output or row_id)
        row = Row(
            row_id,
            output,
            read.source,
            read.context,
            read.reference,
            system,
            doc_id,
            group or doc_id,
            scores,
            ratings,
            line,
            raters,
            chosen_by == "suggest",
            record,
            self._comments(record, scores),
        )
        return row, problems

    def _comments(
        self, record: Mapping[str, Any], aspects: Iterable[str]
    ) -> dict[str, tuple[str, ...]]:
        """Return people's comments, on one line each: a text, a list, or an object of these by aspect or rater."""
        cell = parsed(record.get(self.texts.get("rationale", "")))
        named = cell if isinstance(cell, Mapping) else {"": cell}
        comments: dict[str, tuple[str, ...]] = {}
        for name, part in named.items():
            key = name if name in aspects else ""
            lines = (
                as_text(text)
                for text in (part if isinstance(part, (list, tuple)) else [part])
            )
            comments[key] = comments.get(key, ()) + tuple(
                " ".join(line.split()) for line in lines if line
            )
        return {name: lines for name, lines in comments.items() if lines}

    def _ratings(self, aspect: str, cells: _Cells) -> list[tuple[str, float]]:
        """(who, rating) of each rating in some cells; who is "" where nothing says it. Raises ValueError."""
        return [
            (rater or column, value)
            for column, cell in cells
            for rater, value in read_ratings(cell, self.marks.get(aspect))
        ]

    def column_of(self, aspect: str) -> str | None:
        """Return the column that a message about this aspect names."""
        column, raters = self.aspects.get(aspect, (self.objects, ()))
        return column or next(iter(raters), None)

    def _score_cells(
        self, record: Mapping[str, Any]
    ) -> dict[str, tuple[str, _Cells, _Cells]]:
        """Aspect -> (column for messages, the score's cell, the cells of single raters), cells with their raters."""
        cells: dict[str, tuple[str, _Cells, _Cells]] = {}
        for aspect, (column, raters) in self.aspects.items():
            own = [("", record.get(column))] if column is not None else []
            cells[aspect] = (
                raters[0] if column is None else column,
                own,
                [(rater, record.get(rater)) for rater in raters],
            )
        if self.objects is not None:
            value = parsed(record.get(self.objects))
            by_aspect = value if isinstance(value, Mapping) else {OVERALL: value}
            for aspect, cell in by_aspect.items():
                if not is_missing(
                    cell
                ):  # Parquet fills absent keys of a struct with None
                    cells.setdefault(str(aspect), (self.objects, [("", cell)], []))
        return cells


def _same(name: str, names: Sequence[str]) -> str | None:
    """The column of that name, or the only one that differs in case alone; None where there is none."""
    same = [n for n in names if n == name] or [
        n for n in names if n.casefold() == name.casefold()
    ]
    return same[0] if len(same) == 1 else None


def _plain(name: str) -> str:
    return folded_name(named_scale(name)[0])


def is_score(name: str) -> bool:
    """Return True if a column's name says no more than that it is a score."""
    return any(_plain(name) in tier for tier in ROLES["score"])


def named_score(name: str) -> bool:
    """Return True if a column's name is the one that people's score has by itself: "score", "Overall (1-5)"."""
    return _plain(name) in ("score", OVERALL)


def is_comment(name: str) -> bool:
    """Return True if a column of this name holds people's comments beside their score."""
    return any(_plain(name) in tier for tier in ROLES["rationale"])


def unusual(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns (role -> name) whose names do not state their role."""
    return {role: name for role, name in columns.items() if not _says(role, name)}


def _says(role: str, name: Any) -> bool:
    # Which ratings a judge goes by is said always: beside a `rating` there may be a `score`.
    return (
        role not in _RATINGS
        and isinstance(name, str)
        and any(_plain(name) in tier for tier in ROLES[role])
    )


def remembered(
    records: Sequence[Mapping[str, Any]], columns: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the columns that the user named, and for other roles those that `score` read its rows by."""
    chosen = dict(columns or {})
    recorded = scored_by(records[0]) if records else {}
    names = set(chain.from_iterable(records[:_HEAD]))
    if set(_RATINGS) & set(chosen):  # other ratings than those of the judge
        recorded = {r: name for r, name in recorded.items() if r not in _RATINGS}
    return {
        role: name
        for role, name in recorded.items()
        if role in ROLES and names.issuperset([name] if isinstance(name, str) else name)
    } | chosen


def scored_by(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the columns (role -> names) by which a row was scored; nothing for a row that was not."""
    verdict = parsed(record.get("verdict"))
    columns = parsed(
        verdict.get("columns")
        if isinstance(verdict, Mapping)
        else record.get("judge_columns")
    )
    return columns if isinstance(columns, Mapping) else {}


def _of_machines(names: Sequence[str]) -> str:
    machines = ", ".join(repr(name) for name in names if by_machine(name))
    if machines:
        return f" of people, as the name of {machines} says that a machine gave it"
    return ""


def is_role(name: str) -> bool:
    """Return True if a column of this name has a role, of a text or a rating, whatever it holds."""
    return any(_plain(name) in tier for tiers in ROLES.values() for tier in tiers)


def _listed(names: Sequence[str]) -> str:
    return "the columns are: " + ", ".join(names)


def _best(role: str, names: Sequence[str], origin: str | None) -> str | None:
    """The column that fits the role best, None if none does.

    Raises LabelsError if two fit equally well (without an origin there is none then); of several raters the first is
    taken.
    """
    for tier in ROLES[role]:
        hits = [name for name in names if _plain(name) in tier]
        if len(hits) > 1 and role != "rater":
            if origin is None:
                return None
            raise LabelsError(
                f"{origin}: columns {' and '.join(map(repr, hits))} could each be the {role};"
                f" say which with --columns {role}=NAME"
            )
        if hits:
            return hits[0]
    return None


def _chosen_columns(
    chosen: Mapping[str, Any], names: Sequence[str], origin: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the columns that the user named by role, and those of the raters' scores."""
    result: dict[str, str] = {}
    raters: tuple[str, ...] = ()
    for role, choice in chosen.items():
        if role not in ROLES:
            raise OptionError(
                f"--columns: there is no role {role!r}; the roles are {', '.join(ROLES)}"
            )
        wanted = [choice] if isinstance(choice, str) else list(choice)
        same = {name: _same(name, names) for name in wanted}
        if missing := [name for name in wanted if same[name] is None]:
            raise LabelsError(
                f"{origin}: there is no column {missing[0]!r} for the {role}; {_listed(names)}"
            )
        if role == "rater_score":
            raters = tuple(str(same[name]) for name in wanted)
        else:
            result[role] = str(same[wanted[0]])
    return result, raters


def _score_columns(
    names: Sequence[str],
    origin: str,
    aspect: str | None,
    raters: tuple[str, ...],
    *,
    needed: bool,
) -> tuple[dict[str, tuple[str | None, tuple[str, ...]]], str | None]:
    """The score columns of each aspect, and the column of {aspect: score} objects if there is one."""
    objects = _best("scores", names, origin)
    aspects: dict[str, tuple[str | None, tuple[str, ...]]] = {}
    for name in (name for name in names if not by_machine(name)):
        clean, scale = named_scale(name)
        if name not in raters and (match := _ASPECT_COLUMN.fullmatch(clean.strip())):
            aspects[match["aspect"]] = (name, ())
        elif scale is not None and not is_score(name):
            aspects[clean] = (name, ())
    if aspect is not None and aspect not in aspects:
        named = _named(aspect, names)
        if named is not None:
            aspects[aspect] = (named, ())
    overall = _overall([name for name in names if name not in raters])
    # Words like "label" or "gold" mean a score only where nothing says so more plainly.
    if overall is None and not aspects and not raters and objects is None:
        overall = _best("score", names, origin if needed else None)
    if overall is not None or raters:
        aspects.setdefault(OVERALL, (overall, raters))
    return aspects, objects


def _named(aspect: str, names: Sequence[str]) -> str | None:
    """Return the column of this name, whatever its case and with or without a scale in it."""
    if aspect in names:
        return aspect
    for name in names:
        if aspect.casefold() in (name.casefold(), named_scale(name)[0].casefold()):
            return name
    return None


def _overall(names: Sequence[str]) -> str | None:
    """Return the column of the overall score: one called so, or one with a scale in its name."""
    for word in ("score", OVERALL):
        for name in names:
            if _plain(name) == word:
                return name
    for name in names:
        if named_scale(name)[1] is not None and is_score(name):
            return name
    return None


def read_ratings(value: Any, marks: Marks | None = None) -> list[tuple[str, float]]:
    """Return (rater, rating) for each rating in one cell: a number, a list of numbers, or an object {rater: number}.

    Absent ratings are left out.

    Args:
        value: The cell.
        marks: The meaning of words.

    Raises:
        ValueError: For an unreadable rating, with a remedy.
    """
    read = marks or Marks()
    return [
        (
            rater,
            _number(read.plain(part))
            if (number := read.number(part)) is None
            else number,
        )
        for rater, part in parts_of(value)
        if not unrated(part)
    ]


def _number(value: Any) -> float:
    if isinstance(value, (bool, np.bool_)):
        raise ValueError(
            f"{str(value).lower()} is not a number; write 1 for true and 0 for false, or remove the row"
        )
    if isinstance(value, str):
        text = value.strip()
        if _DECIMAL_COMMA.fullmatch(text):
            if not _THOUSANDS.fullmatch(text):
                other = " or two ratings"
            else:
                other = f" or stand for {text.replace(',', '')}"
            raise ValueError(
                f"{value!r} could be a decimal comma{other}; write {text.replace(',', '.')}"
            )
        if not NUMBER.fullmatch(text):
            raise ValueError(
                f"{value!r} is not a number; write a number or remove the row"
            )
        value = text
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{value!r} is not a number; write a number or remove the row"
        ) from None
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(
            f"{value!r} is not a finite number; write a number or remove the row"
        )
    if abs(number) > LARGEST_SCORE:
        raise ValueError(
            f"{number:g} is larger than any score ({LARGEST_SCORE:g} at most); correct it or remove the row"
        )
    return number
