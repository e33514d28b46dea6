"""Sets of outputs with human scores from the literature: what they are, where they are, and their rows.

A set is looked for in the folder that `JUDGESMITH_DATA` names, then in the cache, and is fetched from its origin only
when that is asked for. A fetched file is used only if its SHA-256 is the pinned one, so no mirror has to be trusted.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx

from judgesmith.datasets.benchmarks.converters import convert
from judgesmith.datasets.benchmarks.registry import (
    PREFIX,
    BenchmarkCard,
    Origin,
    benchmarks,
)
from judgesmith.errors import LabelsError

Progress = Callable[[int, int, str], None]
"""`progress(done_bytes, total_bytes, what)`; `what` is one line for people. Called from the calling thread."""

_CONVERSION = 1  # counts up when a converter changes, so that results of an older one are not read
_ANSWER_WITHIN = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a set, and the `path` of its rows, None if they are not here.

    `kind` is "folder" (of JUDGESMITH_DATA), "package" (that declares it), "cache", "fetchable" or "unavailable".
    """

    kind: Literal["folder", "package", "cache", "fetchable", "unavailable"]
    path: Path | None = None


# --- cards -----------------------------------------------------------------------------------------------------------


def _cards() -> dict[str, BenchmarkCard]:
    return {card.key: card for card in benchmarks.parts().values()}


def list_benchmarks() -> list[BenchmarkCard]:
    """Return the cards of all sets, present or not."""
    return list(_cards().values())


def benchmark(name: str) -> BenchmarkCard:
    """Return the card of a set, by its name with or without `bench/`.

    Raises:
        LabelsError: For an unknown name, with the names that come closest.
    """
    key = name.removeprefix(PREFIX)
    if key in _cards():
        return _cards()[key]
    close = difflib.get_close_matches(key.lower(), _cards(), n=2, cutoff=0.5)
    if close:
        meant = f"did you mean {' or '.join(PREFIX + near for near in close)}? "
    else:
        meant = ""
    names = ", ".join(card.name for card in list_benchmarks())
    raise LabelsError(
        f"{PREFIX}{key}: there is no such set; {meant}The sets are {names}"
    )


# --- where they are --------------------------------------------------------------------------------------------------


def data_dir() -> Path | None:
    """Return the folder that `JUDGESMITH_DATA` names, None if it is not set.

    Raises:
        LabelsError: If there is no such folder.
    """
    named = os.environ.get("JUDGESMITH_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise LabelsError(
            f"JUDGESMITH_DATA: there is no folder {folder}; correct the path or unset the variable"
        )
    return folder


def cache_dir() -> Path:
    """Return the folder of fetched sets: `JUDGESMITH_DATA_CACHE`, or `~/.cache/judgesmith/data`.

    It need not exist yet.
    """
    if folder := os.environ.get("JUDGESMITH_DATA_CACHE"):
        return Path(folder).expanduser()
    return Path.home() / ".cache" / "judgesmith" / "data"


def locate(name: str) -> Place:
    """Return the location of a set. Nothing is fetched or written.

    Raises:
        LabelsError: If the name or the folder does not exist.
    """
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


def resolve(
    name: str, *, fetch: bool = False, progress: Progress | None = None
) -> Path:
    """Return the path of a set's rows, as JSONL that `read_labels` reads.

    Args:
        name: The set's name, with or without `bench/`.
        fetch: True fetches the set from its origin if it is not here; read `benchmark(name).licence` first. False never
            touches the network.
        progress: Called for every piece that arrives.

    Raises:
        LabelsError: If the set is unknown, is not here and cannot or may not be fetched, or if the origin does not
            deliver the pinned file; nothing is kept of a wrong one.
    """
    card = benchmark(name)
    place = locate(name)
    if place.path is not None:
        return place.path
    beside = f"set JUDGESMITH_DATA to a folder with {card.key}.jsonl"
    if card.origin is None:
        raise LabelsError(
            f"{card.name}: it is not here and cannot be fetched ({card.unfetchable}); {beside}"
        )
    original = _originals(card.origin) / card.origin.path
    # The right file may be there already: put there by hand, or kept when a converter changed.
    if not (
        original.is_file()
        and hashlib.sha256(original.read_bytes()).hexdigest() == card.origin.sha256
    ):
        if not fetch:
            raise LabelsError(
                f"{card.name}: it is not here; fetch it ({card.origin.bytes / 1e6:.1f} MB, licence {card.licence}) with"
                f" `judgesmith get {card.name}`, or {beside}"
            )
        _download(
            card, card.origin, original, progress or (lambda done, total, title: None)
        )
    if card.convert is not None:
        rows = card.convert(original)
    else:
        rows = convert(card.key, original)
    path = _converted(card)
    with _whole(path) as part:
        part.write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
            encoding="utf-8",
        )
    return path


def _originals(origin: Origin) -> Path:
    return (
        cache_dir()
        / "origins"
        / origin.repository.replace("/", "_")
        / origin.commit[:12]
    )


def _converted(card: BenchmarkCard) -> Path:
    return cache_dir() / f"v{_CONVERSION}" / f"{card.key}.jsonl"


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A file that takes its place once it is complete: another process must never read half of one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            part = Path(folder, path.name)
            yield part
            part.replace(path)
    except OSError as error:
        raise LabelsError(
            f"{path.parent}: cannot be written ({error.strerror or error}); make room, or set JUDGESMITH_DATA_CACHE to"
            " another folder"
        ) from None


def _download(
    card: BenchmarkCard, origin: Origin, target: Path, progress: Progress
) -> None:
    """Bring the pinned file to `target`; nothing is kept of another one, and no more is read than the file has."""
    digest = hashlib.sha256()
    done = 0
    try:
        with (
            _whole(target) as part,
            part.open("wb") as file,
            httpx.stream(
                "GET", origin.url, follow_redirects=True, timeout=_ANSWER_WITHIN
            ) as answer,
        ):
            answer.raise_for_status()
            for piece in answer.iter_bytes():
                done += file.write(piece)
                digest.update(piece)
                progress(
                    min(done, origin.bytes),
                    origin.bytes,
                    f"{card.name} from {origin.url}",
                )
                if done > origin.bytes:
                    break
            if digest.hexdigest() != origin.sha256:
                raise ValueError(
                    "it sent another file than the pinned one (the SHA-256 differs)"
                )
    except (httpx.HTTPError, ValueError) as error:
        raise LabelsError(
            f"{card.name}: {origin.url}: {str(error).splitlines()[0]}; try again later, or put the file (SHA-256"
            f" {origin.sha256}) at {target}"
        ) from None
