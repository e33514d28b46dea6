"""What annotation and tracing tools export, as plain records: Argilla, Label Studio, MLflow, Langfuse, Phoenix.

Each record gets the columns that people would have written by hand: texts under their own names, `scores` as {name:
{rater: rating}}, and `why` as {name: [comment]}. Only what people said counts: scores of other judges (LLM, code) are
left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..conversation import parsed
from ..errors import LabelsError
from ..rows import folded_name, named_roles

Record: TypeAlias = dict[str, Any]
#: A question, who answered it, the answer, whether it counts (a person gave it and stands by it), and the reason.
Given: TypeAlias = tuple[Any, Any, Any, bool, Any]
#: What MLflow's expectations call an expected answer.
_EXPECTED = ("reference", "expected_response")
_REASONS = frozenset[str]().union(*named_roles("ratings")["rationale"])


@dataclass
class Export:
    """A tool whose export was recognised. left_out: ratings that no person gave, or that were discarded."""

    tool: str
    read: Callable[[Mapping[str, Any]], tuple[Record, Iterator[Given]]]
    left_out: int = 0

    def record(self, record: Mapping[str, Any]) -> Record:
        made, ratings = self.read(record)
        scores: dict[str, dict[str, Any]] = {}
        why: dict[str, list[str]] = {}
        for question, rater, value, counts, reason in ratings:
            if isinstance(value, str) and folded_name(str(question)) in _REASONS:  # a question that asks for a text
                question, value, reason = None, None, value
            if counts and _there(reason):
                why.setdefault(str(question or "rating"), []).append(reason)
            value = value[0] if isinstance(value, list) and len(value) == 1 else value
            if not counts:
                self.left_out += value is not None
            elif value is not None and not isinstance(value, (list, Mapping)):  # rankings and spans are no ratings
                given = scores.setdefault(str(question or "rating"), {})
                who = str(rater) if _there(rater) else "1"
                while who in given:  # the same person once more
                    who += "'"
                given[who] = value
        return {**made, "scores": scores} | ({"why": why} if why else {})


def recognised(head: Sequence[Mapping[str, Any]], origin: str) -> Export | None:
    """The tool that these records come from, None for plain ones. Raises LabelsError for Label Studio's CSV."""
    if head and {"annotation_id", "lead_time"} <= set(head[0]):
        raise LabelsError(f"{origin}: this is an export of Label Studio as CSV or JSON-MIN; export it as JSON")
    for tool, keys, read in _TOOLS:
        if head and sum(keys <= set(record) for record in head) * 2 > len(head):
            return Export(tool, read)
    return None


def _argilla(record: Mapping[str, Any]) -> tuple[Record, Iterator[Given]]:
    """`records.to_list()`; responses that were not submitted do not count."""
    given = (
        (question, response.get("user_id"), response.get("value"), response.get("status") in (None, "submitted"), None)
        for question, answers in _object(record["responses"]).items()
        for response in _objects(answers)
    )
    return {**_object(record["fields"]), **_object(record.get("metadata")), "id": record.get("id")}, given


def _label_studio(record: Mapping[str, Any]) -> tuple[Record, Iterator[Given]]:
    """The JSON export; cancelled annotations do not count."""

    def given() -> Iterator[Given]:
        for annotation in _objects(record["annotations"]):
            who = annotation.get("completed_by")
            who = (who.get("email") or who.get("id")) if isinstance(who, Mapping) else who
            for result in _objects(annotation.get("result")):
                inner = _object(result.get("value"))
                key = next((key for key in ("rating", "choices", "number", "selected") if key in inner), None)
                counts = not annotation.get("was_cancelled")
                if key is not None:
                    yield result.get("from_name"), who, inner[key], counts, None
                elif result.get("type") == "textarea" and counts:
                    yield None, who, None, True, " ".join(map(str, inner.get("text") or ()))

    return {**_object(record["data"]), "id": record.get("id")}, given()


