"""SARI: words that an output keeps, deletes and adds, against its source and its references.

Source: "Optimizing Statistical Machine Translation for Text Simplification" (Xu et al. 2016, §4.2), by the rules of the
authors' program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from judgesmith.programs.baselines.compared import Compared, ComparedMetric, needed
from judgesmith.programs.registry import metrics

_LONGEST = 4  # words of an n-gram


def sari(
    source: Sequence[str], output: Sequence[str], references: Sequence[Sequence[str]]
) -> float:
    """Return SARI in [0, 1].

    It is the mean of F1 of kept, F1 of added and the precision of deleted n-grams, each the mean over one to four
    words.

    Args:
        source: The words of the source.
        output: The words of the output.
        references: The words of each reference, at least one.
    """
    total = 0.0
    for n in range(1, _LONGEST + 1):
        of_references = [_grams(reference, n) for reference in references]
        total += sum(_of_grams(_grams(source, n), _grams(output, n), of_references))
    return total / (3 * _LONGEST)


def _grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _of_grams(
    source: Counter[tuple[str, ...]],
    output: Counter[tuple[str, ...]],
    references: list[Counter[tuple[str, ...]]],
) -> tuple[float, float, float]:
    """F1 of keeping, precision of deleting, F1 of adding. Source and output count once for each reference."""
    wanted = sum(references, Counter[tuple[str, ...]]())
    source_grams = _times(source, len(references))
    output_grams = _times(output, len(references))
    retained = source_grams & output_grams
    keepable = source_grams & wanted
    rightly = retained & wanted
    keep = _f1(_shares(rightly, retained), _shares(rightly, keepable))
    deleted = source_grams - output_grams
    delete = _shares(deleted - wanted, deleted)
    added = output.keys() - source.keys()
    addable = wanted.keys() - source.keys()
    well = len(added & addable)
    add = _f1(
        well / len(added) if added else 0.0, well / len(addable) if addable else 0.0
    )
    return keep, delete, add


def _times(grams: Counter[tuple[str, ...]], number: int) -> Counter[tuple[str, ...]]:
    return Counter({gram: number * count for gram, count in grams.items()})


def _shares(good: Counter[tuple[str, ...]], every: Counter[tuple[str, ...]]) -> float:
    """The mean share of each n-gram's count that is good; 0 where there is none."""
    if every:
        return sum(n / every[gram] for gram, n in good.items()) / len(every)
    return 0.0


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
        """Return source and reference."""
        return "source", "reference"

    def ready(self) -> None:
        """Load the tokenizer."""
        self._tokens  # noqa: B018

    @cached_property
    def _tokens(self) -> Callable[[str], str]:
        tokens: Callable[[str], str] = needed(
            "sacrebleu.tokenizers.tokenizer_13a", Sari
        ).Tokenizer13a()
        return tokens

    def values(self, rows: Sequence[Compared]) -> Iterator[float]:
        """Yield SARI of each row."""
        for output, ((source,), references) in rows:
            source_words, output_words, *others = (
                self._tokens(text.lower()).split()
                for text in (source, output, *references)
            )
            yield sari(source_words, output_words, others)
