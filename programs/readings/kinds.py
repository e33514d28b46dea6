"""The readings of a row: likelihoods, hidden states, and counts without a model.

All but the counts come from one pass over the row, or of a long one from some (`windows`). Numbers are parts
(`Reading`), and those of other packages are weighed beside these.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import string
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from rapidfuzz.distance import LCSseq

from judgesmith.errors import CallError, JudgesmithError, OptionError
from judgesmith.programs.readings.passages import Text
from judgesmith.programs.readings.reader import (
    BatchReader,
    Floats,
    Reader,
    TokenReading,
)
from judgesmith.programs.readings.windows import (
    Windows,
    joined,
    read_windows,
    windows,
)
from judgesmith.programs.registry import readings
from judgesmith.wording import SPACELESS

Words = Mapping[str, tuple[str, str, str, str]]
#: Before the name of a column that is a reading; and the name of the trained reader's score.
SIGNAL = "signal"
TRAINED = "trained.score"


class Reading(ABC):
    """Numbers of a row that labels can weigh.

    A subclass is registered with `registry.readings`; a number's name in a table and in a saved judge is NAME.KEY.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    #: For explanations, by key: what a number tells of, a clause, and its word where the number is above and below what
    #: is usual. Numbers that tell of one thing are explained together.
    words: ClassVar[Words] = {}
    #: Whether it needs no model: it is read where none reads, and left out with surface=False.
    counted: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def numbers(cls, text: Text, tokens: TokenReading) -> Mapping[str, float]:
        """Return the numbers by key, the same keys for every row; NaN for absent ones.

        Args:
            text: The row.
            tokens: The model's numbers for the tokens of the output.
        """


def middle(layers: int, count: int) -> tuple[int, ...]:
    """Return `count` layers around the middle of a model, a twelfth of it apart: 10, 12, 14 of 24."""
    step = max(1, round(layers / 12))
    first = round(layers / 2) - step * (count - 1) // 2
    return tuple(sorted({min(layers, max(1, first + step * i)) for i in range(count)}))


_ASCII_WORD = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(rf"[{SPACELESS}]|[^\W{SPACELESS}]+|[^\w\s]")
#: What ends a sentence, in the scripts that have a mark for it.
_ENDS = frozenset(".!?。！？．｡؟۔।॥։።")
#: Product of the words of two texts that are compared in order at once: the comparison's time is the product.
_AT_ONCE = 10**8


def _words(text: str) -> list[str]:
    """Return the words and marks of a text; each character is a word in a script without blanks between them."""
    text = text.casefold()
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


def surface(source: str, output: str) -> dict[str, float]:
    """Count words of an output and of its source.

    words: log of the number of words. ratio: log of the output's words to the source's. from_source: share of the
    output's distinct words that the source has. of_source: share of the source's that the output has. order: similarity
    of the two as sequences of words, 0 to 1. copied: longest common subsequence's share of the output. variety:
    distinct words a word. repeated: share of word pairs that came before. sentence: mean words a sentence, log. Where
    both texts have more than 10,000 words, order and copied are lower bounds; see `_longest_common`.
    """
    source_words = _words(source)
    output_words = _words(output)
    both = set(source_words) & set(output_words)
    pairs = Counter(itertools.pairwise(output_words))
    ends = max(1, sum(word in _ENDS for word in output_words))
    common = _longest_common(source_words, output_words)
    return {
        "words": math.log1p(len(output_words)),
        "ratio": math.log1p(len(output_words)) - math.log1p(len(source_words)),
        "from_source": len(both) / max(1, len(set(output_words))),
        "of_source": len(both) / max(1, len(set(source_words))),
        "order": _similarity(common, source_words, output_words),
        "copied": common / max(1, len(output_words)),
        "variety": len(set(output_words)) / max(1, len(output_words)),
        "repeated": 1 - len(pairs) / max(1, pairs.total()),
        "sentence": math.log1p(len(output_words) / ends),
    }


