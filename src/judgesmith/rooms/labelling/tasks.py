"""Rows as files that annotation tools of teams import, with a judge's verdicts as what is proposed to people.

Formats: Label Studio's pre-annotations (tasks with `predictions`), and Argilla's `records.from_json` (records with
`suggestions`). What people answer comes back by the readers of `datasets.exports`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, assert_never, get_args
from xml.sax.saxutils import quoteattr

from judgesmith.datasets.row import Row
from judgesmith.errors import OptionError
from judgesmith.evaluating.sources import verdict_of
from judgesmith.running.opening import write_output
from judgesmith.running.plain import finite

Tool = Literal["label-studio", "argilla"]
TOOLS: tuple[Tool, ...] = get_args(Tool)
TITLES: Mapping[Tool, str] = {"label-studio": "Label Studio", "argilla": "Argilla"}
#: The question, by whose name the readers find the answers.
QUESTION = "score"
TEXTS = ("source", "context", "reference", "output")
PASS_FAIL = ("fail", "pass")
#: Raters see stars up to here.
MOST_STARS = 10


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a judge says of a row. value: its score, or its category. scale: of the score, None for a category."""

    value: float | str
    judge: str
    scale: tuple[float, float] | None

    @classmethod
    def of(cls, row: Row) -> Proposed | None:
        """Return a scored row's verdict; None without one, or if it failed."""
        verdict = verdict_of(row.columns) or {}
        contract = verdict.get("contract") or {}
        judge = str(contract.get("judge") or row.columns.get("judge") or "judge")
        if verdict.get("category"):
            return cls(str(verdict["category"]), judge, None)
        score = verdict.get("score")
        scale = contract.get("scale")
        if not isinstance(score, int | float) or scale is None:
            return None
        return cls(float(score), judge, (float(scale[0]), float(scale[1])))

    @property
    def stars(self) -> bool:
        """Whether the scale is whole numbers from 1 that are shown as stars."""
        low, high = self.scale or (0.0, 0.0)
        return low == 1 and high.is_integer() and high <= MOST_STARS


def write_tasks(
    path: Path, tool: Tool, rows: Sequence[Row], every: Sequence[Row]
) -> list[str]:
    """Write rows for a tool; return what to know, in sentences.

    Args:
        path: The file.
        tool: The tool that imports it.
        rows: The rows that are written.
        every: All rows of their file, by whose verdicts the categories are known.

    Raises:
        OptionError: If the file is no .json or cannot be written, or the tool has no such scale.
    """
    if path.suffix.lower() != ".json":
        raise OptionError(f"--tasks {path}: tasks are written as JSON; name it .json")
    proposed = [Proposed.of(row) for row in rows]
    notes = []
    match tool:
        case "label-studio":
            tasks = list(map(_task, rows, proposed))
            others = list(map(Proposed.of, every))
            if interface := _interface(tasks, others):
                write_output(path.with_suffix(".xml"), interface)
                told = f"the labelling interface that fits is in {path.with_suffix('.xml')}"
                if next(filter(None, others)).scale is None:
                    told += "; its choices are the categories that verdicts have, so add those that no row got"
                notes.append(told)
        case "argilla":
            tasks = list(map(_record, rows, proposed))
        case never:
            assert_never(never)
    write_output(path, json.dumps(finite(tasks), ensure_ascii=False, indent=1))
    there = sum(one is not None for one in proposed)
    wrote = (
        f"wrote {len(rows)} rows for {TITLES[tool]} to {path}, {there} with a verdict"
    )
    if there:
        notes.append(
            "who sees a verdict follows it: measure this judge on rows that were rated without it"
        )
    return [wrote, *notes]


def _texts(row: Row) -> dict[str, str]:
    return {name: text for name in TEXTS if (text := getattr(row, name))}


def _about(row: Row) -> dict[str, str]:
    """Return what the readers take back beside texts."""
    names = {"system": row.system, "doc_id": row.doc_id, "chosen_by": "suggest"}
    return {name: value for name, value in names.items() if value}


def _task(row: Row, proposed: Proposed | None) -> dict[str, Any]:
    data = {"id": row.id, **_texts(row), **_about(row)}
    if proposed is None:
        return {"data": data}
    result = {
        "id": "proposed",
        "from_name": QUESTION,
        "to_name": "output",
        **_result(proposed),
    }
    return {
        "data": data,
        "predictions": [{"model_version": proposed.judge, "result": [result]}],
    }


def _result(proposed: Proposed) -> dict[str, Any]:
    if isinstance(proposed.value, str):
        return {"type": "choices", "value": {"choices": [proposed.value]}}
    if proposed.stars:
        return {"type": "rating", "value": {"rating": round(proposed.value)}}
    return {"type": "number", "value": {"number": proposed.value}}


def _interface(
    tasks: Sequence[Mapping[str, Any]], proposed: Sequence[Proposed | None]
) -> str:
    """Return Label Studio's configuration for these tasks; "" without a verdict."""
    first = next(filter(None, proposed), None)
    if first is None:
        return ""
    lines = ["<View>"]
    for name in TEXTS:
        if all(name in task["data"] for task in tasks):
            lines.append(f'  <Header value="{name.title()}"/>')
            lines.append(f'  <Text name="{name}" value="${name}"/>')
    asked = f'name="{QUESTION}" toName="output"'
    if isinstance(first.value, str):
        words = dict.fromkeys(str(one.value) for one in proposed if one is not None)
        if words.keys() <= set(PASS_FAIL):  # a judge may pass every row
            words = dict.fromkeys(PASS_FAIL)
        lines.append(f'  <Choices {asked} choice="single">')
        lines += [f"    <Choice value={quoteattr(word)}/>" for word in words]
        lines.append("  </Choices>")
    elif first.stars and first.scale:
        lines.append(f'  <Rating {asked} maxRating="{first.scale[1]:g}"/>')
    elif first.scale:
        low, high = first.scale
        lines.append(f'  <Number {asked} min="{low:g}" max="{high:g}" step="any"/>')
    return "\n".join(
        [*lines, '  <TextArea name="why" toName="output"/>', "</View>", ""]
    )


def _record(row: Row, proposed: Proposed | None) -> dict[str, Any]:
    """Return a record of Argilla, whose ratings are whole numbers from 0 to 10.

    Raises:
        OptionError: For a score on another scale.
    """
    suggestions: dict[str, Any] = {}
    if proposed is not None:
        value = proposed.value
        if not isinstance(value, str):
            low, high = proposed.scale or (0.0, 0.0)
            if not (low.is_integer() and high.is_integer() and 0 <= low < high <= 10):
                raise OptionError(
                    f"--tool argilla: its ratings are whole numbers from 0 to 10, and the judge scores {low:g} to "
                    f"{high:g}; take --tool label-studio, or a judge on such a scale"
                )
            value = round(value)
        suggestions[QUESTION] = {"value": value, "score": None, "agent": proposed.judge}
    return {
        "id": row.id,
        "fields": _texts(row),
        "metadata": _about(row),
        "suggestions": suggestions,
        "responses": {},
        "vectors": {},
    }
