"""A file of labels, from its records to labels or outputs.

Each step is a function with its own refusals and notes. They run in this order: records (`plain`), roles of columns
(`columns`), each record as a row, the aspect, words (`marks`), annotations that do not count (`statuses`), rows of one
output (`raters`), the scale (`scales`), problems (`problems`), documents (`duplicates`), kind, notes (`notes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judgesmith.datasets.columns import Columns
from judgesmith.datasets.duplicates import merge
from judgesmith.datasets.marks import Kind, Marks
from judgesmith.datasets.meanings import names_a_fault, text_like
from judgesmith.datasets.notes import notes_on
from judgesmith.datasets.orders import Orders
from judgesmith.datasets.plain import Plain, names_of
from judgesmith.datasets.problems import (
    Problem,
    by_column,
    by_reason,
    reasons_in_words,
    refuse,
)
from judgesmith.datasets.raters import (
    Parsed,
    Rated,
    opposed,
    outputs_together,
    rated_rows,
    rated_twice,
    settled,
    split_evenly,
)
from judgesmith.datasets.records import Account, Labels
from judgesmith.datasets.rivals import refuse_rivals
from judgesmith.datasets.row import OVERALL, Row
from judgesmith.datasets.scales import (
    Ratings,
    Stated,
    outside,
    read_scale,
    refuse_maxima,
    refuse_reversed,
    stated_scale,
)
from judgesmith.datasets.statuses import Statuses
from judgesmith.datasets.tables import Record
from judgesmith.errors import LabelsError, OptionError
from judgesmith.rows import as_text, is_sheet_error

_MOST_CATEGORIES = 20


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a file, rated or not: rows of several raters of one output as one, two for a comparison.

    records: of each output the first that it stands in. columns: their roles. problems: by aspect the first rating that
    cannot be read. compared: people compared two outputs in each row of the file; the scores are shares of comparisons
    won. winner: the column in which they chose one, "" if none says it. path: of the file. notes: on how it was read.
    decimal_comma: as of its table. orders: the words of columns, worst first, as the user said them.
    """

    origin: str
    rows: list[Row]
    records: list[Record]
    columns: Columns
    problems: Mapping[str, str]
    compared: bool
    winner: str = ""
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


def labels_of(
    plain: Plain,
    aspect: str | None,
    scale: tuple[float, float] | None,
    min_rows: int,
    categories: Orders,
) -> Labels:
    """Return the labels of one aspect, which may all be equal.

    Args:
        plain: The records.
        aspect: As for `read_labels`.
        scale: As for `read_labels`.
        min_rows: The fewest rows with a rating.
        categories: As for `read_labels`.

    Raises:
        LabelsError: With file, row, column and a remedy.
    """
    origin = plain.origin
    columns = _columns(plain, aspect, categories)
    guesses: list[str] = []
    if aspect is None and plain.pairs is None:
        guesses = refuse_rivals(columns, plain.records, plain.names)
    parsed = _parsed(plain, columns)
    aspect = _aspect(plain, parsed, aspect)
    marks = columns.marks.get(aspect, Marks())
    column = columns.column_of(aspect)
    _refuse_unknown(f"{origin}, column {column!r}", marks)
    beside = plain.beside(columns)
    statuses = Statuses.of(plain.records, beside, origin)
    rated = rated_rows(plain, parsed, columns, aspect, statuses)
    ratings = Ratings(origin, column, rated.rows, aspect, marks)
    refuse_reversed(ratings, stated=scale is not None)
    refuse_maxima(origin, plain.records, beside)
    stated = _stated(plain, ratings, scale)
    _refuse_problems(plain, rated, columns, outside(ratings, stated[0]), min_rows)
    found = read_scale(ratings, stated, given=scale is not None)
    merged = merge(rated.rows)
    kind, names, levels = _kind(plain, ratings, scale)
    notes = [*plain.table.notes, *notes_on(plain, columns), *guesses, *statuses.notes]
    if names_a_fault(column or aspect) and marks.kind == "score":
        notes.append(
            f"{origin}, column {column!r}: higher scores are taken as better ones; if they say how much of a fault "
            "there is, reverse them"
        )
    notes += found.notes
    notes += merged.warnings(rated.rows, origin)
    notes += settled(origin, rated.rows)
    notes += opposed(origin, rated.rows, aspect, (found.high - found.low) / 2)
    if plain.pairs is None:
        notes += split_evenly(origin, rated.rows, aspect, marks)
        notes += rated_twice(origin, rated.rows, aspect)
    return Labels(
        merged.applied(rated.rows),
        aspect,
        (found.low, found.high),
        found.stated,
        origin,
        tuple(notes),
        kind,
        names,
        levels,
        _account(plain, rated, columns, aspect, found.place),
    )


