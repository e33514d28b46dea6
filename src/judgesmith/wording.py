"""Words: of texts in any script, of columns' names, and in cells, where a rating or a verdict is read by its word."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

import numpy as np

#: Marks without a width. Between digits they change what is seen, and the number has two readings.
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u20e3]+"
)
_INSIDE = re.compile(rf"(?<=[\d.,]){_INVISIBLE.pattern}(?=[\d.,])")
_MINUS = re.compile(r"[\u2010-\u2015\u2212](?=[\d.])")
_ARABIC = {"٪": "%", "٫": ".", "٬": ","}
_TONES = re.compile("[\U0001f3fb-\U0001f3ff\ufe0e\ufe0f\u200d]")

#: Scripts without blanks between words, of which each character counts as one.
SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SPACELESS = re.compile(f"[{SPACELESS}]")
_WORD = re.compile(rf"[{SPACELESS}]|[^\W{SPACELESS}]+")


def word_count(text: str) -> int:
    """Return how many words a text has, between blanks; each character is one in a script without them."""
    if text.isascii() or not _SPACELESS.search(text):
        return len(text.split())
    return len(_WORD.findall(text))


def plain(text: str) -> str:
    """Return a text with ASCII's digits and signs, and without invisible marks except those within a number."""
    letters = (_letter(letter) for letter in text) if not text.isascii() else text
    text = _MINUS.sub("-", "".join(letters))
    return text if _INSIDE.search(text) else _INVISIBLE.sub("", text)


def _letter(letter: str) -> str:
    if "！" <= letter <= "～":  # the full-width forms
        return chr(ord(letter) - 0xFEE0)
    if letter.isdecimal():
        return str(unicodedata.decimal(letter))
    return _ARABIC.get(letter, letter)


def folded(cell: Any) -> str:
    """Return a cell as the word that it is known by: lower case, single blanks, emoji without skin tones."""
    if isinstance(cell, (bool, np.bool_)):
        return "true" if cell else "false"
    if (
        isinstance(cell, (float, np.floating))
        and (number := float(cell)).is_integer()
        and abs(number) < 1e15
    ):
        return str(int(number))
    text = unicodedata.normalize("NFC", _TONES.sub("", plain(str(cell)))).casefold()
    text = " ".join(text.replace("_", " ").split())
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    return text.rstrip(".!,;") or text


@lru_cache(maxsize=4096)
def words_of(name: str) -> frozenset[str]:
    """Return the words of a column's name in lower case."""
    return frozenset(re.findall(r"[^\W\d_]+", spaced(name).casefold()))


def spaced(name: str) -> str:
    """Return a name with a space before each capital inside it: "userQuestion" is "user Question"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
