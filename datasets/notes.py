"""Notes for the user on how a file was read, one function each, in the order in which they are shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from judgesmith.conversation import judged, parsed
from judgesmith.datasets.columns import Columns
from judgesmith.datasets.meanings import left_out, one_rating, speaks_of_machine
from judgesmith.datasets.plain import Plain
from judgesmith.rows import as_text

#: Names of columns on the order in which two outputs were shown.
_SWAPPED = re.compile(r"swap|flip|shuffl|(?:shown|display|presentation)_?order", re.I)


def notes_on(plain: Plain, columns: Columns) -> list[str]:
    """Return all notes on how a file was read."""
    return [note for notes in NOTES for note in notes(plain, columns)]


def of_export(plain: Plain, columns: Columns) -> Iterator[str]:
    """Yield the tool that the file comes from, with what was left out."""
    if plain.export is not None:
        yield (
            f"{plain.origin}: read as an export of {plain.export.tool}{plain.export.left_out()}"
        )


def of_order(plain: Plain, columns: Columns) -> Iterator[str]:
    """Yield the columns that may say which of two outputs was shown first."""
    if plain.pairs is not None:
        for name in filter(_SWAPPED.search, plain.names):
            yield (
                f"{plain.origin}: column {name!r} is not read; a winner is the one of the two columns as they stand, "
                "so undo the order in which they were shown if the winners go by that"
            )


def of_chats(plain: Plain, columns: Columns) -> Iterator[str]:
    """Yield that the last turn of chats is judged."""
    column = columns.texts.get("messages")
    if column is None or "output" in columns.texts or "turn" in columns.texts:
        return
    chats = [judged(record.get(column)) for record in plain.records]
    after = sum(chat is not None and chat.after > 0 for chat in chats)
    more = f"; turns after it are not shown ({after} rows)" if after else ""
    yield (
        f"{plain.origin}, column {column!r}: the assistant's last turn is judged, the turns before it are its source"
        f"{more}; to judge whole conversations, pass --columns output={column}"
    )


def of_sources(plain: Plain, columns: Columns) -> Iterator[str]:
    """Yield how many rows have no source, where others have one."""
    source = columns.texts.get("source")
    if source is None:
        return
    without = sum(not as_text(record.get(source)) for record in plain.records)
    if 0 < without < len(plain.records):
        yield (
            f"{plain.origin}: {without} of {len(plain.records)} rows have no source and are judged without one"
        )


def of_machines(plain: Plain, columns: Columns) -> Iterator[str]:
    """Yield ratings whose column may be a machine's."""
    for name in _rated(columns):
        if speaks_of_machine(name) and name not in plain.columns.values():
            yield (
                f"{plain.origin}: the ratings are those of {name!r}, whose name speaks of a machine; if no person gave "
                "them, name people's with --columns score=NAME"
            )


def of_marked(plain: Plain, columns: Columns) -> Iterator[str]:
    """Yield how many ratings of a column were left out, as they are marked."""
    for name in _rated(columns):
        left = [why for record in plain.records for why in left_out(record.get(name))]
        if left:
            reasons = ", ".join(dict.fromkeys(left))
            yield f"{plain.origin}, column {name!r}: {len(left)} ratings were left out, marked {reasons}"


def of_objects(plain: Plain, columns: Columns) -> Iterator[str]:
    """Yield columns of objects whose keys were taken as raters."""
    for name in _rated(columns):
        cells = (record.get(name) for record in plain.records)
        if any(isinstance(cell, Mapping) and not one_rating(cell) for cell in cells):
            yield (
                f"{plain.origin}, column {name!r}: the keys of its objects were taken as raters and averaged; if they "
                f"are aspects, pass --columns scores={name}"
            )


def of_lists(plain: Plain, columns: Columns) -> Iterator[str]:
    """Yield columns with lists of objects whose names were taken as raters."""
    for name in _rated(columns):
        if _has_names(plain, name):
            yield (
                f"{plain.origin}, column {name!r}: the names in its objects were taken as raters and averaged; if they "
                "are aspects, write `aspect` for `name`"
            )


def _has_names(plain: Plain, column: str) -> bool:
    """Return True if a cell of a column is a list of objects with different names."""
    for record in plain.records:
        cell = parsed(record.get(column))
        objects = cell if isinstance(cell, list) else []
        named = [one.get("name") for one in objects if isinstance(one, Mapping)]
        if len(set(map(str, named))) > 1:
            return True
    return False


def _rated(columns: Columns) -> list[str]:
    """Return the columns of ratings."""
    return sorted({name for name, _ in columns.aspects.values() if name is not None})


Note: TypeAlias = Callable[[Plain, Columns], Iterator[str]]
#: In the order in which they are shown.
NOTES: tuple[Note, ...] = (
    of_export,
    of_order,
    of_chats,
    of_sources,
    of_machines,
    of_marked,
    of_objects,
    of_lists,
)
