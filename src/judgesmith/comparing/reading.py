"""Inputs of `judgesmith compare`: rows of versions with a judge's scores, and what people rated of them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.comparing.kept import Kept, is_kept, read_kept
from judgesmith.datasets.benchmarks.registry import PREFIX
from judgesmith.datasets.loading import Compared, read_compared
from judgesmith.datasets.marks import pointed, unrated
from judgesmith.datasets.meanings import (
    holds_ratings,
    likely_scores,
    speaks_of_machine,
)
from judgesmith.datasets.preferences import Pairs, side_pairs
from judgesmith.datasets.row import Row
from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.few import Scored, people_of, read_few, roles_of
from judgesmith.evaluating.sources import (
    VERDICTS,
    inside,
    read_file,
    some,
    verdict_of,
)
from judgesmith.programs.contract import ratings_of
from judgesmith.rows import DERIVED
from judgesmith.running.contracts import Held, contract_in
from judgesmith.running.opening import names_in, rows_file

#: Columns of so many different names at most may be those of versions.
MOST_GUESSED = 12


@dataclass
class Answer:
    """One output of a version with its scores, NaN where there is none."""

    version: str
    id: str
    document: str
    output: str
    judge: float = math.nan
    human: float = math.nan
    seen: bool = False
    """The judge was compiled from it."""
    suggested: bool = False
    """`suggest` chose it to be rated, so that it is no random one."""
    chance: float = math.nan
    """The probability with which it was drawn to be rated, where `judgesmith label` drew it."""


@dataclass
class Versions:
    """Answers of all versions, those of files before those that were kept.

    decisions: human ratings of fail and pass. wins: scores are shares of comparisons won. marks: the judges that scored
    the answers, each with where it was found.
    """

    answers: list[Answer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """The versions of the files that are compared, in the order in which they first stand; not those of a history."""
    origin: str = ""
    aspect: str = ""
    decisions: tuple[float, float] | None = None
    wins: bool = False
    judged: bool = True
    """A judge scored the answers; else their scores are all 0, which tells nothing."""
    marks: dict[str, str] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    """What the judge that scored them was compiled from."""

    @property
    def mark(self) -> str:
        """What tells the judge of the answers from others; "" if nothing does."""
        return next(iter(self.marks), "")

    def add_marks(self, marks: Iterable[str], where: str) -> None:
        """Add the judges of some answers.

        Raises:
            OptionError: If another judge scored the answers before.
        """
        for mark in marks:
            self.marks.setdefault(mark, where)
        if len(self.marks) > 1:
            (one, first), (other, second) = list(self.marks.items())[:2]
            raise OptionError(
                f"{first} was scored by {one}, {second} by {other}: scores of different judges cannot be compared; "
                "score all rows with one judge, or name its column with --judge"
            )


@dataclass(frozen=True)
class Request:
    """What the user asked for: how files are read."""

    human: Sequence[str] = ()
    judge: str | None = None
    aspect: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def files(self) -> list[str]:
        """The files with human ratings; other names are columns."""
        return [
            name
            for name in self.human
            if name.startswith(PREFIX) or Path(name).is_file()
        ]

    @property
    def columns_of_ratings(self) -> list[str]:
        """The columns with human ratings."""
        return [name for name in self.human if name not in self.files]


def read_versions(
    names: Sequence[str], history: Sequence[Path], request: Request
) -> Versions:
    """Read files of answers, ratings beside them, and earlier versions.

    Raises:
        LabelsError: If a file cannot be read, or does not say which version an answer is of.
        OptionError: If the answers were scored by different judges.
    """
    result = Versions()
    parts = [_part(name, request) for name in names]
    for column in request.columns_of_ratings:
        if not any(_is_in(name, column) for name in names):
            raise LabelsError(
                f"{' and '.join(part.origin for part in parts)}: there is no column, and no file, {column!r}"
            )
    _name_versions(names, parts)
    for part in parts:
        _join(result, part)
    result.names = list(dict.fromkeys(one.version for one in result.answers))
    if result.wins:  # sides are drawn at random, so that what stands first says nothing
        result.names.sort()
    result.origin = " and ".join(part.origin for part in parts)
    marks = list(result.marks)
    for name in request.files:
        _rate(result, name, request)
    for path in history:
        if is_kept(path):
            _join_kept(result, read_kept(path), path.name)
        else:
            part = _part(str(path), request)
            _name_versions([str(path)], [part])
            _join(result, part)
    if history and not marks and result.marks:
        result.notes.append(
            f"{result.origin} does not say which judge scored it: it is taken for {result.mark}, as of the history"
        )
    if all(math.isnan(one.judge) for one in result.answers):
        _without_judge(result)
    return result


def _without_judge(result: Versions) -> None:
    """Let people's ratings alone decide.

    Raises:
        OptionError: If there are none either.
    """
    if all(math.isnan(one.human) for one in result.answers):
        raise OptionError(
            f"{result.origin}: no row has a verdict of a judge, nor a rating; name the judge's scores with --judge "
            "COLUMN, or people's ratings with --human COLUMN"
        )
    result.notes.append("no judge scored these rows: people's ratings alone decide")
    result.judged = False
    for one in result.answers:
        one.judge = 0.0


# Files ---------------------------------------------------------------------------------------------------------------


@dataclass
class _Part:
    """Answers of one file; their version is "" where the file does not say it."""

    origin: str
    answers: list[Answer]
    marks: list[str]
    notes: list[str] = field(default_factory=list)
    aspect: str = ""
    decisions: tuple[float, float] | None = None
    wins: bool = False
    held: list[Held] = field(default_factory=list)


def _part(name: str, request: Request) -> _Part:
    path = rows_file(name)
    pairs = read_compared(path, request.columns)
    if pairs is None:
        return _of_rows(name, request)
    notes = []
    if not any(pair.a.system for pair, _ in pairs):
        sides = _versions_of_sides([record for _, record in pairs], request)
        if sides:
            request = replace(request, columns={**request.columns, **sides})
            pairs = read_compared(path, request.columns) or pairs
            named = " and ".join(map(repr, sides.values()))
            notes.append(f"the versions are taken from the columns {named}")
    part = _of_pairs(path, pairs, request)
    part.notes += notes
    return part


def _versions_of_sides(
    records: Sequence[Mapping[str, Any]], request: Request
) -> dict[str, str]:
    """Return the columns that name the versions of both outputs, by role; {} where none or several may.

    Their names differ in the side alone, as those of the outputs do, and their cells are the names of a few versions.
    """
    names = list(dict.fromkeys(name for record in records for name in record))
    found = []
    for one, other in side_pairs(names):
        cells = [(record.get(one), record.get(other)) for record in records]
        versions = {str(cell) for pair in cells for cell in pair}
        apart = all(first and second and first != second for first, second in cells)
        if apart and len(versions) <= MOST_GUESSED < len(records):
            found.append({"system_a": one, "system_b": other})
    return found[0] if len(found) == 1 else {}


@dataclass(frozen=True)
class _Guess:
    """Columns that nobody named: people's ratings and a judge's scores; "" where none or several may be one."""

    human: str = ""
    judge: str = ""

    @property
    def notes(self) -> list[str]:
        """What was taken."""
        notes = []
        if self.judge:
            notes.append(
                f"the judge's scores are taken from the column {self.judge!r}; --judge names another"
            )
        if self.human:
            notes.append(
                f"human ratings are taken from the column {self.human!r}; --human names another"
            )
        return notes

    @classmethod
    def of(cls, name: str, request: Request) -> _Guess:
        """Return what a file's columns of numbers and words could be, where only one could be each."""
        if request.judge and request.human:
            return cls()
        file = read_file(name, request.columns, orders=request.orders)
        taken = {*file.columns.texts.values(), request.judge}
        taken |= {column for own in file.columns.aspects.values() for column in own[:1]}
        if any(verdict_of(record) for record in file.records):
            taken |= set(file.names())
        names = [one for one in file.names() if one not in taken]
        records: Sequence[Mapping[str, Any]] = file.records
        if file.decimal_comma:
            records = [
                {one: pointed(cell) for one, cell in record.items()}
                for record in records
            ]
        people = [
            one for one in likely_scores(records, names) if not speaks_of_machine(one)
        ]
        machines = [
            one
            for one in names
            if speaks_of_machine(one) and holds_ratings(records, one)
        ]
        human = judge = ""
        if not request.judge and len(machines) == 1:
            judge = machines[0]
        if not request.human and not file.aspects() and len(people) == 1:
            human = people[0]
        return cls(human, judge)


