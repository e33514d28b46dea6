"""Reading error annotations out of what models write.

The asked form is `Error 1` / `Location:` / `Explanation:` / `Severity:` …, then `Overall:` and `Reason:`, or `No Error`
in place of errors; a model that takes a schema writes the same fields as JSON. Lines may have markdown around them and
stand in another order. What cannot be read is left out and named in `problems`. Reading takes time in proportion to the
answer's length and never raises.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Literal, assert_never, cast

from judgesmith.programs.answers.objects import lenient_json
from judgesmith.programs.answers.thoughts import at_its_places
from judgesmith.programs.openlgauge.quotes import QUOTED

LABELS = ("Unacceptable", "Poor", "Fair", "Good", "Excellent")
MOST = 8
#: The categorical severities of the paper's ablation.
SEVERITIES: Mapping[str, float] = {
    "Neutral": 1.0,
    "Minor": 2.0,
    "Moderate": 3.0,
    "Major": 4.0,
    "Critical": 5.0,
}


@dataclass(frozen=True, slots=True)
class FoundError:
    """An error as an answer words it."""

    location: str | None
    """The words that are claimed to be in the output; None for an omission, "" where no place is named."""
    explanation: str = ""
    severity: float = math.nan
    """1–5, NaN where there is none."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """The content of an answer."""

    errors: tuple[FoundError, ...] = ()
    """In the answer's order, at most the 8 most severe."""
    label: str | None = None
    """The overall label; None where there is none."""
    label_start: int | None = None
    """The code point of the answer at which the label begins."""
    explanation: str = ""
    no_error: bool = False
    """The answer says that there is no error."""
    repaired: bool = False
    """The form deviates, the meaning is clear."""
    problems: tuple[str, ...] = ()
    """What could not be used or contradicts itself."""


def annotation_form(annotation: Annotation) -> str:
    """Return the annotation in the prompt's form."""
    blocks = []
    for number, error in enumerate(annotation.errors, 1):
        place = "omission" if error.location is None else error.location
        lines = [
            f"Error {number}",
            f"Location: {place}",
            f"Explanation: {error.explanation}",
        ]
        if not math.isnan(error.severity):
            lines.append(f"Severity: {error.severity:g}")
        blocks.append("\n".join(lines))
    if not annotation.errors:
        blocks.append("No Error")
    if annotation.label:
        blocks.append(f"Overall: {annotation.label}\nReason: {annotation.explanation}")
    return "\n\n".join(blocks)


@dataclass(slots=True)
class _Seen:
    """The fields of an answer.

    drafts: of each error the values behind `location`, `why` and `severity`, and behind `error` in its header;
    overalls: code-point ranges of the text after "Overall:"; exact: JSON with nothing around it.
    """

    drafts: list[dict[str, str]]
    overalls: list[tuple[int, int]]
    reason: str
    nothing: bool
    exact: bool = False


def read_annotation(
    text: str, *, labels: Sequence[str] = LABELS, output: str = "", most: int = MOST
) -> Annotation:
    """Read one answer. Never raises.

    Args:
        text: The answer.
        labels: The overall scale from the lowest to the highest.
        output: The judged text, which decides whether quotes in a location belong to the words.
        most: The number of errors kept, the most severe.
    """
    body = at_its_places(
        text, [output]
    )  # an answer may also come from elsewhere than a layout
    seen = _json_fields(body) or _line_fields(body)
    label, start, problems = _find_label(body, seen.overalls, tuple(labels))
    errors = list(
        dict.fromkeys(
            error for draft in seen.drafts for error in _errors(draft, output)
        )
    )
    if len(errors) > most:
        problems.append(f"{len(errors)} errors, the {most} most severe are kept")
        ranked = sorted(
            range(len(errors)),
            key=lambda i: (-errors[i].severity if errors[i].severity > 0 else 0.0, i),
        )
        errors = [errors[i] for i in sorted(ranked[:most])]
    nothing = seen.nothing and not errors
    if not errors and not nothing and label is None:
        return Annotation(
            problems=(
                *problems,
                f"no annotation in the answer: {' '.join(text.split())[:100]!r}",
            )
        )
    problems += [*_gaps(errors), *_contradictions(errors, label, labels)]
    read = Annotation(
        tuple(errors),
        label,
        start,
        _prose(seen.reason.strip().split("\n\n")[0]),
        nothing,
    )
    same = seen.exact or _unmarked(annotation_form(read)) == _unmarked(text)
    return replace(read, repaired=not same, problems=tuple(problems))


