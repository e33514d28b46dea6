"""Data of `judgesmith report`: rows and verdicts of a scored file, which may hold anything, and their sums."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from judgesmith.agreement.correlation import Vector, id_codes, midranks
from judgesmith.agreement.meta.inputs import MANY, EvaluationOptions
from judgesmith.datasets.loading import Compared, read_compared
from judgesmith.datasets.marks import Marks
from judgesmith.datasets.row import OVERALL, Row
from judgesmith.datasets.sheet import Outputs
from judgesmith.errors import LabelsError
from judgesmith.evaluating.decided import estimate, places
from judgesmith.evaluating.sources import (
    human_ratings,
    marked,
    plain_name,
    read_file,
    verdict_of,
)
from judgesmith.rows import as_text
from judgesmith.running.contracts import contract_in
from judgesmith.running.trust import Trust
from judgesmith.signatures.values import (
    CriterionScore,
    ErrorSpan,
    Opinion,
    ScoreInterval,
    Verdict,
)
from judgesmith.tables import plain

GROUNDED = ("exact", "normalised", "fuzzy")
_LABELS = 20  # errors that one piece of text names; more are counted


@dataclass(frozen=True, slots=True)
class Shown:
    """A row with its verdict, whose score is NaN where its `failure` says why and whose errors lie in the output."""

    row: Row
    anchor: str
    """Its place in the page, unique."""
    verdict: Verdict
    human: Mapping[str, float] = field(default_factory=dict)
    """Human ratings by aspect, NaN where there is none."""
    aspect: str = ""
    """What the score is of, where the row has it."""
    judge: str = ""
    deferred: bool = False
    """Left to a person."""
    seen: bool = False
    """Used to compile the judge."""
    resembles: bool = False
    """Its output is nearly equal to a labelled one of another source."""
    shades: tuple[tuple[str, int], ...] = ()
    """The output in pieces, with how little its judge expected each, from 0 to 3; empty where that is not known."""
    other: Row | None = None
    """The second of two outputs that were compared; the score is the chance that the first is preferred."""

    @property
    def score(self) -> float:
        """The verdict's score."""
        return self.verdict.score


def grade(error: ErrorSpan) -> int:
    """The severity as 1 to 5, 0 where there is none."""
    if math.isnan(error.severity):
        return 0
    return min(5, max(1, math.floor(error.severity + 0.5)))


class Piece(NamedTuple):
    """A part of an output between two ends of errors.

    errors: at most 20 of the `covering` ones, by number from 0. grade: of the gravest of all.
    """

    text: str
    errors: tuple[int, ...]
    covering: int
    grade: int


