"""Inputs of `judgesmith check`, `estimate` and `suggest`: rows of files and benchmarks, and human ratings.

`judges` adds the judges that `check` compares with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.meta.inputs import MANY
from judgesmith.conversation import parsed
from judgesmith.datasets.formats import open_table
from judgesmith.datasets.loading import read_outputs
from judgesmith.datasets.marks import Marks, named_scale
from judgesmith.datasets.meanings import likely_scores, parts_of
from judgesmith.datasets.orders import Orders, refuse_unordered
from judgesmith.datasets.ratings import read_ratings
from judgesmith.datasets.records import merge_groups
from judgesmith.datasets.rivals import refuse_rivals
from judgesmith.datasets.roles import is_score
from judgesmith.datasets.row import OVERALL, Row
from judgesmith.datasets.scales import (
    Ratings,
    infer_scale,
    refuse_codes,
    refuse_outliers,
    refuse_outside,
    refuse_reversed,
    refuse_scales,
)
from judgesmith.datasets.sheet import Outputs as File
from judgesmith.errors import LabelsError
from judgesmith.evaluating.reading import Reading
from judgesmith.rows import DERIVED
from judgesmith.running.contracts import Asked, Held
from judgesmith.running.opening import rows_file
from judgesmith.wording import folded, word_count

_SHOWN = 12  # names in one message
#: Where the scores of `judgesmith score` stand.
VERDICTS = ("verdict.score", "judge_score")


@dataclass
class FileRows:
    """Rows of one file.

    seen: places of those that a judge was compiled from. resembling: of those whose output is like a labelled one that
    was written for another source.
    """

    origin: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    resembling: set[int] = field(default_factory=set)

    @property
    def documents(self) -> list[str]:
        """The units resampled for intervals: the file's own documents, else groups without near duplicates."""
        return [
            row.group if row.doc_id.startswith(DERIVED) else row.doc_id
            for row in self.rows
        ]

    @property
    def systems(self) -> list[str] | None:
        """The system of each row; None unless every row has one."""
        if all(row.system for row in self.rows):
            return [str(row.system) for row in self.rows]
        return None

    def chances(self, column: str | None) -> Vector | None:
        """Return the probability with which each row was drawn to be labelled; None where nothing says that.

        column: where it stands; None: where `judgesmith label` wrote it.

        Raises:
            LabelsError: If there is no such column, or a cell is not a number.
        """
        if column is not None:
            return self.numbers(column)
        chances = np.array([row.chance for row in self.rows])
        return None if np.isnan(chances).all() else chances

    def numbers(self, column: str) -> Vector:
        """Return a column of the rows as numbers, NaN where it is empty.

        Raises:
            LabelsError: If there is no such column, or a cell is not a number.
        """
        numbers = []
        empty = True
        for row in self.rows:
            cell = inside(row.columns, column)
            empty = empty and cell is None
            values = read_cell(self.origin, row.number, column, cell)
            numbers.append(values[0] if values else math.nan)
        if empty:
            names = dict.fromkeys(name for row in self.rows for name in row.columns)
            raise LabelsError(
                f"{self.origin}: there is no column {column!r}; there are {some(names)}"
            )
        return np.array(numbers)


@dataclass
class Judged(FileRows):
    """Rows with people's and judges' scores, as `meta_evaluate` takes them, and the texts to show with them.

    live: files of saved judges, by name, that have not judged the rows yet; their scores are missing in `judges`, where
    their names stand in their places. on_scale: judges whose scores are known to be on people's scale. kinds, marks: of
    human ratings, by aspect. decided: the number of each row's category, by judges that have categories as people have.
    words: how the cells of human ratings are read, by aspect. reasons: what each judge wrote of each row.
    """

    human: dict[str, Vector] = field(default_factory=dict)
    judges: dict[str, dict[str, Vector]] = field(default_factory=dict)
    ratings: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    scales: dict[str, tuple[float, float]] = field(default_factory=dict)
    live: dict[str, Path] = field(default_factory=dict)
    on_scale: set[str] = field(default_factory=set)
    kinds: dict[str, str] = field(default_factory=dict)
    marks: dict[str, Marks] = field(default_factory=dict)
    decided: dict[str, dict[str, Vector]] = field(default_factory=dict)
    words: dict[str, Marks] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    """What was taken from the first file."""
    unequal: str = ""
    """The column of the probabilities with which labelled rows were drawn, where these differ."""

    @property
    def lengths(self) -> Vector:
        """Words of the outputs."""
        return np.array([word_count(row.output) for row in self.rows], dtype=np.float64)


