"""One set of errors out of what several annotators reported, and whose report stands apart.

The paper lets a language model merge. `merge_errors` does it by rule, for where no model is to be asked or its answer
cannot be used; `check_merged` holds a model's result against the reports, because it may invent or inflate.
Paper: OpeNLGauge, §4 and footnote 3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from rapidfuzz import fuzz

from judgesmith.programs.openlgauge.grounding import fold
from judgesmith.programs.openlgauge.reading import MOST
from judgesmith.signatures.values import ErrorSpan

INVENTED = "not reported by any annotator"
#: Two spans are about the same place if the shorter one lies in the other by this share.
OVERLAP = 0.5
#: Explanations (0–100, shared words) from which two errors at about the same place are one issue. Annotators word one
#: issue very differently. Of 15 invented issues in 3 or 4 wordings each (in the tests), three quarters of the pairs of
#: one issue reach 45, and one in twenty of the pairs of two.
ALIKE = 45.0
#: The same for words that have no offsets, and for explanations of errors at different places.
VERY_ALIKE = 80.0
Named = tuple[str, ErrorSpan]


def outliers(scores: Sequence[float]) -> tuple[bool, ...]:
    """Return a flag for each annotator whose score (labels as numbers 1 to 5) stands apart.

    It is at least 2 standard deviations *and* at least 1 from the mean of all. NaN and infinite scores are no outliers
    and count for nothing.

    The standard deviation, which the paper leaves open, is that of the population: no score of n can then be farther
    than sqrt(n - 1) deviations from the mean, so the rule needs n >= 5, and with the paper's 5 annotators it holds
    where four agree and the fifth differs by 1.25 or more. With the sample's it could not hold below n = 6.
    """
    values = np.array(scores, dtype=float)
    usable = np.isfinite(values)
    if not usable.any():
        return (False,) * len(scores)
    # With five annotators the two sides are equal: rounding must not decide.
    apart = np.abs(values - values[usable].mean()) + 1e-9
    return tuple((usable & (apart >= 1) & (apart >= 2 * values[usable].std())).tolist())


def merge_errors(
    reported: Mapping[str, Sequence[ErrorSpan]], *, most: int = MOST
) -> tuple[ErrorSpan, ...]:
    """Merge the same issues at about the same place in the reports of several annotators.

    Two errors of one annotator are two issues to it, and stay apart unless they are equal. A merged error is the most
    severe of the reports (at a tie the first in the text), with all their annotators. The order of annotators does not
    matter, except for the order of their names.

    Args:
        reported: Errors by annotator.
        most: The number of errors kept, the most severe first, then by place.
    """
    groups: list[list[Named]] = []
    for entry in sorted(
        _entries(reported), key=lambda entry: (_rank(entry[1]), entry[0])
    ):
        for group in groups:
            if all(_same(entry, other) for other in group):
                group.append(entry)
                break
        else:
            groups.append([entry])
    merged = [_of_group(group, reported) for group in groups]
    return tuple(sorted(merged, key=_rank)[:most])


def _of_group(
    group: Sequence[Named], reported: Mapping[str, Sequence[ErrorSpan]]
) -> ErrorSpan:
    """Return reports of one issue as one error."""
    first = group[0][1]
    explanations = [first.explanation, *(error.explanation for _, error in group)]
    note = (f"merged from {len(group)} reports",) if len(group) > 1 else ()
    return replace(
        first,
        annotators=_in_order(reported, (name for name, _ in group)),
        explanation=next(filter(None, explanations), ""),
        notes=(*first.notes, *note),
    )


def check_merged(
    merged: Sequence[ErrorSpan],
    reported: Mapping[str, Sequence[ErrorSpan]],
    *,
    most: int = MOST,
) -> tuple[ErrorSpan, ...]:
    """Return a model's merged errors, checked against the reports it was given.

    An error gets the annotators and the highest severity of the reports that it restates (rules of the task, of which
    models lose count): those of the same issue at about the same place, else those at that place, else those with
    nearly the same explanation. One that restates none keeps its severity and is noted as not reported by any
    annotator; where more than `most` are left, these go first. In the order of `merge_errors`.
    """
    checked = list[ErrorSpan]()
    for error in merged:
        if not (restated := _restated(error, reported)):
            invented = (*error.notes, INVENTED)
            checked.append(replace(error, annotators=(), notes=invented))
            continue
        severities = [e.severity for _, e in restated if not math.isnan(e.severity)]
        severity = max(severities, default=math.nan)
        names = _in_order(reported, (name for name, _ in restated))
        checked.append(replace(error, severity=severity, annotators=names))
    best = sorted(checked, key=lambda e: (INVENTED in e.notes, *_rank(e)))[:most]
    return tuple(sorted(best, key=_rank))


def _restated(
    error: ErrorSpan, reported: Mapping[str, Sequence[ErrorSpan]]
) -> list[Named]:
    """Return the reports that a merged error restates."""
    entries = _entries(reported)
    near = [entry for entry in entries if _same_place(error, entry[1])]
    same = [entry for entry in near if _same_issue(error, entry[1])]
    if near:
        return same or near
    return [entry for entry in entries if _alike(error, entry[1]) >= VERY_ALIKE]


def lost_reports(
    merged: Sequence[ErrorSpan], reported: Mapping[str, Sequence[ErrorSpan]]
) -> tuple[ErrorSpan, ...]:
    """Return the reported errors that a model's merge has dropped.

    Where both have a place, the place decides; explanations of different issues ("the source says …") are too much
    alike.
    """
    lost = list[ErrorSpan]()
    for _, report in _entries(reported):
        if not any(_is_about(report, error) for error in merged):
            lost.append(report)
    return tuple(lost)


def _is_about(report: ErrorSpan, error: ErrorSpan) -> bool:
    placed = report.start is not None and error.start is not None
    alike = not placed and _alike(report, error) >= VERY_ALIKE
    return alike or _same_place(report, error)


def _entries(reported: Mapping[str, Sequence[ErrorSpan]]) -> list[Named]:
    return [(name, error) for name, errors in reported.items() for error in errors]


def _same(a: Named, b: Named) -> bool:
    """Return True if two reports are of the same issue at about the same place.

    Those of one annotator have to be equal.
    """
    if a[0] == b[0]:
        same = a[1].explanation == b[1].explanation
    else:
        same = _same_issue(a[1], b[1])
    return same and _same_place(a[1], b[1])


def _same_place(a: ErrorSpan, b: ErrorSpan) -> bool:
    if (
        a.start is not None
        and a.end is not None
        and b.start is not None
        and b.end is not None
    ):
        shared = min(a.end, b.end) - max(a.start, b.start)
        return shared >= OVERLAP * min(a.end - a.start, b.end - b.start)
    if "omission" in (a.how, b.how):
        return a.how == b.how  # what is missing stands in the explanation
    return fuzz.ratio(fold(a.text)[0], fold(b.text)[0]) >= VERY_ALIKE


def _same_issue(a: ErrorSpan, b: ErrorSpan) -> bool:
    if not (_words(a) and _words(b)):
        return a.how != "omission"  # nothing speaks against it
    return _alike(a, b) >= ALIKE


def _alike(a: ErrorSpan, b: ErrorSpan) -> float:
    """Return how far two explanations use the same words, 0–100; 0 if one has none."""
    return float(fuzz.token_set_ratio(_words(a), _words(b)))


#: Words that are in explanations of any issue.
_COMMON = re.compile(
    r"been|could|does|from|have|into|only|should|than|that|their|them|then|there|they|this|were|what|when|where|whereas"
    r"|which|while|with|would|also|omi\w+|[a-z]{1,3}"
)


def _words(error: ErrorSpan) -> str:
    words = re.findall(r"\w+", error.explanation[:2000].casefold())
    return " ".join(word for word in words if not _COMMON.fullmatch(word))


def _rank(error: ErrorSpan) -> tuple[float, float, float, str, str, str]:
    """The most severe first (NaN last), then by place (none last), then by words: a total order."""
    severity = -error.severity if not math.isnan(error.severity) else 0.0
    start = math.inf if error.start is None else error.start
    end = math.inf if error.end is None else error.end
    return severity, start, end, error.text, error.explanation, error.how or ""


def _in_order(names: Iterable[str], some: Iterable[str]) -> tuple[str, ...]:
    chosen = set(some)
    return tuple(name for name in names if name in chosen)
