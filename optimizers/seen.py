"""The rows that a judge was compiled from, known again by their hashes in its artifact, which holds no text of theirs.

`provenance["seen"]` has the `row_key` of each row as it is, and `provenance["seen_texts"]` marks of duplicates: "=" and
a hash of its folded texts, "=" and one of its folded output where that has more than a few words, "~" and the low bytes
of a MinHash of such an output, for nearly equal ones. Artifacts of earlier versions have the former only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgesmith.datasets.duplicates import NEAR_WORDS, minhashes
from judgesmith.datasets.row import Row
from judgesmith.likeness import folded
from judgesmith.optimizers.examples import row_key

#: Values of a MinHash that are kept, a byte of each, and how many of them nearly equal texts have in common: of texts
#: of eight words that differ in one 30 are expected and fewer than 20 come about in 1 of 500, of others hardly one.
KEPT, COMMON = 48, 20
_SKETCH = re.compile(rf"~[0-9a-f]{{{2 * KEPT}}}")


def marks(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Return the sorted marks of the rows that a provenance keeps."""
    texts: set[str] = set()
    keys = set()
    for row in rows:
        keys.add(row_key(row.source, row.output))
        texts.update(_folded_keys(row.source, row.output))
        if (sketch := _sketch(row.output)) is not None:
            texts.add(f"~{sketch.tobytes().hex()}")
    return {"seen": sorted(keys), "seen_texts": sorted(texts)}


class Seen:
    """The rows of one or several judges, by their provenances. Marks that cannot be read are left out."""

    def __init__(self, *provenances: Mapping[str, Any]) -> None:
        marks = set[str]()
        for provenance in provenances:
            for name in ("seen", "seen_texts"):
                several = provenance.get(name)
                if isinstance(several, list):
                    marks.update(mark for mark in several if isinstance(mark, str))
        sketches = [mark[1:] for mark in sorted(marks) if _SKETCH.fullmatch(mark)]
        self._keys = {mark for mark in marks if not mark.startswith("~")}
        self._sketches = np.frombuffer(
            bytes.fromhex("".join(sketches)), dtype=np.uint8
        ).reshape(-1, KEPT)

    def __bool__(self) -> bool:
        return bool(self._keys) or len(self._sketches) > 0

    def knows(self, source: str, output: str) -> bool:
        """Return True if the row is one of them, or its output equals one of theirs, or nearly.

        Outputs are compared if they have more than a few words.
        """
        if not self:
            return False
        if row_key(source, output) in self._keys or not self._keys.isdisjoint(
            _folded_keys(source, output)
        ):
            return True
        sketch = _sketch(output) if len(self._sketches) else None
        return sketch is not None and bool(
            ((self._sketches == sketch).sum(axis=1) >= COMMON).any()
        )


def _folded_keys(source: str, output: str) -> list[str]:
    answer = folded(output)
    texts = [(folded(source).key, answer.key)] if answer.key else []
    if answer.telling:
        texts.append(("", answer.key))
    return [f"={row_key(*text)}" for text in texts]


def _sketch(output: str) -> NDArray[np.uint8] | None:
    text = folded(output)
    if len(text.words) < NEAR_WORDS:
        return None
    sketch: NDArray[np.uint8] = (minhashes([text], KEPT)[0] & 0xFF).astype(np.uint8)
    return sketch
