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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import numpy as np
from jinja2 import Environment
from markupsafe import Markup

from ..agreement.correlation import Vector
from ..conversation import turns_in
from ..datasets.records import infer_scale
from ..pages import environment
from ..signatures.values import ErrorSpan
from ..tables import (
    Cell,
    Column,
    Table,
    clean,
    escaped,
    interval,
    number,
    percent,
    plain,
    shortened,
)
from ..trajectories.value import Trajectory, starts
from .rows import (
    GROUNDED,
    Mean,
    Piece,
    Scored,
    Shown,
    Side,
    grade,
    mean_of,
    pieces,
    summarise,
)

PAGE, STILL = 25, 10  # rows on a page, and rows that are there without scripts
_NAMED = 3  # numbers of errors at one piece of text
_HEADING = 60  # characters of an id that may be a heading
_QUOTED = 160  # characters of a quotation beside the text
_LONG, _PEEK = (
    400,
    90,
)  # characters of a turn that is folded, and of it that are shown then
_BINS = 10
_PLACES = {
    "exact": "found word for word",
    "normalised": "found but for spaces, case or punctuation",
    "fuzzy": "found approximately",
    "omission": "omission: something is missing",
    "ungrounded": "not found in the text",
}
_GRADES = {
    1: "hardly matters",
    2: "minor",
    3: "moderate",
    4: "major",
    5: "critical",
    0: "no severity given",
}
Span = tuple[float, float]


def render(data: Scored) -> str:
    """The page."""
    pages = _templates()
    card = pages.get_template("span_row.html.j2")
    script = pages.get_template("spans.js.j2").render()
    overall, texts, decided = data.sides[0], dict[str, int](), data.passed()
    named = {side.name for side in data.sides[1:]}
    axis = _axis(np.concatenate([overall.score, overall.human]))
    rows = [_row(data, i, texts, named, axis) for i in range(len(data.rows))]
    start = next(
        (k for k, side in enumerate(data.sides) if not np.isnan(side.gap).all()), 0
    )
    # Those furthest from people first, if people scored any; the others in the order of the file.
    order = np.argsort(-np.nan_to_num(data.sides[start].gap, nan=-1.0), kind="stable")[
        :STILL
    ]
    first = [Markup(card.render(row=rows[i], inline=True)) for i in order]  # noqa: S704  # from a template that escapes
    html = [card.render(row=row, inline=False) for row in rows]
    mean = mean_of(overall.score, [row.row.doc_id for row in data.rows])
    flags = (
        ("left to a person", 1, any(row.deferred for row in data.rows)),
        ("suspicious", 2, any(row.verdict.suspicious for row in data.rows)),
        ("read in part", 64, any(row.verdict.partly for row in data.rows)),
        ("used to compile the judge", 4, any(row.seen for row in data.rows)),
        *(
            (f"the judge {what}", bit, decided is not None)
            for what, bit in _decides(data)
        ),
        (
            "people and judge decide differently",
            32,
            decided is not None and bool(np.nanmax([0, *decided.gap])),
        ),
    )
    return str(
        pages.get_template("spans.html.j2").render(
            title=f"Judged texts: {data.origin}",
            compared=data.compared,
            origin=data.origin,
            about=summarise(data),
            score=number(mean.value, _digits(axis)),
            interval=_interval(mean, _axis(overall.score)),
            people=number(_mean(overall.human), 2),
            gaps=any(not np.isnan(side.gap).all() for side in data.sides),
            start=start,
            flags=[(name, bit) for name, bit, known in flags if known],
            shades=any(row.shades for row in data.rows),
            tables=[(about, table) for about, table in _tables(data) if len(table)],
            sides=[side.name for side in data.sides],
            systems=_systems(data.rows),
            first=first,
            page_size=PAGE,
            data=packed(_columns(data, html, list(texts))),
            script=Markup(script),  # noqa: S704  # our own script
            script_hash=base64.b64encode(
                hashlib.sha256(script.encode()).digest()
            ).decode(),
        )
    )


