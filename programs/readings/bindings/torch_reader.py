"""A reader by transformers and torch, for models in GGUF files or in Hugging Face's folders. Extra: `torch`."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.errors import OptionError
from judgesmith.extras import from_extra
from judgesmith.programs.readings.passages import (
    PLAIN_TURNS,
    Chat,
    JinjaChat,
    Passage,
    Piece,
)
from judgesmith.programs.readings.reader import (
    Ability,
    TokenReading,
    check_layers,
    common_length,
    token_numbers,
)

_SLOTS = 4  # beginnings kept at the same time: as many as a row has forms that share one with another row
CONTEXT = 4096  # tokens of one passage at most, as of the embedded reader: both divide long texts alike
_AT_ONCE = 128  # positions whose logits are held at the same time: 128 of 150,000 tokens are 80 MB


@dataclass(frozen=True)
class Weights:
    """A model of transformers, its tokenizer and its chat template."""

    model: Any
    tokenizer: Any
    chat: Chat
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tokens(self, piece: Piece) -> list[int]:
        """Return a piece's tokens; a control token can come from a mark only."""
        # The tokenizer keeps whether control tokens are split; another thread would change that halfway.
        with self._lock:
            result: list[int] = self.tokenizer(
                piece.text,
                add_special_tokens=False,
                split_special_tokens=not piece.mark,
            ).input_ids
        return result


def open_weights(path: Path, dtype: str = "float32") -> Weights:
    """Open the weights of a GGUF file, made full floats or halves, or of a folder that `transformers` reads.

    Nothing is fetched.

    Raises:
        MissingExtraError: Without torch and transformers.
    """
    torch, transformers = _torch()
    if path.is_dir():
        folder = path
        extra = {}
    else:
        folder = path.parent
        extra = {"gguf_file": path.name}
    loaded = {"local_files_only": True, **extra}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **loaded)
    marks = {"bos": tokenizer.bos_token or "", "eos": tokenizer.eos_token or ""}
    chat = JinjaChat(tokenizer.chat_template or PLAIN_TURNS, **marks)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, **loaded
    )
    if extra:  # the weights are plain floats now; what says otherwise keeps transformers from writing them
        model.hf_quantizer = None
        model.config.__dict__.pop("quantization_config", None)
    return Weights(model.eval().to(getattr(torch, dtype)), tokenizer, chat)


@dataclass
class _Slot:
    tokens: list[int]
    cache: Any
    used: int = 0


class TorchReader:
    """Reads with the weights of a GGUF file (made full floats: 4 bytes a weight) or of a model's folder.

    Args:
        path: a GGUF file, or a folder that `transformers` reads. Nothing is fetched.
        threads: threads that compute; None leaves torch's choice.
        dtype: "float32", or "bfloat16": half the memory, and twice as fast on processors that compute with it, for
            three significant digits.

    One row is read at a time, whatever thread asks.

    Raises: MissingExtraError without torch and transformers.
    """

    def __init__(
        self,
        path: Path,
        *,
        threads: int | None = None,
        name: str = "",
        dtype: str = "float32",
    ) -> None:
        torch, transformers = _torch()
        if threads is not None:
            torch.set_num_threads(threads)
        self.name = name or path.name
        self._torch = torch
        self._weights = open_weights(path, dtype)
        self._tokenizer = self._weights.tokenizer
        self.chat = self._weights.chat
        self._model = model = self._weights.model
        self._body = model.base_model
        self._new_cache = transformers.DynamicCache
        most = getattr(model.config, "max_position_embeddings", CONTEXT)
        self.ability = Ability(
            layers=model.config.num_hidden_layers, context=min(CONTEXT, most)
        )
        self._slots: list[_Slot] = []
        self._clock = 0
        self._lock = threading.Lock()

    def tokens(self, piece: Piece) -> list[int]:
        """Return a piece's tokens."""
        return self._weights.tokens(piece)

    def size(self, pieces: Sequence[Piece]) -> int:
        """See `Reader`."""
        return sum(len(self.tokens(piece)) for piece in pieces)

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        """See `Reader`."""
        with self._lock:
            return self._read(passage, layers)

    def _passage_states(
        self, passage: Passage, layers: Sequence[int]
    ) -> tuple[list[int], Any]:
        """The target's tokens, and states from the token before it on."""
        parts = [self.tokens(piece) for piece in passage.pieces]
        before = list(itertools.chain.from_iterable(parts[: passage.target]))
        target = parts[passage.target]
        if not before or not target:
            raise OptionError(
                "a passage needs at least one token before its target, and one in it"
            )
        check_layers(layers, self.ability.layers, self.name)
        return target, self._states(before + target, len(before) - 1, bool(layers))

    def _read(self, passage: Passage, layers: Sequence[int]) -> TokenReading:
        target, states = self._passage_states(passage, layers)
        numbers = self._numbers(states[-1][:-1], target)
        logp, entropy, top = (
            np.concatenate(each) for each in zip(*numbers, strict=True)
        )
        offsets = self._tokenizer(
            passage.pieces[passage.target].text,
            add_special_tokens=False,
            split_special_tokens=True,
            return_offsets_mapping=True,
        )["offset_mapping"]
        return TokenReading(
            logp=logp,
            entropy=entropy,
            top=top,
            ends=tuple(int(end) for _, end in offsets),
            means={
                layer: states[layer][1:].float().mean(0).numpy() for layer in layers
            },
        )

    def _numbers(self, states: Any, target: list[int]) -> Any:
        with self._torch.inference_mode():
            for start in range(0, len(states), _AT_ONCE):
                logits = self._model.lm_head(states[start : start + _AT_ONCE]).float()
                yield token_numbers(logits.numpy(), target[start : start + _AT_ONCE])

    def _states(self, tokens: list[int], start: int, every: bool) -> Any:
        """States of all layers (or of the last alone) from position `start` on, computing only what is new."""
        torch = self._torch
        slot, shared = self._slot(tokens, start)
        new = torch.tensor([tokens[shared:]])
        with torch.inference_mode():
            done = self._body(
                new,
                past_key_values=slot.cache,
                use_cache=True,
                output_hidden_states=every,
            )
        slot.tokens = tokens
        layers = done.hidden_states if every else (done.last_hidden_state,)
        return [layer[0, start - shared :] for layer in layers]

    def _slot(self, tokens: list[int], most: int) -> tuple[_Slot, int]:
        """The slot with the longest common beginning, cut back to it: at most `most` tokens."""
        self._clock += 1
        lengths = [
            min(common_length(slot.tokens, tokens), most) for slot in self._slots
        ]
        best = max(range(len(lengths)), key=lengths.__getitem__, default=None)
        # A slot that shares little is worth more to the row it belongs to.
        if best is None or (
            lengths[best] * 2 < len(self._slots[best].tokens)
            and len(self._slots) < _SLOTS
        ):
            self._slots.append(_Slot([], self._new_cache(), self._clock))
            return self._slots[-1], 0
        if lengths[best] * 4 < len(self._slots[best].tokens):
            best = min(range(len(self._slots)), key=lambda i: self._slots[i].used)
        slot = self._slots[best]
        shared = lengths[best]
        if shared < len(slot.tokens):
            if shared:
                slot.cache.crop(shared - len(slot.tokens))
            else:
                slot.cache = self._new_cache()
        slot.used = self._clock
        return slot, shared


def _torch() -> tuple[Any, Any]:
    purpose = "reading with torch"
    torch = from_extra("torch", purpose, "torch")
    return torch, from_extra("torch", purpose, "transformers")
