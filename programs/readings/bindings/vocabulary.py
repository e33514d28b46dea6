"""A GGUF file's tokens, without llama.cpp: byte-level BPE by the `tokenizers` package. Extra: `local`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ....errors import MissingExtraError, ModelError
from ..passages import PLAIN_TURNS, JinjaChat, Piece

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
_CONTROL, _ADDED = (
    3,
    4,
)  # kinds of tokens that no merge makes: the model's own marks, and others


class Vocabulary:
    """Tokens of a model, by the settings of its GGUF file.

    Raises: ModelError for a kind that is not known here; MissingExtraError without `tokenizers`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        def about(name: str, default: Any = None) -> Any:
            return settings.get(f"tokenizer.{name}", default)

        kind, division = about("ggml.model"), about("ggml.pre")
        if kind != "gpt2" or division not in _DIVISIONS:
            raise ModelError(
                f"tokens of the kind {kind}, {division} are not known here"
            )
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
        bos, eos = about("ggml.bos_token_id"), about("ggml.eos_token_id")
        self.begin = (
            [bos] if bos is not None and about("ggml.add_bos_token", False) else []
        )
        self.bos: int | None = bos
        bos_word, eos_word = (
            "" if place is None else words[place] for place in (bos, eos)
        )
        self.chat = JinjaChat(
            about("chat_template") or PLAIN_TURNS, bos=bos_word, eos=eos_word
        )

    def tokens(self, piece: Piece) -> list[int]:
        """A piece's tokens; a control token can come from a mark only."""
        result = list[int]()
        for part in (self._in_marks if piece.mark else self._in_texts).split(
            _sound(piece.text)
        ):
            if part in self._places:
                result.append(self._places[part])
            elif part:
                result += self._merged.encode(part, add_special_tokens=False).ids
        return result

    def ends(self, text: str, tokens: list[int]) -> tuple[int, ...]:
        """The character of a text after which each of its tokens ends."""
        sizes = np.array([len(letter.encode()) for letter in _sound(text)])
        found = np.searchsorted(
            np.cumsum(sizes), np.cumsum(self._bytes[tokens]), "right"
        )
        return tuple(found.tolist())


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
    try:
        from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    except ImportError as error:
        raise MissingExtraError(
            "a GGUF file's tokens need: pip install 'judgesmith[local]'"
        ) from error
    try:
        pairs = [
            (first, second)
            for first, _, second in (merge.partition(" ") for merge in merges)
        ]
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
