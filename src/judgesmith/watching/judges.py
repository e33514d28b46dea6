"""`judgesmith diff`: what changed between two saved judges."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..evaluating.sources import inside
from ..programs.artifact import Artifact, identity_of
from ..programs.versions import Comparable, Version, comparable, members, weights
from ..tables import shortened

#: What of the provenance is compared: how a judge came to be, which changes no verdict.
HISTORY = (
    "created", "optimizer", "seed", "labels.origin", "labels.rows", "labels.aspect", "labels.fingerprint",
    "heldout.signature", "selected.candidate", "cost.calls", "versions",
)  # fmt: skip
#: Numbers of a list that are shown one by one.
_FEW = 8


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs. part: method, option, task, criterion, prompt, demonstration, scale, calibration,
    decision, interval, readings and head, model, provenance, in an ensemble after "member N: ". before, after: JSON
    values, None where there is nothing."""

    part: str
    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class JudgeDiff:
    """What changed from judge `a` to judge `b`, and whether their scores may be compared."""

    a: Version
    b: Version
    comparable: Comparable
    changes: tuple[Change, ...]

    @property
    def same(self) -> bool:
        """Whether both give the same verdicts on everything, their provenance aside."""
        return self.a.fingerprint == self.b.fingerprint

    def to_dict(self) -> dict[str, Any]:
        return {
            "same": self.same,
            "comparable": asdict(self.comparable),
            "a": self.a.to_dict(),
            "b": self.b.to_dict(),
            "changes": [{"part": one.part, "name": one.name, "a": one.before, "b": one.after} for one in self.changes],
        }


def compare_judges(a: Artifact, b: Artifact) -> JudgeDiff:
    """Raises ArtifactError for a file whose parts do not fit together."""
    whole = identity_of(a), identity_of(b)
    versions = [Version.of_identity(one) for one in whole]
    result = [*_changes(*whole), *_differing("provenance", _history(a), _history(b))]
    return JudgeDiff(versions[0], versions[1], comparable(*versions), tuple(result))


def _changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Change]:
    several = members(a), members(b)
    count = max(map(len, several))
    for place in range(count):
        prefix = f"member {place + 1}: " if count > 1 else ""
        first, other = (one[place] if place < len(one) else None for one in several)
        if first is None or other is None:
            side = first or other
            kind = side["program"]["kind"] if side else None
            yield Change(f"{prefix}method", "kind", first and kind, other and kind)
        else:
            yield from _of_member(prefix, first, other)
    yield from _differing("model", a.get("lm"), b.get("lm"))
    for part in ("scale", "calibration", "decision"):
        yield from _differing(part, a.get(part), b.get(part))
    yield from _differing("interval", a.get("sureness"), b.get("sureness"))


def _of_member(prefix: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Change]:
    yield from _differing(f"{prefix}method", {"kind": a["program"]["kind"]}, {"kind": b["program"]["kind"]})
    yield from _differing(f"{prefix}option", a["program"]["options"], b["program"]["options"])
    yield from _differing(f"{prefix}task", {"description": a["task"]}, {"description": b["task"]})
    yield from _differing(f"{prefix}criterion", _criteria(a), _criteria(b))
    yield from _differing(f"{prefix}prompt", _prompts(a), _prompts(b))
    for name in dict.fromkeys([*a["state"], *b["state"]]):
        yield from _demonstrations(prefix, name, *(x["state"].get(name, {}).get("demos", []) for x in (a, b)))
    yield from _differing(f"{prefix}readings and head", weights(a), weights(b))


def _history(judge: Artifact) -> dict[str, Any]:
    return {name: inside(judge.provenance, name) for name in HISTORY}


def _criteria(member: Mapping[str, Any]) -> dict[str, str]:
    return {criterion["name"]: criterion["definition"] for criterion in member["criteria"]}


def _prompts(member: Mapping[str, Any]) -> dict[str, Any]:
    """By predictor: its fields (as a hash) and its instructions."""
    return {
        name: {"signature": member["signatures"].get(name)} | {k: v for k, v in state.items() if k != "demos"}
        for name, state in member["state"].items()
    }


def _demonstrations(prefix: str, name: str, a: Sequence[Any], b: Sequence[Any]) -> Iterator[Change]:
    before, after = ([json.dumps(demo, sort_keys=True) for demo in demos] for demos in (a, b))
    gone, new = Counter(before) - Counter(after), Counter(after) - Counter(before)
    part = f"{prefix}demonstration"
    if before and not gone and not new and before != after:
        yield Change(
            part, f"{name}, order", [before.index(one) for one in before], [before.index(one) for one in after]
        )
    for demo in gone.elements():
        yield Change(part, name, json.loads(demo), None)
    for demo in new.elements():
        yield Change(part, name, None, json.loads(demo))


def _differing(part: str, a: Any, b: Any, name: str = "") -> Iterator[Change]:
    """The leaves of two JSON values that differ, by their paths."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in dict.fromkeys([*a, *b]):
            yield from _differing(part, a.get(key), b.get(key), f"{name}.{key}" if name else str(key))
    elif a != b:
        yield Change(part, name or part, a, b)


def shown(value: Any, most: int = 110) -> str:
    """A value of a change in a few words."""
    if value is None:
        return "–"
    if isinstance(value, Mapping) and "output" in value and "score" in value:
        return shortened(f"{value['score']} of 100: {value['output']}", most)
    if isinstance(value, list) and len(value) > _FEW:
        return f"{len(value)} values"
    if isinstance(value, float):
        return f"{value:.6g}"
    return shortened(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), most)


__all__ = ["Change", "JudgeDiff", "compare_judges", "shown"]
