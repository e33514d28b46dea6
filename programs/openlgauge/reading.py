"""Reading error annotations out of what models write.

The asked form is `Error 1` / `Location:` / `Explanation:` / `Severity:` …, then `Overall:` and `Reason:`, or `No Error`
in place of errors; a model that takes a schema writes the same fields as JSON. Lines may have markdown around them,
stand in another order or be cut off. What means only one thing is taken and marked as repaired; what does not is left
out and named in `problems`. Reading takes time in proportion to the answer's length and never raises.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any, TypeVar

from ..prompting.answers import lenient_json
from .places import QUOTED, in_quotes, plain, read_places

T = TypeVar("T")
LABELS = ("Unacceptable", "Poor", "Fair", "Good", "Excellent")
MOST = 8
#: The categorical severities of the paper's ablation.
SEVERITIES: Mapping[str, float] = {"Neutral": 1.0, "Minor": 2.0, "Moderate": 3.0, "Major": 4.0, "Critical": 5.0}
#: What models say in place of a severity from 1 to 5.
_SEVERITY_WORDS = {
    "very low": 1.0, "trivial": 1.0, "negligible": 1.0, "one": 1.0, "low": 2.0, "mild": 2.0, "slight": 2.0,
    "two": 2.0, "medium": 3.0, "three": 3.0, "high": 4.0, "serious": 4.0, "severe": 4.0, "significant": 4.0,
    "four": 4.0, "very high": 5.0, "extreme": 5.0, "five": 5.0,
    **{name.casefold(): value for name, value in SEVERITIES.items()},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FoundError:
    """An error as an answer words it."""

    location: str | None
    """The words that are claimed to be in the output; None for an omission, "" where no place is named."""
    explanation: str = ""
    severity: float = math.nan
    """1–5, NaN where there is none."""
    comment: str = ""
    """What is said beside the words ("second sentence"), or what is omitted."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What an answer says."""

    errors: tuple[FoundError, ...] = ()
    """In the answer's order, at most the 8 most severe."""
    label: str | None = None
    """The overall label; None where there is none, or several."""
    label_start: int | None = None
    """The code point of the answer at which the label, or else the number, begins."""
    number: float = math.nan
    """The overall score as a number, and `top`, what it is "out of"; NaN without."""
    top: float = math.nan
    explanation: str = ""
    no_error: bool = False
    """The answer says that there is no error."""
    repaired: bool = False
    """The form deviates, the meaning is clear."""
    problems: tuple[str, ...] = ()
    """What could not be used or contradicts itself."""


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


@dataclass(slots=True)
class _Draft:
    """An error as far as its fields were seen."""

    title: str = ""
    places: list[str] = field(default_factory=list)
    why: str = ""
    severity: str | None = None


@dataclass(slots=True)
class _Seen:
    """The fields of an answer. overalls: code-point ranges of what follows "Overall:"; scores: of a bare "Score:"."""

    drafts: list[_Draft] = field(default_factory=list)
    overalls: list[tuple[int, int]] = field(default_factory=list)
    scores: list[tuple[int, int]] = field(default_factory=list)
    reason: str = ""
    nothing: bool = False
    json: bool = False
    """The answer is JSON without anything around it."""


def read_annotation(
    text: str,
    *,
    labels: Sequence[str] = LABELS,
    output: str = "",
    most: int = MOST,
) -> Annotation:
    """Read one answer. labels: the overall scale from the lowest to the highest. output: the judged text, which decides
    whether quotes and commas in a location belong to the words. most: how many errors are kept, the most severe. Never
    raises."""
    body = _blanked(text)
    if not body.strip():
        return Annotation(problems=("the answer ends inside its thoughts" if text.strip() else "the answer is empty",))
    seen = _json_fields(body) or _line_fields(body)
    overall, problems = _find_overall(body, seen, tuple(labels))
    drafts = _real(_distinct(seen.drafts, problems), seen, problems)
    if len(drafts) > most:
        problems.append(f"{len(drafts)} errors, the {most} most severe are kept")
        drafts = _most_severe(drafts, [_severity(d.severity) for d in drafts], most)
    errors = [error for draft in drafts for error in _errors(draft, output)]
    if len(errors) > most:
        problems.append(f"{len(errors)} places of errors, the {most} most severe are kept")
        errors = _most_severe(errors, [e.severity for e in errors], most)
    if not errors and not seen.nothing and overall.label_start is None:
        return Annotation(problems=(*problems, f"no annotation in the answer: {_short(text)}"))
    made = replace(
        overall,
        errors=tuple(errors),
        explanation=_prose((seen.reason or overall.explanation).strip().split("\n\n")[0]),
        no_error=seen.nothing and not errors,
        problems=(*problems, *_gaps(errors), *_contradictions(errors, overall.label, labels, seen.nothing)),
    )
    return replace(made, repaired=not seen.json and _unmarked(annotation_form(made)) != _unmarked(text))