# Files ---------------------------------------------------------------------------------------------------------------


def read_file(
    name: str,
    columns: Mapping[str, Any] | None,
    limit: int | None = None,
    human: Sequence[str] = (),
    *,
    judges: Sequence[str] = (),
    texts_needed: bool = True,
    orders: Orders = (),
) -> File:
    """Read rows with their human ratings from a file or a benchmark.

    human: columns with human ratings beside those that are found. judges, texts_needed: as in `read_outputs`. orders:
    the words of columns, worst first, by name.
    """
    return read_outputs(
        rows_file(name),
        columns=columns,
        limit=limit,
        also=human,
        judges=judges,
        texts_needed=texts_needed,
        categories=orders,
    )


def beside_file(file: File, what: str) -> Path | None:
    """Return `SET.WHAT.jsonl` beside a file; None if there is none."""
    if file.path is None:
        path = None
    else:
        path = file.path.with_name(f"{file.path.name.split('.')[0]}.{what}.jsonl")
    return path if path is not None and path.exists() and path != file.path else None


def with_metrics(file: File) -> File:
    """Return the file with the values of `SET.metrics.jsonl` beside it as further columns.

    A line of that file is {"id", "metrics": {name: value}}.
    """
    path = beside_file(file, "metrics")
    if path is None:
        return file
    values: dict[str, dict[str, Any]] = {}
    for line, record in enumerate(open_table(path).records, 1):
        metrics = record.get("metrics")
        if (
            not isinstance(metrics, dict)
            or values.setdefault(str(record.get("id")), metrics) is not metrics
        ):
            raise LabelsError(
                f'{path.name}, line {line}: expected {{"id": …, "metrics": {{name: value}}}}, with an id of its own'
            )
    records = [
        values.get(row.id, {}) | record
        for row, record in zip(file.rows, file.records, strict=True)
    ]
    return replace(file, records=records)


def with_ratings(file: File, labels: File) -> tuple[File, list[str]]:
    """Return the file with the human ratings of a file of labels, joined by id, in place of its own; and notes.

    Raises:
        LabelsError: If no id is the same, or equal ones hold different outputs.
    """
    pairs, absent, _ = joined_by_id(labels.origin, labels.rows, file)
    notes = []
    if absent:
        notes.append(
            f"{len(absent)} of {len(labels.rows)} rows of {labels.origin} are not in {file.origin}"
        )
    rows = [replace(row, scores={}, ratings={}, raters={}) for row in file.rows]
    records = list(file.records)
    named = {
        name for own in labels.columns.aspects.values() for name in (own[0], *own[1])
    }
    for j, i in pairs:
        label = labels.rows[j]
        record = labels.records[j]
        ratings = {name: cell for name, cell in record.items() if name in named}
        records[i] = record | records[i] | ratings
        rows[i] = replace(
            rows[i],
            scores=label.scores,
            ratings=label.ratings,
            raters=label.raters,
            comments=label.comments,
            suggested=label.suggested,
            chance=label.chance,
            columns=dict(label.columns) | dict(rows[i].columns),
        )
    columns = replace(
        file.columns,
        texts=dict(labels.columns.texts) | dict(file.columns.texts),
        aspects=labels.columns.aspects,
        marks=labels.columns.marks,
        objects=labels.columns.objects,
        stated=labels.columns.stated,
    )
    joined = replace(
        file,
        rows=rows,
        records=records,
        columns=columns,
        problems=labels.problems,
        notes=(*file.notes, *labels.notes),
    )
    return joined, notes


def grouped(rows: Sequence[Row]) -> list[Row]:
    """Return the rows, near duplicates in one group if the file names no documents and has at most `MANY` rows."""
    return list(
        merge_groups(rows)
        if len(rows) <= MANY and any(r.doc_id.startswith(DERIVED) for r in rows)
        else rows
    )


