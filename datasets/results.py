"""Result files of other evaluation tools as plain rows: Inspect, promptfoo, DeepEval, lm-eval.

A row has `source`, `output` and `reference` where the tool keeps them, an `id`, and `judges`, {name: {"score",
"reason"}} of every scorer, metric or assertion. What a person rated there (promptfoo's thumbs) is in `scores`; a scorer
is no person. What failed has no score. A record of another form than its tool writes is refused with its row.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from judgesmith.datasets.bounds import refuse_unpacked
from judgesmith.datasets.marks import word_set
from judgesmith.errors import LabelsError

Record: TypeAlias = dict[str, Any]
JUDGES = "judges"
#: Inspect's letters for correct, partly correct, incorrect and no answer, as its metrics count them.
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
#: Keys of a sample of lm-eval that are no metrics.
_NO_METRICS = word_set(
    "doc_id doc target arguments resps filtered_resps filter metrics doc_hash prompt_hash target_hash"
)


#: Metrics of lm-eval that are the likelihood of the whole text.
_OF_LIKELIHOOD = word_set("word_perplexity byte_perplexity bits_per_byte perplexity")
#: Types of the parts of an answer that are no text.
_NO_TEXT = word_set(
    "image image_url input_image output_image image_generation_call audio input_audio thinking redacted_thinking "
    "reasoning"
)


class _UnreadableError(ValueError):
    """What a tool writes, but no text that could be judged."""


def results_in(data: Any, origin: str) -> list[Record] | None:
    """Return the rows of a result file as JSON; None for any other.

    Raises:
        LabelsError: With the row, for one that cannot be read.
    """
    if not isinstance(data, Mapping):
        return None
    run = data.get("testRunData", data)
    inner = data.get("results")
    if (
        isinstance(run, Mapping)
        and _are_objects(run.get("testCases"))
        and "metricsData" in run["testCases"][0]
    ):
        cases = [
            {"number": number, **case}
            for number, case in enumerate(run["testCases"], 1)
        ]
        return _each(_deepeval, "DeepEval", cases, origin)
    if _are_objects(data.get("samples")) and isinstance(data.get("eval"), Mapping):
        return _each(_inspect, "Inspect", data["samples"], origin)
    if isinstance(inner, Mapping) and _are_objects(inner.get("results")):
        return _each(_promptfoo, "promptfoo", inner["results"], origin)
    return None


def of_lm_eval(record: Record, place: str) -> Record:
    """Return a sample that lm-eval logged as a row; any other record unchanged.

    Args:
        record: The record.
        place: The file and its line, for messages.

    Raises:
        LabelsError: If the sample has another form than lm-eval writes.
    """
    if {"doc_id", "arguments", "resps", "filtered_resps"} <= record.keys():
        return _checked(_lm_eval, "lm-eval", record, place)
    return record


def _each(
    reader: Callable[[Mapping[str, Any]], Record],
    tool: str,
    records: Sequence[Mapping[str, Any]],
    origin: str,
) -> list[Record]:
    return [
        _checked(reader, tool, record, f"{origin}, row {number}")
        for number, record in enumerate(records, 1)
    ]


def _checked(
    reader: Callable[[Mapping[str, Any]], Record], tool: str, record: Any, place: str
) -> Record:
    """Return a record as a row.

    Raises:
        LabelsError: If it has another form than its tool writes, or none that can be judged.
    """
    try:
        return reader(_object(record, "the record"))
    except _UnreadableError as error:
        raise LabelsError(f"{place}: {error}") from None
    except ValueError as error:
        raise LabelsError(
            f"{place}: {error}, which {tool} does not write; correct the row or leave it out"
        ) from None


def _lm_eval(record: Mapping[str, Any]) -> Record:
    arguments = record["arguments"]
    if isinstance(arguments, Mapping):
        first = _object(arguments.get("gen_args_0"), "gen_args_0").get("arg_0")
    else:
        request = next(iter(_items(arguments, "arguments")), None)
        first = next(iter(_items(request, "the first of arguments")), None)
    names = _items(record.get("metrics"), "metrics") or [
        name for name in record if name not in _NO_METRICS
    ]
    if not _OF_LIKELIHOOD.isdisjoint(map(str, names)):
        raise _UnreadableError(
            "the record has the likelihood of a text and no answer; judge a task that generates, or a choice"
        )
    judges = {
        str(name): _verdict(record[name])
        for name in names
        if isinstance(name, str) and isinstance(record.get(name), int | float)
    }
    row = {
        "id": str(record["doc_id"]),
        "source": _text(first),
        "output": _lm_output(
            _items(record["filtered_resps"], "filtered_resps"), record.get("doc")
        ),
    }
    return row | {"reference": _text(record.get("target")), JUDGES: judges}


def inspect_log(path: Path) -> Iterator[Record]:
    """Yield the samples of an Inspect log in its own format (.eval).

    Raises:
        LabelsError: For a damaged log.
    """
    try:
        with zipfile.ZipFile(path) as log:
            names = sorted(
                name for name in log.namelist() if name.startswith("samples/")
            )
            for name in names:
                part = log.getinfo(name)
                refuse_unpacked(path.name, part.compress_size, part.file_size)
                sample = json.load(io.TextIOWrapper(log.open(name), encoding="utf-8"))
                yield _checked(_inspect, "Inspect", sample, f"{path.name}, {name}")
    except (zipfile.BadZipFile, NotImplementedError, ValueError, KeyError) as error:
        raise LabelsError(
            f"{path.name}: this log of Inspect cannot be read ({error}); write it as JSON: "
            "inspect log convert --to json"
        ) from None


def _inspect(sample: Mapping[str, Any]) -> Record:
    output = _object(sample.get("output"), "output")
    epoch = sample.get("epoch") or 1
    choice = next(iter(_items(output.get("choices"), "choices")), None)
    message = _object(_object(choice, "the first of choices").get("message"), "message")
    row = {
        "id": f"{sample.get('id')}" + (f"_{epoch}" if epoch != 1 else ""),
        "source": _conversation(sample.get("input")),
        "output": output.get("completion") or _content(message.get("content")),
        "reference": _text(sample.get("target")),
    }
    judges: dict[str, Any] = {}
    for name, score in _object(sample.get("scores"), "scores").items():
        score = _object(score, f"the score {name!r}")
        value = score.get("value")
        reason = score.get("explanation")
        if isinstance(value, list):
            value = {str(number): grade for number, grade in enumerate(value, 1)}
        several = value.items() if isinstance(value, Mapping) else [("", value)]
        for key, grade in several:
            judges[f"{name} {key}".strip()] = _verdict(
                _LETTERS.get(grade, grade) if isinstance(grade, str) else grade, reason
            )
    return row | {JUDGES: judges}


def _deepeval(case: Mapping[str, Any]) -> Record:
    judges = {}
    for metric in _objects(case.get("metricsData"), "metricsData"):
        score = metric.get("score") if metric.get("error") is None else None
        judges[str(metric.get("name"))] = _verdict(score, metric.get("reason"))
    context = case.get("retrievalContext") or case.get("context")
    row = {
        "id": str(case["number"]),
        "source": case.get("input"),
        "output": case.get("actualOutput"),
    }
    row |= {
        "name": case.get("name"),
        "reference": case.get("expectedOutput"),
        "context": _text(context),
    }
    return {name: cell for name, cell in row.items() if cell} | {JUDGES: judges}


def _promptfoo(result: Mapping[str, Any]) -> Record:
    grading = _object(result.get("gradingResult"), "gradingResult")
    response = _object(result.get("response"), "response")
    parts = _objects(grading.get("componentResults"), "componentResults")
    people = [part for part in parts if _assertion(part).get("type") == "human"]
    places = [str(result[key]) for key in ("testIdx", "promptIdx") if key in result]
    provider = result.get("provider")
    if isinstance(provider, str):
        provider = {"id": provider}
    provider = _object(provider, "provider")
    output = response.get("output")
    row = {
        "id": "-".join(places) or str(result.get("id")),
        "source": _text(_object(result.get("prompt"), "prompt").get("raw")),
        "output": _content(output).strip() or _shown_whole(output),
        "system": provider.get("label") or provider.get("id"),
        "vars": result.get("vars"),
    }
    judges: dict[str, Any] = {}
    for part in parts:
        assertion = _assertion(part)
        if assertion and part not in people:
            name = _unlike(
                str(assertion.get("metric") or assertion.get("type")), judges
            )
            judges[name] = _verdict(part.get("score"), part.get("reason"))
    if grading and not people:  # a person's thumb takes the place of the whole
        judges["promptfoo"] = _verdict(grading.get("score"), grading.get("reason"))
    record = {name: cell for name, cell in row.items() if cell}
    if people:
        record["scores"] = {"overall": _thumb(people[-1])}
    return record | {JUDGES: judges}


# Parts ---------------------------------------------------------------------------------------------------------------


def _assertion(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return _object(part.get("assertion"), "assertion")


def _thumb(part: Mapping[str, Any]) -> str:
    """Return the word for a person's thumb. Raises ValueError where it points nowhere: that is no fail."""
    passed = part.get("pass")
    if not isinstance(passed, bool):
        raise ValueError(f"pass of a person's thumb is {_shown(passed)}")
    return "pass" if passed else "fail"


