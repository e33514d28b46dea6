"""A scored file as one HTML page: every row with its errors marked in the text. No network; every text escaped.

A row is made into HTML here, once. The first rows stand in the page as they are; all rows are in it as compressed JSON,
from which the page's script shows those that are asked for.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
from markupsafe import Markup, escape

from ..agreement.correlation import Vector
from ..datasets.records import infer_scale
from ..evaluating.pivot import plain_number
from ..pages import environment
from ..running.plain import clean
from ..tables import plain as number
from .rows import GROUNDED, Found, Mean, Piece, Scored, Shown, Side, mean_of, pieces, summarise

PAGE, STILL = 25, 10  # rows on a page, and rows that are there without scripts
_NAMED = 3  # numbers of errors at one piece of text
_HEADING = 60  # characters of an id that may be a heading
_QUOTED = 160  # characters of a quotation beside the text
_BINS = 10
_PLACES = {
    "exact": "found word for word",
    "normalised": "found but for spaces, case or punctuation",
    "fuzzy": "found approximately",
    "omission": "omission: something is missing",
    "ungrounded": "not found in the text",
}
_GRADES = {1: "hardly matters", 2: "minor", 3: "moderate", 4: "major", 5: "critical", 0: "no severity given"}


def render(data: Scored, title: str = "") -> str:
    """The page."""
    from .. import __version__

    def exact(words: str) -> Any:
        """A text of which every character counts: a parser would turn carriage returns into line feeds."""
        return Markup(str(escape(clean(words))).replace("\r", "&#13;"))  # noqa: S704  # escaped in this very line

    pages = environment("judgesmith.reports", trim_blocks=True, lstrip_blocks=True)
    pages.filters |= {"exact": exact, "number": number, "short": _short, "fragment": _fragment}
    pages.globals |= {"places": _PLACES, "grades": _GRADES}
    card = pages.get_template("span_row.html.j2")
    script = pages.get_template("spans.js.j2").render()
    texts: dict[str, int] = {}
    named = {side.name for side in data.sides[1:]}
    axis = _axis(np.concatenate([data.sides[0].score, data.sides[0].human]))
    shown = [_row(data, i, texts, named, axis) for i in range(len(data.rows))]
    start = next((k for k, side in enumerate(data.sides) if not np.isnan(side.gap).all()), 0)
    order = _worst_first(data.sides[start].gap)[:STILL]
    first = [Markup(card.render(row=shown[i], inline=True)) for i in order]  # noqa: S704  # from a template that escapes
    html = [card.render(row=row, inline=False) for row in shown]
    return pages.get_template("spans.html.j2").render(
        title=title or f"Judged texts: {data.origin}",
        origin=data.origin,
        about=summarise(data),
        score=_cell(mean_of(data.sides[0].score, [row.document for row in data.rows]), *_axis(data.sides[0].score)),
        people=plain_number(_mean(data.sides[0].human), 2),
        gaps=any(not np.isnan(side.gap).all() for side in data.sides),
        start=start,
        flags=[
            (name, bit)
            for bit, (name, there) in {
                1: ("left to a person", any(row.deferred for row in data.rows)),
                2: ("suspicious", any(row.suspicious for row in data.rows)),
                4: ("used to compile the judge", any(row.seen for row in data.rows)),
            }.items()
            if there
        ],
        tables=[table for table in _tables(data) if table["rows"]],
        sides=[side.name for side in data.sides],
        systems=_systems(data.rows),
        first=first,
        page_size=PAGE,
        data=packed(_columns(data, html, list(texts))),
        script=Markup(script),  # noqa: S704  # our own script
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        version=__version__,
    )


def _worst_first(gap: Vector) -> list[int]:
    """Rows in the order in which the page shows them at first: those furthest from people first, if people scored
    any; the others in the order of the file."""
    return [int(i) for i in np.argsort(-np.nan_to_num(gap, nan=-1.0), kind="stable")]


def packed(data: Any) -> str:
    """JSON as gzip in base64, of which nothing is markup: rows repeat their markup, and panels their words."""
    words = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    made = gzip.compress(words.encode("utf-8", "backslashreplace"), 9, mtime=0)
    return base64.b64encode(made).decode("ascii")


def _short(words: str) -> str:
    words = " ".join(words.split())
    return words if len(words) <= _QUOTED else words[: _QUOTED - 1] + "…"


def _fragment(anchor: str) -> str:
    return quote(clean(anchor), safe="~")


# Rows ----------------------------------------------------------------------------------------------------------------


def _row(data: Scored, i: int, texts: dict[str, int], named: set[str], axis: Span) -> dict[str, Any]:
    """What the template of a row needs. `texts` collects what is folded away: rows of a document share their source."""
    row = data.rows[i]
    folded = [
        {"title": title, "words": words, "key": texts.setdefault(words, len(texts))}
        for title, words in (("Source", row.row.source), ("Context", row.row.context), ("Reference", row.row.reference))
        if words
    ]
    gap, human = float(data.sides[0].gap[i]), float(data.sides[0].human[i])
    return {
        "it": row,
        "title": _title(data.origin, row),
        "track": _track(row, human, axis),
        "readings": _bars(row, axis),
        "told": row.readings is not None and row.explanation.startswith(f"{row.readings.base:.2f} on average"),
        "gap": "" if math.isnan(gap) else f"{gap:.0f}",
        "human": "" if math.isnan(human) else number(human),
        "people": {name: value for name, value in row.human.items() if name in named and not math.isnan(value)},
        "pieces": [_piece(piece) for piece in pieces(row.row.output, row.errors)],
        "groups": [group for group in _groups(row.errors) if group[2]],
        "views": _views(row),
        "folded": folded,
    }


def _views(row: Shown) -> list[dict[str, Any]]:
    """What each annotator said. numbers: of the row's errors that it found as they are; errors: its others."""
    numbers = {_same(error): n for n, error in reversed(list(enumerate(row.errors, 1)))}
    return [
        {"it": view, "numbers": sorted({numbers[_same(error)] for error in view.errors if _same(error) in numbers}),
         "errors": [error for error in view.errors if _same(error) not in numbers]}
        for view in row.views
    ]  # fmt: skip


