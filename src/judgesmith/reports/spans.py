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
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from jinja2 import Environment
from markupsafe import Markup

from judgesmith.agreement.correlation import Vector
from judgesmith.conversation import turns_in
from judgesmith.datasets.row import Row
from judgesmith.datasets.scales import infer_scale
from judgesmith.pages import environment
from judgesmith.reports.rows import (
    GROUNDED,
    Mean,
    Piece,
    Scored,
    Shown,
    Side,
    grade,
    mean_of,
    pieces,
    read_scored,
    summarise,
)
from judgesmith.signatures.values import ErrorSpan, Opinion, Verdict
from judgesmith.tables import (
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
from judgesmith.trajectories.value import Trajectory, Turn, starts

# rows on a page, and rows that are there without scripts
PAGE = 25
STILL = 10
_NAMED = 3  # numbers of errors at one piece of text
_HEADING = 60  # characters of an id that may be a heading
_QUOTED = 160  # characters of a quotation beside the text
# characters of a turn that is folded, and of it that are shown then
_LONG = 400
_PEEK = 90
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


#: Bits of a row's flags, with their names on the page.
_FLAGS = (
    ("left to a person", 1),
    ("suspicious", 2),
    ("read in part", 64),
    ("used to compile the judge", 4),
    ("like a labelled output", 128),
)


def _bits(row: Shown) -> int:
    """Return the flags that a row has by itself."""
    present = {
        1: row.deferred,
        2: row.verdict.suspicious,
        4: row.seen,
        128: row.resembles,
        64: row.verdict.partly,
    }
    return sum(bit for bit, here in present.items() if here)


def _decided_bits(judge: float, gap: float) -> int:
    """Return the flags of a row by the judge's decision, and by its distance from people's."""
    present = {8: judge == 0, 16: judge == 1, 32: gap == 1}
    return sum(bit for bit, here in present.items() if here)


def _flags(data: Scored) -> list[tuple[str, int]]:
    """Return the flags that the page can filter by, with their bits."""
    bits = 0
    for row in data.rows:
        bits |= _bits(row)
    flags = [(name, bit) for name, bit in _FLAGS if bits & bit]
    decided = data.passed()
    if decided is not None:
        flags += [(f"the judge {decision}", bit) for decision, bit in _decides(data)]
        if np.nanmax([0, *decided.gap]):
            flags.append(("people and judge decide differently", 32))
    return flags


def _with_gaps(data: Scored) -> list[int]:
    """Return the places of the sides that have human ratings."""
    return [k for k, side in enumerate(data.sides) if not np.isnan(side.gap).all()]


def render(data: Scored) -> str:
    """Return the page."""
    pages = _templates()
    card = pages.get_template("span_row.html.j2")
    script = pages.get_template("spans.js.j2").render()
    overall = data.sides[0]
    texts = dict[str, int]()
    named = {side.name for side in data.sides[1:]}
    axis = _axis(np.concatenate([overall.score, overall.human]))
    rows = [_row(data, i, texts, named, axis) for i in range(len(data.rows))]
    rated = _with_gaps(data)
    start = next(iter(rated), 0)
    # Those furthest from people first, if people scored any; the others in the order of the file.
    order = np.argsort(-np.nan_to_num(data.sides[start].gap, nan=-1.0), kind="stable")
    first = list[Markup]()
    html = list[str]()
    for i in order[:STILL]:
        first.append(Markup(card.render(row=rows[i], inline=True)))  # noqa: S704  # from a template that escapes
    for row in rows:
        html.append(card.render(row=row, inline=False))
    mean = mean_of(overall.score, [row.row.doc_id for row in data.rows])
    return str(
        pages.get_template("spans.html.j2").render(
            title=f"Judged texts: {data.origin}",
            compared=data.compared,
            origin=data.origin,
            about=summarise(data),
            score=number(mean.value, _digits(axis)),
            interval=_interval(mean, _axis(overall.score)),
            people=number(_mean(overall.human), 2),
            gaps=bool(rated),
            start=start,
            flags=_flags(data),
            shades=any(row.shades for row in data.rows),
            tables=list(filter(itemgetter(1), _tables(data))),
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


def page_of(scored: Path) -> str:
    """Return the page of a scored file."""
    return render(read_scored(scored))


def _decides(data: Scored) -> tuple[tuple[str, int], ...]:
    if data.compared:
        return (("prefers B", 8), ("prefers A", 16))
    return (("fails it", 8), ("passes it", 16))


def turn_class(head: str) -> str:
    """Return the classes of a turn in pages, by how it begins: turn assistant call."""
    who, *rest = head.split()
    classes = ["turn", who.lower()]
    if rest[:1] == ["calls"]:
        classes.append("call")
    return " ".join(classes)


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


def packed(data: Any) -> str:
    """Return JSON as gzip in base64, of which nothing is markup: rows repeat their markup, and panels their words."""
    words = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    compressed = gzip.compress(words.encode("utf-8", "backslashreplace"), 9, mtime=0)
    return base64.b64encode(compressed).decode("ascii")


# Rows ----------------------------------------------------------------------------------------------------------------


def _row_interval(verdict: Verdict, axis: Span) -> str:
    """Return a verdict's interval within the axis; "" without one."""
    interval = verdict.interval
    if interval is None or math.isnan(interval.low) or verdict.failure:
        return ""
    low, high = (
        min(max(end, axis[0]), axis[1]) for end in (interval.low, interval.high)
    )
    return f"[{plain(low)}, {plain(high)}]"


def _folded(row: Row, texts: dict[str, int]) -> list[tuple[str, str, int]]:
    """Return the texts of a row that are folded away, with their numbers in `texts`."""
    folded = (
        ("Source", row.source),
        ("Context", row.context),
        ("Reference", row.reference),
    )
    return [
        (title, words, texts.setdefault(words, len(texts)))
        for title, words in folded
        if words
    ]


def _row(
    data: Scored, i: int, texts: dict[str, int], named: set[str], axis: Span
) -> dict[str, Any]:
    """Return the fields of a row's template.

    texts: collects folded texts: rows of a document share their source.
    """
    row = data.rows[i]
    verdict = data.rows[i].verdict
    gap = float(data.sides[0].gap[i])
    human = float(data.sides[0].human[i])
    marked = any(error.start is not None for error in verdict.errors)
    return {
        "it": row,
        "verdict": verdict,
        "title": shortened(row.row.id, _HEADING),
        "interval": _row_interval(verdict, axis),
        "gap": "" if math.isnan(gap) else f"{gap:.0f}",
        "human": "" if math.isnan(human) else data.word(human),
        "people": {
            name: value
            for name, value in row.human.items()
            if name in named and not math.isnan(value)
        },
        "turns": _turns(row.row.output, verdict.errors),
        "shades": () if marked else row.shades,
        "groups": [group for group in _groups(verdict.errors) if group[2]],
        "opinions": list(_opinions(row)),
        "folded": _folded(row.row, texts),
    }


def _covered(pieces: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether an error is marked in any of these pieces."""
    return any(piece["covering"] for piece in pieces)


def _turns(output: str, errors: Sequence[ErrorSpan]) -> list[dict[str, Any]]:
    """Return the turns of a trajectory, results inside their calls; any other output is one turn."""
    turns = starts(output)
    bodies = {begin: body for begin, body, _ in turns} or {0: 0}
    body = place = 0
    parts: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = []
    for piece in pieces(output, errors, [*bodies, *bodies.values()]):
        if place in bodies:
            body = bodies[place]
            parts.append(([], []))
        words = piece.text.replace("\n  ", "\n") if turns else piece.text
        parts[-1][place >= body].append(_piece(piece._replace(text=words)))
        place += len(piece.text)
    # The beginning of a turn stands in its summary, and beside its words only if an error is marked in it.
    shown = [[*head, *words] if _covered(head) else words for head, words in parts]
    if not turns:
        return [{"class": "", "pieces": shown[0]}] if shown else []
    return _folds(Trajectory(tuple(turn for *_, turn in turns)), shown)


def _fold(number: int, turn: Turn, pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a turn that can be folded."""
    return {
        "class": turn_class(turn.head),
        "number": number,
        "head": replace(turn, error=False, judged=False).head,
        "failed": False,
        "judged": turn.judged,
        "pieces": pieces,
        "inside": [],
        "peek": shortened(turn.text, _PEEK),
        "open": turn.judged or len(turn.text) <= _LONG or _covered(pieces),
    }


def _folds(
    run: Trajectory, parts: Sequence[list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Return turns that can be folded; open are the final answer, short ones, and those with a marked error."""
    failed = set(run.errors)
    last = 0
    folds: list[dict[str, Any]] = []
    for i, turn in enumerate(run.turns):
        if turn.speaker == "Assistant":
            last = i
        folds.append(_fold(i + 1, turn, parts[i]) | {"failed": turn in failed})
    if folds:
        folds[last]["open"] = True
    for call, result in run.answers.items():
        folds[call]["inside"] = [folds[result]]
        folds[call]["failed"] = folds[result]["failed"]
        folds[call]["open"] |= _covered(parts[result])
    inside = set(run.answers.values())
    return [one for i, one in enumerate(folds) if i not in inside]


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


def _cells(row: Shown) -> dict[str, Any]:
    """Return a row's values in the columns that depend on it alone."""
    grades = 0
    for error in row.verdict.errors:
        grades |= 1 << grade(error)
    return {
        # Mostly "row-" and the id: then nothing.
        "anchor": "" if row.anchor == f"row-{row.row.id}" else clean(row.anchor),
        "id": clean(row.row.id),
        "system": row.row.system or "",
        "errors": len(row.verdict.errors),
        # A bit for each grade that a row has, bit 0 for errors without severity.
        "grades": grades,
        "failed": int(bool(row.verdict.failure)),
        "flags": _bits(row),
    }


def _columns(data: Scored, html: list[str], texts: list[str]) -> dict[str, Any]:
    """Return the columns that the page's script filters and sorts by, one value a row each."""
    nothing = np.full(len(data.rows), np.nan)
    decided = data.passed() or Side("", nothing, nothing, nothing)
    places = {name: k for k, name in enumerate(_systems(data.rows))}
    columns: dict[str, list[Any]] = {"html": html, "texts": []}
    for text in map(clean, texts):
        columns["texts"].append(turns_in(text) or text)
    for row, judge, gap in zip(data.rows, decided.score, decided.gap, strict=True):
        cells = _cells(row)
        cells["system"] = places.get(cells["system"], -1)
        cells["flags"] += _decided_bits(judge, gap)
        for name, value in cells.items():
            columns.setdefault(name, []).append(value)
    columns["score"] = [_plain(side.score) for side in data.sides]
    columns["gap"] = [_plain(side.gap, 1) for side in data.sides]
    return columns


def _plain(values: Vector, digits: int = 6) -> list[float | None]:
    return [
        None if math.isnan(value) else round(value, digits) for value in values.tolist()
    ]


# Tables --------------------------------------------------------------------------------------------------------------


def _score_counts(overall: Side) -> dict[str, int]:
    """Return how many rows have each score, or a score in each of some bins."""
    scores = overall.score[~np.isnan(overall.score)]
    distinct, counts = np.unique(scores, return_counts=True)
    names = [plain(float(value)) for value in distinct]
    if len(distinct) > _BINS:
        counts, edges = np.histogram(scores, _BINS, _axis(scores))
        ends = [plain(float(edge)) for edge in edges]
        names = [f"{low} to {high}" for low, high in itertools.pairwise(ends)]
    return dict(zip(names, counts, strict=True))


def _aspects_table(data: Scored, documents: Sequence[str]) -> Table:
    table = Table(
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
        table.add(
            side.name,
            mean.n,
            len(data.rows) - mean.n,
            _bar(mean, _axis(side.score)),
            _mean(side.human),
        )
    return table


def _tables(data: Scored) -> Iterator[tuple[str, Table]]:
    """Yield (introduction, table) of the summary."""
    rows = data.rows
    overall = data.sides[0]
    yield (
        "How many rows have which score.",
        _shares("Scores", "score", "rows", _score_counts(overall)),
    )
    documents = [row.row.doc_id for row in rows]
    decided = data.passed()
    yield from _system_table(
        rows, decided or overall, "pass rate" if decided else "mean score"
    )
    yield (
        "Means with 95 % intervals over documents, each on the scale that the judge uses for it.",
        _aspects_table(data, documents),
    )
    grades = Counter(grade(error) for row in rows for error in row.verdict.errors)
    severity = {f"{g or '–'} {_GRADES[g]}": grades[g] for g in (5, 4, 3, 2, 1, 0)}
    yield "", _shares("Severity of errors", "severity", "errors", severity)
    yield (
        "Scores in percent of the scale. Outlier: so far from the others that its errors were set aside.",
        _annotators(rows, documents),
    )


def _shares(title: str, column: str, of: str, counts: Mapping[str, int]) -> Table:
    """Return a table of how often each value occurs, without those that never do."""
    table = Table([column, Column(of, "d"), Column("share", "s")], title)
    whole = int(sum(counts.values()))
    for name, n in counts.items() if whole else ():
        table.add(name, int(n), _share(int(n), whole))
    return table


def _share(part: int, whole: int) -> Cell:
    """Return the share as text and as a bar."""
    return Cell(
        percent(part / whole if whole else math.nan),
        bar=round(100 * part / (whole or 1), 2),
    )


def _system_table(
    rows: Sequence[Shown], overall: Side, title: str
) -> Iterator[tuple[str, Table]]:
    """Yield the systems, best first, where there are several."""
    groups: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(row.row.system or "", []).append(i)
    axis = _axis(overall.score)
    people = not bool(np.isnan(overall.human).all())
    spans = any(row.verdict.errors for row in rows)
    result: list[tuple[Mean, list[Any]]] = []
    for name in sorted(groups):
        places = np.array(groups[name])
        judged = []
        documents = []
        for i in groups[name]:
            documents.append(rows[i].row.doc_id)
            if not rows[i].verdict.failure:
                judged.append(rows[i].verdict)
        mean = mean_of(overall.score[places], documents)
        failed = len(documents) - len(judged)
        cells = [name or "(not named)", len(judged), failed, _bar(mean, axis)]
        if people:
            cells.append(_mean(overall.human[places]))
        if spans:
            cells.append(_errors_a_row(judged))
        result.append((mean, cells))
    result.sort(key=lambda pair: -pair[0].value if pair[0].n else math.inf)
    columns: list[Column | str] = [
        "system",
        Column("rows", "d"),
        Column("failed", "d"),
        Column(title, "s"),
    ]
    if people:
        columns.append(
            Column("human mean" if title == "mean score" else "people", ".2f")
        )
    if spans:
        columns.append(Column("errors a row", ".2f"))
    table = Table(columns, "Systems")
    for _, cells in result if len(result) > 1 else ():
        table.add(*cells)
    ends = f"bars from {plain(axis[0])} to {plain(axis[1])}"
    yield (
        f"{len(result)} systems. {title.capitalize()}s with 95 % intervals over documents; {ends}.",
        table,
    )


def _errors_a_row(verdicts: Sequence[Verdict]) -> float:
    """Return the mean number of errors; NaN without verdicts."""
    if not verdicts:
        return math.nan
    return sum(len(one.errors) for one in verdicts) / len(verdicts)


def _annotators(rows: Sequence[Shown], documents: Sequence[str]) -> Table:
    table = Table(
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
    by_name: dict[str, list[tuple[Opinion, str]]] = {}
    for row, document in zip(rows, documents, strict=True):
        for name, opinion in row.verdict.opinions.items():
            by_name.setdefault(name, []).append((opinion, document))
    for name, own in by_name.items():
        opinions, places = zip(*own, strict=True)
        failed = outliers = errors = 0
        for one in opinions:
            failed += bool(one.failure)
            outliers += bool(one.outlier)
            errors += len(one.errors)
        mean = mean_of(np.array([one.percent for one in opinions]), places)
        table.add(
            name,
            len(own),
            failed,
            _bar(mean, (0, 100)),
            _share(outliers, len(own)),
            errors / len(own),
        )
    return table


def _axis(values: Vector) -> Span:
    present = values[~np.isnan(values)]
    low, high = infer_scale(present, len(present)) if len(present) else (0.0, 1.0)
    return low, high if high > low else low + 1.0


def _digits(axis: Span) -> int:
    extent = axis[1] - axis[0]
    if extent <= 2:
        return 3
    return 2 if extent <= 20 else 1


def _interval(mean: Mean, axis: Span) -> str:
    """Return an interval cut to the scale, whose ends Student's t ignores."""
    if mean.low == mean.low:
        return interval(max(mean.low, axis[0]), min(mean.high, axis[1]), _digits(axis))
    return ""


def _bar(mean: Mean, axis: Span) -> Cell:
    """Return a mean with its interval, and how far up the axis it lies."""
    low, high = axis
    if mean.n:
        place = round(min(100.0, max(0.0, (mean.value - low) / (high - low) * 100)), 2)
    else:
        place = None
    return Cell(
        number(mean.value, _digits(axis)), note=_interval(mean, axis), bar=place
    )


def _mean(values: Vector) -> float:
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else math.nan
