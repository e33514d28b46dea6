"""Overall labels, numbers and severities in the words of an answer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from .fields import Seen
from .words import SEVERITY_WORDS, short

#: The categorical severities of the paper's ablation.
SEVERITIES: Mapping[str, float] = {"Neutral": 1.0, "Minor": 2.0, "Moderate": 3.0, "Major": 4.0, "Critical": 5.0}

_NUMBER = r"(?P<number>\d{1,4}(?:[.,]\d{1,4})?)(?![\d.,]*\d|[A-Za-z])"
_OUT_OF = r"(?:[ \t]*(?:/|(?:out[ \t]+)?of\b|von\b|sur\b|de\b|из\b)[ \t]*(?P<top>\d{1,4})|[ \t]*(?P<percent>%))?"
_RANGE = r"(?![ \t]*(?:-|–|~|to\b|or\b|bis\b|至|到)[ \t]*\d)"
_SEVERITY_NUMBER = re.compile(
    rf"(?:^[^\w-]*(?:(?i:level|grade|stufe)\s+)?|^[^\n()]{{0,40}}[(\[]\s*|^\W*[^\W\d]+\W{{0,3}}[-–:=,/→]\s*){_NUMBER}{_RANGE}{_OUT_OF}"
)
_SPELLED = {"one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0}


def read_severity(said: str | None, names: Mapping[str, float]) -> float:
    """A severity from 1 to 5 out of "4", "4/5", "Major (4)" or "high"; NaN where that is unclear or off the scale."""
    line = next((row.strip() for row in (said or "")[:500].split("\n") if row.strip(" \t*_`|")), "").strip(' \t*_`|"')
    if match := _SEVERITY_NUMBER.match(line):
        value = float(match["number"].replace(",", "."))
        top = 100.0 if match["percent"] else float(match["top"]) if match["top"] else 5.0
        if not 0 < value <= top:
            return math.nan
        value = value if top == 5.0 else max(1.0, 5.0 * value / top)
        return value if value >= 1.0 else math.nan
    lowered = line.casefold().lstrip(" [<(*_\"'")
    known = {name.casefold(): value for name, value in names.items()}
    for table in (known, {k.casefold(): v for k, v in SEVERITIES.items()}, SEVERITY_WORDS, _SPELLED):
        for name in sorted(table, key=len, reverse=True):
            if lowered.startswith(name) and not lowered[len(name) : len(name) + 1].isalpha():
                other = re.match(r"\W*(?:-|–|/|to\b|or\b|bis\b)\W*(\w+)", lowered[len(name) :])
                if other and other[1] in table and table[other[1]] != table[name]:
                    return math.nan
                return table[name]
    return math.nan


# --- the overall label ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Overall:
    """An overall score as it is said, at code point `start`; false where there is none. rest: what stands behind it."""

    label: str | None = None
    start: int | None = None
    number: float = math.nan
    top: float = math.nan
    rest: str = ""

    def __bool__(self) -> bool:
        return self.label is not None or not math.isnan(self.number)


_QUALIFIED = re.compile(
    r"\b(?:not|never|n't|very|almost|nearly|barely|less than|better than|worse than|than|below|above|between|"
    r"instead of|beyond|from|lowest|highest)(?:\s+(?:an?|quite|at|the|as|be|is|fully|really))*\s+[\"'“*_]*$",
    re.IGNORECASE,
)
_OVERALL_NUMBER = re.compile(rf"[^\w\n.,-]*(?<!\d){_NUMBER}{_RANGE}{_OUT_OF}")
_NUMBER_BESIDE = re.compile(rf"[^\w\n]{{0,4}}[(\[]\s*{_NUMBER}{_OUT_OF}\s*[)\]]")
_SPOKEN = re.compile(
    r"\b(?:overall|rate|rated|rating|score|scored|grade|label|assess|assessed|assessment|deserves?|consider|judged?|"
    r"evaluate[ds]?|evaluation|verdict|quality|bewerte|insgesamt|évalue|calific\w+|valoraci[oó]n)\b(?=([^\n]{0,160}))",
    re.IGNORECASE,
)


@lru_cache(maxsize=32)
def _label_pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the labels as a whole word; scripts without spaces have no such edges."""

    def bounded(label: str) -> str:
        spaced = re.sub(r"(?:\\[ -]|_|-)+", r"[ \\t_-]+", re.escape(label))
        before = r"(?<![^\W_])" if label[0] < "\u2e80" else ""
        return before + spaced + (r"(?![^\W_])" if label[-1] < "\u2e80" else "")

    return re.compile("|".join(map(bounded, sorted(filter(None, labels), key=len, reverse=True))) or r"(?!)", re.I)


def find_overall(body: str, seen: Seen, labels: tuple[str, ...]) -> tuple[Overall, list[str]]:
    """The overall label or number: behind the last explicit "Overall", else "Score", else in a sentence or alone."""
    problems: list[str] = []
    said = [_read_overall(body, start, end, labels) for start, end in seen.overalls]
    read = [entry for entry in said if entry]
    if read:
        for start, end, draft in seen.weak:
            if draft is not None and draft.severity is None:
                draft.severity = body[start:end]
    elif seen.weak:
        *others, (start, end, _) = seen.weak
        for before, after, draft in others:
            if draft is not None:
                draft.severity = body[before:after]
        read = [entry for entry in (_read_overall(body, start, end, labels),) if entry]
    if not read:
        read = [entry for entry in (_spoken(body, labels) or _alone(body, labels),) if entry]
    if not read:
        if seen.overalls or seen.weak:
            start, end = seen.overalls[-1] if seen.overalls else seen.weak[-1][:2]
            problems.append(f"no single label of the scale in {short(body[start:end], 60)}")
        else:
            problems.append("no overall label")
        return Overall(), problems
    different = {entry.label if entry.label is not None else entry.number for entry in read}
    if len(different) > 1:
        problems.append(f"{len(different)} different overall labels, the last counts")
    return read[-1], problems


