"""What annotation and tracing tools export, as plain records: Argilla, Label Studio, MLflow, Langfuse, Phoenix.

Each record gets the columns that people would have written by hand: texts under their own names, `scores` as {name:
{rater: rating}}. Only what people said counts: scores of other judges (LLM, code) are left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..conversation import parsed
from ..errors import LabelsError

Record = dict[str, Any]


@dataclass
class Export:
    """A tool whose export was recognised. left_out: ratings that no person gave, or that were discarded."""

    tool: str
    read: Callable[[Mapping[str, Any], Export], Record]
    left_out: int = field(default=0)

    def record(self, record: Mapping[str, Any]) -> Record:
        return self.read(record, self)


def recognised(head: Sequence[Mapping[str, Any]], origin: str) -> Export | None:
    """The tool that these records come from, None for plain ones. Raises LabelsError for Label Studio's CSV."""
    if head and {"annotation_id", "lead_time"} <= set(head[0]):
        raise LabelsError(f"{origin}: this is an export of Label Studio as CSV or JSON-MIN; export it as JSON")
    for tool, is_of, read in _TOOLS:
        if head and sum(map(is_of, head)) * 2 > len(head):
            return Export(tool, read)
    return None


# Argilla -------------------------------------------------------------------------------------------------------------


def _of_argilla(record: Mapping[str, Any]) -> bool:
    if isinstance(record.get("fields"), Mapping) and "responses" in record:
        return True
    return any(name.endswith(".responses") for name in record)


def _argilla(record: Mapping[str, Any], export: Export) -> Record:
    """`records.to_list()` (nested) and `to_list(flatten=True)`; responses that were not submitted are left out."""
    scores: dict[str, dict[str, Any]] = {}
    if isinstance(record.get("fields"), Mapping):
        made = {**record["fields"], **_object(record.get("metadata"))}
        for question, given in _object(record["responses"]).items():
            for one in _objects(given):
                _rate(scores, question, one.get("user_id"), one.get("value"), export, one.get("status"))
    else:
        made = {name: value for name, value in record.items() if "." not in name and not name.startswith("_")}
        for name in [name for name in record if name.endswith(".responses")]:
            question, values = name.removesuffix(".responses"), _list(record[name])
            users, states = (_list(record.get(f"{name}.{what}")) for what in ("users", "status"))
            for place, value in enumerate(values):
                state = states[place] if place < len(states) else None
                _rate(scores, question, users[place] if place < len(users) else None, value, export, state)
    return {**made, "id": record.get("id"), "scores": scores}


# Label Studio --------------------------------------------------------------------------------------------------------


def _of_label_studio(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("annotations"), list) and isinstance(record.get("data"), Mapping)


def _label_studio(record: Mapping[str, Any], export: Export) -> Record:
    scores: dict[str, dict[str, Any]] = {}
    for annotation in _objects(record["annotations"]):
        who = annotation.get("completed_by")
        who = (who.get("email") or who.get("id")) if isinstance(who, Mapping) else who
        state = "discarded" if annotation.get("was_cancelled") else None
        for result in _objects(annotation.get("result")):
            found = _value(result.get("value"))
            if found is not result.get("value"):
                _rate(scores, str(result.get("from_name") or "rating"), who, found, export, state)
    return {**record["data"], "id": record.get("id"), "scores": scores}


def _value(cell: Any) -> Any:
    """`[{"rating": 4}]`, `{"choices": ["good"]}`, `{"selected": "left"}` as 4, good, left; anything else as it is."""
    inner = parsed(cell)
    inner = inner[0] if isinstance(inner, list) and len(inner) == 1 else inner
    if isinstance(inner, Mapping):
        for key in ("rating", "choices", "number", "selected"):
            if key in inner:
                found = inner[key]
                return found[0] if isinstance(found, list) and len(found) == 1 else found
    return cell


# MLflow --------------------------------------------------------------------------------------------------------------


def _of_mlflow(record: Mapping[str, Any]) -> bool:
    return {"trace_id", "assessments"} <= set(record) or isinstance(record.get("info"), Mapping)


def _mlflow(record: Mapping[str, Any], export: Export) -> Record:
    """`mlflow.search_traces()` as a table, and traces as JSON. Human assessments are ratings."""
    info = _object(record.get("info")) or record
    scores: dict[str, dict[str, Any]] = {}
    for one in _objects(info.get("assessments")):
        source = _object(one.get("source"))
        value = (_object(one.get("feedback")) or one).get("value")
        by_person = str(source.get("source_type", "HUMAN")).upper() == "HUMAN"
        name = str(one.get("name") or one.get("assessment_name") or "feedback")
        if value is not None or "feedback" in one:
            _rate(scores, name, source.get("source_id"), value, export, None if by_person else "judge")
    first = ("request", "inputs", "request_preview"), ("response", "outputs", "response_preview")
    source_text, output = (next((v for k in keys for v in (record.get(k), info.get(k)) if v), None) for keys in first)
    return {"id": info.get("trace_id"), "source": _plain(source_text), "output": _plain(output), "scores": scores}


