"""A reader inside this process by OpenVINO: as `embedded_reader`, several times faster. Extra: `local`."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from judgesmith.errors import ModelError, OptionError
from judgesmith.programs import progress
from judgesmith.programs.models import pace
from judgesmith.programs.models.cache import CallCache
from judgesmith.programs.models.engine import GIVEN_UP
from judgesmith.programs.readings.bindings.batches import WORTH, Row, batches
from judgesmith.programs.readings.bindings.graph import (
    Adapter,
    Body,
    Shape,
    Turns,
    compiled,
    head,
    hidden,
    way,
)
from judgesmith.programs.readings.bindings.spilled import Spilled
from judgesmith.programs.readings.bindings.vocabulary import Vocabulary
from judgesmith.programs.readings.bindings.weights import Weights
from judgesmith.programs.readings.passages import (
    Chat,
    Message,
    Passage,
    Piece,
    rendered,
)
from judgesmith.programs.readings.reader import (
    Ability,
    Floats,
    TokenReading,
    check_layers,
    common_length,
)
from judgesmith.signatures.values import NUMBER

#: Tokens that go through the layers at once, of one row and of several. Tokens that go through the vocabulary at once:
#: their numbers for each of 150,000 words are 10 MB, of which four tables are held. Tokens of beginnings that are kept:
#: 25 MB a thousand of the 0.5B.
STEP = 256
BATCH = 512
AT_ONCE = 16
KEPT = 2048
#: Tokens from which on a pass is long, and of which it then is a multiple.
LONG = 128
FILLED = 16

T = TypeVar("T")

_process: int | None = None  # the one that OpenVINO's threads belong to


@dataclass(frozen=True)
class _Past:
    """Tokens that went through the layers, and their keys and values."""

    tokens: list[int] = field(default_factory=list)
    values: Mapping[str, Floats] = field(default_factory=dict)

    def cut(self, count: int) -> _Past:
        if count == len(self.tokens):
            return self
        return _Past(
            self.tokens[:count],
            {name: of[:, :, :count] for name, of in self.values.items()},
        )

    def and_then(self, tokens: list[int], values: Mapping[str, Floats]) -> _Past:
        """With what came next of one row."""
        if not self.tokens:
            return _Past(tokens, {name: of.copy() for name, of in values.items()})
        joined = {
            name: np.concatenate([self.values[name], of], axis=2)
            for name, of in values.items()
        }
        return _Past(self.tokens + tokens, joined)


@dataclass(frozen=True)
class _States:
    """A row, read.

    last: the last layer's states at its last tokens, from the one before the first counted one on. sums: layer -> the
    sum of its states at the counted tokens.
    """

    past: _Past
    last: Floats
    sums: Mapping[int, Floats]


class OpenVinoReader:
    """Reads with a GGUF file's weights in 8 bits.

    Args:
        path: a GGUF file of a Llama or Qwen2 model with byte-level tokens.
        context: tokens of one passage, at most what the model was trained for.
        threads: threads that compute.
        adapter: a GGUF file of low-rank weights that are added to the model's.
        until: the last layer that is computed, for `states` alone; 0: all, and the words after them.

    One batch at a time, in a thread of its own; calls from several threads wait for each other. What a passage gives
    does not depend on which others are read with it, nor on what was read before. A forked child cannot use its
    parent's.

    Raises: ModelError for a model of another kind, or a file that cannot be read; MissingExtraError without the extra.
    """

    def __init__(
        self,
        path: Path,
        *,
        context: int = pace.CONTEXT,
        threads: int = 1,
        name: str = "",
        adapter: Path | None = None,
        until: int = 0,
    ) -> None:
        self.name = name or path.name
        self._process = _own_process(self.name)
        self._thread = ThreadPoolExecutor(1, f"reader of {self.name}")
        self._given_up = threading.Event()
        spilled = Spilled(CallCache.default_path().parent)
        self._weights = weights = Weights(path, spilled.empty)
        self._size = path.stat().st_size
        self._threads = threads
        self._shape = shape = Shape.of(weights)
        self.words = Vocabulary(weights.settings)
        weights.forget()
        self.chat: Chat = self.words.chat
        self._turns = Turns(weights, shape)
        self.context = min(context, shape.context)
        self.ability = Ability(layers=shape.layers, context=self.context)
        self._until = until or shape.layers
        self._each = range(1, self._until + 1)
        self._kinds = [
            f"{kind}{layer}"
            for kind in ("key", "value")
            for layer in range(self._until)
        ]
        added = None if adapter is None else Adapter(Weights(adapter))
        body = Body(weights, shape, self._until, threads, added)
        self._layers: Any = compiled(
            body.model, threads, weights.group
        ).create_infer_request()
        del body  # its constants, which the processor has in a form of its own now
        self._head: Any = None
        if not until:
            # In bf16 a log-probability would be rounded to 1/16 or 1/8, and this takes as long.
            words = head(weights, threads)
            self._head = compiled(
                words, threads, weights.group, results="f32"
            ).create_infer_request()
        self.way = way(weights)
        self._pasts = list[_Past]()  # the one used last at the end
        self._share: progress.Share | None = None  # what is read now
        self.computed = 0  # tokens that went through the model, for reports of cost
        with spilled.giving_back():
            self._in_turn(self._put_in_order)

    def _put_in_order(self) -> None:
        """Have the weights brought into the order in which they are multiplied, for which they are read once."""
        states = self._pass([[0]], _Past(), [0])["last"][0].copy()
        if self._head is not None:
            self._numbers(states, [0])
        self.computed = 0

    def close(self) -> None:
        """Free the model's memory; again does nothing."""
        self._thread.shutdown(wait=self.ours)
        if self._head is not None and self.ours:
            read = progress.read
            pace.keep(self._size, read.work, read.seconds, self._threads)
        self._layers = self._head = None
        self._pasts.clear()

    @property
    def ours(self) -> bool:
        """Return True if it is open and belongs to this process, not to the one that this one was forked from."""
        return self._layers is not None and self._process == os.getpid()

    def _in_turn(self, work: Callable[[], T]) -> T:
        """Return the result of some work, for which the reader's thread has its turn.

        Memory that a thread frees is not used by others: with work in each caller's thread, a process needed a third
        more.

        Raises:
            ModelError: For a closed reader, and in a forked child.
        """
        closed = f"{self.name}: this model is closed, or belongs to the process that this one comes from"
        if not self.ours:
            raise ModelError(closed)
        given_up = GIVEN_UP.get() or threading.Event()

        def in_turn() -> T:
            self._given_up = given_up
            return work()

        try:
            task = self._thread.submit(in_turn)
        except RuntimeError as error:
            raise ModelError(closed) from error
        try:
            return task.result()
        except KeyboardInterrupt:
            if not task.cancel():
                given_up.set()
                wait([task])
            raise

    def _go_on(self) -> None:
        """Raise ModelError where nobody waits any more for what is read now."""
        if self._given_up.is_set():
            raise ModelError(f"{self.name}: reading was broken off")

    def tokens(self, piece: Piece) -> list[int]:
        """Return a piece's tokens; a control token can come from a mark only."""
        return self.words.tokens(piece)

    def size(self, pieces: Sequence[Piece]) -> int:
        """See `Reader`."""
        return len(self._begun(pieces))

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        """See `Reader`. Raises: OptionError for an empty target, more tokens than the context, or an unknown layer."""
        return self.read_many([passage], layers=layers)[0]

    def read_many(
        self, passages: Sequence[Passage], *, layers: Sequence[int] = ()
    ) -> list[TokenReading]:
        """Read each passage, several at once. Raises as `read`, for any of them."""
        check_layers(layers, self._until, self.name)
        rows = [self._row(passage) for passage in passages]
        readings = dict[int, TokenReading]()
        tokens = sum(len(row.tokens) for row in rows)
        every = sum(map(_work, rows))

        def work() -> None:
            for batch in batches(rows, BATCH):
                some = [rows[place] for place in batch.places]
                done = share.done + sum(map(_work, some))
                self._share = share
                states = self._read(some, batch.shared)
                for place, row, of_row in zip(batch.places, some, states, strict=True):
                    readings[place] = self._reading(
                        passages[place], row, of_row, layers
                    )
                self._share = None
                share.done = done  # beginnings that were kept, too

        with progress.read.begun(tokens, every) as share:
            self._in_turn(work)
        return [readings[place] for place in range(len(rows))]

    def _reading(
        self, passage: Passage, row: Row, states: _States, layers: Sequence[int]
    ) -> TokenReading:
        target = row.tokens[row.start + 1 :]
        logp, entropy, top = self._numbers(states.last[-len(target) - 1 : -1], target)
        ends = self.words.ends(passage.pieces[passage.target].text, target)
        means = {
            layer: states.sums[layer] / np.float32(len(target)) for layer in layers
        }
        return TokenReading(logp, entropy, top, ends, means)

    # What comes next -----------------------------------------------------------------------------------------------

    def prompt(self, messages: Sequence[tuple[str, str]]) -> list[int]:
        """Return the tokens of a chat, up to where its answer begins.

        Args:
            messages: (role, content) pairs; a content cannot hold a control token.
        """
        turns = [Message(role, (content,)) for role, content in messages]
        return self._begun(rendered(self.chat, turns))

    def following(self, rows: Sequence[Row]) -> list[Floats]:
        """Log-probabilities of all words after each token from the row's `start` on: places x words.

        Raises: OptionError for more tokens than the context.
        """
        result = [np.zeros((0, 0), np.float32)] * len(rows)
        tokens = sum(len(self._checked(row.tokens)) for row in rows)

        def work() -> None:
            for batch in batches(rows, BATCH):
                some = [rows[place] for place in batch.places]
                done = share.done + sum(len(row.tokens) for row in some)
                self._share = share
                states = self._read(some, batch.shared)
                for place, row, state in zip(batch.places, some, states, strict=True):
                    count = len(row.tokens) - row.start
                    result[place] = self._all(state.last[-count:])
                self._share = None
                share.done = done

        with progress.read.begun(tokens, tokens) as share:
            self._in_turn(work)
        return result

    def _all(self, states: Floats) -> Floats:
        some = np.zeros((len(states), 1), np.int64)
        self._head.infer({"states": states, "next": some})
        logp: Floats = self._head.get_tensor("all").data.copy()
        return logp

    def states(self, tokens: Sequence[int], layer: int, *, start: int = 0) -> Floats:
        """Return the last computed layer's states at the tokens from `start` on: tokens x width.

        They come after the mark that begins a text, which some models do not set by themselves. Raises as `read`.
        """
        if layer != self._until:
            raise OptionError(
                f"layer {layer}: {self.name} gives the states of {self._until}"
            )
        begun = [self.words.bos or 0, *tokens]
        some = self._checked(begun)
        read = self._in_turn(
            lambda: self._through(some, start and start + 1, start + 2)
        )
        return read.last[len(read.last) - len(tokens) + start :]

    # A passage -----------------------------------------------------------------------------------------------------

    def _begun(self, pieces: Sequence[Piece]) -> list[int]:
        """The tokens of pieces that a text begins with."""
        tokens = list(itertools.chain.from_iterable(map(self.tokens, pieces)))
        begin = self.words.begin
        return tokens if tokens[: len(begin)] == begin else [*begin, *tokens]

    def _row(self, passage: Passage) -> Row:
        before = self._begun(passage.pieces[: passage.target])
        target = self.tokens(passage.pieces[passage.target])
        if not before or not target:
            raise OptionError(
                "a passage needs at least one token before its target, and one in it"
            )
        return Row(self._checked(before + target), len(before) - 1)

    def _checked(self, tokens: list[int]) -> list[int]:
        if len(tokens) > self.context:
            raise OptionError(
                f"{len(tokens)} tokens are more than the {self.context} that {self.name} reads at once"
            )
        return tokens

    # Computing -----------------------------------------------------------------------------------------------------

    def _read(self, rows: Sequence[Row], shared: int) -> list[_States]:
        """Return the layers' states of rows that begin with the same `shared` tokens."""
        if len(rows) == 1:
            return [self._through(rows[0].tokens, rows[0].start, rows[0].start + 1)]
        past = self._through(rows[0].tokens[:shared], shared, shared).past
        parts = [row.tokens[shared:] for row in rows]
        counted = [row.start + 1 - shared for row in rows]
        values = self._pass(parts, past, counted)
        first = _first_wanted(parts, counted)
        states = list[_States]()
        for place, part in enumerate(parts):
            last = values["last"][place, : len(part) - first].copy()
            sums = {layer: values[f"sum{layer}"][place].copy() for layer in self._each}
            states.append(_States(past, last, sums))
        return states

    def _through(self, tokens: list[int], most: int, counted: int) -> _States:
        """Put one row through the layers, from the longest kept beginning of at most `most` tokens on.

        counted: the first token whose states are added up.
        """
        past = self._longest(tokens, most)
        lasts = [np.zeros((0, self._shape.width), np.float32)]
        sums = {layer: np.zeros(self._shape.width, np.float32) for layer in self._each}
        for first in range(len(past.tokens), len(tokens), STEP):
            part = tokens[first : first + STEP]
            values = self._pass([part], past, [counted - first])
            new = {name: values[name][:, :, : len(part)] for name in self._kinds}
            past = past.and_then(part, new)
            wanted = len(part) - _first_wanted([part], [counted - first])
            lasts.append(values["last"][0, :wanted].copy())
            sums = {layer: of + values[f"sum{layer}"][0] for layer, of in sums.items()}
        self._keep(past)
        return _States(past, np.concatenate(lasts), sums)

    def _pass(
        self, parts: Sequence[list[int]], past: _Past, counted: Sequence[int]
    ) -> Mapping[str, Floats]:
        """One pass through the layers: parts are filled up behind their end, which nothing before it sees.

        `last` begins at `_first_wanted`. The result is valid until the next pass.
        """
        self._go_on()
        before = len(past.tokens)
        count = _filled(parts)
        shape = self._shape
        ids = np.zeros((len(parts), count), np.int64)
        wanted = np.zeros((len(parts), count), np.float32)
        for place, (part, first) in enumerate(zip(parts, counted, strict=True)):
            ids[place, : len(part)] = part
            wanted[place, max(0, first) : len(part)] = 1
        inputs = {
            "rows": self._weights.rows("token_embd.weight", ids),
            "counted": wanted,
            "wanted": np.arange(_first_wanted(parts, counted), count, dtype=np.int32),
        }
        inputs |= {
            **self._turns(before, count),
            "hidden": (unseen := hidden(before, count)),
        }
        inputs["nothing"] = np.zeros(
            (len(parts), shape.shared, unseen.shape[-1] - before - count, shape.head),
            np.float32,
        )
        empty = np.zeros((1, shape.shared, 0, shape.head), np.float32)
        for name in self._kinds:
            cached = past.values.get(name, empty)
            inputs[name] = np.broadcast_to(cached, (len(parts), *cached.shape[1:]))
        request = self._layers
        tokens = sum(map(len, parts))
        with progress.read.step(self._share, tokens, tokens):
            request.infer(
                {name: np.ascontiguousarray(of) for name, of in inputs.items()},
                share_inputs=True,
            )
        self.computed += tokens
        names = ("last", *self._kinds, *(f"sum{layer}" for layer in self._each))
        return {
            name: request.get_tensor(
                f"new_{name}" if name in self._kinds else name
            ).data
            for name in names
        }

    def _numbers(self, states: Floats, following: Sequence[int]) -> list[Floats]:
        """Of states and the tokens that follow them log p, entropy and the top log-probability (`token_numbers`)."""
        numbers = list[list[Floats]]()
        for first in range(0, len(following), AT_ONCE):
            some = np.array(following[first : first + AT_ONCE])[:, None]
            self._go_on()
            here = {"states": states[first : first + AT_ONCE], "next": some}
            with progress.read.step(self._share, NUMBER * len(some)):
                self._head.infer(here)
            numbers.append(
                [
                    self._head.get_tensor(name).data.reshape(-1).copy()
                    for name in ("logp", "entropy", "top")
                ]
            )
        return [np.concatenate(each) for each in zip(*numbers, strict=True)]

    # Beginnings ----------------------------------------------------------------------------------------------------

    def _longest(self, tokens: list[int], most: int) -> _Past:
        """The longest beginning that is kept."""
        shared = [min(common_length(past.tokens, tokens), most) for past in self._pasts]
        best = max(range(len(shared)), key=shared.__getitem__, default=-1)
        if best >= 0 and shared[best] >= WORTH:
            return self._pasts[best].cut(shared[best])
        return _Past()

    def _keep(self, past: _Past) -> None:
        """Keep a row for others with its beginning, instead of those that it begins with and of those used long ago."""
        others = [
            earlier
            for earlier in self._pasts
            if past.tokens[: len(earlier.tokens)] != earlier.tokens
        ]
        room = KEPT - len(past.tokens)
        self._pasts = [past]
        for earlier in reversed(others):
            room -= len(earlier.tokens)
            if room >= 0:
                self._pasts.insert(0, earlier)


def _work(row: Row) -> float:
    """Return what reading a row takes, in tokens through the layers."""
    return len(row.tokens) + NUMBER * (len(row.tokens) - row.start - 1)


def _first_wanted(parts: Sequence[list[int]], counted: Sequence[int]) -> int:
    """Return the token from which on the last layer is computed: the one before the first counted, or the last one.

    The graph gives no empty result.
    """
    return min(max(0, min(counted) - 1), max(map(len, parts)) - 1)


def _filled(parts: Sequence[list[int]]) -> int:
    """Return the tokens of a pass: of long ones a multiple of 16, since each other number takes memory for good."""
    longest = max(map(len, parts))
    return longest if longest < LONG else -(-longest // FILLED) * FILLED


def _own_process(name: str) -> int:
    """This process, which OpenVINO's threads belong to from now on.

    Raises: ModelError where they belong to a parent's, whose threads a fork does not bring along.
    """
    global _process
    if _process not in (None, os.getpid()):
        raise ModelError(
            f"{name}: this process was forked from one that reads with OpenVINO and cannot open a model; open it in "
            "the parent, or start workers with multiprocessing's 'spawn' method"
        )
    _process = os.getpid()
    return _process