def _of_rows(name: str, request: Request) -> _Part:
    """Read a file of one output a row."""
    guess = _Guess.of(name, request)
    own = [one for one in request.columns_of_ratings if _is_in(name, one)]
    if guess.human:
        own = [guess.human]
    judge = request.judge or guess.judge
    options: dict[str, Any] = {
        "human": own,
        "judges": [judge] if judge else (),
        "aspect": request.aspect,
        "columns": request.columns,
        "orders": request.orders,
        "of_versions": True,
    }
    scored = read_few(name, **options, labels_needed=False)
    wanted = not request.human and not own and any(row.scores for row in scored.rows)
    if wanted:
        scored = read_few(name, **options)
    scored.notes += guess.notes
    nothing = np.full(len(scored.rows), math.nan)
    scores = next(iter(scored.judges.values()), nothing)
    answers = []
    for k, row in enumerate(scored.rows):
        document = row.doc_id
        if document.startswith(DERIVED) and not row.source:
            document = f"id {row.id}"  # made from the output, which differs
        one = Answer(str(row.system or ""), row.id, document, row.output)
        one.judge = float(scores[k])
        one.human = float(scored.human[k])
        one.seen = k in scored.seen
        one.suggested = row.suggested
        one.chance = row.chance
        answers.append(one)
    marks = _marks((row.columns for row in scored.rows), judge)
    rated = scored.aspect if own or wanted else ""
    part = _Part(scored.origin, answers, marks, scored.notes, rated, scored.decisions)
    part.held = scored.held
    return part


