"""Object storage by address: `s3://…` and `gs://…` through Arrow, any other (`az://…`, `hf://…`) through fsspec."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesmith.errors import MissingExtraError, OptionError
from judgesmith.extras import from_extra
from judgesmith.programs.models.cache import CallCache

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

#: Seconds between two copies of an output that grows.
EVERY = 60.0


def is_address(name: str) -> bool:
    """Return whether a name is an address (s3://…) and not a path."""
    return re.match(r"[a-z][a-z0-9+.-]+://", name) is not None


def file_name(name: str) -> str:
    """Return the last part of an address or a path."""
    return name.partition("?")[0].rstrip("/").rpartition("/")[2]


def beside(name: str, ending: str) -> str:
    """Return the address of the file whose name has this ending more."""
    place, mark, options = name.partition("?")
    return f"{place}{ending}{mark}{options}"


def place_of(name: str) -> tuple[FileSystem, str]:
    """Return the file system of an address, or of this machine, and the path in it.

    Raises:
        OptionError: If no file system knows the address.
        MissingExtraError: If a package for it is not installed.
    """
    pa, fs = _arrow(name)
    if not is_address(name):
        return fs.LocalFileSystem(), str(Path(name).absolute())
    try:
        return fs.FileSystem.from_uri(name)  # type: ignore[no-any-return]
    except pa.ArrowInvalid as error:
        unknown = error
    except OSError as error:
        raise OptionError(f"{name} cannot be reached: {error}") from None
    try:
        system, path = import_module("fsspec").core.url_to_fs(name)
    except ImportError as error:
        kind = name.partition(":")[0]
        raise MissingExtraError(
            f"{kind}:// needs a package of fsspec: {error}"
        ) from None
    except (ValueError, OSError):
        raise OptionError(f"{name} is not a storage address: {unknown}") from None
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


def _arrow(name: str) -> tuple[Any, Any]:
    arrow = from_extra("tables", f"{name}: object storage", "pyarrow", "pyarrow.fs")
    return arrow, arrow.fs


def size_of(name: str) -> int:
    """Return the bytes of a file, -1 where there is none.

    Raises:
        OptionError: If the storage cannot be reached.
    """
    try:
        system, path = place_of(name)
        info = system.get_file_info(path)
    except OSError as error:
        raise OptionError(f"{name} cannot be reached: {error}") from None
    return info.size if info.is_file else -1


def copy(source: str, target: str) -> None:
    """Copy a file; names are paths or addresses.

    Raises:
        OptionError: If one of the files cannot be reached.
    """
    _, fs = _arrow(source)
    (there, old) = place_of(source)
    (here, new) = place_of(target)
    try:
        fs.copy_files(old, new, source_filesystem=there, destination_filesystem=here)
    except OSError as error:
        raise OptionError(f"{source} cannot be copied to {target}: {error}") from None


def local_folder(name: str) -> Path:
    """Return the folder on this machine, the same at each call, in which an output of this address grows."""
    folder = (
        CallCache.default_path().parent
        / "outputs"
        / sha256(name.encode()).hexdigest()[:16]
    )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def growing(name: str, *more: str) -> Iterator[Path]:
    """Open a file on this machine that is copied to an address: every minute, and whenever the block ends.

    It begins with the content of the address, or with the copy that a killed run left here, whichever is longer. more:
    suffixes of files beside it that belong to it.

    Raises:
        OptionError: If the storage cannot be written.
    """
    folder = local_folder(name)
    file = file_name(name)
    endings = ("", *more)
    for ending in endings:
        here = folder / f"{file}{ending}"
        if size_of(beside(name, ending)) > size_of(str(here)):
            copy(beside(name, ending), str(here))

    def send() -> None:
        for ending in endings:
            if (folder / f"{file}{ending}").exists():
                copy(str(folder / f"{file}{ending}"), beside(name, ending))

    ended = threading.Event()

    def now_and_then() -> None:
        while not ended.wait(EVERY):
            with suppress(OptionError):  # if it still fails, the last copy says so
                send()

    sender = threading.Thread(target=now_and_then, daemon=True)
    sender.start()
    try:
        yield folder / file
    finally:
        ended.set()
        sender.join()
        send()
        for ending in endings:
            (folder / f"{file}{ending}").unlink(missing_ok=True)
