"""Finished calls on disk, so that a killed run repeats none of them.

SQLite in write-ahead mode: each answer is committed when it arrives, several processes may share the file, and a kill
loses nothing that was committed. Entries are JSON, compressed; nothing in the file is ever executed. (diskcache, which
DSPy brings, unpickles what it reads, and its files are readable by others under a lax umask.)
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import orjson
from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

from ...errors import OptionError

logger = logging.getLogger(__name__)


class SharedFile:
    """Base of what is kept on disk. A subclass names its tables and says what it is and how a user does without.

    path: the file; its folder is made. It holds texts and answers: only its owner may read it, whatever the umask
    allows, or an earlier version did. Raises OptionError where it cannot be opened. A file that fails during a run
    (full disk, damage) costs what is in it, with one warning, but not the run."""

    what: ClassVar[str]
    tables: ClassVar[tuple[str, ...]]
    advice: ClassVar[str]
    without: ClassVar[str]

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._told = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open()
        except (OSError, sqlite3.Error) as error:
            raise OptionError(f"{self.what} {self.path} cannot be used ({error}); {self.advice}") from None

    # SQLite's own waiting does not cover the switch to write-ahead mode, which processes that start together all do.
    @retry(
        retry=retry_if_exception(lambda e: isinstance(e, sqlite3.OperationalError) and "locked" in str(e)),
        stop=stop_after_delay(30),
        wait=wait_random(0.005, 0.05),
        reraise=True,
    )
    def _open(self) -> None:
        self._process = os.getpid()
        _keep_private(self.path)
        self._db = sqlite3.connect(self.path, timeout=30, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        for table in self.tables:
            self._db.execute(f"CREATE TABLE IF NOT EXISTS {table} WITHOUT ROWID")

    def _forked(self) -> None:
        """Called in a new process before its first statement."""

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> tuple[list[Any], int] | None:
        """A statement's rows and the number of changed rows; None where the file fails."""
        with self._lock:
            try:
                if self._process != os.getpid():  # SQLite's connections do not survive a fork
                    self._forked()
                    self._open()
                cursor = self._db.execute(statement, values)
                return cursor.fetchall(), cursor.rowcount
            except sqlite3.Error as error:
                if not self._told:
                    self._told = True
                    logger.warning("%s %s fails (%s); %s", self.what, self.path, error, self.without)
                return None

    def close(self) -> None:
        with self._lock:
            self._db.close()


def _keep_private(path: Path) -> None:
    """Create the file, where there is none, for its owner alone, and take other people's rights to one that is there.
    SQLite gives the files that it makes beside it the same rights."""
    with contextlib.suppress(FileExistsError):
        # Never an existing file: closing it would end the locks of this process's other connections to it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    for name in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        # Not there, or somebody else's who shares it with us.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            if name.stat().st_mode & 0o077:
                name.chmod(0o600)


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
