"""Perturbations of what a text says: names, numbers, negations, what is left out and what does not belong.

Entities by rules stand in for DHP's fictional entities, which a language model makes; the others go beyond the paper.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from judgesmith.datasets.perturbations.base import (
    WORD,
    Degree,
    Material,
    Spot,
    Unperturbable,
    letters,
    like,
    replace_by_degree,
    sentences,
    several_sentences,
    split_space,
    spots_of,
)
from judgesmith.datasets.perturbations.registry import rule
from judgesmith.datasets.perturbations.rules import inserted

NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,:]\d+)*(?![\w])")
_WORDS = re.compile(r"[^\W\d_][\w'’-]*")
_NO_NAME = frozenset(
    [
        "i",
        "i'm",
        "i'll",
        "i've",
        "i'd",
        "the",
        "a",
        "an",
        "he",
        "she",
        "it",
        "they",
        "we",
        "you",
        "this",
        "that",
        "these",
    ]
)
_BEGINS = re.compile(r"[:\"“‘(\[*-]\s*$")  # a capital after it tells nothing


_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_CALENDAR = re.compile(rf"\b(?:{'|'.join([*_MONTHS, *_DAYS])})\b")


# Names and numbers ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def names(text: str, language: str) -> tuple[tuple[int, int], ...]:
    """(start, end) of names as far as capitals tell: runs of capitalised words.

    A single one that begins a sentence counts only if it is capitalised elsewhere too.
    """
    starts = set()
    place = 0
    for sentence in sentences(text, language):
        first = _WORDS.search(text, place)
        if first:
            starts.add(first.start())
        place += len(sentence)
    runs: list[list[re.Match[str]]] = []
    for word in _WORDS.finditer(text):
        if _BEGINS.search(text, max(0, word.start() - 3), word.start()):
            starts.add(word.start())
        if (
            not word[0][0].isupper()
            or word[0].lower() in _NO_NAME
            or _CALENDAR.fullmatch(word[0])
        ):
            continue
        if (
            runs
            and text[runs[-1][-1].end() : word.start()] == " "
            and word.start() not in starts
        ):
            runs[-1].append(word)
        else:
            runs.append([word])
    inside = {w[0] for run in runs for w in run if w.start() not in starts}
    return tuple(
        (run[0].start(), run[-1].end())
        for run in runs
        if len(run) > 1 or run[0].start() not in starts or run[0][0] in inside
    )


@rule(
    "entities-rules",
    "names and numbers of other documents instead of its own",
    "word",
    needs=("others",),
    stands_for="entities-lm",
)
def entities(text: str, degree: Degree, rng: random.Random, material: Material) -> str:
    """Names (by their capitals) and numbers, replaced by those of other documents."""
    spots = [*_name_spots(text, rng, material), *_number_spots(text, rng, material)]
    return replace_by_degree(
        text, spots, degree, rng, "names or numbers that other documents could replace"
    )


def _name_spots(text: str, rng: random.Random, material: Material) -> Iterator[Spot]:
    language = material.language
    if language.lower().startswith("de"):  # there every noun has a capital
        return
    material_text = f"{text}\n{material.own.source}".casefold()
    elsewhere = set[str]()
    for other in material.others:
        elsewhere.update(other.text[a:b] for a, b in names(other.text, language))
    pool = [n for n in sorted(elsewhere) if n.casefold() not in material_text]
    chosen: dict[str, str] = {}  # the same name is replaced by the same one
    for start, end in names(text, language):
        old = text[start:end]
        fitting = [n for n in pool if n not in chosen.values()]
        alike = _as_long(fitting, old) or fitting
        if old in chosen or alike:
            chosen[old] = chosen.get(old) or rng.choice(alike)
            yield Spot(start, end, chosen[old])


def _as_long(pool: Sequence[str], name: str) -> list[str]:
    """The names of as many words as a name has."""
    length = len(name.split())
    return [other for other in pool if len(other.split()) == length]


def _number_spots(text: str, rng: random.Random, material: Material) -> Iterator[Spot]:
    own = {m[0] for m in NUMBER.finditer(text)}
    pool = sorted(
        {m[0] for o in material.others for m in NUMBER.finditer(o.text)} - own
    )
    for match in NUMBER.finditer(text) if pool else ():
        yield Spot(match.start(), match.end(), rng.choice(pool))


@rule("numbers", "numbers and dates changed", "word")
def numbers(text: str, degree: Degree, rng: random.Random, material: Material) -> str:
    """Change one digit of a number, or a number word; a major degree changes several."""

    def other_digits(match: re.Match[str]) -> str:
        digits = [i for i, c in enumerate(match[0]) if c.isdecimal()]
        i = digits[0] if len(digits) < 3 else rng.choice(digits[:2])
        return (
            match[0][:i]
            + rng.choice([d for d in "123456789" if d != match[0][i]])
            + match[0][i + 1 :]
        )

    def other_word(match: re.Match[str]) -> str | None:
        near = (
            text[max(0, match.start() - 3) : match.start()]
            + text[match.end() : match.end() + 3]
        )
        if match[0] == "May" and not re.search(r"\d", near):  # the verb
            return None
        among = next(w for w in (_MONTHS, _DAYS) if match[0] in w)
        return rng.choice([w for w in among if w != match[0]])

    spots = spots_of(text, NUMBER, other_digits)
    if material.english:
        spots += spots_of(text, _CALENDAR, other_word)
    return replace_by_degree(text, spots, degree, rng, "numbers or dates")


# Negation ------------------------------------------------------------------------------------------------------------

_AUXILIARY = [
    "is",
    "are",
    "was",
    "were",
    "can",
    "could",
    "will",
    "would",
    "should",
    "must",
    "does",
    "did",
    "do",
    "has",
    "have",
    "had",
    "may",
    "might",
]
_CONTRACTED = {f"{w}n't": w for w in _AUXILIARY} | {
    "can't": "can",
    "won't": "will",
    "cannot": "can",
}
_FLIPS = _CONTRACTED | {
    "never": "always",
    "always": "never",
    "without": "with",
    "nobody": "everybody",
    "nothing": "everything",
    "none": "all",
    "everyone": "no one",
}
_NOT = re.compile(r"\b(\w+) not\b", re.IGNORECASE)
_VERB = re.compile(
    rf"\b(?:{'|'.join(_AUXILIARY[:10])})\b(?! not\b|n['’]t)", re.IGNORECASE
)


@rule(
    "negation",
    "statements turned into their opposites by a negation",
    "word",
    needs=("english",),
)
def negation(text: str, degree: Degree, rng: random.Random, material: Material) -> str:
    """Remove "not" or insert it after a verb that can take it, and turn words into their opposites."""
    ends = list(
        accumulate(len(sentence) for sentence in sentences(text, material.language))
    )
    starts = {0, *ends}

    def turned(match: re.Match[str]) -> str | None:
        word = _FLIPS.get(match[0].lower().replace("’", "'"))
        return None if word is None else like(match[0], word)

    def negated(match: re.Match[str]) -> str | None:
        if match.start() in starts:  # a question: "Is it", not "Is not it"
            return None
        return "cannot" if match[0].lower() == "can" else f"{match[0]} not"

    spots = spots_of(text, re.compile(r"[\w]+(?:['’]t)?\b"), turned)
    spots += spots_of(
        text, _NOT, lambda m: m[1] if m[1].lower() in _AUXILIARY else None
    )
    rng.shuffle(spots)
    # One in a sentence, and "not" only where there is no other negation: "nobody was" and "everybody was not" say
    # the same, and so do "never" and "not always".
    by_sentence = {bisect_right(ends, spot.start): spot for spot in spots}
    verbs = spots_of(text, _VERB, negated)
    rng.shuffle(verbs)
    for spot in verbs:
        by_sentence.setdefault(bisect_right(ends, spot.start), spot)
    spots = list(by_sentence.values())
    return replace_by_degree(
        text, spots, degree, rng, "statements that the rules can negate"
    )


# Sentences that are missing or too many ------------------------------------------------------------------------------


@rule(
    "omission",
    "the most important sentence is left out (major: the two most important)",
    "sentence",
)
def omission(text: str, degree: Degree, rng: random.Random, material: Material) -> str:
    """Leave out the sentences that matter most.

    Importance is the share of the content words of the source (of the other sentences, if there is none) that the
    sentence has; ties go to the earlier sentence.
    """
    gone = 1 if degree == "minor" else 2
    parts = several_sentences(text, material, gone + 1)
    important = sorted(
        range(len(parts)), key=lambda i: -_importance(i, parts, material.own.source)
    )[:gone]
    remaining = [part for i, part in enumerate(parts) if i not in important]
    end = split_space(text)[1]
    return "".join(remaining).rstrip() + end


def _importance(i: int, parts: list[str], source: str) -> float:
    content = _content(parts[i])
    other = _content(source) or _content(" ".join(parts[:i] + parts[i + 1 :]))
    return len(content & other) / max(len(other), 1)


def _content(text: str) -> set[str]:
    """Words that carry meaning: longer than three characters, or with a digit, or of a script without spaces."""
    words = {word.casefold() for word in WORD.findall(text)}
    return {w for w in words if len(w) > 3 or any(map(str.isdigit, w))}


@rule(
    "irrelevant",
    "sentences of other documents added, true there and of no use here: one, or three (major)",
    "sentence",
    needs=("others",),
)
def irrelevant(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Insert sentences of other documents: one for a minor degree, three for a major one."""
    parts = several_sentences(text, material, 1)
    own = {split_space(part)[0] for part in parts}
    result = {
        split_space(s)[0]
        for o in material.others
        for s in sentences(o.text, material.language)
    }
    pool = sorted(s for s in result - own if len(letters(s)) >= 4)
    wanted = 1 if degree == "minor" else 3
    if len(pool) < wanted:
        raise Unperturbable(
            f"{len(pool)} sentences in other documents, and {wanted} are needed"
        )
    rng.shuffle(pool)
    for sentence in pool[:wanted]:
        parts = inserted(parts, rng.randrange(len(parts)), sentence)
    return "".join(parts)
