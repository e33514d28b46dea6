"""Labels as files that the other commands read without an option."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_never

from judgesmith.datasets.marks import Marks
from judgesmith.errors import OptionError
from judgesmith.evaluating.passrate import CHANCE
from judgesmith.programs.atomic import write_whole
from judgesmith.rooms.labelling.agreement import RaterAnswers
from judgesmith.rooms.labelling.store import AnswerEvent
from judgesmith.rooms.labelling.task import WHY, Task
from judgesmith.running.plain import finite

#: The column that an answer names: those of systems may be "a" and "b", too.
_WINNERS = {"a": "output_a", "b": "output_b", "tie": "tie"}


def check_export(path: Path) -> None:
    """Check the format of an export.

    Raises:
        OptionError: If the suffix names no known format.
    """
    if path.suffix.lower() != ".jsonl":
        raise OptionError(
            f"--export {path}: labels are written as JSON lines; name it .jsonl"
        )


def export(answers: RaterAnswers, path: Path) -> int:
    """Write a line for each rater's answer on each row, the first one if shown twice; return the number.

    Raises:
        OptionError: If the file cannot be written.
    """
    records = labels(answers)
    lines = (
        json.dumps(finite(record), ensure_ascii=False) + "\n" for record in records
    )
    try:  # a lone surrogate becomes JSON's own escape for it
        write_whole(path, "".join(lines).encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise OptionError(
            f"--export {path}: cannot be written ({error.strerror or error})"
        ) from None
    return len(records)


def labels(answers: RaterAnswers) -> list[dict[str, Any]]:
    """Return one record for each answer, and for what was settled, in the order of the rows."""
    words = _category_words(answers)
    result = []
    for key, unit in answers.units.items():
        decided = answers.settled.get(key)
        given = [*answers.first.get(key, {}).values(), *([decided] if decided else [])]
        for one in given:
            row = {
                name: value
                for name, value in {**unit.extra, **unit.row}.items()
                if name != "system" or answers.task.kind != "preference"
            }
            when = datetime.fromtimestamp(one.at, UTC).isoformat(
                timespec="milliseconds"
            )
            chosen: dict[str, Any] = {}
            if key in answers.suggested:
                chosen["chosen_by"] = "suggest"
            if key in answers.chances:
                chosen[CHANCE] = answers.chances[key]
            if one is decided:
                chosen["settled_by"] = one.rater
            result.append(
                row | _label(answers, one, words) | {"labelled_at": when} | chosen
            )
    return result


def _label(
    answers: RaterAnswers, one: AnswerEvent, words: Mapping[str, str]
) -> dict[str, Any]:
    task = answers.task
    answer = one.answer
    assert answer is not None
    if task.kind == "spans":
        errors = [
            one | {"how": "omission" if one["start"] is None else "exact"}
            for one in answer["errors"]
        ]
        return {"annotator": one.rater, "errors": errors}
    who: dict[str, Any] = {"rater": one.rater}
    reasons = answer.get(WHY, {})
    if len(task.aspects) < 2:
        reasons = next(iter(reasons.values()), None)
    who |= {WHY: reasons} if reasons else {}
    match task.kind:
        case "preference":
            return who | {"winner": _WINNERS[answer["preference"]]}
        case "score" | "category" | "binary":
            return who | {
                score_column(task, question): words.get(value, value)
                for question, value in answer.items()
                if question != WHY
            }
        case never:
            assert_never(never)


def score_column(task: Task, question: str) -> str:
    """Return the column's name, which tells the aspect and the scale to whoever reads the file."""
    aspect = question if len(task.aspects) > 1 else next(iter(task.aspects), "")
    low, high = task.scale
    named = low.is_integer() and high.is_integer() and low >= -999 and high <= 999
    scale = f" ({low:g}-{high:g})" if task.kind == "score" and named else ""
    return f"scores.{aspect}{scale}" if aspect else f"score{scale}"


def _category_words(answers: RaterAnswers) -> dict[str, str]:
    """Return each category as it is written: its word if readers know the words' order, else with its number."""
    names = answers.task.categories
    if not names:
        return {}
    used = []
    for by in answers.first.values():
        for event in by.values():
            for question, value in (event.answer or {}).items():
                if question != WHY:
                    used.append(value)
    marks = Marks.of(used)
    places = [marks.values.get(name.casefold()) for name in names]
    order = [number for number in places if number is not None]
    complete = None not in places and len(marks.names) == len(names)
    if complete and order == sorted(set(order)):
        return {}
    return {name: f"{place} - {name}" for place, name in enumerate(names, 1)}
