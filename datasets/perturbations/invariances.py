"""Changes that a good judge must not react to, or not much: how often it does is its false-alarm rate."""

from __future__ import annotations

import random
import re

from judgesmith.datasets.perturbations.base import (
    Degree,
    Material,
    Unperturbable,
    kept,
    like,
    replace_spots,
    several_sentences,
    split_space,
    spots_of,
)
from judgesmith.datasets.perturbations.registry import rule

_OTHER_MARKS = (
    (
        re.compile(r"(\w) +([.,!?;:])(?=\s|$)"),
        r"\1\2",
    ),  # tokenised text, as benchmarks have it
    (re.compile(r"(?<=\w)'(?=\w)"), "’"),
    (re.compile(r'(?<!\S)"(?=\S)'), "“"),
    (re.compile(r'(?<=\S)"(?=[\s.,!?;:]|$)'), "”"),
    (re.compile(r" -{1,2} | – "), " — "),
    (re.compile(r", and "), " and "),
)


@rule(
    "style",
    "another style of punctuation",
    "character",
    kind="invariance",
    degrees=("only",),
)
def style(text: str, degree: Degree, rng: random.Random, material: Material) -> str:
    """Change punctuation that no reader minds.

    It has typographic quotes and dashes, no space before a mark, no comma before "and"; if none of this applies, a
    final full stop is removed or added.
    """
    changed = text
    for pattern, new in _OTHER_MARKS:
        changed = pattern.sub(new, changed)
    if changed != text:
        return changed
    bare, space = split_space(text)
    if not bare or not (bare[-1].isalnum() or bare[-1] == "."):
        raise Unperturbable("it has no punctuation that could be set in another way")
    return (bare[:-1] if bare[-1] == "." else f"{bare}.") + space


@rule("case", "all in lower case", "character", kind="invariance", degrees=("only",))
def case(text: str, degree: Degree, rng: random.Random, material: Material) -> str:
    """Write the text in lower case."""
    return text.lower()


SYNONYMS = kept("english.toml")["synonyms"]
_WORD = re.compile(
    r"(?P<before>\b(?:an?|so|even|only|as|too)\s+)?(?P<word>\b[^\W\d_]+(?:['’][^\W\d_]+)?)",
    re.IGNORECASE,
)


@rule(
    "synonyms",
    "words replaced by others of the same meaning, from a small list that is safe in English",
    "word",
    kind="invariance",
    degrees=("only",),
    needs=("english",),
)
def synonyms(text: str, degree: Degree, rng: random.Random, material: Material) -> str:
    """Replace words by synonyms that fit the article before them."""

    def other(match: re.Match[str]) -> str | None:
        new = SYNONYMS.get(match["word"].lower())
        before = (match["before"] or "").strip().lower()
        vowels = [
            bool(new) and w[:1].lower() in "aeiou" for w in (match["word"], new or "")
        ]
        if new is None or (
            before and (before not in ("a", "an") or vowels[0] != vowels[1])
        ):  # "even if", "a huge"
            return None
        return (match["before"] or "") + like(match["word"], new)

    spots = spots_of(text, _WORD, other)
    if not spots:
        raise Unperturbable("it has none of the words on the list")
    return replace_spots(text, spots, rng)


@rule(
    "formatting",
    "every sentence on a line of its own, as a list",
    "sentence",
    kind="invariance",
    degrees=("only",),
)
def formatting(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Turn the sentences into a list of bullet points."""
    return "\n".join(
        f"- {split_space(part)[0].lstrip()}"
        for part in several_sentences(text, material)
    )