def _is_in(name: str, column: str) -> bool:
    """Return whether a file has a column, or a path that begins with one."""
    there = names_in(rows_file(name))
    return column in there or column.split(".")[0] in there


def _of_pairs(
    path: Path, pairs: Sequence[tuple[Compared, Mapping[str, Any]]], request: Request
) -> _Part:
    """Read a file of two outputs a row: each has the share of the comparison that it won."""
    records = [record for _, record in pairs]
    choices = _Choices.of(path.name, records, request)
    answers = []
    again = Counter(pair.id for pair, _ in pairs)
    twice = [name for name, count in again.items() if count > 1]
    if twice:
        raise LabelsError(
            f"{path.name}: id {twice[0]!r} stands in {again[twice[0]]} rows; give every row its own"
        )
    for line, (pair, record) in enumerate(pairs, 1):
        share = choices.share(record, line)
        won = math.nan if pair.won is None or request.files else pair.won
        document = _input_of(pair)
        for side, row in enumerate((pair.a, pair.b)):
            if not row.system:
                raise LabelsError(
                    f"{path.name}, row {line}: no column says which version wrote the output; name both: --columns "
                    "system_a=NAME --columns system_b=NAME"
                )
            one = Answer(str(row.system), pair.id, document, row.output)
            one.judge = share if side == 0 else 1 - share
            one.human = won if side == 0 else 1 - won
            answers.append(one)
    part = _Part(path.name, answers, _marks(records, choices.named), wins=True)
    if choices.named and not request.judge:
        part.notes.append(
            f"the judge's choices are taken from the column {choices.named!r}; --judge names another"
        )
    part.aspect = "preference"
    return part


def _input_of(pair: Compared) -> str:
    """Return the input that both outputs answer, by its text or by the id of the row."""
    return pair.a.doc_id if pair.a.source else f"id {pair.id}"


