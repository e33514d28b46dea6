"""Tables in which each row has several versions' outputs with the ratings of each, such as "Answer v1", "Rating v1"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgesmith.datasets.marks import unrated
from judgesmith.datasets.meanings import text_like
from judgesmith.datasets.preferences import is_side, names_outputs
from judgesmith.datasets.roles import is_output
from judgesmith.datasets.tables import Record
from judgesmith.wording import spaced

#: Words of a column's name, in lower case.
_Words = tuple[str, ...]


@dataclass(frozen=True)
class Wide:
    """The columns of each version: what they hold -> version -> column.

    Each version has the same. A version is called as in the name of its output's column.
    """

    columns: Mapping[str, Mapping[str, str]]

    @classmethod
    def find(
        cls,
        names: Sequence[str],
        records: Sequence[Mapping[str, Any]],
        *,
        rated: bool = True,
    ) -> Wide | None:
        """Find the columns of two or more versions; None for another table.

        The outputs' names differ in nothing but a beginning or an end ("GPT-4 answer", "answer_v2"), which names of
        others share. One of these has to hold something other than texts, as ratings do, unless `rated` is False.
        """
        if any(map(is_output, names)):
            return None
        words = {name: _words_of(name) for name in names}
        outputs = _outputs(words)
        if len(outputs) < 2 or not all(text_like(records, name) for name in outputs):
            return None
        versions = [words[name][part] for name, part in outputs.items()]
        if len(set(versions)) < len(versions):
            return None
        others: dict[str, dict[str, str]] = {}
        called = {
            version: _spelled(name, part)
            for version, (name, part) in zip(versions, outputs.items(), strict=True)
        }
        for name in names:
            for version in versions:
                stem = _without(words[name], version)
                if name not in outputs and stem:
                    others.setdefault(" ".join(stem), {})[called[version]] = name
        whole = {
            stem: columns
            for stem, columns in others.items()
            if len(columns) == len(versions)
        }
        numbers = [
            stem
            for stem, columns in whole.items()
            if not any(text_like(records, name) for name in columns.values())
        ]
        if rated and not numbers:
            return None
        of_output = dict(zip(called.values(), outputs, strict=True))
        return cls({"output": of_output, **whole})

    @property
    def versions(self) -> list[str]:
        """Return what the versions are called."""
        return list(self.columns["output"])

    def rows(self, record: Record, line: int) -> Iterator[Record]:
        """Yield a row of the table as a row for each version that has an output."""
        own = {name for columns in self.columns.values() for name in columns.values()}
        shared = {name: cell for name, cell in record.items() if name not in own}
        for version in self.versions:
            row = dict(shared)
            for stem, columns in self.columns.items():
                row[stem] = record.get(columns[version])
            if unrated(row["output"]):
                continue
            # Left and right may have been any version.
            if not is_side(version):
                row.setdefault("system", version)
            given = row.get("id")
            row["id"] = f"{line if unrated(given) else given}-{version}"
            yield row

    def __str__(self) -> str:
        versions = ", ".join(self.versions)
        held = ", ".join(self.columns)
        return f"each row has the outputs of {versions}, each with its own {held}: each is read as a row"


def _words_of(name: str) -> _Words:
    return tuple(re.findall(r"[^\W_]+", spaced(name).casefold()))


def _outputs(words: Mapping[str, _Words]) -> dict[str, slice]:
    """Return the columns that are called outputs, with the words that tell them apart: the last ones, or the first."""
    for at_the_end in (True, False):
        found = {}
        for name, own in words.items():
            for cut in range(1, len(own)):
                stem, part = slice(cut), slice(cut, None)
                if not at_the_end:
                    stem, part = part, stem
                if names_outputs("_".join(own[stem])):
                    found[name] = part
        if len(found) > 1:
            return found
    return {}


def _without(words: _Words, version: _Words) -> _Words:
    """Return the words of a name without the version's at its end, or at its beginning; none where it has neither."""
    size = len(version)
    if words[-size:] == version:
        return words[:-size]
    if words[:size] == version:
        return words[size:]
    return ()


def _spelled(name: str, part: slice) -> str:
    """Return some words of a name as they are written there."""
    places = list(re.finditer(r"[^\W_]+", spaced(name)))[part]
    return spaced(name)[places[0].start() : places[-1].end()]
