"""The fields of an answer with error annotations: which text stands behind which name, in lines, tables or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import json_repair

from .words import FIELD, FIELD_OF_CELL, NOTHING, NOWHERE


@dataclass(slots=True)
class Draft:
    """An error as far as its fields were seen. header: it began with "Error 1" or the like."""

    start: int
    header: bool = False
    title: str = ""
    places: list[str] = field(default_factory=list)
    why: str = ""
    severity: str | None = None


@dataclass(slots=True)
class Seen:
    """The fields of an answer. overalls, weak: code-point ranges of what stands behind "Overall:", and behind a bare
    "Score:", with the error in which it stands."""

    drafts: list[Draft] = field(default_factory=list)
    overalls: list[tuple[int, int]] = field(default_factory=list)
    weak: list[tuple[int, int, Draft | None]] = field(default_factory=list)
    reason: str = ""
    nothing: bool = False


def read_fields(body: str) -> Seen:
    """The fields of an answer in JSON or in lines."""
    return _json_fields(body) or _line_fields(body)


def _line_fields(body: str) -> Seen:
    """Sort the parts of an answer by the labels before them, whatever their order."""
    seen = Seen()
    body = _take_tables(body, seen)
    matches = list(FIELD.finditer(body))
    seen.nothing = NOTHING.search(body[: matches[0].start()] if matches else body) is not None
    draft: Draft | None = None
    in_overall = False
    before = ""
    for index, match in enumerate(matches):
        start = match.end()
        end = matches[index + 1].start() if index + 1 < len(matches) else len(body)
        value = body[start:end]
        following = matches[index + 1] if index + 1 < len(matches) else None
        if following is not None and following["line"] is None:
            value = value.rstrip(" \t,;|-–—")  # what separates fields on one line
        kind = match.lastgroup or ""
        if kind == "error" and value.strip() and draft is not None and draft.places and not draft.why:
            kind = "why"  # "Error: the year is wrong", behind a location
        elif kind == "numbered":
            kind = "error"
        at = match.start() + len(match["line"] or "")
        if draft is not None and not in_overall:
            new = kind in ("error", "location", "severity", "why") and _begins_another(draft, kind, before)
        elif kind == "why" and not in_overall and following is not None:
            # An explanation first: of an error if a place or a severity follows, of the score otherwise.
            new = following.lastgroup in ("location", "severity")
        else:
            new = kind in ("error", "location", "severity")
        if new:
            draft = Draft(at, header=kind == "error")
            seen.drafts.append(draft)
            in_overall = False
        if kind == "error" and draft is not None:
            draft.title = value
        elif kind == "location" and draft is not None:
            draft.places.append(value)
        elif kind == "severity" and draft is not None:
            draft.severity = value if draft.severity is None else draft.severity
        elif kind == "why" and draft is not None and not in_overall:
            draft.why = f"{draft.why}\n{value}" if draft.why else value
        elif kind in ("why", "overall_why"):
            seen.reason, said_none = _before_nothing(value)
            seen.nothing = seen.nothing or said_none
        elif kind == "overall":
            seen.overalls.append((start, end))
            in_overall = True
        elif kind == "weak":
            open_error = draft if draft is not None and not in_overall and draft.severity is None else None
            seen.weak.append((start, end, open_error))
            in_overall = in_overall or open_error is None
        if kind in ("heading", "overall") and (NOTHING.search(value) or (kind == "heading" and is_none(value))):
            seen.nothing = True
        before = kind
    return seen


def _before_nothing(value: str) -> tuple[str, bool]:
    """A text up to a later line that says "No Error", and whether there is one."""
    first, _, rest = value.partition("\n")
    found = NOTHING.search(rest)
    return (f"{first}\n{rest[: found.start()]}", True) if found else (value, False)


def _begins_another(draft: Draft, kind: str, before: str) -> bool:
    """Whether a field belongs to a new error: its own stands there already, and no header says otherwise."""
    if kind == "error":
        return True
    if kind == "location":
        return bool(draft.places) and not (draft.header and not draft.why and draft.severity is None)
    if draft.header or before == kind:
        return False
    return bool(draft.why) if kind == "why" else draft.severity is not None


def is_none(value: str) -> bool:
    first = value.strip().split("\n")[0]
    return NOWHERE.fullmatch(first) is not None and re.search(r"[^\W_]|^\W*[-–—]+\W*$", first) is not None


def _take_tables(body: str, seen: Seen) -> str:
    """Read the rows of markdown tables whose head names fields; returns the answer with blanks in their place."""
    if body.count("|") < 4:
        return body
    kept: list[str] = []
    columns: list[str] = []
    place = 0
    for line in body.splitlines(keepends=True):
        cells = [c.strip(" \t*_`\r\n") for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))] if "|" in line else []
        kinds = [m.lastgroup or "" if (m := FIELD_OF_CELL.fullmatch(c)) else "" for c in cells]
        if "location" not in kinds:
            kinds = ["location" if kind == "error" else kind for kind in kinds]
        taken = len(set(kinds) - {"", "error"}) >= 2
        if taken:
            columns = kinds
        elif len(cells) > 1 and columns:
            taken = True
            found = {k: c.replace("\\|", "|") for k, c in zip(columns, cells, strict=False) if k and c}
            if not all(re.fullmatch(r"[\s:=-]*", c) for c in cells) and found:
                draft = Draft(place, why=found.get("why", ""), severity=found.get("severity"))
                draft.places = [found["location"]] if "location" in found else []
                seen.drafts.append(draft)
        else:
            columns = []
        kept.append(re.sub(r"[^\r\n]", " ", line) if taken else line)
        place += len(line)
    return "".join(kept)


# --- JSON ------------------------------------------------------------------------------------------------------------

_JSON_KEY = re.compile(
    r"""["'](?:(?:error_?)?(?:location|span)s?|errors?|severity|explanation|overall[\w ]*|score|label)["']\s*:"""
)
_JSON_BEGIN = re.compile(r"""[{\[](?=\s*["'{\[\]}])""")
_JSON_OVERALL = re.compile(
    r"""["'](?:overall|final|score|label|rating|verdict|assessment)(?:(?!reason|explan|justif)[\w ]){0,30}["']"""
    r"""\s*:\s*["']?(?=[^\s"'{\[])""",
    re.IGNORECASE,
)
_KEYS = {
    "location": ("location", "error_location", "span", "error_span", "text", "quote", "place", "locations", "spans"),
    "why": ("explanation", "reason", "description", "comment", "justification", "error_explanation", "message"),
    "severity": ("severity", "severity_level", "severity_score", "level", "error_severity"),
}
_REASONS = ("reason", "explanation", "overall_explanation", "overall_reason", "justification", "explanation_of_score")
_REPAIRABLE = 50_000  # characters; repairing broken JSON takes more than linear time


