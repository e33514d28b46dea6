"""Result files of other evaluation tools as plain rows: Inspect, promptfoo, DeepEval, lm-eval.

A row has `source`, `output` and `reference` where the tool keeps them, an `id`, and `judges`, {name: {"score",
"reason"}} of every scorer, metric or assertion. What a person rated there (promptfoo's thumbs) is in `scores`; a scorer
is no person. What failed has no score.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import LabelsError
from .marks import word_set

Record: TypeAlias = dict[str, Any]
JUDGES = "judges"
#: Inspect's letters for correct, partly correct, incorrect and no answer, as its metrics count them.
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
#: Keys of a sample of lm-eval that are no metrics.
_NO_METRICS = word_set(
    "doc_id doc target arguments resps filtered_resps filter metrics doc_hash prompt_hash target_hash"
)


def results_in(data: Any) -> list[Record] | None:
    """The rows of a result file as JSON; None for any other."""
    if not isinstance(data, Mapping):
        return None
    run = data.get("testRunData", data)
    inner = data.get("results")
    if (
        isinstance(run, Mapping)
        and _are_objects(run.get("testCases"))
        and "metricsData" in run["testCases"][0]
    ):
        return [
            _deepeval(case, number) for number, case in enumerate(run["testCases"], 1)
        ]
    if _are_objects(data.get("samples")) and isinstance(data.get("eval"), Mapping):
        return [_inspect(sample) for sample in data["samples"]]
    if isinstance(inner, Mapping) and _are_objects(inner.get("results")):
        return [_promptfoo(result) for result in inner["results"]]
    return None


def of_lm_eval(record: Record) -> Record:
    """A sample that lm-eval logged as a row; any other record as it is."""
    if not {"doc_id", "arguments", "resps", "filtered_resps"} <= record.keys():
        return record
    arguments, said = record["arguments"], record["filtered_resps"]
    first = (
        arguments.get("gen_args_0", {}).get("arg_0")
        if isinstance(arguments, Mapping)
        else _first(_first(arguments))
    )
    names = record.get("metrics") or [
        name for name in record if name not in _NO_METRICS
    ]
    judges = {
        name: _verdict(record[name])
        for name in names
        if isinstance(record.get(name), int | float)
    }
    made = {
        "id": str(record["doc_id"]),
        "source": _text(first),
        "output": _lm_output(said, record.get("doc")),
    }
    return made | {"reference": _text(record.get("target")), JUDGES: judges}


def inspect_log(path: Path) -> Iterator[Record]:
    """The samples of an Inspect log in its own format (.eval). Raises LabelsError."""
    try:
        with zipfile.ZipFile(path) as log:
            names = sorted(
                name for name in log.namelist() if name.startswith("samples/")
            )
            for name in names:
                yield _inspect(
                    json.load(io.TextIOWrapper(log.open(name), encoding="utf-8"))
                )
    except (zipfile.BadZipFile, NotImplementedError, ValueError, KeyError) as error:
        raise LabelsError(
            f"{path.name}: this log of Inspect cannot be read ({error}); write it as JSON: "
            "inspect log convert --to json"
        ) from None


def _inspect(sample: Mapping[str, Any]) -> Record:
    output, epoch = _object(sample.get("output")), sample.get("epoch") or 1
    message = _object(_object(_first(output.get("choices"))).get("message"))
    made = {
        "id": f"{sample.get('id')}" + (f"_{epoch}" if epoch != 1 else ""),
        "source": _conversation(sample.get("input")),
        "output": output.get("completion") or _content(message.get("content")),
        "reference": _text(sample.get("target")),
    }
    judges: dict[str, Any] = {}
    for name, score in _object(sample.get("scores")).items():
        value, reason = _object(score).get("value"), _object(score).get("explanation")
        several = value.items() if isinstance(value, Mapping) else [("", value)]
        for key, one in several:
            judges[f"{name} {key}".strip()] = _verdict(
                _LETTERS.get(str(one), one), reason
            )
    return made | {JUDGES: judges}


def _deepeval(case: Mapping[str, Any], number: int) -> Record:
    judges = {}
    for metric in case.get("metricsData") or ():
        score = metric.get("score") if metric.get("error") is None else None
        judges[str(metric.get("name"))] = _verdict(score, metric.get("reason"))
    context = case.get("retrievalContext") or case.get("context")
    made = {
        "id": str(number),
        "source": case.get("input"),
        "output": case.get("actualOutput"),
    }
    made |= {
        "name": case.get("name"),
        "reference": case.get("expectedOutput"),
        "context": _text(context),
    }
    return {name: cell for name, cell in made.items() if cell} | {JUDGES: judges}


def _promptfoo(result: Mapping[str, Any]) -> Record:
    grading, response = (
        _object(result.get("gradingResult")),
        _object(result.get("response")),
    )
    parts = [_object(part) for part in grading.get("componentResults") or ()]
    people = [
        part for part in parts if _object(part.get("assertion")).get("type") == "human"
    ]
    places = [str(result[key]) for key in ("testIdx", "promptIdx") if key in result]
    provider = _object(result.get("provider"))
    made = {
        "id": "-".join(places) or str(result.get("id")),
        "source": _text(_object(result.get("prompt")).get("raw")),
        "output": _content(response.get("output")),
        "system": provider.get("label") or provider.get("id"),
        "vars": result.get("vars"),
    }
    judges: dict[str, Any] = {}
    for part in parts:
        assertion = _object(part.get("assertion"))
        if assertion and part not in people:
            name = _unlike(
                str(assertion.get("metric") or assertion.get("type")), judges
            )
            judges[name] = _verdict(part.get("score"), part.get("reason"))
    if grading and not people:  # a person's thumb takes the place of the whole
        judges["promptfoo"] = _verdict(grading.get("score"), grading.get("reason"))
    rated = (
        {"scores": {"overall": "pass" if people[-1].get("pass") else "fail"}}
        if people
        else {}
    )
    return (
        {name: cell for name, cell in made.items() if cell} | rated | {JUDGES: judges}
    )


# Parts ---------------------------------------------------------------------------------------------------------------


def _verdict(score: Any, reason: Any = None) -> Record | None:
    """What a judge said; None where it failed."""
    return (
        None
        if score is None
        else {"score": score} | ({"reason": reason} if reason else {})
    )


def _unlike(name: str, taken: Iterable[str]) -> str:
    names = set(taken)
    numbered = (f"{name} {number}" for number in range(2, len(names) + 3))
    return (
        name if name not in names else next(one for one in numbered if one not in names)
    )


def _lm_output(said: Any, doc: Any) -> str:
    """What a model wrote, or of a choice by likelihood the choice."""
    first = _first(said)
    if not isinstance(first, list | tuple):
        return _text(first)
    likely = [one[0] for one in said if isinstance(one, list | tuple) and one]
    place = max(range(len(likely)), key=lambda k: float(likely[k]))
    choices = _object(doc).get("choices")
    choices = choices.get("text") if isinstance(choices, Mapping) else choices
    return (
        _text(choices[place])
        if isinstance(choices, list) and place < len(choices)
        else f"choice {place + 1}"
    )


def _conversation(value: Any) -> str:
    if not isinstance(value, list):
        return _text(value)
    return "\n".join(
        f"{_object(turn).get('role')}: {_content(_object(turn).get('content'))}"
        for turn in value
    )


def _content(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(_text(_object(part).get("text")) for part in value)
    return _text(value)


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) and value else None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _are_objects(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, Mapping) for item in value)
    )