# --- fields -----------------------------------------------------------------------------------------------------------

#: A field's name at the start of a line, with any marks around it, and its colon; in headings and tags without one.
_FIELD = re.compile(
    r"""^(?:[^\w\n"“”„«»‘’'/{]|[\d_])*+
    (?:(?P<reason>(?:explanation|reason)[ \t]+(?:of|for)[ \t]+(?:the[ \t]+)?(?:overall[ \t]+)?(?:score|rating|label)
        |overall[ \t]+(?:explanation|reason))
      |(?P<location>(?:error[ \t]+)?location|place|span|quote)
      |(?P<severity>(?:error[ \t]+)?severity(?:[ \t]+(?:level|score|rating))?)
      |(?P<why>(?:error[ \t]+)?(?:explanation|description)|reason(?:ing)?|justification|rationale)
      |(?P<overall>(?:overall|final)(?:[ \t]+(?!errors?\b|severity\b)[^\W\d_]{1,20}){0,3})
      |(?P<score>(?:[^\W\d_]{1,20}[ \t]+){0,2}(?:score|rating|label))
      |(?P<other>(?:error[ \t]+)?(?:type|category)|correction|confidence|notes?)
      |(?P<error>(?:error|issue)(?:[ \t]*\#?\d{1,6})?))
    (?![^\W_])[*_`\]]{0,4}(?:[ \t]*+(?:[:=>|]|$|(?<=[*_`])(?=[ \t])))[*_`]{0,4}""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
#: A line that says that there is no error.
_NOTHING = re.compile(
    r"^[^\w\n{]{0,40}(?:there (?:are|were) |i (?:found|see|find) )?no (?:[a-z-]{3,20} ){0,2}"
    r"(?:errors?|issues?|mistakes?)(?![a-z])"
    r"(?! \d| in the (?:first|second|third)|[^\n.]{0,60}\b(?:but|except|however|although)\b)",
    re.IGNORECASE | re.MULTILINE,
)
#: No place, or nothing to say.
_NONE = re.compile(r"[\W_]*+(?:n/?a|none|null|nil|unknown|not applicable)[\W_]*|\W*[-–—]+\W*", re.IGNORECASE)


def _line_fields(body: str) -> _Seen:
    """Sort the parts of an answer by the labels before them, whatever their order."""
    matches = list(_FIELD.finditer(body))
    seen = _Seen(nothing=_NOTHING.search(body[: matches[0].start()] if matches else body) is not None)
    draft: _Draft | None = None
    for match, following in zip_longest(matches, matches[1:]):
        start, end = match.end(), following.start() if following else len(body)
        kind, value = match.lastgroup, body[start:end]
        at_error = kind in ("error", "location", "severity", "why")
        if kind == "why" and draft is None:  # an explanation first: of an error if its other fields follow
            at_error = following is not None and following.lastgroup in ("location", "severity")
        if at_error and (draft is None or _begins_another(draft, str(kind))):
            draft = _Draft()
            seen.drafts.append(draft)
        if kind in ("overall", "score"):
            (seen.overalls if kind == "overall" else seen.scores).append((start, end))
            seen.nothing = seen.nothing or _NOTHING.search(value) is not None
            draft = None
        elif kind == "reason" or (kind == "why" and draft is None):
            first, _, rest = value.partition("\n")
            said_none = _NOTHING.search(rest)
            seen.reason = f"{first}\n{rest[: said_none.start()]}" if said_none else value
            seen.nothing = seen.nothing or said_none is not None
        elif draft is not None and kind == "error":
            draft.title = value
        elif draft is not None and kind == "location":
            draft.places.append(value)
        elif draft is not None and kind == "severity":
            draft.severity = value
        elif draft is not None and kind == "why":
            draft.why = value
    return seen


def _begins_another(draft: _Draft, kind: str) -> bool:
    """Whether a field belongs to a new error, since its own stands there already."""
    if kind == "location":  # several places in a row are one error's
        return bool(draft.places) and bool(draft.why or draft.severity)
    return kind == "error" or bool(draft.why if kind == "why" else draft.severity)


_JSON_OVERALL = re.compile(r"""["'](?:overall|score|label)["']\s*:\s*["']?(?=[^\s"'{\[])""", re.IGNORECASE)


def _json_fields(body: str) -> _Seen | None:
    """The fields of an answer in JSON, also in broken JSON; None where it is something else."""
    begin = body.find("{")
    data = lenient_json(body[begin:]) if begin >= 0 and '"errors"' in body else None
    if not isinstance(data, dict) or not isinstance(data.get("errors"), list | None):
        return None
    seen = _Seen(reason=_as_text(data.get("reason") or data.get("explanation")))
    seen.json = begin == 0 and body.rstrip().endswith("}")
    for entry in data.get("errors") or ():
        if isinstance(entry, dict):
            location = _as_text(entry.get("location"))
            severity = None if entry.get("severity") is None else _as_text(entry["severity"])
            places = [f'"{location}"' if '"' not in location else location] if location else []
            seen.drafts.append(_Draft(places=places, why=_as_text(entry.get("explanation")), severity=severity))
    seen.nothing = not seen.drafts
    seen.overalls = [(m.end(), min(len(body), m.end() + 80)) for m in _JSON_OVERALL.finditer(body)]
    return seen


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


# --- errors -----------------------------------------------------------------------------------------------------------

_OMITTED = re.compile(r"[\W_]*omission[\W_]*", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\s*[*_\"]*[<\[{][^<>\n]{3,200}[>\]}][*_\"]*\s*")
#: An explanation of something that the output lacks.
_ABSENT = re.compile(
    r"\b(?:omit\w*|omission|missing|miss(?:es)?|lacks?|left out|leaves out|(?:not|n't|never) (?:mention|include)\w*)\b",
    re.IGNORECASE,
)


def _distinct(drafts: list[_Draft], problems: list[str]) -> list[_Draft]:
    """Without repetitions of the same place and explanation, of which a looping model makes hundreds."""
    kept: dict[tuple[str, ...], _Draft] = {}
    for draft in drafts:
        kept.setdefault((*draft.places, draft.why.strip(), draft.title.strip() if not draft.why else ""), draft)
    if again := len(drafts) - len(kept):
        problems.append(f"{again} repeated {'error' if again == 1 else 'errors'} left out")
    return list(kept.values())


def _real(drafts: list[_Draft], seen: _Seen, problems: list[str]) -> list[_Draft]:
    """Without blocks that name no error: the form itself copied, "Error 1: none", a header at the cut-off end."""
    kept: list[_Draft] = []
    counts = Counter[str]()
    for draft in drafts:
        omitted = any(map(_OMITTED.fullmatch, draft.places))
        texts = [text for text in (*draft.places, draft.why, draft.title) if re.search(r"[^\W_]|[-–—]", text)]
        texts = [text for text in texts if not _OMITTED.fullmatch(text)]
        none = [text for text in texts if _NONE.fullmatch(text.strip()) or _NOTHING.match(text.strip())]
        if texts and all(map(_PLACEHOLDER.fullmatch, texts)):
            counts["echo"] += 1
        elif texts and len(none) == len(texts):
            counts["none"] += 1
        elif not texts and not omitted:
            counts["empty"] += 1
        else:
            kept.append(draft)
    seen.nothing = seen.nothing or (counts["none"] > 0 and not kept)
    if counts["echo"]:
        problems.append("the form of the answer is copied instead of filled in")
    if counts["empty"] and not seen.nothing:
        problems.append(f"{counts['empty']} {'error' if counts['empty'] == 1 else 'errors'} without any content")
    return kept


def _most_severe(entries: Sequence[T], severities: Sequence[float], most: int) -> list[T]:
    """The `most` most severe, in their own order; NaN counts as the lowest."""
    ranked = sorted(range(len(entries)), key=lambda i: (-severities[i] if severities[i] > 0 else 0.0, i))
    return [entries[i] for i in sorted(ranked[:most])]


def _errors(draft: _Draft, output: str) -> list[FoundError]:
    """One error for every place that the draft names; all have its explanation and severity."""
    severity = _severity(draft.severity)
    why = _prose(draft.why) or _prose(draft.title)
    places = [place for value in draft.places for place in read_places(_location(value, output), output)]
    if all(words == "" for words, _ in places) and _ABSENT.search(why):
        places = [(None, "")]
    return [FoundError(words, why, severity, comment) for words, comment in places or [("", "")]]


def _location(value: str, output: str) -> str:
    """What of a location's text is the location: its first line, and further ones that stand in the output with it or
    belong to the same quotation."""
    lines = [line for line in value.split("\n") if line.strip()][:20]
    count, within = 1, plain(output)
    while output and count < len(lines) and plain("\n".join(lines[: count + 1])) in within:
        count += 1
    if count == 1 and lines and lines[0].strip()[:1] in '"“' and not QUOTED.match(lines[0].strip()):
        count = next((i for i, line in enumerate(lines[1:], 2) if '"' in line or "”" in line), 1)
    words = "\n".join(lines[:count])
    return words.strip().strip('"“”') if count > 1 else words


# --- severities and the overall label ---------------------------------------------------------------------------------

_NUMBER = r"(?P<number>\d{1,4}(?:[.,]\d{1,4})?)(?![\d.,]*\d|[A-Za-z])(?![ \t]*(?:-|–|~|to\b|or\b)[ \t]*\d)"
_OUT_OF = r"(?:[ \t]*(?:/|(?:out[ \t]+)?of\b)[ \t]*(?P<top>\d{1,4})|[ \t]*(?P<percent>%))?"
_SEVERITY_NUMBER = re.compile(
    rf"(?:^[^\w-]*(?:(?i:level|grade)\s+)?|^[^\n()]{{0,40}}[(\[]\s*|^\W*[^\W\d]+\W{{0,3}}[-–:=,/→]\s*){_NUMBER}{_OUT_OF}"
)
_OVERALL_NUMBER = re.compile(rf"(?<![-.,]){_NUMBER}{_OUT_OF}")
_NUMBER_BESIDE = re.compile(rf"[^\w\n]{{0,4}}[(\[]\s*{_NUMBER}{_OUT_OF}\s*[)\]]")
_MARKS = r"""[\s*_`"'“”‘’()\[\]<>]{0,6}"""


def _severity(said: str | None) -> float:
    """A severity from 1 to 5 out of "4", "4/5", "Major (4)" or "high"; NaN where that is unclear or off the scale."""
    line = next((row.strip() for row in (said or "")[:500].split("\n") if row.strip(" \t*_`|")), "").strip(' \t*_`|"')
    if match := _SEVERITY_NUMBER.match(line):
        value, top = _number(match)
        if top not in (0.0, 5.0) and not math.isnan(top):
            value = max(1.0, 5.0 * value / top) if value > 0 else 0.0
        return value if 1.0 <= value <= 5.0 else math.nan
    lowered = line.casefold().lstrip(" [<(*_\"'")
    for name in sorted(_SEVERITY_WORDS, key=len, reverse=True):
        if lowered.startswith(name) and not lowered[len(name) : len(name) + 1].isalpha():
            other = re.match(r"\W*(?:-|–|/|to\b|or\b)\W*(\w+)", lowered[len(name) :])
            value = _SEVERITY_WORDS[name]
            return math.nan if other and _SEVERITY_WORDS.get(other[1], value) != value else value
    return math.nan


def _number(match: re.Match[str]) -> tuple[float, float]:
    """A matched number and what it is out of."""
    top = 100.0 if match["percent"] else float(match["top"]) if match["top"] else math.nan
    return float(match["number"].replace(",", ".")), top


@lru_cache(maxsize=32)
def _label_pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the labels as a whole word."""
    words = sorted(map(re.escape, filter(None, labels)), key=len, reverse=True)
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(words) or '(?!)'})(?![^\W_])", re.IGNORECASE)


def _find_overall(body: str, seen: _Seen, labels: tuple[str, ...]) -> tuple[Annotation, list[str]]:
    """The overall label or number, without the errors: behind the last explicit "Overall", else the last "Score"."""
    places = seen.overalls or seen.scores[-1:]
    read = [parsed for start, end in places if (parsed := _read_overall(body, start, end, labels))]
    if not read:
        lines = [f"no single label of the scale in {_short(body[start:end], 60)}" for start, end in places[-1:]]
        return Annotation(), lines or ["no overall label"]
    different = {parsed.label if parsed.label is not None else parsed.number for parsed in read}
    several = [f"{len(different)} different overall labels, the last counts"] if len(different) > 1 else []
    return read[-1], several


def _read_overall(body: str, start: int, end: int, labels: tuple[str, ...]) -> Annotation | None:
    """The label or number at the beginning of body[start:end], and what follows as its explanation; None where there is
    none, or the choice of several ("Fair to Good")."""
    value, pattern = body[start : min(end, start + 2000)], _label_pattern(labels)
    first = re.match(r"[^\w\n]*(?:\n[^\w\n]*){0,3}", value)
    at = first.end() if first else 0
    number, top = math.nan, math.nan
    counted = _OVERALL_NUMBER.match(value, at)
    if counted:
        number, top = _number(counted)
        beside = re.match(r"[^\w\n]{0,6}", value[counted.end() :])
        at = counted.end() + (beside.end() if beside else 0)
    label = pattern.match(value, at)
    if label is None:
        rest = value[counted.end() :] if counted else ""
        return counted and Annotation((), None, start + counted.start("number"), number, top, rest)
    after = label.end()
    link = re.match(rf"{_MARKS}(?:/|\||-|–|\bto\b|\bor\b){_MARKS}", value[after : after + 60])
    if link and pattern.match(value, after + link.end()):
        return None
    if not counted and (counted := _NUMBER_BESIDE.match(value, after)):
        number, top = _number(counted)
        after = counted.end()
    name = next(name for name in labels if name.casefold() == label[0].casefold())
    return Annotation((), name, start + label.start(), number, top, value[after:])


# --- what is wrong with an answer, and small things -------------------------------------------------------------------


def _gaps(errors: Sequence[FoundError]) -> list[str]:
    """What errors lack."""
    counts = (
        ("severity that can be read", sum(math.isnan(e.severity) for e in errors)),
        ("location", sum(e.location == "" for e in errors)),
        ("explanation", sum(not e.explanation for e in errors)),
    )
    return [f"{n} {'error has' if n == 1 else 'errors have'} no {what}" for what, n in counts if n]


def _contradictions(
    errors: Sequence[FoundError], label: str | None, labels: Sequence[str], nothing: bool
) -> Iterator[str]:
    """Where the label contradicts the errors. They are left as they are."""
    number = f"{len(errors)} {'error' if len(errors) == 1 else 'errors'}"
    if nothing and errors:
        yield f"says that there is no error, but lists {number}"
    if label is not None and len(labels) > 1 and bool(errors) == (label == labels[-1]):
        yield f"{label} with {number}" if errors else f"{label} without any error"


#: Code fences and special tokens.
_NO_TEXT = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$|```[ \t]*$|<\|[\w-]{1,30}\|>|</?s>|<eos>", re.MULTILINE)


def _blanked(text: str) -> str:
    """Visible thoughts and code fences as blanks, at the same length: places in the text still hold."""
    end = max((m.end() for m in re.finditer(r"</think(?:ing)?>|<\|channel\|>final<\|message\|>", text)), default=0)
    opened = re.search(r"<think(?:ing)?>", text[end:])  # thoughts that never end
    stop = end + opened.start() if opened else len(text)
    return _NO_TEXT.sub(lambda m: " " * len(m[0]), " " * end + text[end:stop] + " " * (len(text) - stop))


def _prose(text: str) -> str:
    """An explanation on one line without markdown around it."""
    rows = [re.sub(r"^\s*(?:[-*•>#]+\s+)?", "", row) for row in text.split("\n") if re.search(r"\w", row)]
    words = re.sub(r"\*\*([^*]+)\*\*|(?<!\w)\*([^*]+)\*(?!\w)", r"\1\2", " ".join(" ".join(rows).split()))
    words = re.sub(r"</\w{1,20}>$", "", words).strip(" \t*_|#").lstrip(":–—-,;)]> ").strip()
    if words[:1] == "(" and words.endswith(")") and words.count("(") == 1:
        words = words[1:-1]
    quoted = QUOTED.fullmatch(words)
    return in_quotes(quoted) if quoted else words


def _short(text: str, most: int = 100) -> str:
    """The beginning of a text, quoted, for a message."""
    text = " ".join(text[: 4 * most].split())
    return repr(text if len(text) <= most else text[: most - 1] + "…")


def _unmarked(text: str) -> str:
    return re.sub(r"[\s\"'“”„‘’«»]+", "", text)