def places(origin: str, rows: Sequence[Row]) -> dict[str, int]:
    """Return the place of each id.

    Raises:
        LabelsError: If two rows have one id.
    """
    place: dict[str, int] = {}
    for i, row in enumerate(rows):
        if place.setdefault(row.id, i) != i:
            raise LabelsError(
                f"{origin}, row {row.line}: id {row.id!r} is that of row {rows[place[row.id]].line} already; give "
                "every row its own"
            )
    return place


def joined_by_id(
    here: str, rows: Sequence[Row], file: File
) -> tuple[list[tuple[int, int]], list[int], int]:
    """Return the pairs (row here, row of the file) of equal ids, the places here that it lacks, and its rows not here.

    Raises:
        LabelsError: If no id is the same, or equal ones hold different outputs.
    """
    place = places(here, rows)
    index = places(file.origin, file.rows)
    missing = [i for name, i in place.items() if name not in index]
    if len(missing) == len(place):
        raise LabelsError(
            f"no id of {here} is in {file.origin} ({next(iter(place))!r} here, {next(iter(index), 'none')!r} there); "
            "the files are joined by id"
        )
    pairs = [(place[name], j) for name, j in index.items() if name in place]
    for i, j in pairs:
        if (
            "" not in (texts := {rows[i].output, file.rows[j].output})
            and len(texts) > 1
        ):
            raise LabelsError(
                f"id {rows[i].id!r} is another output in {file.origin} (row {file.rows[j].line}) than in "
                f"{here} (row {rows[i].line}); give the rows ids of their own, or join files of the same rows"
            )
    return pairs, missing, len(index) - len(pairs)


def some(names: Iterable[str]) -> str:
    """Return the first names in a list, with the number of further ones."""
    every = list(names)
    return (
        ", ".join(every[:_SHOWN])
        + (f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else "")
        or "none"
    )


# Human ratings -----------------------------------------------------------------------------------------------------


def read_people(
    joined: Judged,
    file: File,
    wanted: Sequence[str],
    scale: tuple[float, float] | None,
    judges: Sequence[str] = (),
    *,
    held: Sequence[Held] = (),
    chosen: bool = False,
) -> None:
    """Read the human ratings wanted into `joined`.

    judges: columns with judges' scores, which are none of people. held: the judges that are compared with them. chosen:
    the user named their columns.

    Raises:
        OptionError: If they answer another question than the labels of a judge.
    """
    in_file = file.aspects()
    joined.notes += file.notes
    if not wanted:
        wanted = _default_ratings(joined, file, in_file, judges)
    if "all" in wanted and "all" not in in_file:
        wanted = in_file
    if file.winner and file.winner not in in_file:
        wanted = [OVERALL if name == file.winner else name for name in wanted]
    aspects = [
        name if name in in_file else name.removeprefix("scores.")
        for name in dict.fromkeys(wanted)
    ]
    for name, aspect in zip(dict.fromkeys(wanted), aspects, strict=True):
        read = human_ratings(file, name, aspect, in_file)
        asked = Asked(file, aspect, read[2], scale, aspects, chosen)
        kept, notes = asked.keep(held)
        joined.notes += (note for note in notes if note not in joined.notes)
        _read_aspect(joined, file, aspect, read, kept)


def _default_ratings(
    joined: Judged, file: File, in_file: Sequence[str], judges: Sequence[str]
) -> Sequence[str]:
    """Return the aspects to compare with if none is named, and note the column that was taken.

    Raises:
        LabelsError: If there is no column with human ratings, or several could be meant.
    """
    wanted = [OVERALL] if OVERALL in in_file else in_file
    if not wanted:
        likely = likely_scores(file.records, file.names())
        if likely:
            candidates = f"it could be one of: {some(likely)}"
        else:
            candidates = f"the columns are: {some(file.names())}"
        raise LabelsError(
            f"{file.origin}: no column with human ratings was found; name it with --human COLUMN; {candidates}"
        )
    guesses = list[str]()
    if not file.compared:
        names = [name for name in file.names() if name not in judges]
        guesses = refuse_rivals(file.columns, file.records, names, "--human ")
    column = file.columns.column_of(OVERALL)
    own, several = file.columns.aspects.get(OVERALL, (column, ()))
    if wanted != [OVERALL] or not column or file.compared:
        return wanted
    if own is None:
        joined.notes.append(
            f"human ratings are the mean of the columns {some(map(repr, several))}"
        )
    elif not is_score(column):
        joined.notes.append(
            f"human ratings are taken from the column {column!r}; --human names another"
        )
    else:
        joined.notes += guesses
    return wanted


