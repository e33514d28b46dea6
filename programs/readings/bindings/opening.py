"""The reader for a model: one per model and process, kept open."""

from __future__ import annotations

import atexit
import logging
import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import psutil

from judgesmith.errors import CallError, MissingExtraError, ModelError, OptionError
from judgesmith.programs.models.files import file_sha256
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.local import LLAMA_CPP, READER_VARIABLE, model_file
from judgesmith.programs.models.ollama import is_ollama, ollama_weights
from judgesmith.programs.models.provider import is_local
from judgesmith.programs.models.threads import thread_count
from judgesmith.programs.readings.bindings.embedded_reader import EmbeddedReader
from judgesmith.programs.readings.bindings.graph import Shape, way
from judgesmith.programs.readings.bindings.kept import KeptReader, default_store_path
from judgesmith.programs.readings.bindings.openvino_reader import OpenVinoReader
from judgesmith.programs.readings.bindings.served_reader import ServedReader
from judgesmith.programs.readings.bindings.torch_reader import TorchReader
from judgesmith.programs.readings.bindings.vocabulary import chat_of, division_of
from judgesmith.programs.readings.bindings.weights import Weights
from judgesmith.programs.readings.passages import Passage, Piece
from judgesmith.programs.readings.reader import Floats, Reader

T = TypeVar("T")

#: What its user should hear of also where this package's log is kept quiet.
_LOG = logging.getLogger("judgesmith.servers")

#: Computes where it can, unless the environment chooses llama.cpp.
OPENVINO = "openvino"


@dataclass(frozen=True)
class Opened:
    """A reader, with a mark that tells its model from every other.

    The mark is the file's SHA-256, or the served model's name and address. way: the way of computing, if several give
    nearly the same: `openvino bf16 128`, `openvino f32 32`; "" for others.
    """

    reader: Reader
    model: str
    way: str = ""

    @cached_property
    def kept(self) -> KeptReader:
        """Return the same reader with a memory on disk."""
        return KeptReader(
            self.reader, default_store_path(), model=f"{self.model} {self.way}".strip()
        )


class StatesReader(Protocol):
    """Gives a model's states at every token."""

    def tokens(self, piece: Piece) -> list[int]:
        """Return a piece's tokens."""

    def states(self, tokens: Sequence[int], layer: int, *, start: int = 0) -> Floats:
        """Return a layer's states at the tokens from `start` on: tokens x width."""


_opened: dict[str, Opened] = {}
_lock = threading.Lock()


def offer(model: str) -> str | None:
    """Return a line that offers the readings of a model called through Ollama.

    None if its weights are not on this machine, or llama.cpp is not.
    """
    if is_ollama(model) and find_spec("xllamacpp"):
        weights = ollama_weights(model)
    else:
        weights = None
    if weights is None:
        return None
    return (
        f"{model} is only asked; --reader ollama/{model.partition('/')[2]} has it read as well, in this process, which "
        f"takes some {_needed(weights) / 1e9:.1f} GB of memory"
    )


def open_reader(name: str, lm: LanguageModel) -> Opened:
    """Open a reader by the name of a model, or with no name for `lm` itself.

    Names are those of an embedded model (`local/…`, `gguf:PATH`) or of one in Ollama's store on this machine
    (`ollama/NAME`).

    Raises:
        ModelError: For a model that cannot be read.
        MissingExtraError: Without llama.cpp.
    """
    if name and not is_local(name) and not is_ollama(name):
        raise OptionError(
            f"reader={name!r}: rows are read by a model inside this process: local/NAME, gguf:PATH, or ollama/NAME for "
            "the weights in Ollama's store"
        )
    key = name or (
        str(lm.weights) if lm.weights else f"{lm.name} at {lm.connection.api_base}"
    )
    with _lock:
        if key not in _opened:
            weights = _weights(name, lm)
            if weights is None:
                _opened[key] = _served(lm)
            else:
                _opened[key] = _of_file(weights, name or lm.name)
        return _opened[key]


def open_weights(path: Path, name: str) -> Opened:
    """The reader of a model's file, the same one under whatever name it is opened.

    Raises: ModelError; MissingExtraError without llama.cpp.
    """
    with _lock:
        return _of_file(path, name)


def _of_file(path: Path, name: str) -> Opened:
    """See `open_weights`. Needs the lock."""
    if str(path) not in _opened:
        _opened[str(path)] = _embedded(path, name)
    return _opened[str(path)]


def open_adapted(base: str, adapter: Path, layer: int) -> StatesReader:
    """Open a reader of a layer's states, of a model of the catalog under low-rank weights.

    Raises:
        ModelError: For a model that cannot be had or read.
        MissingExtraError: Without the extra `local`.
    """
    with _lock:
        if (key := f"{adapter} {layer}") not in _opened:
            weights = model_file(base)[0]
            how: dict[str, Any] = {
                "context": 1024,
                "threads": thread_count(),
                "name": adapter.stem,
                "adapter": adapter,
            }
            fast = _by_openvino(OpenVinoReader, weights, until=layer, **how)
            reader = EmbeddedReader(weights, **how) if fast is None else fast
            _opened[key] = Opened(cast(Reader, reader), file_sha256(weights))
        return cast(StatesReader, _opened[key].reader)


