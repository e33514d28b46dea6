"""Finished calls on disk, so that a killed run repeats none of them.

SQLite in write-ahead mode: each answer is committed when it arrives, several processes may share the file, and a kill
loses nothing that was committed. Entries are JSON, compressed; nothing in the file is ever executed.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

from ..errors import OptionError

logger = logging.getLogger(__name__)


def default_cache_path() -> Path:
    """`JUDGESMITH_CACHE`, or `calls.sqlite` under `~/.cache/judgesmith`."""
    given = os.environ.get("JUDGESMITH_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "judgesmith" / "calls.sqlite"


class CallCache:
    """A content-addressed store: key → JSON value."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path) if path else default_cache_path()
        self._lock = threading.Lock()
        self._told = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open()
        except (OSError, sqlite3.Error) as error:
            raise OptionError(
                f"the call cache {self.path} cannot be used ({error}); set JUDGESMITH_CACHE to another file, "
                "delete it, or pass --no-cache"
            ) from None

    # SQLite's own waiting does not cover the switch to write-ahead mode, which processes that start together all do.
    @retry(
        retry=retry_if_exception(lambda e: isinstance(e, sqlite3.OperationalError) and "locked" in str(e)),
        stop=stop_after_delay(30),
        wait=wait_random(0.005, 0.05),
        reraise=True,
    )
    def _open(self) -> None:
        self._process = os.getpid()
        self._db = sqlite3.connect(self.path, timeout=30, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS calls (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")

    def _run(self, statement: str, values: tuple[Any, ...]) -> Any | None:
        """The first row of a statement's result. A file that fails in mid-run (full disk, damage) costs the cache, said
        once, not the run."""
        with self._lock:
            try:
                if self._process != os.getpid():  # SQLite's connections do not survive a fork
                    self._open()
                return self._db.execute(statement, values).fetchone()
            except sqlite3.Error as error:
                if not self._told:
                    self._told = True
                    logger.warning("the call cache %s fails (%s); calls go on without it", self.path, error)
                return None

    @staticmethod
    def key(request: dict[str, Any]) -> bytes:
        return sha256(orjson.dumps(request, option=orjson.OPT_SORT_KEYS)).digest()

    def get(self, key: bytes) -> Any | None:
        found = self._run("SELECT value FROM calls WHERE key = ?", (key,))
        if not found:
            return None
        try:
            return orjson.loads(zlib.decompress(found[0]))
        except (zlib.error, orjson.JSONDecodeError, TypeError):
            return None  # a damaged entry is asked for again

    def put(self, key: bytes, value: Any) -> None:
        self._run("INSERT OR REPLACE INTO calls VALUES (?, ?)", (key, zlib.compress(orjson.dumps(value), 1)))

    def close(self) -> None:
        with self._lock:
            self._db.close()
