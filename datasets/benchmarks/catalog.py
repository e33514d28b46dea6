"""Sets of outputs with human scores from the literature: what they are, where they are, and their rows.

A set is looked for in the folder that `JUDGESMITH_DATA` names, then in the cache, and is fetched from its origin only
when that is asked for. A fetched file is used only if its SHA-256 is the pinned one, so no mirror has to be trusted.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...errors import LabelsError
from ..loading import count_rows
from .converters import convert
from .registry import GITHUB, PREFIX, BenchmarkCard, Origin, benchmarks

__all__ = [
    "GITHUB", "BenchmarkCard", "Origin", "Place", "Progress", "benchmark", "cache_dir", "count_here", "data_dir",
    "list_benchmarks", "locate", "resolve",
]  # fmt: skip

Progress = Callable[[int, int, str], None]
"""`progress(done_bytes, total_bytes, what)`; `what` is one line for people. Called from the calling thread."""

_CONVERSION = 1  # counts up when a converter changes, so that results of an older one are not read
_RETRIES = 1
_ANSWER_WITHIN = 30.0  # seconds
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where a set is: in the "folder" of JUDGESMITH_DATA, in the "package" that declares it, in the "cache",
    "fetchable", or "unavailable".

    `path` is the file with its rows, None where it is not here.
    """

    kind: Literal["folder", "package", "cache", "fetchable", "unavailable"]
    path: Path | None = None


# --- cards -----------------------------------------------------------------------------------------------------------


def _cards() -> dict[str, BenchmarkCard]:
    return {card.key: card for card in benchmarks.parts().values()}


def list_benchmarks() -> list[BenchmarkCard]:
    """The cards of all sets, whether they are here or not."""
    return list(_cards().values())


def benchmark(name: str) -> BenchmarkCard:
    """The card of a set, by its name with or without `bench/`. Raises LabelsError, with the names that come closest."""
    key = name.removeprefix(PREFIX)
    if key in _cards():
        return _cards()[key]
    close = difflib.get_close_matches(key.lower(), _cards(), n=2, cutoff=0.5)
    meant = f"did you mean {' or '.join(PREFIX + other for other in close)}? " if close else ""
    known = ", ".join(card.name for card in list_benchmarks())
    raise LabelsError(f"{PREFIX}{key}: there is no such set; {meant}The sets are {known}")


# --- where they are --------------------------------------------------------------------------------------------------


