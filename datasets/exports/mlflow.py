"""MLflow: traces with assessments, as a table or whole. Human assessments count, unless another took their place."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from judgesmith.datasets.exports import OF_SPANS, Answer, Answers, Record, exports
from judgesmith.datasets.exports.cells import (
    an_object,
    in_time,
    is_there,
    objects,
    parsed_object,
)
from judgesmith.datasets.exports.traces import trace_input, trace_output
from judgesmith.datasets.statuses import by_people, not_of_people

#: What expectations call an expected answer.
_EXPECTED = ("reference", "expected_response")


@exports.register
class Mlflow(Answers):
    """`mlflow.search_traces()` as a table.

    Passages stand beside the inputs as `context`, an expected answer is the reference, and a session is a group.
    """

    name = "mlflow"
    title = "MLflow"
    about = "MLflow, search_traces() as a table"

    def belongs(self, record: Mapping[str, Any]) -> bool:
        return "trace_id" in record and "assessments" in record

    def read(self, record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
        assessments = objects(record["assessments"])
        standing = [one for one in assessments if one.get("valid") is not False]
        about = parsed_object(record.get("trace_metadata"))
        request = trace_input(record.get("request"))
        texts = {
            "id": record.get("trace_id"),
            "source": request.value,
            "output": trace_output(record.get("response")).value,
        }
        beside = {
            "context": request.context,
            "reference": _expected(standing),
            "group": about.get("mlflow.trace.session"),
        }
        texts |= {name: cell for name, cell in beside.items() if cell is not None}
        return texts, _answers(standing, _roots(record.get("spans"), about))


@exports.register
class MlflowTrace(Answers):
    """A line of `Trace.to_json()`: what a table has of it, from its root span."""

    name = "mlflow-trace"
    title = "MLflow"
    about = "MLflow, Trace.to_json()"

    def belongs(self, record: Mapping[str, Any]) -> bool:
        return "trace_id" in parsed_object(record.get("info")) and (
            "spans" in parsed_object(record.get("data"))
        )

    def read(self, record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
        about = parsed_object(record["info"])
        spans = objects(parsed_object(record["data"]).get("spans"))
        tops = (span for span in spans if not is_there(_parent(span)))
        root = an_object(next(tops, {}).get("attributes"))
        return Mlflow().read(
            {
                "assessments": [],
                **about,
                "spans": spans,
                "request": _loaded(root.get("mlflow.spanInputs")),
                "response": _loaded(root.get("mlflow.spanOutputs")),
            }
        )


def _answers(
    standing: Sequence[Mapping[str, Any]], is_root: Callable[[Any], bool]
) -> Iterator[Answer]:
    for assessment in in_time(standing, "create_time"):
        if "feedback" not in assessment:
            continue
        source = an_object(assessment.get("source"))
        kind = source.get("source_type", "HUMAN")
        span = assessment.get("span_id")
        left = ""
        if not by_people(kind):
            left = not_of_people(kind)
        elif is_there(span) and not is_root(span):
            left = OF_SPANS
        yield Answer(
            assessment.get("assessment_name"),
            source.get("source_id"),
            an_object(assessment["feedback"]).get("value"),
            left,
            assessment.get("rationale"),
        )


def _expected(assessments: Sequence[Mapping[str, Any]]) -> Any:
    """Return the expected answer, by the first of its usual names."""
    expected: dict[str, Any] = {}
    for assessment in assessments:
        name = str(assessment.get("assessment_name"))
        expected[name] = an_object(assessment.get("expectation")).get("value")
    present = (expected[name] for name in _EXPECTED if is_there(expected.get(name)))
    return next(present, None)


def _roots(spans: Any, about: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Return a test whether a span is the root of its trace: by its spans, or because it is the only one."""
    siblings = objects(spans)
    if siblings:
        tops = (span for span in siblings if not is_there(_parent(span)))
        roots = {_hexadecimal(span.get("span_id")) for span in tops}
        return lambda span: _hexadecimal(span) in roots
    alone = parsed_object(about.get("mlflow.trace.sizeStats")).get("num_spans") == 1
    return lambda _: alone


def _parent(span: Mapping[str, Any]) -> Any:
    return span.get("parent_span_id", span.get("parent_id"))


def _hexadecimal(span: Any) -> str:
    """The id of a span, which MLflow's files have in base64 and its assessments in hexadecimal."""
    text = str(span)
    if len(text) == 12 and text.endswith("="):
        try:
            return base64.b64decode(text, validate=True).hex()
        except binascii.Error:
            pass
    return text


def _loaded(value: Any) -> Any:
    """An attribute of a span, which is JSON: a text stands in quotes."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