def _same(error: Found) -> tuple[Any, ...]:
    return error.text, error.explanation, error.start, error.end, error.grade, error.place


_HASH = re.compile(r"[0-9a-f]{12,}")
Span = tuple[float, float]


def _title(origin: str, row: Shown) -> str:
    """The row's id where it says something to a reader; for hashes the file and the line."""
    if _HASH.search(row.row.id) is None and len(row.row.id) <= _HEADING:
        return row.row.id
    return f"{origin}, line {row.row.line}" if row.row.line else origin


def _within(value: float, axis: Span) -> float:
    """In percent of the axis, at its end for what is beyond."""
    low, high = axis
    return round(min(100.0, max(0.0, (value - low) / (high - low) * 100)), 1)


def _track(row: Shown, human: float, axis: Span) -> dict[str, Any] | None:
    """The score, its interval and the human rating on the scale; None without a score."""
    if row.failure or math.isnan(row.score):
        return None
    low, high = (min(max(end, axis[0]), axis[1]) for end in row.interval)
    whole = not math.isnan(row.interval[0])
    return {
        "at": _within(row.score, axis),
        "low": _within(low, axis) if whole else 0.0,
        "width": round(_within(high, axis) - _within(low, axis), 1) if whole else 0.0,
        "people": None if math.isnan(human) else _within(human, axis),
        "interval": f"[{number(low)}, {number(high)}]" if whole else "",
    }


def _bars(row: Shown, axis: Span) -> list[dict[str, Any]]:
    """What each group of readings adds, as bars from the middle; half of the scale is half of the bar's room."""
    if row.readings is None:
        return []
    made = []
    for name, value in row.readings.added.items():
        share = min(50.0, abs(value) / (axis[1] - axis[0]) * 50)
        made.append({"name": name, "value": f"{value:+.2f}", "left": round(50 - share * (value < 0), 1),
                     "width": round(share, 1)})  # fmt: skip
    return made


