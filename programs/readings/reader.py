"""What puts passages through a model and says how it takes every token, with or without a memory on disk."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from ..models.cache import SharedFile, default_cache_path
from .passages import Chat, Passage

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Ability:
    """What a reader can give beside log-probabilities. layers: how many the model has, or 0 where their states are out
    of reach."""

    layers: int = 0


@dataclass(frozen=True, slots=True)
class TokenReading:
    """One passage, read. All vectors have one entry for each token of the target.

    logp: natural log of the token's probability
    after all before it. entropy: of the model's distribution there, in nats; NaN where the reader cannot say. top:
    log-probability of the likeliest token; NaN likewise. ends: character of the target after which the token ends, for
    reports. means: layer -> the mean over the target's tokens, of the model's width. Layer l is the output of block l,
    before the next one, and not normalised; the last layer's is taken after the model's final norm, as Hugging Face
    gives it.
    """

    logp: Floats
    entropy: Floats
    top: Floats
    ends: tuple[int, ...] = ()
    means: Mapping[int, Floats] = field(default_factory=dict)


class Reader(Protocol):
    """Reads passages, one after the other. Equal beginnings are computed once where the one follows the other: read in
    an order that keeps them together."""

    name: str
    chat: Chat
    ability: Ability

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading: ...


def token_numbers(logits: Floats, tokens: Sequence[int]) -> tuple[Floats, Floats, Floats]:
    """log p, entropy and the top log-probability at each of the positions (rows) of `logits`."""
    log_probability: Floats = scipy.special.log_softmax(logits.astype(np.float32, copy=False), axis=-1)
    rows = np.arange(len(tokens))
    entropy = -(np.exp(log_probability) * log_probability).sum(axis=-1)
    return log_probability[rows, list(tokens)], entropy, log_probability.max(axis=-1)


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two prompts share from their beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


# Keeping -------------------------------------------------------------------------------------------------------------

_FORMAT = 1  # of the entries; another one starts afresh
_VECTORS = ("logp", "entropy", "top", "ends")


class _Store(SharedFile):
    what = "the store of readings"
    table = "readings"
    advice = "delete it, or pass --no-cache"
    without = "rows are read without it"


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
        self._store = _Store(path)

    def close(self) -> None:
        """Close the file. The reader stays open."""
        self._store.close()

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        """See `Reader`. Layers that were not kept with the passage make it be read again."""
        pieces = [[piece.text, piece.mark] for piece in passage.pieces]
        parts = [_FORMAT, self._model, "read", pieces, passage.target, sorted(layers)]
        key = hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).digest()
        kept = self._kept(key)
        if kept is None:
            reading = self._reader.read(passage, layers=layers)
            kept = {name: np.asarray(getattr(reading, name)) for name in _VECTORS}
            for layer in layers:
                kept[f"mean{layer}"] = reading.means[layer].astype(np.float16)
            self._keep(key, kept)
        return TokenReading(
            logp=kept["logp"],
            entropy=kept["entropy"],
            top=kept["top"],
            ends=tuple(int(end) for end in kept["ends"]),
            means={layer: kept[f"mean{layer}"].astype(np.float32) for layer in layers},
        )

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
