"""Arrays whose memory can be given back: they lie in a file without a name, which is read again where it is needed.

OpenVINO brings weights into an order of its own with the first passage, and keeps those that it was given beside them.
These are never read again, as long as nothing else is compiled from them, and would take as much memory once more.
"""

from __future__ import annotations

import math
import mmap
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

if sys.platform == "linux":
    import os

#: Bytes of the file that are mapped together, and of the smallest array that is put there; the multiple of bytes that
#: an array begins at; seconds between two times that memory is given back while it is used.
TOGETHER = 1 << 26
LEAST = 1 << 16
ALIGNED = 64
EVERY = 0.05


class Spilled:
    """Makes arrays in a file that is gone with this process, on Linux and with room on the disk; else usual arrays.

    Args:
        folder: The file's folder; the one for temporary files if there is no such folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._maps = list[mmap.mmap]()
        self._left = 0
        self._able = sys.platform == "linux"

    def empty(self, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
        """Return an array to be filled."""
        count = math.prod(shape)
        size = count * np.dtype(kind).itemsize
        if size < LEAST or not self._has_room(size):
            return np.empty(shape, kind)
        start = len(self._maps[-1]) - self._left
        self._left -= _whole(size, ALIGNED)
        return np.frombuffer(self._maps[-1], kind, count, start).reshape(shape)

    def give_back(self) -> None:
        """Give the arrays' memory back. They are read from the file where they are used again."""
        if sys.platform == "linux":
            for of in self._maps:
                of.madvise(mmap.MADV_DONTNEED)

    @contextmanager
    def giving_back(self) -> Iterator[None]:
        """Give memory back again and again while the arrays are used for the last time."""
        over = threading.Event()

        def work() -> None:
            while not over.wait(EVERY):
                self.give_back()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.give_back()

    def _has_room(self, size: int) -> bool:
        """Make room for an array; return False where there is none."""
        if self._left >= _whole(size, ALIGNED):
            return True
        if self._able and sys.platform == "linux":
            self.give_back()
            length = _whole(max(TOGETHER, size), mmap.ALLOCATIONGRANULARITY)
            start = sum(map(len, self._maps))
            try:
                if self._file is None:
                    self._file = self._opened()
                # Without room on the disk a page that is written later would end the process.
                os.posix_fallocate(self._file.fileno(), start, length)
                self._maps.append(mmap.mmap(self._file.fileno(), length, offset=start))
                self._left = length
            except (OSError, ValueError):
                self._able = False
        return self._able

    def _opened(self) -> IO[bytes]:
        try:
            return tempfile.TemporaryFile(dir=self._folder)
        except OSError:
            return tempfile.TemporaryFile()


def _whole(size: int, of: int) -> int:
    return -(-size // of) * of