def _decides(data: Scored) -> tuple[tuple[str, int], ...]:
    return (
        (("prefers B", 8), ("prefers A", 16))
        if data.compared
        else (("fails it", 8), ("passes it", 16))
    )


def turn_class(head: str) -> str:
    """The classes of a turn in pages, by how it begins: turn assistant call."""
    who, *rest = head.split()
    return f"turn {who.lower()}{' call' * (rest[:1] == ['calls'])}"


def _templates() -> Environment:
    pages = environment("judgesmith.reports", trim_blocks=True, lstrip_blocks=True)
    filters: dict[str, Callable[[Any], object]] = {
        # Every character counts here: a parser would turn carriage returns into line feeds.
        "exact": lambda words: Markup(escaped(words).replace("\r", "&#13;")),  # noqa: S704  # escaped
        "share": percent,
        "number": plain,
        "short": lambda words: shortened(words, _QUOTED),
        "grade": grade,
        "turns": turns_in,
        "turn": turn_class,
        "fragment": lambda anchor: quote(clean(anchor), safe="~"),
    }
    pages.filters |= filters
    pages.globals |= {"places": _PLACES, "grades": _GRADES}
    return pages


def cards(data: Scored, places: Iterable[int]) -> tuple[list[Markup], str]:
    """Some rows as the page shows them, and the CSS for them."""
    pages, axis = (
        _templates(),
        _axis(np.concatenate([data.sides[0].score, data.sides[0].human])),
    )
    card, whole = map(pages.get_template, ("span_row.html.j2", "spans.html.j2"))
    named = {side.name for side in data.sides[1:]}
    shown = [
        card.render(row=_row(data, i, {}, named, axis), inline=True) for i in places
    ]
    made = [Markup(one) for one in shown]  # noqa: S704  # from a template that escapes
    return made, "".join(whole.blocks["style"](whole.new_context()))


def packed(data: Any) -> str:
    """JSON as gzip in base64, of which nothing is markup: rows repeat their markup, and panels their words."""
    words = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    made = gzip.compress(words.encode("utf-8", "backslashreplace"), 9, mtime=0)
    return base64.b64encode(made).decode("ascii")


# Rows ----------------------------------------------------------------------------------------------------------------


def _row(
    data: Scored, i: int, texts: dict[str, int], named: set[str], axis: Span
) -> dict[str, Any]:
    """What the template of a row needs. `texts` collects what is folded away: rows of a document share their source."""
    row, verdict = data.rows[i], data.rows[i].verdict
    folded = (
        ("Source", row.row.source),
        ("Context", row.row.context),
        ("Reference", row.row.reference),
    )
    gap, human = float(data.sides[0].gap[i]), float(data.sides[0].human[i])
    ends = (
        (verdict.interval.low, verdict.interval.high)
        if verdict.interval
        else (math.nan, math.nan)
    )
    low, high = (min(max(end, axis[0]), axis[1]) for end in ends)
    return {
        "it": row,
        "verdict": verdict,
        "title": shortened(row.row.id, _HEADING),
        "interval": ""
        if math.isnan(ends[0]) or verdict.failure
        else f"[{plain(low)}, {plain(high)}]",
        "gap": "" if math.isnan(gap) else f"{gap:.0f}",
        "human": "" if math.isnan(human) else data.word(human),
        "people": {
            name: value
            for name, value in row.human.items()
            if name in named and not math.isnan(value)
        },
        "turns": _turns(row.row.output, verdict.errors),
        "shades": ()
        if any(error.start is not None for error in verdict.errors)
        else row.shades,
        "groups": [group for group in _groups(verdict.errors) if group[2]],
        "opinions": list(_opinions(row)),
        "folded": [
            (title, words, texts.setdefault(words, len(texts)))
            for title, words in folded
            if words
        ],
    }


