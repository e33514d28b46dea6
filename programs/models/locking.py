"""Lock files: the operating system lets go of a lock when the process that holds it dies, however it does."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

#: Seconds between two tries to get a lock that another process holds.
_PAUSE = 0.05

if sys.platform == "win32":
    import msvcrt

    def _lock(file: BinaryIO) -> None:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno, error.strerror) from None

else:
    import fcntl

    def _lock(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a lock file, which is made where it is missing and may be removed inside the block.

    Args:
        path: The lock file; nothing else is in it.
        wait: Wait for another holder instead of raising.

    Raises: BlockingIOError where another process or thread holds it; OSError where it cannot be made.
    """
    while True:
        with open(path, "ab", opener=_no_link) as file:
            if _taken(file, wait):
                yield
                return
        time.sleep(_PAUSE)


def _no_link(path: str, flags: int) -> int:
    """Open a file, but no link that somebody laid under its name."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _taken(file: BinaryIO, wait: bool) -> bool:
    """Return whether the lock is ours; False to open the file again, also where its last holder removed it."""
    try:
        _lock(file)
    except BlockingIOError:
        if not wait:
            raise
        return False
    return os.fstat(file.fileno()).st_nlink > 0
