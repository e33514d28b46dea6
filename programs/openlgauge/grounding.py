"""Find the words in a text that a model claims to have copied from it.

Models copy with small changes: other quotes and dashes, another case, a typo, a dropped word, an ellipsis. The words
are looked for as they are, then without what is only typography, then approximately; what is not found is said to be
ungrounded and never placed by guess. Offsets are code points of the given text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice, product
from typing import Literal

from rapidfuzz import fuzz

from judgesmith.programs.openlgauge.quotes import QUOTED
from judgesmith.programs.openlgauge.reading import FoundError
from judgesmith.signatures.values import ErrorSpan

#: The similarity (0–100, share of common characters in order) from which changed words of 12 letters or more count as
#: found: the lowest at which 98.5 % of what is found is right (on spans of people: results/openlgauge.md).
THRESHOLD = 75.0
#: One short word is near many others ("four", "for"): with fewer letters, precision grows up to a higher threshold.
SHORT = 12
SHORT_THRESHOLD = 80.0
#: Fewer letters than this are only found as they are.
LEAST = 4
#: The farthest that an ellipsis may reach, in characters: about two sentences.
GAP = 300
_CHUNK = 64  # rapidfuzz compares this many characters in one machine word; longer words are found by their ends
_EDGES = 4  # word boundaries that are tried on both sides of a rough place
#: Characters from a rough place within which they are looked for.
_REACH = 100
_ELLIPSIS = re.compile(r"\[?(?:…|\.{3})\]?")
#: Letters of scripts that put spaces between words; Thai, Lao, Burmese, Khmer, Chinese and Japanese are cut anywhere.
_LETTER = re.compile(
    r"[^\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uff66-\uff9f\U00020000-\U0003ffff]|[\u0300-\u036f]"
)


@dataclass(frozen=True, slots=True)
class Grounded:
    """A place in a text: text[start:end].

    how: it stands there exactly ("exact"), up to typography ("normalised") or nearly ("fuzzy"). similarity: in [0,
    100], 100 unless fuzzy.
    """

    start: int
    end: int
    how: Literal["exact", "normalised", "fuzzy"]
    similarity: float = 100.0


def ground(location: str, text: str) -> list[Grounded]:
    """Return the places in `text` that `location` names, in the order of the text; none if nothing is found.

    It never raises, whatever the texts are, and takes some 10 ms for 20,000 characters.

    Examples:
        >>> [(place.start, place.end, place.how) for place in ground("the quick foxes", "Here is the quick fox.")]
        [(8, 21, 'fuzzy')]

    Args:
        location: Words, or a whole location line with quotes, an ellipsis or a comment.
        text: The text.
    """
    if not location or not text:
        return []
    bare = location.strip(" \t\r\n\"'“”„‘’«»「」`*_….")
    uncommented = re.sub(r"\([^()]*\)\W{0,3}$", "", location).strip()
    for find in (_exact, _normalised):
        for words in (location, bare, uncommented):
            if places := find(words, text):
                return places
    if (place := _spanned(location, text)) is not None:
        return [place]
    quoted = [match[match.lastindex or 0] for match in QUOTED.finditer(location)]
    places = next(
        filter(
            None, (_exact(words, text) or _normalised(words, text) for words in quoted)
        ),
        [],
    )
    if places and QUOTED.match(location.lstrip()):
        return places  # what is quoted is what is meant where the line begins with it, else if the whole is not there
    place = _nearly(bare, text) or _nearly(uncommented, text)
    return places if place is None else [place]


def ground_errors(
    errors: Iterable[FoundError], output: str, annotator: str = ""
) -> tuple[ErrorSpan, ...]:
    """Errors with their places in `output`, in the given order.

    Of several occurrences the next one behind the previous error is taken: errors are mostly told in reading order. An
    omission has no place; words that are not in the output are kept as "ungrounded".
    """
    names = (annotator,) if annotator else ()
    spans: list[ErrorSpan] = []
    near = 0
    for error in errors:
        span = ErrorSpan(
            error.location or "", error.explanation, error.severity, annotators=names
        )
        if error.location is None:
            spans.append(replace(span, text="omission", how="omission"))
        elif places := ground(error.location, output):
            place = next((place for place in places if place.start >= near), places[-1])
            start = place.start
            near = place.end
            spans.append(
                replace(
                    span, text=output[start:near], start=start, end=near, how=place.how
                )
            )
        else:
            spans.append(replace(span, how="ungrounded"))
    return tuple(spans)


@lru_cache(maxsize=16)
def fold(text: str) -> tuple[str, list[int]]:
    """Return a text without typography, and the place of each of its letters in the original.

    Case, compatibility forms (NFKD), accents, white space, punctuation and invisible characters are left out.
    """
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text):
        plain = _folded(letter)
        letters.append(plain)
        places += [place] * len(plain)
    return "".join(letters), places


@lru_cache(maxsize=4096)
def _folded(letter: str) -> str:
    plain = unicodedata.normalize(
        "NFKD", unicodedata.normalize("NFKD", letter).casefold()
    )
    # Accents and points that readers may leave out have a class of 10 or more; the vowel signs of India have none.
    return "".join(
        c
        for c in plain
        if unicodedata.category(c)[0] in "LMNS" and unicodedata.combining(c) < 10
    )


def _exact(words: str, text: str) -> list[Grounded]:
    """All places of the words as they are; whole words alone, if there are any."""
    places = [Grounded(a, b, "exact") for a, b in _occurrences(words, text)]
    return [place for place in places if _whole(text, place.start, place.end)] or places


def _normalised(words: str, text: str) -> list[Grounded]:
    """All places of the words up to typography, if they begin and end with a word of the text."""
    (wanted, _) = fold(words)
    (folded, places) = fold(text)
    spans = [
        (places[a], _end(text, places[b - 1])) for a, b in _occurrences(wanted, folded)
    ]
    return [Grounded(a, b, "normalised") for a, b in spans if _whole(text, a, b)]


def _occurrences(words: str, text: str) -> Iterator[tuple[int, int]]:
    """Without overlaps."""
    place = text.find(words) if words else -1
    while place >= 0:
        yield place, place + len(words)
        place = text.find(words, place + len(words))


def _end(text: str, last: int) -> int:
    """Behind the letter at `last` and its marks."""
    last += 1
    while (
        last < len(text)
        and text[last] >= "\u0300"
        and unicodedata.category(text[last])[0] == "M"
    ):
        last += 1
    return last


def _whole(text: str, start: int, end: int) -> bool:
    """Return True if a span begins and ends with a word: "Art" is not in "party"."""
    return _is_edge(text, start) and _is_edge(text, end)


def _is_edge(text: str, place: int) -> bool:
    return not (
        0 < place < len(text)
        and _LETTER.match(text[place - 1])
        and _LETTER.match(text[place])
    )


def _spanned(location: str, text: str) -> Grounded | None:
    """From the words before an ellipsis to those behind it, where these follow closely."""
    parts = [part.strip(" \"'“”") for part in _ELLIPSIS.split(location)]
    heads, tails = (
        _exact(words, text) or _normalised(words, text)
        for words in (parts[0], parts[-1])
    )
    pairs = [
        (a, b)
        for a in heads[:50]
        for b in tails[:50]
        if a.end <= b.start <= a.end + GAP
    ]
    if not pairs:
        return None
    first, last = min(pairs, key=lambda pair: pair[1].start - pair[0].end)
    return Grounded(first.start, last.end, "normalised")


def _nearly(words: str, text: str) -> Grounded | None:
    """The most similar stretch of whole words, if it is similar enough."""
    (wanted, _) = fold(words)
    (folded, places) = fold(text)
    if not LEAST <= len(wanted) <= 2 * len(folded):
        return None
    least = max(THRESHOLD, SHORT_THRESHOLD) if len(wanted) < SHORT else THRESHOLD
    # A window has the length of its words, so its score may be lower than that of the words themselves.
    cutoff = least - 15.0
    head = fuzz.partial_ratio_alignment(
        wanted[: 2 * _CHUNK], folded, score_cutoff=cutoff
    )
    tail = fuzz.partial_ratio_alignment(
        wanted[-2 * _CHUNK :], folded, score_cutoff=cutoff
    )
    if head is None or tail is None:
        return None
    size = len(folded)
    starts = _nearest(head.dest_start, size, lambda at: _is_edge(text, places[at]))
    lasts = _nearest(
        tail.dest_end - 1, size, lambda at: _is_edge(text, _end(text, places[at]))
    )
    best = 0.0, 0, 0
    for first, last in product(starts, lasts):
        if first <= last:
            ratio = fuzz.ratio(wanted, folded[first : last + 1])
            best = max(best, (ratio, first, last + 1))
    similarity, start, end = best
    if similarity < least:
        return None
    return Grounded(places[start], _end(text, places[end - 1]), "fuzzy", similarity)


def _nearest(place: int, size: int, fits: Callable[[int], bool]) -> list[int]:
    """Return the places nearest to one, before and behind it, that fit; they are looked at from there outwards."""
    around = chain([place], *((place - far, place + far) for far in range(1, _REACH)))
    return list(
        islice(filter(fits, (at for at in around if 0 <= at < size)), 2 * _EDGES)
    )
