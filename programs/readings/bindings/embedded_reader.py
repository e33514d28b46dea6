"""A reader inside this process by llama.cpp: exact log-probabilities and the states of any layer. Extra: `local`."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from judgesmith.errors import ModelError, OptionError
from judgesmith.programs import progress
from judgesmith.programs.models.engine import GIVEN_UP
from judgesmith.programs.readings.bindings.llama import Batch, library
from judgesmith.programs.readings.passages import (
    PLAIN_TURNS,
    Chat,
    JinjaChat,
    Passage,
    Piece,
)
from judgesmith.programs.readings.reader import (
    Ability,
    Floats,
    TokenReading,
    check_layers,
    common_length,
    token_numbers,
)

_SEQUENCES = (
    3  # beginnings kept at the same time; each takes memory for a whole context
)
_AT_ONCE = 64  # positions whose logits are copied at the same time: 64 of 150,000 tokens are 40 MB


class EmbeddedReader:
    """Reads with a GGUF file's weights as they are.

    Args:
        path: a GGUF file of a model that generates text.
        context: tokens of one passage or question, at most what the model was trained for.
        threads: threads that compute.
        adapter: a GGUF file of low-rank weights that are put over the model's.

    One passage at a time; calls from several threads wait for each other. A forked child cannot use its parent's.

    Raises: ModelError if llama.cpp cannot load the file, or this version cannot be used; MissingExtraError without
    `xllamacpp`.
    """

    def __init__(
        self,
        path: Path,
        *,
        context: int = 4096,
        threads: int = 1,
        name: str = "",
        adapter: Path | None = None,
    ) -> None:
        self.name = name or path.name
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._llama = library()
        self._model = self._llama.model(path)
        if self._llama.llama_model_has_encoder(self._model):
            raise ModelError(
                f"{path}: a model with an encoder cannot be read; take one that continues texts"
            )
        self.context = min(
            context, self._llama.llama_model_n_ctx_train(self._model) or context
        )
        self._layers_wanted: frozenset[str] = frozenset()
        self._seen: dict[str, list[Floats]] = {}
        self._ctx = self._llama.context(
            self._model,
            tokens=self.context,
            sequences=_SEQUENCES,
            threads=threads,
            each=self._each,
        )
        if adapter is not None:
            self._llama.adapt(self._model, self._ctx, adapter)
        self._memory = self._llama.llama_get_memory(self._ctx)
        self._vocab = self._llama.llama_model_get_vocab(self._model)
        self._width = self._llama.llama_model_n_embd(self._model)
        self._words = self._llama.llama_vocab_n_tokens(self._vocab)
        self.ability = Ability(
            layers=self._llama.llama_model_n_layer(self._model), context=self.context
        )
        self.chat: Chat = self._template()
        self._cached: list[list[int]] = [[] for _ in range(_SEQUENCES)]
        self._used = [0] * _SEQUENCES
        self.computed = 0  # tokens that went through the model, for reports of cost

    def close(self) -> None:
        """Free the model's memory; again does nothing."""
        if self._model and self._process == os.getpid():
            self._llama.free(self._model, self._ctx)
        self._model = 0

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        """See `Reader`. Raises: OptionError for an empty target, more tokens than the context, or an unknown layer."""
        check_layers(layers, self.ability.layers, self.name)
        before = self._before(passage.pieces[: passage.target])
        target = self.tokens(passage.pieces[passage.target])
        if not before or not target:
            raise OptionError(
                "a passage needs at least one token before its target, and one in it"
            )
        with self._lock:
            names = {layer: self._tensor(layer) for layer in layers}
            logp, entropy, top = self._computed(
                before + target, len(before) - 1, frozenset(names.values())
            )
            unnamed = set(names.values()) - set(self._seen)
            if unnamed:
                raise ModelError(
                    f"{self.name}: llama.cpp has no states {min(unnamed)!r} for a model of this kind"
                )
            means = dict[int, Floats]()
            for layer, name in names.items():
                states = np.concatenate(self._seen[name])[-len(target) :]
                means[layer] = states.mean(axis=0)
        return TokenReading(
            logp=logp,
            entropy=entropy,
            top=top,
            ends=self._ends(passage.pieces[passage.target].text, target),
            means=means,
        )

    def size(self, pieces: Sequence[Piece]) -> int:
        """See `Reader`."""
        return len(self._before(pieces))

    def _before(self, pieces: Sequence[Piece]) -> list[int]:
        """The tokens of pieces that a text begins with."""
        return self._begun(
            list(itertools.chain.from_iterable(map(self.tokens, pieces)))
        )

    def states(self, tokens: Sequence[int], layer: int, *, start: int = 0) -> Floats:
        """Return a layer's states at the tokens from `start` on: tokens x width.

        They come after the mark that begins a text, which some models do not set by themselves. Raises as `read`.
        """
        begun = [self._llama.llama_vocab_bos(self._vocab), *tokens]
        first = (
            start and start + 1
        )  # the mark's own state is computed with the others where nothing is left out
        with self._lock:
            self._computed(begun, first, frozenset({self._tensor(layer)}), logits=False)
            return np.concatenate(self._seen[self._tensor(layer)])[
                -len(tokens) + start :
            ]

    def tokens(self, piece: Piece) -> list[int]:
        """Return a piece's tokens; a control token can come from a mark only."""
        self._open()
        text = piece.text.encode()
        room = len(text) + 8
        result = (ctypes.c_int32 * room)()
        count = self._llama.llama_tokenize(
            self._vocab, text, len(text), result, room, False, piece.mark
        )
        if count < 0:
            raise ModelError(
                f"{self.name}: llama.cpp cannot tokenise a text of {len(text)} bytes"
            )
        return result[:count]

    def _open(self) -> None:
        # llama.cpp would read freed memory, or wait for threads that only the parent has.
        if self._process != os.getpid() or not self._model:
            raise ModelError(
                f"{self.name}: this model is closed, or belongs to the process that this one comes from"
            )

    # The model's own ways ------------------------------------------------------------------------------------------

    def _template(self) -> JinjaChat:
        template = self._llama.llama_model_chat_template(self._model, None)
        bos, eos = (
            self._written(getattr(self._llama, f"llama_vocab_{mark}")(self._vocab))
            for mark in ("bos", "eos")
        )
        return JinjaChat(
            template.decode(errors="replace") if template else PLAIN_TURNS,
            bos=bos,
            eos=eos,
        )

    def _written(self, token: int) -> str:
        if token >= 0:
            text = self._llama.llama_vocab_get_text(self._vocab, token)
        else:
            text = None
        return text.decode(errors="replace") if text else ""

    def _begun(self, tokens: list[int]) -> list[int]:
        """With the mark that begins every text, for models that were trained with one."""
        bos = self._llama.llama_vocab_bos(self._vocab)
        if (
            self._llama.llama_vocab_get_add_bos(self._vocab)
            and bos >= 0
            and tokens[:1] != [bos]
        ):
            return [bos, *tokens]
        return tokens

    def _ends(self, text: str, tokens: Sequence[int]) -> tuple[int, ...]:
        room = ctypes.create_string_buffer(512)
        lengths = [
            max(0, self._llama.llama_token_to_piece(self._vocab, t, room, 512, 0, True))
            for t in tokens
        ]
        raw = text.encode()
        return tuple(
            len(raw[:end].decode(errors="ignore"))
            for end in np.cumsum(lengths).tolist()
        )

    # Computing -----------------------------------------------------------------------------------------------------

    def _tensor(self, layer: int) -> str:
        """llama.cpp's name of a layer's output; the last one's is taken after the final norm."""
        return "result_norm" if layer == self.ability.layers else f"l_out-{layer - 1}"

    def _each(self, tensor: int, ask: bool) -> bool:
        if not self._layers_wanted:
            return False
        name = self._llama.ggml_get_name(tensor).decode()
        if ask:
            return name in self._layers_wanted
        self._seen.setdefault(name, []).append(self._llama.values(tensor, self._width))
        return True

    def _computed(
        self,
        tokens: list[int],
        start: int,
        wanted: frozenset[str],
        *,
        logits: bool = True,
    ) -> tuple[Floats, ...]:
        """Return the numbers (`token_numbers`) of the tokens behind position `start`, none if only states are wanted.

        Only tokens that no sequence holds are computed. Needs the lock.
        """
        self._open()
        if len(tokens) > self.context:
            raise OptionError(
                f"{len(tokens)} tokens are more than the {self.context} that {self.name} reads at once"
            )
        sequence, done = self._sequence(tokens, start)
        self._seen = {}
        self._layers_wanted = wanted
        numbers: list[tuple[Floats, ...]] = []
        size = self._llama.llama_n_batch(self._ctx)
        self._cached[
            sequence
        ] = []  # if a step fails, what the sequence holds is not known
        # What stands before `start` goes first, so that in the rest every token is wanted, and states and logits agree.
        cuts = [
            *range(done, start, size),
            *range(max(done, start), len(tokens), size),
            len(tokens),
        ]
        given_up = GIVEN_UP.get()
        with progress.read.begun(len(tokens), len(tokens) - done) as share:
            for first, end in itertools.pairwise(cuts):
                if given_up is not None and given_up.is_set():
                    raise ModelError(f"{self.name}: reading was broken off")
                self._layers_wanted = wanted if first >= start else frozenset()
                output = logits and first >= start
                some = tokens[first:end]
                with progress.read.step(share, len(some), len(some)):
                    self._decode(some, first, sequence, output=output)
                    if output:
                        numbers += self._numbers(tokens[first + 1 : end + 1])
        self._cached[sequence] = tokens
        self.computed += len(tokens) - done
        return tuple(map(np.concatenate, zip(*numbers, strict=True)))

    def _numbers(self, following: Sequence[int]) -> Iterator[tuple[Floats, ...]]:
        """Yield the numbers of the tokens that follow those of the last step, a few at a time.

        All logits of a long text would be gigabytes.
        """
        for first in range(0, len(following), _AT_ONCE):
            some = following[first : first + _AT_ONCE]
            rows = [
                self._llama.llama_get_logits_ith(self._ctx, first + i)
                for i in range(len(some))
            ]
            yield token_numbers(
                np.stack([np.ctypeslib.as_array(row, (self._words,)) for row in rows]),
                some,
            )

    def _decode(
        self, tokens: list[int], first: int, sequence: int, *, output: bool
    ) -> None:
        count = len(tokens)
        ints = ctypes.c_int32 * count
        pointer = ctypes.POINTER(ctypes.c_int32)
        own = ctypes.cast((ctypes.c_int32 * 1)(sequence), pointer)
        batch = Batch(
            n_tokens=count,
            token=ints(*tokens),
            pos=ints(*range(first, first + count)),
            n_seq_id=ints(*[1] * count),
            seq_id=(pointer * count)(*[own] * count),
            logits=(ctypes.c_int8 * count)(*[output] * count),
        )
        code = self._llama.llama_decode(self._ctx, batch)
        if code:
            raise ModelError(
                f"{self.name}: llama.cpp cannot read {count} tokens (code {code})"
            )

    def _sequence(self, tokens: list[int], most: int) -> tuple[int, int]:
        """The sequence with the longest common beginning, cut back to it; an idle one where little is shared."""
        common = [
            min(common_length(sequence, tokens), most) for sequence in self._cached
        ]
        best = max(range(_SEQUENCES), key=common.__getitem__)
        if common[best] * 2 < len(self._cached[best]):
            best = min(range(_SEQUENCES), key=self._used.__getitem__)
        shared = common[best]
        if not self._llama.llama_memory_seq_rm(self._memory, best, shared, -1):
            shared = 0  # a memory that cannot be cut back, as of recurrent models
            self._llama.llama_memory_seq_rm(self._memory, best, 0, -1)
        self._used = [0 if i == best else age - 1 for i, age in enumerate(self._used)]
        return best, shared