# Langfuse ------------------------------------------------------------------------------------------------------------


def _of_langfuse(record: Mapping[str, Any]) -> bool:
    scores = parsed(record.get("scores"))
    listed = isinstance(scores, list) and all(isinstance(s, Mapping) and "name" in s for s in scores)
    return listed and "output" in record and bool({"input", "sessionId", "traceId", "userId"} & set(record))


def _langfuse(record: Mapping[str, Any], export: Export) -> Record:
    """Traces or observations with `scores`; those that an evaluator gave (source EVAL) are left out."""
    scores: dict[str, dict[str, Any]] = {}
    for one in _objects(record.get("scores")):
        value = one.get("stringValue") or one.get("string_value") or one.get("value")
        who = one.get("authorUserId") or one.get("author_user_id") or one.get("source")
        state = "judge" if str(one.get("source", "")).upper() == "EVAL" else None
        _rate(scores, str(one["name"]), who, value, export, state)
    kept = {"id": record.get("id"), "source": _plain(record.get("input")), "output": _plain(record.get("output"))}
    return {**kept, "scores": scores}


# Phoenix -------------------------------------------------------------------------------------------------------------


def _of_phoenix(record: Mapping[str, Any]) -> bool:
    return "attributes.output.value" in record or ("annotations" in record and "context" in record)


def _phoenix(record: Mapping[str, Any], export: Export) -> Record:
    """Spans with annotations: a data frame's columns, or nested JSON."""
    attributes = _object(record.get("attributes"))

    def value(side: str) -> Any:
        inner = attributes.get(side)
        nested = inner.get("value") if isinstance(inner, Mapping) else attributes.get(f"{side}.value")
        return record.get(f"attributes.{side}.value", nested)

    scores: dict[str, dict[str, Any]] = {}
    annotations = _objects(record.get("annotations"))
    if "result.label" in record or "result.score" in record:
        flat = {"label": record.get("result.label"), "score": record.get("result.score")}
        annotations.append({**record, "result": flat, "name": record.get("annotation_name") or record.get("name")})
    for one in annotations:
        result = _object(one.get("result")) or one
        found = result.get("score") if _there(result.get("score")) else result.get("label")
        kind = str(one.get("annotator_kind") or one.get("annotatorKind") or "HUMAN").upper()
        who = one.get("user_id") or one.get("identifier")
        _rate(scores, str(one.get("name") or "feedback"), who, found, export, None if kind == "HUMAN" else "judge")
    identity = record.get("context.span_id") or _object(record.get("context")).get("span_id")
    made = {"source": _plain(value("input")), "output": _plain(value("output")), "scores": scores}
    return made if identity is None or "result.score" in record else {"id": identity, **made}


_TOOLS: tuple[tuple[str, Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any], Export], Record]], ...] = (
    ("Argilla", _of_argilla, _argilla),
    ("Label Studio", _of_label_studio, _label_studio),
    ("MLflow", _of_mlflow, _mlflow),
    ("Phoenix", _of_phoenix, _phoenix),
    ("Langfuse", _of_langfuse, _langfuse),
)


def _rate(
    scores: dict[str, dict[str, Any]], name: str, rater: Any, value: Any, export: Export, state: Any = None
) -> None:
    """Enter one rating. state: None or "submitted" for one that counts."""
    if state not in (None, "submitted"):
        export.left_out += 1
        return
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(value, (list, Mapping)):
        return  # rankings and spans are no ratings
    given = scores.setdefault(name, {})
    who = str(rater) if _there(rater) else "1"
    while who in given:  # the same person once more
        who += "'"
    given[who] = value


def _list(value: Any) -> list[Any]:
    value = parsed(value)
    return value if isinstance(value, list) else []


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in _list(value) if isinstance(one, Mapping)]


def _there(value: Any) -> bool:
    return value is not None and value == value and value != ""


def _plain(value: Any) -> Any:
    """An input or output of a trace: JSON as its object, and of an object with one text that text."""
    value = parsed(value)
    if isinstance(value, Mapping) and len(value) == 1:
        inner = next(iter(value.values()))
        return inner if isinstance(inner, str) else value
    return value
