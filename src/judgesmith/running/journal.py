"""Files of JSON lines that grow while a command runs, and from which the next run resumes.

A line is a record. A killed run may leave an incomplete last line: it is not read, and the next run writes it again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from judgesmith.errors import OptionError
from judgesmith.programs.atomic import left_beside, written_whole
from judgesmith.programs.models.locking import locked
from judgesmith.running.plain import finite


class TakenError(OptionError):
    """Another process writes the file or folder."""


def read_journal(
    path: Path, *, kind: str = "a file of JSON lines"
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number from 1, record) of each complete line.

    Raises:
        OptionError: If a line shows that the file is not of this kind.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                record = json.loads(line)
                problem = "no JSON object"
            except (ValueError, RecursionError) as error:
                if not line.endswith(b"\n"):
                    return
                record = None
                problem = f"not JSON ({getattr(error, 'msg', error)})"
            if not isinstance(record, dict):
                raise OptionError(
                    f"{path.name}, line {number}: {problem}; this is not {kind}. Give another -o, or --overwrite"
                )
            yield number, record


class Journal:
    """A file that records are appended to, each of them whole.

    kind: kind of the file, for messages. overwrite: start with an empty file. durable: a record is on the disk when
    `write` returns.

    Raises:
        OptionError: If the file cannot be written, or is not a journal.
    """

    def __init__(
        self,
        path: Path,
        *,
        kind: str = "a file of JSON lines",
        overwrite: bool = False,
        durable: bool = False,
    ) -> None:
        self.path = path
        self._durable = durable
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not overwrite and path.exists():
                _mend(path, kind)
            self._file = path.open("wb" if overwrite else "ab", buffering=0)
            self._end = self._file.seek(0, os.SEEK_END)
        except OSError as error:
            raise OptionError(
                f"{path} cannot be written: {error.strerror or error}"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, *records: Mapping[str, Any]) -> None:
        """Append records. On a full disk nothing of them is kept; raises OptionError."""
        text = "".join(
            json.dumps(finite(record), ensure_ascii=False, allow_nan=False, default=str)
            + "\n"
            for record in records
        )
        data = text.encode(
            "utf-8", "backslashreplace"
        )  # a lone surrogate becomes JSON's own escape for it
        try:
            done = 0
            while done < len(data):
                done += self._file.write(data[done:])
            if self._durable:
                os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._end)
            raise OptionError(
                f"{self.path} cannot be written: {error.strerror or error}; the rows in it are kept, the same command "
                "resumes from there"
            ) from None
        self._end += done

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._file.close()


def _mend(path: Path, kind: str) -> None:
    """Make the last line complete, or drop it. Raises OptionError for a file that does not begin as a journal."""
    with path.open("rb+") as file:
        whole = 0
        line = b"\n"
        for line in file:
            whole += len(line) if line.endswith(b"\n") else 0
        if line.endswith(b"\n"):
            return
        try:
            json.loads(line)
        except ValueError:
            if whole == 0 and not line.startswith(b'{"'):
                raise OptionError(
                    f"{path.name} is not {kind}; give another -o, or --overwrite"
                ) from None
            file.truncate(whole)
        else:
            file.write(b"\n")


@contextmanager
def replacing(path: Path) -> Iterator[Journal]:
    """Open a journal beside `path` that replaces it when the block ends; if the block fails, `path` stays."""
    with written_whole(path) as beside, Journal(beside, overwrite=True) as journal:
        yield journal


@contextmanager
def alone(path: Path, *, folder: bool = False) -> Iterator[None]:
    """Let one process at a time write a file or folder, under any name or link.

    A killed process leaves it free. A path that is neither a file nor a folder (a pipe) has no owner.

    Raises:
        TakenError: At once, if another process has `path`.
    """
    path = path.resolve()
    if path.exists() and not (path.is_dir() if folder else path.is_file()):
        yield
        return
    with ExitStack() as held:
        try:
            (path if folder else path.parent).mkdir(parents=True, exist_ok=True)
            lock = path / ".lock" if folder else path.with_name(f".{path.name}.lock")
            held.enter_context(locked(lock))
            # Before it is let go, so that no other process's is removed; Windows keeps a file that is open.
            held.callback(_without, lock)
            if not folder:
                _hold(path, held)
                for left in left_beside(path):  # by a killed process
                    _without(left)
        except BlockingIOError:
            raise TakenError(
                f"{path}: another process is writing there; wait for it, or give another -o"
            ) from None
        except OSError as error:
            raise OptionError(
                f"-o {path} cannot be written: {error.strerror or error}"
            ) from None
        yield


def _hold(path: Path, held: ExitStack) -> None:
    """Lock the file itself, which all of its links share (not on Windows); an empty one goes in the end.

    Raises BlockingIOError.
    """
    with suppress(ImportError):
        import fcntl

        file = held.enter_context(path.open("ab"))
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.callback(
            lambda: (
                _without(path) if path.exists() and not path.stat().st_size else None
            )
        )


def _without(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
