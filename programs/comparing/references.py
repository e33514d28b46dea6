"""Written references on disk: each document's are written once and can be shared.

SQLite in write-ahead mode. Within a process, rows of one document wait for the first. Files to exchange are JSON lines;
what they say is data that is checked, and their keys are computed again.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from ...errors import CallError, JudgesmithError, OptionError
from ...signatures.values import Item, Usage
from ..models.cache import SharedFile
from .synthesis import FEWEST, MOST, ReferenceSet

FORMAT = "judgesmith.references/1"
LARGEST_LINE = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReferenceKey:
    """What references depend on. document: 64 hex digits over source and context; aspect: its name; prompt: a hash of
    all else in the writer's prompt, its version included; levels: N; writer: the model's name."""

    document: str
    aspect: str
    prompt: str
    levels: int
    writer: str

    @property
    def digest(self) -> bytes:
        return sha256(orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS)).digest()


def document_hash(item: Item) -> str:
    text = f"{len(item.source)}:{item.source}{item.context or ''}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


Hex64 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Hex12 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Level = Annotated[str, StringConstraints(pattern=r"^[1-9]$")]
Words = Annotated[str, StringConstraints(min_length=1, max_length=40_000)]


class _Line(BaseModel):
    """One line of an exchanged file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["judgesmith.references/1"]
    document: Hex64
    aspect: Name
    prompt: Hex12
    levels: Annotated[int, Field(ge=FEWEST, le=MOST)]
    writer: Name
    outputs: dict[Level, Words]
    left_out: dict[Level, Annotated[str, StringConstraints(max_length=1000)]]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        written, missing = {int(n) for n in self.outputs}, {int(n) for n in self.left_out}
        if written & missing or written | missing != set(range(1, self.levels + 1)):
            raise ValueError("each level must stand once, in outputs or in left_out")
        if not {1, self.levels} <= written:
            raise ValueError("the worst and the best level must be among the outputs")
        if any(not text.strip() for text in self.outputs.values()):
            raise ValueError("an output is empty")
        return self

    def unpacked(self) -> tuple[ReferenceKey, ReferenceSet]:
        key = ReferenceKey(self.document, self.aspect, self.prompt, self.levels, self.writer)
        outputs = {int(n): text for n, text in sorted(self.outputs.items())}
        return key, ReferenceSet(self.levels, outputs, {int(n): why for n, why in sorted(self.left_out.items())})


def default_store_path() -> Path:
    """`JUDGESMITH_REFERENCES`, or `references.sqlite` under `~/.cache/judgesmith`."""
    given = os.environ.get("JUDGESMITH_REFERENCES")
    return Path(given) if given else Path.home() / ".cache" / "judgesmith" / "references.sqlite"


