"""A folder's judges, watched judges, scored files and studies as one HTML page: no network, no scripts, every text
escaped."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..evaluating.pivot import plain_number
from .charts import Axis
from .folder import Browsed, SavedJudge, WatchedJudge
from .page import environment, moment

_LONG = 300  # characters of a value that changed


def render(found: Browsed, target: Path) -> str:
    """The page. target: where it will stand, which its links to other pages start from."""
    from .. import __version__

    ends = [v for one in found.judges for v in one.agreement() if not math.isnan(v)]
    axis = Axis.of("", [0.0, *ends])
    base = Path(os.path.relpath(found.folder.resolve(), target.resolve().parent))

    def link(page: str | None) -> str:
        return quote((base / page).as_posix()) if page else ""

    by_mark = {one.version.fingerprint: k for k, one in enumerate(found.judges, 1)}
    return (
        environment()
        .get_template("browse.html.j2")
        .render(
            folder=found.folder.resolve().name or "/",
            judges=[_judge(one, axis, found) for one in found.judges],
            watched=[_watched(one, found, link) | {"judge": by_mark.get(one.last.judge)} for one in found.watched],
            ticks=[(f"{tick:.4g}", _place(axis, tick)) for tick in axis.ticks()[::2]] if ends else [],
            scored=[
                {"path": one.path, "href": link(one.page), "rows": one.summary["rows"],
                 "failed": one.summary["failures"],
                 "mean": plain_number(one.summary["mean_score"]["value"], 2),
                 "spearman": plain_number(one.spearman, 2), "both": one.both or "–",
                 "judges": [(mark, by_mark.get(mark)) for mark in one.judges[:5]]}
                for one in found.scored
            ],
            studies=[
                {"path": one.path, "failed": one.failed,
                 "href": link(one.page),
                 "arms": [(title, plain_number(q, 2), cells, plain_number(calls, 0))
                          for title, (q, cells, calls) in sorted(one.arms.items(), key=lambda a: -_last(a[1][0]))]}
                for one in found.studies
            ],
            diffs=[
                {"a": one.path, "b": other.path, "same": diff.same, "why": diff.comparable.why,
                 "scores": diff.comparable.scores, "changes": [
                     {"part": change.part, "name": change.name, "before": _told(change.before),
                      "after": _told(change.after)} for change in diff.changes]}
                for one, other, diff in found.diffs()
            ],
            damaged=found.damaged, notes=found.notes, version=__version__,
        )
    )  # fmt: skip


def _last(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _place(axis: Axis, value: float) -> float:
    return 0.0 if math.isnan(value) else round(100 * axis.place(value), 1)


def _watched(one: WatchedJudge, found: Browsed, link: Callable[[str | None], str]) -> dict[str, Any]:
    last, agreed = one.last, one.last.agreement
    shown, page = found.watch_pages.get((last.judge, last.rows), ("", None))
    return {
        "path": one.path, "mark": last.judge, "model": last.model, "state": one.state, "time": moment(last.time),
        "alarms": last.alarms, "runs": len(one.runs), "alarming": sum(bool(run.alarms) for run in one.runs),
        "rows": len(last.ids), "scored": sum(score is not None for score in last.scores),
        "spearman": "–" if agreed is None else plain_number(agreed.value, 2),
        "interval": "" if agreed is None or agreed.low is None else
        f"[{plain_number(agreed.low, 2)}, {plain_number(agreed.high, 2)}]",
        "href": link(page), "shown": moment(shown),
    }  # fmt: skip


def _judge(one: SavedJudge, axis: Axis, found: Browsed) -> dict[str, Any]:
    value, low, high = one.agreement()
    zero = one.agreement("zero_shot")[0]
    cost = one.said("provenance", "cost")
    labels = one.said("provenance", "labels")
    labels = labels if isinstance(labels, Mapping) else {}
    whole = not math.isnan(low)
    return {
        "path": one.path, "kind": _told(one.said("program", "kind") or "several aspects"),
        "model": _told(one.said("lm", "model") or "–"), "mark": one.version.fingerprint,
        "aspect": _told(labels.get("aspect") or labels.get("aspects") or "–"),
        "value": plain_number(value, 2), "known": not math.isnan(value),
        "interval": f"[{plain_number(low, 2)}, {plain_number(high, 2)}]" if whole else "",
        "at": _place(axis, value), "low": _place(axis, low), "width": round(_place(axis, high) - _place(axis, low), 1),
        "zero": plain_number(zero, 2), "zero_at": None if math.isnan(zero) else _place(axis, zero),
        "signature": _told(one.said("provenance", "heldout", "signature") or ""),
        "calls": _count(cost.get("calls")) if isinstance(cost, Mapping) else "–",
        "tokens": " + ".join(_count(cost.get(key)) for key in ("prompt_tokens", "completion_tokens"))
        if isinstance(cost, Mapping) else "–",
        "created": moment(_told(one.said("provenance", "created") or "–")),
        "optimizer": _told(one.said("provenance", "optimizer", "name") or one.said("provenance", "optimizer") or "–"),
        "labels": f"{_told(labels.get('rows', '–'))} rows of {_told(labels.get('origin', '–'))}" if labels else "–",
        "scored": [file.path for file in found.scored if one.version.fingerprint in file.judges],
        "watched": [(place, watched.state, moment(watched.last.time)) for place, watched in enumerate(found.watched, 1)
                    if watched.last.judge == one.version.fingerprint],
    }  # fmt: skip


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else _told(value)


def _told(value: Any) -> str:
    text = value if isinstance(value, str) else "–" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"
