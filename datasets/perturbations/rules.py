"""DHP's perturbations of characters, words and sentences (Tables 1 and 2), by rules."""

from __future__ import annotations

import random
import re

from judgesmith.datasets.perturbations.base import (
    DHP,
    WORD,
    Degree,
    Material,
    Unperturbable,
    kept,
    letters,
    like,
    replace_by_degree,
    sentences,
    several_sentences,
    split_space,
    spots_of,
)
from judgesmith.datasets.perturbations.registry import rule

#: Neighbours on a QWERTY keyboard. Our own small table: the package of that name on PyPI that the paper used seeds the
#: generator of the whole process, and leaves a text unchanged without saying so.
_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")


def _neighbours() -> dict[str, str]:
    result = {}
    for r, row in enumerate(_ROWS):
        for c, key in enumerate(row):
            near = [row[i] for i in (c - 1, c + 1) if 0 <= i < len(row)]
            # Each row is shifted to the right by half a key: above are c and c + 1, below c - 1 and c.
            for other, places in ((r - 1, (c, c + 1)), (r + 1, (c - 1, c))):
                if 0 <= other < len(_ROWS):
                    near += [
                        _ROWS[other][i] for i in places if 0 <= i < len(_ROWS[other])
                    ]
            letters = [
                k for k in near if k.isdigit() == key.isdigit()
            ]  # a slip changes no word into a number
            result[key] = "".join(letters)
    return result


QWERTY = _neighbours()


# Characters ----------------------------------------------------------------------------------------------------------


@rule("deletions", "letters and digits deleted at random", "character", paper=DHP)
def deletions(text: str, degree: Degree, rng: random.Random, material: Material) -> str:
    """Delete letters at random; those of a minor degree are among those of a major one."""
    places = letters(text)
    k = material.amounts.count("character", degree, len(places))
    rng.shuffle(places)  # what minor deletes is a part of what major deletes
    gone = set(places[:k])
    return "".join(character for i, character in enumerate(text) if i not in gone)


@rule("typos", "typing errors of a QWERTY keyboard", "character", paper=DHP)
def typos(text: str, degree: Degree, rng: random.Random, material: Material) -> str:
    """Make typing errors.

    These are a slip to a neighbouring key, a key hit beside the right one, a letter doubled, two letters swapped, or
    one left out. Letters that no QWERTY keyboard has take part in the last three.
    """
    places = letters(text)
    k = material.amounts.count("character", degree, len(places))
    rng.shuffle(places)
    characters = list(text)
    spoilt: set[int] = set()
    for i in places:
        if len(spoilt) == k:
            break
        if (
            i - 1 in spoilt or i + 1 in spoilt or i in spoilt
        ):  # else one slip could undo another
            continue
        spoilt.add(i)
        characters[i] = slip(text, i, rng, characters)
    if len(spoilt) < k:  # errors no longer fit side by side: a very dense major
        raise Unperturbable(
            f"only {len(spoilt)} typing errors fit into it, and {k} are asked for"
        )
    return "".join(characters)


def slip(text: str, i: int, rng: random.Random, characters: list[str]) -> str:
    """Return the replacement of character i after a typing error; a swap changes `characters`, too."""
    character = text[i]
    near = QWERTY.get(character.lower(), "")
    kinds = ["double", "leave out", *(["slip", "slip", "insert"] if near else [])]
    after = text[i + 1 : i + 2]
    if after.isalnum() and after.lower() != character.lower():
        kinds.append("swap")
    kind = rng.choice(kinds)
    other = like(character, rng.choice(near)) if near else ""
    if kind == "swap":
        characters[i + 1] = like(after, character.lower())
        return like(character, after.lower())
    return {
        "double": character * 2,
        "leave out": "",
        "slip": other,
        "insert": character + other,
    }[kind]


# Words ---------------------------------------------------------------------------------------------------------------