class Mean(NamedTuple):
    """A mean with its 95 % interval over documents, NaN for fewer than two documents. n: values."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Side:
    """Scores of one aspect for each row: the judge's, people's, and their distance in ranks of 100.

    NaN where there is none.
    """

    name: str
    score: Vector
    human: Vector
    gap: Vector


@dataclass(frozen=True, slots=True)
class Scored:
    """A scored file.

    sides: the verdicts' own score first, then by aspect. marks: marks of the cells of the human ratings that the
    verdicts' score is compared with.
    """

    origin: str
    rows: tuple[Shown, ...]
    sides: tuple[Side, ...]
    notes: tuple[str, ...] = ()
    marks: Marks = field(default_factory=Marks)
    trust: Trust = field(default_factory=Trust)
    """How far the scores may be trusted."""

    @property
    def compared(self) -> bool:
        """True if a row is two outputs of which one is preferred."""
        return self.marks.kind == "preference"

    def passed(self) -> Side | None:
        """Who passed, 1 or 0, by judge and by people; None where the judge decides no such thing."""
        if self.compared:  # who prefers the first output
            won = np.array(
                [
                    _PREFERRED.get(row.verdict.category or "", math.nan)
                    for row in self.rows
                ]
            )
            apart = np.where(
                np.isnan(won + self.sides[0].human),
                math.nan,
                won != self.sides[0].human,
            )
            return Side("", won, self.sides[0].human, apart)
        numbers = {None: math.nan, True: 1.0, False: 0.0}
        judge = np.array([numbers[row.verdict.passed] for row in self.rows])
        human = self.sides[0].human
        if np.isnan(judge).all():
            return None
        if self.marks.kind != "binary":
            return Side("", judge, np.full(len(judge), np.nan), judge)
        people = places(human, self.marks.levels)
        return Side("", judge, people, np.abs(judge - people))

    @property
    def trusted(self) -> str:
        """How far the scores may be trusted, in words."""
        rated = not np.isnan(self.sides[0].human).all()
        return self.trust.in_words(rated=rated)

    def word(self, rating: float) -> str:
        """A rating of people as they gave it: a category, or a number."""
        if self.marks.kind == "score" or not self.marks.levels:
            return plain(rating)
        return self.marks.names[
            int(np.abs(np.array(self.marks.levels) - rating).argmin())
        ]


#: Winners, and what people's preferences are as numbers.
_PREFERRED = {"b": 0.0, "tie": 0.5, "a": 1.0}

# Reading -------------------------------------------------------------------------------------------------------------


def read_scored(
    path: Path,
    *,
    human: str | None = None,
    columns: Mapping[str, Any] | None = None,
    orders: Mapping[str, Sequence[str]] | None = None,
) -> Scored:
    """Return rows that `judgesmith score` wrote (.jsonl, or .csv without errors and criteria).

    human: the column, path or aspect with human ratings to compare the verdicts with; by default the column with a
    usual name. orders: the words of columns, worst first, by name.

    Raises:
        LabelsError: If a file cannot be read (with the line), has no verdict, or lacks the column.
    """
    if human is None:
        pairs = read_compared(path, columns)
        if pairs is not None:
            return _compared(path, pairs)
    named = () if human is None else (human,)
    file = read_file(str(path), columns, human=named, orders=orders or {})
    verdicts = [verdict_of(record) for record in file.records]
    if all(verdict is None for verdict in verdicts):
        raise LabelsError(
            f"{path.name}: no row has a verdict; give a file that `judgesmith score` wrote"
        )
    ratings = _ratings(file, human)
    anchors = Counter[str]()
    shown = []
    for k, row in enumerate(file.rows):
        anchor = _anchor(row.id, anchors)
        shown.append(_shown(row, file.records[k], verdicts[k], ratings[k], anchor))
    aspects = _aspects(shown)
    standard = _standard(aspects, shown)
    if human is not None:
        standard = human.removeprefix("scores.")
    sides = tuple(_sides(shown, aspects, standard))
    marks = file.columns.marks.get(standard or "", Marks())
    notes = tuple(_notes(shown, standard))
    return Scored(path.name, tuple(shown), sides, notes, marks, _trust(file.records))


def _trust(records: Iterable[Mapping[str, Any]]) -> Trust:
    """Return what the rows tell of their judge; of several judges nothing holds for all rows."""
    told = {str(one): one for one in map(contract_in, records) if one}
    return Trust.read(next(iter(told.values()))) if len(told) == 1 else Trust()


def _ratings(file: Outputs, human: str | None) -> list[dict[str, float]]:
    """Return the human ratings of each row by aspect, those of the column that is named among them."""
    ratings = [dict(row.scores) for row in file.rows]
    if human is None:
        return ratings
    name = human.removeprefix("scores.")
    values = human_ratings(file, human, name, file.aspects())[0].tolist()
    for scores, value in zip(ratings, values, strict=True):
        if human == "score" and scores.get(OVERALL) == value:
            del scores[OVERALL]  # the same column under its other name
        scores[name] = value
    return ratings


def _aspects(rows: Sequence[Shown]) -> list[str]:
    """Return the aspects with human ratings."""
    return list(dict.fromkeys(name for row in rows for name in row.human))


def _compared(
    path: Path, pairs: Sequence[tuple[Compared, Mapping[str, Any]]]
) -> Scored:
    """Return a file that compares two outputs in each row."""
    anchors = Counter[str]()
    shown = list[Shown]()
    for pair, record in pairs:
        human = {} if pair.won is None else {OVERALL: pair.won}
        row = replace(pair.a, id=pair.id)
        anchor = _anchor(pair.id, anchors)
        first = _shown(row, record, verdict_of(record), human, anchor)
        shown.append(replace(first, other=pair.b))
    aspects = _aspects(shown)
    sides = tuple(_sides(shown, aspects, OVERALL if aspects else None))
    marks = Marks("preference", {}, tuple(_PREFERRED), tuple(_PREFERRED.values()))
    trust = _trust(record for _, record in pairs)
    notes = tuple(_notes(shown, OVERALL))
    return Scored(path.name, tuple(shown), sides, notes, marks, trust)


def _standard(aspects: Sequence[str], rows: Sequence[Shown]) -> str | None:
    """Return the aspect of human ratings that the judge's one score is compared with: the judged one, if known."""
    judged = {plain_name(row.aspect) for row in rows if row.aspect}
    if len(judged) == 1:
        for name in aspects:
            if plain_name(name) in judged:
                return name
    if OVERALL in aspects:
        return OVERALL
    return aspects[0] if len(aspects) == 1 else None


