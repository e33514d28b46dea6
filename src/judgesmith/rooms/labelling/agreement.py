"""Agreement of raters with each other and with themselves, and rows that the guidelines leave unclear."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.raters import alpha_interval, beside_others
from judgesmith.agreement.spans import human_span_agreement
from judgesmith.datasets.spans import SEVERITIES, Span
from judgesmith.rooms.labelling.store import SETTLING, AnswerEvent, Store
from judgesmith.rooms.labelling.task import WHY, Question, Task, Unit
from judgesmith.tables import shortened

#: Answers that are at least this far apart, as a share of the scale, split their raters: two steps of 1 to 5.
SPLIT = 0.4
_MOST = 200  # rows of each list


@dataclass
class RaterAnswers:
    """All answers of a store, by unit and rater: those of the first showing, and of the second.

    suggested: the units that `suggest` chose. chances: the probability with which a unit was drawn, where it is stated.
    settled: what was decided last of a unit that split its raters.
    """

    task: Task
    units: Mapping[str, Unit]
    first: dict[str, dict[str, AnswerEvent]]
    again: dict[str, dict[str, AnswerEvent]]
    skipped: list[AnswerEvent]
    suggested: frozenset[str] = frozenset()
    chances: Mapping[str, float] = field(default_factory=dict)
    settled: dict[str, AnswerEvent] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store, task: Task) -> RaterAnswers:
        """Return the answers of a store."""
        answers = cls(
            task,
            store.units(),
            {},
            {},
            [],
            frozenset(json.loads(store.get("suggested") or "[]")),
            json.loads(store.get("chances") or "{}"),
        )
        for one in store.answers():
            if one.turn == SETTLING:
                if one.answer is not None:
                    answers.settled[one.unit] = one
            elif one.answer is None:
                answers.skipped.append(one)
            else:
                (answers.again if one.turn else answers.first).setdefault(one.unit, {})[
                    one.rater
                ] = one
        return answers

    def apart(self, unit: str, one: AnswerEvent, other: AnswerEvent) -> float:
        """Return the distance of two answers, in [0, 1].

        It is that of the question where they are farthest, or the share of the marked characters that only one marked.
        """
        assert one.answer is not None
        assert other.answer is not None
        if self.task.kind == "spans":
            return _spans_apart(self.units[unit], one.answer, other.answer)
        return max(
            q.apart(one.answer[q.name], other.answer[q.name])
            for q in self.task.questions
        )

    def shown(self, one: AnswerEvent) -> str:
        """Return an answer in words."""
        assert one.answer is not None
        if self.task.kind == "spans":
            marks = []
            for error in one.answer["errors"]:
                severity = _SEVERITY[error["severity"]]
                marks.append(f"{error['text'] or 'omission'} ({severity})")
            return "; ".join(marks)[:300] or "no errors"
        reasons = one.answer.get(WHY, {})
        answers = {}
        for question in self.task.questions:
            text = question.shown(one.answer[question.name])
            if question.name in reasons:
                text += f" ({shortened(reasons[question.name], 300)})"
            answers[question.name] = text
        if len(answers) == 1:
            return next(iter(answers.values()))
        return ", ".join(f"{name}: {answer}" for name, answer in answers.items())


_SEVERITY = {int(number): name for name, number in SEVERITIES.items()}


def summary(
    answers: RaterAnswers,
    raters: Sequence[str],
    seen_by: str | None = None,
    *,
    blind: bool = False,
) -> dict[str, Any]:
    """Return the raters' agreement as JSON values.

    seen_by: list only rows that this rater has answered, as the others' answers would bias the rater's own. blind: this
    rater has not answered every row, and gets no answer of another one, and no other's figures.
    """
    splits = _splits(answers)
    listed = [] if blind else splits
    if seen_by is not None:
        listed = [s for s in listed if seen_by in answers.first[s["unit"]]]
    contradictions = []
    for contradiction in _contradictions(answers):
        if seen_by in (None, contradiction["rater"]):
            contradictions.append(contradiction)
    skipped = [event for event in answers.skipped if seen_by in (None, event.rater)]
    spans = answers.task.kind == "spans"
    tables = rating_tables(answers)
    agreement = (
        _spans_agreement(answers) if spans else list(_questions(tables, answers))
    )
    shown = [name for name in raters if not blind or name == seen_by]
    beside = {} if blind else _beside(tables, answers)
    return {
        "raters": [
            _rater(answers, name) | {"beside": beside.get(name, [])} for name in shown
        ],
        "blind": blind,
        "agreement": agreement,
        "splits": listed[:_MOST],
        "split_rows": len(splits),
        "settled_rows": len(answers.settled),
        "contradictions": contradictions[:_MOST],
        "confused": [] if blind else _confused(answers),
        "skipped": [_skip(answers, one) for one in skipped[:_MOST]],
    }


def _skip(answers: RaterAnswers, event: AnswerEvent) -> dict[str, Any]:
    identity = answers.units[event.unit].row["id"]
    return {"id": identity, "rater": event.rater, "reason": event.reason}


def _rater(answers: RaterAnswers, name: str) -> dict[str, Any]:
    """Return one rater's counts.

    same: of the rows shown twice, the share with the same answer twice; None without any.
    """
    twice = same = 0
    for key, by in answers.again.items():
        first = answers.first.get(key, {})
        if name in by and name in first:
            twice += 1
            same += answers.apart(key, first[name], by[name]) == 0
    return {
        "rater": name,
        "rated": sum(name in by for by in answers.first.values()),
        "skipped": sum(event.rater == name for event in answers.skipped),
        "twice": twice,
        "same": round(same / twice, 4) if twice else None,
    }


@dataclass(frozen=True, slots=True)
class RatingTable:
    """The answers to a question on people's scale: shape (rows, raters), NaN where there is none."""

    question: str
    names: tuple[str, ...]
    table: Vector


