"""Finished calls on disk, so that a killed run repeats none of them.

SQLite in write-ahead mode: each answer is committed when it arrives, several processes may share the file, and a kill
loses nothing that was committed. Entries are JSON, compressed; nothing in the file is ever executed.
"""

from __future__ import annotations

import os
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from .shared_file import SharedFile


def default_cache_path() -> Path:
    """`JUDGESMITH_CACHE`, or `calls.sqlite` under `~/.cache/judgesmith`."""
    given = os.environ.get("JUDGESMITH_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "judgesmith" / "calls.sqlite"


class CallCache(SharedFile):
    """A content-addressed store: key → JSON value."""

    what = "the call cache"
    tables = ("calls (key BLOB PRIMARY KEY, value BLOB)",)
    advice = "set JUDGESMITH_CACHE to another file, delete it, or pass --no-cache"
    without = "calls go on without it"

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__(Path(path) if path else default_cache_path())

    @staticmethod
    def key(request: dict[str, Any]) -> bytes:
        return sha256(orjson.dumps(request, option=orjson.OPT_SORT_KEYS)).digest()

    def get(self, key: bytes) -> Any | None:
        found = self._run("SELECT value FROM calls WHERE key = ?", (key,))
        if not found or not found[0]:
            return None
        try:
            return orjson.loads(zlib.decompress(found[0][0][0]))
        except (zlib.error, orjson.JSONDecodeError, TypeError):
            return None  # a damaged entry is asked for again

    def put(self, key: bytes, value: Any) -> None:
        self._run("INSERT OR REPLACE INTO calls VALUES (?, ?)", (key, zlib.compress(orjson.dumps(value), 1)))
