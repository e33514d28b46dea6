"""Langfuse: traces or observations with `scores`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from judgesmith.datasets.exports import (
    DISCARDED,
    Answer,
    Answers,
    Record,
    Refusal,
    exports,
)
from judgesmith.datasets.exports.cells import an_object, in_time, is_there, objects
from judgesmith.datasets.exports.traces import trace_input, trace_output
from judgesmith.datasets.statuses import by_people, not_of_people


@exports.register
class Langfuse(Answers):
    """Traces of one API with a session, of another with scores that say where they come from."""

    name = "langfuse"
    title = "Langfuse"
    about = "Langfuse, traces with their scores"
    refused = (
        Refusal(
            frozenset({"traceId", "name", "value"}),
            frozenset({"input", "output"}),
            "these are scores of Langfuse without the texts that they are of; export traces with their scores, or "
            "pull both with `judgesmith sync langfuse PROJECT`",
        ),
    )

    def belongs(self, record: Mapping[str, Any]) -> bool:
        if not {"input", "output", "scores"} <= record.keys():
            return False
        return "sessionId" in record or any(
            {"name", "value", "dataType"} <= score.keys()
            for score in objects(record["scores"])
        )

    def read(self, record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
        texts = {
            "id": record.get("id"),
            "source": trace_input(record["input"]).value,
            "output": trace_output(record["output"]).value,
        }
        scores = in_time(objects(record["scores"]), "timestamp", "createdAt")
        return texts, map(langfuse_score, scores)


def langfuse_score(score: Mapping[str, Any]) -> Answer:
    """Return a score of an export.

    Scores of people count: their source is ANNOTATION, and no judge is named, as in `judgesmith sync`.
    """
    source = score.get("source")
    left = DISCARDED if "judge" in an_object(score.get("metadata")) else ""
    if not left and is_there(source) and not by_people(source):
        left = not_of_people(source)
    rating = None
    if score.get("dataType") not in ("TEXT", "CORRECTION"):
        rating = score.get("stringValue") or score.get("value")
    who = score.get("authorUserId") or source
    return Answer(score.get("name"), who, rating, left, score.get("comment"))
