"""Error spans that people marked, as character offsets into the outputs, whatever notation their file uses.

A file has one JSON object a line: {"id": …, "errors": [...]}. Several people have one line each with an "annotator". An
"output" beside the id is checked. An error has its place

- in characters: {"start", "end", "text"?}, the end exclusive, null or absent for an omission (the judge's own form);
- in tokens: {"start", "end", "tokens"?} from 1, the end inclusive, of the line's "tokenized" (RotoWire accuracy);
- in the text itself: {"target": "… <v>marked</v> …"}, without a mark for an omission (WMT's MQM).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from os import PathLike
from pathlib import Path
from typing import Any

from judgesmith.datasets.formats import open_table
from judgesmith.errors import LabelsError

#: What files call severities, on the scale 1..5 that judges use. The five names are those that OpeNLGauge's ablations
#: give the five numbers; MQM has all of them but "moderate", so that its Minor and Major lie two steps apart.
SEVERITIES: Mapping[str, float] = {
    "neutral": 1.0,
    "minor": 2.0,
    "moderate": 3.0,
    "major": 4.0,
    "critical": 5.0,
}
#: MQM's row for a text without errors; it marks nothing.
_NO_ERROR = re.compile(r"no[-_ ]?error", re.IGNORECASE)
_MARK = re.compile(r"<v>(.*?)</v>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Span:
    """An error that a person marked.

    start, end: code-point offsets into the output, end exclusive, both None for an omission without a place. severity:
    1 (hardly matters) to 5 (critical), NaN where the file gives none.
    """

    text: str
    start: int | None = None
    end: int | None = None
    severity: float = math.nan
    category: str = ""
    explanation: str = ""
    how: str | None = None


@dataclass(frozen=True, slots=True)
class SpanSet:
    """The marks of each person: person -> id of the output -> spans in the file's order; "" is a person without a name.

    A text that a person read and found without errors has an empty tuple; one that they did not read is absent.
    unplaced: ids whose marks are tokens of an output that was not given.
    """

    origin: str
    people: Mapping[str, Mapping[str, tuple[Span, ...]]]
    unplaced: tuple[str, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        """Return the ids of all outputs that anybody marked."""
        return frozenset(
            identity for marked in self.people.values() for identity in marked
        )


def read_spans(
    source: str | PathLike[str], outputs: Mapping[str, str] | None = None
) -> SpanSet:
    """Read marked spans and check every one of them against its text.

    Args:
        source: The file.
        outputs: Id -> the judged text. A text in the file must be the same; marks in tokens are placed in it.

    Raises:
        LabelsError: For a malformed line, a place outside the text, or a text that is not the marked one.
    """
    outputs = outputs or {}
    origin = Path(source).name
    people: dict[str, dict[str, tuple[Span, ...]]] = {}
    unplaced: dict[str, None] = {}
    for number, record in enumerate(open_table(source).records, 1):
        where = f"{origin}, record {number}"
        identity = record.get("id")
        if isinstance(identity, int) and not isinstance(identity, bool):
            identity = str(identity)
        if not isinstance(identity, str) or not identity:
            raise LabelsError(
                f'{where}: "id" is missing; it says which output is marked'
            )
        errors = record.get("errors")
        person = str(record.get("annotator", ""))
        if not isinstance(errors, list):
            raise LabelsError(
                f'{where}: "errors" must be a list, empty for a text without errors'
            )
        if identity in people.get(person, ()):
            who = f" by {person!r}" if person else ""
            raise LabelsError(
                f'{where}: {identity!r} is marked{who} twice; give each person an "annotator"'
            )
        own = record.get("output")
        text = outputs.get(identity)
        if isinstance(own, str):
            _same(own, own if text is None else text, identity, where)
            text = own
        if text is None and isinstance(record.get("tokenized"), str):
            unplaced[identity] = None
        else:
            people.setdefault(person, {})[identity] = tuple(
                _spans(errors, record, text, identity, where)
            )
    if not people and not unplaced:
        raise LabelsError(f"{origin}: there are no rows in it")
    return SpanSet(origin, people, tuple(unplaced))


def _same(marked: str, judged: str, identity: str, where: str) -> None:
    if marked == judged:
        return
    place = next(
        i
        for i, (first, second) in enumerate(zip_longest(marked, judged))
        if first != second
    )
    raise LabelsError(
        f"{where}: {identity!r} is marked in another text than the one that was judged; they differ from character"
        f" {place} on ({_short(marked[place:])} and {_short(judged[place:])}); judge the text that people marked"
    )


def _spans(
    errors: Sequence[Any],
    record: Mapping[str, Any],
    text: str | None,
    identity: str,
    where: str,
) -> Iterator[Span]:
    tokenized = record.get("tokenized")
    tokens: list[str] = tokenized.split() if isinstance(tokenized, str) else []
    places = None
    if isinstance(tokenized, str) and text is not None:
        places = _token_places(tokens, text)
        if places is None:
            raise LabelsError(
                f'{where}: "tokenized" of {identity!r} are not the words of the text that was judged; judge the text'
                " that people marked"
            )
    for error in errors:
        if not isinstance(error, Mapping):
            raise LabelsError(
                f"{where}: an error must be an object, not {type(error).__name__}"
            )
        severity = error.get("severity")
        if isinstance(severity, str) and _NO_ERROR.fullmatch(severity.strip()):
            continue
        if isinstance(error.get("target"), str):
            marked = _marked(error["target"], text, identity, where)
        elif error.get("start") is None and error.get("end") is None:
            marked = [(None, None, str(error.get("text") or ""))]
        elif places is not None and text is not None:
            marked = [_by_tokens(error, tokens, places, text, where)]
        else:
            marked = [_by_characters(error, text, identity, where)]
        for start, end, words in marked:
            nowhere = start is None or start == end
            if nowhere:
                start = end = None
            yield Span(
                text=words,
                start=start,
                end=end,
                severity=_severity(severity, where),
                category=str(error.get("category") or error.get("type") or ""),
                explanation=str(error.get("explanation") or error.get("comment") or ""),
                how="omission" if nowhere else "exact",
            )


def _severity(value: Any, where: str) -> float:
    if value is None or value == "":
        return math.nan
    name = value.strip().casefold() if isinstance(value, str) else value
    try:
        if isinstance(value, bool):
            number = math.nan
        else:
            number = SEVERITIES.get(name) or float(name)
    except (TypeError, ValueError):
        number = math.nan
    if not 1.0 <= number <= 5.0:
        raise LabelsError(
            f"{where}: severity {value!r} is neither a number from 1 to 5 nor one of {', '.join(SEVERITIES)}"
        )
    return number


def _marked(
    target: str, text: str | None, identity: str, where: str
) -> Sequence[tuple[int | None, int | None, str]]:
    """The places of <v>…</v> once the marks are taken out; (None, None, "") where there are none."""
    pieces = _MARK.split(
        target
    )  # what stands before a mark, what is marked, what stands behind it
    plain = "".join(pieces)
    ends = list(accumulate(map(len, pieces)))
    marked: list[tuple[int | None, int | None, str]] = [
        (end - len(words), end, words)
        for end, words in zip(ends[1::2], pieces[1::2], strict=True)
    ]
    if text is not None:
        _same(plain, text, identity, where)
    return marked or [(None, None, "")]


def _by_characters(
    error: Mapping[str, Any], text: str | None, identity: str, where: str
) -> tuple[int | None, int | None, str]:
    start = _whole(error, "start", where)
    end = _whole(error, "end", where)
    if text is None:
        raise LabelsError(
            f'{where}: the text of {identity!r} is not known; give the record its "output"'
        )
    if not 0 <= start <= end <= len(text):
        raise LabelsError(
            f"{where}: characters {start}..{end} do not lie in the {len(text)} of the text"
        )
    words = text[start:end]
    claimed = error.get("text")
    if isinstance(claimed, str) and claimed != words:
        raise LabelsError(
            f"{where}: characters {start}..{end} are {_short(words)} and not {_short(claimed)}; offsets count "
            "characters (code points) of the output from 0, the end exclusive"
        )
    return start, end, words


def _by_tokens(
    error: Mapping[str, Any],
    tokens: Sequence[str],
    places: Sequence[tuple[int, int]],
    text: str,
    where: str,
) -> tuple[int | None, int | None, str]:
    first = _whole(error, "start", where)
    last = _whole(error, "end", where)
    if not 1 <= first <= last <= len(tokens):
        raise LabelsError(
            f"{where}: tokens {first}..{last} are not among the {len(tokens)}; they count from 1"
        )
    words = " ".join(tokens[first - 1 : last])
    named = error.get("tokens")
    if isinstance(named, str) and named.split() != words.split():
        raise LabelsError(
            f"{where}: tokens {first}..{last} are {_short(words)} and not {_short(named)}; they count from 1, the end"
            " inclusive"
        )
    start = places[first - 1][0]
    end = places[last - 1][1]
    return start, end, text[start:end]


def _token_places(tokens: Sequence[str], text: str) -> list[tuple[int, int]] | None:
    """Return the places of the tokens in the text, None if they are not its words.

    Tokenisers part words and change punctuation, so that letters and digits must agree, but a mark that only one side
    has is passed over.
    """
    places = []
    at = 0
    for token in tokens:
        start = end = None
        for letter in token:
            while (
                at < len(text)
                and text[at] != letter
                and not text[at].isalnum()
                and (letter.isalnum() or text[at].isspace())
            ):
                at += 1
            if at < len(text) and text[at] == letter:
                pass
            elif letter.isalnum():
                return None
            elif at >= len(text) or text[at].isalnum():
                continue  # a mark that only the token has
            start = at if start is None else start
            at += 1
            end = at
        places.append((at, at) if start is None or end is None else (start, end))
    return None if any(letter.isalnum() for letter in text[at:]) else places


def _whole(error: Mapping[str, Any], key: str, where: str) -> int:
    value = error.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise LabelsError(
            f"{where}: {key} is {value!r}; a place needs whole numbers for both start and end"
        )
    return value


def _short(text: str, most: int = 30) -> str:
    return repr(text if len(text) <= most else text[: most - 1] + "…")