def _read_aspect(
    joined: Judged,
    file: File,
    aspect: str,
    read: tuple[Vector, list[tuple[float, ...]], Marks],
    scale: tuple[float, float] | None,
) -> None:
    """Take the human ratings of one aspect, with the ratings of single raters, kind and scale."""
    values, ratings, marks = read
    joined.human[aspect] = values
    joined.words[aspect] = marks
    column = file.columns.column_of(aspect)
    cells = (
        part
        for record in file.records
        for _, part in parts_of(record.get(column or ""))
    )
    reading = marks.shown(cells)
    if reading and not file.compared:
        joined.notes.append(f"human ratings of {aspect!r} are read as {reading}")
    kind = "preference" if file.compared else marks.kind
    # Only two numbers of a longer scale were used so far.
    longer = not marks.values and scale not in (None, marks.scale)
    if kind != "score" and not longer:
        joined.kinds[aspect] = kind
        joined.marks[aspect] = marks
    raters = 0 if file.compared else max(map(len, ratings), default=0)
    if raters > 1:
        table = np.full((len(ratings), raters), np.nan)
        for row, of_row in zip(table, ratings, strict=True):
            row[: len(of_row)] = of_row
        joined.ratings[aspect] = table
    defined = values[~np.isnan(values)]
    rated = [row for row in file.rows if aspect in row.scores]
    people = Ratings(file.origin, column, rated, aspect, marks)
    refuse_reversed(people, stated=scale is not None)
    if scale is None:
        refuse_scales(people)
    else:
        refuse_outside(people, scale)
    stated = scale or _stated_scale(file, aspect, marks)
    shares = stated == (0, 100) and scale is None and np.nanmax(values) <= 1
    if stated is not None and not shares:
        joined.scales[aspect] = stated
    elif len(defined):
        refuse_codes(people)
        refuse_outliers(people)
        singles = (np.array(of_row) for of_row in ratings if len(of_row))
        every = np.concatenate([defined, *singles])
        joined.scales[aspect] = infer_scale(every, len(defined))


def _stated_scale(file: File, aspect: str, marks: Marks) -> tuple[float, float] | None:
    """Return the scale that a column's name or its words state; None if they state none."""
    return named_scale(file.columns.column_of(aspect) or "")[1] or marks.scale


def human_ratings(
    file: File, name: str, aspect: str, in_file: Sequence[str]
) -> tuple[Vector, list[tuple[float, ...]], Marks]:
    """Return the human scores, the single ratings of each row, and the marks of the column's cells.

    Scores are NaN, and single ratings (), if there is none. in_file: the aspects of the file.
    """
    names = file.names()
    rows = file.rows
    if aspect in in_file:
        marks = file.columns.marks.get(aspect, Marks())
        refuse_unordered(
            f"{file.origin}, column {file.columns.column_of(aspect)!r}", aspect, marks
        )
        if aspect in file.problems:
            raise LabelsError(file.problems[aspect])
        values = [row.scores.get(aspect, math.nan) for row in rows]
        return np.array(values), [row.ratings.get(aspect, ()) for row in rows], marks
    if name not in names and "." in name and name.split(".")[0] in names:
        values = [
            read_number(file, row, name, inside(record, name))
            for row, record in zip(rows, file.records, strict=True)
        ]
        if np.isnan(values).all():
            raise LabelsError(
                f"{file.origin}: no row has {name!r}; human ratings are {some(in_file)}"
            )
        return np.array(values), [()] * len(rows), Marks()
    raise LabelsError(
        f"{file.origin}: there is no column or aspect {name!r} with human ratings; aspects: {some(in_file)}; "
        f"columns: {some(names)}"
    )


