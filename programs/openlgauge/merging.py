"""One set of errors out of what several annotators reported, and whose report stands apart.

The paper lets a language model merge. `merge_errors` does it by rule, for where no model is to be asked or its answer
cannot be used; `check_merged` holds a model's result against the reports, because it may invent or inflate.
Paper: OpeNLGauge, §4 and footnote 3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from rapidfuzz import fuzz

from ...signatures.values import ErrorSpan
from .places import plain
from .reading import MOST

INVENTED = "not reported by any annotator"
#: Two spans are about the same place if the shorter one lies in the other by this share.
OVERLAP = 0.5
#: Explanations (0–100, shared words) from which two errors at about the same place are one issue. Annotators word one
#: issue very differently. Of 15 invented issues in 3 or 4 wordings each (in the tests), three quarters of the pairs of
#: one issue reach 45, and one in twenty of the pairs of two; 40 is enough where even the place is the same.
ALIKE, ALIKE_ON_SAME_SPAN = 45.0, 40.0
#: Places that have no offsets are compared by their words.
ALIKE_PLACES = 80.0


def outliers(scores: Sequence[float]) -> tuple[bool, ...]:
    """Which annotators' scores (labels as numbers 1 to 5) stand apart: at least 2 standard deviations *and* at least 1
    from the mean of all.

    NaN and infinite scores are no outliers and count for nothing. The paper does not say which standard deviation it
    means; this is that of the population (divided by n). With it, no score of n can be farther than sqrt(n - 1)
    deviations from the mean, so the rule needs n >= 5, and with the paper's 5 annotators it holds exactly where four
    agree and the fifth differs by 1.25 or more (its distance from the mean is 4/5 of that). With the sample's (divided
    by n - 1) the bound is (n - 1) / sqrt(n), 1.79 for n = 5: the rule could not hold below n = 6, which cannot be
    meant. Computed in exact fractions, since with five annotators the two sides are equal.
    """
    exact = {i: Fraction(score) for i, score in enumerate(scores) if math.isfinite(score)}
    n = len(exact)
    total, squares = sum(exact.values()), sum(x * x for x in exact.values())
    # n (x - mean) and n² variance: |x - mean| >= 2 sd  <=>  (n x - total)² >= 4 (n squares - total²)
    apart = {i: abs(n * x - total) for i, x in exact.items()}
    return tuple(
        i in exact and apart[i] >= n and apart[i] ** 2 >= 4 * (n * squares - total * total) for i in range(len(scores))
    )


def merge_errors(
    reported: Mapping[str, Sequence[ErrorSpan]], output: str, *, most: int = MOST
) -> tuple[ErrorSpan, ...]:
    """Errors of several annotators with what is the same issue at about the same place merged into one.

    reported: by annotator. Two errors of one annotator are two issues to it, and stay apart unless it says the same
    twice. A merged error has the highest severity, the explanation of that report, all annotators, and the span
    that overlaps most with the others (at a tie the more severe, then the shorter one): always a span that someone
    named, so that it begins and ends at words, which an intersection need not. At most `most`, the most severe first,
    then by place. The order of annotators does not matter, except for the order of their names.
    """
    names = list(reported)
    entries = [_Report(name, _fitted(error, output)) for name in sorted(names) for error in reported[name]]
    entries.sort(key=lambda r: _rank(r.error))
    groups: list[list[_Report]] = []
    for entry in entries:
        fits = [g for g in groups if all(_same(entry, other) for other in g)]
        if fits:
            max(fits, key=lambda g: max(_likeness(entry.error, other.error) for other in g)).append(entry)
        else:
            groups.append([entry])
    merged = [_united([r.error for r in g], _in_order(names, (r.annotator for r in g))) for g in groups]
    return tuple(sorted(merged, key=_rank)[:most])


def check_merged(
    merged: Sequence[ErrorSpan], reported: Mapping[str, Sequence[ErrorSpan]], output: str, *, most: int = MOST
) -> tuple[ErrorSpan, ...]:
    """A model's merged errors, held against the reports it was given.

    An error that lies over a reported one, or names the same place or the same issue, gets that one's annotators and
    the highest severity of those that it restates (rules of the task, of which models lose count). One that does
    neither keeps its severity and is noted as not reported by any annotator; where more than `most` are left, these go
    first. Equal errors are merged. In the order of `merge_errors`.
    """
    names = list(reported)
    entries = [_Report(name, _fitted(error, output)) for name in names for error in reported[name]]
    groups: list[list[ErrorSpan]] = []
    for error in sorted((_fitted(error, output) for error in merged), key=_rank):
        checked = _checked(error, entries, names)
        twin = next((g for g in groups if all(_twins(checked, other) for other in g)), None)
        if twin is None:
            groups.append([checked])
        else:
            twin.append(checked)
    result = [_united(g, _in_order(names, (a for e in g for a in e.annotators)), note=False) for g in groups]
    kept = sorted(result, key=lambda e: (INVENTED in e.notes, *_rank(e)))[:most]
    return tuple(sorted(kept, key=_rank))


def lost_reports(
    merged: Sequence[ErrorSpan], reported: Mapping[str, Sequence[ErrorSpan]], output: str
) -> tuple[ErrorSpan, ...]:
    """Reported errors that no merged one is about: what a model's merge has dropped. Where both have a place, the place
    decides; explanations of different issues ("the source says …") are too much alike."""
    kept = [_fitted(error, output) for error in merged]
    reports = [_fitted(error, output) for errors in reported.values() for error in errors]

    def about(report: ErrorSpan, error: ErrorSpan) -> bool:
        placed = report.start is not None and error.start is not None
        return _same_place(report, error) or (not placed and _explained_alike(report, error) >= ALIKE_PLACES)

    return tuple(report for report in reports if not any(about(report, error) for error in kept))


@dataclass(frozen=True, slots=True)
class _Report:
    annotator: str
    error: ErrorSpan


def _checked(error: ErrorSpan, entries: Sequence[_Report], names: Sequence[str]) -> ErrorSpan:
    """The error with what the reports say of it."""
    near = [r for r in entries if _same_place(error, r.error)]
    restated = [r for r in near if _same_issue(error, r.error)]
    if not restated:
        # Other words for one issue, or another place for it: the best of them.
        others = near or [r for r in entries if _explained_alike(error, r.error) >= ALIKE_PLACES]
        best = max((_likeness(error, r.error) for r in others), default=0.0)
        restated = [r for r in others if _likeness(error, r.error) == best]
    if not restated:
        return replace(error, annotators=(), notes=_with(error.notes, INVENTED))
    return replace(
        error,
        severity=_highest(r.error.severity for r in restated),
        annotators=_in_order(names, (r.annotator for r in restated)),
    )


def _united(errors: Sequence[ErrorSpan], annotators: tuple[str, ...], *, note: bool = True) -> ErrorSpan:
    """One error for several of the same issue."""
    if len(errors) == 1:
        return replace(errors[0], annotators=annotators)
    severest = min(errors, key=_rank)
    span = min(errors, key=lambda e: (-sum(_common(e, other) for other in errors), _rank(e)[0], _length(e), _rank(e)))
    explanation = severest.explanation or next((e.explanation for e in errors if e.explanation), "")
    notes = tuple(dict.fromkeys(n for e in errors for n in e.notes))
    if INVENTED in notes and annotators:
        notes = tuple(n for n in notes if n != INVENTED)
    return ErrorSpan(
        text=span.text,
        explanation=explanation,
        severity=_highest(e.severity for e in errors),
        start=span.start,
        end=span.end,
        how=span.how,
        annotators=annotators,
        notes=_with(notes, f"merged from {len(errors)} reports") if note else notes,
    )


# --- the same issue at about the same place ---------------------------------------------------------------------------


def _same(a: _Report, b: _Report) -> bool:
    if a.annotator == b.annotator:
        return _twins(a.error, b.error)
    return _same_place(a.error, b.error) and _same_issue(a.error, b.error)


def _twins(a: ErrorSpan, b: ErrorSpan) -> bool:
    """Whether one says again what the other says."""
    return _same_place(a, b) and (_explained_alike(a, b) >= 90.0 or a.explanation == b.explanation)


def _same_place(a: ErrorSpan, b: ErrorSpan) -> bool:
    if a.start is not None and b.start is not None:
        return _shared(a, b) >= OVERLAP * min(_length(a), _length(b)) > 0
    if a.how == "omission" and b.how == "omission":
        return True  # what is missing stands in the explanation
    if "omission" in (a.how, b.how):
        return False
    return a.text == b.text or fuzz.ratio(plain(a.text), plain(b.text)) >= ALIKE_PLACES


def _same_issue(a: ErrorSpan, b: ErrorSpan) -> bool:
    if not (_words(a) and _words(b)):
        return a.how != "omission"  # nothing speaks against it
    return _explained_alike(a, b) >= (ALIKE_ON_SAME_SPAN if _common(a, b) >= 0.8 else ALIKE)


def _explained_alike(a: ErrorSpan, b: ErrorSpan) -> float:
    """How far two explanations use the same words, 0–100, common and short ones left out."""
    return float(fuzz.token_set_ratio(_words(a), _words(b)))


_COMMON = re.compile(
    r"been|could|does|from|have|into|only|should|than|that|their|them|then|there|they|this|were|what|when|where|whereas"
    r"|which|while|with|would|also"
)


def _words(error: ErrorSpan) -> str:
    text = error.explanation if error.how != "omission" else f"{error.explanation} {error.text}"
    text = plain(text)[:2000]
    if error.how == "omission":
        text = re.sub(r"\bomi\w+", "", text)
    words = re.findall(r"\w+", text)
    return " ".join(
        w for w in words if (len(w) > 3 and not _COMMON.fullmatch(w)) or any(c.isdigit() or c > "\u2e80" for c in w)
    )


def _shared(a: ErrorSpan, b: ErrorSpan) -> int:
    """Characters in both spans."""
    if a.start is None or a.end is None or b.start is None or b.end is None:
        return 0
    return max(0, min(a.end, b.end) - max(a.start, b.start))


def _common(a: ErrorSpan, b: ErrorSpan) -> float:
    """Intersection over union of two spans; 0 where one has no place."""
    shared = _shared(a, b)
    return shared / (_length(a) + _length(b) - shared) if shared else 0.0


def _length(error: ErrorSpan) -> int:
    return error.end - error.start if error.start is not None and error.end is not None else 0


def _likeness(a: ErrorSpan, b: ErrorSpan) -> float:
    return 100.0 * _common(a, b) + _explained_alike(a, b)


# --- order and small things -------------------------------------------------------------------------------------------


def _rank(error: ErrorSpan) -> tuple[float, float, float, str, str, str]:
    """The most severe first (NaN last), then by place (none last), then by words: a total order."""
    severity = -error.severity if not math.isnan(error.severity) else 0.0
    start = math.inf if error.start is None else error.start
    end = math.inf if error.end is None else error.end
    return severity, start, end, error.text, error.explanation, error.how or ""


def _highest(severities: Iterable[float]) -> float:
    return max((s for s in severities if not math.isnan(s)), default=math.nan)


def _in_order(names: Sequence[str], some: Iterable[str]) -> tuple[str, ...]:
    found = set(some)
    return tuple(name for name in names if name in found)


def _with(notes: tuple[str, ...], note: str) -> tuple[str, ...]:
    return notes if note in notes else (*notes, note)


def _fitted(error: ErrorSpan, output: str) -> ErrorSpan:
    """The error with offsets that hold in `output`; without any, if they do not."""
    start, end = error.start, error.end
    if start is None and end is None:
        return error
    if start is None or end is None or not 0 <= start < end <= len(output):
        return replace(error, start=None, end=None, how="omission" if error.how == "omission" else "ungrounded")
    return replace(error, text=output[start:end])