def _verdict(score: Any, reason: Any = None) -> Record | None:
    """Return a judge's verdict; None where it failed."""
    if score is None or score != score:
        return None
    if not isinstance(score, int | float | str):
        raise ValueError(f"a score is {_shown(score)}")
    return {"score": score} | ({"reason": reason} if reason else {})


def _unlike(name: str, taken: Iterable[str]) -> str:
    names = set(taken)
    numbered = (f"{name} {number}" for number in range(2, len(names) + 3))
    if name not in names:
        return name
    return next(candidate for candidate in numbered if candidate not in names)


def _lm_output(answers: Sequence[Any], doc: Any) -> str:
    """Return a model's text, or for a choice by likelihood the choice."""
    likely = [_likelihood(answer) for answer in answers]
    if not answers or None in likely:
        texts = [answer for part in answers for answer in (_listed(part) or [[]])]
        if len(texts) > 1 and all(isinstance(text, str) for text in texts):
            raise _UnreadableError(
                f"filtered_resps holds {len(texts)} answers; keep one a row, as the filter take_first does"
            )
        if len(texts) != 1 or not isinstance(texts[0], str):
            raise ValueError(f"filtered_resps is {_shown(answers)}")
        return texts[0]
    place = max(range(len(likely)), key=lambda k: likely[k] or 0.0)
    choices = doc.get("choices") if isinstance(doc, Mapping) else None
    choices = choices.get("text") if isinstance(choices, Mapping) else choices
    if isinstance(choices, list) and place < len(choices):
        return _text(choices[place])
    return f"choice {place + 1}"


