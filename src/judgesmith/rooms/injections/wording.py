"""Score how likely the words of a sentence address a judge, by a linear model in all languages at once.

Its features are hashed words, beginnings of words, neighbours, and the themes that meet. `experiments/bench/detector`
has the training texts and the procedure. Everything is done for all words of a text at once, in time that grows with
its length, and each word is looked at once.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgesmith.disarming import HIDDEN

Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]

#: Weights of the model are found by this many bits of a feature's hash.
BITS = 17
#: Letters of a word that count, and of the beginning that stands for its forms.
LETTERS = 12
STEM = 5
#: The longest run of words that is judged by itself, and how far the next one begins behind it in a longer sentence.
WINDOW = 32
STEP = 16
#: How far apart two words may stand that are looked at together.
APART = 5
#: Words that are hashed at once, which bounds the memory.
AT_ONCE = 1 << 14
_GAP, _WORD, _SIGN, _MARK, _STOP, _DROPPED = range(1, 7)
_STOPS = frozenset(".!?\n。؟।")
_MARKS = frozenset(':;{}<>="*#|/%-…')
_ALIKE = str.maketrans("‹〈《⟨❮›〉》⟩❯∕⁄╱“”„«»「」『』–—", '<<<<<>>>>>///"""""""""--')
#: Letters and digits that pass for Latin letters, in a word that has others of these.
_LATIN = np.arange(0x530, dtype=np.uint32)
for _sign, _letter in zip(
    "аеорсухіјѕһԁԛѡвкмнтгοαερικνυτ013457",
    "aeopcyxijshdqwbkmhtroaepiknutoieast",
    strict=True,
):
    _LATIN[ord(_sign)] = ord(_letter)
#: Odd numbers by which hashes are spread, one for each letter of a word and one for each feature.
_SPREAD = np.random.default_rng(0).integers(
    1 << 62, 1 << 63, 64, dtype=np.uint64
) | np.uint64(1)
#: What stands for every number.
_NUMBER = _SPREAD[62]
#: Those of the beginning of a word, and of what is behind it.
_PARTS = np.zeros((LETTERS, 2), np.uint64)
_PARTS[:STEM, 0], _PARTS[STEM:, 1] = _SPREAD[:STEM], _SPREAD[STEM:LETTERS]
_PLAIN = np.zeros(0x110000, np.uint32)
_KIND = np.zeros(0x110000, np.uint8)


class Folded(NamedTuple):
    """A text without case, accents, compatibility forms and invisible characters, a letter for a letter."""

    text: str
    letters: NDArray[np.uint32]
    kinds: NDArray[np.uint8]
    places: Ints
    """Where each letter stands in the text as it was."""


class Words(NamedTuple):
    """The words of a text.

    Each has a hash, one of its beginning, its start and end in the folded text, and a flag if it ends a sentence. Signs
    of scripts without spaces, and marks such as `:`, are words of their own.
    """

    hashes: Hashes
    stems: Hashes
    starts: Ints
    ends: Ints
    stops: NDArray[np.bool_]
    longest: int
    """Letters of the longest."""


class Runs(NamedTuple):
    """Runs of words to judge, each from one word to before another, with their log-odds of addressing a judge."""

    begins: Ints
    ends: Ints
    odds: NDArray[np.float64]
    alone: int
    """How many of them are of one sentence; the others are neighbours together."""


class Themes(NamedTuple):
    """Which words belong to which themes: beginnings of words, in order, and a bit a theme."""

    stems: Hashes
    bits: Ints

    def of(self, stems: Hashes) -> Ints:
        """Return the themes of each word."""
        places = np.minimum(np.searchsorted(self.stems, stems), len(self.stems) - 1)
        return np.where(self.stems[places] == stems, self.bits[places], 0)


