"""Read exports of annotation and tracing tools as plain records: Argilla, Label Studio, MLflow, Langfuse, Phoenix.

Each record gets the columns that people would have written by hand: texts under their own names, `scores` as {name:
{rater: rating}}, and `why` as {name: [comment]}. A comparison of two outputs gets a column of the question's name with
{rater: winner}. Only what people said of a whole output counts: scores of other judges (LLM, code) and of parts of an
output are left out and counted.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from judgesmith.conversation import judged, parsed, rendered
from judgesmith.datasets.meanings import by_machine, rater_in, rating_in
from judgesmith.datasets.preferences import Pairs, names_a_side, only_pair
from judgesmith.datasets.statuses import (
    by_people,
    discounted,
    not_of_people,
    sources_in,
)
from judgesmith.errors import LabelsError
from judgesmith.rows import ROLES, as_text, folded_name, named_roles, source_key

Record: TypeAlias = dict[str, Any]
#: Why a rating is left out.
DISCARDED = "which no person gave or which were discarded"
OF_PARTS = "which are of parts of an output (spans, regions, messages)"
OF_SPANS = "which are of single spans and not of their trace (of its root only where the export has the spans)"
AGAIN = "which the same person replaced by a later one"
#: What MLflow's expectations call an expected answer.
_EXPECTED = ("reference", "expected_response")
_REASONS = frozenset[str]().union(*named_roles("ratings")["rationale"])
_CONVERSATIONS = frozenset[str]().union(*ROLES["messages"])


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question of an export.

    left: why it is no rating of the output, "" where it is one. compares: its value names the better one of two
    outputs.
    """

    question: Any
    rater: Any
    value: Any
    left: str = ""
    reason: Any = None
    compares: bool = False


Reader: TypeAlias = Callable[[Mapping[str, Any]], tuple[Record, Iterable[Answer]]]


@dataclass
class Export:
    """A tool whose export was recognised.

    left: how many ratings were left out, by reason. roles: the columns of comparisons by role, as they were found;
    winners: the questions that compare two outputs.
    """

    tool: str
    read: Reader
    left: Counter[str] = field(default_factory=Counter)
    roles: dict[str, str] = field(default_factory=dict)
    winners: dict[str, None] = field(default_factory=dict)

    def records(self, rows: Sequence[Mapping[str, Any]], origin: str) -> list[Record]:
        """Return each record's `record`.

        Raises:
            LabelsError: With the row, for one that cannot be read.
        """
        return [
            self.record(row, f"{origin}, row {number}")
            for number, row in enumerate(rows, 1)
        ]

    def record(self, record: Mapping[str, Any], place: str = "") -> Record:
        """Return the texts of a record with human ratings, the last one of each person.

        Args:
            record: The record as the tool exports it.
            place: The file and its row, for messages.

        Raises:
            LabelsError: If the record lacks a field that the others of its tool have.
        """
        try:
            texts, answers = self.read(record)
        except KeyError as error:
            raise LabelsError(
                f"{place}: a record of {self.tool} without {error}; export it again, or leave the row out"
            ) from None
        pairs = Pairs.find([*texts], {}, decided=False)
        scores: dict[str, dict[str, Any]] = {}
        choices: dict[str, dict[str, Any]] = {}
        why: dict[str, dict[str, list[Any]]] = {}
        for answer in answers:
            question = answer.question
            value = _single(answer.value)
            reason = answer.reason
            if (
                isinstance(value, str) and folded_name(str(question)) in _REASONS
            ):  # a question that asks for a text
                question, value, reason = None, None, value
            name = str(question or "rating")
            if answer.left:
                self.left[answer.left] += value is not None
                continue
            compares = answer.compares or (
                pairs is not None and names_a_side(value, pairs)
            )
            cells = (choices if compares else scores).setdefault(name, {})
            who = str(answer.rater) if _there(answer.rater) else str(len(cells) + 1)
            if value is not None and not isinstance(
                value, Mapping | list
            ):  # rankings and spans are no ratings
                self.left[AGAIN] += who in cells
                cells[who] = value
                why.get(name, {}).pop(who, None)
            if _there(reason):
                why.setdefault(name, {}).setdefault(who, []).append(reason)
        rated = {name: by for name, by in scores.items() if by}
        compared = {name: by for name, by in choices.items() if by}
        comparisons = self._comparisons(texts, compared)
        result = {**texts, **comparisons}
        if rated or not comparisons:
            result = {**texts, "scores": rated, **comparisons}
        reasons = {
            name: list(itertools.chain(*by.values())) for name, by in why.items()
        }
        return result | ({"why": reasons} if reasons else {})

    def _comparisons(self, texts: Record, choices: Mapping[str, Any]) -> Record:
        if (
            choices
            and not self.roles
            and Pairs.find([*texts], {}, decided=False) is None
        ):
            sides = only_pair(
                [name for name, cell in texts.items() if as_text(cell) is not None]
            )
            self.roles = dict(zip(("output_a", "output_b"), sides, strict=False))
        winners = {
            name if name not in texts else f"{name} (winner)": by
            for name, by in choices.items()
        }
        self.winners |= dict.fromkeys(winners)
        return winners

    def columns(self, chosen: Mapping[str, Any], origin: str) -> dict[str, Any]:
        """Return the columns that a user named, with those of the comparisons.

        Raises:
            LabelsError: If several questions compare the outputs, and none was named.
        """
        if not self.winners or "output" in chosen:
            return dict(chosen)
        if len(self.winners) > 1 and "winner" not in chosen:
            names = ", ".join(self.winners)
            raise LabelsError(
                f"{origin}: several questions compare two outputs ({names}); pass --columns winner=NAME"
            )
        return self.roles | {"winner": next(iter(self.winners))} | dict(chosen)

    def left_out(self) -> str:
        """Describe how many ratings were left out, with the reasons; "" if there are none."""
        return "".join(
            f"; {count} ratings were left out, {why}"
            for why, count in self.left.items()
            if count
        )


