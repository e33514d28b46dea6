"""Count the facts of an output that its source, context and reference have, without a model.

Counted are sequences of words, names, numbers, dates, negations, and the values of a table or meaning representation,
on both sides in one spelling (`spellings`).
Shares of word sequences reward copying, so that they stand among other readings and are weighed by experience and
labels (experiments/results/facts.md).
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from judgesmith.programs.readings.kinds import Reading
from judgesmith.programs.readings.passages import Text
from judgesmith.programs.readings.reader import TokenReading
from judgesmith.programs.readings.spellings import one_spelling
from judgesmith.programs.readings.windows import COMMON
from judgesmith.programs.registry import readings
from judgesmith.wording import SPACELESS

_WORD = re.compile(rf"[{SPACELESS}]|[^\W{SPACELESS}]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
#: A word of fewer letters says little of what a sentence is about.
TELLING = 4
#: Words are the same whose first letters are.
STEM = 5

#: Marks between answers that are equally right, and the words that each of them has at most.
_BETWEEN_ANSWERS = re.compile(r"[\n|;]|(?<!\d)/|/(?!\d)")
ANSWER_WORDS = 10

# Names, numbers, dates, negations ------------------------------------------------------------------------------------

_CAPITALISED = re.compile(r"(?<!\w)[A-ZÀ-ÖØ-ÞĀ-ЯΑ-Ω]\w*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_CALENDAR = re.compile(
    r"\b(?:(?i:january|february|april|june|july|august|september|october|november|december|monday|tuesday|wednesday"
    r"|thursday|friday|saturday|sunday)|March|May)\b"
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nowhere|neither|nor|without|cannot|nicht|kein\w*|nie|niemals|ohne|pas|jamais"
    r"|sans|sin|nunca|ningun\w*|non|mai|senza)\b|n['’ ]?t\b"
)


def names_in(text: str) -> set[str]:
    """Words with a capital, where no sentence begins, folded: names, as far as capitals tell."""
    names = set[str]()
    for sentence in _SENTENCE.split(text):
        first = _WORD.search(sentence)
        begins = first.start() if first else 0
        names |= {
            match[0].casefold() for match in _CAPITALISED.finditer(sentence, begins + 1)
        }
    return names - {"i"}


def numbers_in(text: str) -> set[str]:
    """Return the numbers of a text in one spelling (`spellings`), in one form: 7.50 and 7.5, 007 and 7 are the same."""
    return set(map(_plain_number, _NUMBER.findall(text)))


def _plain_number(written: str) -> str:
    whole, point, rest = written.replace(",", ".").partition(".")
    return (whole.lstrip("0") or "0") + (point + rest).rstrip("0").rstrip(".")


def dates_in(text: str) -> set[str]:
    """Months and days of the week (English); years and days are numbers."""
    return {match.casefold() for match in _CALENDAR.findall(text)}


def details_in(text: str) -> set[str]:
    """Return the names, numbers and dates of a text in one spelling."""
    return names_in(text) | numbers_in(text) | dates_in(text)


def share(claimed: Iterable[str], material: Iterable[str]) -> float:
    """Return the share of the first that the second has, too; NaN for none."""
    claims = set(claimed)
    there = set(material)
    return len(claims & there) / len(claims) if claims else math.nan


# Sequences of words --------------------------------------------------------------------------------------------------


def sequences(words: Sequence[str], length: int) -> Counter[tuple[str, ...]]:
    """Return the sequences of `length` words with their counts."""
    return Counter(zip(*(words[start:] for start in range(length)), strict=False))


def found_in(claimed: Sequence[str], material: Sequence[str], length: int) -> float:
    """Return the share of an output's sequences of words that a text has; NaN if one of them has none."""
    claims = sequences(claimed, length)
    there = sequences(material, length)
    if not claims or not there:
        return math.nan
    return (
        sum(count for words, count in claims.items() if words in there) / claims.total()
    )


# Sentences beside the best one of the source -------------------------------------------------------------------------


@dataclass(frozen=True)
class Sentence:
    """Its text, and the words that tell what it is about."""

    text: str

    @cached_property
    def telling(self) -> frozenset[str]:
        """Return the stems of its long words and numbers, which tell it from other sentences."""
        words = _WORD.findall(self.text.casefold())
        return frozenset(
            _stem(word) for word in words if len(word) >= TELLING or not word.isalpha()
        )

    @cached_property
    def negations(self) -> int:
        """Return the number of its negations."""
        return len(_NEGATION.findall(self.text.casefold()))


