"""Differences of two saved judges, for `judgesmith browse`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judgesmith.evaluating.sources import inside
from judgesmith.programs.artifact import Artifact, identity_of
from judgesmith.programs.versions import Version
from judgesmith.tables import shortened

#: What of the provenance is compared: how a judge came to be, which changes no verdict.
HISTORY = (
    "created",
    "optimizer",
    "seed",
    "labels.origin",
    "labels.rows",
    "labels.aspect",
    "labels.fingerprint",
    "heldout.signature",
    "selected.candidate",
    "cost.calls",
    "versions",
)
#: Numbers of a list that are shown one by one.
_FEW = 8


@dataclass(frozen=True, slots=True)
class JudgeDiff:
    """Differences of one judge from another.

    same: whether both give the same verdicts on everything. parts: those of `Version` that differ, in words; only if
    none does may the scores be compared. changes: place in the file, and the JSON values before and after, None where
    there is nothing.
    """

    same: bool
    parts: tuple[str, ...]
    changes: tuple[tuple[str, Any, Any], ...]


def compare_judges(a: Artifact, b: Artifact) -> JudgeDiff:
    """Return the differences of judge b from judge a.

    Raises:
        ArtifactError: If the parts of a file do not fit together.
    """
    one = Version.of(a)
    other = Version.of(b)
    marks = other.parts()
    parts = tuple(name for name, mark in one.parts().items() if marks[name] != mark)
    changes = (
        *_differing(identity_of(a), identity_of(b)),
        *_differing(_history_of(a), _history_of(b), "provenance"),
    )
    return JudgeDiff(one.fingerprint == other.fingerprint, parts, changes)


def _history_of(judge: Artifact) -> dict[str, Any]:
    """Return the parts of a judge's provenance that are compared."""
    return {name: inside(judge.provenance, name) for name in HISTORY}


def _differing(a: Any, b: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the leaves of two JSON values that differ, by their paths; a list is one leaf."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in dict.fromkeys([*a, *b]):
            yield from _differing(
                a.get(key), b.get(key), f"{name}.{key}" if name else str(key)
            )
    elif a != b:
        yield name, a, b


def shown(value: Any, most: int) -> str:
    """Return a value of a change in a few words."""
    if value is None:
        return "–"
    if isinstance(value, list) and len(value) > _FEW:
        return f"{len(value)} values"
    if isinstance(value, float):
        return f"{value:.6g}"
    return shortened(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), most
    )
