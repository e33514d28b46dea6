"""Phoenix: a data frame of spans, joined with their annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from judgesmith.datasets.exports import Answer, Answers, Record, Refusal, exports
from judgesmith.datasets.exports.cells import first, is_there
from judgesmith.datasets.exports.traces import trace_input, trace_output
from judgesmith.datasets.statuses import by_people, not_of_people
from judgesmith.rows import as_text, source_key


@exports.register
class Phoenix(Answers):
    """A row for each annotation, of which those of people count. It is of the span that its id names."""

    name = "phoenix"
    title = "Phoenix"
    about = "Phoenix, spans joined with their annotations"
    refused = (
        Refusal(
            frozenset({"annotation_name", "annotator_kind"}),
            frozenset({"attributes.output.value", "attributes.input.value"}),
            "these are annotations of Phoenix without the texts that they are of; join them with their spans, or pull "
            "both with `judgesmith sync phoenix PROJECT`",
        ),
    )

    def belongs(self, record: Mapping[str, Any]) -> bool:
        needed = {"attributes.output.value", "result.label", "result.score"}
        return needed <= record.keys()

    def read(self, record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
        kind = record.get("annotator_kind")
        kind = kind if is_there(kind) else "HUMAN"
        answer = Answer(
            record.get("annotation_name"),
            phoenix_rater(record),
            first(record, ("result.score", "result.label")),
            "" if by_people(kind) else not_of_people(kind),
            record.get("result.explanation"),
        )
        source = trace_input(record.get("attributes.input.value")).value
        output = trace_output(record.get("attributes.output.value")).value
        span = first(record, ("context.span_id", "span_id"))
        if span is None:
            span = source_key(f"{as_text(source)}\n{as_text(output)}")
        texts = {"id": span, "source": source, "output": output}
        session = record.get("attributes.session.id")
        if is_there(session):
            texts["group"] = session
        return texts, [answer]


def phoenix_rater(annotation: Mapping[str, Any]) -> Any:
    """Return the author of an annotation: the user, or the identifier that a program gave it.

    A program's key names no person.
    """
    names = ("user_id", "identifier")
    by_program = annotation.get("source") == "API"
    return first(annotation, names[::-1] if by_program else names)
