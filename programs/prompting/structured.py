"""Inputs that are data and not prose: recognised, and laid out so that a model and a reader can find their way in them.

Systems that put data into words are given JSON, attributes with values, RDF triples or dialogue acts (OpeNLGauge,
Kartáč et al. 2025, table 5). `read_structured` takes a text for data only if all of it has one such form; in doubt, as
with tables and lists of `name: value`, it is shown as it is. The listing keeps every value; names lose underscores and
camel case ("eatType" becomes "eat type") unless two would become one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_DEEPEST = 32  # levels of nesting that are still laid out
_NAME = re.compile(r"[^\W\d_][\w %/#+-]{0,39}")  # what an attribute may be called
_PREDICATE = re.compile(r"[a-z][\w-]*")
_CAMEL = re.compile(r"[a-z]+\d*(?:[A-Z][a-z0-9]*)+")
_NUMBER = re.compile(r"[-+]?[$€£¥]?\d[\d.,:/-]*\s?%?")


def read_structured(text: str) -> str | None:
    """The data that a text holds as a listing, one entry a line, deeper ones indented by two spaces; None for a text
    that is to be shown as it is. Never raises; takes linear time."""
    stripped = text.strip()
    if len(stripped) < 3:
        return None
    return _json(stripped) or _dialogue_acts(stripped) or _attributes(stripped) or _triples(stripped)


class _Literal(str):
    """A number, true, false or null, in the spelling of the text."""


class _Object(list[tuple[str, Any]]):
    """An object as its pairs, so that a repeated key is not lost."""


def _json(text: str) -> str | None:
    """An object, a list, or one object a line."""
    data = _loaded(text)
    if data is None and text[0] == "{":
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
    return "\n".join(lines)


def _loaded(text: str) -> list[Any] | None:
    if text[0] not in "{[":
        return None
    try:
        data = json.loads(
            text, parse_int=_Literal, parse_float=_Literal, parse_constant=_Literal, object_pairs_hook=_Object
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


_ACT = re.compile(
    r"(?P<act>\??(?:inform|confirm|request|reqmore|reqalts|select|suggest|recommend|goodbye)[\w-]{0,40})"
    r"\((?P<slots>[^()\n]*)\)(?:\s*[&|;,]?\s*)"
)
_SLOT = re.compile(
    r"\s*+(?P<name>[\w./-]+(?: [\w./-]+)*)\s*+(?:=\s*+(?P<value>'[^=]*?'(?=\s*[,;]|\s*\Z)|\"[^\"]*\"|[^'\",;=]*+))?\s*+"
    r"(?:[,;]|\Z)"
)


def _dialogue_acts(text: str) -> str | None:
    """inform(name='The Eagle',food=french)"""
    lines: list[str] = []
    at = 0
    while at < len(text):
        act = _ACT.match(text, at)
        if act is None:
            return None
        at, slots, place = act.end(), list[tuple[str, str | None]](), 0
        while place < len(act["slots"].rstrip()):
            slot = _SLOT.match(act["slots"], place)
            if slot is None or slot.end() == place:
                return None
            value, place = slot["value"], slot.end()
            slots.append((slot["name"], value if value is None else _unquoted(value.strip())))
        names = _readable([name for name, _ in slots])
        lines.append(f"- {act['act']}{':' if slots else ''}")
        lines += [f"  - {names[name]}" + ("" if value is None else f": {_value(value)}") for name, value in slots]
    return "\n".join(lines)


_TYPES = frozenset({"int", "str", "float", "bool", "bytes", "object", "Any", "None", "T"})


def _attributes(text: str) -> str | None:
    """name[The Eagle], food[French]"""
    if text[-1] != "]":
        return None
    pairs: list[tuple[str, str]] = []
    for part in text[:-1].split("]"):
        name, bracket, value = part.partition("[")
        if pairs and name.lstrip()[:1] not in (",", ";"):
            return None
        name = name.strip(",; \t\r\n")
        if not bracket or "[" in value or not _NAME.fullmatch(name) or len(name.split()) > 4:
            return None
        pairs.append((name, value.strip()))
    # "as shown[1], but not always[2]" are references, x[0], y[1] and list[str], set[int] are program code.
    if len(pairs) < 2 or all(value.isdigit() or not value or value in _TYPES for _, value in pairs):
        return None
    names = _readable([name for name, _ in pairs])
    return "\n".join(f"- {names[name]}: {_value(value)}" for name, value in pairs)


def _triples(text: str) -> str | None:
    """The_Eagle | area | riverside, one a line; by subject, in the order in which subjects first come."""
    triples = [[part.strip() for part in line.split("|")] for line in text.splitlines() if line.strip()]
    if any(len(t) != 3 or not all(t) or not _PREDICATE.fullmatch(t[1].strip('"')) for t in triples):
        return None
    # A table of three columns looks the same but for this.
    if not any("_" in "".join(t) or _CAMEL.fullmatch(t[1]) for t in triples):
        return None
    names = _readable([predicate for _, predicate, _ in triples])
    by_subject: dict[str, list[str]] = {}
    for subject, predicate, value in triples:
        by_subject.setdefault(subject, []).append(f"  - {names[predicate]}: {_entity(value)}")
    return "\n".join(line for subject, below in by_subject.items() for line in (f"- {_entity(subject)}", *below))


def _entity(name: str) -> str:
    name = _unquoted(name)
    return _value(name.replace("_", " ").strip() or name if " " not in name else name)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _readable(names: Sequence[str]) -> dict[str, str]:
    """Names without underscores and camel case; as they are where two would become one."""
    plain = {name: _spoken(name) for name in names}
    return plain if len(set(plain.values())) == len(plain) else {name: name for name in plain}


def _spoken(name: str) -> str:
    if _CAMEL.fullmatch(name):
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()
    return name.replace("_", " ").strip() or name


def _value(value: str) -> str:
    return _quoted(value, "\n") if value else '""'


def _quoted(value: str, marks: str) -> str:
    """A value as it is; as a JSON text where it is empty, has blank ends or one of the listing's own marks."""
    plain = value and value == value.strip() and value.isprintable() and not any(mark in value for mark in marks)
    return value if plain else json.dumps(value, ensure_ascii=False)
