"""Agreement of marked places: precision, recall and F1 over the characters of the outputs.

A character counts once on each side; where spans overlap, the most severe one has it. Per text: precision, the share of
the judge's characters that people marked too, 1 where the judge marked none (no false alarm); recall, the share of
people's characters that the judge marked too, 1 where people marked none (nothing missed); F1, twice the shared
characters over both sides' characters, 1 where neither side marked anything: then they agree. micro: from sums over all
characters, so that long spans and texts count more. macro: the mean over texts.

Severity-weighted: a shared character is worth 1 - |difference of severities| / 4 (on 1..5) in place of 1. Minor (2)
against major (4) earns the half that WMT's span tasks give. Their rule for overlaps is more lenient: where people have
both severities on a character, WMT takes either.

Errors without a place (omissions, and predictions that were not found in the text) cannot share characters: they are
left out and counted. With several people a text's counts are the mean over its people, each of them taken as the
standard in turn.

Sources: WMT23 quality estimation task 2 (Blain et al. 2023, Findings) and WMT25 evaluation subtask 2 for characters,
half credit, and the values on empty sides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np

from judgesmith.agreement.correlation import Vector, id_codes
from judgesmith.agreement.fields import json_values
from judgesmith.agreement.resampling import SHARE, Estimate, estimates_of, sums_by
from judgesmith.errors import OptionError


class MarkedSpan(Protocol):
    """An error at a place, such as `signatures.values.ErrorSpan` or `datasets.spans.Span`.

    Offsets are None without a place; `how` "omission" then tells an omission from an error that was not found.
    """

    @property
    def start(self) -> int | None:
        """Code-point offset of the first character; None without a place."""

    @property
    def end(self) -> int | None:
        """Code-point offset after the last character; None without a place."""

    @property
    def severity(self) -> float:
        """Severity on 1..5; NaN without one."""

    @property
    def how(self) -> str | None:
        """How the place was found; "omission" for an error that has none."""


Spans = Mapping[
    str, Sequence[MarkedSpan]
]  # id of the output -> its errors; empty: read and found without errors
Pairs = dict[
    str, list[tuple[Sequence[MarkedSpan], Sequence[MarkedSpan]]]
]  # of texts that both sides have read


@dataclass(frozen=True)
class Scores:
    """Each in [0, 1], with its interval; NaN where undefined."""

    precision: Estimate
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True)
class SpanAgreement:
    """Agreement of the marked places; the measures are defined in this module's docstring.

    micro, macro: places alone. weighted: with severities (micro), NaN where one side gives none. touching: share of
    predicted spans with a character that people marked too; found: share of people's spans with one that the judge
    marked too; NaN without spans. A judge that marks everything has both at 1. texts: compared. documents: resampled.
    people: the most who read one text. clean: texts without a mark; each counts 1 in the macro means. unpredicted:
    texts with people's marks but without a prediction. predicted, gold: spans with a place, people's added up over all
    of them. predicted_omissions, gold_omissions, ungrounded: without a place, left out. unrated: shared characters
    without a severity, left out of the weighted measures.
    """

    micro: Scores
    macro: Scores
    weighted: Scores
    touching: Estimate
    found: Estimate
    texts: int
    documents: int
    people: int
    clean: int
    unpredicted: int
    predicted: int
    gold: int
    predicted_omissions: int
    gold_omissions: int
    ungrounded: int
    unrated: int
    rounds: int
    confidence: float
    seed: int
    notes: tuple[str, ...] = ()

    @property
    def signature(self) -> str:
        """`F1=0.31 [0.24, 0.39] characters|micro|texts:90|documents:90|people:1|unpredicted:0|seed:0`."""
        f1 = self.micro.f1
        return (
            f"F1={f1.value:.2f} [{f1.low:.2f}, {f1.high:.2f}] characters|micro|texts:{self.texts}"
            f"|documents:{self.documents}|people:{self.people}|unpredicted:{self.unpredicted}|seed:{self.seed}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; NaN becomes null."""
        return {"signature": self.signature, **json_values(asdict(self))}