def _mlflow(record: Mapping[str, Any]) -> tuple[Record, Iterator[Given]]:
    """`mlflow.search_traces()` as a table; human assessments count, unless another one has taken their place. Passages
    stand beside the inputs as `context`, an expected answer is the reference, and a session is a group."""
    standing = [one for one in _objects(record["assessments"]) if one.get("valid") is not False]

    def given() -> Iterator[Given]:
        for assessment in standing:
            source = _object(assessment.get("source"))
            if "feedback" in assessment:
                by_person = str(source.get("source_type", "HUMAN")).upper() == "HUMAN"
                value = _object(assessment["feedback"]).get("value")
                name, reason = assessment.get("assessment_name"), assessment.get("rationale")
                yield name, source.get("source_id"), value, by_person, reason

    inputs = parsed(record.get("request"))
    passages = inputs.get("context") if isinstance(inputs, Mapping) and len(inputs) > 1 else None
    if passages is not None:
        inputs = {name: value for name, value in inputs.items() if name != "context"}
    expected = {one.get("assessment_name"): _object(one.get("expectation")).get("value") for one in standing}
    beside = {
        "context": passages,
        "reference": next((expected[name] for name in _EXPECTED if _there(expected.get(name))), None),
        "group": _object(parsed(record.get("trace_metadata"))).get("mlflow.trace.session"),
    }
    texts = {"source": plain(inputs), "output": plain(record.get("response"))}
    return {"id": record.get("trace_id"), **texts} | {k: v for k, v in beside.items() if v is not None}, given()


def _phoenix(record: Mapping[str, Any]) -> tuple[Record, Iterator[Given]]:
    """A data frame of spans, joined with their annotations; those of people count."""
    label, score = record.get("result.label"), record.get("result.score")
    by_person = str(record.get("annotator_kind") or "HUMAN").upper() == "HUMAN"
    who = record.get("user_id") or record.get("identifier")
    rating, reason = score if _there(score) else label, record.get("result.explanation")
    given = iter([(record.get("annotation_name"), who, rating, by_person, reason)])
    texts = {f"attributes.{side}.value": name for side, name in (("input", "source"), ("output", "output"))}
    return {name: plain(record.get(column)) for column, name in texts.items()}, given


def _langfuse(record: Mapping[str, Any]) -> tuple[Record, Iterator[Given]]:
    """Traces or observations with `scores`."""
    texts = {"source": plain(record["input"]), "output": plain(record["output"])}
    return {"id": record.get("id"), **texts}, map(langfuse_score, _objects(record["scores"]))


def langfuse_score(score: Mapping[str, Any]) -> Given:
    """A score; those of people count (their source is not EVAL, and no judge is named, as `judgesmith sync` does)."""
    by_person = str(score.get("source", "")).upper() != "EVAL" and "judge" not in _object(score.get("metadata"))
    rating = None if score.get("dataType") in ("TEXT", "CORRECTION") else score.get("stringValue") or score.get("value")
    return score.get("name"), score.get("authorUserId") or score.get("source"), rating, by_person, score.get("comment")


#: The tool, the columns by which its export is known, and how one record of it is read.
_TOOLS = (
    ("Argilla", {"fields", "responses"}, _argilla),
    ("Label Studio", {"annotations", "data"}, _label_studio),
    ("MLflow", {"trace_id", "assessments"}, _mlflow),
    ("Phoenix", {"attributes.output.value", "result.label", "result.score"}, _phoenix),
    ("Langfuse", {"input", "output", "scores", "sessionId"}, _langfuse),
)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    value = parsed(value)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _there(value: Any) -> bool:
    return value is not None and value == value and value != ""


def plain(value: Any) -> Any:
    """An input or output of a trace: JSON as its object, and of an object with one text that text."""
    value = parsed(value)
    if isinstance(value, Mapping) and len(value) == 1:
        inner = next(iter(value.values()))
        return inner if isinstance(inner, str) else value
    return value