def _weights(name: str, lm: LanguageModel) -> Path | None:
    """The file of the model that reads; None where a server has to be asked."""
    if is_local(name):
        return model_file(name)[0]
    if is_ollama(name):
        weights = ollama_weights(name)
        if weights is None:
            raise ModelError(
                f"reader={name!r}: Ollama's store on this machine has no weights of that name; fetch them with `ollama "
                "pull`, or name the store with OLLAMA_MODELS"
            )
        needed = _needed(weights)
        free = psutil.virtual_memory().available
        if needed > free:
            raise ModelError(
                f"reader={name!r}: reading takes some {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free; "
                "free more (`ollama stop` ends a model), or let a smaller one read: --reader local/qwen2.5-0.5b"
            )
        return weights
    return lm.weights


def _needed(weights: Path) -> int:
    """Bytes of memory for reading: the file's, and a third more for the texts under way."""
    return weights.stat().st_size * 4 // 3


def _wished() -> str:
    """The reader that the environment chooses, or none. Raises: OptionError for another."""
    wish = os.environ.get(READER_VARIABLE, "").strip()
    if wish not in ("", OPENVINO, LLAMA_CPP):
        raise OptionError(
            f"{READER_VARIABLE}={wish!r}: write {OPENVINO} or {LLAMA_CPP}, or unset it"
        )
    return wish


def _by_openvino(opens: Callable[..., T], path: Path, **how: Any) -> T | None:
    """What opens a file for OpenVINO; None where that cannot be done, or llama.cpp is chosen.

    Raises where the environment chooses OpenVINO, and it cannot.
    """
    wish = _wished()
    if wish == LLAMA_CPP:
        return None
    try:
        return opens(path, **how)
    except (ModelError, MissingExtraError) as error:
        if wish:
            raise
        if isinstance(error, MissingExtraError):
            _say_slow(str(error))
        return None


@cache
def _say_slow(why: str) -> None:
    """Warn once for each cause."""
    _LOG.warning("embedded models run by llama.cpp alone, three times slower: %s", why)


def openvino_way(path: Path) -> tuple[str, bool] | None:
    """Return how OpenVINO reads a file, and whether its chat template takes a system message.

    None if it cannot read it, or if llama.cpp is chosen.
    """
    if _wished() == LLAMA_CPP:
        return None
    try:
        return _looked_at(path, path.stat().st_mtime_ns)
    except MissingExtraError as error:
        _say_slow(str(error))
    except ModelError:
        pass
    return None


@lru_cache(8)
def _looked_at(path: Path, changed: int) -> tuple[str, bool]:
    weights = Weights(path)
    Shape.of(weights)
    weights.check()
    division_of(weights.settings)
    chat = chat_of(weights.settings)
    try:
        chat([("system", "s"), ("user", "u")], answer=True)
    except ValueError:
        return way(weights), False
    return way(weights), True


def _embedded(path: Path, name: str) -> Opened:
    """Return the fastest reader that can open a file.

    OpenVINO knows few kinds of models, llama.cpp nearly all, and torch reads if a build of llama.cpp hides the
    functions that readings need.
    """
    digest = file_sha256(path)
    threads = thread_count()
    fast = _by_openvino(OpenVinoReader, path, threads=threads, name=name)
    if fast is not None:
        return Opened(fast, digest, fast.way)
    try:
        return Opened(EmbeddedReader(path, threads=threads, name=name), digest)
    except (ModelError, MissingExtraError) as error:
        try:
            return Opened(TorchReader(path, threads=threads, name=name), digest)
        except MissingExtraError:
            raise error from None


def _served(lm: LanguageModel) -> Opened:
    model = lm.name.partition("/")[2]
    # An address from the environment is only in its identity.
    base = lm.connection.api_base or next(
        iter(re.findall(r"^https?://.+", lm.identity or "")), ""
    )
    if not base or is_ollama(lm.name):
        if is_ollama(lm.name):
            own = f", or Ollama's own file of it: --reader ollama/{model}"
        else:
            own = ""
        raise ModelError(
            f"{lm.name} does not say how likely a text is; let a small local model read the rows beside it: "
            f"--reader local/qwen2.5-0.5b{own}, or none: --reader none"
        )
    reader = ServedReader(base, model, key=lm.connection.api_key or "")
    try:
        reader.read(Passage((Piece("Two and two are"), Piece(" four.")), 1))
        reader.look()
    except (ModelError, CallError) as error:
        raise ModelError(
            f"{error}; or let a small local model read the rows: --reader local/qwen2.5-0.5b"
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