def sentences_of(text: str) -> list[Sentence]:
    """Return the sentences of a text that have a word."""
    return [
        Sentence(part) for part in _SENTENCE.split(text) if part and _WORD.search(part)
    ]


def beside(
    output: Sequence[Sentence], material: Sequence[Sentence]
) -> Iterator[tuple[Sentence, Sentence | None, float]]:
    """Yield each sentence of the output with the most similar one of the source, and their share of telling words.

    Words that many sentences of the source have do not decide which it is.
    """
    places = defaultdict[str, list[int]](list)
    for number, sentence in enumerate(material):
        for word in sentence.telling:
            places[word].append(number)
    for sentence in output:
        if not sentence.telling:
            continue
        votes = Counter(
            itertools.chain.from_iterable(
                places[word] for word in sentence.telling if len(places[word]) <= COMMON
            )
        )
        if votes:
            best = material[max(votes, key=lambda number: (votes[number], -number))]
        else:
            best = None
        yield sentence, best, share(sentence.telling, best.telling if best else ())


def sentence_numbers(
    output: Sequence[Sentence], material: Sequence[Sentence]
) -> dict[str, float]:
    """Return the support of an output's sentences by those of the source.

    supported, weakest: the mean and the least share of a sentence's telling words that its best sentence of the source
    has. negations: the share of sentences that negate as often as that one, among those where either negates.
    """
    shares = list[float]()
    alike = list[bool]()
    for sentence, best, overlap in beside(output, material):
        shares.append(overlap)
        if best is not None and sentence.negations + best.negations:
            alike.append(sentence.negations == best.negations)
    if not material or not shares:
        return {"supported": math.nan, "weakest": math.nan, "negations": math.nan}
    negations = sum(alike) / len(alike) if alike else math.nan
    return {
        "supported": sum(shares) / len(shares),
        "weakest": min(shares),
        "negations": negations,
    }


# Tables and meaning representations ----------------------------------------------------------------------------------

_EQUALS = re.compile(
    r"([\w -]{1,60}?)\s{0,9}=\s{0,9}('[^']{0,400}'|\"[^\"]{0,400}\"|[^,;()]{0,400})"
)
_BRACKETS = re.compile(r"([\w -]{1,60})\[([^\]]{0,400})\]")
#: Values that are said by the name of their attribute.
_BY_NAME = frozenset(
    ["", "yes", "no", "none", "dont care", "dontcare", "true", "false", "null"]
)
#: The share of a source that has to be attributes and values for it to count as such.
MOSTLY = 0.6


def values_in(source: str) -> list[tuple[str, str]]:
    """(attribute, value) of a source that is a table, triples, JSON or a meaning representation; empty for prose.

    `inform(name='X', area=centre)`, `name[The Vaults], eatType[pub]`, lines of cells between `|` or tabs.
    """
    text = source.strip()
    if text[:1] in ("{", "["):
        try:
            return list(_leaves(json.loads(text), ""))
        except (ValueError, RecursionError):
            pass
    for mark, form in (("=", _EQUALS), ("[", _BRACKETS)):
        # Prose without the mark takes milliseconds to be gone through for nothing.
        matches = list(form.finditer(text)) if mark in text else []
        if matches and sum(len(match[0]) for match in matches) >= MOSTLY * len(text):
            return [(match[1].strip(), match[2].strip(" '\"")) for match in matches]
    return _cells_in(text)


def _cells_in(text: str) -> list[tuple[str, str]]:
    """The same of lines of cells; empty for prose."""
    lines = list(filter(None, map(str.strip, text.splitlines())))
    rows = [re.split(r"\s*[|\t]\s*", line) for line in lines]
    tabular = [cells for cells in rows if len(cells) > 1]
    if not tabular or len(tabular) < MOSTLY * len(rows):
        return []
    values = list[tuple[str, str]]()
    triples = set(map(len, tabular)) == {3}
    for cells in tabular:
        if triples:
            subject, predicate, value = cells
            values += [(predicate, subject), (predicate, value)]
        else:
            values += [("", cell) for cell in cells]
    return values


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, name)
    else:
        yield name, "" if value is None else str(value)