def rating_tables(answers: RaterAnswers) -> list[RatingTable]:
    """Return the answers to each question by rater; of error spans less their severities together."""
    names = tuple(sorted(set[str]().union(*answers.first.values())))
    questions: list[tuple[str, Callable[[AnswerEvent], float]]] = [
        (q.name, partial(_level, q)) for q in answers.task.questions
    ]
    if answers.task.kind == "spans":
        questions = [("errors", partial(as_number, answers.task))]
    result = []
    for question, number in questions:
        table = np.full((len(answers.first), len(names)), math.nan)
        for place, by in enumerate(answers.first.values()):
            for rater, event in by.items():
                table[place, names.index(rater)] = number(event)
        result.append(RatingTable(question, names, table))
    return result


def as_number(task: Task, one: AnswerEvent) -> float:
    """Return a rater's answer as one number, higher is better: the first question's, or fewer errors."""
    assert one.answer is not None
    if task.kind == "spans":
        return -float(sum(error["severity"] for error in one.answer["errors"]))
    question = task.questions[0]
    return question.number(one.answer[question.name])


def _level(question: Question, event: AnswerEvent) -> float:
    assert event.answer is not None
    return question.level(event.answer[question.name])


def _beside(
    tables: Sequence[RatingTable], answers: RaterAnswers
) -> dict[str, list[dict[str, Any]]]:
    """Return each rater beside the others, a question each; of preferences, which have no height, the agreement."""
    found: dict[str, list[dict[str, Any]]] = {}
    high = answers.task.kind != "preference"
    for one in tables:
        for name, own in zip(one.names, beside_others(one.table), strict=True):
            figures = {
                "mean": own.mean,
                "others": own.others,
                "lead": own.lead,
                "low": own.low,
                "high": own.high,
            }
            shown = {
                key: _finite(value) if high else None for key, value in figures.items()
            }
            doubt = own.doubt(name)
            about = {"question": one.question, "n": own.n}
            found.setdefault(name, []).append(
                about | shown | {"r": _finite(own.r), "doubt": doubt}
            )
    return found


def _questions(
    tables: Sequence[RatingTable], answers: RaterAnswers
) -> Iterator[dict[str, Any]]:
    """Yield, per question, Krippendorff's alpha over all rows with two raters, and the share of equal pairs.

    alpha is that for interval data, of scores or of the places of words; low and high are its 95 % interval over rows.
    """
    for question, one in zip(answers.task.questions, tables, strict=True):
        shared = [row[~np.isnan(row)] for row in one.table]
        shared = [row for row in shared if len(row) > 1]
        equal = [a == b for row in shared for a, b in itertools.combinations(row, 2)]
        alpha, low, high = alpha_interval(one.table)
        yield {
            "question": question.name,
            "alpha": _finite(alpha),
            "alpha_of": "interval",
            "low": _finite(low),
            "high": _finite(high),
            "equal": _finite(sum(equal) / len(equal) if equal else math.nan),
            "rows": len(shared),
            "raters": len(_raters_of(one)),
        }


def _raters_of(one: RatingTable) -> list[str]:
    """Return the raters of rows that several rated."""
    shared = one.table[np.count_nonzero(~np.isnan(one.table), axis=1) > 1]
    there = ~np.isnan(shared).all(axis=0)
    return [
        name for name, rated in zip(one.names, there.tolist(), strict=True) if rated
    ]


#: An interval of alpha that is at most so far from it to either side is narrow: more rows hardly move it.
NARROW = 0.1
MORE = 20


