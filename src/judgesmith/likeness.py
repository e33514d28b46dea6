"""When two texts count as the same: the one rule by which splits, prompts and marks of seen rows keep duplicates apart.

Equal: the same words after folding Unicode (compatibility forms, combining marks, invisible characters), case, white
space and punctuation. Nearly equal: `NEAR` of the words the same and in the same order (Levenshtein over words), so
that one word of eight may differ. The threshold comes from the benchmark sets. Sources and outputs that were written
freely have hardly a pair of different documents between 0.7 and 1, so that any value there serves them. Sentences made
from templates differ in one slot: at 0.85 nine times as many of SFHOT's outputs count as the same as at 0.875.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from zlib import crc32

from rapidfuzz.distance import Levenshtein

from judgesmith.wording import SPACELESS

#: The least share of words that nearly equal texts have in common, in [0, 1].
NEAR = 0.875
#: An output of no more words than this says nothing of where it comes from: "Yes", "I don't know".
FEW_WORDS = 3
#: Of longer texts this many words at the beginning are compared, and the lengths; equality is of the whole.
COMPARED = 4000
#: Texts of up to this many words are looked through for runs of words that both have, before they are compared.
SEARCHED = 200

_WORD = re.compile(rf"[{SPACELESS}]|(?:(?![{SPACELESS}])[^\W_])+")
_ASCII_WORD = re.compile("[a-z0-9]+")
_APOSTROPHES = "'\u2018\u2019\u02bc\u02b9"


class _Visible(dict[int, int | None]):
    """Table for `str.translate` that drops invisible characters (marks, format, control) and apostrophes."""

    def __missing__(self, code: int) -> int | None:
        char = chr(code)
        dropped = char in _APOSTROPHES or (
            unicodedata.category(char) in ("Mn", "Me", "Cf", "Cc")
            and not char.isspace()
        )
        self[code] = None if dropped else code
        return self[code]


_VISIBLE = _Visible()


@dataclass(frozen=True)
class Folded:
    """A text as the rule sees it. key: its words with a space between. count: how many these are."""

    key: str
    count: int

    @cached_property
    def words(self) -> str:
        """Its first words, one character a word; none of an empty text."""
        words = self.key.split(" ", COMPARED)[:COMPARED] if self.key else []
        return "".join(map(_letter, words))

    @cached_property
    def runs(self) -> list[str]:
        """All of its words, in runs of which a nearly equal text has at least one unchanged.

        The longest of those has 1 / `NEAR` times as many words, and each different word changes one run.
        """
        words = self.key.split(" ")
        parts = int((1 - NEAR) / NEAR * len(words)) + 1
        ends = [len(words) * part // parts for part in range(parts + 1)]
        return [" ".join(words[b:e]) for b, e in itertools.pairwise(ends)]

    @property
    def telling(self) -> bool:
        """True if it has more than a few words."""
        return self.count > FEW_WORDS


#: Characters that are folded in one call, which no other thread can interrupt.
PIECE = 1 << 15


def _pieces(text: str) -> Iterator[str]:
    """A text in parts that end at its spaces."""
    start = 0
    while len(text) - start > PIECE:
        end = text.find(" ", start + PIECE)
        if end < 0:
            break
        yield text[start:end]
        start = end
    yield text[start:]


def _plain(text: str) -> str:
    plain = text.translate(_VISIBLE)
    if not plain.isascii():
        # Marks go first: sorting a long run of them would take normalization quadratic time.
        plain = unicodedata.normalize("NFKD", plain).translate(_VISIBLE)
    return plain.casefold()


def _words(text: str) -> list[str]:
    plain = _plain(text)
    return (_ASCII_WORD if plain.isascii() else _WORD).findall(plain)


def _words_of_many(text: str) -> list[str]:
    return [word for piece in _pieces(text) for word in _words(piece)]


@lru_cache(maxsize=2048)
def folded(text: str) -> Folded:
    """Fold a text. One without any word (of emoji, say) counts as one word, an empty one as none. Linear in length."""
    words = _words(text) if len(text) <= PIECE else _words_of_many(text)
    words = words or "".join(_plain(text).split()).split()
    return Folded(" ".join(words), len(words))


@lru_cache(maxsize=1 << 16)
def _letter(word: str) -> str:
    """One of 980,000 characters: two words rarely share one, and then only count as equal in a near match."""
    return chr(0x10000 + crc32(word.encode("utf-8", "surrogatepass")) % 0xF0000)


def alike(one: Folded, other: Folded) -> bool:
    """Whether two texts are equal or nearly equal; an empty one is like none."""
    if not one.key or not other.key:
        return False
    if one.key == other.key:
        return True
    if one.count < NEAR * other.count or other.count < NEAR * one.count:
        return False
    if one.count <= SEARCHED and not _shares_a_run(one, other):
        return False
    return (
        Levenshtein.normalized_similarity(one.words, other.words, score_cutoff=NEAR)
        >= NEAR
    )


def _shares_a_run(one: Folded, other: Folded) -> bool:
    # A loop, as every row asks it of every demonstration.
    key = other.key
    for run in one.runs:  # noqa: SIM110
        if run in key:
            return True
    return False


def same_output(one: str, other: str) -> bool:
    """Whether two outputs are alike and long enough for that to mean something."""
    a = folded(one)
    b = folded(other)
    return a.telling and b.telling and alike(a, b)


def same_source(one: str, other: str) -> bool:
    """Whether two sources are alike; an empty one is like none."""
    return alike(folded(one), folded(other))


def same_row(source: str, output: str, other_source: str, other_output: str) -> bool:
    """Return whether two rows repeat each other.

    They do with alike outputs of more than a few words, or with alike outputs of any length if their sources are alike
    or one has none.
    """
    a = folded(output)
    b = folded(other_output)
    if not alike(a, b):
        return False
    unknown = not (source.strip() and other_source.strip())
    return (a.telling and b.telling) or unknown or same_source(source, other_source)
