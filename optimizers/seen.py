"""The rows that a judge was compiled from, known again by their hashes in its artifact, which holds no text of theirs.

A row is the same where source and output are equal or nearly so, by the rule that keeps duplicates apart in splits
(`judgesmith.likeness`). A text that is not known, since a row has none, is no difference. An output that is like a
labelled one, but was written for another source, is no row of theirs: replies are often made from templates.

`provenance["seen"]` has the `row_key` of each row as it is, and `provenance["seen_texts"]` marks of duplicates: "=" and
a hash of its folded texts, "=" and one of its folded output where that has more than a few words, "~" and the low bytes
of a MinHash of its output and of its source, for nearly equal ones. Artifacts of earlier versions lack that of the
source, or have the row keys alone: nearly equal rows are then only like a labelled output.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import shake_128
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from judgesmith.datasets.duplicates import NEAR_WORDS, minhashes
from judgesmith.datasets.row import Row
from judgesmith.likeness import Folded, folded
from judgesmith.optimizers.examples import row_key

Sketches = NDArray[np.uint8]
#: Values of a MinHash that are kept, a byte of each, and how many of them nearly equal texts have in common: of texts
#: of eight words that differ in one 30 are expected and fewer than 20 come about in 1 of 500, of others hardly one.
KEPT = 48
COMMON = 20
_SKETCHES = re.compile(
    rf"~(?P<output>[0-9a-f]{{{2 * KEPT}}})(?P<source>[0-9a-f]{{{2 * KEPT}}})?"
)
#: Stands for a source of which an earlier version kept no mark.
_UNKNOWN = "ff" * KEPT


def marks(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Return the sorted marks of the rows that a provenance keeps."""
    texts: set[str] = set()
    keys = set()
    for row in rows:
        keys.add(row_key(row.source, row.output))
        output = folded(row.output)
        source = folded(row.source)
        if not output.key:
            continue
        texts.add(_hash(source.key, output.key))
        if output.telling:
            texts.add(_hash("", output.key))
        texts.add(
            f"~{_sketch(output).tobytes().hex()}{_sketch(source).tobytes().hex()}"
        )
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
        found = [m for m in map(_SKETCHES.fullmatch, sorted(marks)) if m is not None]
        self._keys = {mark for mark in marks if not mark.startswith("~")}
        self._outputs = _table([one["output"] for one in found])
        self._sources = _table([one["source"] or _UNKNOWN for one in found])

    def __bool__(self) -> bool:
        return bool(self._keys) or len(self._outputs) > 0

    def recall(self, source: str, output: str) -> Literal["row", "reply", ""]:
        """Return what is known of a row.

        Returns:
            "row" if it is one of them: source and output equal or nearly so. "reply" if its output alone is, which was
            written for another source; outputs of a few words do not count. "" for any other.
        """
        answer = folded(output)
        asked = folded(source)
        if not self or not answer.key:
            return ""
        if not self._keys.isdisjoint(
            (row_key(source, output), _hash(asked.key, answer.key))
        ):
            return "row"
        alike = self._sources[_alike(self._outputs, answer)]
        if self._of_same_source(alike, asked, answer):
            return "row"
        known = len(alike) > 0 or _hash("", answer.key) in self._keys
        return "reply" if known and answer.telling else ""

    def knows(self, source: str, output: str) -> bool:
        """Return True if the row is one of them."""
        return self.recall(source, output) == "row"

    @staticmethod
    def _of_same_source(sources: Sketches, asked: Folded, answer: Folded) -> bool:
        """Return True if a label with such an output has the same source, or if its source or this one is unknown.

        sources: of the labels whose output is like the answer.
        """
        if not len(sources):
            return False
        absent = (sources == 0).all(axis=1)
        if not asked.key:
            absent = (sources != 255).any(axis=1)
        return bool(((absent & answer.telling) | _alike(sources, asked)).any())


def _hash(source: str, output: str) -> str:
    return f"={row_key(source, output)}"


def _table(sketches: list[str]) -> Sketches:
    """Return sketches in hexadecimal digits as an array, shape (sketches, KEPT)."""
    joined = bytes.fromhex("".join(sketches))
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, KEPT)


def _alike(sketches: Sketches, text: Folded) -> NDArray[np.bool_]:
    """Return a mask of the sketches that are of texts equal or nearly equal to this one."""
    if not len(sketches):
        return np.zeros(0, dtype=np.bool_)
    alike: NDArray[np.bool_] = (sketches == _sketch(text)).sum(axis=1) >= COMMON
    return alike


def _sketch(text: Folded) -> Sketches:
    """Return the sketch of a text; of one that is too short to be nearly equal, a hash that only its equals share."""
    if not text.key:
        return np.zeros(KEPT, dtype=np.uint8)
    if len(text.words) < NEAR_WORDS:
        digest = shake_128(text.key.encode("utf-8", "surrogatepass")).digest(KEPT)
        return np.frombuffer(digest, dtype=np.uint8)
    sketch: Sketches = (minhashes([text], KEPT)[0] & 0xFF).astype(np.uint8)
    return sketch
