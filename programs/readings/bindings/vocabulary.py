"""A GGUF file's tokens, without llama.cpp: byte-level BPE by the `tokenizers` package. Extra: `local`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from judgesmith.errors import ModelError
from judgesmith.extras import from_extra
from judgesmith.programs.readings.passages import PLAIN_TURNS, JinjaChat, Piece

_SHORT = r"'s|'t|'re|'ve|'m|'ll|'d"
_GPT2 = rf"{_SHORT}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+"
_LATER = (
    rf"(?i:{_SHORT})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}%s|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
#: How a text is divided before its bytes are merged, by the name that GGUF files give it: one division after the other.
_DIVISIONS = {
    "gpt-2": (_GPT2,),
    "smollm": (r"\p{N}", _GPT2),
    "qwen2": (_LATER % "",),
    "llama-bpe": (_LATER % "{1,3}",),
}
#: Divisions under which a piece that is a token as a whole is not merged from its letters.
_WHOLE = ("llama-bpe",)
# kinds of tokens that no merge makes: the model's own marks, and others
_CONTROL = 3
_ADDED = 4


#: Bytes without a visible letter, in their order.
_INVISIBLE = (*range(0x21), *range(0x7F, 0xA1), 0xAD)


class Vocabulary:
    """Tokens of a model, by the settings of its GGUF file.

    Raises: ModelError for a kind that is not known here; MissingExtraError without `tokenizers`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        def about(name: str, default: Any = None) -> Any:
            return settings.get(f"tokenizer.{name}", default)

        division = division_of(settings)
        words: list[str] = about("ggml.tokens", [])
        kinds = about("ggml.token_type", [1] * len(words))
        self._merged = _merging(words, about("ggml.merges", []), division)
        self._bytes = _lengths(words, kinds)
        self._added = {
            word: number for number, word in enumerate(words) if kinds[number] == _ADDED
        }
        marks = {
            word: number
            for number, word in enumerate(words)
            if kinds[number] == _CONTROL
        }
        self._places = marks | self._added
        self._in_marks, self._in_texts = _any_of(self._places), _any_of(self._added)
        bos = about("ggml.bos_token_id")
        eos = about("ggml.eos_token_id")
        if bos is not None and about("ggml.add_bos_token", False):
            self.begin = [bos]
        else:
            self.begin = []
        self.bos: int | None = bos
        #: Tokens that end an answer.
        ends = (eos, about("ggml.eot_token_id"))
        self.stops = sorted({stop for stop in ends if stop is not None})
        self._words = words
        self._kinds = kinds
        self.chat = chat_of(settings)

    def tokens(self, piece: Piece) -> list[int]:
        """Return a piece's tokens; a control token can come from a mark only."""
        result = list[int]()
        places = self._places if piece.mark else self._added
        cuts = self._in_marks if piece.mark else self._in_texts
        for part in cuts.split(_sound(piece.text)):
            if part in places:
                result.append(places[part])
            elif part:
                result += self._merged.encode(part, add_special_tokens=False).ids
        return result

    def text(self, tokens: Sequence[int]) -> str:
        """The text that tokens stand for; a part of a character is shown as a replacement mark."""
        return b"".join(map(self._spelt, tokens)).decode("utf-8", "replace")

    def _spelt(self, token: int) -> bytes:
        word = self._words[token]
        whole = self._kinds[token] in (_CONTROL, _ADDED)
        return word.encode() if whole else bytes(map(_byte, word))

    def ends(self, text: str, tokens: list[int]) -> tuple[int, ...]:
        """Return the character of a text after which each of its tokens ends."""
        sizes = np.array([len(letter.encode()) for letter in _sound(text)])
        places = np.searchsorted(
            np.cumsum(sizes), np.cumsum(self._bytes[tokens]), "right"
        )
        return tuple(places.tolist())


def division_of(settings: Mapping[str, Any]) -> str:
    """The name of the way in which texts are divided. Raises: ModelError for one that is not known here."""
    kind, division = (
        settings.get(f"tokenizer.ggml.{name}") for name in ("model", "pre")
    )
    if kind != "gpt2" or division not in _DIVISIONS:
        raise ModelError(f"tokens of the kind {kind}, {division} are not known here")
    return str(division)


def chat_of(settings: Mapping[str, Any]) -> JinjaChat:
    """The model's chat template. Raises: ModelError."""
    words = settings.get("tokenizer.ggml.tokens", [])
    places = (
        settings.get(f"tokenizer.ggml.{mark}_token_id") for mark in ("bos", "eos")
    )
    bos, eos = ("" if place is None else words[place] for place in places)
    template = settings.get("tokenizer.chat_template") or PLAIN_TURNS
    return JinjaChat(template, bos=bos, eos=eos)


@cache
def _byte(letter: str) -> int:
    """The byte that a letter stands for: itself where it is visible, the others are counted from U+0100 on."""
    place = ord(letter)
    if place < 0x100:
        return place
    return _INVISIBLE[place - 0x100] if place - 0x100 < len(_INVISIBLE) else 0


def _sound(text: str) -> str:
    """Without halves of characters, which have no bytes."""
    return text.encode("utf-8", "replace").decode()


def _any_of(words: Mapping[str, int]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile(
        f"({'|'.join(map(re.escape, longest_first))})" if words else r"(?!)"
    )


def _lengths(
    words: list[str], kinds: list[int]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Bytes of each token: of one that is merged as many as it has letters, since a letter stands for a byte."""
    whole = (_CONTROL, _ADDED)
    sizes = (
        len(word.encode() if kind in whole else word)
        for word, kind in zip(words, kinds, strict=True)
    )
    return np.fromiter(sizes, np.int64, len(words))


def _merging(words: list[str], merges: list[str], division: str) -> Any:
    from_extra("local", "reading a GGUF file's tokens", "tokenizers")
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    try:
        pairs = list[tuple[str, str]]()
        for merge in merges:
            first, _, second = merge.partition(" ")
            pairs.append((first, second))
        vocabulary = {word: number for number, word in enumerate(words)}
        merged = Tokenizer(
            models.BPE(vocabulary, pairs, ignore_merges=division in _WHOLE)
        )
    except (
        Exception
    ) as error:  # of the package's own kinds, for a merge of what is no token
        raise ModelError(f"the model's tokens cannot be used ({error})") from error
    cuts = [
        pre_tokenizers.Split(Regex(form), "isolated") for form in _DIVISIONS[division]
    ]
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    merged.pre_tokenizer = pre_tokenizers.Sequence([*cuts, bytes_of])
    return merged
