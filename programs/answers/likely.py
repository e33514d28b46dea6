"""How likely was what was answered? Numbers and words by the log-probabilities of the tokens at their place."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.signatures.values import Scale

#: The share of probability on a scale's digits below which their expectation is not taken.
LOWEST_MASS = 0.1
_FURTHER_DIGITS = re.compile(r"\d|\.\d")


def token_at(reply: Reply, start: int) -> TokenChoice | None:
    """Return the token that holds character `start` of the answer; None if it cannot be told."""
    return next(iter(_tokens_from(reply, start)), None)


def _tokens_from(reply: Reply, start: int) -> tuple[TokenChoice, ...]:
    """Return the tokens from the one that holds character `start` of the answer; none if it cannot be told."""
    if reply.tokens is None:
        return ()
    spoken = "".join([token.text for token in reply.tokens])
    if not spoken.startswith(reply.text[: start + 1]):
        # Tokens that are parts of one character, or a text that was stripped: what comes after may still fit.
        rest = reply.text[start:]
        if not spoken.endswith(rest):
            return ()
        start = len(spoken) - len(rest)
    place = 0
    for number, token in enumerate(reply.tokens):
        after = place + len(token.text)
        if place <= start < after:
            return reply.tokens[number:]
        place = after
    return ()


def expectation(reply: Reply, start: int, scale: Scale) -> tuple[float, float]:
    """Return the mean score in [0, 100] over the one-digit numbers of `scale` at character `start`, and their share.

    The share is the probability on them. Surface forms of a digit (with or without a leading space) are added up. (NaN,
    0) if the reply has no log-probabilities there or the number is not one digit.
    """
    token = None if start < 0 else token_at(reply, start)
    if (
        token is None
        or len(token.text.strip()) != 1
        or _FURTHER_DIGITS.match(reply.text, start + 1)
    ):
        return math.nan, 0.0
    digits = _digits(scale)
    shares = [
        (digits[digit], math.exp(min(logprob, 0.0)))
        for text, logprob in token.alternatives
        if (digit := text.strip()) in digits
    ]
    place, mass = _mean(shares)
    return scale.to_percent(scale.low + place), mass


@lru_cache(maxsize=64)
def _digits(scale: Scale) -> Mapping[str, int]:
    """Return the places of the one-digit numbers of a scale (0, 1, …)."""
    numbers = range(int(scale.low), min(9, int(scale.high)) + 1)
    return {str(number): place for place, number in enumerate(numbers)}


def share_of_words(
    reply: Reply, start: int | None, words: Sequence[str]
) -> tuple[float, float]:
    """Return the mean place (0, 1, …) among `words` by their probabilities at character `start`, and their share.

    The share is the probability on them. Where words have their first token in common, the tokens of the answer's own
    word tell them apart; of others in common the one nearest to that word counts. (NaN, 0) without log-probabilities
    there.

    >>> tokens = TokenChoice("Far", (("Far", -0.7), ("So", -0.7))), TokenChoice(" up", ((" up", 0.0),))
    >>> mean, share = share_of_words(Reply("Far up", tokens), 0, ["Far down", "So so", "Far up"])
    >>> round(mean, 3), round(share, 3)
    (1.5, 0.993)
    """
    if start is None:
        return math.nan, 0.0
    text = reply.text[start:].lower()
    choices = tuple([word.lower() for word in words])
    own = (place for place, word in enumerate(choices) if text.startswith(word))
    return _mean(_shares(_tokens_from(reply, start), choices, next(own, 0)))


def _mean(shares: Iterable[tuple[int, float]]) -> tuple[float, float]:
    """Return the mean of places by their probabilities, and the sum of these; NaN for a sum of 0."""
    weights: dict[int, float] = {}
    for place, share in shares:
        weights[place] = weights.get(place, 0.0) + share
    mass = sum(weights.values())
    if mass <= 0.0:
        return math.nan, 0.0
    total = sum([place * weight for place, weight in weights.items()])
    return total / mass, min(mass, 1.0)


def _shares(
    tokens: Sequence[TokenChoice], words: tuple[str, ...], own: int
) -> Iterator[tuple[int, float]]:
    """Yield places among words with their probabilities, along an answer's tokens as far as they leave words open.

    own: the place of the answer's own word.
    """
    begun = ""
    share = 1.0
    for token in tokens:
        if not token.alternatives:
            break
        spoken = _continued(begun, token.text, words)
        further = 0.0
        for text, logprob in token.alternatives:
            places = _continued(begun, text, words)
            part = share * math.exp(min(logprob, 0.0))
            if len(places) > 1 and places == spoken:
                further += part
            elif places:
                yield min(places, key=lambda place: abs(place - own)), part
        if not further:
            return
        begun = _joined(begun, token.text)
        share = further
    if begun:
        yield own, share


def _joined(begun: str, text: str) -> str:
    return begun + (text.rstrip() if begun else text.strip()).lower()


@lru_cache(maxsize=4096)
def _continued(begun: str, text: str, words: tuple[str, ...]) -> tuple[int, ...]:
    """Return the places of the words that a token's text continues."""
    piece = _joined(begun, text)
    fits = [i for i, word in enumerate(words) if word.startswith(piece)]
    return tuple(fits) if piece != begun else ()


def word_probabilities(
    reply: Reply, start: int, words: Sequence[str], *, whole: bool = False
) -> tuple[tuple[float, ...], float]:
    """Return the probabilities of `words` at character `start` of an answer, summing to 1, and their share before.

    A word's surface forms are added up: any case, with a leading space or its marks in tokenizers (Ġ, ▁), with
    punctuation, or (unless `whole`) its beginning, where that begins no other of the words: servers whose tokenizer
    cuts one of them give its first piece alone. That is the softmax over the logarithms of the three sums. Zeros with a
    share of 0 if the reply has no log-probabilities there.
    """
    token = token_at(reply, start)
    sums = [0.0] * len(words)
    if token is not None:
        for text, logprob in token.alternatives:
            piece = letters(text)
            fits = [
                i
                for i, word in enumerate(words)
                if word.lower() == piece
                or (piece and not whole and word.lower().startswith(piece))
            ]
            if len(fits) == 1 and not math.isnan(logprob):
                sums[fits[0]] += math.exp(min(logprob, 0.0))
    share = sum(sums)
    if share <= 0.0:
        return tuple(sums), 0.0
    return tuple([s / share for s in sums]), min(share, 1.0)


@lru_cache(maxsize=4096)
def letters(text: str) -> str:
    """Return a token as a word: in small letters, without marks of tokenizers, signs and digits."""
    return re.sub(r"[\W\d_]+", "", text.replace("Ġ", "")).lower()
