"""The columns of a file and their roles, and a row out of each record by them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias

from judgesmith.conversation import parsed
from judgesmith.datasets.marks import Marks, named_scale, pointed
from judgesmith.datasets.meanings import (
    by_machine,
    guessed,
    likely_scores,
    nested_ratings,
    parts_of,
)
from judgesmith.datasets.orders import Orders, order_of, read_marks
from judgesmith.datasets.rater_columns import rater_columns
from judgesmith.datasets.ratings import read_ratings
from judgesmith.datasets.roles import ROLES, is_score, plain_name
from judgesmith.datasets.row import OVERALL, Row
from judgesmith.errors import LabelsError, OptionError
from judgesmith.rows import Item, as_text, is_missing, source_key

#: Cells with ratings, each with its rater, "" where it is not named by the column.
_Cells: TypeAlias = Sequence[tuple[str, Any]]
_ASPECT_COLUMN = re.compile(r"scores?[._](?P<aspect>.*\D.*)", re.IGNORECASE)


#: Aspect -> its score column (or None), and its raters' columns.
Aspects: TypeAlias = dict[str, tuple[str | None, tuple[str, ...]]]


@dataclass(slots=True)
class _Scores:
    """The ratings in a record, each by aspect. problems: why one cannot be read, with its column."""

    scores: dict[str, float] = field(default_factory=dict)
    ratings: dict[str, tuple[float, ...]] = field(default_factory=dict)
    raters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


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
        roles, raters = _chosen_columns(chosen or {}, names, origin)
        roles |= _usual_columns(roles, raters, names, origin)
        roles |= guessed(records, names, roles)
        if texts_needed and "output" not in roles and "messages" not in roles:
            raise LabelsError(
                f"{origin}: no column for the output text; {_listed(names)}; name it with --columns output=NAME"
            )
        score = roles.pop("score", None)
        objects = roles.pop("scores", None)
        stated = score is not None or objects is not None or bool(raters)
        free = [name for name in names if name not in roles.values()]
        aspects: Aspects = {}
        if score is not None or raters:
            aspects[aspect or _own_aspect(score)] = (score, raters)
        elif objects is None:
            people = rater_columns(free, records)
            aspects, objects = _score_columns(
                free, origin, aspect, people, needed=scores_needed
            )
        further: Aspects = {}
        for name in also:
            if (column := _same(name, names)) is not None:
                further[name] = (column, ())
        if not aspects and not further and objects is None:
            likely = _likely_column(free, origin, records, needed=scores_needed)
            if likely is not None:
                aspects[aspect or OVERALL] = (likely, ())
        if scores_needed and not aspects and objects is None:
            raise LabelsError(
                f"{origin}: no column with scores{_of_machines(free)}; {_listed(names)}; name it with --columns "
                "score=NAME"
            )
        return cls(roles, further | aspects, objects, origin=origin, stated=stated)

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
        read = self._read_scores(record)
        try:
            item = Item.by_roles(record, self.texts)
        except OptionError as error:
            raise LabelsError(f"{self.origin}, row {line}, {error}") from None
        row_id, doc_id, group, system, chosen_by, settled_by = (
            as_text(record.get(self.texts[role])) if role in self.texts else None
            for role in ("id", "doc_id", "group", "system", "chosen_by", "settled_by")
        )
        row_id = row_id or str(line)
        # Without a source the text itself is the document: a line number would join rows of unrelated files.
        doc_id = doc_id or source_key(item.source or item.output or row_id)
        row = Row(
            item.output,
            item.source,
            item.context,
            item.reference,
            columns=record,
            id=row_id,
            system=system,
            doc_id=doc_id,
            group=group or doc_id,
            scores=read.scores,
            ratings=read.ratings,
            line=line,
            raters=read.raters,
            suggested=chosen_by == "suggest",
            settled=bool(settled_by),
            comments=self._comments(record, read.scores),
            chance=self._chance(record, line),
        )
        return row, read.problems

    def _chance(self, record: Mapping[str, Any], line: int) -> float:
        """Return the probability with which a record was drawn to be labelled; NaN where it says nothing of it.

        Raises:
            LabelsError: If it is no probability.
        """
        column = self.texts.get("label_chance")
        cell = None if column is None else as_text(record.get(column))
        if not cell:
            return math.nan
        try:
            chance = float(cell)
        except ValueError:
            chance = math.nan
        if not 0 < chance <= 1:
            raise LabelsError(
                f"{self.origin}, row {line}, column {column!r}: {cell!r} is no probability in (0, 1]; correct it, or "
                "remove the column"
            )
        return chance

    def _read_scores(self, record: Mapping[str, Any]) -> _Scores:
        """Return the ratings of a record, and what is wrong with the others."""
        read = _Scores()
        for aspect, (column, own, singles) in self._score_cells(record).items():
            try:
                recorded = self._ratings(aspect, own)
                single = self._ratings(aspect, singles)
            except ValueError as error:
                read.problems[aspect] = f"column {column!r}: {error}"
                continue
            recorded = recorded or single
            if recorded:
                _, values = zip(*recorded, strict=True)
                read.scores[aspect] = math.fsum(values) / len(values)
            rated = single if len(single) > 1 else recorded
            if not rated:
                continue
            people, several = zip(*rated, strict=True)
            if len(several) > 1:
                read.ratings[aspect] = several
            if all(people):
                read.raters[aspect] = people
        return read

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


def _of_machines(names: Sequence[str]) -> str:
    machines = ", ".join(repr(name) for name in names if by_machine(name))
    if machines:
        return f" of people, as the name of {machines} says that a machine gave it"
    return ""


def _listed(names: Sequence[str]) -> str:
    return "the columns are: " + ", ".join(names)


def _best(role: str, names: Sequence[str], origin: str | None) -> str | None:
    """The column that fits the role best, None if none does.

    Raises LabelsError if two fit equally well (without an origin there is none then); of several raters the first is
    taken.
    """
    for tier in ROLES[role]:
        hits = [name for name in names if plain_name(name) in tier]
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


def _usual_columns(
    taken: Mapping[str, str], raters: Sequence[str], names: Sequence[str], origin: str
) -> dict[str, str]:
    """Return the columns with the usual names of roles that have none; those of scores are looked for later."""
    result: dict[str, str] = {}
    for role in ROLES:
        if role in taken or role in ("score", "scores"):
            continue
        used = (*taken.values(), *raters, *result.values())
        free = [name for name in names if name not in used]
        if (column := _best(role, free, origin)) is not None:
            result[role] = column
    return result


def _own_aspect(score: str | None) -> str:
    """Return the aspect that the name of a score's column says."""
    return OVERALL if score is None or is_score(score) else named_scale(score)[0]


def _likely_column(
    names: Sequence[str],
    origin: str,
    records: Sequence[Mapping[str, Any]],
    *,
    needed: bool,
) -> str | None:
    """Return the only column that could be the score by its values.

    Raises LabelsError for several, if one is needed.
    """
    likely = [*likely_scores(records, names), *nested_ratings(records, names)]
    if len(likely) > 1 and needed:
        raise LabelsError(
            f"{origin}: columns {' and '.join(map(repr, likely[:6]))} could each be the score; say which with "
            "--columns score=NAME, or --columns rater_score=NAME for each person's"
        )
    return likely[0] if len(likely) == 1 else None


def _score_columns(
    names: Sequence[str],
    origin: str,
    aspect: str | None,
    raters: tuple[str, ...],
    *,
    needed: bool,
) -> tuple[Aspects, str | None]:
    """The score columns of each aspect, and the column of {aspect: score} objects if there is one."""
    objects = _best("scores", names, origin)
    aspects: Aspects = {}
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
            if plain_name(name) == word:
                return name
    for name in names:
        if named_scale(name)[1] is not None and is_score(name):
            return name
    return None