class Model(NamedTuple):
    """The trained weights with their scale and bias."""

    weights: NDArray[np.int8]
    scale: float
    bias: float
    together: NDArray[np.int8]
    """By the themes that meet in a run."""
    meeting: float
    """The scale of `together`."""
    themes: Themes


@cache
def model() -> Model:
    """Return the trained weights, in the order of `packed` in `experiments/bench/train_detector.py`."""
    data = files(__package__).joinpath("wording.bin").read_bytes()
    scale, bias, meeting = np.frombuffer(data, "<f4", 3).tolist()
    weights, together = np.frombuffer(data, np.int8, 2 << BITS, 12).reshape(2, -1)
    stems, bits = np.frombuffer(data, "<u8", offset=12 + (2 << BITS)).reshape(2, -1)
    themes = Themes(stems, bits.astype(np.int64))
    return Model(weights, scale, bias, together, meeting, themes)


def _learn(letters: NDArray[np.uint32]) -> None:
    """Note what characters that were not met before are folded to, and their kind."""
    for code in np.unique(letters[_KIND[letters] == 0]).tolist():
        plain, kind = _looked_up(chr(code))
        _PLAIN[code] = ord(plain)
        _KIND[code] = kind


def _looked_up(character: str) -> tuple[str, int]:
    if (
        HIDDEN.match(character)
        or unicodedata.category(character) == "Cn"
        or "\u0300" <= character < "\u0370"
    ):
        return character, _DROPPED
    if character == "…":  # stands for what was left out, and joins no sentences
        return character, _MARK
    plain = (
        unicodedata.normalize("NFKC", character).translate(_ALIKE).casefold()[:1]
        or character
    )
    base = unicodedata.normalize("NFD", plain)[0]
    plain = base if base < "\u0530" else plain  # Latin, Greek and Cyrillic letters
    if plain in _STOPS or plain in "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029":
        return plain if plain in _STOPS else "\n", _STOP
    if plain in _MARKS:
        return plain, _MARK
    if _is_sign(ord(plain)):
        return plain, _SIGN
    if plain.isalnum() or unicodedata.category(plain)[0] == "M":
        return plain, _WORD
    return " " if plain.isspace() else plain, _GAP


def _is_sign(code: int) -> bool:
    """Return True for a letter of a script that puts no spaces between words."""
    thai = 0x0E00 <= code < 0x1100
    kana = 0x3040 <= code < 0x3100
    han = 0x3400 <= code < 0xA000
    return thai or kana or han or 0x1780 <= code < 0x1800 or 0x20000 <= code < 0x40000