def _piece(piece: Piece) -> dict[str, Any]:
    more = piece.covering - _NAMED
    return {
        "words": piece.text,
        "errors": " ".join(map(str, piece.errors)),
        "label": ",".join(str(k + 1) for k in piece.errors[:_NAMED]) + (f"+{more}" if more > 0 else ""),
        "covering": piece.covering,
        "unnamed": piece.covering - len(piece.errors),
        "grade": piece.grade,
    }


def _groups(errors: Sequence[Found]) -> Iterable[tuple[str, int, list[Found]]]:
    """(title, number of the first, errors): the errors are in the order of these groups already."""
    first = 1
    for title, kinds in (
        ("Errors in the text", GROUNDED),
        ("Omissions", ("omission",)),
        ("Not found in the text", ("ungrounded",)),
    ):
        group = [error for error in errors if error.place in kinds]
        yield title, first, group
        first += len(group)


def _systems(rows: Sequence[Shown]) -> list[str]:
    return sorted({row.row.system for row in rows if row.row.system})


def _columns(data: Scored, html: list[str], texts: list[str]) -> dict[str, Any]:
    """What the page's script filters and sorts by, a list of one value a row each."""
    systems = _systems(data.rows)
    places = {name: k for k, name in enumerate(systems)}
    return {
        "html": html,
        "texts": [clean(words) for words in texts],
        # Mostly "row-" and the id: then nothing.
        "anchor": ["" if row.anchor == f"row-{row.row.id}" else clean(row.anchor) for row in data.rows],
        "id": [clean(row.row.id) for row in data.rows],
        "system": [places.get(row.row.system or "", -1) for row in data.rows],
        "errors": [len(row.errors) for row in data.rows],
        # A bit for each grade that a row has, bit 0 for errors without severity.
        "grades": [sum({1 << error.grade for error in row.errors}) for row in data.rows],
        "failed": [int(bool(row.failure)) for row in data.rows],
        "flags": [row.deferred + 2 * bool(row.suspicious) + 4 * row.seen for row in data.rows],
        "score": [_plain(side.score) for side in data.sides],
        "gap": [_plain(side.gap, 1) for side in data.sides],
    }


def _plain(values: Vector, digits: int = 6) -> list[float | None]:
    return [None if math.isnan(value) else round(value, digits) for value in values.tolist()]


# Tables --------------------------------------------------------------------------------------------------------------


def _tables(data: Scored) -> Iterable[dict[str, Any]]:
    """{title, intro, names, rows: cells}; a cell is a text, or {value, interval, bar} in percent of the axis."""
    rows, overall = data.rows, data.sides[0]
    scores, low, high = overall.score, *_axis(overall.score)
    yield _histogram(scores)
    documents = [row.document for row in rows]
    yield _system_table(rows, overall, low, high)
    yield {
        "title": "Aspects",
        "intro": "Means with 95 % intervals over documents, each on the scale that the judge uses for it.",
        "names": ["aspect", "rows", "without score", "mean score", "human mean"],
        "rows": [_aspect(side, documents, len(rows)) for side in data.sides[1:]],
    }
    errors = [error for row in rows for error in row.errors]
    for title, kinds, of in (
        ("Severity of errors", {g: f"{g or '–'} {_GRADES[g]}" for g in (5, 4, 3, 2, 1, 0)}, [e.grade for e in errors]),
        ("Where errors were found", _PLACES, [e.place for e in errors]),
    ):
        counts = Counter(of)
        yield {
            "title": title,
            "intro": "",
            "names": ["", "errors", "share"],
            "rows": [[text, str(counts[kind]), _share(counts[kind], len(errors))] for kind, text in kinds.items()]
            if errors
            else [],
        }
    yield _annotators(rows, documents)


