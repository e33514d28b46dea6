"""Which end of a scale is the better one, by the words beside its numbers: "1 = best, 5 = worst".

What the words of `ends.toml` make certain is taken. Ends in other words are unclear, and the user is asked: no list
holds every word by which people say that 1 is the best.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, Literal, TypeAlias

from judgesmith.wording import folded, plain

#: rising: the highest number is the best. falling: the lowest is. unclear: the ends have names that do not tell.
Order: TypeAlias = Literal["rising", "falling", "unclear"]

_WORDS: dict[str, Any] = tomllib.loads(
    files(__package__).joinpath("ends.toml").read_text(encoding="utf-8")
)
_BETTER = frozenset(_WORDS["better"].split()) | set(_WORDS["better_characters"])
_WORSE = frozenset(_WORDS["worse"].split()) | set(_WORDS["worse_characters"])
_TURNING = frozenset(_WORDS["turning"].split()) | set(_WORDS["turning_characters"])
_AMOUNTS = frozenset(_WORDS["amounts"].split())
_BETWEEN = frozenset(_WORDS["between"].split()) | {""}
_FALLING = re.compile(rf"\b(?:{_WORDS['falling']})\b|↓", re.IGNORECASE)

_GRADES = frozenset(_WORDS["grades"].split())
_GRADES_OF_SIX = frozenset(_WORDS["grades_of_six"].split())
#: Grades of schools go no further than this one.
_LAST_GRADE = 6

_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_ALONE = f"{_CJK}\U0001f300-\U0001faff"
_TOKEN = re.compile(rf"[{_ALONE}]|(?:(?![{_ALONE}])[^\W\d_])+")
#: Signs that mark an end in place of words: pictures, :-), (++) and --. Stars count steps, and mark no end.
_SIGN = re.compile(
    r"(?:(?![★☆⭐✩✭✮✯🌟])[\u2600-\u27bf\U0001f300-\U0001faff])|[:;]-?[()D/|]"
    r"|(?<=[(\[])\s*(?:[+＋]{1,3}|[-−–]{1,3})(?=\s*[)\]])|(?<=\d)\s?(?:[+＋]{1,3}|[-−]{2,3})(?![\w+-])"
)
#: Around the words of an end.
_AROUND = " -–—/|()[]…→.,;:、،!?=\"'"
_BRACKETS = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_NUMBER = r"(?<![\w.,/])-?\d{1,3}(?![.,]?\d)"
_SAYS = r"\s*(?:=|:|\bis\b|\bmeans\b|→)\s*"
#: A number with the words behind it, and words with the number behind them.
_NUMBER_FIRST = re.compile(
    rf"({_NUMBER})({_SAYS})?((?:(?!{_NUMBER})[^,;])*)", re.IGNORECASE
)
_WORD_FIRST = re.compile(rf"([^\d,;=:]+?)({_SAYS})({_NUMBER})(?!{_SAYS})", re.I)


def order_of(steps: Mapping[float, str], *, fault: bool = False) -> Order | None:
    """Return which end of a scale is the better one; None where fewer than two numbers have words.

    Args:
        steps: The words beside each number.
        fault: True if the numbers are of something that is better absent.
    """
    named = {
        number: words
        for number, words in steps.items()
        if _TOKEN.search(words) or _SIGN.search(words)
    }
    if len(named) < 2:
        return None
    lowest = _tokens(named[min(named)])
    highest = _tokens(named[max(named)])
    if fault and (_AMOUNTS & {*lowest, *highest}):
        return "unclear"
    return _order(_worth(lowest), _worth(highest))


def order_in_name(
    name: str, low: float, high: float, *, fault: bool = False
) -> tuple[Order, dict[float, str]] | None:
    """Return the order that a column's name states, with the words of its ends; None if it names no end.

    Args:
        name: The column's name.
        low: The lowest rating in the column.
        high: The highest rating in the column.
        fault: True if the name is of something that is better absent.
    """
    name = plain(name).replace("_", " ")
    if _FALLING.search(name):
        return "falling", {}
    found = _order_by_words(name, low, high, fault)
    if found is not None:
        return found
    signs = list(dict.fromkeys(sign.strip() for sign in _SIGN.findall(name)))
    numbers = [float(number) for number in re.findall(_NUMBER, name)]
    if len(signs) > 1 and len(numbers) > 1:
        return "unclear", {min(numbers): signs[0], max(numbers): signs[-1]}
    return ("unclear", {}) if _is_grade(name, numbers, low, high) else None


def _is_grade(name: str, numbers: Sequence[float], low: float, high: float) -> bool:
    """Return True for a grade or a place, of which the lowest may be the best."""
    words = set(_tokens(name))
    if words & _GRADES:
        return low >= 1
    return bool(words & _GRADES_OF_SIX) and sorted(numbers) == [1, _LAST_GRADE]


def _order_by_words(
    name: str, low: float, high: float, fault: bool
) -> tuple[Order, dict[float, str]] | None:
    steps, explicit = _steps(name)
    if not steps:
        return None
    first = min(steps)
    last = max(steps)
    if len(steps) > 1:
        order = order_of(steps, fault=fault)
        within = first <= low and high <= last
        if order == "unclear" and not (explicit and within):
            return None
        return order and (order, {first: steps[first], last: steps[last]})
    if low == high or low < first < high:
        return None
    worth = _worth(_tokens(steps[first]))
    at_top = first >= high
    order = _order(0, worth) if at_top else _order(worth, 0)
    if order == "unclear" and not explicit:
        return None
    return order, steps


def _steps(name: str) -> tuple[dict[float, str], bool]:
    """Return the words of the numbers in a name, and whether brackets or signs show that they are named ends."""
    for inside in reversed(_BRACKETS.findall(name)):
        steps, signs = _named(inside)
        known = any(_worth(_tokens(words)) for words in steps.values())
        if len(steps) > 1 or (steps and (signs or known)):
            return steps, True
    steps, signs = _named(re.sub(r"[()\[\]]", " ", name))
    if len(steps) > 1 or signs - {":"}:
        return steps, bool(signs)
    return {}, False


def _named(text: str) -> tuple[dict[float, str], set[str]]:
    """Return the words of numbers in a text, and the signs between them; of both orders what names more numbers."""
    behind = _words((n, sign, words) for n, sign, words in _NUMBER_FIRST.findall(text))
    before = _words((n, sign, words) for words, sign, n in _WORD_FIRST.findall(text))
    return before if len(before[0]) > len(behind[0]) else behind


def _words(found: Iterable[tuple[str, str, str]]) -> tuple[dict[float, str], set[str]]:
    steps = dict[float, str]()
    signs = set[str]()
    for number, sign, words in found:
        tokens = [token.strip(_AROUND) for token in folded(words).split()]
        while tokens and tokens[-1] in _BETWEEN:
            tokens.pop()
        if _TOKEN.search(shown := " ".join(filter(None, tokens))):
            steps[float(number)] = shown
            signs.add(sign.strip().casefold())
    return steps, signs - {""}


def _tokens(words: str) -> list[str]:
    return _TOKEN.findall(folded(words))


def _worth(tokens: list[str]) -> int:
    """Return 1 for words of the better end, -1 for those of the worse one, 0 where they do not tell."""
    worths = set[int]()
    turned = 1
    for token in tokens:
        if token in _TURNING:
            turned = -1
        elif token in _BETTER or token in _WORSE:
            worths.add(turned * (1 if token in _BETTER else -1))
            turned = 1
    return worths.pop() if len(worths) == 1 else 0


def _order(lowest: int, highest: int) -> Order:
    if lowest == highest:
        return "unclear"
    return "rising" if lowest < highest else "falling"
