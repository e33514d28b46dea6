"""What a reader is: something that puts passages through a model and says how it takes every token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .passages import Chat, Passage, Question

__all__ = ["Ability", "Floats", "Reader", "StateReader", "TokenReading", "normalised", "token_numbers"]

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Ability:
    """What a reader can give beside log-probabilities. layers: how many the model has, or 0 where their states are out
    of reach. spread: entropy and the most likely token's log-probability."""

    layers: int = 0
    spread: bool = False
    questions: bool = True


@dataclass(frozen=True, slots=True)
class TokenReading:
    """One passage, read. All vectors have one entry for each token of the target.

    tokens: empty where a server names its tokens by their text alone. logp: natural log of the token's probability
    after all before it. entropy: of the model's distribution there, in nats; NaN where the reader cannot say. top:
    log-probability of the likeliest token; NaN likewise. ends: character of the target after which the token ends, for
    reports. means, last: layer -> the mean over the target's tokens, and
    the last token's state, each of the model's width. Layer l is the output of block l, before the next one, and not
    normalised; the last layer's is taken after the model's final norm, as Hugging Face gives it.
    """

    tokens: tuple[int, ...]
    logp: Floats
    entropy: Floats
    top: Floats
    ends: tuple[int, ...] = ()
    means: Mapping[int, Floats] = field(default_factory=dict)
    last: Mapping[int, Floats] = field(default_factory=dict)


class Reader(Protocol):
    """Reads passages and answers questions, one after the other. Equal beginnings are computed once where the one
    follows the other: ask in an order that keeps them together."""

    name: str
    chat: Chat
    ability: Ability

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading: ...

    def answer(self, question: Question) -> Floats:
        """Log-probability of each answer as the next token, summed over its spellings; not renormalised."""
        ...


class StateReader(Reader, Protocol):
    """A reader whose `ability` has layers."""

    def states(self, passage: Passage, layer: int) -> tuple[tuple[int, ...], Floats]:
        """The target's tokens and a layer's state at each of them, of shape (tokens, width)."""
        ...


def normalised(logits: Floats) -> Floats:
    """Log-probabilities from logits, along the last axis."""
    top = logits.max(axis=-1, keepdims=True)
    shifted = logits - top
    total: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return total


def token_numbers(logits: Floats, tokens: Sequence[int]) -> tuple[Floats, Floats, Floats]:
    """log p, entropy and the top log-probability at each of the positions (rows) of `logits`."""
    log_probability = normalised(logits.astype(np.float32, copy=False))
    rows = np.arange(len(tokens))
    entropy = -(np.exp(log_probability) * log_probability).sum(axis=-1)
    return log_probability[rows, list(tokens)], entropy, log_probability.max(axis=-1)
