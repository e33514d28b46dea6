"""Write what people write in several ways in one: numbers, amounts, percentages, months, and negations.

Words are counted in this form, so that `1,000`, `1000` and `one thousand`, `$5` and `5 dollars`, `5%` and `5 per cent`,
`Jan. 5th` and `January 5`, or `don't` and `do not` are the same on both sides. English, but for digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

_UNITS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_UNITS |= {"six": 6, "seven": 7, "eight": 8, "nine": 9}
_TEENS = {"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14}
_TEENS |= {
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
}
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50}
_TENS |= {"sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_WORTH = _UNITS | _TEENS | _TENS
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}


def _any(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(words)})"


_TO_99 = rf"(?:{_any(_TENS)}(?:[- ]{_any(_UNITS)})?|{_any(_TEENS)}|{_any(_UNITS)})"
_TO_999 = rf"(?:{_any(_UNITS)} hundred(?: (?:and )?{_TO_99})?|{_TO_99})"
#: A number in words; `one` alone is mostly no number.
_IN_WORDS = re.compile(
    rf"\b(?!one\b(?! (?:hundred|{'|'.join(_SCALES)})\b)){_TO_999}"
    rf"(?: {_any(_SCALES)}\b(?:,? (?:and )?{_TO_999})?)*\b",
    re.IGNORECASE,
)
_IN_FIGURES = re.compile(
    rf"(?<![\w.,])(\d{{1,15}}(?:\.\d{{1,15}})?)[- ]?({'|'.join(_SCALES)})\b",
    re.IGNORECASE,
)
#: Between thousands: a comma, also of text cut into words, or a space that does not break the line.
_THOUSANDS = re.compile(
    r"(?<![\d.,])\d{1,3}(,| , |[\u00a0\u2009\u202f])\d{3}(?:\1\d{3})*(?![\d,])"
)
_PERCENT = re.compile(r"(?<=\d)(?:\s?%| per ?cent\b)", re.IGNORECASE)
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b", re.IGNORECASE)
_AMOUNT = re.compile(r"(?<!\w)([$£€])\s?(\d{1,30}(?:\.\d{1,30})?)(?![\d,])")
_CURRENCY = str.maketrans({"$": "dollars", "£": "pounds", "€": "euros"})
_MONTHS = {
    "Jan": "January",
    "Feb": "February",
    "Mar": "March",
    "Apr": "April",
    "Jun": "June",
    "Jul": "July",
    "Aug": "August",
    "Sep": "September",
    "Sept": "September",
    "Oct": "October",
    "Nov": "November",
    "Dec": "December",
}
_SHORT = rf"\b({'|'.join(_MONTHS)})\b\.?"
_MONTH = re.compile(rf"{_SHORT}(?= \d)|(?<=\d ){_SHORT}")
_NEGATED = re.compile(r"\b(\w+?) ?n['’]t\b|\b(can)not\b", re.IGNORECASE)
_BEFORE_NOT = {"ca": "can", "wo": "will", "sha": "shall"}


def one_spelling(text: str) -> str:
    """Return a text with its numbers in figures, and amounts, percentages, months and negations in words."""
    text = _MONTH.sub(lambda found: _MONTHS[found[1] or found[2]], text)
    text = _NEGATED.sub(_not, text)
    text = _THOUSANDS.sub(lambda found: re.sub(r"\D", "", found[0]), text)
    text = _IN_WORDS.sub(lambda found: str(_worth(found[0])), text)
    text = _AMOUNT.sub(r"\2 \1", _IN_FIGURES.sub(_product, text))
    text = text.translate(_CURRENCY)
    return _ORDINAL.sub("", _PERCENT.sub(" percent", text))


def _not(found: re.Match[str]) -> str:
    verb = found[1] or found[2]
    return f"{_BEFORE_NOT.get(verb.casefold(), verb)} not"


def _worth(words: str) -> int:
    """Return the number that words say: two thousand and five, 2005."""
    total = current = 0
    for word in re.findall(r"[a-z]+", words.casefold()):
        if word == "hundred":
            current *= 100
        elif word in _SCALES:
            total = total + current * _SCALES[word]
            current = 0
        elif word != "and":
            current += _WORTH[word]
    return total + current


def _product(found: re.Match[str]) -> str:
    """Return the number of 1.5 million in figures."""
    number = Decimal(found[1]) * _SCALES[found[2].casefold()]
    return f"{number.normalize():f}"