def _likelihood(answer: Any) -> float | None:
    """The log-likelihood of a choice, which stands before whether it is the most likely one; None for anything else."""
    if not isinstance(answer, list) or len(answer) != 2:
        return None
    if str(answer[1]) not in ("True", "False"):
        return None
    try:
        probability = float(answer[0])
    except (TypeError, ValueError):
        return None
    return None if math.isnan(probability) else probability


def _conversation(value: Any) -> str:
    if not isinstance(value, list):
        return _text(value)
    turns = _objects(value, "a conversation")
    return "\n".join(
        f"{turn.get('role')}: {_content(turn.get('content'))}" for turn in turns
    )


def _content(value: Any) -> str:
    """A text, or the texts among the parts of one; pictures and thoughts are none."""
    if not isinstance(value, list):
        return _text(value)
    parts = (part.get("text") if isinstance(part, Mapping) else part for part in value)
    return "\n".join(map(_text, parts))


def _shown_whole(output: Any) -> str:
    """Return an answer without text, such as calls of tools, as JSON; an empty text for pictures and thoughts."""
    parts = output if isinstance(output, list) else []
    types = {str(part.get("type")) for part in parts if isinstance(part, Mapping)}
    return "" if types and types <= _NO_TEXT else _text(output)


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _items(value: Any, name: str) -> list[Any]:
    """A list, which nothing is empty. Raises ValueError for anything else."""
    if value is not None and not isinstance(value, list):
        raise ValueError(f"{name} is {_shown(value)}")
    return value or []


def _object(value: Any, name: str) -> Mapping[str, Any]:
    """An object, which nothing is empty. Raises ValueError for anything else."""
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{name} is {_shown(value)}")
    return value or {}


def _objects(value: Any, name: str) -> list[Mapping[str, Any]]:
    return [_object(item, f"one of {name}") for item in _items(value, name)]


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _are_objects(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, Mapping) for item in value)
    )
