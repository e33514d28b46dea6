"""Reading error annotations out of what models really write.

The asked form is `Error 1` / `Location:` / `Explanation:` / `Severity:` …, then `Overall:` and `Reason:`, or `No Error`
in place of errors. Answers come with markdown, as tables or JSON, with labels in another language, in another order or
cut off. What means only one thing is taken and marked as repaired; what does not is left out and named in `problems`.
Reading takes time in proportion to the answer's length and never raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from .fields import Draft, Seen, is_none, read_fields
from .scores import SEVERITIES as SEVERITIES
from .scores import Overall, find_overall, read_severity
from .words import ABSENT, NOTHING, QUOTED, inside, is_row, plain, prose, read_places, short

LABELS = ("Unacceptable", "Poor", "Fair", "Good", "Excellent")
MOST = 8
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FoundError:
    """An error as an answer words it.

    location: the words that are claimed to be in the output; None for an omission, "" where no place is named. comment:
    what is said beside them ("second sentence"), or what is omitted. severity: 1–5, NaN where there is none. start: the
    code point of the answer at which the error begins."""

    location: str | None
    explanation: str = ""
    severity: float = math.nan
    comment: str = ""
    start: int = 0


@dataclass(frozen=True, slots=True)
class Annotation:
    """What an answer says.

    errors: in the answer's order, at most the 8 most severe. label: the overall label, None where there is none or
    several. number, top: the overall score as a number and what it is "out of" (NaN without). label_start: the code
    point of the answer at which the label, or else the number, begins; None where it cannot be told. no_error: the
    answer says that there is none. repaired: the form deviates, the meaning is clear. problems: what could not be used
    or contradicts itself.
    """

    errors: tuple[FoundError, ...] = ()
    label: str | None = None
    label_start: int | None = None
    number: float = math.nan
    top: float = math.nan
    explanation: str = ""
    no_error: bool = False
    repaired: bool = False
    problems: tuple[str, ...] = ()


def annotation_form(annotation: Annotation) -> str:
    """The annotation in the asked form."""
    blocks = []
    for number, error in enumerate(annotation.errors, 1):
        place = "omission" if error.location is None else error.location
        lines = [f"Error {number}", f"Location: {place}", f"Explanation: {error.explanation}"]
        if not math.isnan(error.severity):
            lines.append(f"Severity: {error.severity:g}")
        blocks.append("\n".join(lines))
    if not annotation.errors:
        blocks.append("No Error")
    overall = annotation.label or (f"{annotation.number:g}" if not math.isnan(annotation.number) else "")
    if overall:
        blocks.append(f"Overall: {overall}\nReason: {annotation.explanation}")
    return "\n\n".join(blocks)


def read_annotation(
    text: str,
    *,
    labels: Sequence[str] = LABELS,
    severities: Mapping[str, float] = SEVERITIES,
    output: str = "",
    most: int = MOST,
) -> Annotation:
    """Read one answer. labels: the overall scale from the lowest to the highest. severities: names of categorical
    severities; common others ("high") are known. output: the judged text, which decides whether quotes and commas in a
    location belong to the words. most: how many errors are kept, the most severe. Never raises."""
    body = _blanked(text)
    if not body.strip():
        return Annotation(problems=("the answer ends inside its thoughts" if text.strip() else "the answer is empty",))
    seen = read_fields(body)
    overall, problems = find_overall(body, seen, tuple(labels))
    errors: list[FoundError] = []
    if not seen.nothing and not any(draft.places or draft.title for draft in seen.drafts):
        errors = _listed(body, severities)
    drafts = _real(_distinct(seen.drafts, problems), seen, problems) if not errors else []
    if len(drafts) > most:
        problems.append(f"{len(drafts)} errors, the {most} most severe are kept")
        drafts = _most_severe(drafts, [read_severity(d.severity, severities) for d in drafts], most)
    errors += [error for draft in drafts for error in _errors(draft, severities, output)]
    if len(errors) > most:
        problems.append(f"{len(errors)} places of errors, the {most} most severe are kept")
        errors = _most_severe(errors, [e.severity for e in errors], most)
    if not errors and not seen.nothing and not overall:
        return Annotation(problems=(*problems, f"no annotation in the answer: {short(text)}"))
    made = Annotation(
        errors=tuple(errors),
        label=overall.label,
        label_start=overall.start,
        number=overall.number,
        top=overall.top,
        explanation=prose(seen.reason or overall.rest),
        no_error=seen.nothing and not errors,
        problems=(*problems, *_gaps(errors), *_contradictions(errors, overall, labels, seen.nothing)),
    )
    return replace(made, repaired=_unmarked(annotation_form(made)) != _unmarked(text))


# --- errors ----------------------------------------------------------------------------------------------------------

_OMITTED = re.compile(r"[\W_]*omission[\W_]*", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\s*[*_\"]*[<\[{][^<>\n]{3,200}[>\]}][*_\"]*\s*")


def _distinct(drafts: list[Draft], problems: list[str]) -> list[Draft]:
    """Without repetitions of the same place and explanation, of which a looping model makes hundreds."""
    kept: dict[tuple[str, ...], Draft] = {}
    for draft in drafts:
        kept.setdefault((*draft.places, draft.why.strip(), draft.title.strip() if not draft.why else ""), draft)
    if len(kept) < len(drafts):
        again = len(drafts) - len(kept)
        problems.append(f"{again} repeated {'error' if again == 1 else 'errors'} left out")
    return list(kept.values())


def _real(drafts: list[Draft], seen: Seen, problems: list[str]) -> list[Draft]:
    """Without blocks that name no error: the form itself copied, "Error 1: none", a header at the cut-off end."""
    kept: list[Draft] = []
    echoes = empty = none = 0
    for draft in drafts:
        why = draft.why.strip()
        said = [p for p in (*draft.places, why) if p.strip()]
        placeless = all(is_none(p) or not p.strip() or _OMITTED.fullmatch(p) for p in draft.places)
        if said and all(_PLACEHOLDER.fullmatch(p) for p in said):
            echoes += 1
        elif any(NOTHING.match(p.strip()) for p in (*draft.places[:1], draft.title)) or (
            placeless and (is_none(why) or (NOTHING.match(why) is not None and len(why) < 80))
        ):
            none += 1
        elif placeless and not why and not any(map(_OMITTED.fullmatch, draft.places)):
            if any(map(is_none, (*draft.places, draft.title))):
                none += 1
            elif re.search(r"\w", draft.title):
                kept.append(draft)
            else:
                empty += 1
        else:
            kept.append(draft)
    seen.nothing = seen.nothing or (none > 0 and not kept)
    if echoes:
        problems.append("the form of the answer is copied instead of filled in")
    if empty and not seen.nothing:
        problems.append(f"{empty} {'error' if empty == 1 else 'errors'} without any content")
    return kept


def _most_severe(entries: Sequence[T], severities: Sequence[float], most: int) -> list[T]:
    """The `most` most severe, in their own order; NaN counts as the lowest."""
    ranked = sorted(range(len(entries)), key=lambda i: (-severities[i] if severities[i] > 0 else 0.0, i))
    return [entries[i] for i in sorted(ranked[:most])]


def _errors(draft: Draft, severities: Mapping[str, float], output: str) -> list[FoundError]:
    """One error for every place that the draft names; all have its explanation and severity."""
    severity = read_severity(draft.severity, severities)
    why = prose(draft.why, whole=True)
    title = prose(draft.title, whole=True)
    places: list[tuple[str | None, str]] = []
    loose = ""
    for value in draft.places:
        words, rest = _location_lines(value, output)
        loose = loose or prose(rest)
        places += read_places(words, output)
    quoted = QUOTED.match(draft.title.strip(" \t*_:"))
    if not places and quoted:
        # Error 1: "the words" - what is wrong
        places = [(inside(quoted), "")]
        title = prose(draft.title.strip(" \t*_:")[quoted.end() :], whole=True)
    if not places and title and output and plain(title) in plain(output):
        places, title = [(title, "")], ""
    why = why or loose or title
    if all(words == "" for words, _ in places) and ABSENT.search(why):
        places = [(None, "")]
    return [FoundError(words, why, severity, comment, draft.start) for words, comment in places or [("", "")]]


def _location_lines(value: str, output: str) -> tuple[str, str]:
    """What of a location's text is the location: its first line, an open quotation to its end, or a list."""
    lines = [line for line in value.split("\n") if re.search(r"\S", line)]
    if not lines:
        return "", ""
    count = 1
    if not value.split("\n", 1)[0].strip() or is_row(lines[0]):
        while count < len(lines) and is_row(lines[0]) and is_row(lines[count]):
            count += 1
    first = lines[0].strip(" \t*_")
    opened = first != "" and first[0] in '"“„«「'
    if count == 1 and opened and not QUOTED.match(first):
        closing = {'"': '"', "“": "”", "„": "“”", "«": "»", "「": "」"}[first[0]]
        for index, line in enumerate(lines[1:20], 1):
            if any(mark in line for mark in closing):
                count = index + 1
                break
    if output:
        within = plain(output)
        while count < min(len(lines), 20) and plain("\n".join(lines[: count + 1])) in within:
            count += 1
    words = "\n".join(lines[:count])
    if count > 1 and not is_row(lines[0]) and opened:
        words = words.strip().strip('"“”„«»「」')
    return words, "\n".join(lines[count:])