def reference(reference_text: str, output: str) -> dict[str, float]:
    """Return how near an output is to a reference, NaN without one.

    reference: F1 of their words. reference_order: similarity as sequences of words, 0 to 1.
    """
    right = _words(reference_text)
    output_words = _words(output)
    if not right:
        return {"reference": math.nan, "reference_order": math.nan}
    shared = (Counter(right) & Counter(output_words)).total()
    order = _similarity(_longest_common(right, output_words), right, output_words)
    return {
        "reference": 2 * shared / max(1, len(right) + len(output_words)),
        "reference_order": order,
    }


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Words of the longest common subsequence of two texts.

    Of longer ones than `_AT_ONCE` at least: both are divided into as many equal parts as make time linear, and each
    part is compared with the other text's at the same place.
    """
    parts = max(1, math.ceil(math.sqrt(len(first) * len(second) / _AT_ONCE)))
    pairs = zip(_divided(first, parts), _divided(second, parts), strict=True)
    return sum(itertools.starmap(LCSseq.similarity, pairs))


def _divided(words: Sequence[str], parts: int) -> Iterator[Sequence[str]]:
    """Divide the words into `parts` of about the same length."""
    for part in range(parts):
        start = len(words) * part // parts
        end = len(words) * (part + 1) // parts
        yield words[start:end]


def _similarity(common: int, first: Sequence[str], second: Sequence[str]) -> float:
    """Return how near two sequences are, from 0 to 1, by the words that they have in common in one order."""
    total = len(first) + len(second)
    return 1 - (total - 2 * common) / total if total else 1.0


@readings.register
class Likelihood(Reading):
    """Log-probabilities of the output as a reading."""

    name = "assistant"
    about = "how likely the model finds the output as its own reply"
    words = {  # noqa: RUF012  # see Reading
        "mean": ("words", "its words are {} expected than usual", "more", "less"),
        "min": (
            "words",
            "its least expected word stands out {} than usual",
            "less",
            "more",
        ),
        "q10": (
            "words",
            "its unusual words are {} expected than usual",
            "more",
            "less",
        ),
        "q25": (
            "words",
            "its unusual words are {} expected than usual",
            "more",
            "less",
        ),
        "q50": (
            "words",
            "its ordinary words are {} expected than usual",
            "more",
            "less",
        ),
        "excess": (
            "words",
            "its words are {} surprising where they stand than usual",
            "more",
            "less",
        ),
        "gap": (
            "words",
            "its words are {} the likeliest ones than usual",
            "further from",
            "closer to",
        ),
        "sum": (
            "length",
            "it is {} expected than usual",
            "shorter, or its words more",
            "longer, or its words less",
        ),
        "tokens": ("length", "it is {} than usual", "longer", "shorter"),
    }

    @classmethod
    def numbers(cls, text: Text, tokens: TokenReading) -> Mapping[str, float]:
        """Return a passage's numbers, in nats.

        mean, min, sum, q10, q25, q50: of log p over the target's tokens. excess: the mean of -log p - entropy, how much
        more surprising the tokens were than the model itself expected. gap: the mean of top - log p, how far the tokens
        lie behind the likeliest ones. tokens: log of their number. excess and gap are NaN if the reader cannot give
        them.
        """
        logp = tokens.logp.astype(np.float64)
        low, lower, middle = np.quantile(logp, (0.1, 0.25, 0.5))
        return {
            "mean": float(logp.mean()),
            "min": float(logp.min()),
            "sum": float(logp.sum()),
            "q10": float(low),
            "q25": float(lower),
            "q50": float(middle),
            "excess": float((-logp - tokens.entropy).mean()),
            "gap": float((tokens.top - logp).mean()),
            "tokens": float(np.log(len(logp))),
        }


@readings.register
class Surface(Reading):
    """Counts of words as a reading."""

    name = "surface"
    about = "length, overlap with the source and a reference, repetition, counted without a model"
    counted = True
    words = {  # noqa: RUF012  # see Reading
        "words": ("length", "it is {} than usual", "longer", "shorter"),
        "ratio": ("length", "it is {} for its source than usual", "longer", "shorter"),
        "from_source": (
            "source",
            "{} of its words come from the source than usual",
            "more",
            "fewer",
        ),
        "of_source": (
            "source",
            "it keeps {} of the source's words than usual",
            "more",
            "fewer",
        ),
        "order": (
            "source",
            "its wording is {} the source than usual",
            "closer to",
            "further from",
        ),
        "copied": (
            "source",
            "{} of it is copied from the source than usual",
            "more",
            "less",
        ),
        "variety": ("repetition", "its words are {} varied than usual", "more", "less"),
        "repeated": ("repetition", "it repeats itself {} than usual", "more", "less"),
        "sentence": (
            "sentences",
            "its sentences are {} than usual",
            "longer",
            "shorter",
        ),
        "reference": (
            "reference",
            "it shares {} words with the reference than usual",
            "more",
            "fewer",
        ),
        "reference_order": (
            "reference",
            "its wording is {} the reference than usual",
            "closer to",
            "further from",
        ),
    }

    @classmethod
    def numbers(cls, text: Text, tokens: TokenReading) -> Mapping[str, float]:
        """Return the counts of a row."""
        return surface(text.material, text.judged) | reference(
            text.reference, text.judged
        )


#: What lies between spaces and dashes, and every character of a script that has no spaces.
_RUN = re.compile(rf"[{SPACELESS}]|[^\s–—…{SPACELESS}]+")
_PUNCTUATION = string.punctuation + "“”‘’‚„«»‹›¿¡。、，！？：；「」『』（）"


@dataclass(frozen=True)
class RowReadings:
    """The readings of one row.

    It has numbers by name (assistant.mean, surface.words), states by block (assistant.mean12), and the model's numbers
    for each token. source: the share of the source and context that the model read; see `windows`. notes: for the
    reader of the verdict.
    """

    numbers: dict[str, float]
    states: dict[str, Floats]
    tokens: TokenReading
    source: float = 1.0
    notes: tuple[str, ...] = ()

    def surprise(self, text: str) -> list[tuple[int, int, float]]:
        """Return the words of a text that was read, as (start, end, surprise).

        Surprise is -log p in nats of a word's least expected token. Punctuation is left out; if a script has no spaces,
        the tokens stand for words.
        """
        ends = np.array(self.tokens.ends)
        result = list[tuple[int, int, float]]()
        for match in _RUN.finditer(text, 0, int(ends[-1]) if len(ends) else 0):
            word = match[0].strip(_PUNCTUATION)
            start = match.start() + match[0].index(word)
            end = start + len(word)
            first = np.searchsorted(ends, start, "right")
            last = np.searchsorted(ends, end)
            worst = -float(self.tokens.logp[first : last + 1].min()) if word else 0.0
            if result and result[-1][1:] == (start, worst):
                result[-1] = (result[-1][0], end, worst)
            elif word:
                result.append((start, end, worst))
        return result


#: What no model has read.
UNREAD = TokenReading(
    np.zeros(0, np.float32), np.zeros(0, np.float32), np.zeros(0, np.float32)
)


def read_row(
    reader: Reader | None, text: Text, *, layers: int, counted: bool
) -> RowReadings:
    """Read one row; without a reader only the readings that need no model.

    Args:
        reader: The reader.
        text: The row.
        layers: The number of middle layers whose states are read, if the reader gives any.
        counted: True to add the readings that need no model.

    Raises:
        OptionError: For a row without an output. Errors of the reader are raised, too.
    """
    if reader is None:
        return RowReadings(
            _numbers(text, UNREAD, lambda reading: reading.counted and counted),
            {},
            UNREAD,
        )
    divided = windows(text, reader)
    return _numbered(
        text,
        divided,
        read_windows(reader, divided.each, layers=_wanted(reader, layers)),
        counted,
    )


def read_rows(
    reader: Reader | None, texts: Sequence[Text], *, layers: int, counted: bool
) -> list[RowReadings | JudgesmithError]:
    """Read rows, several at once if the reader can; an error takes the place of an unreadable row."""
    # An error of one row is found below.
    with contextlib.suppress(OptionError, CallError):
        if isinstance(reader, BatchReader):
            return list(_read_together(reader, texts, layers, counted))
    result = list[RowReadings | JudgesmithError]()
    for text in texts:
        try:
            result.append(read_row(reader, text, layers=layers, counted=counted))
        except (OptionError, CallError) as error:
            result.append(error)
    return result


def _read_together(
    reader: BatchReader, texts: Sequence[Text], layers: int, counted: bool
) -> Iterator[RowReadings]:
    """Yield the readings of each row; the windows of all are read at once. Raises OptionError, CallError."""
    divided = [windows(text, reader) for text in texts]
    every = itertools.chain.from_iterable(of_text.each for of_text in divided)
    passages = [window.passage for window in every]
    read = iter(reader.read_many(passages, layers=_wanted(reader, layers)))
    for text, of_text in zip(texts, divided, strict=True):
        readings = list(itertools.islice(read, len(of_text.each)))
        yield _numbered(text, of_text, joined(of_text.each, readings), counted)


def _wanted(reader: Reader, layers: int) -> tuple[int, ...]:
    if layers and reader.ability.layers:
        return middle(reader.ability.layers, layers)
    return ()


def _numbered(
    text: Text, divided: Windows, tokens: TokenReading, counted: bool
) -> RowReadings:
    """A row's readings, of how the model took its tokens."""
    numbers = _numbers(text, tokens, lambda reading: counted or not reading.counted)
    states = {f"assistant.mean{layer}": mean for layer, mean in tokens.means.items()}
    return RowReadings(numbers, states, tokens, divided.source)


def _numbers(
    text: Text, tokens: TokenReading, wanted: Callable[[type[Reading]], bool]
) -> dict[str, float]:
    return {
        f"{name}.{key}": float(value)
        for name, reading in readings.parts().items()
        if wanted(reading)
        for key, value in reading.numbers(text, tokens).items()
    }


def group_of(name: str) -> str:
    """Return people's name for a reading.

    It is "direct score", "likelihood", "hidden states", "surface", "trained reader", the column of a signal, or the
    name of a plug-in.
    """
    part, _, key = name.partition(".")
    if part == SIGNAL:
        return f"column {key}"
    if part == "assistant":
        return "hidden states" if re.fullmatch(r"mean\d+", key) else "likelihood"
    return {"direct": "direct score", "trained": "trained reader"}.get(part, part)
