"""Agreement of raters with each other and with themselves, and rows that the guidelines leave unclear."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..agreement.significance import krippendorff_alpha
from ..agreement.spans import human_span_agreement
from ..datasets.spans import SEVERITIES, Span
from ..tables import shortened
from .store import Given, Store
from .task import WHY, Task, Unit

#: Answers that are at least this far apart, as a share of the scale, split their raters: two steps of 1 to 5.
SPLIT = 0.4
_MOST = 200  # rows of each list


@dataclass
class Said:
    """All answers of a store, by unit and rater: those of the first showing, and of the second.

    suggested: the units that `suggest` chose.
    """

    task: Task
    units: Mapping[str, Unit]
    first: dict[str, dict[str, Given]]
    again: dict[str, dict[str, Given]]
    skipped: list[Given]
    suggested: frozenset[str] = frozenset()

    @classmethod
    def of(cls, store: Store, task: Task) -> Said:
        """Return the answers of a store."""
        answers = cls(
            task,
            store.units(),
            {},
            {},
            [],
            frozenset(json.loads(store.get("suggested") or "[]")),
        )
        for one in store.answers():
            if one.answer is None:
                answers.skipped.append(one)
            else:
                (answers.again if one.turn else answers.first).setdefault(one.unit, {})[
                    one.rater
                ] = one
        return answers

    def apart(self, unit: str, one: Given, other: Given) -> float:
        """Return the distance of two answers, in [0, 1].

        It is that of the question where they are farthest, or the share of the marked characters that only one marked.
        """
        assert one.answer is not None and other.answer is not None
        if self.task.kind == "spans":
            return _spans_apart(self.units[unit], one.answer, other.answer)
        return max(
            q.apart(one.answer[q.name], other.answer[q.name])
            for q in self.task.questions
        )

    def shown(self, one: Given) -> str:
        """Return an answer in words."""
        assert one.answer is not None
        if self.task.kind == "spans":
            errors = one.answer["errors"]
            marks = [
                f"{e['text'] or 'omission'} ({_SEVERITY[e['severity']]})"
                for e in errors
            ]
            return "; ".join(marks)[:300] or "no errors"
        questions = self.task.questions
        why = one.answer.get(WHY, {})
        reasons = {name: f" ({shortened(text, 300)})" for name, text in why.items()}
        answers = [
            (q.name, q.shown(one.answer[q.name]) + reasons.get(q.name, ""))
            for q in questions
        ]
        return (
            answers[0][1]
            if len(answers) == 1
            else ", ".join(f"{name}: {answer}" for name, answer in answers)
        )


_SEVERITY = {int(number): name for name, number in SEVERITIES.items()}


def summary(
    answers: Said, raters: Sequence[str], seen_by: str | None = None
) -> dict[str, Any]:
    """Return the raters' agreement as JSON values.

    seen_by: list only rows that this rater has answered, as the others' answers would bias the rater's own.
    """
    splits = sorted(_splits(answers), key=lambda one: -one["apart"])
    mine = (
        {key for key, by in answers.first.items() if seen_by in by}
        if seen_by is not None
        else None
    )
    kept = [one for one in splits if mine is None or one["unit"] in mine]
    return {
        "raters": [_rater(answers, name) for name in raters],
        "agreement": _spans_agreement(answers)
        if answers.task.kind == "spans"
        else list(_questions(answers)),
        "splits": kept[:_MOST],
        "split_rows": len(splits),
        "contradictions": [
            one for one in _contradictions(answers) if seen_by in (None, one["rater"])
        ][:_MOST],
        "confused": _confused(answers),
        "skipped": [
            {
                "id": answers.units[one.unit].row["id"],
                "rater": one.rater,
                "reason": one.reason,
            }
            for one in answers.skipped
            if seen_by in (None, one.rater)
        ][:_MOST],
    }


def _rater(answers: Said, name: str) -> dict[str, Any]:
    """Return one rater's counts.

    same: of the rows shown twice, the share with the same answer twice; None without any.
    """
    twice = [
        (key, answers.first[key][name], by[name])
        for key, by in answers.again.items()
        if name in by and name in answers.first.get(key, {})
    ]
    same = sum(answers.apart(*one) == 0 for one in twice)
    return {
        "rater": name,
        "rated": sum(name in by for by in answers.first.values()),
        "skipped": sum(one.rater == name for one in answers.skipped),
        "twice": len(twice),
        "same": round(same / len(twice), 4) if twice else None,
    }


def _questions(answers: Said) -> Iterator[dict[str, Any]]:
    """Yield, per question, Krippendorff's alpha over all rows with two raters, and the share of equal pairs."""
    for question in answers.task.questions:
        name = question.name
        numbers = (
            {
                rater: question.number(one.answer[name])
                for rater, one in by.items()
                if one.answer
            }
            for by in answers.first.values()
        )
        shared = [row for row in numbers if len(row) > 1]
        raters = sorted({rater for row in shared for rater in row})
        table = [[row.get(rater, math.nan) for rater in raters] for row in shared]
        alpha = krippendorff_alpha(table) if table else math.nan
        equal = [
            a == b for row in shared for a, b in itertools.combinations(row.values(), 2)
        ]
        yield {
            "question": name,
            "alpha": _finite(alpha),
            "equal": _finite(sum(equal) / len(equal) if equal else math.nan),
            "rows": len(shared),
            "raters": len(raters),
        }


def _spans_agreement(answers: Said) -> list[dict[str, Any]]:
    """Return F1 of every two raters over the marked characters, and with severities."""
    raters = sorted({rater for by in answers.first.values() for rater in by})
    people = [
        {
            key: _spans(by[name].answer)
            for key, by in answers.first.items()
            if name in by
        }
        for name in raters
    ]
    lengths = {key: len(answers.units[key].row["output"]) for key in answers.first}
    agreement = (
        human_span_agreement(people, lengths, rounds=0) if len(people) > 1 else None
    )
    if agreement is None:
        return [
            {
                "question": "errors",
                "f1": None,
                "weighted_f1": None,
                "rows": 0,
                "raters": len(raters),
            }
        ]
    return [
        {
            "question": "errors",
            "f1": _finite(agreement.micro.f1.value),
            "weighted_f1": _finite(agreement.weighted.f1.value),
            "rows": agreement.texts,
            "raters": len(raters),
        }
    ]


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


def _splits(answered: Said) -> Iterator[dict[str, Any]]:
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


def _contradictions(answers: Said) -> Iterator[dict[str, Any]]:
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


def _confused(answers: Said) -> list[dict[str, Any]]:
    """Return pairs of answers that raters give to the same row, the most frequent first: unclear guidelines."""
    pairs: Counter[tuple[str, str, str]] = Counter()
    for by in answers.first.values():
        for question in answers.task.questions:
            present = {one.answer[question.name] for one in by.values() if one.answer}
            if question.choices:
                ranked = [
                    choice for choice in question.choices if choice.value in present
                ]
                pairs.update(
                    (question.name, a.label, b.label)
                    for a, b in itertools.combinations(ranked, 2)
                )
    return [
        {"question": name, "between": [a, b], "rows": n}
        for (name, a, b), n in pairs.most_common(10)
    ]


def _finite(value: float) -> float | None:
    return round(float(value), 4) if math.isfinite(value) else None
