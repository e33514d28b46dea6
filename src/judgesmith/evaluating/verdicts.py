"""What scored rows say of their verdicts: which aspects were judged, and the verdict on each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..conversation import parsed
from .sources import Judged, some

#: The columns of a scored CSV that describe a verdict, by what they hold.
CELLS = {name: f"judge_{name}" for name in ("score", "explanation", "failure", "aspect", "category", "low", "high")}


def verdict_of(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The verdict of a row that `judgesmith score` wrote, from JSON, or from the columns of a CSV, where numbers are
    text; None where there is none."""
    verdict = parsed(record.get("verdict"))
    if isinstance(verdict, Mapping):
        return verdict
    if "judge_score" not in record and "judge_failure" not in record:
        return None
    aspects = dict.fromkeys(name.partition(".")[2] for name in record if name.startswith(CELLS["score"] + "."))
    parts = {name: _cells(record, f".{name}") for name in aspects}
    return _cells(record, "") | ({"aspects": parts} if parts else {})


def _cells(record: Mapping[str, Any], of: str) -> dict[str, Any]:
    return {name: record.get(column + of) for name, column in CELLS.items()}


def aspects_of(verdicts: Iterable[Mapping[str, Any]]) -> list[str]:
    """The aspects that verdicts say they are on; none where they say nothing."""
    found: dict[str, None] = {}
    for verdict in verdicts:
        parts = verdict.get("aspects")
        for name in parts if isinstance(parts, Mapping) else [verdict.get("aspect")]:
            if isinstance(name, str) and name:
                found[name] = None
    return list(found)


def part_of(verdict: Mapping[str, Any], aspect: str | None) -> Mapping[str, Any]:
    """What a verdict says of an aspect; of None, the whole."""
    parts = verdict.get("aspects")
    if aspect is None or not isinstance(parts, Mapping):
        return verdict
    part = parts.get(aspect)
    return part if isinstance(part, Mapping) else {}


def plain_name(aspect: str) -> str:
    """By which an aspect of human ratings and one that was judged are the same."""
    return aspect.removeprefix("zscores.").casefold()


def matched(joined: Judged, name: str, aspects: Iterable[str]) -> dict[str, str | None]:
    """For each aspect of human ratings that is to be compared, the judged aspect of that name. Where none has such a
    name, all are compared with the judge's one score (None), which is noted."""
    by_name = {plain_name(aspect): aspect for aspect in aspects}
    found: dict[str, str | None] = {
        human: by_name[plain_name(human)] for human in joined.human if plain_name(human) in by_name
    }
    if by_name and not found:
        told = ", ".join(map(repr, by_name.values()))
        joined.notes.append(f"{name} judged {told}; its score is compared with human {some(joined.human)} here")
    return found or dict.fromkeys(joined.human, None)
