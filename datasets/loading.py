"""Files and tables into rows. Everything that can be wrong with the data is reported here, before a model is called."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from judgesmith.datasets.columns import Columns
from judgesmith.datasets.exports.reading import recognised
from judgesmith.datasets.formats import format_of, open_table
from judgesmith.datasets.marks import KINDS, Kind
from judgesmith.datasets.orders import Orders
from judgesmith.datasets.plain import names_of, plain_records
from judgesmith.datasets.preferences import Pairs
from judgesmith.datasets.ratings import LARGEST_SCORE
from judgesmith.datasets.records import Account, Labels
from judgesmith.datasets.roles import is_role, remembered
from judgesmith.datasets.row import OVERALL, Row
from judgesmith.datasets.sheet import Outputs, labels_of, outputs_of
from judgesmith.datasets.tables import Table
from judgesmith.datasets.wide import Wide
from judgesmith.errors import LabelsError, OptionError

if TYPE_CHECKING:
    from judgesmith.datasets.tables import Source

Record: TypeAlias = dict[str, Any]

#: Before the aspects whose mean is the score.
MEAN = "mean:"
#: In place of aspects: all that a file has ratings of.
ALL = "all"
FEWEST = 8  # labels that can be learnt from, and measured on
_HEAD = 1000  # records that decide which columns a streamed file has


def read_labels(
    source: Source,
    *,
    aspect: str | None = None,
    scale: tuple[float, float] | None = None,
    columns: Mapping[str, Any] | None = None,
    min_rows: int = FEWEST,
    limit: int | None = None,
    kind: Kind | None = None,
    categories: Orders = (),
) -> Labels:
    """Read and check rows with human scores, pass/fail, categories or preferences.

    A `scores` object {aspect: score}, flat columns, one row a rater, two outputs with a winner, chats, and the exports
    of Argilla, Label Studio, MLflow, Langfuse and Phoenix are understood. Rows without a rating are left out and
    counted (`Labels.account`).

    Args:
        source: A path (formats: `judgesmith list formats`), a DataFrame, or dicts.
        aspect: The score to read; None takes the only one, or "overall". `mean:A,B,…` is the mean of several on one
            scale, as an overall score, for the rows that have them all.
        scale: (worst, best) with worst < best; None takes the scale that the column's name or the marks state (4/5,
            stars, words), else infers a common scale from the scores and warns.
        columns: Role -> column for names that do not state it; roles: id, source, output, context, reference, system,
            doc_id, group, score, scores, messages, turn (the judged one), rater, rationale (why people gave a score),
            output_a, output_b, winner; rater_score: several columns, one a person.
        min_rows: The fewest rows with a rating.
        limit: Read the first `limit` rows only.
        kind: score, category, binary or preference; None infers it from the marks.
        categories: The words of the categories, worst first, if they are of no known scale; or by the column's name.

    Raises:
        LabelsError: With file, row, column and a remedy (up to 5 problems at once).
        OptionError: For a bad argument.
    """
    reading = _Reading(scale, columns or {}, min_rows, kind, categories)
    reading.check(aspect)
    table = open_table(source)
    records = list(itertools.islice(table.records, limit))
    return reading.labels(table, records, aspect)


@dataclass(frozen=True)
class _Reading:
    """How labels are read of an opened table; see `read_labels`."""

    scale: tuple[float, float] | None
    columns: Mapping[str, Any]
    min_rows: int
    kind: Kind | None
    categories: Orders

    def check(self, aspect: str | None) -> None:
        """Raise OptionError for an impossible scale or kind, or one that a mean cannot be used with."""
        scale = self.scale
        kind = self.kind
        if scale is not None and not (
            len(scale) == 2 and -LARGEST_SCORE <= scale[0] < scale[1] <= LARGEST_SCORE
        ):
            raise OptionError(
                f"--scale needs two finite numbers, the lower first, within ±{LARGEST_SCORE:g}; got "
                f"{' '.join(map(str, scale))}"
            )
        if kind is not None and kind not in KINDS:
            raise OptionError(f"--kind {kind}: it is one of {', '.join(KINDS)}")
        if aspects_of_mean(aspect) and kind not in (None, "score"):
            raise OptionError(
                f"--aspect {aspect} is a mean of scores, so it cannot be combined with --kind {kind}; leave one out"
            )

    def labels(self, table: Table, records: list[Any], aspect: str | None) -> Labels:
        """Return the labels of an aspect. Raises LabelsError."""
        if not records:
            raise LabelsError(
                f"{table.origin}: there are no rows in it, at least {self.min_rows} are needed"
            )
        plain = plain_records(table, records, self.columns, self.kind)
        parts = aspects_of_mean(aspect)
        read = [
            labels_of(plain, part, self.scale, self.min_rows, self.categories)
            for part in parts or (aspect,)
        ]
        labels = _mean_of(read, self.min_rows) if parts else read[0]
        if len(set(labels.scores.tolist())) == 1:
            where = labels.account.columns["score"] if labels.account else labels.aspect
            raise LabelsError(
                f"{labels.origin}, column {where!r}: all {len(labels)} scores are {labels.scores[0]:g}, so there is "
                "nothing to agree with; add rows with other scores"
            )
        return labels


#: One scale for all aspects, or a function that returns each one's, None where it is to be inferred.
Scales = tuple[float, float] | Callable[[str], tuple[float, float] | None] | None


def read_aspects(
    source: Source,
    aspects: Sequence[str],
    *,
    scale: Scales = None,
    columns: Mapping[str, Any] | None = None,
    min_rows: int = FEWEST,
    limit: int | None = None,
    kind: Kind | None = None,
    categories: Orders = (),
) -> dict[str, Labels]:
    """Read the labels of several aspects of one file, by aspect; a row may lack some. The file is read once.

    Args:
        source: As for `read_labels`.
        aspects: Their names, or `all` for those that have enough labels to learn from.
        scale: As for `read_labels`, or a function of the aspect's name.
        columns: As for `read_labels`.
        min_rows: The fewest rows with a rating, of each aspect.
        limit: Read the first `limit` rows only.
        kind: As for `read_labels`.
        categories: As for `read_labels`.

    Raises:
        LabelsError: As `read_labels`; with `all` only if fewer than two aspects have enough labels.
        OptionError: For a repeated name, and for a bad argument.
    """
    if twice := next((one for one in aspects if list(aspects).count(one) > 1), None):
        raise OptionError(f"--aspect {twice} is repeated; name each aspect once")
    every = list(aspects) == [ALL]
    if ALL in aspects and not every:
        raise OptionError(f"--aspect {ALL} cannot be combined with other aspects")

    def reading(name: str) -> _Reading:
        own = scale(name) if callable(scale) else scale
        return _Reading(own, columns or {}, min_rows, kind, categories)

    for name in aspects:
        reading(name).check(name)
    table = open_table(source)
    records = list(itertools.islice(table.records, limit))

    def labels(name: str) -> Labels:
        return reading(name).labels(table, records, name)

    if not every:
        return {name: labels(name) for name in aspects}
    if not records:
        raise LabelsError(f"{table.origin}: there are no rows in it")
    plain = plain_records(table, records, columns or {})
    return _learnable(outputs_of(plain, categories=categories), labels)


def _learnable(outputs: Outputs, read: Callable[[str], Labels]) -> dict[str, Labels]:
    """Return the labels of all aspects that have enough, with a note on each that has not. Raises LabelsError."""
    labels = dict[str, Labels]()
    notes = list[str]()
    for name in outputs.aspects():
        try:
            labels[name] = read(name)
        except LabelsError as error:
            notes.append(f"{name} is left out: {error}")
    if len(labels) < 2:
        names = ", ".join(outputs.aspects()) or "none"
        why = "".join(f"; {remark}" for remark in notes)
        raise LabelsError(
            f"{outputs.origin}: --aspect {ALL} needs at least two aspects with enough labels; ratings: {names}{why}"
        )
    first = next(iter(labels))
    warnings = (
        *labels[first].warnings,
        *(f"{outputs.origin}: {remark}" for remark in notes),
    )
    return labels | {first: replace(labels[first], warnings=warnings)}


def read_outputs(
    source: Source,
    *,
    columns: Mapping[str, Any] | None = None,
    limit: int | None = None,
    also: Sequence[str] = (),
    judges: Sequence[str] = (),
    texts_needed: bool = True,
    categories: Orders = (),
) -> Outputs:
    """Read as `read_labels` does, and keep the outputs that have no rating, for commands that use these.

    Args:
        source: As for `read_labels`.
        columns: As for `read_labels`.
        limit: Read the first `limit` rows only.
        also: Columns with further ratings.
        judges: Columns with judges' scores, which state nothing of human ratings.
        texts_needed: False if a file of ids and ratings will do.
        categories: The words of ratings, worst first, of all or by the column's name.

    Raises:
        LabelsError: As `read_labels`.
    """
    table = open_table(source)
    records = list(itertools.islice(table.records, limit))
    if not records:
        raise LabelsError(f"{table.origin}: there are no rows in it")
    plain = plain_records(table, records, columns or {})
    path = Path(source) if isinstance(source, str | PathLike) else None
    outputs = outputs_of(
        plain, also, judges=judges, texts_needed=texts_needed, categories=categories
    )
    return replace(outputs, path=path)


def aspects_of_mean(aspect: str | None) -> tuple[str, ...]:
    """Return the aspects that `mean:A,B,…` names; none for any other aspect.

    Raises:
        OptionError: For fewer than two.
    """
    if aspect is None or not aspect.startswith(MEAN):
        return ()
    parts = tuple(
        dict.fromkeys(
            part.strip()
            for part in aspect.removeprefix(MEAN).split(",")
            if part.strip()
        )
    )
    if len(parts) < 2:
        raise OptionError(
            f"--aspect {aspect}: a mean needs two aspects or more, for example {MEAN}coherence,fluency"
        )
    return parts


def _mean_of(read: Sequence[Labels], min_rows: int) -> Labels:
    """The same rows, read for each of several aspects, with the mean of these as their overall score.

    Raises LabelsError where the aspects are on different scales, or too few rows have them all.
    """
    first = read[0]
    if len({part.scale for part in read}) > 1:
        text = ", ".join(map(_aspect_and_scale, read))
        raise LabelsError(
            f"{first.origin}: the aspects of a mean share a scale, and these do not: {text}; pass --scale LOW HIGH if "
            "they were inferred wrongly, or leave some out"
        )
    names = ", ".join(labels.aspect for labels in read)
    rows = tuple(_with_means(first.rows, list(map(_scores_by_row, read))))
    if len(rows) < min_rows:
        raise LabelsError(
            f"{first.origin}: {len(rows)} rows have all of {names}, at least {min_rows} are needed; rate more rows, or "
            "leave aspects out"
        )
    warnings = itertools.chain.from_iterable(part.warnings for part in read)
    note = f"{first.origin}: the overall score is the mean of {names}"
    if lacking := len(first) - len(rows):
        note += f"; {lacking} rows that lack one were left out"
    return replace(
        first,
        rows=rows,
        aspect=OVERALL,
        warnings=(note, *dict.fromkeys(warnings)),
        kind="score",
        categories=(),
        levels=(),
        scale_given=all(labels.scale_given for labels in read),
        account=_account_of_mean(read, rows, names),
    )


def _aspect_and_scale(labels: Labels) -> str:
    low, high = labels.scale
    return f"{labels.aspect} on {low:g}..{high:g}"


def _scores_by_row(labels: Labels) -> dict[str, float]:
    return {row.id: row.scores[labels.aspect] for row in labels.rows}


def _with_means(
    rows: Sequence[Row], scores: Sequence[Mapping[str, float]]
) -> Iterator[Row]:
    """Yield the rows that have every score (by the row's id), with their mean as the overall score."""
    for row in rows:
        values = [of[row.id] for of in scores if row.id in of]
        if len(values) == len(scores):
            mean = math.fsum(values) / len(scores)
            yield replace(row, scores={**row.scores, OVERALL: mean})


def _account_of_mean(
    read: Sequence[Labels], rows: Sequence[Row], names: str
) -> Account | None:
    """Return the account of the first aspect, without the rows that lack another one."""
    first = read[0]
    if not first.account:
        return None
    accounts = filter(None, (labels.account for labels in read))
    columns = dict.fromkeys(account.columns["score"] for account in accounts)
    complete = {row.line for row in rows}
    reason = f"it lacks one of {names}"
    lacking = [(row.line, reason) for row in first.rows if row.line not in complete]
    return replace(
        first.account,
        labelled=first.account.labelled - len(lacking),
        skipped=tuple(sorted([*first.account.skipped, *lacking])),
        columns={**first.account.columns, "score": ", ".join(columns)},
    )


def iter_rows(
    source: Source, *, columns: Mapping[str, str] | None = None
) -> Iterator[tuple[Row, Record]]:
    """Stream (row, original record) pairs; CSV, TSV, JSONL and Parquet are never held in memory as a whole.

    Scores are optional here and kept where they can be read. An empty output is a row with output "". Groups are those
    of the file: rows are not compared with each other.

    Raises:
        LabelsError: With the line of malformed text.
    """
    return _iter_rows(open_table(source), columns)


@dataclass(frozen=True, slots=True)
class Compared:
    """Two outputs in one row.

    id: of the row. won: 1 where people prefer a, 0 for b, 0.5 for a tie; None for no answer, or for words that name
    neither.
    """

    id: str
    a: Row
    b: Row
    won: float | None = None


#: Roles of a table of comparisons that its sides do not have.
_OF_PAIRS = frozenset(
    {"output_a", "output_b", "system_a", "system_b", "winner", "score"}
)


def read_compared(
    source: Source, columns: Mapping[str, Any] | None = None
) -> list[tuple[Compared, Record]] | None:
    """Read every row of a file that compares two outputs, with or without a preference; None for another file."""
    table = open_table(source)
    records = list(table.records)
    export = recognised(records, table.origin)
    plain = records
    if export is not None:
        plain = export.records(records, table.origin)
    chosen = remembered(records, columns)
    if export is not None:
        chosen = export.columns(chosen, table.origin)
    names = names_of(plain, verdicts=False)
    pairs = None
    if "output" not in chosen:
        pairs = Pairs.find(names, chosen, decided=False)
    if pairs is None:
        return None
    if pairs.decided:
        pairs.refuse_bits(plain, table.origin)
    elif Wide.find(names, plain) is not None:
        return None
    sides = list(_sides(pairs, plain))
    roles = {role: name for role, name in chosen.items() if role not in _OF_PAIRS}
    rows = [row for row, _ in iter_rows(sides, columns=roles | {"output": "output"})]
    labels = []
    for line, (a, b, record) in enumerate(
        zip(rows[::2], rows[1::2], records, strict=True), 1
    ):
        name = a.id.removesuffix("-a") if a.id.endswith("-a") else str(line)
        won = None
        with suppress(ValueError):
            won = pairs.won(plain[line - 1]) if pairs.decided else None
        labels.append((Compared(name, a, b, won), record))
    return labels


def _sides(pairs: Pairs, records: Sequence[Record]) -> Iterator[Record]:
    """Yield both outputs of each record without a score, with the shares that judges give them."""
    names = names_of(records, verdicts=False)
    judged_by = pairs.judged_by(records, [one for one in names if not is_role(one)])
    for record in records:
        for place, side in enumerate(pairs.sides(record, 1.0)):
            shares = {
                name: pairs.share_of_side(record, name, place) for name in judged_by
            }
            whole = dict(side) | shares
            del whole["score"]
            yield whole


def count_rows(path: str | PathLike[str]) -> int | None:
    """Return how many rows `iter_rows` will yield, for a progress bar; None if counting costs as much as reading.

    Raises:
        LabelsError: If the file's name states no format.
    """
    path = Path(path)
    form = format_of(path)
    try:
        count = form.count(path)
        if count is None:
            return None
        head = list(itertools.islice(open_table(path).records, 20))
    except (LabelsError, OSError, ValueError):
        return None  # reading it raises what is wrong
    wide = Wide.find(names_of(head, verdicts=False), head, rated=False)
    return count if wide is None else count * len(wide.versions)


def _iter_rows(
    table: Table, columns: Mapping[str, str] | None
) -> Iterator[tuple[Row, Record]]:
    head = list(itertools.islice(table.records, _HEAD))
    if not head:
        raise LabelsError(f"{table.origin}: there are no rows in it")
    export = recognised(head, table.origin)
    plain = head if export is None else export.records(head, table.origin)
    names = names_of(plain, verdicts=False)
    columns = remembered(head, columns)
    wide = None
    if export is None and columns.get("output") not in names:
        wide = Wide.find(names, plain, rated=False)
    if wide is not None:
        plain = [row for record in plain for row in wide.rows(record, 1)]
        names = names_of(plain, verdicts=False)
    chosen_columns = Columns.find(
        names, table.origin, chosen=columns, scores_needed=False, records=plain
    )
    roles = chosen_columns.reading(plain, decimal_comma=table.decimal_comma)
    for line, whole in enumerate(itertools.chain(head, table.records), 1):
        place = f"{table.origin}, row {line}"
        for record in [whole] if wide is None else wide.rows(whole, line):
            read = record if export is None else export.record(record, place)
            row, _ = roles.row(read, line)
            yield row, roles.pointed(record) if table.decimal_comma else record
