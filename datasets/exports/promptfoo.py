"""promptfoo: results as JSON, and tables with outputs under "[provider] prompt", each behind its verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from judgesmith.datasets.exports import JUDGES, Record, Results, exports
from judgesmith.datasets.exports.samples import (
    are_objects,
    content,
    object_of,
    objects_of,
    shown,
    text,
    verdict,
)
from judgesmith.datasets.marks import word_set

_COLUMN = re.compile(r"\[[^\[\]]+\] .+", re.DOTALL)
_VERDICT = re.compile(r"\[(PASS|FAIL|ERROR)\](?:\s*\(-?[\d.]+\))?\s*")
#: Between why an assertion failed and the output.
_REASON_END = "\n---\n"
#: Types of the parts of an answer that are no text.
_NO_TEXT = word_set(
    "image image_url input_image output_image image_generation_call audio input_audio thinking redacted_thinking "
    "reasoning"
)


@exports.register
class Promptfoo(Results):
    """Results with their assertions. A person's thumb is a human rating."""

    name = "promptfoo"
    title = "promptfoo"
    about = "promptfoo, results as JSON or CSV"

    def samples(self, data: Mapping[str, Any]) -> Sequence[Any] | None:
        results = data.get("results")
        inner = results.get("results") if isinstance(results, Mapping) else None
        return inner if are_objects(inner) else None

    def cell_reader(self, column: str) -> Callable[[str], Any] | None:
        return _output_of if _COLUMN.fullmatch(column) else None

    def row(self, sample: Mapping[str, Any]) -> Record:
        grading = object_of(sample.get("gradingResult"), "gradingResult")
        response = object_of(sample.get("response"), "response")
        parts = objects_of(grading.get("componentResults"), "componentResults")
        people = [part for part in parts if _assertion(part).get("type") == "human"]
        places = [str(sample[key]) for key in ("testIdx", "promptIdx") if key in sample]
        provider = sample.get("provider")
        if isinstance(provider, str):
            provider = {"id": provider}
        provider = object_of(provider, "provider")
        output = response.get("output")
        row = {
            "id": "-".join(places) or str(sample.get("id")),
            "source": text(object_of(sample.get("prompt"), "prompt").get("raw")),
            "output": content(output).strip() or _whole(output),
            "system": provider.get("label") or provider.get("id"),
            "vars": sample.get("vars"),
        }
        judges: dict[str, Any] = {}
        for part in parts:
            assertion = _assertion(part)
            if assertion and part not in people:
                name = str(assertion.get("metric") or assertion.get("type"))
                found = verdict(part.get("score"), part.get("reason"))
                judges[_unlike(name, judges)] = found
        # A person's thumb takes the place of the whole.
        if grading and not people:
            judges["promptfoo"] = verdict(grading.get("score"), grading.get("reason"))
        record = {name: cell for name, cell in row.items() if cell}
        if people:
            record["scores"] = {"overall": _thumb(people[-1])}
        return record | {JUDGES: judges}


def _output_of(cell: str) -> str:
    """Return the output of a cell, without its verdict; "" for an error in place of one."""
    found = _VERDICT.match(cell)
    if found is None:
        return cell
    rest = cell[found.end() :]
    return "" if found[1] == "ERROR" else rest.rpartition(_REASON_END)[2]


def _assertion(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return object_of(part.get("assertion"), "assertion")


def _thumb(part: Mapping[str, Any]) -> str:
    """Return the word for a person's thumb. Raises ValueError where it points nowhere: that is no fail."""
    passed = part.get("pass")
    if not isinstance(passed, bool):
        raise ValueError(f"pass of a person's thumb is {shown(passed)}")
    return "pass" if passed else "fail"


def _unlike(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken: the name, or with 2, 3 and so on behind it."""
    names = set(taken)
    result = name
    number = 2
    while result in names:
        result = f"{name} {number}"
        number += 1
    return result


def _whole(output: Any) -> str:
    """Return an answer without text, such as calls of tools, as JSON; an empty text for pictures and thoughts."""
    parts = output if isinstance(output, list) else []
    types = {str(part.get("type")) for part in parts if isinstance(part, Mapping)}
    return "" if types and types <= _NO_TEXT else text(output)