def outputs_of(
    plain: Plain,
    also: Sequence[str] = (),
    *,
    judges: Sequence[str] = (),
    texts_needed: bool = True,
    categories: Orders = (),
) -> Outputs:
    """Return every output, rated or not.

    Args:
        plain: The records.
        also: Columns with further ratings.
        judges: Columns with judges' scores, which state nothing of human ratings.
        texts_needed: False if a file of ids and ratings will do.
        categories: The words of ratings, worst first, of all or by name.

    Raises:
        LabelsError: As `labels_of`; also for winners that cannot be read.
    """
    origin = plain.origin
    commas = plain.table.decimal_comma
    has_header = plain.table.has_header
    refuse(by_column(origin, plain.problems), has_header=has_header)
    columns = Columns.find(
        plain.names,
        origin,
        chosen=plain.chosen(),
        scores_needed=False,
        texts_needed=texts_needed,
        also=also,
        records=plain.records,
    ).reading(plain.records, categories, decimal_comma=commas)
    beside = plain.beside(columns, judges)
    refuse_maxima(origin, plain.records, beside)
    parsed = list(map(columns.row, plain.records, plain.lines))
    statuses = Statuses.of(plain.records, beside, origin)
    notes = [*plain.table.notes, *statuses.notes]
    for place in statuses.left:
        row, _ = parsed[place]
        parsed[place] = (replace(row, scores={}, ratings={}, raters={}), {})
    for why, places in by_reason(sorted(statuses.left.items())).items():
        notes.append(f"{origin}: the ratings of {len(places)} rows are left out, {why}")
    wrong: dict[str, list[Problem]] = {}
    ids = _ids(plain, columns)
    for (_, reasons), line in zip(parsed, plain.lines, strict=True):
        for aspect, reason in reasons.items():
            wrong.setdefault(aspect, []).append((line, reason))
    rows = []
    records = []
    for row, places in outputs_together(plain, parsed, columns):
        rows.append(row)
        records.append(plain.whole(places[0]) | plain.shares(places))
    notes += settled(origin, rows)
    return Outputs(
        origin,
        rows,
        records,
        columns,
        {name: by_column(origin, cells, ids)[0] for name, cells in wrong.items()},
        plain.pairs is not None,
        winner="" if plain.pairs is None else plain.pairs.winner or "",
        notes=tuple(notes),
        decimal_comma=commas,
        orders=categories,
    )


# -- the steps


def _columns(plain: Plain, aspect: str | None, categories: Orders) -> Columns:
    if not plain.records:
        problems = by_column(plain.origin, plain.problems)
        refuse(problems, has_header=plain.table.has_header)
        raise LabelsError(
            f"{plain.origin}: no row is a label ({reasons_in_words(plain.skipped)}); at least some must be rated"
        )
    columns = Columns.find(
        plain.names,
        plain.origin,
        chosen=plain.chosen(),
        aspect=aspect,
        records=plain.records,
    )
    commas = plain.table.decimal_comma
    return columns.reading(plain.records, categories, decimal_comma=commas)


def _parsed(plain: Plain, columns: Columns) -> Parsed:
    parsed = list(map(columns.row, plain.records, plain.lines))
    if plain.pairs is None:
        return parsed
    return [(_of_better(row), reasons) for row, reasons in parsed]


def _of_better(row: Row) -> Row:
    """Return a row of two outputs with its comments if it is the better one: they speak for that."""
    preferred = max(row.scores.values(), default=0) > 0.5
    return row if preferred else replace(row, comments={})


def _aspect(plain: Plain, parsed: Parsed, wanted: str | None) -> str:
    aspects: dict[str, None] = {}
    for row, reasons in parsed:
        aspects |= dict.fromkeys((*row.scores, *reasons))
    present = list(aspects)
    names = ", ".join(present)
    if not present and wanted is None:
        left = plain.export.left_out() if plain.export is not None else ""
        raise LabelsError(
            f"{plain.origin}: no row has a score; rate some, or name the column with --columns score=NAME{left}",
            *plain.table.notes,
        )
    if not wanted and OVERALL in present:
        wanted = OVERALL
    if not wanted and len(present) == 1:
        wanted = present[0]
    if not wanted:
        raise LabelsError(
            f"{plain.origin}: there are several aspects ({names}); pass --aspect NAME"
        )
    if wanted not in present:
        raise LabelsError(
            f"{plain.origin}: there is no aspect {wanted!r}; pass --aspect with one of: {names}"
        )
    return wanted


def _refuse_unknown(place: str, marks: Marks) -> None:
    """Raise LabelsError for words whose order, or better end, only the user knows."""
    words = ",".join(marks.unknown)
    if marks.fault:
        back = ",".join(reversed(marks.unknown))
        raise LabelsError(
            f"{place}: it names a fault, so {marks.unknown[0]!r} may be the worse answer; say which is, the worst "
            f'first: --categories "{words}" or --categories "{back}"'
        )
    if marks.unknown:
        raise LabelsError(
            f"{place}: the ratings are words of no known scale; give them in their order, worst first: "
            f'--categories "{words}"'
        )


def _stated(
    plain: Plain, ratings: Ratings, scale: tuple[float, float] | None
) -> Stated:
    if scale is not None:
        return scale, None
    if plain.pairs is not None:
        return (0.0, 1.0), "the share of comparisons won"
    return stated_scale(ratings.column or "", ratings.marks)