_ITEM = re.compile(r"^[ \t]*(?:\d{1,3}[.)]|[-*•])[ \t]+[*_]*(?P<line>[\"'“„«‘「`][^\n]*)", re.MULTILINE)
_ITEM_SEVERITY = re.compile(r"[(\[,;.–—-]?[ \t]*severity[ \t]*[:=]?[ \t]*([^()\[\]\n]{1,30})[)\]]?", re.IGNORECASE)


def _listed(body: str, severities: Mapping[str, float]) -> list[FoundError]:
    """Errors of a plain list: `- "the words": what is wrong (severity 4)`."""
    errors = []
    for match in _ITEM.finditer(body):
        line = match["line"]
        quoted = QUOTED.match(line)
        why = line[quoted.end() :].strip(" \t*_:–—->→") if quoted else ""
        if not quoted or not why:
            continue
        severity = math.nan
        if said := _ITEM_SEVERITY.search(why):
            severity = read_severity(said[1], severities)
            why = f"{why[: said.start()]}{why[said.end() :]}".strip(" \t,;")
        words = inside(quoted)
        errors.append(FoundError(words, prose(why, whole=True), severity, "", match.start()))
    return errors


# --- what is wrong with an answer, and small things -------------------------------------------------------------------


def _gaps(errors: Sequence[FoundError]) -> list[str]:
    """What errors lack."""
    counts = (
        ("severity that can be read", sum(math.isnan(e.severity) for e in errors)),
        ("location", sum(e.location == "" for e in errors)),
        ("explanation", sum(not e.explanation for e in errors)),
    )
    return [f"{n} {'error has' if n == 1 else 'errors have'} no {what}" for what, n in counts if n]