def data_dir() -> Path | None:
    """The folder that `JUDGESMITH_DATA` names, None if it is not set. Raises LabelsError if there is no such folder."""
    named = os.environ.get("JUDGESMITH_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise LabelsError(f"JUDGESMITH_DATA: there is no folder {folder}; correct the path or unset the variable")
    return folder


def cache_dir() -> Path:
    """The folder of fetched sets: `JUDGESMITH_DATA_CACHE`, or `~/.cache/judgesmith/data`. It need not exist yet."""
    if folder := os.environ.get("JUDGESMITH_DATA_CACHE"):
        return Path(folder).expanduser()
    return Path.home() / ".cache" / "judgesmith" / "data"


def locate(name: str) -> Place:
    """Where a set is. Fetches and writes nothing. Raises LabelsError if the name or the folder does not exist."""
    card = benchmark(name)
    folder = data_dir()
    if folder is not None and (folder / f"{card.key}.jsonl").is_file():
        return Place("folder", folder / f"{card.key}.jsonl")
    if card.file is not None and card.file.is_file():
        return Place("package", card.file)
    if card.origin is None:
        return Place("unavailable")
    if _converted(card).is_file():
        return Place("cache", _converted(card))
    return Place("fetchable")


def count_here(name: str) -> int | None:
    """How many rows the set has here: fewer than its card says where only a part is. None where it is not here."""
    place = locate(name)
    return None if place.path is None else count_rows(place.path)


def resolve(name: str, *, fetch: bool = False, base_url: str | None = None, progress: Progress | None = None) -> Path:
    """The path of a set's rows, as JSONL that `read_labels` reads.

    fetch: True fetches the set from its origin if it is not here; read `benchmark(name).licence` first. False never
        touches the network.
    base_url: a mirror of GITHUB.
    progress: called for every piece that arrives.
    Raises LabelsError if the set is unknown, is not here and cannot or may not be fetched, or if the origin does not
    deliver the pinned file; nothing is kept of a wrong one.
    """
    card = benchmark(name)
    place = locate(name)
    if place.path is not None:
        return place.path
    beside = f"set JUDGESMITH_DATA to a folder with {card.key}.jsonl"
    if card.origin is None:
        raise LabelsError(f"{card.name}: it is not here and cannot be fetched ({card.unfetchable}); {beside}")
    original = _originals(card.origin) / card.origin.path
    # The right file may be there already: put there by hand, or kept when a converter changed.
    if not (original.is_file() and _sha256(original) == card.origin.sha256):
        if not fetch:
            raise LabelsError(
                f"{card.name}: it is not here; fetch it ({card.origin.bytes / 1e6:.1f} MB, licence {card.licence}) with"
                f" `judgesmith get {card.name}`, or {beside}"
            )
        _download(card, card.origin, base_url or GITHUB, progress)
    rows = card.convert(original) if card.convert is not None else convert(card.key, original)
    path = _converted(card)
    _write_rows(path, rows)
    return path


def _originals(origin: Origin) -> Path:
    return cache_dir() / "origins" / origin.repository.replace("/", "_") / origin.commit[:12]


def _converted(card: BenchmarkCard) -> Path:
    return cache_dir() / f"v{_CONVERSION}" / f"{card.key}.jsonl"


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """All rows or none: another process must never read half a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            whole = Path(folder, path.name)
            whole.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
            whole.replace(path)
    except OSError as error:
        raise _unwritable(path.parent, error) from None


def _unwritable(folder: Path, error: OSError) -> LabelsError:
    return LabelsError(
        f"{folder}: cannot be written ({error.strerror or error}); make room, or set JUDGESMITH_DATA_CACHE to another"
        " folder"
    )


# --- fetching --------------------------------------------------------------------------------------------------------


def _download(card: BenchmarkCard, origin: Origin, base_url: str, progress: Progress | None) -> None:
    """Bring the pinned file into `_originals(origin)`. pooch checks its hash before it takes its place."""
    import pooch
    import requests

    pooch.get_logger().setLevel(logging.WARNING)  # it announces every download, and a library prints nothing
    folder = _originals(origin)
    source = pooch.create(
        path=folder,
        base_url=origin.url(base_url).removesuffix(origin.path),
        registry={origin.path: f"sha256:{origin.sha256}"},
        retry_if_failed=_RETRIES,
    )
    bar = _Received(origin.bytes, f"{card.name} from {origin.url(base_url)}", progress)
    loader = pooch.HTTPDownloader(
        progressbar=bar, chunk_size=_CHUNK, timeout=_ANSWER_WITHIN, headers={"Accept-Encoding": "identity"}
    )
    try:
        source.fetch(origin.path, downloader=loader)
    # requests' errors are OSErrors too, so they stand first; a ValueError is pooch's word for a wrong hash, but also
    # requests' for an address that makes no sense.
    except (requests.RequestException, ValueError) as error:
        raise LabelsError(
            f"{card.name}: {origin.url(base_url)}: {_reason(error, base_url)}; try again later, name a mirror with"
            f" --base-url, or put the file (SHA-256 {origin.sha256}) at {folder / origin.path}"
        ) from None
    except OSError as error:
        raise _unwritable(folder, error) from None


def _reason(error: Exception, base_url: str) -> str:
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}".rstrip()
    if isinstance(error, requests.Timeout):
        return f"no answer within {_ANSWER_WITHIN:g} s"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the download broke off"
    if isinstance(error, requests.ConnectionError):
        return f"no connection to {base_url}"
    if isinstance(error, requests.RequestException):
        return f"{type(error).__name__}: {error}"
    if isinstance(error, _TooLongError):
        return "the server sends far more than the file has"
    return "it sent another file than the pinned one (the SHA-256 differs)"


class _TooLongError(ValueError):
    """Stops a server that never ends."""


class _Received:
    """What pooch takes for a progress bar: passes the bytes on to `progress`, and stops a download without an end."""

    def __init__(self, size: int, what: str, progress: Progress | None) -> None:
        self._size = size
        self._what = what
        self._say = progress or (lambda done, total, what: None)
        self._done = 0
        self._ended = False

    @property
    def total(self) -> int:
        return self._size

    @total.setter
    def total(self, said: int) -> None:
        """pooch sets what the server says when a download begins, so also when it starts over."""
        self._done, self._ended = 0, False

    def update(self, count: int) -> None:
        """One more chunk has arrived; the last one counts as full."""
        if self._ended:
            return
        self._done += count
        if self._done > 2 * self._size + 16 * _CHUNK:
            raise _TooLongError
        self._say(min(self._done, self._size), self._size, self._what)

    def reset(self) -> None:
        """pooch fills the bar once more at the end, which is no news."""
        self._ended = True

    def close(self) -> None:
        """Nothing is held open."""
