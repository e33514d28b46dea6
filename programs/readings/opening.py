"""The reader for a model: one per model and process, kept open."""

from __future__ import annotations

import atexit
import threading
from dataclasses import dataclass
from functools import cached_property

from ...errors import CallError, MissingExtraError, ModelError, OptionError
from ..models.files import file_sha256
from ..models.lm import LanguageModel, is_local
from ..models.local import model_file, thread_count
from .embedded_reader import EmbeddedReader
from .passages import Passage, Piece
from .reader import Reader
from .served_reader import ServedReader
from .store import KeptReader, default_store_path
from .torch_reader import TorchReader

__all__ = ["Opened", "open_reader", "readable"]


@dataclass(frozen=True)
class Opened:
    """A reader, and what tells its model from every other: the file's SHA-256, or the served model's name and
    address."""

    reader: Reader
    model: str

    @cached_property
    def kept(self) -> KeptReader:
        """The same reader with a memory on disk."""
        return KeptReader(self.reader, default_store_path(), model=self.model)


_opened: dict[str, Opened] = {}
_lock = threading.Lock()


def readable(name: str) -> bool:
    """Whether a model of that name is sure to be readable, without asking it."""
    return is_local(name)


def open_reader(name: str, lm: LanguageModel) -> Opened:
    """A reader by the name of an embedded model (`local/…`, `gguf:PATH`), or with no name for `lm` itself.

    Raises: ModelError for a model that cannot be read; MissingExtraError without llama.cpp.
    """
    if name and not is_local(name):
        raise OptionError(f"reader={name!r}: rows are read by a model inside this process, local/NAME or gguf:PATH")
    key = name or (str(lm.weights) if lm.weights else f"{lm.name} at {lm.connection.api_base}")
    with _lock:
        if key not in _opened:
            _opened[key] = _embedded(name, lm) if name or lm.weights else _served(lm)
        return _opened[key]


def _embedded(name: str, lm: LanguageModel) -> Opened:
    path = model_file(name)[0] if name else lm.weights
    assert path is not None
    reader: Reader
    try:
        reader = EmbeddedReader(path, threads=thread_count(), name=name or lm.name)
    except (ModelError, MissingExtraError) as error:  # a build of llama.cpp that hides what readings need
        try:
            reader = TorchReader(path, threads=thread_count(), name=name or lm.name)
        except MissingExtraError:
            raise error from None
    return Opened(reader, file_sha256(path))


def _served(lm: LanguageModel) -> Opened:
    provider, _, model = lm.name.partition("/")
    base = lm.connection.api_base
    if not base or provider in ("ollama", "ollama_chat"):
        raise ModelError(
            f"{lm.name} does not say how likely a text is; let a small local model read the rows beside it: "
            "--set reader=local/qwen2.5-0.5b"
        )
    reader = ServedReader(base, model, key=lm.connection.api_key or "")
    try:
        reader.read(Passage((Piece("Two and two are"), Piece(" four.")), 1))
    except ModelError:
        reader = ServedReader(base, model, way="echo", key=lm.connection.api_key or "")
        try:
            reader.read(Passage((Piece("Two and two are"), Piece(" four.")), 1))
        except (ModelError, CallError) as error:
            raise ModelError(
                f"{error}; or let a small local model read the rows: --set reader=local/qwen2.5-0.5b"
            ) from None
    return Opened(reader, f"{lm.name} at {lm.identity}")


def close_all() -> None:
    """Free what was opened."""
    with _lock:
        while _opened:
            close = getattr(_opened.popitem()[1].reader, "close", None)
            if close is not None:
                close()


atexit.register(close_all)