def _contradictions(errors: Sequence[FoundError], overall: Overall, labels: Sequence[str], nothing: bool) -> list[str]:
    """Where the label contradicts the errors. They are left as they are."""
    number = f"{len(errors)} {'error' if len(errors) == 1 else 'errors'}"
    found = [f"says that there is no error, but lists {number}"] if nothing and errors else []
    if overall.label is not None and len(labels) > 1:
        if errors and overall.label == labels[-1]:
            found.append(f"{overall.label} with {number}")
        elif not errors and overall.label != labels[-1]:
            found.append(f"{overall.label} without any error")
    return found


_THOUGHT = re.compile(r"<(?P<close>/)?(?:think|thinking|thoughts?|reasoning)>", re.IGNORECASE)
#: Code fences, special tokens, and words that are struck out.
_NO_TEXT = re.compile(
    r"^[ \t]*(?:```|~~~)[^\n]*$|```[ \t]*$|<\|[\w-]{1,30}\|>|</?s>|<eos>|(?<!~)~~(?!~)[^~\n]{1,200}~~(?!~)",
    re.MULTILINE,
)


def _blanked(text: str) -> str:
    """Visible thoughts, code fences and the like as blanks, at the same length: places in the text still hold."""
    ranges: list[tuple[int, int]] = []
    opened: int | None = None
    for match in _THOUGHT.finditer(text):
        if not match["close"]:
            opened = match.start() if opened is None else opened
        elif opened is not None or not ranges:
            # A model whose template opens its thoughts for it only closes them.
            ranges.append((opened or 0, match.end()))
            opened = None
    if opened is not None:
        ranges.append((opened, len(text)))
    final = text.rfind("<|channel|>final<|message|>")
    if final >= 0:
        ranges.append((0, final + len("<|channel|>final<|message|>")))
    letters: list[str] = []
    place = 0
    for start, end in sorted(ranges):
        letters += [text[place:start], re.sub(r"[^\n]", " ", text[max(place, start) : end])]
        place = max(place, end)
    letters.append(text[place:])
    return _NO_TEXT.sub(lambda m: " " * len(m[0]), "".join(letters))


_MARKS = re.compile(r"[\s\"'“”„‘’«»]+")


def _unmarked(text: str) -> str:
    return _MARKS.sub("", text)