def _read_overall(body: str, start: int, end: int, labels: tuple[str, ...]) -> Overall:
    """The label in body[start:end]: at its beginning, else the only one in its first lines. False where unclear."""
    value = body[start : min(end, start + 2000)]
    pattern = _label_pattern(labels)
    first = re.match(r"[^\w\n]*(?:\n[^\w\n]*){0,3}", value)
    at = first.end() if first else 0
    number, top, after = math.nan, math.nan, at
    if match := _OVERALL_NUMBER.match(value, max(0, at - 1)) or _OVERALL_NUMBER.match(value, at):
        number, top = _number(match)
        after = match.end()
        beside = re.match(r"[^\w\n]{0,6}", value[after:])
        label = pattern.match(value, after + (beside.end() if beside else 0))
        if label is None:
            return Overall(None, start + match.start("number"), number, top, value[after:])
    else:
        label = pattern.match(value, at)
    if label is not None:
        if _another(value, label.end(), pattern, label[0]):
            return Overall()
        after = max(after, label.end())
        if math.isnan(number) and (match := _NUMBER_BESIDE.match(value, after)):
            number, top = _number(match)
            after = match.end()
        return Overall(_named(label[0], labels), start + label.start(), number, top, value[after:])
    return _in_sentence(value, start, labels)


def _number(match: re.Match[str]) -> tuple[float, float]:
    """A matched number and what it is out of."""
    top = 100.0 if match["percent"] else float(match["top"]) if match["top"] else math.nan
    return float(match["number"].replace(",", ".")), top


def _another(value: str, end: int, pattern: re.Pattern[str], label: str) -> bool:
    """Whether a second label follows as an alternative: "Fair to Good", "Fair/Good", "Poor | Fair | Good"."""
    link = re.match(
        r"[\s*_`\"'”’)\]>]{0,6}(?:/|\||-|–|,|\bto\b|\bor\b|\bbis\b|\boder\b|\bou\b|\bo\b|或|到)[\s*_`\"'“‘(\[<]{0,6}(?:maybe\s+)?",
        value[end : end + 60],
    )
    if link is None:
        return False
    other = pattern.match(value, end + link.end())
    return (
        other is not None
        and other[0].casefold() != label.casefold()
        and re.match(r"[\s*_`\"'”’)\]>.]*(?:$|[\n;,(|/])", value[other.end() :]) is not None
    )


def _in_sentence(value: str, start: int, labels: tuple[str, ...], *, any_case: bool = True) -> Overall:
    """The only label that a sentence names; its own capitals count more than an adjective ("good")."""
    line = value.strip().split("\n")[0]
    offset = value.find(line)
    found = [
        match
        for match in _label_pattern(labels).finditer(line)
        if not _QUALIFIED.search(line[max(0, match.start() - 40) : match.start()])
    ]
    exact = [m for m in found if m[0] in labels]
    for matches in (exact, found if any_case else []):
        if matches and len({m[0].casefold() for m in matches}) == 1:
            match = matches[0]
            return Overall(_named(match[0], labels), start + offset + match.start(), rest="")
        if matches:
            break
    return Overall()


def _spoken(body: str, labels: tuple[str, ...]) -> Overall:
    """ "I would rate this as Good." The last such sentence counts."""
    last = Overall()
    found: set[str | None] = set()
    for match in list(_SPOKEN.finditer(body))[-50:]:
        sentence = re.split(r"[.!?](?=\s)", match[1])[0]
        entry = _in_sentence(sentence, match.start(1), labels, any_case=False)
        if not entry:
            quoted = re.search(r"\b(?:as|is|a|an|of|:)\s+[\"'“*]*(?=\w)", sentence)
            if quoted and (label := _label_pattern(labels).match(sentence, quoted.end())):
                entry = Overall(_named(label[0], labels), match.start(1) + label.start())
        if entry:
            last = entry
            found.add(entry.label)
    return last if len(found) == 1 else Overall()


def _alone(body: str, labels: tuple[str, ...]) -> Overall:
    """A label, or a number, that stands alone in the last line, or else in the first."""
    lines = [(m.start(), m[0]) for m in re.finditer(r"[^\n]*\S[^\n]*", body)]
    for start, line in [*lines[-1:], *lines[:1]]:
        bare = line.strip(" \t*_`\"'“”.#>-[](){}!|")
        bare = re.sub(r"^\\boxed\{(?:\\text\{)?", "", bare)
        label = _label_pattern(labels).fullmatch(bare)
        if label:
            return Overall(_named(bare, labels), start + line.find(bare))
    return Overall()


def _named(said: str, labels: tuple[str, ...]) -> str:
    """The label in its own spelling."""

    def key(text: str) -> str:
        return re.sub(r"[\s_-]+", " ", text).casefold()

    return next((label for label in labels if key(label) == key(said)), said)
