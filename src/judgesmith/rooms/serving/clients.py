"""Clients of a server by their keys: a name for each key, and how many rows it may send in a minute."""

from __future__ import annotations

import hmac
import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from judgesmith.rooms.serving.service import Refused

#: A key with a name before it. What follows the sign of a plain key, such as the end of base64, is too short for one.
_NAMED = re.compile(r"([A-Za-z][\w.-]{0,31})=(.{16,})")


def named(text: str) -> tuple[str, str]:
    """Return the name of a key, and the key: of `NAME=KEY`, or of a plain key, whose name is "".

    >>> named("team-a=0123456789abcdef")
    ('team-a', '0123456789abcdef')
    >>> named("MDEyMzQ1Njc4OWFiY2RlZg==")
    ('', 'MDEyMzQ1Njc4OWFiY2RlZg==')
    """
    match = _NAMED.fullmatch(text)
    return (match[1], match[2]) if match else ("", text)


@dataclass(slots=True)
class Allowance:
    """Rows that a key may still send: full at first, and filled again in a minute."""

    most: float
    clock: Callable[[], float] = time.monotonic
    left: float = 0.0
    at: float = field(default=0.0)

    def __post_init__(self) -> None:
        self.left = self.most
        self.at = self.clock()

    def take(self, rows: int) -> None:
        """Count rows.

        Raises:
            Refused: If the key has sent too many; it says when to come again.
        """
        now = self.clock()
        self.left = min(self.most, self.left + (now - self.at) * self.most / 60)
        self.at = now
        if rows > self.most:
            raise Refused(
                413,
                "key_rows",
                f"this key may send {self.most:g} rows a minute; send fewer at once",
            )
        if rows > self.left:
            after = math.ceil((rows - self.left) * 60 / self.most)
            raise Refused(
                429, "key_rows", f"this key may send {self.most:g} rows a minute", after
            )
        self.left -= rows


class Clients:
    """The keys of a server."""

    def __init__(self, keys: Sequence[str], rows: float | None = None) -> None:
        known = [named(key) for key in keys]
        self._names = [name for name, _ in known]
        self._digests = [sha256(key.encode()).digest() for _, key in known]
        self._allowed = [Allowance(rows) for _ in known] if rows else []

    def find(self, bearer: bytes) -> int:
        """Return the place of a request's key.

        Raises:
            Refused: If it is none of the server's.
        """
        sent = bearer[7:].strip() if bearer[:7].lower() == b"bearer " else b""
        digest = sha256(sent).digest()
        # All are compared: how long it takes tells nothing of which one is right.
        equal = [hmac.compare_digest(digest, key) for key in self._digests]
        if True not in equal:
            raise Refused(401, "key", "send the key as `Authorization: Bearer KEY`")
        return equal.index(True)

    def name(self, place: int) -> str:
        """Return the name of a key, which logs may have; "" without."""
        return self._names[place]

    def take(self, place: int, rows: int) -> None:
        """Count rows of a key.

        Raises:
            Refused: If it has sent too many.
        """
        if self._allowed:
            self._allowed[place].take(rows)