def _system_table(rows: Sequence[Shown], overall: Side, low: float, high: float) -> dict[str, Any]:
    """The systems, best first; without rows where there is one system only."""
    systems = np.array([row.row.system or "" for row in rows], dtype=object)
    people, spans = not bool(np.isnan(overall.human).all()), any(row.errors for row in rows)
    found: list[tuple[Mean, list[Any]]] = []
    for name in sorted(set(systems)):
        mine = systems == name
        own = [row for row in rows if (row.row.system or "") == name]
        judged = [row for row in own if not row.failure]
        mean = mean_of(overall.score[mine], [row.document for row in own])
        cells = [name or "(not named)", str(len(judged)), str(len(own) - len(judged)), _cell(mean, low, high)]
        if people:
            cells.append(plain_number(_mean(overall.human[mine]), 2))
        if spans:
            cells.append(_ratio(sum(len(row.errors) for row in judged), len(judged)))
        found.append((mean, cells))
    found.sort(key=lambda pair: -pair[0].value if pair[0].n else math.inf)
    names = ["system", "rows", "failed", "mean score", *["human mean"] * people, *["errors a row"] * spans]
    axis = f"bars from {number(low)} to {number(high)}"
    return {
        "title": "Systems",
        "intro": f"{len(found)} systems. Mean scores with 95 % intervals over documents; {axis}.",
        "names": names,
        "rows": [cells for _, cells in found] if len(found) > 1 else [],
    }


def _axis(values: Vector) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    low, high = infer_scale(known, len(known)) if len(known) else (0.0, 1.0)
    return low, high if high > low else low + 1.0


def _histogram(scores: Vector) -> dict[str, Any]:
    known = scores[~np.isnan(scores)]
    distinct, counts = np.unique(known, return_counts=True)
    names = [number(float(value)) for value in distinct]
    if len(distinct) > _BINS:
        counts, edges = np.histogram(known, _BINS, _axis(known))
        names = [f"{number(float(a))} to {number(float(b))}" for a, b in itertools.pairwise(edges)]
    return {
        "title": "Scores",
        "intro": "How many rows have which score.",
        "names": ["score", "rows", "share"],
        "rows": [[name, str(n), _share(int(n), len(known))] for name, n in zip(names, counts, strict=True)],
    }


def _cell(mean: Mean, low: float, high: float) -> dict[str, Any]:
    """A mean on an axis. Student's t knows no end of a scale: an interval is cut there."""

    def at(value: float) -> float:
        return round(min(100.0, max(0.0, (value - low) / (high - low) * 100)), 2)

    whole = not math.isnan(mean.low)
    digits = 3 if high - low <= 2 else 2 if high - low <= 20 else 1
    return {
        "value": plain_number(mean.value, digits),
        "interval": f"[{plain_number(max(mean.low, low), digits)}, {plain_number(min(mean.high, high), digits)}]"
        if whole
        else "",
        "bar": at(mean.value) if mean.n else None,
        "low": at(mean.low) if whole else 0,
        "width": round(at(mean.high) - at(mean.low), 2) if whole else 0,
    }


def _share(part: int, whole: int) -> dict[str, Any]:
    """The share as text and as a bar."""
    bar = round(100 * part / (whole or 1), 2)
    return {"value": f"{part / whole:.0%}" if whole else "–", "interval": "", "bar": bar, "low": 0, "width": 0}


def _aspect(side: Side, documents: Sequence[str], rows: int) -> list[Any]:
    mean = mean_of(side.score, documents)
    return [
        side.name,
        str(mean.n),
        str(rows - mean.n),
        _cell(mean, *_axis(side.score)),
        plain_number(_mean(side.human), 2),
    ]


def _annotators(rows: Sequence[Shown], documents: Sequence[str]) -> dict[str, Any]:
    found: dict[str, dict[str, list[Any]]] = {}
    for row, document in zip(rows, documents, strict=True):
        for view in row.views:
            mine = found.setdefault(view.name, {"percent": [], "documents": [], "views": []})
            mine["percent"].append(view.percent)
            mine["documents"].append(document)
            mine["views"].append(view)
    return {
        "title": "Annotators",
        "intro": "Scores in percent of the scale. Outlier: so far from the others that its errors were set aside.",
        "names": ["annotator", "rows", "failed", "mean score", "outlier", "errors a row"],
        "rows": [
            [
                name, str(len(mine["views"])), str(sum(bool(view.failure) for view in mine["views"])),
                _cell(mean_of(np.array(mine["percent"]), mine["documents"]), 0, 100),
                _share(sum(view.outlier for view in mine["views"]), len(mine["views"])),
                _ratio(sum(len(view.errors) for view in mine["views"]), len(mine["views"])),
            ]
            for name, mine in found.items()
        ],
    }  # fmt: skip


def _mean(values: Vector) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "–"
