"""Where in a text the words stand that a model claims to have copied from it.

Models copy with small changes: other quotes and dashes, another case, a typo, a dropped word, an ellipsis. The words
are looked for as they are, then without what is only typography, then approximately; what is not found is said to be
ungrounded and never placed by guess. Offsets are code points of the given text.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from rapidfuzz import fuzz

from ...signatures.values import ErrorSpan
from .places import ELLIPSIS, QUOTED, in_quotes, read_places

if TYPE_CHECKING:
    from .reading import FoundError

#: The similarity (0–100, share of common characters in order) from which changed words of 12 letters or more count as
#: found: the lowest at which 98.5 % of what is found is right (on spans of people: results/openlgauge.md).
THRESHOLD = 75.0
#: One short word is near many others ("four", "for"): with fewer letters, precision grows up to a higher threshold.
SHORT, SHORT_THRESHOLD = 12, 80.0
#: Fewer letters than this are only found as they are.
LEAST = 4
#: The farthest that an ellipsis may reach, in characters: about two sentences.
GAP = 300
_CHUNK = 64  # rapidfuzz compares up to 64 characters in one machine word; its search is slow for very long words
_EDGES = 4  # word boundaries that are tried on both sides of a rough place


@dataclass(frozen=True, slots=True)
class Grounded:
    """A place in a text: text[start:end]. how: it stands there as given ("exact"), up to typography ("normalised") or
    nearly ("fuzzy"). similarity: in [0, 100], 100 unless fuzzy."""

    start: int
    end: int
    how: Literal["exact", "normalised", "fuzzy"]
    similarity: float = 100.0


def ground(location: str, text: str, *, near: int | None = None, threshold: float = THRESHOLD) -> list[Grounded]:
    """The places in `text` that `location` names: the most likely one first, then its other occurrences in order.

    location: words, or a whole location line with quotes, an ellipsis or a comment. near: where the previous error
    ended; of several occurrences the next one from there is taken (the last, if none follows), and the first without
    it. threshold: least similarity (0–100) of changed words. Empty where nothing is found. Never raises, whatever the
    texts are. Takes some 10 ms for 20,000 characters.

    >>> [(place.start, place.end, place.how) for place in ground("the quick foxes", "Here is the quick fox.")]
    [(8, 21, 'fuzzy')]
    """
    if not location or not text:
        return []
    found = _exact(location, text) or _as_it_is(location.strip(), text)
    if not found:
        for words, _ in read_places(location, text):
            if words is not None:
                found = _find(words, text, threshold)
            if found:
                break
    return _ordered(found, near)


def ground_errors(errors: Iterable[FoundError], output: str, annotator: str = "") -> tuple[ErrorSpan, ...]:
    """Errors with their places in `output`, in the given order. An omission has no place; words that are not in the
    output are kept as "ungrounded"."""
    names = (annotator,) if annotator else ()
    spans: list[ErrorSpan] = []
    near: int | None = None
    for error in errors:
        made = ErrorSpan(error.location or "", error.explanation, error.severity, annotators=names)
        if error.location is None:
            spans.append(replace(made, text=error.comment or "omission", how="omission"))
            continue
        places = ground(error.location, output, near=near)
        if not places:
            spans.append(replace(made, how="ungrounded"))
            continue
        place = places[0]
        near = place.end
        shown = output[place.start : place.end]
        spans.append(replace(made, text=shown, start=place.start, end=place.end, how=place.how))
    return tuple(spans)


# --- as it is, and up to typography ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Folded:
    """A text without typography; character i of it comes from code points starts[i]..ends[i] of the original."""

    text: str
    starts: array[int]
    ends: array[int]


_SAME = {ord(c): "'" for c in "\"'`´“”„‟‘’‚‛«»‹›「」『』＂＇′″"} | {ord(c): "-" for c in "‐‑‒–—―−﹣－~〜～"}


@lru_cache(maxsize=16)
def fold(text: str) -> Folded:
    """Case, compatibility forms (NFKD), quotes, dashes, runs of white space and invisible characters made equal.

    A character with its combining marks is one unit, so that no span ends between a letter and its accent.
    """
    letters: list[str] = []
    starts, ends = array("L"), array("L")
    place, size = 0, len(text)
    while place < size:
        first = text[place]
        after = place + 1
        while after < size and text[after] >= "\u0300" and unicodedata.category(text[after])[0] == "M":
            after += 1
        if first.isspace():
            if letters and letters[-1] == " ":
                ends[-1] = after
                place = after
                continue
            plain = " "
        elif after == place + 1 and first < "\x7f":
            plain = "'" if first in "\"`'" else "-" if first == "~" else first.lower()
        elif after == place + 1 and unicodedata.category(first) == "Cf":
            plain = ""
        else:
            unit = text[place:after].translate(_SAME).replace("\ufe0e", "").replace("\ufe0f", "")
            unit = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", unit).casefold())
            # A spacing accent is a space with a mark: a space of its own would end a word here.
            plain = unit.translate(_SAME).replace(" ", "")
        letters.append(plain)
        if len(plain) == 1:
            starts.append(place)
            ends.append(after)
        elif plain:
            starts.extend([place] * len(plain))
            ends.extend([after] * len(plain))
        else:
            letters.pop()
        place = after
    return Folded("".join(letters), starts, ends)


@lru_cache(maxsize=16)
def _squeezed(text: str) -> Folded:
    """The folded text without white space and accents: tokenised and plain forms ("113 - 107", "do n't") become equal,
    and so do texts with and without Hebrew or Arabic points."""
    folded = fold(text)
    kept = [i for i, c in enumerate(folded.text) if c != " " and not (c >= "\u0300" and _is_accent(c))]
    return Folded(
        "".join(folded.text[i] for i in kept),
        array("L", (folded.starts[i] for i in kept)),
        array("L", (folded.ends[i] for i in kept)),
    )


def _is_accent(letter: str) -> bool:
    """Accents and points that readers may leave out; not the vowel signs of India."""
    combining = unicodedata.combining(letter)
    return 10 <= combining <= 36 or combining >= 200


def _occurrences(words: str, text: str) -> list[tuple[int, int]]:
    """All places of `words`, without overlaps; only those that are whole words, if any is."""
    if not words:
        return []
    result: list[tuple[int, int]] = []
    place = text.find(words)
    while place >= 0:
        result.append((place, place + len(words)))
        place = text.find(words, place + len(words))
    return [(a, b) for a, b in result if _is_edge(text, a) and _is_edge(text, b)] or result


def _exact(words: str, text: str) -> list[Grounded]:
    return [Grounded(a, b, "exact") for a, b in _occurrences(words, text)]


def _normalised(words: str, text: str) -> list[Grounded]:
    wanted, folded = fold(words).text.strip(), fold(text)
    found = _whole_words(wanted, folded, text)
    if not found and len(wanted) >= LEAST:
        found = _whole_words(_squeezed(words).text, _squeezed(text), text)
    return found


def _as_it_is(words: str, text: str) -> list[Grounded]:
    return _exact(words, text) or _normalised(words, text)


def _whole_words(wanted: str, folded: Folded, text: str) -> list[Grounded]:
    """Places that begin and end with a word of the text: "Art" is not in "party"."""
    places = [(folded.starts[a], folded.ends[b - 1]) for a, b in _occurrences(wanted, folded.text)]
    return [Grounded(a, b, "normalised") for a, b in places if _is_edge(text, a) and _is_edge(text, b)]


def _is_edge(text: str, place: int) -> bool:
    """Whether a word may begin or end before code point `place`."""
    if place <= 0 or place >= len(text):
        return True
    return not (_in_word(text[place - 1]) and _in_word(text[place]))


def _in_word(letter: str) -> bool:
    """Letters, digits and marks of scripts that put spaces between words (others may be cut anywhere)."""
    if letter < "\x80":
        return letter.isalnum()
    if "\u0e00" <= letter <= "\u0eff" or "\u1000" <= letter <= "\u109f" or "\u1780" <= letter <= "\u17ff":
        return False  # Thai, Lao, Burmese, Khmer
    if "\u2e80" <= letter <= "\u9fff" or "\U00020000" <= letter <= "\U0003ffff" or "\uff66" <= letter <= "\uff9f":
        return False  # Chinese and Japanese
    return unicodedata.category(letter)[0] in "LNM"


# --- what models add: quotes, punctuation, ellipses ------------------------------------------------------------------


def _find(words: str, text: str, threshold: float) -> list[Grounded]:
    """As _as_it_is, with what models put around words and with approximate matches."""
    found = _as_it_is(words, text)
    trimmed = words.strip(" \t\n\"'`´“”„‘’«»‹›「」『』*_()[]{}<>.,;:!?…、。，；：！？-–—")
    unquoted = words.strip(" \t\n\"'`´“”„‘’«»‹›「」『』*_")
    for less in (unquoted, trimmed if len(trimmed) >= LEAST else ""):
        if not found and less and less != words:
            found = _as_it_is(less, text)
    if found:
        return found
    parts = [part for part in (p.strip(" \t\n\"'“”„‘’«»,;") for p in ELLIPSIS.split(words)) if part]
    if len(parts) > 1:
        return _spanned(parts, text, threshold)
    if (place := _fuzzy(trimmed, text, threshold)) is not None:
        return [place]
    # He said "no way" about it: words around a quotation, which is what is meant if the whole is not there.
    for match in QUOTED.finditer(words):
        quoted = in_quotes(match)
        if len(quoted) >= LEAST and (found := _as_it_is(quoted, text)):
            return found
    return []


def _spanned(parts: list[str], text: str, threshold: float) -> list[Grounded]:
    """From the first to the last part of words with ellipses, if they follow each other closely; otherwise the
    longest part alone."""

    def part(words: str) -> list[Grounded]:
        fuzzy = _fuzzy(words, text, threshold) if not (places := _as_it_is(words, text)) else None
        return [fuzzy] if fuzzy is not None else places

    heads, tails = part(parts[0]), part(parts[-1])
    reach = GAP * (len(parts) - 1) + sum(map(len, parts[1:-1]))
    spans: list[Grounded] = []
    index = 0
    for place, head in enumerate(heads):
        while index < len(tails) and tails[index].start < head.end:
            index += 1
        if index == len(tails):
            break
        tail = tails[index]
        if place + 1 < len(heads) and heads[place + 1].end <= tail.start:
            continue  # the next head is closer to this tail
        if tail.start - head.end <= reach:
            how: Literal["normalised", "fuzzy"] = "fuzzy" if "fuzzy" in (head.how, tail.how) else "normalised"
            spans.append(Grounded(head.start, tail.end, how, min(head.similarity, tail.similarity)))
    return spans or next(filter(None, map(part, sorted(parts, key=len, reverse=True)[:3])), [])


# --- nearly ----------------------------------------------------------------------------------------------------------


def _fuzzy(words: str, text: str, threshold: float) -> Grounded | None:
    """The most similar stretch of whole words, if it is similar enough."""
    wanted, folded = fold(words).text.strip(), fold(text)
    if len(wanted) < LEAST or not folded.text or len(wanted) > 2 * len(folded.text):
        return None
    least = max(threshold, SHORT_THRESHOLD) if len(wanted) < SHORT else threshold
    rough = _rough(wanted, folded.text, least)
    if rough is None:
        return None
    starts = _edges(folded.text, rough[0], begin=True)
    ends = _edges(folded.text, rough[1], begin=False)
    best = (0.0, 0, 0)
    for a in starts:
        for b in ends:
            similarity = fuzz.ratio(wanted, folded.text[a:b], score_cutoff=max(least, best[0])) if a < b else 0.0
            if similarity > best[0]:
                best = (similarity, a, b)
    similarity, a, b = best
    return Grounded(folded.starts[a], folded.ends[b - 1], "fuzzy", similarity) if similarity else None


def _rough(wanted: str, text: str, least: float) -> tuple[int, int] | None:
    """About where `wanted` is most like `text`. The window has the length of `wanted`, so its score may be lower than
    that of the words themselves."""
    cutoff = max(least - 15.0, 50.0)
    if len(wanted) >= len(text):
        return 0, len(text)
    if len(wanted) <= 2 * _CHUNK:
        found = fuzz.partial_ratio_alignment(wanted, text, score_cutoff=cutoff)
        return (found.dest_start, found.dest_end) if found else None
    # Long words are searched by pieces, which must agree on where the whole begins.
    last = len(wanted) - _CHUNK
    places: list[tuple[int, int]] = []
    for index in range(8):
        at = index * last // 7
        found = fuzz.partial_ratio_alignment(wanted[at : at + _CHUNK], text, score_cutoff=cutoff)
        if found:
            places.append((found.dest_start - at, at))
    if not places:
        return None
    begin = sorted(offset for offset, _ in places)[len(places) // 2]
    slack = len(wanted) // 4
    agreed = sorted((at, offset) for offset, at in places if abs(offset - begin) <= slack)
    start, end = agreed[0][1], agreed[-1][1] + len(wanted)
    return max(0, min(start, len(text))), max(0, min(end, len(text)))


def _edges(text: str, place: int, *, begin: bool) -> list[int]:
    """Word boundaries around a place of a folded text, the nearest few on both sides."""

    def fits(at: int) -> bool:
        if begin:
            return at < len(text) and text[at] != " " and _is_edge(text, at)
        return at > 0 and text[at - 1] != " " and _is_edge(text, at)

    result: list[int] = []
    for steps in (range(place, max(-1, place - 200), -1), range(place + 1, min(len(text) + 1, place + 200))):
        side = 0
        for at in steps:
            if fits(at):
                result.append(at)
                side += 1
                if side == _EDGES:
                    break
    return sorted(result)


# --- which of several occurrences -------------------------------------------------------------------------------------


def _ordered(found: list[Grounded], near: int | None) -> list[Grounded]:
    """The most likely occurrence first: the next one behind what was said before, or the first."""
    if len(found) < 2:
        return found
    # Errors are mostly told in reading order: see experiments/results/openlgauge.md.
    chosen = found[0] if near is None else next((g for g in found if g.start >= near), found[-1])
    return [chosen, *(g for g in found if g is not chosen)]