@dataclass(frozen=True)
class _Choices:
    """Where a judge's preferences stand in the rows of a file."""

    origin: str
    column: str
    pairs: Pairs | None

    @classmethod
    def of(
        cls, origin: str, records: Sequence[Mapping[str, Any]], request: Request
    ) -> _Choices:
        names = list(dict.fromkeys(name for record in records for name in record))
        pairs = Pairs.find(names, request.columns, decided=False)
        if request.judge:
            return cls(origin, request.judge, pairs)
        for column in VERDICTS:
            if any(inside(record, column) is not None for record in records):
                return cls(origin, column, pairs)
        found = [] if pairs is None else pairs.judged_by(records, names)
        machines = [one for one in found if speaks_of_machine(one)]
        return cls(origin, machines[0] if len(machines) == 1 else "", pairs)

    @property
    def named(self) -> str:
        """The column, unless verdicts of `score` stand there."""
        return "" if self.column in VERDICTS else self.column

    def share(self, record: Mapping[str, Any], line: int) -> float:
        """Return the judge's share for the first output, NaN without one.

        Raises:
            LabelsError: If the cell is neither a share nor the name of an output.
        """
        cell: Any = inside(record, self.column) if self.column else None
        if unrated(cell):
            return math.nan
        where = f"{self.origin}, row {line}, column {self.column!r}"
        with suppress(TypeError, ValueError):
            value = float(cell)
            if 0 <= value <= 1 and self.column in VERDICTS:
                return value
        if self.pairs is None:
            raise LabelsError(f"{where}: {cell!r} names no output")
        try:
            return self.pairs.share(cell, record)
        except ValueError as error:
            raise LabelsError(f"{where}: {error}") from None


def _marks(records: Iterable[Mapping[str, Any]], judge: str) -> list[str]:
    """Return what tells the judges of scored rows from others. judge: the column of one; "" for verdicts."""
    if judge:
        return [f"column {judge!r}"]
    found = dict[str, None]()
    for record in records:
        told = contract_in(record)
        if inside(record, "verdict") is None and not told:
            continue
        name = str(told.get("judge") or "a judge")
        model = str(told.get("model") or "")
        mark = str(record.get("judge") or record.get("judge_fingerprint") or "")
        words = f"{name} with {model}" if model else name
        found[f"{words} ({mark})" if mark else words] = None
    return list(found)


def _name_versions(names: Sequence[str], parts: Sequence[_Part]) -> None:
    """Name the version of answers after their file, where the file does not say it or says the same as another.

    Raises:
        LabelsError: If a single file does not say it.
    """
    if len(parts) == 1:
        part = parts[0]
        lacking = sum(not one.version for one in part.answers)
        if lacking:
            raise LabelsError(
                f"{part.origin}: {lacking} of {len(part.answers)} rows do not say which version they are of; name the "
                "column with --columns system=NAME, give a file for each version, or rename columns (answer v1, "
                "answer v2)"
            )
        return
    stems = [Path(name).name.split(".")[0] for name in names]
    if len(set(stems)) < len(stems):
        stems = [str(name) for name in names]
    of_files = [{one.version for one in part.answers} for part in parts]
    for k, (stem, part) in enumerate(zip(stems, parts, strict=True)):
        own = of_files[k]
        elsewhere = set[str]().union(*of_files[:k], *of_files[k + 1 :])
        if len(own) == 1 and own <= elsewhere | {""}:
            for one in part.answers:
                one.version = stem
        elif "" in own:
            raise LabelsError(
                f"{part.origin}: some rows do not say which version they are of; complete the column, or remove it"
            )


def _join(result: Versions, part: _Part) -> None:
    """Add the answers of a file.

    Raises:
        LabelsError: If files of comparisons and of single outputs are mixed.
        OptionError: If another judge scored it.
    """
    if result.answers and part.wins != result.wins:
        raise LabelsError(
            f"{part.origin} compares two outputs a row, and another file has one: give files of one kind"
        )
    result.add_marks(part.marks, part.origin)
    result.wins = part.wins
    result.held = result.held or part.held
    result.aspect = result.aspect or part.aspect
    result.decisions = result.decisions or part.decisions
    result.notes += (note for note in part.notes if note not in result.notes)
    result.answers += part.answers


