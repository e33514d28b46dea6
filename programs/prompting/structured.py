"""Inputs that are data and not prose: recognised, and laid out so that a model and a reader can find their way in them.

Systems that put data into words are given JSON, attributes with values, RDF triples, CSV, linearised tables or dialogue
acts (all but the last: OpeNLGauge, Kartáč et al. 2025, table 5). `read_structured` takes a text for data only if all of
it has one such form and nothing suggests prose, a conversation or program code; in doubt it does not. The listing keeps
every value; names lose underscores and camel case ("eatType" becomes "eat type") unless two would become one.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

__all__ = ["Format", "Structured", "read_structured"]

Format = Literal["json", "attribute-value", "rdf", "csv", "linearised table", "dialogue act"]

_DEEPEST = 32  # levels of nesting that are still laid out
_NAME = re.compile(r"[^\W\d_][\w %/#+-]{0,39}")  # what an attribute may be called
_PREDICATE = re.compile(r"[a-z][\w-]*")
_CAMEL = re.compile(r"[a-z]+\d*(?:[A-Z][a-z0-9]*)+")
_NUMBER = re.compile(r"[-+]?[$€£¥]?\d[\d.,:/-]*\s?%?")
_DIGIT = re.compile(r"[-+($€£¥]?\d")


@dataclass(frozen=True, slots=True)
class Structured:
    """A text that is data. lines: the listing, one entry a line, deeper ones indented by two spaces."""

    format: Format
    lines: tuple[str, ...]

    def show(self) -> str:
        """The listing as one text."""
        return "\n".join(self.lines)


def read_structured(text: str) -> Structured | None:
    """The data that a text holds, or None for a text that is to be shown as it is. Never raises; takes linear time."""
    stripped = text.strip()
    if len(stripped) < 3:
        return None
    for read in _READERS:
        found = read(stripped)
        if found is not None:
            return found
    return None


# JSON ----------------------------------------------------------------------------------------------------------------


class _Literal(str):
    """A number, true, false or null, in the spelling of the text."""


class _Object(list[tuple[str, Any]]):
    """An object as its pairs, so that a key that stands twice is not lost."""


def _json(text: str) -> Structured | None:
    if text[0] not in "{[":
        return None
    data = _loaded(text)
    if data is None and text[0] == "{":  # one object a line
        rows = [_loaded(line) for line in text.splitlines() if line.strip()]
        data = rows if len(rows) > 1 and all(isinstance(row, _Object) for row in rows) else None
    if not data or not (isinstance(data, _Object) or len(data) > 1 or isinstance(data[0], list)):
        return None  # [1] is rather a reference to a footnote
    lines: list[str] = []
    # A stack instead of recursion, and entries in their order: (depth, name, value).
    stack = [(0, name, value) for name, value in reversed(_entries(data))]
    while stack:
        depth, name, value = stack.pop()
        if depth > _DEEPEST:
            return None
        if isinstance(value, list) and value:
            lines.append(f"{'  ' * depth}- {name}:")
            stack += [(depth + 1, inner, below) for inner, below in reversed(_entries(value))]
        else:
            lines.append(f"{'  ' * depth}- {name}: {_json_value(value)}")
    return Structured("json", tuple(lines))


def _loaded(text: str) -> list[Any] | None:
    def literal(spelling: str) -> _Literal:
        return _Literal(spelling)

    try:
        data = json.loads(
            text, parse_int=literal, parse_float=literal, parse_constant=literal, object_pairs_hook=_Object
        )
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, list) else None


def _entries(data: list[Any]) -> list[tuple[str, Any]]:
    if isinstance(data, _Object):
        names = _readable([name for name, _ in data])
        return [(_quoted(names[name], ":\n"), value) for name, value in data]
    return [(str(place), value) for place, value in enumerate(data, 1)]


def _json_value(value: Any) -> str:
    if isinstance(value, _Object):
        return "{}"
    if isinstance(value, list):
        return "[]"
    if isinstance(value, _Literal):
        return str(value)
    if isinstance(value, str):
        # What could be taken for a number or for null keeps its quotes.
        alike = value in ("true", "false", "null", "{}", "[]") or _NUMBER.fullmatch(value)
        return json.dumps(value, ensure_ascii=False) if alike else _quoted(value, "\n")
    return json.dumps(value)  # true, false, null


# Tagged text: ToTTo and other linearised tables ----------------------------------------------------------------------

_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)>")
#: Tags of web pages, of speakers and of tokenisers: what stands between them is prose.
_PROSE_TAGS = re.compile(
    r"""html|head|body|title|p|br|hr|b|i|u|em|strong|a|ul|ol|li|div|span|h[1-6]|img|tr|td|th|tbody|thead|pre|code|sup|sub
    |blockquote|speaker\w*|user|assistant|system|bot|human|agent|customer|turn|utterance|think|thinking|reasoning|answer
    |s|sep|eos|bos|pad|unk|cls|mask|end|eot|v""",
    re.IGNORECASE | re.VERBOSE,
)


def _tagged(text: str) -> Structured | None:
    if text[0] != "<":
        return None
    tags = list(_TAG.finditer(text))
    names = {tag[2] for tag in tags}
    if not tags or tags[0].start() != 0 or len(names) < 2 or any(_PROSE_TAGS.fullmatch(name) for name in names):
        return None
    closed = {tag[2] for tag in tags if tag[1]}
    readable = _readable(sorted(names))
    lines: list[str] = []
    opened: list[str] = []
    for tag, after in zip(tags, [*tags[1:], None], strict=True):
        words = " ".join(text[tag.end() : after.start() if after else len(text)].split())
        name = tag[2]
        # Tags that never close may be blanks of a template ("<person> went to <city>"), others have attributes: markup.
        if re.search(r"</?[A-Za-z]", words) or (not closed and (not words or _is_spoken(words))):
            return None
        if not tag[1]:
            if len(opened) > _DEEPEST:
                return None
            lines.append(f"{'  ' * len(opened)}- {readable[name]}:{' ' if words else ''}{words}")
            if name in closed:
                opened.append(name)
            continue
        if name not in opened:
            return None
        while opened.pop() != name:
            pass
        if words:
            lines.append(f"{'  ' * len(opened)}- {words}")
    return Structured("linearised table", tuple(lines))


# Dialogue acts -------------------------------------------------------------------------------------------------------

_ACT = re.compile(r"\??(?:inform|confirm|request|reqmore|reqalts|select|suggest|recommend|goodbye)[\w-]*")
_BETWEEN_ACTS = re.compile(r"\s*[&|;,]?\s*")
_SLOT = re.compile(r"[\w./-]+(?: [\w./-]+)*")


def _dialogue_act(text: str) -> Structured | None:
    """inform(name='The Eagle',food=french)"""
    lines: list[str] = []
    at = 0
    while at < len(text):
        act = _ACT.match(text, at)
        if act is None or text[act.end() : act.end() + 1] != "(":
            return None
        slots, at = _slots(text, act.end() + 1)
        if slots is None:
            return None
        names = _readable([name for name, _ in slots])
        lines.append(f"- {act[0]}{':' if slots else ''}")
        lines += [f"  - {names[name]}" + ("" if value is None else f": {_value(value)}") for name, value in slots]
        gap = _BETWEEN_ACTS.match(text, at)
        at = gap.end() if gap else at
    return Structured("dialogue act", tuple(lines))


def _slots(text: str, start: int) -> tuple[list[tuple[str, str | None]] | None, int]:
    """The slots of an act, each with its value or None, and where the text goes on; None for anything else."""
    slots: list[tuple[str, str | None]] = []
    quote = ""
    begin = start
    for at in range(start, len(text)):
        letter = text[at]
        if quote:
            # The apostrophe of "joe's" ends nothing.
            if letter == quote and text[at + 1 : at + 2] in ("", ",", ";", ")", " "):
                quote = ""
        elif letter in "'\"":
            if text[at - 1] != "=":
                return None, at
            quote = letter
        elif letter == "(":
            return None, at
        elif letter in ",;)":
            name, equals, value = text[begin:at].partition("=")
            name, value, begin = name.strip(), value.strip(), at + 1
            if letter == ")" and not slots and not name and not equals:
                return [], at + 1
            if not _SLOT.fullmatch(name):
                return None, at
            if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
                value = value[1:-1]
            slots.append((name, value if equals else None))
            if letter == ")":
                return slots, at + 1
    return None, len(text)


# Attributes with values ----------------------------------------------------------------------------------------------


_TYPES = frozenset({"int", "str", "float", "bool", "bytes", "object", "Any", "None", "T"})


def _bracketed(text: str) -> Structured | None:
    """name[The Eagle], food[French]"""
    if text[-1] != "]":
        return None
    pairs: list[tuple[str, str]] = []
    for part in text[:-1].split("]"):
        name, bracket, value = part.partition("[")
        if pairs:
            name = name.lstrip()
            if name[:1] not in (",", ";") and "\n" not in part.partition("[")[0]:
                return None
        name = name.strip(",; \t\r\n")
        if not bracket or "[" in value or not _NAME.fullmatch(name) or len(name.split()) > 4:
            return None
        pairs.append((name, value.strip()))
    # "as shown[1], but not always[2]" are references, x[0], y[1] and list[str], set[int] are program code.
    if len(pairs) < 2 or all(value.isdigit() or not value or value in _TYPES for _, value in pairs):
        return None
    return _attributes(pairs)


def _piped(text: str) -> Structured | None:
    """name: The Eagle | food: French"""
    if "\n" in text or "|" not in text:
        return None
    pairs = [_pair(part) for part in text.strip("| ").split("|")]
    found = [pair for pair in pairs if pair is not None]
    return _attributes(found) if len(found) == len(pairs) > 1 else None


#: Who speaks, in transcripts.
_SPEAKERS = re.compile(
    r"""[A-Za-z]|user|assistant|system|human|bot|ai|agent|customer|client|interviewer|interviewee|question|answer|caller
    |operator|doctor|patient|teacher|student|host|guest|man|woman|boy|girl|him|her|me|you|he|she|narrator|note|dear\ .*
    |(?:speaker|person|user|turn|participant|usr|sys|agent|wizard|apprentice)[\s_-]*\w{0,2}""",
    re.IGNORECASE | re.VERBOSE,
)
#: What somebody says to somebody, or a sentence.
_SPOKEN = re.compile(
    r"""[?!…]|(?<=[^\W\d]{3})[.]$|[;{}]$
    |(?:(?<![^\s"“‘(,.;:/—])|(?<=\s')|(?<=^'))  # a word of its own: "Q-I" and "Q'DO" are names
    (?:i|i'm|you|we|us|my|your|our|hi|hello|hey|thanks|thank|please|sorry|yeah|okay|ok
    |is|are|was|were|am|has|have|had|will|would|can|could|should|did|does|do|don't)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_MOST_WORDS = 15  # of a value


def _lined(text: str) -> Structured | None:
    """name: The Eagle, one a line"""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return None
    pairs = []
    for line in lines:
        pair = _pair(line)
        if pair is None or "|" in pair[1]:
            return None
        pairs.append(pair)
    names = [name for name, _ in pairs]
    # Attributes stand once, speakers come again; two lines prove little unless a name is an identifier.
    if len(set(names)) < len(names) or (len(pairs) < 3 and not any("_" in n or _CAMEL.fullmatch(n) for n in names)):
        return None
    return _attributes(pairs)


def _pair(part: str) -> tuple[str, str] | None:
    """The attribute and value of `name: value`, None where it could as well be speech."""
    name, colon, value = part.partition(": ")
    name, value = re.sub(r"^[-*•]\s+", "", name.strip()), value.strip()
    if not colon or not value or not _NAME.fullmatch(name) or len(name.split()) > 4 or _SPEAKERS.fullmatch(name):
        return None
    return None if _is_spoken(value) else (name, value)


def _is_spoken(value: str) -> bool:
    words = len(value.split())
    sentence = words >= 4 and value.rstrip("\"”'’)").endswith(".")  # fewer may be initials, or "St. Ann's St."
    return words > _MOST_WORDS or sentence or _SPOKEN.search(value) is not None


def _attributes(pairs: Sequence[tuple[str, str]]) -> Structured:
    names = _readable([name for name, _ in pairs])
    return Structured("attribute-value", tuple(f"- {names[name]}: {_value(value)}" for name, value in pairs))


# RDF triples ---------------------------------------------------------------------------------------------------------

Triple = tuple[str, str, str]


def _bracketed_triples(text: str) -> Structured | None:
    """(The_Eagle, area, riverside)"""
    if text[0] not in "([" or text[-1] not in ")]":
        return None
    inner = text[1:-1] if text[0] == "[" and text[-1] == "]" else text
    triples: list[Triple] = []
    depth, start, quote = 0, 0, False
    for at, letter in enumerate(inner):
        if letter == '"' and depth:
            quote = not quote
        elif quote:
            continue
        elif letter == "(":
            depth += 1
            start = at + 1 if depth == 1 else start
        elif letter == ")":
            depth -= 1
            if depth < 0:
                return None
            if depth == 0:
                triple = _triple(re.split(r",\s+|,(?=\")", inner[start:at], maxsplit=2))
                if triple is None:
                    return None
                triples.append(triple)
        elif depth == 0 and not (letter.isspace() or letter in ",;"):
            return None
    if depth or quote or not triples:
        return None
    return _listing(triples) if _is_graph(triples) or _shares_subject(triples) else None


def _piped_triples(text: str) -> Structured | None:
    """The_Eagle | area | riverside, one a line"""
    triples = []
    for line in text.splitlines():
        if line.strip():
            triple = _triple(line.split("|"))
            if triple is None:
                return None
            triples.append(triple)
    # A table of three columns looks the same but for this.
    sure = _is_graph(triples) if len(triples) == 1 else _has_identifiers(triples) or _shares_subject(triples)
    return _listing(triples) if sure else None


def _quoted_triples(text: str) -> Structured | None:
    """ "The_Eagle area riverside", one a line"""
    if text[0] != '"' or text[-1] != '"':
        return None
    triples = []
    for part in re.split(r'"(?:\s*[,;])?\s*"', text[1:-1]):
        triple = _triple(part.split(None, 2))
        if triple is None:
            return None
        triples.append(triple)
    camel = len(triples) > 1 and all(_CAMEL.fullmatch(triple[1]) for triple in triples)
    return _listing(triples) if camel or all("_" in triple[0] + triple[2] for triple in triples) else None


def _triple(parts: Sequence[str]) -> Triple | None:
    if len(parts) != 3:
        return None
    subject, predicate, value = (part.strip() for part in parts)
    predicate = predicate.strip('"')
    if not subject or not value or not _PREDICATE.fullmatch(predicate) or "\n" in subject + value:
        return None
    return subject, predicate, value


def _has_identifiers(triples: Sequence[Triple]) -> bool:
    return any("_" in "".join(triple) or _CAMEL.fullmatch(triple[1]) for triple in triples)


def _shares_subject(triples: Sequence[Triple]) -> bool:
    return len({subject for subject, _, _ in triples}) < len(triples)


def _is_graph(triples: Sequence[Triple]) -> bool:
    """Whether names are of the kind that graphs have: (red, or, green) and `ls | sort | uniq` are none."""
    things = (thing.strip('"') for subject, _, value in triples for thing in (subject, value))
    return _has_identifiers(triples) or not any(thing[:1].islower() for thing in things)


def _listing(triples: Sequence[Triple]) -> Structured:
    """Triples by subject, in the order in which subjects first come."""
    names = _readable([predicate for _, predicate, _ in triples])
    by_subject: dict[str, list[str]] = {}
    for subject, predicate, value in triples:
        by_subject.setdefault(subject, []).append(f"  - {names[predicate]}: {_entity(value)}")
    lines = [line for subject, below in by_subject.items() for line in (f"- {_entity(subject)}", *below)]
    return Structured("rdf", tuple(lines))


def _entity(name: str) -> str:
    if len(name) > 1 and name[0] == name[-1] == '"' and '"' not in name[1:-1]:
        name = name[1:-1]
    spoken = name.replace("_", " ").strip() if re.search(r"[^\W\d_]", name) and " " not in name else name
    return _value(spoken or name)


# Tables --------------------------------------------------------------------------------------------------------------


def _tables(text: str) -> Structured | None:
    """Lines of cells between bars, and their captions as `name: value` lines (RotoWire written as text)."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    rows = [_cells(line) for line in lines]
    if len(rows) < 2 or any(_is_code(cell) for row in rows for cell in row):
        return None
    listing: list[str] = []
    sure = False
    # Tables are runs of lines with equally many cells; a line that has a name is a table of its own.
    for (width, named), run in groupby(rows, key=lambda row: (len(row), ": " in row[0])):
        block = list(run)
        if named:
            for row in block:
                name, _, first = row[0].partition(": ")
                if not _NAME.fullmatch(name) or _SPEAKERS.fullmatch(name) or (width == 1 and _is_spoken(first)):
                    return None
                listing.append(f"- {name}: {'; '.join(_value(cell, ';') for cell in (first.strip(), *row[1:]))}")
        elif width == 1:
            return None
        else:
            sure = sure or (len(block) > 1 and (width > 2 or _header(block) is not None))
            listing += _rows(block)
    plain = all(": " not in row[0] for row in rows)
    return Structured("csv" if plain else "linearised table", tuple(listing)) if sure else None


def _is_code(cell: str) -> bool:
    return cell[-1:] in ("{", ";") or " = " in cell or any(cell.count(a) != cell.count(b) for a, b in _BRACKETS)


_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))


def _cells(line: str) -> list[str]:
    body = line.removeprefix("|").removesuffix("|") if line[0] == "|" else line
    return [cell.strip() for cell in body.split("|")]


def _csv(text: str) -> Structured | None:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return None
    for delimiter in ("\t", ";", ","):
        if delimiter not in lines[0]:
            continue
        try:
            rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter, strict=True)]
        except csv.Error:
            continue
        if len(rows) == len(lines) and _is_table(rows, lines, delimiter):
            return Structured("csv", tuple(_rows(rows)))
    return None


def _is_table(rows: Sequence[Sequence[str]], lines: Sequence[str], delimiter: str) -> bool:
    width = len(rows[0])
    if width < 2 or any(len(row) != width for row in rows):
        return False
    # Verses and other lines with equally many commas: sentences, calls, numbers such as 1,000.
    if any(_is_code(cell) or re.search(r"[?!]|(?<=[^\W\d_]{2})\.$", cell) for row in rows for cell in row):
        return False
    if delimiter == "," and all("," not in re.sub(r"(?<=\d),(?=\d{3}\b)", "", line) for line in lines):
        return False
    if delimiter != "\t" and any(f"{delimiter} " in line for line in lines):
        return _header(rows) is not None
    numeric = any(all(_NUMBER.fullmatch(row[column]) for row in rows[1:]) for column in range(width))
    return (numeric and len(rows) > 2) or (width > 2 and (numeric or len(rows) > 2))


def _rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row: its cells with the columns' names where the first row has them, else in their order."""
    found = _header(rows)
    if found is None:
        return [f"- row {n}: {' | '.join(_value(cell, '|') for cell in row)}" for n, row in enumerate(rows, 1)]
    header, body = found
    names = _readable([name for name in header if name])
    columns = [_column(names.get(name, name), [row[i] for row in body]) for i, name in enumerate(header)]
    return [f"- row {n}: {'; '.join(cells)}" for n, cells in enumerate(zip(*columns, strict=True), 1)]


def _header(rows: Sequence[Sequence[str]]) -> tuple[Sequence[str], Sequence[Sequence[str]]] | None:
    """The names of the columns and the rows below, None where nothing shows that the first row has names.

    It shows by Markdown's line of dashes, or by a column that is words in the first row and numbers in all others.
    """
    if len(rows) > 2 and all(re.fullmatch(r":?-{2,}:?|:-:?|-:", cell) for cell in rows[1]):
        return rows[0], rows[2:]
    head, body = rows[0], rows[1:]
    if not body or len(set(head)) < len(head) or any(not cell or _NUMBER.fullmatch(cell) for cell in head):
        return None
    numbers = any(not _DIGIT.match(name) and all(_DIGIT.match(row[i]) for row in body) for i, name in enumerate(head))
    return (head, body) if numbers else None


def _column(name: str, cells: Sequence[str]) -> list[str]:
    """`name: cell` for each row. Several abbreviations over as many numbers in every cell are taken apart."""
    words = name.split()
    parts = [cell.split() for cell in cells]
    numbers = all(_shape(part) == _shape(words) and all(re.search(r"\d|^-$", v) for v in part) for part in parts)
    if len(words) > 1 and name == name.upper() and numbers:
        plain = [word.strip("()") for word in words]
        if len(set(plain)) == len(plain) and all(plain):
            return [
                "; ".join(f"{word}: {_value(value.strip('()'), ';')}" for word, value in zip(plain, part, strict=True))
                for part in parts
            ]
    return [f"{name or '–'}: {_value(cell, ';')}" for cell in cells]


def _shape(words: Iterable[str]) -> list[tuple[bool, bool]]:
    return [(word[:1] == "(", word[-1:] == ")") for word in words]


# Writing -------------------------------------------------------------------------------------------------------------


def _readable(names: Sequence[str]) -> dict[str, str]:
    """Names without underscores and camel case; as they are where two would become one."""
    plain = {name: _spoken(name) for name in names}
    return plain if len(set(plain.values())) == len(plain) else {name: name for name in plain}


def _spoken(name: str) -> str:
    if _CAMEL.fullmatch(name):
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()
    return name.replace("_", " ").strip() or name


def _value(value: str, marks: str = "") -> str:
    return _quoted(value, marks + "\n") if value else '""'


def _quoted(value: str, marks: str) -> str:
    """A value as it is; as a JSON text where it is empty, has blank ends or one of the listing's own marks."""
    plain = value and value == value.strip() and value.isprintable() and not any(mark in value for mark in marks)
    return value if plain else json.dumps(value, ensure_ascii=False)


_READERS: tuple[Callable[[str], Structured | None], ...] = (
    _json, _tagged, _dialogue_act, _bracketed, _bracketed_triples, _quoted_triples, _piped, _piped_triples, _tables,
    _lined, _csv,
)  # fmt: skip
