"""What can be counted without a model: length, overlap with the source, repetition. The baseline of every judge."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

from rapidfuzz.distance import Indel, LCSseq

__all__ = ["SURFACE", "surface"]

_WORD = re.compile(r"\w+|[^\w\s]")
_MOST_WORDS = 2000  # of a text that are compared in order: the comparison's time is their product

#: The names of the numbers, in their order.
SURFACE = ("words", "ratio", "from_source", "of_source", "order", "copied", "variety", "repeated", "sentence")


def surface(source: str, output: str) -> dict[str, float]:
    """Counts of an output beside what it was made from.

    words: log of the number of words. ratio: log of the output's words to the source's. from_source: share of the
    output's distinct words that the source has. of_source: share of the source's that the output has. order: similarity
    of the two as sequences of words, 0 to 1. copied: longest common subsequence's share of the output. variety:
    distinct words a word. repeated: share of word pairs that came before. sentence: mean words a sentence, log.
    """
    given, made = (_WORD.findall(text.casefold()) for text in (source, output))
    both = set(given) & set(made)
    pairs = Counter(itertools.pairwise(made))
    ends = max(1, sum(word in ".!?" for word in made))
    short, long = given[:_MOST_WORDS], made[:_MOST_WORDS]
    return {
        "words": math.log1p(len(made)),
        "ratio": math.log1p(len(made)) - math.log1p(len(given)),
        "from_source": len(both) / max(1, len(set(made))),
        "of_source": len(both) / max(1, len(set(given))),
        "order": float(Indel.normalized_similarity(short, long)),
        "copied": LCSseq.similarity(short, long) / max(1, len(long)),
        "variety": len(set(made)) / max(1, len(made)),
        "repeated": 1 - len(pairs) / max(1, pairs.total()),
        "sentence": math.log1p(len(made) / ends),
    }
