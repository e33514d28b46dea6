"""Labels in one SQLite file.

Nothing is ever changed or removed: answers, skips and undos are added, one transaction each, so that no kill, second
tab or second process can lose one.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesmith.errors import LabelsError
from judgesmith.rooms.labelling.task import Task, Unit

_APPLICATION = 0x6A6C6162  # "jlab": says whose file it is
_VERSION = 1
_SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE units (key TEXT PRIMARY KEY, place INTEGER NOT NULL, body TEXT NOT NULL)",
    "CREATE TABLE queue (place INTEGER PRIMARY KEY AUTOINCREMENT, unit TEXT NOT NULL UNIQUE)",
    """CREATE TABLE events (
        n INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, rater TEXT NOT NULL, unit TEXT NOT NULL,
        turn INTEGER NOT NULL, action TEXT NOT NULL CHECK (action IN ('answer', 'skip', 'undo')), body TEXT NOT NULL,
        undoes INTEGER, request TEXT NOT NULL UNIQUE
    )""",
    "CREATE INDEX events_of_raters ON events (rater, n)",
    "CREATE INDEX events_undone ON events (undoes)",
    "CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events stay'); END",
    "CREATE TRIGGER events_hold BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events stay'); END",
    f"PRAGMA application_id={_APPLICATION}",
    f"PRAGMA user_version={_VERSION}",
)
#: The turn of a decision on a row that split its raters, whoever made it.
SETTLING = 2
_STANDING = (
    "action != 'undo' AND n NOT IN (SELECT undoes FROM events WHERE undoes IS NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class AnswerEvent:
    """A rater's answer on a unit.

    turn: 0, 1 for the second showing, or that of settling. answer: None for a skip, with its `reason`. at: seconds
    since 1970.
    """

    n: int
    rater: str
    unit: str
    turn: int
    answer: dict[str, Any] | None
    reason: str
    at: float


class Answered(Exception):
    """The unit got a different answer meanwhile, in another tab; `standing` counts."""

    def __init__(self, standing: AnswerEvent | None) -> None:
        super().__init__("this row was answered in another tab")
        self.standing = standing


class Store:
    """A store of labels.

    Raises:
        LabelsError: If the file is not a store.
    """

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        if not create and not path.is_file():
            raise LabelsError(
                f"{path}: there is no such store; name one with --store, or give ROWS to begin one"
            )
        try:
            os.close(os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600))
            # One thread at a time uses it: the page's server has one loop, and its end comes after it.
            self._db = sqlite3.connect(
                path, isolation_level=None, timeout=30, check_same_thread=False
            )
            self._prepare()
        except OSError as error:
            raise LabelsError(
                f"{path}: cannot be opened ({error.strerror}); name another file with --store"
            ) from None
        except sqlite3.Error as error:
            raise LabelsError(
                f"{path}: not a judgesmith label store ({error}); name another file with --store"
            ) from None

    def _prepare(self) -> None:
        db = self._db
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(
            "PRAGMA synchronous=FULL"
        )  # an answer that was confirmed survives a power cut
        with self._writing():
            empty = not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
            for statement in (
                _SCHEMA if empty else ()
            ):  # `executescript` would end the transaction
                db.execute(statement)
        (whose,), (version,) = (
            db.execute(f"PRAGMA {name}").fetchone()
            for name in ("application_id", "user_version")
        )
        if whose != _APPLICATION:
            raise LabelsError(
                f"{self.path}: not a judgesmith label store; name another file with --store"
            )
        if version != _VERSION:
            raise LabelsError(
                f"{self.path}: unknown format {version} (this version of judgesmith reads {_VERSION}); "
                "use the version that wrote it"
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    # What is asked, and of what

    def get(self, name: str) -> str | None:
        """Return a setting; None if it was never set."""
        row = self._db.execute(
            "SELECT value FROM meta WHERE name = ?", (name,)
        ).fetchone()
        return None if row is None else str(row[0])

    def set(self, **values: str) -> None:
        """Save settings."""
        with self._writing():
            self._db.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items()
            )

    @property
    def task(self) -> Task | None:
        """The raters' task; None before the first use."""
        data = self.get("task")
        return None if data is None else Task.of(json.loads(data))

    @property
    def token(self) -> str:
        """The secret in the page's address. It stays the same, so that an open tab goes on after a restart."""
        token = self.get("token")
        if token is None:
            self.set(token=(token := secrets.token_urlsafe(24)))
        return token

    def add(self, units: Iterable[Unit]) -> None:
        """Add units that the store does not have; those of an earlier file stay."""
        with self._writing():
            (last,) = self._db.execute(
                "SELECT coalesce(max(place), 0) FROM units"
            ).fetchone()
            for place, unit in enumerate(units, last + 1):
                body = json.dumps({"row": dict(unit.row), "extra": dict(unit.extra)})
                self._db.execute(
                    "INSERT OR IGNORE INTO units VALUES (?, ?, ?)",
                    (unit.key, place, body),
                )

    def units(self) -> dict[str, Unit]:
        """Return the units by key, in the order of their first appearance."""
        rows = self._db.execute("SELECT key, body FROM units ORDER BY place")
        units = {}
        for key, body in rows:
            read = json.loads(body)
            units[key] = Unit(key, read["row"], extra=read.get("extra", {}))
        return units

    def queue(self) -> list[str]:
        """Return the units to be labelled, in their order."""
        return [
            key for (key,) in self._db.execute("SELECT unit FROM queue ORDER BY place")
        ]

    def enqueue(self, keys: Iterable[str]) -> None:
        """Add units to the queue; those that are in it keep their place."""
        with self._writing():
            self._db.executemany(
                "INSERT OR IGNORE INTO queue (unit) VALUES (?)",
                ((key,) for key in keys),
            )

    # What was said

    def answers(self, rater: str | None = None) -> list[AnswerEvent]:
        """Return the answers that count, of all raters or of one, the oldest first: one per rater, unit and turn."""
        where, values = ("AND rater = ?", (rater,)) if rater is not None else ("", ())
        query = f"SELECT {_COLUMNS} FROM events WHERE {_STANDING} {where} ORDER BY n"  # noqa: S608
        rows = self._db.execute(query, values)
        last: dict[tuple[str, str, int], AnswerEvent] = {}
        for one in map(_answer, rows):
            last.pop((one.rater, one.unit, one.turn), None)
            last[one.rater, one.unit, one.turn] = one
        return list(last.values())

    def raters(self) -> list[str]:
        """Return the raters' names in the order of their first answer, without those who only settled."""
        query = (
            "SELECT rater FROM events WHERE turn != ? GROUP BY rater ORDER BY min(n)"
        )
        return [name for (name,) in self._db.execute(query, (SETTLING,))]

    def say(
        self,
        rater: str,
        unit: str,
        turn: int,
        action: str,
        body: dict[str, Any],
        *,
        after: int | None,
        request: str,
    ) -> None:
        """Keep an answer or a skip.

        Args:
            rater: name of the rater.
            unit: key of the unit.
            turn: 0, 1 for the second showing, or that of settling.
            action: "answer" or "skip".
            body: the answer, or the reason of the skip.
            after: number of the answer that the rater saw to count; None for none.
            request: id of the request; a repeated one is kept once.

        Raises:
            Answered: If another answer counts.
        """
        with self._writing():
            if self._db.execute(
                "SELECT 1 FROM events WHERE request = ?", (request,)
            ).fetchone():
                return
            mine = "rater = ? AND unit = ? AND turn = ?"
            standing = self._db.execute(
                f"SELECT {_COLUMNS} FROM events WHERE {mine} AND {_STANDING} ORDER BY n DESC LIMIT 1",  # noqa: S608
                (rater, unit, turn),
            ).fetchone()
            if (None if standing is None else standing[0]) != after:
                raise Answered(None if standing is None else _answer(standing))
            self._insert(rater, unit, turn, action, body, None, request)

    def undo(
        self, rater: str, request: str, *, settling: bool = False
    ) -> AnswerEvent | None:
        """Take back the last thing that the rater said, or settled; what it was, None where there is nothing."""
        with self._writing():
            again = self._db.execute(
                "SELECT undoes FROM events WHERE request = ?", (request,)
            ).fetchone()
            if again:
                where = "n = ?"
                value = again[0]
            else:
                sign = "=" if settling else "!="
                where = f"rater = ? AND turn {sign} {SETTLING} AND {_STANDING}"
                value = rater
            row = self._db.execute(
                f"SELECT {_COLUMNS} FROM events WHERE {where} ORDER BY n DESC LIMIT 1",  # noqa: S608
                (value,),
            ).fetchone()
            if row is None:
                return None
            last = _answer(row)
            if not again:
                self._insert(rater, last.unit, last.turn, "undo", {}, last.n, request)
            return last

    def _insert(
        self,
        rater: str,
        unit: str,
        turn: int,
        action: str,
        body: dict[str, Any],
        undoes: int | None,
        request: str,
    ) -> None:
        self._db.execute(
            "INSERT INTO events (at, rater, unit, turn, action, body, undoes, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (time.time(), rater, unit, turn, action, json.dumps(body), undoes, request),
        )


_COLUMNS = "n, rater, unit, turn, action, body, at"


def _answer(row: tuple[Any, ...]) -> AnswerEvent:
    n, rater, unit, turn, action, body, at = row
    answer = json.loads(body)
    skipped = action == "skip"
    return AnswerEvent(
        n,
        rater,
        unit,
        turn,
        None if skipped else answer,
        answer["reason"] if skipped else "",
        at,
    )
