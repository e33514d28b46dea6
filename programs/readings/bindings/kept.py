"""A reader with a memory on disk."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.programs.models.cache import CallCache, SharedFile
from judgesmith.programs.readings.passages import Passage, Piece
from judgesmith.programs.readings.reader import Reader, TokenReading, read_all

_FORMAT = 1  # of the entries; another one starts afresh
_VECTORS = ("logp", "entropy", "top", "ends")


class _Store(SharedFile):
    label = "the store of readings"
    table = "readings"
    advice = "delete it, or pass --no-cache"
    without = "rows are read without it"


def default_store_path() -> Path:
    """Return `readings.sqlite` beside the call cache."""
    return CallCache.default_path().with_name("readings.sqlite")


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
        self.name = reader.name
        self.chat = reader.chat
        self.ability = reader.ability
        self._reader = reader
        self._model = model
        self._store = _Store(path)

    def close(self) -> None:
        """Close the file. The reader stays open."""
        self._store.close()

    def size(self, pieces: Sequence[Piece]) -> int:
        """Return the reader's own count of tokens."""
        return self._reader.size(pieces)

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        """See `Reader`. Layers that were not kept with the passage make it be read again."""
        return self.read_many([passage], layers=layers)[0]

    def read_many(
        self, passages: Sequence[Passage], *, layers: Sequence[int] = ()
    ) -> list[TokenReading]:
        """See `BatchReader`. What is not stored is read at once, where the reader can."""
        keys = [self._key(passage, layers) for passage in passages]
        readings = dict[bytes, TokenReading]()
        missing = dict[bytes, Passage]()
        for key, passage in dict(zip(keys, passages, strict=True)).items():
            if (stored := self._kept(key)) is None:
                missing[key] = passage
            else:
                readings[key] = _reading(stored, layers)
        read = read_all(self._reader, list(missing.values()), layers=layers)
        for key, reading in zip(missing, read, strict=True):
            arrays = {name: np.asarray(getattr(reading, name)) for name in _VECTORS}
            for layer in layers:
                arrays[f"mean{layer}"] = reading.means[layer].astype(np.float16)
            self._keep(key, arrays)
            readings[key] = _reading(arrays, layers)
        return [readings[key] for key in keys]

    def _key(self, passage: Passage, layers: Sequence[int]) -> bytes:
        pieces = [[piece.text, piece.mark] for piece in passage.pieces]
        parts = [_FORMAT, self._model, "read", pieces, passage.target, sorted(layers)]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).digest()

    def _kept(self, key: bytes) -> dict[str, Any] | None:
        packed = self._store.get(key)
        if packed is None:
            return None
        try:
            with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile):
            return None  # a torn entry is read again

    def _keep(self, key: bytes, arrays: dict[str, Any]) -> None:
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)
        self._store.put(key, packed.getvalue())


def _reading(arrays: Mapping[str, Any], layers: Sequence[int]) -> TokenReading:
    return TokenReading(
        logp=arrays["logp"],
        entropy=arrays["entropy"],
        top=arrays["top"],
        ends=tuple(int(end) for end in arrays["ends"]),
        means={layer: arrays[f"mean{layer}"].astype(np.float32) for layer in layers},
    )
