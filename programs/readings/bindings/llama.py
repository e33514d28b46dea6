"""The C interface of llama.cpp inside the `xllamacpp` package, as far as readings need it.

`xllamacpp` offers a server, which says nothing of a prompt's tokens. Its shared library exports llama.cpp's own
functions, though, and these give the logits at every position and, by a callback, the states between the layers.

The structures that hold parameters change from version to version. They are treated as blocks of memory here: the
library fills one with its defaults, and a field is written only where its place is certain. The four counts at the
beginning of the context's parameters have been there since they exist; the callback's place is found by what stands
around it. `Library` refuses a version where this does not hold.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from judgesmith.errors import ModelError
from judgesmith.extras import from_extra

_BLOCK = 1024  # bytes; more than any of the structures, whose true size only the library knows
_EVALUATE = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_void_p, ctypes.c_bool, ctypes.c_void_p
)
_LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_F16 = 1  # ggml's number of the type in which keys and values are kept by default


class _Block(ctypes.Structure):
    """Parameters as the library lays them out, with room to spare.

    By value it is given through memory under every calling convention we run on, where what is behind the structure's
    end does no harm.
    """

    _fields_: ClassVar = [("words", ctypes.c_uint32 * (_BLOCK // 4))]


class Batch(ctypes.Structure):
    """`llama_batch`: unchanged since llama.cpp has sequences."""

    _fields_: ClassVar = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.POINTER(ctypes.c_float)),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]


_INT = ctypes.c_int32
_POINTER = ctypes.c_void_p
_BOOL = ctypes.c_bool
_TEXT = ctypes.c_char_p
_SIZE = ctypes.c_size_t
_INTS = ctypes.POINTER(ctypes.c_int32)
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {  # name: what it returns, what it takes
    "llama_backend_init": (None, []),
    "llama_log_set": (None, [_LOG, _POINTER]),
    "llama_model_default_params": (_Block, []),
    "llama_context_default_params": (_Block, []),
    "llama_model_load_from_file": (_POINTER, [_TEXT, _Block]),
    "llama_init_from_model": (_POINTER, [_POINTER, _Block]),
    "llama_model_free": (None, [_POINTER]),
    "llama_free": (None, [_POINTER]),
    "llama_model_get_vocab": (_POINTER, [_POINTER]),
    "llama_model_n_layer": (_INT, [_POINTER]),
    "llama_model_n_embd": (_INT, [_POINTER]),
    "llama_model_n_ctx_train": (_INT, [_POINTER]),
    "llama_model_has_encoder": (_BOOL, [_POINTER]),
    "llama_model_chat_template": (_TEXT, [_POINTER, _TEXT]),
    "llama_vocab_n_tokens": (_INT, [_POINTER]),
    "llama_vocab_bos": (_INT, [_POINTER]),
    "llama_vocab_eos": (_INT, [_POINTER]),
    "llama_vocab_get_add_bos": (_BOOL, [_POINTER]),
    "llama_vocab_get_text": (_TEXT, [_POINTER, _INT]),
    "llama_n_ctx": (ctypes.c_uint32, [_POINTER]),
    "llama_n_batch": (ctypes.c_uint32, [_POINTER]),
    "llama_n_seq_max": (ctypes.c_uint32, [_POINTER]),
    "llama_set_n_threads": (None, [_POINTER, _INT, _INT]),
    "llama_get_memory": (_POINTER, [_POINTER]),
    "llama_memory_seq_rm": (_BOOL, [_POINTER, _INT, _INT, _INT]),
    "llama_tokenize": (_INT, [_POINTER, _TEXT, _INT, _INTS, _INT, _BOOL, _BOOL]),
    "llama_token_to_piece": (
        _INT,
        [_POINTER, _INT, ctypes.c_char_p, _INT, _INT, _BOOL],
    ),
    "llama_decode": (_INT, [_POINTER, Batch]),
    "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), [_POINTER, _INT]),
    "ggml_get_name": (_TEXT, [_POINTER]),
    "ggml_nbytes": (_SIZE, [_POINTER]),
    "ggml_backend_tensor_get": (None, [_POINTER, _POINTER, _SIZE, _SIZE]),
}


class Library:
    """llama.cpp's functions by their names, with checked arguments.

    Raises: ModelError where the library does not export them, or lays out its parameters in a way that is not known.
    """

    def __init__(self, path: Path, version: str = "") -> None:
        self._version = f"xllamacpp {version}".strip()
        self._opened = opened = ctypes.CDLL(str(path))
        for name, (returns, takes) in _FUNCTIONS.items():
            try:
                function = getattr(opened, name)
            except AttributeError:
                raise ModelError(
                    f"{self._version} does not give access to llama.cpp's {name}, which readings of a model's states "
                    "need; install the extra judgesmith[torch], or another version of xllamacpp"
                ) from None
            function.restype = returns
            function.argtypes = takes
            setattr(self, name, function)
        self._quiet = _LOG(lambda level, text, data: None)
        self.llama_log_set(
            self._quiet, None
        )  # else it writes hundreds of lines to the standard error stream
        self.llama_backend_init()
        self._callback_at = _callback_place(
            bytes(self.llama_context_default_params()), self._version
        )

    def __getattr__(
        self, name: str
    ) -> Any:  # only for the type checker: the functions are attributes of their own
        raise AttributeError(name)

    def model(self, path: Path) -> int:
        """Load a model with the library's defaults.

        Raises:
            ModelError: If it cannot be loaded.
        """
        model: int | None = self.llama_model_load_from_file(
            str(path).encode(), self.llama_model_default_params()
        )
        if not model:
            raise ModelError(
                f"{path}: llama.cpp cannot load this model; the file may be cut off, or of a kind that {self._version} "
                "does not know"
            )
        return model

    def context(
        self,
        model: int,
        *,
        tokens: int,
        sequences: int,
        threads: int,
        each: Callable[[int, bool], bool],
    ) -> int:
        """Make a context of `sequences` sequences with `tokens` tokens each.

        Args:
            model: The model.
            tokens: Tokens of a sequence.
            sequences: The number of sequences.
            threads: The number of threads.
            each: Called with every tensor of the computation, first to ask for interest in its values, and if so again
                when they are there.

        Raises:
            ModelError: If there is no memory for it.
        """
        block = self.llama_context_default_params()
        batch = min(tokens, 512)
        block.words[0:4] = [tokens * sequences, batch, batch, sequences]
        callback = _EVALUATE(lambda tensor, ask, data: each(tensor, ask))
        address = ctypes.cast(callback, ctypes.c_void_p).value or 0
        ctypes.memmove(
            ctypes.addressof(block) + self._callback_at,
            ctypes.byref(ctypes.c_void_p(address)),
            8,
        )
        context: int | None = self.llama_init_from_model(model, block)
        if not context:
            raise ModelError(
                f"{self._version} cannot make room for {sequences} x {tokens} tokens; free some memory"
            )
        if (
            self.llama_n_seq_max(context) != sequences
            or self.llama_n_batch(context) != batch
        ):
            self.llama_free(context)
            raise ModelError(
                f"{self._version} has parameters that are not known here; install judgesmith[torch] instead"
            )
        self.llama_set_n_threads(context, threads, threads)
        _kept_alive[context] = callback
        return context

    def adapt(self, model: int, context: int, adapter: Path) -> None:
        """Put the low-rank weights of a file over the model's own, in this context; they are freed with the model.

        Raises: ModelError.
        """
        try:
            load = self._opened.llama_adapter_lora_init
            put = self._opened.llama_set_adapters_lora
        except AttributeError:
            raise ModelError(
                f"{self._version} cannot put weights over a model's own; install another version"
            ) from None
        load.restype = _POINTER
        load.argtypes = [_POINTER, _TEXT]
        put.restype = _INT
        put.argtypes = [
            _POINTER,
            ctypes.POINTER(_POINTER),
            _SIZE,
            ctypes.POINTER(ctypes.c_float),
        ]
        weights = load(model, str(adapter).encode())
        if not weights or put(
            context, (_POINTER * 1)(weights), 1, (ctypes.c_float * 1)(1.0)
        ):
            raise ModelError(
                f"{adapter.name}: {self._version} cannot use these weights with the model"
            )

    def free(self, model: int, context: int) -> None:
        """Give back what `model` and `context` took."""
        self.llama_free(context)
        self.llama_model_free(model)
        _kept_alive.pop(context, None)

    def values(
        self, tensor: int, width: int
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        """Return a tensor's values, one row a token."""
        size = self.ggml_nbytes(tensor)
        rows = np.empty((size // (4 * width), width), dtype=np.float32)
        self.ggml_backend_tensor_get(tensor, rows.ctypes.data, 0, rows.nbytes)
        return rows


_kept_alive: dict[
    int, Any
] = {}  # context -> its callback, which the library calls but does not own


def _callback_place(defaults: bytes, name: str) -> int:
    """Return the offset of the callback's address.

    It stands between two empty pointers and the types of keys and values, both 16-bit floats. Raises ModelError if
    there is no such place, or more than one.
    """
    pattern = bytes(16) + _F16.to_bytes(4, "little") * 2
    places = [
        at for at in range(0, 256, 8) if defaults[at : at + len(pattern)] == pattern
    ]
    if len(places) != 1:
        raise ModelError(
            f"{name} has context parameters that are not known here; install judgesmith[torch] instead"
        )
    return places[0]


@functools.cache
def library() -> Library:
    """llama.cpp as `xllamacpp` brings it. Raises: MissingExtraError without the package; ModelError as `Library`."""
    xllamacpp = from_extra("local", "reading with an embedded model", "xllamacpp")
    folder = Path(xllamacpp.__file__).parent
    libraries = sorted([*folder.glob("xllamacpp*.so"), *folder.glob("xllamacpp*.pyd")])
    if not libraries:
        raise ModelError(f"{folder} has no library of llama.cpp; reinstall xllamacpp")
    return Library(libraries[0], str(getattr(xllamacpp, "__version__", "")))
