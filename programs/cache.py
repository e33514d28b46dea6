"""Finished calls on disk, so that a killed run repeats none of them.

SQLite in write-ahead mode: each answer is committed when it arrives, several processes may share the file, and a kill
loses nothing that was committed. Entries are JSON, compressed; nothing in the file is ever executed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from ..errors import OptionError


def default_cache_path() -> Path:
    """`JUDGESMITH_CACHE`, or `calls.sqlite` under `~/.cache/judgesmith`."""
    given = os.environ.get("JUDGESMITH_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "judgesmith" / "calls.sqlite"


class CallCache:
    """A content-addressed store: key → JSON value."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path) if path else default_cache_path()
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=30, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("CREATE TABLE IF NOT EXISTS calls (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
        except (OSError, sqlite3.DatabaseError) as error:
            raise OptionError(
                f"the call cache {self.path} cannot be used ({error}); set JUDGESMITH_CACHE to another file, "
                "delete it, or pass --no-cache"
            ) from None

    @staticmethod
    def key(request: dict[str, Any]) -> bytes:
        return sha256(orjson.dumps(request, option=orjson.OPT_SORT_KEYS)).digest()

    def get(self, key: bytes) -> Any | None:
        with self._lock:
            found = self._db.execute("SELECT value FROM calls WHERE key = ?", (key,)).fetchone()
        if not found:
            return None
        try:
            return orjson.loads(zlib.decompress(found[0]))
        except (zlib.error, orjson.JSONDecodeError):
            return None  # a damaged entry is asked for again

    def put(self, key: bytes, value: Any) -> None:
        blob = zlib.compress(orjson.dumps(value), 1)
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO calls VALUES (?, ?)", (key, blob))

    def close(self) -> None:
        with self._lock:
            self._db.close()
