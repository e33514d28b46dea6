"""Argilla: three ways in which its records are exported. Responses that were not submitted do not count."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from judgesmith.conversation import parsed
from judgesmith.datasets.exports import DISCARDED, Answer, Answers, Record, exports
from judgesmith.datasets.exports.cells import is_there, listed, objects, parsed_object

#: What flat records have beside texts and answers.
_BESIDE = ("_server_id", "status", "vectors", "inserted_at", "updated_at")


@exports.register
class Argilla(Answers):
    """`records.to_list()`."""

    name = "argilla"
    title = "Argilla"
    about = "Argilla, records.to_list()"
    objects = frozenset({"fields", "responses"})

    def belongs(self, record: Mapping[str, Any]) -> bool:
        return "fields" in record and "responses" in record

    def read(self, record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
        questions = parsed_object(record["responses"]).items()
        answers = itertools.chain(*itertools.starmap(_responses, questions))
        fields = parsed_object(record["fields"])
        about = parsed_object(record.get("metadata"))
        return {**fields, **about, "id": record.get("id")}, answers


@exports.register
class ArgillaFlat(Answers):
    """`records.to_list(flatten=True)` and `to_datasets()`.

    Each question has `.responses`, `.responses.users` and `.responses.status`. A suggestion of a model is no response.
    """

    name = "argilla-flat"
    title = "Argilla"
    about = "Argilla, records.to_list(flatten=True) and to_datasets()"

    def belongs(self, record: Mapping[str, Any]) -> bool:
        return bool(_questions(record))

    def read(self, record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
        questions = _questions(record)
        ours = tuple(
            f"{question}.{part}"
            for question in questions
            for part in ("responses", "suggestion")
        )
        fields = {
            name: cell
            for name, cell in record.items()
            if not name.startswith(ours) and name not in _BESIDE
        }
        answers = (_flat_answers(record, question) for question in questions)
        return fields, itertools.chain.from_iterable(answers)


def _flat_answers(record: Mapping[str, Any], question: str) -> Iterator[Answer]:
    values = listed(record.get(f"{question}.responses"))
    users = listed(record.get(f"{question}.responses.users"))
    states = listed(record.get(f"{question}.responses.status"))
    missing = [None] * len(values)
    rows = zip(values, users + missing, states + missing, strict=False)
    for value, who, state in rows:
        yield Answer(question, who, value, _unless_submitted(state))


def _questions(record: Mapping[str, Any]) -> list[str]:
    """The questions of a flat record."""
    answered = _beside(record, ".responses", ("users", "status"))
    suggested = _beside(record, ".suggestion", ("score", "agent"))
    return list(dict.fromkeys([*answered, *suggested]))


def _beside(
    record: Mapping[str, Any], suffix: str, parts: Sequence[str]
) -> Iterator[str]:
    """The names before a suffix that have one of these parts, too: `NAME.responses` beside `NAME.responses.users`."""
    for key in record:
        if key.endswith(suffix) and any(f"{key}.{part}" in record for part in parts):
            yield key.removesuffix(suffix)


@exports.register
class Argilla1(Answers):
    """Version 1: a column of responses for each question, one of suggestions, and `metadata` as JSON.

    Many records have neither responses nor suggestions.
    """

    name = "argilla-1"
    title = "Argilla 1"
    about = "Argilla 1, with a column for each question"
    turn = 2
    share = 0.0

    def belongs(self, record: Mapping[str, Any]) -> bool:
        return any(name.endswith("-suggestion-metadata") for name in record) or any(
            map(_are_responses, record.values())
        )

    def read(self, record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
        suggested = tuple(f"{name}-suggestion" for name in record)
        fields: dict[str, Any] = {}
        responses: list[Iterable[Answer]] = []
        for name, cell in record.items():
            if _are_responses(cell):
                responses.append(_responses(name, cell))
            elif not name.startswith(suggested) and name not in ("metadata", "vectors"):
                fields[name] = cell
        about = parsed_object(record.get("metadata"))
        identity = record.get("external_id") or record.get("id")
        return {**about, **fields, "id": identity}, itertools.chain(*responses)


def _are_responses(cell: Any) -> bool:
    if isinstance(cell, str) and "user_id" not in cell:
        return False
    cell = parsed(cell)
    if isinstance(cell, Mapping):
        return {"user_id", "value", "status"} <= cell.keys() and all(
            isinstance(parsed(part), list) for part in cell.values()
        )
    responses = objects(cell)
    return bool(responses) and all(
        {"user_id", "value", "status"} <= response.keys() for response in responses
    )


def _responses(question: str, cell: Any) -> Iterator[Answer]:
    """Responses as a list of objects, or as an object of lists, which `datasets` makes of one."""
    cell = parsed(cell)
    if isinstance(cell, Mapping):
        columns = {name: listed(part) for name, part in cell.items()}
        rows = zip(*columns.values(), strict=False)
        cell = [dict(zip(columns, row, strict=True)) for row in rows]
    for entry in objects(cell):
        left = _unless_submitted(entry.get("status"))
        yield Answer(question, entry.get("user_id"), entry.get("value"), left)


def _unless_submitted(status: Any) -> str:
    return "" if not is_there(status) or status == "submitted" else DISCARDED