def _split(name: str) -> list[str]:
    """The words of an attribute's name: familyFriendly, price_range."""
    return _WORD.findall(
        re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").casefold()
    )


def _stem(word: str) -> str:
    """The beginning of a word, so that cheap and cheaply are the same; a number stays whole."""
    return word[:STEM] if word.isalpha() else word


def values_said(source: str, output: Sequence[str]) -> float:
    """Return the share of a table's values that an output has; NaN for prose.

    A value is there word for word, or by the attribute if it is yes, no or nothing. output: its words in one spelling.
    """
    values = dict.fromkeys(
        (" ".join(_split(name)), " ".join(_split(one_spelling(value))))
        for name, value in values_in(source)
    )
    there = set(map(_stem, output))
    shares = []
    for name, value in values:
        words = name.split() if value in _BY_NAME else value.split()
        stems = [_stem(word) in there for word in words]
        shares.append(any(stems) if value in _BY_NAME else bool(stems) and all(stems))
    return sum(shares) / len(shares) if shares else math.nan


# The reading ---------------------------------------------------------------------------------------------------------


@readings.register
class Facts(Reading):
    """Counts of facts as a reading."""

    name = "facts"
    about = "word sequences, names, numbers, dates and negations that the source, context and reference have, counted"
    counted = True
    words = {  # noqa: RUF012  # see Reading
        "pairs": (
            "wording",
            "{} of its wording comes from the source than usual",
            "more",
            "less",
        ),
        "triples": (
            "wording",
            "{} of its wording comes from the source than usual",
            "more",
            "less",
        ),
        "details": (
            "facts",
            "the source has {} of its names, numbers and dates than usual",
            "more",
            "fewer",
        ),
        "negations": (
            "facts",
            "its negations agree {} with the source than usual",
            "more",
            "less",
        ),
        "supported": (
            "facts",
            "single sentences of the source support {} of it than usual",
            "more",
            "less",
        ),
        "weakest": (
            "facts",
            "its least supported sentence has {} support than usual",
            "more",
            "less",
        ),
        "values": (
            "facts",
            "it says {} of the source's values than usual",
            "more",
            "fewer",
        ),
        "context": (
            "context",
            "it takes {} from the context than usual",
            "more",
            "less",
        ),
        "of_reference": (
            "reference",
            "it has {} of the reference's words than usual",
            "more",
            "fewer",
        ),
    }

    @classmethod
    def numbers(cls, text: Text, tokens: TokenReading) -> Mapping[str, float]:
        """Return the counts of a row."""
        return facts(text)


def facts(text: Text) -> dict[str, float]:
    """Return shares, from 0 to 1, NaN if there is nothing to compare.

    pairs, triples: of an output's sequences of words those that the source or context has. details: of its names,
    numbers and dates those that these have. supported, weakest, negations: see `sentence_numbers`. values: see
    `values_said`. context: of its words those that the context alone has. of_reference: of the reference's words those
    that the output has; of alternative answers (`answers_in`), the one of which it has most.
    """
    material = one_spelling(text.material)
    output = one_spelling(text.judged)
    context = one_spelling(text.context)
    answers = map(words_in, answers_in(one_spelling(text.reference)))
    output_words = words_in(output)
    there = words_in(material)
    return {
        "pairs": found_in(output_words, there, 2),
        "triples": found_in(output_words, there, 3),
        "details": share(details_in(output), {*there, *details_in(material)})
        if there
        else math.nan,
        **sentence_numbers(sentences_of(output), sentences_of(material)),
        "values": values_said(text.source, output_words),
        "context": found_in(output_words, words_in(context), 1),
        "of_reference": max(found_in(answer, output_words, 1) for answer in answers),
    }


def answers_in(reference: str) -> list[str]:
    """Return the parts of a reference that are answers by themselves: "NYC/New York"; the whole where one is longer.

    A slash between digits is no mark. Two long references are of many, and count together.
    """
    parts = [part for part in _BETWEEN_ANSWERS.split(reference) if words_in(part)]
    short = all(len(words_in(part)) <= ANSWER_WORDS for part in parts)
    return parts if parts and short else [reference]


def words_in(text: str) -> list[str]:
    """Return the words of a text, folded."""
    return _WORD.findall(text.casefold())
