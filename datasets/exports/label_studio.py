"""Label Studio: its JSON, also the older one with `completions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from judgesmith.conversation import judged
from judgesmith.datasets.exports import (
    DISCARDED,
    OF_PARTS,
    Answer,
    Answers,
    Record,
    Refusal,
    exports,
)
from judgesmith.datasets.exports.cells import an_object, in_time, objects, parsed_object
from judgesmith.datasets.statuses import discounted, marked
from judgesmith.rows import ROLES

_CONVERSATIONS = frozenset[str]().union(*ROLES["messages"])
#: What answers to a question are called.
_ANSWERS = ("rating", "choices", "number", "taxonomy", "selected")


@exports.register
class LabelStudio(Answers):
    """Tasks with annotations.

    Cancelled annotations do not count, and of what was said of regions or messages nothing but comments.
    """

    name = "label-studio"
    title = "Label Studio"
    about = "Label Studio, exported as JSON"
    objects = frozenset({"data", "annotations"})
    refused = (
        Refusal(
            frozenset({"annotation_id", "lead_time"}),
            frozenset({"annotations"}),
            "this is an export of Label Studio as CSV or JSON-MIN; export it as JSON",
        ),
    )

    def belongs(self, record: Mapping[str, Any]) -> bool:
        return "data" in record and ("annotations" in record or "completions" in record)

    def read(self, record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
        annotations = in_time(
            objects(record.get("annotations", record.get("completions"))),
            "created_at",
            "id",
        )
        data = dict(parsed_object(record["data"]))
        chats = [
            name
            for name, cell in data.items()
            if not isinstance(cell, str) and judged(cell) is not None
        ]
        if len(chats) == 1:
            if chats[0] not in _CONVERSATIONS:
                data["messages"] = data.pop(chats[0])
            if "text" in data:
                # What annotators are told stands there in templates for chats, and the chat is judged.
                data["data.text"] = data.pop("text")
        answers = (answer for one in annotations for answer in _annotated(one))
        # An id among the data is that of the user's file, which numbers of tasks are not.
        return {"id": record.get("id"), **data}, answers


def _annotated(annotation: Mapping[str, Any]) -> Iterator[Answer]:
    who = annotation.get("completed_by")
    if isinstance(who, Mapping):
        who = who.get("email") or who.get("id")
    discarded = DISCARDED if annotation.get("was_generated") else ""
    if why := discounted(annotation):
        discarded = marked(why)
    results = objects(annotation.get("result"))
    parts = filter(_is_region, results)
    regions = {str(region["id"]) for region in parts if region.get("id") is not None}
    for result in results:
        inner = an_object(result.get("value"))
        key = next((key for key in _ANSWERS if key in inner), None)
        if key is not None:
            left = discarded
            in_part = str(result.get("id")) in regions or _is_region(result)
            if in_part and not left:
                left = OF_PARTS
            yield Answer(
                result.get("from_name"),
                who,
                _chosen(key, inner[key]),
                left,
                compares=key == "selected",
            )
        elif result.get("type") == "textarea" and not discarded:
            comment = " ".join(map(str, inner.get("text") or ()))
            yield Answer(None, who, None, reason=comment)


def _chosen(key: str, value: Any) -> Any:
    """Return the value of an answer; several choices together are an answer of their own."""
    if key == "taxonomy":
        paths = [path for path in value if isinstance(path, list)]
        value = [" > ".join(map(str, path)) for path in paths]
    several = isinstance(value, list) and len(value) > 1
    if several and key in ("choices", "taxonomy"):
        return " + ".join(map(str, value))
    return value


def _is_region(result: Mapping[str, Any]) -> bool:
    """Return True if an answer is about a part of the text, which then stands beside it."""
    inner = an_object(result.get("value"))
    held = {key for key, cell in inner.items() if cell is not None}
    beside = held - {*_ANSWERS, "text", "meta"}
    return bool(beside) or "item_index" in result or bool(result.get("parentID"))