def span_agreement(
    predicted: Spans,
    gold: Spans | Sequence[Spans],
    lengths: Mapping[str, int],
    documents: Mapping[str, Hashable] | None = None,
    *,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> SpanAgreement:
    """Measure the agreement of a judge's spans with people's, with bootstrap intervals over documents (`limits`).

    Offsets outside the text count as not found.

    Args:
        predicted: id of the output -> its errors; a text on which the judge failed must be absent, not empty.
        gold: the same of one person, or of each of several; a text that a person did not read is absent.
        lengths: characters of each output.
        documents: id -> document; None: each text is its own.
        rounds: resamples of documents; 0 for no intervals.
        confidence: level of the intervals, between 0 and 1.
        seed: seed of the resamples.

    Returns:
        Precision, recall and F1 over characters, with counts.

    Raises:
        OptionError: If nothing can be compared, or a text lacks a length or a document.
    """
    people: list[Spans] = [gold] if isinstance(gold, Mapping) else list(gold)
    read = _by_text(people)
    pairs: Pairs = {}
    for identity, marked in read.items():
        if identity in predicted:
            pairs[identity] = [(predicted[identity], own) for own in marked]
    if not pairs:
        raise OptionError(
            f"no text has both predicted and human spans ({len(predicted)} and {len(read)} texts); give both the"
            " same ids"
        )
    drawing = {"rounds": rounds, "confidence": confidence, "seed": seed}
    agreement = _agreement(pairs, [predicted], people, lengths, documents, drawing)
    return replace(agreement, unpredicted=len(read) - len(pairs))


def _by_text(people: Sequence[Spans]) -> dict[str, list[Sequence[MarkedSpan]]]:
    """Return each text's marks, of every person who read it."""
    read: dict[str, list[Sequence[MarkedSpan]]] = {}
    for marked in people:
        for identity, spans in marked.items():
            read.setdefault(identity, []).append(spans)
    return read


def human_span_agreement(
    people: Sequence[Spans],
    lengths: Mapping[str, int],
    documents: Mapping[str, Hashable] | None = None,
    *,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> SpanAgreement | None:
    """Measure people's agreement with each other, the ceiling for a judge.

    Every person is compared with every other who read the text, so that precision and recall are equal (micro). None if
    no text was read by two.
    """
    pairs: Pairs = {}
    readers = 0
    for identity, marks in _by_text(people).items():
        if len(marks) > 1:
            pairs[identity] = list(itertools.permutations(marks, 2))
            readers = max(readers, len(marks))
    if not pairs:
        return None
    drawing = {"rounds": rounds, "confidence": confidence, "seed": seed}
    agreement = _agreement(pairs, people, people, lengths, documents, drawing)
    return replace(agreement, people=readers)


# Counting ------------------------------------------------------------------------------------------------------------

#: What is counted of a text against one person: shared characters and what they are worth, each side's characters
#: (`rated_*`: without shared ones that lack a severity, which are `unrated`), spans and those that touch the other
#: side's.
_COUNTS = (
    "shared",
    "predicted",
    "gold",
    "credit",
    "rated_predicted",
    "rated_gold",
    "unrated",
    "spans",
    "touching",
    "gold_spans",
    "found",
)
_AT = {name: place for place, name in enumerate(_COUNTS)}
_PLAIN = ("shared", "predicted", "gold")
_WEIGHTED = ("credit", "rated_predicted", "rated_gold")


@dataclass(frozen=True)
class _Tally:
    """The spans of one side: with a place and with a severity too, omissions, and those that were not found."""

    placed: int
    rated: int
    omissions: int
    ungrounded: int


def _tally(sides: Iterable[tuple[Sequence[MarkedSpan], int]]) -> _Tally:
    placed = rated = omissions = ungrounded = 0
    for spans, length in sides:
        for span in spans:
            where = _place(span, length)
            placed += where is not None
            rated += where is not None and not math.isnan(span.severity)
            lost = where is None and span.how != "omission"
            ungrounded += lost
            omissions += where is None and not lost
    return _Tally(placed, rated, omissions, ungrounded)


def _check_texts(
    pairs: Pairs,
    lengths: Mapping[str, int],
    documents: Mapping[str, Hashable] | None,
) -> None:
    """Check that every compared text has a length, and a document if there are any."""
    for identity in pairs:
        for name, values in (("length", lengths), ("document", documents)):
            if values is not None and identity not in values:
                raise OptionError(
                    f"text {identity!r} has no {name}; give every compared text one"
                )


def _spans_of(
    side: Sequence[Spans], pairs: Pairs, lengths: Mapping[str, int]
) -> Iterator[tuple[Sequence[MarkedSpan], int]]:
    """Yield the marks of the compared texts on one side, with the texts' lengths."""
    for marked in side:
        for identity in marked:
            if identity in pairs:
                yield marked[identity], lengths[identity]


def _agreement(
    pairs: Pairs,
    ours: Sequence[Spans],
    theirs: Sequence[Spans],
    lengths: Mapping[str, int],
    documents: Mapping[str, Hashable] | None,
    drawing: Mapping[str, Any],
) -> SpanAgreement:
    _check_texts(pairs, lengths, documents)
    judge = _tally(_spans_of(ours, pairs, lengths))
    persons = _tally(_spans_of(theirs, pairs, lengths))
    rows = []
    places = []
    sides = []
    for place, (identity, compared) in enumerate(pairs.items()):
        for one, other in compared:
            rows.append(_compare(one, other, lengths[identity]))
            places.append(place)
            sides.append(len(compared))
    counts = np.array(rows)
    text = np.array(places)
    marks = counts[:, _AT["predicted"]] + counts[:, _AT["gold"]]
    clean = int((np.bincount(text, marks) == 0).sum())
    unrated = int(counts[:, _AT["unrated"]].sum())
    # A text's own scores are for the macro means; several people's comparisons of a text count as one text.
    columns = np.concatenate(
        [counts, _scores(counts, *_PLAIN), np.ones((len(counts), 1))], axis=1
    )
    columns = columns / np.array(sides)[:, None]
    ids: Iterable[Hashable] = range(len(pairs))
    if documents is not None:
        ids = map(documents.__getitem__, pairs)
    sums = sums_by(id_codes(ids, len(pairs), "documents")[text], *columns.T)
    # Where one side never says how severe an error is, there is nothing to weigh.
    unweighable = []
    for who, tally in (("the judge", judge), ("people", persons)):
        if tally.placed and not tally.rated:
            unweighable.append(who)
    estimates = estimates_of(
        lambda drawn: _measures(drawn @ sums, not unweighable),
        len(sums),
        [SHARE] * 11,
        **drawing,
    )
    micro, macro, weighted = (Scores(*estimates[i : i + 3]) for i in range(0, 9, 3))
    return SpanAgreement(
        micro,
        macro,
        weighted,
        touching=estimates[9],
        found=estimates[10],
        texts=len(pairs),
        documents=len(sums),
        people=max(map(len, pairs.values())),
        clean=clean,
        unpredicted=0,
        predicted=judge.placed,
        gold=persons.placed,
        predicted_omissions=judge.omissions,
        gold_omissions=persons.omissions,
        ungrounded=judge.ungrounded,
        unrated=unrated,
        notes=tuple(_notes(judge, persons, clean, unrated, unweighable)),
        **drawing,
    )


def _notes(
    judge: _Tally, gold: _Tally, clean: int, unrated: int, unweighable: Sequence[str]
) -> Iterable[str]:
    if not judge.placed and not gold.placed:
        yield "neither side marked a place, which counts as full agreement"
    elif not judge.placed:
        yield "the judge marked nothing; its precision of 1 only means that there is no false alarm"
    elif not gold.placed:
        yield "people marked nothing; the recall of 1 only means that nothing was missed"
    if clean and (judge.placed or gold.placed):
        yield f"{clean} texts have no mark on either side; each counts 1 in the means over texts"
    if judge.omissions or gold.omissions:
        yield f"omissions have no place and are left out: {judge.omissions} of the judge, {gold.omissions} of people"
    if judge.ungrounded:
        yield f"{judge.ungrounded} errors of the judge were not found in the text; they are left out"
    if unweighable:
        yield f"no severity-weighted values: {' and '.join(unweighable)} gave no severities"
    elif unrated:
        yield f"{unrated} shared characters lack a severity and are left out of the severity-weighted values"


def _compare(
    predicted: Sequence[MarkedSpan], gold: Sequence[MarkedSpan], length: int
) -> list[float]:
    """Return the counts of one text against one person."""
    (ours, a) = _marks(predicted, length)
    (theirs, b) = _marks(gold, length)
    both = (a > 0) & (b > 0)
    missing = both & ((a == _UNRATED) | (b == _UNRATED))
    rated = both & ~missing
    left = int(missing.sum())
    marked = (a > 0).sum()
    theirs_marked = (b > 0).sum()
    n = {
        "shared": both.sum(),
        "predicted": marked,
        "gold": theirs_marked,
        "credit": (
            1.0 - np.abs(a[rated] - b[rated]) / 4.0
        ).sum(),  # severities run from 1 to 5
        "rated_predicted": marked - left,
        "rated_gold": theirs_marked - left,
        "unrated": left,
        "spans": len(ours),
        "touching": sum(bool((b[s:e] > 0).any()) for s, e in ours),
        "gold_spans": len(theirs),
        "found": sum(bool((a[s:e] > 0).any()) for s, e in theirs),
    }
    return [float(n[name]) for name in _COUNTS]


_UNRATED = 0.5  # the mark of a character whose spans have no severity: below every severity, so that a known one wins


def _marks(
    spans: Sequence[MarkedSpan], length: int
) -> tuple[list[tuple[int, int]], Vector]:
    """Return the places, and each character's severity (0: unmarked)."""
    marks = np.zeros(length)
    places = []
    for span in spans:
        place = _place(span, length)
        if place is not None:
            start, end = place
            if math.isnan(span.severity):
                value = _UNRATED
            else:
                value = min(max(span.severity, 1.0), 5.0)
            marks[start:end] = np.maximum(marks[start:end], value)
            places.append(place)
    return places, marks


def _place(span: MarkedSpan, length: int) -> tuple[int, int] | None:
    if (
        span.start is None
        or span.end is None
        or not 0 <= span.start < span.end <= length
    ):
        return None
    return span.start, span.end


# Measuring -----------------------------------------------------------------------------------------------------------


def _scores(totals: Vector, *names: str) -> Vector:
    """Return precision, recall and F1 of each line of totals, by the counts of these names: (lines, 3)."""
    hit, ours, theirs = (totals[:, _AT[name]] for name in names)
    return np.stack(
        [_share(hit, ours), _share(hit, theirs), _share(2 * hit, ours + theirs)], axis=1
    )


def _share(part: Vector, whole: Vector, empty: float = 1.0) -> Vector:
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), empty)


def _measures(totals: Vector, weighable: bool) -> Vector:
    """Return micro, macro and weighted scores, then the two shares of spans: (lines, 11)."""
    own = totals[:, len(_COUNTS) : -1] / totals[:, -1:]  # the last column has the texts
    shares = [
        _share(totals[:, _AT[part]], totals[:, _AT[whole]], np.nan)
        for part, whole in (("touching", "spans"), ("found", "gold_spans"))
    ]
    table = np.column_stack(
        [_scores(totals, *_PLAIN), own, _scores(totals, *_WEIGHTED), *shares]
    )
    if not weighable:
        table[:, 6:9] = np.nan
    return table
