"""Inputs that are data and not prose: recognised, and laid out so that a model and a reader can find their way in them.

Systems that put data into words are given JSON, attributes with values or RDF triples (OpeNLGauge, Kartáč et al. 2025,
table 5). `read_structured` takes a text for data only if all of it has one such form; other texts are shown as they
are. Names lose underscores and camel case ("eatType" becomes "eat type").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import chain
from typing import Any

_ATTRIBUTE = re.compile(r"\s*([^\W\d_][\w %/#+-]{0,39})\[([^\[\]]*)\]\s*(?:[,;]|\Z)")
_CAMEL = re.compile(r"[a-z]+\d*(?:[A-Z][a-z0-9]*)+")


def read_structured(text: str) -> str | None:
    """The data that a text holds as a listing, one entry a line, deeper ones indented by two spaces; None for a text
    that is to be shown as it is. Never raises; takes linear time."""
    stripped = text.strip()
    return _json(stripped) or _attributes(stripped) or _triples(stripped)


def _json(text: str) -> str | None:
    """An object, or a list of several objects or lists."""
    if not text.startswith(("{", "[")):
        return None
    try:
        # Numbers as they are spelled.
        data = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        return (
            "\n".join(_lines(data)) if data and (isinstance(data, dict) or isinstance(data[0], dict | list)) else None
        )
    except (ValueError, RecursionError):
        return None


def _lines(data: Any, depth: int = 0) -> Iterable[str]:
    entries = ((_spoken(k), v) for k, v in data.items()) if isinstance(data, dict) else enumerate(data, 1)
    for name, value in entries:
        if isinstance(value, dict | list) and value:
            yield from chain([f"{'  ' * depth}- {name}:"], _lines(value, depth + 1))
        else:
            shown = value if isinstance(value, str) else json.dumps(value)
            yield f"{'  ' * depth}- {name}: {' '.join(shown.split())}"


def _attributes(text: str) -> str | None:
    """name[The Eagle], food[French]"""
    pairs: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _ATTRIBUTE.match(text, at)
        if match is None:
            return None
        pairs.append((match[1], match[2].strip()))
        at = match.end()
    # "as shown[1], but not always[2]" are references, x[0], y[1] is program code.
    if len(pairs) < 2 or all(not value or value.isdigit() for _, value in pairs):
        return None
    return "\n".join(f"- {_spoken(name)}: {value}" for name, value in pairs)


def _triples(text: str) -> str | None:
    """The_Eagle | area | riverside, one a line; by subject, in the order in which subjects first come."""
    triples = [tuple(part.strip() for part in line.split("|")) for line in text.splitlines() if line.strip()]
    if not triples or any(len(t) != 3 or not all(t) or not re.fullmatch(r"[a-z][\w-]*", t[1]) for t in triples):
        return None
    # A table of three columns looks the same but for this.
    if not any("_" in "".join(t) or _CAMEL.fullmatch(t[1]) for t in triples):
        return None
    by_subject: dict[str, list[str]] = {}
    for subject, predicate, value in triples:
        by_subject.setdefault(subject, []).append(f"  - {_spoken(predicate)}: {value.replace('_', ' ')}")
    lines = (chain([f"- {subject.replace('_', ' ')}"], below) for subject, below in by_subject.items())
    return "\n".join(chain.from_iterable(lines))


def _spoken(name: str) -> str:
    if _CAMEL.fullmatch(name):
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()
    return " ".join(name.replace("_", " ").split())
