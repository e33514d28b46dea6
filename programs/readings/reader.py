"""Readers, which put passages through a model and return its numbers for every token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import scipy
from numpy.typing import NDArray

from judgesmith.errors import OptionError
from judgesmith.programs.models.transport import DENSE
from judgesmith.programs.readings.passages import Chat, Passage, Piece

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Ability:
    """The abilities of a reader beside log-probabilities, and the length it reads at once.

    layers: the number of the model's layers, or 0 if their states are out of reach. context: tokens of one passage at
    most; 0 if that is not known.
    """

    layers: int = 0
    context: int = 0


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
    """Reads passages, one after the other.

    Equal beginnings are computed once where the one follows the other: read in an order that keeps them together.
    """

    name: str
    chat: Chat
    ability: Ability

    def size(self, pieces: Sequence[Piece]) -> int:
        """Return the number of tokens of pieces that a passage begins with, the mark before them included.

        It is an upper estimate if only a server knows.
        """
        ...

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        """Read a passage, with the states of some layers."""


@runtime_checkable
class BatchReader(Reader, Protocol):
    """Reads several passages at once. What one gives does not depend on the others."""

    def read_many(
        self, passages: Sequence[Passage], *, layers: Sequence[int] = ()
    ) -> list[TokenReading]:
        """Read each passage. Raises as `read`, for any of them."""
        ...


def read_all(
    reader: Reader, passages: Sequence[Passage], *, layers: Sequence[int] = ()
) -> list[TokenReading]:
    """Read passages, at once if the reader can. Errors of the reader are raised."""
    if isinstance(reader, BatchReader):
        return reader.read_many(passages, layers=layers)
    return [reader.read(passage, layers=layers) for passage in passages]


def estimated_size(pieces: Sequence[Piece]) -> int:
    """Tokens of pieces, at most in nearly all texts, where nothing is known of the model's tokens."""
    return sum(
        len(piece.text.encode("utf-8", "replace")) // DENSE + 1 for piece in pieces
    )


def check_layers(layers: Sequence[int], most: int, name: str) -> None:
    """Check that a model has some layers.

    Args:
        layers: Their numbers.
        most: The number of the last layer that can be read.
        name: The model's name, for the message.

    Raises:
        OptionError: If not.
    """
    for layer in layers:
        if not 1 <= layer <= most:
            raise OptionError(f"layer {layer}: {name} has 1 to {most}")


def token_numbers(
    logits: Floats, tokens: Sequence[int]
) -> tuple[Floats, Floats, Floats]:
    """Log p, entropy and the top log-probability at each of the positions (rows) of `logits`."""
    log_probability: Floats = scipy.special.log_softmax(
        logits.astype(np.float32, copy=False), axis=-1
    )
    rows = np.arange(len(tokens))
    entropy = -(np.exp(log_probability) * log_probability).sum(axis=-1)
    return log_probability[rows, list(tokens)], entropy, log_probability.max(axis=-1)


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many tokens two prompts share from their beginning."""
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y),
        min(len(a), len(b)),
    )