def recognised(head: Sequence[Mapping[str, Any]], origin: str) -> Export | None:
    """Return the tool that these records come from, None for plain ones.

    Raises:
        LabelsError: For an export without texts, and for Label Studio's CSV.
    """
    for keys, without, problem in _REFUSED:
        if head and all(
            keys <= set(record) and not without & set(record) for record in head
        ):
            raise LabelsError(f"{origin}: {problem}")
    for tool, belongs, read in _TOOLS:
        if head and sum(map(belongs, head)) * 2 > len(head):
            return Export(tool, read)
    return Export("Argilla 1", _argilla_1) if any(map(_is_argilla_1, head)) else None


# -- annotation tools


def _argilla(record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
    """`records.to_list()`; responses that were not submitted do not count."""
    answers = _object(parsed(record["responses"])).items()
    submitted = (
        response
        for question, responses in answers
        for response in _responses(question, responses)
    )
    fields = _object(parsed(record["fields"]))
    about = _object(parsed(record.get("metadata")))
    return {**fields, **about, "id": record.get("id")}, submitted


def _argilla_flat(record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
    """Read `records.to_list(flatten=True)` and `to_datasets()`.

    Each question has `.responses`, `.responses.users` and `.responses.status`. A suggestion of a model is no response.
    """

    def answers() -> Iterator[Answer]:
        for question in _questions(record):
            values = _listed(record.get(f"{question}.responses"))
            users = [
                *_listed(record.get(f"{question}.responses.users")),
                *[None] * len(values),
            ]
            status = [
                *_listed(record.get(f"{question}.responses.status")),
                *[None] * len(values),
            ]
            for value, who, state in zip(values, users, status, strict=False):
                yield Answer(question, who, value, _unless_submitted(state))

    ours = tuple(
        f"{question}.{part}"
        for question in _questions(record)
        for part in ("responses", "suggestion")
    )
    fields = {
        name: cell
        for name, cell in record.items()
        if not name.startswith(ours) and name not in _OF_ARGILLA
    }
    return fields, answers()


def _argilla_1(record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
    """Version 1: a column of responses for each question, one of suggestions, and `metadata` as JSON."""
    suggested = tuple(f"{name}-suggestion" for name in record)
    fields: dict[str, Any] = {}
    responses: list[Iterable[Answer]] = []
    for name, cell in record.items():
        if _are_responses(cell):
            responses.append(_responses(name, cell))
        elif not name.startswith(suggested) and name not in ("metadata", "vectors"):
            fields[name] = cell
    about = _object(parsed(record.get("metadata")))
    answers = itertools.chain(*responses)
    return {
        **about,
        **fields,
        "id": record.get("external_id") or record.get("id"),
    }, answers


#: What flat records of Argilla have beside texts and answers.
_OF_ARGILLA = ("_server_id", "status", "vectors", "inserted_at", "updated_at")


def _is_flat(record: Mapping[str, Any]) -> bool:
    return bool(_questions(record))


def _questions(record: Mapping[str, Any]) -> list[str]:
    """The questions of a flat record of Argilla."""
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


def _is_argilla_1(record: Mapping[str, Any]) -> bool:
    """Return True if a record has responses, or suggestions; many records have none."""
    return any(name.endswith("-suggestion-metadata") for name in record) or any(
        map(_are_responses, record.values())
    )


def _are_responses(cell: Any) -> bool:
    if isinstance(cell, str) and "user_id" not in cell:
        return False
    cell = parsed(cell)
    if isinstance(cell, Mapping):
        return {"user_id", "value", "status"} <= set(cell) and all(
            isinstance(parsed(part), list) for part in cell.values()
        )
    responses = _objects(cell)
    return bool(responses) and all(
        {"value", "status"} <= set(response) and "user_id" in response
        for response in responses
    )


def _responses(question: str, cell: Any) -> Iterator[Answer]:
    """Responses as a list of objects, or as an object of lists, which `datasets` makes of one."""
    cell = parsed(cell)
    if isinstance(cell, Mapping):
        columns = {name: _listed(part) for name, part in cell.items()}
        rows = zip(*columns.values(), strict=False)
        cell = [dict(zip(columns, row, strict=True)) for row in rows]
    for entry in _objects(cell):
        yield Answer(
            question,
            entry.get("user_id"),
            entry.get("value"),
            _unless_submitted(entry.get("status")),
        )


def _unless_submitted(status: Any) -> str:
    return "" if not _there(status) or status == "submitted" else DISCARDED


def _label_studio(record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
    """The JSON export, also the older one with `completions`.

    Cancelled annotations do not count, and of what was said of regions or messages nothing but comments.
    """
    annotations = _in_time(
        _objects(record.get("annotations", record.get("completions"))),
        "created_at",
        "id",
    )
    data = dict(_object(parsed(record["data"])))
    chats = [
        name
        for name, cell in data.items()
        if not isinstance(cell, str) and judged(cell) is not None
    ]
    if len(chats) == 1:
        if chats[0] not in _CONVERSATIONS:
            data["messages"] = data.pop(chats[0])
        if (
            "text" in data
        ):  # what annotators are told stands there in templates for chats, and the chat is judged
            data["data.text"] = data.pop("text")
    return {**data, "id": record.get("id")}, (
        region for annotation in annotations for region in _annotated(annotation)
    )


#: What answers to a question of Label Studio are called.
_ANSWERS = ("rating", "choices", "number", "taxonomy", "selected")


def _chosen(key: str, value: Any) -> Any:
    """Return the value of an answer; several choices together are an answer of their own."""
    if key == "taxonomy":
        paths = [path for path in value if isinstance(path, list)]
        value = [" > ".join(map(str, path)) for path in paths]
    several = isinstance(value, list) and len(value) > 1
    if several and key in ("choices", "taxonomy"):
        return " + ".join(map(str, value))
    return value


def _annotated(annotation: Mapping[str, Any]) -> Iterator[Answer]:
    who = annotation.get("completed_by")
    who = (who.get("email") or who.get("id")) if isinstance(who, Mapping) else who
    marked = discounted(annotation)
    discarded = DISCARDED if annotation.get("was_generated") else ""
    if marked:
        discarded = _marked(marked)
    results = _objects(annotation.get("result"))
    parts = filter(_is_region, results)
    regions = {str(region["id"]) for region in parts if region.get("id") is not None}
    for result in results:
        inner = _object(result.get("value"))
        name = result.get("from_name")
        key = next((key for key in _ANSWERS if key in inner), None)
        if key is not None:
            value = _chosen(key, inner[key])
            left = discarded
            in_part = str(result.get("id")) in regions or _is_region(result)
            if in_part and not left:
                left = OF_PARTS
            yield Answer(name, who, value, left, compares=key == "selected")
        elif result.get("type") == "textarea" and not discarded:
            yield Answer(
                None, who, None, reason=" ".join(map(str, inner.get("text") or ()))
            )


def _is_region(result: Mapping[str, Any]) -> bool:
    """Return True if an answer is about a part of the text, which then stands beside it."""
    inner = _object(result.get("value"))
    beside = {key for key, held in inner.items() if held is not None} - {
        *_ANSWERS,
        "text",
        "meta",
    }
    return bool(beside) or "item_index" in result or bool(result.get("parentID"))


# -- tracing tools


def _expected(assessments: Sequence[Mapping[str, Any]]) -> Any:
    """Return the expected answer, by the first of its usual names."""
    expected: dict[str, Any] = {}
    for assessment in assessments:
        name = str(assessment.get("assessment_name"))
        expected[name] = _object(assessment.get("expectation")).get("value")
    present = (expected[name] for name in _EXPECTED if _there(expected.get(name)))
    return next(present, None)


def _mlflow(record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
    """`mlflow.search_traces()` as a table; human assessments count, unless another one has taken their place.

    Passages stand beside the inputs as `context`, an expected answer is the reference, and a session is a group.
    """
    standing = [
        one for one in _objects(record["assessments"]) if one.get("valid") is not False
    ]
    about = _object(parsed(record.get("trace_metadata")))
    roots = _roots(record.get("spans"), about)

    def answers() -> Iterator[Answer]:
        for assessment in _in_time(standing, "create_time"):
            source = _object(assessment.get("source"))
            if "feedback" in assessment:
                kind = source.get("source_type", "HUMAN")
                span = assessment.get("span_id")
                left = ""
                if not by_people(kind):
                    left = not_of_people(kind)
                elif _there(span) and not roots(span):
                    left = OF_SPANS
                value = _object(assessment["feedback"]).get("value")
                yield Answer(
                    assessment.get("assessment_name"),
                    source.get("source_id"),
                    value,
                    left,
                    assessment.get("rationale"),
                )

    request = trace_input(record.get("request"))
    beside = {
        "context": request.context,
        "reference": _expected(standing),
        "group": about.get("mlflow.trace.session"),
    }
    texts = {
        "source": request.value,
        "output": trace_output(record.get("response")).value,
    }
    return {"id": record.get("trace_id"), **texts} | {
        k: v for k, v in beside.items() if v is not None
    }, answers()


def _mlflow_whole(record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
    """A line of `Trace.to_json()`: what a table has of it, from its root span."""
    about = _object(parsed(record["info"]))
    spans = _objects(_object(parsed(record["data"])).get("spans"))
    root = next(
        (
            _object(span.get("attributes"))
            for span in spans
            if not _there(_parent(span))
        ),
        {},
    )
    sides = {
        "request": root.get("mlflow.spanInputs"),
        "response": root.get("mlflow.spanOutputs"),
    }
    return _mlflow(
        {"assessments": [], **about, "spans": spans}
        | {k: _loaded(v) for k, v in sides.items()}
    )


def _roots(spans: Any, about: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Return a test whether a span is the root of its trace: by its spans, or because it is the only one."""
    if siblings := _objects(spans):
        roots = {
            _hexadecimal(span.get("span_id"))
            for span in siblings
            if not _there(_parent(span))
        }
        return lambda span: _hexadecimal(span) in roots
    alone = _object(parsed(about.get("mlflow.trace.sizeStats"))).get("num_spans") == 1
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


@dataclass(frozen=True, slots=True)
class Side:
    """The input or the output of a trace.

    parts: names of several that could each be meant, of which `value` has all.
    """

    value: Any
    context: Any = None
    parts: tuple[str, ...] = ()


def trace_input(value: Any) -> Side:
    """Return the input of a trace, the same for exports, `sync` and scorers.

    It is a conversation if there is one, the part called `source`, or the only one; passages beside it are context.
    """
    value = parsed(value)
    if not isinstance(value, Mapping) or rendered(value) is not None:
        return Side(value)
    context = value.get("context") if len(value) > 1 else None
    return _side(
        {
            name: part
            for name, part in value.items()
            if name != "context" or context is None
        },
        "source",
        context,
    )


def trace_output(value: Any) -> Side:
    """Return the output of a trace: an answer or a conversation, the part called `output`, or the only one."""
    value = parsed(value)
    if not isinstance(value, Mapping) or rendered(value) is not None:
        return Side(value)
    return _side(value, "output", None)


def _side(value: Mapping[str, Any], usual: str, context: Any) -> Side:
    if usual in value:
        return Side(value[usual], context)
    if len(value) == 1:
        return Side(next(iter(value.values())), context)
    return Side(dict(value) or None, context, tuple(map(str, value)))


def _phoenix(record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
    """A data frame of spans, joined with their annotations: a row for each annotation, of which those of people count.

    A row is of the span that its id names.
    """
    kind = record.get("annotator_kind")
    kind = kind if _there(kind) else "HUMAN"
    reason = record.get("result.explanation")
    rating = next(
        (
            cell
            for name in ("score", "label")
            if _there(cell := record.get(f"result.{name}"))
        ),
        None,
    )
    who = phoenix_rater(record)
    answers = [
        Answer(
            record.get("annotation_name"),
            who,
            rating,
            "" if by_people(kind) else not_of_people(kind),
            reason,
        )
    ]
    texts = {
        "source": trace_input(record.get("attributes.input.value")).value,
        "output": trace_output(record.get("attributes.output.value")).value,
    }
    span = next(
        (
            cell
            for name in ("context.span_id", "span_id")
            if _there(cell := record.get(name))
        ),
        None,
    )
    if span is not None:
        name = span
    else:
        name = source_key(f"{as_text(texts['source'])}\n{as_text(texts['output'])}")
    session = record.get("attributes.session.id")
    return {"id": name, **texts} | (
        {"group": session} if _there(session) else {}
    ), answers


def phoenix_rater(annotation: Mapping[str, Any]) -> Any:
    """Return the author of an annotation: the user, or the identifier that a program gave it.

    A program's key names no person.
    """
    who = [
        cell
        for name in ("user_id", "identifier")
        if _there(cell := annotation.get(name))
    ]
    return next(iter(who[::-1] if annotation.get("source") == "API" else who), None)


def _langfuse(record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
    """Traces or observations with `scores`."""
    texts = {
        "source": trace_input(record["input"]).value,
        "output": trace_output(record["output"]).value,
    }
    scores = _in_time(_objects(record["scores"]), "timestamp", "createdAt")
    return {"id": record.get("id"), **texts}, map(langfuse_score, scores)


def langfuse_score(score: Mapping[str, Any]) -> Answer:
    """Return a score of an export.

    Scores of people count: their source is ANNOTATION, and no judge is named, as in `judgesmith sync`.
    """
    source = score.get("source")
    left = DISCARDED if "judge" in _object(score.get("metadata")) else ""
    if not left and _there(source) and not by_people(source):
        left = not_of_people(source)
    if score.get("dataType") in ("TEXT", "CORRECTION"):
        rating = None
    else:
        rating = score.get("stringValue") or score.get("value")
    who = score.get("authorUserId") or score.get("source")
    return Answer(
        score.get("name"),
        who,
        rating,
        left,
        score.get("comment"),
    )


def _is_langfuse(record: Mapping[str, Any]) -> bool:
    """Return True for a trace of another Langfuse API, whose scores say where they come from."""
    scores = _objects(record.get("scores"))
    return {"input", "output"} <= set(record) and any(
        {"name", "value", "dataType"} <= set(score) for score in scores
    )


def _prodigy(record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
    """Read an accepted choice of an option, or the decision itself; what was ignored does not count."""
    ours = ("meta", "options", "accept", "answer")
    texts = {
        name: cell
        for name, cell in record.items()
        if name not in ours and not name.startswith("_")
    }
    decision = record["answer"]
    value = record["answer"]
    left = DISCARDED if decision == "ignore" else ""
    if "accept" in record:
        value = record["accept"]
        left = "" if decision == "accept" else DISCARDED
    answer = Answer("rating", record.get("_annotator_id"), value, left)
    return {**_object(parsed(record.get("meta"))), **texts}, [answer]


#: What an object with a rating calls what is rated. A `name` is a rater's, unless a source is beside it.
_RATED = ("aspect", "criterion", "dimension", "attribute")
#: What LangSmith calls the same, beside a source.
_KEY = "key"
#: Of a finding at a place in the output, which is no rating of it.
_OF_FINDINGS = frozenset({"start", "end", "span", "location", "severity"})
#: Columns whose objects name aspects.
_BY_ASPECT = frozenset[str]().union(*named_roles("ratings")["scores"])


def _names_ratings(record: Mapping[str, Any]) -> bool:
    """Return True if a record has lists of objects that name what they rate: [{"aspect": "tone", "rating": 4}]."""
    return any(itertools.starmap(_named_answers, record.items()))


def _named(record: Mapping[str, Any]) -> tuple[Record, Iterable[Answer]]:
    texts = dict[str, Any]()
    answers = list[Answer]()
    for name, cell in record.items():
        if named := _named_answers(name, cell):
            answers += named
        else:
            texts[name] = cell
    return texts, answers


def _named_answers(column: str, cell: Any) -> list[Answer]:
    """Return the ratings in a list of which every object says what it rates; none of anything else."""
    if by_machine(column):
        return []
    read = [_named_answer(column, rated) for rated in _listed(cell)]
    answers = list(filter(None, read))
    return answers if len(answers) == len(read) else []


def _named_answer(column: str, rated: Any) -> Answer | None:
    """Return the rating in an object that says what it rates; None for anything else."""
    if not isinstance(rated, Mapping) or _OF_FINDINGS & set(rated):
        return None
    sources = list(sources_in(rated))
    by_name = bool(sources) or folded_name(column) in _BY_ASPECT
    about = _first(rated, (*_RATED, _KEY, "name") if by_name else _RATED)
    value = rating_in(rated)
    if not isinstance(about, str) or value is None:
        return None
    left = [not_of_people(source) for source, _ in sources if not by_people(source)]
    if marked := discounted(rated):
        left.append(_marked(marked))
    people = [who for _, who in sources if who is not None]
    named = rater_in({key: rated[key] for key in rated if key != "name"})
    return Answer(
        about,
        named or next(iter(people), None),
        value,
        next(iter(left), ""),
        _first(rated, sorted(_REASONS)),
    )


def _marked(why: str) -> str:
    return f"which are marked {why}"


def _first(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first cell of these that says something; None without one."""
    cells = (record.get(name) for name in names)
    return next(filter(_there, cells), None)


def _has(*keys: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda record: set(keys) <= set(record)


def _is_whole_trace(record: Mapping[str, Any]) -> bool:
    about = _object(parsed(record.get("info")))
    return "trace_id" in about and "spans" in _object(parsed(record.get("data")))


#: The tool, whether a record is of its export, and how one is read.
_TOOLS: tuple[tuple[str, Callable[[Mapping[str, Any]], bool], Reader], ...] = (
    ("Argilla", _has("fields", "responses"), _argilla),
    ("Argilla", _is_flat, _argilla_flat),
    ("Label Studio", _has("annotations", "data"), _label_studio),
    ("Label Studio", _has("completions", "data"), _label_studio),
    ("MLflow", _has("trace_id", "assessments"), _mlflow),
    ("MLflow", _is_whole_trace, _mlflow_whole),
    (
        "Phoenix",
        _has("attributes.output.value", "result.label", "result.score"),
        _phoenix,
    ),
    ("Langfuse", _has("input", "output", "scores", "sessionId"), _langfuse),
    ("Langfuse", _is_langfuse, _langfuse),
    ("Prodigy", _has("answer", "_input_hash"), _prodigy),
    ("a tool that names each rating", _names_ratings, _named),
)
#: Exports that cannot be labels: columns that they have, and those that they would have if they could; the message.
_REFUSED = (
    (
        frozenset({"annotation_id", "lead_time"}),
        frozenset({"annotations"}),
        "this is an export of Label Studio as CSV or JSON-MIN; export it as JSON",
    ),
    (
        frozenset({"traceId", "name", "value"}),
        frozenset({"input", "output"}),
        "these are scores of Langfuse without the texts that they are of; export traces with their scores, or pull "
        "both with `judgesmith sync langfuse PROJECT`",
    ),
    (
        frozenset({"annotation_name", "annotator_kind"}),
        frozenset({"attributes.output.value", "attributes.input.value"}),
        "these are annotations of Phoenix without the texts that they are of; join them with their spans, or pull both "
        "with `judgesmith sync phoenix PROJECT`",
    ),
)


# -- cells


def _single(value: Any) -> Any:
    """Return the item of a list of one; None for NaN."""
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    return value if _there(value) else None


def _in_time(items: Sequence[Mapping[str, Any]], *keys: str) -> list[Mapping[str, Any]]:
    """Return the items from the first to the last, by the first of these keys that all of them have."""
    for key in keys:
        if all(_there(item.get(key)) for item in items):
            moments = [_moment(item[key]) for item in items]
            order = sorted(range(len(items)), key=moments.__getitem__)
            return [items[place] for place in order]
    return list(items)


def _moment(value: Any) -> tuple[float, str]:
    return (float(value), "") if isinstance(value, int | float) else (0.0, str(value))


def _loaded(value: Any) -> Any:
    """An attribute of a span, which is JSON: a text stands in quotes."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(value: Any) -> list[Any]:
    value = parsed(value)
    if isinstance(value, list | tuple):
        return list(value)
    return [value] if _there(value) else []


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in _listed(value) if isinstance(item, Mapping)]


def _there(value: Any) -> bool:
    if isinstance(value, list | Mapping):
        return bool(value)
    return value is not None and value == value and value != ""