def _json_fields(body: str) -> Seen | None:
    """The fields of an answer in JSON (also several objects, or broken ones); None where it is something else."""
    begin = _JSON_BEGIN.search(body)
    if begin is None or _JSON_KEY.search(body) is None:
        return None
    decoder = json.JSONDecoder(strict=False)
    begin_at = begin.start()
    values: list[Any] = []
    while begin is not None:
        try:
            value, end = decoder.raw_decode(body, begin.start())
        except (ValueError, RecursionError):
            values.append(_repaired(body[begin.start() :]))
            break
        values.append(value)
        begin_at = end
        begin = _JSON_BEGIN.search(body, end)
    seen = Seen()
    place = 0
    for entry in _objects(values):
        entry = {re.sub(r"[\s-]+", "_", str(k)).casefold(): v for k, v in entry.items()}
        found = {kind: next((entry[n] for n in names if n in entry), None) for kind, names in _KEYS.items()}
        said = [v for v in (found["location"], found["severity"]) if isinstance(v, str | int | float | list)]
        if said and not any(isinstance(entry.get(n), list) for n in ("errors", "annotations", "issues")):
            places = found["location"] if isinstance(found["location"], list) else [found["location"]]
            severity = found["severity"]
            draft = Draft(place, why=_as_text(found["why"]), severity=None if severity is None else _as_text(severity))
            draft.places = [f'"{p}"' if '"' not in p else p for p in map(_as_text, places) if p]
            for words in map(_as_text, places[:1]):
                # Where it stands in the answer, for reading on from there; escapes may hide it.
                place = max(place, body.find(words, place))
            draft.start = place
            seen.drafts.append(draft)
        else:
            reason = next((entry[n] for n in _REASONS if isinstance(entry.get(n), str)), "")
            seen.reason = reason or seen.reason
            errors = next((entry[n] for n in ("errors", "annotations", "issues", "error") if n in entry), ...)
            if errors in ([], None) or (isinstance(errors, str) and NOTHING.match(errors)):
                seen.nothing = True
    seen.nothing = seen.nothing and not seen.drafts  # a broken beginning looks like an empty list
    for match in _JSON_OVERALL.finditer(body):
        seen.overalls.append((match.end(), min(len(body), match.end() + 80)))
    if not seen.overalls and (seen.drafts or seen.nothing):
        # A list in JSON, the overall score in a line after it.
        lines = _line_fields(body[begin_at:])
        seen.overalls = [(a + begin_at, b + begin_at) for a, b in lines.overalls]
        seen.reason = seen.reason or lines.reason
    return seen if seen.drafts or seen.overalls or seen.nothing else None


def _repaired(text: str) -> Any:
    """What can be read of broken JSON. Repairing takes more than linear time: of a long answer, object by object."""
    if len(text) > _REPAIRABLE:
        pieces = [match[0] for match in re.finditer(r"\{[^{}]{1,5000}\}?", text)]
        return [_repaired(piece) for piece in pieces]
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    try:
        return json_repair.loads(text)
    except Exception:  # whatever a repair of anything may raise, there is no JSON then
        return None


def _objects(values: list[Any]) -> Iterator[dict[Any, Any]]:
    """All objects inside, the outer before the inner, in the answer's order; without recursion."""
    left = values[::-1]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield value
            left += list(value.values())[::-1]
        elif isinstance(value, list):
            left += value[::-1]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
