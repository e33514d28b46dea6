"""One process at a time writes a file or folder that grows while a command runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import OptionError


class TakenError(OptionError):
    """Another process has the file or folder."""


@contextmanager
def alone(path: Path, *, folder: bool = False) -> Iterator[None]:
    """Raises OptionError at once where another process has `path`; a killed one leaves it free. What is neither a file
    nor a folder (a pipe) has no owner."""
    if path.exists() and not (path.is_dir() if folder else path.is_file()):
        yield
        return
    try:
        (path if folder else path.parent).mkdir(parents=True, exist_ok=True)
        lock = FileLock(path / ".lock" if folder else path.with_name(f".{path.name}.lock"))
        lock.acquire(timeout=0)
    except Timeout:
        raise TakenError(f"{path}: another process is writing there; wait for it, or give another -o") from None
    except OSError as error:
        raise OptionError(f"-o {path} cannot be written: {error.strerror or error}") from None
    try:
        yield
    finally:
        with suppress(OSError):  # Windows keeps a file that is open
            Path(lock.lock_file).unlink()  # before it is released, so that no other process's is removed
        lock.release()
