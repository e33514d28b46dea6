"""Inspect: a log's samples with their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judgesmith.datasets.exports import JUDGES, Record, Results, exports
from judgesmith.datasets.exports.samples import (
    are_objects,
    content,
    items,
    object_of,
    objects_of,
    text,
    verdict,
)

#: Letters for correct, partly correct, incorrect and no answer, as Inspect's metrics count them.
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


@exports.register
class Inspect(Results):
    """Samples of a log as JSON. `formats.run_logs` reads packed ones."""

    name = "inspect"
    title = "Inspect"
    about = "Inspect, a log as JSON"

    def samples(self, data: Mapping[str, Any]) -> Sequence[Any] | None:
        samples = data.get("samples")
        is_log = are_objects(samples) and isinstance(data.get("eval"), Mapping)
        return samples if is_log else None

    def row(self, sample: Mapping[str, Any]) -> Record:
        output = object_of(sample.get("output"), "output")
        epoch = sample.get("epoch") or 1
        choice = next(iter(items(output.get("choices"), "choices")), None)
        choice = object_of(choice, "the first of choices")
        message = object_of(choice.get("message"), "message")
        row = {
            "id": f"{sample.get('id')}" + (f"_{epoch}" if epoch != 1 else ""),
            "source": _conversation(sample.get("input")),
            "output": output.get("completion") or content(message.get("content")),
            "reference": text(sample.get("target")),
        }
        judges: dict[str, Any] = {}
        for name, score in object_of(sample.get("scores"), "scores").items():
            score = object_of(score, f"the score {name!r}")
            for key, grade in _grades(score.get("value")).items():
                judges[f"{name} {key}".strip()] = verdict(
                    _LETTERS.get(grade, grade) if isinstance(grade, str) else grade,
                    score.get("explanation"),
                )
        return row | {JUDGES: judges}


def _grades(value: Any) -> Mapping[str, Any]:
    """Return the grades of a score, which may be several, by their names."""
    if isinstance(value, list):
        return {str(number): grade for number, grade in enumerate(value, 1)}
    return value if isinstance(value, Mapping) else {"": value}


def _conversation(value: Any) -> str:
    if not isinstance(value, list):
        return text(value)
    turns = objects_of(value, "a conversation")
    return "\n".join(
        f"{turn.get('role')}: {content(turn.get('content'))}" for turn in turns
    )