@rule(
    "word-deletion",
    "consecutive words deleted",
    "word",
    paper=f"{DHP}: of translations",
)
def word_deletion(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Delete a run of neighbouring words."""
    words = list(re.finditer(r"\S+\s*", text))
    k = material.amounts.count("word", degree, len(words))
    first = rng.randrange(len(words) - k + 1)
    return text[: words[first].start()] + text[words[first + k - 1].end() :]


_WRONG_FORM = kept("english.toml")["wrong_form"]


@rule(
    "grammar-rules",
    "errors of agreement, case and preposition, by a list of English words",
    "word",
    needs=("english",),
    stands_for="grammar-lm",
)
def grammar_by_rules(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Make grammatical errors by rules, in place of DHP's, which a language model makes."""

    def wrong(match: re.Match[str]) -> str | None:
        word = match[0].lower()
        if word in _WRONG_FORM and not (
            len(word) > 1 and match[0].isupper()
        ):  # US and IT are no pronouns
            return like(match[0], _WRONG_FORM[word]) if word != "i" else "me"
        return None

    return replace_by_degree(
        text, spots_of(text, WORD, wrong), degree, rng, "words that the rules know"
    )


# Sentences -----------------------------------------------------------------------------------------------------------


@rule(
    "shuffle",
    "sentences in another order: two of them (minor), all (major)",
    "sentence",
    paper=f"{DHP}: of summaries",
)
def shuffle(text: str, degree: Degree, rng: random.Random, material: Material) -> str:
    """Change the order of the sentences: two swap for a minor degree, at least three move for a major one."""
    parts = several_sentences(text, material, 3 if degree == "major" else 2)
    bare = [split_space(part)[0] for part in parts]
    if len(set(bare)) < len(bare):
        raise Unperturbable("it has a sentence twice")
    order = list(range(len(parts)))
    if degree == "minor":
        i, j = rng.sample(order, 2)
        order[i], order[j] = j, i
    else:
        first = list(order)
        while (
            sum(a == b for a, b in zip(order, first, strict=True)) > len(order) - 3
        ):  # at least three have moved
            rng.shuffle(order)
    # The white space stays where it was, so that paragraphs keep their number of sentences.
    return join(text, [bare[i] for i in order], parts)


def join(text: str, bare: list[str], parts: list[str]) -> str:
    """Sentences in the places of others: each is followed by the white space of the one whose place it takes."""
    gap = " " if _spaced(text) else ""
    spaces = [split_space(part)[1] or gap for part in parts[:-1]] + [
        split_space(parts[-1])[1]
    ]
    return "".join(
        sentence + space for sentence, space in zip(bare, spaces, strict=True)
    )


def _spaced(text: str) -> bool:
    """Return True if the script puts spaces between words."""
    return any(character.isspace() for character in text.strip())


def inserted(parts: list[str], i: int, sentence: str) -> list[str]:
    """Return the sentences with a further one after the i-th; -1 puts it first."""
    gap = " " if _spaced("".join(parts)) or _spaced(sentence) else ""
    if i < 0:
        return [sentence.strip() + gap, *parts]
    bare, space = split_space(parts[i])
    return [*parts[:i], bare + gap, sentence.strip() + space, *parts[i + 1 :]]


@rule(
    "rewrite-rules",
    "repeated sentences: one (minor), up to three (major)",
    "sentence",
    stands_for="rewrite-lm",
)
def rewrite_by_rules(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Insert sentences by rules, in place of DHP's rewriting and insertion.

    The sentence inserted after another is the same one again, since rules cannot rephrase.
    """
    parts = several_sentences(text, material, 2 if degree == "major" else 1)
    places = [
        i
        for i, part in enumerate(parts)
        if len(WORD.findall(part)) >= 3 or len(letters(part)) >= 8
    ]
    if len(places) < (2 if degree == "major" else 1):
        raise Unperturbable("its sentences are too short to be paraphrased")
    rng.shuffle(places)
    for i in sorted(places[: 1 if degree == "minor" else 3], reverse=True):
        parts = inserted(parts, i, split_space(parts[i])[0])
    return "".join(parts)


@rule(
    "random-ending",
    "the last sentence is that of another document (amount story: the whole text, an ending)",
    "sentence",
    degrees=("only",),
    needs=("others",),
    paper=f"{DHP}: of stories",
)
def random_ending(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Replace the last sentence by that of another document."""
    if material.amounts.task == "story":  # the text is the ending alone
        return other_text(text, material)
    parts = several_sentences(text, material)
    own = {split_space(part)[0] for part in parts}
    other = [
        split_space(sentences(o.text, material.language)[-1])[0]
        for o in material.others
        if o.text.strip()
    ]
    other = [sentence for sentence in other if sentence not in own]
    if not other:
        raise Unperturbable("no other document ends differently")
    return "".join(parts[:-1]) + rng.choice(other)


@rule(
    "wrong-ending",
    "the wrong ending that the data has",
    "sentence",
    degrees=("only",),
    needs=("wrong",),
    paper=f"{DHP}: of stories",
)
def wrong_ending(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Return the wrong ending that the data has for the text."""
    return material.own.wrong or ""


@rule(
    "random-answer",
    "the whole text is that of another document",
    "sentence",
    degrees=("only",),
    needs=("others",),
    paper=f"{DHP}: of answers",
)
def random_answer(
    text: str, degree: Degree, rng: random.Random, material: Material
) -> str:
    """Return the text of another document."""
    return other_text(text, material)


def other_text(text: str, material: Material) -> str:
    """Return a whole text of another document, the same one for every perturbation.

    Raises:
        Unperturbable: If there is no other document.
    """
    present = [
        o.text
        for o in material.others
        if o.text.strip() != text.strip() and letters(o.text)
    ]
    if not present:
        raise Unperturbable("there is no text of another document")
    return random.Random(
        f"other|{material.own.id}".encode("utf-8", "backslashreplace")
    ).choice(present)
