"""Files written whole: who reads one never sees half of it, and an old one survives a full disk."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    r"""Write to a temporary file beside `path`, then rename. A missing folder is made.

    A text is written as UTF-8, lone surrogates as their escapes (`\ud800`). An old file keeps its permissions, a link
    its target; a pipe or a device is written to directly.

    Raises:
        OSError: If writing failed; `path` is then unchanged.
    """
    data = (
        content.encode("utf-8", "backslashreplace")
        if isinstance(content, str)
        else content
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    path = path.resolve()
    beside = path.with_name(f".{secrets.token_hex(8)}.new")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
