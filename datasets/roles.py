"""Names of columns: which role each has, and the roles by which a scored file was read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

from judgesmith.conversation import parsed
from judgesmith.datasets.marks import named_scale
from judgesmith.datasets.row import OVERALL
from judgesmith.rows import ROLES as TEXT_ROLES
from judgesmith.rows import (
    WRITTEN,
    folded_name,
    named_roles,
)

#: Role -> names of its column, best first: the texts (`judgesmith.rows`), then what people said of them.
ROLES = TEXT_ROLES | named_roles("ratings")
#: Roles of human ratings, and rows by which the columns of a file are known.
_RATINGS = ("score", "scores", "rater_score", "winner")
_HEAD = 1000


def plain_name(name: str) -> str:
    """Return a column's name as roles are known by: folded, without a scale in it."""
    return folded_name(named_scale(name)[0])


def _is_named(name: str, role: str) -> bool:
    return any(plain_name(name) in tier for tier in ROLES[role])


def is_role(name: str) -> bool:
    """Return True if a column of this name has a role, of a text or a rating, whatever it holds."""
    return any(_is_named(name, role) for role in ROLES)


def is_output(name: str) -> bool:
    """Return True if a column's name is one of the outputs'."""
    return _is_named(name, "output")


def is_score(name: str) -> bool:
    """Return True if a column's name says no more than that it is a score."""
    return _is_named(name, "score")


def named_score(name: str) -> bool:
    """Return True if a column's name is the one that people's score has by itself: "score", "Overall (1-5)"."""
    return plain_name(name) in ("score", OVERALL)


def is_comment(name: str) -> bool:
    """Return True if a column of this name holds people's comments beside their score."""
    return _is_named(name, "rationale")


def unusual(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns (role -> name) whose names do not state their role."""
    return {role: name for role, name in columns.items() if not _says(role, name)}


def _says(role: str, name: Any) -> bool:
    # Which ratings a judge goes by is said always: beside a `rating` there may be a `score`.
    return role not in _RATINGS and isinstance(name, str) and _is_named(name, role)


def written(names: Collection[str]) -> list[str]:
    """Return the columns that `judgesmith score` wrote; none where these are no names of a scored file."""
    if "verdict" in names or "judge_score" in names or "judge_failure" in names:
        return [name for name in names if name in WRITTEN or name.startswith("judge_")]
    return []


def remembered(
    records: Sequence[Mapping[str, Any]], columns: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the columns that the user named, and for other roles those that `score` read its rows by."""
    chosen = dict(columns or {})
    recorded = scored_by(records[0]) if records else {}
    names = set(chain.from_iterable(records[:_HEAD]))
    if set(_RATINGS) & set(chosen):  # other ratings than those of the judge
        recorded = {r: name for r, name in recorded.items() if r not in _RATINGS}
    return {
        role: name
        for role, name in recorded.items()
        if role in ROLES and names.issuperset([name] if isinstance(name, str) else name)
    } | chosen


def scored_by(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the columns (role -> names) by which a row was scored; nothing for a row that was not."""
    verdict = parsed(record.get("verdict"))
    columns = parsed(
        verdict.get("columns")
        if isinstance(verdict, Mapping)
        else record.get("judge_columns")
    )
    return columns if isinstance(columns, Mapping) else {}