class ReferenceStore(SharedFile):
    """References by key. found, written: how many times they were there and how many times they had to be written, by
    this object; copies of a judge share it."""

    what = "the reference store"
    tables = (
        "sets (key BLOB PRIMARY KEY, document TEXT, aspect TEXT, prompt TEXT, levels INTEGER, writer TEXT, value BLOB)",
    )
    advice = "set JUDGESMITH_REFERENCES to another file or correct this one"
    without = "references are written again"

    def __init__(self, path: Path | str | None = None) -> None:
        self.found = self.written = 0
        self._forked()
        super().__init__(Path(path) if path else default_store_path())

    def _forked(self) -> None:
        self._under_way: dict[bytes, asyncio.Task[tuple[ReferenceSet, Usage]]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    @property
    def hit_rate(self) -> float:
        """The share of requests that needed no writing; NaN before the first."""
        asked = self.found + self.written
        return self.found / asked if asked else float("nan")

    # -- single references

    def get(self, key: ReferenceKey) -> ReferenceSet | None:
        """None where there are none, or where an entry is damaged."""
        rows = self._run("SELECT value FROM sets WHERE key = ?", (key.digest,))
        return _thaw(key, rows[0][0][0]) if rows and rows[0] else None

    def put(self, key: ReferenceKey, found: ReferenceSet) -> None:
        self._run(
            "INSERT OR REPLACE INTO sets VALUES (?, ?, ?, ?, ?, ?, ?)",
            (key.digest, key.document, key.aspect, key.prompt, key.levels, key.writer, _freeze(found)),
        )

    async def get_or_write(
        self, key: ReferenceKey, write: Callable[[], Awaitable[tuple[ReferenceSet, Usage]]]
    ) -> tuple[ReferenceSet, Usage]:
        """The references of `key`, and what writing them cost here (nothing where somebody else did). Rows of one
        document wait for the first; what `write` raises is raised. Two processes may write at once: what the first of
        them kept counts for both."""
        while (first := self._under_way.get(key.digest)) is not None:
            try:
                made, _ = await asyncio.shield(first)
            except asyncio.CancelledError:
                if not first.cancelled():  # we were cancelled, not the one that we wait for
                    raise
                self._end(key, first)  # awaiting it again would never give its owner a turn to do so
            except CallError as error:
                raise CallError(str(error)) from None  # what it cost is the first one's
            else:
                self.found += 1
                return made, Usage()
        self._under_way[key.digest] = task = asyncio.ensure_future(self._found_or_written(key, write))
        try:
            return await task
        finally:
            self._end(key, task)

    def _end(self, key: ReferenceKey, task: asyncio.Task[tuple[ReferenceSet, Usage]]) -> None:
        if self._under_way.get(key.digest) is task:
            del self._under_way[key.digest]

    async def _found_or_written(
        self, key: ReferenceKey, write: Callable[[], Awaitable[tuple[ReferenceSet, Usage]]]
    ) -> tuple[ReferenceSet, Usage]:
        known = self.get(key)
        if known is not None:
            self.found += 1
            return known, Usage()
        made, usage = await write()
        self.written += 1
        kept = self.get(key)  # by another process in the meantime
        if kept is None:
            self.put(key, made)
        return kept or made, usage

    # -- all of them

    def entries(self) -> Iterator[tuple[ReferenceKey, ReferenceSet]]:
        """All entries in the order of writer, aspect and document; damaged ones are left out."""
        rows = self._run("SELECT * FROM sets ORDER BY writer, aspect, levels, prompt, document")
        for _, document, aspect, prompt, levels, writer, value in rows[0] if rows else ():
            key = ReferenceKey(document, aspect, prompt, levels, writer)
            if (found := _thaw(key, value)) is not None:
                yield key, found

    def export_to(self, path: Path, *, aspect: str | None = None, writer: str | None = None) -> int:
        """Write the entries as JSON lines, those of one aspect or writer where given; how many there were. The
        documents themselves are not in the file, only their hashes. Raises OptionError."""
        from ..artifact import write_atomically

        lines = [
            json.dumps(_record(key, found), ensure_ascii=False)
            for key, found in self.entries()
            if aspect in (None, key.aspect) and writer in (None, key.writer)
        ]
        try:
            write_atomically(path, "".join(line + "\n" for line in lines))
        except JudgesmithError as error:
            raise OptionError(str(error)) from None
        return len(lines)

    def import_from(self, path: Path, *, replace: bool = False) -> tuple[int, int]:
        """Read a file that `export_to` wrote: how many entries are new, and how many were there before (kept, unless
        `replace`). All of the file is checked before any of it is taken. Raises OptionError with the line."""
        entries = list(_lines(path))
        new = known = 0
        for key, found in entries:
            there = self.get(key) is not None
            known, new = known + there, new + (not there)
            if replace or not there:
                self.put(key, found)
        return new, known


@lru_cache(maxsize=8)
def _store_at(path: Path) -> ReferenceStore:
    return ReferenceStore(path)


def reference_store() -> ReferenceStore:
    """The store that all judges of this process share. Raises OptionError where its file cannot be used."""
    return _store_at(default_store_path())


def _freeze(found: ReferenceSet) -> bytes:
    return json.dumps({"outputs": _texts(found.outputs), "left_out": _texts(found.left_out)}).encode()


def _record(key: ReferenceKey, found: ReferenceSet) -> dict[str, Any]:
    return {"format": FORMAT, **asdict(key), "outputs": _texts(found.outputs), "left_out": _texts(found.left_out)}


def _texts(by_level: Any) -> dict[str, str]:
    # A lone surrogate, which broken JSON can bring in, could not be written to a file.
    return {str(n): text.encode("utf-8", "replace").decode() for n, text in by_level.items()}


def _thaw(key: ReferenceKey, value: Any) -> ReferenceSet | None:
    try:
        data = json.loads(value)
        return _Line.model_validate({"format": FORMAT, **asdict(key), **data}).unpacked()[1]
    except (ValueError, TypeError, RecursionError):  # pydantic's error is a ValueError
        return None


def _lines(path: Path) -> Iterator[tuple[ReferenceKey, ReferenceSet]]:
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LARGEST_LINE + 1):
                number += 1
                where = f"{path.name}, line {number}"
                if len(line) > LARGEST_LINE:
                    raise OptionError(f"{where}: longer than {LARGEST_LINE:,} bytes; these are not references")
                if not line.strip():
                    continue
                try:
                    yield _Line.model_validate_json(line).unpacked()
                except ValidationError as error:
                    first = error.errors(include_url=False, include_input=False)[0]
                    place = ".".join(str(part) for part in first["loc"])[:80] or "the line"
                    raise OptionError(
                        f"{where}: {place}: {' '.join(first['msg'].split())[:200]}; correct or remove it"
                    ) from None
    except OSError as error:
        raise OptionError(f"{path}: cannot be read ({error.strerror or error}); check the path") from None
