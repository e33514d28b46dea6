"""What was read is kept: the same passage is never put through the same model twice, in this run or a later one."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..models.cache import SharedFile, default_cache_path
from .passages import Passage, Piece, Question
from .reader import Floats, Reader, TokenReading

__all__ = ["KeptReader", "default_store_path"]

_FORMAT = 1  # of the entries; another one starts afresh
_VECTORS = ("tokens", "logp", "entropy", "top", "ends")


class _Store(SharedFile):
    what = "the store of readings"
    tables = ("readings (key BLOB PRIMARY KEY, value BLOB NOT NULL)",)
    advice = "delete it, or pass --no-cache"
    without = "rows are read without it"

    def get(self, key: bytes) -> bytes | None:
        found = self._run("SELECT value FROM readings WHERE key = ?", (key,))
        return found[0][0][0] if found and found[0] else None

    def put(self, key: bytes, value: bytes) -> None:
        self._run("INSERT OR REPLACE INTO readings VALUES (?, ?)", (key, value))


def default_store_path() -> Path:
    """`readings.sqlite` beside the call cache."""
    return default_cache_path().with_name("readings.sqlite")


class KeptReader:
    """A reader with a memory on disk.

    Args:
        reader: what reads; its results must depend on nothing but the passage and the model.
        path: an SQLite file, made if it is not there, for its owner's eyes only: it holds no text, but what can be
            told from states and likelihoods.
        model: what tells the model from every other: the SHA-256 of its file, or the served model's name and address.

    Hidden states are kept as 16-bit floats, and given as such from the first time on, so that a run that reads them
    from disk fits the same head as the one that computed them.

    Raises: OptionError if the file cannot be used.
    """

    def __init__(self, reader: Reader, path: Path, *, model: str) -> None:
        self.name, self.chat, self.ability = reader.name, reader.chat, reader.ability
        self._reader = reader
        self._model = model
        self.hits = 0
        self._store = _Store(path)

    def close(self) -> None:
        """Close the file. The reader stays open."""
        self._store.close()

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        """See `Reader`. Layers that were not kept with the passage make it be read again."""
        key = self._key("read", passage.pieces, passage.target, sorted(layers))
        kept = self._kept(key)
        if kept is None:
            found = self._reader.read(passage, layers=layers)
            kept = {name: np.asarray(getattr(found, name)) for name in _VECTORS}
            for layer in layers:
                kept[f"mean{layer}"] = found.means[layer].astype(np.float16)
                kept[f"last{layer}"] = found.last[layer].astype(np.float16)
            self._keep(key, kept)
        return TokenReading(
            tokens=tuple(int(token) for token in kept["tokens"]),
            logp=kept["logp"],
            entropy=kept["entropy"],
            top=kept["top"],
            ends=tuple(int(end) for end in kept["ends"]),
            means={layer: kept[f"mean{layer}"].astype(np.float32) for layer in layers},
            last={layer: kept[f"last{layer}"].astype(np.float32) for layer in layers},
        )

    def answer(self, question: Question) -> Floats:
        """See `Reader`."""
        key = self._key("answer", question.pieces, question.answers)
        kept = self._kept(key)
        if kept is None:
            kept = {"logp": self._reader.answer(question)}
            self._keep(key, kept)
        logp: Floats = kept["logp"]
        return logp

    def _key(self, what: str, pieces: Sequence[Piece], *rest: Any) -> bytes:
        told = [_FORMAT, self._model, what, [[piece.text, piece.mark] for piece in pieces], *rest]
        return hashlib.sha256(json.dumps(told, ensure_ascii=True).encode()).digest()

    def _kept(self, key: bytes) -> dict[str, Any] | None:
        packed = self._store.get(key)
        if packed is None:
            return None
        try:
            with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
                found = {name: arrays[name] for name in arrays.files}
        except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile):
            return None  # a torn entry is read again
        self.hits += 1
        return found

    def _keep(self, key: bytes, arrays: dict[str, Any]) -> None:
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)
        self._store.put(key, packed.getvalue())
