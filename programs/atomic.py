"""Files written whole: who reads one never sees half of it, and an old one survives a full disk."""

from __future__ import annotations

import glob
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    r"""Write to a temporary file beside `path`, then rename. A missing folder is made.

    A text is written as UTF-8, lone surrogates as their escapes (`\ud800`). An old file keeps its permissions, a link
    its target; a pipe or a device is written to directly.

    Raises:
        OSError: If writing failed; `path` is then unchanged.
    """
    if isinstance(content, str):
        data = content.encode("utf-8", "backslashreplace")
    else:
        data = content
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    with written_whole(path) as beside:
        beside.write_bytes(data)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield an empty file beside `path` that takes its place when the block ends. A missing folder is made.

    Nobody can lay a link under the file's name beforehand: the name is drawn. An old file keeps its permissions, which
    the new one has before anything is in it; a link keeps its target.

    Raises:
        OSError: If the file cannot be made or put in place; `path` is then unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path = path.resolve()
    beside = path.with_name(f"{_beginning(path)}{secrets.token_hex(8)}.new")
    beside.open("xb").close()
    try:
        if path.exists():
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def left_beside(path: Path) -> list[Path]:
    """Return the temporary files of `path`; of a path that one process writes they are a killed one's."""
    return list(path.parent.glob(f"{glob.escape(_beginning(path))}{'?' * 16}.new"))


def _beginning(path: Path) -> str:
    return f".{path.name[:48]}."