def enough(answers: RaterAnswers) -> Iterator[str]:
    """Yield how sure the raters' agreement is so far, and what more rows would do; nothing of error spans."""
    if answers.task.kind == "spans":
        return
    several = len(answers.task.questions) > 1
    for one in _questions(rating_tables(answers), answers):
        if one["alpha"] is None or one["low"] is None:
            continue
        half = (one["high"] - one["low"]) / 2
        who = f"{one['question']}: raters" if several else "Raters"
        agreement = f"alpha {one['alpha']:.2f} [{one['low']:.2f}, {one['high']:.2f}]"
        rows = one["rows"]
        if half <= NARROW:
            more = "that is narrow, so that more rows hardly change it"
        else:
            later = half * math.sqrt(rows / (rows + MORE))
            more = f"with {MORE} more rows about ±{later:.2f}"
        yield f"{who} agree by {agreement} on {rows} rows; {more}"


def _spans_agreement(answers: RaterAnswers) -> list[dict[str, Any]]:
    """Return F1 of every two raters over the marked characters, and with severities."""
    people: dict[str, dict[str, tuple[Span, ...]]] = {}
    for key, by in answers.first.items():
        for rater, event in by.items():
            people.setdefault(rater, {})[key] = _spans(event.answer)
    lengths = {key: len(answers.units[key].row["output"]) for key in answers.first}
    marked = [people[rater] for rater in sorted(people)]
    agreement = None
    if len(marked) > 1:
        agreement = human_span_agreement(marked, lengths, rounds=0)
    result: dict[str, Any] = {"question": "errors", "f1": None, "weighted_f1": None}
    if agreement is not None:
        result["f1"] = _finite(agreement.micro.f1.value)
        result["weighted_f1"] = _finite(agreement.weighted.f1.value)
    rows = 0 if agreement is None else agreement.texts
    return [result | {"rows": rows, "raters": len(marked)}]


def _spans(answer: Mapping[str, Any] | None) -> tuple[Span, ...]:
    return tuple(
        Span(
            e["text"],
            e["start"],
            e["end"],
            float(e["severity"]),
            how="omission" if e["start"] is None else "exact",
        )
        for e in (answer or {}).get("errors", ())
    )


def _spans_apart(unit: Unit, one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    if bool(one["errors"]) != bool(other["errors"]):
        return 1.0
    agreement = human_span_agreement(
        [{unit.key: _spans(one)}, {unit.key: _spans(other)}],
        {unit.key: len(unit.row["output"])},
        rounds=0,
    )
    f1 = math.nan if agreement is None else agreement.micro.f1.value
    return 0.0 if math.isnan(f1) else 1 - f1


def split_rows(answers: RaterAnswers) -> list[str]:
    """Return the units that split their raters, the farthest apart first."""
    return [split["unit"] for split in _splits(answers)]


def _splits(answered: RaterAnswers) -> list[dict[str, Any]]:
    """Return what is said of the units that split their raters, the farthest apart first."""
    return sorted(_unordered_splits(answered), key=lambda split: -split["apart"])


def _unordered_splits(answered: RaterAnswers) -> Iterator[dict[str, Any]]:
    for key, by in answered.first.items():
        apart = max(
            (
                answered.apart(key, *pair)
                for pair in itertools.combinations(by.values(), 2)
            ),
            default=0.0,
        )
        if apart >= SPLIT:
            answers = {name: answered.shown(one) for name, one in by.items()}
            decided = answered.settled.get(key)
            settled = None
            if decided is not None:
                settled = {"by": decided.rater, "answer": answered.shown(decided)}
            yield {
                "unit": key,
                "id": answered.units[key].row["id"],
                "apart": round(apart, 4),
                "answers": answers,
                "settled": settled,
            }


def _contradictions(answers: RaterAnswers) -> Iterator[dict[str, Any]]:
    for key, by in answers.again.items():
        for name, second in by.items():
            first = answers.first.get(key, {}).get(name)
            if first is not None and answers.apart(key, first, second) >= SPLIT:
                yield {
                    "unit": key,
                    "id": answers.units[key].row["id"],
                    "rater": name,
                    "first": answers.shown(first),
                    "second": answers.shown(second),
                }


def _confused(answers: RaterAnswers) -> list[dict[str, Any]]:
    """Return pairs of answers that raters give to the same row, the most frequent first: unclear guidelines."""
    pairs: Counter[tuple[str, str, str]] = Counter()
    for by in answers.first.values():
        for question in answers.task.questions:
            name = question.name
            used = {event.answer[name] for event in by.values() if event.answer}
            ranked = [c.label for c in question.choices if c.value in used]
            for worse, better in itertools.combinations(ranked, 2):
                pairs[name, worse, better] += 1
    return [
        {"question": name, "between": [worse, better], "rows": n}
        for (name, worse, better), n in pairs.most_common(10)
    ]


def _finite(value: float) -> float | None:
    return round(float(value), 4) if math.isfinite(value) else None