def fold(text: str) -> Folded:
    """Return a text as it is looked at; its length is that of the visible text."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    kinds = _KIND[codes]
    if not kinds.all():
        _learn(codes)
        kinds = _KIND[codes]
    letters = _PLAIN[codes]
    places = np.arange(len(codes))
    seen = kinds != _DROPPED
    if not seen.all():
        letters = letters[seen]
        kinds = kinds[seen]
        places = places[seen]
    return Folded(
        letters.tobytes().decode("utf-32-le", "surrogatepass"), letters, kinds, places
    )


def words(folded: Folded) -> Words:
    """Return the words of a text, in order."""
    folded = folded if folded.text else fold(" ")
    letters = folded.letters
    kinds = folded.kinds
    word = kinds == _WORD
    alone = (kinds > _WORD) & (kinds <= _STOP)
    first = word.copy()
    last = word.copy()
    first[1:] &= ~word[:-1]
    last[:-1] &= ~word[1:]
    starts = np.flatnonzero(first | alone)
    ends = np.flatnonzero(last | alone) + 1
    stops = kinds[starts] == _STOP
    repeated = kinds[starts] >= _MARK  # a row of dashes is one
    repeated[1:] &= letters[starts[1:]] == letters[starts[:-1]]
    repeated[1:] |= stops[1:] & stops[:-1]
    repeated[:1] = False
    digits = (letters >= ord("0")) & (letters <= ord("9"))
    numbers = bool(digits.any())
    if numbers:
        repeated |= _points(letters, digits, starts)
    if repeated.any():
        starts = starts[~repeated]
        ends = ends[~repeated]
        stops = stops[~repeated]
    sizes = ends - starts
    if numbers or letters.max() > ord("z"):
        letters = _undisguised(letters, digits, starts, ends)
    parts = [
        _hashed(letters, starts[i : i + AT_ONCE], ends[i : i + AT_ONCE])
        for i in range(0, max(1, len(starts)), AT_ONCE)
    ]
    if len(parts) == 1:
        hashes, stems = parts[0]
    else:
        hashes, stems = map(np.concatenate, zip(*parts, strict=True))
    if numbers:  # 10 and 37 are one word: a right answer is no sign for being a mark
        number = _counted(digits, starts, ends) == sizes
        hashes = np.where(number, _NUMBER, hashes)
        stems = np.where(number, _NUMBER, stems)
    stop = _SPREAD[63]
    return Words(
        np.where(stops, stop, hashes),
        np.where(stops, stop, stems),
        starts,
        ends,
        stops,
        int(sizes.max(initial=0)),
    )


def counted(text: str) -> int:
    """Return how many words a text has, without stops and marks."""
    folded = fold(text or " ")
    kinds = folded.kinds[words(folded).starts]
    return int(((kinds == _WORD) | (kinds == _SIGN)).sum())


def size(folded: Folded, found: Words, begin: int, end: int) -> float:
    """Return how many words a run has beside numbers, stops and marks; a sign of a script is a third of one."""
    kinds = folded.kinds[found.starts[begin:end]]
    named = found.hashes[begin:end] != _NUMBER
    words, signs = ((kinds == kind) & named for kind in (_WORD, _SIGN))
    return float(words.sum() + signs.sum() / 3)


def _counted(which: NDArray[np.bool_], starts: Ints, ends: Ints) -> Ints:
    """Return how many letters of each word are of these."""
    sums = np.concatenate(([0], np.cumsum(which)))
    counts: Ints = sums[ends] - sums[starts]
    return counts


def _points(
    letters: NDArray[np.uint32], digits: NDArray[np.bool_], starts: Ints
) -> NDArray[np.bool_]:
    """Return a mask of the words that are the point of a number such as 4.5, which ends no sentence."""
    point = letters[starts] == ord(".")
    before = np.maximum(starts - 1, 0)
    after = np.minimum(starts + 1, len(letters) - 1)
    inside: NDArray[np.bool_] = point & digits[before] & digits[after]
    return inside


def _undisguised(
    letters: NDArray[np.uint32], digits: NDArray[np.bool_], starts: Ints, ends: Ints
) -> NDArray[np.uint32]:
    """With Latin letters for what passes for them inside words that mix scripts, or letters and digits."""
    latin = (letters >= ord("a")) & (letters <= ord("z"))
    other = digits | ((letters >= 0x3B1) & (letters < 0x530))
    mixed = (_counted(latin, starts, ends) > 1) & (_counted(other, starts, ends) > 0)
    if not mixed.any():
        return letters
    edges = np.zeros(len(letters) + 1, np.int8)
    edges[starts[mixed]] += 1
    edges[ends[mixed]] -= 1
    small = np.minimum(letters, len(_LATIN) - 1)
    return np.where(
        (np.cumsum(edges[:-1]) > 0) & (small == letters), _LATIN[small], letters
    )


def _hashed(
    letters: NDArray[np.uint32], starts: Ints, ends: Ints
) -> tuple[Hashes, Hashes]:
    sizes = ends - starts
    offsets = np.arange(min(LETTERS, int(sizes.max(initial=1))))
    block = letters.take(starts[:, None] + offsets, mode="clip").astype(np.uint64)
    block *= offsets < sizes[:, None]
    parts = block @ _PARTS[: len(offsets)]
    return parts.sum(1) + sizes.astype(np.uint64) * _SPREAD[LETTERS], parts[:, 0]


def features(
    hashes: Hashes, stems: Hashes, stops: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Return the places of each word's features among the weights.

    They are the word, its beginning, both with the word before, and its beginning with those of a few words before,
    whatever stands between the two. A sentence begins with its stop.
    """
    places = np.arange(len(hashes))
    latest = np.maximum.accumulate(np.where(stops, places, -1))
    latest[1:] = latest[:-1]  # a stop belongs to the sentence before it
    latest[:1] = -1
    a, b, c, d, e, f, g, h = _SPREAD[20:28]
    stop = _SPREAD[63:]
    hashes_before = np.concatenate((stop, hashes))
    stems_before = np.concatenate((stop, stems))
    rows = np.empty((3 + APART, len(places)), np.uint64)
    rows[0] = hashes * a
    rows[1] = stems * b
    rows[2] = hashes_before[:-1] * c + hashes * d
    rows[3] = stems_before[:-1] * e + stems * f
    distances = np.arange(2, APART + 1)[:, None]
    far = np.maximum(places - distances, latest) + 1
    rows[4:] = stems_before[far] * h + stems * g
    rows ^= rows >> np.uint64(29)
    rows *= _SPREAD[30]
    return (rows >> np.uint64(64 - BITS)).astype(np.intp)


