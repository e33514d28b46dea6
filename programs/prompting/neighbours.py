"""Demonstrations that each input chooses for itself: the k labelled rows whose texts are most like its own.

The similarity is lexical and made here in a few lines, since it must be the same wherever a saved judge is loaded:
cosine of TF-IDF vectors of character trigrams, which need no word boundaries and so serve every language. It is taken
for source, context and output each on its own and averaged, or a long source would drown a short output.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

Vector = NDArray[np.float64]
#: What is compared of a row.
FIELDS = ("source", "context", "output")
#: The most that a pool may hold, so that a judge with several predictors still fits into one artifact.
MOST_ROWS, MOST_CHARACTERS, MOST_OF_A_ROW = 200, 1_000_000, 400_000
#: The most that one prompt may show.
MOST_SHOWN = 64
#: Of longer texts the beginning is compared.
COMPARED = 20_000
SIZE = 3


class Neighbours(list[Any]):
    """A pool of demonstrations, of which a prompt shows the `shown` that are most like the input.

    A list, so that it stands where a predictor's demonstrations stand: it is copied, saved, and taken away with them.
    Prompts of different inputs share no more than what comes before their demonstrations, so that a prefix cache saves
    less than with the same demonstrations for all.
    """

    def __init__(self, shown: int, demos: Iterable[Any] = ()) -> None:
        super().__init__(demos)
        self.shown = shown

    def nearest(self, inputs: Mapping[str, Any], allowed: Sequence[int]) -> list[Any]:
        """At most `shown` of the `allowed` (numbers in the pool), one of a group, the most similar last, next to the
        input. Of equally similar ones the earlier counts as nearer."""
        indexes = zip(_indexes(tuple(_texts(demo) for demo in self)), _texts(inputs), strict=True)
        used = [index.similarity(text) for index, text in indexes if text.strip()]
        # The mean over the fields that the input has, rounded, so that equal texts are equally similar whatever the
        # order of sums.
        similar = np.round(sum(used, np.zeros(len(self))) / max(1, len(used)), 9)
        picked: list[int] = []
        groups: set[Any] = set()
        for number in sorted(allowed, key=lambda i: (-similar[i], i)):
            group = self[number].get("group")
            if len(picked) < self.shown and (group is None or group not in groups):
                picked.append(number)
                groups.add(group)
        return [self[number] for number in reversed(picked)]


def fits_pool(texts: Sequence[Sequence[str]]) -> list[int]:
    """Numbers of the rows that go into a pool, in their order: the first ones, as many as it may hold."""
    kept: list[int] = []
    room = MOST_CHARACTERS
    for number, row in enumerate(texts):
        size = sum(map(len, row))
        if len(kept) < MOST_ROWS and size <= min(room, MOST_OF_A_ROW):
            kept.append(number)
            room -= size
    return kept


def _texts(row: Mapping[str, Any]) -> tuple[str, ...]:
    result = (row.get(name) for name in FIELDS)
    return tuple(value if isinstance(value, str) else "" for value in result)


def trigrams(text: str) -> Counter[str]:
    """Character trigrams of a text, case and runs of white space apart, with its ends marked."""
    plain = f" {' '.join(text[:COMPARED].casefold().split())} "
    return Counter(plain[i : i + SIZE] for i in range(len(plain) - SIZE + 1))


class _FieldIndex:
    """TF-IDF vectors of one field of a pool: tf = 1 + ln(count), idf = 1 + ln((1 + rows) / (1 + rows with it))."""

    def __init__(self, texts: Sequence[str]) -> None:
        counted = [trigrams(text) for text in texts]
        present = Counter(gram for counts in counted for gram in counts)
        self.columns = {gram: column for column, gram in enumerate(present)}
        self.idf = {gram: 1 + math.log((1 + len(texts)) / (1 + rows)) for gram, rows in present.items()}
        #: Of a trigram that no row has: it counts in the length of the input's vector alone.
        self.unknown = 1 + math.log(1 + len(texts))
        values: list[float] = []
        columns: list[int] = []
        ends = [0]
        for counts in counted:
            weights = self._weights(counts)
            values += weights.values()
            columns += [self.columns[gram] for gram in weights]
            ends.append(len(values))
        shape = (len(texts), max(1, len(self.columns)))
        self.rows = scipy.sparse.csr_array((values, columns, ends), shape=shape, dtype=float)

    def _weights(self, counts: Mapping[str, int]) -> dict[str, float]:
        weights = {gram: (1 + math.log(n)) * self.idf.get(gram, self.unknown) for gram, n in counts.items()}
        length = math.sqrt(sum(w * w for w in weights.values()))
        return {gram: weight / length for gram, weight in weights.items()}

    def similarity(self, text: str) -> Vector:
        """Cosine with every row, in [0, 1]."""
        vector = np.zeros(self.rows.shape[1])
        for gram, weight in self._weights(trigrams(text)).items():
            if gram in self.columns:
                vector[self.columns[gram]] = weight
        made: Vector = np.asarray(self.rows @ vector)
        return made


@lru_cache(maxsize=8)
def _indexes(texts: tuple[tuple[str, ...], ...]) -> list[_FieldIndex]:
    """One for each of the `FIELDS`. Kept by the pool's texts: copies of a judge, and its predictors, share them."""
    return [_FieldIndex([row[place] for row in texts]) for place in range(len(FIELDS))]
