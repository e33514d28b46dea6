"""Prodigy: a decision or a choice for each task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from judgesmith.datasets.exports import DISCARDED, Answer, Answers, Record, exports
from judgesmith.datasets.exports.cells import parsed_object

_OURS = ("meta", "options", "accept", "answer")


@exports.register
class Prodigy(Answers):
    """An accepted choice of an option, or the decision itself; what was ignored does not count."""

    name = "prodigy"
    title = "Prodigy"
    about = "Prodigy, db-out"

    def belongs(self, record: Mapping[str, Any]) -> bool:
        return "answer" in record and "_input_hash" in record

    def read(self, record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
        texts = {
            name: cell
            for name, cell in record.items()
            if name not in _OURS and not name.startswith("_")
        }
        decision = record["answer"]
        value = decision
        left = DISCARDED if decision == "ignore" else ""
        if "accept" in record:
            value = record["accept"]
            left = "" if decision == "accept" else DISCARDED
        answer = Answer("rating", record.get("_annotator_id"), value, left)
        return {**parsed_object(record.get("meta")), **texts}, [answer]