def _notes(rows: Sequence[Shown], standard: str | None) -> Iterator[str]:
    seen = sum(row.seen for row in rows)
    judges = {row.judge for row in rows if row.judge}
    if seen:
        yield f"{seen} of the rows were used to compile the judge; how well it does on them says little"
    like = sum(row.resembles for row in rows)
    if like:
        yield f"{like} of the rows have an output that is nearly equal to a labelled one of another source"
    if len(judges) > 1:
        yield f"the verdicts are of {len(judges)} judges; means over all of them compare nothing"
    deferred = sum(row.deferred for row in rows)
    if deferred:
        yield f"{deferred} of {len(rows)} rows are left to a person, those whose scores are least sure"
    aspects = _aspects(rows)
    if standard is None and aspects:
        yield (
            f"people scored {len(aspects)} aspects ({', '.join(aspects[:8])}); choose one under “Aspect”, or name "
            "with --human what the judge's score is to be compared with"
        )


def _anchor(identity: str, taken: Counter[str]) -> str:
    name = "row-" + re.sub(r"\s+", "_", identity)
    taken[name] += 1
    while taken[name] > 1:
        name = f"{name}~{taken[name]}"
        taken[name] += 1
    return name


def _shown(
    row: Row,
    record: Mapping[str, Any],
    data: Mapping[str, Any] | None,
    human: Mapping[str, float],
    anchor: str,
) -> Shown:
    if data is None:
        verdict = Verdict.failed("there is no verdict in this row")
    else:
        verdict = _verdict(data, row.output)
    aspect = _words((data or {}).get("aspect")) or _words(record.get("aspect"))
    deferred = record.get("defer") is True
    details = (data or {}).get("details")
    shades = tuple(
        _shades(
            details.get("surprise") if isinstance(details, Mapping) else None,
            row.output,
        )
    )
    return Shown(
        row,
        anchor,
        verdict,
        human,
        aspect,
        _words(record.get("judge")),
        deferred,
        marked(record, "seen"),
        marked(record, "resembles"),
        shades,
    )


def _verdict(data: Mapping[str, Any], output: str = "") -> Verdict:
    """A verdict from values of any shape; what does not fit is left out."""
    score = _number(data.get("score"))
    failure = _words(data.get("failure"))
    if math.isnan(score) and not failure:
        failure = "no reason is given"
    return Verdict(
        score=math.nan if failure else score,
        failure=failure or None,
        explanation=_words(data.get("explanation")),
        criteria=dict(_criteria(data.get("criteria"))),
        errors=_errors(data.get("errors"), output),
        opinions=dict(_opinions(data.get("opinions"), output)),
        spread=_number(data.get("spread")),
        notes=_several(data.get("notes")),
        interval=_interval(data.get("interval")),
        suspicious=_words(data.get("suspicious")) or None,
        partly=_shares(data.get("partly")),
        category=_words(data.get("category")) or None,
        passed=passed if isinstance(passed := data.get("passed"), bool) else None,
        aspects={
            name: _verdict({**one, "aspects": None}, output)
            for name, one in _named(data.get("aspects"))
        },
    )