def _join_kept(result: Versions, kept: Sequence[Kept], origin: str) -> None:
    """Add kept answers, and kept ratings to answers that are there."""
    result.add_marks(dict.fromkeys(one.judge for one in kept), origin)
    there = {(one.version, one.document, one.id): one for one in result.answers}
    moved = 0
    for old in kept:
        score = math.nan if old.score is None else old.score
        human = math.nan if old.human is None else old.human
        one = there.get(old.key)
        if one is None:
            added = Answer(old.version, old.id, old.document, "", score, human)
            result.answers.append(added)
            continue
        if math.isnan(one.human):
            one.human = human
        moved += bool(abs(one.judge - score) > 1e-9)
    if moved:
        result.notes.append(
            f"{moved} answers have another score by the judge than in {origin}; the new ones are taken"
        )


# Ratings -------------------------------------------------------------------------------------------------------------


def _rate(result: Versions, name: str, request: Request) -> None:
    """Add the ratings of a file to the answers with the same id and output, or the same id and version."""
    if result.wins:
        _rate_pairs(result, name, request)
        return
    scored = Scored(Path(name).name, held=result.held)
    file = read_file(
        name,
        roles_of(name, result.held, request.columns),
        texts_needed=False,
        orders=request.orders,
    )
    chosen = bool(request.aspect or ratings_of(request.columns))
    ratings = people_of(scored, file, request.aspect, chosen=chosen)
    result.aspect = scored.aspect
    result.decisions = scored.decisions
    result.notes += scored.notes
    by_id = defaultdict[str, list[Answer]](list)
    for one in result.answers:
        by_id[one.id].append(one)
    absent = 0
    for row, rating in zip(file.rows, ratings.tolist(), strict=True):
        if math.isnan(rating):
            continue
        found = _meant(by_id[row.id], row)
        if len(found) > 1:
            raise LabelsError(
                f"{file.origin}, row {row.line}: id {row.id!r} is an answer of {some(one.version for one in found)}; "
                "give ratings with the output, or with the version in a column `system`"
            )
        if not found:
            absent += 1
            continue
        found[0].human = rating
        found[0].suggested = row.suggested
        found[0].chance = row.chance
    if absent == len(file.rows):
        raise LabelsError(
            f"no rating of {file.origin} belongs to an answer of {result.origin}: ids or outputs differ; rate rows of "
            "these files"
        )
    if absent:
        result.notes.append(
            f"{absent} of {len(file.rows)} ratings of {file.origin} belong to no answer of {result.origin}"
        )


def _meant(answers: Sequence[Answer], row: Row) -> list[Answer]:
    """Return those of the answers with a row's id that the row means."""
    found = list(answers)
    if row.output:
        found = [one for one in found if one.output == row.output]
    if row.system and len(found) > 1:
        found = [one for one in found if one.version == str(row.system)]
    return found


def _rate_pairs(result: Versions, name: str, request: Request) -> None:
    """Add people's preferences to the comparisons of the same two outputs, whichever stands first."""
    path = rows_file(name)
    pairs = read_compared(path, request.columns)
    if pairs is None:
        raise LabelsError(
            f"{path.name} has no two outputs a row, as {result.origin} has; give people's choice beside both outputs"
        )
    # Short outputs may be equal for several inputs: then only the input tells whose choice it is.
    won = defaultdict[tuple[str, str], dict[str, float]](dict)
    for pair, _ in pairs:
        if pair.won is not None:
            document = _input_of(pair)
            won[pair.a.output, pair.b.output][document] = pair.won
            won[pair.b.output, pair.a.output][document] = 1 - pair.won
    found = 0
    for first, second in zip(result.answers[::2], result.answers[1::2], strict=True):
        shares = won.get((first.output, second.output), {})
        share = shares.get(first.document)
        if share is None and len(set(shares.values())) > 1:
            raise LabelsError(
                f"{path.name}: people chose differently between the outputs of row {first.id!r} of {result.origin}, "
                "for several inputs; give the inputs (source) in both files"
            )
        if share is None:
            share = next(iter(shares.values()), None)
        if share is not None:
            first.human = share
            second.human = 1 - share
            found += 1
    if not found:
        raise LabelsError(
            f"no comparison of {path.name} is one of {result.origin}: the outputs differ; rate rows of that file"
        )
