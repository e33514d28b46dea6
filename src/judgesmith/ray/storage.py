"""Files on a disk or on object storage (`s3://…`, `gs://…`, what fsspec knows): read to a disk, written whole.

Who may read and write is the storage's own business: its client takes keys from the environment, as its other programs
do. Nothing is renamed, which object storage cannot do: a file is there when all of it is.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import MissingExtraError, OptionError
from ..running.opening import is_address

PIECE = 1 << 22


class Storage:
    """A folder or a file. address: a path, or `s3://bucket/folder`. Raises MissingExtraError where the package that
    speaks to it is not installed."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        try:
            from fsspec.core import url_to_fs
            from fsspec.registry import known_implementations
        except ModuleNotFoundError:
            raise MissingExtraError(f"{address} needs fsspec: pip install 'judgesmith[ray]'") from None
        kind = address.partition("://")[0]
        try:
            self._files, self._root = url_to_fs(self.address)
        except ImportError:
            package = str(known_implementations.get(kind, {}).get("class", kind)).partition(".")[0]
            raise MissingExtraError(
                f"{address} needs {package}, which is not installed: pip install {package}"
            ) from None
        except ValueError as error:
            raise OptionError(f"{address}: {error}") from None

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else str(self._root)

    def size(self, name: str = "") -> int | None:
        """Bytes of a file; None where there is none."""
        try:
            self._files.invalidate_cache()
            return int(self._files.info(self._path(name))["size"])
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from None

    def mark(self) -> str:
        """What changes with the file: its tag or time."""
        about = self._files.info(self._path(""))
        names = ("ETag", "etag", "md5Hash", "LastModified", "updated", "mtime", "created")
        return next((str(about[name]) for name in names if about.get(name)), "")

    def read(self, name: str) -> bytes:
        return bytes(self._files.cat_file(self._path(name)))

    def write(self, name: str, content: bytes | Path | Iterator[bytes]) -> None:
        """Write a file: who reads it sees all of it or none. Raises OptionError where it cannot be written."""
        try:
            self._files.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
            with self._files.transaction, self._files.open(self._path(name), "wb") as file:
                if isinstance(content, Path):
                    with content.open("rb") as part:
                        shutil.copyfileobj(part, file, PIECE)
                else:
                    file.writelines([content] if isinstance(content, bytes) else content)
        except OSError as error:
            raise self._unusable(error) from None

    def pieces(self, name: str = "") -> Iterator[bytes]:
        """A file, some megabytes at a time."""
        with self._files.open(self._path(name), "rb") as file:
            while piece := file.read(PIECE):
                yield piece

    def remove(self, pattern: str) -> None:
        """Remove the files of the folder whose names match."""
        self._files.invalidate_cache()
        if paths := self._files.glob(self._path(pattern)):
            self._files.rm(paths)

    def remove_all(self) -> None:
        """Remove the folder with all that is in it."""
        self._files.rm(self._root, recursive=True)

    def _unusable(self, error: OSError) -> OptionError:
        what = " ".join(str(error).split())[:300] or type(error).__name__
        return OptionError(f"{self.address} cannot be used: {what}; check the address and its keys in the environment")


@contextmanager
def at_hand(name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A file on this machine's disk for as long as the block lasts, of an address a copy; and what tells it from other
    files and from a later version. Raises OptionError where there is none."""
    stored = Storage(name)
    size = stored.size()
    if size is None:
        raise OptionError(f"{name} does not exist")
    if not is_address(name):
        yield Path(name), {"input": Path(name).name, "bytes": size, "changed": Path(name).stat().st_mtime_ns}
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / PurePosixPath(name).name
        with path.open("wb") as file:
            file.writelines(stored.pieces())
        yield path, {"input": name, "bytes": size, "changed": stored.mark()}