def own_categories(
    joined: Judged,
    judge: str,
    decisions: Sequence[tuple[Any, Any]],
    aspects: Sequence[str] | None = None,
) -> None:
    """Keep a judge's own decisions.

    decisions: category and pass or fail of each row, None if it has none. aspects: those that it judged; None for all.
    """
    words = dict.fromkeys(str(word) for word, _ in decisions if word)
    for aspect, marks in joined.marks.items():
        if aspects is not None and aspect not in aspects:
            continue
        names = list(map(folded, marks.names))
        places = np.array([_category(names, word) for word, _ in decisions])
        if joined.kinds[aspect] == "binary":
            # A judge may have other words for pass and fail than these raters.
            passed = np.array([_as_number(passed) for _, passed in decisions])
            places = np.where(np.isnan(places), passed, places)
        if not np.isnan(places).all():
            joined.decided.setdefault(judge, {})[aspect] = places
        elif words:
            joined.notes.append(
                f"{judge} has the categories {some(words)}, human ratings of {aspect!r} {some(marks.names)}: "
                "its scores are compared"
            )


def _category(names: Sequence[str], word: Any) -> float:
    """Return the number of a judge's category among those of human ratings; NaN if it is not among them.

    Categories that no score distinguishes are one, "4 stars or 5 stars", and count as the best of them.
    """
    if not word:
        return math.nan
    best = str(word).rpartition(" or ")[2]
    for name in (folded(word), folded(best)):
        if name in names:
            return float(names.index(name))
    return math.nan


def _as_number(passed: Any) -> float:
    return math.nan if passed is None else float(passed)


def read_cell(
    origin: str, line: int | str, column: str, cell: Any, marks: Marks | None = None
) -> tuple[float, ...]:
    """Return the number or numbers in a cell, () where it is empty. marks: how the words of its column are read.

    Raises:
        LabelsError: If the cell cannot be read; the message has its place.
    """
    try:
        return tuple(rating for _, rating in read_ratings(cell, marks))
    except ValueError as error:
        raise LabelsError(f"{origin}, row {line}, column {column!r}: {error}") from None


def read_number(file: File, row: Row, column: str, cell: Any) -> float:
    """Return a cell as a number, the mean of several; NaN if it is empty."""
    commas = file.decimal_comma and isinstance(cell, str) and "," in cell
    value = read_cell(
        file.origin, row.number, column, cell, Marks(decimal_comma=commas)
    )
    return math.fsum(value) / len(value) if value else math.nan


def inside(record: Mapping[str, Any], path: str) -> Any:
    """Return a value inside nested objects, such as `verdict.criteria.fluency.score`; None if a step is missing."""
    value: Any = record
    while path:
        value = parsed(value)
        if not isinstance(value, Mapping):
            return None
        if path in value:
            return value[path]
        step, _, path = path.partition(".")
        value = value.get(step)
    return value


def has_column(file: File, path: str) -> bool:
    """Return True if a row of a file has a value in a column, or at a path."""
    return any(inside(record, path) is not None for record in file.records)


def read_raters(joined: Judged, file: File) -> None:
    """Read `<set>.annotators.jsonl` beside the file: {"id", "annotations": [{aspect: rating}, …]}."""
    beside = beside_file(file, "annotators")
    if beside is None:
        return
    place = places(file.origin, file.rows)
    result = dict[str, dict[int, list[float]]]()
    for line, record in enumerate(open_table(beside).records, 1):
        i = place.get(str(record.get("id")))
        annotations = record.get("annotations")
        for person in (
            annotations if i is not None and isinstance(annotations, list) else []
        ):
            for aspect, cell in person.items() if isinstance(person, Mapping) else ():
                rating = read_cell(beside.name, line, str(aspect), cell)
                result.setdefault(str(aspect), {}).setdefault(i or 0, []).append(
                    rating[0] if rating else math.nan
                )
    for aspect in joined.human:
        if aspect in result and aspect not in joined.ratings:
            raters = max(len(r) for r in result[aspect].values())
            table = np.full((len(joined.rows), raters), np.nan)
            for i, ratings in result[aspect].items():
                table[i, : len(ratings)] = ratings
            joined.ratings[aspect] = table
            note = f"ceilings are from {beside.name}, where positions are not the same persons throughout"
            if note not in joined.notes:
                joined.notes.append(note)


def references_beside(file: File) -> dict[str, list[str]]:
    """Read `<set>.references.jsonl` beside the file: {"doc_id", "references": […]}."""
    beside = beside_file(file, "references")
    result = {}
    for record in [] if beside is None else open_table(beside).records:
        references = record.get("references")
        if "doc_id" in record and isinstance(references, list):
            result[str(record["doc_id"])] = [str(text) for text in references]
    return result


# Verdicts ------------------------------------------------------------------------------------------------------------

