"""Agreement of raters with each other and with themselves, and rows that the guidelines leave unclear."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judgesmith.agreement.significance import krippendorff_alpha
from judgesmith.agreement.spans import human_span_agreement
from judgesmith.datasets.spans import SEVERITIES, Span
from judgesmith.rooms.labelling.store import AnswerEvent, Store
from judgesmith.rooms.labelling.task import WHY, Question, Task, Unit
from judgesmith.tables import shortened

#: Answers that are at least this far apart, as a share of the scale, split their raters: two steps of 1 to 5.
SPLIT = 0.4
_MOST = 200  # rows of each list


@dataclass
class RaterAnswers:
    """All answers of a store, by unit and rater: those of the first showing, and of the second.

    suggested: the units that `suggest` chose. chances: the probability with which a unit was drawn, where it is stated.
    """

    task: Task
    units: Mapping[str, Unit]
    first: dict[str, dict[str, AnswerEvent]]
    again: dict[str, dict[str, AnswerEvent]]
    skipped: list[AnswerEvent]
    suggested: frozenset[str] = frozenset()
    chances: Mapping[str, float] = field(default_factory=dict)

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
            if one.answer is None:
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
    answers: RaterAnswers, raters: Sequence[str], seen_by: str | None = None
) -> dict[str, Any]:
    """Return the raters' agreement as JSON values.

    seen_by: list only rows that this rater has answered, as the others' answers would bias the rater's own.
    """
    splits = sorted(_splits(answers), key=lambda split: -split["apart"])
    listed = splits
    if seen_by is not None:
        listed = [s for s in splits if seen_by in answers.first[s["unit"]]]
    contradictions = []
    for contradiction in _contradictions(answers):
        if seen_by in (None, contradiction["rater"]):
            contradictions.append(contradiction)
    skipped = [event for event in answers.skipped if seen_by in (None, event.rater)]
    spans = answers.task.kind == "spans"
    agreement = _spans_agreement(answers) if spans else list(_questions(answers))
    return {
        "raters": [_rater(answers, name) for name in raters],
        "agreement": agreement,
        "splits": listed[:_MOST],
        "split_rows": len(splits),
        "contradictions": contradictions[:_MOST],
        "confused": _confused(answers),
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


def _questions(answers: RaterAnswers) -> Iterator[dict[str, Any]]:
    """Yield, per question, Krippendorff's alpha over all rows with two raters, and the share of equal pairs."""
    for question in answers.task.questions:
        shared = list(_shared(answers, question))
        raters = sorted(set[str]().union(*shared))
        table = []
        equal = []
        for row in shared:
            table.append([row.get(rater, math.nan) for rater in raters])
            pairs = itertools.combinations(row.values(), 2)
            equal += [first == second for first, second in pairs]
        alpha = krippendorff_alpha(table) if table else math.nan
        yield {
            "question": question.name,
            "alpha": _finite(alpha),
            "equal": _finite(sum(equal) / len(equal) if equal else math.nan),
            "rows": len(shared),
            "raters": len(raters),
        }


def _shared(answers: RaterAnswers, question: Question) -> Iterator[dict[str, float]]:
    """Yield the answers to a question as numbers, by rater, of each row that several answered."""
    for by in answers.first.values():
        numbers = {}
        for rater, event in by.items():
            if event.answer:
                numbers[rater] = question.number(event.answer[question.name])
        if len(numbers) > 1:
            yield numbers


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


def _splits(answered: RaterAnswers) -> Iterator[dict[str, Any]]:
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
            yield {
                "unit": key,
                "id": answered.units[key].row["id"],
                "apart": round(apart, 4),
                "answers": answers,
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