def bounds(stops: NDArray[np.bool_]) -> tuple[Ints, Ints, int]:
    """Return the beginnings and ends of the judged runs of words, and how many of them are no neighbours.

    Runs are sentences, neighbours that are short together, and stretches of long sentences, which nothing before or
    after them can thin out.
    """
    at = np.flatnonzero(stops)
    begins = np.concatenate(([0], at + 1))
    ends = np.concatenate((at, [len(stops)]))
    full = ends > begins
    begins = begins[full]
    ends = ends[full]
    sizes = ends - begins
    near = np.flatnonzero(ends[1:] - begins[:-1] <= WINDOW)
    if sizes.max(initial=0) <= WINDOW:
        return (
            np.concatenate((begins, begins[near])),
            np.concatenate((ends, ends[near + 1])),
            len(begins),
        )
    counts = np.maximum(1, -((STEP - sizes) // STEP))
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    parts = np.repeat(begins, counts) + STEP * within
    part_ends = np.minimum(parts + WINDOW, np.repeat(ends, counts))
    return (
        np.concatenate((parts, begins[near])),
        np.concatenate((part_ends, ends[near + 1])),
        len(parts),
    )


def _weights(found: Words, start: int, end: int) -> Ints:
    """Return the contribution of each of these words, with those before them in sight."""
    first = max(0, start - APART)
    part = features(
        found.hashes[first:end], found.stems[first:end], found.stops[first:end]
    )
    each: Ints = model().weights[part].sum(0, dtype=np.int64)
    each[found.stops[first:end]] = 0
    return each[start - first :]


def meeting(bits: Ints, begins: Ints, ends: Ints) -> Ints:
    """Return the themes of each run, where those of each word are known."""
    edges = np.stack((begins, ends), 1).ravel()
    return np.bitwise_or.reduceat(np.append(bits, 0), edges)[::2]


def runs(found: Words) -> Runs:
    """Return the log-odds of each run of words."""
    trained = model()
    begins, ends, alone = bounds(found.stops)
    count = len(found.stops)
    parts = [
        _weights(found, start, min(start + AT_ONCE, count))
        for start in range(0, count, AT_ONCE)
    ]
    sums = np.cumsum(np.concatenate(([0], *parts)))
    odds = trained.scale * (sums[ends] - sums[begins]) / np.sqrt(ends - begins + 3.0)
    met = meeting(trained.themes.of(found.stems), begins, ends)
    odds += trained.meeting * trained.together[met]
    return Runs(begins, ends, trained.bias + odds, alone)