# --- fields -----------------------------------------------------------------------------------------------------------

#: A field's name at the start of a line, with any marks around it, and its colon; in headings without one.
_FIELD = re.compile(
    r"""^(?:[^\w\n"“{]|[\d_])*+
    (?:(?P<error>error(?:[ ]\d{1,3})?)|(?P<location>location)|(?P<why>explanation|reason)|(?P<severity>severity)
      |(?P<overall>(?:overall|score)(?:[ ][a-z]{1,20}){0,2}))
    [*_]{0,2}[ \t\r]*+(?::[*_]{0,2}|$)""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_Label = Literal["error", "location", "why", "severity", "overall"]
_OF_AN_ERROR = ("location", "severity")  # an explanation before them is an error's
_NOTHING = re.compile(
    r"^[^\w\n]{0,20}no errors?[^\w\n]{0,20}$", re.IGNORECASE | re.MULTILINE
)


def _line_fields(body: str) -> _Seen:
    """Sort the parts of an answer by the labels before them; a field that an error has already begins the next."""
    seen = _Seen([], [], "", _NOTHING.search(body) is not None)
    draft: dict[str, str] | None = None
    matches = list(_FIELD.finditer(body))
    for found, following in zip_longest(matches, matches[1:]):
        start = found.end()
        end = following.start() if following else len(body)
        alone = following is None or following.lastgroup not in _OF_AN_ERROR
        kind = cast(_Label, found.lastgroup)
        match kind:
            case "overall":
                seen.overalls.append((start, end))
                draft = None
            case "why" if draft is None and alone:
                seen.reason = _NOTHING.sub("", body[start:end])
            case "error" | "location" | "why" | "severity":
                if draft is None or kind == "error" or kind in draft:
                    draft = {}
                    seen.drafts.append(draft)
                draft[kind] = body[start:end]
            case _:
                assert_never(kind)
    return seen


_JSON_OVERALL = re.compile(r'"overall"\s*:\s*"?')
#: A list that the model closed itself: repair closes what was cut off, too.
_CLOSED = re.compile(r'"errors"\s*:\s*\[\s*\]')


def _json_fields(body: str) -> _Seen | None:
    """The fields of an answer in JSON, also in broken JSON; None where it is something else."""
    begin = body.find("{")
    data = lenient_json(body[begin:]) if begin >= 0 and '"errors"' in body else None
    if not isinstance(data, dict) or not isinstance(data.get("errors"), list):
        return None
    drafts = [_draft(entry) for entry in data["errors"] if isinstance(entry, dict)]
    overalls = [(m.end(), len(body)) for m in _JSON_OVERALL.finditer(body)]
    exact = body.lstrip().startswith("{") and body.rstrip().endswith("}")
    nothing = not data["errors"] and _CLOSED.search(body) is not None
    return _Seen(drafts, overalls, _as_text(data.get("reason")), nothing, exact)


def _draft(entry: Mapping[str, Any]) -> dict[str, str]:
    """An error of an answer in JSON."""
    return {
        "location": _as_text(entry.get("location")),
        "why": _as_text(entry.get("explanation")),
        "severity": _as_text(entry.get("severity")),
    }


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


# --- errors -----------------------------------------------------------------------------------------------------------

_OMISSION = re.compile(r"[\W_]*omissions?(?:[\W_]*|\s*[:(–-].*)", re.IGNORECASE)
#: Nothing to say, or the form itself, copied instead of filled in.
_EMPTY = re.compile(
    r"[\W_]*(?:n/?a|none|no errors?(?: were found)?)[\W_]*|[-–—]*|\W*<[^<>]*>\W*",
    re.IGNORECASE,
)


def _errors(draft: Mapping[str, str], output: str) -> list[FoundError]:
    """One error for every place that the draft names; none where it says nothing."""
    why = _prose(draft.get("why") or draft.get("error") or "")
    why = "" if _EMPTY.fullmatch(why) else why
    places = _places(draft.get("location") or "", output)
    severity = _severity(draft.get("severity") or "")
    return [FoundError(place, why, severity) for place in places if place or why]


def _places(value: str, output: str) -> list[str | None]:
    """Return the words of a location, None for an omission, "" for no place.

    They are its first line, or all of it if that stands in the output; several places for a list of quotations (not of
    the ends of a longer one).
    """
    whole = value.strip(' \t\r\n*_`"')
    if whole in output:
        line = whole
    else:
        line = (value.strip().splitlines() or [""])[0].strip(" \t*_`")
    if _OMISSION.fullmatch(line):
        return [None]
    if _EMPTY.fullmatch(line):
        return [""]
    quoted = [match[match.lastindex or 0].strip() for match in QUOTED.finditer(line)]
    beside = re.sub(r"\b(?:and|or)\b", "", QUOTED.sub("", line))
    if quoted and line not in output and not re.search(r"[\w.…]", beside):
        return [*quoted]
    return [line]


@lru_cache(maxsize=32)
def _one_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """One of the words or numbers (as patterns) that a text begins with; a number perhaps as "4/5".

    Not the beginning of a range ("3-4", "Fair to Good") or of another number, nor behind a sign of a bound ("<4").
    """
    any_word = "|".join(words) or "(?!)"
    follows = r"[^\W_]|[.,_]\d|[ \t]\d|[+\u202d\u202e]"
    return re.compile(
        rf"(?:[^\w<>~≈≤≥-]|_)*+(?P<said>{any_word})(?:\s?(?:/|(?:out )?of)\s?5)?(?!{follows}"
        rf"|[\s*_]{{0,4}}(?:/|\||-|–|\bto\b|\bor\b|\bof\b|\bout of\b)[\s*_]{{0,4}}(?:{any_word}|\d))",
        re.IGNORECASE,
    )


def _severity(label: str) -> float:
    """A severity from 1 to 5 out of "4", "4/5" or "Major"; NaN where that is unclear or off the scale."""
    match = _one_of((r"[1-5](?:\.\d+)?", *SEVERITIES)).match(label)
    if match is None:
        value = math.nan
    else:
        value = SEVERITIES.get(match["said"].capitalize()) or float(match["said"])
    return value if value <= 5.0 else math.nan


def _find_label(
    body: str, overalls: Sequence[tuple[int, int]], labels: tuple[str, ...]
) -> tuple[str | None, int | None, list[str]]:
    """The label behind the last "Overall" that has one, where it begins, and what is wrong."""
    pattern = _one_of(tuple(map(re.escape, labels)))
    read = [
        match for start, end in overalls if (match := pattern.match(body, start, end))
    ]
    if not read:
        return (
            None,
            None,
            [
                "no overall label"
                if not overalls
                else "no single label of the scale behind the overall"
            ],
        )
    different = len({match["said"].casefold() for match in read})
    problems = []
    if different > 1:
        problems = [f"{different} different overall labels, the last counts"]
    last = read[-1]
    label = next(
        label for label in labels if label.casefold() == last["said"].casefold()
    )
    return label, last.start("said"), problems


# --- what is wrong with an answer, and small things -------------------------------------------------------------------


def _gaps(errors: Sequence[FoundError]) -> Iterator[str]:
    """Yield the gaps of errors."""
    for missing, count in (
        ("severity that can be read", sum(math.isnan(e.severity) for e in errors)),
        ("location", sum(e.location == "" for e in errors)),
        ("explanation", sum(not e.explanation for e in errors)),
    ):
        if count:
            yield f"{count} {'error has' if count == 1 else 'errors have'} no {missing}"


def _contradictions(
    errors: Sequence[FoundError], label: str | None, labels: Sequence[str]
) -> Iterator[str]:
    """Yield the contradictions between the label and the errors, which are left unchanged."""
    if label is not None and len(labels) > 1 and bool(errors) == (label == labels[-1]):
        number = f"{len(errors)} {'error' if len(errors) == 1 else 'errors'}"
        yield f"{label} with {number}" if errors else f"{label} without any error"


def _prose(text: str) -> str:
    """An explanation on one line without markdown around it."""
    return " ".join(text.split()).strip(" *_`#")


def _unmarked(text: str) -> str:
    return re.sub(r"[\s\"'“”„‘’«»]+", "", text)
