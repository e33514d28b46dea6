"""Finished calls on disk, so that a killed run repeats none of them.

SQLite in write-ahead mode: each answer is committed when it arrives, several processes may share the file, and a kill
loses nothing that was committed. Entries are JSON, compressed; nothing in the file is ever executed. (diskcache, which
DSPy brings, unpickles what it reads, and its files are readable by others under a lax umask.)
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import sqlite3
import threading
import time
import weakref
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import orjson

from judgesmith.errors import OptionError

logger = logging.getLogger(__name__)
#: Seconds to wait for another process's lock.
_WAIT = 30.0


class SharedFile:
    """Bytes by their keys, kept on disk. A subclass names its table and says what it is and how a user does without.

    path: the file; its folder is made. It holds texts and answers: only its owner may read it, whatever the umask
    allows. Raises OptionError where it cannot be opened. A file that fails during a run (full disk, damage) costs what
    is in it, with one warning, but not the run.
    """

    label: ClassVar[str]
    table: ClassVar[str]
    advice: ClassVar[str]
    without: ClassVar[str]
    variable: ClassVar[str]
    """The environment variable that names another file than the usual one."""
    file: ClassVar[str]
    """The name of the usual one."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path) if path else self.default_path()
        self._lock = threading.Lock()
        self._has_warned = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open()
        except (OSError, sqlite3.Error) as error:
            raise OptionError(
                f"{self.label} {self.path} cannot be used ({error}); {self.advice}"
            ) from None

    @classmethod
    def default_path(cls) -> Path:
        """Return the file that the environment names, or the usual one under `~/.cache/judgesmith`."""
        chosen = os.environ.get(cls.variable)
        usual = Path.home() / ".cache" / "judgesmith" / cls.file
        return Path(chosen) if chosen else usual

    def _open(self) -> None:
        """Connect, and wait for others: SQLite's own waiting does not cover the switch to write-ahead mode.

        Processes that start together all make that switch. Raises sqlite3.Error, OSError.
        """
        last = time.monotonic() + _WAIT
        while True:
            try:
                self._connect()
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > last:
                    raise
            time.sleep(random.uniform(0.005, 0.05))

    def _connect(self) -> None:
        self._process = os.getpid()
        with contextlib.suppress(
            FileExistsError
        ):  # SQLite gives the files that it makes beside it the same rights
            # Never an existing file: closing it would end the locks of this process's other connections to it.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        self._db = sqlite3.connect(
            self.path, timeout=_WAIT, check_same_thread=False, isolation_level=None
        )
        self._end = weakref.finalize(self, _closed, self._db, self._process, self._lock)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute(
            f"CREATE TABLE IF NOT EXISTS {self.table} (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID"
        )

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """A statement's rows; none where the file fails."""
        with self._lock:
            try:
                if (
                    self._process != os.getpid()
                ):  # SQLite's connections do not survive a fork
                    self._open()
                return self._db.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                # When the interpreter ends, the file is closed before the last calls are.
                if self._end.alive and not self._has_warned:
                    self._has_warned = True
                    logger.warning(
                        "%s %s fails (%s); %s",
                        self.label,
                        self.path,
                        error,
                        self.without,
                    )
                return []

    def get(self, key: bytes) -> Any:
        """Return the kept value, of whatever type a damaged file has; None for an unknown key."""
        rows = self._run(f"SELECT value FROM {self.table} WHERE key = ?", (key,))  # noqa: S608
        return rows[0][0] if rows else None

    def put(self, key: bytes, value: Any) -> None:
        """Keep a value under a key."""
        self._run(f"INSERT OR REPLACE INTO {self.table} VALUES (?, ?)", (key, value))  # noqa: S608

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


def _closed(db: sqlite3.Connection, process: int, lock: threading.Lock) -> None:
    """Close a connection that nobody uses any more, in the process that opened it.

    When the interpreter ends, another thread may be in a statement still: SQLite crashes if its connection goes then.
    """
    if process == os.getpid():
        with lock:
            db.close()


class CallCache(SharedFile):
    """A content-addressed store: key → JSON value."""

    label = "the call cache"
    table = "calls"
    advice = "set JUDGESMITH_CACHE to another file, delete it, or pass --no-cache"
    without = "calls go on without it"
    variable = "JUDGESMITH_CACHE"
    file = "calls.sqlite"

    @staticmethod
    def key(request: dict[str, Any]) -> bytes:
        """Return the SHA-256 of a request."""
        return sha256(orjson.dumps(request, option=orjson.OPT_SORT_KEYS)).digest()

    def get(self, key: bytes) -> Any | None:
        """Return a kept reply; None for an unknown or damaged one."""
        try:
            return orjson.loads(zlib.decompress(super().get(key)))
        except (zlib.error, orjson.JSONDecodeError, TypeError):
            return None  # there is none; or a damaged entry is asked for again

    def put(self, key: bytes, value: Any) -> None:
        """Keep a reply, compressed."""
        super().put(key, zlib.compress(orjson.dumps(value), 1))