#: The columns of a scored CSV that describe a verdict, by what they hold.
CELLS = {
    name: f"judge_{name}"
    for name in ("score", "explanation", "failure", "aspect", "category", "low", "high")
}


#: The score column of a scored CSV, and the prefix of its columns for single aspects.
OF_JUDGE = "judge_score"
OF_AN_ASPECT = "judge_score_"


def verdict_of(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the verdict of a row that `judgesmith score` wrote, as JSON or as columns of a CSV; None without one."""
    verdict = parsed(record.get("verdict"))
    if isinstance(verdict, Mapping):
        return verdict
    if "judge_score" not in record and "judge_failure" not in record:
        return None
    aspects = {
        name.removeprefix(OF_AN_ASPECT): _cells(record, name.removeprefix(OF_JUDGE))
        for name in record
        if isinstance(name, str) and name.startswith(OF_AN_ASPECT)
    }
    return _cells(record) | ({"aspects": aspects} if aspects else {})


def marked(record: Mapping[str, Any], mark: str) -> bool:
    """Return True if `judgesmith score` gave a row a mark: `seen` or `resembles`, in JSON lines or in a table."""
    return str(record.get(mark, record.get(f"judge_{mark}"))).lower() in ("true", "yes")


def score_column(aspect: str | None, *, nested: bool) -> str:
    """Return the name of the column with a verdict's score, or with that of one of its aspects.

    nested: whether verdicts are JSON, and not columns of a table.
    """
    if aspect is None:
        return "verdict.score" if nested else OF_JUDGE
    return f"verdict.aspects.{aspect}.score" if nested else f"{OF_AN_ASPECT}{aspect}"


def _cells(record: Mapping[str, Any], of: str = "") -> dict[str, Any]:
    """Return the cells of a scored CSV for a verdict, or for one of its aspects."""
    return {name: record.get(f"{column}{of}") for name, column in CELLS.items()}


def aspects_of(verdicts: Iterable[Mapping[str, Any]]) -> list[str]:
    """The aspects that verdicts say they are on; none where they say nothing."""
    names = (verdict.get("aspect") for verdict in verdicts)
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def verdict_on(verdict: Mapping[str, Any], aspect: str | None) -> Mapping[str, Any]:
    """Return a verdict's part on an aspect, {} without one; the whole verdict for None."""
    if aspect is None:
        return verdict
    several = verdict.get("aspects")
    one = several.get(aspect) if isinstance(several, Mapping) else None
    return one if isinstance(one, Mapping) else {}


def several_of(verdicts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the aspects that verdicts score separately; none if each has one score."""
    held = (verdict.get("aspects") for verdict in verdicts)
    return list(
        dict.fromkeys(
            str(name)
            for aspects in held
            if isinstance(aspects, Mapping)
            for name in aspects
        )
    )


def speaking_of(
    joined: Judged, name: str, several: Sequence[str]
) -> dict[str, str | None]:
    """Return the human aspects to compare a judge of several aspects with, each with the judge's name for it.

    None stands for the judge's overall score; if it judges none of them, all are compared with that, which is noted.
    """
    by_name = {plain_name(aspect): aspect for aspect in several}
    named: dict[str, str | None] = {
        human: by_name[plain_name(human)]
        for human in joined.human
        if plain_name(human) in by_name
    }
    if OVERALL in joined.human:
        named.setdefault(OVERALL, None)
    if not named:
        joined.notes.append(
            f"{name} judged {some(several)}; its overall score is compared with human {some(joined.human)} here"
        )
    return named or dict.fromkeys(joined.human)


def plain_name(aspect: str) -> str:
    """Return the form in which names of rated and of judged aspects are compared."""
    return aspect.removeprefix("zscores.").removeprefix("scores.").casefold()


def matched(joined: Judged, name: str, aspects: Iterable[str]) -> list[str]:
    """Return the aspects of human ratings named like judged aspects; all of them, with a note, if none matches."""
    by_name = {plain_name(aspect): aspect for aspect in aspects}
    result = [human for human in joined.human if plain_name(human) in by_name]
    if by_name and not result:
        text = ", ".join(map(repr, by_name.values()))
        joined.notes.append(
            f"{name} judged {text}; its score is compared with human {some(joined.human)} here"
        )
    return result or list(joined.human)
