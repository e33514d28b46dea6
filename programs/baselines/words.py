"""METEOR and SARI: words that an output shares with its references, or with its source.

Sources: "METEOR: An Automatic Metric for MT Evaluation with High Levels of Correlation with Human Judgments" (Lavie and
Agarwal 2007), with its parameters, without WordNet's synonyms; nltk's METEOR, which aligns words greedily from the end,
gives a reordered sentence .50 where fewest chunks give .94. "Optimizing Statistical Machine Translation for Text
Simplification" (Xu et al. 2016, §4.2), by the rules of the authors' program.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from ... import parts
from ..registry import metrics
from .compared import Against, Compared, ComparedMetric, PairMetric, against, needed

_WORD = re.compile(r"\w+|[^\w\s]")
_LONGEST = 4  # words of an n-gram


def aligned(
    output: Sequence[str], reference: Sequence[str], stages: Sequence[Callable[[str], str]]
) -> list[tuple[int, int]]:
    """Pairs of places (output, reference) of words that mean the same, each word in one pair at most, in the output's
    order. stages: what of two words has to be equal, the strictest first.

    Each stage takes the longest runs of matching words first. That gives as many matches as there can be, and nearly
    always the fewest chunks; the published program searches for them.
    """
    pairs: dict[int, int] = {}
    free = set(range(len(reference)))
    for stage in stages:
        made, wanted = ([stage(word) for word in words] for words in (output, reference))
        while True:
            best = (0, 0, 0)
            for i in (i for i in range(len(made)) if i not in pairs):
                for j in free:
                    length = 0
                    while (
                        i + length < len(made)
                        and i + length not in pairs
                        and j + length in free
                        and made[i + length] == wanted[j + length]
                    ):
                        length += 1
                    best = max(best, (length, -i, -j))
            length, i, j = best[0], -best[1], -best[2]
            if not length:
                break
            pairs |= {i + step: j + step for step in range(length)}
            free -= set(range(j, j + length))
    return sorted(pairs.items())


def meteor(pairs: Sequence[tuple[int, int]], made: int, wanted: int) -> float:
    """(1 - .5 * (chunks / matches)^3) * P*R / (.9 P + .1 R), in [0, 1].

    pairs: of an alignment, in the output's order. made, wanted: words of output and reference. A chunk is a run of
    matches that is adjacent in both texts. An output equal to its reference has one chunk, and so a little less than 1.
    """
    if not pairs:
        return 0.0
    matches = len(pairs)
    precision, recall = matches / made, matches / wanted
    mean = precision * recall / (0.9 * precision + 0.1 * recall)
    joined = sum(b == (a[0] + 1, a[1] + 1) for a, b in itertools.pairwise(pairs))
    return mean * (1 - 0.5 * ((matches - joined) / matches) ** 3)


@metrics.register
class Meteor(PairMetric):
    """METEOR by exact words and Porter stems, in lower case. See `Options`."""

    name = "meteor"
    about = "METEOR by exact words and Porter stems, without WordNet's synonyms, best reference"
    paper = "METEOR: An Automatic Metric for MT Evaluation (Banerjee and Lavie 2005; Lavie and Agarwal 2007)"
    extra = "metrics"

    class Options(parts.Options):
        against: Against = against()

    def ready(self) -> None:
        self._stem  # noqa: B018  imported before the first row

    @cached_property
    def _stem(self) -> Callable[[str], str]:
        stem: Callable[[str], str] = needed("nltk.stem.porter", Meteor).PorterStemmer().stem
        return stem

    def value(self, output: str, other: str) -> float:
        made, wanted = (_WORD.findall(text.lower()) for text in (output, other))
        return meteor(aligned(made, wanted, (str, self._stem)), len(made), len(wanted))


def sari(source: Sequence[str], output: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The mean of F1 of what is kept, F1 of what is added and the precision of what is deleted, each the mean over
    n-grams of one to four words; in [0, 1]. Texts are lists of words, of one reference at least."""
    parts = [
        _of_grams(_grams(source, n), _grams(output, n), [_grams(reference, n) for reference in references])
        for n in range(1, _LONGEST + 1)
    ]
    return sum(sum(part) for part in parts) / (3 * _LONGEST)


def _grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _of_grams(
    source: Counter[tuple[str, ...]], output: Counter[tuple[str, ...]], references: list[Counter[tuple[str, ...]]]
) -> tuple[float, float, float]:
    """F1 of keeping, precision of deleting, F1 of adding. Source and output count once for each reference."""
    wanted = sum(references, Counter[tuple[str, ...]]())
    given, made = (Counter({g: n * len(references) for g, n in one.items()}) for one in (source, output))
    kept, keepable = given & made, given & wanted
    rightly = kept & wanted
    keep = _f1(_shares(rightly, kept), _shares(rightly, keepable))
    deleted = given - made
    delete = _shares(deleted - wanted, deleted)
    added, addable = output.keys() - source.keys(), wanted.keys() - source.keys()
    well = len(added & addable)
    add = _f1(well / len(added) if added else 0.0, well / len(addable) if addable else 0.0)
    return keep, delete, add


def _shares(good: Counter[tuple[str, ...]], every: Counter[tuple[str, ...]]) -> float:
    """The mean share of each n-gram's count that is good; 0 where there is none."""
    return sum(n / every[gram] for gram, n in good.items()) / len(every) if every else 0.0


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@metrics.register
class Sari(ComparedMetric):
    """SARI of one sentence, in lower case and sacrebleu's 13a tokens. A row needs a source and a reference."""

    name = "sari"
    about = "SARI for simplification: words kept, deleted and added, against source and references"
    paper = "Optimizing Statistical Machine Translation for Text Simplification (Xu et al. 2016)"
    extra = "metrics"

    def needs(self) -> tuple[str, ...]:
        return "source", "reference"

    def ready(self) -> None:
        self._tokens  # noqa: B018

    @cached_property
    def _tokens(self) -> Callable[[str], str]:
        tokens: Callable[[str], str] = needed("sacrebleu.tokenizers.tokenizer_13a", Sari).Tokenizer13a()
        return tokens

    def values(self, rows: Sequence[Compared]) -> Iterator[float]:
        for output, ((source,), references) in rows:
            given, made, *others = (self._tokens(text.lower()).split() for text in (source, output, *references))
            yield sari(given, made, others)
