"""Written references on disk: each document's are written once.

Within a process, rows of one document wait for the first.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Self
from weakref import WeakValueDictionary

import orjson

from judgesmith.programs.comparing.synthesis import ReferenceSet
from judgesmith.programs.models.cache import SharedFile
from judgesmith.programs.models.engine import PerLoop
from judgesmith.signatures.values import Item, Usage


def reference_key(
    item: Item, aspect: str, prompt: str, levels: int, writer: str
) -> bytes:
    """Return a key of everything that references depend on.

    That is source and context; the aspect's name; a hash of the rest of the writer's prompt, its version included;
    their number; the writer's name.
    """
    document = f"{len(item.source)}:{item.source}{item.context or ''}".encode(
        "utf-8", "surrogatepass"
    )
    parts = {
        "aspect": aspect,
        "document": sha256(document).hexdigest(),
        "levels": levels,
        "prompt": prompt,
        "writer": writer,
    }
    return sha256(orjson.dumps(parts)).digest()


class ReferenceStore(SharedFile):
    """References by key. Copies of a judge share it."""

    label = "the reference store"
    table = "texts"
    advice = "set JUDGESMITH_REFERENCES to another file or correct this one"
    without = "references are written again"
    variable = "JUDGESMITH_REFERENCES"
    file = "references.sqlite"

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__(path)
        self._locks = PerLoop[WeakValueDictionary[bytes, asyncio.Lock]](
            WeakValueDictionary
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def get(self, key: bytes) -> ReferenceSet | None:
        """None where there are none, or where an entry is damaged."""
        return _thaw(super().get(key))

    def put(self, key: bytes, references: ReferenceSet) -> None:
        """Keep references under a key."""
        value = {
            "outputs": dict(references.outputs),
            "left_out": dict(references.left_out),
        }
        super().put(key, json.dumps(value).encode())

    async def get_or_write(
        self, key: bytes, write: Callable[[], Awaitable[tuple[ReferenceSet, Usage]]]
    ) -> tuple[ReferenceSet, Usage]:
        """Return the references of `key`, and the cost of writing them here (none if somebody else did).

        Rows of one document wait for the first; errors of `write` are raised. Two processes may write at once:
        references that the first of them kept count for both.
        """
        if (stored := self.get(key)) is not None:
            return stored, Usage()
        async with self._locks().setdefault(key, asyncio.Lock()):
            if (stored := self.get(key)) is not None:
                return stored, Usage()
            written, usage = await write()
            earlier = self.get(key)  # by another process in the meantime
            if earlier is None:
                self.put(key, written)
            return earlier or written, usage


@lru_cache(maxsize=8)
def _store_at(path: Path) -> ReferenceStore:
    return ReferenceStore(path)


def reference_store() -> ReferenceStore:
    """Return the store that all judges of this process share.

    Raises:
        OptionError: If its file cannot be used.
    """
    return _store_at(ReferenceStore.default_path())


def _thaw(value: Any) -> ReferenceSet | None:
    """None where levels are missing, or the worst or the best has no text."""
    try:
        data = json.loads(value)
        outputs = _by_level(data["outputs"])
        left_out = _by_level(data["left_out"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    levels = len(outputs) + len(left_out)
    complete = sorted((*outputs, *left_out)) == list(range(1, levels + 1))
    ends = {1, levels} <= outputs.keys()
    return ReferenceSet(levels, outputs, left_out) if complete and ends else None


def _by_level(texts: Mapping[str, Any]) -> dict[int, str]:
    return {int(level): str(text) for level, text in texts.items()}