def _refuse_problems(
    plain: Plain,
    rated: Rated,
    columns: Columns,
    beyond: Sequence[Problem],
    min_rows: int,
) -> None:
    """Raise LabelsError with all problems of rows, and where these are too few."""
    origin = plain.origin
    texts = _text_problems(rated.rows, columns)
    problems = by_column(
        origin, [*texts, *rated.problems, *beyond], _ids(plain, columns)
    )
    rows = len(rated.rows)
    if rows < min_rows and not rated.problems:
        if rated.skipped:
            reasons = reasons_in_words(rated.skipped)
            of = f" of {plain.total} rows are labels ({reasons}),"
            more = "rate more rows"
        else:
            of = " rows,"
            more = "add rows"
        problems.append(f"{origin}: {rows}{of} at least {min_rows} are needed; {more}")
    refuse(problems, has_header=plain.table.has_header)


def _text_problems(rows: Sequence[Row], columns: Columns) -> list[Problem]:
    """Return empty outputs, and ids that stand twice."""
    problems = []
    output = columns.texts.get("output", columns.texts.get("messages"))
    name = columns.texts.get("id", "id")
    seen: dict[str, int] = {}
    for row in rows:
        if not row.output:
            cell = str(row.columns.get(output or "", "")).strip()
            what = "the output is empty"
            if is_sheet_error(cell):
                what = f"{cell!r} is an error of a spreadsheet and no output"
            problem = f"column {output!r}: {what}; fill it in or remove the row"
            problems.append((row.line, problem))
        first = seen.setdefault(row.id, row.line)
        if first != row.line:
            again = (
                f"id {row.id!r} is that of row {first} already; give every row its own"
            )
            problems.append((row.line, f"column {name!r}: {again}"))
    return problems


def _kind(
    plain: Plain, ratings: Ratings, scale: tuple[float, float] | None
) -> tuple[Kind, tuple[str, ...], tuple[float, ...]]:
    """The kind of the labels, and the names and scores of their categories. Raises OptionError for another `--kind`."""
    if plain.pairs is not None:
        return "preference", (), ()
    marks = ratings.marks
    kind = plain.kind or marks.kind
    # Only two numbers of a longer scale were given so far.
    two = marks.kind == "binary" and not marks.values
    longer = two and scale not in (None, marks.scale)
    if kind == "score" or (plain.kind is None and longer):
        return "score", (), ()
    names = marks.names
    levels = marks.levels
    if not names:
        levels = tuple(sorted({float(value) for value, _ in ratings.every()}))
        names = tuple(f"{level:g}" for level in levels)
    if kind == "binary" and len(levels) != 2:
        raise OptionError(
            f"--kind binary: {plain.origin} has the ratings {', '.join(names[:12])}; two are needed"
        )
    if len(levels) > _MOST_CATEGORIES:
        raise OptionError(
            f"--kind category: {plain.origin} has {len(levels)} different ratings; take --kind score"
        )
    return kind, names, levels


def _account(
    plain: Plain, rated: Rated, columns: Columns, aspect: str, scale_from: str | None
) -> Account:
    """Return how many rows were read, and why others were skipped."""
    score, raters = columns.aspects.get(aspect, (columns.objects, ()))
    used = {*columns.texts.values(), *raters, score, columns.objects}
    used.update(column for column, _ in columns.aspects.values())
    if plain.pairs is None:
        in_words = dict(columns.texts)
        named: dict[str, str | tuple[str, ...]] = dict(columns.texts)
        if raters:
            named["rater_score"] = raters
        if score is not None:
            named["scores" if score == columns.objects else "score"] = score
    else:
        sides = ("doc_id", "id", "system")
        in_words = {r: name for r, name in columns.texts.items() if r not in sides}
        named = {r: name for r, name in in_words.items() if r != "output"}
        in_words["output"] = " | ".join(plain.pairs.outputs)
        named |= zip(("output_a", "output_b"), plain.pairs.outputs, strict=True)
        if plain.pairs.winner is not None:
            named["winner"] = plain.pairs.winner
        score = plain.pairs.winner or plain.pairs.outputs[0]
        used.add(score)
    in_words["score"] = ", ".join([*([score] if score else []), *raters])
    free = (name for name in plain.names if name not in used)
    unused = tuple(name for name in free if text_like(plain.records, name))
    skipped = tuple(sorted(rated.skipped.items()))
    return Account(
        plain.total,
        plain.total - len(skipped),
        skipped,
        len(rated.raters),
        in_words,
        unused,
        scale_from,
        named,
        _ids(plain, columns),
    )


def _ids(plain: Plain, columns: Columns) -> dict[int, str]:
    """Return the ids of the rows that have one, by number."""
    column = columns.texts.get("id", "")
    cells = [as_text(record.get(column)) for record in plain.records]
    return {line: cell for line, cell in zip(plain.lines, cells, strict=True) if cell}
