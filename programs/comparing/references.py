"""Written references on disk: each document's are written once.

SQLite in write-ahead mode. Within a process, rows of one document wait for the first.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import orjson

from ...errors import CallError
from ...signatures.values import Item, Usage
from ..models.cache import SharedFile
from .synthesis import ReferenceSet


@dataclass(frozen=True, slots=True)
class ReferenceKey:
    """What references depend on. document: 64 hex digits over source and context; aspect: its name; prompt: a hash of
    all else in the writer's prompt, its version included; levels: N; writer: the model's name."""

    document: str
    aspect: str
    prompt: str
    levels: int
    writer: str

    @property
    def digest(self) -> bytes:
        return sha256(orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS)).digest()


def document_hash(item: Item) -> str:
    text = f"{len(item.source)}:{item.source}{item.context or ''}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def default_store_path() -> Path:
    """`JUDGESMITH_REFERENCES`, or `references.sqlite` under `~/.cache/judgesmith`."""
    given = os.environ.get("JUDGESMITH_REFERENCES")
    return Path(given) if given else Path.home() / ".cache" / "judgesmith" / "references.sqlite"


class ReferenceStore(SharedFile):
    """References by key. Copies of a judge share it."""

    what = "the reference store"
    tables = (
        "sets (key BLOB PRIMARY KEY, document TEXT, aspect TEXT, prompt TEXT, levels INTEGER, writer TEXT, value BLOB)",
    )
    advice = "set JUDGESMITH_REFERENCES to another file or correct this one"
    without = "references are written again"

    def __init__(self, path: Path | str | None = None) -> None:
        self._forked()
        super().__init__(Path(path) if path else default_store_path())

    def _forked(self) -> None:
        self._under_way: dict[bytes, asyncio.Task[tuple[ReferenceSet, Usage]]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def get(self, key: ReferenceKey) -> ReferenceSet | None:
        """None where there are none, or where an entry is damaged."""
        rows = self._run("SELECT value FROM sets WHERE key = ?", (key.digest,))
        return _thaw(rows[0][0][0], key.levels) if rows and rows[0] else None

    def put(self, key: ReferenceKey, references: ReferenceSet) -> None:
        value = json.dumps({"outputs": dict(references.outputs), "left_out": dict(references.left_out)}).encode()
        self._run(
            "INSERT OR REPLACE INTO sets VALUES (?, ?, ?, ?, ?, ?, ?)", (key.digest, *asdict(key).values(), value)
        )

    async def get_or_write(
        self, key: ReferenceKey, write: Callable[[], Awaitable[tuple[ReferenceSet, Usage]]]
    ) -> tuple[ReferenceSet, Usage]:
        """The references of `key`, and what writing them cost here (nothing where somebody else did). Rows of one
        document wait for the first; what `write` raises is raised. Two processes may write at once: what the first of
        them kept counts for both."""
        while (first := self._under_way.get(key.digest)) is not None:
            try:
                made, _ = await asyncio.shield(first)
            except asyncio.CancelledError:
                if not first.cancelled():  # we were cancelled, not the one that we wait for
                    raise
                self._end(key, first)  # awaiting it again would never give its owner a turn to do so
            except CallError as error:
                raise CallError(str(error)) from None  # what it cost is the first one's
            else:
                return made, Usage()
        self._under_way[key.digest] = task = asyncio.ensure_future(self._found_or_written(key, write))
        try:
            return await task
        finally:
            self._end(key, task)

    def _end(self, key: ReferenceKey, task: asyncio.Task[tuple[ReferenceSet, Usage]]) -> None:
        if self._under_way.get(key.digest) is task:
            del self._under_way[key.digest]

    async def _found_or_written(
        self, key: ReferenceKey, write: Callable[[], Awaitable[tuple[ReferenceSet, Usage]]]
    ) -> tuple[ReferenceSet, Usage]:
        known = self.get(key)
        if known is not None:
            return known, Usage()
        made, usage = await write()
        kept = self.get(key)  # by another process in the meantime
        if kept is None:
            self.put(key, made)
        return kept or made, usage


@lru_cache(maxsize=8)
def _store_at(path: Path) -> ReferenceStore:
    return ReferenceStore(path)


def reference_store() -> ReferenceStore:
    """The store that all judges of this process share. Raises OptionError where its file cannot be used."""
    return _store_at(default_store_path())


def _thaw(value: Any, levels: int) -> ReferenceSet | None:
    """None where levels are missing, or the worst or the best has no text."""
    try:
        data = json.loads(value)
        outputs, left_out = ({int(n): str(text) for n, text in data[of].items()} for of in ("outputs", "left_out"))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    whole = sorted((*outputs, *left_out)) == list(range(1, levels + 1)) and {1, levels} <= outputs.keys()
    return ReferenceSet(levels, outputs, left_out) if whole else None