def _named(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The mappings in a mapping, by name."""
    for name, one in value.items() if isinstance(value, Mapping) else ():
        if isinstance(one, Mapping):
            yield str(name), one


def _shares(value: Any) -> dict[str, float]:
    named = value.items() if isinstance(value, Mapping) else ()
    return {str(name): share for name, one in named if 0 <= (share := _number(one)) < 1}


def _words(value: Any) -> str:
    return (as_text(value) or "") if value is not None else ""


def _several(value: Any) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        return tuple(filter(None, map(_words, value)))
    return ()


def _number(value: Any) -> float:
    """A finite number of JSON or of a CSV's cell, else NaN."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            number = math.nan
        else:
            number = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _interval(value: Any) -> ScoreInterval | None:
    ends = value if isinstance(value, Mapping) else {}
    low, high, *others = (
        _number(ends.get(name)) for name in ("low", "high", "coverage", "error")
    )
    return ScoreInterval(low, high, *others) if low <= high else None


def _criteria(value: Any) -> Iterator[tuple[str, CriterionScore]]:
    for name, one in value.items() if isinstance(value, Mapping) else ():
        data = one if isinstance(one, Mapping) else {"score": one}
        yield (
            str(name),
            CriterionScore(_number(data.get("score")), _words(data.get("explanation"))),
        )


def _opinions(value: Any, output: str) -> Iterator[tuple[str, Opinion]]:
    for name, one in _named(value):
        label, explanation, failure = (
            _words(one.get(key)) for key in ("label", "explanation", "failure")
        )
        errors = _errors(one.get("errors"), output)
        outlier = one.get("outlier") is True
        yield (
            name,
            Opinion(
                _number(one.get("percent")),
                label,
                explanation,
                errors,
                failure or None,
                outlier,
            ),
        )


def _shades(value: Any, output: str) -> Iterator[tuple[str, int]]:
    """Yield the places [start, end, grade] of a file that lie in the output, one after the other."""
    done = 0
    for one in value if isinstance(value, list | tuple) else ():
        if (
            isinstance(one, list | tuple)
            and len(one) == 3
            and all(type(number) is int for number in one)
        ):
            start, end, grade = one
            if done <= start < end <= len(output) and 1 <= grade <= 3:
                yield from ((output[done:start], 0), (output[start:end], grade))
                done = end
    if done:
        yield output[done:], 0


def _errors(value: Any, output: str) -> tuple[ErrorSpan, ...]:
    """Return errors in the order of the text; then omissions, then those that were not found in it."""
    if isinstance(value, list):
        result = [_error(one, output) for one in value if isinstance(one, Mapping)]
    else:
        result = []
    kinds = {"omission": 1, "ungrounded": 2}
    return tuple(
        sorted(
            result,
            key=lambda e: (kinds.get(str(e.how), 0), e.start or 0, -(e.end or 0)),
        )
    )


def _error(data: Mapping[str, Any], output: str) -> ErrorSpan:
    start = data.get("start")
    end = data.get("end")
    how: Any = data.get("how")
    words = _words(data.get("text"))
    notes = list(_several(data.get("notes")))
    placed = type(start) is int and type(end) is int
    if type(start) is int and type(end) is int and 0 <= start < end <= len(output):
        how = how if how in GROUNDED else "exact"
        if data.get("how") in (None, "exact") and words and output[start:end] != words:
            how = "normalised"
            notes.append(f"the judge's file quotes other words: {words}")
    else:
        how = "omission" if how == "omission" else "ungrounded"
        start = None
        end = None
        if placed:
            notes.append("the place that the file gives is outside the text")
    severity = _number(data.get("severity"))
    explanation = _words(data.get("explanation"))
    return ErrorSpan(
        words,
        explanation,
        severity,
        start,
        end,
        how,
        _several(data.get("annotators")),
        tuple(notes),
    )


# The text in pieces --------------------------------------------------------------------------------------------------


def pieces(
    output: str, errors: Sequence[ErrorSpan], more: Iterable[int] = ()
) -> list[Piece]:
    """Return the output, cut where errors start and end and at `more` places.

    The pieces' texts together are the output.
    """
    starts: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for number, error in enumerate(errors):
        if error.start is not None and error.end is not None:
            starts.setdefault(error.start, []).append(number)
            ends.setdefault(error.end, []).append(number)
    cuts = sorted({0, len(output), *starts, *ends, *more})
    result: list[Piece] = []
    open_now: dict[int, None] = {}  # a set that keeps its order
    grades = [0] * 6
    for here, end in itertools.pairwise(cuts):
        for number in ends.get(here, ()):
            del open_now[number]
            grades[grade(errors[number])] -= 1
        for number in starts.get(here, ()):
            open_now[number] = None
            grades[grade(errors[number])] += 1
        gravest = max((grade for grade, n in enumerate(grades) if n), default=0)
        result.append(
            Piece(
                output[here:end],
                tuple(itertools.islice(open_now, _LABELS)),
                len(open_now),
                gravest,
            )
        )
    return result


# Numbers -------------------------------------------------------------------------------------------------------------


def mean_of(values: Vector, documents: Sequence[str]) -> Mean:
    """Return the mean of the values that are not NaN, with an interval over documents.

    It is Student's t over the documents' sums of deviations (the cluster-robust standard error of a mean), so rows of
    one document are one piece of evidence.
    """
    present = ~np.isnan(values)
    defined = values[present]
    if not len(defined):
        return Mean(math.nan, math.nan, math.nan, 0)
    mean = float(defined.mean())
    names, code = np.unique(
        np.array(documents, dtype=object)[present].astype(str), return_inverse=True
    )
    d = len(names)
    if d < 2:
        return Mean(mean, math.nan, math.nan, len(defined))
    sums = np.bincount(code, weights=defined - mean)
    error = math.sqrt(d / (d - 1)) * math.hypot(*sums) / len(defined)
    half = float(scipy.special.stdtrit(d - 1, 0.975) * error)
    return Mean(mean, mean - half, mean + half, len(defined))


def _sides(
    rows: Sequence[Shown], aspects: Sequence[str], standard: str | None
) -> Iterator[Side]:
    nothing = np.full(len(rows), np.nan)
    scores = np.array([row.score for row in rows])
    people = {name: _ratings_of(rows, name) for name in aspects}
    overall = people.get(standard or "", nothing)
    yield _side("", scores, overall)
    rated = dict(zip(map(plain_name, aspects), aspects, strict=True))
    criteria, own = _judged_names(rows)
    for name in dict.fromkeys([*criteria, *own, *aspects]):
        if name == standard and name not in criteria and name not in own:
            continue
        same = rated.get(plain_name(name), name)
        judged = np.array([_of_aspect(row, name, people) for row in rows])
        # What was judged is known, and that is not this; or it is the one score, which exists already.
        if own and (np.isnan(judged).all() or (name in own and same == standard)):
            continue
        yield _side(name, judged, people.get(same, overall))


def _ratings_of(rows: Sequence[Shown], aspect: str) -> Vector:
    return np.array([row.human.get(aspect, math.nan) for row in rows])


def _judged_names(rows: Sequence[Shown]) -> tuple[list[str], list[str]]:
    """Return the criteria of the verdicts, and the aspects that they are of."""
    criteria: dict[str, None] = {}
    several: dict[str, None] = {}
    single: dict[str, None] = {}
    for row in rows:
        criteria.update(dict.fromkeys(row.verdict.criteria))
        several.update(dict.fromkeys(row.verdict.aspects))
        if row.aspect:
            single[row.aspect] = None
    return list(criteria), list(several | single)


def _of_aspect(row: Shown, name: str, people: Mapping[str, Vector]) -> float:
    """Return the judge's score for an aspect: its own, else the criterion's, else the verdict's if it fits."""
    if row.verdict.aspects:
        one = row.verdict.aspects.get(name)
        return row.score if one is None and name == OVERALL else _score(one)
    if name in row.verdict.criteria:
        return row.verdict.criteria[name].score
    if row.aspect == name or (not row.aspect and name in people):
        return row.score
    return math.nan


def _score(verdict: Verdict | None) -> float:
    return math.nan if verdict is None else verdict.score


def _side(name: str, score: Vector, human: Vector) -> Side:
    gap = np.full(len(score), np.nan)
    both = ~(np.isnan(score) | np.isnan(human))
    if both.sum() > 1 and np.ptp(score[both]) > 0 and np.ptp(human[both]) > 0:
        places = [
            (midranks(v[both]) - 1) / (both.sum() - 1) * 100 for v in (score, human)
        ]
        gap[both] = np.abs(places[0] - places[1])
    return Side(name, score, human, gap)


def summarise(data: Scored) -> dict[str, Any]:
    """Return the sums of a report, plain JSON types with None for what is undefined."""
    rows = data.rows
    documents = [row.row.doc_id for row in rows]
    score = mean_of(data.sides[0].score, documents)
    judged = [row.verdict for row in rows if not row.verdict.failure]
    places = _places(judged)
    errors = places.total()
    return {
        "trust": data.trust.to_dict() | {"in_words": data.trusted},
        "rows": len(rows),
        "documents": len(set(documents)),
        "scored": score.n,
        "failures": len(rows) - len(judged),
        **_flags(rows),
        "mean_score": _with_ends(score[:3]) | {"n": score.n},
        "errors": errors,
        "errors_per_row": round(errors / len(judged), 6) if judged else None,
        "grounded": places["grounded"],
        "omissions": places["omission"],
        "ungrounded": places["ungrounded"],
        "notes": list(data.notes),
        **_shares_passed(data),
    }


def _flags(rows: Sequence[Shown]) -> dict[str, int]:
    """Return the numbers of rows left to a person, suspicious, and read in part."""
    return {
        "deferred": sum(row.deferred for row in rows),
        "suspicious": sum(bool(row.verdict.suspicious) for row in rows),
        "partly": sum(bool(row.verdict.partly) for row in rows),
    }


def _places(verdicts: Iterable[Verdict]) -> Counter[str]:
    """Return the number of errors by the way in which they were placed."""
    places = Counter[str]()
    for verdict in verdicts:
        for error in verdict.errors:
            grounded = error.how in GROUNDED
            places["grounded" if grounded else str(error.how)] += 1
    return places


def _with_ends(values: Sequence[float]) -> dict[str, Any]:
    """Return a value with its interval, rounded, None for what is undefined."""
    rounded = [None if math.isnan(value) else round(value, 6) for value in values]
    return dict(zip(("value", "low", "high"), rounded, strict=True))


def _shares_passed(data: Scored) -> dict[str, dict[str, Any]]:
    """Return the shares of passed rows, and how far a judge that decides agrees with people."""
    decided = data.passed()
    if decided is None:
        return {}
    ones = np.ones(len(data.rows))
    asked = {"agreement": ("accuracy", 1 - decided.gap, ones)}
    if not data.compared:
        sides = (decided.score, decided.human)
        asked |= {
            "passed": ("accuracy", decided.score, ones),
            "passed_by_people": ("accuracy", decided.human, ones),
            "tnr": ("recall", *sides),
            "tpr": ("tpr", *sides),
            "kappa": ("cohen-kappa", *sides),
        }
    documents = np.array([row.row.doc_id for row in data.rows], dtype=object)
    return {
        name: found
        for name, (measure, ours, theirs) in asked.items()
        if (found := _measured(measure, ours, theirs, documents)) is not None
    }


def _measured(
    measure: str, ours: Vector, theirs: Vector, documents: Any
) -> dict[str, Any] | None:
    """Return a measure of decisions with the interval that `judgesmith check` gives it; None without rows."""
    rows = ~np.isnan(ours + theirs)
    if not rows.any():
        return None
    count = int(rows.sum())
    options = EvaluationOptions(rounds=1000 if count < MANY else 100)
    units = id_codes(documents[rows].tolist(), count, "documents")
    x = ours[rows].astype(np.intp)
    y = theirs[rows].astype(np.intp)
    found = estimate(measure, x, y, units, options)
    return _with_ends((found.value, found.low, found.high))