def _turns(output: str, errors: Sequence[ErrorSpan]) -> list[dict[str, Any]]:
    """The turns of a trajectory, results inside their calls; any other output is one turn without a beginning."""
    begun = starts(output)
    begins, body, place = {begin: body for begin, body, _ in begun} or {0: 0}, 0, 0
    parts: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = []
    for piece in pieces(output, errors, [*begins, *begins.values()]):
        if place in begins:
            body = begins[place]
            parts.append(([], []))
        words = piece.text.replace("\n  ", "\n") if begun else piece.text
        parts[-1][place >= body].append(_piece(piece._replace(text=words)))
        place += len(piece.text)
    # How a turn begins stands in its summary, and beside its words only where an error is marked in it.
    shown = [
        [*(head if any(one["covering"] for one in head) else []), *words]
        for head, words in parts
    ]
    run = Trajectory(tuple(turn for *_, turn in begun))
    return (
        _folds(run, shown) if begun else [{"class": "", "pieces": one} for one in shown]
    )


def _folds(
    run: Trajectory, parts: Sequence[list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Turns that can be folded. Open are the final answer, short ones, and those in which an error is marked."""
    failed = set(run.errors)
    last = max(
        (i for i, turn in enumerate(run.turns) if turn.speaker == "Assistant"),
        default=0,
    )
    made: list[dict[str, Any]] = [
        {
            "class": turn_class(turn.head),
            "number": i + 1,
            "head": replace(turn, error=False, judged=False).head,
            "failed": turn in failed,
            "judged": turn.judged,
            "pieces": parts[i],
            "inside": [],
            "peek": shortened(turn.text, _PEEK),
            "open": i == last
            or turn.judged
            or len(turn.text) <= _LONG
            or any(one["covering"] for one in parts[i]),
        }
        for i, turn in enumerate(run.turns)
    ]
    for call, result in run.answers.items():
        made[call]["inside"] = [made[result]]
        made[call]["failed"] = made[result]["failed"]
        made[call]["open"] |= any(one["covering"] for one in parts[result])
    inside = set(run.answers.values())
    return [one for i, one in enumerate(made) if i not in inside]


def _opinions(row: Shown) -> Iterator[tuple[str, Any, list[int], list[ErrorSpan]]]:
    """(annotator, opinion, numbers of the row's errors that it found as they are, its other errors)."""
    numbers = {
        _same(error): n for n, error in reversed(list(enumerate(row.verdict.errors, 1)))
    }
    for name, opinion in row.verdict.opinions.items():
        same = sorted(
            {
                numbers[_same(error)]
                for error in opinion.errors
                if _same(error) in numbers
            }
        )
        yield (
            name,
            opinion,
            same,
            [error for error in opinion.errors if _same(error) not in numbers],
        )


def _same(error: ErrorSpan) -> tuple[Any, ...]:
    return (
        error.text,
        error.explanation,
        error.start,
        error.end,
        grade(error),
        error.how,
    )


def _piece(piece: Piece) -> dict[str, Any]:
    more = piece.covering - _NAMED
    label = ",".join(str(k + 1) for k in piece.errors[:_NAMED]) + (
        f"+{more}" if more > 0 else ""
    )
    return {
        "words": piece.text,
        "errors": " ".join(map(str, piece.errors)),
        "label": label,
        "grade": piece.grade,
        "covering": piece.covering,
        "unnamed": piece.covering - len(piece.errors),
    }


def _groups(errors: Sequence[ErrorSpan]) -> Iterator[tuple[str, int, list[ErrorSpan]]]:
    """(title, number of the first, errors): the errors are in the order of these groups already."""
    first = 1
    for title, kinds in (
        ("Errors in the text", GROUNDED),
        ("Omissions", ("omission",)),
        ("Not found in the text", ("ungrounded",)),
    ):
        group = [error for error in errors if error.how in kinds]
        yield title, first, group
        first += len(group)


def _systems(rows: Sequence[Shown]) -> list[str]:
    return sorted({row.row.system for row in rows if row.row.system})


def _columns(data: Scored, html: list[str], texts: list[str]) -> dict[str, Any]:
    """What the page's script filters and sorts by, a list of one value a row each."""
    systems, nothing = _systems(data.rows), np.full(len(data.rows), np.nan)
    decided = data.passed() or Side("", nothing, nothing, nothing)
    places = {name: k for k, name in enumerate(systems)}
    return {
        "html": html,
        "texts": [turns_in(words) or words for words in map(clean, texts)],
        # Mostly "row-" and the id: then nothing.
        "anchor": [
            "" if row.anchor == f"row-{row.row.id}" else clean(row.anchor)
            for row in data.rows
        ],
        "id": [clean(row.row.id) for row in data.rows],
        "system": [places.get(row.row.system or "", -1) for row in data.rows],
        "errors": [len(row.verdict.errors) for row in data.rows],
        # A bit for each grade that a row has, bit 0 for errors without severity.
        "grades": [
            sum({1 << grade(error) for error in row.verdict.errors})
            for row in data.rows
        ],
        "failed": [int(bool(row.verdict.failure)) for row in data.rows],
        "flags": [
            row.deferred
            + 2 * bool(row.verdict.suspicious)
            + 4 * row.seen
            + 8 * bool(judge == 0)
            + 16 * bool(judge == 1)
            + 32 * bool(gap == 1)
            + 64 * bool(row.verdict.partly)
            for row, judge, gap in zip(
                data.rows, decided.score, decided.gap, strict=True
            )
        ],
        "score": [_plain(side.score) for side in data.sides],
        "gap": [_plain(side.gap, 1) for side in data.sides],
    }


def _plain(values: Vector, digits: int = 6) -> list[float | None]:
    return [
        None if math.isnan(value) else round(value, digits) for value in values.tolist()
    ]


# Tables --------------------------------------------------------------------------------------------------------------


def _tables(data: Scored) -> Iterator[tuple[str, Table]]:
    """(introduction, table) of the summary."""
    rows, overall = data.rows, data.sides[0]
    known = overall.score[~np.isnan(overall.score)]
    distinct, counts = np.unique(known, return_counts=True)
    names = [plain(float(value)) for value in distinct]
    if len(distinct) > _BINS:
        counts, edges = np.histogram(known, _BINS, _axis(known))
        names = [
            f"{plain(float(a))} to {plain(float(b))}"
            for a, b in itertools.pairwise(edges)
        ]
    yield (
        "How many rows have which score.",
        _shares("Scores", "score", "rows", dict(zip(names, counts, strict=True))),
    )
    documents = [row.row.doc_id for row in rows]
    decided = data.passed()
    yield from _system_table(
        rows, decided or overall, "pass rate" if decided else "mean score"
    )
    made = Table(
        [
            "aspect",
            Column("rows", "d"),
            Column("without score", "d"),
            Column("mean score", "s"),
            Column("human mean", ".2f"),
        ],
        "Aspects",
    )
    for side in data.sides[1:]:
        mean = mean_of(side.score, documents)
        made.add(
            side.name,
            mean.n,
            len(rows) - mean.n,
            _bar(mean, _axis(side.score)),
            _mean(side.human),
        )
    yield (
        "Means with 95 % intervals over documents, each on the scale that the judge uses for it.",
        made,
    )
    grades = Counter(grade(error) for row in rows for error in row.verdict.errors)
    severity = {f"{g or '–'} {_GRADES[g]}": grades[g] for g in (5, 4, 3, 2, 1, 0)}
    yield "", _shares("Severity of errors", "severity", "errors", severity)
    yield (
        "Scores in percent of the scale. Outlier: so far from the others that its errors were set aside.",
        _annotators(rows, documents),
    )


def _shares(title: str, what: str, of: str, counts: Mapping[str, int]) -> Table:
    """How often what occurs, without rows where nothing does."""
    made, whole = (
        Table([what, Column(of, "d"), Column("share", "s")], title),
        int(sum(counts.values())),
    )
    for name, n in counts.items() if whole else ():
        made.add(name, int(n), _share(int(n), whole))
    return made


def _share(part: int, whole: int) -> Cell:
    """The share as text and as a bar."""
    return Cell(
        percent(part / whole if whole else math.nan),
        bar=round(100 * part / (whole or 1), 2),
    )


def _system_table(
    rows: Sequence[Shown], overall: Side, what: str
) -> Iterator[tuple[str, Table]]:
    """The systems, best first, where there are several."""
    systems, axis = (
        np.array([row.row.system or "" for row in rows], dtype=object),
        _axis(overall.score),
    )
    people, spans = (
        not bool(np.isnan(overall.human).all()),
        any(row.verdict.errors for row in rows),
    )
    result: list[tuple[Mean, list[Any]]] = []
    for name in sorted(set(systems)):
        own = [row for row in rows if (row.row.system or "") == name]
        judged = [row.verdict for row in own if not row.verdict.failure]
        mean = mean_of(overall.score[systems == name], [row.row.doc_id for row in own])
        beside = [_mean(overall.human[systems == name])] * people
        beside += [
            sum(len(one.errors) for one in judged) / len(judged) if judged else math.nan
        ] * spans
        result.append(
            (
                mean,
                [
                    name or "(not named)",
                    len(judged),
                    len(own) - len(judged),
                    _bar(mean, axis),
                    *beside,
                ],
            )
        )
    result.sort(key=lambda pair: -pair[0].value if pair[0].n else math.inf)
    more = [
        *[Column("human mean" if what == "mean score" else "people", ".2f")] * people,
        *[Column("errors a row", ".2f")] * spans,
    ]
    made = Table(
        [
            "system",
            Column("rows", "d"),
            Column("failed", "d"),
            Column(what, "s"),
            *more,
        ],
        "Systems",
    )
    for _, cells in result if len(result) > 1 else ():
        made.add(*cells)
    ends = f"bars from {plain(axis[0])} to {plain(axis[1])}"
    yield (
        f"{len(result)} systems. {what.capitalize()}s with 95 % intervals over documents; {ends}.",
        made,
    )


def _annotators(rows: Sequence[Shown], documents: Sequence[str]) -> Table:
    made = Table(
        [
            "annotator",
            Column("rows", "d"),
            Column("failed", "d"),
            Column("mean score", "s"),
            Column("outlier", "s"),
            Column("errors a row", ".2f"),
        ],
        "Annotators",
    )
    for name in dict.fromkeys(name for row in rows for name in row.verdict.opinions):
        own = [
            (row.verdict.opinions[name], document)
            for row, document in zip(rows, documents, strict=True)
            if name in row.verdict.opinions
        ]
        mean = mean_of(
            np.array([one.percent for one, _ in own]), [document for _, document in own]
        )
        made.add(
            name,
            len(own),
            sum(bool(one.failure) for one, _ in own),
            _bar(mean, (0, 100)),
            _share(sum(one.outlier for one, _ in own), len(own)),
            sum(len(one.errors) for one, _ in own) / len(own),
        )
    return made


def _axis(values: Vector) -> Span:
    known = values[~np.isnan(values)]
    low, high = infer_scale(known, len(known)) if len(known) else (0.0, 1.0)
    return low, high if high > low else low + 1.0


def _digits(axis: Span) -> int:
    extent = axis[1] - axis[0]
    return 3 if extent <= 2 else 2 if extent <= 20 else 1


def _interval(mean: Mean, axis: Span) -> str:
    """Student's t knows no end of a scale: an interval is cut there."""
    return (
        interval(max(mean.low, axis[0]), min(mean.high, axis[1]), _digits(axis))
        if mean.low == mean.low
        else ""
    )


def _bar(mean: Mean, axis: Span) -> Cell:
    """A mean with its interval, and how far up the axis it lies."""
    low, high = axis
    place = (
        round(min(100.0, max(0.0, (mean.value - low) / (high - low) * 100)), 2)
        if mean.n
        else None
    )
    return Cell(
        number(mean.value, _digits(axis)), note=_interval(mean, axis), bar=place
    )


def _mean(values: Vector) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
