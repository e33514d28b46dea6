"""Read a row that is longer than a model's context in windows, every word of the output in one of them.

A row that fits into the context is one passage. Any other is divided by these rules, of the tokens that the instruction
and the template leave of the context (the room):

* An output of at most three quarters of the room is read at once; what it was made from has the rest.
* A longer output is read in windows that follow each other. A quarter of the room holds what it was made from (less
  where that is shorter); of the rest, one third holds the output's words before the window, as many as fit, and two
  thirds the window. The first window has no words before it, and takes their place.
* Of a source (with its context) that does not fit beside a window, those stretches are shown that share most words with
  the window, each word weighed by how few stretches have it; with equal weights the earlier one. They stand in their
  order, with a mark where others are left out. The share of the source that stood in some window is told.

Log-probabilities are those of all tokens of all windows; hidden states are the mean over all tokens, as of one passage.
Cost: at most two passes over an output's tokens, and memory for one window. What is divided are texts, at the ends of
sentences or words, so that every reader has the same windows where its tokens are the same.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from judgesmith.errors import OptionError
from judgesmith.programs.readings.passages import Passage, Piece, Text, framed, passage
from judgesmith.programs.readings.reader import Reader, TokenReading, read_all
from judgesmith.signatures.values import Passes
from judgesmith.wording import SPACELESS

_WORD = re.compile(rf"[{SPACELESS}]|[^\W{SPACELESS}]+")
#: Tokens that are kept free for what division changes at the edges, and the fewest that a window is worth.
SPARE = 32
LEAST = 64
#: Characters of the longest tokens (spaces, mostly): no text of more for each token of the context fits into it.
LONGEST_TOKEN = 32
#: Characters of a stretch at most.
STRETCH = 400
#: Stretches that a word may stand in to say where a window belongs, so that time is linear.
COMMON = 64
#: What stands for stretches that are left out.
LEFT_OUT = "\n[…]\n"


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens that a window has: for what the output was made from, for its words before the window, for the window."""

    material: int
    before: int
    target: int

    @classmethod
    def of(cls, room: int, material: int, output: int) -> Room:
        """Divide the room of a window.

        Args:
            room: Tokens beside the instruction.
            material: Tokens of the material that the output was made from.
            output: Tokens of the output.
        """
        if output <= room * 3 // 4:
            return cls(min(material, room - output), 0, output)
        source = min(material, room // 4)
        before = (room - source) // 3
        return cls(source, before, room - source - before)

    def windows(self, output: int) -> int:
        """Return about how many windows an output takes."""
        return 1 + max(
            0, math.ceil((output - self.target - self.before) / max(1, self.target))
        )


@dataclass(frozen=True, slots=True)
class Window:
    """A passage, and the character of the output at which its target begins."""

    passage: Passage
    start: int


@dataclass(frozen=True, slots=True)
class Windows:
    """The parts of a row that are read.

    source: the share of its source and context that stands in some window, from 0 to 1.
    """

    each: tuple[Window, ...]
    source: float = 1.0


def windows(text: Text, reader: Reader) -> Windows:
    """Return the passages that a row is read in.

    Raises:
        OptionError: For an empty output, and for a context that holds little more than the instruction.
    """
    whole = passage(text, reader.chat)
    context = reader.ability.context
    if not context or _holds(reader, whole):
        return Windows((Window(whole, 0),))
    frame = reader.size(
        framed(reader.chat, text.instruction, LEFT_OUT, "…", before="…").pieces
    )
    room = context - frame - SPARE
    if room < LEAST:
        raise OptionError(
            f"{reader.name} holds {context:,} tokens, of which the instruction takes {frame:,}: too little is left for "
            "the row's texts; shorten the instruction, or take a reader with a longer context"
        )
    longest = min(STRETCH, room // 8)
    source = _Stretches(text.material, longest, reader)
    output = _Stretches(text.judged, longest, reader)
    sizes = [output.size(index) for index in range(len(output.spans))]
    rooms = Room.of(room, source.total(room), sum(sizes))
    result = list[Window]()
    shown = set[int]()
    for before, first, end in _divided(sizes, rooms):
        start = output.spans[first][0]
        target = output.joined(range(first, end))
        before_it = output.joined(range(before, first))
        if not target.strip():
            continue
        chosen = source.chosen(target, rooms.material)
        shown |= chosen
        part = framed(
            reader.chat,
            text.instruction,
            source.joined(chosen),
            target,
            before=before_it,
        )
        result.append(Window(part, start))
    return Windows(tuple(result), source.share(shown))


def _holds(reader: Reader, whole: Passage) -> bool:
    """Return True if a passage fits into the context. Tokens of one that is far too long are not counted."""
    length = sum(len(piece.text) for piece in whole.pieces)
    context = reader.ability.context
    return length <= LONGEST_TOKEN * context and reader.size(whole.pieces) <= context


def _divided(sizes: Sequence[int], rooms: Room) -> Iterator[tuple[int, int, int]]:
    """Yield the windows of an output as indices of stretches.

    They are the first one before the window, its own first one, and its end. sizes: the stretches' tokens.
    """
    first = 0
    while first < len(sizes):
        before = first
        left = rooms.before
        while before and sizes[before - 1] <= left:
            before -= 1
            left -= sizes[before]
        end = first
        left = rooms.target + (0 if first else rooms.before)
        while end < len(sizes) and (end == first or sizes[end] <= left):
            left -= sizes[end]
            end += 1
        yield before, first, end
        first = end


class _Stretches:
    """A text in stretches, of which those are found that a window of the output needs."""

    def __init__(self, text: str, longest: int, reader: Reader) -> None:
        self._text = text
        self._reader = reader
        self.spans = list(stretches(text, longest))

    def size(self, index: int) -> int:
        """Tokens of a stretch, at most."""
        return self._reader.size((Piece(self._text[slice(*self.spans[index])]),))

    def total(self, enough: int) -> int:
        """Tokens of the whole text; those of its beginning where that has enough."""
        total = 0
        for index in range(len(self.spans)):
            total += self.size(index)
            if total > enough:
                break
        return total

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The stretches that a word stands in."""
        places = defaultdict[str, list[int]](list)
        for index, span in enumerate(self.spans):
            for word in _words(self._text[slice(*span)]):
                places[word].append(index)
        return places

    def chosen(self, target: str, room: int) -> set[int]:
        """The stretches that are shown beside a window: all, or those that share most with it, as many as fit."""
        count = len(self.spans)
        weights = Counter[int]()
        if self.total(room) <= room:
            return set(range(count))
        for word in sorted(_words(target)):
            stretches = self._places.get(word, ())
            if len(stretches) <= COMMON:
                weights.update(
                    dict.fromkeys(stretches, math.log(count / max(1, len(stretches))))
                )
        result = set[int]()
        room += (mark := self._reader.size((Piece(LEFT_OUT),)))
        for index in sorted(range(count), key=lambda index: (-weights[index], index)):
            room -= self.size(index) + mark
            if room < 0:
                break
            result.add(index)
        return result

    def joined(self, chosen: Iterable[int]) -> str:
        """The text of some stretches, in their order."""
        runs = list[str]()
        last = -1
        for index in sorted(chosen):
            words = self._text[slice(*self.spans[index])]
            if runs and index - 1 == last:
                runs[-1] += words
            else:
                runs.append(words)
            last = index
        return LEFT_OUT.join(runs)

    def share(self, shown: set[int]) -> float:
        """The share of the characters that stands in some stretches; 1 of an empty text."""
        if not self._text:
            return 1.0
        seen = 0
        for index in shown:
            start, end = self.spans[index]
            seen += end - start
        return seen / len(self._text)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def stretches(text: str, longest: int) -> Iterator[tuple[int, int]]:
    """Yield the places that divide a text: after a sentence, else before a space, else after `longest` characters.

    No stretch has more than `longest` characters.

    >>> [("One two. Three"[a:b]) for a, b in stretches("One two. Three", 12)]
    ['One two.', ' Three']
    """
    half = longest // 2
    form = rf"(?s).{{{half},{longest}}}(?:(?<=[.!?\n])(?=\s)|(?<=[。！？]))|.{{1,{longest}}}(?=\s|\Z)|.{{1,{longest}}}"
    return (match.span() for match in re.finditer(form, text))


# Reading -------------------------------------------------------------------------------------------------------------


def read_windows(
    reader: Reader, each: Sequence[Window], *, layers: Sequence[int] = ()
) -> TokenReading:
    """Read windows as one: the tokens of all in their order, and of hidden states the mean over all tokens.

    Errors of the reader are raised.
    """
    return joined(
        each, read_all(reader, [window.passage for window in each], layers=layers)
    )


def joined(each: Sequence[Window], read: Sequence[TokenReading]) -> TokenReading:
    """Return the readings of windows as one."""
    if len(read) == 1:
        return read[0]
    counts = [len(reading.logp) for reading in read]
    means = dict[int, Any]()
    for layer in read[0].means:
        states = [reading.means[layer] for reading in read]
        mean = np.average(states, axis=0, weights=counts)
        means[layer] = mean.astype(np.float32)
    ends = list[int]()
    for window, reading in zip(each, read, strict=True):
        ends += [window.start + end for end in reading.ends]
    return TokenReading(
        logp=np.concatenate([part.logp for part in read]),
        entropy=np.concatenate([part.entropy for part in read]),
        top=np.concatenate([part.top for part in read]),
        ends=tuple(ends),
        means=means,
    )


#: Tokens of a template, an instruction and the marks around a row; bytes to a token, about; tokens of a context where
#: no model was opened to tell.
FRAME = 60
BYTES_A_TOKEN = 3.5
USUAL_CONTEXT = 4096


def expected_passes(text: Text, context: int = USUAL_CONTEXT) -> Passes:
    """Return about how many passes and tokens reading a row will take; no model is opened."""
    material, output = (
        math.ceil(len(part.encode("utf-8", "replace")) / BYTES_A_TOKEN)
        for part in (text.material, text.judged)
    )
    if FRAME + material + output <= context:
        return Passes(1, FRAME + material + output, output)
    rooms = Room.of(context - FRAME - SPARE, material, output)
    passes = rooms.windows(output)
    again = passes * (FRAME + rooms.material) + (passes - 1) * rooms.before
    return Passes(passes, output + again, output)
