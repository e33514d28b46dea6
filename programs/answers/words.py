"""Which of several words did it answer?"""

from __future__ import annotations

import re
from collections.abc import Sequence


def said_word(text: str, words: Sequence[str]) -> tuple[int, int] | None:
    """Return the number of the word that an answer gives, and its character: its first word, else the only one.

    None if that is not clear: two words, or one behind a negation.

    >>> said_word("Better. The other one is worse.", ["Better", "Worse"])
    (0, 0)
    >>> said_word("It is not better.", ["Better", "Worse"])
    """
    either = "|".join(words)
    matches = list(re.finditer(rf"\b({either})\b", text, re.IGNORECASE))
    denied = rf"(?:\bnot|n['’]t|\bneither|\bnor)\s+(?:\w+\s+)?(?:{either})\b"
    if not matches or re.search(denied, text, re.IGNORECASE):
        return None
    first = matches[0]
    begins = not re.search(r"\w", text[: first.start()])
    only = len({match[0].lower() for match in matches}) == 1
    if not only and (not begins or _goes_on(text[first.end() :], either)):
        return None
    places = {word.lower(): place for place, word in enumerate(words)}
    return places[first[0].lower()], first.start()


def _goes_on(behind: str, either: str) -> bool:
    """Return True if a word is followed by another one in a list: "better or worse", "better/worse"."""
    following = re.match(
        rf"(\W*+)((?:or|and|but)\b\W*+)?(?:{either})\b", behind, re.IGNORECASE
    )
    if following is None:
        return False
    return bool(following[2]) or any(mark in following[1] for mark in "/,")


def is_listed(text: str, words: Sequence[str]) -> bool:
    """Return True if an answer begins with two of the words as if they were one answer: "yes and no"."""
    either = "|".join(words)
    listed = re.match(
        rf"\W*({either})\b\W{{1,3}}(?:(?:or|and|but)\b\W{{1,3}})({either})\b",
        text,
        re.IGNORECASE,
    )
    return listed is not None and listed[1].lower() != listed[2].lower()
